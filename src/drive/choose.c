/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/choose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "drive/fit.h"

#define POOR 1.5 /* times the bound: a low-memory plan may well be better */

const struct ap_engine *ap_choose_engine(const struct ap_request *rq)
{
	return ap_engine_find(rq->search_mode);
}

int64_t ap_choose_limit_bytes(const struct ap_request *rq)
{
	const struct ap_software *sw = rq->step->software;
	int64_t taken = sw ? sw->context_bytes : 0;

	if (sw && rq->machine->total > 1)
		taken += sw->comm_buffer_bytes;
	return rq->capacity_bytes - taken;
}

int64_t ap_choose_sum_bytes(const struct ap_request *rq)
{
	int64_t sum = AP_NO_LIMIT;

	(void)ap_mul(ap_choose_limit_bytes(rq), rq->machine->nstage, &sum);
	return sum;
}

enum ap_status ap_choose_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, bool by_memory, const struct ap_table **out)
{
	struct ap_table_params params = {.prune = rq->prune, .fixed = fixed, .by_memory = by_memory,
		.budget_bytes = rq->budget.table_bytes, .work = rq->budget.work};

	return ap_table_make(ctx, rq->graph, rq->machine, rq->step, &params, out);
}

const int32_t *const *ap_chosen_counts(struct ap_ctx *ctx, const struct ap_table *t,
	const uint32_t *pick)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, t->graph->nnode);

	for (ap_id i = 0; i < t->graph->nnode; i++)
		counts[i] = ap_table_counts(t, i, pick[i]);
	return counts;
}

static bool fits(struct ap_ctx *ctx, const struct ap_chosen *c, int64_t limit)
{
	return ap_fit_need_bytes(ctx, c->table, c->choice.pick) <= limit;
}

/* The candidate of node i with these counts; the cheapest one if it was pruned. */
static uint32_t candidate_of(const struct ap_table *t, ap_id i, const int32_t *count)
{
	const struct ap_table_class *cls = &t->cls[t->class_of[i]];
	uint32_t best = 0;

	for (uint32_t c = 0; c < cls->k; c++) {
		if (memcmp(cls->count + (size_t)c * cls->nfactor, count,
			    cls->nfactor * sizeof *count) == 0)
			return c;
		if (cls->cost[c] < cls->cost[best])
			best = c;
	}
	return best;
}

static const uint32_t *start_of(struct ap_ctx *ctx, const struct ap_table *t,
	const int32_t *const *counts)
{
	uint32_t *pick;

	if (!counts)
		return NULL;
	pick = AP_NEW_N(ctx->arena, uint32_t, t->graph->nnode);
	for (ap_id i = 0; i < t->graph->nnode; i++)
		pick[i] = candidate_of(t, i, counts[i]);
	return pick;
}

/* If no choice or a poor one was found, tries a low-memory choice from either table. */
static void fall_back(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const struct ap_table *plain, struct ap_chosen *c)
{
	struct ap_choice other = {.outcome = AP_OUT_LIMIT, .lower_bound = c->choice.lower_bound};
	int64_t limit = ap_choose_limit_bytes(rq);

	if (ap_choice_any(&c->choice) && c->choice.cost <= POOR * c->choice.lower_bound)
		return;
	ap_ctx_phase(ctx, "searching for little memory");
	ap_fit_lean(ctx, c->table, engine, limit, &c->choice);
	if (c->table == plain || !ap_fit_lean(ctx, plain, engine, limit, &other) ||
		(ap_choice_any(&c->choice) && c->choice.cost <= other.cost))
		return;
	other.work += c->choice.work;
	c->choice = other;
	c->table = plain;
}

/* Applies a bound of all choices, which a search within the memory does not know. */
static void raise_bound(struct ap_choice *c, double bound)
{
	if (c->outcome == AP_OUT_INFEASIBLE || bound <= c->lower_bound)
		return;
	c->lower_bound = bound;
	if (c->outcome == AP_OUT_FEASIBLE && c->cost <= bound)
		c->outcome = AP_OUT_OPTIMAL;
}

