/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact optimum under a memory limit, within a support. Each group of the support gets its
 * labels: the pairs of cost and memory that the nodes below its scope can have and no other pair
 * beats in both. Drops a label whose price (cost + price * memory) exceeds the least of its group
 * by so much that no completion stays within the threshold.
 *
 * With `ties`, the result is the lexicographically smallest optimum: struct front states what may
 * be dropped then. This is valid by exchange: given the choice for a group's scope, the order of
 * two of its labels does not depend on choices elsewhere.
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
	double least; /* its result */
	const struct ap_support *support; /* made from it */
	double threshold;
	bool ties;
	uint64_t max_labels, max_work;
	uint64_t work; /* counted up */
};

/* FOUND: pick[n] is the cheapest pick of the support within the limit. NONE: no pick of it is.
 * LIMIT: too many labels, too much work, or told to stop. */
enum ap_label_end ap_label_solve(struct ap_ctx *ctx, struct ap_label_job *job, uint32_t *pick);

#endif
