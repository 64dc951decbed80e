/* SPDX-License-Identifier: Apache-2.0 */
/* Random operator graphs, as the text of their files. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include "base/ctx.h"

struct random_graph {
	const char *text; /* autopar-graph/1 */
	const char *reordered; /* the same with all lists but "outputs" in another order, and other names */
	const char *part, *part_reordered; /* the same two with the first output alone */
	int64_t batch;
};

/*
 * At most `most` (>= 3) operators: products, broadcasts, norms, reductions, reshapes that merge and
 * split, look-ups, attention, convolutions and poolings, joins, slices and repeats; tensors with
 * several consumers and without, parameters with several users or frozen, parts that do not hang
 * together, with a scalar loss as a rule. Lengths are products of 2, 3 and 5, in some graphs with
 * features long enough that cutting pays. In the arena of ctx.
 */
void random_graph(struct ap_ctx *ctx, uint64_t *seed, uint32_t most, struct random_graph *out);

#endif
