/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact optimum under a memory limit, within a support. Every group of the support gets its
 * labels: pairs of cost and memory that the nodes below its scope can have, none of which another
 * one beats in both. A label whose price (cost + price * memory) is so far above the least one of
 * its group that no completion stays within the threshold is dropped.
 *
 * With `ties`, the result is the lexicographically smallest optimum: see struct front for what is
 * dropped then. It may be, by exchange: given the choice for a group's scope, the order of two
 * labels of it does not depend on what is chosen elsewhere.
 */
#ifndef AP_ELIM_LABEL_H
#define AP_ELIM_LABEL_H

#include "elim/price.h"
#include "elim/support.h"

enum ap_label_end { AP_LABEL_FOUND, AP_LABEL_NONE, AP_LABEL_LIMIT };

struct ap_label_job {
	const struct ap_elim *e;
	const struct ap_problem *p; /* true costs and memory */
	const struct ap_priced *priced;
	const double *const *value; /* the plan evaluated for priced->p */
	double least; /* what that gave */
	const struct ap_support *support; /* made with that */
	double threshold;
	bool ties;
	uint64_t max_labels, max_work;
	uint64_t work; /* counted up */
};

/* FOUND: pick[n] is the cheapest pick in the support that fits the limit. NONE: no pick in it does.
 * LIMIT: more labels or work than allowed, or told to stop. */
enum ap_label_end ap_label_solve(struct ap_ctx *ctx, struct ap_label_job *job, uint32_t *pick);

#endif
