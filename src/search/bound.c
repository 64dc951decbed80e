/* SPDX-License-Identifier: Apache-2.0 */
#include "search/bound.h"

#include <math.h>

#include "base/arena.h"

static double least(const double *v, size_t n)
{
	double low = INFINITY;
	for (size_t i = 0; i < n; i++)
		low = v[i] < low ? v[i] : low;
	return low;
}

double ap_bound_plain(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *low = AP_NEW_N(ctx->scratch, double, p->nmatrix), sum = 0;
	for (uint32_t i = 0; i < p->nmatrix; i++)
		low[i] = least(p->matrix[i].cost, (size_t)p->matrix[i].rows * p->matrix[i].cols);
	for (uint32_t i = 0; i < p->n; i++)
		sum += least(p->node[i].cost, p->node[i].k);
	for (uint32_t i = 0; i < p->nedge; i++)
		sum += low[p->edge[i].matrix];
	ap_arena_release(ctx->scratch, mark);
	return sum;
}

void ap_choice_none(struct ap_ctx *ctx, const struct ap_problem *p, const char *engine,
	struct ap_choice *out)
{
	*out = (struct ap_choice){
		.outcome = AP_OUT_LIMIT,
		.engine = engine,
		.cost = INFINITY,
		.lower_bound = ap_bound_plain(ctx, p),
		.least_memory = -1,
	};
}

void ap_choice_found(const struct ap_problem *p, uint32_t *pick, double bound,
	struct ap_choice *out)
{
	out->pick = pick;
	out->cost = ap_problem_cost(p, pick);
	out->memory = ap_problem_memory(p, pick);
	out->lower_bound = bound < out->cost ? bound : out->cost;
	out->outcome = bound < out->cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
}
