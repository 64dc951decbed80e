/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/drive.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/least.h"
#include "cost/opcost.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "drive/bound.h"
#include "drive/certify.h"
#include "drive/charge.h"
#include "drive/choose.h"
#include "drive/improve.h"
#include "drive/keep.h"
#include "drive/low_memory.h"
#include "drive/recursive.h"
#include "drive/recut.h"
#include "drive/rival.h"
#include "drive/routed.h"
#include "drive/verify.h"
#include "hybrid/hybrid.h"
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
	bool recut; /* rq is that of the other cut */
	const struct ap_spot *spot; /* rq is that of this cut, which the search made; NULL: it is not */
	struct driving *first; /* then, the run up to there */
	bool as_kept; /* rq is that of the old plan's cut */
	const struct ap_graph *given_up; /* of the two cuts the one with slower baselines; may be NULL */
	ap_id room; /* operators of a cut that fit into what is saved */
	struct ap_recursive recursion;
	bool recurred; /* that is of this cut, without the memory limit */
	struct ap_hints hints;
	struct ap_tables tables;
	struct ap_chosen chosen; /* the engine's; table NULL: it did not run */
	struct ap_rivals rivals;
	struct ap_rivals routed; /* those that a route completes, if it decides anything */
	const struct ap_plan *best; /* of rivals, as completed from its checkpoint */
	struct ap_plan_kept *keeping; /* what is to be told of an old plan */
	const struct ap_plan_kept *kept; /* it is told; NULL: nothing is to be */
	struct ap_plan *out;
	bool finished; /* *out is complete and verified */
	bool refused; /* memory ran out in a part of the search */
	double lower_bound_s;
	const struct ap_plan *improved; /* the last plan that was improved, as far as improved_steps go */
	bool improved_deep;
	uint64_t improved_steps; /* UINT64_MAX: no trial is left */
	uint64_t round; /* most steps of the engine's present round */
	double step_bound_s; /* 0: none known */
	uint64_t work;
	uint64_t steps; /* all work, in inner steps of a search */
};

#define MOST_TRIES 4
#define MOST_WEIGHED 2 /* of them charge fuller instants instead of lowering the limit */
#define NEAR 0.2 /* of an objective: simulation may still prefer such a plan */
#define LARGE 4096 /* operators: a second search takes long, and must be worth it */
#define ROUND_GROWTH 16 /* of the engine's steps from round to round */
#define IMPROVED_PART 8 /* of the steps so far may go into improvement */
#define AGAIN_IMPROVED 8 /* times as many steps let the same plan be improved again */
#define FIRST_BOUND 16 /* times the work for bounding may go into the first bound: that there is one */
#define LEAST_IMPROVED (UINT64_C(1) << 25)
#define SHORT_ROUND (AP_DEFAULT_WORK / 16) /* most steps of a round before the usual one */

/* Does the request's route decide anything? */
static bool decides(const struct ap_route *route)
{
	return route && route->complete;
}

/* What the present phase adds to. */
static struct ap_rivals *into(struct driving *d)
{
	return d->free ? &d->routed : &d->rivals;
}

/* Does the simulation expose more of the gradient exchange than the objective charges? The
 * objective is a sum over the stages, each of which is busy for its part. */
static bool worth_caution(const struct driving *d, const struct ap_rival *v)
{
	double doubt = d->rq->graph->nnode > LARGE ? 0.25 : 0.01;
	double busy_s = v->objective_s / d->rq->machine->nstage;

	return v->step_time_s - v->bubble_s > (1 + doubt) * busy_s;
}

/*
 * The objective assumes that a fixed part of the gradient exchange is hidden, which does not hold for a
 * network with little computation beside it, and that buckets are full, which those that go out last are
 * not. Adds the best choice without one of these assumptions.
 */
static void add_charged(struct driving *d, uint64_t most, enum ap_charge charge)
{
	const struct ap_table *t = d->chosen.table;
	struct ap_problem p = ap_charged_problem(d->ctx, t, charge);
	struct ap_budget budget = d->rq->budget;
	struct ap_choice c = {0};

	budget.work = most;
	budget.start[0] = d->chosen.choice.pick;
	ap_ctx_phase(d->ctx, charge == AP_CHARGE_ALL ? "searching with all gradient exchange exposed"
		: "searching without buckets");
	ap_choose_engine(d->rq)->solve(d->ctx, &p, &budget, &c);
	d->steps += c.work;
	if (ap_choice_any(&c) && !ap_ctx_stopped(d->ctx))
		ap_rival_add(into(d), NULL, ap_chosen_counts(d->ctx, t, c.pick));
}

/* Do buckets save any of what a choice costs? */
static bool is_bucketed(const struct ap_table *t, const uint32_t *pick)
{
	for (ap_id i = 0; i < t->graph->nnode; i++)
		if (t->cls[t->class_of[i]].bucketed[pick[i]] > 0)
			return true;
	return false;
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
	const char *name = d->recursion_only || d->free ? NULL : "recursion";
	struct ap_ctx unhurried = *d->ctx;
	struct ap_plan p;

	if (into(d)->best && ap_ctx_stopped(d->ctx))
		return AP_OK;
	if (d->rq->graph->nnode <= LARGE && !into(d)->best)
		unhurried.stop = NULL;
	if (!d->recurred)
		recur(d, &unhurried, (struct ap_rec_limits){.bytes = AP_NO_LIMIT});
	d->recurred = false;
	/* The recursion only knows the sum of the stages' memory. */
	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	d->hints.limit_binds = p.prediction.memory.total > d->rq->capacity_bytes;
	if (d->hints.limit_binds)
		recur(d, d->ctx, (struct ap_rec_limits){.bytes = ap_choose_sum_bytes(d->rq),
			.insist = true});
	if (!d->recursion.allowed)
		return AP_OK;
	d->hints.start = d->recursion.counts;
	if (!into(d)->best || !ap_ctx_stopped(d->ctx))
		ap_rival_add(into(d), name, d->recursion.counts);
	return AP_OK;
}

/* The recursion by another objective. */
static void add_recursion(struct driving *d, const struct ap_step *step)
{
	struct ap_recursive r;

	ap_recursive_plan(d->ctx, d->rq->graph, d->rq->machine, step, d->fixed,
		&(struct ap_rec_limits){.bytes = ap_choose_sum_bytes(d->rq)}, &r);
	d->work += r.work;
	d->steps += r.work * AP_RECURSION_STEPS;
	if (r.allowed && !ap_ctx_stopped(d->ctx))
		ap_rival_add(into(d), NULL, r.counts);
}

/* Do buckets save any of what the recursion's plan costs by the objective? */
static bool recursion_is_bucketed(struct driving *d)
{
	struct ap_plan p;

	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	for (ap_id i = 0; i < p.graph->nnode; i++)
		if (ap_op_cost_bucketed_s(&p.op[i].cost, p.step) > 0)
			return true;
	return false;
}

