/* SPDX-License-Identifier: Apache-2.0 */
/* Propagation from fixed nodes, on tables small enough to follow by hand. */
#include "search_unit.h"

static const char engine[] = "sharding_propagation";

static void fix(struct table *t, ap_id v)
{
	t->node[v].fixed = true;
}

static void expect(const struct ap_choice *c, enum ap_outcome outcome, double cost,
	const uint32_t *pick, uint32_t n)
{
	ck_assert_str_eq(c->engine, engine);
	ck_assert_int_eq(c->outcome, outcome);
	ck_assert_double_eq(c->cost, cost);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_msg(c->pick[i] == pick[i], "node %u is %u", i, c->pick[i]);
}

/* Moving costs 10, staying nothing: what is fixed spreads both ways, dear as it is. */
START_TEST(spreads_both_ways)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double dear[] = {1, 20, 1}, one[] = {0}, stay[] = {0, 10, 10, 10, 0, 10, 10, 10, 0};
	static const double from_one[] = {10, 0, 10};
	ap_id move = table_matrix(t, 3, 3, stay, NULL), out = table_matrix(t, 1, 3, from_one, NULL);
	ap_id in = table_matrix(t, 3, 1, from_one, NULL);
	for (int i = 0; i < 5; i++)
		table_node(t, i == 2 ? 1 : 3, i == 2 ? one : dear, NULL);
	table_edge(t, 0, 1, move);
	table_edge(t, 1, 2, in);
	table_edge(t, 2, 3, out);
	table_edge(t, 3, 4, move);
	fix(t, 2);
	struct ap_choice c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_FEASIBLE, 80, (uint32_t[]){1, 1, 0, 1, 1}, 5);
	ck_assert_double_eq(c.lower_bound, 4);
	ctx_destroy(&ctx);
}
END_TEST

/* Candidates 1, 2 and 3 are as near; 2 and 3 are the cheapest of them, 2 comes first. */
START_TEST(ties_fall_to_own_cost_then_order)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {0, 7, 5, 5}, toll[] = {1, 0, 0, 0}, one[] = {0};
	ap_id start = table_node(t, 1, one, NULL), end = table_node(t, 4, own, NULL);
	table_edge(t, start, end, table_matrix(t, 1, 4, toll, NULL));
	fix(t, start);
	struct ap_choice c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_FEASIBLE, 5, (uint32_t[]){0, 2}, 2);
	ctx_destroy(&ctx);
}
END_TEST

/* source -> left, source -> right -> far; left and far -> sum. The sum waits for far, though left is
 * there first: with both in sight 1 is nearer (3 against 5 + 0), from left alone it would be 0. */
START_TEST(a_sum_waits_for_all_its_terms)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double one[] = {0}, both[] = {0, 0}, none[] = {0};
	static const double left_sum[] = {0, 3}, far_sum[] = {5, 0};
	ap_id flat = table_matrix(t, 1, 1, none, NULL);
	for (int i = 0; i < 4; i++)
		table_node(t, 1, one, NULL);
	ap_id sum = table_node(t, 2, both, NULL);
	table_edge(t, 0, 1, flat);
	table_edge(t, 0, 2, flat);
	table_edge(t, 1, sum, table_matrix(t, 1, 2, left_sum, NULL));
	table_edge(t, 2, 3, flat);
	table_edge(t, 3, sum, table_matrix(t, 1, 2, far_sum, NULL));
	fix(t, 0);
	struct ap_choice c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_FEASIBLE, 3, (uint32_t[]){0, 0, 0, 0, 1}, 5);
	ctx_destroy(&ctx);
}
END_TEST

/* Nothing is fixed: the first node takes its cheapest candidate, the others follow. */
START_TEST(without_anything_fixed)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double first[] = {3, 2}, second[] = {0, 100}, stay[] = {0, 50, 50, 0};
	table_node(t, 2, first, NULL);
	table_node(t, 2, second, NULL);
	table_edge(t, 0, 1, table_matrix(t, 2, 2, stay, NULL));
	struct ap_choice c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_FEASIBLE, 102, (uint32_t[]){1, 1}, 2);
	ck_assert_double_eq(solve(&ctx, "dynamic_programming", &t->p).cost, 3);
	ctx_destroy(&ctx);
}
END_TEST

