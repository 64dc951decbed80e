/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch and bound on the linear relaxation: by sweeps (subproblem.h) and, where that pays, by GLPK
 * (relaxation.h). It shares only the sweeps (sweep.h) with elimination, so each can check the
 * other; and it is exact: relaxations only give advice, every bound and pick is computed from the
 * table's own numbers.
 *
 * If anything ends it early (a limit, lack of memory, the stop flag), what is known by then stands.
 * An OPTIMAL pick is an optimum, but not always the smallest one. Relaxations too large for the
 * budget are not built.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "ilp/lp.h"
#include "ilp/relaxation.h"
#include "problem/problem.h"
#include "search/engines.h"
#include "search/polish.h"

enum { POLISH_PASSES = 100, BYTES_PER_CELL = 32, FEWER_PART = 8, MOST_ROOMS = 4 };

struct search {
	struct ap_ilp ilp;
	double bound; /* of the whole problem */
	double open; /* least bound of the parts left undecided */
	double bytes_open; /* of the sub-problems being explored */
	bool branched;
	enum ap_ended lack; /* what kept it from a proof */
};

/* Cells of the matrices, counted for each edge. */
static double cells_of(const struct ap_problem *p)
{
	double cells = 0;

	for (uint32_t e = 0; e < p->nedge; e++)
		cells += (double)p->node[p->edge[e].u].k * p->node[p->edge[e].v].k;
	return cells;
}

static bool close_enough(const struct search *s)
{
	return s->ilp.cost <= s->bound + s->ilp.budget->gap * fabs(s->bound);
}

static bool finished(const struct search *s)
{
	const struct ap_budget *b = s->ilp.budget;

	return (b->work && s->ilp.work >= b->work) || (b->gap > 0 && close_enough(s)) ||
		ap_ctx_stopped(s->ilp.ctx);
}

/* Until branching starts, a bound of what is left bounds the whole. */
static void note(struct search *s, const struct ap_ilp_sub *sub)
{
	if (!s->branched)
		s->bound = fmax(s->bound, sub->bound);
}

static uint64_t candidates_of(const struct ap_problem *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n; i++)
		sum += p->node[i].k;
	return sum;
}

/* Reduces a sub-problem as far as possible without a linear program. False: nothing is left. */
static bool tighten(struct search *s, struct ap_ilp_sub *sub)
{
	uint64_t before;

	if (!ap_ilp_reduce(&s->ilp, sub))
		return false;
	do {
		before = candidates_of(&sub->p);
		if (before == 0)
			return true;
		ap_ilp_ascend(&s->ilp, sub);
		if (!ap_ilp_reduce(&s->ilp, sub))
			return false;
	} while (candidates_of(&sub->p) < before - before / FEWER_PART);
	return true;
}

/* Is it small enough to branch on without a relaxation? */
static bool can_guess(const struct search *s, const struct ap_ilp_sub *sub)
{
	return s->bytes_open + cells_of(&sub->p) * BYTES_PER_CELL <= (double)ap_budget_bytes(s->ilp.budget);
}

/* Scratch is only released after all candidates of a sub-problem are done: is too much in use? */
static bool no_room(const struct search *s)
{
	return (double)ap_arena_bytes(s->ilp.ctx->scratch) >
		MOST_ROOMS * (double)ap_budget_bytes(s->ilp.budget);
}

enum next { DONE, AGAIN, BRANCH };

static enum next give_up(struct search *s, const struct ap_ilp_sub *sub, enum ap_ended lack)
{
	s->lack = lack;
	s->open = fmin(s->open, sub->bound);
	return DONE;
}

/* Decides what to do with a tightened sub-problem, and where to branch. */
static enum next look(struct search *s, struct ap_ilp_sub *sub, uint32_t *node, uint32_t *candidate)
{
	if (sub->p.n == 0) {
		ap_ilp_try(&s->ilp, sub, NULL);
		return DONE;
	}
	note(s, sub);
	if (finished(s) || no_room(s))
		return give_up(s, sub, finished(s) ? AP_ENDED_WORK : AP_ENDED_MEMORY);
	switch (ap_ilp_relax(&s->ilp, sub, node, candidate)) {
	case AP_ILP_CLOSED:
		return DONE;
	case AP_ILP_SMALLER:
		return AGAIN;
	case AP_ILP_SAME:
		return BRANCH;
	case AP_ILP_TOO_LARGE:
		break;
	}
	if (!can_guess(s, sub))
		return give_up(s, sub, AP_ENDED_MEMORY);
	ap_ilp_guess(&s->ilp, sub, node, candidate);
	return BRANCH;
}

/* Searches all picks of a sub-problem. Candidates of a node are tried in turn, each in a
 * sub-problem of its own, so recursion is no deeper than the number of nodes. */
static void explore(struct search *s, struct ap_ilp_sub sub)
{
	struct ap_mark mark = ap_arena_mark(s->ilp.ctx->scratch);

	for (;;) {
		double bytes;
		struct ap_ilp_sub one;
		uint32_t i = 0, c = 0;
		enum next next;

		if (ap_ctx_stopped(s->ilp.ctx)) {
			give_up(s, &sub, AP_ENDED_STOPPED);
			break;
		}
		if (!tighten(s, &sub))
			break;
		bytes = cells_of(&sub.p) * BYTES_PER_CELL;
		next = look(s, &sub, &i, &c);
		note(s, &sub);
		if (next == DONE)
			break;
		if (next == AGAIN)
			continue;
		s->branched = true;
		s->ilp.branching = true;
		s->bytes_open += bytes;
		one = sub;
		one.own = false;
		one.p = ap_ilp_fix(&s->ilp, &sub.p, i, c, true);
		explore(s, one);
		s->bytes_open -= bytes;
		sub.p = ap_ilp_fix(&s->ilp, &sub.p, i, c, false);
	}
	ap_arena_release(s->ilp.ctx->scratch, mark);
}

