/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/memory_limit.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/elim_eval.h"
#include "elim/label.h"
#include "elim/support.h"

#define FIRST_STEP 0.0005 /* first step of the target, as a part of the bound, */
#define FIRST_PART 32 /* or as a part of the gap between bound and best pick */

#define MAX_TIE_WORK (UINT64_C(1) << 21) /* for finding the smallest optimum, given one */

enum { LABEL_WORK = 1024 }; /* inner steps of a table that take as long as one of labels */

#define WORTH 0x1p-6 /* of the bound: how near the best pick must be for dropping to pay */

enum { DROP_PART = 8 }; /* part of the candidates that must be dropped */

enum { LABELS_NEED = 4 }; /* evaluations that must be left for labels of a large problem */

enum { BYTES_PER_TUPLE = 64, BYTES_PER_LABEL = 128 }; /* includes garbage of growing arrays */

struct limited {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	const struct ap_elim *e;
	const struct ap_budget *budget;
	struct ap_pricing g;
	struct ap_limited *out;
	double cost; /* of out->pick; INFINITY if there is none */
};

/* Work left in the budget. */
static uint64_t work_left(const struct limited *l)
{
	return ap_budget_left(l->budget, l->out->work);
}

/* Finds the cheapest pick of at most target; ties: the lexicographically smallest one. */
static enum ap_label_end look(struct limited *l, double target, bool ties, uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_label_job job = {
		.e = l->e, .p = l->p, .priced = &l->g.at,
		.value = l->g.value, .least = l->g.least,
		.threshold = ap_pricing_threshold(&l->g, target), .ties = ties,
		.max_labels = ap_budget_bytes(l->budget) / BYTES_PER_LABEL,
	};
	enum ap_label_end end = AP_LABEL_LIMIT;
	if (job.max_labels > UINT32_MAX / 2)
		job.max_labels = UINT32_MAX / 2;
	if (job.threshold < l->g.least) { /* apart from rounding, the target is below the bound */
		ap_arena_release(l->ctx->scratch, mark);
		return AP_LABEL_NONE;
	}
	if (work_left(l) > 0) {
		job.max_work = work_left(l) / LABEL_WORK + 1;
		if (ties && job.max_work > MAX_TIE_WORK)
			job.max_work = MAX_TIE_WORK;
		job.support = ap_support_make(l->ctx, l->e, l->g.value, l->g.least, job.threshold,
			ap_budget_bytes(l->budget) / BYTES_PER_TUPLE);
		if (job.support) {
			end = ap_label_solve(l->ctx, &job, pick);
			l->out->work += job.work * LABEL_WORK + job.support->ntuple;
		}
	}
	ap_arena_release(l->ctx->scratch, mark);
	return end;
}

static void take(struct limited *l, const uint32_t *pick)
{
	if (!l->out->pick)
		l->out->pick = AP_NEW_N(l->ctx->scratch, uint32_t, l->p->n);
	memmove(l->out->pick, pick, l->p->n * sizeof *pick);
	l->cost = ap_problem_cost(l->p, pick);
}

static bool close_enough(const struct limited *l)
{
	return l->out->bound >= l->cost ||
		l->cost <= l->out->bound + l->budget->gap * fabs(l->out->bound);
}

/* The pick is an optimum: replaces it by the smallest one if that matters and ties are few. */
static void settle_ties(struct limited *l, uint32_t *pick)
{
	if (l->budget->gap == 0 && look(l, l->cost, true, pick) == AP_LABEL_FOUND)
		take(l, pick);
}

/* Raises the target until a pick is found. A failed target raises the bound. */
static void raise_target(struct limited *l, uint32_t *pick)
{
	double bound = l->out->bound, q = l->p->quantum;
	double step = fmin(FIRST_STEP * fabs(bound), (l->cost - bound) / FIRST_PART);
	step = step > q ? step : q;
	for (;; step *= 2) {
		double target = floor((bound + step) / q) * q;
		target = target < l->cost ? target : l->cost;
		enum ap_label_end end = look(l, target, false, pick);
		if (end == AP_LABEL_LIMIT)
			return;
		if (end == AP_LABEL_FOUND && ap_problem_cost(l->p, pick) <= target) {
			take(l, pick);
			l->out->bound = l->cost;
			settle_ties(l, pick);
			return;
		}
		if (end == AP_LABEL_FOUND && ap_problem_cost(l->p, pick) < l->cost)
			take(l, pick);
		assert(target < l->cost); /* the support contained out->pick, too */
		l->out->bound = target + q;
		if (l->budget->gap > 0 && close_enough(l))
			return;
	}
}

static bool price_tables(struct limited *l, double price)
{
	if (l->g.at.price == price)
		return true;
	if (work_left(l) < l->e->work)
		return false;
	l->out->work += l->e->work;
	return ap_pricing_at(l->ctx, &l->g, price);
}

