/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines. In a staged graph every node has a stage and a segment (model chunk), and each tensor
 * used in another part passes a Send at the end of its part and a Receive at the start of the
 * user's part, one pair per such part, with an edge between them; also between segments of one
 * stage. A parameter used by several stages belongs to the first part that uses it; each other
 * stage receives it in its own first part that does. Each stage that uses a constant has a copy
 * under the same name; inputs are read by each. So costs, search, plan and verification see
 * ordinary operators; the parts of a stage run on its devices, whose ranks are numbered from 0 in
 * every stage. */
#ifndef AP_GRAPH_STAGED_H
#define AP_GRAPH_STAGED_H

#include "graph/graph.h"

/* Where a node runs: a segment of a stage. part: position in data order; the scheduler maps parts
 * to stages (pipeline/schedule.h). */
struct ap_spot {
	int32_t stage, segment, part;
};

/* Makes the staged graph: spot[node] for every node of g; parts must ascend along every edge. Nodes
 * are in topological order, part by part; ids change, names do not. Added nodes and their results
 * are named "Send/<tensor>/<stage>.<segment>-><stage>.<segment>" and "Receive/...". A received
 * tensor keeps its batch marks; a parameter's pair is marked `once`. O(nodes + slots + pairs *
 * parts). g->devices are kept. */
void ap_graph_staged(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_spot *spot,
	const struct ap_graph **out);

#endif
