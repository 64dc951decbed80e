/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline schedules: in which order a stage runs the passes of its segments over the micro-batches,
 * and when they run once their times are known. Knows no graph and no machine; pure, deterministic.
 */
#ifndef AP_PIPELINE_SCHEDULE_H
#define AP_PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "shard/step.h"

enum ap_pass {
	AP_PASS_FORWARD,
	AP_PASS_BACKWARD, /* whole, or the gradients of activations where the scheduler splits it */
	AP_PASS_WEIGHT /* the gradients of weights, where the scheduler splits the backward pass */
};

struct ap_schedule_slot { /* one pass of a segment over a micro-batch, without interruption */
	uint8_t pass; /* enum ap_pass */
	int16_t segment;
	int32_t micro; /* from 0 */
};

struct ap_scheduler { /* a row of schedulers.def */
	const char *name; /* "gpipe", "1f1b", "interleaved", "zero_bubble_v" */
	const char *help; /* one line, for the listing */
	bool splits; /* backward and weight passes are apart */
	bool vee; /* the second of two segments goes back through the stages: the last stage has the two
	             innermost parts */
	int least_segments, most_segments; /* that it can run; most 0: any number */
	/* The slots of a stage in order, [passes * segments * micro], into arena. O(slots). */
	struct ap_schedule_slot *(*order)(struct ap_arena *arena, int32_t nstage, int32_t nsegment,
		int32_t stage, int32_t nmicro);
	/* Why it cannot run so many micro-batches, with what is needed; NULL: it can. */
	const char *(*refuses)(int32_t nstage, int32_t nsegment, int64_t nmicro);
};

/* Row i; NULL past the end. */
const struct ap_scheduler *ap_scheduler_at(size_t i);
const struct ap_scheduler *ap_scheduler_find(const char *name);

/* Slots of a stage. */
size_t ap_schedule_slots(const struct ap_scheduler *s, int32_t nsegment, int64_t nmicro);

/* Stage and segment of part p (in the order of the data) of nstage * nsegment, and back. */
void ap_schedule_spot(const struct ap_scheduler *s, int32_t nstage, int32_t part, int32_t *stage,
	int32_t *segment);
int32_t ap_schedule_part(const struct ap_scheduler *s, int32_t nstage, int32_t stage, int32_t segment);

/* Fills struct ap_pipe: from the order of each stage its instants, and as in_flight and late the one at
 * which most passes are held, the first of these. O(slots * nsegment), and O(d^2 * nsegment) for d
 * distinct instants of different sums, of which orders by turns have next to none. */
void ap_schedule_pipe(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage, int32_t nsegment,
	int64_t nmicro, struct ap_pipe *out);

/* The pipe with the instant at[stage] of each stage as in_flight and late. Into arena. */
const struct ap_pipe *ap_schedule_at(struct ap_arena *arena, const struct ap_pipe *pipe,
	const uint32_t *at);

/* Seconds of the passes of each part, of one micro-batch. */
struct ap_pass_times {
	double forward_s, backward_s, weight_s; /* weight_s only where the scheduler splits, else 0 */
	double send_s; /* of the results, to the part that takes them; 0 for the last part */
	double send_back_s; /* of the gradients of these results, from the part that took them */
	double last_backward_s; /* of the slot that finishes the part's backward pass over the last
	                           micro-batch that it runs, instead of backward_s or, where the
	                           scheduler splits, of weight_s: gradients are exchanged beside it */
};

struct ap_slot_time {
	struct ap_schedule_slot slot;
	double start_s, end_s;
};
struct ap_send_time { /* from stage to stage; the sends from one to the other do not overlap */
	int32_t from_part, to_part; /* to < from: a gradient */
	int32_t micro;
	double start_s, end_s;
};
struct ap_timeline {
	int32_t nstage;
	const uint32_t *first; /* [nstage + 1] slots of a stage are slot[first[s]] .. */
	const struct ap_slot_time *slot;
	uint32_t nsend;
	const struct ap_send_time *send; /* by start, then parts; none between parts of one stage, nor
	                                    those that take no time */
	double end_s; /* of the last slot */
};

/* When everything runs: a slot starts when its stage is free and what it needs has arrived (forward:
 * the results of the part before; backward: its own forward pass and the gradient of the part after;
 * weight: its own backward pass). Sends go out in the order in which they are ready. Without
 * training there are forward passes only. time[part], in the order of the data. Into arena.
 * O(slots), and O(n log n) for the order of n sends. */
void ap_schedule_run(struct ap_ctx *ctx, const struct ap_pipe *pipe, int64_t nmicro, bool training,
	const struct ap_pass_times *time, struct ap_timeline *out);

#endif
