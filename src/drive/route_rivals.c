/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/route_rivals.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "drive/choose.h"
#include "drive/recursive.h"
#include "plan/make.h"

#define ROUNDS 3 /* around the best plan, data parallel, and what is best then */
#define MOST_TRIES 3 /* of each */
#define MARGIN 512 /* part of the memory that a try leaves free beyond what the last one lacked */
#define DOUBT 0.01 /* of a simulated time */

struct anew {
	struct ap_rivals *r;
	const struct ap_request *rq;
	const int32_t *const *fixed;
	struct ap_ctx quiet; /* a search that finds nothing is no news */
	uint64_t work;
};

/* What is fixed, and what the route makes of the other operators that no checkpoint holds, where those
 * that it holds are cut so. NULL: the route stops at that. */
static const int32_t *const *decided_around(struct anew *x, const int32_t *const *counts)
{
	const struct ap_plan *p = &x->r->v[0].plan;
	const int32_t **rows = AP_NEW_N(x->quiet.arena, const int32_t *, p->graph->nnode);
	const int32_t *const *all;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (x->fixed && x->fixed[i])
			rows[i] = x->fixed[i];
		else if (p->op[i].in_checkpoint)
			rows[i] = counts[i];
	if (x->r->completer->complete(x->r->completer, &x->quiet, rows, &all) != AP_OK)
		return NULL;
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (!(x->fixed && x->fixed[i]))
			rows[i] = p->op[i].in_checkpoint ? NULL : all[i];
	return rows;
}

/* What the recursion comes to within a capacity; NULL: nothing. */
static const int32_t *const *recur(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	const struct ap_rec_limits limits = {.bytes = ap_choose_sum_bytes(rq), .insist = true};
	struct ap_ctx unhurried = x->quiet;
	struct ap_recursive r;

	unhurried.stop = NULL;
	ap_plan_recursive(&unhurried, rq->graph, rq->machine, rq->step, fixed, &limits, &r);
	x->work += r.work;
	return r.allowed ? r.counts : NULL;
}

/* The best choice within a capacity; NULL: none. */
static const int32_t *const *choose(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	struct ap_hints hints = {.wider = x->r->table};
	struct ap_chosen c = {0};

	if (ap_choose(&x->quiet, rq, ap_engine_find("dynamic_programming"), fixed, &hints, &c) != AP_OK)
		return NULL;
	x->work += c.choice.work;
	return ap_chosen_any(&c) ? ap_chosen_counts(&x->quiet, c.table, c.choice.pick) : NULL;
}

typedef const int32_t *const *choose_fn(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed);

/* The last plan that it comes to, which fits or nearly does; NULL: none. */
static const struct ap_plan *search_around(struct anew *x, choose_fn *choose_by,
	const int32_t *const *counts)
{
	const int32_t *const *fixed = counts ? decided_around(x, counts) : NULL;
	const struct ap_plan *told = NULL;
	struct ap_request rq = *x->rq;

	for (int i = 0; fixed && i < MOST_TRIES; i++) {
		const int32_t *const *chosen = choose_by(x, &rq, fixed);
		int64_t more;

		if (!chosen)
			break;
		told = ap_rival_told(x->r, x->rq, x->fixed, ap_rival_add(x->r, NULL, chosen));
		more = told ? told->prediction.memory.total - told->capacity_bytes : 0;
		if (more <= 0)
			break;
		rq.capacity_bytes -= (more << i) + x->rq->capacity_bytes / MARGIN;
	}
	return told;
}

static bool is_good(const struct ap_plan *best, const struct ap_plan *free)
{
	return best && best->prediction.step_time_s <= (1 + DOUBT) * free->prediction.step_time_s;
}

static bool is_faster(const struct ap_plan *a, const struct ap_plan *b)
{
	return a->prediction.step_time_s < b->prediction.step_time_s;
}

static const struct ap_plan *search_round(struct anew *x, bool by_batch, const struct ap_plan *around)
{
	return search_around(x, choose, by_batch ? ap_rival_batch(x->r, x->rq, x->fixed)
		: ap_plan_counts(x->r->ctx, around));
}

/* A plan that fits, of whatever quality, so that there is one whenever the search is stopped. */
static const struct ap_plan *quick(struct anew *x, const struct ap_plan *free)
{
	const int32_t *const *around[] = {ap_plan_counts(x->r->ctx, free),
		ap_rival_batch(x->r, x->rq, x->fixed)};
	const struct ap_plan *best = NULL;

	for (size_t i = 0; i < AP_COUNT(around); i++) {
		if (best && ap_ctx_stopped(x->r->ctx))
			break;
		search_around(x, recur, around[i]);
		best = ap_rival_best(x->r, x->rq, x->fixed, true);
	}
	return best;
}

uint64_t ap_route_rivals(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free)
{
	struct anew x = {.r = r, .rq = rq, .fixed = fixed, .quiet = *r->ctx};
	const struct ap_plan *best = ap_rival_best(r, rq, fixed, true), *around = best ? best : free;

	x.quiet.diag = ap_diag_create(r->ctx->arena, false);
	if (!best)
		best = quick(&x, free);
	for (int round = 0; round < ROUNDS && !is_good(best, free) && !ap_ctx_stopped(r->ctx); round++) {
		const struct ap_plan *told = search_round(&x, round == 1, around), *before = best;

		best = ap_rival_best(r, rq, fixed, true);
		if (round == 1 && before && !is_faster(best, before))
			break;
		around = best ? best : told ? told : free;
	}
	return x.work;
}
