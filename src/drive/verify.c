/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses nothing of the search: legality of every cut from the rules; every layout against the counts
 * and against the dev_matrix and tensor_map to be written, rank by rank; every group by enumerating
 * ranks; cost and memory by a new pricer.
 */
#include "drive/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "cost/conflict.h"
#include "cost/task.h"
#include "hw/group.h"
#include "plan/make.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"

#define RANKS_CHECKED 64 /* of larger machines, spread with the first and the last */

static enum ap_status wrong(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node, const char *what)
{
	struct ap_where where = {.oper = node == AP_NONE ? NULL : p->graph->node[node].name};

	return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, &where, "verify",
		"the finished plan fails its check: %s; please report this", what);
}

/* Coordinate of a rank on an axis, numbered from the right. */
static int64_t coordinate(const struct ap_dev_matrix *dev, int64_t rank, int32_t from_right)
{
	int64_t stride = 1;

	for (int i = dev->n - 1; i > dev->n - 1 - from_right; i--)
		stride *= dev->axis[i];
	return rank / stride % dev->axis[dev->n - 1 - from_right];
}

/* The i-th rank checked. */
static int64_t rank_at(int64_t ndev, int i)
{
	if (ndev <= RANKS_CHECKED)
		return i;
	return i == RANKS_CHECKED - 1 ? ndev - 1 : ndev / RANKS_CHECKED * i + i % 7;
}

/* The part of dimension d that a rank holds by the layout. */
static int64_t part_of(const struct ap_layout *l, int d, int64_t rank)
{
	return l->dim[d].cut > 1 ? rank / l->dim[d].stride % l->dim[d].cut : 0;
}

/* The same by the counts of the dimension's factors, outermost first. */
static int64_t part_meant(const struct ap_placement *p, const struct ap_operand *o,
	const struct ap_dim *dim, int64_t rank)
{
	const struct ap_bound *b = p->bound;
	int64_t part = 0;

	for (int i = 0; i < dim->n; i++) {
		int64_t count = ap_placement_parts(p, o, dim->factor[i]), stride = p->left ? 1 : p->repeat;

		for (int j = b->ndev; b->dev[--j] != dim->factor[i];)
			stride *= p->count[b->dev[j]];
		part = part * count + rank / stride % count;
	}
	return part;
}

/* Does every rank hold the same part by layout, by counts, and by dev_matrix and tensor_map? */
static bool layout_agrees(const struct ap_placement *p, const struct ap_operand *o,
	const struct ap_layout *l)
{
	struct ap_dev_matrix dev;
	int32_t map[AP_MAX_RANK];

	ap_dev_matrix_standard(p, &dev);
	if (!ap_tensor_map(p, o, &dev, map))
		ap_layout_dev_matrix(l, p->ndev, &dev, map);
	for (int i = 0; i < RANKS_CHECKED && i < p->ndev; i++)
		for (int d = 0; d < o->rank; d++) {
			int64_t rank = rank_at(p->ndev, i), part = part_of(l, d, rank);

			if (part != part_meant(p, o, &o->dim[d], rank) ||
				part != (map[d] < 0 ? 0 : coordinate(&dev, rank, map[d])))
				return false;
		}
	return true;
}

static bool layouts_agree(const struct ap_plan_op *op)
{
	const struct ap_bound *b = op->place.bound;

	for (int i = 0; i < b->nin; i++)
		if (!layout_agrees(&op->place, &b->in[i], &op->in[i]))
			return false;
	for (int o = 0; o < b->nout; o++)
		if (!layout_agrees(&op->place, &b->out[o], &op->out[o]))
			return false;
	return true;
}

static bool same_slice(const struct ap_layout *l, int64_t a, int64_t b)
{
	for (int d = 0; d < l->rank; d++)
		if (part_of(l, d, a) != part_of(l, d, b))
			return false;
	return true;
}

static bool is_repeat(const struct ap_placement *p, int64_t rank)
{
	return p->repeat > 1 && rank / p->repeat_stride % p->repeat != 0;
}