/* Where simulation exposes more of the gradient exchange than the objective charges: the recursion
 * without that assumption; where buckets save any, without these. */
static enum ap_status find_charged_recursions(struct driving *d)
{
	const struct ap_request *rq = d->rq;
	const struct ap_rival *v = NULL;
	bool cautious;

	for (size_t i = 0; i < into(d)->all.n; i++)
		if (into(d)->all.v[i].counts == d->recursion.counts)
			v = &into(d)->all.v[i];
	if (!v || ap_ctx_stopped(d->ctx))
		return AP_OK;
	cautious = rq->step->software && worth_caution(d, v);
	if (!d->hints.limit_binds && recursion_is_bucketed(d)) {
		struct ap_step step = *rq->step;

		step.exchange_alone = true;
		add_recursion(d, &step);
	}
	if (cautious && !ap_ctx_stopped(d->ctx)) {
		struct ap_software software = *rq->step->software;
		struct ap_step step = *rq->step;

		software.gradient_exposed = 1;
		step.software = &software;
		add_recursion(d, &step);
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
		ap_rival_add(into(d), "data parallel", counts);
	else
		ap_rival_absent(&d->rivals, "data parallel", why);
	return AP_OK;
}

/* Is the objective of these counts near the best found? Cheaper than simulating them. */
static bool is_near(struct driving *d, const int32_t *const *counts)
{
	double best_s = INFINITY;
	struct ap_plan p;

	for (size_t i = 0; i < into(d)->all.n; i++)
		best_s = fmin(best_s, into(d)->all.v[i].objective_s);
	ap_plan_price(d->rivals.maker, counts, &p);
	return p.search.objective_s <= best_s * (1 + NEAR);
}

/* An expert's grid is a baseline: it is listed. One that also cuts sequences is an ordinary rival. */
static enum ap_status find_grids(struct driving *d)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(&d->rivals, d->rq, &n);

	for (uint32_t i = 0; i < n && !ap_ctx_stopped(d->ctx); i++) {
		bool holds = grid[i].counts && ap_pins_hold(d->rq->graph, d->fixed, grid[i].counts);

		if (grid[i].rare) {
			if (holds && is_near(d, grid[i].counts))
				ap_rival_add(into(d), NULL, grid[i].counts);
		} else if (holds)
			ap_rival_add(into(d), grid[i].name, grid[i].counts);
		else
			ap_rival_absent(&d->rivals, grid[i].name, grid[i].counts
				? "a given strategy says otherwise" : grid[i].why);
	}
	return AP_OK;
}

#define MOST_GAIN 3 /* times as fast as without may a hybrid be whose sums are dealt */

/* Step time of the grid of a hybrid without dealt sums; 0: unknown. */
static double grid_s(struct driving *d, const struct ap_hybrid *h)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(&d->rivals, d->rq, &n);

	for (uint32_t i = 0; i < n; i++)
		if (grid[i].dp == h->dp && grid[i].tp == h->tp && grid[i].counts)
			for (size_t k = 0; k < d->rivals.all.n; k++)
				if (d->rivals.all.v[k].counts == grid[i].counts)
					return d->rivals.all.v[k].step_time_s;
	return 0;
}

struct hybrids {
	struct driving *d;
	double best_s; /* of all so far that fit */
	bool experts; /* the graph may have some */
};

/* Tries a hybrid as it is, and where it has a tp, with sequence parallelism. */
static bool try_kinds(struct hybrids *x, struct ap_hybrid h)
{
	struct driving *d = x->d;
	bool any = false;

	for (int sp = 0; sp <= (h.tp > 1 && d->rq->deals); sp++) {
		const struct ap_rival *v;

		h.sp = sp;
		if (ap_hybrid_expert_stride(&h) == 0 || grid_s(d, &h) > MOST_GAIN * x->best_s)
			continue;
		v = ap_rival_add_hybrid(&d->rivals, d->rq, &h, h.ep > 1);
		any |= v != NULL;
		if (v && v->fits && v->wanted)
			x->best_s = fmin(x->best_s, v->step_time_s);
	}
	return any;
}

static void try_hybrid(void *user, const struct ap_hybrid *grid, const char *name)
{
	struct hybrids *x = user;
	struct ap_hybrid h = *grid;
	const struct ap_pipe *pipe = x->d->rq->step->pipe;

	(void)name;
	if (ap_ctx_stopped(x->d->ctx))
		return;
	h.pp = pipe ? pipe->nstage : 1;
	h.vpp = pipe ? pipe->nsegment : 1;
	h.micro_batches = x->d->rq->step->micro_batches;
	try_kinds(x, h);
	for (h.ep = 2; x->experts && h.ep <= h.dp; h.ep++)
		if (h.dp % h.ep == 0 && !try_kinds(x, h) && grid->tp == 1 && grid->cp == 1) {
			x->experts = false; /* refused with the fewest parts of experts: there are none */
			return;
		}
}

/* The hybrids that a route can be told, with their dealt sums and their order of ranks: those with experts
 * and sequence parallelism too. */
static enum ap_status find_hybrids(struct driving *d)
{
	struct hybrids x = {d, d->rivals.best ? d->rivals.best->prediction.step_time_s : INFINITY, true};

	if (d->rq->hybrids && d->rq->graph->nnode <= LARGE)
		ap_hybrid_grids(d->rq->machine->ndev, try_hybrid, &x);
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

/* The engine's choice within `most` steps. If it does not really fit, chooses again with its fullest
 * instants charged, whose bound is valid, or else within a lower limit, for which the bound so far is
 * kept. */
static enum ap_status choose_fitting(struct driving *d, const struct ap_engine *engine, uint64_t most)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_request rq = *d->rq;
	struct ap_hints hints = d->hints;
	double bound_s = 0;
	struct ap_plan p;
	int64_t more;

	rq.budget.work = most;
	hints.fits = into(d)->best;
	AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &hints, c));
	note_work(d, c);
	bound_s = c->choice.lower_bound;
	for (int i = 0; i < MOST_TRIES && (more = excess_bytes(d, c, &p)) > 0; i++) {
		const struct ap_step *step = i < MOST_WEIGHED ? ap_plan_weigh(d->ctx, &p, rq.step) : rq.step;
		bool whole = step != rq.step;

		hints.tables = whole ? NULL : hints.tables;
		rq.step = step;
		rq.capacity_bytes -= whole ? 0 : more;
		AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &hints, c));
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

/* Is the answer final: would more steps not help? */
static bool is_settled(const struct driving *d, const struct ap_choice *c)
{
	return c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_INFEASIBLE || !d->chosen.table ||
		ap_engine_closed(&d->rq->budget, c);
}

