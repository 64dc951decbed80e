/* SPDX-License-Identifier: Apache-2.0 */
/* How semi_auto_parallel completes operators: MindSpore's batch strategy, and what follows it. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/pins.h"
#include "fixture.h"
#include "harness.h"
#include "route/semi_auto.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"
#include "shard/strategy.h"

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
	{8, "GatherNd", F "[24,8] int32[16,1]", Y, "(1,1),(8,1)", NULL},
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
	{8, "TopK", F "[8]", "'attrs':{'k':2},'outputs':[{'name':'y'},{'name':'z'}]", "(8)", "1 is allowed"},
	{8, "CumSum", F "[8,6]", A("'axis':0"), "(1,1)", NULL},
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
	{8, "LinSpace", "", "'attrs':{'start':0,'end':1}," YS("[16]"), "(8)", NULL},
	{8, "LinSpace", "", "'attrs':{'start':0,'end':1}," YS("[12]"), "(8)", "8 parts"},
	{8, "DropoutDoMask", F "[16,8] uint8[16]", Y, "(8,1)", NULL},
	{8, "DropoutDoMask", F "[12,8] uint8[12]", Y, "(8,1)", "8 parts"},
	/* of which nothing is known */
	{8, "BatchParallel", F "[16,6]", YS("[8,3]"), "(8,1)", NULL},
	{8, "BatchParallel", F "[16,6]", YS("[4,3]"), "(1,1)", NULL},
	{8, "BatchParallel", F "[12,6]", YS("[12,3]"), "(1,1)", NULL},
	{8, "StandAlone", F "[16,6]", YS("[16,3]"), "(1,1)", NULL},
};

START_LOOP_TEST(facts_of_the_reference, AP_COUNT(facts))
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

/* Attention over 8 sequences of 16, and a mask: what is flagged is the mask's first dimension, too. */
#define ATTENTION(mask) \
	"{'schema':'autopar-graph/1','name':'attention','inputs':[" \
	"{'name':'q','dtype':'float16','shape':[8,16,32]},{'name':'k','dtype':'float16','shape':[8,16,32]}," \
	"{'name':'v','dtype':'float16','shape':[8,16,32]},{'name':'m','dtype':'uint8','shape':" mask "}]," \
	"'operators':[{'name':'one','type':'FlashAttentionScore','inputs':['q','k','v',null,null,null,'m']," \
	"'attrs':{'head_num':4,'input_layout':'BSH'},'outputs':[{'name':'y'}]}],'outputs':['y']}"

static const struct {
	int ndev;
	const char *graph, *strategy;
	bool refused;
} attentions[] = {
	{8, ATTENTION("[8,1,16,16]"), "(8,1,1),(8,1,1),(8,1,1),(8,1,1,1)", false},
	{12, ATTENTION("[8,1,16,16]"), "(4,1,1),(4,1,1),(4,1,1),(4,1,1,1)", false},
	{8, ATTENTION("[1,1,16,16]"), "(1,1,1),(1,1,1),(1,1,1),(1,1,1,1)", false},
	{8, ATTENTION("[16,16]"), "(8,1,1),(8,1,1),(8,1,1),(8,1)", true}, /* its rows are not the queries' */
	{32, ATTENTION("[16,16]"), "(8,1,1),(8,1,1),(8,1,1),(8,1)", true},
};

START_LOOP_TEST(attention_and_its_mask, AP_COUNT(attentions))
{
	const int32_t *const *counts;
	enum ap_status st;
	struct fixture f;

	fixture_open(&f, attentions[_i].ndev, 8, "a100-80");
	fixture_graph(&f, attentions[_i].graph);
	st = complete(&f, &counts);
	ck_assert_int_eq(st, attentions[_i].refused ? AP_INFEASIBLE : AP_OK);
	if (attentions[_i].refused)
		ck_assert_msg(strstr(errors(&f), attentions[_i].strategy), "%s", errors(&f));
	else
		ck_assert_str_eq(strategy(&f, "one", counts), attentions[_i].strategy);
	fixture_close(&f);
}
END_TEST

#define OPER(name, type, x, y) \
	"{'name':'" name "','type':'" type "','inputs':[" x "],'outputs':[{'name':'" y "'}]}"
