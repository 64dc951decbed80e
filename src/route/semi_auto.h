/* SPDX-License-Identifier: Apache-2.0 */
/* semi_auto_parallel: operators without a strategy are cut by their batch, and by nothing else. */
#ifndef AP_ROUTE_SEMI_AUTO_H
#define AP_ROUTE_SEMI_AUTO_H

#include "route/route.h"

/*
 * MindSpore's rule for operators without a strategy, an ap_route_fn: what the table of operators names
 * (ap_op_batch_positions()) is cut by one common value, the greatest common divisor of the devices and
 * of all these lengths, as a micro-batch has them. What is not held and has a parameter may still be
 * told by a checkpoint, Reshape and Cast have no strategy and follow their neighbours, as do both ends
 * of a way between stages: their rows stay NULL. held may be NULL: nothing is. AP_INFEASIBLE, each of
 * them told, where an operator cannot be cut so: MindSpore stops there. O(operands).
 */
enum ap_status ap_semi_auto_fix(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/*
 * All of it, an ap_route_fn: with held all that a checkpoint tells. Operators with a parameter that it
 * does not tell are cut by their batch, too, and what follows takes the layout of what it follows
 * (route/follow.h). Every row of *out is decided. AP_INFEASIBLE as well where users of one parameter, or
 * operators of one checkpoint key, would then be cut differently.
 */
enum ap_status ap_semi_auto_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

#endif
