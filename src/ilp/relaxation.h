/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear relaxation of a sub-problem: a variable in [0, 1] for each candidate and each pair of
 * candidates; those of a node sum to 1, and the pairs of an edge with a candidate to that
 * candidate's. The multipliers of the latter rows give how much of a pair's cost its candidates
 * should carry. Moving costs by any multipliers changes no pick's cost, so they are rounded to
 * whole grains and the bound is computed from the resulting costs: GLPK's answer (lp.h) is only
 * advice.
 */
#ifndef AP_ILP_RELAXATION_H
#define AP_ILP_RELAXATION_H

#include "ilp/subproblem.h"

enum ap_ilp_told {
	AP_ILP_TOO_LARGE, /* nothing was done: it needs too much memory, or more work than all
	                     before */
	AP_ILP_CLOSED, /* no pick of the sub-problem beats the best */
	AP_ILP_SMALLER, /* it shrank enough to be reduced again */
	AP_ILP_SAME
};

/* Solves the relaxation of a reduced sub-problem with at least one node. Moves costs by its
 * multipliers (rounded; picks keep their cost however good these are), raises the bound, drops
 * beaten candidates, and chooses a node and a candidate to branch on. */
enum ap_ilp_told ap_ilp_relax(struct ap_ilp *s, struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate);

#endif
