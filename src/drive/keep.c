/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/keep.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "search/fewest.h"
#include "table/table.h"

enum { TOLERANCES = 4 /* of the sum: the whole, then each half of the last */ };

struct keeping {
	struct ap_ctx *ctx;
	const struct ap_keep_job *job;
	const struct ap_graph *g;
	struct ap_arena *sketches; /* of one plan at a time */
	double most_s; /* of the step */
	const int32_t **best; /* [nnode] of the plan that changes least so far */
	double best_s;
	uint32_t changes;
	uint64_t steps;
};

static bool differs(const struct keeping *x, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, x->g->node[i].bound.nfactor * sizeof *a) != 0;
}

static uint32_t count_changes(const struct keeping *x, const int32_t *const *row)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < x->g->nnode; i++)
		n += x->job->old[i] && differs(x, i, row[i], x->job->old[i]);
	return n;
}

/* Simulates a plan; takes it if it is within the tolerance, fits and changes less, or as few and is
 * faster. Returns its step; INFINITY if it is no plan, or does not fit. */
static double try_rows(struct keeping *x, const int32_t *const *row)
{
	struct ap_mark mark = ap_arena_mark(x->sketches);
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	uint32_t changes = count_changes(x, row);
	double step_s = INFINITY;
	struct ap_plan p;
	ap_id at;

	if (ap_plan_conflict(&quiet, x->g, x->job->rq->machine->ndev, row, &at) ||
		!ap_pins_hold(x->g, x->job->fixed, row))
		return INFINITY;
	x->steps += (uint64_t)x->g->nnode * 2048;
	if (ap_plan_sketch_if_fits(x->job->maker, x->sketches, row, &p))
		step_s = p.prediction.step_time_s;
	ap_arena_release(x->sketches, mark);
	if (step_s <= x->most_s &&
		(changes < x->changes || (changes == x->changes && step_s < x->best_s))) {
		memcpy(x->best, row, x->g->nnode * sizeof *x->best);
		x->best_s = step_s;
		x->changes = changes;
	}
	return step_s;
}

/* Goes from rows back to the old plan, group by group of operators that are cut from one way to another, the
 * largest first; what then is too slow is left changed. */
static void go_back(struct keeping *x, const int32_t *const *from)
{
	const int32_t **row = ap_arena_memdup(x->ctx->arena, from, x->g->nnode * sizeof *row);
	const int32_t **next = AP_NEW_N(x->ctx->arena, const int32_t *, x->g->nnode);
	struct ap_map *seen = ap_map_create(x->ctx->arena), *types = ap_map_create(x->ctx->arena);
	uint32_t *group = AP_NEW_N(x->ctx->arena, uint32_t, x->g->nnode);
	AP_VEC(uint32_t) size = {0};

	for (ap_id i = 0; i < x->g->nnode; i++) {
		uint8_t nf = x->g->node[i].bound.nfactor;
		int32_t key[2 * AP_MAX_FACTOR + 1] = {0};
		bool fresh;

		group[i] = AP_NONE;
		if (!x->job->old[i] || !differs(x, i, row[i], x->job->old[i]))
			continue;
		memcpy(key, row[i], nf * sizeof *key);
		memcpy(key + AP_MAX_FACTOR, x->job->old[i], nf * sizeof *key);
		key[2 * AP_MAX_FACTOR] = (int32_t)ap_map_put_str(types, x->g->node[i].type, NULL);
		group[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh)
			AP_PUSH(x->ctx->arena, size, 0);
		size.v[group[i]]++;
	}
	for (bool any = true; any && !ap_ctx_stopped(x->ctx);) {
		any = false;
		for (uint32_t round = 0; round < size.n && !ap_ctx_stopped(x->ctx); round++) {
			uint32_t k = AP_NONE;

			for (uint32_t i = 0; i < size.n; i++)
				if (size.v[i] && (k == AP_NONE || size.v[i] > size.v[k]))
					k = i;
			if (k == AP_NONE)
				break;
			memcpy(next, row, x->g->nnode * sizeof *next);
			for (ap_id i = 0; i < x->g->nnode; i++)
				if (group[i] == k)
					next[i] = x->job->old[i];
			size.v[k] = 0;
			if (try_rows(x, next) > x->most_s)
				continue;
			memcpy(row, next, x->g->nnode * sizeof *row);
			any = true;
		}
	}
}