#define CAST(name, x, y) \
	"{'name':'" name "','type':'Cast','inputs':['" x "'],'attrs':{'dst_type':'float16'}," \
	"'outputs':[{'name':'" y "'}]}"
#define SOFTMAX(name, x, y, axis) \
	"{'name':'" name "','type':'Softmax','inputs':['" x "'],'attrs':{'axis':" axis "}," \
	"'outputs':[{'name':'" y "'}]}"
#define RESHAPE(name, x, shape, y) \
	"{'name':'" name "','type':'Reshape','inputs':['" x "'],'attrs':{'shape':" shape "}," \
	"'outputs':[{'name':'" y "'}]}"
#define PINNED(name, type, x, y, pin) \
	"{'name':'" name "','type':'" type "','inputs':[" x "],'in_strategy':" pin "," \
	"'outputs':[{'name':'" y "'}]}"
#define GRAPH(parameters, operators, outputs) \
	"{'schema':'autopar-graph/1','name':'few'," \
	"'inputs':[{'name':'x','dtype':'float32','shape':[16,24],'batch_dim':0}]," \
	"'parameters':[" parameters "],'operators':[" operators "],'outputs':[" outputs "]}"
#define PARAMETER(name, shape) "{'name':'" name "','dtype':'float32','shape':" shape "}"

#define REFUSED(x) \
	"semi_auto_parallel gives Softmax the batch strategy ((8,1)), which is not possible on 8 " \
	"devices: input 0 (\"" x "\"), dimension 0 of length 16: 8 parts; 1 is allowed; it needs an " \
	"in_strategy, that is shard()\n"

/* Each that cannot be cut is told, not only the first; those that can are not. */
START_TEST(all_that_is_refused_is_told)
{
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, GRAPH("", SOFTMAX("a", "x", "y", "0") "," SOFTMAX("b", "y", "z", "1") ","
		SOFTMAX("c", "z", "o", "0"), "'o'"));
	ck_assert_int_eq(complete(&f, &counts), AP_INFEASIBLE);
	ck_assert_str_eq(errors(&f),
		REFUSED("x") REFUSED("z"));
	fixture_close(&f);
}
END_TEST

/* The executor sees one micro-batch at a time. */
START_TEST(lengths_are_of_a_micro_batch)
{
	static const struct {
		int64_t micro_batches;
		const char *relu, *sum;
	} cases[] = {{1, "(8,1)", "(8,1)"}, {2, "(8,1)", "(8,1)"}, {4, "(4,1)", "(4,1)"}, {16, "(1,1)", "(1,1)"}};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const int32_t *const *counts;
		struct fixture f;

		fixture_open(&f, 8, 8, "a100-80");
		fixture_graph(&f, GRAPH("", OPER("relu", "ReLU", "'x'", "y") ","
			OPER("sum", "ReduceSum", "'y'", "z"), "'z'"));
		f.step.micro_batches = cases[i].micro_batches;
		ck_assert_int_eq(complete(&f, &counts), AP_OK);
		ck_assert_str_eq(strategy(&f, "relu", counts), cases[i].relu);
		ck_assert_str_eq(strategy(&f, "sum", counts), cases[i].sum);
		fixture_close(&f);
	}
}
END_TEST

/* Without parameters: by the batch; with one: by a checkpoint, or free in a search. */
START_TEST(what_is_fixed_is_told_by_nobody)
{
	const int32_t *const *fixed, *const *counts;
	const int32_t *held[5] = {NULL};
	int32_t count[AP_MAX_FACTOR];
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, GRAPH("{'name':'w','dtype':'float16','shape':[24,8]}",
		OPER("relu", "ReLU", "'x'", "y") "," CAST("cast", "y", "c") ","
		CAST("back", "c", "d") "," OPER("mm", "MatMul", "'d','w'", "z") ","
		RESHAPE("flat", "z", "[128]", "o"), "'o'"));
	ck_assert_int_eq(ap_semi_auto_fix(&f.ctx, f.graph, f.machine, &f.step, NULL, &fixed), AP_OK);
	ck_assert_str_eq(strategy(&f, "relu", fixed), "(8,1)");
	ck_assert_ptr_null(fixed[fixture_node(&f, "mm")]);
	ck_assert_ptr_null(fixed[fixture_node(&f, "cast")]);
	ck_assert_ptr_null(fixed[fixture_node(&f, "flat")]);
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "mm", counts), "(8,1),(1,1)");
	fixture_counts(&f, fixture_node(&f, "mm"), "k=4 n=2", count);
	held[fixture_node(&f, "mm")] = count;
	ck_assert_int_eq(ap_semi_auto_complete(&f.ctx, f.graph, f.machine, &f.step, held, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "mm", counts), "(1,4),(4,2)");
	ck_assert_str_eq(strategy(&f, "relu", counts), "(8,1)");
	fixture_close(&f);
}
END_TEST

