/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical hybrids: the strategies that experts write by hand, as ordinary counts per operator.
 * They come from what the graph is made of, not from names:
 *
 *   dp  the batch is cut, outermost on the ranks;
 *   cp  the sequence is cut: of what a long table is looked up for, the first dimension that is not
 *       the batch; keys and values are gathered;
 *   ep  among the dp parts of the batch, experts (a dimension that rows, weight and result of a
 *       product share) are cut instead of the batch;
 *   tp  innermost. Of two products with a parameter, one behind the other, the first is cut by its
 *       columns, the second by its rows, whose sum is then taken; between them goes what the columns
 *       are part of: heads of attention, biases, gates. A table of words is cut by its entries, and
 *       so are the columns of the product that the loss is made of;
 *   sp  what lies between such pairs is cut by tokens among the tp devices.
 */
#ifndef AP_HYBRID_HYBRID_H
#define AP_HYBRID_HYBRID_H

#include "graph/graph.h"
#include "hybrid/hybrid_parse.h"
#include "shard/step.h"

#define AP_HYBRID_MOST_TP 64 /* of the grids that a search is compared with */
#define AP_HYBRID_MOST_CP 8

/*
 * Counts of a filled hybrid on the ndev = dp * cp * tp devices of a stage, [node][factor], in the run
 * arena; rows of equal operators may be shared. The graph may be staged. NULL, and *why, where something
 * does not divide. O(operands).
 */
const int32_t *const *ap_hybrid_counts(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why);

/*
 * With sp the sums of row-cut products and of cut tables are dealt (out_strategy: ReduceScatter
 * instead of AllReduce) where rows divide; that is a property of the graph's rules. The graph with
 * it, whose counts ap_hybrid_counts() gives then; g itself without sp. NULL and *why as there.
 */
const struct ap_graph *ap_hybrid_deal(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why);

/* All dp x cp x tp grids of ndev devices, cp ascending up to AP_HYBRID_MOST_CP, for each tp up to
 * AP_HYBRID_MOST_TP: filled hybrids and their names, "dp=8 tp=8", "dp=4 tp=1 cp=2". Names live as long as
 * the call. */
void ap_hybrid_grids(int64_t ndev,
	void (*emit)(void *user, const struct ap_hybrid *h, const char *name), void *user);

#endif
