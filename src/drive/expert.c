/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/expert.h"

#include <string.h>

#include "base/arena.h"
#include "plan/make.h"
#include "rule/deal.h"
#include "rule/op.h"

#define MOST_LOOKED_AT (1 << 20) /* operators of all hybrids compared with the plan */
#define MOST_WRONG 32
#define MOST_PRICED (1 << 18) /* operators of all hybrids that are priced */

struct seeking {
	struct ap_ctx ctx; /* with an arena of its own, released after each hybrid */
	const struct ap_plan *p;
	struct ap_expert *out;
	struct ap_arena *keep; /* the run's */
	bool dealt; /* sums of the plan are dealt: it has sequence parallelism */
	uint32_t left; /* hybrids that may still be tried */
	bool taken; /* one of those tried last is a plan */
	int nwrong;
	int64_t wrong[MOST_WRONG]; /* ep that no experts can be cut by; nor by multiples of it */
	bool (*look)(struct seeking *s, const struct ap_hybrid *h); /* true: stop */
};

static bool has_dealt(const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->op[i].place.dealt && p->graph->node[i].bound.dealt_rows == 0)
			return true;
	return false;
}

/* The hybrid's counts, and the graph they are for; NULL if it is no plan. */
static const int32_t *const *counts_of(struct seeking *s, const struct ap_hybrid *h,
	const struct ap_graph **g)
{
	const struct ap_plan *p = s->p;
	const int32_t *const *counts = NULL;
	const char *why;

	*g = ap_hybrid_deal(&s->ctx, p->graph, p->machine->ndev, p->step, h, &why);
	if (*g)
		counts = ap_hybrid_counts(&s->ctx, *g, p->machine->ndev, p->step, h, &why);
	s->taken |= counts != NULL;
	if (!counts && !s->out->why_not)
		s->out->why_not = ap_arena_strdup(s->keep, why);
	return counts;
}

/* The number of operators that the plan cuts otherwise. */
static uint32_t differing(const struct seeking *s, const struct ap_graph *g, const int32_t *const *counts)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;

		n += ap_rule_dealt(b, counts[i]) != s->p->op[i].place.dealt ||
			(g->node[i].bound.row->unit != AP_OP_VIEW && g->node[i].peer < 0 &&
				ap_op_has_strategy(g->node[i].bound.row) &&
			memcmp(counts[i], s->p->op[i].place.count, b->nfactor * sizeof **counts));
	}
	return n;
}

static struct ap_expert priced(struct seeking *s, const struct ap_hybrid *h, const struct ap_graph *g,
	const int32_t *const *counts)
{
	const struct ap_plan *p = s->p;
	struct ap_plan_maker *maker = ap_plan_maker_create(&s->ctx, g, p->machine, p->step,
		p->capacity_bytes);
	struct ap_expert x = {.hybrid = *h};
	struct ap_plan sketch;

	ap_plan_sketch(maker, counts, &sketch);
	x.step_time_s = sketch.prediction.step_time_s;
	x.memory_bytes = sketch.prediction.memory.total;
	x.fits = x.memory_bytes <= p->capacity_bytes;
	x.differ = differing(s, g, counts);
	x.loss = x.step_time_s / p->prediction.step_time_s - 1;
	return x;
}

static bool look_for_plan(struct seeking *s, const struct ap_hybrid *h)
{
	const struct ap_graph *g;
	const int32_t *const *counts = counts_of(s, h, &g);

	if (!counts || differing(s, g, counts) > 0)
		return false;
	*s->out = priced(s, h, g, counts);
	s->out->same = true;
	return true;
}

static bool is_better(const struct ap_expert *a, const struct ap_expert *b)
{
	if (a->fits != b->fits)
		return a->fits;
	return a->fits ? a->step_time_s < b->step_time_s : a->memory_bytes < b->memory_bytes;
}

static bool look_for_best(struct seeking *s, const struct ap_hybrid *h)
{
	const struct ap_graph *g;
	const int32_t *const *counts = counts_of(s, h, &g);
	struct ap_expert x;

	if (!counts)
		return false;
	x = priced(s, h, g, counts);
	if (!s->out->hybrid.dp || is_better(&x, s->out))
		*s->out = x;
	return false;
}

/* Tries one hybrid and releases its memory. Returns true to stop. */
static bool look(struct seeking *s, struct ap_hybrid h)
{
	struct ap_mark mark = ap_arena_mark(s->ctx.arena);
	bool done;

	if (s->left == 0 || ap_ctx_stopped(&s->ctx))
		return true;
	h.mbs = s->p->graph->batch / (h.dp * h.micro_batches);
	done = s->look(s, &h);
	s->left--;
	ap_arena_release(s->ctx.arena, mark);
	return done;
}

