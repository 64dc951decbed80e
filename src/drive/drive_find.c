/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/arena.h"
#include "cost/least.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "drive/certify.h"
#include "drive/driving.h"
#include "drive/lean.h"
#include "table/table.h"

#define MOST_TRIES 4
#define MOST_WEIGHED 2 /* of them with what stages are charged mended, not the memory cut down */
#define NEAR 0.2 /* of an objective: what a simulation may put before the best */
#define LARGE 4096 /* operators: a second search takes long enough to be worth a doubt */

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
	d->steps += d->recursion.work * AP_RECURSION_STEPS;
}

/* Does the recursion's plan need more than a device has? Of several stages the recursion knows the sum
 * only. */
static bool exceeds(struct driving *d)
{
	struct ap_plan p;

	ap_plan_price(d->rivals.maker, d->recursion.counts, &p);
	return p.prediction.memory.total > d->rq->capacity_bytes;
}

/* The recursion, within the memory limit where that binds. So that there is a plan whatever happens,
 * it is stopped only where the network is so large that it would be felt, or when a plan fits. */
enum ap_status ap_find_by_recursion(struct driving *d)
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
	return AP_OK;
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

enum ap_status ap_find_recursion(struct driving *d)
{
	const char *name = d->recursion_only || d->free ? NULL : "recursion";
	const struct ap_plan *p;

	if (!d->recursion.allowed)
		return AP_OK;
	p = &ap_rival_add(&d->rivals, name, d->recursion.counts)->plan;
	if (d->rq->step->software && !ap_ctx_stopped(d->ctx) && worth_caution(p))
		add_cautious_recursion(d);
	return AP_OK;
}

enum ap_status ap_find_data_parallel(struct driving *d)
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
enum ap_status ap_find_grids(struct driving *d)
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

/* Where the search has none. */
enum ap_status ap_find_bound(struct driving *d)
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

/* The engine's choice. AP_INFEASIBLE, with a message, where there is none. */
enum ap_status ap_find_by_engine(struct driving *d)
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
		AP_TRY(ap_find_bound(d));
	if (!ap_chosen_any(c))
		return AP_OK;
	v = ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	v->optimal = c->choice.outcome == AP_OUT_OPTIMAL;
	if (v->optimal && !ap_ctx_stopped(d->ctx) && worth_caution(&v->plan))
		add_cautious(d);
	return AP_OK;
}

const char *ap_driving_mode(const struct driving *d)
{
	return d->recursion_only ? AP_RECURSION : ap_choose_engine(d->rq)->name;
}

/* What is not exact proves nothing: where it found nothing that fits, an exact engine has to. */
enum ap_status ap_find_proof(struct driving *d)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");
	struct ap_chosen *c = &d->chosen;

	if (ap_rival_fits(&d->rivals) || ap_ctx_stopped(d->ctx))
		return AP_OK;
	AP_TRY(ap_choose(d->ctx, d->rq, exact, d->fixed, &d->hints, c));
	note_work(d, c);
	if (c->choice.outcome == AP_OUT_INFEASIBLE)
		return ap_choose_infeasible(d->ctx, d->rq, &c->choice);
	if (!ap_chosen_any(c))
		return AP_OK;
	ap_diag_add(d->ctx->diag, AP_NOTE, AP_OK, NULL, "mode-fits",
		"%s found no plan that fits the memory; the plan is one of %s", ap_driving_mode(d),
		exact->name);
	ap_rival_add(&d->rivals, NULL, ap_chosen_counts(d->ctx, c->table, c->choice.pick));
	return AP_OK;
}

/* Nothing that was found fits, and nothing was proven: what needs little memory. */
enum ap_status ap_find_lean(struct driving *d)
{
	struct ap_plan p;

	if (ap_rival_fits(&d->rivals))
		return AP_OK;
	ap_ctx_phase(d->ctx, "searching for little memory");
	if (ap_plan_lean(d->ctx, d->rq, NULL, &p))
		ap_rival_add(&d->rivals, NULL, ap_plan_counts(d->ctx, &p));
	return AP_OK;
}
