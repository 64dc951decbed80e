/* SPDX-License-Identifier: Apache-2.0 */
/* The unit that costs are multiples of. */
#ifndef AP_COST_QUANTUM_H
#define AP_COST_QUANTUM_H

#include "cost/cost.h"

/* The quantum for rounding the costs of a step, step->quantum_s: a power of two. It is AP_QUANTUM_S
 * unless computing everything on every rank and moving every tensor there and back takes hours;
 * then large enough for that sum to be exact. O(operators + operands). */
double ap_cost_quantum_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step);

#endif
