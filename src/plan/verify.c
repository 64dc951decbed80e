/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trusts nothing that the search used: legality of every cut from the rules, every layout against the
 * dev_matrix and tensor_map that will be written, rank by rank; every group by enumerating ranks;
 * cost and memory by a fresh pricer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "plan/drive.h"
#include "shard/space.h"

#define RANKS_CHECKED 64 /* of larger machines, spread evenly with the first and the last */

static enum ap_status wrong(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node, const char *what)
{
	struct ap_where where = {.oper = node == AP_NONE ? NULL : p->graph->node[node].name};

	return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, &where, "verify",
		"the finished plan fails its check: %s; please report this", what);
}

/* Coordinate of a rank on the axis with this number from the right. */
static int64_t coordinate(const struct ap_dev_matrix *dev, int64_t rank, int32_t from_right)
{
	int64_t stride = 1;

	for (int i = dev->n - 1; i > dev->n - 1 - from_right; i--)
		stride *= dev->axis[i];
	return rank / stride % dev->axis[dev->n - 1 - from_right];
}

static int64_t rank_at(int64_t ndev, int i)
{
	if (ndev <= RANKS_CHECKED)
		return i;
	return i == RANKS_CHECKED - 1 ? ndev - 1 : ndev / RANKS_CHECKED * i + i % 7;
}

static bool layout_agrees(const struct ap_placement *pl, const struct ap_operand *o,
	const struct ap_layout *l)
{
	int n = (int)(pl->ndev < RANKS_CHECKED ? pl->ndev : RANKS_CHECKED);
	struct ap_dev_matrix dev;
	int32_t map[AP_MAX_RANK];

	ap_dev_matrix_standard(pl, &dev);
	if (!ap_tensor_map(pl, o, &dev, map))
		ap_layout_dev_matrix(l, pl->ndev, &dev, map);
	for (int i = 0; i < n; i++) {
		int64_t rank = rank_at(pl->ndev, i);

		for (int d = 0; d < o->rank; d++) {
			int64_t part = l->dim[d].cut > 1 ? rank / l->dim[d].stride % l->dim[d].cut : 0;
			int64_t said = map[d] < 0 ? 0 : coordinate(&dev, rank, map[d]);

			if (part != said)
				return false;
		}
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
		if (l->dim[d].cut > 1 &&
			a / l->dim[d].stride % l->dim[d].cut != b / l->dim[d].stride % l->dim[d].cut)
			return false;
	return true;
}

static bool is_repeat(const struct ap_placement *p, int64_t rank)
{
	return p->repeat > 1 && rank / p->repeat_stride % p->repeat != 0;
}

/* Is the group of rank 0 exactly the ranks that hold the slice of rank 0, with the operator's
 * repeats or without? Found by looking at all ranks. */
static bool is_group_of_holders(struct ap_ctx *ctx, const struct ap_axes *group,
	const struct ap_layout *l, const struct ap_placement *p, bool repeats)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int64_t n = ap_axes_size(group), found = 0;
	int64_t *rank = AP_NEW_N(ctx->scratch, int64_t, n);

	ap_axes_group(group, 0, rank);
	for (int64_t r = 0; r < p->ndev; r++)
		if (same_slice(l, 0, r) && (repeats || !is_repeat(p, r))) {
			if (found == n || rank[found] != r)
				break;
			found++;
		}
	ap_arena_release(ctx->scratch, mark);
	return found == n;
}

/* Gradients are exchanged over all ranks that hold the slice; in the generic convention repeats
 * have the same gradient already. */
static bool exchange_agrees(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_plan_param *q)
{
	const struct ap_task_operand *in = &p->task[q->node].in[q->operand];
	const struct ap_placement *place = &p->op[q->node].place;

	if (!is_group_of_holders(ctx, &q->shard.replicas, &q->layout, place, true))
		return false;
	if (!in->grad)
		return q->gradient.n == 0;
	return is_group_of_holders(ctx, &q->gradient, &q->layout, place,
		p->step->executor == AP_EXECUTOR_MINDSPORE);
}

static enum ap_status check_operators(struct ap_ctx *ctx, const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_plan_op *op = &p->op[i];
		const char *why;

		if (!ap_space_legal(ctx, op->place.bound, op->place.count, p->machine->ndev, p->step,
			    &why))
			return wrong(ctx, p, i, why);
		if (!layouts_agree(op))
			return wrong(ctx, p, i, "layout and tensor_map disagree");
	}
	return AP_OK;
}

static enum ap_status check_parameters(struct ap_ctx *ctx, const struct ap_plan *p)
{
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_plan_param *q = &p->param[i];
		const struct ap_tensor *t = &p->graph->tensor[q->tensor];

		for (uint32_t u = 0; u < t->nuse; u++)
			if (!ap_layout_equal(&q->layout,
				    &p->op[t->use[u].node].in[t->use[u].operand]))
				return wrong(ctx, p, t->use[u].node,
					"two users of a parameter hold it in different layouts");
		if (!exchange_agrees(ctx, p, q))
			return wrong(ctx, p, q->node, "gradient group and holders disagree");
	}
	return AP_OK;
}

/* Objective and memory afresh: a second plan made from the bare counts. */
static enum ap_status check_sums(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, p->graph->nnode);
	struct ap_plan *again = AP_NEW(ctx->arena, struct ap_plan);
	struct ap_memory memory;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		counts[i] = p->op[i].place.count;
	ap_plan_make(ctx, p->graph, p->machine, p->step, counts, p->capacity_bytes, again);
	ap_plan_memory(again, &memory);
	if (ap_plan_objective_s(again) != p->search.objective_s)
		return wrong(ctx, p, AP_NONE, "the objective does not add up");
	if (memcmp(&memory, &p->prediction.memory, sizeof memory) != 0)
		return wrong(ctx, p, AP_NONE, "the memory does not add up");
	if (p->search.status != AP_PLAN_GIVEN && memory.total > p->capacity_bytes)
		return wrong(ctx, p, AP_NONE, "the plan does not fit its memory limit");
	if (p->search.status != AP_PLAN_GIVEN && p->search.objective_s < p->search.lower_bound_s)
		return wrong(ctx, p, AP_NONE, "the objective is below its bound");
	return AP_OK;
}

enum ap_status ap_verify(struct ap_ctx *ctx, const struct ap_plan *p)
{
	AP_TRY(check_operators(ctx, p));
	AP_TRY(check_parameters(ctx, p));
	return check_sums(ctx, p);
}
