/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over pairs of dimensions of two tensors. */
#include <inttypes.h>

#include "rule/expand.h"

/* Dimension by[0][i] of operand 0 goes with by[1][i] of operand 1. */
struct pairs {
	uint8_t n;
	uint8_t by[2][AP_MAX_RANK];
	uint32_t mask[2];
};

static bool read_dim(struct ap_binding *b, struct pairs *p, unsigned operand, int64_t v)
{
	uint8_t rank = b->bin[operand].rank;

	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes has %" PRId64
			"; with %d dimensions of operand %u %d..%d is allowed", v, rank, operand,
			-rank, rank - 1);
	v += v < 0 ? rank : 0;
	if (p->mask[operand] >> v & 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute axes names dimension %" PRId64 " of operand %u twice; "
			"once is allowed", v, operand);
	p->mask[operand] |= UINT32_C(1) << v;
	p->by[operand][p->n] = (uint8_t)v;
	return true;
}

/* The last n dimensions of operand 0 with the first n of operand 1. */
static bool pair_ends(struct ap_binding *b, struct pairs *p, int64_t n)
{
	if (n < 0 || n > b->bin[0].rank || n > b->bin[1].rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes is %" PRId64
			"; operands of %d and %d dimensions have no more in common", n,
			b->bin[0].rank, b->bin[1].rank);
	for (p->n = 0; p->n < n; p->n++)
		if (!read_dim(b, p, 0, b->bin[0].rank - n + p->n) || !read_dim(b, p, 1, p->n))
			return false;
	return true;
}

static bool read_pairs(struct ap_binding *b, struct pairs *p)
{
	const struct ap_attr *a = ap_expand_list(b, "axes");
	uint32_t half;

	if (!a)
		return false;
	if (a->type == AP_ATTR_INT)
		return pair_ends(b, p, a->i);
	if (a->n == 1)
		return pair_ends(b, p, a->list[0]);
	half = a->n / 2;
	if (a->n % 2 || half > b->bin[0].rank || half > b->bin[1].rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes has %" PRIu32
			" values; as many dimensions of one operand as of the other are expected",
			a->n);
	for (p->n = 0; p->n < half; p->n++)
		if (!read_dim(b, p, 0, a->list[p->n]) || !read_dim(b, p, 1, a->list[half + p->n]))
			return false;
	return true;
}

static bool lengths_agree(struct ap_binding *b, const struct pairs *p)
{
	for (uint8_t i = 0; i < p->n; i++) {
		int64_t x = b->bin[0].size[p->by[0][i]], y = b->bin[1].size[p->by[1][i]];

		if (x != y)
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 ", dimension %d of operand 0 is %" PRId64
				"; equal lengths are expected", p->by[1][i], y, p->by[0][i], x);
	}
	return true;
}

bool ap_expand_tensordot(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *y = &b->bin[1];
	uint8_t id[AP_MAX_RANK], own;
	struct pairs p = {0};

	if (!read_pairs(b, &p) || !lengths_agree(b, &p) || !ap_expand_dims(b, x, 0, id))
		return false;
	for (uint8_t i = 0; i < p.n; i++)
		ap_expand_put(&y->dim[p.by[1][i]], id[p.by[0][i]]);
	for (uint8_t i = 0; i < x->rank; i++)
		if (!(p.mask[0] >> i & 1) && !ap_expand_add(b, &b->bout[0], x->size[i], id[i]))
			return false;
	for (uint8_t i = 0; i < y->rank; i++) {
		if (p.mask[1] >> i & 1)
			continue;
		if (!ap_expand_factor(b, (char)('A' + x->rank + i), 0, y->size[i], &own))
			return false;
		ap_expand_put(&y->dim[i], own);
		if (!ap_expand_add(b, &b->bout[0], y->size[i], own))
			return false;
	}
	return true;
}
