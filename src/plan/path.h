/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path through the step: a chain of kernels, collectives, redistributions, sends and updates each of
 * which waits for the one before, in the simulation of every plan of this graph on this machine,
 * however its operators are cut. Kernels wait for one another in the order of their pass, and for
 * the data that they read, and for the host, which starts all kernels of a block before them; collectives
 * between two kernels for one another, where the first kernel comes before all of them and the second behind
 * all; blocks for all that the block before runs, but for exchanges of gradients; passes in the order of the
 * schedule; a gradient's exchange for the kernels that complete it. Buckets that another plan need not have
 * are no part of it. So what a path takes, added up over any plan's operators, is no more than that plan's
 * simulated step.
 */
#ifndef AP_PLAN_PATH_H
#define AP_PLAN_PATH_H

#include "cost/leg.h"
#include "plan/plan.h"

struct ap_path {
	struct ap_path_weights weights; /* what the path passes; ap_table_weighted() adds it up */
	double length_s; /* in the plan that it was made of: at most its simulated step */
};

/* What paths add up in a plan: of operators, and of redistributions. */
struct ap_path_terms {
	const struct ap_legs *leg; /* [nnode] */
	const double *there_s, *back_s; /* [operands], numbered as in struct ap_path_weights */
};

/* O(operands) and the pricing of each operator. */
void ap_path_terms_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_path_terms *out);

/* The longest path of a simulated plan. fixed: NULL, or the nodes, [nnode], whose strategies are those of all
 * plans of which it is a path: what they exchange in groups of their own cannot share a bucket. O(operands +
 * slots). */
void ap_path_longest(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_path_terms *terms,
	const bool *fixed, struct ap_path *out);

/* What the path takes in another plan of the same graph, machine and step: at most that plan's step.
 * O(operands). */
double ap_path_length_s(const struct ap_path *path, const struct ap_graph *g, const struct ap_path_terms *t);

/* The mixture of n paths of one graph by shares that add up to 1. Its length in a plan is a bound like a
 * path's. */
void ap_path_mix(struct ap_ctx *ctx, const struct ap_path *const *path, const double *share, uint32_t n,
	const struct ap_graph *g, struct ap_path *out);

#endif
