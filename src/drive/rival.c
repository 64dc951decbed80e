/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/rival.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "drive/choose.h"
#include "drive/recursive.h"
#include "hybrid/hybrid.h"
#include "shard/space.h"
#include "table/joint.h"

#define LARGE 4096 /* operators: grids of larger networks take too long */
#define DOUBT 0.01 /* of a simulated time */

void ap_rivals_init(struct ap_rivals *r, struct ap_ctx *ctx, const struct ap_request *rq)
{
	*r = (struct ap_rivals){.ctx = ctx, .any = true};
	ap_rivals_maker(r, rq);
}

void ap_rivals_maker(struct ap_rivals *r, const struct ap_request *rq)
{
	r->maker = ap_plan_maker_create(r->ctx, rq->graph, rq->machine, rq->step, rq->capacity_bytes);
}

void ap_rivals_route(struct ap_rivals *r, const struct ap_request *rq)
{
	r->route = rq->route;
	r->completer = ap_route_completer(r->ctx, rq->route, rq->graph, rq->machine, rq->step);
}

void ap_rivals_end(struct ap_rivals *r)
{
	if (r->completer)
		r->completer->destroy(r->completer);
	r->completer = NULL;
}

static bool fits(const struct ap_plan *p)
{
	return p->prediction.memory.total <= p->capacity_bytes;
}

/* Does the search choose this operator's cut? */
static bool is_asked(const struct ap_rivals *r, const struct ap_plan *p, ap_id node)
{
	if (r->fixed && r->fixed[node])
		return false;
	return !r->route || p->op[node].in_checkpoint;
}

/* Do the settings of the search allow the plan? */
static bool is_wanted(const struct ap_rivals *r, const struct ap_plan *p)
{
	if (r->any)
		return true;
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (is_asked(r, p, i) && !ap_space_wanted(p->op[i].place.bound,
			p->op[i].place.count, p->machine->ndev, p->step))
			return false;
	for (uint32_t i = 0; p->step->follow && i < p->nmove; i++) {
		ap_id from = p->move[i].from;

		if (from != AP_NONE && p->move[i].nstep > 0 && is_asked(r, p, from) &&
			ap_joint_leads(&p->graph->node[from].bound))
			return false;
	}
	return true;
}

static bool may_be_taken(const struct ap_rivals *r, const struct ap_plan *p)
{
	return fits(p) && is_wanted(r, p);
}

static bool is_faster(const struct ap_plan *a, const struct ap_plan *b)
{
	return a->prediction.step_time_s < b->prediction.step_time_s;
}

static struct ap_baseline *add_baseline(struct ap_rivals *r, const char *name)
{
	struct ap_baseline *b = &r->baseline[r->nbaseline++];

	assert(r->nbaseline <= AP_MAX_BASELINES);
	*b = (struct ap_baseline){.name = name};
	return b;
}

void ap_rival_absent(struct ap_rivals *r, const char *name, const char *why)
{
	add_baseline(r, name)->why_not = why;
}

struct ap_rival *ap_rival_add(struct ap_rivals *r, const char *name, const int32_t *const *counts)
{
	struct ap_rival *v = &r->v[r->n++];
	struct ap_baseline *b;

	assert(r->n <= AP_MAX_RIVALS);
	ap_ctx_phase(r->ctx, "simulation");
	ap_plan_sketch(r->maker, counts, &v->plan);
	if (!name)
		return v;
	b = add_baseline(r, name);
	b->applicable = true;
	b->step_time_s = v->plan.prediction.step_time_s;
	b->objective_s = v->plan.search.objective_s;
	b->memory_bytes = v->plan.prediction.memory.total;
	b->fits = fits(&v->plan);
	return v;
}

bool ap_rival_fits(const struct ap_rivals *r)
{
	for (int i = 0; i < r->n; i++)
		if (fits(&r->v[i].plan))
			return true;
	return false;
}

const int32_t *const *ap_rival_batch(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	const char *why;
	ap_id node;
	const int32_t *const *all = ap_baseline_data_parallel(r->ctx, rq->graph, rq->machine->ndev,
		rq->step, &why);
	const int32_t **counts;

	if (!all)
		return NULL;
	counts = AP_NEW_N(r->ctx->arena, const int32_t *, rq->graph->nnode);
	for (ap_id i = 0; i < rq->graph->nnode; i++)
		counts[i] = fixed && fixed[i] ? fixed[i] : all[i];
	return ap_plan_conflict(r->ctx, rq->graph, rq->machine->ndev, counts, &node) ? NULL : counts;
}

