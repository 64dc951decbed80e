/* SPDX-License-Identifier: Apache-2.0 */
/* What is left when the searches are over: users of shared parameters that hold them differently,
 * operators that were not reached, and Reshapes. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "route/propagation_parts.h"
#include "shard/layout.h"
#include "shard/space.h"

static void set_counts(struct prop *s, ap_id node, const int32_t *count)
{
	s->node[node].count = count;
	s->node[node].end = ap_prop_ends(s, s->node[node].class, count);
}

static void settle(struct prop *s, ap_id node, uint32_t candidate)
{
	set_counts(s, node, ap_prop_count(ap_prop_class(s, s->node[node].class), candidate));
}

/* Of a candidate, in the buffer of s. */
static const ap_id *ends_at(struct prop *s, ap_id node, uint32_t candidate)
{
	uint32_t class = s->node[node].class;

	AP_RESERVE(s->arena, s->ends, s->classes.v[class].nend);
	for (uint32_t k = 0; k < s->classes.v[class].nend; k++)
		s->ends.v[k] = ap_prop_cand_ends(s, class, k)[candidate];
	return s->ends.v;
}

static bool is_known(const struct prop *s, ap_id node)
{
	return s->node[node].count != NULL;
}

/* The end of an edge at its producer; AP_NONE where that is not decided. */
static ap_id out_end(const struct prop *s, const struct prop_edge *e)
{
	const struct prop_node *n = &s->node[e->from];

	if (n->role == PROP_DATASET)
		return n->end[e->result];
	return is_known(s, e->from) ? n->end[ap_prop_bound(s, e->from)->nin + e->result] : AP_NONE;
}

static ap_id in_end(const struct prop *s, const struct prop_edge *e)
{
	return is_known(s, e->to) ? s->node[e->to].end[e->operand] : AP_NONE;
}

static enum ap_dtype type_of(const struct prop *s, const struct prop_edge *e)
{
	return ap_prop_bound(s, e->to)->in[e->operand].dtype;
}

/* Does nothing have to travel along the edge? */
static bool is_consistent(struct prop *s, const struct prop_edge *e)
{
	ap_id from = out_end(s, e), to = in_end(s, e);

	return from != AP_NONE && to != AP_NONE &&
		ap_prop_edge_cost(s, from, to, type_of(s, e))->communication == 0;
}

/* MindSpore's repair (ProcessDiffStraParams): the parameter goes with its first configured user, and the
 * users that are not configured go with the parameter. */
static void repair_parameter(struct prop *s, ap_id node)
{
	const struct prop_node *n = &s->node[node];
	uint32_t first = 0, slot = 1;

	while (first < n->nsucc && !s->node[n->succ[first]->to].configured)
		first++;
	if (first < n->nsucc && !is_consistent(s, n->succ[first])) {
		const struct prop_known known = {slot, in_end(s, n->succ[first])};

		settle(s, node, ap_prop_choose(s, n->class, PROP_BACKWARD, 1, &known));
	}
	for (uint32_t i = 0; i < n->nsucc && is_known(s, node); i++) {
		const struct prop_edge *e = n->succ[i];
		const struct prop_known known = {e->operand, n->end[slot]};
		const struct prop_node *to = &s->node[e->to];

		if (!to->configured && to->role == PROP_OPERATOR && !is_consistent(s, e))
			settle(s, e->to, ap_prop_choose(s, to->class, PROP_FORWARD, 1, &known));
	}
}

/* What a choice of a Reshape's own counts costs around it, where that is known. */
struct around {
	struct ap_ms_cost before, behind;
};

static void add_cost(struct prop *s, ap_id from, ap_id to, enum ap_dtype type, struct ap_ms_cost *sum)
{
	const struct ap_ms_cost *c;

	if (from == AP_NONE || to == AP_NONE)
		return;
	c = ap_prop_edge_cost(s, from, to, type);
	sum->communication += c->communication;
	sum->computation += c->computation;
}

