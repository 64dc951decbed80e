/* SPDX-License-Identifier: Apache-2.0 */
/* Problems put together by hand. */
#ifndef SEARCH_UNIT_H
#define SEARCH_UNIT_H

#include <math.h>

#include "problem/problem.h"
#include "search/engine.h"
#include "unit.h"

enum { MAX_NODES = 2000, MAX_EDGES = 4000, MAX_MATRICES = 64 };

struct table { /* a problem in the making */
	struct ap_problem p;
	struct ap_pnode node[MAX_NODES];
	struct ap_pedge edge[MAX_EDGES];
	struct ap_pmatrix matrix[MAX_MATRICES];
};

static inline struct table *table_create(struct ap_ctx *ctx)
{
	struct table *t = AP_NEW(ctx->arena, struct table);
	t->p = (struct ap_problem){.node = t->node, .edge = t->edge, .matrix = t->matrix,
		.memory_limit = AP_NO_LIMIT, .quantum = 1};
	return t;
}

static inline ap_id table_node(struct table *t, uint32_t k, const double *cost,
	const int64_t *memory)
{
	t->node[t->p.n] = (struct ap_pnode){.name = "node", .k = k, .cost = cost,
		.memory = memory};
	return t->p.n++;
}

static inline ap_id table_matrix(struct table *t, uint32_t rows, uint32_t cols, const double *cost,
	const int64_t *memory)
{
	t->matrix[t->p.nmatrix] = (struct ap_pmatrix){rows, cols, cost, memory};
	return t->p.nmatrix++;
}

static inline void table_edge(struct table *t, ap_id u, ap_id v, ap_id matrix)
{
	t->edge[t->p.nedge++] = (struct ap_pedge){u, v, matrix};
}

/* n random integers in [0, most]. */
static inline double *random_costs(struct ap_ctx *ctx, uint64_t *seed, size_t n, uint64_t most)
{
	double *cost = AP_NEW_N(ctx->arena, double, n);
	for (size_t i = 0; i < n; i++)
		cost[i] = (double)random_below(seed, most + 1);
	return cost;
}

static inline struct ap_choice solve(struct ap_ctx *ctx, const char *engine,
	const struct ap_problem *p)
{
	struct ap_choice c;
	struct ap_budget budget = {0};
	ap_engine_find(engine)->solve(ctx, p, &budget, &c);
	return c;
}

#endif
