/* SPDX-License-Identifier: Apache-2.0 */
/* Where gradients flow: forward from trainable parameters, backward from the loss, and both. */
#include "base/arena.h"
#include "graph/index.h"

/* depends[t]: t depends on a trainable parameter through differentiable operands. */
static void mark_forward(const struct ap_graph *g, bool *depends)
{
	for (uint32_t t = 0; t < g->ntensor; t++)
		depends[t] = g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].trainable &&
			ap_dtype_is_float(g->tensor[t].shape.dtype);
	for (uint32_t i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		bool any = false;

		for (uint16_t k = 0; k < n->bound.nin; k++)
			any |= n->bound.in[k].differentiable && depends[n->in[k]];
		for (uint16_t k = 0; k < n->bound.nout; k++)
			depends[n->out[k]] = any && ap_dtype_is_float(n->bound.out[k].dtype);
	}
}

/* reaches[t]: the loss depends on t; without a scalar loss, any output. */
static void mark_backward(const struct ap_graph *g, bool *reaches)
{
	for (uint32_t i = 0; i < g->noutput; i++)
		if (g->loss == AP_NONE || g->output[i] == g->loss)
			reaches[g->output[i]] = true;
	for (uint32_t i = g->nnode; i-- > 0;) {
		const struct ap_node *n = &g->node[i];
		bool any = false;

		for (uint16_t k = 0; k < n->bound.nout; k++)
			any |= reaches[n->out[k]] && ap_dtype_is_float(n->bound.out[k].dtype);
		for (uint16_t k = 0; any && k < n->bound.nin; k++)
			if (n->bound.in[k].differentiable)
				reaches[n->in[k]] = true;
	}
}

void ap_graph_mark_grad(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node, bool inference)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool *depends = AP_NEW_N(ctx->scratch, bool, g->ntensor);
	bool *reaches = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	if (!inference) {
		mark_forward(g, depends);
		mark_backward(g, reaches);
	}
	for (uint32_t t = 0; t < g->ntensor; t++)
		tensor[t].needs_grad = depends[t] && reaches[t];
	for (uint32_t i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &node[i].bound;
		bool from = false, into = false;

		for (uint16_t k = 0; k < b->nout; k++)
			from |= tensor[node[i].out[k]].needs_grad;
		for (uint16_t k = 0; k < b->nin; k++)
			into |= b->in[k].differentiable && tensor[node[i].in[k]].needs_grad;
		node[i].backward = from && into;
	}
	ap_arena_release(ctx->scratch, mark);
}
