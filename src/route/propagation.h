/* SPDX-License-Identifier: Apache-2.0 */
/* sharding_propagation: operators without a strategy take theirs from configured neighbours. */
#ifndef AP_ROUTE_PROPAGATION_H
#define AP_ROUTE_PROPAGATION_H

#include "route/route.h"

/*
 * MindSpore's propagation (2.7), an ap_route_fn: breadth-first searches from the dataset and then
 * each configured operator, in topological order, in which a neighbour takes the candidate with the
 * least redistribution cost (by MindSpore's cost model, cost/ms_cost.h, with its ties). Every row
 * of *out is decided, and ap_plan_conflict() finds nothing. Reshape and the like are never
 * configured; two in a row end the propagation there, for which MindSpore only warns.
 *
 * Differences from MindSpore: candidates are those of shard/space.h, in MindSpore's order;
 * elementwise_op_strategy_follow is ignored; of equal candidates of a Reshape the first is taken
 * (MindSpore's sort is not stable). An element-wise operator to which MindSpore gives a layout that
 * is not its strategy's propagates that layout, and has the strategy in *out. Users of a shared
 * parameter left in different layouts, at which MindSpore would stop, are made to agree with the
 * first held one. O(operators + distinct choices * candidates).
 */
enum ap_status ap_propagation_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/* An ap_completer_fn for the same. */
struct ap_completer *ap_propagation_completer(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step);

#endif