/* What follows its neighbours; and what a pin next to it makes of it. */
static const struct {
	const char *graph;
	struct {
		const char *name, *strategy;
	} wanted[4];
} followers[] = {
	/* a Cast lies as what it casts, also behind another one, and on another side of it */
	{GRAPH("", PINNED("a", "ReLU", "'x'", "y", "[[2,4]]") "," CAST("b", "y", "c") "," CAST("c", "c", "d") ","
		OPER("e", "ReLU", "'d'", "o"), "'o'"),
		{{"b", "(2,4)"}, {"c", "(2,4)"}, {"e", "(8,1)"}}},
	/* of an input, as that arrives */
	{GRAPH("", CAST("a", "x", "y") "," PINNED("b", "ReLU", "'y'", "o", "[[2,4]]"), "'o'"),
		{{"a", "(8,1)"}}},
	/* of a parameter, as what reads it */
	{GRAPH(PARAMETER("w", "[24,8]"), CAST("a", "w", "v") "," CAST("b", "x", "y") ","
		PINNED("c", "MatMul", "'y','v'", "o", "[[1,2],[2,2]]"), "'o'"),
		{{"a", "(2,2)"}, {"b", "(8,1)"}}},
	/* a Reshape leaves what is read */
	{GRAPH("", OPER("a", "ReLU", "'x'", "y") "," RESHAPE("b", "y", "[16,4,6]", "z") ","
		PINNED("c", "ReLU", "'z'", "o", "[[2,4,1]]"), "'o'"),
		{{"a", "(8,1)"}, {"b", "(2,4)"}}},
	/* through a Cast, by the first that has a strategy, and not by a Reshape before it */
	{GRAPH("", RESHAPE("b", "x", "[16,4,6]", "z") "," RESHAPE("d", "z", "[16,24]", "o") ","
		CAST("e", "z", "h") "," PINNED("f", "ReLU", "'h'", "p", "[[2,4,1]]") ","
		PINNED("g", "ReLU", "'z'", "q", "[[8,1,1]]"), "'o','p','q'"),
		{{"b", "(2,4)"}, {"e", "(2,4,1)"}}},
	/* as its producer, where only Reshapes read it */
	{GRAPH("", PINNED("a", "ReLU", "'x'", "y", "[[4,2]]") "," RESHAPE("b", "y", "[16,2,12]", "z") ","
		RESHAPE("c", "z", "[16,24]", "h") "," PINNED("d", "ReLU", "'h'", "o", "[[2,4]]"), "'o'"),
		{{"b", "(4,2)"}}},
	/* whole, where nobody does */
	{GRAPH("", OPER("a", "ReLU", "'x'", "y") "," RESHAPE("b", "y", "[384]", "o"), "'o'"),
		{{"a", "(8,1)"}, {"b", "(1,1)"}}},
	/* where no cut leads to it, the nearest: of 16 x 24 and 6 x 64 no parts are alike */
	{GRAPH("", PINNED("a", "ReLU", "'x'", "y", "[[8,1]]") "," RESHAPE("b", "y", "[6,64]", "z") ","
		PINNED("c", "ReLU", "'z'", "o", "[[2,4]]"), "'o'"),
		{{"b", "(1,1)"}}},
	/* of 24 as 4 x 6 only the 4 is cut before it is done: what is left is redistributed */
	{GRAPH("", OPER("a", "ReLU", "'x'", "y") "," RESHAPE("b", "y", "[16,4,6]", "z") ","
		PINNED("c", "ReLU", "'z'", "o", "[[4,1,2]]"), "'o'"),
		{{"b", "(8,1)"}}},
};

