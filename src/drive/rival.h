/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that compete: each is simulated, and the fastest that fits the memory is taken; but a
 * proven optimum of the objective gives way only to a plan that is faster by more than the
 * simulation's uncertainty, or to a baseline, than which no plan may be slower. A plan is taken as
 * completed from its checkpoint: MindSpore's files hold only operators with parameters, so the
 * others must be what ap_rival_complete(), or the plan's route, makes of those, here and in
 * `evaluate`.
 */
#ifndef AP_DRIVE_RIVAL_H
#define AP_DRIVE_RIVAL_H

#include "drive/request.h"
#include "plan/make.h"
#include "table/table.h"

#define AP_MAX_GRIDS 64
#define AP_MAX_RIVALS (AP_MAX_GRIDS + 48) /* 2 searches with up to 7 others each, and 15 of routed.c */
#define AP_MAX_BASELINES AP_MAX_RIVALS

struct ap_rival {
	struct ap_plan plan; /* a sketch */
	bool optimal; /* its objective is proven: completion would return the same plan */
	bool baseline; /* no plan may be slower */
};

struct ap_grid { /* an expert's dp x cp x tp grid */
	const char *name;
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
	const int32_t *const *fixed; /* rows to which settings of the search do not apply; may be NULL */
	bool any; /* such settings are ignored: nothing is searched */
	const struct ap_route *route; /* decides what a checkpoint does not hold; NULL: none */
	struct ap_completer *completer; /* of route */
	const struct ap_table *table; /* with prices for completion; NULL: none */
	int n;
	struct ap_rival v[AP_MAX_RIVALS];
	uint32_t nbaseline;
	struct ap_baseline baseline[AP_MAX_BASELINES];
};

void ap_rivals_init(struct ap_rivals *r, struct ap_ctx *ctx, const struct ap_request *rq);

/* Makes r->maker anew. */
void ap_rivals_maker(struct ap_rivals *r, const struct ap_request *rq);

/* From now on, the request's route decides what a checkpoint does not hold. */
void ap_rivals_route(struct ap_rivals *r, const struct ap_request *rq);

/* Frees what is outside the run arena; the plans stay. */
void ap_rivals_end(struct ap_rivals *r);

/* Adds the plan of counts, with a name also as a baseline. Returns it. */
struct ap_rival *ap_rival_add(struct ap_rivals *r, const char *name, const int32_t *const *counts);

/* Adds a baseline that is not applicable, and the reason. */
void ap_rival_absent(struct ap_rivals *r, const char *name, const char *why);

/* Does any plan fit the memory? */
bool ap_rival_fits(const struct ap_rivals *r);

/* The grids of a request, made on the first call; none for a very large graph. */
const struct ap_grid *ap_rival_grids(struct ap_rivals *r, const struct ap_request *rq, uint32_t *n);

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

/* The rival as completed from its checkpoint; itself if no completion is needed or possible; NULL
 * if the route stops at it. */
const struct ap_plan *ap_rival_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_rival *v);

/* The plan that the rivals' route makes of held rows. AP_INFEASIBLE, reported, if it stops. */
enum ap_status ap_rival_routed(struct ap_rivals *r, struct ap_ctx *ctx, const int32_t *const *held,
	const struct ap_plan **out);

/* The fastest plan that fits, of equals the one added first, completed from its checkpoint; NULL:
 * none fits. !complete, for lack of time: not completed, but with a route, of a very large graph
 * the first completed plan that fits. */
const struct ap_plan *ap_rival_best(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, bool complete);

#endif