static bool choose(struct ap_ctx *ctx, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_table *wider, struct ap_chosen *c)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");

	if (ap_choose(ctx, rq, exact, fixed, &(struct ap_hints){.wider = wider}, c) != AP_OK)
		return false;
	if (c->choice.outcome == AP_OUT_INFEASIBLE && c->choice.least_memory >= 0 && c->table)
		exact->solve(ctx, c->table->problem, &rq->budget, &c->choice);
	return ap_choice_any(&c->choice);
}

/* The exact engine's completion, within the memory, else without that limit; the recursion's if it
 * is too much work. */
static enum ap_status complete_additive(struct ap_rivals *r, const struct ap_request *asked,
	const int32_t *const *fixed, const int32_t *const **counts)
{
	struct ap_ctx *ctx = r->ctx;
	struct ap_ctx quiet = *ctx;
	struct ap_request rq = *asked;
	struct ap_recursive recursion;
	struct ap_chosen c = {0};

	quiet.diag = ap_diag_create(ctx->arena, false);
	rq.budget = (struct ap_budget){.work = AP_DEFAULT_WORK,
		.table_bytes = asked->budget.table_bytes, .no_fold = asked->budget.no_fold};
	if (choose(&quiet, &rq, fixed, r->table, &c)) {
		*counts = ap_chosen_counts(ctx, c.table, c.choice.pick);
		return AP_OK;
	}
	if (c.choice.outcome == AP_OUT_INFEASIBLE && c.choice.least_memory < 0)
		return ap_choose_infeasible(ctx, &rq, &c.choice);
	ap_recursive_plan(ctx, rq.graph, rq.machine, rq.step, fixed,
		&(struct ap_rec_limits){.bytes = ap_choose_sum_bytes(&rq), .insist = true}, &recursion);
	*counts = recursion.counts;
	return recursion.allowed ? AP_OK
		: ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"a limit was hit before the strategy was completed");
}

struct gridding {
	struct ap_rivals *r;
	const struct ap_request *rq;
};

static void add_grid(void *user, const struct ap_hybrid *h, const char *name)
{
	struct gridding *x = user;
	struct ap_rivals *r = x->r;
	struct ap_grid g = {.name = ap_arena_strdup(r->ctx->arena, name), .rare = h->cp > 1};

	if (h->tp * h->cp == 1 || r->ngrid == AP_MAX_GRIDS || ap_ctx_stopped(r->ctx))
		return; /* tp=1 is data parallel */
	g.counts = ap_hybrid_counts(r->ctx, x->rq->graph, x->rq->machine->ndev, x->rq->step, h, &g.why);
	if (g.counts || h->cp == 1) /* few networks have sequences */
		r->grid[r->ngrid++] = g;
}

const struct ap_grid *ap_rival_grids(struct ap_rivals *r, const struct ap_request *rq, uint32_t *n)
{
	struct gridding x = {r, rq};

	if (!r->grids_made && rq->graph->nnode <= LARGE)
		ap_hybrid_grids(rq->machine->ndev, add_grid, &x);
	r->grids_made = true;
	*n = r->ngrid;
	return r->grid;
}

/* The plan, or the one of other counts if that is faster. */
static const struct ap_plan *or_of(struct ap_rivals *r, const int32_t *const *counts,
	const struct ap_plan *plan)
{
	struct ap_plan *other;

	if (!counts)
		return plan;
	other = AP_NEW(r->ctx->arena, struct ap_plan);
	ap_plan_sketch(r->maker, counts, other);
	return may_be_taken(r, other) && (!may_be_taken(r, plan) || is_faster(other, plan)) ? other : plan;
}

/* The plan, or if faster, the fixed counts completed by the batch or an expert's grid. */
static const struct ap_plan *or_by_convention(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan *plan)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(r, rq, &n);

	plan = or_of(r, ap_rival_batch(r, rq, fixed), plan);
	for (uint32_t i = 0; i < n; i++)
		if (grid[i].counts && ap_pins_hold(rq->graph, fixed, grid[i].counts))
			plan = or_of(r, grid[i].counts, plan);
	return plan;
}

