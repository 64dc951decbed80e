/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operators are computed again for the backward pass. A primitive's own flag wins; then cells;
 * then the step's setting:
 *
 *   selective  the core of attention: of two products of activations one after the other, with no
 *              weight between them, the first and all between; the second's result is kept
 *   full       repeated layers, which are cells NAME.0, NAME.1, .. of which two have the same
 *              operators; the outermost where they are nested
 *
 * Of a cell and of a layer all operators are marked but those whose results leave it, so that
 * what goes from one to the next is kept.
 */
#ifndef AP_COST_RECOMPUTE_H
#define AP_COST_RECOMPUTE_H

#include "cost/task.h"

struct ap_again { /* of one operator */
	ap_id group; /* those that are marked together have the same: from nnode on a cell or a layer,
	              * below it the operator itself or a core; AP_NONE: it is not marked */
	bool keep_comm; /* what its forward communication gives is kept */
	bool regather; /* its dealt weights are gathered anew */
	bool slice; /* what it reads of operators that are not marked is held in parts */
};

/* Fills mark[nnode]; views are marked where what they show is. Nothing in inference. O(operands). */
void ap_recompute_mark(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again *mark);

/* Is an operator said to be kept, by itself or by the innermost cell that says anything of it? */
bool ap_recompute_refused(const struct ap_graph *g, const struct ap_node *n);

struct ap_again_cell { /* a cell or a layer that is marked, but for what leaves it */
	const char *name;
	bool keep_comm, regather, slice;
};

/* Those cells and layers, the inner before the outer ones; layers in marked cells are not told again. [*n]
 * in the run arena. O(operators * depth). */
void ap_recompute_cells(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	uint32_t *n, const struct ap_again_cell **out);

/* Notes [recompute-nothing]: what was asked for and leaves nothing to recompute. AP_MEANING where the
 * sink is strict and something is a warning. */
enum ap_status ap_recompute_notes(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step);

#endif