/* A problem that is too large is only sifted. */
static void explore_all(struct search *s)
{
	struct ap_ilp_sub sub = {.p = *s->ilp.whole, .bound = s->bound};
	uint64_t before;

	if (sub.p.memory_limit != AP_NO_LIMIT && ap_ilp_too_heavy(&s->ilp, &sub))
		return;
	do {
		before = candidates_of(&sub.p);
		if (!ap_ilp_sift(&s->ilp, &sub))
			return;
		note(s, &sub);
	} while (!ap_ctx_stopped(s->ilp.ctx) &&
		(candidates_of(&sub.p) < before - before / FEWER_PART || (sub.p.n > 0 &&
			sub.p.memory_limit != AP_NO_LIMIT && !ap_ilp_price_found(&s->ilp))));
	if (cells_of(&sub.p) * BYTES_PER_CELL > (double)ap_budget_bytes(s->ilp.budget)) {
		give_up(s, &sub, AP_ENDED_MEMORY);
		return;
	}
	ap_ilp_unfold(&s->ilp, &sub);
	explore(s, sub);
}

static void run(void *user)
{
	struct search *s = user;

	ap_ilp_open(&s->ilp);
	explore_all(s);
	s->bound = fmin(s->open, s->ilp.cost);
}

static bool allowed(const struct ap_problem *p, const uint32_t *pick)
{
	return ap_problem_cost(p, pick) < INFINITY && ap_problem_memory(p, pick) <= p->memory_limit;
}

/* The best of the starting picks and a polished one; NULL if none is allowed. */
static const uint32_t *some_pick(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget)
{
	uint32_t *easy = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	const uint32_t *pick[] = {easy, budget->start[0], budget->start[1]}, *best = NULL;

	ap_polish(ctx, p, POLISH_PASSES, easy);
	for (size_t i = 0; i < AP_COUNT(pick); i++)
		if (pick[i] && allowed(p, pick[i]) &&
			(!best || ap_problem_cost(p, pick[i]) < ap_problem_cost(p, best)))
			best = pick[i];
	return best;
}

static void say_once(struct ap_diag *d, const char *text)
{
	const char *said, *check;
	enum ap_level level;

	for (size_t i = 0; (said = ap_diag_text(d, i, &level, &check)); i++)
		if (check && !strcmp(check, "glpk"))
			return;
	ap_diag_add(d, AP_NOTE, AP_OK, NULL, "glpk",
		"integer_programming does without linear programs, and may prove less: %s", text);
}

static void solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	const uint32_t *start = some_pick(ctx, p, budget);
	struct ap_ctx own = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1, .stop = ctx->stop,
		.helpers = ctx->helpers};
	struct ap_lp_solver lp = {.ctx = &own};
	struct search s = {.bound = out->lower_bound, .open = INFINITY, .lack = AP_ENDED_MEMORY,
		.ilp = {.ctx = &own, .lp = &lp, .whole = p, .budget = budget,
			.best = AP_NEW_N(ctx->arena, uint32_t, p->n), .cost = INFINITY}};
	struct ap_refusal lack;
	bool ended;

	if (start) {
		memcpy(s.ilp.best, start, p->n * sizeof *start);
		s.ilp.cost = ap_problem_cost(p, start);
	}
	own.scratch = ap_arena_create_like(own.arena);
	ended = !ap_ctx_stopped(ctx) && ap_arena_try(own.arena, run, NULL, &s, &lack);
	ap_lp_end(&lp);
	if (lp.failed && !ap_ctx_stopped(ctx))
		say_once(ctx->diag, lp.failed);
	out->work = s.ilp.work;
	out->lower_bound = fmax(out->lower_bound, s.bound);
	if (s.ilp.cost < INFINITY)
		ap_choice_found(p, s.ilp.best,
			ended && s.open >= s.ilp.cost ? s.ilp.cost : out->lower_bound, out);
	else if (ended && s.open == INFINITY) {
		out->outcome = AP_OUT_INFEASIBLE;
		out->lower_bound = INFINITY;
	}
	ap_engine_end(ctx, budget, s.lack, out);
	ap_arena_destroy(own.scratch);
	ap_arena_destroy(own.arena);
}

/* The least memory of any pick, or a lower bound; -1 if there is no pick. Solves with memory in
 * place of cost. */
static int64_t least_memory(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget)
{
	struct ap_problem bytes = ap_ilp_memory(ctx->scratch, p);
	struct ap_choice c;

	ap_choice_none(ctx, &bytes, "integer_programming", &c);
	solve(ctx, &bytes, budget, &c);
	return c.outcome == AP_OUT_INFEASIBLE ? -1 : (int64_t)c.lower_bound;
}

void ap_ilp_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	ap_choice_none(ctx, p, "integer_programming", out);
	solve(ctx, p, budget, out);
	if (out->outcome == AP_OUT_INFEASIBLE && p->memory_limit != AP_NO_LIMIT)
		out->least_memory = least_memory(ctx, p, budget);
	ap_arena_release(ctx->scratch, mark);
}
