/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies that the graph itself fixes: in_strategy of an operator, as shard() takes it. */
#ifndef AP_COST_PINS_H
#define AP_COST_PINS_H

#include "graph/graph.h"
#include "shard/step.h"

/*
 * Counts per node ([nnode], rows NULL where nothing is fixed) of the graph's pins, over those of
 * `given` (may be NULL), which they win over as MindSpore's do. *out is NULL when nothing is fixed at
 * all. AP_MEANING naming operator and reason when a pin is no legal strategy on ndev devices,
 * AP_INFEASIBLE when what is given cannot stand together (ap_plan_conflict()).
 */
enum ap_status ap_pins_make(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *given, const int32_t *const **out);

/* Do the counts keep to what is fixed? fixed may be NULL. */
bool ap_pins_hold(const struct ap_graph *g, const int32_t *const *fixed,
	const int32_t *const *counts);

#endif
