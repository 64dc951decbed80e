/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine auto: exact engines one after the other, each with the best pick so far to start from.
 *
 *  1. dynamic_programming, if the table is narrow enough for it once sweeps and dominance have dropped
 *     candidates: that is known before an elimination begins. Otherwise it ends with what these found.
 *     A table that is too wide, but has ties (search/tied.h), is solved without them, in the same way.
 *  2. integer_programming, with half of what is left; or, where an elimination is possible after all,
 *     with little beside that.
 *  3. What that proves is no longer wide for dynamic_programming, mostly: what is dearer is out. So of
 *     several optima the smallest is found, whichever engine was first.
 *  4. What it does not prove gets dynamic_programming with the rest: whole, or in its bounded form
 *     (mini-buckets), whose bound is far above that of the linear relaxation where cycles are short and
 *     many.
 *
 * The answer is the best pick and the best bound of all. What is done depends on the budget's numbers
 * alone.
 */
#include <math.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/vec.h"
#include "search/engines.h"
#include "search/tied.h"

#define NAME "auto"

enum {
	STEP = 2, /* steps of a large elimination that take as long as one of integer_programming */
	SHARE = 2, /* integer_programming gets one part in so many of the work that is left; */
	TRIAL = 4, /* one step for so many of an elimination that is possible; */
	TIES = 4 /* the search for the smallest optimum, of all work before */
};

#define WIDE_WORK (UINT64_C(1) << 35) /* limit of work beyond elimination if there is none */

/* Adds another engine's answer to the same problem. */
static void add(const struct ap_problem *p, const struct ap_choice *other, struct ap_choice *out)
{
	struct ap_choice both = *out;
	double bound = fmax(out->lower_bound, other->lower_bound);

	both.work += other->work;
	if (other->outcome == AP_OUT_INFEASIBLE) {
		*out = *other;
		out->work = both.work;
		return;
	}
	if (other->pick && (!out->pick || other->cost < out->cost))
		both.pick = other->pick;
	both.lower_bound = bound;
	if (both.pick)
		ap_choice_found(p, both.pick, bound, &both);
	both.engine = other->outcome == AP_OUT_OPTIMAL ? other->engine : NAME;
	*out = both;
}

/* The budget's numbers, with this work, and the best pick to start from. */
static struct ap_budget part(const struct ap_budget *budget, uint64_t work, const struct ap_choice *best)
{
	struct ap_budget own = *budget;

	own.work = work ? work : 1;
	if (best->pick) {
		own.start[1] = own.start[0];
		own.start[0] = best->pick;
	}
	return own;
}

struct elimination {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	const struct ap_budget *budget;
	struct ap_choice *out;
};

static void run(void *user)
{
	struct elimination *e = user;

	ap_dp_solve(e->ctx, e->p, e->budget, e->out);
}

/* dynamic_programming once something is known: where memory runs out in it, it has found nothing. */
static void eliminate(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct elimination e = {ctx, p, budget, out};
	struct ap_arena *made;

	if (!ap_attempt_apart(ctx, run, NULL, &e, &made)) {
		ap_choice_none(ctx, p, NAME, out);
		return;
	}
	if (out->pick)
		out->pick = ap_arena_memdup(ctx->arena, out->pick, p->n * sizeof *out->pick);
	ap_arena_destroy(made);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Replaces an optimum by the smallest one if that is little work. */
static void settle_ties(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	uint64_t left, struct ap_choice *out)
{
	struct ap_budget own = part(budget, less(left, out->work / TIES), out);
	struct ap_choice other;

	own.whole = true;
	eliminate(ctx, p, &own, &other);
	out->work += other.work;
	if (other.outcome == AP_OUT_OPTIMAL)
		out->pick = other.pick;
}

/* The engines for a table that is too wide, with this work. */
static void solve_wide(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	uint64_t left, struct ap_choice *out)
{
	uint64_t most = out->ahead ? out->ahead / TRIAL : UINT64_MAX;
	struct ap_budget own = part(budget, less(left / SHARE / STEP, most), out);
	struct ap_choice other;

	ap_ilp_solve(ctx, p, &own, &other);
	other.work *= STEP;
	left -= less(other.work, left);
	add(p, &other, out);
	out->ended = other.ended; /* more of that would help most */
	if (ap_ctx_stopped(ctx) || left == 0)
		return;
	if (ap_engine_closed(budget, out)) {
		if (out->outcome == AP_OUT_OPTIMAL && budget->gap == 0)
			settle_ties(ctx, p, budget, left, out);
		return;
	}
	own = part(budget, left, out);
	if (budget->work == 0 && out->ahead)
		own.work = 0;
	eliminate(ctx, p, &own, &other);
	add(p, &other, out);
}

static void solve_rest(struct ap_ctx *ctx, const void *user, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *out)
{
	(void)user;
	ap_auto_solve(ctx, p, budget, out);
}

/* Solves the problem without its ties, if it has any. */
static bool solve_tied(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	uint64_t left, struct ap_choice *out)
{
	struct ap_budget own = part(budget, left, out);
	struct ap_choice other;

	own.work = budget->work ? own.work : 0;
	if (!ap_tied_solve(ctx, p, &own, solve_rest, NULL, &other))
		return false;
	add(p, &other, out);
	if (other.outcome == AP_OUT_OPTIMAL)
		out->pick = other.pick; /* the smallest of equal ones */
	out->ended = other.ended;
	return true;
}

void ap_auto_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_budget own = *budget;
	uint64_t left;

	own.whole = true;
	ap_dp_solve(ctx, p, &own, out);
	left = budget->work ? ap_budget_left(budget, out->work) : WIDE_WORK;
	if (ap_engine_closed(budget, out) || left == 0 || ap_ctx_stopped(ctx))
		return;
	if (!solve_tied(ctx, p, budget, left, out))
		solve_wide(ctx, p, budget, left, out);
	ap_engine_end(ctx, budget, out->ended, out);
}