/* A round of the engine, of at most so many steps. What a stopped round found is taken only if there is
 * nothing else: a later stop would not meet it. */
static enum ap_status run_engine(struct driving *d, uint64_t most)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_rival *v;
	bool cautious;

	AP_TRY(choose_fitting(d, ap_choose_engine(d->rq), most));
	if (c->choice.outcome == AP_OUT_INFEASIBLE && !into(d)->best) {
		AP_TRY(ap_certify(d->ctx, d->rq, c));
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	}
	if (c->choice.outcome != AP_OUT_INFEASIBLE)
		d->lower_bound_s = fmax(d->lower_bound_s, c->choice.lower_bound);
	if (!ap_choice_any(&c->choice) || (ap_ctx_stopped(d->ctx) && into(d)->best &&
		c->choice.outcome != AP_OUT_OPTIMAL))
		return AP_OK;
	v = ap_rival_add(into(d), NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	v->optimal = c->choice.outcome == AP_OUT_OPTIMAL;
	cautious = worth_caution(d, v);
	if (!d->hints.limit_binds && !ap_ctx_stopped(d->ctx) && is_bucketed(c->table, c->choice.pick))
		add_charged(d, most, AP_CHARGE_ALONE);
	if (!ap_ctx_stopped(d->ctx) && cautious)
		add_charged(d, most, AP_CHARGE_ALL);
	return AP_OK;
}

/* The engine; of auto, which one answered. */
static const char *mode_of(const struct driving *d)
{
	bool answered = d->chosen.choice.engine && !strcmp(d->rq->search_mode, "auto");

	return d->recursion_only ? RECURSION : answered ? d->chosen.choice.engine
		: ap_choose_engine(d->rq)->name;
}

/* If an inexact search found nothing that fits, an exact engine proves that or finds a plan. */
static enum ap_status find_proof(struct driving *d)
{
	const char *mode = mode_of(d);
	struct ap_chosen *c = &d->chosen;

	if (into(d)->best || ap_ctx_stopped(d->ctx))
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
	ap_rival_add(into(d), NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	return AP_OK;
}

/* Nothing found fits, and nothing is proven: tries a low-memory plan. */
static enum ap_status find_lean(struct driving *d)
{
	struct ap_plan p;

	if (into(d)->best)
		return AP_OK;
	ap_ctx_phase(d->ctx, "searching for little memory");
	if (ap_low_memory_plan(d->ctx, d->rq, NULL, &p))
		ap_rival_add(into(d), NULL, ap_plan_counts(d->ctx, &p));
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
	struct driving *d = t->d;

	if (!d->rivals.maker) {
		ap_rivals_maker(&d->rivals, d->rq);
		d->routed.maker = d->rivals.maker;
	}
	if (d->routed.route && !d->routed.completer)
		ap_rivals_completer(&d->routed, d->rq);
	t->st = t->part(d);
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
	ap_rivals_end(&d->routed);
	return AP_OK;
}

/* The end of a phase: what was found competes. */
static enum ap_status settle(struct driving *d)
{
	ap_rivals_settle(into(d), d->rq);
	if (d->free || !d->routed.route)
		return AP_OK;
	ap_rivals_feed(&d->routed, &d->rivals);
	ap_rivals_settle(&d->routed, d->rq);
	return AP_OK;
}

/* The best so far competes with what its checkpoint is completed to. A table makes that cheap. */
static enum ap_status tell(struct driving *d)
{
	into(d)->table = d->chosen.table;
	ap_rivals_tell(into(d), d->rq);
	return AP_OK;
}

/* Lets a plan that bounding found compete. */
static void take_found(void *user, const int32_t *const *counts)
{
	struct driving *d = user;
	const struct ap_graph *g = d->rq->graph;
	const int32_t **kept = AP_NEW_N(d->ctx->arena, const int32_t *, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++)
		kept[i] = ap_arena_memdup(d->ctx->arena, counts[i],
			g->node[i].bound.nfactor * sizeof **kept);
	ap_rival_add(into(d), NULL, kept);
}

/* The fastest plans met beside the best, [AP_MOST_KNOWN]. Returns their number. */
static uint32_t list_known(const struct ap_rivals *r, const int32_t *const **out)
{
	double slowest[AP_MOST_KNOWN];
	uint32_t n = 0;

	for (size_t i = 0; i < r->all.n; i++) {
		double step_s = r->all.v[i].step_time_s;
		uint32_t at = n;

		while (at > 0 && slowest[at - 1] > step_s)
			at--;
		if (r->all.v[i].hybrid || at == AP_MOST_KNOWN || step_s <= r->best->prediction.step_time_s ||
			(at > 0 && slowest[at - 1] >= step_s))
			continue;
		n = n < AP_MOST_KNOWN ? n + 1 : n;
		for (uint32_t k = n - 1; k > at; k--) {
			slowest[k] = slowest[k - 1];
			out[k] = out[k - 1];
		}
		slowest[at] = step_s;
		out[at] = r->all.v[i].counts;
	}
	return n;
}

/* Steps of the first round, and of the one after `round`. */
static uint64_t round_after(const struct driving *d)
{
	uint64_t next = d->round ? d->round * ROUND_GROWTH : d->tables.plain ? d->tables.plain->work + 1 : 1;

	return d->round == 0 || next < SHORT_ROUND || d->round >= AP_DEFAULT_WORK ? next : AP_DEFAULT_WORK;
}

/* A bound on the step, by as much work as a quarter of the search so far, or a quarter of a second. Where
 * another round follows, which bounds it again, a quick look. */
static enum ap_status find_step_bound(struct driving *d)
{
	uint64_t most = d->rq->budget.work ? d->rq->budget.work : UINT64_MAX;
	bool last = is_settled(d, &d->chosen.choice) || round_after(d) > most;
	const uint64_t least = UINT64_C(1) << 30, part = d->steps / 4;
	uint64_t work = last && part > least ? part : least;
	const int32_t *const *known[AP_MOST_KNOWN];
	struct ap_step_bound b;

