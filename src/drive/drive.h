/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The story of a run, one call per stage: table -> engine -> plan -> verified plan. The command line
 * and any other client of the library start here once graph and machine are loaded.
 */
#ifndef AP_DRIVE_DRIVE_H
#define AP_DRIVE_DRIVE_H

#include "drive/request.h"
#include "plan/plan.h"
#include "plan/simulate.h"

/*
 * Searches. AP_OK: *out is complete and verified; AP_INFEASIBLE: message says what is short and by
 * how much; AP_STOPPED: best so far, verified; AP_LIMIT: no plan; AP_INTERNAL: the verifier
 * disagreed. Never returns a plan worse than data parallel. *problem (may be NULL) receives the
 * table that was searched.
 */
enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_plan *out,
	const struct ap_problem **problem);

/* What is known of a search outside what it holds, so that its best plan outlives a lack of memory. */
struct ap_found {
	bool any;
	int32_t **count; /* [nnode][factor] of the best plan */
	struct ap_search_info search; /* of it */
	uint64_t steps; /* that the search took, whatever it found */
	struct ap_arena *arena; /* of the search, which has the plan and the problem; NULL: gone */
};

/* The same; AP_OK and AP_STOPPED leave the arena to the caller. Where memory runs out in a part of the
 * search, the others go on, and AP_STOPPED comes with what they found. */
enum ap_status ap_drive_find(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem);

/* Destroys what the search holds and makes the best plan that it found again, without baselines, in little
 * memory. Verified. */
enum ap_status ap_drive_again(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out);

/* Only the table: for --problem-out without a search. */
enum ap_status ap_drive_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_problem **out);

/*
 * Evaluates given counts ([node][factor]; rows may be NULL: those operators are completed by the
 * best choice given the fixed ones). A plan above the memory capacity is still returned (AP_OK).
 */
enum ap_status ap_drive_evaluate(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, struct ap_plan *out);

#endif
