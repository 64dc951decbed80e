/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator-strategy file of sharding_propagation, JSON (formats section 1.10): the strategy of every
 * operator of a plan under its full name, so that nothing is left to the executor.
 */
#ifndef AP_EMIT_OP_STRATEGY_H
#define AP_EMIT_OP_STRATEGY_H

#include "plan/plan.h"

/* A file that MindSpore saved, whose names MindSpore will ask for. */
struct ap_op_template;

/* Reads one. AP_SYNTAX, AP_MEANING, told. */
enum ap_status ap_op_template_read(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_op_template **out);

/* Do plan and template have the same operators? AP_MEANING naming each name that only the template has,
 * or that no operator of the plan stands for. */
enum ap_status ap_op_template_check(struct ap_ctx *ctx, const struct ap_op_template *t,
	const struct ap_plan *p);

/* The file of a plan, of all its stages; in the names and order of a template, where there is one, which
 * fits. O(operators). */
void ap_op_strategy_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t,
	ap_write_fn *write, void *user);

#endif
