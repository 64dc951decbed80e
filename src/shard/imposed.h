/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts that an executor imposes on operators, whatever their strategy says, as changed rules.
 *
 * MindSpore has no class for some types (ap_op_is_fallback()) and treats them as batch parallel:
 * dimension 0 of operand 0 and of result 0 is cut by all devices of the stage if they divide it, else
 * nothing is cut (formats 4.2). A few other types share that class (ap_op_is_batch_parallel()): their
 * result counts as cut so, whatever the strategy says; a result without samples, such as the loss of a
 * batch, may be whole as well.
 *
 * A lookup in a table that is cut by entries is summed over the parts. MindSpore deals these sums along
 * dimension 0 of the result (ReduceScatter) if the indices are whole and the parts divide their dimension
 * 0; otherwise, or if an out_strategy says so, an AllReduce leaves the result whole.
 *
 * The generic executor imposes nothing.
 */
#ifndef AP_SHARD_IMPOSED_H
#define AP_SHARD_IMPOSED_H

#include "graph/graph.h"
#include "shard/layout.h"
#include "shard/step.h"

/* The graph with the rules that step's executor imposes on stages of ndev devices; g itself if it changes
 * none. O(operators). */
const struct ap_graph *ap_graph_imposed(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step);

/* The graph in which counts may ask for dealt sums, as an out_strategy does, of every operator whose strategy
 * is not given; g itself if there is none. O(operators). */
const struct ap_graph *ap_graph_deal_if_asked(struct ap_ctx *ctx, const struct ap_graph *g);

/* Deals the sums of b if MindSpore does so without an out_strategy; else returns false and changes
 * nothing. */
bool ap_bound_deal(struct ap_ctx *ctx, struct ap_bound *b, const struct ap_step *step);

/* Is an out_strategy needed, because MindSpore would otherwise deal the sums differently? */
bool ap_placement_needs_out(const struct ap_placement *p, const struct ap_step *step);

/* Is an out_strategy written in files that have a place for it: if it is needed, if the graph has one that
 * deals sums, and for lookups that an AllReduce sums up? */
bool ap_placement_says_out(const struct ap_placement *p, const struct ap_step *step);

#endif
