/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layers of a network are made of, as the graph tells it; no name means anything.
 *
 * A residual sum adds two tensors of which one is made from the other inside the layer. Between these
 * sums and the norms (operators of that family with a weight, with views and casts around them) lie
 * the parts of a layer: what hangs together by its tensors, and by norms of what is made in the layer, such
 * as those of queries, which lie within a part. Attention is the part with a product of two
 * activations, each with a gradient, or a fused attention. Experts are chosen in the part with an
 * operator that makes numbers (indices) of activations. Other parts with products with weights are
 * feed-forward parts; in a layer that chooses experts, shared experts.
 */
#ifndef AP_COST_LAYER_PARTS_H
#define AP_COST_LAYER_PARTS_H

#include "graph/graph.h"

enum ap_layer_part {
	AP_PART_NONE, /* in no layer, or a residual sum */
	AP_PART_NORM, /* a norm, and casts around it; views behind it */
	AP_PART_ATTENTION,
	AP_PART_DENSE,
	AP_PART_EXPERTS,
	AP_PART_SHARED, /* beside experts */
	AP_PART_OTHER
};

struct ap_layer_parts {
	const enum ap_layer_part *part; /* [nnode] */
	const ap_id *group; /* [nnode] equal for the operators of one part: its first one; AP_NONE */
	const bool *activation; /* [nnode] goes element by element between two products with weights */
	const bool *latent; /* [nnode] of attention: makes queries, keys or values, where some of these are
	                       products of norms within it */
	const ap_id *norm; /* [nnode] the norm whose result it reads, directly or through views and
	                      casts; AP_NONE */
};

/* Does the operator multiply by a weight? data[ntensor]: ap_layer_data(). */
bool ap_layer_has_weight(const struct ap_graph *g, const bool *data, const struct ap_node *n);

/* Tensors that depend on an input of the graph, rather than on weights alone, [ntensor] in scratch. */
const bool *ap_layer_data(struct ap_ctx *ctx, const struct ap_graph *g);

/* layer[nnode]: graph/family.h. In scratch. O(operands), and for each sum of two activations the
 * operators of its layer before it. */
void ap_layer_parts(struct ap_ctx *ctx, const struct ap_graph *g, const int32_t *layer, const bool *data,
	struct ap_layer_parts *out);

#endif
