/* SPDX-License-Identifier: Apache-2.0 */
/* Each exact engine on problems whose answer is known. */
#include "search_unit.h"

/* The exact rows of engines.def, one after the other; NULL: the first, or none is left. */
static const struct ap_engine *next_exact(const struct ap_engine *e)
{
	size_t i = e ? (size_t)(e - ap_engine_at(0)) + 1 : 0;
	while ((e = ap_engine_at(i++)) && !(e->flags & AP_ENGINE_EXACT))
		;
	return e;
}

START_TEST(engines_are_found_by_name)
{
	static const char *const exact[] = {"dynamic_programming", "integer_programming", "brute_force"};

	for (size_t i = 0; i < AP_COUNT(exact); i++) {
		const struct ap_engine *e = ap_engine_find(exact[i]);

		ck_assert_ptr_nonnull(e);
		ck_assert(e->flags & AP_ENGINE_EXACT);
		ck_assert(e->flags & AP_ENGINE_MEMORY);
	}
	for (size_t i = 0; ap_engine_at(i); i++)
		ck_assert_ptr_eq(ap_engine_find(ap_engine_at(i)->name), ap_engine_at(i));
	ck_assert_ptr_null(ap_engine_find("dynamic"));
	ck_assert_ptr_null(ap_engine_at(1000));
}
END_TEST

/* pick: the smallest of the optima, of n nodes. */
static void expect(const struct ap_engine *e, const struct ap_choice *c, double cost, const uint32_t *pick,
	uint32_t n)
{
	ck_assert_msg(c->outcome == AP_OUT_OPTIMAL, "%s: outcome %d", e->name, c->outcome);
	if (strcmp(e->name, "auto") != 0) /* it names the engine that answered */
		ck_assert_str_eq(c->engine, e->name);
	ck_assert_double_eq(c->cost, cost);
	ck_assert_double_eq(c->lower_bound, cost);
	for (uint32_t i = 0; i < n && e->flags & AP_ENGINE_SMALLEST; i++)
		ck_assert_msg(c->pick[i] == pick[i], "%s: node %u is %u", e->name, i, c->pick[i]);
}

START_TEST(nothing_to_choose)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		expect(e, &c, 0, NULL, 0);
	}
	table_node(t, 1, (double[]){5}, NULL);
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		expect(e, &c, 5, (uint32_t[]){0}, 1);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* A source that three consumers read: its choice is made once for all of them. Each consumer alone
 * would like another one; folding the source into the first consumer would lose that. */
