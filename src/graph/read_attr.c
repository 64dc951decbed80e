/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of operators: names and types are declared in rule/attrs.def. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "graph/load.h"

static const char *const type_texts[] = {
	[AP_ATTR_INT] = "an integer",
	[AP_ATTR_FLOAT] = "a number",
	[AP_ATTR_BOOL] = "true or false",
	[AP_ATTR_STRING] = "a string",
	[AP_ATTR_INTS] = "an integer or an array of integers",
	[AP_ATTR_PAIR] = "an integer, an array of integers or two of one length",
};

static const char *nearest(const char *name)
{
	const char *best = NULL;
	int least = 3;

	for (size_t i = 0; ap_attr_at(i); i++) {
		int d = ap_str_distance(ap_attr_at(i), name, least - 1);

		if (d < least) {
			least = d;
			best = ap_attr_at(i);
		}
	}
	return best;
}

static bool read_ints(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	size_t count = ap_jv_type(v) == AP_JARRAY ? ap_jv_count(v) : 1, i = 0;
	int64_t *list = AP_NEW_N(l->ctx->arena, int64_t, count);

	a->list = list;
	a->n = (uint32_t)count;
	if (ap_jv_type(v) != AP_JARRAY)
		return ap_jv_int(l->doc, v, &list[0]);
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e))
		if (!ap_jv_int(l->doc, e, &list[i++]))
			return false;
	return true;
}

/* [[1, 2], [0, 1]] */
static bool read_pair(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	const struct ap_jv *half = ap_jv_first(v);
	struct ap_attr inner, outer;
	int64_t *list;

	a->type = AP_ATTR_INTS;
	if (ap_jv_type(v) != AP_JARRAY || !half || ap_jv_type(half) != AP_JARRAY)
		return read_ints(l, v, a);
	if (ap_jv_count(v) != 2 || !read_ints(l, half, &outer) ||
		!read_ints(l, ap_jv_next(half), &inner) || outer.n != inner.n)
		return false;
	list = AP_NEW_N(l->ctx->arena, int64_t, 2 * (size_t)outer.n);
	memcpy(list, outer.list, outer.n * sizeof *list);
	memcpy(list + outer.n, inner.list, inner.n * sizeof *list);
	a->list = list;
	a->n = 2 * outer.n;
	return true;
}

static bool read_value(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	switch (a->type) {
	case AP_ATTR_INT:
		if (!ap_jv_int(l->doc, v, &a->i))
			return false;
		a->f = (double)a->i;
		return true;
	case AP_ATTR_FLOAT:
		if (ap_jv_type(v) != AP_JNUMBER)
			return false;
		a->f = ap_jv_double(v);
		return true;
	case AP_ATTR_BOOL:
		if (ap_jv_type(v) != AP_JBOOL)
			return false;
		a->i = ap_jv_bool(v);
		return true;
	case AP_ATTR_STRING:
		if (ap_jv_type(v) != AP_JSTRING)
			return false;
		a->s = ap_jv_str(v);
		return true;
	case AP_ATTR_PAIR:
		return read_pair(l, v, a);
	case AP_ATTR_ANY:
		return true;
	default:
		return read_ints(l, v, a);
	}
}

static void say_unknown(struct ap_load *l, const struct ap_jv *v, const char *oper)
{
	const char *near = nearest(ap_jv_key(v));

	ap_load_say(l, AP_CHECK_ATTR_UNKNOWN, v, oper, "attribute \"%s\" is unknown%s%s%s",
		ap_load_name(l, ap_jv_key(v)), near ? "; did you mean \"" : "", near ? near : "",
		near ? "\"?" : "");
}

static bool read_attr(struct ap_load *l, const struct ap_jv *v, const struct ap_node *op,
	struct ap_attr *a)
{
	enum ap_attr_type wanted;

	*a = (struct ap_attr){.name = ap_attr_find(op->type, ap_jv_key(v),
		&wanted)};
	if (!a->name) {
		say_unknown(l, v, op->name);
		return false;
	}
	a->type = wanted;
	if (ap_attr_get(&op->attrs, a->name)) {
		ap_load_say(l, AP_CHECK_ATTR_TYPE, v, op->name, "attribute %s is given twice, by "
			"two of its names", a->name);
		return false;
	}
	if (read_value(l, v, a))
		return true;
	ap_load_say(l, AP_CHECK_ATTR_TYPE, v, op->name, "attribute %s must be %s", ap_jv_key(v),
		type_texts[wanted]);
	return false;
}

void ap_load_read_attrs(struct ap_load *l, const struct ap_jv *obj, struct ap_node *op)
{
	struct ap_attr *list = AP_NEW_N(l->ctx->arena, struct ap_attr, ap_jv_count(obj));

	op->attrs.v = list;
	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v))
		op->attrs.n += read_attr(l, v, op, &list[op->attrs.n]);
}