	if (!d->chosen.table || !d->rivals.best || d->rivals.best->graph != d->rq->graph ||
		ap_ctx_stopped(d->ctx))
		return AP_OK;
	ap_bound_step(d->ctx, d->rq, d->chosen.table, d->rivals.maker, d->rivals.best, known,
		list_known(&d->rivals, known), d->step_bound_s, work, last ? FIRST_BOUND : 1, take_found, d,
		&b);
	d->step_bound_s = fmax(d->step_bound_s, b.bound_s);
	ap_ctx_progress(d->ctx, 0, d->step_bound_s, -1);
	d->work += b.work;
	d->steps += b.work;
	return AP_OK;
}

/* What an expert would write by hand for the request's graph. */
static enum ap_status price_cut(struct driving *d)
{
	AP_TRY(run_part(d, find_data_parallel));
	AP_TRY(run_part(d, find_grids));
	AP_TRY(run_part(d, settle));
	AP_TRY(run_part(d, find_hybrids));
	return run_part(d, settle);
}

static double best_step_s(const struct ap_rivals *r)
{
	return r->best ? r->best->prediction.step_time_s : INFINITY;
}

/* Rows of a graph's operators for those of the same names in the graph cut in another way. */
static const int32_t *const *rows_on(struct ap_ctx *ctx, const struct ap_graph *from,
	const int32_t *const *rows, const struct ap_graph *to)
{
	const int32_t **out;
	struct ap_mark mark;
	struct ap_map *names;

	if (!rows || from == to)
		return rows;
	out = AP_NEW_N(ctx->arena, const int32_t *, to->nnode);
	mark = ap_arena_mark(ctx->scratch);
	names = ap_map_create(ctx->scratch);
	for (ap_id i = 0; i < from->nnode; i++)
		ap_map_put_str(names, from->node[i].name, NULL);
	for (ap_id i = 0; i < to->nnode; i++) {
		ap_id at = ap_map_get_str(names, to->node[i].name);

		out[i] = at == AP_NONE ? NULL : rows[at];
	}
	ap_arena_release(ctx->scratch, mark);
	return out;
}

/* Goes on with the request's graph cut in another way, and prices its baselines. */
static enum ap_status turn_to(struct driving *d, const struct ap_graph *g, const struct ap_step *step)
{
	struct ap_request *recut = ap_arena_memdup(d->ctx->arena, d->rq, sizeof *d->rq);

	recut->given = rows_on(d->ctx, recut->graph, recut->given, g);
	recut->keep = rows_on(d->ctx, recut->graph, recut->keep, g);
	recut->graph = g;
	recut->step = step;
	d->rq = recut;
	AP_TRY(ap_pins_make(d->ctx, g, recut->machine->ndev, step, recut->given, &d->pinned));
	d->fixed = d->pinned;
	ap_rivals_init(&d->rivals, d->ctx, recut);
	d->rivals.fixed = d->fixed;
	d->rivals.any = false;
	return price_cut(d);
}

/* Does the fastest of the baselines not fit? */
static bool memory_binds(const struct driving *d)
{
	const struct ap_rival *fastest = NULL;

	for (size_t i = 0; i < d->rivals.all.n; i++)
		if (!fastest || d->rivals.all.v[i].step_time_s < fastest->step_time_s)
			fastest = &d->rivals.all.v[i];
	return fastest && !fastest->fits;
}

/* Does the recursion's plan not fit, where nothing limits it? */
static bool recursion_binds(struct driving *d)
{
	struct ap_plan p;

	if (!d->recursion_only && !(ap_choose_engine(d->rq)->flags & AP_ENGINE_EXACT))
		return false;
	recur(d, d->ctx, (struct ap_rec_limits){.bytes = AP_NO_LIMIT});
	d->recurred = !ap_ctx_stopped(d->ctx);
	if (!d->recurred)
		return false;
	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	return p.prediction.memory.total > d->rq->capacity_bytes;
}

/* The request's step, for a graph cut as the search says. */
static const struct ap_step *step_of_cut(struct ap_ctx *ctx, const struct ap_step *step)
{
	struct ap_pipe_cut *how = AP_NEW(ctx->arena, struct ap_pipe_cut);
	struct ap_pipe *pipe = ap_arena_memdup(ctx->arena, step->pipe, sizeof *pipe);
	struct ap_step *out = ap_arena_memdup(ctx->arena, step, sizeof *step);

	how->by = AP_CUT_BY_MEMORY;
	pipe->cut = how;
	out->pipe = pipe;
	return out;
}

#define ROOMY ((size_t)64 << 10) /* bytes of tables for each operator */

struct cutting {
	struct driving *d;
	struct ap_spot *spot; /* the cut that is faster */
	bool any; /* there is one */
	uint64_t steps;
};

/* Learns from a table of the present cut what memory costs, and takes the cut with the least step by that:
 * this one, the one that was given up, or one made for it. */
static void learn_cut(struct cutting *c)
{
	struct driving *d = c->d;
	const struct ap_stages_request *cutting = d->rq->cutting;
	const struct ap_spot *spot[3] = {ap_recut_spots(d->ctx, cutting, d->rq->graph)};
	struct ap_request plenty = *d->rq; /* the same for any limit of work */
	struct ap_ctx quiet = ap_diag_apart(d->ctx);
	const struct ap_table *t = NULL;
	double least_s = INFINITY;
	struct ap_stage_ways ways;
	bool binds;

	plenty.budget.work = AP_DEFAULT_WORK;
	if (ap_choose_table(&quiet, &plenty, d->fixed, true, &t) != AP_OK)
		return;
	binds = ap_recut_ways(d->ctx, d->rq, t, d->rivals.maker, &ways, &c->steps);
	c->steps += t->work;
	if (!binds)
		return;
	if (d->given_up)
		spot[1] = ap_recut_spots(d->ctx, cutting, d->given_up);
	if (!ap_stages_within(d->ctx, cutting, &ways, &spot[2]))
		spot[2] = NULL;
	for (size_t k = 0; k < AP_COUNT(spot); k++) {
		double guess_s = spot[k] ? ap_stages_step_s(d->ctx, cutting, &ways, spot[k]) : INFINITY;

		if (guess_s >= least_s)
			continue;
		least_s = guess_s;
		c->any = k > 0;
		memcpy(c->spot, spot[k], cutting->graph->nnode * sizeof *c->spot);
	}
}

/* Sets spot to a cut that is faster within the memory. */
static enum ap_status find_cut(struct driving *d)
{
	struct cutting c = {.d = d};

	if (!memory_binds(d) && !recursion_binds(d))
		return AP_OK;
	ap_ctx_phase(d->ctx, "cutting within the memory");
	c.spot = AP_NEW_N(d->ctx->arena, struct ap_spot, d->rq->cutting->graph->nnode);
	learn_cut(&c);
	d->steps += c.steps;
	d->spot = c.any ? c.spot : NULL;
	return AP_OK;
}

/* Is there memory for the table of another cut, beside the search's own? Else the search needs it all. */
static bool has_room(const struct driving *d)
{
	return d->rq->budget.table_bytes == 0 || d->rq->budget.table_bytes / ROOMY >= d->rq->graph->nnode;
}

/* Where memory binds, cuts the graph so that stages that hold more have less to do. */
static enum ap_status cut_within(struct driving *d)
{
	const struct ap_graph *g;
	struct driving *first;