enum ap_status ap_rival_complete(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan **out)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);
	const int32_t *const *counts = NULL;

	AP_TRY(complete_additive(r, rq, fixed, &counts));
	ap_ctx_phase(r->ctx, "simulation");
	ap_plan_sketch(r->maker, counts, plan);
	*out = or_by_convention(r, rq, fixed, plan);
	return AP_OK;
}

/* Counts of the operators that a checkpoint holds and of fixed ones; *open: there are others. */
static const int32_t *const *held_counts(struct ap_rivals *r, const struct ap_plan *p,
	const int32_t *const *fixed, bool *open)
{
	const int32_t **counts = AP_NEW_N(r->ctx->arena, const int32_t *, p->graph->nnode);

	*open = false;
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		if (fixed && fixed[i])
			counts[i] = fixed[i];
		else if (p->op[i].in_checkpoint)
			counts[i] = p->op[i].place.count;
		*open |= !counts[i];
	}
	return counts;
}

enum ap_status ap_rival_routed(struct ap_rivals *r, struct ap_ctx *ctx, const int32_t *const *held,
	const struct ap_plan **out)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);
	const int32_t *const *counts;

	AP_TRY(r->completer->complete(r->completer, ctx, held, &counts));
	ap_plan_sketch(r->maker, counts, plan);
	*out = plan;
	return AP_OK;
}

const struct ap_plan *ap_rival_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_rival *v)
{
	const struct ap_plan *completed;
	bool open;
	const int32_t *const *counts = held_counts(r, &v->plan, fixed, &open);

	if (r->route) {
		struct ap_ctx quiet = *r->ctx;
		const struct ap_plan *plan;

		quiet.stop = NULL;
		quiet.diag = ap_diag_create(r->ctx->arena, false);
		return ap_rival_routed(r, &quiet, counts, &plan) == AP_OK ? plan : NULL;
	}
	if (!open)
		return &v->plan;
	if (v->optimal)
		return or_by_convention(r, rq, counts, &v->plan);
	return ap_rival_complete(r, rq, counts, &completed) == AP_OK ? completed : &v->plan;
}

/* Simulated time, for a proven optimum less the simulation's uncertainty. */
static double standing_s(const struct ap_rival *v, const struct ap_plan *p)
{
	return p->prediction.step_time_s * (v->optimal ? 1 - DOUBT : 1);
}

/* The best rival that fits and was not taken yet; -1 if none. */
static int next_best(const struct ap_rivals *r, const bool *taken)
{
	int best = -1;

	for (int i = 0; i < r->n; i++)
		if (!taken[i] && may_be_taken(r, &r->v[i].plan) &&
			(best < 0 || standing_s(&r->v[i], &r->v[i].plan) <
					standing_s(&r->v[best], &r->v[best].plan)))
			best = i;
	return best;
}

/* Completes rivals by standing_s() until the rest cannot be better (first: until one fits). */
static const struct ap_plan *best_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, bool first)
{
	const struct ap_plan *best = NULL;
	bool taken[AP_MAX_RIVALS] = {false};
	double best_s = INFINITY;

	for (int i; (i = next_best(r, taken)) >= 0; taken[i] = true) {
		const struct ap_plan *told;

		if (standing_s(&r->v[i], &r->v[i].plan) >= best_s || (best && first))
			break;
		told = ap_rival_told(r, rq, fixed, &r->v[i]);
		if (told && may_be_taken(r, told) && standing_s(&r->v[i], told) < best_s) {
			best = told;
			best_s = standing_s(&r->v[i], told);
		}
	}
	return best;
}

const struct ap_plan *ap_rival_best(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, bool complete)
{
	bool none[AP_MAX_RIVALS] = {false};
	int first = next_best(r, none);
	bool hurry = !complete && rq->graph->nnode > LARGE;
	const struct ap_plan *best = complete || r->route ? best_told(r, rq, fixed, hurry)
		: first >= 0                              ? &r->v[first].plan
							  : NULL;

	for (int i = 0; i < r->n && (complete || !r->route); i++) {
		const struct ap_plan *told = &r->v[i].plan;

		if (!r->v[i].baseline || !may_be_taken(r, told) || (best && !is_faster(told, best)))
			continue;
		if (complete)
			told = ap_rival_told(r, rq, fixed, &r->v[i]);
		if (told && may_be_taken(r, told) && (!best || is_faster(told, best)))
			best = told;
	}
	return best;
}