/* Is the group of rank 0 exactly the ranks that hold the slice of rank 0, with the operator's
 * repeats or without? Compares all ranks. */
static bool is_group_of_holders(struct ap_ctx *ctx, const struct ap_axes *group,
	const struct ap_layout *l, const struct ap_placement *p, bool repeats)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int64_t n = ap_axes_size(group), found = 0;
	int64_t *rank = AP_NEW_N(ctx->scratch, int64_t, n);
	bool same = true;

	ap_axes_group(group, 0, rank);
	for (int64_t r = 0; r < p->ndev && same; r++)
		if (same_slice(l, 0, r) && (repeats || !is_repeat(p, r)))
			same = found < n && rank[found++] == r;
	ap_arena_release(ctx->scratch, mark);
	return same && found == n;
}

/* Gradients are exchanged over all ranks that hold the slice, except for layerwise parameters; with
 * the generic executor repeats already have the same gradient. */
static bool exchange_agrees(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_plan_param *q)
{
	const struct ap_task_operand *in = &p->task[q->node].in[q->operand];
	const struct ap_placement *place = &p->op[q->node].place;

	if (!ap_layout_equal(&q->layout, &p->op[q->node].in[q->operand]))
		return false;
	if (!is_group_of_holders(ctx, &q->shard.replicas, &q->layout, place, true))
		return false;
	if (!in->grad || (p->step->layerwise && p->graph->tensor[q->tensor].layerwise_parallel))
		return q->gradient.n == 0;
	return is_group_of_holders(ctx, &q->gradient, &q->layout, place,
		p->step->executor == AP_EXECUTOR_MINDSPORE);
}

static bool placement_agrees(const struct ap_placement *p, const int32_t *count)
{
	size_t bytes = p->bound->nfactor * sizeof *p->stride;
	struct ap_placement again;

	ap_placement_make(p->bound, count, p->ndev, &again);
	return memcmp(p->stride, again.stride, bytes) == 0 && p->repeat == again.repeat &&
		p->repeat_stride == again.repeat_stride && p->left == again.left &&
		p->dealt == again.dealt;
}

static enum ap_status check_operator(struct ap_ctx *ctx, const struct ap_plan *p, ap_id i)
{
	const struct ap_plan_op *op = &p->op[i];
	const int32_t *count = ap_placement_counts(ctx->scratch, &op->place);
	const char *why;

	if (!ap_space_legal(ctx, op->place.bound, count, ap_graph_devices(p->graph, i, p->machine->ndev),
		p->step, &why))
		return wrong(ctx, p, i, why);
	if (!placement_agrees(&op->place, count))
		return wrong(ctx, p, i, "dev_matrix and counts disagree");
	if (!layouts_agree(op))
		return wrong(ctx, p, i, "layout and tensor_map disagree");
	return AP_OK;
}

/* Are two operators of one class and cut placed alike? */
static bool is_alike(const struct ap_plan_op *a, const struct ap_plan_op *b)
{
	const struct ap_bound *bound = a->place.bound;

	return memcmp(a->place.stride, b->place.stride, bound->nfactor * sizeof *a->place.stride) ==
			0 &&
		a->place.repeat == b->place.repeat &&
		a->place.repeat_stride == b->place.repeat_stride && a->place.left == b->place.left &&
		memcmp(a->in, b->in, bound->nin * sizeof *a->in) == 0 &&
		memcmp(a->out, b->out, bound->nout * sizeof *a->out) == 0;
}

/* Checks each distinct operator and cut, and compares others with it. first[i]: the first like i. */
static enum ap_status check_operators(struct ap_ctx *ctx, const struct ap_plan *p, ap_id *first)
{
	const uint32_t *class_of = ap_task_classes(ctx, p->task, p->graph->nnode);
	struct ap_map *seen = ap_map_create(ctx->scratch);
	ap_id *node = AP_NEW_N(ctx->scratch, ap_id, p->graph->nnode);

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_placement *place = &p->op[i].place;
		uint32_t key[1 + AP_MAX_FACTOR] = {class_of[i]};
		bool fresh;
		ap_id id;