static void search_labels(struct limited *l)
{
	uint32_t *pick = AP_NEW_N(l->ctx->scratch, uint32_t, l->p->n);
	uint64_t left = work_left(l);
	if (l->e->work >= AP_LARGE_WORK && left > 0 && left / LABELS_NEED < l->e->work)
		return; /* labels of such a large problem would not finish */
	if (l->out->bound >= l->cost)
		settle_ties(l, pick);
	else
		raise_target(l, pick);
}

/* ---- dropping candidates ---- */

struct ap_domain *ap_limit_narrow(struct ap_ctx *ctx, const struct ap_pricing *g, double cost,
	uint64_t *work)
{
	const struct ap_problem *p = g->p;
	struct ap_domain *d = AP_NEW_N(ctx->scratch, struct ap_domain, p->n);
	double **least_with = AP_NEW_N(ctx->scratch, double *, g->e->ntable);
	struct ap_mark mark;
	for (uint32_t i = 0; i < p->n; i++)
		d[i].c = AP_NEW_N(ctx->scratch, uint32_t, p->node[i].k);
	mark = ap_arena_mark(ctx->scratch);
	if (!ap_elim_least_with(ctx, g->e, g->value, g->least, ap_pricing_threshold(g, cost), least_with,
		work))
		return NULL;
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t c = 0; c < p->node[i].k; c++)
			if (least_with[g->e->own[i]][c] < INFINITY)
				d[i].c[d[i].n++] = c;
	ap_arena_release(ctx->scratch, mark);
	return d;
}

/* Does it pay to drop candidates that are dearer than a pick of this cost? */
static bool ap_limit_worth(const struct ap_pricing *g, double cost, double bound)
{
	return cost < INFINITY &&
		(g->e->work < AP_LARGE_WORK || cost - bound <= WORTH * fabs(bound));
}

/* Are so many candidates dropped that solving the rest anew pays? */
static bool much_smaller(const struct ap_problem *p, const struct ap_domain *d)
{
	uint64_t before = 0, left = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		before += p->node[i].k - 1;
		left += d[i].n - 1;
	}
	return before - left > before / DROP_PART;
}

static const struct ap_engine *dynamic_programming(void)
{
	return ap_engine_find("dynamic_programming");
}

/* Drops candidates and solves the rest; false if too few are dropped. */
static bool search_rest(struct limited *l)
{
	struct ap_budget budget = *l->budget;
	struct ap_domain *d;
	struct ap_choice c;
	if (!ap_limit_worth(&l->g, l->cost, l->out->bound) || work_left(l) == 0)
		return false;
	d = ap_limit_narrow(l->ctx, &l->g, l->cost, &l->out->work);
	budget.work = work_left(l);
	if (!d || !much_smaller(l->p, d) || budget.work == 0)
		return false;
	budget.start[0] = l->out->pick;
	budget.start[1] = NULL;
	ap_engine_solve_within(l->ctx, dynamic_programming(), l->p, d, &budget, &c);
	l->out->work += c.work;
	if (c.pick && (c.cost < l->cost || (c.cost == l->cost && c.outcome == AP_OUT_OPTIMAL)))
		take(l, c.pick);
	l->out->bound = fmax(l->out->bound, fmin(c.lower_bound, l->cost));
	return true;
}

/* ---- the whole ---- */

static bool best_of_few(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct limited *l = user;
	struct ap_budget budget = *l->budget;
	struct ap_choice c;
	budget.work = max_work;
	budget.gap = AP_ANY_OPTIMUM;
	budget.start[0] = budget.start[1] = NULL;
	ap_engine_solve_within(ctx, dynamic_programming(), l->p, few, &budget, &c);
	*work += c.work;
	if (c.pick)
		memcpy(pick, c.pick, l->p->n * sizeof *pick);
	return c.pick;
}

static void search_price(struct limited *l, const struct ap_limit_job *job, struct ap_dual *out)
{
	struct ap_budget budget = *l->budget;
	struct ap_focus_job focus = {.g = &l->g, .left = &budget, .least = job->least, .pick = job->pick,
		.best_of = best_of_few, .user = l};
	budget.work = work_left(l);
	if (l->e->work >= AP_LARGE_WORK && !l->e->split)
		ap_focus_solve(l->ctx, &focus, out);
	else
		ap_dual_solve(l->ctx, &l->g, job->least, job->pick, budget.work, out);
	l->out->work += out->work;
	l->out->bound = out->bound;
	if (out->pick)
		take(l, out->pick);
}

static void take_start(struct limited *l)
{
	for (int i = 0; i < 2 && l->budget->start[i]; i++)
		if (ap_problem_memory(l->p, l->budget->start[i]) <= l->p->memory_limit &&
			ap_problem_cost(l->p, l->budget->start[i]) < l->cost)
			take(l, l->budget->start[i]);
}

