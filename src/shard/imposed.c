/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/imposed.h"

#include "base/arena.h"
#include "base/num.h"
#include "shard/space.h"

/* The factor that dimension 0 of t begins with; -1 none. */
static int first_of(const struct ap_operand *t)
{
	return t->rank > 0 && t->dim[0].n > 0 ? t->dim[0].factor[0] : -1;
}

/* That of operand 0; -1 where it has none. */
static int samples_of(const struct ap_bound *b)
{
	return b->nin > 0 ? first_of(&b->in[0]) : -1;
}

/* Not by the rule alone: samples of several lengths are frozen where the batch would have to be known. */
static bool is_open(const struct ap_factor *f)
{
	return !(f->flags & AP_FACTOR_FROZEN) || f->flags & AP_FACTOR_MIXED;
}

/* length: of the samples in one micro-batch. */
static bool impose(struct ap_bound *b, int64_t ndev, int64_t length, const struct ap_step *step)
{
	int samples = samples_of(b);
	bool cut = samples >= 0 && is_open(&b->factor[samples]) && length % ndev == 0;

	if (step->executor != AP_EXECUTOR_MINDSPORE || !ap_op_is_batch_parallel(b->row))
		return false;
	cut = cut && first_of(&b->out[0]) == samples;
	if (!cut && !ap_op_is_fallback(b->row)) {
		if (samples >= 0)
			b->factor[samples].flags |= AP_FACTOR_EITHER;
		return true;
	}
	if (cut)
		b->factor[samples].flags &= (uint8_t)~AP_FACTOR_FROZEN;
	for (int f = 0; f < b->nfactor; f++)
		b->factor[f].flags |= cut && f == samples ? AP_FACTOR_WHOLLY : AP_FACTOR_FROZEN;
	return true;
}

bool ap_bound_impose(struct ap_bound *b, int64_t ndev, const struct ap_step *step)
{
	int f = samples_of(b);

	return impose(b, ndev, f < 0 ? 0 : ap_factor_extent(b, f, step), step);
}

static int64_t length_of(const struct ap_graph *g, ap_id tensor, const struct ap_step *step)
{
	const struct ap_tensor *t = &g->tensor[tensor];

	if (t->shape.rank == 0)
		return 0;
	return t->shape.dim[0] / (t->batch & 1 ? step->micro_batches : 1);
}

/* Where tensors have several lengths, what divides them all. */
static int64_t samples_in(const struct ap_graph *g, const struct ap_node *n, const struct ap_step *step)
{
	const struct ap_bound *b = &n->bound;
	int f = samples_of(b);
	int64_t length = 0;

	for (int i = 0; f >= 0 && i < b->nin; i++)
		if (first_of(&b->in[i]) == f)
			length = ap_gcd(length, length_of(g, n->in[i], step));
	for (int o = 0; f >= 0 && o < b->nout; o++)
		if (first_of(&b->out[o]) == f)
			length = ap_gcd(length, length_of(g, n->out[o], step));
	return length;
}

const struct ap_graph *ap_graph_imposed(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step)
{
	struct ap_graph *copy = NULL;
	struct ap_node *node = NULL;

	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_bound b = g->node[i].bound;

		if (!impose(&b, ndev, samples_in(g, &g->node[i], step), step))
			continue;
		if (!copy) {
			copy = ap_arena_memdup(ctx->arena, g, sizeof *g);
			copy->node = node = ap_arena_memdup(ctx->arena, g->node, g->nnode * sizeof *node);
		}
		node[i].bound = b;
	}
	return copy ? copy : g;
}