/* The table with all cuts, so that none of the old ones is missing; NULL: it is too large. */
static const struct ap_table *whole_table(struct keeping *x)
{
	const struct ap_request *rq = x->job->rq;
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	bool *whole = AP_NEW_N(x->ctx->arena, bool, x->g->nnode);
	const struct ap_table *t;

	for (ap_id i = 0; i < x->g->nnode; i++)
		whole[i] = x->job->old[i] != NULL;
	if (ap_choose_table(&quiet, rq, x->job->fixed, false, &t) != AP_OK)
		return NULL;
	return ap_table_whole(x->ctx, t, whole);
}

/* The problem's candidate with these counts; k if there is none. */
static uint32_t candidate_of(const struct ap_table *t, ap_id i, const int32_t *count)
{
	const struct ap_table_class *cls = &t->cls[t->class_of[i]];
	uint32_t c = 0;

	while (c < cls->k && memcmp(cls->count + (size_t)c * cls->nfactor, count,
		cls->nfactor * sizeof *count) != 0)
		c++;
	return c;
}

/* Tries the plans that change least within several tolerances of the sum, and proves how few must. */
static void try_fewest(struct keeping *x, struct ap_plan_kept *told)
{
	const struct ap_engine *engine = ap_engine_of_parts();
	struct ap_budget budget = x->job->rq->budget;
	const struct ap_table *t = whole_table(x);
	struct ap_choice c = {0};
	uint32_t *old;

	if (!t || ap_ctx_stopped(x->ctx))
		return;
	old = AP_NEW_N(x->ctx->arena, uint32_t, x->g->nnode);
	for (ap_id i = 0; i < x->g->nnode; i++)
		old[i] = x->job->old[i] ? candidate_of(t, i, x->job->old[i]) : AP_NONE;
	budget.start[0] = budget.start[1] = NULL;
	engine->solve(x->ctx, t->problem, &budget, &c);
	x->steps += c.work;
	for (int k = 0; k < TOLERANCES && ap_choice_any(&c) && !ap_ctx_stopped(x->ctx); k++) {
		double more = x->job->within / (1 << k);
		struct ap_fewest f;

		ap_fewest_changes(x->ctx, engine, t->problem, old, c.lower_bound * (1 + more), &budget, &f);
		x->steps += f.work;
		if (k == 0 && f.bound < INFINITY)
			told->least = (uint32_t)f.bound;
		if (!f.pick)
			continue;
		if (try_rows(x, ap_chosen_counts(x->ctx, t, f.pick)) <= x->most_s)
			return;
		go_back(x, ap_chosen_counts(x->ctx, t, f.pick));
	}
}

const struct ap_plan *ap_keep(struct ap_ctx *ctx, const struct ap_keep_job *job, struct ap_plan_kept *told,
	uint64_t *steps)
{
	const struct ap_request *rq = job->rq;
	const int32_t *const *now = ap_plan_counts(ctx, job->best);
	struct keeping x = {.ctx = ctx, .job = job, .g = rq->graph, .best_s =
		job->best->prediction.step_time_s,
		.most_s = job->best_s * (1 + job->within)};
	const int32_t **row = AP_NEW_N(ctx->arena, const int32_t *, rq->graph->nnode);
	struct ap_plan *out;
	uint32_t before;

	x.best = ap_arena_memdup(ctx->arena, now, rq->graph->nnode * sizeof *x.best);
	x.changes = before = count_changes(&x, now);
	x.sketches = ap_arena_create_like(ctx->arena);
	for (ap_id i = 0; i < rq->graph->nnode; i++) {
		row[i] = job->old[i] ? job->old[i] : now[i];
		told->of += job->old[i] != NULL;
	}
	told->old_step_s = try_rows(&x, row);
	if (x.changes > 0) {
		go_back(&x, now);
		try_fewest(&x, told);
	}
	ap_arena_destroy(x.sketches);
	*steps += x.steps;
	told->changes = x.changes;
	if (x.best_s == job->best->prediction.step_time_s && x.changes == before)
		return job->best;
	out = AP_NEW(ctx->arena, struct ap_plan);
	ap_plan_sketch(job->maker, x.best, out);
	return out;
}
