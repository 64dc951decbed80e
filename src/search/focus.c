/* SPDX-License-Identifier: Apache-2.0 */
#include "search/focus.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/compact.h"
#include "search/limit.h"
#include "search/support.h"

#define ROUNDS 8
#define NEAR 1e-4 /* of the least: how far above it picks give their candidates */
#define CLOSE 1e-6 /* of the bound: what is not worth another round */
#define MAX_TUPLES (UINT64_C(1) << 22)

struct focus {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const struct ap_problem *p;
	const struct ap_budget *left;
	bool **used; /* [n][k] candidates in focus */
	const double **value;
	uint32_t *pick;
	struct ap_dual *out;
};

static void use_pick(struct focus *f, const uint32_t *pick)
{
	for (uint32_t i = 0; i < f->p->n; i++)
		f->used[i][pick[i]] = true;
}

/* What picks within the threshold choose; all that is known of them where they are too many. */
static void use_near(struct focus *f, double least)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	const struct ap_support *s = ap_support_make(f->ctx, f->e, f->value, least,
		least + NEAR * fabs(least), MAX_TUPLES);

	for (uint32_t i = 0; s && i < f->e->nstep; i++)
		for (size_t t = 0; t < s->step[i].tuple.n; t++)
			f->used[f->e->step[i].node][s->step[i].tuple.v[t].x] = true;
	ap_arena_release(f->ctx->scratch, mark);
}

static struct ap_domain *domain(struct focus *f)
{
	struct ap_domain *d = AP_NEW_N(f->ctx->scratch, struct ap_domain, f->p->n);

	for (uint32_t i = 0; i < f->p->n; i++) {
		d[i].c = AP_NEW_N(f->ctx->scratch, uint32_t, f->p->node[i].k);
		for (uint32_t c = 0; c < f->p->node[i].k; c++)
			if (f->used[i][c])
				d[i].c[d[i].n++] = c;
	}
	return d;
}

static bool affordable(const struct focus *f, uint64_t work)
{
	return f->left->work == 0 || f->out->work + work <= f->left->work;
}

/* The whole at a price: f->value, and a pick that is least there. */
static bool evaluate(struct focus *f, const struct ap_problem *q, double *least)
{
	if (!affordable(f, f->e->work))
		return false;
	f->out->work += f->e->work;
	if (!ap_elim_eval(f->ctx, f->e, q, f->value, least))
		return false;
	ap_elim_pick(f->ctx, f->e, f->value, f->pick);
	use_pick(f, f->pick);
	return true;
}

static void offer(struct focus *f, const uint32_t *pick)
{
	double cost = ap_problem_cost(f->p, pick);

	if (ap_problem_memory(f->p, pick) > f->p->memory_limit || !(cost < f->out->cost))
		return;
	memcpy(f->out->pick, pick, f->p->n * sizeof *pick);
	f->out->cost = cost;
}

/* The least memory of all picks. */
static bool least_memory(struct focus *f)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct ap_problem q = ap_memory_problem(f->ctx, f->p);
	double least;
	bool done = evaluate(f, &q, &least);

	ap_arena_release(f->ctx->scratch, mark);
	if (!done)
		return false;
	f->out->least_memory = (int64_t)least;
	f->out->infeasible = f->out->least_memory > f->p->memory_limit;
	offer(f, f->pick);
	return true;
}

/* The whole at the price: a bound, and more candidates. */
static bool widen(struct focus *f, double price)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct ap_priced at;
	double least, bound;
	bool done;

	ap_priced_make(f->ctx, f->e, f->p, price, &at);
	done = evaluate(f, &at.p, &least);
	if (done) {
		use_near(f, least);
		bound = ap_priced_bound(f->p, &at, least);
		if (bound > f->out->bound) {
			f->out->bound = bound;
			f->out->price = price;
		}
		offer(f, f->pick);
	}
	ap_arena_release(f->ctx->scratch, mark);
	return done;
}

/* The few candidates as a problem, planned; NULL where nothing is left to choose. */
static const struct ap_elim *plan_few(struct focus *f, const struct ap_compact *few)
{
	struct ap_elim_options options = {.table_bytes = f->left->table_bytes
			? f->left->table_bytes : (size_t)1 << 30,
		.by_memory = true};
	const struct ap_elim *e = few->p.n ? ap_elim_plan(f->ctx, &few->p, &options) : NULL;

	return e && !e->split && affordable(f, e->work) ? e : NULL;
}