	if (!d->rq->cutting || d->rq->given || d->refused || ap_ctx_stopped(d->ctx) || !has_room(d) ||
		(d->rq->graph->nnode > LARGE && !memory_binds(d)))
		return AP_OK;
	AP_TRY(run_part(d, find_cut));
	if (!d->spot)
		return AP_OK;
	ap_graph_staged(d->ctx, d->rq->cutting->graph, d->spot, &g);
	if (g->nnode > d->room) {
		d->spot = NULL;
		return AP_OK;
	}
	first = ap_arena_memdup(d->ctx->arena, d, sizeof *d);
	first->spot = NULL;
	d->recurred = false;
	AP_TRY(turn_to(d, g, step_of_cut(d->ctx, d->rq->step)));
	d->recut = false;
	if (d->refused) {
		first->refused = true;
		*d = *first;
	} else {
		d->first = first;
	}
	return AP_OK;
}

/* Prices the baselines, and where the graph can be cut into stages in another way, those of that cut: the
 * one with the faster best is searched. */
static enum ap_status choose_cut(struct driving *d)
{
	const struct ap_request *rq = d->rq;
	struct driving first;

	AP_TRY(price_cut(d));
	if (!rq->other || rq->given || d->refused || ap_ctx_stopped(d->ctx))
		return cut_within(d);
	first = *d;
	d->recut = true;
	AP_TRY(turn_to(d, rq->other->graph, rq->other->step));
	d->given_up = rq->graph;
	if (d->refused || best_step_s(&d->rivals) >= best_step_s(&first.rivals)) {
		first.refused = d->refused;
		*d = first;
		d->given_up = rq->other->graph;
	}
	return cut_within(d);
}

/* A plan of the cut that was given up for one within the memory is taken if it is faster after all. */
static void look_back(struct driving *d)
{
	struct driving *first = d->first;

	if (!first || d->routed.route || best_step_s(&first->rivals) >= best_step_s(&d->rivals))
		return;
	first->steps = d->steps;
	first->work = d->work;
	first->refused = d->refused;
	first->chosen.choice = d->chosen.choice;
	first->chosen.choice.outcome = AP_OUT_FEASIBLE; /* of the other cut, as are its bounds */
	*d = *first;
}

/* Improves the best plan, with as many steps as a part of those so far: whatever the limit of work, so that
 * what follows begins with the same plan. */
static enum ap_status improve_by(struct driving *d, bool deep)
{
	struct ap_rivals *r = into(d);
	uint64_t share = d->steps / IMPROVED_PART;
	struct ap_improving x = {.ctx = d->ctx, .completer = r->completer, .fixed = r->fixed,
		.scratch = r->sketches, .deep = deep,
		.steps = share > LEAST_IMPROVED ? share : LEAST_IMPROVED};
	const struct ap_plan *p;

	if (!r->best || ap_ctx_stopped(d->ctx) ||
		(r->best == d->improved && deep <= d->improved_deep &&
			x.steps / AGAIN_IMPROVED < d->improved_steps))
		return AP_OK;
	d->improved_steps = x.steps;
	d->steps += x.steps;
	x.maker = r->best->graph == d->rq->graph ? r->maker : ap_plan_maker_create(d->ctx, r->best->graph,
		d->rq->machine, d->rq->step, d->rq->capacity_bytes);
	p = ap_improve(&x, r->best);
	d->steps -= x.steps;
	if (p != r->best && !d->free && p->graph == d->rq->graph) {
		ap_rival_add(r, NULL, ap_plan_counts(d->ctx, p));
		AP_TRY(settle(d));
	} else if (p != r->best) {
		ap_rival_take(r, p);
	}
	d->improved = r->best;
	d->improved_deep = deep;
	if (x.done)
		d->improved_steps = UINT64_MAX;
	return AP_OK;
}

static enum ap_status improve(struct driving *d)
{
	return improve_by(d, false);
}

/* Once bounding is done: all trials are made, unless no plan is faster. */
static enum ap_status improve_deep(struct driving *d)
{
	const struct ap_plan *best = into(d)->best;

	return best && best->prediction.step_time_s <= d->step_bound_s * (1 + d->rq->step_gap) ? AP_OK
		: improve_by(d, true);
}

static enum ap_status next_round(struct driving *d)
{
	return run_engine(d, d->round);
}

static enum ap_status make_tables(struct driving *d)
{
	enum ap_status st = ap_choose_tables(d->ctx, d->rq, ap_choose_engine(d->rq), d->fixed, &d->hints,
		&d->tables);

	d->chosen.table = st == AP_OK && d->tables.st == AP_OK ? d->tables.plain : NULL;
	if (d->tables.plain)
		d->steps += d->tables.plain->work;
	return st;
}

/*
 * Rounds of the engine, each with more steps, as long as the limit allows a whole one, so that a run with
 * a higher limit does the same first: as many as went into the table, which is little beside what
 * follows, and more up to a sixteenth of the usual limit; then that limit, and multiples.
 */
static enum ap_status search_rounds(struct driving *d)
{
	uint64_t most = d->rq->budget.work ? d->rq->budget.work : UINT64_MAX;

	AP_TRY(run_part(d, make_tables));
	if (d->tables.plain)
		d->hints.tables = &d->tables;
	if (d->chosen.table)
		AP_TRY(run_part(d, tell));
	if (d->tables.st == AP_LIMIT) /* what is known without a table may be that nothing fits */
		return run_part(d, next_round);
	for (d->round = 0; (d->round = round_after(d)) <= most && !d->refused;) {
		AP_TRY(run_part(d, next_round));
		AP_TRY(run_part(d, settle));
		AP_TRY(run_part(d, improve));
		AP_TRY(run_part(d, tell));
		AP_TRY(run_part(d, find_step_bound));
		AP_TRY(run_part(d, settle));
		AP_TRY(run_part(d, improve_deep));
		AP_TRY(run_part(d, tell));
		if (is_settled(d, &d->chosen.choice) || ap_ctx_stopped(d->ctx) ||
			d->round > UINT64_MAX / ROUND_GROWTH)
			return AP_OK;
	}
	d->round = most; /* less than a whole round, where any plan is better than none */
	return into(d)->best ? AP_OK : run_part(d, next_round);
}

/* Searches in phases, whose order does not depend on any limit: of two runs, the one with the higher
 * limit has met all that the other has. */
static enum ap_status search(struct driving *d)
{
	bool exact = !d->recursion_only && ap_choose_engine(d->rq)->flags & AP_ENGINE_EXACT;

