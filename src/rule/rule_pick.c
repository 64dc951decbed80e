/* SPDX-License-Identifier: Apache-2.0 */
/* Elements chosen by value or by index. */
#include <inttypes.h>

#include "rule/expand.h"

/* The k largest of the last dimension, which stays whole. */
bool ap_expand_topk(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	int64_t k = ap_attr_int(b->in->attrs, "k", 0);
	uint8_t last, id[AP_MAX_RANK];

	if (!ap_expand_list(b, "k") || !ap_expand_rank(b, 0, 1))
		return false;
	last = (uint8_t)(in->rank - 1);
	if (k < 1 || k > in->size[last])
		return ap_bind_fail(b, "operator-attr", -1, "attribute k is %" PRId64
			"; of a last dimension of %" PRId64 " 1..%" PRId64 " can be taken", k,
			in->size[last], in->size[last]);
	if (!ap_expand_dims(b, in, UINT32_C(1) << last, id) ||
		!ap_expand_factor(b, (char)('A' + last), AP_FACTOR_FROZEN, in->size[last], &id[last]))
		return false;
	ap_expand_put(&in->dim[last], id[last]);
	for (uint16_t o = 0; o < b->nout; o++)
		for (uint8_t i = 0; i < in->rank; i++)
			if (!ap_expand_add(b, &b->bout[o], i < last ? in->size[i] : k,
				i < last ? id[i] : AP_NO_FACTOR))
				return false;
	return true;
}

/* GatherD: indices of the tensor's own rank, along one dimension, which stays whole. */
bool ap_expand_gather_dim(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *index = &b->bin[1];
	uint8_t dim, id[AP_MAX_RANK];

	if (!ap_expand_list(b, "dim") || !ap_expand_rank(b, 0, 1) ||
		!ap_expand_axis(b, "dim", 0, x->rank, &dim) ||
		!ap_expand_same(b, 1, UINT32_C(1) << dim) ||
		!ap_expand_dims(b, x, UINT32_C(1) << dim, id))
		return false;
	for (uint8_t i = 0; i < x->rank; i++) {
		ap_expand_put(&index->dim[i], id[i]);
		if (!ap_expand_add(b, &b->bout[0], index->size[i], id[i]))
			return false;
	}
	return true;
}

/* GatherNd: the last dimension of the indices holds coordinates in the first ones of the tensor,
 * which stays whole. */
bool ap_expand_gather_points(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *index = &b->bin[1];
	uint8_t last, id[AP_MAX_RANK];

	if (!ap_expand_rank(b, 1, 1))
		return false;
	last = (uint8_t)(index->rank - 1);
	if (index->size[last] > x->rank)
		return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %" PRId64
			"; operand 0 has %d dimensions", last, index->size[last], x->rank);
	if (!ap_expand_dims(b, index, UINT32_C(1) << last, id))
		return false;
	for (uint8_t i = 0; i < last; i++)
		if (!ap_expand_add(b, &b->bout[0], index->size[i], id[i]))
			return false;
	for (uint8_t i = (uint8_t)index->size[last]; i < x->rank; i++)
		if (!ap_expand_add(b, &b->bout[0], x->size[i], AP_NO_FACTOR))
			return false;
	return true;
}

/* Slices of operand 0 combined by the segment that operand 1 names for each. */
bool ap_expand_segments(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *segment = &b->bin[1], *out = &b->bout[0];
	int64_t n = ap_attr_int(b->in->attrs, "num_segments", 0);
	uint8_t id[AP_MAX_RANK];

	if (!ap_expand_list(b, "num_segments") || !ap_expand_rank(b, 1, 1) ||
		!ap_expand_rank(b, 0, segment->rank))
		return false;
	if (n < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute num_segments is %" PRId64 "; at least 1 is expected", n);
	for (uint8_t i = 0; i < segment->rank; i++)
		if (segment->size[i] != x->size[i])
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 ", that of operand 0 is %" PRId64
				"; equal lengths are expected", i, segment->size[i], x->size[i]);
	if (!ap_expand_dims(b, x, 0, id) || !ap_expand_add(b, out, n, AP_NO_FACTOR))
		return false;
	for (uint8_t i = 0; i < segment->rank; i++)
		ap_expand_put(&segment->dim[i], id[i]);
	for (uint8_t i = segment->rank; i < x->rank; i++)
		if (!ap_expand_add(b, out, x->size[i], id[i]))
			return false;
	return true;
}
