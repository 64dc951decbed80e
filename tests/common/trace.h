/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces as files: what any trace of a step must keep to, whoever wrote it. Knows the form
 * (src/report/trace.h) and nothing of plans.
 */
#ifndef AP_TESTS_TRACE_H
#define AP_TESTS_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"
#include "base/vec.h"

enum trace_thread {
	TRACE_PASSES,
	TRACE_COMPUTE,
	TRACE_COMMUNICATION,
	TRACE_GRADIENTS,
	TRACE_LINK /* and above: to that stage */
};

struct trace_event {                           /* "X" */
	const char *name, *cat, *pass, *phase; /* "" where there is none */
	int64_t stage, tid, thread;            /* thread: enum trace_thread + stage that receives */
	int64_t part, segment, micro, from, to; /* -1 where there is none */
	double start_us, end_us;
};

struct trace_flow {
	int64_t id, stage, tid;
	bool end;
	double at_us;
};

struct trace_sample {
	int64_t stage, bytes;
	double at_us;
};

struct trace {
	const char *scheduler;
	int64_t nstage, nmicro, npart;
	double step_us;
	int64_t *peak_bytes; /* [nstage] */
	AP_VEC(struct trace_event) events; /* after trace_check(): by stage, thread, start */
	AP_VEC(struct trace_flow) flows;
	AP_VEC(struct trace_sample) samples;
};

/* NULL, or what is wrong with the form. Into the run arena. */
const char *trace_read(
	struct ap_ctx *ctx, const char *file, const char *text, size_t len, struct trace *out);

/*
 * NULL, or what cannot be: events of a stream overlap; a pass is missing, there twice or starts
 * before what it needs has come; an event is outside of its pass; an update is before the end of a
 * pass or of the gradient exchange of its stage; a flow leads nowhere; memory is negative or its
 * peak another than stated; the step ends at another time than stated.
 */
const char *trace_check(struct ap_ctx *ctx, struct trace *t);

#endif
