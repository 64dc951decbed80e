/* SPDX-License-Identifier: Apache-2.0 */
#include "search/dual.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/polish.h"
#include "search/splice.h"

enum { MAX_PRICES = 64, POLISH_PASSES = 8 };

/* ---- numbers at a price ---- */

static double largest(const double *cost, const int64_t *memory, size_t n, double price)
{
	double most = 0;
	for (size_t i = 0; i < n; i++) {
		double v = fabs(cost[i]) + (memory ? price * fabs((double)memory[i]) : 0);
		if (v < INFINITY && v > most)
			most = v;
	}
	return most;
}

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

/* No total at this price is larger, up to the rounding of this sum. */
static double total_at(struct ap_ctx *ctx, const struct ap_problem *p, double price)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *most = AP_NEW_N(ctx->scratch, double, p->nmatrix);
	double sum = 0;
	for (uint32_t i = 0; i < p->nmatrix; i++)
		most[i] = largest(p->matrix[i].cost, p->matrix[i].memory, cells(&p->matrix[i]),
			price);
	for (uint32_t i = 0; i < p->n; i++)
		sum += largest(p->node[i].cost, p->node[i].memory, p->node[i].k, price);
	for (uint32_t i = 0; i < p->nedge; i++)
		sum += most[p->edge[i].matrix];
	ap_arena_release(ctx->scratch, mark);
	return sum;
}

/*
 * Rounded down even though the sum itself is rounded: a total is less than 2^52 quanta, so that
 * each of the two operations is off by at most half a quantum, and one quantum is given away for
 * both.
 */
static double *priced(struct ap_ctx *ctx, const double *cost, const int64_t *memory, size_t n,
	const struct ap_priced *at)
{
	double *out = ap_arena_alloc_raw(ctx->scratch, n, sizeof *out);
	for (size_t i = 0; i < n; i++) {
		double extra = memory ? at->price * (double)memory[i] : 0;
		double v = floor((cost[i] + extra) / at->quantum);
		out[i] = (extra == 0 ? v : v - 1) * at->quantum;
	}
	return out;
}

void ap_priced_make(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double price, struct ap_priced *out)
{
	int exponent;
	frexp(total_at(ctx, p, price), &exponent);
	*out = (struct ap_priced){*p, price, ldexp(1, exponent > -1020 ? exponent - 52 : -1072)};
	struct ap_pnode *node = ap_arena_memdup(ctx->scratch, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix =
		ap_arena_memdup(ctx->scratch, p->matrix, p->nmatrix * sizeof *matrix);
	for (uint32_t i = 0; i < e->ntable; i++) {
		ap_id a = e->table[i].a;
		if (e->table[i].kind == AP_ET_NODE)
			node[a].cost = priced(ctx, p->node[a].cost, p->node[a].memory, node[a].k,
				out);
		else if ((e->table[i].kind == AP_ET_MATRIX || e->table[i].kind == AP_ET_FLIPPED) &&
			matrix[a].cost == p->matrix[a].cost)
			matrix[a].cost = priced(ctx, p->matrix[a].cost, p->matrix[a].memory,
				cells(&matrix[a]), out);
	}
	out->p.node = node;
	out->p.matrix = matrix;
}

/* Memory in the place of cost; what is forbidden stays so. */
static double *memory_as_cost(struct ap_ctx *ctx, const double *cost, const int64_t *memory,
	size_t n)
{
	double *out = ap_arena_alloc_raw(ctx->scratch, n, sizeof *out);
	for (size_t i = 0; i < n; i++)
		out[i] = cost[i] < INFINITY ? (memory ? (double)memory[i] : 0) : INFINITY;
	return out;
}

struct ap_problem ap_memory_problem(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_problem q = *p;
	struct ap_pnode *node = ap_arena_memdup(ctx->scratch, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix =
		ap_arena_memdup(ctx->scratch, p->matrix, p->nmatrix * sizeof *matrix);
	for (uint32_t i = 0; i < p->n; i++)
		node[i].cost = memory_as_cost(ctx, node[i].cost, node[i].memory, node[i].k);
	for (uint32_t i = 0; i < p->nmatrix; i++)
		matrix[i].cost = memory_as_cost(ctx, matrix[i].cost, matrix[i].memory,
			cells(&matrix[i]));
	q.node = node;
	q.matrix = matrix;
	return q;
}

/* ---- the search for the price ---- */

struct line { /* of a pick: what it costs at a price */
	double cost;
	int64_t memory;
	uint32_t *pick; /* in scratch */
};

struct search {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const struct ap_problem *p;
	uint64_t max_work;
	const double **value;
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

/* Evaluates q; *least and s->pick. False when there is no time or work left for it. */
static bool evaluate(struct search *s, const struct ap_problem *q, double *least)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	if (s->max_work && s->out->work + s->e->work > s->max_work)
		return false;
	s->out->work += s->e->work;
	bool done = ap_elim_eval(s->ctx, s->e, q, s->value, least);
	if (done && *least < INFINITY)
		ap_elim_pick(s->ctx, s->e, s->value, s->pick);
	ap_arena_release(s->ctx->scratch, mark);
	return done;
}

/* Less the price of the limit, down by what the three roundings may have added, then up to the next
 * cost there can be. */
double ap_priced_bound(const struct ap_problem *p, const struct ap_priced *at, double least)
{
	double rent = at->price * (double)p->memory_limit;
	double bound = least - rent;
	bound -= at->quantum + 0x1p-51 * (fabs(rent) + fabs(bound));
	return ceil(bound / p->quantum) * p->quantum;
}

static struct line line_of(struct search *s, const uint32_t *pick)
{
	return (struct line){ap_problem_cost(s->p, pick), ap_problem_memory(s->p, pick),
		ap_arena_memdup(s->ctx->scratch, pick, s->p->n * sizeof *pick)};
}

static bool try_price(struct search *s, double price, struct line *line)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_priced at;
	double least;
	ap_priced_make(s->ctx, s->e, s->p, price, &at);
	bool done = evaluate(s, &at.p, &least);
	ap_arena_release(s->ctx->scratch, mark);
	if (!done)
		return false;
	double bound = ap_priced_bound(s->p, &at, least);
	if (bound > s->out->bound) {
		s->out->bound = bound;
		s->out->price = price;
	}
	*line = line_of(s, s->pick);
	return true;
}

static bool least_memory(struct search *s, struct line *line)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_problem q = ap_memory_problem(s->ctx, s->p);
	double least;
	bool done = evaluate(s, &q, &least);
	ap_arena_release(s->ctx->scratch, mark);
	if (!done)
		return false;
	s->out->least_memory = (int64_t)least;
	s->out->infeasible = s->out->least_memory > s->p->memory_limit;
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

void ap_dual_solve(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double least, const uint32_t *pick, uint64_t max_work, struct ap_dual *out)
{
	*out = (struct ap_dual){.bound = least, .cost = INFINITY};
	struct search s = {ctx, e, p, max_work, .out = out};
	s.value = AP_NEW_N(ctx->scratch, const double *, e->ntable);
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
