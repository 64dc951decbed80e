/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where gradients flow: what depends on trainable parameters and leads to the loss. */
#include "graph/index.h"

#include "base/arena.h"

/* Marks tensors that need a gradient and operators with backward work. */
static void mark_grad(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node, bool inference)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool *depends = AP_NEW_N(ctx->scratch, bool, g->ntensor);
	bool *reaches = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	if (!inference) {
		/* depends[t]: on a trainable parameter through differentiable operands */
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
		/* reaches[t]: the loss or, without a scalar loss, any output */
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

struct index {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	struct ap_tensor *tensor;
	const struct ap_node *node;
};

/* Puts uses of all tensors in one array, ascending by node and operand. O(nodes + slots). */
static void place_uses(const struct index *x)
{
	struct ap_use *use, **at;
	size_t total = 0;

	for (uint32_t i = 0; i < x->g->nnode; i++) {
		total += x->node[i].bound.nin;
		for (uint16_t k = 0; k < x->node[i].bound.nin; k++)
			x->tensor[x->node[i].in[k]].nuse++;
	}
	use = AP_NEW_N(x->ctx->arena, struct ap_use, total);
	at = AP_NEW_N(x->ctx->scratch, struct ap_use *, x->g->ntensor);
	for (uint32_t t = 0; t < x->g->ntensor; t++) {
		x->tensor[t].use = at[t] = use;
		use += x->tensor[t].nuse;
	}
	for (uint32_t i = 0; i < x->g->nnode; i++)
		for (uint16_t k = 0; k < x->node[i].bound.nin; k++)
			*at[x->node[i].in[k]]++ = (struct ap_use){i, k};
}

static bool gives_gradient(const struct index *x, const struct ap_use *u)
{
	const struct ap_node *n = &x->node[u->node];

	return n->backward && n->bound.in[u->operand].differentiable &&
		x->tensor[n->in[u->operand]].needs_grad;
}

static bool owns_before(const struct index *x, const uint32_t *depth, const struct ap_use *a,
	const struct ap_use *b)
{
	bool ga = gives_gradient(x, a), gb = gives_gradient(x, b);
	bool la = x->node[a->node].bound.row->unit == AP_OP_LINK;
	bool lb = x->node[b->node].bound.row->unit == AP_OP_LINK;

	if (ga != gb || la != lb)
		return ga != gb ? ga : lb;
	if (depth[a->node] != depth[b->node])
		return depth[a->node] < depth[b->node];
	return a->node != b->node ? a->node < b->node : a->operand < b->operand;
}

void ap_graph_index(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node, bool inference)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct index x = {ctx, g, tensor, node};
	uint32_t *depth = AP_NEW_N(ctx->scratch, uint32_t, g->nnode); /* operators on the longest
			path to it */

	place_uses(&x);
	mark_grad(ctx, g, tensor, node, inference);
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < node[i].bound.nin; k++) {
			ap_id from = tensor[node[i].in[k]].producer;

			if (from != AP_NONE && depth[from] >= depth[i])
				depth[i] = depth[from] + 1;
		}
	for (uint32_t i = 0; i < x.g->ntensor; i++) {
		struct ap_tensor *t = &x.tensor[i];

		t->owner = (struct ap_use){AP_NONE, 0};
		for (uint32_t u = 0; u < t->nuse; u++)
			if (u == 0 || owns_before(&x, depth, &t->use[u], &t->owner))
				t->owner = t->use[u];
	}
	ap_arena_release(ctx->scratch, mark);
}
