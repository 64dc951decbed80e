/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices put into a tensor (operand 0) where indices (operand 1) say; operand 2 holds the slices.
 * Indices and the dimensions of the slices that go with them stay whole.
 */
#include <inttypes.h>

#include "rule/expand.h"

/* Dimension of the updates against what it must be. */
static bool same_length(struct ap_binding *b, uint8_t dim, int64_t want)
{
	return b->bin[2].size[dim] == want || ap_bind_fail(b, "operator-shape", 2,
		"dimension %d of operand 2 is %" PRId64 "; %" PRId64 " is expected", dim,
		b->bin[2].size[dim], want);
}

/* Updates have the first `points` dimensions of the indices, then those of the tensor from `from`
 * on; these may be cut. */
static bool scatter(struct ap_binding *b, uint8_t points, uint8_t from, uint32_t whole)
{
	struct ap_operand *x = &b->bin[0], *index = &b->bin[1], *slices = &b->bin[2];
	uint8_t id[AP_MAX_RANK], rank = (uint8_t)(points + x->rank - from);

	if (slices->rank != rank)
		return ap_bind_fail(b, "operator-rank", 2,
			"operand 2 has shape %s; %d dimensions are expected",
			ap_bind_shape(b, slices->size, slices->rank), rank);
	for (uint8_t i = 0; i < rank; i++)
		if (!same_length(b, i, i < points ? index->size[i] : x->size[from + i - points]))
			return false;
	if (!ap_expand_dims(b, x, whole, id))
		return false;
	for (uint8_t i = 0; i < x->rank; i++) {
		if (!ap_expand_add(b, &b->bout[0], x->size[i], id[i]))
			return false;
		if (i >= from)
			ap_expand_put(&slices->dim[points + i - from], id[i]);
	}
	return true;
}

bool ap_expand_scatter_rows(struct ap_binding *b)
{
	return ap_expand_rank(b, 0, 1) && scatter(b, b->bin[1].rank, 1, 1);
}

/* Each part takes what falls into it, so that the first dimension may be cut. */
bool ap_expand_scatter_masked(struct ap_binding *b)
{
	return ap_expand_rank(b, 0, 1) && scatter(b, b->bin[1].rank, 1, 0);
}

/* The last dimension of the indices holds coordinates in the first ones of the tensor. */
bool ap_expand_scatter_points(struct ap_binding *b)
{
	const struct ap_operand *x = &b->bin[0], *index = &b->bin[1];
	int64_t n;

	if (!ap_expand_rank(b, 1, 1))
		return false;
	n = index->size[index->rank - 1];
	if (n > x->rank)
		return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %" PRId64
			"; operand 0 has %d dimensions", index->rank - 1, n, x->rank);
	return scatter(b, (uint8_t)(index->rank - 1), (uint8_t)n, (UINT32_C(1) << n) - 1);
}