static struct around cost_around(struct prop *s, ap_id node, const ap_id *end)
{
	const struct prop_node *n = &s->node[node];
	uint32_t nin = ap_prop_bound(s, node)->nin;
	struct around a = {{0}, {0}};

	for (uint32_t i = 0; i < n->nprev; i++)
		add_cost(s, out_end(s, n->prev[i]), end[n->prev[i]->operand], type_of(s, n->prev[i]),
			&a.before);
	for (uint32_t i = 0; i < n->nsucc; i++)
		add_cost(s, end[nin + n->succ[i]->result], in_end(s, n->succ[i]),
			type_of(s, n->succ[i]), &a.behind);
	return a;
}

static bool is_cheaper(const struct around *a, const struct around *b)
{
	const double x[] = {a->before.communication, a->before.computation, a->behind.communication,
		a->behind.computation};
	const double y[] = {b->before.communication, b->before.computation, b->behind.communication,
		b->behind.computation};

	for (size_t i = 0; i < AP_COUNT(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i];
	return false;
}

/* A Reshape lies as its producer does, as far as its own counts can say it. */
static void settle_reshape(struct prop *s, ap_id node)
{
	const struct prop_class *c = ap_prop_class(s, s->node[node].class);
	struct around least = {{0}, {0}};
	uint32_t best = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct around a = cost_around(s, node, ends_at(s, node, i));

		if (i == 0 || is_cheaper(&a, &least)) {
			best = i;
			least = a;
		}
	}
	settle(s, node, best);
}

/* Parameters that several operators read, and operators of one checkpoint key, have to agree. */
struct sharing {
	struct prop *s;
	const struct ap_layout **settled; /* [ntensor] of a shared parameter; NULL not yet */
	ap_id *first; /* first operator of each tie; AP_NONE not yet */
};

static bool is_shared(const struct ap_graph *g, ap_id tensor)
{
	return g->tensor[tensor].kind == AP_TENSOR_PARAM && g->tensor[tensor].nuse > 1;
}

static const struct ap_layout *layout_of(const struct prop *s, ap_id end)
{
	return &ap_prop_end(s, end)->layout;
}

/* The first operator of the node's tie; itself where it has none or is the first. */
static ap_id first_of_key(struct sharing *h, ap_id node)
{
	ap_id tie = h->s->node[node].tie;

	if (tie == AP_NONE)
		return node;
	if (h->first[tie] == AP_NONE)
		h->first[tie] = node;
	return h->first[tie];
}

static bool operands_agree(const struct sharing *h, ap_id node, const ap_id *end)
{
	const struct ap_graph *g = h->s->g;
	const struct ap_node *n = &g->node[node];

	for (uint32_t k = 0; k < n->bound.nin; k++) {
		const struct ap_layout *own = layout_of(h->s, end[k]), *other = NULL;

		if (!is_shared(g, n->in[k]))
			continue;
		other = h->settled[n->in[k]];
		for (uint32_t j = 0; j < k && !other; j++)
			if (n->in[j] == n->in[k])
				other = layout_of(h->s, end[j]);
		if (other && !ap_layout_equal(own, other))
			return false;
	}
	return true;
}

static bool agrees(struct sharing *h, ap_id node, const int32_t *count, const ap_id *end)
{
	ap_id first = first_of_key(h, node);
	const struct prop *s = h->s;

	return operands_agree(h, node, end) &&
		(first == node || ap_prop_same_strategy(s, ap_prop_bound(s, first), s->node[first].count,
			ap_prop_bound(s, node), count));
}

/* The cheapest to reach of those candidates that agree; false where there is none. */
static bool choose_agreeing(struct sharing *h, ap_id node)
{
	struct prop *s = h->s;
	const struct prop_class *c = ap_prop_class(s, s->node[node].class);
	struct around least = {{0}, {0}};
	uint32_t best = c->n;

	for (uint32_t i = 0; i < c->n; i++) {
		struct around a;

		if (!agrees(h, node, ap_prop_count(c, i), ends_at(s, node, i)))
			continue;
		a = cost_around(s, node, ends_at(s, node, i));
		if (best == c->n || is_cheaper(&a, &least)) {
			best = i;
			least = a;
		}
	}
	if (best < c->n)
		settle(s, node, best);
	return best < c->n;
}

