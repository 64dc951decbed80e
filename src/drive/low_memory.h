/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of little memory: does anything fit? */
#ifndef AP_DRIVE_LOW_MEMORY_H
#define AP_DRIVE_LOW_MEMORY_H

#include "drive/request.h"
#include "plan/plan.h"

/*
 * True: *out is a plan that fits rq->capacity_bytes. False: none was found, which proves nothing, and
 * *out is the smallest one met (its graph is NULL where there was none at all). The recursion, then the
 * least sum of memory by the exact engine as far as a small budget goes. Says nothing. *steps: inner steps of
 * a search that it may take, less those that it took; the stop flag is heeded at once then. NULL: no limit.
 */
bool ap_low_memory_plan(struct ap_ctx *ctx, const struct ap_request *rq, uint64_t *steps,
	struct ap_plan *out);

#endif
