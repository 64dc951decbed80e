/* SPDX-License-Identifier: Apache-2.0 */
/* A plan by parts, for its simulation: which nodes run where, and which gradients are then complete. */
#ifndef AP_PLAN_PARTS_H
#define AP_PLAN_PARTS_H

#include "plan/plan.h"

/* A collective of the gradient exchange. */
struct ap_gradient {
	ap_id node; /* whose operator brings it */
	uint32_t comm; /* which one of its collectives */
	bool chained; /* after the one before it, which is of the same gradient */
};

struct ap_parts {
	const struct ap_plan *p;
	const struct ap_pipe *pipe; /* NULL: one part, its micro-batches one after the other */
	int32_t nstage, nsegment;
	int32_t npart; /* parts of the pipeline, in the order of the data */
	const int32_t *stage, *segment; /* [npart] */
	const uint32_t *first; /* [npart + 1] a part's nodes are node[first[part]] .., ascending */
	const ap_id *node;
	const int32_t *part_of; /* [nnode] */
	const uint32_t *first_move; /* [nnode + 1] redistributions, by node that they go to */
	const uint32_t *first_gradient; /* [nnode + 1] by the node after whose backward pass they are
	                                   complete: the parameter's last user (mindspore), each user
	                                   (generic) */
	const struct ap_gradient *gradient;
};

/* In scratch. O(operands + collectives). */
void ap_parts_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_parts *out);

/* The collective that a gradient stands for. */
static inline const struct ap_plan_comm *ap_gradient_comm(const struct ap_plan *p,
	const struct ap_gradient *g)
{
	return &p->op[g->node].comm[g->comm];
}

#endif
