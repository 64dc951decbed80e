/* SPDX-License-Identifier: Apache-2.0 */
/* How semi_auto_parallel completes operators: MindSpore's batch strategy, and what follows it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "fixture.h"
#include "plan/follow.h"
#include "plan/pins.h"
#include "plan/semi_auto.h"
#include "shard/space.h"

/* "(2,1),(1,4)": the strategy that counts stand for. */
static const char *strategy(struct fixture *f, const char *name, const int32_t *const *counts)
{
	ap_id node = fixture_node(f, name);
	int32_t cut[8][AP_MAX_RANK];
	struct ap_placement p;
	uint8_t rank[8];
	struct ap_str s;
	uint32_t n;

	ck_assert_msg(counts[node] != NULL, "%s is not decided", name);
	ap_placement_make(&f->graph->node[node].bound, counts[node], f->machine->ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, 8);
	ap_str_init(&s, f->ctx.arena);
	for (uint32_t v = 0; v < n; v++) {
		ap_str_add(&s, v ? ",(" : "(");
		for (int d = 0; d < rank[v]; d++)
			ap_str_addf(&s, "%s%d", d ? "," : "", cut[v][d]);
		ap_str_addc(&s, ')');
	}
	return s.s;
}

static enum ap_status complete(struct fixture *f, const int32_t *const **counts)
{
	const int32_t *const *held;

	ck_assert_int_eq(ap_pins_make(&f->ctx, f->graph, f->machine->ndev, &f->step, NULL, &held),
		AP_OK);
	return ap_semi_auto_complete(&f->ctx, f->graph, f->machine, &f->step, held, counts);
}

/* The errors, a line each. */
static const char *errors(struct fixture *f)
{
	const char *check, *text;
	enum ap_level level;
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	for (size_t i = 0; (text = ap_diag_text(f->ctx.diag, i, &level, &check)); i++)
		if (level == AP_ERROR)
			ap_str_addf(&s, "%s\n", text);
	return s.s;
}

/* A graph of one operator of inputs with these types and shapes: "float32[8,6] int32[8]". */
static const char *one(struct fixture *f, const char *type, const char *inputs, const char *more)
{
	struct ap_str in, names;
	const char *p = inputs;

	ap_str_init(&in, f->ctx.arena);
	ap_str_init(&names, f->ctx.arena);
	for (int i = 0; *p; i++) {
		size_t dtype = strcspn(p, "["), shape = strcspn(p + dtype, " ");

		ap_str_addf(&in, "%s{'name':'i%d','dtype':'%.*s','shape':%.*s}", i ? "," : "", i,
			(int)dtype, p, (int)shape, p + dtype);
		ap_str_addf(&names, "%s'i%d'", i ? "," : "", i);
		p += dtype + shape;
		p += *p == ' ';
	}
	return ap_arena_printf(f->ctx.arena,
		"{'schema':'autopar-graph/1','name':'one','inputs':[%s],'operators':[{'name':'one',"
		"'type':'%s','inputs':[%s],%s}],'outputs':['y']}", in.s, type, names.s, more);
}

#define F "float32"
#define Y "'outputs':[{'name':'y'}]"
#define A(attrs) "'attrs':{" attrs "}," Y
#define YS(shape) "'outputs':[{'name':'y','dtype':'float32','shape':" shape "}]"
#define HALVES(axis) "'attrs':{'axis':" axis ",'output_num':2},'outputs':[{'name':'y'},{'name':'z'}]"

