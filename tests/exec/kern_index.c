/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups. Indices are of the whole table: what a part of it does not hold is zero there, as the
 * rewritten look-up of a rank has it.
 */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static int64_t index_at(const struct ex_job *j, const struct ex_value *index, const int64_t *at)
{
	return (int64_t)ex_value_of(j->tape, ex_get(index, at));
}

struct lookup {
	const struct ex_value *table, *index;
	int axis, batch; /* the dimension that is looked up in, and those that both have */
	int64_t offset; /* taken off the indices */
	int64_t constant; /* index whose row no gradient flows into; -1 none */
};

static bool lookup_fits(const struct ex_job *j, const struct lookup *l)
{
	const struct ex_box *t = &l->table->box, *i = &l->index->box, *out = &j->out[0].box;
	int found = i->rank - l->batch;

	if (l->axis < l->batch || out->rank != t->rank - 1 + found)
		return false;
	for (int d = 0; d < out->rank; d++) {
		int64_t want = d < l->axis ? t->size[d]
			: d < l->axis + found ? i->size[d - l->axis + l->batch]
			: t->size[d - found + 1];

		if (out->size[d] != want || (d < l->batch && i->size[d] != want))
			return false;
	}
	return true;
}

/* The result has the table's dimensions before the axis, those of the indices, those behind it. */
static ex_id found_at(const struct ex_job *j, const struct lookup *l, const int64_t *at)
{
	const struct ex_box *t = &l->table->box;
	int64_t own[AP_MAX_RANK], which[AP_MAX_RANK] = {0}, i;
	int found = l->index->box.rank - l->batch;
	ex_id v;

	for (int d = 0; d < l->index->box.rank; d++)
		which[d] = at[d < l->batch ? d : d - l->batch + l->axis];
	for (int d = 0; d < t->rank; d++)
		if (d != l->axis)
			own[d] = at[d < l->axis ? d : d - 1 + found];
	i = index_at(j, l->index, which);
	own[l->axis] = i - l->offset - t->first[l->axis];
	if (own[l->axis] < 0 || own[l->axis] >= t->size[l->axis])
		return 0;
	v = ex_get(l->table, own);
	return i == l->constant ? ex_leaf(j->tape, ex_value_of(j->tape, v)) : v;
}

static bool look_up(const struct ex_job *j, const struct lookup *l)
{
	int64_t at[AP_MAX_RANK] = {0};

	if (!lookup_fits(j, l))
		return false;
	do
		ex_put(&j->out[0], at, found_at(j, l, at));
	while (ex_step(&j->out[0].box, at));
	return true;
}

static bool gather(const struct ex_job *j)
{
	struct lookup l = {.table = &j->in[0], .index = &j->in[1], .constant = -1,
		.offset = ap_attr_int(j->attrs, "offset", 0)};
	int64_t batch = ap_attr_int(j->attrs, "batch_dims", 0);

	l.axis = ex_axis(j, "axis", 0, l.table->box.rank);
	l.batch = (int)(batch < 0 ? batch + l.index->box.rank : batch);
	return look_up(j, &l);
}

static bool embedding(const struct ex_job *j)
{
	const struct ap_attr *constant = ap_attr_get(j->attrs, "padding_idx");
	struct lookup l = {.table = &j->in[1], .index = &j->in[0], .constant = -1};

	if (constant)
		l.constant = constant->i < 0 ? constant->i + l.table->box.whole[0] : constant->i;
	return look_up(j, &l);
}

/* An index for each element of the result, along one dimension. */
static bool gather_along(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *index = &j->in[1];
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK];
	int dim = ex_axis(j, "dim", 0, x->box.rank);

	if (dim < 0 || memcmp(index->box.size, j->out[0].box.size, sizeof index->box.size) != 0)
		return false;
	for (int d = 0; d < x->box.rank; d++)
		if (d != dim && index->box.size[d] > x->box.size[d])
			return false;
	do {
		memcpy(own, at, sizeof own);
		own[dim] = index_at(j, index, at);
		if (own[dim] >= x->box.size[dim])
			return false;
		ex_put(&j->out[0], at, ex_get(x, own));
	} while (ex_step(&index->box, at));
	return true;
}