		memcpy(key + 1, ap_placement_counts(ctx->scratch, place),
			place->bound->nfactor * sizeof *key);
		id = ap_map_put(seen, key, (1 + place->bound->nfactor) * sizeof *key, &fresh);
		if (fresh) {
			node[id] = i;
			AP_TRY(check_operator(ctx, p, i));
		}
		first[i] = node[id];
		if (!is_alike(&p->op[i], &p->op[first[i]]))
			return wrong(ctx, p, i, "equal operators have different layouts");
	}
	return AP_OK;
}

/* Was an equal parameter, with the same exchange, checked before? */
static bool was_checked(const struct ap_plan_param *q, const struct ap_plan_param *before)
{
	return before && q->operand == before->operand &&
		ap_layout_equal(&q->layout, &before->layout) &&
		ap_axes_equal(&q->gradient, &before->gradient) &&
		ap_axes_equal(&q->shard.replicas, &before->shard.replicas);
}

/* Compares objective and memory with those of a second plan made from the counts alone. */
static enum ap_status check_sums(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_plan *again = AP_NEW(ctx->arena, struct ap_plan);
	const struct ap_memory *memory = &again->prediction.memory;

	ap_plan_price(ap_plan_maker_create(ctx, p->graph, p->machine, p->step, p->capacity_bytes),
		ap_plan_counts(ctx, p), again);
	if (ap_plan_objective_s(again) != p->search.objective_s)
		return wrong(ctx, p, AP_NONE, "the objective does not add up");
	if (memcmp(memory, &p->prediction.memory, sizeof *memory) != 0)
		return wrong(ctx, p, AP_NONE, "the memory does not add up");
	if (p->search.status != AP_PLAN_GIVEN && memory->total > p->capacity_bytes)
		return wrong(ctx, p, AP_NONE, "the plan does not fit its memory limit");
	if (p->search.status != AP_PLAN_GIVEN && p->search.objective_s < p->search.lower_bound_s)
		return wrong(ctx, p, AP_NONE, "the objective is below its bound");
	return AP_OK;
}

static enum ap_status check_parts(struct ap_ctx *ctx, const struct ap_plan *p)
{
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, p->graph->nnode);
	const struct ap_plan_param **before;
	ap_id node = AP_NONE;
	const char *conflict;

	AP_TRY(check_operators(ctx, p, first));
	before = AP_NEW_N(ctx->scratch, const struct ap_plan_param *, p->graph->nnode);
	conflict = ap_plan_conflict(ctx, p->graph, p->machine->ndev, ap_plan_counts(ctx, p), &node);
	if (conflict)
		return wrong(ctx, p, node, conflict);
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_plan_param *q = &p->param[i];

		if (was_checked(q, before[first[q->node]]))
			continue;
		if (!exchange_agrees(ctx, p, q))
			return wrong(ctx, p, q->node, "gradient group and holders disagree");
		before[first[q->node]] = q;
	}
	return AP_OK;
}

/* Is the plan what its route makes of its checkpoint? */
static enum ap_status check_route(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_route *route = p->route ? p->route->route : NULL;
	const int32_t *const *is = ap_plan_counts(ctx, p), *const *again;
	const int32_t **held;

	if (!route || !route->complete)
		return AP_OK;
	held = AP_NEW_N(ctx->arena, const int32_t *, p->graph->nnode);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->op[i].fixed || (p->op[i].in_checkpoint && p->search.status != AP_PLAN_GIVEN))
			held[i] = is[i];
	AP_TRY(route->complete(ctx, p->graph, p->machine, p->step, held, &again));
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (memcmp(is[i], again[i], p->graph->node[i].bound.nfactor * sizeof **is) != 0)
			return wrong(ctx, p, i, "its route completes the plan otherwise");
	return AP_OK;
}

enum ap_status ap_verify(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	enum ap_status st;

	ap_ctx_phase(ctx, "verification");
	st = check_parts(ctx, p);
	ap_arena_release(ctx->scratch, mark);
	AP_TRY(st);
	AP_TRY(check_sums(ctx, p));
	return check_route(ctx, p);
}
