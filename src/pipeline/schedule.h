/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline schedules: the order in which a stage runs the passes of its segments over the
 * micro-batches, and their start and end from their lengths. Knows no graph and no machine; pure.
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
	AP_PASS_BACKWARD, /* whole, or only gradients of activations if the scheduler splits it */
	AP_PASS_WEIGHT /* gradients of weights, if the scheduler splits the backward pass */
};

struct ap_schedule_slot { /* one pass of a segment over a micro-batch, without interruption */
	uint8_t pass; /* enum ap_pass */
	bool beside; /* a forward pass, and the backward pass in the next slot: they run as one */
	int16_t segment;
	int32_t micro; /* from 0 */
};

struct ap_scheduler { /* a row of schedulers.def */
	const char *name; /* "gpipe", "1f1b", "interleaved", "zero_bubble_v" */
	const char *help; /* one line, for the listing */
	bool splits; /* has separate backward and weight passes */
	bool vee; /* the second segment goes back through the stages: the last stage has the two
	             innermost parts */
	bool beside; /* between its first and its last passes a forward and a backward pass run as one */
	int least_segments, most_segments; /* per stage; most 0: any number */
	/* The slots of a stage in order, [ap_schedule_slots()], in arena. O(slots). */
	struct ap_schedule_slot *(*order)(struct ap_arena *arena, int32_t nstage, int32_t nsegment,
		int32_t stage, int32_t nmicro);
	/* Returns what nmicro lacks for the scheduler to run; NULL if nothing. */
	const char *(*refuses)(int32_t nstage, int32_t nsegment, int64_t nmicro);
};

/* Row i; NULL past the end. By name: NULL if unknown. */
const struct ap_scheduler *ap_scheduler_at(size_t i);
const struct ap_scheduler *ap_scheduler_find(const char *name);

/*
 * The scheduler of the same name that runs forward and backward passes as one: each forward pass behind the
 * first ones beside the backward pass that follows it in the order, of another micro-batch. Each waits for
 * what both need, and hands on what it makes when both are done. For that a stage is one forward pass further
 * ahead, and holds its activations. NULL: there is none, and of one that does so itself, too.
 */
const struct ap_scheduler *ap_scheduler_beside(const struct ap_scheduler *s);

/* The number of slots of a stage. */
size_t ap_schedule_slots(const struct ap_scheduler *s, int32_t nsegment, int64_t nmicro);

/* Stage and segment of part p (in data order) of nstage * nsegment, and the reverse. */
void ap_schedule_spot(const struct ap_scheduler *s, int32_t nstage, int32_t part, int32_t *stage,
	int32_t *segment);
int32_t ap_schedule_part(const struct ap_scheduler *s, int32_t nstage, int32_t stage, int32_t segment);

/* Fills *out: the instants of each stage from its order, and as in_flight and late the first one
 * at which the most passes are held. Into the run arena. O(slots * nsegment), and O(d^2 * nsegment) for
 * d distinct instants of different sums; orders by turns have next to none. */
void ap_schedule_pipe(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage, int32_t nsegment,
	int64_t nmicro, struct ap_pipe *out);

/* The pipe with in_flight and late of instant at[stage] of each stage, in arena. */
const struct ap_pipe *ap_schedule_at(struct ap_arena *arena, const struct ap_pipe *pipe,
	const uint32_t *at);

/* Seconds of the passes of a part over one micro-batch. */
struct ap_pass_times {
	double forward_s, backward_s, weight_s; /* weight_s: 0 unless the scheduler splits */
	double send_s; /* of the results, to the next part; 0 for the last part */
	double send_back_s; /* of the gradients of these results, from the next part */
	double last_backward_s; /* replaces backward_s (weight_s if split) in the slot
	                           that finishes the part's last micro-batch: gradients are
	                           exchanged beside it */
	struct ap_pass_beside { /* of a pass that runs beside one of the other kind */
		double rest_s; /* what it takes without the communication that hides behind that one */
		double comm_s; /* all its communication */
	} forward_beside, backward_beside;
	double once_s; /* sent to the part once, from the stage of the first part, before all others on the
	                  link, and before its first pass; 0: nothing */
};

/* Seconds of a forward and a backward pass that run as one: both without what is hidden, but never less than
 * either takes alone, nor than all communication of both, which runs one at a time. At most what they take
 * one after the other. */
double ap_schedule_both_s(const struct ap_pass_times *forward, const struct ap_pass_times *backward);

struct ap_slot_time {
	struct ap_schedule_slot slot;
	double start_s, end_s;
};
struct ap_send_time { /* sends from one stage to another do not overlap */
	int32_t from_part, to_part; /* to < from: a gradient */
	int32_t micro;
	double start_s, end_s;
};
struct ap_timeline {
	int32_t nstage;
	const uint32_t *first; /* [nstage + 1] stage s has slot[first[s]] .. slot[first[s + 1] - 1] */
	const struct ap_slot_time *slot;
	uint32_t nsend;
	const struct ap_send_time *send; /* in no order but that of each link; without sends inside a
	                                    stage, or that take no time */
	double end_s; /* of the last slot */
};

/* Times of all slots and sends. A slot starts when its stage is free and its inputs have arrived
 * (forward: results of the part before; backward: its own forward pass and the gradient from the
 * part after; weight: its own backward pass). Sends go out in the order in which they are ready. Of two slots
 * that run as one, the first ends after its rest_s, and the second with both.
 * Without training there are forward passes only. time[part] in data order. Into the run arena.
 * O(slots). */
void ap_schedule_run(struct ap_ctx *ctx, const struct ap_pipe *pipe, int64_t nmicro, bool training,
	const struct ap_pass_times *time, struct ap_timeline *out);

/* The timeline's sends by start, then parts, then micro-batches; in the arena. O(n log n). */
const struct ap_send_time *ap_schedule_sends(struct ap_arena *arena, const struct ap_timeline *t);

#endif