/* The last dimension of the indices holds a place in the first dimensions of the operand. */
static bool gather_points(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *index = &j->in[1];
	int last = index->box.rank - 1, n = (int)index->box.size[last];
	int64_t at[AP_MAX_RANK] = {0};

	if (j->out[0].box.rank != last + x->box.rank - n)
		return false;
	do {
		int64_t own[AP_MAX_RANK], which[AP_MAX_RANK];

		memcpy(which, at, sizeof which);
		for (int d = 0; d < x->box.rank; d++) {
			which[last] = d;
			own[d] = d < n ? index_at(j, index, which) : at[last + d - n];
			if (own[d] >= x->box.size[d])
				return false;
		}
		ex_put(&j->out[0], at, ex_get(x, own));
	} while (ex_step(&j->out[0].box, at));
	return true;
}

/* Where the depth lies in the result: `axis`, -1 last. */
static int depth_dim(const struct ex_job *j)
{
	return ex_axis(j, "axis", -1, j->out[0].box.rank);
}

static bool one_hot(const struct ex_job *j)
{
	const struct ex_value *on = ex_in(j, 1), *off = ex_in(j, 2), *index = &j->in[0];
	struct ex_box *out = &j->out[0].box;
	int64_t at[AP_MAX_RANK] = {0};
	int depth = depth_dim(j);

	if (depth < 0 || out->rank != index->box.rank + 1)
		return false;
	for (int d = 0; d < index->box.rank; d++)
		if (out->size[d < depth ? d : d + 1] != index->box.size[d])
			return false;
	do {
		int64_t which[AP_MAX_RANK] = {0};
		bool hit;

		for (int d = 0; d < index->box.rank; d++)
			which[d] = at[d < depth ? d : d + 1];
		hit = index_at(j, index, which) == out->first[depth] + at[depth];
		ex_put(&j->out[0], at, ex_leaf(j->tape, hit ? on ? ex_value_of(j->tape, on->id[0]) : 1
			: off ? ex_value_of(j->tape, off->id[0]) : 0));
	} while (ex_step(out, at));
	return true;
}

static int64_t limit_rows(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *table = &n->bound.in[0];
	int64_t axis = ap_attr_int(&n->attrs, "axis", 0);

	return slot == 1 ? table->size[axis < 0 ? axis + table->rank : axis] : 0;
}

static int64_t limit_embedding(const struct ap_node *n, unsigned slot)
{
	return slot == 0 ? n->bound.in[1].size[0] : 0;
}

static int64_t limit_along(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *x = &n->bound.in[0];
	int64_t dim = ap_attr_int(&n->attrs, "dim", 0);

	return slot == 1 ? x->size[dim < 0 ? dim + x->rank : dim] : 0;
}

/* Coordinates that are inside in every dimension. */
static int64_t limit_points(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *x = &n->bound.in[0], *index = &n->bound.in[1];
	int64_t least = x->size[0];

	for (int64_t d = 1; d < index->size[index->rank - 1]; d++)
		least = x->size[d] < least ? x->size[d] : least;
	return slot == 1 ? least : 0;
}

static int64_t limit_depth(const struct ap_node *n, unsigned slot)
{
	int64_t classes = ap_attr_int(&n->attrs, "num_classes", 1);

	return slot == 0 ? ap_attr_int(&n->attrs, "depth", classes) : 0;
}

#define LOOKUP(name) {.type = name, .forward = gather, .make = ex_make_gather, \
	.limit = limit_rows, .no_grad = 1 << 1}

#define ONE_HOT(name) {.type = name, .forward = one_hot, .make = ex_make_one_hot, \
	.limit = limit_depth, .no_grad = 7}

const struct ex_kernel ex_kernels_index[] = {
	LOOKUP("Gather"), LOOKUP("SparseGatherV2"), LOOKUP("EmbeddingLookup"),
	LOOKUP("IndexSelect"),
	{.type = "Embedding", .forward = embedding, .make = ex_make_embedding,
		.limit = limit_embedding, .no_grad = 1},
	{.type = "GatherD", .forward = gather_along, .make = ex_make_gather_along,
		.limit = limit_along, .no_grad = 1 << 1},
	{.type = "GatherNd", .forward = gather_points, .make = ex_make_gather_points,
		.limit = limit_points, .no_grad = 1 << 1},
	ONE_HOT("OneHot"), ONE_HOT("OneHotExt"),
	{0}
};
