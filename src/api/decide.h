/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings decided together: of all points of a space (decision/space.h) the one whose hybrid has the
 * shortest simulated step within the memory, and a lower bound for all others. The same sources
 * are planned under many settings; a point's plan is that of `evaluate --hybrid`.
 */
#ifndef AP_API_DECIDE_H
#define AP_API_DECIDE_H

#include "api/request.h"
#include "api/trial.h"
#include "decision/space.h"

struct ap_decision {
	struct ap_decision_space space;
	uint32_t n;
	const struct ap_decision_trial *trial; /* [n] in the order in which equals are preferred */
	uint32_t best; /* AP_NONE: nothing fits */
	double bound_s; /* no point has a shorter step */
	uint32_t evaluated; /* trials that were made */
	uint32_t nall; /* beyond what was told: points of the language without limits */
	uint32_t nshape;
	const struct ap_decision_point *shape; /* [nshape] of these, one of each that ap_cut_bound() bounds
	                                          alike */
	uint32_t count[AP_DECISION_VERDICTS];
	struct ap_layer_table *rows; /* of the layers, to which others may be added; it borrows set, src and
	                                this space; NULL: layers are not decided one by one */
	bool regular; /* all stages lie on the links alike */
	double headroom; /* per cent of a device's usable memory that stays free */
	int64_t usable_bytes; /* of a device, less that */
	bool complete; /* not stopped */
	const struct ap_chip *chip;
	const struct ap_software *software; /* with the measured errors of its predictions */
	int64_t sequence; /* tokens of a sample; 0: the graph has none */
};

struct ap_decision_asked {
	uint32_t most; /* trials that are made; 0: as many as it takes */
	double below_s; /* only plans that take less are of interest; 0: all */
	/*
	 * What an executor cannot be told, but a language without limits can, near the fastest of a
	 * decision of what it can be: plans with the degrees, stages and micro-batches of one of these
	 * that are faster than below_s, in some dozens of trials. NULL: what it can be told.
	 */
	const struct ap_decision *told;
};

/*
 * Decides what the settings leave open; asked NULL: all of it. AP_INFEASIBLE, reported, if no point fits;
 * AP_STOPPED if it was stopped with a best so far. Beyond what was told, bound_s is no bound, and out->best
 * AP_NONE where nothing faster was found, which is well. The result is the same for any number of jobs.
 * O(trials made).
 */
enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_decision_asked *asked, struct ap_decision *out);

#endif
