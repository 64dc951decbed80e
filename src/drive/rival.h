/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that compete: each is simulated, and the fastest that fits the memory is taken; of equals the
 * one added first. MindSpore's checkpoints hold only operators with parameters. Where a route decides the
 * others, a plan is taken as the route completes it; else the best is compared with what `evaluate` makes
 * of its checkpoint, ap_rival_complete(), and given up for that unless it is slower by more than
 * AP_RIVAL_TOLD.
 *
 * Plans are added in an order that no limit changes, and settled at the end of each phase of a search: so a
 * search that is stopped later has met all that one stopped before has.
 */
#ifndef AP_DRIVE_RIVAL_H
#define AP_DRIVE_RIVAL_H

/* Of a step: no prediction is worth so little, a checkpoint that is its plan is. */
#define AP_RIVAL_TOLD 1e-4

#include "base/vec.h"
#include "drive/request.h"
#include "hybrid/hybrid.h"
#include "plan/make.h"
#include "table/table.h"

#define AP_MAX_GRIDS 64

struct ap_rival { /* a plan as it was found */
	const int32_t *const *counts; /* NULL: those of hybrid */
	const struct ap_hybrid *hybrid; /* the plan is of the graph that ap_hybrid_deal() makes; else NULL */
	double step_time_s, bubble_s, objective_s;
	int64_t memory_bytes;
	bool fits, wanted; /* the memory; the settings of the search allow it */
	bool optimal; /* its objective is proven */
	bool told; /* compared as the route completes it */
};

struct ap_grid { /* an expert's dp x cp x tp grid */
	const char *name;
	int64_t dp, tp;
	const int32_t *const *counts; /* NULL: impossible */
	const char *why; /* it is impossible */
	bool rare; /* it cuts sequences: simulated only if its objective is near the best */
};

struct ap_rivals {
	struct ap_ctx *ctx;
	bool grids_made;
	uint32_t ngrid;
	struct ap_grid grid[AP_MAX_GRIDS];
	struct ap_plan_maker *maker;
	struct ap_arena *sketches; /* of one plan at a time */
	const int32_t *const *fixed; /* rows to which settings of the search do not apply; may be NULL */
	bool any; /* such settings are ignored: nothing is searched */
	const struct ap_route *route; /* decides what a checkpoint does not hold; NULL: none */
	struct ap_completer *completer; /* of route */
	const struct ap_table *table; /* with prices for completion; NULL: none */
	const struct ap_plan *best; /* the fastest that fits; NULL: none fits */
	bool best_optimal; /* its objective is proven: completion would return the same plan */
	const struct ap_hybrid *best_hybrid; /* it is of the graph that ap_hybrid_deal() makes; else NULL */
	bool best_told; /* it was compared with what its checkpoint is completed to */
	size_t met; /* rivals that were compared with the best */
	AP_VEC(struct ap_rival) all; /* in the order of adding */
	size_t fed; /* those of the rivals without a route that were added here */
	AP_VEC(struct ap_baseline) baseline;
};

void ap_rivals_init(struct ap_rivals *r, struct ap_ctx *ctx, const struct ap_request *rq);

/* Makes r->maker anew. */
void ap_rivals_maker(struct ap_rivals *r, const struct ap_request *rq);

/* The rivals of the request's route, which decides what a checkpoint does not hold. They share maker
 * and sketches with those without it. */
void ap_rivals_routed(struct ap_rivals *r, const struct ap_rivals *free, const struct ap_request *rq);

/* Makes r->completer anew. */
void ap_rivals_completer(struct ap_rivals *r, const struct ap_request *rq);

/* Adds those that were added to `from` since the last call, to be completed by the route. */
void ap_rivals_feed(struct ap_rivals *r, const struct ap_rivals *from);

/* Frees what is outside the run arena; the plans stay. */
void ap_rivals_end(struct ap_rivals *r);

/* Adds the plan of counts, with a name also as a baseline. Returns it, until the next is added. */
struct ap_rival *ap_rival_add(struct ap_rivals *r, const char *name, const int32_t *const *counts);

/* Adds the plan of a filled hybrid: as counts that ask for its dealt sums if it is then a plan of the
 * request's graph, else of a graph of its own. NULL: it is none, breaks fixed rows, or deals nothing, and
 * same_too is not set. */
struct ap_rival *ap_rival_add_hybrid(struct ap_rivals *r, const struct ap_request *rq,
	const struct ap_hybrid *h, bool same_too);

/* The plan of a rival, in the run arena. */
const struct ap_plan *ap_rival_plan(struct ap_rivals *r, const struct ap_request *rq,
	const struct ap_hybrid *h, const int32_t *const *counts);

/* Adds a baseline that is not applicable, and the reason. */
void ap_rival_absent(struct ap_rivals *r, const char *name, const char *why);

/* The grids of a request, made on the first call; none for a very large graph. */
const struct ap_grid *ap_rival_grids(struct ap_rivals *r, const struct ap_request *rq, uint32_t *n);

/* Sets r->best to the fastest plan of all. With a route, to the fastest as the route completes them:
 * those added since the last call, fastest first, as long as one is faster than the best; in a stopped
 * run only if there is no best yet. */
void ap_rivals_settle(struct ap_rivals *r, const struct ap_request *rq);

/* Without a route, takes what the best plan's checkpoint is completed to, unless that is slower by more than
 * AP_RIVAL_TOLD: only then is the written plan another one than `evaluate` makes of its checkpoint. Not in a
 * stopped run. */
void ap_rivals_tell(struct ap_rivals *r, const struct ap_request *rq);

/* Takes a plan that is already what its checkpoint says if it is faster than the best. */
void ap_rival_take(struct ap_rivals *r, const struct ap_plan *p);

/*
 * The plan that fixed operators lead to: the others as the exact engine completes them within the
 * memory, or if faster, cut by the batch, or as in an expert's grid that the fixed ones agree with;
 * above the memory if nothing fits. AP_INFEASIBLE, with a message, if the fixed ones allow no plan.
 */
enum ap_status ap_rival_complete(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan **out);

/* The fixed counts, and the others cut by the batch; NULL if that is no plan. */
const int32_t *const *ap_rival_batch(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed);

/* The plan of counts as completed from its checkpoint; itself if no completion is needed or possible;
 * NULL if the route stops at it. optimal: the engine's completion is known to be the same plan. */
const struct ap_plan *ap_rival_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *counts, bool optimal);

/* The plan that the rivals' route makes of held rows. AP_INFEASIBLE, reported, if it stops. */
enum ap_status ap_rival_routed(struct ap_rivals *r, struct ap_ctx *ctx, const int32_t *const *held,
	const struct ap_plan **out);

#endif