/* Facts of the reference, with numbers; refused: what is in the way. */
static const struct {
	int ndev;
	const char *type, *inputs, *more, *strategy, *refused;
} facts[] = {
	/* one common value: what divides the devices and the lengths */
	{8, "ReLU", F "[8,6]", Y, "(8,1)", NULL},
	{8, "ReLU", F "[32,6]", Y, "(8,1)", NULL},
	{8, "ReLU", F "[12,6]", Y, "(4,1)", NULL}, /* the rest repeats */
	{8, "ReLU", F "[7,8]", Y, "(1,1)", NULL},
	{8, "ReLU", F "[]", Y, "()", NULL},
	{6, "ReLU", F "[8,6]", Y, "(2,1)", NULL},
	{6, "ReLU", F "[9,6]", Y, "(3,1)", NULL},
	{12, "ReLU", F "[18,6]", Y, "(6,1)", NULL},
	{12, "ReLU", F "[8,12]", Y, "(4,1)", NULL},
	{1, "ReLU", F "[8,6]", Y, "(1,1)", NULL},
	/* dimension 0 also where it is the wrong one */
	{8, "Softmax", F "[8,6]", Y, "(8,1)", NULL},
	{8, "Softmax", F "[8,6]", A("'axis':0"), "(8,1)", "1 is allowed"},
	{8, "Softmax", F "[7,6]", A("'axis':0"), "(1,1)", NULL},
	{8, "ReduceSum", F "[8,6]", A("'axis':[0]"), "(8,1)", NULL},
	{8, "ReduceMean", F "[12,6]", Y, "(4,1)", NULL},
	{8, "Transpose", F "[8,6]", A("'perm':[1,0]"), "(8,1)", NULL},
	{8, "Tril", F "[8,8]", Y, "(8,1)", "1 is allowed"},
	/* two tensors */
	{8, "Sub", F "[32,1] " F "[32]", Y, "(8,1),(1)", NULL},
	{8, "Add", F "[6] " F "[8,6]", Y, "(1),(8,1)", NULL},
	{8, "Mul", F "[1,6] " F "[8,6]", Y, "(1,1),(8,1)", NULL},
	{8, "Mul", F "[1,8] " F "[1,8]", Y, "(1,1),(1,1)", NULL},
	{12, "Equal", F "[8,6] " F "[8,6]", Y, "(4,1),(4,1)", NULL},
	{8, "Lerp", F "[8,6] " F "[8,6] " F "[6]", Y, "(8,1),(8,1),(1)", NULL},
	/* products */
	{8, "MatMul", F "[16,6] " F "[6,4]", Y, "(8,1),(1,1)", NULL},
	{12, "MatMul", F "[5,24] " F "[5,6]", A("'transpose_a':true"), "(1,12),(1,1)", NULL},
	{8, "BatchMatMul", F "[8,2,6] " F "[8,6,4]", Y, "(8,1,1),(8,1,1)", NULL},
	{8, "BatchMatMul", F "[8,2,6] " F "[6,4]", Y, "(8,1,1),(1,1)", NULL},
	{8, "BatchMatMul", F "[2,6] " F "[8,6,4]", Y, "(1,1),(8,1,1)", NULL},
	{8, "BatchMatMul", F "[16,6] " F "[6,4]", Y, "(8,1),(1,1)", NULL},
	{8, "BatchMatMul", F "[1,2,6] " F "[8,6,4]", Y, "(1,1,1),(1,1,1)", NULL},
	{8, "BatchMatMul", F "[6,16] " F "[6,4]", A("'transpose_a':true"), "(2,1),(1,1)",
		"1 parts; 2 are allowed"},
	/* look-ups */
	{8, "Gather", F "[24,8] int32[10]", Y, "(1,1),(2)", NULL},
	{8, "Gather", F "[24,8] int32[16,3]", Y, "(1,1),(8,1)", NULL},
	{8, "Gather", F "[24,8] int32[]", Y, "(1,1),(8)",
		"vector 1 has 1 values; input 1 (\"i1\") has 0 dimensions"},
	{8, "GatherD", F "[8,6] int32[8,3]", A("'dim':1"), "(8,1),(8,1)", NULL},
	{8, "GatherD", F "[8,6] int32[8,6]", A("'dim':0"), "(1,1),(1,1)", NULL},
	{8, "OneHot", "int32[16]", A("'depth':24"), "(8,1),(),()", NULL},
	{8, "OneHot", "int32[12]", A("'depth':24"), "(1,1),(),()", NULL}, /* no common divisor */
	/* every operand */
	{8, "SoftmaxCrossEntropyWithLogits", F "[12,6] " F "[12,6]",
		"'outputs':[{'name':'y'},{'name':'z'}]", "(4,1),(4,1)", NULL},
	{8, "SparseSoftmaxCrossEntropyWithLogits", F "[16,6] int32[16]", Y, "(8,1),(8)", NULL},
	{8, "Select", "bool[8,6] " F "[8,6] " F "[8,6]", Y, "(8,1),(8,1),(8,1)", NULL},
	{8, "AddN", F "[8] " F "[8] " F "[8]", Y, "(8),(8),(8)", NULL},
	{8, "AddN", F "[] " F "[]", Y, "(),()", NULL},
	{12, "SigmoidCrossEntropyWithLogits", F "[8,1] " F "[8,1]", Y, "(4,1),(4,1)", NULL},
	{8, "Stack", F "[8,6] " F "[8,6]", A("'axis':0"), "(8,1),(8,1)", NULL},
	/* unless it is the axis */
	{8, "Concat", F "[8,6] " F "[8,4]", A("'axis':-1"), "(8,1),(8,1)", NULL},
	{8, "Concat", F "[8,6] " F "[4,6]", A("'axis':0"), "(1,1),(1,1)", NULL},
	{8, "Split", F "[8,6]", HALVES("1"), "(8,1)", NULL},
	{8, "Split", F "[16,6]", HALVES("0"), "(1,1)", NULL},
	{8, "Split", F "[16]", HALVES("0"), "(1)", NULL},
	{8, "Argmax", F "[8,6]", A("'axis':1"), "(8,1)", NULL},
	{8, "Argmax", F "[8]", A("'axis':0"), "(1)", NULL},
	{8, "TopkExt", F "[8,6]", "'attrs':{'k':2},'outputs':[{'name':'y'},{'name':'z'}]", "(8,1)", NULL},
	{8, "Slice", F "[8,6]", A("'begin':[0,0],'size':[8,3]"), "(8,1)", NULL},
	{8, "Slice", F "[16,6]", A("'begin':[8,0],'size':[8,6]"), "(1,1)", NULL},
	{8, "StridedSlice", F "[8,6]", A("'begin':[0,1],'end':[8,4],'strides':[1,1]"), "(8,1)", NULL},
	{8, "StridedSlice", F "[16,6]", A("'begin':[0,0],'end':[8,6],'strides':[1,1]"), "(1,1)", NULL},
	{8, "UnsortedSegmentSum", F "[8,6] int32[8]", A("'num_segments':4"), "(8,1),(8)", NULL},
	{8, "ScatterUpdate", F "[16,6] int32[8] " F "[8,6]", Y, "(1,1),(1),(1,1)", NULL},
	/* a vector of other dimensions: all devices, which its own check may refuse */
	{8, "Tile", F "[8,6]", A("'multiples':[1,2]"), "(8,1)", NULL},
	{8, "Tile", F "[6,8]", A("'multiples':[2,1]"), "(2,1)", NULL},
	{8, "Tile", F "[8,6]", A("'multiples':[16,1,1]"), "(8,1,1)", NULL},
	{8, "Tile", F "[8,6]", A("'multiples':[4,1,1]"), "(8,1,1)", "8 parts"},
	{8, "DropoutDoMask", F "[16,8] uint8[16]", Y, "(8,1)", NULL},
	{8, "DropoutDoMask", F "[12,8] uint8[12]", Y, "(8,1)", "8 parts"},
	/* of which nothing is known */
	{8, "BatchParallel", F "[16,6]", YS("[8,3]"), "(8,1)", NULL},
	{8, "BatchParallel", F "[16,6]", YS("[4,3]"), "(1,1)", NULL},
	{8, "BatchParallel", F "[12,6]", YS("[12,3]"), "(1,1)", NULL},
	{8, "StandAlone", F "[16,6]", YS("[16,3]"), "(1,1)", NULL},
};

