/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/drive.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "cost/least.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "drive/certify.h"
#include "drive/choose.h"
#include "drive/low_memory.h"
#include "drive/recursive.h"
#include "drive/rival.h"
#include "drive/routed.h"
#include "drive/verify.h"
#include "plan/make.h"
#include "plan/memory.h"
#include "rule/op.h"
#include "table/table.h"

#define RECURSION "recursive_programming"

struct driving {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	const int32_t *const *pinned; /* by the graph and the request; NULL: none */
	const int32_t *const *fixed; /* pinned, and what the route fixes */
	const struct ap_plan *free; /* if a route decides: the best plan without it */
	bool recursion_only;
	struct ap_recursive recursion;
	struct ap_hints hints;
	struct ap_chosen chosen; /* the engine's; table NULL: it did not run */
	struct ap_rivals rivals;
	const struct ap_plan *best; /* of rivals, as completed from its checkpoint */
	struct ap_plan *out;
	bool finished; /* *out is complete and verified */
	bool refused; /* memory ran out in a part of the search */
	double lower_bound_s;
	uint64_t work;
	uint64_t steps; /* all work, in inner steps of a search */
};

#define MOST_TRIES 4
#define MOST_WEIGHED 2 /* of them charge fuller instants instead of lowering the limit */
#define NEAR 0.2 /* of an objective: simulation may still prefer such a plan */
#define LARGE 4096 /* operators: a second search takes long, and must be worth it */

/* The table's problem with the whole gradient exchange charged. */
static struct ap_problem exposed_problem(struct ap_ctx *ctx, const struct ap_table *t)
{
	double **cost = AP_NEW_N(ctx->arena, double *, t->nclass);

	for (uint32_t c = 0; c < t->nclass; c++) {
		const struct ap_table_class *cls = &t->cls[c];

		cost[c] = AP_NEW_N(ctx->arena, double, cls->k);
		for (uint32_t i = 0; i < cls->k; i++)
			cost[c][i] = cls->cost[i] + cls->hidden[i];
	}
	return ap_table_repriced(ctx->arena, t, cost);
}

/* Does the simulation expose more of the gradient exchange than the objective charges? The
 * objective is a sum over the stages, each of which is busy for its part. */
static bool worth_caution(const struct ap_plan *p)
{
	double doubt = p->graph->nnode > LARGE ? 0.25 : 0.01;
	double busy_s = p->search.objective_s / p->nstage;

	return p->prediction.step_time_s - p->prediction.bubble_s > (1 + doubt) * busy_s;
}

/*
 * The objective assumes that a fixed part of the gradient exchange is hidden, which does not hold
 * for a network with little computation beside it. Adds the best choice without that assumption.
 */
static void add_cautious(struct driving *d)
{
	const struct ap_table *t = d->chosen.table;
	struct ap_problem p = exposed_problem(d->ctx, t);
	struct ap_budget budget = d->rq->budget;
	struct ap_choice c = {0};

	budget.start[0] = d->chosen.choice.pick;
	ap_ctx_phase(d->ctx, "searching with all gradient exchange exposed");
	ap_choose_engine(d->rq)->solve(d->ctx, &p, &budget, &c);
	if (ap_choice_any(&c))
		ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, t, c.pick));
}

static void recur(struct driving *d, struct ap_ctx *ctx, struct ap_rec_limits limits)
{
	ap_recursive_plan(ctx, d->rq->graph, d->rq->machine, d->rq->step, d->fixed, &limits,
		&d->recursion);
	d->work += d->recursion.work;
	d->steps += d->recursion.work * AP_RECURSION_STEPS;
}

/* The recursion, within the memory limit if that binds. To have a plan whatever happens, it can be
 * stopped only for large networks, or when a plan fits. */
static enum ap_status find_by_recursion(struct driving *d)
{
	struct ap_ctx unhurried = *d->ctx;
	struct ap_plan p;

