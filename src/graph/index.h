/* SPDX-License-Identifier: Apache-2.0 */
/* Derives data from operators and their operands; for makers of graphs. */
#ifndef AP_GRAPH_INDEX_H
#define AP_GRAPH_INDEX_H

#include "graph/graph.h"

/* Sets uses and owners of tensors, and gradient marks. tensor and node are g's, otherwise complete;
 * g has outputs and loss. inference: no gradients. O(nodes + slots). */
void ap_graph_index(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node, bool inference);

#endif
