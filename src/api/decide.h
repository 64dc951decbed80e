/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings decided together: of all points of a space (decision/space.h) the one whose hybrid has the
 * shortest simulated step within the memory, and a lower bound for all others. The same sources
 * are planned under many settings; a point's plan is that of `evaluate --hybrid`.
 */
#ifndef AP_API_DECIDE_H
#define AP_API_DECIDE_H

#include "api/request.h"
#include "decision/space.h"

enum ap_decision_verdict {
	AP_DECISION_OPEN, /* not looked at: the run was stopped */
	AP_DECISION_FITS,
	AP_DECISION_TOO_LARGE, /* for the memory */
	AP_DECISION_REFUSED, /* no such plan: something does not divide */
	AP_DECISION_BOUNDED /* cannot be faster than the best */
};
#define AP_DECISION_VERDICTS (AP_DECISION_BOUNDED + 1)

struct ap_decision_trial {
	struct ap_decision_point point;
	enum ap_decision_verdict verdict;
	double bound_s; /* no plan of the point has a shorter step; 0: not known */
	double step_s; /* simulated; 0: was not */
	int64_t memory_bytes; /* of the fullest stage; 0: not known */
	int32_t by; /* TOO_LARGE, REFUSED: the trial that shows it, itself or another; -1: none */
	const char *why; /* REFUSED */
};

struct ap_decision {
	struct ap_decision_space space;
	uint32_t n;
	const struct ap_decision_trial *trial; /* [n] in the order in which equals are preferred */
	uint32_t best; /* AP_NONE: nothing fits */
	double bound_s; /* no point has a shorter step */
	uint32_t evaluated; /* trials that were made */
	uint32_t count[AP_DECISION_VERDICTS];
	double headroom; /* per cent of a device's usable memory that stays free */
	int64_t usable_bytes; /* of a device, less that */
	bool complete; /* not stopped */
	const struct ap_chip *chip;
	const struct ap_software *software; /* with the measured errors of its predictions */
	int64_t sequence; /* tokens of a sample; 0: the graph has none */
};

/*
 * Decides what the settings leave open, and stops once `most` trials are made. AP_INFEASIBLE, reported, if no
 * point fits; AP_STOPPED if it was stopped with a best so far. The result is the same for any number of
 * jobs. O(trials made).
 */
enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, uint32_t most, struct ap_decision *out);

/*
 * Where the executor can be told the cut of each operator, and no hybrid was asked for, searches cuts
 * under the settings of the fastest hybrids, within the memory less headroom; a search ends at a fraction of
 * the usual work unless the settings say how much. True if a plan is faster than the best hybrid: *out are
 * its settings, those of *trial but for degrees, *step_s its step. False leaves them alone.
 */
bool ap_decide_cuts(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial);

#endif
