/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/drive.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "plan/certify.h"
#include "plan/choose.h"
#include "plan/lean.h"
#include "plan/pins.h"
#include "plan/recursive.h"
#include "plan/rival.h"
#include "plan/route_improve.h"
#include "plan/route_rivals.h"

#define RECURSION "recursive_programming"
#define MOST_TRIES 4
#define MOST_WEIGHED 2 /* of them with what stages are charged mended, not the memory cut down */
#define NEAR 0.2 /* of an objective: what a simulation may put before the best */
#define LARGE 4096 /* operators: a second search takes long enough to be worth a doubt */

struct driving {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	const int32_t *const *pinned; /* by the graph and the request; NULL: nothing is */
	const int32_t *const *fixed; /* those, and what the route fixes */
	const struct ap_plan *free; /* where a route decides: what is best where it does not */
	bool recursion_only;
	struct ap_recursive recursion;
	struct ap_hints hints;
	struct ap_chosen chosen; /* by the engine; table NULL: it did not run */
	struct ap_rivals rivals;
	double lower_bound_s;
	uint64_t work;
};

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

/* The table's problem with the whole gradient exchange charged. */
static struct ap_problem exposed_problem(struct ap_ctx *ctx, const struct ap_table *t)
{
	struct ap_problem p = *t->problem;
	struct ap_pnode *node = AP_NEW_N(ctx->arena, struct ap_pnode, p.n);
	double **cost = AP_NEW_N(ctx->arena, double *, t->nclass);

	for (uint32_t c = 0; c < t->nclass; c++) {
		const struct ap_table_class *cls = &t->cls[c];

		cost[c] = AP_NEW_N(ctx->arena, double, cls->k);
		for (uint32_t i = 0; i < cls->k; i++)
			cost[c][i] = cls->cost[i] + cls->hidden[i];
	}
	for (uint32_t i = 0; i < p.n; i++) {
		node[i] = p.node[i];
		node[i].cost = cost[t->class_of[i]];
	}
	p.node = node;
	return p;
}

/* Does simulation say that more of the gradient exchange shows than the objective charges? The objective
 * adds up the stages, of which each is busy with its part. */
static bool worth_caution(const struct ap_plan *p)
{
	double doubt = p->graph->nnode > LARGE ? 0.25 : 0.01;
	double busy_s = p->search.objective_s / p->nstage;

	return p->prediction.step_time_s - p->prediction.bubble_s > (1 + doubt) * busy_s;
}

/*
 * A second opinion: the objective takes a fixed part of the gradient exchange for hidden, which a
 * network with little to hide it behind does not do. The best choice without that assumption.
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
	if (c.outcome == AP_OUT_OPTIMAL || c.outcome == AP_OUT_FEASIBLE)
		ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, t, c.pick));
}

static void recur(struct driving *d, struct ap_ctx *ctx, struct ap_rec_limits limits)
{
	ap_plan_recursive(ctx, d->rq->graph, d->rq->machine, d->rq->step, d->fixed, &limits,
		&d->recursion);
	d->work += d->recursion.work;
}

/* Does the recursion's plan need more than a device has? Of several stages the recursion knows the sum
 * only. */
static bool exceeds(struct driving *d)
{
	struct ap_plan p;

	if (d->rq->machine->nstage == 1)
		return d->recursion.memory_bytes > ap_choose_limit_bytes(d->rq);
	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	return p.prediction.memory.total > d->rq->capacity_bytes;
}

/* The recursion, within the memory limit where that binds. So that there is a plan whatever happens,
 * it is stopped only where the network is so large that it would be felt, or when a plan fits. */
static void run_recursion(struct driving *d)
{
	struct ap_ctx unhurried = *d->ctx;

	if (d->rq->graph->nnode <= LARGE)
		unhurried.stop = NULL;
	recur(d, &unhurried, (struct ap_rec_limits){.bytes = AP_NO_LIMIT});
	d->hints.limit_binds = exceeds(d);
	if (d->hints.limit_binds)
		recur(d, d->ctx, (struct ap_rec_limits){.bytes = ap_choose_sum_bytes(d->rq),
			.insist = true});
	if (d->recursion.allowed)
		d->hints.start = d->recursion.counts;
}

