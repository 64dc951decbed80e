/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of little memory: does anything fit, and what takes the room where nothing does? */
#ifndef AP_DRIVE_LEAN_H
#define AP_DRIVE_LEAN_H

#include "drive/drive.h"

/*
 * True: *out is a plan that fits rq->capacity_bytes. False: none was found, which proves nothing, and
 * *out is the smallest one met (its graph is NULL where there was none at all). The recursion, then the
 * least sum of memory by the exact engine as far as a small budget goes. Says nothing. *steps: inner steps of
 * a search that it may take, less those that it took; the stop flag is heeded at once then. NULL: no limit.
 */
bool ap_plan_lean(struct ap_ctx *ctx, const struct ap_request *rq, uint64_t *steps, struct ap_plan *out);

/* What takes most of the memory of the stage that needs most, in words: "optimizer states 40.1 GiB,
 * activations 20.3 GiB; of operators \"a\" 3.2 GiB, ...". In the run arena. */
const char *ap_plan_contributors(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
