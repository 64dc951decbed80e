/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executor decides of operators by itself, whatever a strategy says: their rules with that
 * decided. MindSpore has no class of its own for some types (ap_op_is_fallback()) and takes them for
 * batch parallel: dimension 0 is cut by all devices of the stage where it divides by them, of operand 0
 * and of result 0, else nothing is cut (formats 4.2). The class that it then takes them for serves a few
 * others, too (ap_op_is_batch_parallel()): it takes the result for cut so, whatever the strategy says;
 * where the result has no samples, the loss of a batch, they may be whole as well.
 *
 * What is looked up in parts of a table is summed over them. MindSpore deals these sums along dimension 0
 * of the result, by a ReduceScatter, where the indices are whole and the parts divide their dimension 0;
 * elsewhere, or where an out_strategy asks for it, an AllReduce leaves the result whole.
 *
 * The generic executor decides nothing.
 */
#ifndef AP_SHARD_IMPOSED_H
#define AP_SHARD_IMPOSED_H

#include "graph/graph.h"
#include "shard/layout.h"
#include "shard/step.h"

/* The same graph with the rules as step's executor has them on stages of ndev devices. Operators that
 * nothing is decided of keep theirs; the graph itself is handed back where that is all of them. O(n). */
const struct ap_graph *ap_graph_imposed(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step);

/* Has sums dealt as MindSpore does where no out_strategy tells; false, and nothing is changed, where it does
 * not. */
bool ap_bound_deal(struct ap_ctx *ctx, struct ap_bound *b, const struct ap_step *step);

/* Must an out_strategy tell how sums are dealt, or are not, because MindSpore would have it otherwise? */
bool ap_placement_needs_out(const struct ap_placement *p, const struct ap_step *step);

/* Is an out_strategy written where there is a place for it: in these cases, where the graph has one that
 * deals sums, and of look-ups that an AllReduce sums up? */
bool ap_placement_says_out(const struct ap_placement *p, const struct ap_step *step);

#endif
