/* SPDX-License-Identifier: Apache-2.0 */
#include "search/fewest.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

/* A finite cost in quanta. */
static int64_t quanta(const struct ap_problem *p, double cost)
{
	return cost < INFINITY ? (int64_t)(cost / p->quantum) : 0;
}

/* Nodes in terms of changes, whose memory is their cost, or the other way round. */
static const struct ap_pnode *turned_nodes(struct ap_ctx *ctx, const struct ap_problem *p,
	const uint32_t *old,
	bool by_changes)
{
	struct ap_pnode *node = AP_NEW_N(ctx->arena, struct ap_pnode, p->n);

	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = p->node[i].k;
		double *cost = AP_NEW_N(ctx->arena, double, k);
		int64_t *memory = AP_NEW_N(ctx->arena, int64_t, k);

		for (uint32_t c = 0; c < k; c++) {
			double own = p->node[i].cost[c];
			bool changes = old[i] != AP_NONE && c != old[i];

			cost[c] = !(own < INFINITY) || !by_changes ? own : changes;
			memory[c] = by_changes ? quanta(p, own) : changes;
		}
		node[i] = (struct ap_pnode){.name = p->node[i].name, .k = k, .cost = cost, .memory = memory};
	}
	return node;
}

static const struct ap_pmatrix *turned_matrices(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_pmatrix *matrix = AP_NEW_N(ctx->arena, struct ap_pmatrix, p->nmatrix);

	for (uint32_t m = 0; m < p->nmatrix; m++) {
		const struct ap_pmatrix *from = &p->matrix[m];
		size_t cells = (size_t)from->rows * from->cols;
		double *cost = AP_NEW_N(ctx->arena, double, cells);
		int64_t *memory = AP_NEW_N(ctx->arena, int64_t, cells);

		for (size_t i = 0; i < cells; i++) {
			cost[i] = from->cost[i] < INFINITY ? 0 : INFINITY;
			memory[i] = quanta(p, from->cost[i]);
		}
		matrix[m] = (struct ap_pmatrix){from->rows, from->cols, cost, memory};
	}
	return matrix;
}

/* The same matrices without the memory that they may have, for which changes stand. */
static const struct ap_pmatrix *bare_matrices(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_pmatrix *matrix = ap_arena_memdup(ctx->arena, p->matrix, p->nmatrix * sizeof *matrix);

	for (uint32_t m = 0; m < p->nmatrix; m++)
		matrix[m].memory = NULL;
	return matrix;
}

static double count_changes(const struct ap_problem *p, const uint32_t *old, const uint32_t *pick)
{
	double n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += old[i] != AP_NONE && pick[i] != old[i];
	return n;
}

void ap_fewest_changes(struct ap_ctx *ctx, const struct ap_engine *engine, const struct ap_problem *p,
	const uint32_t *old, double most_cost, const struct ap_budget *budget, struct ap_fewest *out)
{
	struct ap_budget own = *budget;
	struct ap_problem changes = *p, costs = *p;
	struct ap_choice c = {0}, cheap = {0};

	assert(engine->flags & AP_ENGINE_MEMORY);
	*out = (struct ap_fewest){.changes = INFINITY};
	own.start[0] = own.start[1] = NULL;
	changes.given = costs.given = NULL;
	changes.node = turned_nodes(ctx, p, old, true);
	changes.matrix = turned_matrices(ctx, p);
	changes.memory_limit = (int64_t)floor(most_cost / p->quantum);
	changes.quantum = 1;
	engine->solve(ctx, &changes, &own, &c);
	out->work = c.work;
	if (c.outcome == AP_OUT_INFEASIBLE) {
		out->bound = INFINITY;
		return;
	}
	out->bound = ceil(fmax(0, c.lower_bound));
	if (!ap_choice_any(&c))
		return;
	out->pick = c.pick;
	out->changes = c.cost;
	costs.node = turned_nodes(ctx, p, old, false);
	costs.matrix = bare_matrices(ctx, p);
	costs.memory_limit = (int64_t)c.cost;
	own.start[0] = c.pick;
	engine->solve(ctx, &costs, &own, &cheap);
	out->work += cheap.work;
	if (ap_choice_any(&cheap) && cheap.cost <= ap_problem_cost(p, c.pick)) {
		out->pick = cheap.pick;
		out->changes = count_changes(p, old, cheap.pick);
	}
}
