/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/dual.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/splice.h"
#include "search/polish.h"

enum { MAX_PRICES = 64, POLISH_PASSES = 8 };

struct line { /* of a pick: what it costs at a price */
	double cost;
	int64_t memory;
	uint32_t *pick; /* in scratch */
};

struct search {
	struct ap_ctx *ctx;
	struct ap_pricing *g;
	const struct ap_problem *p;
	uint64_t max_work;
	uint32_t *pick, *polished;
	struct ap_dual *out;
};

/* Keeps a pick, polished, when it fits and is the cheapest so far. */
static void offer(struct search *s, const uint32_t *pick)
{
	memcpy(s->polished, pick, s->p->n * sizeof *pick);
	ap_polish(s->ctx, s->p, POLISH_PASSES, s->polished);
	if (ap_problem_memory(s->p, s->polished) > s->p->memory_limit)
		return;
	double cost = ap_problem_cost(s->p, s->polished);
	if (!(cost < s->out->cost))
		return;
	uint32_t *old = s->out->pick;
	s->out->pick = s->polished;
	s->out->cost = cost;
	s->polished = old ? old : AP_NEW_N(s->ctx->scratch, uint32_t, s->p->n);
}

/* Counts an evaluation; false when there is no work left for it. */
static bool spend(struct search *s)
{
	if (s->max_work && s->out->work + s->g->e->work > s->max_work)
		return false;
	s->out->work += s->g->e->work;
	return true;
}

static struct line line_of(struct search *s, const uint32_t *pick)
{
	return (struct line){ap_problem_cost(s->p, pick), ap_problem_memory(s->p, pick),
		ap_arena_memdup(s->ctx->scratch, pick, s->p->n * sizeof *pick)};
}

static bool try_price(struct search *s, double price, struct line *line)
{
	if (!spend(s) || !ap_pricing_at(s->ctx, s->g, price))
		return false;
	double bound = ap_pricing_bound(s->g);
	if (bound > s->out->bound) {
		s->out->bound = bound;
		s->out->price = price;
	}
	ap_elim_pick(s->ctx, s->g->e, s->g->value, s->pick);
	*line = line_of(s, s->pick);
	return true;
}

static bool least_memory(struct search *s, struct line *line)
{
	if (!spend(s) || !ap_pricing_memory(s->ctx, s->g))
		return false;
	s->out->least_memory = (int64_t)s->g->least;
	s->out->infeasible = s->out->least_memory > s->p->memory_limit;
	ap_elim_pick(s->ctx, s->g->e, s->g->value, s->pick);
	*line = line_of(s, s->pick);
	return true;
}

static void offer_splice(struct search *s, const struct line *over, const struct line *fit)
{
	if (ap_splice(s->ctx, s->p, over->pick, fit->pick, s->pick))
		offer(s, s->pick);
}

/* over: memory above the limit; fit: below. Each new line replaces one of them. */
static bool close_in(struct search *s, struct line over, struct line fit)
{
	for (int i = 0; i < MAX_PRICES && s->out->bound < s->out->cost; i++) {
		double price = (fit.cost - over.cost) / (double)(over.memory - fit.memory);
		if (!(price > 0 && price < INFINITY))
			return true;
		struct line line;
		if (!try_price(s, price, &line))
			return false;
		offer(s, s->pick);
		double here = line.cost + price * (double)line.memory;
		double there = over.cost + price * (double)over.memory;
		if (!(here < there - 0x1p-40 * fabs(there))) {
			offer_splice(s, &over, &fit);
			return true;
		}
		if (line.memory > s->p->memory_limit)
			over = line;
		else
			fit = line;
	}
	return true;
}

void ap_dual_solve(struct ap_ctx *ctx, struct ap_pricing *g, double least, const uint32_t *pick,
	uint64_t max_work, struct ap_dual *out)
{
	const struct ap_problem *p = g->p;
	struct search s = {ctx, g, p, max_work, .out = out};
	*out = (struct ap_dual){.bound = least, .cost = INFINITY};
	s.pick = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	s.polished = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	out->pick = NULL;
	struct line fit, over = line_of(&s, pick);
	if (!least_memory(&s, &fit)) {
		out->stopped = true;
		return;
	}
	if (out->infeasible)
		return;
	offer(&s, s.pick);
	offer(&s, pick);
	if (fit.memory <= p->memory_limit && over.memory > p->memory_limit)
		out->stopped = !close_in(&s, over, fit);
}
