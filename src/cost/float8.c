/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/float8.h"

#include "base/arena.h"
#include "base/vec.h"
#include "cost/layer_parts.h"
#include "graph/family.h"
#include "rule/op.h"

static const struct ap_float8_recipe recipes[] = {
	{"delayed", true, 1, 1, 0}, /* one scale a tensor, of the steps before */
	{"tensorwise", false, 2, 3, 0}, /* one scale a tensor, of its own largest value */
	{"blockwise", false, 1, 1, 4. / 128}, /* float32 for 128 elements, as DeepSeek-V3 */
	{"mxfp8", false, 1, 1, 1. / 32}, /* a power of two for 32 elements */
};

const struct ap_float8_recipe *ap_float8_recipe_at(size_t i)
{
	return i < AP_COUNT(recipes) ? &recipes[i] : NULL;
}

static bool is_half(enum ap_dtype t)
{
	return ap_dtype_is_narrow(t) && !ap_dtype_is_float8(t);
}

/* Extents of the weight: contracted, and those that are the result's alone. */
static bool fits_kernels(const struct ap_bound *b)
{
	uint32_t a = b->in[0].factors, w = b->in[1].factors, o = b->out[0].factors;
	int64_t contracted = 1, others = 1;

	for (int f = 0; f < b->nfactor; f++) {
		if ((a & w & ~o) >> f & 1)
			contracted *= b->factor[f].size;
		if ((w & o & ~a) >> f & 1)
			others *= b->factor[f].size;
	}
	return contracted % 16 == 0 && others % 16 == 0;
}

static bool runs_in_8_bits(const struct ap_graph *g, const bool *data, const struct ap_node *n)
{
	const struct ap_bound *b = &n->bound;

	return b->row->unit == AP_OP_CUBE && ap_op_is_product(b->row) && b->nin == 2 && b->nout == 1 &&
		data[n->in[0]] && !data[n->in[1]] && g->tensor[n->in[1]].kind == AP_TENSOR_PARAM &&
		is_half(b->in[0].dtype) && is_half(b->in[1].dtype) && fits_kernels(b);
}

const bool *ap_float8_products(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step)
{
	struct ap_family_chain chain;
	const bool *data;
	bool *narrow;

	if (!step->float8)
		return NULL;
	narrow = AP_NEW_N(ctx->scratch, bool, g->nnode);
	data = ap_layer_data(ctx, g);
	ap_family_chain(ctx, g, &chain);
	for (ap_id i = 0; i < g->nnode; i++)
		narrow[i] = chain.layer[i] >= 0 && runs_in_8_bits(g, data, &g->node[i]);
	return narrow;
}
