/* SPDX-License-Identifier: Apache-2.0 */
/* The operator-strategy file of sharding_propagation, JSON (formats section 1.10): the strategy of
 * every operator under its full name, so that the executor decides nothing. */
#ifndef AP_CKPT_OP_STRATEGY_H
#define AP_CKPT_OP_STRATEGY_H

#include "ckpt/op_template.h"

/* Checks that plan and template have the same operators. Returns AP_MEANING, naming each operator
 * that only one of them has, or whose strategy has another form. */
enum ap_status ap_op_template_check(struct ap_ctx *ctx, const struct ap_op_template *t,
	const struct ap_plan *p);

/* Writes the file of a plan, for all stages. Without a template: all operators but Cast, by name,
 * bytewise, and the one that feeds the inputs. With a checked template: its names in its order; its
 * values of Reshape, and of Cast and VirtualOutput missing in the plan, are kept. O(operators). */
void ap_op_strategy_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t,
	ap_write_fn *write, void *user);

#endif
