/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-batches: dumps of one, and dumps that hold them all, give the graph of the whole step. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "rule/attr.h"
#include "harness.h"
#include "import_fixture.h"

static const struct ap_import_params two = {.micro_batches = 2};

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* The fixture's batch is 16; with shapes of its operators written out in a Reshape. */
START_TEST(one_of_them)
{
	const char *text = edited(fixture_dump, "PrimFunc_Exp(%para7_x)",
		"PrimFunc_Reshape(%para7_x, (I64(16), I64(4)))");
	enum ap_status st;
	const struct ap_graph *g;

	text = edited(text, "I64(4)))\n      : (<Tensor[Float32], (16, 4)>)",
		"I64(4)))\n      : (<Tensor[Float32], (16, 4)>, <Tuple[Int64*2]>)");
	g = graph_of(imported(text, &two, &st));
	ck_assert_int_eq(g->batch, 32);
	holds(messages(), "the batch is 32, dimension 0 of input x");
	ck_assert_int_eq(g->tensor[node_of_type(g, "MatMul", 0)->out[0]].shape.dim[0], 32);
	ck_assert_int_eq(ap_attr_get(&node_of_type(g, "Reshape", 0)->attrs, "shape")->list[0], 32);
	ck_assert_int_eq(g->parameters, 36);
}
END_TEST

/* A body that is called once for each of m parts of x, whose results are summed up. */
static const char *copies(int m, const char *sum)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "# IR entry: @net\n# Total params: 2\n# Params:\n%para1_x: <Tensor[Float32], (32, 8)>\n"
		"%para2_w: <Ref[Tensor[Float32]], (4, 8), ref_key=w>  :  has_default\n\nsubgraph @net() {\n");
	for (int k = 0; k < m; k++)
		ap_str_addf(&s, "  %%%d(s) = PrimFunc_StridedSlice(%%para1_x, (I64(%d), I64(0)), (I64(%d), I64(8)), "
			"(I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))\n"
			"      : (<Tensor[Float32], (32, 8)>, <Tuple[Int64*2]>, <Tuple[Int64*2]>, <Tuple[Int64*2]>, "
			"<Int64>, <Int64>, <Int64>, <Int64>, <Int64>) -> (<Tensor[Float32], (%d, 8)>)\n"
			"  %%%d(y) = call @body(%%%d)\n"
			"      : (<Tensor[Float32], (%d, 8)>) -> (<Tensor[Float32], ()>)\n",
			10 * k, k * 32 / m, (k + 1) * 32 / m, 32 / m, 10 * k + 1, 10 * k, 32 / m);
	for (int k = 1; k < m; k++)
		ap_str_addf(&s, "  %%%d(t) = %s(%%%d, %%%d)\n"
			"      : (<Tensor[Float32], ()>, <Tensor[Float32], ()>) -> (<Tensor[Float32], ()>)\n",
			1000 + k, sum, k == 1 ? 1 : 999 + k, 10 * k + 1);
	ap_str_addf(&s, "  Return(%%%d)\n      : (<Tensor[Float32], ()>)\n}\n\n"
		"subgraph @body parent: [subgraph @net](%%para3_x) {\n"
		"  %%0(h) = PrimFunc_MatMul(%%para3_x, $(@net:para2_w), Bool(0), Bool(1))\n"
		"      : (<Tensor[Float32], (%d, 8)>, <Ref[Tensor[Float32]], (4, 8), ref_key=w>, <Bool>, <Bool>) -> "
		"(<Tensor[Float32], (%d, 4)>)\n"
		"  %%1(l) = PrimFunc_ReduceMean(%%0, (), Bool(0))\n"
		"      : (<Tensor[Float32], (%d, 4)>, <Tuple[]>, <Bool>) -> (<Tensor[Float32], ()>)\n"
		"  Return(%%1)\n      : (<Tensor[Float32], ()>)\n}\n", 999 + m, 32 / m, 32 / m, 32 / m);
	return s.s;
}

START_LOOP_TEST(all_of_them, 3)
{
	static const int counts[] = {2, 4, 8};
	const struct ap_import_params params = {.micro_batches = counts[_i]};
	enum ap_status st;
	const char *json = imported(copies(counts[_i], "PrimFunc_Add"), &params, &st);
	const struct ap_graph *g;

	ck_assert_msg(st == AP_OK, "%s", messages());
	g = graph_of(json);
	ck_assert_uint_eq(g->nnode, 2);
	ck_assert_int_eq(g->batch, 32);
	ck_assert_int_eq(g->tensor[node_of_type(g, "MatMul", 0)->out[0]].shape.dim[0], 32);
	ck_assert_str_eq(g->tensor[g->output[0]].name, g->tensor[node_of_type(g, "ReduceMean", 0)->out[0]].name);
}
END_TEST

START_TEST(other_numbers)
{
	enum ap_status st;

	imported(copies(4, "PrimFunc_Add"), NULL, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "the dump holds the network for 4 micro-batches; expected --micro-batches 4");
	imported(copies(4, "PrimFunc_Add"), &two, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "the dump holds the network for 4 micro-batches, --micro-batches says 2");
	imported(copies(2, "PrimFunc_Mul"), &two, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "net.ir:16: puts several micro-batches together; expected a sum");
}
END_TEST

/* A mark beyond all micro-batches is none. */
START_TEST(a_mark_without_end)
{
	const char *text = edited(copies(2, "PrimFunc_Add"), "  %1001(t) = PrimFunc_Add(%1, %11)",
		"  %100(e) = PrimFunc_Exp(%11) cnode_primal_attrs: {micro: I64(9223372036854775807)}\n"
		"      : (<Tensor[Float32], ()>) -> (<Tensor[Float32], ()>)\n  %1001(t) = PrimFunc_Add(%1, %100)");
	enum ap_status st;

	imported(text, &two, &st);
	ck_assert_int_eq(st, AP_MEANING);
	ck_assert_ptr_null(strstr(messages(), "9223372036854775807"));
}
END_TEST

/* Marks tell as well as slices: copies of which one has an operator more. */
START_TEST(marks_and_gaps)
{
	const char *text = copies(2, "PrimFunc_Add");
	enum ap_status st;

	text = edited(text, "  %1001(t) = PrimFunc_Add(%1, %11)", "  %100(e) = PrimFunc_Exp(%11) "
		"cnode_primal_attrs: {micro: I64(1)}\n      : (<Tensor[Float32], ()>) -> (<Tensor[Float32], ()>)\n"
		"  %1001(t) = PrimFunc_Add(%1, %100)");
	imported(text, &two, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "micro-batch 1 has 3 operators, micro-batch 0 has 2");
}
END_TEST