	if (exact || d->recursion_only)
		AP_TRY(run_part(d, find_by_recursion));
	AP_TRY(run_part(d, settle));
	if (!d->rq->baselines_only) {
		AP_TRY(run_part(d, find_charged_recursions));
		AP_TRY(run_part(d, settle));
		AP_TRY(run_part(d, improve));
		if (!d->recursion_only)
			AP_TRY(search_rounds(d));
		AP_TRY(run_part(d, settle));
		AP_TRY(run_part(d, tell));
	}
	if (!(d->lower_bound_s > 0)) /* there is none, or none yet */
		AP_TRY(run_part(d, find_bound));
	if (!exact && !d->rq->baselines_only)
		AP_TRY(run_part(d, find_proof));
	AP_TRY(run_part(d, find_lean));
	return run_part(d, settle);
}

/* Why the search went no further. */
static const char *ended(const struct driving *d, const struct ap_search_info *s, bool stopped)
{
	if (stopped)
		return ap_ended_name(AP_ENDED_STOPPED);
	if (s->objective_s <= s->lower_bound_s)
		return ap_ended_name(AP_ENDED_PROVEN);
	if (d->rq->baselines_only || (!d->recursion_only && !d->chosen.choice.engine))
		return ap_ended_name(AP_ENDED_WORK);
	if (!d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL)
		return "simulation"; /* prefers another plan to the optimum, which is known */
	return ap_ended_name(d->recursion_only ? AP_ENDED_ENGINE : d->chosen.choice.ended);
}

static void state(const struct driving *d, bool stopped, double step_s, struct ap_search_info *s)
{
	s->mode = mode_of(d);
	/* a hybrid whose ranks or rows stand otherwise may be below what no plan of the request's graph is */
	s->lower_bound_s = s->hybrid && s->objective_s < d->lower_bound_s ? 0 : d->lower_bound_s;
	s->gap = s->lower_bound_s > 0 ? s->objective_s / s->lower_bound_s - 1 : 0;
	s->step_bound_s = fmin(d->step_bound_s, step_s);
	s->step_gap = s->step_bound_s > 0 ? step_s / s->step_bound_s - 1 : 0;
	s->step_status = !(s->step_bound_s > 0)        ? AP_STEP_OPEN
		: s->step_gap <= d->rq->step_gap ? AP_STEP_PROVEN
						   : AP_STEP_BOUNDED;
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
	out->nbaseline = (uint32_t)d->rivals.baseline.n;
	out->baseline = d->rivals.baseline.v;
	out->nsetting = d->rq->nsetting;
	out->setting = d->rq->setting;
	return AP_OK;
}

/* Is it too late for more? A proven choice is still completed. */
static bool is_stopped(const struct driving *d)
{
	bool proven = !d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL;

	return (ap_ctx_stopped(d->ctx) || d->refused) && (d->routed.route || !proven);
}

static enum ap_status no_plan(const struct driving *d)
{
	if (d->refused)
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"memory ran out before any plan was found; raise --planner-memory");
	if (d->routed.route && !is_stopped(d))
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "route",
			"no plan that was found fits the memory, or can be run, once %s has completed it",
			d->rq->route->name);
	return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		is_stopped(d) ? "stopped before any plan was found"
			: "the work limit was hit before any plan was found; raise "
			  "--work-limit or --planner-memory");
}

static enum ap_status begin_route(struct driving *d)
{
	const struct ap_request *rq = d->rq;

	ap_rivals_routed(&d->routed, &d->rivals, rq);
	d->routed.fixed = d->fixed;
	return !rq->route->fix ? AP_OK
		: rq->route->fix(d->ctx, rq->graph, rq->machine, rq->step, d->pinned, &d->routed.fixed);
}

static enum ap_status find_routed_quickly(struct driving *d)
{
	if (!d->routed.best)
		d->work += ap_routed_quick(&d->routed, d->rq, d->fixed, d->free);
	return AP_OK;
}

static enum ap_status find_routed(struct driving *d)
{
	d->work += ap_routed_search(&d->routed, d->rq, d->fixed, d->free);
	return AP_OK;
}

/*
 * A route decides some operators by itself, so the best plan so far only serves for comparison: each
 * was also taken as the route completes it from its checkpoint. Searches again, for plan and bound, with
 * the operators that the route fixes.
 */
static enum ap_status search_route(struct driving *d)
{
	d->free = d->rivals.best;
	if (!d->free)
		return no_plan(d);
	d->fixed = d->routed.fixed;
	if (d->rq->route->fix) {
		d->hints = (struct ap_hints){0};
		d->recursion = (struct ap_recursive){0};
		d->recurred = false;
		d->lower_bound_s = 0;
		AP_TRY(search(d));
	}
	AP_TRY(run_part(d, find_routed_quickly));
	if (d->rq->baselines_only)
		return AP_OK;
	AP_TRY(run_part(d, find_routed));
	return run_part(d, improve_deep);
}

static void save_cut(const struct driving *d, struct ap_found *f)
{
	f->other = d->recut;
	f->recut = d->spot != NULL;
	f->kept = d->as_kept;
	if (f->recut)
		memcpy(f->spot, d->spot, d->rq->cutting->graph->nnode * sizeof *f->spot);
}

/* Saves what is needed to make a plan again, outside the search's arena. */
static void save(struct driving *d, const struct ap_plan *p, struct ap_found *f)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		memcpy(f->count[i], ap_placement_counts(d->ctx->arena, &p->op[i].place),
			p->graph->node[i].bound.nfactor * sizeof **f->count);
	f->any = true;
	save_cut(d, f);
	f->search = p->search;
	f->hybrid = d->rivals.best_hybrid && p == d->rivals.best ? *d->rivals.best_hybrid
		: (struct ap_hybrid){0};
	state(d, is_stopped(d), p->prediction.step_time_s, &f->search);
}

/* Where memory ran out before any plan was completed: saves the fastest as it was found, which the
 * caller has memory to complete. */
static enum ap_status save_untold(struct driving *d, struct ap_found *found)
{
	const struct ap_graph *g = d->rq->graph;
	const struct ap_rival *best = NULL;

	for (size_t i = 0; i < d->rivals.all.n; i++) {
		const struct ap_rival *v = &d->rivals.all.v[i];

		if (v->counts && v->fits && v->wanted && (!best || v->step_time_s < best->step_time_s))
			best = v;
	}
	if (!best)
		return no_plan(d);
	for (ap_id i = 0; i < g->nnode; i++)
		memcpy(found->count[i], best->counts[i], g->node[i].bound.nfactor * sizeof **found->count);
	found->any = true;
	save_cut(d, found);
	found->search.objective_s = best->objective_s;
	state(d, true, best->step_time_s, &found->search);
	return AP_LIMIT;
}

/* Bounds the step of the plans of the request's graph and of those of a hybrid's, whose ranks or rows stand
 * in another order: of these only what no order changes. */
static void bound_both(struct driving *d, const struct ap_plan *hybrid)
{
	const struct ap_request *rq = d->rq;
	double own_s = ap_plan_least_kernels_s(d->ctx, rq->graph, rq->machine, rq->step);
	double other_s = ap_plan_least_kernels_s(d->ctx, hybrid->graph, rq->machine, rq->step);

	d->step_bound_s = fmin(fmax(d->step_bound_s, own_s), other_s);
}

