/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator-strategy file of sharding_propagation, JSON (formats section 1.10): the strategy of every
 * operator of a plan under its full name, so that nothing is left to the executor.
 */
#ifndef AP_CKPT_OP_STRATEGY_H
#define AP_CKPT_OP_STRATEGY_H

#include "ckpt/op_template.h"

/* Do plan and template have the same operators? AP_MEANING naming each name that only the template has,
 * and each operator of the plan that it has no name for; or whose strategy takes other vectors. */
enum ap_status ap_op_template_check(struct ap_ctx *ctx, const struct ap_op_template *t,
	const struct ap_plan *p);

/*
 * The file of a plan, of all its stages. Without a template: operators by name, bytewise, all but Cast, and
 * what hands the inputs to the devices. With one, which fits: its names in its order; what it says of
 * Reshape, and of Cast and VirtualOutput that the plan lacks, stays. O(operators).
 */
void ap_op_strategy_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t,
	ap_write_fn *write, void *user);

#endif
