/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact variable elimination: drops what cannot win (in a large problem what sweeps prove dearer
 * than a known pick, drop_dear.h; then what is dominated, drop_dominated.h), plans the elimination,
 * evaluates it, and reads off the lexicographically smallest optimum. If that pick breaks a memory
 * limit: memory_limit.h.
 */
#include "elim/dp.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/elim_eval.h"
#include "elim/memory_limit.h"
#include "elim/support.h"
#include "problem/problem.h"
#include "search/compact.h"
#include "search/engines.h"
#include "search/polish.h"
#include "search/drop_dominated.h"
#include "search/drop_dear.h"
#include "search/sweep.h"
#include "search/tied.h"

enum { POLISH_PASSES = 100, HASTY_PASSES = 2, BYTES_PER_TUPLE = 64 };
enum { PRUNE_GAIN = 32, PRUNE_PART = 8, EVALUATIONS = 4 };
enum { SIFT_GAIN = 16, SIFT_PART = 8 };
enum { WIDE_SWEEPS = 4096, WIDE_LEAST = 1 << 24 }; /* work that sweeps are nothing beside */

struct dp {
	struct ap_ctx *ctx;
	const struct ap_problem *whole;
	const struct ap_budget *budget;
	const struct ap_dp_options *options;
	struct ap_choice *out;
	const struct ap_compact *compact;
	const struct ap_problem *p; /* of compact */
	const struct ap_elim *elim;
	const double **value;
	double least; /* cost of p, or a lower bound */
	enum ap_ended lack; /* what kept it from a proof */
	struct ap_sifted sifted; /* of whole; domain is NULL if not sifted */
};

static void answer_infeasible(struct dp *d, int64_t least_memory)
{
	d->out->outcome = AP_OUT_INFEASIBLE;
	d->out->lower_bound = INFINITY;
	d->out->least_memory = least_memory;
}

/* Takes over what sifting found if elimination found less. The smallest optimum stays. */
static void better_of_sifted(const struct dp *d, double *bound, uint32_t *pick)
{
	*bound = fmax(*bound, d->sifted.bound);
	if (d->sifted.cost < ap_problem_cost(d->whole, pick))
		memcpy(pick, d->sifted.pick, d->whole->n * sizeof *pick);
}

/* Answers with a pick of the rest, if it is allowed, and a bound of the rest. */
static void answer(struct dp *d, const uint32_t *rest, double bound)
{
	uint32_t *pick = AP_NEW_N(d->ctx->arena, uint32_t, d->whole->n);
	double whole_bound = bound + d->compact->cost;
	ap_compact_expand(d->compact, d->whole, rest, pick);
	if (d->sifted.domain)
		better_of_sifted(d, &whole_bound, pick);
	if (ap_problem_cost(d->whole, pick) < INFINITY &&
		ap_problem_memory(d->whole, pick) <= d->whole->memory_limit)
		ap_choice_found(d->whole, pick, whole_bound, d->out);
	else
		d->out->lower_bound = whole_bound;
}

static void plan(struct dp *d)
{
	struct ap_elim_options options = {
		.table_bytes = ap_budget_bytes(d->budget),
		.work = d->budget->work,
		.by_memory = d->p->memory_limit != AP_NO_LIMIT,
		.whole = d->budget->whole,
		.no_share = d->options->no_share,
	};
	d->elim = ap_elim_plan(d->ctx, d->p, &options);
}

static bool worth_pruning(const struct dp *d)
{
	double price = ap_prune_price(d->p);
	double evaluations = d->p->memory_limit == AP_NO_LIMIT ? 1 : EVALUATIONS;
	if (d->options->prune != AP_DP_PRUNE_AUTO)
		return d->options->prune == AP_DP_PRUNE_ALWAYS;
	if (d->budget->work && price > (double)d->budget->work / PRUNE_PART)
		return false;
	return d->elim->split || evaluations * (double)d->elim->work > PRUNE_GAIN * price;
}

