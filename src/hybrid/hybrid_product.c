/* SPDX-License-Identifier: Apache-2.0 */
/* Products with a parameter, look-ups in tables. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/num.h"
#include "hybrid/hybrid_parts.h"
#include "shard/refusal.h"
#include "shard/space.h"

static struct ap_cut_dim tensor_range(const struct hybrid *s, int32_t parts)
{
	return (struct ap_cut_dim){parts, s->tp / parts};
}

/* Is a factor of mask cut by some of the tp ranks? */
static bool cut_by_tp(const struct hybrid *s, const struct ap_cut_dim *want, uint32_t mask)
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		if (mask >> f & 1 && ap_hybrid_meets(&want[f], 1, s->tp))
			return true;
	return false;
}

static void strip_all(const struct ap_bound *b, struct ap_cut_dim *want, int32_t low, int32_t high)
{
	for (int f = 0; f < b->nfactor; f++)
		ap_hybrid_strip(&want[f], low, high);
}

/* May the columns be cut: are they, where the parameter is a table that is looked up? */
static bool table_allows(const struct hybrid *s, ap_id node)
{
	ap_id table = s->tensor[s->g->node[node].in[s->node[node].weight]].table;

	return table == AP_NONE || !s->whole[table];
}

static void refuse_experts(struct hybrid *s, ap_id node, int f)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *weight = &b->in[s->node[node].weight];
	int d = 0;

	while (d + 1 < weight->rank && (weight->dim[d].n == 0 || weight->dim[d].factor[0] != f))
		d++;
	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: ep=%" PRId32 " parts; %s",
		s->g->node[node].name, ap_cut_place(s->ctx, b, weight, d, s->step), s->ep,
		ap_cut_allowed(s->ctx, b->factor[f].size, s->ndev));
}

/* Experts take the place of the batch on the inner ep of dp ranks. */
static void cut_experts(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	int32_t low = s->tp * s->cp;

	for (int i = 0; i < b->ndev; i++) {
		int f = b->dev[i];

		if (!(s->node[node].experts >> f & 1) || b->factor[f].flags & AP_FACTOR_BATCH)
			continue;
		if (b->factor[f].size % s->ep) {
			refuse_experts(s, node, f);
			return;
		}
		strip_all(b, want, low, low * s->ep);
		want[f] = (struct ap_cut_dim){s->ep, low};
		s->experts_cut = true;
		return;
	}
}

void ap_hybrid_product(struct hybrid *s, ap_id node, const struct ap_layout *act, struct ap_cut_dim *want)
{
	const struct hybrid_node *n = &s->node[node];
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct hybrid_sink *sink;
	int32_t parts;
	int f = -1;

	if (act)
		ap_hybrid_take(s, b, &b->in[n->act], act, want);
	if (s->tp > 1 && !cut_by_tp(s, want, n->summed) && table_allows(s, node)) {
		parts = ap_hybrid_columns(s, node, &f, &sink);
		if (parts > 1) {
			strip_all(b, want, 1, s->tp);
			want[f] = tensor_range(s, parts);
		}
	}
	if (s->ep > 1)
		cut_experts(s, node, want);
	ap_hybrid_settle(s, b, want);
}

/* The sequence: what is looked up in one sample, its first dimension. */
static void cut_sequence(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *index = &b->in[s->node[node].act];

	for (int d = 0; d < index->rank; d++) {
		int f = index->dim[d].n > 0 ? index->dim[d].factor[0] : -1;

		if (f < 0 || b->factor[f].flags & AP_FACTOR_BATCH)
			continue;
		if (b->factor[f].size % s->cp)
			s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: cp=%" PRId32
				" parts; %s", s->g->node[node].name,
				ap_cut_place(s->ctx, b, index, d, s->step), s->cp,
				ap_cut_allowed(s->ctx, b->factor[f].size, s->ndev));
		else
			want[f] = (struct ap_cut_dim){s->cp, s->tp};
		return;
	}
}

void ap_hybrid_lookup(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct hybrid_node *n = &s->node[node];
	const struct ap_bound *b = &s->g->node[node].bound;

	if (s->cp > 1)
		cut_sequence(s, node, want);
	ap_hybrid_settle(s, b, want);
	if (n->cut_table)
		want[ap_hybrid_entries(b)] = tensor_range(s, s->tp);
	else if (s->h->sp)
		ap_hybrid_spread(s, node, want);
}

/* A factor of the rows takes as many of the tp parts that are left as fit behind those it has. */
static void spread_over(const struct hybrid *s, const struct ap_bound *b, int f, struct ap_cut_dim *want,
	int32_t *left)
{
	int64_t rest = ap_factor_extent(b, f, s->step) / want[f].cut;
	int32_t parts = (int32_t)ap_gcd(rest, *left);

	if (want[f].cut > 1 && want[f].stride != *left)
		return;
	if (parts == 1 || ap_factor_extent(b, f, s->step) % want[f].cut)
		return;
	*left /= parts;
	want[f] = (struct ap_cut_dim){want[f].cut * parts, *left};
}

void ap_hybrid_spread(const struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *o = &b->out[0];
	uint32_t rows = s->node[node].rows;
	int32_t left = s->tp;

	for (int d = 0; d < o->rank; d++)
		for (int k = 0; k < o->dim[d].n; k++)
			if (rows >> o->dim[d].factor[k] & 1)
				spread_over(s, b, o->dim[d].factor[k], want, &left);
}
