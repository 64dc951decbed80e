/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct ap_attr *ap_bind_attr(const struct ap_binding *b, struct ap_name name)
{
	char buf[32];

	snprintf(buf, sizeof buf, "%.*s", (int)name.len, name.s);
	return ap_attr_get(b->in->attrs, buf);
}

/* Adds dimension v of rank, counted from the end where negative. */
static bool add(struct ap_binding *b, struct ap_name attr, struct ap_positions *p, int64_t v,
	uint8_t rank)
{
	uint8_t at;

	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s is %" PRId64 "; with %d dimensions %d..%d is allowed",
			(int)attr.len, attr.s, v, rank, -rank, rank - 1);
	at = (uint8_t)(v < 0 ? v + rank : v);
	if (p->mask >> at & 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s names dimension %d twice; once is allowed",
			(int)attr.len, attr.s, at);
	p->mask |= UINT32_C(1) << at;
	p->v[p->n++] = at;
	return true;
}

static bool add_list(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	const struct ap_attr *attr, uint8_t rank)
{
	uint32_t n = attr->type == AP_ATTR_INTS ? attr->n : 1;
	const int64_t *v = attr->type == AP_ATTR_INTS ? attr->list : &attr->i;

	if (n > rank)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s has %" PRIu32 " values; at most %d are expected",
			(int)a->attr.len, a->attr.s, n, rank);
	for (uint32_t i = 0; i < n; i++)
		if (!add(b, a->attr, p, v[i], rank))
			return false;
	return true;
}

static bool add_rest(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	uint8_t rank)
{
	for (uint8_t i = 0; i < rank; i++)
		if (!(p->mask >> i & 1) && !add(b, a->attr, p, i, rank))
			return false;
	return true;
}

/* From the one named dimension to the last, ascending. */
static bool extend(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	uint8_t rank)
{
	uint8_t first = p->v[0];

	for (uint8_t i = (uint8_t)(first + 1); i < rank; i++)
		if (!add(b, a->attr, p, i, rank))
			return false;
	return true;
}

static bool check_order(struct ap_binding *b, const struct ap_axis_rule *a,
	const struct ap_positions *p, uint8_t rank)
{
	return p->n == rank || ap_bind_fail(b, "operator-attr", -1,
		"attribute %.*s must name each of the %d dimensions once", (int)a->attr.len,
		a->attr.s, rank);
}

bool ap_bind_axis(struct ap_binding *b, uint8_t i, uint8_t rank)
{
	const struct ap_axis_rule *a = &b->rule.axis[i];
	const struct ap_attr *attr = ap_bind_attr(b, a->attr);
	struct ap_positions *p = &b->axis[i];
	bool all = !attr || (attr->type == AP_ATTR_INTS && attr->n == 0);

	memset(p, 0, sizeof *p);
	if (attr && !all && !add_list(b, a, p, attr, rank))
		return false;
	if (a->reorder)
		return check_order(b, a, p, rank);
	if (all && a->has_default && !add(b, a->attr, p, a->otherwise, rank))
		return false;
	if ((a->single || a->to_end) && p->n != 1)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %.*s must be one number",
			(int)a->attr.len, a->attr.s);
	if (a->single)
		return true;
	if (a->to_end)
		return extend(b, a, p, rank);
	return !all || a->has_default || add_rest(b, a, p, rank);
}