/* The recursion with the whole gradient exchange charged. */
static void add_cautious_recursion(struct driving *d)
{
	const struct ap_request *rq = d->rq;
	struct ap_software software = *rq->step->software;
	struct ap_step step = *rq->step;
	struct ap_recursive r;

	software.gradient_exposed = 1;
	step.software = &software;
	ap_plan_recursive(d->ctx, rq->graph, rq->machine, &step, d->fixed,
		&(struct ap_rec_limits){.bytes = ap_choose_sum_bytes(rq)}, &r);
	d->work += r.work;
	if (r.allowed)
		ap_rival_add(&d->rivals, NULL, r.counts);
}

static void add_recursion(struct driving *d)
{
	const char *name = d->recursion_only || d->free ? NULL : "recursion";
	const struct ap_plan *p;

	if (!d->recursion.allowed)
		return;
	p = &ap_rival_add(&d->rivals, name, d->recursion.counts)->plan;
	if (d->rq->step->software && !ap_ctx_stopped(d->ctx) && worth_caution(p))
		add_cautious_recursion(d);
}

/* pinned: what it must keep to, to be comparable. */
static void add_data_parallel(struct driving *d, const int32_t *const *pinned)
{
	const char *why = "";
	const int32_t *const *counts = ap_baseline_data_parallel(d->ctx, d->rq->graph,
		d->rq->machine->ndev, d->rq->step, &why);

	if (counts && !ap_pins_hold(d->rq->graph, pinned, counts)) {
		why = "a given strategy says otherwise";
		counts = NULL;
	}
	if (counts)
		ap_rival_add(&d->rivals, "data parallel", counts)->baseline = true;
	else
		ap_rival_absent(&d->rivals, "data parallel", why);
}

/* Is the objective of these counts near the best that was found? Cheaper than to simulate them. */
static bool is_near(struct driving *d, const int32_t *const *counts)
{
	double best_s = INFINITY;
	struct ap_plan p;

	for (int i = 0; i < d->rivals.n; i++)
		best_s = fmin(best_s, d->rivals.v[i].plan.search.objective_s);
	ap_plan_price(d->rivals.maker, counts, &p);
	return p.search.objective_s <= best_s * (1 + NEAR);
}

/* An expert's grid is a baseline that a search must not be worse than. One that cuts sequences, too, is a
 * rival like others: an optimum does not give way to what the simulation can hardly tell from it. */
static void add_grids(struct driving *d, const int32_t *const *pinned)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(&d->rivals, d->rq, &n);

	for (uint32_t i = 0; i < n && !ap_ctx_stopped(d->ctx); i++) {
		bool holds = grid[i].counts && ap_pins_hold(d->rq->graph, pinned, grid[i].counts);

		if (grid[i].rare) {
			if (holds && is_near(d, grid[i].counts))
				ap_rival_add(&d->rivals, NULL, grid[i].counts);
		} else if (holds)
			ap_rival_add(&d->rivals, grid[i].name, grid[i].counts)->baseline = true;
		else
			ap_rival_absent(&d->rivals, grid[i].name, grid[i].counts
				? "a given strategy says otherwise" : grid[i].why);
	}
}

/* Where the search has none. */
static double lower_bound_s(const struct driving *d)
{
	struct ap_ctx unhurried = *d->ctx;

	unhurried.stop = NULL;
	return ap_plan_lower_bound_s(&unhurried, d->rq->graph, d->rq->machine, d->rq->step, d->fixed);
}

/* What a choice needs beyond the memory, 0 or more; *p: the plan. The search charges each set of operators
 * that are recomputed together with a part of one set; where they differ, the largest needs more. Of the
 * segments of a stage it charges what is held at one instant, which may not be the fullest. */
