/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete-event simulation of one optimizer step, the authority on its time and its peak memory.
 *
 * Each part (segment of a stage) is simulated operator by operator, one pass at a time: forward,
 * backward, and if the scheduler splits the backward pass, gradients of weights. A stage has a
 * compute stream, a stream of the collectives that computation waits for, and one of the gradient
 * exchange, which runs in buckets beside the last backward pass of a part and what follows it.
 * Several parts are ordered by the scheduler (pipeline/schedule.h), and tensors travel on links
 * between the stages. A stage updates after its last pass and its exchange.
 */
#ifndef AP_PLAN_SIMULATE_H
#define AP_PLAN_SIMULATE_H

#include "plan/plan.h"

struct ap_simulation {
	struct ap_prediction prediction; /* the plan's, with times */
	const struct ap_plan_stage *stage; /* the plan's, with times and peaks */
	uint32_t nbucket;
	const struct ap_bucket *bucket;
	const struct ap_timeline *timeline;
};

/* Simulates a priced plan. O(operators + collectives + redistributions + slots). */
void ap_simulate(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_simulation *out);

/* The events of a plan's schedule (struct ap_event), *n of them; simulates once more. */
const struct ap_event *ap_simulate_schedule(struct ap_ctx *ctx, const struct ap_plan *p, uint32_t *n);

enum ap_stream {
	AP_STREAM_COMPUTE,
	AP_STREAM_COMMUNICATION, /* that computation waits for */
	AP_STREAM_GRADIENT, /* the gradient exchange, and the gathering of weights after it */
	AP_STREAM_LINK /* one stream for each stage that is sent to */
};

struct ap_trace_event {
	int32_t stage; /* of LINK: the sender */
	int32_t peer; /* of LINK: the stage that receives; else -1 */
	enum ap_stream stream;
	enum ap_event_kind kind;
	uint32_t index, sub; /* as in struct ap_event */
	int32_t micro, segment; /* -1: none */
	double start_s, end_s; /* from the start of the step */
};

struct ap_trace_memory { /* of one rank of the stage, from at_s on */
	int32_t stage;
	double at_s;
	int64_t bytes;
};

struct ap_trace_take {
	void (*event)(void *user, const struct ap_trace_event *e);
	void (*memory)(void *user, const struct ap_trace_memory *m); /* may be NULL */
};

/*
 * Calls take for all events of a simulated plan's step, by start, then stage, then stream. Events
 * of one stream of a stage do not overlap. Memory samples come in order of time, between the
 * events. O(events * stages).
 */
void ap_simulate_each(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_trace_take *take,
	void *user);

#endif
