/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear relaxation of a sub-problem: a variable in [0, 1] for each candidate and each pair of
 * candidates, those of a node add up to 1, and the pairs of an edge with a candidate to that
 * candidate's. The multipliers of these last rows say how much of a pair's cost its candidates may
 * carry. Whatever they are, moving costs along them changes no pick; so they are rounded to whole
 * grains, and the bound is computed from the costs that come out. What GLPK says (lp.h) is thus advice
 * only.
 */
#ifndef AP_ILP_RELAXATION_H
#define AP_ILP_RELAXATION_H

#include "ilp/subproblem.h"

enum ap_ilp_told {
	AP_ILP_TOO_LARGE, /* nothing was done: it would take more memory than there is, or more
			   * work than all before */
	AP_ILP_CLOSED, /* no pick of the sub-problem is better than the best */
	AP_ILP_SMALLER, /* so much became clear that it is worth being looked at again */
	AP_ILP_SAME
};

/*
 * Solves the relaxation of a reduced sub-problem, at least one node of which is left. Its multipliers
 * become costs (rounded, so whatever they are worth, picks keep their cost); raises its bound,
 * drops what is beaten, and names a node and a candidate to branch on.
 */
enum ap_ilp_told ap_ilp_relax(struct ap_ilp *s, struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate);

#endif
