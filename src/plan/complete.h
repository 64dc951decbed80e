/* SPDX-License-Identifier: Apache-2.0 */
/* semi_auto_parallel: what is not given is not searched, but cut by a fixed rule. */
#ifndef AP_PLAN_COMPLETE_H
#define AP_PLAN_COMPLETE_H

#include "graph/graph.h"
#include "shard/step.h"

/*
 * MindSpore's rule for operators without a strategy, as far as rules of operators tell it: the first
 * dimension (of the only operand, or else of the first result) is cut by the greatest common divisor
 * of its length and the devices, nothing else is. Where that dimension may not be cut, or not so, the
 * operator stays whole (MindSpore stops at some of these). Reshape and Flatten have no strategy and
 * follow their neighbours, and what sends a parameter from stage to stage its users: their rows stay
 * NULL, to be completed by cost. Rows of `fixed` (which may be NULL) stay as they are.
 *
 * *out: [nnode], in the run arena. AP_INFEASIBLE naming the operator where this cuts a shared
 * parameter differently for two of its users: they need an in_strategy. O(operands).
 */
enum ap_status ap_complete_batch(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *fixed, const int32_t *const **out);

#endif