static bool is_held(const struct prop *s, ap_id node)
{
	return s->held && s->held[node];
}

/* Nobody finds a layout that all can have: all that hang together by parameters stay whole. */
static void leave_whole(struct sharing *h, ap_id tensor)
{
	const struct ap_graph *g = h->s->g;
	struct ap_layout *whole = AP_NEW(h->s->ctx->arena, struct ap_layout);
	int32_t *start;
	AP_VEC(ap_id) left = {0};

	whole->rank = g->tensor[tensor].shape.rank;
	for (int d = 0; d < whole->rank; d++)
		whole->dim[d].cut = 1;
	h->settled[tensor] = whole;
	for (uint32_t u = 0; u < g->tensor[tensor].nuse; u++) {
		ap_id node = g->tensor[tensor].use[u].node;
		const struct ap_node *n = &g->node[node];

		if (is_held(h->s, node))
			continue;
		start = AP_NEW_N(h->s->ctx->arena, int32_t, AP_MAX_FACTOR);
		ap_space_start(&n->bound, h->s->ndev, start);
		set_counts(h->s, node, start);
		for (uint32_t k = 0; k < n->bound.nin; k++)
			if (is_shared(g, n->in[k]) && (!h->settled[n->in[k]] ||
				!ap_layout_is_whole(h->settled[n->in[k]])))
				AP_PUSH(h->s->ctx->arena, left, n->in[k]);
	}
	for (size_t i = 0; i < left.n; i++)
		if (!h->settled[left.v[i]] || !ap_layout_is_whole(h->settled[left.v[i]]))
			leave_whole(h, left.v[i]);
}

static void settle_parameter(struct sharing *h, ap_id tensor)
{
	struct prop *s = h->s;
	const struct ap_tensor *t = &s->g->tensor[tensor];
	uint32_t anchor = 0;

	while (anchor < t->nuse && !is_held(s, t->use[anchor].node))
		anchor++;
	anchor = anchor < t->nuse ? anchor : 0;
	for (uint32_t i = 0; i <= t->nuse; i++) {
		const struct ap_use *u = &t->use[i == 0 ? anchor : i - 1];
		const struct prop_node *n = &s->node[u->node];

		if (!is_held(s, u->node) && !agrees(h, u->node, n->count, n->end) &&
			!choose_agreeing(h, u->node)) {
			leave_whole(h, tensor);
			return;
		}
		if (i == 0)
			h->settled[tensor] = layout_of(s, n->end[u->operand]);
	}
}

static void settle_parameters(struct prop *s)
{
	struct sharing h = {.s = s};

	h.settled = AP_NEW_N(s->ctx->arena, const struct ap_layout *, s->g->ntensor);
	h.first = AP_NEW_N(s->ctx->arena, ap_id, s->g->nnode);
	memset(h.first, 0xff, s->g->nnode * sizeof *h.first);
	for (ap_id i = 0; i < s->g->nnode; i++)
		if (is_held(s, i))
			first_of_key(&h, i);
	for (ap_id t = 0; t < s->g->ntensor; t++)
		if (is_shared(s->g, t))
			settle_parameter(&h, t);
}

void ap_prop_finish(struct prop *s)
{
	const ap_id nnode = s->g->nnode;

	for (ap_id i = nnode; i + 1 < s->nnode; i++)
		repair_parameter(s, i);
	for (ap_id i = 0; i < nnode; i++) {
		struct prop_node *n = &s->node[i];

		if (is_held(s, i))
			set_counts(s, i, s->held[i]);
		else if (n->role == PROP_RESHAPE)
			n->count = NULL;
		else if (!n->count)
			settle(s, i, 0);
	}
	for (ap_id i = 0; i < nnode; i++)
		if (!s->node[i].count)
			settle_reshape(s, i);
	settle_parameters(s);
}
