/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/route_improve.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "cost/conflict.h"
#include "cost/task.h"
#include "drive/drive.h"
#include "plan/make.h"
#include "shard/space.h"

#define MOST_OPERATORS 100000 /* completed: some tenths of a second */

struct improving {
	struct ap_rivals *r;
	const struct ap_request *rq;
	struct ap_ctx quiet; /* refusals are no news */
	const uint32_t *class_of;
	const bool *open; /* [nnode] the search's to choose */
	const int32_t **held; /* [nnode] of the best plan, and of what is fixed */
	double best_s; /* its step time */
	uint64_t left; /* operators that may still be completed */
};

static bool is_cut_alike(const struct improving *x, ap_id a, ap_id b)
{
	size_t bytes = x->rq->graph->node[a].bound.nfactor * sizeof(int32_t);

	return x->open[b] && x->class_of[a] == x->class_of[b] &&
		memcmp(x->held[a], x->held[b], bytes) == 0;
}

/* Is it the first of those that go together in this round? */
static bool leads(const struct improving *x, struct ap_map *round, ap_id node)
{
	uint32_t key[1 + AP_MAX_FACTOR] = {x->class_of[node]};
	size_t n = x->rq->graph->node[node].bound.nfactor;
	bool fresh = false;

	if (!x->open[node])
		return false;
	memcpy(key + 1, x->held[node], n * sizeof *key);
	ap_map_put(round, key, (1 + n) * sizeof *key, &fresh);
	return fresh;
}

/* The held rows with those like node cut otherwise. */
static const int32_t **stepped(const struct improving *x, ap_id node, const int32_t *count)
{
	ap_id n = x->rq->graph->nnode;
	const int32_t **held = ap_arena_memdup(x->quiet.arena, x->held, n * sizeof *held);

	for (ap_id i = node; i < n; i++)
		if (is_cut_alike(x, node, i))
			held[i] = count;
	return held;
}

/* Step time of what the route makes of held rows; infinite where that is no plan, or does not fit. */
static double step_s(struct improving *x, struct ap_plan_maker *maker, const int32_t *const *held)
{
	const struct ap_graph *g = x->rq->graph;
	const struct ap_machine *m = x->rq->machine;
	const int32_t *const *all;
	struct ap_plan plan;
	ap_id at;

	x->left -= x->left < g->nnode ? x->left : g->nnode;
	if (ap_plan_conflict(&x->quiet, g, m->ndev, held, &at) ||
		x->r->completer->complete(x->r->completer, &x->quiet, held, &all) != AP_OK)
		return INFINITY;
	ap_plan_sketch(maker, all, &plan);
	return plan.prediction.memory.total <= plan.capacity_bytes ? plan.prediction.step_time_s
		: INFINITY;
}

/* The best candidate of an operator and those like it, if it is better than what they have. */
static bool best_candidate(struct improving *x, ap_id node, int32_t chosen[AP_MAX_FACTOR])
{
	const struct ap_request *rq = x->rq;
	const struct ap_bound *b = &rq->graph->node[node].bound;
	size_t bytes = b->nfactor * sizeof(int32_t);
	struct ap_plan_maker *maker = ap_plan_maker_create(&x->quiet, rq->graph, rq->machine, rq->step,
		rq->capacity_bytes);
	struct ap_space space;
	bool any = false;

	ap_space_make(&x->quiet, b, rq->machine->ndev, rq->step, &space);
	for (uint32_t c = 0; c < space.n && x->left && !ap_ctx_stopped(x->r->ctx); c++) {
		const int32_t *count = &space.count[(size_t)c * space.nfactor];
		double s;

		if (memcmp(count, x->held[node], bytes) == 0)
			continue;
		s = step_s(x, maker, stepped(x, node, count));
		if (s >= x->best_s)
			continue;
		x->best_s = s;
		memcpy(chosen, count, bytes);
		any = true;
	}
	return any;
}

/* What is tried takes memory only while it is tried. */
static bool try_node(struct improving *x, ap_id node)
{
	struct ap_arena *arena = x->quiet.arena;
	struct ap_mark mark = ap_arena_mark(arena);
	int32_t chosen[AP_MAX_FACTOR] = {0};
	bool better;

	x->quiet.diag = ap_diag_create(arena, false);
	better = best_candidate(x, node, chosen);
	ap_arena_release(arena, mark);
	if (better)
		x->held = stepped(x, node, ap_arena_memdup(arena, chosen, sizeof chosen));
	return better;
}

static bool try_all(struct improving *x)
{
	struct ap_map *round = ap_map_create(x->r->ctx->arena);
	bool any = false;

	for (ap_id i = 0; i < x->rq->graph->nnode && x->left && !ap_ctx_stopped(x->r->ctx); i++) {
		bool better = leads(x, round, i) && try_node(x, i);

		if (better)
			leads(x, round, i); /* as they are cut now, they were tried */
		any |= better;
	}
	return any;
}

const struct ap_plan *ap_route_improve(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan *start)
{
	struct improving x = {.r = r, .rq = rq, .left = MOST_OPERATORS,
		.best_s = start->prediction.step_time_s};
	const struct ap_plan *plan = start;
	bool any = false;
	struct ap_arena *arena = r->ctx->arena;
	ap_id n = rq->graph->nnode;
	bool *open = AP_NEW_N(arena, bool, n);

	ap_ctx_phase(r->ctx, "bettering what the route completes");
	x.held = AP_NEW_N(arena, const int32_t *, n);
	for (ap_id i = 0; i < n; i++) {
		open[i] = start->op[i].in_checkpoint && !(fixed && fixed[i]);
		x.held[i] = fixed && fixed[i] ? fixed[i] : open[i] ? start->op[i].place.count : NULL;
	}
	x.open = open;
	x.class_of = ap_task_classes(r->ctx, start->task, n);
	x.quiet = *r->ctx;
	x.quiet.stop = NULL;
	while (x.left && !ap_ctx_stopped(r->ctx) && try_all(&x))
		any = true;
	x.quiet.diag = ap_diag_create(r->ctx->arena, false);
	if (any && ap_rival_routed(r, &x.quiet, x.held, &plan) != AP_OK)
		return start;
	return plan;
}
