/* SPDX-License-Identifier: Apache-2.0 */
/* semi_auto_parallel: operators without a strategy are cut by their batch only. */
#ifndef AP_ROUTE_SEMI_AUTO_H
#define AP_ROUTE_SEMI_AUTO_H

#include "route/route.h"

/*
 * MindSpore's rule for operators without a strategy, an ap_route_fn: the dimensions that the table
 * of operators names (ap_op_batch_positions()) are cut by one value, the greatest common divisor of
 * the devices and all their lengths in a micro-batch. Rows stay NULL of operators that are not held
 * and have a parameter (a checkpoint may give them), and of those that follow neighbours: Reshape,
 * Cast, Send, Receive. held may be NULL: none. AP_INFEASIBLE, each operator reported, if operators
 * cannot be cut so: MindSpore stops there. O(operands).
 */
enum ap_status ap_semi_auto_fix(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/*
 * Decides every row, an ap_route_fn, if held has all that a checkpoint gives. Other operators with
 * a parameter are cut by their batch, too, and those that follow take the layout of their
 * neighbours (route/follow.h). AP_INFEASIBLE also if users of one parameter, or operators of one
 * checkpoint key, would then be cut differently.
 */
enum ap_status ap_semi_auto_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

#endif
