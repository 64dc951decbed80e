/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts along the data flow: what is behind products with parameters takes the cuts of its operands. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hybrid/hybrid_parts.h"
#include "shard/refusal.h"
#include "shard/space.h"

static void inherit(const struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_node *n = &s->g->node[node];

	for (int i = 0; i < n->bound.nin; i++)
		if (s->tensor[n->in[i]].origin == HYBRID_MAIN)
			ap_hybrid_take(s, &n->bound, &n->bound.in[i], &s->tensor[n->in[i]].flow, want);
	ap_hybrid_settle(s, &n->bound, want);
}

static bool wish(struct hybrid *s, ap_id tensor, const struct ap_layout *flow, struct ap_layout *out);

/* The cut that a use of a tensor by products wants, also behind views of it. */
static bool wish_of_use(struct hybrid *s, const struct ap_use *u, const struct ap_layout *flow,
	struct ap_layout *out)
{
	const struct ap_node *n = &s->g->node[u->node];
	struct ap_cut_dim want[AP_MAX_FACTOR];
	struct ap_layout through;

	ap_hybrid_uncut(want);
	if (s->node[u->node].role == HYBRID_PRODUCT && s->node[u->node].act == u->operand) {
		ap_hybrid_product(s, u->node, flow, want);
	} else if (n->bound.row->unit == AP_OP_VIEW && n->bound.nin == 1 && n->bound.nout == 1) {
		ap_hybrid_take(s, &n->bound, &n->bound.in[0], flow, want);
		ap_hybrid_layout(&n->bound.out[0], want, &through);
		if (!wish(s, n->out[0], &through, out))
			return false;
		ap_hybrid_uncut(want);
		ap_hybrid_take(s, &n->bound, &n->bound.out[0], out, want);
	} else {
		return false;
	}
	ap_hybrid_layout(&n->bound.in[u->operand], want, out);
	return true;
}

/* The cut that all users of a tensor want, where they are products and agree. */
static bool wish(struct hybrid *s, ap_id tensor, const struct ap_layout *flow, struct ap_layout *out)
{
	const struct ap_tensor *t = &s->g->tensor[tensor];
	struct ap_layout other;

	for (uint32_t u = 0; u < t->nuse; u++)
		if (!wish_of_use(s, &t->use[u], flow, u ? &other : out) ||
			(u && !ap_layout_equal(out, &other)))
			return false;
	return t->nuse > 0;
}

/* A view costs nothing in either cut: it takes that of the products behind it, so that what is gathered
 * for several of them is gathered once. */
static void look_ahead(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_node *n = &s->g->node[node];
	struct ap_layout flow, wished;

	if ((!s->h->sp && s->ep == 1) || n->bound.row->unit != AP_OP_VIEW || n->bound.nout != 1)
		return;
	ap_hybrid_layout(&n->bound.out[0], want, &flow);
	if (!wish(s, n->out[0], &flow, &wished))
		return;
	ap_hybrid_uncut(want);
	ap_hybrid_take(s, &n->bound, &n->bound.out[0], &wished, want);
}

static bool all_of_tp(const struct hybrid *s, const struct hybrid_node *n, const struct ap_bound *b)
{
	for (int f = 0; f < b->nfactor; f++)
		if (n->want[f].stride == 1 && n->want[f].cut % s->tp == 0)
			return true;
	return s->tp == 1;
}

static const struct hybrid_sink *lost_before(const struct hybrid *s, const struct ap_node *n)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (s->tensor[n->in[i]].lost)
			return s->tensor[n->in[i]].lost;
	return NULL;
}

/* Why columns that a pair begins with are not cut by tp. */
static const struct hybrid_sink *lost_columns(struct hybrid *s, ap_id node)
{
	const struct hybrid_sink *sink = NULL;
	struct hybrid_sink *own;
	int f = -1;

	if (s->node[node].role != HYBRID_PRODUCT ||
		ap_hybrid_columns(s, node, &f, &sink) == s->tp || !sink || sink->end != HYBRID_PAIRED)
		return NULL;
	if (sink->node != AP_NONE)
		return sink;
	own = AP_NEW(s->ctx->scratch, struct hybrid_sink);
	own->node = node;
	own->operand = s->node[node].weight;
	for (uint8_t d = 0; d < s->g->node[node].bound.in[own->operand].rank; d++)
		if (s->g->node[node].bound.in[own->operand].dim[d].factor[0] == f)
			own->dim = d;
	return own;
}

