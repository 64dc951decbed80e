/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long dynamic_programming takes on large tables, phase by phase.
 *
 *   bench_solve                          every case of the list below
 *   bench_solve SHAPE LAYERS K [alike] [limit]   one case; SHAPE: chain, transformer
 *   bench_solve SHAPE ... > problem.json  with --write: the problem instead, for other solvers
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "draw.h"
#include "search/engine.h"

enum { LAYER = 14 }; /* nodes of a transformer layer */

struct shape {
	bool transformer; /* else a chain, a node a layer */
	uint32_t layers, k;
	bool alike; /* layers share their costs */
	bool limit; /* on memory, between what the cheapest pick takes and the least */
};

struct maker {
	struct ap_ctx *ctx;
	struct shape shape;
	uint64_t state;
	struct { struct ap_pnode *v; size_t n, cap; } node;
	struct { struct ap_pedge *v; size_t n, cap; } edge;
	struct { struct ap_pmatrix *v; size_t n, cap; } matrix;
};

/* The faster a candidate, the more memory it takes, roughly. */
static void add_node(struct maker *m, uint32_t like)
{
	uint32_t k = m->shape.k;
	if (like != AP_NONE) {
		AP_PUSH(m->ctx->arena, m->node, m->node.v[like]);
		return;
	}
	double *cost = AP_NEW_N(m->ctx->arena, double, k);
	int64_t *memory = AP_NEW_N(m->ctx->arena, int64_t, k);
	for (uint32_t c = 0; c < k; c++) {
		cost[c] = draw_seconds(&m->state, 1000);
		memory[c] = (int64_t)((1.2e-3 - cost[c]) * 1e9) * 1000 +
			(int64_t)draw_below(&m->state, 500000000);
	}
	struct ap_pnode node = {"node", k, cost, m->shape.limit ? memory : NULL};
	AP_PUSH(m->ctx->arena, m->node, node);
}

static void add_edge(struct maker *m, uint32_t u, uint32_t v, uint32_t like)
{
	uint32_t k = m->shape.k, matrix = (uint32_t)m->matrix.n;
	if (like != AP_NONE) {
		matrix = m->edge.v[like].matrix;
	} else {
		double *cost = AP_NEW_N(m->ctx->arena, double, (size_t)k * k);
		for (size_t i = 0; i < (size_t)k * k; i++)
			cost[i] = i % (k + 1) == 0 ? 0 : draw_seconds(&m->state, 400);
		struct ap_pmatrix made = {k, k, cost, NULL};
		AP_PUSH(m->ctx->arena, m->matrix, made);
	}
	struct ap_pedge edge = {u, v, matrix};
	AP_PUSH(m->ctx->arena, m->edge, edge);
}

/* Edges of a layer, to node `to` of it from node `from`; 0 is the output of the layer before. */
static const struct {
	uint32_t from, to;
} wiring[] = {
	{0, 1}, /* norm */
	{1, 2}, {1, 3}, {1, 4}, /* query, key, value */
	{2, 5}, {3, 5}, {5, 6}, {6, 7}, {4, 7}, /* scores, softmax, context */
	{7, 8}, {8, 9}, {0, 9}, /* projection, residual */
	{9, 10}, {10, 11}, {11, 12}, {12, 13}, {13, 14}, {9, 14}, /* norm, feed-forward, residual */
};

enum { WIRES = sizeof wiring / sizeof *wiring };

static void add_layer(struct maker *m, uint32_t layer)
{
	uint32_t base = layer * LAYER;
	bool copy = m->shape.alike && layer > 0;
	for (uint32_t i = 1; i <= LAYER; i++)
		add_node(m, copy ? i : AP_NONE);
	for (uint32_t i = 0; i < WIRES; i++)
		add_edge(m, base + wiring[i].from, base + wiring[i].to, copy ? i : AP_NONE);
}

static void add_link(struct maker *m, uint32_t layer)
{
	bool copy = m->shape.alike && layer > 1;
	add_node(m, copy ? 1 : AP_NONE);
	add_edge(m, layer - 1, layer, copy ? 0 : AP_NONE);
}

static int64_t extreme_memory(const struct maker *m, bool cheapest)
{
	int64_t sum = 0;
	for (size_t i = 0; i < m->node.n; i++) {
		const struct ap_pnode *node = &m->node.v[i];
		uint32_t best = 0;
		for (uint32_t c = 1; c < node->k; c++) {
			if (cheapest ? node->cost[c] < node->cost[best]
				     : node->memory[c] < node->memory[best])
				best = c;
		}
		sum += node->memory[best];
	}
	return sum;
}

