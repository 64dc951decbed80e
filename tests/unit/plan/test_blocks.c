/* SPDX-License-Identifier: Apache-2.0 */
/* Where one block of a part ends and the next begins. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cost/task.h"
#include "fixture.h"
#include "plan/blocks.h"
#include "unit.h"

/* A chain of Adds with a bias each, cells by letter: 0 to 9 are layers, what else is none. */
static const char *chain(struct fixture *f, const char *cells)
{
	int n = (int)strlen(cells);
	struct ap_str t;

	ap_str_init(&t, f->ctx.arena);
	ap_str_add(&t, "{'schema':'autopar-graph/1','name':'chain','inputs':[{'name':'x0','shape':[16,8],"
		"'dtype':'float32','batch_dim':0}],'parameters':[");
	for (int i = 0; i < n; i++)
		ap_str_addf(&t, "%s{'name':'b%d','shape':[8],'dtype':'float32'}", i ? "," : "", i);
	ap_str_add(&t, "],'operators':[");
	for (int i = 0; i < n; i++)
		ap_str_addf(&t, "{'name':'op%d','type':'Add','inputs':['x%d','b%d'],'cell':'net%s%c',"
			"'outputs':[{'name':'x%d'}]},", i, i, i, strchr("0123456789", cells[i]) ? ".layers." : "",
			cells[i], i + 1);
	ap_str_addf(&t, "{'name':'loss','type':'ReduceMean','inputs':['x%d'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}", n);
	return t.s;
}

/* A letter for each operator's block, from a on. */
static const char *blocks_of(struct fixture *f, const char *cells, struct ap_blocks *b)
{
	const struct ap_task *task;
	struct ap_str s;

	fixture_graph(f, chain(f, cells));
	ap_tasks_make(&f->ctx, f->graph, &f->step, &task);
	ap_blocks_make(&f->ctx, f->graph, &f->step, task, b);
	ap_str_init(&s, f->ctx.arena);
	for (ap_id i = 0; i < f->graph->nnode; i++)
		ap_str_addf(&s, "%c", (char)('a' + (int)b->of[i]));
	return s.s;
}

START_TEST(a_layer_is_a_block)
{
	static const struct {
		const char *cells, *blocks; /* the loss stands behind */
		int32_t layer[5];
	} cases[] = {
		{"0011", "aabbc", {0, 1, -1}},
		{"ee0011h", "aabbccdd", {-1, 0, 1, -1}},
		{"0m01", "aaabc", {0, 1, -1}}, /* in the middle of a layer */
		{"0m1", "abcd", {0, -1, 1, -1}}, /* between two */
		{"3359", "aabcd", {0, 1, 2, -1}},
		{"01012", "aaaabc", {0, 2, -1}}, /* in turns */
		{"0m10m1", "aaaaaab", {0, -1}},
		{"ehm", "aaaa", {-1}}, /* no layers */
		{"00", "aaa", {-1}}, /* one is no family */
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct fixture f;
		struct ap_blocks b;
		const char *is;

		fixture_open(&f, 1, 1, "a100-80");
		is = blocks_of(&f, cases[i].cells, &b);
		ck_assert_msg(strcmp(is, cases[i].blocks) == 0, "%s: %s, expected %s", cases[i].cells, is,
			cases[i].blocks);
		ck_assert_uint_eq(b.n, (uint32_t)(is[strlen(is) - 1] - 'a' + 1));
		for (uint32_t k = 0; k < b.n; k++) {
			ck_assert_int_eq(b.layer[k], cases[i].layer[k]);
			ck_assert_int_eq(b.part[k], 0);
		}
		fixture_close(&f);
	}
}
END_TEST

START_TEST(layers_that_are_recomputed_together_are_one)
{
	struct fixture f;
	struct ap_blocks b;

	fixture_open(&f, 1, 1, "a100-80");
	f.step.executor = AP_EXECUTOR_GENERIC;
	f.step.recompute = AP_RECOMPUTE_FULL;
	f.step.recompute_whole = true;
	f.step.recompute_unit = 2;
	ck_assert_str_eq(blocks_of(&f, "e0011223344h", &b), "abbbbccccddee");
	ck_assert_int_eq(b.layer[1], 0);
	ck_assert_int_eq(b.layer[2], 2);
	ck_assert_int_eq(b.layer[3], 4);
	fixture_close(&f);
}
END_TEST
