/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical hybrids: the strategies that experts write by hand, as ordinary counts per operator.
 * They are derived from the structure of the graph, not from names:
 *
 *   dp  cuts the batch, outermost on the ranks;
 *   cp  cuts the sequence: the first dimension, other than the batch, of the indices of a table
 *       of words; keys and values are gathered before attention, or go round while it works (cp_algo);
 *   ep  cuts experts (a dimension shared by the rows, weight and result of a product) instead of
 *       the batch on the inner ep of the ranks of cp and dp; with etp = 1, instead of columns, too, on
 *       those of tp, cp and dp (ap_hybrid_expert_stride());
 *   tp  innermost. Of a pair of consecutive products with a parameter, the first is cut by columns,
 *       the second by rows, and its partial sums are added; what lies between follows the columns:
 *       heads of attention, biases, gates. A table of words is cut by its entries, and so are the
 *       columns of the product that the loss is computed from;
 *   sp  cuts what lies between such pairs by tokens among the tp devices.
 */
#ifndef AP_HYBRID_HYBRID_H
#define AP_HYBRID_HYBRID_H

#include "graph/graph.h"
#include "hybrid/hybrid_parse.h"
#include "shard/step.h"

#define AP_HYBRID_MOST_TP 64 /* largest tp of ap_hybrid_grids() */
#define AP_HYBRID_MOST_CP 8

/*
 * Counts of a filled hybrid on the ndev = dp * cp * tp devices of a stage, [node][factor], in
 * the run arena; equal operators may share a row. The graph may be staged. Returns NULL, with the
 * reason in *why, if something does not divide. O(operands). Where stages have unequal numbers of devices
 * (g->devices), ndev is that of the largest, and dp in each stage what tp and cp leave of its devices.
 */
const int32_t *const *ap_hybrid_counts(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why);

/*
 * With sp the sums of row-cut products and of cut tables are dealt (out_strategy: ReduceScatter
 * instead of AllReduce) if the rows divide; under the generic executor the axes of every dev_matrix
 * stand in the order dp, cp, tp, whatever the order of the operator's dimensions, and rows of several
 * samples that are cut along the sequence stand token by token (graph/sequence_first.h). These change
 * rules of the graph. Returns the changed graph, to be passed to ap_hybrid_counts(); g itself if
 * nothing changes; NULL and *why as there.
 */
const struct ap_graph *ap_hybrid_deal(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why);

/* Emits all dp x cp x tp grids of ndev devices, cp ascending up to AP_HYBRID_MOST_CP, then tp up to
 * AP_HYBRID_MOST_TP: filled hybrids and their names, "dp=8 tp=8", "dp=4 tp=1 cp=2". A name lives as
 * long as the call of emit. */
void ap_hybrid_grids(int64_t ndev,
	void (*emit)(void *user, const struct ap_hybrid *h, const char *name), void *user);

#endif
