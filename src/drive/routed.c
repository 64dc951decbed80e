/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/routed.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "drive/choose.h"
#include "drive/recursive.h"
#include "plan/make.h"
#include "shard/space.h"

struct comparing {
	const struct ap_plan *plan, *free;
	uint32_t n;
	struct ap_route_differ *differ;
	uint32_t *at; /* [nnode] index in differ, plus 1; 0: not in it */
};

static bool is_same(const struct comparing *c, ap_id node)
{
	return memcmp(c->plan->op[node].place.count, c->free->op[node].place.count,
		c->plan->graph->node[node].bound.nfactor * sizeof(int32_t)) == 0;
}

/* A redistribution counts for the operator behind it if that differs, else for the one before it;
 * between operators that do not differ it is the same. */
static void compare_moves(struct comparing *c, const struct ap_plan *p, double sign)
{
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		uint32_t at;

		if (m->from == AP_NONE)
			continue;
		at = c->at[m->to] ? c->at[m->to] : c->at[m->from];
		if (at)
			c->differ[at - 1].moves_s += sign * m->cost.objective_s;
	}
}

const struct ap_plan_route *ap_routed_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free)
{
	struct ap_plan_route *r = AP_NEW(ctx->arena, struct ap_plan_route);
	struct comparing c = {.plan = plan, .free = free};

	c.differ = AP_NEW_N(ctx->arena, struct ap_route_differ, plan->graph->nnode);
	c.at = AP_NEW_N(ctx->arena, uint32_t, plan->graph->nnode);
	for (ap_id i = 0; i < plan->graph->nnode; i++) {
		if (is_same(&c, i))
			continue;
		c.differ[c.n++] = (struct ap_route_differ){
			.node = i,
			.free_count = free->op[i].place.count,
			.operator_s = ap_op_cost_total_s(&plan->op[i].cost, plan->step) -
				ap_op_cost_total_s(&free->op[i].cost, free->step),
		};
		c.at[i] = c.n;
	}
	compare_moves(&c, plan, 1);
	compare_moves(&c, free, -1);
	*r = (struct ap_plan_route){
		.route = route,
		.free_objective_s = free->search.objective_s,
		.free_step_time_s = free->prediction.step_time_s,
		.loss_s = plan->search.objective_s - free->search.objective_s,
		.n = c.n,
		.differ = c.differ,
	};
	return r;
}

#define ROUNDS 3 /* around the best plan, data parallel, and the best of both */
#define MOST_TRIES 3 /* per round */
#define MARGIN 512 /* 1/512 of the memory is left free beyond what the last try lacked */
#define DOUBT 0.01 /* of a simulated time */

struct anew {
	struct ap_rivals *r;
	const struct ap_request *rq;
	const int32_t *const *fixed;
	struct ap_ctx quiet; /* failing searches are not reported */
	uint64_t work;
};

/* The fixed rows, and those that the route decides for operators that no checkpoint holds, given
 * counts for those that it holds. NULL: the route stops at them. */
static const int32_t *const *decided_around(struct anew *x, const int32_t *const *counts)
{
	const struct ap_graph *g = x->rq->graph;
	const int32_t **rows = AP_NEW_N(x->quiet.arena, const int32_t *, g->nnode);
	const int32_t *const *all;

	for (ap_id i = 0; i < g->nnode; i++)
		if (x->fixed && x->fixed[i])
			rows[i] = x->fixed[i];
		else if (ap_plan_is_held(&g->node[i]))
			rows[i] = counts[i];
	if (x->r->completer->complete(x->r->completer, &x->quiet, rows, &all) != AP_OK)
		return NULL;
	for (ap_id i = 0; i < g->nnode; i++)
		if (!(x->fixed && x->fixed[i]))
			rows[i] = ap_plan_is_held(&g->node[i]) ? NULL : all[i];
	return rows;
}

/* The recursion's choice within rq's capacity; NULL: none. */
static const int32_t *const *recur(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	const struct ap_rec_limits limits = {.bytes = ap_choose_sum_bytes(rq), .insist = true};
	struct ap_ctx unhurried = x->quiet;
	struct ap_recursive r;

	unhurried.stop = NULL;
	ap_recursive_plan(&unhurried, rq->graph, rq->machine, rq->step, fixed, &limits, &r);
	x->work += r.work;
	return r.allowed ? r.counts : NULL;
}

/* The exact engine's choice within rq's capacity; NULL: none. */
static const int32_t *const *choose(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	struct ap_hints hints = {.wider = x->r->table};
	struct ap_chosen c = {0};

	if (ap_choose(&x->quiet, rq, ap_engine_of_parts(), fixed, &hints, &c) != AP_OK)
		return NULL;
	x->work += c.choice.work;
	return ap_choice_any(&c.choice) ? ap_chosen_counts(&x->quiet, c.table, c.choice.pick) : NULL;
}

typedef const int32_t *const *choose_fn(struct anew *x, const struct ap_request *rq,
	const int32_t *const *fixed);

/* The last plan of a few tries with falling capacity, which fits or nearly does; NULL: none. */
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
		told = ap_rival_told(x->r, x->rq, chosen, false);
		if (told)
			ap_rival_take(x->r, told);
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

uint64_t ap_routed_quick(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free)
{
	struct anew x = {.r = r, .rq = rq, .fixed = fixed, .quiet = ap_diag_apart(r->ctx)};
	const int32_t *const *around[] = {ap_plan_counts(r->ctx, free), ap_rival_batch(r, rq, fixed)};

	for (size_t i = 0; i < AP_COUNT(around) && !(r->best && ap_ctx_stopped(r->ctx)); i++)
		search_around(&x, recur, around[i]);
	return x.work;
}

uint64_t ap_routed_search(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free)
{
	struct anew x = {.r = r, .rq = rq, .fixed = fixed, .quiet = ap_diag_apart(r->ctx)};
	const struct ap_plan *around = r->best ? r->best : free;

	for (int round = 0; round < ROUNDS && !is_good(r->best, free) && !ap_ctx_stopped(r->ctx); round++) {
		const struct ap_plan *before = r->best, *told = search_round(&x, round == 1, around);

		if (round == 1 && before && !is_faster(r->best, before))
			break;
		around = r->best ? r->best : told ? told : free;
	}
	return x.work;
}