static enum ap_status finish_best(struct driving *d)
{
	const struct ap_hybrid *h = d->best == d->rivals.best ? d->rivals.best_hybrid : NULL;

	AP_TRY(finish(d, d->best, d->out));
	if (h) {
		d->out->search.hybrid = ap_hybrid_degrees(d->ctx, h);
		bound_both(d, d->best);
		d->lower_bound_s = fmin(d->lower_bound_s, ap_plan_lower_bound_s(d->ctx, d->best->graph,
			d->rq->machine, d->rq->step, NULL));
	}
	state(d, is_stopped(d), d->out->prediction.step_time_s, &d->out->search);
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
	state(d, is_stopped(d), d->out->prediction.step_time_s, &d->out->search);
	if (!c->choice.pick || c->choice.pick == before || d->routed.route)
		return AP_OK;
	ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick))->optimal =
		c->choice.outcome == AP_OUT_OPTIMAL;
	AP_TRY(settle(d));
	AP_TRY(tell(d));
	d->best = d->rivals.best;
	return finish_best(d);
}

/* Operators of which the old plan says another strategy than a plan. */
static uint32_t count_changes(const struct driving *d, const struct ap_plan *p)
{
	const int32_t *const *old = rows_on(d->ctx, d->rq->graph, d->rq->keep, p->graph);
	const int32_t *const *now = ap_plan_counts(d->ctx, p);
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		n += old[i] && memcmp(old[i], now[i], p->graph->node[i].bound.nfactor * sizeof **now) != 0;
	return n;
}

/* Operators that a plan has in another part than the old plan. */
static uint32_t count_moved(const struct driving *d, const struct ap_plan *p)
{
	const struct ap_kept_cut *cut = d->rq->keep_cut;
	struct ap_mark mark = ap_arena_mark(d->ctx->scratch);
	struct ap_map *names = ap_map_create(d->ctx->scratch);
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		ap_map_put_str(names, p->graph->node[i].name, NULL);
	for (ap_id i = 0; cut && i < cut->graph->nnode; i++) {
		ap_id at = cut->counts[i] ? ap_map_get_str(names, cut->graph->node[i].name) : AP_NONE;

		n += at != AP_NONE && (p->graph->node[at].stage != cut->graph->node[i].stage ||
			p->graph->node[at].segment != cut->graph->node[i].segment);
	}
	ap_arena_release(d->ctx->scratch, mark);
	return n;
}

/* Lets the old plan compete as it is, where it says the cuts of all operators. */
static enum ap_status find_old(struct driving *d)
{
	const struct ap_graph *g = d->rq->graph;
	struct ap_ctx quiet = ap_diag_apart(d->ctx);
	const int32_t *const *old = d->rq->keep;
	ap_id at;

	for (ap_id i = 0; i < g->nnode; i++)
		if (!old[i])
			return AP_OK;
	if (ap_pins_hold(g, d->fixed, old) && !ap_plan_conflict(&quiet, g, d->rq->machine->ndev, old, &at))
		ap_rival_add(&d->rivals, NULL, old);
	return AP_OK;
}

/* A bound on the step of a cut that is not searched. */
static enum ap_status find_least_step(struct driving *d)
{
	d->step_bound_s = ap_plan_least_kernels_s(d->ctx, d->rq->graph, d->rq->machine, d->rq->step);
	return find_bound(d);
}

static double most_kept_s(const struct driving *d, double best_s)
{
	double known_s = d->rq->keep_best_s > 0 ? d->rq->keep_best_s : INFINITY;

	return fmin(known_s, best_s) * (1 + d->rq->keep_within);
}

/* Finds the fastest plan of the stages that d has turned to: the old plan where it is within the tolerance,
 * else by a search. */
static enum ap_status search_kept(struct driving *d, double most_s)
{
	const struct ap_kept_cut *cut = d->rq->keep_cut;
	struct ap_request *rq;
	size_t before;

	AP_TRY(turn_to(d, cut->graph, cut->step));
	rq = ap_arena_memdup(d->ctx->arena, d->rq, sizeof *rq);
	rq->keep = cut->counts;
	d->rq = rq;
	before = d->rivals.all.n;
	AP_TRY(run_part(d, find_old));
	if (d->rivals.all.n > before && d->rivals.all.v[before].fits)
		d->keeping->old_step_s = d->rivals.all.v[before].step_time_s;
	AP_TRY(run_part(d, settle));
	return best_step_s(&d->rivals) <= most_s ? run_part(d, find_least_step) : search(d);
}

/* Turns to the stages of the old plan if a plan of them is within the tolerance of the best step. */
static void keep_stages(struct driving *d)
{
	const struct ap_kept_cut *cut = d->rq->keep_cut;
	double most_s = most_kept_s(d, d->best->prediction.step_time_s);
	struct ap_diag_mark before = ap_diag_mark(d->ctx->diag);
	struct driving old = *d;

	if (!cut || cut->graph->nnode > d->room || count_moved(d, d->best) == 0)
		return;
	ap_ctx_phase(d->ctx, "keeping the stages of the old plan");
	old.recut = old.recurred = old.improved_deep = false;
	old.as_kept = true;
	old.spot = NULL;
	old.first = NULL;
	old.improved = NULL;
	old.hints = (struct ap_hints){0};
	old.tables = (struct ap_tables){0};
	old.chosen = (struct ap_chosen){0};
	old.lower_bound_s = old.step_bound_s = 0;
	if (search_kept(&old, most_s) != AP_OK) {
		ap_diag_forget(d->ctx->diag, &before); /* there is a plan, of other stages */
		old.rivals.best = NULL;
	}
	d->keeping->stages_step_s = best_step_s(&old.rivals);
	d->steps = old.steps;
	d->refused = old.refused;
	if (old.refused || best_step_s(&old.rivals) > most_s)
		return;
	old.best = old.rivals.best;
	*d = old;
}

/* Gives the best plan up for one near it that changes less of an old plan. */
static enum ap_status keep_old(struct driving *d)
{
	const struct ap_request *rq = d->rq;
	struct ap_plan_kept *told = d->keeping;
	const struct ap_keep_job job = {.rq = rq, .maker = d->rivals.maker, .fixed = d->fixed,
		.old = rq->keep, .within = rq->keep_within, .best = d->best, .best_s = told->best_step_s};
	double old_s;

	if (d->best->graph != rq->graph || !d->rivals.maker)
		return ap_diag_add(d->ctx->diag, AP_NOTE, AP_OK, NULL, "keep",
			"the fastest plan is a hybrid with its own order of ranks or rows, and is taken "
			"whatever it changes of %s", rq->keep_file);
	ap_ctx_phase(d->ctx, "keeping the old plan");
	old_s = told->old_step_s;
	d->best = ap_keep(d->ctx, &job, told, &d->steps);
	if (told->stages_step_s > 0) /* it is of its own stages */
		told->old_step_s = old_s;
	told->moved = count_moved(d, d->best);
	d->kept = told;
	return AP_OK;
}

