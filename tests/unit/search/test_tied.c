/* SPDX-License-Identifier: Apache-2.0 */
/* Problems with ties: what is left of them has the same picks, and one of a wide grid is narrow. */
#include "search/tied.h"

#include "base/vec.h"
#include "search_unit.h"

static int64_t *random_memory(struct ap_ctx *ctx, uint64_t *seed, size_t n)
{
	int64_t *memory = AP_NEW_N(ctx->arena, int64_t, n);

	for (size_t i = 0; i < n; i++)
		memory[i] = (int64_t)random_below(seed, 8);
	return memory;
}

/* Pairs of few candidates, some forbidden. If it is a tie: each with at most one, at a cost. */
static ap_id random_matrix(struct ap_ctx *ctx, uint64_t *seed, struct table *t, uint32_t rows, uint32_t cols,
	bool tie)
{
	double *cost = random_costs(ctx, seed, (size_t)rows * cols, 6);
	uint32_t shift = (uint32_t)random_below(seed, cols);

	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < cols; j++) {
			bool partner = rows >= cols ? j == (i + shift) % rows : i == (j + shift) % cols;

			if (tie ? !partner || random_below(seed, 8) == 0 : random_below(seed, 8) == 0)
				cost[(size_t)i * cols + j] = INFINITY;
		}
	return table_matrix(t, rows, cols, cost, random_below(seed, 2)
		? random_memory(ctx, seed, (size_t)rows * cols) : NULL);
}

static struct table *random_tied(struct ap_ctx *ctx, uint64_t *seed)
{
	struct table *t = table_create(ctx);
	uint32_t n = 2 + (uint32_t)random_below(seed, 6), edges = (uint32_t)random_below(seed, 2 * n) + 1;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 1 + (uint32_t)random_below(seed, 4);

		table_node(t, k, random_costs(ctx, seed, k, 9), random_below(seed, 3)
			? random_memory(ctx, seed, k) : NULL);
	}
	for (uint32_t i = 0; i < edges; i++) {
		ap_id u = (ap_id)random_below(seed, n), v = (ap_id)random_below(seed, n);

		if (u != v)
			table_edge(t, u, v, random_matrix(ctx, seed, t, t->node[u].k, t->node[v].k,
				random_below(seed, 2)));
	}
	if (random_below(seed, 2))
		t->p.memory_limit = (int64_t)random_below(seed, 6 * n);
	return t;
}

/* Of equal optima the smallest, so that the order of picks is held, too. */
START_TEST(the_rest_has_the_same_picks)
{
	uint64_t seed = random_seed();
	uint32_t tied = 0, found = 0;

	for (int i = 0; i < 3000; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct table *t = random_tied(&ctx, &seed);
		struct ap_choice whole = solve(&ctx, "brute_force", &t->p), rest;
		struct ap_tied out = {0};
		uint32_t *pick, *narrow;

		if (ap_tied_make(&ctx, &t->p, &out)) {
			tied++;
			ck_assert_uint_lt(out.p.n, t->p.n);
			rest = solve(&ctx, "brute_force", &out.p);
			ck_assert_int_eq(rest.outcome, whole.outcome);
			if (whole.pick) {
				found++;
				ck_assert_double_eq(rest.cost, whole.cost);
				ck_assert_int_eq(rest.memory, whole.memory);
				pick = AP_NEW_N(ctx.arena, uint32_t, t->p.n);
				narrow = AP_NEW_N(ctx.arena, uint32_t, out.p.n);
				ap_tied_expand(&out, &t->p, rest.pick, pick);
				ck_assert_mem_eq(pick, whole.pick, t->p.n * sizeof *pick);
				ap_tied_narrow(&out, pick, narrow);
				ck_assert_mem_eq(narrow, rest.pick, out.p.n * sizeof *narrow);
			}
		}
		ctx_destroy(&ctx);
	}
	ck_assert_uint_gt(tied, 500);
	ck_assert_uint_gt(found, 200);
}
END_TEST

/* Layers of a dozen operators, each cut as in the first layer: far too wide for tables, were it not for that. */
START_TEST(layers_cut_alike_are_one)
{
	enum { LAYERS = 40, OPERATORS = 12, CUTS = 30 };
	static const char *const engine[] = {"auto", "dynamic_programming"};
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	uint64_t seed = random_seed();
	double *tie = AP_NEW_N(ctx.arena, double, CUTS * CUTS);
	const double *own[OPERATORS];
	int64_t *memory[OPERATORS];
	ap_id same, next[OPERATORS];
	struct ap_choice c, rest;
	struct ap_tied out;

	for (size_t i = 0; i < CUTS * CUTS; i++)
		tie[i] = i % (CUTS + 1) ? INFINITY : 0;
	same = table_matrix(t, CUTS, CUTS, tie, NULL);
	for (int o = 0; o < OPERATORS; o++) {
		own[o] = random_costs(&ctx, &seed, CUTS, 50);
		memory[o] = random_memory(&ctx, &seed, CUTS);
		next[o] = table_matrix(t, CUTS, CUTS, random_costs(&ctx, &seed, CUTS * CUTS, 20), NULL);
	}
	for (int l = 0; l < LAYERS; l++)
		for (int o = 0; o < OPERATORS; o++) {
			ap_id node = table_node(t, CUTS, own[o], memory[o]);

			if (node)
				table_edge(t, node - 1, node, next[o]);
			if (l)
				table_edge(t, (ap_id)o, node, same);
		}
	t->p.memory_limit = LAYERS * OPERATORS;
	ck_assert(ap_tied_make(&ctx, &t->p, &out));
	ck_assert_uint_eq(out.p.n, OPERATORS);
	ck_assert_uint_eq(out.p.nedge, OPERATORS);
	rest = solve(&ctx, "dynamic_programming", &out.p);
	ck_assert_int_eq(rest.outcome, AP_OUT_OPTIMAL);
	for (size_t i = 0; i < AP_COUNT(engine); i++) {
		c = solve(&ctx, engine[i], &t->p);
		ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
		ck_assert_double_eq(c.cost, rest.cost);
		ck_assert_double_eq(ap_problem_cost(&t->p, c.pick), c.cost);
		ck_assert_int_eq(ap_problem_memory(&t->p, c.pick), c.memory);
		ck_assert_int_le(c.memory, t->p.memory_limit);
	}
	ctx_destroy(&ctx);
}
END_TEST
