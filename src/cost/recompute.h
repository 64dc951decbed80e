/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are computed again for the backward pass: by a primitive's own flag, else by cells,
 * else by the step's setting:
 *
 *   selective  the core of attention: of two successive products of activations, without a weight
 *              between them, the first and all between; the second's result is kept
 *   full       repeated layers: cells NAME.0, NAME.1, .. of which two have the same operators;
 *              the outermost if they are nested
 *
 * All operators of a cell or layer are marked except those whose results leave it, so what passes
 * from one to the next is kept. Who runs a graph compiles it, and then computes of the marked ones
 * what a backward pass reads. Torch checkpointing (recompute_whole of struct ap_step) calls a cell,
 * layer or core once more: all of it runs again, to its last operator, whose results are kept and
 * computed a second time, and what nothing reads.
 */
#ifndef AP_COST_RECOMPUTE_H
#define AP_COST_RECOMPUTE_H

#include "cost/task.h"

struct ap_again { /* for one operator */
	ap_id group; /* equal for operators that are marked together: from nnode on a cell or a
	                layer, below it the operator itself or a core; AP_NONE if not marked */
	ap_id repeats; /* the group that takes it along when it runs again whole, marked or not; AP_NONE
	                  if none does */
	bool keep_comm; /* results of its forward communication are kept */
	bool regather; /* its dealt weights are gathered again */
	bool slice; /* what it reads from unmarked operators is held in parts */
};

/* Fills mark[nnode]; a view is marked if its source is. Marks nothing in inference. O(operands). */
void ap_recompute_mark(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again *mark);

/* Is recomputing an operator refused, by itself or by the innermost cell that sets it? */
bool ap_recompute_refused(const struct ap_graph *g, const struct ap_node *n);

struct ap_again_cell { /* a marked cell or layer; operators whose results leave it are not marked */
	const char *name;
	bool keep_comm, regather, slice;
};

/* Lists the marked cells and layers, inner before outer; leaves out layers in marked cells. [*n] in
 * the run arena. O(operators * depth). */
void ap_recompute_cells(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	uint32_t *n, const struct ap_again_cell **out);

/* Notes [recompute-nothing]: requests that leave nothing to recompute. AP_MEANING if the sink is
 * strict and something is a warning. */
enum ap_status ap_recompute_notes(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step);

#endif