/* The few candidates, planned and evaluated without the limit. */
struct few {
	const struct ap_compact *compact;
	const struct ap_elim *e;
	double least;
	uint32_t *pick; /* that attains it */
	struct ap_budget left;
};

static bool open_few(struct focus *f, struct few *few)
{
	const double **value;

	few->compact = ap_compact_make(f->ctx, f->p, domain(f));
	few->e = plan_few(f, few->compact);
	if (!few->e)
		return false;
	value = AP_NEW_N(f->ctx->scratch, const double *, few->e->ntable);
	few->pick = AP_NEW_N(f->ctx->scratch, uint32_t, few->compact->p.n);
	f->out->work += few->e->work;
	if (!ap_elim_eval(f->ctx, few->e, &few->compact->p, value, &few->least))
		return false;
	ap_elim_pick(f->ctx, few->e, value, few->pick);
	few->left = (struct ap_budget){.work = f->left->work, .table_bytes = f->left->table_bytes};
	if (few->left.work)
		few->left.work = few->left.work > f->out->work ? few->left.work - f->out->work : 1;
	return true;
}

static void offer_few(struct focus *f, const struct few *few, const uint32_t *pick)
{
	uint32_t *whole = AP_NEW_N(f->ctx->scratch, uint32_t, f->p->n);

	ap_compact_expand(few->compact, f->p, pick, whole);
	offer(f, whole);
}

/* The best price among the few, and the bound that it gives there. */
static bool price_few(struct focus *f, double *price, double *bound)
{
	struct few few;
	struct ap_dual dual;

	if (!open_few(f, &few))
		return false;
	ap_dual_solve(f->ctx, few.e, &few.compact->p, few.least, few.pick, few.left.work, &dual);
	f->out->work += dual.work;
	if (dual.pick)
		offer_few(f, &few, dual.pick);
	*price = dual.price;
	*bound = dual.bound + few.compact->cost;
	return !dual.stopped && !dual.infeasible;
}

/* The optimum among the few: no proof, but as a rule the optimum of all or near it. */
static void search_few(struct focus *f)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct few few;

	if (open_few(f, &few)) {
		struct ap_limited found = {.work = 0};

		if (few.left.work > f->e->work)
			few.left.work = f->e->work;
		ap_limit_solve(f->ctx, &few.compact->p, few.e, &few.left, few.least, few.pick, &found);
		f->out->work += found.work;
		if (found.pick)
			offer_few(f, &few, found.pick);
	}
	ap_arena_release(f->ctx->scratch, mark);
}

/* Ends early where work or time runs out: the best price so far still bounds. */
static void focus(struct focus *f)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
		double price, bound;
		bool done = price_few(f, &price, &bound);

		ap_arena_release(f->ctx->scratch, mark);
		if (!done || !widen(f, price))
			break;
		if (bound - f->out->bound <= CLOSE * fabs(bound))
			break;
	}
	search_few(f);
}

void ap_focus_solve(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double least, const uint32_t *pick, const struct ap_budget *left, struct ap_dual *out)
{
	struct focus f = {.ctx = ctx, .e = e, .p = p, .left = left, .out = out};

	*out = (struct ap_dual){.bound = least, .cost = INFINITY};
	out->pick = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	f.used = AP_NEW_N(ctx->scratch, bool *, p->n);
	for (uint32_t i = 0; i < p->n; i++)
		f.used[i] = AP_NEW_N(ctx->scratch, bool, p->node[i].k);
	f.value = AP_NEW_N(ctx->scratch, const double *, e->ntable);
	f.pick = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	use_pick(&f, pick);
	for (int i = 0; i < 2 && left->start[i]; i++) {
		use_pick(&f, left->start[i]);
		offer(&f, left->start[i]);
	}
	if (!least_memory(&f))
		out->stopped = true;
	else if (!out->infeasible)
		focus(&f);
	if (!(out->cost < INFINITY))
		out->pick = NULL;
}