START_LOOP_TEST(what_follows, AP_COUNT(followers))
{
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, followers[_i].graph);
	ck_assert_msg(complete(&f, &counts) == AP_OK, "%s", errors(&f));
	for (int i = 0; followers[_i].wanted[i].name; i++) {
		const char *name = followers[_i].wanted[i].name, *got = strategy(&f, name, counts);

		ck_assert_msg(!strcmp(got, followers[_i].wanted[i].strategy), "%d: %s is %s", _i, name, got);
	}
	fixture_close(&f);
}
END_TEST

/* Who reads the data decides nothing of how it arrives. */
START_TEST(casts_of_inputs_that_arrive_in_parts)
{
	static const struct ap_arrival arrival[] = {{1, 4, 2}};
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, GRAPH("", CAST("a", "x", "y") "," OPER("b", "ReLU", "'y'", "o"), "'o'"));
	f.step.fully_use = true; /* which is of searches */
	f.step.full_batch = true;
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "a", counts), "(1,1)");
	f.step.arrival = arrival;
	f.step.narrival = 1;
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "a", counts), "(1,4)");
	fixture_close(&f);
}
END_TEST

/* The data comes by all devices or whole, as it is said of it. */
START_TEST(the_data_comes_as_it_is_said)
{
	static const struct {
		struct ap_arrival arrival;
		bool full_batch;
		const char *strategy;
	} cases[] = {
		{{0, 0, 0}, false, "(8,1)"}, {{0, 0, 0}, true, "(1,1)"}, {{0, 8, 1}, true, "(8,1)"},
		{{0, 1, 0}, false, "(1,1)"}, {{1, 8, 1}, false, "(1,1)"}, {{0, 4, 1}, false, "(1,1)"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const int32_t *const *counts;
		struct fixture f;

		fixture_open(&f, 8, 8, "a100-80");
		fixture_graph(&f, GRAPH("", OPER("data", "VirtualDataset", "'x'", "y") ","
			OPER("relu", "ReLU", "'y'", "o"), "'o'"));
		f.step.full_batch = cases[i].full_batch;
		f.step.arrival = &cases[i].arrival;
		f.step.narrival = 1;
		ck_assert_int_eq(complete(&f, &counts), AP_OK);
		ck_assert_str_eq(strategy(&f, "data", counts), cases[i].strategy);
		ck_assert_str_eq(strategy(&f, "relu", counts), "(8,1)");
		fixture_close(&f);
	}
}
END_TEST

/* Look-up and product share a table that the batch leaves whole; a pin of one of them does not. */
#define TIED(pin) \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'ids','shape':[8],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[" PARAMETER("table", "[64,16]") "],'operators':[" \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]" pin "}," \
	"{'name':'head','type':'MatMul','inputs':['e','table'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}],'outputs':['y']}"

START_TEST(users_of_one_parameter)
{
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, TIED(""));
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "look", counts), "(1,1),(4)");
	ck_assert_str_eq(strategy(&f, "head", counts), "(4,1),(1,1)");
	fixture_graph(&f, TIED(",'in_strategy':[[4,1],[1]]"));
	ck_assert_int_eq(complete(&f, &counts), AP_INFEASIBLE);
	ck_assert_str_eq(errors(&f), "users of a shared parameter would hold it in different layouts; in "
		"semi_auto_parallel each of them needs an in_strategy\n");
	fixture_close(&f);
}
END_TEST

/* Rows that are held are the very same; a plan completed again is the same plan. */
START_TEST(what_is_completed_stays)
{
	for (size_t i = 0; i < AP_COUNT(followers); i++) {
		const int32_t *const *counts, *const *again;
		struct fixture f;

		fixture_open(&f, 8, 8, "a100-80");
		fixture_graph(&f, followers[i].graph);
		ck_assert_int_eq(complete(&f, &counts), AP_OK);
		ck_assert_int_eq(ap_semi_auto_complete(&f.ctx, f.graph, f.machine, &f.step, counts, &again),
			AP_OK);
		for (ap_id n = 0; n < f.graph->nnode; n++) {
			const struct ap_bound *b = &f.graph->node[n].bound;

			ck_assert_ptr_eq(counts[n], again[n]);
			ck_assert(ap_space_legal(&f.ctx, b, counts[n], 8, &f.step, NULL));
		}
		fixture_close(&f);
	}
}
END_TEST