void ap_limit_solve(struct ap_ctx *ctx, const struct ap_limit_job *job, struct ap_limited *out)
{
	struct limited l = {.ctx = ctx, .p = job->p, .e = job->e, .budget = job->budget, .out = out,
		.cost = INFINITY};
	struct ap_dual dual;
	*out = (struct ap_limited){.bound = job->least, .least_memory = -1, .work = out->work};
	if (work_left(&l) == 0)
		return;
	ap_pricing_open(ctx, job->e, job->p, job->room, &l.g);
	search_price(&l, job, &dual);
	if (dual.infeasible) {
		out->infeasible = true;
		out->least_memory = dual.least_memory;
		return;
	}
	take_start(&l);
	if (dual.stopped || job->e->split || (l.budget->gap > 0 && close_enough(&l)))
		return;
	if (price_tables(&l, dual.price) && !search_rest(&l))
		search_labels(&l);
}

struct narrowing {
	struct ap_ctx *ctx;
	const struct ap_narrow_job *job;
	const struct ap_compact *rest; /* of the candidates that are not forbidden */
	struct ap_narrowed *out;
};

/* Maps domains of the rest to domains of the whole, whose other nodes are settled. */
static struct ap_domain *widened(const struct narrowing *w, struct ap_arena *arena,
	const struct ap_domain *d)
{
	struct ap_domain *out = AP_NEW_N(arena, struct ap_domain, w->job->p->n);

	for (uint32_t i = 0; i < w->rest->p.n; i++)
		out[w->rest->node[i]] = d[i];
	for (uint32_t i = 0; i < w->job->p->n; i++) {
		const struct ap_domain *all = &w->rest->domain[i];
		const uint32_t *place = out[i].n ? out[i].c : NULL;

		out[i].n = place ? out[i].n : 1;
		out[i].c = AP_NEW_N(arena, uint32_t, out[i].n);
		for (uint32_t c = 0; c < out[i].n; c++)
			out[i].c[c] = all->c[place ? place[c] : 0];
	}
	return out;
}

static bool best_of_few_whole(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct narrowing *w = user;
	uint32_t *whole = AP_NEW_N(ctx->scratch, uint32_t, w->job->p->n);

	if (!w->job->best_of(ctx, w->job->user, widened(w, ctx->scratch, few), max_work, whole, work))
		return false;
	ap_compact_narrow(w->rest, whole, pick);
	return true;
}

static void search(struct narrowing *w, const struct ap_elim *e)
{
	struct ap_budget left = *w->job->budget;
	struct ap_focus_job job = {.left = &left, .least = -INFINITY, .best_of = best_of_few_whole,
		.user = w};
	uint32_t *pick = AP_NEW_N(w->ctx->scratch, uint32_t, w->rest->p.n), *start;
	struct ap_pricing g;
	struct ap_dual dual;
	struct ap_domain *d;

	for (int s = 0; s < 2 && left.start[s]; s++) {
		start = AP_NEW_N(w->ctx->scratch, uint32_t, w->rest->p.n);
		ap_compact_narrow(w->rest, left.start[s], start);
		left.start[s] = start;
	}
	job.g = &g;
	ap_pricing_open(w->ctx, e, &w->rest->p, ap_elim_room(w->ctx, e), &g);
	if (!left.start[0]) {
		w->out->work += e->work;
		if (!ap_elim_eval(w->ctx, e, &w->rest->p, g.value, &job.least) || isinf(job.least))
			return;
		ap_elim_pick(w->ctx, e, g.value, pick);
		job.pick = pick;
	}
	ap_focus_solve(w->ctx, &job, &dual);
	w->out->work += dual.work;
	w->out->bound = dual.bound + w->rest->cost;
	w->out->infeasible = dual.infeasible;
	if (dual.infeasible)
		w->out->least_memory = dual.least_memory + w->rest->memory;
	if (!dual.pick)
		return;
	w->out->pick = AP_NEW_N(w->ctx->arena, uint32_t, w->job->p->n);
	ap_compact_expand(w->rest, w->job->p, dual.pick, w->out->pick);
	w->out->cost = dual.cost + w->rest->cost;
	if (!ap_limit_worth(&g, dual.cost, dual.bound) || g.at.price != dual.price)
		return;
	d = ap_limit_narrow(w->ctx, &g, dual.cost, &w->out->work);
	if (d)
		w->out->domain = widened(w, w->ctx->arena, d);
}

static bool worth(const struct ap_narrow_job *job, const struct ap_elim *e)
{
	return !e->split && e->work >= job->least_work &&
		ap_budget_left(job->budget, 0) >= e->work;
}

void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_domain *all = ap_domain_all(ctx, job->p);
	struct ap_elim_options options = {.by_memory = true, .work = job->budget->work,
		.no_share = job->budget->no_fold,
		.table_bytes = ap_budget_bytes(job->budget)};
	struct narrowing w = {.ctx = ctx, .job = job, .out = out};
	const struct ap_elim *e;

	*out = (struct ap_narrowed){.bound = -INFINITY, .cost = INFINITY};
	if (!ap_domain_empty(job->p, all)) {
		w.rest = ap_compact_make(ctx, job->p, all);
		e = w.rest->p.n ? ap_elim_plan(ctx, &w.rest->p, &options) : NULL;
		if (e && worth(job, e))
			search(&w, e);
	}
	ap_arena_release(ctx->scratch, mark);
}