/* Sets compact and plans it. False: a node has no candidate left, and the answer is given. */
static bool prepare(struct dp *d, struct ap_domain *domain)
{
	if (ap_domain_empty(d->whole, domain)) {
		answer_infeasible(d, -1);
		return false;
	}
	d->compact = ap_compact_make(d->ctx, d->whole, domain);
	d->p = &d->compact->p;
	plan(d);
	return true;
}

/* Can sifting make the problem much easier? */
static bool worth_sifting(const struct dp *d)
{
	if (d->whole->memory_limit != AP_NO_LIMIT)
		return false;
	if (d->options->prune != AP_DP_PRUNE_AUTO)
		return d->options->prune == AP_DP_PRUNE_ALWAYS;
	return d->elim->split || (d->elim->work >= AP_LARGE_WORK &&
		(double)d->elim->work > SIFT_GAIN * ap_sweep_price(d->p));
}

/* The best of the starting picks and of a polished one. */
static uint32_t *some_pick(struct dp *d)
{
	uint32_t *best = AP_NEW_N(d->ctx->scratch, uint32_t, d->whole->n);
	ap_polish(d->ctx, d->whole, POLISH_PASSES, best);
	for (int i = 0; i < 2; i++) {
		const uint32_t *start = d->budget->start[i];
		if (start && ap_problem_cost(d->whole, start) < ap_problem_cost(d->whole, best))
			memcpy(best, start, d->whole->n * sizeof *best);
	}
	return best;
}

/* The domains after sifting; unchanged if no pick is known. */
static struct ap_domain *sift(struct dp *d, struct ap_domain *domain)
{
	uint64_t most = d->elim->split ? ap_budget_left(d->budget, 0) / 2 : d->elim->work / SIFT_PART;
	const uint32_t *pick = some_pick(d);
	if (!(ap_problem_cost(d->whole, pick) < INFINITY))
		return domain;
	ap_drop_dear(d->ctx, d->whole, pick, most, &d->sifted, &d->out->work);
	return d->sifted.domain;
}

static void solve_rest(struct ap_ctx *ctx, const void *user, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *out)
{
	ap_dp_solve_with(ctx, p, budget, user, out);
}

/* Answers by the table without its ties, if it has any. */
static bool answer_tied(struct dp *d)
{
	uint64_t work = d->out->work;

	if (!ap_tied_solve(d->ctx, d->whole, d->budget, solve_rest, d->options, d->out))
		return false;
	d->out->work += work;
	d->lack = d->out->ended;
	return true;
}

/* Plans the elimination of what is left; false: it is answered. */
static bool prepare_pruned(struct dp *d)
{
	struct ap_domain *domain = ap_domain_all(d->ctx, d->whole);
	if (!prepare(d, domain) || (d->elim->split && answer_tied(d)))
		return false;
	if (worth_sifting(d)) {
		domain = sift(d, domain);
		if (!prepare(d, domain))
			return false;
	}
	if (!worth_pruning(d))
		return true;
	ap_drop_dominated(d->ctx, d->whole, domain, &d->out->work);
	return prepare(d, domain);
}

/* The smallest optimum without a limit; of a split plan or with too many ties, some good pick. */
static uint32_t *unlimited_pick(struct dp *d)
{
	uint32_t *pick = AP_NEW_N(d->ctx->scratch, uint32_t, d->p->n);
	struct ap_mark mark = ap_arena_mark(d->ctx->scratch);
	const struct ap_support *s = NULL;
	if (!d->elim->split)
		s = ap_support_make(d->ctx, d->elim, d->value, d->least, d->least,
			ap_budget_bytes(d->budget) / BYTES_PER_TUPLE);
	if (s) {
		d->out->work += s->ntuple;
		ap_support_first(d->ctx, d->elim, s, pick);
	} else {
		ap_elim_pick(d->ctx, d->elim, d->value, pick);
	}
	ap_arena_release(d->ctx->scratch, mark);
	if (d->elim->split)
		ap_polish(d->ctx, d->p, POLISH_PASSES, pick);
	return pick;
}

