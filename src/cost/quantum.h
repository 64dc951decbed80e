/* SPDX-License-Identifier: Apache-2.0 */
/* The grain in which costs are counted. */
#ifndef AP_COST_QUANTUM_H
#define AP_COST_QUANTUM_H

#include "cost/cost.h"

/* What the costs of a step are to be rounded to, step->quantum_s: a power of two, AP_QUANTUM_S unless
 * computing everything on every rank and moving every tensor there and back takes hours; then so much
 * more that the sum of that is exact. O(operators + operands). */
double ap_cost_quantum_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step);

#endif
