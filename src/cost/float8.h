/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in 8 bits, as TransformerEngine and torchao run them.
 *
 * Weights, activations and gradients stay in 16 bits; in front of a product its operands are copied into 8
 * bits with scales, once by rows and once by columns where the backward pass needs that, and the product adds
 * up in float32 and gives 16 bits. So run the products of layers with a weight; attention, norms, routers,
 * tables and head do not.
 */
#ifndef AP_COST_FLOAT8_H
#define AP_COST_FLOAT8_H

#include "graph/graph.h"
#include "shard/step.h"

struct ap_float8_recipe { /* how scales are found */
	const char *name; /* as Megatron's --fp8-recipe has it */
	bool delayed; /* scales are those of the steps before, which cannot run again */
	int reads; /* passes over what is copied: 2 where its largest value has to be known first */
	int kernels; /* of a copy: 3 where that, the scale of it and the copy are one each, as in
	                Transformer Engine's pytorch/csrc/quantizer.cpp */
	double scale_bytes; /* of scales, for each element of a copy */
};

/* Row i; NULL past the end. */
const struct ap_float8_recipe *ap_float8_recipe_at(size_t i);

/* Bytes of an element of a copy, with its share of the scales. */
static inline double ap_float8_bytes(const struct ap_float8_recipe *recipe)
{
	return 1 + recipe->scale_bytes;
}

/* The type of the copies of results' gradients; those of operands are float8_e4m3fn. */
static inline enum ap_dtype ap_float8_of_gradients(const struct ap_step *step)
{
	return step->float8_hybrid ? AP_FLOAT8_E5M2 : AP_FLOAT8_E4M3FN;
}

/*
 * The products that run in 8 bits, [nnode] in scratch; NULL: none does. Such a product is in a layer
 * (graph/family.h), multiplies an activation by a parameter, in that order, both of 16 bits, and both extents
 * of the weight are multiples of 16, as the kernels ask for. O(operands).
 */
const bool *ap_float8_products(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step);

#endif
