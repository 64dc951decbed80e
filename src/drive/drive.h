/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: table -> engine -> plan -> verified plan. The command line and any other client of the
 * library start here once graph and machine are loaded.
 */
#ifndef AP_DRIVE_DRIVE_H
#define AP_DRIVE_DRIVE_H

#include "drive/request.h"
#include "hybrid/hybrid.h"
#include "plan/plan.h"
#include "plan/simulate.h"

/*
 * Searches. AP_OK: *out is complete and verified; AP_INFEASIBLE: a message gives what is short and
 * by how much; AP_STOPPED: best so far, verified; AP_LIMIT: no plan; AP_INTERNAL: the verifier
 * disagreed. Returns no plan that is slower than a baseline that fits. *problem (may be NULL) receives the
 * table searched.
 */
enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_plan *out,
	const struct ap_problem **problem);

/* A search's result outside its arena, so that the best plan survives a lack of memory. */
struct ap_found {
	bool any;
	int32_t **count; /* [nnode][factor] of the best plan */
	struct ap_search_info search; /* of it */
	bool other; /* it is of the request's other cut */
	bool recut; /* it is of one that the search made */
	bool kept; /* it is of request.keep_cut */
	struct ap_spot *spot; /* [request.cutting->graph->nnode] then, of that one */
	ap_id room; /* rows of count */
	struct ap_hybrid hybrid; /* of whose own graph the plan is; dp 0: none */
	uint64_t steps; /* steps of the search, whatever it found */
	struct ap_arena *arena; /* of the search, with plan and problem; NULL: destroyed */
};

/* The same; with AP_OK and AP_STOPPED the caller owns found->arena. If memory runs out in a part of
 * the search, the other parts go on, and AP_STOPPED is returned with what they found. */
enum ap_status ap_drive_find(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem);

/* Destroys the search's arena and makes the best plan found again, without baselines, in little
 * memory. Verified. */
enum ap_status ap_drive_again(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out);

/* Makes only the table: for --problem-out without a search. */
enum ap_status ap_drive_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_problem **out);

/*
 * Evaluates given counts ([node][factor]; rows that are NULL are completed by the best choice
 * around the fixed ones). A plan above the memory capacity is still returned (AP_OK).
 */
enum ap_status ap_drive_evaluate(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, struct ap_plan *out);

#endif
