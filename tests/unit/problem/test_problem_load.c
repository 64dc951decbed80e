/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "problem_unit.h"

#define HEAD "{'schema': 'autopar-problem/1', "

static const char example[] = HEAD "'memory_limit': 7, 'nodes': ["
	"{'name': 'a', 'cost': [1.0, 2.5], 'memory': [4, 2], 'fixed': true},"
	"{'name': 'b', 'cost': [0, null, 3]}],"
	"'edges': [{'from': 0, 'to': 1, 'matrix': 0}],"
	"'matrices': [{'rows': 2, 'cols': 3, 'cost': [0, 1, 2, null, 4, 5],"
	" 'memory': [0, 0, 0, 1, 0, 0]}]}";

START_TEST(every_field_is_read)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, example);
	ck_assert_uint_eq(p->n, 2);
	ck_assert_str_eq(p->node[1].name, "b");
	ck_assert_uint_eq(p->node[1].k, 3);
	ck_assert_double_eq(p->node[0].cost[1], 2.5);
	ck_assert_int_eq(p->node[0].memory[1], 2);
	ck_assert_ptr_null(p->node[1].memory);
	ck_assert(p->node[0].fixed);
	ck_assert(!p->node[1].fixed);
	ck_assert(isinf(p->node[1].cost[1]));
	ck_assert_uint_eq(p->nedge, 1);
	ck_assert_uint_eq(p->edge[0].v, 1);
	ck_assert_double_eq(p->matrix[0].cost[5], 5);
	ck_assert(isinf(p->matrix[0].cost[3]));
	ck_assert_int_eq(p->matrix[0].memory[3], 1);
	ck_assert_int_eq(p->memory_limit, 7);
	ck_assert_double_eq(p->quantum, 0.5);
	ck_assert_ptr_null(p->given);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(cost_and_memory_of_a_pick)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, example);
	ck_assert_double_eq(ap_problem_cost(p, (uint32_t[]){1, 2}), 2.5 + 3 + 5);
	ck_assert_double_eq(ap_problem_cost(p, (uint32_t[]){1, 0}), INFINITY);
	ck_assert_int_eq(ap_problem_memory(p, (uint32_t[]){0, 2}), 4);
	ck_assert_int_eq(ap_problem_memory(p, (uint32_t[]){1, 0}), 2 + 1);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(equal_matrices_become_one)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, HEAD "'memory_limit': null, 'nodes': ["
		"{'name': 'a', 'cost': [1, 2]}, {'name': 'b', 'cost': [1, 2]}],"
		"'edges': [{'from': 0, 'to': 1, 'matrix': 2}, {'from': 1, 'to': 0, 'matrix': 1},"
		" {'from': 0, 'to': 1, 'matrix': 0}], 'matrices': ["
		"{'rows': 2, 'cols': 2, 'cost': [1, 2, 3, 4]},"
		"{'rows': 2, 'cols': 2, 'cost': [1, 2, 3, 4], 'memory': [0, 0, 0, 1]},"
		"{'rows': 2, 'cols': 2, 'cost': [1, 2, 3, 4.0]}]}");
	ck_assert_uint_eq(p->nmatrix, 2);
	ck_assert_uint_eq(p->edge[0].matrix, 0);
	ck_assert_uint_eq(p->edge[1].matrix, 1);
	ck_assert_uint_eq(p->edge[2].matrix, 0);
	ck_assert_int_eq(p->memory_limit, AP_NO_LIMIT);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(costs_that_are_no_common_multiples_are_rounded)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, HEAD "'memory_limit': null, 'nodes': ["
		"{'name': 'a', 'cost': [0.1, -1000.7]}, {'name': 'b', 'cost': [1e-30]}],"
		"'edges': [], 'matrices': []}");
	ck_assert_ptr_nonnull(p->given);
	ck_assert_double_eq(p->given->node[0].cost[0], 0.1);
	ck_assert_double_eq(p->quantum, 0x1p-42); /* 1000.7 < 2^10 */
	for (uint32_t c = 0; c < 2; c++) {
		double q = p->node[0].cost[c] / p->quantum;
		ck_assert_double_eq(q, floor(q));
		ck_assert_double_le(fabs(p->node[0].cost[c] - p->given->node[0].cost[c]),
			p->quantum / 2);
	}
	ck_assert_double_eq(p->node[1].cost[0], 0);
	ck_assert_double_eq(p->given->node[1].cost[0], 1e-30);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(a_node_may_list_its_finer_cuts)
{
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_problem *p = load_problem(&ctx, HEAD "'memory_limit': null, 'nodes': ["
		"{'name': 'a', 'cost': [1, 2, 3], 'next': [[1, 2], [-1, -1], [-1, 0]]},"
		"{'name': 'b', 'cost': [1], 'next': [[]]}, {'name': 'c', 'cost': [1]}],"
		"'edges': [], 'matrices': []}");
	static const int32_t next[] = {1, 2, -1, -1, -1, 0};
	ck_assert_uint_eq(p->node[0].nway, 2);
	ck_assert_mem_eq(p->node[0].next, next, sizeof next);
	ck_assert_uint_eq(p->node[1].nway, 0);
	ck_assert_ptr_nonnull(p->node[1].next);
	ck_assert_ptr_null(p->node[2].next);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(unknown_keys_are_warned_of)
{
	struct ap_ctx ctx = ctx_create(false);
	load_problem(&ctx, HEAD "'memory_limt': 3, 'nodes': [{'name': 'a', 'cost': [1], 'kost': 2}],"
		"'edges': [], 'matrices': []}");
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 2);
	ck_contains(messages(&ctx), "memory_limt");
	ck_contains(messages(&ctx), "[key-unknown]");
	ctx_destroy(&ctx);
}
END_TEST

