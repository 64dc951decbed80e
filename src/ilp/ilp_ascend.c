/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps (sweep.h) over sub-problems: what is beaten goes, and where costs are the sub-problem's own they
 * stay moved. */
#include <math.h>

#include "base/arena.h"
#include "ilp/ilp_parts.h"
#include "search/polish.h"
#include "search/sweep.h"

enum { PATIENCE = 8, LITTLE_PART = 512, LEFT_PART = 4, POLISH_PASSES = 8 };
enum { HASTY_PATIENCE = 2, HASTY_PART = 64 }; /* while looking for the price */

/* What was taken is taken off the pairs. Where memory was charged, nodes have what is left, without the
 * rent; nothing has gone to the constant then. */
static void keep_moves(const struct ap_sweep *a, struct ap_ilp_sub *sub)
{
	bool charged = sub->p.memory_limit != AP_NO_LIMIT;

	if (!charged)
		sub->constant = a->constant;
	for (uint32_t i = 0; i < a->p->n && charged; i++) {
		double *cost = (double *)sub->p.node[i].cost;

		for (uint32_t c = 0; c < a->p->node[i].k; c++)
			if (cost[c] < INFINITY)
				cost[c] += a->cost[i][c] + a->moved[i] - a->p->node[i].cost[c];
	}
	for (uint32_t e = 0; e < a->p->nedge; e++) {
		const struct ap_pmatrix *m = &sub->p.matrix[sub->p.edge[e].matrix];
		double *pair = (double *)m->cost;

		for (uint32_t r = 0; r < m->rows; r++)
			for (uint32_t c = 0; c < m->cols; c++)
				pair[(size_t)r * m->cols + c] -= a->taken[0][e][r] + a->taken[1][e][c];
	}
}

/* Others see these costs: they stay as they were, but for what is out. */
static void keep_outs(const struct ap_sweep *a, double *const *cost)
{
	for (uint32_t i = 0; i < a->p->n; i++)
		for (uint32_t c = 0; c < a->p->node[i].k; c++)
			if (a->cost[i][c] == INFINITY)
				cost[i][c] = INFINITY;
}

/* Holds the pick that goes with the sweeps against the best; names the node that had to pay most and its
 * candidate. Does the pick fit? */
static bool guess(struct ap_ilp *s, const struct ap_sweep *a, const struct ap_ilp_sub *sub,
	uint32_t *node, uint32_t *candidate)
{
	uint32_t *pick = AP_NEW_N(s->ctx->scratch, uint32_t, a->p->n);
	bool fits;

	*node = ap_sweep_pick(a, pick);
	*candidate = pick[*node];
	fits = ap_problem_memory(&sub->p, pick) <= sub->p.memory_limit;
	ap_ilp_try(s, sub, pick);
	ap_polish(s->ctx, &sub->p, POLISH_PASSES, pick);
	ap_ilp_try(s, sub, pick);
	return fits;
}

/* The sub-problem at a price, if it has a limit. False: that cannot be done. */
static bool begin_at(struct ap_sweep *a, struct ap_ilp *s, const struct ap_ilp_sub *sub, double price)
{
	struct ap_ilp_sub *charged = ap_arena_memdup(s->ctx->scratch, sub, sizeof *sub);

	if (sub->p.memory_limit != AP_NO_LIMIT && !ap_ilp_charge(s, sub, price, charged))
		return false;
	return ap_sweep_open(s->ctx, &(struct ap_sweep_job){.p = &charged->p,
		.constant = charged->constant, .grain = s->grain,
		.most = s->cost - s->whole->quantum, .in_place = charged->own}, a);
}

void ap_ilp_guess(struct ap_ilp *s, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_sweep a;

	if (begin_at(&a, s, sub, ap_ilp_price(s, sub)))
		guess(s, &a, sub, node, candidate);
	ap_arena_release(s->ctx->scratch, mark);
}

static void sweep_on(struct ap_ilp *s, struct ap_sweep *a, bool hasty)
{
	struct ap_sweep_effort effort = {.patience = hasty ? HASTY_PATIENCE : PATIENCE,
		.part = hasty ? HASTY_PART : LITTLE_PART, .enough = a->left / LEFT_PART,
		.most_work = s->budget->work};

	ap_sweep_run(a, &effort, &s->work);
}

/* Copies of the costs of nodes, made those of the sub-problem; all other costs are still seen by
 * others. */
static double **own_nodes(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_pnode *node = ap_arena_memdup(arena, sub->p.node, sub->p.n * sizeof *node);
	double **cost = AP_NEW_N(arena, double *, sub->p.n);

	for (uint32_t i = 0; i < sub->p.n; i++)
		node[i].cost = cost[i] =
			ap_arena_memdup(arena, node[i].cost, node[i].k * sizeof **cost);
	sub->p.node = node;
	return cost;
}

/* Sweeps, and keeps what came of it. The constant that was reached; does the pick fit? */
static double ascend(struct ap_ilp *s, struct ap_sweep *a, struct ap_ilp_sub *sub,
	double *const *shared, bool hasty, bool *fits)
{
	double q = s->whole->quantum;
	uint32_t node, candidate;

	sweep_on(s, a, hasty);
	if (a->alive)
		*fits = guess(s, a, sub, &node, &candidate);
	sub->bound = fmax(sub->bound, ceil(a->constant / q) * q);
	if (sub->own)
		keep_moves(a, sub);
	else
		keep_outs(a, shared);
	return a->constant;
}

void ap_ilp_ascend(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	double **shared = sub->own ? NULL : own_nodes(s, sub);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	bool limited = sub->p.memory_limit != AP_NO_LIMIT, fits = true;
	double price = limited ? ap_ilp_price(s, sub) : 0, bound = -INFINITY;
	struct ap_sweep a;

	if (begin_at(&a, s, sub, price))
		bound = ascend(s, &a, sub, shared, limited && !ap_ilp_price_found(s), &fits);
	if (limited)
		ap_ilp_price_tried(s, price, bound, fits);
	ap_arena_release(s->ctx->scratch, mark);
}

bool ap_ilp_too_heavy(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	double **cost = own_nodes(s, sub);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_problem bytes = ap_ilp_memory(s->ctx->scratch, &sub->p);
	double limit = (double)sub->p.memory_limit;
	uint32_t node, candidate;
	struct ap_sweep a;
	bool fits = true;

	if (ap_sweep_open(s->ctx, &(struct ap_sweep_job){.p = &bytes, .grain = 1, .most = limit}, &a)) {
		sweep_on(s, &a, true);
		fits = a.constant <= limit;
		if (a.alive && fits)
			guess(s, &a, sub, &node, &candidate);
		keep_outs(&a, cost);
	}
	ap_arena_release(s->ctx->scratch, mark);
	return !fits;
}
