/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/alternatives.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "drive/fit.h"
#include "elim/marginal.h"
#include "plan/make.h"
#include "search/compact.h"

struct telling {
	struct ap_ctx *ctx;
	const struct ap_alternatives_job *job;
	const int32_t *const *fixed; /* by graph and request; NULL: none */
	const struct ap_table *t; /* with all cuts of the wanted operators */
	struct ap_problem p; /* of t, at the report's charge */
	struct ap_marginals m;
	const int32_t *const *counts; /* of the plan */
	struct ap_plan_maker *maker;
	struct ap_arena *sketches; /* of one plan at a time */
	struct ap_alternatives_report *out;
};

/* Takes the charge by which the plan loses least against the optimum; of equal ones the first. Searches
 * within the memory know the usual one. */
static bool choose_charge(struct telling *x)
{
	const bool *none = AP_NEW_N(x->ctx->scratch, bool, x->t->graph->nnode);
	double least = INFINITY;

	for (int k = 0; k < (x->job->prove ? AP_CHARGE_USUAL + 1 : AP_CHARGE_COUNT); k++) {
		struct ap_problem p = ap_charged_problem(x->ctx, x->t, (enum ap_charge)k);
		double plan_s = ap_charged_objective_s(x->job->plan, (enum ap_charge)k), loss;

		if (k > 0 && plan_s == x->job->plan->search.objective_s)
			continue; /* it charges nothing more */
		if (!ap_marginals_make(x->ctx, &p, none, &x->job->rq->budget, &x->m))
			return false;
		x->out->work += x->m.work;
		loss = x->m.least > 0 ? plan_s / x->m.least - 1 : 0;
		if (loss >= least)
			continue;
		least = loss;
		x->p = p;
		x->out->charge = (enum ap_charge)k;
		x->out->plan_s = plan_s;
		x->out->least_s = x->m.least;
	}
	if (!ap_marginals_make(x->ctx, &x->p, x->job->wanted, &x->job->rq->budget, &x->m))
		return false;
	x->out->work += x->m.work;
	return true;
}

/* Solves without the memory limit, of one node with one candidate only; node AP_NONE: of all. */
static void solve_with(struct telling *x, ap_id node, uint32_t candidate, struct ap_choice *c)
{
	struct ap_mark mark = ap_arena_mark(x->ctx->scratch);
	struct ap_domain *domain = ap_domain_all(x->ctx, &x->p);
	struct ap_budget budget = x->job->rq->budget;

	*c = (struct ap_choice){.outcome = AP_OUT_INFEASIBLE};
	budget.start[0] = budget.start[1] = NULL;
	budget.gap = AP_ANY_OPTIMUM;
	if (node != AP_NONE) {
		domain[node].n = 1;
		domain[node].c[0] = candidate;
	}
	if (!ap_domain_empty(&x->p, domain))
		ap_engine_solve_within(x->ctx, ap_engine_of_parts(), &x->p, domain, &budget, c);
	x->out->work += c->work;
	ap_arena_release(x->ctx->scratch, mark);
}

static bool fits(const struct telling *x, const uint32_t *pick)
{
	return ap_fit_need_bytes(x->ctx, x->t, pick) <= ap_choose_limit_bytes(x->job->rq);
}

static int64_t most_of(const int64_t *memory, size_t n)
{
	int64_t most = 0;

	for (size_t i = 0; memory && i < n; i++)
		most = memory[i] > most ? memory[i] : most;
	return most;
}

/* Is there memory for any plan at all? O(table). */
static bool is_roomy(const struct telling *x)
{
	const struct ap_problem *p = &x->p;
	int64_t left = ap_choose_limit_bytes(x->job->rq), temporary = 0;

	for (uint32_t i = 0; i < p->n && left >= 0; i++) {
		int64_t own = most_of(x->t->cls[x->t->class_of[i]].temporary, p->node[i].k);

		left -= most_of(p->node[i].memory, p->node[i].k);
		temporary = own > temporary ? own : temporary;
	}
	for (uint32_t e = 0; e < p->nedge && left >= 0; e++) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[e].matrix];

		left -= most_of(m->memory, (size_t)m->rows * m->cols);
	}
	return left >= temporary;
}

