/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a redistribution cost. Private to this layer. */
#ifndef AP_COST_MOVE_H
#define AP_COST_MOVE_H

#include "cost/cost.h"

struct ap_steps_cost { /* of one micro-batch */
	double forward_s;
	double adjoint_s; /* of what autodiff makes of them */
	int64_t bytes; /* sent or received by one rank, forward */
};

void ap_step_cost_make(struct ap_pricer *pr, const struct ap_reshard_step *s, int dtype_bytes,
	struct ap_steps_cost *out);

/* Sums over steps, in their order; what a step costs is remembered. */
void ap_steps_cost_make(struct ap_pricer *pr, const struct ap_reshard_step *steps, int n,
	int dtype_bytes, struct ap_steps_cost *out);

#endif
