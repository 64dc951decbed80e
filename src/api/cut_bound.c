/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cut_bound.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/points.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/least.h"
#include "graph/family.h"
#include "graph/fold.h"
#include "pipeline/schedule.h"

enum { MOST_PRICED = 24 }; /* numbers of stages and micro-batches, beside those of one micro-batch */

struct pricing {
	struct ap_ctx *ctx;
	struct ap_settings set; /* of one stage, but for micro-batches */
	struct ap_sources src; /* with a graph of fewer layers */
	struct ap_layer_fold fold;
};

/* Kernels of a step on the devices of one of pp stages; 0: not known. */
static double kernels_s(struct pricing *x, int64_t pp, int64_t micro_batches)
{
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	struct ap_mark mark = ap_arena_mark(x->ctx->arena), scratch = ap_arena_mark(x->ctx->scratch);
	struct ap_settings o = x->set;
	struct ap_family_chain chain;
	struct ap_inputs in;
	uint32_t *times;
	double s = 0;

	ap_points_give(&quiet, &o, AP_SET_micro_batches,
		ap_arena_printf(x->ctx->arena, "%" PRId64, micro_batches));
	x->src.apart = (uint32_t)pp;
	if (ap_inputs_make(&quiet, &o, &x->src, AP_FOR_search, &in) == AP_OK) {
		ap_family_chain(&quiet, in.graph, &chain);
		times = AP_NEW_N(x->ctx->arena, uint32_t, in.graph->nnode);
		for (ap_id i = 0; i < in.graph->nnode; i++)
			times[i] = chain.n == x->fold.nkept && chain.n && chain.layer[i] >= 0
				? x->fold.count[chain.layer[i]] : 1;
		s = ap_plan_least_passes_s(&quiet, in.graph, in.machine, &in.step, times);
	}
	ap_arena_release(x->ctx->scratch, scratch);
	ap_arena_release(x->ctx->arena, mark);
	return s;
}

struct pair { /* numbers of several points */
	int64_t pp, micro_batches;
	bool turns; /* some have stages of several segments, or split backward passes */
	bool priced;
	double kernels_s; /* of a step, at least */
};

/* Stages that have all done their work at the same time have (1 - 1/m) times that of the one before. */
static double least_s(const struct pair *p, bool turns)
{
	double m = (double)p->micro_batches, pp = (double)p->pp;

	return p->kernels_s / (turns ? pp : m * (1 - pow(1 - 1 / m, pp)));
}

static bool has_turns(const struct ap_decision_point *p)
{
	return p->vpp > 1 || ap_scheduler_at((size_t)p->scheduler)->splits;
}

void ap_cut_bound_key(const struct ap_decision_point *p, int64_t key[AP_CUT_BOUND_KEY])
{
	const int64_t all[AP_CUT_BOUND_KEY] = {p->pp, p->micro_batches, has_turns(p)};

	memcpy(key, all, sizeof all);
}

/* The graph with fewer layers, on the whole machine, and settings of one stage that deal the most. */
static enum ap_status begin(struct pricing *x, const struct ap_settings *set, const struct ap_sources *src)
{
	struct ap_ctx quiet = ap_diag_apart(x->ctx);
	struct ap_inputs in;

	x->set = ap_points_undecided(x->ctx, set);
	ap_points_give(x->ctx, &x->set, AP_SET_enable_parallel_optimizer, "true");
	ap_points_give(x->ctx, &x->set, AP_SET_optimizer_level, "level2");
	x->src = *src;
	AP_TRY(ap_inputs_make(&quiet, &x->set, src, AP_FOR_search, &in));
	x->src.ready = ap_graph_fold(x->ctx, in.loaded, 1, &x->fold);
	x->src.machine = in.machine;
	x->src.sketches = true;
	return AP_OK;
}

const double *ap_cut_bound(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision_point *point, uint32_t n)
{
	struct pricing x = {.ctx = ctx};
	struct ap_map *seen = ap_map_create(ctx->arena);
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, n);
	double *out = AP_NEW_N(ctx->arena, double, n);
	AP_VEC(struct pair) pairs = {0};

	if (begin(&x, set, src) != AP_OK)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_decision_point *p = &point[i];
		const int64_t key[] = {p->pp, p->micro_batches};
		bool fresh;

		of[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh)
			AP_PUSH(ctx->arena, pairs,
				((struct pair){.pp = p->pp, .micro_batches = p->micro_batches}));
		pairs.v[of[i]].turns |= has_turns(p);
	}
	for (size_t i = 0; i < pairs.n; i++)
		pairs.v[i].kernels_s = i && pairs.v[i].pp == pairs.v[i - 1].pp ? pairs.v[i - 1].kernels_s
			: kernels_s(&x, pairs.v[i].pp, 1);
	for (int k = 0; k < MOST_PRICED && !ap_ctx_stopped(ctx); k++) {
		struct pair *least = NULL;

		for (size_t i = 0; i < pairs.n; i++)
			if (!least || least_s(&pairs.v[i], pairs.v[i].turns) < least_s(least, least->turns))
				least = &pairs.v[i];
		if (!least || least->priced)
			break;
		least->kernels_s = fmax(least->kernels_s, kernels_s(&x, least->pp, least->micro_batches));
		least->priced = true;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = least_s(&pairs.v[of[i]], has_turns(&point[i]));
	return out;
}
