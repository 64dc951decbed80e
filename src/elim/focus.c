/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/focus.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/support.h"

#define ROUNDS 8
#define NEAR 1e-4 /* of the least: how far above it picks give their candidates */
#define CLOSE 1e-6 /* of the bound: what is not worth another round */
#define MAX_TUPLES (UINT64_C(1) << 22)
#define NEAR_BOUND 0x1p-8

struct focus {
	struct ap_ctx *ctx;
	const struct ap_focus_job *job;
	const struct ap_problem *p;
	const struct ap_elim *e;
	bool **used; /* [n][k] candidates in focus */
	uint32_t *pick;
	struct ap_dual *out;
};

bool ap_focus_near(const struct ap_dual *dual)
{
	return dual->cost - dual->bound <= NEAR_BOUND * fabs(dual->bound);
}

static void use_pick(struct focus *f, const uint32_t *pick)
{
	for (uint32_t i = 0; i < f->p->n; i++)
		f->used[i][pick[i]] = true;
}

/* What picks within the threshold choose; all that is known of them where they are too many. */
static void use_near(struct focus *f)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	double least = f->job->g->least;
	const struct ap_support *s = ap_support_make(f->ctx, f->e, f->job->g->value, least,
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
	return f->job->left->work == 0 || f->out->work + work <= f->job->left->work;
}

/* What is left of the budget, 0: no limit. */
static uint64_t work_left(const struct focus *f)
{
	uint64_t all = f->job->left->work;

	return all == 0 ? 0 : all > f->out->work ? all - f->out->work : 1;
}

static void take(struct focus *f, const uint32_t *pick)
{
	double cost = ap_problem_cost(f->p, pick);

	if (!(cost < f->out->cost))
		return;
	memcpy(f->out->pick, pick, f->p->n * sizeof *pick);
	f->out->cost = cost;
}

/* The least memory of all picks. */
static bool least_memory(struct focus *f)
{
	if (!affordable(f, f->e->work) || !ap_pricing_memory(f->ctx, f->job->g))
		return false;
	f->out->work += f->e->work;
	ap_elim_pick(f->ctx, f->e, f->job->g->value, f->pick);
	use_pick(f, f->pick);
	f->out->least_memory = (int64_t)f->job->g->least;
	f->out->infeasible = f->out->least_memory > f->p->memory_limit;
	return true;
}

/* The whole at the price: a bound, and more candidates. */
static bool widen(struct focus *f, double price)
{
	struct ap_pricing *g = f->job->g;
	double bound;

	if (!affordable(f, f->e->work) || !ap_pricing_at(f->ctx, g, price))
		return false;
	f->out->work += f->e->work;
	ap_elim_pick(f->ctx, f->e, g->value, f->pick);
	use_pick(f, f->pick);
	use_near(f);
	bound = ap_pricing_bound(g);
	if (bound > f->out->bound) {
		f->out->bound = bound;
		f->out->price = price;
	}
	return true;
}

/* The few candidates as a problem, planned; NULL where nothing is left to choose. */
static const struct ap_elim *plan_few(struct focus *f, const struct ap_compact *few)
{
	size_t table_bytes = f->job->left->table_bytes;
	struct ap_elim_options options = {.by_memory = true, .no_share = f->job->left->no_fold,
		.table_bytes = table_bytes ? table_bytes : (size_t)1 << 30};
	const struct ap_elim *e = few->p.n ? ap_elim_plan(f->ctx, &few->p, &options) : NULL;

	return e && !e->split && affordable(f, e->work) ? e : NULL;
}

/* The best price among the few, and the bound that it gives there. */
static bool price_few(struct focus *f, double *price, double *bound)
{
	const struct ap_compact *few = ap_compact_make(f->ctx, f->p, domain(f));
	const struct ap_elim *e = plan_few(f, few);
	struct ap_pricing g;
	struct ap_dual dual;
	uint32_t *pick;
	double least;

	if (!e)
		return false;
	ap_pricing_open(f->ctx, e, &few->p, ap_elim_room(f->ctx, e), &g);
	pick = AP_NEW_N(f->ctx->scratch, uint32_t, few->p.n);
	f->out->work += e->work;
	if (!ap_elim_eval(f->ctx, e, &few->p, g.value, &least))
		return false;
	ap_elim_pick(f->ctx, e, g.value, pick);
	ap_dual_solve(f->ctx, &g, least, pick, work_left(f), &dual);
	f->out->work += dual.work;
	*price = dual.price;
	*bound = dual.bound + few->cost;
	return !dual.stopped && !dual.infeasible;
}

/* The best among the few: no proof, but as a rule the optimum of all or near it. */
static void search_few(struct focus *f)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	uint64_t most = work_left(f);

	if (most == 0 || most > f->e->work)
		most = f->e->work;
	if (f->job->best_of(f->ctx, f->job->user, domain(f), most, f->pick, &f->out->work))
		take(f, f->pick);
	ap_arena_release(f->ctx->scratch, mark);
}

/* Where no other price is known: the one at which memory up to the limit costs what the time does. */
static bool widen_blindly(struct focus *f)
{
	double limit = (double)f->p->memory_limit;

	return limit > 0 && widen(f, fabs(f->out->cost) / limit);
}

/* Ends early where work or time runs out: the best price so far still bounds. */
static void focus(struct focus *f)
{
	for (int i = 0; i < ROUNDS && !ap_focus_near(f->out); i++) {
		struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
		double price, bound;
		bool done = price_few(f, &price, &bound);

		ap_arena_release(f->ctx->scratch, mark);
		if (!done || !widen(f, price))
			break;
		search_few(f);
		if (bound - f->out->bound <= CLOSE * fabs(bound))
			break;
	}
}

/* What is known from the start. */
static void begin(struct focus *f)
{
	if (f->job->pick)
		use_pick(f, f->job->pick);
	for (int i = 0; i < 2 && f->job->left->start[i]; i++) {
		use_pick(f, f->job->left->start[i]);
		if (ap_problem_memory(f->p, f->job->left->start[i]) <= f->p->memory_limit)
			take(f, f->job->left->start[i]);
	}
}

void ap_focus_solve(struct ap_ctx *ctx, const struct ap_focus_job *job, struct ap_dual *out)
{
	struct focus f = {.ctx = ctx, .job = job, .p = job->g->p, .e = job->g->e, .out = out};

	*out = (struct ap_dual){.bound = job->least, .cost = INFINITY, .least_memory = AP_NO_LIMIT};
	out->pick = AP_NEW_N(ctx->scratch, uint32_t, f.p->n);
	f.used = AP_NEW_N(ctx->scratch, bool *, f.p->n);
	for (uint32_t i = 0; i < f.p->n; i++)
		f.used[i] = AP_NEW_N(ctx->scratch, bool, f.p->node[i].k);
	f.pick = AP_NEW_N(ctx->scratch, uint32_t, f.p->n);
	begin(&f);
	if (!(out->cost < INFINITY) && !least_memory(&f))
		out->stopped = true;
	else if (!out->infeasible && (job->pick || widen_blindly(&f)))
		focus(&f);
	if (!(out->cost < INFINITY))
		out->pick = NULL;
}