/* Tries h with and without sequence parallelism, with the table of words cut and whole. */
static bool look_at_kinds(struct seeking *s, struct ap_hybrid h)
{
	static const enum ap_hybrid_vocab vocab[] = {AP_VOCAB_AUTO, AP_VOCAB_WHOLE};

	if (h.tp == 1)
		return look(s, h);
	for (int k = 0; k < 4; k++) {
		h.sp = k & 1;
		h.vocab = vocab[k >> 1];
		if ((h.sp || !s->dealt) && look(s, h))
			return true;
	}
	return false;
}

static bool is_wrong(const struct seeking *s, int64_t ep)
{
	for (int i = 0; i < s->nwrong; i++)
		if (ep % s->wrong[i] == 0)
			return true;
	return false;
}

/* What is refused with ep 1 is refused with any ep. */
static bool look_at_experts(struct seeking *s, struct ap_hybrid h)
{
	for (h.ep = 1; h.ep <= h.dp; h.ep++) {
		if (h.dp % h.ep || is_wrong(s, h.ep))
			continue;
		s->taken = false;
		if (look_at_kinds(s, h))
			return true;
		if (h.ep == 1 && !s->taken)
			return false;
		if (!s->taken && s->nwrong < MOST_WRONG)
			s->wrong[s->nwrong++] = h.ep;
	}
	return false;
}

/* Tries all hybrids, in ascending order of cp. */
static void look_at_all(struct seeking *s, bool (*fn)(struct seeking *s, const struct ap_hybrid *h),
	uint32_t most)
{
	const struct ap_plan *p = s->p;
	const struct ap_pipe *pipe = p->step->pipe;
	int64_t ndev = p->machine->ndev;

	s->look = fn;
	s->left = most / (p->graph->nnode + 1) + 4;
	for (int64_t cp = 1; cp <= ndev; cp++)
		for (int64_t tp = 1; ndev % cp == 0 && tp <= AP_HYBRID_MOST_TP; tp++)
			if (ndev / cp % tp == 0 && look_at_experts(s, (struct ap_hybrid){
				.dp = ndev / cp / tp, .tp = tp, .cp = cp, .pp = pipe ? pipe->nstage : 1,
				.vpp = pipe ? pipe->nsegment : 1, .micro_batches = p->step->micro_batches}))
				return;
}

/* Is it the hybrid that was asked for? */
static bool look_at_asked(struct seeking *s, const struct ap_hybrid *asked)
{
	struct ap_hybrid h;

	if (!asked || !asked->dp)
		return false;
	h = *asked;
	h.micro_batches = s->p->step->micro_batches;
	h.cp_algo = AP_CP_USUAL; /* the plan's graph says it already */
	s->look = look_for_plan;
	s->left = 1;
	return look(s, h);
}

void ap_expert_find(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_hybrid *asked,
	struct ap_expert *out)
{
	struct seeking s = {.ctx = *ctx, .p = p, .out = out, .keep = ctx->arena,
		.dealt = has_dealt(p)};

	*out = (struct ap_expert){0};
	s.ctx.arena = ap_arena_create_like(ctx->arena);
	if (!look_at_asked(&s, asked))
		look_at_all(&s, look_for_plan, MOST_LOOKED_AT);
	if (!out->same)
		look_at_all(&s, look_for_best, MOST_PRICED);
	for (ap_id i = 0; i < p->graph->nnode && out->hybrid.cp > 1; i++)
		if (p->graph->node[i].bound.rounds || p->graph->node[i].bound.swaps)
			out->hybrid.cp_algo = p->graph->node[i].bound.rounds ? AP_CP_RING
				: AP_CP_ALL_TO_ALL;
	if (out->hybrid.dp) {
		struct ap_hybrid h = out->hybrid;
		const struct ap_graph *g;

		/* Is every table that may be cut really cut? */
		h.vocab = AP_VOCAB_CUT;
		h.cp_algo = AP_CP_USUAL;
		if (out->hybrid.vocab == AP_VOCAB_AUTO && h.tp > 1 && counts_of(&s, &h, &g))
			out->hybrid.vocab = AP_VOCAB_CUT;
	}
	ap_arena_destroy(s.ctx.arena);
	if (out->hybrid.dp)
		out->why_not = NULL;
	else if (!out->why_not)
		out->why_not = "the run was stopped";
}
