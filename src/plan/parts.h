/* SPDX-License-Identifier: Apache-2.0 */
/* A plan by parts, for its simulation: the nodes of each part, the gradients they complete. */
#ifndef AP_PLAN_PARTS_H
#define AP_PLAN_PARTS_H

#include "plan/plan.h"

/* A collective of the gradient exchange. */
struct ap_gradient {
	ap_id node; /* whose operator has it */
	uint32_t comm; /* index in its collectives */
	bool chained; /* follows the one before, which is of the same gradient */
};

struct ap_parts {
	const struct ap_plan *p;
	const struct ap_pipe *pipe; /* NULL: one part, with micro-batches in sequence */
	int32_t nstage, nsegment;
	int32_t npart; /* parts of the pipeline, in data order */
	const int32_t *stage, *segment; /* [npart] */
	const uint32_t *first; /* [npart + 1] a part's nodes are node[first[part]] .., ascending */
	const ap_id *node;
	const int32_t *part_of; /* [nnode] */
	const uint32_t *first_move; /* [nnode + 1] redistributions, by destination node */
	const uint32_t *first_gradient; /* [nnode + 1] by the node whose backward pass completes it:
	                                   the last user (mindspore), each user (generic) */
	const struct ap_gradient *gradient;
};

/* The part in which a node of a step's graph runs. */
int32_t ap_part_of(const struct ap_step *step, const struct ap_node *n);

/* In scratch. O(operands + collectives). */
void ap_parts_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_parts *out);

/* Does operand `operand` of a node bring tokens to experts, or what these made of them back? */
bool ap_parts_moves_tokens(const struct ap_graph *g, ap_id node, uint32_t operand);

static inline const struct ap_plan_comm *ap_gradient_comm(const struct ap_plan *p,
	const struct ap_gradient *g)
{
	return &p->op[g->node].comm[g->comm];
}

#endif
