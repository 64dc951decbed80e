/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass of a part over one micro-batch, operator by operator, from time 0. A kernel starts when
 * the compute stream is free, its operands are ready and the host has started it, which starts kernels one
 * after the other and runs ahead of the device within a block; redistributions run on the communication
 * stream; of those that share a copy the first in the order of the forward pass, once all gradients have
 * been added up. Where a block ends (plan/blocks.h), the two streams meet: the next begins when both are
 * free, so that a pass takes the sum of its blocks' times. A redistribution belongs to the block that
 * reads its result, what is recomputed to the block whose backward pass wants it. Reductions of dealt
 * gradients, which nothing in a pass waits for, run on into the next block. The pass that finishes the
 * part's last micro-batch exchanges
 * gradients: a bucket starts when its last gradient is complete and the gradient stream, which runs on
 * from block to block, is free, and slows kernels beside it.
 */
#ifndef AP_PLAN_PASS_H
#define AP_PLAN_PASS_H

#include "base/vec.h"
#include "pipeline/schedule.h"
#include "plan/buckets.h"
#include "plan/liveness.h"
#include "plan/simulate.h"

struct ap_pass_event {
	enum ap_stream stream;
	enum ap_event_kind kind;
	uint32_t index, sub;
	double start_s, end_s; /* from the start of the pass */
};

struct ap_pass_sample { /* memory from at_s on, less that held at the start of the pass */
	double at_s;
	int64_t bytes;
};

struct ap_pass_block { /* a block of the pass */
	uint32_t block;
	double span_s;
	double collectives_s; /* of all its collectives, and redistributions, one after the other */
	double own_s, left_s; /* what the next block waits for, and reductions of dealt gradients behind it,
	                         which only the span of the last block has */
	int64_t most_bytes, net_bytes; /* as of the run, less what was held at the start of the block */
};

struct ap_pass_run {
	double span_s, compute_s, communication_s;
	int64_t most_bytes; /* most held during the pass, less that held at its start */
	int64_t net_bytes; /* held after it, less that held at its start */
	AP_VEC(struct ap_pass_block) blocks; /* in the order of the pass; their spans add up to span_s */
	AP_VEC(struct ap_pass_event) events; /* by start on each stream; empty unless recorded */
	AP_VEC(struct ap_pass_sample) samples; /* by time */
};

struct ap_pass_time {
	double at_s; /* from the start of the block */
	uint32_t when; /* the block, counted through all passes: one from before is there from the start */
};

struct ap_pass_maker {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	const struct ap_parts *x;
	const struct ap_live *live;
	const struct ap_buckets *buckets;
	bool splits, record;
	double per_micro; /* 1 / number of micro-batches */
	double slowdown; /* of kernels beside a gradient exchange */
	uint32_t when; /* the block at hand */
	struct ap_pass_time *ready; /* [ntensor] when the tensor is ready; backward: its gradient */
	struct ap_pass_time *again; /* [ntensor] when it is recomputed; views have that of their root */
	const ap_id *root; /* [ntensor] ap_live_root(); NULL: nothing is recomputed */
	struct ap_pass_time *copied; /* [redistributions] when the copy was made, first or again */
	const uint32_t *bucket_first, *bucket_gradient; /* gradients by bucket */
	uint32_t *bucket_left; /* [buckets] gradients not yet complete */
	double *bucket_ready; /* [buckets] when ready, in the part simulated last */
	int32_t *bucket_part; /* [buckets] that part, or -1 */
	double *gradient_ready; /* [gradient of x] from the start of the last pass of gradient_part */
	int32_t *gradient_part; /* -1: in no pass */
	AP_VEC(uint32_t) launched; /* buckets in order of completion */
};

void ap_pass_maker_init(struct ap_ctx *ctx, const struct ap_parts *x, const struct ap_live *live,
	const struct ap_buckets *buckets, bool splits, bool record, struct ap_pass_maker *out);

enum ap_pass_way {
	AP_PASS_USUAL,
	AP_PASS_LAST, /* with the exchange of gradients: once per part, parts in descending order */
	AP_PASS_LEAST, /* with the exchange of gradients, of which none runs on into the next block: once per
	                  part, parts in descending order */
	AP_PASS_APART, /* each block as if none ran before it: reductions of dealt gradients do not run on */
	AP_PASS_BESIDE /* beside a pass of the other kind: tokens on their way to experts and back take
	                  none of its time, but count as communication */
};

/* Simulates one pass of a part. In scratch. O(operators + collectives + redistributions of part). */
void ap_pass_make(struct ap_pass_maker *m, int32_t part, enum ap_pass pass, enum ap_pass_way way,
	struct ap_pass_run *out);

#endif
