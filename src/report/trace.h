/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated step as Chrome trace JSON, which chrome://tracing and Perfetto show.
 *
 * Processes are stages, one device of each. Threads are "passes" (of a segment over a micro-batch)
 * and the streams: "compute", "communication", "gradients", and "to stage N" for each link in use.
 * Times are in microseconds from the start of the step. "args" has what an event is about: "part",
 * "segment" and "micro" (from 0; not where it is once a step), "operator", "tensor", "phase",
 * "bytes". A flow leads from a send to the pass that takes what was sent. The counter "memory" is
 * what one device of the stage holds. "otherData" has the time of the step and the peaks.
 */
#ifndef AP_REPORT_TRACE_H
#define AP_REPORT_TRACE_H

#include "plan/plan.h"

/* Of a simulated plan. Streamed; O(events). */
void ap_emit_trace(struct ap_ctx *ctx, const struct ap_plan *p, ap_write_fn *write, void *user);

#endif
