/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline as it runs: every stage on ranks of its own, one pass after the other in the order of the
 * plan. Between a forward pass and its backward pass a rank has what the plan says that it keeps, and
 * nothing else: an operand that is not kept is noise in the backward pass, what is recomputed is computed
 * again with the collectives that the plan has for that.
 */
#ifndef AP_TEST_EXEC_PIPE_H
#define AP_TEST_EXEC_PIPE_H

#include "pipeline/schedule.h"
#include "plan/plan.h"
#include "program.h"

struct ex_slot {
	enum ap_pass pass;
	int32_t stage, segment, micro;
	double start_s, end_s;
};

struct ex_bucket {
	enum ap_coll kind;
	int32_t stage;
	struct ap_axes axes;
	int64_t bytes;
	uint32_t n;
	const ap_id *tensor;
};

struct ex_pipeline {
	struct ex_program program; /* of a staged graph; ndev: devices of a stage */
	int32_t nstage, nsegment;
	uint32_t *first; /* [nstage + 1] slots of a stage are slot[first[s]] .. */
	struct ex_slot *slot; /* in the order of running */
	int64_t *most; /* [nstage] passes of a segment over a micro-batch that may be held */
	struct ap_memory *memory; /* [nstage] */
	uint32_t nbucket;
	struct ex_bucket *bucket;
	bool stale; /* by a fault: what is sent once a step is not */
};

struct ex_peaks { /* bytes on the rank of a stage that had most */
	int64_t activations, recompute;
	int64_t weights, gradients; /* of parameters, between their uses */
};

/* ---- pipe_read.c ---- */

void ex_pipeline_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ex_pipeline *out);

/* From the plan file, of a step whose pipe is known. NULL, or what cannot be. */
const char *ex_pipeline_of_file(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_step *step, struct ex_pipeline *out);

/* NULL, or what differs between two that should say the same. */
const char *ex_pipeline_differs(struct ap_ctx *ctx, const struct ex_pipeline *a,
	const struct ex_pipeline *b);

/* ---- pipe_run.c ---- */

enum ex_pace {
	EX_BY_TIME, /* slots run when the plan says; then all that they need must be there */
	EX_AS_READY /* stages go on as they can, in an order that is drawn */
};

/* NULL, or what differs first from one rank, or is held beyond what the plan says. peaks: [nstage]. */
const char *ex_pipeline_run(struct ex_world *w, const struct ex_pipeline *l,
	const struct ex_graph_truth *truth, enum ex_pace pace, struct ex_peaks *peaks);

#endif
