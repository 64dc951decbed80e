/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines. A staged graph is the graph with its stages in it: every node has a stage and a segment
 * (model chunk), and every tensor that leaves its part passes a Send at the end of the part it comes
 * from and a Receive in the part that uses it, one pair for each such part, with an edge between
 * them. A parameter that several stages use belongs to the first of them; the others receive it. So
 * all that follows (costs, search, plan, verification) sees ordinary operators; the parts of a
 * stage run on its devices, whose ranks are numbered from 0 in every stage.
 */
#ifndef AP_GRAPH_STAGED_H
#define AP_GRAPH_STAGED_H

#include "graph/graph.h"

/* Where a node runs. Part p of the pipeline, in the order that the data flows, is a segment of a
 * stage; which one is the scheduler's choice (plan/schedule.h). */
struct ap_spot {
	int32_t stage, segment;
};

/*
 * Makes the staged graph: spot[node] of every node of g (parts ascend along every edge). Nodes are
 * in topological order again; node ids change, names do not. Names of what is put in:
 * "Send/<tensor>/<stage>.<segment>-><stage>.<segment>" and "Receive/...". A received tensor of the
 * batch keeps its batch marks; a parameter's pair is marked `once`. AP_OK always. O(nodes + edges).
 */
void ap_graph_staged(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_spot *spot,
	const struct ap_graph **out);

#endif