static int64_t excess_bytes(struct driving *d, const struct ap_chosen *c, struct ap_plan *p)
{
	int64_t more;

	if (!ap_chosen_any(c))
		return 0;
	ap_plan_price(d->rivals.maker, ap_chosen_counts(d->ctx, c->table, c->choice.pick), p);
	more = p->prediction.memory.total - d->rq->capacity_bytes;
	return more > 0 ? more : 0;
}

/* The engine's choice; where it does not really fit, that with its fullest instants charged, whose bounds
 * hold as well, or else that within less, of which the bound so far holds. */
static enum ap_status choose_fitting(struct driving *d, const struct ap_engine *engine)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_request rq = *d->rq;
	double bound_s = 0;
	struct ap_plan p;
	int64_t more;

	AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &d->hints, c));
	d->work += c->choice.work;
	bound_s = c->choice.lower_bound;
	for (int i = 0; i < MOST_TRIES && (more = excess_bytes(d, c, &p)) > 0; i++) {
		const struct ap_step *step = i < MOST_WEIGHED ? ap_plan_weigh(d->ctx, &p, rq.step) : rq.step;
		bool whole = step != rq.step;

		rq.step = step;
		rq.capacity_bytes -= whole ? 0 : more;
		AP_TRY(ap_choose(d->ctx, &rq, engine, d->fixed, &d->hints, c));
		d->work += c->choice.work;
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

/* The engine's choice. AP_INFEASIBLE, with a message, where there is none. */
static enum ap_status add_engine(struct driving *d)
{
	struct ap_chosen *c = &d->chosen;
	struct ap_rival *v;

	AP_TRY(choose_fitting(d, ap_choose_engine(d->rq)));
	if (c->choice.outcome == AP_OUT_INFEASIBLE) {
		AP_TRY(ap_certify(d->ctx, d->rq, c));
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	}
	d->lower_bound_s = c->choice.lower_bound;
	if (!(c->choice.lower_bound > 0)) /* the engine has none, or was stopped before it had */
		d->lower_bound_s = lower_bound_s(d);
	if (!ap_chosen_any(c))
		return AP_OK;
	v = ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	v->optimal = c->choice.outcome == AP_OUT_OPTIMAL;
	if (v->optimal && !ap_ctx_stopped(d->ctx) && worth_caution(&v->plan))
		add_cautious(d);
	return AP_OK;
}

static const char *mode_of(const struct driving *d)
{
	return d->recursion_only ? RECURSION : ap_choose_engine(d->rq)->name;
}

/* What is not exact proves nothing: where it found nothing that fits, an exact engine has to. */
static enum ap_status add_proof(struct driving *d)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");
	struct ap_chosen *c = &d->chosen;

	if (ap_rival_fits(&d->rivals) || ap_ctx_stopped(d->ctx))
		return AP_OK;
	AP_TRY(ap_choose(d->ctx, d->rq, exact, d->fixed, &d->hints, c));
	d->work += c->choice.work;
	if (c->choice.outcome == AP_OUT_INFEASIBLE)
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	if (!ap_chosen_any(c))
		return AP_OK;
	ap_diag_add(d->ctx->diag, AP_NOTE, AP_OK, NULL, "mode-fits",
		"%s found no plan that fits the memory; the plan is one of %s", mode_of(d),
		exact->name);
	ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	return AP_OK;
}

/* Nothing that was found fits, and nothing was proven: what needs little memory. */
static void add_lean(struct driving *d)
{
	struct ap_plan p;

	if (ap_rival_fits(&d->rivals))
		return;
	ap_ctx_phase(d->ctx, "searching for little memory");
	if (ap_plan_lean(d->ctx, d->rq, &p))
		ap_rival_add(&d->rivals, NULL, ap_plan_counts(d->ctx, &p));
}

/* What engine and recursion find of the problem with d->fixed. */
static enum ap_status search(struct driving *d, bool with_baselines)
{
	bool exact = !d->recursion_only && ap_choose_engine(d->rq)->flags & AP_ENGINE_EXACT;

