/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with one point of a space of settings, step by step: a plan that comes to mind is priced,
 * all its plans are bounded, and its layers are dealt as well as they can be. A point whose layers all
 * recompute the same, and lie where the settings say, is one plan, which is priced. Plans are those of
 * `evaluate --hybrid`.
 */
#ifndef AP_API_TRIAL_H
#define AP_API_TRIAL_H

#include "api/kin.h"

enum ap_decision_verdict {
	AP_DECISION_OPEN, /* not looked at: the run was stopped */
	AP_DECISION_FITS,
	AP_DECISION_TOO_LARGE, /* for the memory */
	AP_DECISION_REFUSED, /* no such plan: something does not divide */
	AP_DECISION_BOUNDED /* cannot be faster than the best */
};
#define AP_DECISION_VERDICTS (AP_DECISION_BOUNDED + 1)

enum ap_trial_step {
	AP_TRIAL_NEW,
	AP_TRIAL_LOOKED,
	AP_TRIAL_BOUNDED,
	AP_TRIAL_DEALT,
	AP_TRIAL_PRESSED, /* bounded again, with more work each time */
	AP_TRIAL_DONE = AP_TRIAL_PRESSED + 3
};

struct ap_decision_trial {
	struct ap_decision_point point;
	enum ap_decision_verdict verdict;
	int step; /* enum ap_trial_step, that was done last; one plan is only looked at */
	double bound_s; /* no plan of the point has a shorter step; 0: not known */
	bool holds; /* some plan of its layers fits */
	double hurried_s; /* bound_s is far above these seconds, which were to be proven, and may be less than
	                     it could be; 0: it is not */
	double step_s; /* simulated; 0: was not */
	int64_t memory_bytes; /* of the fullest stage; 0: not known */
	bool twin; /* its plan is one of an earlier trial, too */
	int32_t by; /* TOO_LARGE, REFUSED: the trial that shows it, itself or another; -1: none */
	const char *why; /* REFUSED */
};

struct ap_trial_case { /* what all trials of a decision have in common */
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_decision_space *space;
	const struct ap_layer_table *rows;
	int64_t usable_bytes; /* of a device */
	double below_s; /* only plans that take less are of interest */
	double near_s; /* and these, to be told as others */
	double plenty_s; /* at least below_s: bounds above it are made in a hurry; INFINITY: none is */
};

struct ap_trial_yield {
	struct ap_kin_told told;
	bool by_degrees; /* it is refused, and so is all with its degrees, sp and micro-batches */
	uint32_t priced; /* plans */
	uint64_t work; /* to deal layers */
	uint64_t bounding; /* work to bound plans */
};

/* Prices the plan of the trial's point, whose layers all have their place and kind, and gives the verdict
 * and t->why, in ctx->arena. excess: [stages] bytes by which each is too large, where the plan is one; or
 * NULL. */
void ap_trial_price(struct ap_ctx *ctx, const struct ap_trial_case *c, struct ap_decision_trial *t,
	int64_t *excess);

/* The bound of a trial as it would be without any hurry. */
double ap_trial_bound_s(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, int64_t usable_bytes, const struct ap_decision_trial *t);

/* Does the next step. Points without a kind: c->rows has their rows. What t->point and t->why point to
 * is in ctx->arena then. */
void ap_trial_go_on(struct ap_ctx *ctx, const struct ap_trial_case *c, struct ap_decision_trial *t,
	struct ap_trial_yield *out);

#endif