static void refuse(struct hybrid *s, const struct hybrid_sink *lost)
{
	const struct ap_node *n = &s->g->node[lost->node];
	const struct ap_operand *o = &n->bound.in[lost->operand];
	int64_t extent = ap_factor_extent(&n->bound, o->dim[lost->dim].factor[0], s->step);

	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: tp=%" PRId32 " parts%s; %s",
		n->name, ap_cut_place(s->ctx, &n->bound, o, lost->dim, s->step), s->tp,
		o->dim[lost->dim].n > 1 ? ap_arena_printf(s->ctx->arena, " of its factor of %" PRId64,
			extent) : "", ap_cut_allowed(s->ctx, extent, s->ndev));
}

static void note_lost(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	const struct hybrid_sink *lost = lost_columns(s, node);
	bool full = all_of_tp(s, &s->node[node], &n->bound);

	if (!full && s->node[node].role == HYBRID_PRODUCT && s->tensor[n->in[s->node[node].act]].lost) {
		refuse(s, s->tensor[n->in[s->node[node].act]].lost);
		return;
	}
	if (!lost && !full && s->node[node].role == HYBRID_OTHER)
		lost = lost_before(s, n);
	for (int r = 0; r < n->bound.nout; r++)
		s->tensor[n->out[r]].lost = full ? NULL : lost;
}

/* Pieces of a dimension that came cut by tp, and was gathered, are to be cut again. */
static void cut_pieces(struct hybrid *s, const struct ap_node *n, int operand, int result)
{
	const struct ap_layout *in = &s->tensor[n->in[operand]].flow;
	struct hybrid_tensor *t = &s->tensor[n->out[result]];

	for (int d = 0; d < in->rank; d++)
		if (ap_hybrid_is_piece(&n->bound, operand, result, d) && t->flow.dim[d].cut == 1 &&
			in->dim[d].stride < s->tp && in->dim[d].cut > 1 && t->sink[d].end == HYBRID_PAIRED)
			t->flow.dim[d] = (struct ap_cut_dim){t->sink[d].most, s->tp / t->sink[d].most};
}

/* What users of the results should take. */
static void hand_on(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	struct ap_cut_dim want[AP_MAX_FACTOR];

	memcpy(want, s->node[node].want, sizeof want);
	for (int f = 0; f < n->bound.nfactor && n->bound.dealt_rows > 0; f++)
		if (n->bound.dealt >> f & 1) /* what the executor deals by itself is brought together again */
			want[f] = (struct ap_cut_dim){1, 0};
	if (s->h->sp && s->node[node].role != HYBRID_OTHER && (!n->bound.dealt || n->bound.dealt_rows > 0)) {
		bool columns = false;

		for (int f = 0; f < n->bound.nfactor; f++)
			columns |= n->bound.out[0].factors >> f & 1 && ap_hybrid_meets(&want[f], 1, s->tp);
		if (!columns)
			ap_hybrid_spread(s, node, want);
	}
	for (int r = 0; r < n->bound.nout; r++) {
		ap_hybrid_layout(&n->bound.out[r], want, &s->tensor[n->out[r]].flow);
		for (int i = 0; i < n->bound.nin && s->node[node].role == HYBRID_OTHER; i++)
			if (s->tensor[n->in[i]].origin == HYBRID_MAIN)
				cut_pieces(s, n, i, r);
	}
}

static bool meets_any(const struct ap_cut_dim *want, int32_t low, int32_t high)
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		if (ap_hybrid_meets(&want[f], low, high))
			return true;
	return false;
}

static void decide(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	struct hybrid_node *h = &s->node[node];
	struct ap_cut_dim want[AP_MAX_FACTOR];
	const char *dropped;

	ap_hybrid_uncut(want);
	if (h->role == HYBRID_PRODUCT)
		ap_hybrid_product(s, node, s->tensor[n->in[h->act]].origin == HYBRID_MAIN ?
			&s->tensor[n->in[h->act]].flow : NULL, want);
	else if (h->role == HYBRID_LOOKUP)
		ap_hybrid_lookup(s, node, want);
	else
		inherit(s, node, want);
	if (h->role == HYBRID_OTHER)
		look_ahead(s, node, want);
	ap_hybrid_apply(s, node, want, &dropped);
	if (s->cp > 1 && meets_any(want, s->tp, s->tp * s->cp)) {
		s->sequence_cut = true;
		if (dropped && !meets_any(h->want, s->tp, s->tp * s->cp))
			s->why = ap_arena_printf(s->ctx->arena,
				"operator \"%s\" cannot be cut by cp: %s", n->name, dropped);
	}
}

void ap_hybrid_flow(struct hybrid *s)
{
	for (ap_id i = 0; i < s->g->nnode && !s->why; i++) {
		const struct ap_node *n = &s->g->node[i];

		if (n->bound.nout == 0 || s->tensor[n->out[0]].origin != HYBRID_MAIN)
			continue;
		decide(s, i);
		note_lost(s, i);
		hand_on(s, i);
	}
}
