/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph computes: the floating-point operations of its products, and for how many tokens. */
#ifndef AP_GRAPH_WORK_H
#define AP_GRAPH_WORK_H

#include "graph/graph.h"

struct ap_graph_work {
	double products_flop; /* of the forward pass of a step, in operators that the matrix unit runs:
			products with weights, attention (half of it under a causal mask), convolutions */
	int64_t tokens; /* of a sample: length of the first integer input [samples, tokens] of which
			there is another, its labels or their kind; 0: samples are no sequences */
	int64_t trained; /* elements of parameters that are trained */
};

/* O(operators). */
struct ap_graph_work ap_graph_work(const struct ap_graph *g);

/* What kind of network it is: "moe" if experts are chosen in it, "cnn" if it convolves, else "dense".
 * O(operators). */
const char *ap_graph_kind(const struct ap_graph *g);

#endif