	if (d->rq->graph->nnode <= LARGE)
		unhurried.stop = NULL;
	recur(d, &unhurried, (struct ap_rec_limits){.bytes = AP_NO_LIMIT});
	/* The recursion only knows the sum of the stages' memory. */
	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	d->hints.limit_binds = p.prediction.memory.total > d->rq->capacity_bytes;
	if (d->hints.limit_binds)
		recur(d, d->ctx, (struct ap_rec_limits){.bytes = ap_choose_sum_bytes(d->rq),
			.insist = true});
	if (d->recursion.allowed)
		d->hints.start = d->recursion.counts;
	return AP_OK;
}

static enum ap_status find_recursion(struct driving *d)
{
	const char *name = d->recursion_only || d->free ? NULL : "recursion";
	const struct ap_plan *p;

	if (!d->recursion.allowed)
		return AP_OK;
	p = &ap_rival_add(&d->rivals, name, d->recursion.counts)->plan;
	if (d->rq->step->software && !ap_ctx_stopped(d->ctx) && worth_caution(p)) {
		const struct ap_request *rq = d->rq;
		struct ap_software software = *rq->step->software;
		struct ap_step step = *rq->step;
		struct ap_recursive r;

		software.gradient_exposed = 1;
		step.software = &software;
		ap_recursive_plan(d->ctx, rq->graph, rq->machine, &step, d->fixed,
			&(struct ap_rec_limits){.bytes = ap_choose_sum_bytes(rq)}, &r);
		d->work += r.work;
		if (r.allowed)
			ap_rival_add(&d->rivals, NULL, r.counts);
	}
	return AP_OK;
}

static enum ap_status find_data_parallel(struct driving *d)
{
	const char *why = "";
	const int32_t *const *counts = ap_baseline_data_parallel(d->ctx, d->rq->graph,
		d->rq->machine->ndev, d->rq->step, &why);

	if (counts && !ap_pins_hold(d->rq->graph, d->fixed, counts)) {
		why = "a given strategy says otherwise";
		counts = NULL;
	}
	if (counts)
		ap_rival_add(&d->rivals, "data parallel", counts)->baseline = true;
	else
		ap_rival_absent(&d->rivals, "data parallel", why);
	return AP_OK;
}

/* Is the objective of these counts near the best found? Cheaper than simulating them. */
static bool is_near(struct driving *d, const int32_t *const *counts)
{
	double best_s = INFINITY;
	struct ap_plan p;

	for (int i = 0; i < d->rivals.n; i++)
		best_s = fmin(best_s, d->rivals.v[i].plan.search.objective_s);
	ap_plan_price(d->rivals.maker, counts, &p);
	return p.search.objective_s <= best_s * (1 + NEAR);
}

/* An expert's grid is a baseline: the search must not be worse. One that also cuts sequences is an
 * ordinary rival: an optimum does not give way if simulation can hardly tell them apart. */
static enum ap_status find_grids(struct driving *d)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(&d->rivals, d->rq, &n);

	for (uint32_t i = 0; i < n && !ap_ctx_stopped(d->ctx); i++) {
		bool holds = grid[i].counts && ap_pins_hold(d->rq->graph, d->fixed, grid[i].counts);

		if (grid[i].rare) {
			if (holds && is_near(d, grid[i].counts))
				ap_rival_add(&d->rivals, NULL, grid[i].counts);
		} else if (holds)
			ap_rival_add(&d->rivals, grid[i].name, grid[i].counts)->baseline = true;
		else
			ap_rival_absent(&d->rivals, grid[i].name, grid[i].counts
				? "a given strategy says otherwise" : grid[i].why);
	}
	return AP_OK;
}

/* A lower bound if the search has none. */
static enum ap_status find_bound(struct driving *d)
{
	struct ap_ctx unhurried = *d->ctx;

	unhurried.stop = NULL;
	d->lower_bound_s = ap_plan_lower_bound_s(&unhurried, d->rq->graph, d->rq->machine,
		d->rq->step, d->fixed);
	return AP_OK;
}

static void note_work(struct driving *d, const struct ap_chosen *c)
{
	d->work += c->choice.work;
	d->steps += c->choice.work + c->priced;
}

/* Bytes that a choice needs beyond the capacity, 0 or more; *p: its plan. The search can charge too
 * little: for recomputation an equal part of every set, although the largest may need more, and for
 * a stage what it holds at one instant, which may not be the fullest. */