/* Chooses within the memory, on a table pruned by cost and memory. */
static void choose_limited(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const struct ap_hints *hints, struct ap_chosen *c)
{
	struct ap_tables *made = hints ? hints->tables : NULL;
	const int32_t *const *start = hints ? hints->start : NULL;
	const struct ap_table *plain = c->table;
	struct ap_budget budget = rq->budget;
	double bound = c->choice.lower_bound; /* without the limit */

	if (budget.work > 0)
		budget.work = budget.work > c->choice.work ? budget.work - c->choice.work : 1;
	c->table = made && made->lean ? made->lean : ap_table_by_memory(ctx, plain);
	if (made)
		made->lean = c->table;
	if (!c->table) {
		c->table = plain;
		c->choice.outcome = AP_OUT_LIMIT;
		return;
	}
	budget.start[0] = start_of(ctx, c->table, start);
	ap_ctx_phase(ctx, "searching within the memory");
	ap_fit_staged(ctx, c->table, engine, &budget, ap_choose_limit_bytes(rq), true, &c->choice);
	raise_bound(&c->choice, bound);
	if (c->choice.outcome != AP_OUT_INFEASIBLE && !(start && ap_ctx_stopped(ctx)) &&
		!(hints && hints->fits))
		fall_back(ctx, rq, engine, plain, c);
}

/* Chooses without the memory limit. Returns true if that is the answer. */
static bool choose_unlimited(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *start, struct ap_chosen *c)
{
	struct ap_budget budget = rq->budget;

	budget.start[0] = start_of(ctx, c->table, start);
	ap_ctx_phase(ctx, "searching");
	engine->solve(ctx, c->table->problem, &budget, &c->choice);
	if (c->choice.outcome == AP_OUT_INFEASIBLE)
		return true;
	if (ap_choice_any(&c->choice) && fits(ctx, c, ap_choose_limit_bytes(rq)))
		return true;
	if (engine->flags & AP_ENGINE_MEMORY && !ap_ctx_stopped(ctx))
		return false;
	c->choice.outcome = AP_OUT_LIMIT;
	return true;
}

/* The operators' minimum is too much already: finds only the memory needed. */
static void choose_none(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_engine *engine,
	struct ap_chosen *c)
{
	const struct ap_table *lean = ap_table_by_memory(ctx, c->table);

	ap_ctx_phase(ctx, "searching for the least memory");
	c->choice.outcome = AP_OUT_INFEASIBLE;
	c->choice.least_memory = c->table->least_bytes;
	if (!lean)
		return;
	c->table = lean;
	c->choice.least_memory = ap_fit_least_bytes(ctx, lean, engine, &rq->budget,
			&c->choice.work);
}

static bool expects_limit(const struct ap_engine *engine, const struct ap_hints *hints)
{
	return hints && hints->limit_binds && engine->flags & AP_ENGINE_MEMORY;
}

enum ap_status ap_choose_tables(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_tables *out)
{
	*out = (struct ap_tables){0};
	out->st = ap_choose_table(ctx, rq, fixed, expects_limit(engine, hints), &out->plain);
	return out->st == AP_LIMIT || out->st == AP_STOPPED ? AP_OK : out->st;
}

/*
 * First without the memory limit, unless the hints expect it to bind: if that optimum fits, it is
 * the answer. If the search is stopped or spent before it found a plan that fits, a low-memory plan
 * is better than none.
 */
static enum ap_status choose(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_chosen *c, int64_t *least_bytes)
{
	const int32_t *const *start = hints ? hints->start : NULL;
	struct ap_tables own, *made = hints && hints->tables ? hints->tables : &own;