#define NODES(n) "'memory_limit': null, 'nodes': [" n "], 'edges': [], 'matrices': []}"
#define EDGES(e, m) \
	"'memory_limit': null, 'nodes': [{'name': 'a', 'cost': [1, 2]}, {'name': 'b', 'cost': [1]}]," \
	"'edges': [" e "], 'matrices': [" m "]}"
#define M21 "{'rows': 2, 'cols': 1, 'cost': [1, 2]}"

static const struct {
	const char *text, *check, *where;
} bad[] = {
	{"{'schema': 'autopar-problem/2'}", "schema-known", "/schema"},
	{HEAD "'nodes': [], 'edges': []}", "key-missing", ""},
	{HEAD NODES("{'name': 'a', 'cost': []}"), "problem-size", "/nodes/0/cost"},
	{HEAD NODES("{'name': 'a', 'cost': [1, '2']}"), "problem-number", "/nodes/0/cost/1"},
	{HEAD NODES("{'cost': [1]}"), "key-missing", "/nodes/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1], 'memory': [1, 2]}"), "problem-size",
		"/nodes/0/memory"},
	{HEAD NODES("{'name': 'a', 'cost': [1], 'memory': [1.5]}"), "problem-number",
		"/nodes/0/memory/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1], 'memory': [1e17]}"), "problem-number",
		"/nodes/0/memory/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [[1]]}"), "problem-size",
		"/nodes/0/next"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [[1], []]}"), "problem-size",
		"/nodes/0/next/1"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [1, -1]}"), "problem-size",
		"/nodes/0/next/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [[1], [-2]]}"), "problem-index",
		"/nodes/0/next/1/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [[1], [0.5]]}"), "problem-index",
		"/nodes/0/next/1/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1, 2], 'next': [[1], [2]]}"), "problem-index",
		"/nodes/0/next/1/0"},
	{HEAD NODES("{'name': 'a', 'cost': [1e308]}, {'name': 'b', 'cost': [1e308]}"),
		"problem-range", ""},
	{HEAD NODES("{'name': 'a', 'cost': [1], 'memory': [9007199254740992]},"
		    "{'name': 'b', 'cost': [1], 'memory': [1]}"), "problem-range", ""},
	{HEAD EDGES("{'from': 0, 'to': 1, 'matrix': 0}", "{'rows': 2, 'cols': 1, 'cost': [1]}"),
		"problem-size", "/matrices/0/cost"},
	{HEAD EDGES("{'from': 1, 'to': 0, 'matrix': 0}", M21), "problem-size", "/edges/0"},
	{HEAD EDGES("{'from': 0, 'to': 0, 'matrix': 0}", M21), "problem-self-edge", "/edges/0"},
	{HEAD EDGES("{'from': 0, 'to': 2, 'matrix': 0}", M21), "key-range", "/edges/0/to"},
	{HEAD EDGES("{'from': -1, 'to': 1, 'matrix': 0}", M21), "key-range", "/edges/0/from"},
	{HEAD EDGES("{'from': 0, 'to': 1, 'matrix': 1}", M21), "key-range", "/edges/0/matrix"},
};

START_LOOP_TEST(a_bad_problem_is_refused_where_it_is_bad, AP_COUNT(bad))
{
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_problem *p;
	char where[80], check[40];
	ck_assert_int_eq(try_problem(&ctx, bad[_i].text, &p), AP_MEANING);
	snprintf(where, sizeof where, ": %s", bad[_i].where);
	snprintf(check, sizeof check, "[%s]", bad[_i].check);
	ck_contains(messages(&ctx), where);
	ck_contains(messages(&ctx), check);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(all_bad_nodes_are_reported)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_problem *p;
	ck_assert_int_eq(try_problem(&ctx, HEAD NODES("{'name': 'a', 'cost': []},"
		"{'name': 'b', 'cost': [true]}, {'name': 'c', 'cost': [1]}"), &p), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 2);
	ctx_destroy(&ctx);
}
END_TEST
