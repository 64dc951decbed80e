/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of dynamic_programming. */
#include "elim/dp.h"
#include "elim/elim_eval.h"
#include "elim/minplus.h"
#include "search/compact.h"
#include "search/polish.h"
#include "search/drop_dominated.h"
#include "search_unit.h"

START_TEST(min_plus_is_what_it_says)
{
	struct ap_ctx ctx = ctx_create(false);
	uint64_t seed = random_seed();
	for (size_t i = 0; i < 200; i++) {
		size_t rows = 1 + random_below(&seed, 7), k = 1 + random_below(&seed, 11);
		size_t cols = 1 + random_below(&seed, 19);
		bool flip = random_below(&seed, 2);
		const double *a = random_costs(&ctx, &seed, rows * k, 99);
		double *b = random_costs(&ctx, &seed, k * cols, 99), *out;
		out = AP_NEW_N(ctx.arena, double, rows * cols);
		b[random_below(&seed, k * cols)] = INFINITY;
		ap_minplus(&(struct ap_minplus){.rows = rows, .k = k, .cols = cols, .a = a,
			.a_row = flip ? 1 : k, .a_x = flip ? rows : 1, .b = b, .b_x = cols,
			.out = out, .out_row = cols});
		for (size_t r = 0; r < rows; r++) {
			for (size_t c = 0; c < cols; c++) {
				double want = INFINITY;
				for (size_t x = 0; x < k; x++)
					want = fmin(want, a[flip ? r + x * rows : r * k + x] +
						b[x * cols + c]);
				ck_assert_double_eq(out[r * cols + c], want);
			}
		}
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_large_product_is_made_in_parts)
{
	struct ap_ctx ctx = ctx_create(false);
	uint64_t seed = random_seed();
	size_t rows = 300, k = 150, cols = 200;
	double *whole = AP_NEW_N(ctx.arena, double, rows * cols);
	double *parts = AP_NEW_N(ctx.arena, double, rows * cols);
	struct ap_minplus m = {.rows = rows, .k = k, .cols = cols,
		.a = random_costs(&ctx, &seed, rows * k, 1000000), .a_row = k, .a_x = 1,
		.b = random_costs(&ctx, &seed, k * cols, 1000000), .b_x = cols,
		.out = whole, .out_row = cols};
	ctx.jobs = 3;
	ap_minplus(&m);
	m.out = parts;
	ap_minplus_parts(&ctx, &m);
	ck_assert_mem_eq(whole, parts, rows * cols * sizeof *whole);
	ctx_destroy(&ctx);
}
END_TEST

/* A clique of four: its first reduction has 80 outer places and more steps than one thread should do. */
START_TEST(many_threads_evaluate_like_one)
{
	struct ap_ctx ctx = ctx_create(false);
	uint64_t seed = random_seed();
	struct table *t = table_create(&ctx);
	const struct ap_elim *e;
	const double **value[2];
	double least[2];
	uint32_t k = 80;
	for (int i = 0; i < 4; i++)
		table_node(t, k, random_costs(&ctx, &seed, k, 1000), NULL);
	for (ap_id u = 0; u < 4; u++)
		for (ap_id v = u + 1; v < 4; v++)
			table_edge(t, u, v, table_matrix(t, k, k,
				random_costs(&ctx, &seed, (size_t)k * k, 1000000), NULL));
	e = ap_elim_plan(&ctx, &t->p, &(struct ap_elim_options){.table_bytes = 1 << 24});
	ck_assert(!e->split);
	for (int i = 0; i < 2; i++) {
		ctx.jobs = i ? 3 : 1;
		value[i] = ap_elim_room(&ctx, e);
		ck_assert(ap_elim_eval(&ctx, e, &t->p, value[i], &least[i]));
	}
	ck_assert_double_eq(least[0], least[1]);
	for (uint32_t i = 0; i < e->ntable; i++)
		ck_assert_mem_eq(value[0][i], value[1][i], e->table[i].cells * sizeof(double));
	ctx_destroy(&ctx);
}
END_TEST

static struct table *chain(struct ap_ctx *ctx, uint32_t n, uint32_t k)
{
	struct table *t = table_create(ctx);
	uint64_t seed = 11;
	const double *own = random_costs(ctx, &seed, k, 50);
	ap_id m = table_matrix(t, k, k, random_costs(ctx, &seed, (size_t)k * k, 50), NULL);
	for (uint32_t i = 0; i < n; i++)
		table_node(t, k, own, NULL);
	for (uint32_t i = 1; i < n; i++)
		table_edge(t, i - 1, i, m);
	return t;
}

/* The least cost of a chain the plain way, node by node. */
static double chain_cost(const struct ap_problem *p)
{
	double best[64] = {0}, next[64];
	uint32_t k = p->node[0].k;
	for (uint32_t c = 0; c < k; c++)
		best[c] = p->node[0].cost[c];
	for (uint32_t v = 1; v < p->n; v++) {
		const double *edge = p->matrix[p->edge[v - 1].matrix].cost;
		for (uint32_t c = 0; c < k; c++) {
			next[c] = INFINITY;
			for (uint32_t d = 0; d < k; d++)
				next[c] = fmin(next[c], best[d] + edge[d * k + c]);
			next[c] += p->node[v].cost[c];
		}
		memcpy(best, next, k * sizeof *best);
	}
	double least = best[0];
	for (uint32_t c = 1; c < k; c++)
		least = fmin(least, best[c]);
	return least;
}

START_TEST(equal_layers_are_eliminated_once)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = chain(&ctx, 1000, 16);
	struct ap_elim_options options = {.table_bytes = 1 << 30};
	const struct ap_elim *shared = ap_elim_plan(&ctx, &t->p, &options);
	ck_assert_uint_eq(shared->nstep, 1000);
	ck_assert_uint_le(shared->nreduction, 40); /* a few for each halving */
	options.no_share = true;
	const struct ap_elim *single = ap_elim_plan(&ctx, &t->p, &options);
	ck_assert_uint_eq(single->nreduction, 1000);
	ck_assert_uint_eq(single->work, 999 * 16 * 16 + 16 + 999 * 16); /* from the ends, sums */
	ck_assert_uint_lt(shared->work, single->work / 2);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(matrices_of_equal_content_are_one)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_elim_options options = {.table_bytes = 1 << 30};
	struct table *one = chain(&ctx, 1000, 16), *two = chain(&ctx, 1000, 16);
	double *cost = ap_arena_memdup(ctx.arena, two->matrix[0].cost, 256 * sizeof(double));
	int64_t *memory = AP_NEW_N(ctx.arena, int64_t, 256);
	ap_id copy = table_matrix(two, 16, 16, cost, memory);
	uint64_t work = ap_elim_plan(&ctx, &one->p, &options)->work;
	for (uint32_t i = 0; i < two->p.nedge; i += 1 + i % 4)
		two->edge[i].matrix = copy;
	ck_assert_uint_eq(ap_elim_plan(&ctx, &two->p, &options)->work, work);
	options.by_memory = true; /* one has no memory */
	ck_assert_uint_gt(ap_elim_plan(&ctx, &two->p, &options)->work, work);
	options.by_memory = false;
	cost[77]++; /* which no sample looks at */
	ck_assert_uint_gt(ap_elim_plan(&ctx, &two->p, &options)->work, work);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_long_chain)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = chain(&ctx, 1000, 16);
	struct ap_choice c = solve(&ctx, "dynamic_programming", &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, chain_cost(&t->p));
	ck_assert_double_eq(c.cost, ap_problem_cost(&t->p, c.pick));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_star_of_a_thousand)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	uint64_t seed = 13;
	const double *own = random_costs(&ctx, &seed, 8, 50);
	ap_id m = table_matrix(t, 8, 8, random_costs(&ctx, &seed, 64, 50), NULL);
	table_node(t, 8, own, NULL);
	for (uint32_t i = 1; i < 1000; i++)
		table_edge(t, 0, table_node(t, 8, own, NULL), m);
	double want = INFINITY;
	for (uint32_t c = 0; c < 8; c++) {
		double leaf = INFINITY;
		for (uint32_t d = 0; d < 8; d++)
			leaf = fmin(leaf, own[d] + t->matrix[0].cost[c * 8 + d]);
		want = fmin(want, own[c] + 999 * leaf);
	}
	struct ap_choice c = solve(&ctx, "dynamic_programming", &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, want);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(pruning_keeps_the_smallest_of_equals)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {3, 1, 1, 5}, other[] = {0, 0};
	static const double edge[] = {0, 0, 4, 1, 4, 1, 0, 0};
	table_node(t, 4, own, NULL);
	table_node(t, 2, other, NULL);
	table_edge(t, 0, 1, table_matrix(t, 4, 2, edge, NULL));
	struct ap_domain *d = ap_domain_all(&ctx, &t->p);
	uint64_t work = 0;
	ck_assert(ap_drop_dominated(&ctx, &t->p, d, &work));
	/* 2 is like 1; 3 is dearer than 0. For the neighbour, 1 is never worse than 0. */
	ck_assert_uint_eq(d[0].n, 2);
	ck_assert_uint_eq(d[0].c[0], 0);
	ck_assert_uint_eq(d[0].c[1], 1);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(pruning_minds_memory_under_a_limit)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {3, 1, 4};
	static const int64_t memory[] = {1, 9, 2};
	uint64_t work = 0;
	table_node(t, 3, own, memory);
	struct ap_domain *free = ap_domain_all(&ctx, &t->p);
	ck_assert(ap_drop_dominated(&ctx, &t->p, free, &work));
	ck_assert_uint_eq(free[0].n, 1);
	ck_assert_uint_eq(free[0].c[0], 1);
	t->p.memory_limit = 5;
	struct ap_domain *limited = ap_domain_all(&ctx, &t->p);
	ck_assert(ap_drop_dominated(&ctx, &t->p, limited, &work));
	ck_assert_uint_eq(limited[0].n, 2); /* 2 costs more than 0 and needs more */
	ck_assert_uint_eq(limited[0].c[1], 1);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_settled_node_becomes_cost_of_its_neighbour)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double one[] = {5}, own[] = {1, 2}, edge[] = {7, 0};
	static const int64_t memory[] = {3, 4};
	table_node(t, 1, one, NULL);
	table_node(t, 2, own, NULL);
	table_edge(t, 0, 1, table_matrix(t, 1, 2, edge, memory));
	t->p.memory_limit = 10;
	const struct ap_compact *c = ap_compact_make(&ctx, &t->p, ap_domain_all(&ctx, &t->p));
	ck_assert_uint_eq(c->p.n, 1);
	ck_assert_uint_eq(c->p.nedge, 0);
	ck_assert_double_eq(c->cost, 5);
	ck_assert_double_eq(c->p.node[0].cost[0], 8);
	ck_assert_double_eq(c->p.node[0].cost[1], 2);
	ck_assert_int_eq(c->p.node[0].memory[1], 4);
	uint32_t pick[2];
	ap_compact_expand(c, &t->p, (uint32_t[]){1}, pick);
	ck_assert_uint_eq(pick[0], 0);
	ck_assert_uint_eq(pick[1], 1);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(polishing_repairs_and_improves)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {1, 0, 5};
	static const int64_t memory[] = {1, 9, 0};
	const double edge[] = {INFINITY, 0, 0, 0, 0, 0, 0, 0, 0};
	uint32_t pick[2] = {0, 0};
	table_node(t, 3, own, memory);
	table_node(t, 3, own, memory);
	table_edge(t, 0, 1, table_matrix(t, 3, 3, edge, NULL));
	ap_polish(&ctx, &t->p, 10, pick);
	ck_assert_double_eq(ap_problem_cost(&t->p, pick), 0);
	t->p.memory_limit = 10;
	pick[0] = pick[1] = 1;
	ap_polish(&ctx, &t->p, 10, pick);
	ck_assert_double_eq(ap_problem_cost(&t->p, pick), 1);
	ck_assert_int_le(ap_problem_memory(&t->p, pick), 10);
	ctx_destroy(&ctx);
}
END_TEST

