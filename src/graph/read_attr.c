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
	default:
		return read_ints(l, v, a);
	}
}

static bool read_attr(struct ap_load *l, const struct ap_jv *v, const char *oper,
	struct ap_attr *a)
{
	const char *near;

	*a = (struct ap_attr){.name = ap_jv_key(v)};
	if (!ap_attr_known(a->name, &a->type)) {
		near = nearest(a->name);
		ap_load_say(l, AP_CHECK_ATTR_UNKNOWN, v, oper, "attribute \"%s\" is unknown%s%s%s",
			ap_load_name(l, a->name), near ? "; did you mean \"" : "", near ? near : "",
			near ? "\"?" : "");
		return false;
	}
	if (read_value(l, v, a))
		return true;
	ap_load_say(l, AP_CHECK_ATTR_TYPE, v, oper, "attribute %s must be %s", a->name,
		type_texts[a->type]);
	return false;
}

struct ap_attrs ap_load_read_attrs(struct ap_load *l, const struct ap_jv *obj, const char *oper)
{
	struct ap_attr *list = AP_NEW_N(l->ctx->arena, struct ap_attr, ap_jv_count(obj));
	struct ap_attrs attrs = {0, list};

	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v))
		attrs.n += read_attr(l, v, oper, &list[attrs.n]);
	return attrs;
}