static int64_t excess_bytes(struct driving *d, const struct ap_chosen *c, struct ap_plan *p)
{
	int64_t more;

	if (!ap_choice_any(&c->choice))
		return 0;
	ap_plan_price(d->rivals.maker, ap_chosen_counts(d->ctx, c->table, c->choice.pick), p);
	more = p->prediction.memory.total - d->rq->capacity_bytes;
	return more > 0 ? more : 0;
}

/* The engine's choice. If it does not really fit, chooses again with its fullest instants charged,
 * whose bound is valid, or else within a lower limit, for which the bound so far is kept. */
static enum ap_status choose_fitting(struct driving *d, const struct ap_engine *engine)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_request rq = *d->rq;
	double bound_s = 0;
	struct ap_plan p;
	int64_t more;

	AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &d->hints, c));
	note_work(d, c);
	bound_s = c->choice.lower_bound;
	for (int i = 0; i < MOST_TRIES && (more = excess_bytes(d, c, &p)) > 0; i++) {
		const struct ap_step *step = i < MOST_WEIGHED ? ap_plan_weigh(d->ctx, &p, rq.step) : rq.step;
		bool whole = step != rq.step;

		rq.step = step;
		rq.capacity_bytes -= whole ? 0 : more;
		AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &d->hints, c));
		note_work(d, c);
		whole = whole && rq.capacity_bytes == d->rq->capacity_bytes;
		if (whole && c->choice.outcome == AP_OUT_INFEASIBLE)
			break;
		bound_s = whole ? fmax(bound_s, c->choice.lower_bound) : bound_s;
		c->choice.lower_bound = bound_s;
		if (c->choice.outcome == AP_OUT_OPTIMAL && c->choice.cost > bound_s)
			c->choice.outcome = AP_OUT_FEASIBLE;
		if (c->choice.outcome == AP_OUT_INFEASIBLE)
			c->choice.outcome = AP_OUT_LIMIT;
	}
	return AP_OK;
}

/* The engine's choice. AP_INFEASIBLE, with a message, if there is none. */
static enum ap_status find_by_engine(struct driving *d)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_rival *v;

	AP_TRY(choose_fitting(d, ap_choose_engine(d->rq)));
	if (c->choice.outcome == AP_OUT_INFEASIBLE) {
		AP_TRY(ap_certify(d->ctx, d->rq, c));
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	}
	d->lower_bound_s = c->choice.lower_bound;
	if (!(c->choice.lower_bound > 0)) /* the engine has none, or none yet */
		AP_TRY(find_bound(d));
	if (!ap_choice_any(&c->choice))
		return AP_OK;
	v = ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	v->optimal = c->choice.outcome == AP_OUT_OPTIMAL;
	if (v->optimal && !ap_ctx_stopped(d->ctx) && worth_caution(&v->plan))
		add_cautious(d);
	return AP_OK;
}

/* The engine; of auto, which one answered. */
static const char *mode_of(const struct driving *d)
{
	bool answered = d->chosen.table && !strcmp(d->rq->search_mode, "auto");

	return d->recursion_only ? RECURSION : answered ? d->chosen.choice.engine
		: ap_choose_engine(d->rq)->name;
}

/* If an inexact search found nothing that fits, an exact engine proves that or finds a plan. */
static enum ap_status find_proof(struct driving *d)
{
	const char *mode = mode_of(d);
	struct ap_chosen *c = &d->chosen;

	if (ap_rival_fits(&d->rivals) || ap_ctx_stopped(d->ctx))
		return AP_OK;
	AP_TRY(ap_choose(d->ctx, d->rq, ap_engine_find("auto"), d->fixed, &d->hints, c));
	note_work(d, c);
	if (c->choice.outcome == AP_OUT_INFEASIBLE)
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	if (!ap_choice_any(&c->choice))
		return AP_OK;
	ap_diag_add(d->ctx->diag, AP_NOTE, AP_OK, NULL, "mode-fits",
		"%s found no plan that fits the memory; the plan is one of %s", mode,
		c->choice.engine);
	ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	return AP_OK;
}

