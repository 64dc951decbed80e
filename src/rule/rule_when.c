/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Is value one of the words of list, which are parted by '|'? */
static bool listed(const char *list, size_t len, const char *value)
{
	const char *end = list + len;
	size_t n = strlen(value);

	for (const char *p = list; p < end;) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		size_t w = (size_t)((bar ? bar : end) - p);

		if (w == n && memcmp(p, value, n) == 0)
			return true;
		p += w + 1;
	}
	return false;
}

/* The attribute's value as a word of a condition; a missing one is "0". */
static const char *value_of(const struct ap_attrs *attrs, const char *name, char buf[32])
{
	const char *s = ap_attr_str(attrs, name, NULL);
	const struct ap_attr *a = ap_attr_get(attrs, name);

	if (s)
		return s;
	if (a && a->type == AP_ATTR_INTS && a->n != 1)
		return "a list";
	snprintf(buf, 32, "%" PRId64, ap_attr_int(attrs, name, 0));
	return buf;
}

static bool is_set(const struct ap_attrs *attrs, const char *name)
{
	const struct ap_attr *a = ap_attr_get(attrs, name);

	return a && (a->type == AP_ATTR_BOOL || a->type == AP_ATTR_INT ? a->i != 0 : true);
}

struct condition { /* attr, !attr, attr=v|w, attr?=v, attr?, outputs=n, given=a|b, absent=a|b */
	char name[32];
	bool negated, or_missing;
	const char *values; /* NULL: attr, !attr or attr? */
	size_t len; /* of values */
};

static struct condition read_condition(const char *text, size_t len)
{
	const char *eq = memchr(text, '=', len);
	struct condition c = {.negated = *text == '!', .values = eq ? eq + 1 : NULL};
	size_t n = eq ? (size_t)(eq - text) : len;

	c.or_missing = text[n - 1] == '?';
	c.len = eq ? len - n - 1 : 0;
	snprintf(c.name, sizeof c.name, "%.*s", (int)(n - c.negated - c.or_missing),
		text + c.negated);
	return c;
}

static bool is_outputs(const struct condition *c)
{
	return strcmp(c->name, "outputs") == 0;
}

/* Is one of the listed operands there? */
static bool is_given(const struct ap_bind_in *in, const struct condition *c)
{
	for (uint16_t i = 0; i < in->nin; i++) {
		unsigned slot = in->slot ? in->slot[i] : i;
		const char letter[] = {(char)('a' + slot % 26), '\0'};

		if (slot < 26 && listed(c->values, c->len, letter))
			return true;
	}
	return false;
}

static bool is_unnamed(const struct ap_attrs *attrs, const char *name)
{
	const struct ap_attr *a = ap_attr_get(attrs, name);

	return !a || (a->type == AP_ATTR_INTS && a->n == 0);
}

static const char *value_for(const struct ap_bind_in *in, const struct condition *c, char buf[32])
{
	if (!is_outputs(c))
		return value_of(in->attrs, c->name, buf);
	snprintf(buf, 32, "%d", in->nout ? in->nout : 1);
	return buf;
}

static bool holds(const struct ap_bind_in *in, const struct condition *c)
{
	char buf[32];

	if (!c->values && c->or_missing)
		return is_unnamed(in->attrs, c->name);
	if (!c->values)
		return is_set(in->attrs, c->name) != c->negated;
	if (strcmp(c->name, "given") == 0 || strcmp(c->name, "absent") == 0)
		return is_given(in, c) == (*c->name == 'g');
	if (c->or_missing && !ap_attr_get(in->attrs, c->name))
		return true;
	return listed(c->values, c->len, value_for(in, c, buf));
}

/* "a|b" as "a or b". */
static const char *alternatives(struct ap_binding *b, const struct condition *c)
{
	struct ap_str s;

	ap_str_init(&s, b->ctx->arena);
	for (size_t i = 0; i < c->len; i++) {
		if (c->values[i] == '|')
			ap_str_add(&s, " or ");
		else
			ap_str_addc(&s, c->values[i]);
	}
	return s.s;
}

static bool refuse(struct ap_binding *b, const struct condition *c)
{
	char buf[32];

	if (strcmp(c->name, "given") == 0 || strcmp(c->name, "absent") == 0)
		return ap_bind_fail(b, "operator-inputs", -1, "operand %s must be %s",
			alternatives(b, c), *c->name == 'g' ? "given" : "left out");
	if (is_outputs(c))
		return ap_bind_fail(b, "operator-outputs", -1,
			"%s results are declared; %s is expected", value_for(b->in, c, buf),
			alternatives(b, c));
	if (!c->values)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %s must %sbe set", c->name,
			c->negated || c->or_missing ? "not " : "");
	return ap_bind_fail(b, "operator-attr", -1, "attribute %s is %s; %s is expected", c->name,
		value_for(b->in, c, buf), alternatives(b, c));
}

bool ap_bind_when(struct ap_binding *b)
{
	const char *p = b->row->when;

	while (*p) {
		const char *amp = strstr(p, " & ");
		size_t len = amp ? (size_t)(amp - p) : strlen(p);
		struct condition c = read_condition(p, len);

		if (!holds(b->in, &c))
			return refuse(b, &c);
		b->passed++;
		p += len + (amp ? 3 : 0);
	}
	return true;
}