static bool same_counts(const struct telling *x, ap_id node, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, x->t->graph->node[node].bound.nfactor * sizeof *a) == 0;
}

/* Simulates the plan of rows, and lets the alternative have it if it fits better or is faster. */
static void simulate(struct telling *x, const int32_t *const *row, struct ap_alternative *a)
{
	struct ap_mark mark = ap_arena_mark(x->sketches);
	int64_t capacity = x->job->rq->capacity_bytes;
	struct ap_plan p;
	bool fits;

	ap_plan_sketch_in(x->maker, x->sketches, row, &p);
	fits = p.prediction.memory.total <= capacity;
	if (!(a->step_s > 0) || (fits && !a->fits) ||
		(fits == a->fits && p.prediction.step_time_s < a->step_s)) {
		a->step_s = p.prediction.step_time_s;
		a->memory_bytes = p.prediction.memory.total;
		a->fits = fits;
		a->nchange = 0;
		for (ap_id i = 0; i < x->t->graph->nnode; i++)
			a->nchange += !same_counts(x, i, row[i], x->counts[i]);
	}
	ap_arena_release(x->sketches, mark);
}

/* The best sum within the memory with that cut; memory_bytes is not its own. */
static enum ap_status search_within(struct telling *x, ap_id node, struct ap_alternative *a)
{
	const struct ap_request *rq = x->job->rq;
	const int32_t **fixed = AP_NEW_N(x->ctx->arena, const int32_t *, rq->graph->nnode);
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	struct ap_chosen c;
	ap_id at;

	if (x->fixed)
		memcpy(fixed, x->fixed, rq->graph->nnode * sizeof *fixed);
	fixed[node] = a->count;
	if (ap_plan_conflict(&quiet, rq->graph, rq->machine->ndev, fixed, &at))
		return AP_OK;
	AP_TRY(ap_choose(&quiet, rq, ap_choose_engine(rq), fixed, &(struct ap_hints){.limit_binds =
		true}, &c));
	x->out->work += c.choice.work;
	if (c.choice.outcome == AP_OUT_INFEASIBLE)
		a->sum_s = INFINITY;
	else
		a->sum_s = fmax(a->sum_s, c.choice.lower_bound);
	a->exact = c.choice.outcome == AP_OUT_OPTIMAL || c.choice.outcome == AP_OUT_INFEASIBLE;
	if (ap_choice_any(&c.choice))
		simulate(x, ap_chosen_counts(x->ctx, c.table, c.choice.pick), a);
	return AP_OK;
}

/* Makes the plan with the best sum, and the plan in which nothing but this operator changes. */
static enum ap_status tell_steps(struct telling *x, ap_id node, uint32_t candidate, struct ap_alternative *a)
{
	const int32_t **alone = AP_NEW_N(x->ctx->arena, const int32_t *, x->t->graph->nnode);
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	struct ap_choice c;
	ap_id at;

	solve_with(x, node, candidate, &c);
	if (ap_ctx_stopped(x->ctx))
		return AP_STOPPED;
	if (ap_choice_any(&c)) {
		assert(c.outcome != AP_OUT_OPTIMAL || c.cost == a->sum_s);
		a->exact = a->exact || (c.outcome == AP_OUT_OPTIMAL && fits(x, c.pick));
		simulate(x, ap_chosen_counts(x->ctx, x->t, c.pick), a);
	}
	memcpy(alone, x->counts, x->t->graph->nnode * sizeof *alone);
	alone[node] = a->count;
	if (!ap_plan_conflict(&quiet, x->t->graph, x->job->rq->machine->ndev, alone, &at))
		simulate(x, alone, a);
	return !a->exact && x->job->prove ? search_within(x, node, a) : AP_OK;
}

struct ranked {
	struct ap_alternative a;
	uint32_t candidate;
};

static int by_sum(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->a.sum_s != y->a.sum_s)
		return x->a.sum_s < y->a.sum_s ? -1 : 1;
	if (x->a.taken != y->a.taken)
		return x->a.taken ? -1 : 1;
	return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

