/* SPDX-License-Identifier: Apache-2.0 */
#include "hybrid/hybrid.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/num.h"
#include "cost/conflict.h"
#include "hybrid/hybrid_parts.h"
#include "shard/space.h"

static bool batch_fits(struct hybrid *s)
{
	int64_t samples = s->g->batch / s->step->micro_batches;

	if (s->dp > 1 && s->g->batch == 0)
		s->why = "no graph input has a batch dimension, so that dp above 1 cuts nothing";
	else if (s->dp > 1 && samples % s->dp)
		s->why = ap_arena_printf(s->ctx->arena, "dp=%" PRId32 " does not divide the %" PRId64
			" samples of a micro-batch", s->dp, samples);
	return !s->why;
}

static void start(struct hybrid *s, struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h)
{
	assert(h->dp * h->cp * h->tp == ndev && h->dp % h->ep == 0);
	*s = (struct hybrid){.ctx = ctx, .g = g, .ndev = ndev, .step = step, .h = h,
		.tp = (int32_t)h->tp, .cp = (int32_t)h->cp, .dp = (int32_t)h->dp,
		.ep = (int32_t)h->ep};
	s->tensor = AP_NEW_N(ctx->scratch, struct hybrid_tensor, g->ntensor);
	s->node = AP_NEW_N(ctx->scratch, struct hybrid_node, g->nnode);
	s->whole = AP_NEW_N(ctx->scratch, bool, g->ntensor);
}

/* Decides all operators; false with s->why. */
static bool solve(struct hybrid *s)
{
	if (!batch_fits(s))
		return false;
	ap_hybrid_roles(s);
	ap_hybrid_sinks(s);
	ap_hybrid_tables(s);
	if (!s->why)
		ap_hybrid_flow(s);
	if (!s->why && s->cp > 1 && !s->sequence_cut)
		s->why = "nothing is looked up in a table, so that there is no sequence for cp to cut";
	if (!s->why && s->ep > 1 && !s->experts_cut)
		s->why = "no product has a parameter for each of several experts, so that ep above 1 cuts "
			"nothing";
	if (!s->why)
		ap_hybrid_free(s);
	return !s->why;
}

static const char *conflict(const struct hybrid *s, const int32_t *const *counts)
{
	const char *text;
	ap_id node;

	text = ap_plan_conflict(s->ctx, s->g, s->ndev, counts, &node);
	return text ? ap_arena_printf(s->ctx->arena, "operator \"%s\": %s", s->g->node[node].name, text)
		    : NULL;
}

const int32_t *const *ap_hybrid_counts(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	struct hybrid s;

	start(&s, ctx, g, ndev, step, h);
	if (solve(&s)) {
		for (ap_id i = 0; i < g->nnode; i++)
			counts[i] = s.node[i].count;
		s.why = conflict(&s, counts);
	}
	ap_arena_release(ctx->scratch, mark);
	*why = s.why;
	return s.why ? NULL : counts;
}

/* Is it a sum over the tp ranks alone that can be dealt among them? */
static bool can_deal(const struct hybrid *s, ap_id node, struct ap_bound *dealt)
{
	const struct hybrid_node *n = &s->node[node];
	const struct ap_bound *b = &s->g->node[node].bound;
	int f = n->role == HYBRID_OTHER ? -1 : ap_rule_deal_factor(b);

	if (f < 0 || n->want[f].cut != s->tp || n->want[f].stride != 1)
		return false;
	*dealt = *b;
	ap_rule_deal_always(s->ctx, dealt);
	return ap_space_legal(s->ctx, dealt, n->count, s->ndev, s->step, NULL);
}

static const struct ap_graph *deal(const struct hybrid *s)
{
	struct ap_node *node = ap_arena_memdup(s->ctx->arena, s->g->node, s->g->nnode * sizeof *node);
	struct ap_graph *g = AP_NEW(s->ctx->arena, struct ap_graph);
	struct ap_bound dealt;

	*g = *s->g;
	g->node = node;
	for (ap_id i = 0; i < g->nnode; i++)
		if (can_deal(s, i, &dealt))
			node[i].bound = dealt;
	return g;
}

const struct ap_graph *ap_hybrid_deal(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct hybrid s;

	*why = NULL;
	if (!h->sp || h->tp == 1)
		return g;
	start(&s, ctx, g, ndev, step, h);
	if (solve(&s))
		g = deal(&s);
	ap_arena_release(ctx->scratch, mark);
	*why = s.why;
	return s.why ? NULL : g;
}

static void name_grid(const struct ap_hybrid *h, char *name, size_t size)
{
	int len = snprintf(name, size, "dp=%" PRId64 " tp=%" PRId64, h->dp, h->tp);

	if (h->cp > 1)
		snprintf(name + len, size - (size_t)len, " cp=%" PRId64, h->cp);
}

void ap_hybrid_grids(int64_t ndev,
	void (*emit)(void *user, const struct ap_hybrid *h, const char *name), void *user)
{
	for (int64_t cp = 1; cp <= AP_HYBRID_MOST_CP && cp <= ndev; cp++)
		for (int64_t tp = 1; tp <= AP_HYBRID_MOST_TP && tp <= ndev / cp; tp++) {
			struct ap_hybrid h = {.dp = ndev / cp / tp, .tp = tp, .pp = 1, .cp = cp, .ep = 1,
				.vpp = 1};
			char name[72];

			if (h.dp * h.cp * h.tp != ndev)
				continue;
			name_grid(&h, name, sizeof name);
			emit(user, &h, name);
		}
}
