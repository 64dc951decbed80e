/* SPDX-License-Identifier: Apache-2.0 */
#include "search/narrow.h"

#include <math.h>

#include "base/arena.h"
#include "search/focus.h"
#include "search/limit.h"

struct narrowing {
	struct ap_ctx *ctx;
	const struct ap_narrow_job *job;
	const struct ap_compact *rest; /* of the candidates that are allowed at all */
	struct ap_narrowed *out;
};

/* Domains of the rest as those of the whole. */
static struct ap_domain *widened(const struct narrowing *w, const struct ap_domain *d)
{
	struct ap_domain *out = AP_NEW_N(w->ctx->scratch, struct ap_domain, w->job->p->n);

	for (uint32_t i = 0; i < w->job->p->n; i++)
		out[i] = w->rest->domain[i];
	for (uint32_t i = 0; i < w->rest->p.n; i++) {
		const struct ap_domain *all = &w->rest->domain[w->rest->node[i]];
		struct ap_domain *to = &out[w->rest->node[i]];

		to->n = d[i].n;
		to->c = AP_NEW_N(w->ctx->scratch, uint32_t, d[i].n);
		for (uint32_t c = 0; c < d[i].n; c++)
			to->c[c] = all->c[d[i].c[c]];
	}
	return out;
}

static bool best_of_few(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct narrowing *w = user;
	uint32_t *whole = AP_NEW_N(ctx->scratch, uint32_t, w->job->p->n);

	if (!w->job->best_of(ctx, w->job->user, widened(w, few), max_work, whole, work))
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
	w->out->pick = AP_NEW_N(w->ctx->scratch, uint32_t, w->job->p->n);
	ap_compact_expand(w->rest, w->job->p, dual->pick, w->out->pick);
	w->out->cost = dual->cost + w->rest->cost;
	if (!ap_limit_worth(g, dual->cost, dual->bound) || g->at.price != dual->price)
		return;
	d = ap_limit_narrow(w->ctx, g, dual->cost, &w->out->work);
	if (d)
		w->out->domain = widened(w, d);
}

static void search(struct narrowing *w, const struct ap_elim *e)
{
	struct ap_budget left = *w->job->budget;
	struct ap_focus_job job = {.left = &left, .best_of = best_of_few, .user = w};
	uint32_t *pick = AP_NEW_N(w->ctx->scratch, uint32_t, w->rest->p.n), *start;
	struct ap_pricing g;
	struct ap_dual dual;

	for (int s = 0; s < 2 && left.start[s]; s++) {
		start = AP_NEW_N(w->ctx->scratch, uint32_t, w->rest->p.n);
		ap_compact_narrow(w->rest, left.start[s], start);
		left.start[s] = start;
	}
	job.g = &g;
	job.pick = pick;
	ap_pricing_open(w->ctx, e, &w->rest->p, ap_elim_room(w->ctx, e), &g);
	w->out->work += e->work;
	if (!ap_elim_eval(w->ctx, e, &w->rest->p, g.value, &job.least) || isinf(job.least))
		return;
	ap_elim_pick(w->ctx, e, g.value, pick);
	ap_focus_solve(w->ctx, &job, &dual);
	w->out->work += dual.work;
	narrow(w, &g, &dual);
}

void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out)
{
	const struct ap_domain *all = ap_domain_all(ctx, job->p);
	size_t table_bytes = job->budget->table_bytes;
	struct ap_elim_options options = {.by_memory = true, .work = job->budget->work,
		.no_share = job->budget->no_fold,
		.table_bytes = table_bytes ? table_bytes : (size_t)1 << 30};
	struct narrowing w = {.ctx = ctx, .job = job, .out = out};
	const struct ap_elim *e;

	*out = (struct ap_narrowed){.bound = -INFINITY, .cost = INFINITY};
	if (ap_domain_empty(job->p, all))
		return;
	w.rest = ap_compact_make(ctx, job->p, all);
	if (w.rest->p.n == 0)
		return;
	e = ap_elim_plan(ctx, &w.rest->p, &options);
	if (!e->split && e->work >= AP_LARGE_WORK && !(job->budget->work && job->budget->work < e->work))
		search(&w, e);
}
