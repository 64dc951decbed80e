/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated step as Chrome trace JSON, for chrome://tracing and Perfetto. Processes are stages,
 * one device each. Threads are "passes" (a segment on a micro-batch) and the streams: "compute",
 * "communication", "gradients", and "to stage N" for each link in use. Times are in microseconds
 * from the start of the step. "args" describes an event: "part", "segment" and "micro" (from 0; not
 * if once per step), "operator", "tensor", "phase", "bytes". A flow leads from a send to the pass
 * that receives it. The counter "memory" is what one device of the stage holds. "otherData" has the
 * step time and peaks. Slices are named by layer and operator, "layers.3/attention.wq/MatMul-op0". */
#ifndef AP_REPORT_TRACE_H
#define AP_REPORT_TRACE_H

#include "plan/plan.h"

enum ap_trace_detail {
	AP_TRACE_BRIEF, /* one micro-batch of each stage in operators, others as passes; memory there at its
			   most and at the end of each pass */
	AP_TRACE_FULL
};

/* Writes the trace of a simulated plan. Streamed; O(events). */
void ap_emit_trace(struct ap_ctx *ctx, const struct ap_plan *p, enum ap_trace_detail detail,
	ap_write_fn *write, void *user);

#endif
