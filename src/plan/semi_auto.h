/* SPDX-License-Identifier: Apache-2.0 */
/* semi_auto_parallel: operators without a strategy are cut by their batch, and by nothing else. */
#ifndef AP_PLAN_SEMI_AUTO_H
#define AP_PLAN_SEMI_AUTO_H

#include "plan/route.h"

/*
 * MindSpore's rule for operators without a strategy, an ap_route_fn: the batch positions of an
 * operator's inputs (ap_op_batch_positions()) are cut by one common value, the greatest common divisor
 * of the devices and of all their lengths. With held NULL nothing is held. Reshape, Cast and the like
 * have no strategy and follow their neighbours: their rows stay NULL. O(operands).
 */
enum ap_status ap_semi_auto_fix(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/*
 * All of it, an ap_route_fn: what follows takes the layout of what it follows as far as it can. A Cast
 * that of its producer; a Reshape hands on that which its first user reads, or keeps its producer's
 * where that user is a Reshape too. Every row of *out is decided.
 */
enum ap_status ap_semi_auto_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

#endif
