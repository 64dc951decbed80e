/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's propagation of strategies, rule by rule, by examples that are worked out by hand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "fixture.h"
#include "plan/drive.h"
#include "plan/propagation.h"
#include "shard/space.h"

/* The network of the r1.7 page on sharding_propagation: dense1, relu, dense2. */
#define FFN \
	"{'schema':'autopar-graph/1','name':'ffn'," \
	"'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w1','shape':[64,64],'dtype':'float32'}," \
	"{'name':'b1','shape':[64],'dtype':'float32'}," \
	"{'name':'w2','shape':[64,64],'dtype':'float32'}," \
	"{'name':'b2','shape':[64],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'matmul1','type':'MatMul','inputs':['x','w1'],'outputs':[{'name':'a'}]}," \
	"{'name':'add1','type':'Add','inputs':['a','b1'],'outputs':[{'name':'b'}]}," \
	"{'name':'relu','type':'ReLU','inputs':['b'],'outputs':[{'name':'c'}]}," \
	"{'name':'matmul2','type':'MatMul','inputs':['c','w2'],'outputs':[{'name':'d'}]}," \
	"{'name':'add2','type':'Add','inputs':['d','b2'],'outputs':[{'name':'e'}]}]," \
	"'outputs':['e']}"

struct given { /* a configured operator */
	const char *name, *cut;
};

static const int32_t **held_of(struct fixture *f, const struct given *given, size_t n)
{
	const int32_t **held = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (size_t i = 0; i < n; i++) {
		ap_id node = fixture_node(f, given[i].name);
		int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

		fixture_counts(f, node, given[i].cut, count);
		held[node] = count;
	}
	return held;
}

/* Opens a machine, propagates; the counts of all operators. */
static const int32_t *const *propagate(struct fixture *f, const struct given *given, size_t n)
{
	const int32_t *const *out;

	ck_assert_int_eq(ap_propagation_complete(&f->ctx, f->graph, f->machine, &f->step,
		held_of(f, given, n), &out), AP_OK);
	for (ap_id i = 0; i < f->graph->nnode; i++)
		ck_assert(ap_space_legal(&f->ctx, &f->graph->node[i].bound, out[i], f->machine->ndev,
			&f->step, NULL));
	return out;
}

/* "(2,4)(4)": the strategy as shard() takes it. */
static const char *strategy(struct fixture *f, const int32_t *const *counts, const char *name)
{
	static char text[200];
	ap_id node = fixture_node(f, name);
	struct ap_placement p;
	uint8_t rank[8];
	int32_t cut[8][AP_MAX_RANK];
	uint32_t n;
	char *to = text;

	ap_placement_make(&f->graph->node[node].bound, counts[node], f->machine->ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, 8);
	for (uint32_t v = 0; v < n; v++) {
		to += sprintf(to, "(");
		for (int d = 0; d < rank[v]; d++)
			to += sprintf(to, d ? ",%d" : "%d", (int)cut[v][d]);
		to += sprintf(to, ")");
	}
	return text;
}

static void open(struct fixture *f, int64_t ndev, const char *graph)
{
	fixture_open(f, ndev, ndev, "a100-80");
	fixture_graph(f, graph);
}

START_TEST(what_mindspore_printed)
{
	static const struct given given[] = {{"matmul1", "m=2 n=4"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, FFN);
	f.step.fully_use = true; /* the default of 1.7 */
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "matmul1"), "(2,1)(1,4)");
	ck_assert_str_eq(strategy(&f, out, "add1"), "(2,4)(4)");
	ck_assert_str_eq(strategy(&f, out, "relu"), "(2,4)");
	ck_assert_str_eq(strategy(&f, out, "matmul2"), "(2,4)(4,1)");
	ck_assert_str_eq(strategy(&f, out, "add2"), "(2,4)(4)");
	fixture_close(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("propagation");
	TCase *t = tcase_create("propagation");
	SRunner *r;
	int failed;

	tcase_add_test(t, what_mindspore_printed);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