	if (exact || d->recursion_only)
		run_recursion(d);
	if (d->recursion_only)
		d->lower_bound_s = lower_bound_s(d);
	else
		AP_TRY(add_engine(d));
	if (with_baselines) {
		add_data_parallel(d, d->fixed);
		add_grids(d, d->fixed);
	}
	add_recursion(d);
	if (!exact)
		AP_TRY(add_proof(d));
	add_lean(d);
	return AP_OK;
}

static void state(const struct driving *d, bool stopped, struct ap_plan *p)
{
	struct ap_search_info *s = &p->search;

	s->mode = mode_of(d);
	s->lower_bound_s = d->lower_bound_s;
	s->gap = s->lower_bound_s > 0 ? s->objective_s / s->lower_bound_s - 1 : 0;
	s->work = d->work;
	s->complete = !stopped;
	s->status = stopped                            ? AP_PLAN_STOPPED
		: s->objective_s <= s->lower_bound_s ? AP_PLAN_OPTIMAL
						       : AP_PLAN_FEASIBLE;
}

static void mark_fixed(struct ap_ctx *ctx, const int32_t *const *fixed, struct ap_plan *p)
{
	struct ap_plan_op *op;

	if (!fixed)
		return;
	op = ap_arena_memdup(ctx->arena, p->op, p->graph->nnode * sizeof *op);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		op[i].fixed = fixed[i] != NULL;
	p->op = op;
}

static enum ap_status finish(struct driving *d, const struct ap_plan *best, struct ap_plan *out)
{
	ap_ctx_phase(d->ctx, "scheduling");
	*out = *best;
	mark_fixed(d->ctx, d->pinned, out);
	if (d->rq->route)
		out->route = ap_route_compare(d->ctx, d->rq->route, best, d->free ? d->free : best);
	ap_plan_add_params(d->ctx, out);
	out->nbaseline = d->rivals.nbaseline;
	out->baseline = ap_arena_memdup(d->ctx->arena, d->rivals.baseline,
		d->rivals.nbaseline * sizeof *out->baseline);
	out->nsetting = d->rq->nsetting;
	out->setting = d->rq->setting;
	return AP_OK;
}

static bool is_proven(const struct driving *d)
{
	return !d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL;
}

static const struct ap_plan *best_of(struct driving *d, bool stopped)
{
	d->rivals.table = d->chosen.table;
	d->rivals.fixed = d->fixed;
	d->rivals.any = false;
	return ap_rival_best(&d->rivals, d->rq, d->fixed, !stopped);
}

static enum ap_status no_plan(const struct driving *d, bool stopped)
{
	if (d->rivals.route && !stopped)
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "route",
			"no plan that was found fits the memory, or can be run, once %s has completed it",
			d->rq->route->name);
	return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		stopped ? "stopped before any plan was found"
			: "the work limit was hit before any plan was found; raise "
			  "--work-limit or --planner-memory");
}

/* What the route fixes is searched no more: what is best with that is found anew, and its bound. */
static enum ap_status search_fixed(struct driving *d)
{
	const struct ap_request *rq = d->rq;

	AP_TRY(rq->route->fix(d->ctx, rq->graph, rq->machine, rq->step, d->pinned, &d->fixed));
	d->hints = (struct ap_hints){0};
	d->recursion = (struct ap_recursive){0};
	return search(d, false);
}

/*
 * A route decides some operators by itself: the best plan of all is only what it is compared with. Each
 * plan that was found is taken as the route completes what its checkpoint holds.
 */
static enum ap_status search_route(struct driving *d)
{
	bool stopped = ap_ctx_stopped(d->ctx) && !is_proven(d);

	d->free = best_of(d, stopped);
	if (!d->free)
		return no_plan(d, stopped);
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	if (d->rq->route->fix)
		AP_TRY(search_fixed(d));
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	ap_rivals_route(&d->rivals, d->rq);
	d->rivals.fixed = d->fixed;
	d->work += ap_route_rivals(&d->rivals, d->rq, d->fixed, d->free);
	return AP_OK;
}

/* Every plan that was found and data parallel are compared by simulation, the authority on time. */
static enum ap_status take_best(struct driving *d, struct ap_plan *out)
{
	bool stopped = ap_ctx_stopped(d->ctx) && (d->rivals.route || !is_proven(d));
	const struct ap_plan *best = best_of(d, stopped);

