/* SPDX-License-Identifier: Apache-2.0 */
/* sharding_propagation: operators without a strategy take theirs from configured neighbours. */
#ifndef AP_ROUTE_PROPAGATION_H
#define AP_ROUTE_PROPAGATION_H

#include "route/route.h"

/*
 * MindSpore's propagation (2.7), an ap_route_fn: from the dataset and then each configured operator, in
 * topological order, a breadth-first search, in which a neighbour takes the candidate with the least cost
 * of redistribution (in MindSpore's own figures, cost/ms_cost.h), and by its ties. Every row of *out is
 * decided, and ap_plan_conflict() finds nothing. Reshape and the like are never configured, and two of them
 * in a row end the propagation there, with a warning in MindSpore, not with an exception.
 *
 * Where it is not MindSpore to the letter: candidates are those of shard/space.h, in MindSpore's order;
 * elementwise_op_strategy_follow is not looked at; of equal candidates of a Reshape the first is taken,
 * where MindSpore's sort is not stable. An operator by element that MindSpore gives a layout which its
 * strategy does not say is propagated from with that layout, and stands in *out with the strategy. Users
 * of a shared parameter that MindSpore leaves in different layouts, where it would stop, are made to agree
 * with the first held one of them. O(operators + distinct choices * candidates).
 */
enum ap_status ap_propagation_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/* Does the same again and again: an ap_completer_fn. */
struct ap_completer *ap_propagation_completer(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step);

#endif
