/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders of a graph's operators, each operator behind those whose results it uses. Where a pipeline is cut
 * along an order, what is sent from part to part depends on it: branches in turns cross every border
 * together, one branch after the other crosses few. Pure, deterministic.
 */
#ifndef AP_PIPELINE_ORDER_H
#define AP_PIPELINE_ORDER_H

#include "graph/graph.h"

struct ap_order {
	const char *name;
	/*
	 * Fills node[g->nnode]. bytes[g->ntensor]: what a tensor takes on a device. O(operands), times the
	 * log of operators if it goes by bytes.
	 */
	void (*fill)(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *bytes, ap_id *node);
};

/*
 * Order i; NULL past the end:
 *   given  as the graph has them (graph/canonical.h)
 *   need   as a walk from the ends of the graph, in their order, along the operands meets them: each
 *          operator right before the first that needs it
 *   depth  as a walk from the inputs meets them: after an operator those that it makes ready, and all
 *          that they make ready, before any other
 *   bytes  always the operator after which least lives on, or most is freed; of several the first
 */
const struct ap_order *ap_order_at(size_t i);

#endif
