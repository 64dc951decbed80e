/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of tokens numbered as Megatron numbers them, [sequence, batch, hidden]. A graph flattens tokens
 * sample by sample; equal runs of such rows are parts of the sequence of each sample only where there is
 * one. With several samples a device, rows are numbered token by token, so that a part of the rows is
 * the same part of every sample's sequence: sums are dealt along the sequence, whatever the number
 * of samples is. What works on rows does not see their order; views that flatten tokens, or
 * put rows back into samples, do.
 */
#ifndef AP_GRAPH_SEQUENCE_FIRST_H
#define AP_GRAPH_SEQUENCE_FIRST_H

#include "graph/graph.h"

/* Attribute of a view whose rows are numbered so: an int, the samples of which neighbours are interleaved.
 * Row (group * tokens + token) * samples + sample is token `token` of sample group * samples + sample. */
#define AP_SEQUENCE_FIRST "sequence_first"

/* Can the order of rows be changed, and nothing but rows with it? Not where an operator looks at the order,
 * or rows come from outside or go there; also true of a graph in which it was changed. O(operands). */
bool ap_sequence_first_fits(const struct ap_graph *g);

/* The graph with all rows of tokens in this order; each device has `samples` samples in a micro-batch. NULL
 * if it does not fit. O(operands). */
const struct ap_graph *ap_sequence_first(struct ap_ctx *ctx, const struct ap_graph *g, int64_t samples);

#endif
