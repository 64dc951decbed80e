/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/complete.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "plan/drive.h"
#include "shard/space.h"

/* The factor that heads the first dimension; -1 where there is none that may be cut. */
static int heading(const struct ap_bound *b, const struct ap_operand *o)
{
	int f = o->rank > 0 && o->dim[0].n > 0 ? o->dim[0].factor[0] : -1;

	return f >= 0 && b->factor[f].flags & AP_FACTOR_FROZEN ? -1 : f;
}

static int batch_factor(const struct ap_bound *b)
{
	int f = b->nin != 1 ? heading(b, &b->out[0]) : -1;

	return f < 0 && b->nin > 0 ? heading(b, &b->in[0]) : f;
}

/* What takes vectors of its result (OneHot) is cut by all devices or not at all. */
static int32_t parts_of(const struct ap_bound *b, int f, int64_t ndev, const struct ap_step *step)
{
	int64_t parts = ap_gcd(ap_factor_extent(b, f, step), ndev);

	return *b->row->strategy && parts != ndev ? 1 : (int32_t)parts;
}

static const int32_t *counts_of(struct ap_ctx *ctx, const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step)
{
	int32_t *count = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);
	int f = batch_factor(b);

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		count[i] = 1;
	if (f < 0)
		return count;
	count[f] = parts_of(b, f, ndev, step);
	if (!ap_space_legal(ctx, b, count, ndev, step, NULL))
		count[f] = 1;
	return count;
}

enum ap_status ap_complete_batch(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *fixed, const int32_t *const **out)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	const char *conflict;
	ap_id node;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;

		if (fixed && fixed[i])
			counts[i] = fixed[i];
		else if (ap_op_has_strategy(b->row) && !g->node[i].once)
			counts[i] = counts_of(ctx, b, ndev, step);
	}
	*out = counts;
	conflict = ap_plan_conflict(ctx, g, ndev, counts, &node);
	if (!conflict)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE,
		&(struct ap_where){.file = g->file, .oper = g->node[node].name}, "semi-auto",
		"%s; in semi_auto_parallel each of them needs an in_strategy", conflict);
}