static enum ap_status tell_node(struct telling *x, ap_id node, bool roomy, struct ap_alternatives *out)
{
	const struct ap_pnode *pn = &x->p.node[node];
	struct ranked *r = AP_NEW_N(x->ctx->scratch, struct ranked, pn->k);
	struct ap_alternative *v = AP_NEW_N(x->ctx->arena, struct ap_alternative, pn->k);
	uint32_t simulated = 0;

	for (uint32_t c = 0; c < pn->k; c++) {
		const int32_t *count = ap_table_counts(x->t, node, c);

		r[c] = (struct ranked){.candidate = c, .a = {.count = count, .own_s = pn->cost[c],
			.sum_s = x->m.of[node][c], .exact = roomy || x->m.of[node][c] == INFINITY,
			.taken = same_counts(x, node, count, x->counts[node])}};
	}
	qsort(r, pn->k, sizeof *r, by_sum);
	*out = (struct ap_alternatives){.node = node, .n = pn->k, .v = v, .taken = pn->k};
	for (uint32_t i = 0; i < pn->k; i++) {
		struct ap_alternative *a = &r[i].a;

		if (a->taken) {
			a->step_s = x->job->plan->prediction.step_time_s;
			a->memory_bytes = x->job->plan->prediction.memory.total;
			a->fits = a->memory_bytes <= x->job->rq->capacity_bytes;
		} else if (simulated < x->job->nsimulated && a->sum_s < INFINITY) {
			AP_TRY(tell_steps(x, node, r[i].candidate, a));
			simulated++;
		}
	}
	qsort(r, pn->k, sizeof *r, by_sum); /* those that were proven may be more */
	for (uint32_t i = 0; i < pn->k; i++) {
		v[i] = r[i].a;
		out->taken = v[i].taken ? i : out->taken;
	}
	return AP_OK;
}

static enum ap_status tell_all(struct telling *x)
{
	struct ap_alternatives *of = AP_NEW_N(x->ctx->arena, struct ap_alternatives, x->t->graph->nnode);
	bool roomy = is_roomy(x);
	struct ap_choice c;

	solve_with(x, AP_NONE, 0, &c);
	x->out->binds = ap_choice_any(&c) && !fits(x, c.pick);
	for (ap_id i = 0; i < x->t->graph->nnode; i++) {
		struct ap_mark mark = ap_arena_mark(x->ctx->scratch);

		if (!x->job->wanted[i])
			continue;
		AP_TRY(tell_node(x, i, roomy, &of[x->out->n++]));
		ap_arena_release(x->ctx->scratch, mark);
	}
	x->out->of = of;
	return AP_OK;
}

enum ap_status ap_alternatives_make(struct ap_ctx *ctx, const struct ap_alternatives_job *job,
	struct ap_alternatives_report *out)
{
	const struct ap_request *rq = job->rq;
	struct telling x = {.ctx = ctx, .job = job, .out = out, .counts = ap_plan_counts(ctx, job->plan)};
	struct ap_ctx quiet = ap_diag_apart(ctx);
	enum ap_status st;

	*out = (struct ap_alternatives_report){0};
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &x.fixed));
	st = ap_choose_table(&quiet, rq, x.fixed, false, &x.t);
	if (st == AP_LIMIT)
		out->unknown = "a table of all cuts would take more than --work-limit or "
		"--planner-memory allows";
	if (st != AP_OK)
		return st == AP_LIMIT ? AP_OK : st;
	x.t = ap_table_whole(ctx, x.t, job->wanted);
	if (!x.t || ap_ctx_stopped(ctx))
		return AP_STOPPED;
	if (!choose_charge(&x)) {
		out->unknown = "an elimination of the whole table would take more than --work-limit or "
			"--planner-memory allows";
		return ap_ctx_stopped(ctx) ? AP_STOPPED : AP_OK;
	}
	x.sketches = ap_arena_create_like(ctx->arena);
	x.maker = ap_plan_maker_create(ctx, rq->graph, rq->machine, rq->step, rq->capacity_bytes);
	st = tell_all(&x);
	ap_arena_destroy(x.sketches);
	return st;
}
