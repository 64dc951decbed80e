/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One optimizer step in absolute time: passes of every part, sends, the gradient exchange, the
 * optimizer. A part's results go to the next part together; a tensor for a part further away takes
 * its time on the first link on the way, and its gradient on the same link, so that a step is never
 * too short. What is sent once a step (a parameter that another stage uses) is sent at the start,
 * and delays the passes if it would come too late; its gradient comes back after the last pass of
 * the part that used it, before it is exchanged.
 */
#ifndef AP_PLAN_WHOLE_STEP_H
#define AP_PLAN_WHOLE_STEP_H

#include "base/vec.h"
#include "plan/pass.h"

#define AP_RUN_LAST (AP_PASS_WEIGHT + 1) /* the pass that finishes the last micro-batch */
#define AP_RUN_FORWARD_BESIDE (AP_RUN_LAST + 1) /* a forward pass that runs as one with a backward pass */
#define AP_RUN_BACKWARD_BESIDE (AP_RUN_LAST + 2)
#define AP_RUN_COUNT (AP_RUN_LAST + 3)

struct ap_whole_step_part {
	struct ap_pass_run run[AP_RUN_COUNT]; /* by enum ap_pass, and AP_RUN_.. */
	uint32_t last_slot; /* AP_RUN_LAST's slot of the timeline; AP_NONE without training */
};

struct ap_whole_step_send { /* sent once a step */
	int32_t from, to; /* parts; to < from: a gradient */
	ap_id tensor; /* the parameter */
	double start_s, end_s; /* a parameter's are not put off by late_s */
};

struct ap_whole_step_stage {
	double first_s, last_s; /* start of the first pass, end of the last */
	double update_s, end_s; /* when the optimizer starts and ends */
	double compute_s, communication_s, idle_s;
	double forward_s, backward_s; /* of one micro-batch, all segments */
	int64_t fixed_bytes, peak_bytes; /* always held; most held */
};

struct ap_whole_step {
	struct ap_parts x;
	struct ap_live live;
	struct ap_buckets buckets;
	struct ap_pass_maker maker;
	struct ap_timeline *timeline; /* in the run arena */
	struct ap_whole_step_part *part; /* [npart] */
	struct ap_whole_step_stage *stage; /* [nstage] */
	double *last_start_s; /* [npart] start of last_slot */
	double *wait_s; /* [ntensor] arrival of the gradient from another stage */
	double *returned_s; /* [ntensor] end of its exchange */
	bool *sent; /* [nnode] a gradient has been sent back to it */
	double *link; /* [nstage * nstage] when it is free */
	double *bucket_start_s; /* [buckets.n] */
	AP_VEC(uint32_t) exchange; /* buckets of gradients of all stages, in execution order */
	AP_VEC(struct ap_whole_step_send) sends; /* of parameters, then of their gradients */
	double late_s; /* to be added to the times of passes and all that follows */
	double end_s; /* of the last update */
};

/* Simulates a priced plan, in scratch. record: with events and samples of the passes. */
void ap_whole_step_make(struct ap_ctx *ctx, const struct ap_plan *p, bool record, struct ap_whole_step *out);

/* The same as far as usual passes go, alone: parts, live, buckets, maker, and runs of those that are neither
 * the last nor beside another one. */
void ap_whole_step_passes(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_whole_step *out);

/* The run, and the part, of slot i of the timeline, which is one of the stage. */
const struct ap_pass_run *ap_whole_step_slot(const struct ap_whole_step *w, int32_t stage, uint32_t i,
	int32_t *part);

/* The part with whose results what a Send sends travels: the last before the first link. */
int32_t ap_whole_step_hop(const struct ap_whole_step *w, ap_id node);

/* When the last gradient of a bucket is complete, except those that wait for another bucket, from
 * the starts of the parts' last slots and the end of the stage's passes. origin_s is subtracted
 * from times of other stages. */
double ap_whole_step_ready_s(const struct ap_whole_step *w, uint32_t bucket, const double *last_start_s,
	double end_s, double origin_s);

/* Seconds to update a node's parameters, without the gathering of weights. */
double ap_whole_step_update_s(const struct ap_plan *p, ap_id node);

/* Does the bucket gather weights after the update? */
bool ap_whole_step_gathers(const struct ap_plan *p, const struct ap_bucket *b);

#endif
