/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/quantise.h"

#include <float.h>
#include <math.h>

#include "base/arena.h"

static double max_abs(const double *v, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++) {
		double a = fabs(v[i]);
		if (a > most && a < INFINITY)
			most = a;
	}
	return most;
}

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

/* An upper bound on the absolute cost of any pick (up to rounding of this sum). */
static double total_bound(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *most = AP_NEW_N(ctx->scratch, double, p->nmatrix);
	double sum = 0;
	for (uint32_t i = 0; i < p->nmatrix; i++)
		most[i] = max_abs(p->matrix[i].cost, cells(&p->matrix[i]));
	for (uint32_t i = 0; i < p->n; i++)
		sum += max_abs(p->node[i].cost, p->node[i].k);
	for (uint32_t i = 0; i < p->nedge; i++)
		sum += most[p->edge[i].matrix];
	ap_arena_release(ctx->scratch, mark);
	return sum;
}

/* Halves q, a power of two, until it divides all of v or reaches least. */
static double common(const double *v, size_t n, double q, double least)
{
	for (size_t i = 0; i < n && q > least; i++) {
		if (!(fabs(v[i]) < INFINITY))
			continue;
		while (q > least && v[i] / q != floor(v[i] / q))
			q /= 2;
	}
	return q;
}

static double common_quantum(const struct ap_problem *p, double q, double least)
{
	for (uint32_t i = 0; i < p->n; i++)
		q = common(p->node[i].cost, p->node[i].k, q, least);
	for (uint32_t i = 0; i < p->nmatrix; i++)
		q = common(p->matrix[i].cost, cells(&p->matrix[i]), q, least);
	return q;
}

static bool divides_all(const struct ap_problem *p, double q)
{
	return common_quantum(p, q, q / 2) == q;
}

static double *rounded(struct ap_ctx *ctx, const double *v, size_t n, double q)
{
	double *r = ap_arena_alloc_raw(ctx->arena, n, sizeof *r);
	for (size_t i = 0; i < n; i++)
		r[i] = v[i] < INFINITY ? rint(v[i] / q) * q : v[i];
	return r;
}

static void round_costs(struct ap_ctx *ctx, struct ap_problem *p)
{
	struct ap_pnode *node = AP_NEW_N(ctx->arena, struct ap_pnode, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		node[i] = p->node[i];
		node[i].cost = rounded(ctx, node[i].cost, node[i].k, p->quantum);
	}
	struct ap_pmatrix *matrix = AP_NEW_N(ctx->arena, struct ap_pmatrix, p->nmatrix);
	for (uint32_t i = 0; i < p->nmatrix; i++) {
		matrix[i] = p->matrix[i];
		matrix[i].cost = rounded(ctx, matrix[i].cost, cells(&matrix[i]), p->quantum);
	}
	p->node = node;
	p->matrix = matrix;
}

bool ap_problem_quantise(struct ap_ctx *ctx, struct ap_problem *p)
{
	double total = total_bound(ctx, p);
	if (!(total < DBL_MAX / 2))
		return false;
	int exponent; /* total < 2^exponent: at most 2^52 quanta, which leaves room for rounding */
	frexp(total, &exponent);
	double least = ldexp(1, exponent > -1021 ? exponent - 52 : -1073);
	double q = total > 0 ? common_quantum(p, ldexp(1, exponent), least) : 1;
	p->quantum = q;
	if (total > 0 && q == least && !divides_all(p, q)) {
		struct ap_problem *given = AP_NEW(ctx->arena, struct ap_problem);
		*given = *p;
		p->given = given;
		round_costs(ctx, p);
	}
	return true;
}
