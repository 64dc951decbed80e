/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "problem_unit.h"

static const char small[] = "{'schema': 'autopar-problem/1', 'memory_limit': 7, 'nodes': ["
	"{'name': 'a', 'cost': [1.5, 0], 'memory': [4, 2], 'next': [[1, -1], [-1, -1]]}, {'name': 'b', 'cost': [-2, null],"
	"'fixed': true}],"
	"'edges': [{'from': 1, 'to': 0, 'matrix': 0}],"
	"'matrices': [{'rows': 2, 'cols': 2, 'cost': [0, 3, null, 1], 'memory': [0, 1, 0, 0]}]}";

START_TEST(json_comes_back_as_it_was)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, small), *q = NULL;
	const char *text = written(&ctx, p, ap_problem_write_json);
	q = load_problem(&ctx, text);
	char a[65], b[65];
	ap_problem_hash(&ctx, p, a);
	ap_problem_hash(&ctx, q, b);
	ck_assert_str_eq(a, b);
	ck_assert_str_eq(text, written(&ctx, q, ap_problem_write_json));
	ck_contains(text, "{\"name\": \"b\", \"cost\": [-2, null], \"fixed\": true}");
	ck_contains(text, "\"memory\": [4, 2], \"next\": [[1, -1], [-1, -1]]}");
	ck_contains(text, "{\"from\": 1, \"to\": 0, \"matrix\": 0}");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(json_has_the_numbers_as_given)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, "{'schema': 'autopar-problem/1',"
		"'memory_limit': null, 'nodes': [{'name': 'a', 'cost': [0.1, 1e6]}],"
		"'edges': [], 'matrices': []}");
	ck_assert_ptr_nonnull(p->given);
	ck_contains(written(&ctx, p, ap_problem_write_json), "[0.1, 1000000]");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(the_hash_is_of_the_numbers_alone)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_problem p = *load_problem(&ctx, small);
	struct ap_pnode node[2] = {p.node[0], p.node[1]};
	double dearer[2] = {1.5, 0.5};
	char a[65], b[65];
	ap_problem_hash(&ctx, &p, a);
	ck_assert_uint_eq(strlen(a), 64);
	p.node = node;
	node[0].name = "another name";
	ap_problem_hash(&ctx, &p, b);
	ck_assert_str_eq(a, b);
	node[0].cost = dearer;
	ap_problem_hash(&ctx, &p, b);
	ck_assert_str_ne(a, b);
	node[0] = load_problem(&ctx, small)->node[0];
	p.memory_limit = AP_NO_LIMIT;
	ap_problem_hash(&ctx, &p, b);
	ck_assert_str_ne(a, b);
	ctx_destroy(&ctx);
}
END_TEST

static const char *solution(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_choice *c)
{
	struct ap_str text;
	ap_str_init(&text, ctx->arena);
	ap_choice_write_json(p, c, append_text, &text);
	return text.s;
}