START_TEST(a_source_with_several_consumers)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double even[] = {0, 0, 0}, one[] = {1};
	static const double like[3][3] = {{0, 5, 2}, {5, 0, 2}, {5, 5, 2}};
	ap_id source = table_node(t, 3, even, NULL);
	for (int i = 0; i < 3; i++)
		table_edge(t, source, table_node(t, 1, one, NULL),
			table_matrix(t, 3, 1, like[i], NULL));
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		expect(e, &c, 3 + 6, (uint32_t[]){2, 0, 0, 0}, 4);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* A triangle in which every pair can agree at no cost, but not all three. */
START_TEST(a_triangle)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {0, 0}, equal[] = {0, 7, 7, 0}, unequal[] = {4, 0, 0, 6};
	for (int i = 0; i < 3; i++)
		table_node(t, 2, own, NULL);
	ap_id same = table_matrix(t, 2, 2, equal, NULL), differ = table_matrix(t, 2, 2, unequal, NULL);
	table_edge(t, 0, 1, same);
	table_edge(t, 1, 2, same);
	table_edge(t, 2, 0, differ);
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		expect(e, &c, 4, (uint32_t[]){0, 0, 0}, 3);
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(ties_fall_to_the_smallest_choice)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double even[] = {1, 1, 1}, unlike[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
	ap_id m = table_matrix(t, 3, 3, unlike, NULL);
	for (uint32_t i = 0; i < 9; i++)
		table_node(t, 3, even, NULL);
	for (uint32_t i = 0; i < 8; i++) /* joined in an order that is not theirs */
		table_edge(t, i * 4 % 9, (i + 1) * 4 % 9, m);
	struct ap_choice want = solve(&ctx, "brute_force", &t->p);
	ck_assert_double_eq(want.cost, 9);
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice got = solve(&ctx, e->name, &t->p);
		expect(e, &got, 9, want.pick, 9);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* Two nodes that would rather be large; the limit lets one of them. */
START_TEST(a_memory_limit)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double cost[] = {9, 2}, free[] = {0, 0, 0, 0};
	static const int64_t memory[] = {1, 10}, extra[] = {0, 0, 3, 0};
	table_node(t, 2, cost, memory);
	table_node(t, 2, cost, memory);
	table_edge(t, 0, 1, table_matrix(t, 2, 2, free, extra));
	static const struct {
		int64_t limit;
		double cost;
		uint32_t pick[2];
	} cases[] = {{20, 4, {1, 1}}, {19, 11, {0, 1}}, {14, 11, {0, 1}}, {11, 11, {0, 1}},
		{10, 18, {0, 0}}, {2, 18, {0, 0}}};
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		for (size_t j = 0; j < AP_COUNT(cases); j++) {
			t->p.memory_limit = cases[j].limit;
			struct ap_choice c = solve(&ctx, e->name, &t->p);
			expect(e, &c, cases[j].cost, cases[j].pick, 2);
		}
		t->p.memory_limit = 1;
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
		ck_assert_int_eq(c.least_memory, 2);
		ck_assert_ptr_null(c.pick);
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(everything_forbidden)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {1, 2};
	double never[] = {INFINITY, INFINITY, INFINITY, INFINITY};
	table_node(t, 2, own, NULL);
	table_node(t, 2, own, NULL);
	table_edge(t, 0, 1, table_matrix(t, 2, 2, never, NULL));
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
		ck_assert_int_eq(c.least_memory, -1);
	}
	never[2] = 0;
	for (const struct ap_engine *e = NULL; (e = next_exact(e));) {
		struct ap_choice c = solve(&ctx, e->name, &t->p);
		expect(e, &c, 3, (uint32_t[]){1, 0}, 2);
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(brute_force_refuses_what_it_cannot_finish)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	struct ap_choice c;
	static const double own[] = {1, 2};
	for (int i = 0; i < 10; i++)
		table_node(t, 2, own, NULL);
	ap_engine_find("brute_force")->solve(&ctx, &t->p, &(struct ap_budget){.work = 1023}, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_LIMIT);
	ck_assert_double_eq(c.lower_bound, 10);
	ap_engine_find("brute_force")->solve(&ctx, &t->p, &(struct ap_budget){.work = 1024}, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ctx_destroy(&ctx);
}
END_TEST

/* Twenty nodes, each joined to each: no table for that, but a pick and a bound. */
static struct table *dense(struct ap_ctx *ctx)
{
	struct table *t = table_create(ctx);
	uint64_t seed = 7;
	for (ap_id v = 0; v < 20; v++) {
		table_node(t, 4, random_costs(ctx, &seed, 4, 9), NULL);
		for (ap_id u = 0; u < v; u++) {
			ap_id m = t->p.nmatrix < MAX_MATRICES ?
				table_matrix(t, 4, 4, random_costs(ctx, &seed, 16, 9), NULL) :
				(ap_id)random_below(&seed, MAX_MATRICES);
			table_edge(t, u, v, m);
		}
	}
	return t;
}

START_TEST(too_wide_for_tables)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = dense(&ctx);
	struct ap_choice small, large;
	const struct ap_engine *dp = ap_engine_find("dynamic_programming");
	dp->solve(&ctx, &t->p, &(struct ap_budget){.table_bytes = 20000}, &small);
	dp->solve(&ctx, &t->p, &(struct ap_budget){.table_bytes = 2000000}, &large);
	ck_assert_int_eq(small.outcome, AP_OUT_FEASIBLE);
	ck_assert_double_eq(small.cost, ap_problem_cost(&t->p, small.pick));
	ck_assert_double_lt(small.lower_bound, small.cost);
	ck_assert_double_gt(large.lower_bound, small.lower_bound);
	ck_assert_double_le(large.lower_bound, small.cost);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(stopping_leaves_a_pick)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = dense(&ctx);
	static const volatile sig_atomic_t stop = 1;
	ctx.stop = &stop;
	struct ap_choice c = solve(&ctx, "dynamic_programming", &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert_double_eq(c.cost, ap_problem_cost(&t->p, c.pick));
	c = solve(&ctx, "brute_force", &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_work_limit_is_deterministic)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = dense(&ctx);
	struct ap_choice a, b;
	const struct ap_engine *dp = ap_engine_find("dynamic_programming");
	dp->solve(&ctx, &t->p, &(struct ap_budget){.work = 100000}, &a);
	dp->solve(&ctx, &t->p, &(struct ap_budget){.work = 100000}, &b);
	ck_assert_int_eq(a.outcome, AP_OUT_FEASIBLE);
	ck_assert_uint_le(a.work, 100000);
	ck_assert_uint_eq(a.work, b.work);
	ck_assert_double_eq(a.lower_bound, b.lower_bound);
	ck_assert_mem_eq(a.pick, b.pick, t->p.n * sizeof *a.pick);
	ctx_destroy(&ctx);
}
END_TEST
