/* SPDX-License-Identifier: Apache-2.0 */
/* The batch through operators that join, repeat, slice and choose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph_fixture.h"
#include "harness.h"

/* x: samples of 3 rows; w: a parameter of one row. Operators of a case stand between. */
#define BEFORE \
	"{\"schema\": \"autopar-graph/1\", \"name\": \"batch\", \"inputs\": [" \
	"{\"name\": \"x\", \"shape\": [8,3,4], \"dtype\": \"float32\", \"batch_dim\": 0}]," \
	"\"parameters\": [{\"name\": \"w\", \"shape\": [1,1,4], \"dtype\": \"float32\"}]," \
	"\"operators\": ["
#define OP(name, type, inputs, out, attrs) \
	"{\"name\": \"" name "\", \"type\": \"" type "\", \"inputs\": [" inputs "], \"outputs\": [" \
	out "], \"attrs\": {" attrs "}},"
#define R(name) "{\"name\": \"" name "\"}"
#define AFTER(last) \
	"{\"name\": \"end\", \"type\": \"ReduceSum\", \"inputs\": [\"" last "\"]," \
	"\"outputs\": [{\"name\": \"loss\"}]}], \"outputs\": [\"loss\"]}"

static const struct {
	const char *json;
	const char *marks; /* "tensor=dims tensor=dims": dims that carry the batch, "-" none; "0@3": not
	                    * outermost, but with 3 parts before it */
	const char *note; /* of micro-batches: words of it, NULL none */
} cases[] = {
	/* A token for every sample, however it is made: the batch is found by what it is joined to. */
	{BEFORE OP("rep", "BroadcastTo", "\"w\"", R("c"), "\"shape\": [8, 1, 4]")
		OP("join", "Concat", "\"c\", \"x\"", R("t"), "\"axis\": 1") AFTER("t"),
		"c=0 t=0 w=-", NULL},
	{BEFORE OP("rep", "Tile", "\"w\"", R("c"), "\"multiples\": [8, 1, 1]")
		OP("join", "Concat", "\"c\", \"x\"", R("t"), "\"axis\": 1") AFTER("t"),
		"c=0 t=0 w=-", NULL},
	/* Samples joined to samples: a micro-batch of one half would meet the other half. */
	{BEFORE OP("neg", "Neg", "\"x\"", R("n"), "")
		OP("join", "Concat", "\"n\", \"x\"", R("t"), "\"axis\": 0") AFTER("t"),
		"n=0 t=-", "the batch is in a dimension that stays whole"},
	{BEFORE OP("cut", "Split", "\"x\"", R("l") "," R("r"), "\"axis\": 0, \"output_num\": 2")
		OP("add", "Add", "\"l\", \"r\"", R("t"), "") AFTER("t"),
		"l=- r=- t=-", "the batch is in a dimension that stays whole"},
	{BEFORE OP("cut", "Split", "\"x\"", R("l") "," R("r"), "\"axis\": 2, \"output_num\": 2")
		OP("add", "AddN", "\"l\", \"r\", \"l\"", R("t"), "") AFTER("t"),
		"l=0 r=0 t=0", NULL},
	{BEFORE OP("first", "StridedSlice", "\"x\"", R("f"), "\"begin\": [0, 0], \"end\": [8, 1],"
		"\"shrink_axis_mask\": 2") AFTER("f"), "f=0", NULL},
	{BEFORE OP("row", "StridedSlice", "\"x\"", R("f"), "\"begin\": [0], \"end\": [1],"
		"\"shrink_axis_mask\": 1") AFTER("f"),
		"f=-", "the batch is in a dimension that stays whole"},
	{BEFORE OP("new", "ExpandDims", "\"x\"", R("e"), "\"axis\": 0")
		OP("old", "Squeeze", "\"e\"", R("s"), "\"axis\": 0")
		OP("two", "Stack", "\"s\", \"x\"", R("t"), "\"axis\": 0") AFTER("t"),
		"e=1 s=0 t=1", NULL},
	{BEFORE OP("turn", "Transpose", "\"x\"", R("p"), "\"perm\": [1, 2, 0]")
		OP("run", "CumSum", "\"p\"", R("c"), "\"axis\": 0")
		OP("best", "TopK", "\"c\"", R("v") "," R("i"), "\"k\": 2") AFTER("v"),
		"p=2 c=2", "the batch is in a dimension that stays whole"},
	{BEFORE OP("best", "TopK", "\"x\"", R("v") "," R("i"), "\"k\": 2")
		OP("pick", "GatherD", "\"x\", \"i\"", R("g"), "\"dim\": 2")
		OP("less", "Less", "\"v\", \"g\"", R("m"), "")
		OP("or", "Select", "\"m\", \"v\", \"g\"", R("s"), "") AFTER("s"),
		"v=0 i=0 g=0 m=0 s=0", NULL},
	/* Copies of samples: the batch is inside, behind the copies. */
	{BEFORE OP("rep", "BroadcastTo", "\"x\"", R("c"), "\"shape\": [2, 8, 3, 4]") AFTER("c"),
		"c=1", NULL},
	{BEFORE OP("rep", "Tile", "\"x\"", R("c"), "\"multiples\": [2, 1, 1]") AFTER("c"),
		"x=0", "the batch is in a dimension that stays whole"},
	/* The batch inside a dimension: rows of [tokens * batch], and back. */
	{BEFORE OP("turn", "Transpose", "\"x\"", R("t"), "\"perm\": [1, 0, 2]")
		OP("rows", "Reshape", "\"t\"", R("r"), "\"shape\": [-1, 4]")
		OP("act", "GeLU", "\"r\"", R("g"), "")
		OP("back", "Reshape", "\"g\"", R("b"), "\"shape\": [3, -1, 4]")
		OP("turned", "Transpose", "\"b\"", R("z"), "\"perm\": [1, 0, 2]")
		OP("add", "Add", "\"z\", \"x\"", R("y"), "") AFTER("y"),
		"t=1 r=0@3 g=0@3 b=1 z=0 y=0", NULL},
	/* All in one dimension, and taken apart elsewhere than it was put together. */
	{BEFORE OP("turn", "Transpose", "\"x\"", R("t"), "\"perm\": [2, 1, 0]")
		OP("flat", "Reshape", "\"t\"", R("f"), "\"shape\": [96]")
		OP("some", "Reshape", "\"f\"", R("s"), "\"shape\": [2, 48]")
		OP("less", "Reshape", "\"s\"", R("l"), "\"shape\": [12, 4, 2]") AFTER("l"),
		"t=2 f=0@12 s=1@6 l=1", NULL},
	/* Heads with the batch, as of products of many small matrices. */
	{BEFORE OP("heads", "Reshape", "\"x\"", R("h"), "\"shape\": [8, 3, 2, 2]")
		OP("turn", "Transpose", "\"h\"", R("t"), "\"perm\": [2, 0, 1, 3]")
		OP("many", "Reshape", "\"t\"", R("q"), "\"shape\": [16, 3, 2]")
		OP("mul", "BatchMatMul", "\"q\", \"q\"", R("p"), "\"transpose_b\": true")
		OP("few", "Reshape", "\"p\"", R("a"), "\"shape\": [2, 8, 3, 3]") AFTER("a"),
		"h=0 t=1 q=0@2 p=0@2 a=1", NULL},
	/* Lengths that have no factor in common: the elements follow one another all the same. */
	{BEFORE OP("odd", "Reshape", "\"x\"", R("o"), "\"shape\": [32, 3]")
		OP("back", "Reshape", "\"o\"", R("b"), "\"shape\": [8, 12]") AFTER("b"),
		"o=0 b=0", NULL},
	/* Back from what is added to: a mask of the turned rows is of the batch at the same place. */
	{BEFORE OP("turn", "Transpose", "\"x\"", R("t"), "\"perm\": [1, 0, 2]")
		OP("rows", "Reshape", "\"t\"", R("r"), "\"shape\": [24, 4]")
		OP("rep", "BroadcastTo", "\"w\"", R("m"), "\"shape\": [3, 8, 4]")
		OP("flat", "Reshape", "\"m\"", R("f"), "\"shape\": [24, 4]")
		OP("add", "Add", "\"r\", \"f\"", R("y"), "") AFTER("y"),
		"r=0@3 f=0@3 m=1 w=- y=0@3", NULL},
	/* Data of several lengths is handed on, each for itself. */
	{BEFORE OP("rows", "Reshape", "\"x\"", R("r"), "\"shape\": [24, 4]")
		OP("data", "VirtualDataset", "\"x\", \"r\"", R("d") "," R("e"), "")
		OP("flat", "Reshape", "\"d\"", R("f"), "\"shape\": [24, 4]")
		OP("add", "Add", "\"f\", \"e\"", R("y"), "") AFTER("y"),
		"r=0 d=0 e=0 f=0 y=0", NULL},
	/* A mean over the samples, and they themselves. */
	{BEFORE OP("mean", "ReduceMean", "\"x\"", R("m"), "\"axis\": [0], \"keep_dims\": true")
		OP("sub", "Sub", "\"x\", \"m\"", R("y"), "") AFTER("y"),
		"m=- y=0", "samples meet what was made of all of them"},
	{BEFORE OP("mean", "ReduceMean", "\"x\"", R("m"), "\"axis\": [0]")
		OP("act", "Exp", "\"m\"", R("e"), "") AFTER("e"), "m=- e=-", NULL},
	/* Rows in another order are other rows. */
	{BEFORE OP("turn", "Transpose", "\"x\"", R("t"), "\"perm\": [1, 0, 2]")
		OP("rows", "Reshape", "\"t\"", R("r"), "\"shape\": [24, 4]")
		OP("own", "Reshape", "\"x\"", R("o"), "\"shape\": [24, 4]")
		OP("add", "Add", "\"o\", \"r\"", R("y"), "") AFTER("y"),
		"r=0@3 o=0 y=0", "the batch lies in another order"},
};

