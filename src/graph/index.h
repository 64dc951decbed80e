/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the operators of a graph and their operands; for those who make graphs. */
#ifndef AP_GRAPH_INDEX_H
#define AP_GRAPH_INDEX_H

#include "graph/graph.h"

/*
 * Uses and owners of all tensors, where gradients flow. tensor and node are those of g, complete but
 * for that; g has its outputs and loss. inference: nothing needs a gradient. O(nodes + slots).
 */
void ap_graph_index(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node, bool inference);

#endif