/* One parameter, three users that must cut it alike; the last can only be 2. A table forbids; the
 * first user, far from the last, must not choose what the last cannot follow. */
START_TEST(equal_cuts_are_kept)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	const double n = INFINITY;
	const double alike[] = {0, n, n, n, 0, n, n, n, 0}, to_last[] = {n, n, 0};
	static const double one[] = {0}, own[] = {1, 2, 9}, pull[] = {0, 40, 40};
	ap_id start = table_node(t, 1, one, NULL);
	for (int i = 0; i < 2; i++)
		table_node(t, 3, own, NULL);
	table_node(t, 1, one, NULL);
	table_edge(t, start, 1, table_matrix(t, 1, 3, pull, NULL));
	table_edge(t, 1, 2, table_matrix(t, 3, 3, alike, NULL));
	table_edge(t, 1, 3, table_matrix(t, 3, 1, to_last, NULL));
	fix(t, start);
	struct ap_choice c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_FEASIBLE, 58, (uint32_t[]){0, 2, 2, 0}, 4);
	ctx_destroy(&ctx);
}
END_TEST

/* Three nodes, any two of which may differ or not as the pairs say, but 0 leads into a corner: it has
 * a partner at each of the others, and these two have none for one another. */
START_TEST(a_step_into_a_corner_is_taken_back)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	const double n = INFINITY, corner[] = {n, 0, 0, 0}, same[] = {0, n, n, 0};
	static const double own[] = {0, 5}, even[] = {0, 0};
	ap_id a = table_node(t, 2, own, NULL), b = table_node(t, 2, even, NULL);
	ap_id c = table_node(t, 2, even, NULL);
	ap_id like = table_matrix(t, 2, 2, same, NULL);
	table_edge(t, a, b, like);
	table_edge(t, a, c, like);
	table_edge(t, b, c, table_matrix(t, 2, 2, corner, NULL));
	struct ap_choice found = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(found.cost, 5);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(found.pick[i], 1);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(fixed_nodes_that_exclude_each_other)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	const double no[] = {INFINITY};
	static const double one[] = {0};
	for (int i = 0; i < 2; i++)
		fix(t, table_node(t, 1, one, NULL));
	table_edge(t, 0, 1, table_matrix(t, 1, 1, no, NULL));
	struct ap_choice c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ck_assert_int_eq(c.least_memory, -1);
	ctx_destroy(&ctx);
}
END_TEST

/* The engine looks at no memory: what does not fit is no plan, and nothing is proven. */
START_TEST(memory_decides_at_the_end)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {1, 2};
	static const int64_t bytes[] = {100, 1};
	table_node(t, 2, own, bytes);
	t->p.memory_limit = 99;
	struct ap_choice c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_LIMIT);
	t->p.memory_limit = 100;
	c = solve(&ctx, engine, &t->p);
	expect(&c, AP_OUT_OPTIMAL, 1, (uint32_t[]){0}, 1);
	ck_assert_int_eq(c.memory, 100);
	ctx_destroy(&ctx);
}
END_TEST

/* Each edge is looked at from both ends, a constant number of times. */
START_TEST(work_is_linear)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {3, 1, 2}, stay[] = {0, 4, 4, 4, 0, 4, 4, 4, 0};
	ap_id move = table_matrix(t, 3, 3, stay, NULL);
	for (uint32_t i = 0; i < MAX_NODES; i++) {
		table_node(t, 3, own, NULL);
		if (i > 0)
			table_edge(t, i - 1, i, move);
	}
	struct ap_choice c = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(c.cost, MAX_NODES);
	ck_assert_uint_le(c.work, 2 * 3 * MAX_NODES);
	struct ap_budget little = {.work = 100};
	ap_engine_find(engine)->solve(&ctx, &t->p, &little, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_LIMIT);
	ck_assert_ptr_null(c.pick);
	ctx_destroy(&ctx);
}
END_TEST
