/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/low_memory.h"

#include "base/arena.h"
#include "base/diag.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "drive/fit.h"
#include "drive/recursive.h"
#include "plan/make.h"
#include "table/table.h"

#define MOST_TRIES 4
#define MOST_EXACT (UINT64_C(1) << 24) /* steps, if they are limited: more finds little more */
#define PART 4 /* of the steps left, for one plan */

struct leaning {
	struct ap_ctx ctx; /* with a diag that reports nothing */
	const struct ap_request *rq;
	const int32_t *const *fixed;
	struct ap_plan_maker *maker;
	struct ap_plan *best; /* graph NULL: none yet */
	uint64_t *steps; /* left; NULL: no limit */
};

/* Bytes left on the stage that needs most; below 0: it does not fit. */
static int64_t weigh(struct leaning *l, const int32_t *const *counts)
{
	struct ap_plan p;

	ap_plan_price(l->maker, counts, &p);
	if (!l->best->graph || p.prediction.memory.total < l->best->prediction.memory.total)
		*l->best = p;
	return l->rq->capacity_bytes - p.prediction.memory.total;
}

static void spend(struct leaning *l, uint64_t steps)
{
	if (l->steps)
		*l->steps -= steps < *l->steps ? steps : *l->steps;
}

static bool is_spent(const struct leaning *l)
{
	return l->steps && (*l->steps == 0 || ap_ctx_stopped(&l->ctx));
}

/* The recursion knows only the sum over the stages: if one needs more than it has, all get less,
 * twice as much less at each try. */
static bool try_recursion(struct leaning *l)
{
	const struct ap_request *rq = l->rq;
	uint32_t nstage = rq->machine->nstage;
	struct ap_rec_limits limits = {.insist = !l->steps, .first = l->steps,
		.bytes = ap_choose_sum_bytes(rq)};

	for (int i = 0; i < MOST_TRIES && !is_spent(l); i++) {
		struct ap_recursive r;
		int64_t spare;

		if (l->steps)
			limits.work = *l->steps / PART / AP_RECURSION_STEPS + 1;
		ap_recursive_plan(&l->ctx, rq->graph, rq->machine, rq->step, l->fixed, &limits, &r);
		spend(l, r.work * AP_RECURSION_STEPS);
		spare = r.allowed ? weigh(l, r.counts) : 0;
		if (spare >= 0 || !r.fits || nstage == 1)
			return r.allowed && spare >= 0;
		limits.bytes = r.memory_bytes + spare * (INT64_C(1) << i);
	}
	return false;
}

static bool try_exact(struct leaning *l)
{
	const struct ap_engine *exact = ap_engine_of_parts();
	struct ap_choice c = {.outcome = AP_OUT_LIMIT};
	struct ap_request rq = *l->rq;
	const struct ap_table *t;
	enum ap_status st;

	if (ap_ctx_stopped(&l->ctx) || is_spent(l))
		return false;
	if (l->steps)
		rq.budget.work = *l->steps < MOST_EXACT ? *l->steps : MOST_EXACT;
	st = ap_choose_table(&l->ctx, &rq, l->fixed, true, &t);
	if (st == AP_OK || st == AP_LIMIT)
		spend(l, t->work);
	if (st != AP_OK || is_spent(l))
		return false;
	return ap_fit_lean(&l->ctx, t, exact, INT64_MAX, &c) &&
		weigh(l, ap_chosen_counts(&l->ctx, t, c.pick)) >= 0;
}

bool ap_low_memory_plan(struct ap_ctx *ctx, const struct ap_request *rq, uint64_t *steps, struct ap_plan *out)
{
	struct leaning l = {.ctx = ap_diag_apart(ctx), .rq = rq, .best = out, .steps = steps};

	*out = (struct ap_plan){0};
	l.ctx.phase = NULL;
	l.ctx.progress = NULL;
	if (ap_pins_make(&l.ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &l.fixed) != AP_OK)
		return false;
	l.maker = ap_plan_maker_create(&l.ctx, rq->graph, rq->machine, rq->step, rq->capacity_bytes);
	return try_recursion(&l) || try_exact(&l);
}
