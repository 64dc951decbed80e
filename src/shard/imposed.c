/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/imposed.h"

#include "base/arena.h"
#include "base/num.h"
#include "rule/deal.h"
#include "rule/op.h"
#include "shard/space.h"

/* The factor that dimension 0 of t begins with; -1 none. */
static int first_of(const struct ap_operand *t)
{
	return t->rank > 0 && t->dim[0].n > 0 ? t->dim[0].factor[0] : -1;
}

/* The factor of operand 0; -1 if there is no operand. */
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

static int64_t length_of(const struct ap_graph *g, ap_id tensor, const struct ap_step *step)
{
	const struct ap_tensor *t = &g->tensor[tensor];

	if (t->shape.rank == 0)
		return 0;
	return t->shape.dim[0] / (t->batch & 1 ? step->micro_batches : 1);
}

/* The greatest common divisor of the tensors' lengths. */
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

/* Are the partial sums dealt without an out_strategy? */
static bool is_dealt(const struct ap_bound *b, const struct ap_step *step)
{
	return step->executor == AP_EXECUTOR_MINDSPORE && !b->dealt && ap_op_deals_usually(b->row) &&
		ap_rule_deal_factor(b) >= 0;
}

bool ap_bound_deal(struct ap_ctx *ctx, struct ap_bound *b, const struct ap_step *step)
{
	if (!is_dealt(b, step))
		return false;
	ap_rule_deal_usually(ctx, b, ap_factor_extent(b, b->out[0].dim[0].factor[0], step));
	return b->dealt != 0;
}

/* The graph whose operators are bound as `change` says, which returns false where it changes nothing; g if
 * nothing changes anywhere. */
static const struct ap_graph *rebind(struct ap_ctx *ctx, const struct ap_graph *g,
	bool (*change)(void *user, const struct ap_node *n, struct ap_bound *b), void *user)
{
	struct ap_graph *copy = NULL;
	struct ap_node *node = NULL;

	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_bound b = g->node[i].bound;

		if (!change(user, &g->node[i], &b))
			continue;
		if (!copy)
			copy = ap_graph_with_nodes(ctx, g, &node);
		node[i].bound = b;
	}
	return copy ? copy : g;
}

struct imposing {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
};

static bool impose_on(void *user, const struct ap_node *n, struct ap_bound *b)
{
	const struct imposing *x = user;

	return impose(b, x->ndev, samples_in(x->g, n, x->step), x->step) ||
		(n->out_pin.n == 0 && !n->undealt && ap_bound_deal(x->ctx, b, x->step));
}

const struct ap_graph *ap_graph_imposed(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step)
{
	return rebind(ctx, g, impose_on, &(struct imposing){ctx, g, ndev, step});
}

static bool open_sum(void *user, const struct ap_node *n, struct ap_bound *b)
{
	return n->in_pin.n == 0 && n->out_pin.n == 0 && !n->undealt && ap_rule_deal_if_asked(user, b);
}

const struct ap_graph *ap_graph_deal_if_asked(struct ap_ctx *ctx, const struct ap_graph *g)
{
	return rebind(ctx, g, open_sum, ctx);
}

/* The factor that sums over may be dealt, whether they are or not; -1 none. Columns that are looked up in
 * have no choice. */
static int choice_of(const struct ap_bound *b)
{
	char letter = ap_op_deal_letter(b->row);

	for (int f = 0; letter && *b->row->rule != '=' && f < b->nfactor; f++)
		if (b->factor[f].letter == letter)
			return f;
	return -1;
}

/* Does MindSpore deal them by itself? */
static bool would_deal(const struct ap_placement *p, int f, const struct ap_step *step)
{
	const struct ap_bound *b = p->bound;
	const struct ap_dim *rows = &b->out[0].dim[0];

	if (!ap_op_deals_usually(b->row) || b->out[0].rank == 0 || rows->n == 0 || rows->factor[0] == f)
		return false;
	for (uint16_t i = 0; i < b->nin; i++)
		if (!(b->in[i].factors >> f & 1)) /* the indices */
			for (int k = 0; k < b->nfactor; k++)
				if (b->in[i].factors >> k & 1 && p->count[k] > 1)
					return false;
	for (uint16_t i = 0; i < b->nin; i++)
		if (b->in[i].factors >> rows->factor[0] & 1 && !(b->in[i].factors >> f & 1))
			return ap_factor_extent(b, rows->factor[0], step) % p->count[f] == 0;
	return false;
}

bool ap_placement_needs_out(const struct ap_placement *p, const struct ap_step *step)
{
	int f = choice_of(p->bound);

	return f >= 0 && p->count[f] > 1 && (p->dealt >> f & 1) != would_deal(p, f, step);
}

bool ap_placement_says_out(const struct ap_placement *p, const struct ap_step *step)
{
	const struct ap_bound *b = p->bound;
	int f = choice_of(b);

	if (f < 0 || p->count[f] == 1)
		return false;
	return ap_placement_needs_out(p, step) || (p->dealt && b->dealt_rows == 0) ||
		(ap_op_deals_usually(b->row) && !(p->dealt >> f & 1));
}