START_TEST(a_solution_is_one_line)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, small);
	struct ap_choice c = {AP_OUT_OPTIMAL, "some", (uint32_t[]){1, 0}, 1, 1, 3, -1, 9,
		.ended = AP_ENDED_PROVEN};
	ck_assert_str_eq(solution(&ctx, p, &c), "{\"schema\":\"autopar-solution/1\","
		"\"engine\":\"some\",\"status\":\"optimal\",\"ended\":\"proven\",\"objective\":1,\"lower_bound\":1,"
		"\"memory\":3,\"choice\":[1,0]}\n");
	c.outcome = AP_OUT_FEASIBLE;
	c.lower_bound = -2;
	c.ended = AP_ENDED_WORK;
	ck_contains(solution(&ctx, p, &c), "\"status\":\"feasible\",\"ended\":\"work-limit\","
		"\"objective\":1,\"lower_bound\":-2,");
	c = (struct ap_choice){AP_OUT_INFEASIBLE, "some", NULL, INFINITY, INFINITY, 0, 12, 9,
		.ended = AP_ENDED_PROVEN};
	ck_assert_str_eq(solution(&ctx, p, &c), "{\"schema\":\"autopar-solution/1\","
		"\"engine\":\"some\",\"status\":\"infeasible\",\"ended\":\"proven\",\"objective\":null,"
		"\"lower_bound\":null,\"least_memory\":12,\"choice\":null}\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(the_objective_is_that_of_the_given_numbers)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, "{'schema': 'autopar-problem/1',"
		"'memory_limit': null, 'nodes': [{'name': 'a', 'cost': [0.1, 1e9]}],"
		"'edges': [], 'matrices': []}");
	double cost = p->node[0].cost[0];
	struct ap_choice c = {AP_OUT_OPTIMAL, "some", (uint32_t[]){0}, cost, cost, 0, -1, 1};
	ck_assert_double_ne(cost, 0.1);
	ck_contains(solution(&ctx, p, &c), "\"objective\":0.1,\"lower_bound\":0.1,");
	c.outcome = AP_OUT_FEASIBLE; /* the rounding is taken off the bound */
	c.lower_bound = cost;
	ck_assert(!strstr(solution(&ctx, p, &c), "\"lower_bound\":0.1,"));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(an_lp_file)
{
	struct ap_ctx ctx = ctx_create(true);
	ck_assert_str_eq(written(&ctx, load_problem(&ctx, small), ap_problem_write_lp),
		"Minimize\n"
		" cost: + 1.5 x_0_0 + 0 x_0_1 - 2 x_1_0 + 0 x_1_1 + 3 y_0_0_1 + 1 y_0_1_1\n"
		"Subject To\n"
		" one_0: + 1 x_0_0 + 1 x_0_1 = 1\n"
		" one_1: + 1 x_1_0 + 1 x_1_1 = 1\n"
		" row_0_0: + 1 y_0_0_0 + 1 y_0_0_1 - 1 x_1_0 = 0\n"
		" row_0_1: + 1 y_0_1_1 - 1 x_1_1 = 0\n"
		" col_0_0: + 1 y_0_0_0 - 1 x_0_0 = 0\n"
		" col_0_1: + 1 y_0_0_1 + 1 y_0_1_1 - 1 x_0_1 = 0\n"
		" memory: + 4 x_0_0 + 2 x_0_1 + 0 x_1_0 + 0 x_1_1 + 1 y_0_0_1 <= 7\n"
		"Bounds\n"
		" x_1_1 = 0\n"
		"Binary\n"
		" x_0_0\n"
		" x_0_1\n"
		" x_1_0\n"
		"End\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(small_costs_are_scaled_in_an_lp_file)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, "{'schema': 'autopar-problem/1',"
		"'memory_limit': null, 'nodes': [{'name': 'a', 'cost': [0.25, 0.125]}],"
		"'edges': [], 'matrices': []}");
	const char *text = written(&ctx, p, ap_problem_write_lp);
	ck_contains(text, "\\ costs are multiplied by 2^21\nMinimize\n cost_times_2_to_21:");
	ck_contains(text, "+ 524288 x_0_0 + 262144 x_0_1");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_wcsp_file)
{
	struct ap_ctx ctx = ctx_create(true);
	ck_assert_str_eq(written(&ctx, load_problem(&ctx, small), ap_problem_write_wcsp),
		"autopar:quantum=0.5:offset=-4 2 2 3 14\n" /* 3 + 4 + 6 + 1 */
		"2 2\n"
		"1 0 0 1\n"
		"0 3\n"
		"1 1 0 1\n"
		"1 14\n"
		"2 1 0 0 3\n"
		"0 1 6\n"
		"1 0 14\n"
		"1 1 2\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(picks_are_ordered_from_the_first_node_on)
{
	ck_assert(ap_pick_less((uint32_t[]){0, 9}, (uint32_t[]){1, 0}, 2));
	ck_assert(!ap_pick_less((uint32_t[]){1, 0}, (uint32_t[]){0, 9}, 2));
	ck_assert(!ap_pick_less((uint32_t[]){1, 0}, (uint32_t[]){1, 0}, 2));
}
END_TEST