static void check_marks(const struct ap_graph *g, const char *p)
{
	while (*p) {
		size_t n = strcspn(p, "=");
		const struct ap_tensor *t = tensor_of(g, ap_arena_strndup(ctx.arena, p, n));
		unsigned want = 0;
		int64_t outer = 1;

		for (p += n + 1; *p && *p != ' ' && *p != '@'; p++)
			want |= *p == '-' ? 0 : 1u << (*p - '0');
		if (*p == '@')
			outer = strtoll(p + 1, (char **)&p, 10);
		ck_assert_msg(t->batch == want, "%s carries the batch in %x", t->name, t->batch);
		for (int d = 0; d < t->shape.rank; d++)
			if (t->batch >> d & 1)
				ck_assert_msg(t->batch_outer[d] == outer, "%s has %lld parts before the "
					"batch", t->name, (long long)t->batch_outer[d]);
		p += *p == ' ';
	}
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(marks_and_notes, AP_COUNT(cases))
{
	const struct ap_graph_params params = {.micro_batches = 2};
	const struct ap_graph *g;

	ck_assert_msg(load_text(cases[_i].json, &params, &g) == AP_OK, "%s", messages());
	check_marks(g, cases[_i].marks);
	if (cases[_i].note)
		ck_assert_msg(strstr(messages(), cases[_i].note), "%s", messages());
	else
		ck_assert_msg(!strstr(messages(), "batch-mixed"), "%s", messages());
}
END_TEST

/* Whatever keeps the batch can be scaled: three times the samples, the rest as it was. Lengths and places
 * are those of micro-batches, too: a third of the large graph is the small one. */
START_LOOP_TEST(what_keeps_the_batch_scales, AP_COUNT(cases))
{
	const struct ap_graph_params params = {.batch = 24};
	const struct ap_graph *g, *one;

	if (cases[_i].note)
		return;
	ck_assert_msg(load_text(cases[_i].json, NULL, &one) == AP_OK, "%s", messages());
	ck_assert_msg(load_text(cases[_i].json, &params, &g) == AP_OK, "%s", messages());
	for (uint32_t i = 0; i < g->ntensor; i++)
		for (uint8_t d = 0; d < g->tensor[i].shape.rank; d++) {
			const struct ap_tensor *t = &g->tensor[i], *s = &one->tensor[i];

			ck_assert_int_eq(t->batch, s->batch);
			ck_assert_int_eq(t->batch_outer[d], s->batch_outer[d]);
			ck_assert_msg(t->shape.dim[d] ==
				(t->batch >> d & 1 ? 3 : 1) * s->shape.dim[d], "dimension %d of %s", d,
				t->name);
		}
}
END_TEST
