/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory limit as a price per byte: with memory charged and the limit refunded, no pick that fits
 * costs more than it does. The best price, the one of the highest bound, is closed in on by halving
 * (its logarithm): where the pick that goes with a price is too large, the price is too low.
 */
#include <math.h>

#include "base/arena.h"
#include "ilp/ilp_parts.h"

enum { MOST_PRICES = 24, FIRST_PART = 64, STEP = 8 };

#define NEAR 1.001 /* ratio of two prices that are as good as one */

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

double ap_ilp_rented(const struct ap_ilp *s, double price, double cost, int64_t memory)
{
	double rent = price * (double)memory / s->grain;

	return cost + floor(rent - fabs(rent) * 0x1p-50) * s->grain;
}

/* NULL: numbers are too large. */
static const double *charge(const struct ap_ilp *s, double price, const double *cost,
	const int64_t *memory, size_t n)
{
	double *out;

	if (!memory || price == 0)
		return cost;
	out = ap_arena_alloc_raw(s->ctx->scratch, n, sizeof *out);
	for (size_t i = 0; i < n; i++) {
		out[i] = ap_ilp_rented(s, price, cost[i], memory[i]);
		if (out[i] < INFINITY && !ap_ilp_exact(s, 8 * out[i]))
			return NULL;
	}
	return out;
}

bool ap_ilp_charge(const struct ap_ilp *s, const struct ap_ilp_sub *sub, double price,
	struct ap_ilp_sub *out)
{
	struct ap_arena *arena = s->ctx->scratch;
	const struct ap_problem *p = &sub->p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix = ap_arena_memdup(arena, p->matrix, p->nmatrix * sizeof *matrix);

	*out = *sub;
	out->own = false;
	out->constant = ap_ilp_rented(s, price, sub->constant, -p->memory_limit);
	out->p.node = node;
	out->p.matrix = matrix;
	out->p.memory_limit = AP_NO_LIMIT;
	for (uint32_t i = 0; i < p->n; i++)
		if (!(node[i].cost = charge(s, price, node[i].cost, node[i].memory, node[i].k)))
			return false;
	for (uint32_t m = 0; m < p->nmatrix; m++)
		if (!(matrix[m].cost = charge(s, price, matrix[m].cost, matrix[m].memory,
			      cells(&matrix[m]))))
			return false;
	return ap_ilp_exact(s, 8 * out->constant);
}

static const double *memory_as_cost(struct ap_arena *arena, const double *cost,
	const int64_t *memory, size_t n)
{
	double *out = ap_arena_alloc_raw(arena, n, sizeof *out);

	for (size_t i = 0; i < n; i++)
		out[i] = cost[i] < INFINITY ? memory ? (double)memory[i] : 0 : INFINITY;
	return out;
}

struct ap_problem ap_ilp_memory(struct ap_arena *arena, const struct ap_problem *p)
{
	struct ap_problem out = *p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix = ap_arena_memdup(arena, p->matrix, p->nmatrix * sizeof *matrix);

	for (uint32_t i = 0; i < p->n; i++)
		node[i].cost = memory_as_cost(arena, node[i].cost, node[i].memory, node[i].k);
	for (uint32_t m = 0; m < p->nmatrix; m++)
		matrix[m].cost = memory_as_cost(arena, matrix[m].cost, matrix[m].memory,
			cells(&matrix[m]));
	out.node = node;
	out.matrix = matrix;
	out.memory_limit = AP_NO_LIMIT;
	out.quantum = 1;
	return out;
}

bool ap_ilp_price_found(const struct ap_ilp *s)
{
	const struct ap_ilp_price *x = &s->price;

	return x->tries == MOST_PRICES || (x->tries > 0 && x->high <= x->low * NEAR);
}

double ap_ilp_price(const struct ap_ilp *s, const struct ap_ilp_sub *sub)
{
	const struct ap_ilp_price *x = &s->price;

	if (x->tries == 0 || ap_ilp_price_found(s))
		return x->best;
	if (x->high == INFINITY && x->low == 0)
		return fmax(fabs(sub->bound), s->whole->quantum) /
			(FIRST_PART * fmax(fabs((double)sub->p.memory_limit), 1));
	if (x->high == INFINITY)
		return x->low * STEP;
	return x->low == 0 ? x->high / STEP : sqrt(x->low) * sqrt(x->high);
}

void ap_ilp_price_tried(struct ap_ilp *s, double price, double bound, bool fits)
{
	struct ap_ilp_price *x = &s->price;

	if (ap_ilp_price_found(s))
		return;
	if (x->tries++ == 0) {
		x->bound = -INFINITY;
		x->high = INFINITY;
	}
	if (bound > x->bound) {
		x->bound = bound;
		x->best = price;
	}
	if (fits)
		x->high = price;
	else
		x->low = price;
}
