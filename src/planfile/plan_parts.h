/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a network each operator of a plan file belongs to, for people. A plan file tells operators
 * and tensors, not layers, so parts are what hangs together by tensors that depend on the input and on a
 * weight: between residual sums (x + f(x), where f(x) is made from x), norms, and tables that are looked up.
 */
#ifndef AP_PLANFILE_PLAN_PARTS_H
#define AP_PLANFILE_PLAN_PARTS_H

#include "planfile/plan_read.h"

enum ap_saved_part {
	AP_SAVED_PART_EMBEDDING, /* a table that is looked up */
	AP_SAVED_PART_ATTENTION, /* with a product of two activations, or a fused attention */
	AP_SAVED_PART_EXPERTS, /* a part that chooses by TopK */
	AP_SAVED_PART_FEED_FORWARD, /* other parts with products, where the network has attention */
	AP_SAVED_PART_LOGITS, /* with a product that makes columns of the vocabulary */
	AP_SAVED_PART_CONVOLUTIONS,
	AP_SAVED_PART_PRODUCTS, /* products of networks without attention */
	AP_SAVED_PART_REST, /* norms, residual sums and other parts without products */
	AP_SAVED_PART_COUNT
};

extern const char *const ap_saved_part_name[AP_SAVED_PART_COUNT]; /* "attention", "FFN" */

/* Is it a product of matrices, a convolution, or an attention? */
bool ap_saved_is_product(const struct ap_saved_op *op);

/* Is it an attention in one, or a product of batches of matrices, as an attention is made of? */
bool ap_saved_attends(const struct ap_saved_op *op);

/*
 * Which factor of each operator are heads of attention although its own sizes do not say so: 'n' of products
 * whose columns go into attentions and into no other product (queries, keys, values), 'k' of products whose
 * rows come from an attention within its part (its output); '\0': none. letter[plan->nop], in the arena.
 * O(operands).
 */
const char *ap_saved_heads(struct ap_ctx *ctx, const struct ap_saved *plan);

/* part[plan->nop], in the arena. O(operands), and for each residual sum the operators of its layer. */
const enum ap_saved_part *ap_saved_parts(struct ap_ctx *ctx, const struct ap_saved *plan);

#endif
