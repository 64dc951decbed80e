/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: strategies that the graph itself fixes (in_strategy of an operator, as for shard()). */
#ifndef AP_COST_PINS_H
#define AP_COST_PINS_H

#include "graph/graph.h"
#include "shard/step.h"

/* Counts per node ([nnode], row NULL: not fixed) of the graph's pins, which, as in MindSpore, take
 * precedence over those of `given` (may be NULL). *out is NULL if nothing is fixed. AP_MEANING,
 * with operator and reason, if a pin is no legal strategy on ndev devices; AP_INFEASIBLE if the
 * fixed counts conflict (ap_plan_conflict()). */
enum ap_status ap_pins_make(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *given, const int32_t *const **out);

/* Do the counts agree with the fixed ones? fixed may be NULL. */
bool ap_pins_hold(const struct ap_graph *g, const int32_t *const *fixed,
	const int32_t *const *counts);

#endif
