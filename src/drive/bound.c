/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/bound.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "drive/choose.h"
#include "drive/fit.h"
#include "plan/path.h"

enum {
	MOST_SOLVES = 12,
	MOST_PLANS = 1 + AP_MOST_KNOWN + MOST_SOLVES,
	ENGINE_STEPS = 2, /* in time, of a step of its work: matrices are hardly pruned, and large */
	TABLE_STEPS = 4,
	ROUNDS = 4096 /* of the game, in which an error falls with their square root */
};

/* Of paths and plans known so far. */
struct game {
	uint32_t npath, nplan;
	struct ap_path path[MOST_PLANS];
	double length_s[MOST_PLANS][MOST_PLANS]; /* [path][plan] */
};

/*
 * The mixture of paths whose shortest length in the known plans is largest: of which no known plan shows
 * that it is no better a bound. Paths and plans answer each other in turns; the paths' answers are
 * averaged (Brown's fictitious play of a matrix game).
 */
static void answer(const struct game *g, double share[MOST_PLANS])
{
	double by_path[MOST_PLANS] = {0}, by_plan[MOST_PLANS] = {0};
	uint32_t path = 0, plan = 0;

	for (uint32_t j = 0; j < g->npath; j++)
		share[j] = 0;
	for (int r = 0; r < ROUNDS; r++) {
		for (uint32_t j = 0; j < g->npath; j++)
			by_path[j] += g->length_s[j][plan];
		for (uint32_t j = path = 0; j < g->npath; j++)
			path = by_path[j] > by_path[path] ? j : path;
		share[path] += 1.0 / ROUNDS;
		for (uint32_t i = 0; i < g->nplan; i++)
			by_plan[i] += g->length_s[path][i];
		for (uint32_t i = plan = 0; i < g->nplan; i++)
			plan = by_plan[i] < by_plan[plan] ? i : plan;
	}
}

static void add_plan(struct ap_ctx *ctx, struct game *g, const struct ap_plan *p)
{
	for (uint32_t j = 0; j < g->npath; j++)
		g->length_s[j][g->nplan] = ap_path_length_s(ctx, &g->path[j], p);
	g->nplan++;
}

/* The longest path of plan i, which is the last one added. */
static void add_path(struct ap_ctx *ctx, struct game *g, const struct ap_plan *const *plan)
{
	ap_path_longest(ctx, plan[g->nplan - 1], &g->path[g->npath]);
	for (uint32_t i = 0; i < g->nplan; i++)
		g->length_s[g->npath][i] = ap_path_length_s(ctx, &g->path[g->npath], plan[i]);
	g->npath++;
}

/* The plan of which the path takes least, within the memory if that binds. */
static bool solve(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *table,
	const struct ap_path *path, const struct ap_table **weighted, struct ap_choice *c)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");
	int64_t limit = ap_choose_limit_bytes(rq);
	struct ap_budget budget = {.work = rq->budget.work, .table_bytes = rq->budget.table_bytes,
		.no_fold = rq->budget.no_fold, .gap = AP_ANY_OPTIMUM};
	double bound;

	*weighted = ap_table_weighted(ctx, table, &path->weights);
	if (!*weighted)
		return false;
	*c = (struct ap_choice){.outcome = AP_OUT_LIMIT};
	exact->solve(ctx, (*weighted)->problem, &budget, c);
	if (!ap_choice_any(c) || ap_fit_need_bytes(ctx, *weighted, c->pick) <= limit)
		return true;
	bound = c->lower_bound;
	*weighted = ap_table_by_memory(ctx, *weighted);
	if (!*weighted)
		return false;
	*c = (struct ap_choice){.outcome = AP_OUT_LIMIT};
	ap_fit_staged(ctx, *weighted, exact, &budget, limit, true, c);
	c->lower_bound = fmax(c->lower_bound, bound);
	return true;
}

/* The counts of a pick, apart from its table. */
static const int32_t *const *keep(struct ap_arena *arena, const struct ap_table *t, const uint32_t *pick)
{
	const int32_t **counts = AP_NEW_N(arena, const int32_t *, t->graph->nnode);

	for (ap_id i = 0; i < t->graph->nnode; i++)
		counts[i] = ap_arena_memdup(arena, ap_table_counts(t, i, pick[i]),
			t->graph->node[i].bound.nfactor * sizeof **counts);
	return counts;
}

void ap_bound_step(struct ap_ctx *outer, const struct ap_request *rq, const struct ap_table *table,
	struct ap_plan_maker *maker, const struct ap_plan *best, const int32_t *const *const *known,
	uint32_t nknown, uint64_t work,
	const struct ap_plan *(*found)(void *user, const int32_t *const *counts), void *user,
	struct ap_step_bound *out)
{
	double fastest_s = best->prediction.step_time_s, share[MOST_PLANS] = {0}, most[MOST_PLANS] = {1};
	const struct ap_plan *plan[MOST_PLANS] = {best};
	struct game *g = AP_NEW(outer->arena, struct game);
	struct ap_ctx one_phase = *outer, *ctx = &one_phase;

	*out = (struct ap_step_bound){0};
	ap_ctx_phase(outer, "bounding the step");
	one_phase.phase = NULL;
	add_plan(ctx, g, best);
	add_path(ctx, g, plan);
	for (uint32_t i = 0; i < nknown; i++) {
		struct ap_plan *p = AP_NEW(outer->arena, struct ap_plan);

		ap_plan_sketch(maker, known[i], p);
		plan[g->nplan] = p;
		add_plan(ctx, g, p);
		add_path(ctx, g, plan);
	}
	for (int solves = 0; solves < MOST_SOLVES && out->work < work && !ap_ctx_stopped(ctx); solves++) {
		struct ap_ctx own = one_phase; /* with memory of its own, for the table */
		const int32_t *const *counts = NULL;
		const struct ap_path *paths[MOST_PLANS];
		const struct ap_table *weighted;
		struct ap_path mixed;
		struct ap_choice c = {0};

		answer(g, share);
		for (uint32_t j = 0; j < g->npath; j++) {
			paths[j] = &g->path[j];
			share[j] = solves == 0 ? share[j] : 0.5 * (share[j] + most[j]);
		}
		own.arena = ap_arena_create_like(outer->arena);
		ap_path_mix(&own, paths, share, g->npath, best->graph, &mixed);
		if (solve(&own, rq, table, &mixed, &weighted, &c)) {
			out->work += ENGINE_STEPS * c.work + TABLE_STEPS * weighted->work;
			if (c.lower_bound > out->bound_s)
				memcpy(most, share, sizeof most);
			out->bound_s = fmax(out->bound_s, c.lower_bound);
			if (ap_choice_any(&c) && !ap_ctx_stopped(ctx))
				counts = keep(outer->arena, weighted, c.pick);
		}
		ap_arena_destroy(own.arena);
		if (!counts)
			break;
		plan[g->nplan] = found(user, counts);
		fastest_s = fmin(fastest_s, plan[g->nplan]->prediction.step_time_s);
		if (fastest_s <= out->bound_s * (1 + rq->step_gap))
			break;
		add_plan(ctx, g, plan[g->nplan]);
		add_path(ctx, g, plan);
	}
	out->bound_s = fmin(out->bound_s, fastest_s); /* rounding errors of the simulation's sums */
}
