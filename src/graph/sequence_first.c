/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/sequence_first.h"

#include "base/arena.h"
#include "rule/attr.h"

/* The operand or result at i: operands, then results. */
static const struct ap_operand *tensor_at(const struct ap_bound *b, int i)
{
	return i < b->nin ? &b->in[i] : &b->out[i - b->nin];
}

static bool holds_beside(const struct ap_dim *dim, int f, uint32_t dealt)
{
	bool holds = false, others = false;

	for (int k = 0; k < dim->n; k++) {
		holds |= dim->factor[k] == f;
		others |= dim->factor[k] != f && !(dealt >> dim->factor[k] & 1);
	}
	return holds && others;
}

/* Does a dimension hold f beside other factors, but for those whose sums are dealt along it? */
static bool is_composed(const struct ap_bound *b, int f)
{
	for (int i = 0; i < b->nin + b->nout; i++) {
		const struct ap_operand *o = tensor_at(b, i);

		for (int d = 0; d < o->rank; d++)
			if (holds_beside(&o->dim[d], f, b->dealt))
				return true;
	}
	return false;
}

/* Is it first wherever it is beside others, in a view of one tensor with room for one factor more? */
static bool leads_rows(const struct ap_bound *b, int f)
{
	if (b->row->unit != AP_OP_VIEW || b->nin != 1 || b->nout != 1 || b->nfactor == AP_MAX_FACTOR)
		return false;
	for (int i = 0; i < 2; i++) {
		const struct ap_operand *o = tensor_at(b, i);

		if (o->dim[0].n == 0 || o->dim[0].factor[0] != f || o->dim[0].n == AP_MAX_DIM_FACTOR)
			return false;
	}
	return b->in[0].dim[0].n == 1 || b->out[0].dim[0].n == 1;
}

/* A factor with the batch: of samples, alone or before tokens in a view; or of rows, whose order counts
 * nowhere. */
static bool factor_fits(const struct ap_graph *g, const struct ap_bound *b, int f)
{
	uint8_t flags = b->factor[f].flags;

	if (!(flags & AP_FACTOR_BATCH))
		return true;
	if (b->factor[f].size == g->batch)
		return !is_composed(b, f) || leads_rows(b, f);
	return !(flags & (AP_FACTOR_FROZEN | AP_FACTOR_LOOKUP | AP_FACTOR_MIXED)) && !is_composed(b, f);
}

/* Are these, of inputs or outputs, no rows of tokens? */
static bool are_by_sample(const struct ap_graph *g, const ap_id *tensor, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_tensor *t = &g->tensor[tensor[i]];

		for (int d = 0; d < t->shape.rank; d++)
			if (t->batch >> d & 1 && t->shape.dim[d] != g->batch)
				return false;
	}
	return true;
}

bool ap_sequence_first_fits(const struct ap_graph *g)
{
	if (!are_by_sample(g, g->input, g->ninput) || !are_by_sample(g, g->output, g->noutput))
		return false;
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;
		bool done = ap_attr_int(&g->node[i].attrs, AP_SEQUENCE_FIRST, 0) > 0;

		for (int f = 0; f < b->nfactor && !done; f++)
			if (!factor_fits(g, b, f))
				return false;
	}
	return g->batch > 0;
}

/* Puts a factor at the end of dimension 0. */
static const struct ap_operand *append(struct ap_ctx *ctx, const struct ap_operand *o, uint8_t f)
{
	struct ap_operand *out = ap_arena_memdup(ctx->arena, o, sizeof *o);

	out->dim[0].factor[out->dim[0].n++] = f;
	out->factors |= UINT32_C(1) << f;
	return out;
}

/* Splits the samples of a view into groups, and those of one, which follow the tokens in its rows. */
static void interleave(struct ap_ctx *ctx, struct ap_node *n, int f, int64_t samples)
{
	struct ap_bound *b = &n->bound;
	struct ap_attr *attr = AP_NEW_N(ctx->arena, struct ap_attr, n->attrs.n + 1);
	uint8_t inner = b->nfactor++;

	b->factor[inner] = (struct ap_factor){(char)('A' + inner), AP_FACTOR_FROZEN, samples};
	b->factor[f].size /= samples;
	b->dev[b->ndev++] = inner;
	b->in = append(ctx, &b->in[0], inner);
	b->out = append(ctx, &b->out[0], inner);
	for (uint32_t i = 0; i < n->attrs.n; i++)
		attr[i] = n->attrs.v[i];
	attr[n->attrs.n] = (struct ap_attr){.name = AP_SEQUENCE_FIRST, .type = AP_ATTR_INT, .i = samples,
		.f = (double)samples};
	n->attrs = (struct ap_attrs){n->attrs.n + 1, attr};
}

const struct ap_graph *ap_sequence_first(struct ap_ctx *ctx, const struct ap_graph *g, int64_t samples)
{
	struct ap_graph *out;
	struct ap_node *node;

	if (!ap_sequence_first_fits(g))
		return NULL;
	out = ap_graph_with_nodes(ctx, g, &node);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;

		for (int f = 0; f < b->nfactor; f++)
			if (b->factor[f].flags & AP_FACTOR_BATCH && b->factor[f].size == g->batch &&
				is_composed(b, f))
				interleave(ctx, &node[i], f, samples);
	}
	return out;
}
