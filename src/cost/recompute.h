/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are computed again for the backward pass: by a primitive's own flag, else by cells,
 * else by what the step and words of cells ask of layers (graph/family.h) in the words of graph/again.h;
 * the core of attention also where there are no layers.
 *
 * All operators of a cell, a layer or a part of one (cost/layer_parts.h) are marked except those
 * whose results leave it, so what passes from one to the next is kept. Norms, activation functions,
 * queries, keys and values of low rank are marked with their results, as Megatron's output-
 * discarding checkpoints. Who runs a graph compiles it, and then computes of the marked ones what a
 * backward pass reads. Torch checkpointing (recompute_whole of struct ap_step) calls a cell, layer,
 * part or core once more: all of it runs again, to its last operator, whose results are kept and
 * computed a second time, and what nothing reads; but selective checkpoints that keep products stop
 * at what is needed.
 */
#ifndef AP_COST_RECOMPUTE_H
#define AP_COST_RECOMPUTE_H

#include "cost/task.h"

struct ap_again { /* for one operator */
	ap_id group; /* equal for operators that are marked together: from nnode on a cell or a
	                layer, below it the operator itself or a core; AP_NONE if not marked */
	ap_id repeats; /* the group that takes it along when it runs again whole, marked or not; AP_NONE
	                  if none does */
	ap_id gathers; /* what it reads of this norm is gathered for it again; AP_NONE */
	bool keeps; /* its results are kept although all around it runs again */
	bool keep_comm; /* results of its forward communication are kept */
	bool regather; /* its dealt weights are gathered again */
	bool slice; /* what it reads from unmarked operators is held in parts */
};

/* Fills mark[nnode]; a view is marked if its source is. Marks nothing in inference. O(operands). */
void ap_recompute_mark(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again *mark);

/* Is recomputing an operator refused, by itself or by the innermost cell that sets it? */
bool ap_recompute_refused(const struct ap_graph *g, const struct ap_node *n);

struct ap_again_layers { /* layers one behind the other, and what each computes again */
	const char *names; /* "network.blocks.N"; NULL: there is no layer */
	uint32_t n;
	const int32_t *layer; /* [nnode] -1: in none */
	int32_t nstage, nsegment;
	const int64_t *part; /* [segment * nstage + stage] layers of each part */
	const struct ap_again_layer {
		const char *name; /* "network.blocks.3" */
		uint32_t part; /* with most of its operators: index as above */
		int64_t place; /* in its part */
		unsigned what; /* enum ap_recompute, bits; FULL alone if it is */
		uint32_t unit; /* the first layer of those with which it runs again as one */
	} *at; /* [n] */
};

/* All in the run arena. Of a graph whose stages are not known yet, no layer is counted as one of the
 * first. O(operators * numbers in a cell's name). */
void ap_recompute_layers(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again_layers *out);

/* Does the step or a word of a cell ask for anything? */
bool ap_recompute_is_asked(const struct ap_graph *g, const struct ap_step *step);

/* Holds what the step asks for against the layers of a graph with its stages: AP_USAGE, reported with `said`
 * in front, if a list does not fit the stages or is larger. One number for all parts may be larger than
 * some. Notes words that leave nothing to recompute [recompute-nothing]; AP_MEANING if the sink is strict. */
enum ap_status ap_recompute_check(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const char *said);

struct ap_again_cell { /* a marked cell or layer; operators whose results leave it are not marked */
	const char *name;
	bool keep_comm, regather, slice;
};

/* Lists the marked cells and layers, inner before outer; leaves out layers in marked cells. [*n] in
 * the run arena. O(operators * depth). */
void ap_recompute_cells(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	uint32_t *n, const struct ap_again_cell **out);

/* Notes [recompute-nothing]: cells with nothing to recompute. AP_MEANING if the sink is strict. */
enum ap_status ap_recompute_notes(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step);

#endif
