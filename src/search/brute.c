/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustive search, the oracle for the other engines: visits every pick in lexicographic order, so
 * the first of equal cost is the smallest. No bound, no pruning. O(product of k * degree). */

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "problem/problem.h"
#include "search/engines.h"

struct brute {
	const struct ap_problem *p;
	uint32_t *pick, *best;
	double *cost; /* [i] cost of nodes 0..i-1 and the edges among them */
	int64_t *memory;
	const ap_id **edges; /* [i] edges whose later end is i */
	uint32_t *nedges;
	double best_cost;
	int64_t least_memory;
	uint64_t work;
};

static ap_id later_end(const struct ap_pedge *e)
{
	return e->u > e->v ? e->u : e->v;
}

static void group_edges(struct ap_ctx *ctx, struct brute *b)
{
	const struct ap_problem *p = b->p;
	b->edges = AP_NEW_N(ctx->scratch, const ap_id *, p->n);
	b->nedges = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		ap_id *list = AP_NEW_N(ctx->scratch, ap_id, p->nedge);
		for (uint32_t j = 0; j < p->nedge; j++) {
			if (later_end(&p->edge[j]) == i)
				list[b->nedges[i]++] = j;
		}
		b->edges[i] = list;
	}
}

static void weigh(struct brute *b)
{
	uint32_t n = b->p->n;
	if (!(b->cost[n] < INFINITY))
		return;
	if (b->memory[n] < b->least_memory)
		b->least_memory = b->memory[n];
	if (b->memory[n] <= b->p->memory_limit && b->cost[n] < b->best_cost) {
		b->best_cost = b->cost[n];
		memcpy(b->best, b->pick, n * sizeof *b->pick);
	}
}

/* Steps to the next pick in lexicographic order; sums before node *moved stay valid. */
static bool advance(struct brute *b, uint32_t *moved)
{
	for (uint32_t i = b->p->n; i-- > 0;) {
		if (++b->pick[i] < b->p->node[i].k) {
			*moved = i;
			return true;
		}
		b->pick[i] = 0;
	}
	return false;
}

/* Returns false if told to stop. */
static bool visit_all(struct ap_ctx *ctx, struct brute *b)
{
	uint32_t from = 0;
	uint64_t next_poll = 4096;
	do {
		for (uint32_t i = from; i < b->p->n; i++) {
			const struct ap_pnode *node = &b->p->node[i];
			double cost = b->cost[i] + node->cost[b->pick[i]];
			int64_t memory = b->memory[i] + (node->memory ? node->memory[b->pick[i]] : 0);

			/* Extends the sums by node i with its current candidate. */
			for (uint32_t j = 0; j < b->nedges[i]; j++) {
				const struct ap_pedge *e = &b->p->edge[b->edges[i][j]];
				const struct ap_pmatrix *m = &b->p->matrix[e->matrix];
				size_t at = (size_t)b->pick[e->u] * m->cols + b->pick[e->v];
				cost += m->cost[at];
				memory += m->memory ? m->memory[at] : 0;
			}
			b->cost[i + 1] = cost;
			b->memory[i + 1] = memory;
			b->work++;
		}
		weigh(b);
		if (b->work >= next_poll) {
			next_poll = b->work + 4096;
			if (ap_ctx_stopped(ctx))
				return false;
		}
	} while (advance(b, &from));
	return true;
}

static bool affordable(const struct ap_problem *p, uint64_t work)
{
	int64_t picks = 1;
	for (uint32_t i = 0; i < p->n; i++) {
		if (!ap_mul(picks, p->node[i].k, &picks))
			return false;
	}
	return work == 0 || (uint64_t)picks <= work;
}

void ap_brute_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	ap_choice_none(ctx, p, "brute_force", out);
	ap_engine_end(ctx, budget, AP_ENDED_WORK, out);
	if (!affordable(p, budget->work))
		return;
	uint32_t *best = AP_NEW_N(ctx->arena, uint32_t, p->n);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct brute b = {
		.p = p,
		.pick = AP_NEW_N(ctx->scratch, uint32_t, p->n),
		.best = best,
		.cost = AP_NEW_N(ctx->scratch, double, (size_t)p->n + 1),
		.memory = AP_NEW_N(ctx->scratch, int64_t, (size_t)p->n + 1),
		.best_cost = INFINITY,
		.least_memory = INT64_MAX,
	};
	group_edges(ctx, &b);
	bool all = visit_all(ctx, &b);
	ap_arena_release(ctx->scratch, mark);
	out->work = b.work;
	if (b.best_cost < INFINITY)
		ap_choice_found(p, best, all ? b.best_cost : out->lower_bound, out);
	else if (all) {
		out->outcome = AP_OUT_INFEASIBLE;
		out->lower_bound = INFINITY;
		out->least_memory = b.least_memory < INT64_MAX ? b.least_memory : -1;
	}
	ap_engine_end(ctx, budget, AP_ENDED_WORK, out);
}