static const struct ap_problem *make(struct ap_ctx *ctx, struct shape shape)
{
	struct maker m = {.ctx = ctx, .shape = shape, .state = 20240229};
	add_node(&m, AP_NONE);
	for (uint32_t i = 0; i < (shape.transformer ? shape.layers : shape.layers - 1); i++) {
		if (shape.transformer)
			add_layer(&m, i);
		else
			add_link(&m, i + 1);
	}
	struct ap_problem *p = AP_NEW(ctx->arena, struct ap_problem);
	*p = (struct ap_problem){
		.n = (uint32_t)m.node.n, .node = m.node.v,
		.nedge = (uint32_t)m.edge.n, .edge = m.edge.v,
		.nmatrix = (uint32_t)m.matrix.n, .matrix = m.matrix.v,
		.memory_limit = AP_NO_LIMIT,
		.quantum = AP_QUANTUM_S,
	};
	if (shape.limit)
		p->memory_limit =
			(2 * extreme_memory(&m, true) + 3 * extreme_memory(&m, false)) / 5;
	return p;
}

/* ---- timing ---- */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static struct ap_ctx open_ctx(void)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL), .jobs = 1};
	ctx.diag = ap_diag_create(ctx.arena, false);
	return ctx;
}

static void close_ctx(struct ap_ctx *ctx)
{
	ap_arena_destroy(ctx->scratch);
	ap_arena_destroy(ctx->arena);
}

static void print_case(struct shape s, double parse, double load, double solve,
	const struct ap_problem *p, const struct ap_choice *c)
{
	static const char *const outcome[] = {"optimal", "feasible", "infeasible", "limit"};
	char name[64];
	snprintf(name, sizeof name, "%s %" PRIu32 " x %" PRIu32 "%s%s",
		s.transformer ? "transformer" : "chain", p->n, s.k, s.alike ? " alike" : "",
		s.limit ? " limit" : "");
	printf("%-36s %9.2f %9.2f %9.2f  %-10s %.9f %8.4f%% %12" PRIu64 "\n", name, parse,
		load, solve, outcome[c->outcome], c->cost, 100 * (c->cost / c->lower_bound - 1),
		c->work);
	fflush(stdout);
}

static int run_case(struct shape s)
{
	struct ap_ctx made = open_ctx(), ctx = open_ctx();
	struct ap_str text;
	struct ap_json *doc;
	const struct ap_problem *p = NULL;
	struct ap_choice choice;
	struct ap_budget budget = {0};
	ap_str_init(&text, made.arena);
	ap_problem_write_json(make(&made, s), ap_str_take, &text);
	double t0 = now_ms();
	if (ap_json_parse(&ctx, "bench", text.s, text.len, 0, &doc) != AP_OK)
		return 1;
	double t1 = now_ms();
	if (ap_problem_load(&ctx, doc, &p) != AP_OK)
		return 1;
	double t2 = now_ms();
	ap_engine_find("dynamic_programming")->solve(&ctx, p, &budget, &choice);
	double t3 = now_ms();
	print_case(s, t1 - t0, t2 - t1, t3 - t2, p, &choice);
	close_ctx(&ctx);
	close_ctx(&made);
	return 0;
}

static const struct shape cases[] = {
	{false, 1000, 20, true, false},
	{false, 1000, 20, false, false},
	{false, 100, 66, false, false},
	{false, 10000, 286, true, false},
	{true, 24, 25, true, false},
	{true, 24, 25, false, false},
	{true, 96, 25, true, false},
	{true, 96, 25, false, false},
	{true, 1000, 20, true, false},
	{true, 4, 25, true, true},
	{true, 4, 25, false, true},
	{true, 24, 25, true, true},
	{true, 96, 25, true, true},
	{true, 96, 25, false, true},
};

static int run_all(void)
{
	printf("%-36s %9s %9s %9s  %-10s %-11s %9s %12s\n", "case", "parse ms", "load ms",
		"solve ms", "outcome", "cost s", "gap", "work");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (run_case(cases[i]))
			return 1;
	}
	return 0;
}

static void print(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

static int write_case(struct shape s)
{
	struct ap_ctx ctx = open_ctx();
	ap_problem_write_json(make(&ctx, s), print, stdout);
	close_ctx(&ctx);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	int64_t layers, k;
	if (argc == 1)
		return run_all();
	if (argc < 4 || !ap_parse_int(argv[2], 2, 1000000, &layers) ||
		!ap_parse_int(argv[3], 2, 10000, &k)) {
		fputs("usage: bench_solve [chain|transformer LAYERS K [alike] [limit] [--write]]\n",
			stderr);
		return 2;
	}
	struct shape s = {strcmp(argv[1], "transformer") == 0, (uint32_t)layers, (uint32_t)k, 0, 0};
	bool write = false;
	for (int i = 4; i < argc; i++) {
		s.alike |= strcmp(argv[i], "alike") == 0;
		s.limit |= strcmp(argv[i], "limit") == 0;
		write |= strcmp(argv[i], "--write") == 0;
	}
	return write ? write_case(s) : run_case(s);
}