/* The same, of all that is kept: stages, then cuts. */
static enum ap_status keep_what_can_be(struct driving *d)
{
	struct ap_plan_kept *told = AP_NEW(d->ctx->arena, struct ap_plan_kept);
	double best_s = d->best->prediction.step_time_s;

	if (!d->rq->keep)
		return AP_OK;
	if (d->routed.route)
		return ap_diag_add(d->ctx->diag, AP_NOTE, AP_OK, NULL, "keep",
			"nothing is kept of %s: the executor completes plans, so that a cut changes others "
			"beside it", d->rq->keep_file);
	*told = (struct ap_plan_kept){.within = d->rq->keep_within, .file = d->rq->keep_file,
		.best_step_s = d->rq->keep_best_s > 0 ? fmin(d->rq->keep_best_s, best_s) : best_s,
		.best_changes = count_changes(d, d->best), .old_step_s = INFINITY};
	d->keeping = told;
	keep_stages(d);
	return run_part(d, keep_old);
}

/* Takes the fastest of all plans found, by simulation, the authority on time. */
static enum ap_status take_best(struct driving *d, struct ap_found *found)
{
	look_back(d);
	d->best = d->routed.route ? d->routed.best : d->rivals.best;
	if (!d->best)
		return d->refused ? save_untold(d, found) : no_plan(d);
	if (!is_stopped(d))
		AP_TRY(keep_what_can_be(d));
	save(d, d->best, found);
	AP_TRY(run_part(d, finish_best));
	if (!d->finished)
		return AP_LIMIT; /* the best plan is in *found */
	d->out->kept = d->kept;
	if (!is_stopped(d) && !d->kept) /* last, as it may take all the time left */
		AP_TRY(run_part(d, certify));
	d->out->search.certificate = d->chosen.choice.certificate;
	return is_stopped(d) ? AP_STOPPED : AP_OK;
}

static enum ap_status drive(struct driving *d, struct ap_found *found, const struct ap_problem **problem)
{
	AP_TRY(choose_cut(d));
	if (decides(d->rq->route))
		AP_TRY(run_part(d, begin_route));
	AP_TRY(search(d));
	if (d->routed.route)
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
	bool refused; /* memory ran out in it */
};

static enum ap_status run_job(struct drive_job *j)
{
	const struct ap_request *rq = j->rq;
	struct driving d = {.ctx = j->ctx, .rq = rq, .room = j->found->room, .out = j->out,
		.recursion_only = strcmp(rq->search_mode, RECURSION) == 0};
	enum ap_status st;

	AP_TRY(ap_pins_make(j->ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, j->ctx, rq);
	d.rivals.fixed = d.fixed;
	d.rivals.any = false;
	st = drive(&d, j->found, j->problem);
	j->found->steps = d.steps;
	j->refused = d.refused;
	ap_rivals_end(&d.routed);
	return st;
}

static void try_job(void *user)
{
	struct drive_job *j = user;

	j->st = run_job(j);
}

/* Allocates room for the counts of one plan. */
static void found_init(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *f)
{
	ap_id n = rq->graph->nnode;

	n = rq->other && rq->other->graph->nnode > n ? rq->other->graph->nnode : n;
	if (rq->cutting && n < 2 * rq->cutting->graph->nnode)
		n = 2 * rq->cutting->graph->nnode;
	if (rq->keep_cut && n < rq->keep_cut->graph->nnode)
		n = rq->keep_cut->graph->nnode;
	*f = (struct ap_found){.count = AP_NEW_N(ctx->arena, int32_t *, n), .room = n};
	if (rq->cutting)
		f->spot = AP_NEW_N(ctx->arena, struct ap_spot, rq->cutting->graph->nnode);
	for (ap_id i = 0; i < n; i++)
		f->count[i] = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);
}

/* Finds with ctx->jobs threads; false: memory ran out as a whole. */
static bool find(struct drive_job *j)
{
	j->st = AP_LIMIT;
	j->refused = false;
	found_init(j->ctx, j->rq, j->found);
	return ap_attempt_apart(j->ctx, try_job, NULL, j, &j->found->arena);
}

enum ap_status ap_drive_find(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem)
{
	struct drive_job j = {ctx, rq, found, out, problem, AP_LIMIT, false};
	struct ap_diag_mark before = ap_diag_mark(ctx->diag);
	struct ap_ctx alone = *ctx;
	bool done = find(&j);

	if (ctx->jobs > 1 && j.st == AP_LIMIT && !found->any && (!done || j.refused)) {
		/* Threads hold memory at the same time: one may do where several do not. */
		ap_arena_destroy(found->arena);
		ap_diag_forget(ctx->diag, &before);
		alone.jobs = 1;
		j.ctx = &alone;
		done = find(&j);
	}
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
	ap_rivals_routed(&d->routed, &d->rivals, d->rq);
	st = ap_rival_routed(&d->routed, d->ctx, d->pinned, best);
	ap_rivals_end(&d->routed);
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
static enum ap_status plan_again(struct driving *d, const int32_t *const *counts, const struct ap_hybrid *h,
	struct ap_plan *out)
{
	const struct ap_plan *routed;
	struct driving told = *d;

	if (!decides(d->rq->route)) {
		*out = *ap_rival_plan(&d->rivals, d->rq, h->dp ? h : NULL, counts);
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
	struct ap_request recut = *rq;
	struct driving d = {.ctx = ctx, .rq = &recut, .out = out};
	struct ap_plan *plan = AP_NEW(ctx->arena, struct ap_plan);
	const int32_t *const *counts = (const int32_t *const *)found->count;

	ap_arena_destroy(found->arena);
	found->arena = NULL;
	if (found->other) {
		recut.graph = rq->other->graph;
		recut.step = rq->other->step;
	}
	if (found->recut) {
		ap_graph_staged(ctx, rq->cutting->graph, found->spot, &recut.graph);
		recut.step = step_of_cut(ctx, rq->step);
	}
	if (found->kept) {
		recut.graph = rq->keep_cut->graph;
		recut.step = rq->keep_cut->step;
	}
	recut.given = rows_on(ctx, rq->graph, rq->given, recut.graph);
	rq = &recut;
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	AP_TRY(plan_again(&d, counts, &found->hybrid, plan));
	if (plan->prediction.memory.total > rq->capacity_bytes) /* after completion by the route */
		return no_plan(&d);
	AP_TRY(finish(&d, plan, out));
	found->search.objective_s = plan->search.objective_s;
	out->search = found->search;
	out->search.certificate = NULL;
	out->search.hybrid = found->hybrid.dp ? ap_hybrid_degrees(ctx, &found->hybrid) : NULL;
	return ap_verify(ctx, out);
}
