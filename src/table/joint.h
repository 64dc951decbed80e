/* SPDX-License-Identifier: Apache-2.0 */
/* Joints: which operators a choice of cuts joins, the edges of the search's problem. */
#ifndef AP_TABLE_JOINT_H
#define AP_TABLE_JOINT_H

#include "cost/cost.h"

enum ap_bond_type {
	AP_BOND_FLOW, /* a tensor flows: redistribution */
	AP_BOND_LAYOUT, /* two users of one parameter: equal layouts */
	AP_BOND_FOLLOW, /* an element-wise operator and a reader of its result: equal layouts,
	                   unless the former's cut is given */
	AP_BOND_STRATEGY, /* two users of one checkpoint key: equal strategies */
	AP_BOND_SAME /* two operators that a rule says are cut alike: equal counts */
};

struct ap_joint {
	ap_id u, v; /* nodes; for FLOW, producer and consumer */
	enum ap_bond_type type;
	uint32_t slot_u; /* FLOW, FOLLOW: result of u; LAYOUT: operand of u; STRATEGY, SAME: 0 */
	uint32_t slot_v; /* FLOW, FOLLOW, LAYOUT: operand of v; STRATEGY, SAME: 0 */
	struct ap_flow flow; /* FLOW: what flows; else all zero */
};

/* Does an operator compute each element of its result from the elements at the same place?
 * elementwise_op_strategy_follow is about these operators. */
bool ap_joint_leads(const struct ap_bound *b);

/* Must not keep anything in scratch. */
typedef void ap_joint_fn(void *user, const struct ap_joint *joint);

/* Calls fn for every joint of a graph: flows by consumer and operand, each followed by the FOLLOW
 * that the step may ask for (fn skips it if the cut is given); the first user of a parameter with
 * each further one; the first operator of a tie (ap_task_tie) with each further one; likewise
 * those that are to be cut alike (ap_node.same). O(operands). */
void ap_joints_each(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_task *task,
	const struct ap_step *step, ap_joint_fn *fn, void *user);

#endif