/* A starting pick as one of the rest; a dropped candidate becomes the first one left. */
static const uint32_t *start_of(struct dp *d, const uint32_t *start)
{
	uint32_t *pick;
	if (!start)
		return NULL;
	pick = AP_NEW_N(d->ctx->scratch, uint32_t, d->p->n);
	ap_compact_narrow(d->compact, start, pick);
	ap_polish(d->ctx, d->p, HASTY_PASSES, pick);
	return pick;
}

static bool affordable(const struct dp *d)
{
	return d->elim->bytes <= (d->budget->table_bytes ? d->budget->table_bytes : SIZE_MAX) &&
		d->elim->work <= ap_budget_left(d->budget, d->out->work);
}

/* What a proof lacks if there will be none: work, or room for its tables or labels. */
static enum ap_ended lack_of(const struct dp *d)
{
	bool unaffordable = d->elim->work > ap_budget_left(d->budget, d->out->work);

	return d->elim->split ? (d->elim->work_splits ? AP_ENDED_WORK : AP_ENDED_MEMORY)
		: unaffordable ? AP_ENDED_WORK : AP_ENDED_MEMORY;
}

/* Is an elimination to be left to other engines if there are any? */
static bool is_wide(const struct dp *d)
{
	return d->elim->split || (d->p->memory_limit == AP_NO_LIMIT && d->elim->work >= WIDE_LEAST &&
		(double)d->elim->work > WIDE_SWEEPS * ap_sweep_price(d->p));
}

/* Answers with a quick pick: time or work ran out, or the table is too wide. */
static void answer_hastily(struct dp *d)
{
	uint32_t *rest = AP_NEW_N(d->ctx->scratch, uint32_t, d->p->n);

	ap_polish(d->ctx, d->p, HASTY_PASSES, rest);
	answer(d, rest, ap_bound_plain(d->ctx, d->p));
}

static void solve(struct dp *d)
{
	if (!prepare_pruned(d))
		return;
	d->lack = lack_of(d);
	if (d->budget->whole && is_wide(d)) {
		answer_hastily(d);
		d->out->ahead = d->elim->split ? 0 : d->elim->work;
		return;
	}
	d->value = ap_elim_room(d->ctx, d->elim);
	if (!affordable(d) || !ap_elim_eval(d->ctx, d->elim, d->p, d->value, &d->least)) {
		answer_hastily(d);
		return;
	}
	d->out->work += d->elim->work;
	if (!(d->least + d->compact->cost < INFINITY)) {
		answer_infeasible(d, -1);
		return;
	}
	const uint32_t *pick = unlimited_pick(d);
	if (ap_problem_memory(d->p, pick) <= d->p->memory_limit) {
		answer(d, pick, d->least);
	} else {
		struct ap_limited limited = {.work = d->out->work};
		struct ap_budget budget = *d->budget;

		for (int i = 0; i < 2; i++)
			budget.start[i] = start_of(d, d->budget->start[i]);
		ap_limit_solve(d->ctx, &(struct ap_limit_job){.p = d->p, .e = d->elim, .budget = &budget,
			.room = d->value, .least = d->least, .pick = pick}, &limited);
		d->out->work = limited.work;
		if (limited.infeasible)
			answer_infeasible(d, limited.least_memory + d->compact->memory);
		else
			answer(d, limited.pick ? limited.pick : pick, limited.bound);
	}
}

void ap_dp_solve_with(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, const struct ap_dp_options *options, struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct dp d = {.ctx = ctx, .whole = p, .budget = budget, .options = options, .out = out};
	ap_choice_none(ctx, p, "dynamic_programming", out);
	solve(&d);
	ap_engine_end(ctx, budget, ap_budget_left(budget, out->work) ? d.lack : AP_ENDED_WORK, out);
	ap_arena_release(ctx->scratch, mark);
}

void ap_dp_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_dp_options options = {AP_DP_PRUNE_AUTO, budget->no_fold};
	ap_dp_solve_with(ctx, p, budget, &options, out);
}
