/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines. A staged graph is the graph with its stages in it: every node has a stage and a segment
 * (model chunk), and every tensor that leaves its part passes a Send at the end of the part it comes
 * from and a Receive at the beginning of the part that uses it, one pair for each such part, with an
 * edge between them; between two segments of one stage, too. A parameter that several stages use
 * belongs to the part that uses it first; each other stage receives it in its own first part that
 * does. Constants are there once in each stage that uses them, under one name; inputs are read by each. So
 * all that follows (costs, search, plan, verification) sees ordinary operators; the parts of a
 * stage run on its devices, whose ranks are numbered from 0 in every stage.
 */
#ifndef AP_GRAPH_STAGED_H
#define AP_GRAPH_STAGED_H

#include "graph/graph.h"

/* Where a node runs: a segment of a stage. part is its place in the order in which the data flows;
 * which parts a stage has is the scheduler's choice (pipeline/schedule.h). */
struct ap_spot {
	int32_t stage, segment, part;
};

/*
 * Makes the staged graph: spot[node] of every node of g (parts ascend along every edge). Nodes are
 * in topological order again, part by part; node ids change, names do not. Names of what is put in:
 * "Send/<tensor>/<stage>.<segment>-><stage>.<segment>" and "Receive/...", and so are their results called.
 * A received tensor of the batch keeps its batch marks; a parameter's pair is marked `once`.
 * O(nodes + slots + pairs * parts).
 */
void ap_graph_staged(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_spot *spot,
	const struct ap_graph **out);

#endif