/* Nothing found fits, and nothing is proven: tries a low-memory plan. */
static enum ap_status find_lean(struct driving *d)
{
	struct ap_plan p;

	if (ap_rival_fits(&d->rivals))
		return AP_OK;
	ap_ctx_phase(d->ctx, "searching for little memory");
	if (ap_low_memory_plan(d->ctx, d->rq, NULL, &p))
		ap_rival_add(&d->rivals, NULL, ap_plan_counts(d->ctx, &p));
	return AP_OK;
}

enum ap_status ap_drive_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_problem **out)
{
	const int32_t *const *fixed;
	const struct ap_table *t;
	enum ap_status st;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &fixed));
	st = ap_choose_table(ctx, rq, fixed, false, &t);
	if (st == AP_LIMIT)
		ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"no table can be made within the limits");
	if (st == AP_OK)
		*out = t->problem;
	return st;
}

struct trying {
	struct driving *d;
	enum ap_status (*part)(struct driving *);
	enum ap_status st;
};

static void try_part(void *user)
{
	struct trying *t = user;
	struct ap_rivals *r = &t->d->rivals;

	if (!r->maker)
		ap_rivals_maker(r, t->d->rq);
	if (r->route && !r->completer)
		ap_rivals_route(r, t->d->rq);
	t->st = t->part(t->d);
}

/* Runs a part of the search. Memory may run out inside maker and completer: they are made anew. */
static enum ap_status run_part(struct driving *d, enum ap_status (*part)(struct driving *))
{
	struct driving before = *d;
	struct trying t = {d, part, AP_OK};

	if (ap_attempt(d->ctx, try_part, &t))
		return t.st;
	*d = before;
	if (!d->refused)
		ap_diag_add(d->ctx->diag, AP_WARNING, AP_LIMIT, NULL, "planner-memory",
			"memory ran out in a part of the search, which ended there; see --planner-memory");
	d->refused = true;
	d->rivals.maker = NULL;
	ap_rivals_end(&d->rivals);
	return AP_OK;
}

/* Searches with d->fixed by engine and recursion. */
static enum ap_status search(struct driving *d, bool with_baselines)
{
	bool exact = !d->recursion_only && ap_choose_engine(d->rq)->flags & AP_ENGINE_EXACT;

	if (exact || d->recursion_only)
		AP_TRY(run_part(d, find_by_recursion));
	if (!d->recursion_only)
		AP_TRY(run_part(d, find_by_engine));
	if (d->recursion_only || (!d->chosen.table && !(d->lower_bound_s > 0)))
		AP_TRY(run_part(d, find_bound));
	if (with_baselines) {
		AP_TRY(run_part(d, find_data_parallel));
		AP_TRY(run_part(d, find_grids));
	}
	AP_TRY(run_part(d, find_recursion));
	if (!exact)
		AP_TRY(run_part(d, find_proof));
	return run_part(d, find_lean);
}

/* Why the search went no further. */
static const char *ended(const struct driving *d, const struct ap_search_info *s, bool stopped)
{
	if (stopped)
		return ap_ended_name(AP_ENDED_STOPPED);
	if (s->objective_s <= s->lower_bound_s)
		return ap_ended_name(AP_ENDED_PROVEN);
	if (!d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL)
		return "simulation"; /* prefers another plan to the optimum, which is known */
	return ap_ended_name(d->recursion_only ? AP_ENDED_ENGINE : d->chosen.choice.ended);
}

static void state(const struct driving *d, bool stopped, struct ap_search_info *s)
{
	s->mode = mode_of(d);
	s->lower_bound_s = d->lower_bound_s;
	s->gap = s->lower_bound_s > 0 ? s->objective_s / s->lower_bound_s - 1 : 0;
	s->work = d->work;
	s->ended = ended(d, s, stopped);
	s->complete = !stopped;
	s->status = stopped                            ? AP_PLAN_STOPPED
		: s->objective_s <= s->lower_bound_s ? AP_PLAN_OPTIMAL
						       : AP_PLAN_FEASIBLE;
}

static enum ap_status finish(struct driving *d, const struct ap_plan *best, struct ap_plan *out)
{
	struct ap_plan_op *op;

