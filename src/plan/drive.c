/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/drive.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "plan/fit.h"
#include "plan/pins.h"

#define AUTO_ENGINE "dynamic_programming"
#define POOR 1.5 /* times the bound: a plan of little memory may well be better */

static const struct ap_engine *engine_of(const struct ap_request *rq)
{
	return ap_engine_find(strcmp(rq->search_mode, "auto") == 0 ? AUTO_ENGINE : rq->search_mode);
}

/* What the plan itself may use of a device. */
static int64_t limit_of(const struct ap_request *rq)
{
	const struct ap_software *sw = rq->step->software;
	int64_t taken = sw ? sw->context_bytes : 0;

	if (sw && rq->machine->ndev > 1)
		taken += sw->comm_buffer_bytes;
	return rq->capacity_bytes - taken;
}

static enum ap_status make_table(struct ap_ctx *ctx, const struct ap_request *rq, bool by_memory,
	const int32_t *const *fixed, const struct ap_table **out)
{
	struct ap_table_params params = {.prune = rq->prune, .by_memory = by_memory, .fixed = fixed,
		.budget_bytes = rq->budget.table_bytes};

	return ap_table_make(ctx, rq->graph, rq->machine, rq->step, &params, out);
}

enum ap_status ap_drive_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_problem **out)
{
	const int32_t *const *fixed;
	const struct ap_table *t;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, NULL, &fixed));
	AP_TRY(make_table(ctx, rq, false, fixed, &t));
	*out = t->problem;
	return AP_OK;
}

static bool found(const struct ap_choice *c)
{
	return c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_FEASIBLE;
}

/* Where nothing or little was found: a plan of little memory, from either table. */
static void fall_back(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *plain,
	const struct ap_table **table, struct ap_choice *c)
{
	struct ap_choice other = {.outcome = AP_OUT_LIMIT, .lower_bound = c->lower_bound};

	if (found(c) && c->cost <= POOR * c->lower_bound)
		return;
	ap_fit_lean(ctx, *table, engine_of(rq), limit_of(rq), c);
	if (*table == plain || !ap_fit_lean(ctx, plain, engine_of(rq), limit_of(rq), &other) ||
		(found(c) && c->cost <= other.cost))
		return;
	other.work += c->work;
	*c = other;
	*table = plain;
}

/*
 * First without the memory limit: when that optimum fits, it is the answer. Else again on a table
 * that was pruned with an eye on memory. Where the search is stopped or spent before it found a plan
 * that fits, one of little memory is better than none.
 */
static enum ap_status choose(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_table **table, struct ap_choice *c)
{
	const struct ap_engine *engine = engine_of(rq);
	struct ap_budget budget = rq->budget;
	const struct ap_table *plain;
	int64_t limit = limit_of(rq);

	AP_TRY(make_table(ctx, rq, false, fixed, table));
	engine->solve(ctx, (*table)->problem, &rq->budget, c);
	if (c->outcome == AP_OUT_INFEASIBLE)
		return AP_OK;
	if (found(c) && c->memory + ap_fit_temporary_bytes(*table, c->pick) <= limit)
		return AP_OK;
	if (ap_ctx_stopped(ctx)) {
		c->outcome = AP_OUT_LIMIT;
		fall_back(ctx, rq, *table, table, c);
		return AP_OK;
	}
	plain = *table;
	if (budget.work > 0)
		budget.work = budget.work > c->work ? budget.work - c->work : 1;
	AP_TRY(make_table(ctx, rq, true, fixed, table));
	ap_fit(ctx, *table, engine, &budget, limit, c);
	if (c->outcome != AP_OUT_INFEASIBLE)
		fall_back(ctx, rq, plain, table, c);
	return AP_OK;
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

static const int32_t *const *counts_of(struct ap_ctx *ctx, const struct ap_table *t,
	const uint32_t *pick)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, t->graph->nnode);

	for (ap_id i = 0; i < t->graph->nnode; i++)
		counts[i] = ap_table_counts(t, i, pick[i]);
	return counts;
}

static enum ap_status infeasible(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_choice *c)
{
	const struct ap_step *step = rq->step;
	uint32_t ndev = rq->machine->ndev;
	bool shards = ndev > 1 && step->training && !step->optimizer_sharding;
	char need[32], have[32], lack[32];
	int64_t taken = rq->capacity_bytes - limit_of(rq), least = c->least_memory + taken;

	if (c->least_memory < 0)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "infeasible",
			"no strategy fits: the operators that share a parameter, and what is given for "
			"them, have no cut in common");
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"no strategy fits the memory: at least %s are needed on %s%u device%s, %s are usable, "
		"%s are short; more devices,%s more --micro-batches or a smaller --batch would help",
		ap_format_bytes(least, need), ndev > 1 ? "each of " : "", ndev, ndev > 1 ? "s" : "",
		ap_format_bytes(rq->capacity_bytes, have),
		ap_format_bytes(least - rq->capacity_bytes, lack),
		shards ? " --enable-parallel-optimizer," : "");
}

