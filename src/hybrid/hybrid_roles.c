/* SPDX-License-Identifier: Apache-2.0 */
#include "hybrid/hybrid_parts.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/num.h"
#include "shard/refusal.h"

static enum hybrid_origin kind_origin(enum ap_tensor_kind kind)
{
	return kind == AP_TENSOR_PARAM ? HYBRID_WEIGHT :
		kind == AP_TENSOR_CONST ? HYBRID_CONSTANT : HYBRID_FREE;
}

static enum hybrid_origin operand_origin(const struct hybrid *s, const struct ap_node *n, int i)
{
	return s->tensor[n->in[i]].origin;
}

/* The first operand from `from` on whose origin lies in a range; -1 none. */
static int find_operand(const struct hybrid *s, const struct ap_node *n, enum hybrid_origin low,
	enum hybrid_origin high)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (operand_origin(s, n, i) >= low && operand_origin(s, n, i) <= high)
			return i;
	return -1;
}

static uint32_t unfrozen(const struct ap_bound *b)
{
	uint32_t mask = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (!(b->factor[f].flags & AP_FACTOR_FROZEN))
			mask |= UINT32_C(1) << f;
	return mask;
}

static void note_factors(const struct ap_bound *b, struct hybrid_node *out)
{
	uint32_t act = b->in[out->act].factors & unfrozen(b);
	uint32_t weight = b->in[out->weight].factors & unfrozen(b), result = b->out[0].factors;

	out->rows = act & result & ~weight;
	out->columns = weight & result & ~act;
	out->summed = act & weight & ~result;
	out->experts = act & weight & result;
}

static bool is_product(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	int act = find_operand(s, n, HYBRID_FREE, HYBRID_MAIN);
	int weight = find_operand(s, n, HYBRID_WEIGHT, HYBRID_WEIGHT);

	if (n->bound.row->unit != AP_OP_CUBE || act < 0 || weight < 0)
		return false;
	out->act = (uint16_t)act;
	out->weight = (uint16_t)weight;
	return true;
}

int ap_hybrid_entries(const struct ap_bound *b)
{
	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP && !(b->factor[f].flags & AP_FACTOR_FROZEN))
			return f;
	return -1;
}

/* A table of more entries than a sample looks up: others, of places or kinds, are better had whole. */
static bool is_long(const struct hybrid *s, const struct ap_node *n, int f, int index)
{
	const struct ap_operand *o = &n->bound.in[index];
	int64_t samples = s->g->tensor[n->in[index]].batch ? s->g->batch : 1, lookups;

	return ap_product(o->size, o->rank, &lookups) && n->bound.factor[f].size > lookups / samples;
}

static bool is_lookup(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	const struct ap_bound *b = &n->bound;
	int f = ap_hybrid_entries(b), table = -1, index = -1;

	for (int i = 0; f >= 0 && i < b->nin; i++)
		if (b->in[i].factors >> f & 1)
			table = table < 0 ? i : table;
		else
			index = index < 0 ? i : index;
	if (table < 0 || index < 0 || operand_origin(s, n, table) != HYBRID_WEIGHT ||
		!is_long(s, n, f, index))
		return false;
	out->act = (uint16_t)index;
	out->weight = (uint16_t)table;
	return true;
}

static void classify(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	if (is_product(s, n, out))
		out->role = HYBRID_PRODUCT;
	else if (is_lookup(s, n, out))
		out->role = HYBRID_LOOKUP;
	else
		return;
	note_factors(&n->bound, out);
}

static enum hybrid_origin result_origin(const struct hybrid *s, const struct ap_node *n)
{
	enum hybrid_origin o = HYBRID_CONSTANT;

	for (int i = 0; i < n->bound.nin; i++)
		o = operand_origin(s, n, i) > o ? operand_origin(s, n, i) : o;
	return o;
}

void ap_hybrid_roles(struct hybrid *s)
{
	for (ap_id t = 0; t < s->g->ntensor; t++) {
		s->tensor[t].origin = kind_origin(s->g->tensor[t].kind);
		s->tensor[t].table = s->g->tensor[t].kind == AP_TENSOR_PARAM ? t : AP_NONE;
	}
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];
		enum hybrid_origin o = result_origin(s, n);

		classify(s, n, &s->node[i]);
		for (int k = 0; k < n->bound.nout; k++) {
			s->tensor[n->out[k]].origin = o;
			s->tensor[n->out[k]].table = o == HYBRID_WEIGHT && n->bound.nin == 1
				? s->tensor[n->in[0]].table : AP_NONE;
		}
	}
}

/* Could the columns of every product with this table be cut like its entries? */
static bool users_follow(const struct hybrid *s, ap_id table)
{
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct hybrid_node *n = &s->node[i];
		const struct hybrid_sink *sink;
		int f;

		if (n->role == HYBRID_PRODUCT &&
			s->tensor[s->g->node[i].in[n->weight]].table == table &&
			ap_hybrid_columns(s, i, &f, &sink) < s->tp)
			return false;
	}
	return true;
}

static void refuse_table(struct hybrid *s, const struct ap_node *n, int64_t entries)
{
	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": the table of words has %" PRId64
		" entries, which tp=%" PRId32 " does not divide; %s, or vocab_emb_dp=1, which leaves it "
		"whole", n->name, entries, s->tp, ap_cut_allowed(s->ctx, entries, s->ndev));
}

static void decide_table(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	ap_id table = s->tensor[n->in[s->node[node].weight]].table;
	int64_t entries = n->bound.factor[ap_hybrid_entries(&n->bound)].size;
	bool cut = s->tp > 1 && s->h->vocab != AP_VOCAB_WHOLE && entries % s->tp == 0 &&
		(table == AP_NONE || users_follow(s, table));

	if (s->h->vocab == AP_VOCAB_CUT && entries % s->tp)
		refuse_table(s, n, entries);
	s->node[node].cut_table = cut;
	if (table != AP_NONE)
		s->whole[table] = !cut;
}

static bool has_main(const struct hybrid *s, const struct ap_node *n)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (operand_origin(s, n, i) == HYBRID_MAIN)
			return true;
	return false;
}

void ap_hybrid_tables(struct hybrid *s)
{
	for (ap_id i = 0; i < s->g->nnode && !s->why; i++)
		if (s->node[i].role == HYBRID_LOOKUP)
			decide_table(s, i);
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];

		for (int k = 0; k < n->bound.nout; k++)
			if (s->node[i].role != HYBRID_OTHER || has_main(s, n))
				s->tensor[n->out[k]].origin = HYBRID_MAIN;
	}
}
