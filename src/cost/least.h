/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds of the costs of operators. */
#ifndef AP_COST_LEAST_H
#define AP_COST_LEAST_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/* A lower bound of any plan's objective: the sum of each operator's least cost, without
 * redistribution, and 0 for operators after the first some hundred thousand candidates.
 * O(candidates of all distinct operators). */
double ap_plan_lower_bound_s(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed);

/* A lower bound of any plan's step: of the stage where it is most, the sum of each operator's least kernel
 * time, which no order of ranks or rows changes; 0 for operators after the first some hundred thousand
 * candidates. Complexity as above. */
double ap_plan_least_kernels_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step);

/*
 * Seconds of all passes of a step at least, whatever the cuts: of kernels, or of the host that starts them,
 * since each block takes as long as either (plan/path.h). Of each operator that runs for every micro-batch
 * the least over its candidates counts `times` over, [g->nnode]. Second runs are left out, and causally
 * masked sequences are dealt as evenly as can be. 0 for operators after the first some hundred thousand
 * candidates. Complexity as above.
 */
double ap_plan_least_passes_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const uint32_t *times);

/* The least cost of each operator over its candidates, without redistribution, [g->nnode]; an
 * estimate after some hundred thousand candidates. Complexity as above. */
const double *ap_plan_least_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step);

#endif
