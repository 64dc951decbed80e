/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: the operators of a part, in the order in which they run, as runs that belong to one layer each
 * or lie between layers. Streams of computation and of the communication that it waits for meet where
 * a block ends, so that what a block takes depends on nothing outside it.
 */
#ifndef AP_PLAN_BLOCKS_H
#define AP_PLAN_BLOCKS_H

#include "cost/task.h"

struct ap_blocks {
	uint32_t n; /* part by part, in the order of the forward pass */
	const uint32_t *of; /* [nnode] */
	const int32_t *part; /* [n] */
	const int32_t *layer; /* [n] the first layer that it has; -1: none */
	uint32_t nlayer; /* of the network, in its chain (graph/family.h) */
	const int32_t *layer_of; /* [nnode] -1: in none */
};

/*
 * The blocks of a graph, in the run arena. Operators of no layer among those of a layer are in its block;
 * layers whose operators run in turns are one block, and so are layers that are recomputed together.
 * Without layers, a part is a block. task: of the graph's operators. O(operators * numbers in a name).
 */
void ap_blocks_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_task *task, struct ap_blocks *out);

#endif
