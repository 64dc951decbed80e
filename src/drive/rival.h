/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that compete: each is simulated, the fastest that fits the memory is taken; but a proven
 * optimum of the objective gives way only to what is faster by more than the simulation can tell, or
 * to data parallel, which no plan may be slower than. What is taken is what its checkpoint stands
 * for: MindSpore's files name only the operators that have parameters, so the others must be what
 * ap_rival_complete(), or the route of the plan, makes of those, here and in `evaluate`.
 */
#ifndef AP_DRIVE_RIVAL_H
#define AP_DRIVE_RIVAL_H

#include "drive/request.h"
#include "plan/make.h"
#include "table/table.h"

#define AP_MAX_GRIDS 64
#define AP_MAX_RIVALS (AP_MAX_GRIDS + 48) /* two searches of at most 7 others, and 15 around what a route
                                           * decides (routed.c) */
#define AP_MAX_BASELINES AP_MAX_RIVALS

struct ap_rival {
	struct ap_plan plan; /* a sketch */
	bool optimal; /* its objective is proven: completing it anew would give it again */
	bool baseline; /* no plan may be slower */
};

struct ap_grid { /* an expert's dp x cp x tp grid */
	const char *name;
	const int32_t *const *counts; /* NULL: there is none */
	const char *why; /* then */
	bool rare; /* it cuts sequences: simulated only where its objective is near the best */
};

struct ap_rivals {
	struct ap_ctx *ctx;
	bool grids_made;
	uint32_t ngrid;
	struct ap_grid grid[AP_MAX_GRIDS];
	struct ap_plan_maker *maker;
	const int32_t *const *fixed; /* what the settings of the search do not ask about; may be NULL */
	bool any; /* those settings are not asked: nothing is searched */
	const struct ap_route *route; /* that decides what a checkpoint does not hold; NULL: none does */
	struct ap_completer *completer; /* its */
	const struct ap_table *table; /* whose prices completion can use; NULL: none */
	int n;
	struct ap_rival v[AP_MAX_RIVALS];
	uint32_t nbaseline;
	struct ap_baseline baseline[AP_MAX_BASELINES];
};

void ap_rivals_init(struct ap_rivals *r, struct ap_ctx *ctx, const struct ap_request *rq);

/* Its maker of plans, anew. */
void ap_rivals_maker(struct ap_rivals *r, const struct ap_request *rq);

/* From now on, what a checkpoint does not hold is decided by the request's route. */
void ap_rivals_route(struct ap_rivals *r, const struct ap_request *rq);

/* Gives back what is not of the run arena; the plans stay. */
void ap_rivals_end(struct ap_rivals *r);

/* Adds the plan of counts, as a baseline too where it has a name. Returns it. */
struct ap_rival *ap_rival_add(struct ap_rivals *r, const char *name, const int32_t *const *counts);

/* Adds a baseline that there is none of, and why. */
void ap_rival_absent(struct ap_rivals *r, const char *name, const char *why);

/* Does any plan fit the memory? */
bool ap_rival_fits(const struct ap_rivals *r);

/* The grids of a request, made when they are first asked for; none of a very large graph. */
const struct ap_grid *ap_rival_grids(struct ap_rivals *r, const struct ap_request *rq, uint32_t *n);

/*
 * The plan that some fixed operators stand for: the others as the exact engine completes them within
 * the memory, or cut by the batch, or as in an expert's grid that the fixed ones are of, where that is
 * faster; above the memory where nothing fits.
 * AP_INFEASIBLE, with a message, when what is fixed leaves no plan.
 */
enum ap_status ap_rival_complete(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan **out);

/* Counts with what is not fixed cut by the batch; NULL where that is no plan. */
const int32_t *const *ap_rival_batch(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed);

/* The rival as its checkpoint tells it: itself where that needs no completion or there is none; NULL
 * where the route stops at it. */
const struct ap_plan *ap_rival_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_rival *v);

/* The plan that the rivals' route makes of what is held. AP_INFEASIBLE, told, where it stops at that. */
enum ap_status ap_rival_routed(struct ap_rivals *r, struct ap_ctx *ctx, const int32_t *const *held,
	const struct ap_plan **out);

/* The fastest plan that fits, completed from what a checkpoint holds of it (unless !complete, for
 * want of time: then of a route, where the graph is very large, the first that fits); NULL: none fits.
 * Of equals the one added first. */
const struct ap_plan *ap_rival_best(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, bool complete);

#endif
