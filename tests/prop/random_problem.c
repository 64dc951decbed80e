/* SPDX-License-Identifier: Apache-2.0 */
#include "random_problem.h"

#include <math.h>

#include "base/str.h"
#include "problem/quantise.h"
#include "unit.h"

enum { MAX_EDGES = 32 };

enum cost_style { TIES, SIGNED, FRACTIONS, WIDE, COST_STYLES };
enum shape { TREE, SERIES_PARALLEL, RING, STAR, TRIANGLES, DENSE, SPARSE, LAYERS, SHAPES };

struct maker {
	struct ap_ctx *ctx;
	uint64_t *seed;
	enum cost_style style;
	uint32_t forbid; /* of 100 */
	bool memory;
	int64_t memory_range;
	struct ap_problem p;
	struct ap_pnode *node;
	struct ap_pedge edge[MAX_EDGES];
	struct ap_pmatrix matrix[MAX_EDGES];
};

static uint32_t below(struct maker *m, uint32_t n)
{
	return (uint32_t)random_below(m->seed, n);
}

static double random_cost(struct maker *m)
{
	if (below(m, 100) < m->forbid)
		return INFINITY;
	switch (m->style) {
	case TIES:
		return below(m, 3);
	case SIGNED:
		return (double)below(m, 21) - 10;
	case FRACTIONS:
		return below(m, 1000) * 0x1p-40;
	default:
		return below(m, 1000000) * 0.1 - 3e4;
	}
}

static const double *random_costs(struct maker *m, size_t n)
{
	double *cost = AP_NEW_N(m->ctx->arena, double, n);
	for (size_t i = 0; i < n; i++)
		cost[i] = random_cost(m);
	return cost;
}

static const int64_t *random_memory(struct maker *m, size_t n)
{
	if (!m->memory || below(m, 4) == 0)
		return NULL;
	int64_t *memory = AP_NEW_N(m->ctx->arena, int64_t, n);
	for (size_t i = 0; i < n; i++)
		memory[i] = (int64_t)random_below(m->seed, (uint64_t)m->memory_range) -
			(m->style == SIGNED ? m->memory_range / 4 : 0);
	return memory;
}

static uint32_t random_k(struct maker *m)
{
	return below(m, 8) == 0 ? 1 : 2 + below(m, 3);
}

/* Some nodes are copies of an earlier one. */
static void make_nodes(struct maker *m, uint32_t n, bool alike)
{
	m->node = AP_NEW_N(m->ctx->arena, struct ap_pnode, n);
	for (uint32_t i = 0; i < n; i++) {
		if (i && (alike || below(m, 4) == 0)) {
			m->node[i] = m->node[alike ? 0 : below(m, i)];
			continue;
		}
		uint32_t k = random_k(m);
		m->node[i] = (struct ap_pnode){.name = "node", .k = k,
			.cost = random_costs(m, k), .memory = random_memory(m, k)};
	}
}

static ap_id random_matrix(struct maker *m, uint32_t rows, uint32_t cols, bool alike)
{
	for (uint32_t i = 0; i < m->p.nmatrix; i++) {
		if (m->matrix[i].rows == rows && m->matrix[i].cols == cols &&
			(alike || below(m, 3) == 0))
			return i;
	}
	size_t cells = (size_t)rows * cols;
	m->matrix[m->p.nmatrix] =
		(struct ap_pmatrix){rows, cols, random_costs(m, cells), random_memory(m, cells)};
	return m->p.nmatrix++;
}

static void join(struct maker *m, uint32_t a, uint32_t b, bool alike)
{
	if (a == b || m->p.nedge == MAX_EDGES)
		return;
	bool flip = !alike && below(m, 2);
	uint32_t u = flip ? b : a, v = flip ? a : b;
	m->edge[m->p.nedge++] =
		(struct ap_pedge){u, v, random_matrix(m, m->node[u].k, m->node[v].k, alike)};
	if (!alike && below(m, 8) == 0)
		join(m, a, b, alike);
}

/* Node after node comes into a way between two others, or makes one more beside it. */
static void make_series_parallel(struct maker *m, uint32_t n)
{
	uint32_t way[MAX_EDGES][2] = {{0, 1}}, ways = n > 1;
	for (uint32_t i = 2; i < n && ways + 2 <= MAX_EDGES; i++) {
		uint32_t at = below(m, ways), u = way[at][0], v = way[at][1];
		if (below(m, 2))
			at = ways++;
		way[at][0] = u;
		way[at][1] = i;
		way[ways][0] = i;
		way[ways++][1] = v;
	}
	for (uint32_t i = 0; i < ways; i++)
		join(m, way[i][0], way[i][1], false);
}

static void make_edges(struct maker *m, uint32_t n, enum shape shape)
{
	for (uint32_t i = 1; i < n; i++) {
		switch (shape) {
		case SERIES_PARALLEL:
			break;
		case TREE:
			join(m, below(m, i), i, false);
			break;
		case STAR:
			join(m, 0, i, false);
			break;
		case RING:
		case LAYERS:
			join(m, i - 1, i, shape == LAYERS);
			break;
		case TRIANGLES:
			join(m, i - 1, i, false);
			if (i > 1)
				join(m, i - 2, i, false);
			break;
		default:
			for (uint32_t j = 0; j < i; j++) {
				if (below(m, 10) < (shape == DENSE ? 8 : 3))
					join(m, j, i, false);
			}
		}
	}
	if (shape == SERIES_PARALLEL)
		make_series_parallel(m, n);
	if (shape == RING && n > 2)
		join(m, 0, n - 1, false);
}

/* Between the memory of two random picks. */
static int64_t random_limit(struct maker *m)
{
	uint32_t pick[64];
	int64_t limit = 0;
	for (int i = 0; i < 2; i++) {
		for (uint32_t v = 0; v < m->p.n; v++)
			pick[v] = below(m, m->p.node[v].k);
		limit += ap_problem_memory(&m->p, pick);
	}
	return limit / 2 - (below(m, 3) == 0 ? m->memory_range : 0);
}

const struct ap_problem *random_problem(struct ap_ctx *ctx, uint64_t *seed, uint32_t max_n)
{
	struct maker *m = AP_NEW(ctx->arena, struct maker);
	m->ctx = ctx;
	m->seed = seed;
	m->style = (enum cost_style)below(m, COST_STYLES);
	m->forbid = below(m, 3) == 0 ? 25 : 0;
	m->memory = below(m, 2);
	m->memory_range = below(m, 2) ? 6 : 1000;
	enum shape shape = (enum shape)below(m, SHAPES);
	uint32_t n = 1 + below(m, max_n);
	m->p.n = n;
	make_nodes(m, n, shape == LAYERS);
	make_edges(m, n, shape);
	m->p.node = m->node;
	m->p.edge = m->edge;
	m->p.matrix = m->matrix;
	m->p.memory_limit = m->memory ? random_limit(m) : AP_NO_LIMIT;
	if (!ap_problem_quantise(ctx, &m->p))
		abort();
	return &m->p;
}

const char *problem_text(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_str text;
	ap_str_init(&text, ctx->arena);
	ap_problem_write_json(p, ap_str_take, &text);
	return text.s;
}
