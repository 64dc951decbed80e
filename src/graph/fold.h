/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of the same network with fewer layers. What equal layers take is equal (plan/block_costs.h), so
 * that one of each kind, with its neighbours, tells what all of them take.
 *
 * Layers (graph/family.h) are equal if they have the same operators, wired in the same way, read the same
 * of the layer before and the same tensors from outside, and give the same to the layer behind; if the
 * layers on both sides have the same operators; and if nothing else reads their results, and none of them is
 * the one that a shared parameter is charged to. So the first and the last layer are mostly kept.
 *
 * What a plan makes of a layer may still depend on how many there are before: hybrids cut products in
 * pairs, which may be of two layers; reductions of dealt gradients pile up if they take longer than the
 * passes beside them; layers that are recomputed together are one block. Where a kept layer takes what the
 * same one of the repetition `before` takes, those left out do, too.
 */
#ifndef AP_GRAPH_FOLD_H
#define AP_GRAPH_FOLD_H

#include "graph/graph.h"

#define AP_FOLD_PERIOD 8 /* the most layers after which a pattern repeats */

struct ap_layer_fold {
	uint32_t nlayer; /* of the graph that was folded */
	uint32_t nkept; /* of the folded one */
	const uint32_t *of; /* [nkept] numbers in the first one's chain, ascending */
	const uint32_t *count; /* [nkept] layers that it stands for, with itself; their sum is nlayer */
	const uint32_t *by; /* [nlayer] the layer of the folded chain that stands for it */
	const uint32_t *before; /* [nkept] of one that stands for several: the same one of the repetition
	                           before, if keep > 1; else AP_NONE */
};

/*
 * The graph with at most `keep` (>= 1) repetitions of each layer, or pattern of up to AP_FOLD_PERIOD layers,
 * that is repeated; g itself where there is nothing to leave out. What is kept is as it was, names, cells
 * and settings included; the layer behind a gap reads what the last one before it gives, and what only
 * layers in the gap read is left out. Of the repetitions, the last that is kept stands for those left out.
 * Settings by number of a layer, and stages, are those of the whole network: they do not carry over. In the
 * run arena. O(operators + slots + bytes of attributes and names).
 */
const struct ap_graph *ap_graph_fold(struct ap_ctx *ctx, const struct ap_graph *g, uint32_t keep,
	struct ap_layer_fold *out);

#endif
