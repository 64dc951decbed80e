/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One optimizer step, laid out: passes of every part, sends, the gradient exchange in absolute time, the
 * optimizer. A part's results go to the next part all together; what goes to a part further away takes
 * its time on the first link of the way there, and its gradient on the same link, so that a step is
 * never too short. What is sent once a step (a parameter that another stage uses) goes out at the
 * start, and the passes are put off where it would come too late; its gradient comes back after the
 * last pass of the part that used it, before it is exchanged.
 */
#ifndef AP_PLAN_WHOLE_STEP_H
#define AP_PLAN_WHOLE_STEP_H

#include "base/vec.h"
#include "plan/pass.h"

#define AP_RUN_LAST (AP_PASS_WEIGHT + 1) /* instead of what finishes the last micro-batch */
#define AP_RUN_COUNT (AP_RUN_LAST + 1)

struct ap_whole_step_part {
	struct ap_pass_run run[AP_RUN_COUNT]; /* by enum ap_pass, and AP_RUN_LAST */
	uint32_t last_slot; /* of the timeline, that AP_RUN_LAST is; AP_NONE without training */
};

struct ap_whole_step_send { /* once a step */
	int32_t from, to; /* parts; to < from: of a gradient */
	ap_id tensor; /* the parameter */
	double start_s, end_s; /* of a parameter from the start of the step, see late_s */
};

struct ap_whole_step_stage {
	double first_s, last_s; /* start of the first pass, end of the last */
	double update_s, end_s; /* when the optimizer starts and ends */
	double compute_s, communication_s, idle_s;
	double forward_s, backward_s; /* of one micro-batch, all segments */
	int64_t fixed_bytes, peak_bytes; /* held all the time, and at most */
};

struct ap_whole_step {
	struct ap_parts x;
	struct ap_live live;
	struct ap_buckets buckets;
	struct ap_pass_maker maker;
	struct ap_timeline *timeline; /* in the run arena */
	struct ap_whole_step_part *part; /* [npart] */
	struct ap_whole_step_stage *stage; /* [nstage] */
	double *last_start_s; /* [npart] of the slot that AP_RUN_LAST is */
	double *wait_s; /* [ntensor] when the gradient that another stage sends has come */
	double *bucket_start_s; /* [buckets.n] */
	AP_VEC(uint32_t) exchange; /* buckets of gradients in the order in which they go out, of all stages */
	AP_VEC(struct ap_whole_step_send) sends; /* of parameters, then of their gradients */
	double late_s; /* by which the passes, and all that follows, start later than is said here */
	double end_s; /* of the last update */
};

/* Of a priced plan. In scratch. record: with events and samples of the passes. */
void ap_whole_step_make(struct ap_ctx *ctx, const struct ap_plan *p, bool record, struct ap_whole_step *out);

/* The run of slot i of the timeline, on that stage. */
const struct ap_pass_run *ap_whole_step_slot(const struct ap_whole_step *w, int32_t stage, uint32_t i,
	int32_t *part);

/* When the last gradient of a bucket is complete, those aside that wait for another bucket: given where
 * the last slots of the parts start, and the stage's passes end. Times of other stages less origin_s. */
double ap_whole_step_ready_s(const struct ap_whole_step *w, uint32_t bucket, const double *last_start_s,
	double end_s, double origin_s);

/* The update of a node's parameters, without the gathering of weights. */
double ap_whole_step_update_s(const struct ap_plan *p, ap_id node);

/* Does the bucket gather weights after the update? */
bool ap_whole_step_gathers(const struct ap_plan *p, const struct ap_bucket *b);

#endif
