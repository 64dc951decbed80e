/* SPDX-License-Identifier: Apache-2.0 */
/* A low-memory plan: does anything fit? */
#ifndef AP_DRIVE_LOW_MEMORY_H
#define AP_DRIVE_LOW_MEMORY_H

#include "drive/request.h"
#include "plan/plan.h"

/*
 * Returns true if *out is a plan that fits rq->capacity_bytes; false if none was found, which
 * proves nothing: *out is then the smallest one met (graph NULL: none). Tries the recursion, then
 * the least sum of memory by the exact engine within a small budget. Reports nothing. *steps: inner
 * steps of a search that it may take, reduced by those taken, with the stop flag obeyed at once;
 * NULL: no limit.
 */
bool ap_low_memory_plan(struct ap_ctx *ctx, const struct ap_request *rq, uint64_t *steps,
	struct ap_plan *out);

#endif
