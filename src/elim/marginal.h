/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Min-marginals: what each candidate of a node costs at least, everything else chosen as well as can be. A
 * planned elimination is evaluated forth once, with all that equal layers share, and back along the
 * steps that lead to the nodes that are asked for: there each place in the network is told apart.
 */
#ifndef AP_ELIM_MARGINAL_H
#define AP_ELIM_MARGINAL_H

#include <stdbool.h>

#include "search/engine.h"

struct ap_marginals {
	double least; /* cost of an optimum; INFINITY: no pick is allowed */
	double *const *of; /* [n][k] the least cost of all picks with this candidate, INFINITY if none is
	                      allowed; rows that were not asked for are NULL */
	uint64_t work; /* inner steps */
};

/*
 * The marginals of the nodes that are wanted ([n]; NULL: all), without the memory limit; exact. In the run
 * arena. Returns false if that needs more work or larger tables than the budget has, or told to stop;
 * *out then has the work alone. O(work of an evaluation), and that of each step above a wanted node as
 * often as it has factors that lead there.
 */
bool ap_marginals_make(struct ap_ctx *ctx, const struct ap_problem *p, const bool *wanted,
	const struct ap_budget *budget, struct ap_marginals *out);

#endif
