/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/narrow.h"

#include <math.h>

#include "base/arena.h"
#include "elim/focus.h"
#include "elim/limit.h"

struct narrowing {
	struct ap_ctx *ctx;
	const struct ap_narrow_job *job;
	const struct ap_compact *rest; /* of the candidates that are allowed at all */
	struct ap_narrowed *out;
};

/* Domains of the rest as those of the whole, where all others are settled. */
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

static bool best_of_few(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct narrowing *w = user;
	uint32_t *whole = AP_NEW_N(ctx->scratch, uint32_t, w->job->p->n);

	if (!w->job->best_of(ctx, w->job->user, widened(w, ctx->scratch, few), max_work, whole, work))
		return false;
	ap_compact_narrow(w->rest, whole, pick);
	return true;
}

static void narrow(struct narrowing *w, struct ap_pricing *g, const struct ap_dual *dual)
{
	struct ap_domain *d;

	w->out->bound = dual->bound + w->rest->cost;
	w->out->infeasible = dual->infeasible;
	if (dual->infeasible)
		w->out->least_memory = dual->least_memory + w->rest->memory;
	if (!dual->pick)
		return;
	w->out->pick = AP_NEW_N(w->ctx->arena, uint32_t, w->job->p->n);
	ap_compact_expand(w->rest, w->job->p, dual->pick, w->out->pick);
	w->out->cost = dual->cost + w->rest->cost;
	if (!ap_limit_worth(g, dual->cost, dual->bound) || g->at.price != dual->price)
		return;
	d = ap_limit_narrow(w->ctx, g, dual->cost, &w->out->work);
	if (d)
		w->out->domain = widened(w, w->ctx->arena, d);
}

static void search(struct narrowing *w, const struct ap_elim *e)
{
	struct ap_budget left = *w->job->budget;
	struct ap_focus_job job = {.left = &left, .least = -INFINITY, .best_of = best_of_few,
		.user = w};
	uint32_t *pick = AP_NEW_N(w->ctx->scratch, uint32_t, w->rest->p.n), *start;
	struct ap_pricing g;
	struct ap_dual dual;

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
	narrow(w, &g, &dual);
}

static bool worth(const struct ap_narrow_job *job, const struct ap_elim *e)
{
	return !e->split && e->work >= job->least_work &&
		(job->budget->work == 0 || job->budget->work >= e->work);
}

void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_domain *all = ap_domain_all(ctx, job->p);
	size_t table_bytes = job->budget->table_bytes;
	struct ap_elim_options options = {.by_memory = true, .work = job->budget->work,
		.no_share = job->budget->no_fold,
		.table_bytes = table_bytes ? table_bytes : (size_t)1 << 30};
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
