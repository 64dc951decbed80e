/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/pricing.h"

#include <math.h>

#include "base/arena.h"

#define ROUND 0x1.8p52 /* added and taken away, it leaves a whole number of what is below 2^51 */

enum { LEAST_EXPONENT = -900 }; /* of a quantum whose inverse is a number, too */

struct ap_most {
	double cost, memory; /* finite ones, without their signs */
};

static struct ap_most most_of(const double *cost, const int64_t *memory, size_t n)
{
	struct ap_most most = {0, 0};
	for (size_t i = 0; i < n; i++) {
		double v = fabs(cost[i]);
		if (v < INFINITY && v > most.cost)
			most.cost = v;
	}
	for (size_t i = 0; memory && i < n; i++) {
		double v = fabs((double)memory[i]);
		most.memory = v > most.memory ? v : most.memory;
	}
	return most;
}

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

/* Room for the priced numbers of what the plan reads. */
static void open_room(struct ap_ctx *ctx, struct ap_pricing *g)
{
	const struct ap_problem *p = g->p;
	struct ap_pnode *node = ap_arena_memdup(ctx->scratch, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix =
		ap_arena_memdup(ctx->scratch, p->matrix, p->nmatrix * sizeof *matrix);
	for (uint32_t i = 0; i < g->e->ntable; i++) {
		enum ap_etable_kind kind = g->e->table[i].kind;
		ap_id a = g->e->table[i].a;
		if (kind == AP_ET_NODE)
			node[a].cost = ap_arena_alloc_raw(ctx->scratch, node[a].k, sizeof(double));
		else if ((kind == AP_ET_MATRIX || kind == AP_ET_FLIPPED) &&
			matrix[a].cost == p->matrix[a].cost)
			matrix[a].cost = ap_arena_alloc_raw(ctx->scratch, cells(&matrix[a]),
				sizeof(double));
	}
	g->at.p = *p;
	g->at.p.node = node;
	g->at.p.matrix = matrix;
}

void ap_pricing_open(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **room, struct ap_pricing *out)
{
	struct ap_most *node = AP_NEW_N(ctx->scratch, struct ap_most, p->n);
	struct ap_most *matrix = AP_NEW_N(ctx->scratch, struct ap_most, p->nmatrix);
	*out = (struct ap_pricing){.e = e, .p = p, .value = room, .at.price = -1, .node = node,
		.matrix = matrix};
	for (uint32_t i = 0; i < p->n; i++)
		node[i] = most_of(p->node[i].cost, p->node[i].memory, p->node[i].k);
	for (uint32_t i = 0; i < p->nmatrix; i++)
		matrix[i] = most_of(p->matrix[i].cost, p->matrix[i].memory, cells(&p->matrix[i]));
	open_room(ctx, out);
}

/* No total at this price is larger, up to the rounding of this sum. */
static double total_at(const struct ap_pricing *g, double price)
{
	double sum = 0;
	for (uint32_t i = 0; i < g->p->n; i++)
		sum += g->node[i].cost + price * g->node[i].memory;
	for (uint32_t i = 0; i < g->p->nedge; i++) {
		const struct ap_most *most = &g->matrix[g->p->edge[i].matrix];
		sum += most->cost + price * most->memory;
	}
	return sum;
}

static double down(double v)
{
	double near = v + ROUND - ROUND;
	return near > v ? near - 1 : near;
}

/*
 * Rounded down even though the sum itself is rounded: a total is less than 2^51 quanta, so that
 * each of the two operations is off by at most half a quantum, and one quantum is given away for
 * both.
 */
static void price_list(const struct ap_priced *at, const double *cost, const int64_t *memory, size_t n,
	double *out)
{
	double quantum = at->quantum, per_quantum = 1 / quantum, price = at->price;
	if (!memory || price == 0) {
		for (size_t i = 0; i < n; i++)
			out[i] = down(cost[i] * per_quantum) * quantum;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		double extra = price * (double)memory[i];
		double v = down((cost[i] + extra) * per_quantum);
		out[i] = (extra == 0 ? v : v - 1) * quantum;
	}
}

static void memory_list(const double *cost, const int64_t *memory, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = cost[i] < INFINITY ? (memory ? (double)memory[i] : 0) : INFINITY;
}

static void fill(const struct ap_pricing *g, const double *cost, const int64_t *memory, size_t n,
	const double *room)
{
	double *out = (double *)room;
	if (g->at.price < 0)
		memory_list(cost, memory, n, out);
	else
		price_list(&g->at, cost, memory, n, out);
}

static bool evaluate(struct ap_ctx *ctx, struct ap_pricing *g)
{
	const struct ap_problem *from = g->p, *to = &g->at.p;
	for (uint32_t i = 0; i < g->e->ntable; i++) {
		const struct ap_etable *t = &g->e->table[i];
		if (t->kind == AP_ET_NODE)
			fill(g, from->node[t->a].cost, from->node[t->a].memory, t->cells,
				to->node[t->a].cost);
		else if (t->kind == AP_ET_MATRIX || t->kind == AP_ET_FLIPPED)
			fill(g, from->matrix[t->a].cost, from->matrix[t->a].memory, t->cells,
				to->matrix[t->a].cost);
	}
	return ap_elim_eval(ctx, g->e, to, g->value, &g->least);
}

bool ap_pricing_at(struct ap_ctx *ctx, struct ap_pricing *g, double price)
{
	int exponent;
	if (g->at.price == price)
		return true;
	frexp(total_at(g, price), &exponent);
	g->at.price = price;
	g->at.quantum = ldexp(1, exponent > LEAST_EXPONENT ? exponent - 51 : LEAST_EXPONENT - 51);
	if (evaluate(ctx, g))
		return true;
	g->at.price = -1;
	return false;
}

bool ap_pricing_memory(struct ap_ctx *ctx, struct ap_pricing *g)
{
	g->at.price = -1;
	return evaluate(ctx, g);
}

/* Less the price of the limit, down by what the three roundings may have added, then up to the next
 * cost there can be. */
double ap_pricing_bound(const struct ap_pricing *g)
{
	double rent = g->at.price * (double)g->p->memory_limit;
	double bound = g->least - rent;
	bound -= g->at.quantum + 0x1p-51 * (fabs(rent) + fabs(bound));
	return ceil(bound / g->p->quantum) * g->p->quantum;
}

double ap_pricing_threshold(const struct ap_pricing *g, double target)
{
	double rent = g->at.price * (double)g->p->memory_limit;
	double sum = target + rent;
	return sum + g->at.quantum + 0x1p-51 * (fabs(rent) + fabs(sum));
}