	if (start && ap_ctx_stopped(ctx))
		return AP_OK;
	if (hints && hints->wider && fixed)
		c->table = ap_table_narrow(ctx, hints->wider, fixed);
	if (!c->table) {
		if (made == &own) {
			AP_TRY(ap_choose_tables(ctx, rq, engine, fixed, hints, made));
			c->priced = made->st == AP_STOPPED ? 0 : made->plain->work;
		}
		if (made->st == AP_LIMIT) {
			c->choice.lower_bound = made->plain->least_s;
			*least_bytes = made->plain->least_bytes;
			c->choice.ended = made->plain->lacks_memory ? AP_ENDED_MEMORY : AP_ENDED_WORK;
		}
		if (made->st != AP_OK)
			return AP_OK;
		c->table = made->plain;
	}
	*least_bytes = c->table->least_bytes;
	if (*least_bytes > ap_choose_limit_bytes(rq) && engine->flags & AP_ENGINE_EXACT) {
		choose_none(ctx, rq, engine, c);
		return AP_OK;
	}
	if (!expects_limit(engine, hints) && choose_unlimited(ctx, rq, engine, start, c)) {
		if (ap_ctx_stopped(ctx) && !ap_choice_any(&c->choice) && !start)
			fall_back(ctx, rq, engine, c->table, c);
		return AP_OK;
	}
	choose_limited(ctx, rq, engine, hints, c);
	return AP_OK;
}

/* The operators' minimum may prove that nothing fits although no search has finished, or be a
 * better bound of the memory needed. */
static void conclude(struct ap_choice *c, int64_t least_bytes, int64_t limit)
{
	if (least_bytes <= limit || ap_choice_any(c) ||
		(c->outcome == AP_OUT_INFEASIBLE && c->least_memory < 0))
		return;
	if (c->outcome != AP_OUT_INFEASIBLE || c->least_memory < least_bytes)
		c->least_memory = least_bytes;
	c->outcome = AP_OUT_INFEASIBLE;
}

enum ap_status ap_choose(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_chosen *c)
{
	int64_t least_bytes = -1;

	*c = (struct ap_chosen){.choice.outcome = AP_OUT_LIMIT, .choice.engine = engine->name,
		.choice.least_memory = -1};
	AP_TRY(choose(ctx, rq, engine, fixed, hints, c, &least_bytes));
	conclude(&c->choice, least_bytes, ap_choose_limit_bytes(rq));
	return AP_OK;
}

int64_t ap_choose_least_bytes(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, uint64_t *work)
{
	struct ap_request unpriced = *rq;
	const struct ap_table *t;

	unpriced.budget.table_bytes = 1;
	if (ap_choose_table(ctx, &unpriced, fixed, true, &t) != AP_LIMIT)
		return -1; /* fewer than two operators, or stopped */
	*work += t->work;
	return t->least_bytes;
}

enum ap_status ap_choose_infeasible(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_choice *c)
{
	uint32_t ndev = rq->machine->ndev, nstage = rq->machine->nstage;
	char need[32], have[32], lack[32], where[64];
	int64_t taken = rq->capacity_bytes - ap_choose_limit_bytes(rq);
	int64_t least = c->least_memory + taken;
	enum ap_status st;

	if (c->least_memory < 0)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "infeasible",
			"no strategy fits: the operators that share a parameter%s, and what is given for "
			"them, have no cut in common", rq->step->follow
				? ", or that elementwise_op_strategy_follow ties" : "");
	snprintf(where, sizeof where, "%s%" PRIu32 " device%s%s", ndev > 1 ? "each of " : "", ndev,
		ndev > 1 ? "s" : "", nstage > 1 ? " of a pipeline stage" : "");
	if (rq->machine->part)
		snprintf(where, sizeof where, "each device of a pipeline stage");
	st = ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"no strategy fits the memory: at least %s are needed on %s, %s are usable, %s are short",
		ap_format_bytes(least, need), where, ap_format_bytes(rq->capacity_bytes, have),
		ap_format_bytes(least - rq->capacity_bytes, lack));
	ap_diag_figure(ctx->diag, "needed_bytes", least);
	ap_diag_figure(ctx->diag, "usable_bytes", rq->capacity_bytes);
	ap_diag_figure(ctx->diag, "short_bytes", least - rq->capacity_bytes);
	return st;
}
