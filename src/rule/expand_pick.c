/* SPDX-License-Identifier: Apache-2.0 */
/* Elements selected by value or by index. */
#include <inttypes.h>
#include <string.h>

#include "rule/attr.h"
#include "rule/binding.h"
#include "rule/expand.h"

/* The k largest of a dimension (attribute dim, by default the last), which stays whole. */
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

/* Length of the new dimension. */
static bool read_depth(struct ap_binding *b, int64_t *depth)
{
	const char *name = strcmp(b->row->name, "OneHot") == 0 ? "depth" : "num_classes";

	*depth = ap_attr_int(b->in->attrs, name, 0);
	return ap_expand_list(b, name) && (*depth >= 1 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is %" PRId64 "; at least 1 is expected", name, *depth));
}

/* OneHot: a new dimension d at `axis`. MindSpore cuts it, and allows it elsewhere than last, only
 * for a vector of indices. */
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

/* GatherD: indices of the tensor's rank, along one dimension, which stays whole. */
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

/* GatherNd: the last dimension of the indices holds coordinates in the first dimensions of the
 * tensor, which stays whole. */
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

/* Combines slices of operand 0 by the segments that operand 1 assigns to them. */
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

/* CropAndResize: pictures [B, H, W, C] stay whole; each box makes one of crop_size. */
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

struct lookup {
	struct ap_operand *table, *index;
	uint8_t axis, batch; /* dimension looked up in; number of shared leading dimensions */
	uint8_t of_index[AP_MAX_RANK], of_table[AP_MAX_RANK]; /* factors */
};

static bool read_lookup(struct ap_binding *b, struct lookup *l)
{
	uint8_t index = l->index->rank;
	int64_t batch;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "axis", 0, l->table->rank, &l->axis) ||
		!ap_expand_number(b, "batch_dims", 0, &batch))
		return false;
	if (batch < -(int64_t)index || batch > index || batch + (batch < 0 ? index : 0) > l->axis)
		return ap_bind_fail(b, "operator-attr", -1, "attribute batch_dims is %" PRId64
			"; with %d dimensions of the indices and axis %d at most %d is allowed", batch,
			index, l->axis, l->axis < index ? l->axis : index);
	l->batch = (uint8_t)(batch + (batch < 0 ? index : 0));
	for (uint8_t i = 0; i < l->batch; i++)
		if (l->index->size[i] != l->table->size[i])
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 ", that of operand 0 is %" PRId64
				"; equal lengths are expected", i, l->index->size[i],
				l->table->size[i]);
	return true;
}

/* Can the dimension be cut by masking? Only axis 1 of a matrix: the sums can then be dealt along
 * axis 0. */
static bool is_masked(const struct lookup *l)
{
	return l->table->rank == 2 && l->axis == 1 && l->batch == 0 && l->table->size[0] > 1;
}

/* Adds factors of the indices, then those of the table; batch dimensions share theirs. */
static bool add_factors(struct ap_binding *b, struct lookup *l)
{
	static const char letters[AP_MAX_RANK + 1] = "defghijk";
	uint8_t flags = is_masked(l) ? AP_FACTOR_LOOKUP : 0;

	if (!ap_expand_dims(b, l->index, 0, l->of_index))
		return false;
	for (uint8_t i = 0; i < l->table->rank; i++) {
		uint8_t *id = &l->of_table[i];

		*id = AP_NO_FACTOR;
		if (i < l->batch)
			*id = l->of_index[i];
		else if (i != l->axis && !ap_expand_factor(b, letters[i], 0, l->table->size[i], id))
			return false;
		else if (i == l->axis && flags &&
			!ap_expand_factor(b, 'v', flags, l->table->size[i], id))
			return false;
		ap_expand_put(&l->table->dim[i], *id);
	}
	return true;
}

/* Deals the partial results of a part of the table along the first dimension. */
static void deal(struct ap_binding *b, uint8_t id)
{
	ap_expand_put(&b->bout[0].dim[0], id);
	if (id != AP_NO_FACTOR)
		b->bound.dealt = UINT32_C(1) << id;
}

/* The result has the table's dimensions before the axis, those of the indices that are not the
 * table's, and the table's after the axis. */
bool ap_expand_gather(struct ap_binding *b)
{
	struct lookup l = {.table = &b->bin[0], .index = &b->bin[1]};
	struct ap_operand *out = &b->bout[0];

	if (!read_lookup(b, &l) || !add_factors(b, &l))
		return false;
	for (uint8_t i = 0; i < l.axis; i++)
		if (!ap_expand_add(b, out, l.table->size[i], l.of_table[i]))
			return false;
	for (uint8_t i = l.batch; i < l.index->rank; i++)
		if (!ap_expand_add(b, out, l.index->size[i], l.of_index[i]))
			return false;
	for (uint8_t i = (uint8_t)(l.axis + 1); i < l.table->rank; i++)
		if (!ap_expand_add(b, out, l.table->size[i], l.of_table[i]))
			return false;
	if (is_masked(&l))
		deal(b, l.of_table[1]);
	return true;
}

/* Checks that all indices of Index have the shape of the first. */
static bool add_index(struct ap_binding *b, unsigned k, const uint8_t *id)
{
	struct ap_operand *o = &b->bin[k], *first = &b->bin[1];

	for (uint8_t i = 0; i < o->rank || i < first->rank; i++) {
		if (o->rank != first->rank || o->size[i] != first->size[i])
			return ap_bind_fail(b, "operator-shape", (int)k,
				"operand %u has shape %s, operand 1 has %s; equal shapes are expected", k,
				ap_bind_shape(b, o->size, o->rank),
				ap_bind_shape(b, first->size, first->rank));
		ap_expand_put(&o->dim[i], id[i]);
	}
	return true;
}

/* Index: operand 1 + i holds positions in dimension i; those dimensions of operand 0 stay whole. */
bool ap_expand_index(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *first = &b->bin[1], *out = &b->bout[0];
	uint8_t n = (uint8_t)(b->in->nin - 1), index[AP_MAX_RANK], id[AP_MAX_RANK];

	if (!ap_expand_rank(b, 0, n) || !ap_expand_dims(b, first, 0, index))
		return false;
	for (uint8_t i = 0; i < first->rank; i++)
		if (!ap_expand_add(b, out, first->size[i], index[i]))
			return false;
	for (unsigned k = 2; k <= n; k++)
		if (!add_index(b, k, index))
			return false;
	for (uint8_t i = n; i < x->rank; i++) {
		if (!ap_expand_factor(b, (char)('a' + i), 0, x->size[i], &id[i]) ||
			!ap_expand_add(b, out, x->size[i], id[i]))
			return false;
		ap_expand_put(&x->dim[i], id[i]);
	}
	return true;
}

/* Compares a dimension of the updates with its required length. */
static bool same_length(struct ap_binding *b, uint8_t dim, int64_t want)
{
	return b->bin[2].size[dim] == want || ap_bind_fail(b, "operator-shape", 2,
		"dimension %d of operand 2 is %" PRId64 "; %" PRId64 " is expected", dim,
		b->bin[2].size[dim], want);
}

/* Updates have the first `points` dimensions of the indices, then those of the tensor from `from`
 * on; the latter may be cut. */
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

/* Each part takes the updates that fall into it, so the first dimension may be cut. */
bool ap_expand_scatter_masked(struct ap_binding *b)
{
	return ap_expand_rank(b, 0, 1) && scatter(b, b->bin[1].rank, 1, 0);
}

/* The last dimension of the indices holds coordinates in the first dimensions of the tensor. */
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