/* Many equal layers with a limit: options do not change what comes out. */
START_TEST(equal_layers_under_a_limit)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	uint64_t seed = 17;
	static const int64_t memory[] = {50, 30, 12, 5};
	static const double own[] = {10, 14, 21, 33};
	ap_id m = table_matrix(t, 4, 4, random_costs(&ctx, &seed, 16, 3), NULL);
	for (uint32_t i = 0; i < 40; i++)
		table_node(t, 4, own, memory);
	for (uint32_t i = 1; i < 40; i++)
		table_edge(t, i - 1, i, m);
	t->p.memory_limit = 1000;
	struct ap_choice a = solve(&ctx, "dynamic_programming", &t->p), b;
	ck_assert_int_eq(a.outcome, AP_OUT_OPTIMAL);
	ck_assert_int_le(a.memory, 1000);
	ap_dp_solve_with(&ctx, &t->p, &(struct ap_budget){0},
		&(struct ap_dp_options){AP_DP_PRUNE_ALWAYS, true}, &b);
	ck_assert_double_eq(a.cost, b.cost);
	ck_assert_mem_eq(a.pick, b.pick, t->p.n * sizeof *a.pick);
	t->p.memory_limit = 199;
	a = solve(&ctx, "dynamic_programming", &t->p);
	ck_assert_int_eq(a.outcome, AP_OUT_INFEASIBLE);
	ck_assert_int_eq(a.least_memory, 200);
	ctx_destroy(&ctx);
}
END_TEST
