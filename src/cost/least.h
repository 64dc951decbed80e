/* SPDX-License-Identifier: Apache-2.0 */
/* What operators cost at least, whatever surrounds them. */
#ifndef AP_COST_LEAST_H
#define AP_COST_LEAST_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/* No plan's objective is below it: the sum of what each operator costs at least, redistribution left
 * out, and 0 for those that come after some hundred thousand candidates. O(candidates of all distinct
 * operators). */
double ap_plan_lower_bound_s(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed);

/* What each operator costs at least among its candidates, redistribution left out, [g->nnode]; of those
 * that come after some hundred thousand candidates an estimate. As above. */
const double *ap_plan_least_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step);

#endif