	ap_ctx_phase(d->ctx, "scheduling");
	ap_plan_complete(d->ctx, best, out);
	op = ap_arena_memdup(d->ctx->arena, out->op, out->graph->nnode * sizeof *op);
	for (ap_id i = 0; i < out->graph->nnode; i++)
		op[i].fixed = d->pinned && d->pinned[i];
	out->op = op;
	if (d->rq->route)
		out->route = ap_routed_compare(d->ctx, d->rq->route, best, d->free ? d->free : best);
	out->nbaseline = d->rivals.nbaseline;
	out->baseline = ap_arena_memdup(d->ctx->arena, d->rivals.baseline,
		d->rivals.nbaseline * sizeof *out->baseline);
	out->nsetting = d->rq->nsetting;
	out->setting = d->rq->setting;
	return AP_OK;
}

/* Takes the best of the plans found. */
static enum ap_status take(struct driving *d, bool complete)
{
	d->rivals.fixed = d->fixed;
	d->rivals.any = false;
	d->best = ap_rival_best(&d->rivals, d->rq, d->fixed, complete);
	return AP_OK;
}

static enum ap_status take_completed(struct driving *d)
{
	d->rivals.table = d->chosen.table;
	return take(d, true);
}

static enum ap_status take_at_once(struct driving *d)
{
	return take(d, false);
}

/* Is it too late for more? A proven choice is still completed. */
static bool is_stopped(const struct driving *d)
{
	bool proven = !d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL;

	return (ap_ctx_stopped(d->ctx) || d->refused) && (d->rivals.route || !proven);
}

/* The best plan, in d->best; NULL: none fits. */
static enum ap_status best_of(struct driving *d)
{
	d->best = NULL;
	if (!is_stopped(d) || !ap_ctx_stopped(d->ctx))
		AP_TRY(run_part(d, take_completed));
	if (d->best)
		return AP_OK;
	return d->rivals.route ? run_part(d, take_at_once) : take_at_once(d); /* needs no memory */
}

static enum ap_status no_plan(const struct driving *d)
{
	if (d->refused)
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"memory ran out before any plan was found; raise --planner-memory");
	if (d->rivals.route && !is_stopped(d))
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "route",
			"no plan that was found fits the memory, or can be run, once %s has completed it",
			d->rq->route->name);
	return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		is_stopped(d) ? "stopped before any plan was found"
			: "the work limit was hit before any plan was found; raise "
			  "--work-limit or --planner-memory");
}

static enum ap_status fix_route(struct driving *d)
{
	const struct ap_request *rq = d->rq;

	return rq->route->fix(d->ctx, rq->graph, rq->machine, rq->step, d->pinned, &d->fixed);
}

/* Searches again, for plan and bound, with the operators that the route fixes. */
static enum ap_status search_fixed(struct driving *d)
{
	AP_TRY(run_part(d, fix_route));
	d->hints = (struct ap_hints){0};
	d->recursion = (struct ap_recursive){0};
	return search(d, false);
}

static enum ap_status find_routed(struct driving *d)
{
	d->work += ap_routed_search(&d->rivals, d->rq, d->fixed, d->free);
	return AP_OK;
}

/*
 * A route decides some operators by itself, so the best plan so far only serves for comparison.
 * Each plan found is taken as the route completes it from its checkpoint.
 */
static enum ap_status search_route(struct driving *d)
{
	AP_TRY(best_of(d));
	d->free = d->best;
	if (!d->free)
		return no_plan(d);
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	if (d->rq->route->fix)
		AP_TRY(search_fixed(d));
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	d->rivals.route = d->rq->route;
	d->rivals.fixed = d->fixed;
	return run_part(d, find_routed);
}

static enum ap_status improve(struct driving *d)
{
	d->best = ap_routed_improve(&d->rivals, d->rq, d->fixed, d->best);
	return AP_OK;
}

/* Saves what is needed to make the best plan again, outside the search's arena. */
static void save(struct driving *d, struct ap_found *f)
{
	const struct ap_graph *g = d->rq->graph;

	for (ap_id i = 0; i < g->nnode; i++)
		memcpy(f->count[i], d->best->op[i].place.count, g->node[i].bound.nfactor * sizeof **f->count);
	f->any = true;
	f->search = d->best->search;
	state(d, is_stopped(d), &f->search);
}