START_TEST(facts_of_the_reference)
{
	const int32_t *const *counts;
	enum ap_status st;
	struct fixture f;

	fixture_open(&f, facts[_i].ndev, facts[_i].ndev, "a100-80");
	fixture_graph(&f, one(&f, facts[_i].type, facts[_i].inputs, facts[_i].more));
	st = complete(&f, &counts);
	ck_assert_msg(st == (facts[_i].refused ? AP_INFEASIBLE : AP_OK), "%s %s: %s", facts[_i].type,
		facts[_i].inputs, errors(&f));
	if (facts[_i].refused) {
		const char *given = ap_arena_printf(f.ctx.arena, "the batch strategy (%s)",
			facts[_i].strategy);

		ck_assert_msg(strstr(errors(&f), given), "%s", errors(&f));
		ck_assert_msg(strstr(errors(&f), facts[_i].refused), "%s", errors(&f));
		ck_assert_msg(strstr(errors(&f), "it needs an in_strategy"), "%s", errors(&f));
	} else {
		ck_assert_msg(!strcmp(strategy(&f, "one", counts), facts[_i].strategy), "%s %s: %s",
			facts[_i].type, facts[_i].inputs, strategy(&f, "one", counts));
	}
	fixture_close(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("semi_auto");
	TCase *tc = tcase_create("semi_auto");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, facts_of_the_reference, 0, sizeof facts / sizeof *facts);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
