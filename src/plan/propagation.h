/* SPDX-License-Identifier: Apache-2.0 */
/* sharding_propagation: operators without a strategy take theirs from configured neighbours. */
#ifndef AP_PLAN_PROPAGATION_H
#define AP_PLAN_PROPAGATION_H

#include "plan/route.h"

/*
 * MindSpore's propagation, an ap_route_fn: from each configured operator in topological order a
 * breadth-first search, in which a neighbour takes the candidate with the least cost of redistribution
 * (in MindSpore's own figures, cost/ms_cost.h), and by its ties. Every row of *out is decided.
 */
enum ap_status ap_propagation_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

#endif
