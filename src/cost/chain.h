/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: operators of which a software makes one kernel. What lies between them is then neither written nor
 * read, and only the first is started. That holds where both have the layout of what flows between them; a
 * redistribution there pays for writing and reading it, and for the second kernel (cost/move.h).
 */
#ifndef AP_COST_CHAIN_H
#define AP_COST_CHAIN_H

#include "graph/graph.h"

enum ap_chain_kind {
	AP_CHAIN_NONE,
	AP_CHAIN_JOINED, /* one kernel: what flows stays within it */
	AP_CHAIN_STRIDED /* the former only orders dimensions anew: the latter's kernel reads it as it was */
};

struct ap_chain_node { /* what chains ask of an operator */
	unsigned roles;
	uint32_t layer_len; /* of the part of its cell's name that says its layer */
};

/* [nnode] in scratch. O(nodes * operators of the table). */
const struct ap_chain_node *ap_chain_nodes(struct ap_ctx *ctx, const struct ap_graph *g);

/* What the chains of a software, bits of enum ap_chain, make of a node and the operator, behind views,
 * whose result is its operand and nobody else's. Both are in one layer, as the first numbers of their
 * cells tell, and neither's time is measured. of: ap_chain_nodes(). */
enum ap_chain_kind ap_chain_between(const struct ap_graph *g, const struct ap_chain_node *of, uint32_t chains,
	ap_id node, uint32_t operand, ap_id *producer);

/* Of each node, the share that its weight has in the weights, side by side, of all products of one activation
 * in one part of a layer, such as query, key and value, or gate and up; 0 where it is the only one, or no
 * product with a weight. Those whose result a norm reads as it is are by themselves: Megatron's latent
 * attention has two. In scratch. O(n log n). */
const double *ap_chain_products(struct ap_ctx *ctx, const struct ap_graph *g);

#endif