static enum ap_status finish_best(struct driving *d)
{
	AP_TRY(finish(d, d->best, d->out));
	state(d, is_stopped(d), &d->out->search);
	AP_TRY(ap_verify(d->ctx, d->out));
	d->finished = true;
	return AP_OK;
}

/* Lets another engine search the same table. Where it gets further, its bound and its choice count. */
static enum ap_status certify(struct driving *d)
{
	struct ap_chosen *c = &d->chosen;
	const uint32_t *before = c->choice.pick;

	AP_TRY(ap_certify(d->ctx, d->rq, c));
	if (c->choice.outcome != AP_OUT_INFEASIBLE)
		d->lower_bound_s = fmax(d->lower_bound_s, c->choice.lower_bound);
	state(d, is_stopped(d), &d->out->search);
	if (!c->choice.pick || c->choice.pick == before || d->rivals.route)
		return AP_OK;
	ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick))->optimal =
		c->choice.outcome == AP_OUT_OPTIMAL;
	AP_TRY(best_of(d));
	return finish_best(d);
}

static bool decides(const struct ap_route *route)
{
	return route && route->complete;
}

/* Compares all plans found and data parallel by simulation, the authority on time. */
static enum ap_status take_best(struct driving *d, struct ap_found *found)
{
	AP_TRY(best_of(d));
	if (!d->best && d->refused && d->rivals.route) { /* the caller has memory to complete it */
		d->rivals.route = NULL;
		AP_TRY(take_at_once(d));
		if (d->best)
			save(d, found);
		return d->best ? AP_LIMIT : no_plan(d);
	}
	if (!d->best)
		return no_plan(d);
	if (d->rivals.route && d->best->search.objective_s > d->lower_bound_s)
		AP_TRY(run_part(d, improve));
	save(d, found);
	AP_TRY(run_part(d, finish_best));
	if (!d->finished)
		return AP_LIMIT; /* the best plan is in *found */
	if (!is_stopped(d)) /* last, as it may take all the time left */
		AP_TRY(run_part(d, certify));
	d->out->search.certificate = d->chosen.choice.certificate;
	return is_stopped(d) ? AP_STOPPED : AP_OK;
}

static enum ap_status drive(struct driving *d, struct ap_found *found, const struct ap_problem **problem)
{
	AP_TRY(search(d, true));
	if (decides(d->rq->route))
		AP_TRY(search_route(d));
	if (problem && d->chosen.table)
		*problem = d->chosen.table->problem;
	return take_best(d, found);
}

struct drive_job {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	struct ap_found *found;
	struct ap_plan *out;
	const struct ap_problem **problem;
	enum ap_status st;
};

static enum ap_status run_job(struct drive_job *j)
{
	const struct ap_request *rq = j->rq;
	struct driving d = {.ctx = j->ctx, .rq = rq, .out = j->out,
		.recursion_only = strcmp(rq->search_mode, RECURSION) == 0};
	enum ap_status st;

	AP_TRY(ap_pins_make(j->ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, j->ctx, rq);
	st = drive(&d, j->found, j->problem);
	j->found->steps = d.steps;
	ap_rivals_end(&d.rivals);
	return st;
}

static void try_job(void *user)
{
	struct drive_job *j = user;

	j->st = run_job(j);
}

/* Allocates room for the counts of one plan. */
static void found_init(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_found *f)
{
	*f = (struct ap_found){.count = AP_NEW_N(ctx->arena, int32_t *, g->nnode)};
	for (ap_id i = 0; i < g->nnode; i++)
		f->count[i] = AP_NEW_N(ctx->arena, int32_t, g->node[i].bound.nfactor);
}

enum ap_status ap_drive_find(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem)
{
	struct drive_job j = {ctx, rq, found, out, problem, AP_LIMIT};
	bool done;