static void state(const struct ap_choice *c, bool stopped, struct ap_plan *p)
{
	struct ap_search_info *s = &p->search;

	s->mode = c->engine;
	s->lower_bound_s = c->lower_bound;
	s->gap = s->lower_bound_s > 0 ? s->objective_s / s->lower_bound_s - 1 : 0;
	s->work = c->work;
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

/*
 * A second opinion: the objective takes a fixed part of the gradient exchange for hidden, which a
 * network with little to hide it behind does not do. The best choice without that assumption, as a
 * plan; NULL when none was found, or it does not fit.
 */
static struct ap_plan *cautious(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_table *t)
{
	struct ap_problem p = exposed_problem(ctx, t);
	struct ap_choice c = {0};
	struct ap_plan *plan;

	engine_of(rq)->solve(ctx, &p, &rq->budget, &c);
	if (!found(&c) ||
		ap_problem_memory(t->problem, c.pick) + ap_fit_temporary_bytes(t, c.pick) >
			limit_of(rq))
		return NULL;
	plan = AP_NEW(ctx->arena, struct ap_plan);
	ap_plan_make(ctx, rq->graph, rq->machine, rq->step, counts_of(ctx, t, c.pick),
		rq->capacity_bytes, plan);
	return plan;
}

static bool is_faster(const struct ap_plan *a, const struct ap_plan *b)
{
	return a->prediction.step_time_s < b->prediction.step_time_s;
}

/* The data-parallel plan; NULL and an entry that says why when there is none. */
static struct ap_plan *data_parallel(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, struct ap_baseline *b)
{
	struct ap_plan *p;
	const int32_t *const *counts;

	*b = (struct ap_baseline){.name = "data parallel"};
	counts = ap_baseline_data_parallel(ctx, rq->graph, rq->machine->ndev, rq->step, &b->why_not);
	if (counts && !ap_pins_hold(rq->graph, fixed, counts)) {
		b->why_not = "an in_strategy of the graph says otherwise";
		return NULL;
	}
	if (!counts)
		return NULL;
	p = AP_NEW(ctx->arena, struct ap_plan);
	ap_plan_make(ctx, rq->graph, rq->machine, rq->step, counts, rq->capacity_bytes, p);
	b->applicable = true;
	b->step_time_s = p->prediction.step_time_s;
	b->memory_bytes = p->prediction.memory.total;
	b->fits = b->memory_bytes <= rq->capacity_bytes;
	return p;
}

/* The search's choice, the cautious one and data parallel are compared by simulation, the authority on
 * time. */
static enum ap_status finish(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_table *t, struct ap_choice *c,
	struct ap_plan *out)
{
	struct ap_baseline *b = AP_NEW(ctx->arena, struct ap_baseline);
	struct ap_plan *dp = data_parallel(ctx, rq, fixed, b);
	bool stopped = ap_ctx_stopped(ctx) && c->outcome != AP_OUT_OPTIMAL;
	struct ap_plan *second = c->outcome == AP_OUT_OPTIMAL && !ap_ctx_stopped(ctx)
		? cautious(ctx, rq, t)
		: NULL;

	if (found(c))
		ap_plan_make(ctx, rq->graph, rq->machine, rq->step, counts_of(ctx, t, c->pick),
			rq->capacity_bytes, out);
	else if (!dp || !b->fits)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			stopped ? "stopped before any plan was found"
				: "the work limit was hit before any plan was found; raise "
				  "--work-limit or --planner-memory");
	if (second && is_faster(second, out))
		*out = *second;
	if (dp && b->fits && (!found(c) || is_faster(dp, out)))
		*out = *dp;
	mark_fixed(ctx, fixed, out);
	state(c, stopped, out);
	out->nbaseline = 1;
	out->baseline = b;
	out->nsetting = rq->nsetting;
	out->setting = rq->setting;
	AP_TRY(ap_verify(ctx, out));
	return stopped ? AP_STOPPED : AP_OK;
}

enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_plan *out,
	const struct ap_problem **problem)
{
	const int32_t *const *fixed;
	struct ap_choice c = {0};
	const struct ap_table *t;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, NULL, &fixed));
	AP_TRY(choose(ctx, rq, fixed, &t, &c));
	if (problem)
		*problem = t->problem;
	if (c.outcome == AP_OUT_INFEASIBLE)
		return infeasible(ctx, rq, &c);
	return finish(ctx, rq, fixed, t, &c, out);
}

static enum ap_status complete(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, const int32_t *const **counts)
{
	const struct ap_table *t;
	struct ap_choice c = {0};

	AP_TRY(make_table(ctx, rq, false, fixed, &t));
	engine_of(rq)->solve(ctx, t->problem, &rq->budget, &c);
	if (c.outcome == AP_OUT_INFEASIBLE)
		return infeasible(ctx, rq, &c);
	if (!found(&c))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"a limit was hit before the strategy was completed");
	*counts = counts_of(ctx, t, c.pick);
	return AP_OK;
}

enum ap_status ap_drive_evaluate(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, struct ap_plan *out)
{
	struct ap_baseline *b = AP_NEW(ctx->arena, struct ap_baseline);
	const int32_t *const *counts = NULL;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, fixed, &fixed));
	AP_TRY(complete(ctx, rq, fixed, &counts));
	ap_plan_make(ctx, rq->graph, rq->machine, rq->step, counts, rq->capacity_bytes, out);
	mark_fixed(ctx, fixed, out);
	data_parallel(ctx, rq, NULL, b);
	out->search.mode = "given";
	out->search.status = AP_PLAN_GIVEN;
	out->search.complete = true;
	out->search.lower_bound_s = 0;
	out->nbaseline = 1;
	out->baseline = b;
	out->nsetting = rq->nsetting;
	out->setting = rq->setting;
	return ap_verify(ctx, out);
}
