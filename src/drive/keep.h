/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable plan: of the plans whose simulated step is within a tolerance of the best found, one that cuts the
 * fewest operators otherwise than an old plan does. Tried are the old plan itself, the plans that
 * change least of all whose sum is within the tolerance and half of it, a quarter .., and each of these
 * and the best one with groups of equal operators cut as they were before. How few any plan changes
 * whose sum is within the tolerance is proven by the engine.
 */
#ifndef AP_DRIVE_KEEP_H
#define AP_DRIVE_KEEP_H

#include "drive/request.h"
#include "plan/make.h"

struct ap_keep_job {
	const struct ap_request *rq;
	struct ap_plan_maker *maker; /* of rq's graph */
	const int32_t *const *fixed; /* rows that stay as they are; may be NULL */
	const int32_t *const *old; /* [nnode] counts of the old plan; rows NULL: it has no such operator */
	double within; /* tolerance, of 1 */
	const struct ap_plan *best; /* the fastest plan known, of rq's graph */
	double best_s; /* its step, or a shorter one that is known from elsewhere; the tolerance is of this */
};

/* The plan, in the run arena: job->best if none that changes less is within the tolerance and fits.
 * *told: what was kept. The steps spent are added to *steps. */
const struct ap_plan *ap_keep(struct ap_ctx *ctx, const struct ap_keep_job *job, struct ap_plan_kept *told,
	uint64_t *steps);

#endif
