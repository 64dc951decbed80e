/* SPDX-License-Identifier: Apache-2.0 */
#include "api/operator_cuts.h"

#include <inttypes.h>

#include "api/points.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "route/route.h"

enum { CUTS_TRIED = 3 }; /* settings under which cuts are searched */
#define CUTS_NEAR 1.1 /* their best hybrids take so many times the best of all at most */
/* What a table may take, and a round of the engine after it; layers share the table, but not the round. */
#define CUTS_WORK (INT64_C(1) << 38) /* over the number of layers, within: */
#define LEAST_WORK (INT64_C(1) << 32)
#define MOST_WORK (INT64_C(1) << 34)

struct cutting {
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	double step_s; /* 0: no plan was found */
};

static void search_cuts(void *user)
{
	struct cutting *c = user;
	struct ap_ctx quiet = ap_diag_apart(&c->ctx);
	struct ap_inputs in;
	struct ap_plan plan;
	enum ap_status st;

	if (ap_inputs_make(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK ||
		ap_inputs_give(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK)
		return;
	st = ap_inputs_plan(&quiet, &in, NULL, &plan, NULL);
	if (st == AP_OK || st == AP_STOPPED)
		c->step_s = plan.prediction.step_time_s;
}

/* Do hybrids differ in nothing but degrees inside a stage? */
static bool has_same_stages(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	return a->pp == b->pp && a->vpp == b->vpp && a->scheduler == b->scheduler &&
		a->micro_batches == b->micro_batches && a->mix == b->mix && a->kind == b->kind &&
		a->level == b->level && a->shard == b->shard && a->regathers == b->regathers;
}

/* Do hybrids of the same stages deal the same but for their level, which changes nothing of their step?
 * Then a search of other cuts hardly tells them apart. */
static bool is_same_by_level(const struct ap_decision_trial *a, const struct ap_decision_trial *b)
{
	struct ap_decision_point other = b->point;

	other.level = a->point.level;
	return a->point.level && b->point.level && a->step_s == b->step_s &&
		has_same_stages(&a->point, &other);
}

/* The fastest hybrids of different stages, at most CUTS_TRIED, the best first; returns how many. */
static uint32_t find_nearest(const struct ap_decision *d, uint32_t at[CUTS_TRIED])
{
	double most_s = d->trial[d->best].step_s * CUTS_NEAR;
	uint32_t n = 0;

	for (; n < CUTS_TRIED; n++) {
		uint32_t next = AP_NONE;

		for (uint32_t i = 0; i < d->n; i++) {
			const struct ap_decision_trial *t = &d->trial[i];
			bool met = t->verdict != AP_DECISION_FITS || t->step_s > most_s;

			for (uint32_t k = 0; k < n && !met; k++)
				met = has_same_stages(&t->point, &d->trial[at[k]].point);
			if (!met && (next == AP_NONE || t->step_s < d->trial[next].step_s))
				next = i;
		}
		if (next == AP_NONE)
			break;
		at[n] = next;
	}
	return n;
}

static int64_t work_of(int64_t layers)
{
	int64_t work = CUTS_WORK / (layers > 0 ? layers : 1);

	return work < LEAST_WORK ? LEAST_WORK : work > MOST_WORK ? MOST_WORK : work;
}

bool ap_operator_cuts_sayable(const struct ap_settings *set)
{
	const struct ap_route *route = ap_route_at((size_t)set->executor);

	return !route->degrees && !route->complete && !set->hybrid &&
		set->parallel_mode == AP_MODE_AUTO_PARALLEL;
}

void ap_operator_cuts_settings(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *d,
	const struct ap_decision_point *point, struct ap_settings *out)
{
	ap_points_settings(ctx, set, &d->space, point, out);
	ap_setting_unset(out, AP_SET_hybrid);
	out->memory = d->usable_bytes;
	if (!ap_setting_given(set, AP_SET_work_limit))
		ap_points_give(ctx, out, AP_SET_work_limit,
			ap_arena_printf(ctx->arena, "%" PRId64, work_of(d->space.layers)));
}

double ap_operator_cuts_step(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src)
{
	struct cutting c = {.ctx = *ctx, .set = set, .src = src};
	struct ap_arena *made;

	c.ctx.phase = NULL;
	if (!ap_attempt_apart(&c.ctx, search_cuts, NULL, &c, &made))
		return 0;
	ap_arena_destroy(made);
	return c.step_s;
}

bool ap_operator_cuts_search(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial)
{
	double best_s = d->trial[d->best].step_s;
	uint32_t at[CUTS_TRIED], n;
	bool found = false;

	if (!ap_operator_cuts_sayable(set))
		return false;
	ap_ctx_phase(ctx, "cutting");
	n = find_nearest(d, at);
	for (uint32_t k = 0; k < n && !ap_ctx_stopped(ctx); k++) {
		struct ap_settings o, fastest;
		double each_s;
		bool met = false;

		for (uint32_t i = 0; i < k && !met; i++)
			met = is_same_by_level(&d->trial[at[i]], &d->trial[at[k]]);
		if (met)
			continue;
		ap_operator_cuts_settings(ctx, set, d, &d->trial[at[k]].point, &o);
		fastest = o;
		ap_setting_unset(&fastest, AP_SET_keep); /* what is kept is held against it */
		ap_setting_unset(&fastest, AP_SET_within);
		each_s = ap_operator_cuts_step(ctx, &fastest, src);
		if (each_s > 0 && each_s < best_s) {
			best_s = *step_s = each_s;
			*out = o;
			*trial = at[k];
			found = true;
		}
	}
	return found;
}
