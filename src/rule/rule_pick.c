/* SPDX-License-Identifier: Apache-2.0 */
/* Elements chosen by value or by index. */
#include <inttypes.h>
#include <string.h>

#include "rule/expand.h"

/* The k largest of one dimension, the last where attribute dim does not say otherwise, which stays
 * whole. */
bool ap_expand_topk(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	int64_t k = ap_attr_int(b->in->attrs, "k", 0);
	uint8_t at, id[AP_MAX_RANK];

	if (!ap_expand_list(b, "k") || !ap_expand_rank(b, 0, 1) ||
		!ap_expand_axis(b, "dim", -1, in->rank, &at))
		return false;
	if (k < 1 || k > in->size[at])
		return ap_bind_fail(b, "operator-attr", -1, "attribute k is %" PRId64
			"; of a dimension of %" PRId64 " 1..%" PRId64 " can be taken", k,
			in->size[at], in->size[at]);
	if (!ap_expand_dims(b, in, UINT32_C(1) << at, id) ||
		!ap_expand_factor(b, (char)('A' + at), AP_FACTOR_FROZEN, in->size[at], &id[at]))
		return false;
	ap_expand_put(&in->dim[at], id[at]);
	for (uint16_t o = 0; o < b->nout; o++)
		for (uint8_t i = 0; i < in->rank; i++)
			if (!ap_expand_add(b, &b->bout[o], i == at ? k : in->size[i],
				i == at ? AP_NO_FACTOR : id[i]))
				return false;
	return true;
}

/* In how many places the one may stand. */
static bool read_depth(struct ap_binding *b, int64_t *depth)
{
	const char *name = strcmp(b->row->name, "OneHot") == 0 ? "depth" : "num_classes";

	*depth = ap_attr_int(b->in->attrs, name, 0);
	return ap_expand_list(b, name) && (*depth >= 1 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is %" PRId64 "; at least 1 is expected", name, *depth));
}

/* OneHot: a new dimension d at `axis`. MindSpore cuts it, and it elsewhere than at the end, for a
 * vector of indices alone. */
bool ap_expand_onehot(struct ap_binding *b)
{
	struct ap_operand *index = &b->bin[0], *out = &b->bout[0];
	uint8_t at, id[AP_MAX_RANK], d = AP_NO_FACTOR;
	int64_t depth;

	if (!read_depth(b, &depth) || !ap_expand_axis(b, "axis", -1, (uint8_t)(index->rank + 1), &at))
		return false;
	for (uint8_t i = 0, k = 0; i <= index->rank; i++) {
		bool inner = index->rank > 1 && at < index->rank;

		if (i == at && !ap_expand_factor(b, 'd', inner ? AP_FACTOR_FROZEN : 0, depth, &d))
			return false;
		if (i == at && !ap_expand_add(b, out, depth, d))
			return false;
		if (i == at)
			continue;
		if (!ap_expand_factor(b, (char)('A' + k), inner ? AP_FACTOR_FROZEN : 0,
			index->size[k], &id[k]) || !ap_expand_add(b, out, index->size[k], id[k]))
			return false;
		ap_expand_put(&index->dim[k], id[k]);
		k++;
	}
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

static bool has_rank(struct ap_binding *b, unsigned i, uint8_t rank)
{
	return b->bin[i].rank == rank || ap_bind_fail(b, "operator-rank", (int)i,
		"operand %u has %d dimensions; %d are expected", i, b->bin[i].rank, rank);
}

/* CropAndResize: pictures [B, H, W, C] stay whole, each box makes one of crop_size. */
bool ap_expand_crop(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *box = &b->bin[1], *of = &b->bin[2], *out = &b->bout[0];
	const struct ap_attr *size = ap_expand_list(b, "crop_size");
	uint8_t n, c;

	if (!size)
		return false;
	if (size->n != 2 || size->list[0] < 1 || size->list[1] < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute crop_size must be a height and a width of at least 1");
	if (!has_rank(b, 0, 4) || !has_rank(b, 1, 2) || !has_rank(b, 2, 1))
		return false;
	if (box->size[1] != 4 || box->size[0] != of->size[0])
		return ap_bind_fail(b, "operator-shape", 1,
			"operand 1 has shape %s; [%" PRId64 ", 4] is expected",
			ap_bind_shape(b, box->size, 2), of->size[0]);
	if (!ap_expand_factor(b, 'n', 0, of->size[0], &n) ||
		!ap_expand_factor(b, 'c', 0, x->size[3], &c))
		return false;
	b->bound.flops *= (double)size->list[0] * (double)size->list[1];
	ap_expand_put(&x->dim[3], c);
	ap_expand_put(&box->dim[0], n);
	ap_expand_put(&of->dim[0], n);
	return ap_expand_add(b, out, of->size[0], n) &&
		ap_expand_add(b, out, size->list[0], AP_NO_FACTOR) &&
		ap_expand_add(b, out, size->list[1], AP_NO_FACTOR) &&
		ap_expand_add(b, out, x->size[3], c);
}