	found_init(ctx, rq->graph, found);
	done = ap_attempt_apart(ctx, try_job, NULL, &j, &found->arena);
	if (j.st == AP_OK || j.st == AP_STOPPED)
		return j.st;
	if (problem)
		*problem = NULL;
	if (j.st == AP_LIMIT && found->any) {
		found->search.complete = false;
		found->search.status = AP_PLAN_STOPPED;
		AP_TRY(ap_drive_again(ctx, rq, found, out));
		return AP_STOPPED;
	}
	ap_arena_destroy(found->arena);
	found->arena = NULL;
	return done ? j.st : ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		"memory ran out before any plan was found; raise --planner-memory");
}

enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_plan *out,
	const struct ap_problem **problem)
{
	struct ap_found found;
	enum ap_status st = ap_drive_find(ctx, rq, &found, out, problem);

	if (found.arena)
		ap_arena_own(ctx->arena, found.arena);
	return st;
}

/* Can a checkpoint hold it? Entries are named after a parameter, even if it is cast or frozen. */
static bool has_param(const struct ap_graph *g, const struct ap_node *n)
{
	bool any = n->param != AP_NONE;

	for (int i = 0; i < n->bound.nin; i++)
		any |= g->tensor[n->in[i]].kind == AP_TENSOR_PARAM;
	return any && ap_op_has_strategy(n->bound.row);
}

/* The plan that the route makes of what is given. */
static enum ap_status evaluate_route(struct driving *d, const int32_t *const *pinned,
	const struct ap_plan **best)
{
	enum ap_status st;
	const struct ap_graph *g = d->rq->graph;
	const int32_t **told = AP_NEW_N(d->ctx->arena, const int32_t *, g->nnode);

	/* Only what a checkpoint can hold and what the graph pins. */
	for (ap_id i = 0; d->pinned && i < g->nnode; i++)
		if ((pinned && pinned[i]) || has_param(g, &g->node[i]))
			told[i] = d->pinned[i];
	d->pinned = told;
	ap_rivals_route(&d->rivals, d->rq);
	st = ap_rival_routed(&d->rivals, d->ctx, d->pinned, best);
	ap_rivals_end(&d->rivals);
	return st;
}

enum ap_status ap_drive_evaluate(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *given, struct ap_plan *out)
{
	struct driving d = {.ctx = ctx, .rq = rq};
	const int32_t *const *pinned;
	const struct ap_plan *best;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, given, &d.pinned));
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, NULL, &pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	AP_TRY(ap_rival_complete(&d.rivals, rq, d.fixed, &best));
	if (decides(rq->route)) {
		d.free = best;
		AP_TRY(evaluate_route(&d, pinned, &best));
	}
	d.fixed = pinned;
	AP_TRY(find_data_parallel(&d));
	AP_TRY(finish(&d, best, out));
	out->search = (struct ap_search_info){.mode = "given", .status = AP_PLAN_GIVEN,
		.complete = true, .objective_s = best->search.objective_s};
	return ap_verify(ctx, out);
}

/* The plan of counts, completed by the request's route from what a checkpoint holds of them. */
static enum ap_status plan_again(struct driving *d, const int32_t *const *counts, struct ap_plan *out)
{
	const struct ap_plan *routed;
	struct driving told = *d;

	if (!decides(d->rq->route)) {
		ap_plan_sketch(d->rivals.maker, counts, out);
		return AP_OK;
	}
	told.pinned = counts;
	AP_TRY(evaluate_route(&told, d->pinned, &routed));
	*out = *routed;
	return AP_OK;
}

enum ap_status ap_drive_again(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out)
{
	struct driving d = {.ctx = ctx, .rq = rq, .out = out};
	struct ap_plan *plan = AP_NEW(ctx->arena, struct ap_plan);
	const int32_t *const *counts = (const int32_t *const *)found->count;

	ap_arena_destroy(found->arena);
	found->arena = NULL;
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	AP_TRY(plan_again(&d, counts, plan));
	if (plan->prediction.memory.total > rq->capacity_bytes) /* after completion by the route */
		return no_plan(&d);
	AP_TRY(finish(&d, plan, out));
	found->search.objective_s = plan->search.objective_s;
	out->search = found->search;
	out->search.certificate = NULL;
	return ap_verify(ctx, out);
}