	if (!best)
		return no_plan(d, stopped);
	if (d->rivals.route && best->search.objective_s > d->lower_bound_s)
		best = ap_route_improve(&d->rivals, d->rq, d->fixed, best);
	AP_TRY(finish(d, best, out));
	state(d, stopped, out);
	AP_TRY(ap_verify(d->ctx, out));
	if (!stopped) /* last: it may take what is left of the time */
		AP_TRY(ap_certify(d->ctx, d->rq, &d->chosen));
	out->search.certificate = d->chosen.choice.certificate;
	return stopped ? AP_STOPPED : AP_OK;
}

static bool decides(const struct ap_route *route)
{
	return route && route->complete;
}

static enum ap_status drive(struct driving *d, struct ap_plan *out, const struct ap_problem **problem)
{
	AP_TRY(search(d, true));
	if (decides(d->rq->route))
		AP_TRY(search_route(d));
	if (problem && d->chosen.table)
		*problem = d->chosen.table->problem;
	return take_best(d, out);
}

/* Charges what segments hold when they hold most uncut, which tells how their sizes compare: with equal
 * layers any cut is fullest then. */
static const struct ap_step *weigh_uncut(struct ap_ctx *ctx, const struct ap_request *rq)
{
	const struct ap_graph *g = rq->graph;
	const int32_t **counts;
	int32_t *ones;
	struct ap_plan p;

	if (!rq->step->pipe || rq->step->pipe->nsegment == 1)
		return rq->step;
	counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	ones = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	for (ap_id i = 0; i < g->nnode; i++)
		counts[i] = ones;
	ap_plan_price(ap_plan_maker_create(ctx, g, rq->machine, rq->step, rq->capacity_bytes), counts, &p);
	return ap_plan_weigh(ctx, &p, rq->step);
}

enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *given, struct ap_plan *out,
	const struct ap_problem **problem)
{
	struct ap_request *rq = ap_arena_memdup(ctx->arena, given, sizeof *given);
	struct driving d = {.ctx = ctx, .rq = rq,
		.recursion_only = strcmp(rq->search_mode, RECURSION) == 0};
	enum ap_status st;

	rq->step = weigh_uncut(ctx, given);
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	st = drive(&d, out, problem);
	ap_rivals_end(&d.rivals);
	return st;
}

/* Can a checkpoint tell of it? It is named after a parameter, perhaps a cast one, or a frozen one. */
static bool has_param(const struct ap_graph *g, const struct ap_node *n)
{
	bool any = n->param != AP_NONE;

	for (int i = 0; i < n->bound.nin; i++)
		any |= g->tensor[n->in[i]].kind == AP_TENSOR_PARAM;
	return any && ap_op_has_strategy(n->bound.row);
}

/* Of what is given, what a checkpoint can tell and what the graph itself says. */
static const int32_t *const *told_counts(struct driving *d, const int32_t *const *pinned)
{
	const struct ap_graph *g = d->rq->graph;
	const int32_t **told = AP_NEW_N(d->ctx->arena, const int32_t *, g->nnode);

	for (ap_id i = 0; d->pinned && i < g->nnode; i++)
		if ((pinned && pinned[i]) || has_param(g, &g->node[i]))
			told[i] = d->pinned[i];
	return told;
}

/* What the route makes of the best that is given. */
static enum ap_status evaluate_route(struct driving *d, const int32_t *const *pinned,
	const struct ap_plan **best)
{
	enum ap_status st;

	d->free = *best;
	d->pinned = told_counts(d, pinned);
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
	if (decides(rq->route))
		AP_TRY(evaluate_route(&d, pinned, &best));
	add_data_parallel(&d, pinned);
	AP_TRY(finish(&d, best, out));
	out->search = (struct ap_search_info){.mode = "given", .status = AP_PLAN_GIVEN,
		.complete = true, .objective_s = best->search.objective_s};
	return ap_verify(ctx, out);
}
