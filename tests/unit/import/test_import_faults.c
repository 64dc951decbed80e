/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of damage is told with its line. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "harness.h"
#include "import_fixture.h"

static const struct {
	const char *from, *to; /* the edit of the fixture */
	enum ap_status st;
	const char *text;
} edits[] = {
	{"PrimFunc_Exp", "PrimFunc_Expo", AP_MEANING, "net.ir:57: Expo: no operator of this type is known"},
	{"Bool(0), Bool(1)) {inst", "Bool(0)) {inst", AP_MEANING, "net.ir:35: 4 types for 3 operands of \"MatMul\""},
	{"BiasAdd(%1,", "BiasAdd(%9,", AP_MEANING, "net.ir:40: %9 is not defined before it is used"},
	{"(<Tensor[Float32], (16, 4)>, <Tensor[Float32], (4)>, <Int64", "(<Tensor[Float32], (4, 16)>, <Tensor[Float32], "
		"(4)>, <Int64", AP_OK, "net.ir:40: \"BiasAdd\" reads the shape [4, 16] here, but line 34 gives [16, 4]"},
	{"call @3_act", "call @4_act", AP_MEANING, "net.ir:43: sub-graph @4_act is not in the dump"},
	{"call @3_act", "call @2_net", AP_MEANING, "net.ir:43: sub-graph @2_net calls itself"},
	{"subgraph @3_act(%para7_x)", "subgraph @3_act(%para7_x, %para8_y)", AP_MEANING,
		"net.ir:43: 1 arguments for sub-graph @3_act, which has 2 parameters (line 56)"},
	{"%2(b) = Load", "%1(b) = Load", AP_MEANING, "net.ir:37: %1 does not come after %1"},
	{"%1(x) = PrimFunc_MatMul", "%1(x) = PrimFunc_MatMul[", AP_MEANING, "net.ir:34: MatMul[: no operator"},
	{"-> (<Tensor[Float32], (16, 4)>)\n      # Scope: (Default/network-Net/fc-Dense)\n  %2(b)",
		"-> (<Tensor[Float32], (16, 5)>)\n      # Scope: (Default/network-Net/fc-Dense)\n  %2(b)",
		AP_MEANING, "net.ir:34: MatMul: result 0 has the shape [16, 5]; from its operands follows [16, 4]"},
	{"-> (<Tensor[Float32], (16, 4)>)\n      # Scope: (Default/network-Net/fc-Dense)\n  %2(b)",
		"-> (<Tensor[Float16], (16, 4)>)\n      # Scope: (Default/network-Net/fc-Dense)\n  %2(b)",
		AP_MEANING, "net.ir:34: MatMul: result 0 is float16; from its operands follows float32"},
	{"<Tensor[Float32], (16, 8)>\n%para2", "<Tensor[Float32], (-1, 8)>\n%para2", AP_MEANING,
		"net.ir:9: x has a length of -1, which is not known before it runs"},
	{"in_strategy: ((2, 1), (4, 1))", "in_strategy: ((2, 1))", AP_MEANING,
		"net.ir:34: MatMul: in_strategy has 1 vectors for 2 tensors"},
	{"in_strategy: ((2, 1), (4, 1))", "in_strategy: ((2, 1), (4))", AP_MEANING,
		"net.ir:34: MatMul: vector 1 of in_strategy has 1 numbers; its tensor has 2 dimensions [pin-length]"},
	{"in_strategy: ((2, 1), (4, 1))", "in_strategy: ((3, 1), (4, 1))", AP_MEANING,
		"net.ir:34: MatMul: vector 0 of in_strategy cuts a length of 16 in 3 parts [pin-value]"},
	{"in_strategy: ((2, 1), (4, 1))", "in_strategy: ((2, 1), (0, 1))", AP_MEANING,
		"net.ir:34: MatMul: vector 1 of in_strategy cuts a length of 4 in 0 parts [pin-value]"},
	{"in_strategy: ((2, 1), (4, 1))", "in_strategy: 7", AP_MEANING,
		"net.ir:34: MatMul: in_strategy is not a list of vectors"},
	{"(I64(0), I64(1))", "(I64(0), F32(0.5))", AP_MEANING, "net.ir:46: ReduceMean: axis has a value"},
	{"(I64(0), I64(1))", "%3", AP_MEANING,
		"net.ir:46: ReduceMean: operand 2 (axis) is computed while the network runs"},
	{"# Total subgraphs: 3", "# Total subgraphs: 4", AP_SYNTAX,
		"the dump ends here with 3 sub-graphs, but its header counts 4"},
	{"# Total subgraphs: 3", "# Total subgraphs: 2", AP_OK,
		"net.ir: holds 3 sub-graphs, but its header counts 2 [dump-count]"},
	{"training: 1\n\n", "training: 1\n\nTotal number of cnodes: 13\n", AP_OK,
		"net.ir: holds 14 nodes, but its header counts 13 [dump-count]"},
	{"training: 1\n\n", "training: 1\n\nTotal number of cnodes: 15\n", AP_SYNTAX,
		"the dump ends here with 14 nodes, but its header counts 15"},
	{"%para1_x: <Tensor[Float32], (16, 8)>", "%para1_x: <Tensor[Float32], (16, 99999999999999)>", AP_MEANING,
		"net.ir:9: x has a length of "},
	{"@1_step\n", "@1_stop\n", AP_MEANING, "the entry @1_stop is not in the dump"},
	{"# IR entry: @1_step\n", "", AP_SYNTAX, "net.ir:1: does not begin as a dump does"},
	{"  %2(b) = ", "  ...\n  %2(b) = ", AP_SYNTAX, "net.ir:37: a piece of the dump is left out here"},
	{"= Load($(@1_step:para2_fc.weight), %para6_u)", "= Load($(@1_step:para2_fc.weight), %para6_u) {",
		AP_SYNTAX, "net.ir:32: \": (<Ref[Tensor[Float32]]\" is not understood; expected an attribute"},
	{"Tensor(shape=[], dtype", "Tensor(shape=(), dtype", AP_SYNTAX,
		"net.ir:60: the shape of a constant tensor is not understood"},
	{"Tensor(shape=[], dtype=Float32, value=0.5)", "Tensor(shape=[], value=0.5)", AP_SYNTAX,
		"net.ir:60: a constant tensor has no shape and element type"},
	{"  %4(z) = call", "  %4(z = call", AP_SYNTAX, "net.ir:43: the line ends here; expected \") = \" behind"},
	{"J(@2_net)", "J(@9_net)", AP_MEANING, "net.ir:16: sub-graph @9_net is not in the dump"},
	{"%0(%para1_x, UMonad[U])", "%0(%para1_x)", AP_MEANING, "2 types for 1 operands of \"call\""},
	{"PrimFunc_Exp(", "AllReduce(", AP_MEANING, "net.ir:57: holds what each device runs (AllReduce)"},
	{"# Scope: (recompute_Default", "# Scope: (Gradients/Default", AP_MEANING,
		"net.ir:57: holds the backward pass"},
	{"PrimFunc_Exp(%para7_x)", "PrimFunc_Exp(%para7_x) primitive_attrs: {in_layout: ({'a': 1}), odd: 3}",
		AP_OK, "net.ir:57: Exp: attribute in_layout is not known and is left out [attr-unknown]"},
	{"PrimFunc_Exp(%para7_x)", "Switch(%para7_x)", AP_MEANING, "net.ir:57: control flow"},
	{"-> (<Tensor[Float32], (16, 4)>)\n      # Scope: (recompute_Default/network-Net/act-Act)\n  %1",
		"-> (<Int64, NoShape>)\n  %1", AP_MEANING, "net.ir:57: result 0 of \"Exp\" is no tensor"},
	{"%para4_moments", "%para3_fc.bias: <Tensor[Int8], ()>\n%para4_moments", AP_MEANING,
		"net.ir:12: there are two parameters %para3_fc.bias"},
	{"subgraph @3_act(", "subgraph @2_net(", AP_MEANING, "net.ir:56: there are two sub-graphs @2_net"},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(edit, AP_COUNT(edits))
{
	enum ap_status st;

	imported(edited(fixture_dump, edits[_i].from, edits[_i].to), NULL, &st);
	ck_assert_msg(st == edits[_i].st, "%d: %s: %s", st, edits[_i].to, messages());
	holds(messages(), edits[_i].text);
}
END_TEST

static const struct {
	const char *file;
	bool fit;
	const char *text;
} names[] = {
	{"17_pre_auto_parallel_0021.ir", true, ""},
	{"ir/rank_0/18_insert-virtual-dataset_0022.ir", true, ""},
	{"step_auto_parallel_begin_0031.ir", true, ""},
	{"step_parallel_begin_0031.ir", true, ""},
	{"net.ir", true, ""},
	{"12_inline_0015.ir", true, ""},
	{"19_dataset_repeat_opt_0023.ir", true, ""},
	{"step_parallel_end_0053.ir", false, "holds what each device runs"},
	{"24_rewriter_after_jit_bprop_graph_0090.ir", false, "holds what each device runs"},
	{"25_opt_after_jit_grad_0091.ir", false, "holds what each device runs"},
	{"26_distribtued_split_0092.ir", false, "holds what each device runs"},
	{"27_silent_check_0093.ir", false, "holds what each device runs"},
	{"opt_pass_3_parallel_0040.ir", false, "is from within optimisation"},
	{"analyze_fail.ir", false, "is of a compilation that failed"},
	{"graph_build_0_1_0200.ir", false, "is a graph of the backend"},
	{"28_validate_0161.ir", false, "holds what each device runs, so it is no source of a graph; "
		"expected NN_pre_auto_parallel"},
	{"20_pipeline_split_0024.ir", false, "holds one stage of a pipeline"},
	{"hwopt_d_end_graph_0_0001.ir", false, "is a graph of the backend"},
	{"01_resolve_0003.ir", false, "is from before types are known"},
};

/* Which dump it is, its name tells. */
START_LOOP_TEST(name, AP_COUNT(names))
{
	const struct ap_import_params params = {.micro_batches = 1};
	const struct ap_import *g;
	enum ap_status st = ap_import_ir(&ctx, names[_i].file, fixture_dump, strlen(fixture_dump), &params, &g);

	ck_assert_int_eq(st, names[_i].fit ? AP_OK : AP_MEANING);
	holds(messages(), names[_i].text);
}
END_TEST

START_TEST(no_dump)
{
	static const char *const texts[] = {"", "\n\n", "{\"schema\": \"autopar-graph/1\"}", "\xff\xfe", "ok?"};
	enum ap_status st;

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		imported(texts[i], NULL, &st);
		ck_assert_int_eq(st, AP_SYNTAX);
	}
}
END_TEST

/* Bytes that are no text, names that are no words. */
START_TEST(odd_bytes)
{
	const struct ap_import_params params = {.micro_batches = 1};
	const struct ap_import *g;
	enum ap_status st;

	imported(edited(fixture_dump, "%1(x) = ", "%1(\xed\xa0\x80) = "), NULL, &st);
	ck_assert_int_eq(st, AP_SYNTAX);
	holds(messages(), "net.ir:34: is no text in UTF-8");
	ck_assert_int_eq(ap_import_ir(&ctx, "nul.ir", "# IR entry: @a\n\0\n", 17, &params, &g), AP_SYNTAX);
	holds(messages(), "nul.ir:2: is no text in UTF-8");
	imported(edited(fixture_dump, "PrimFunc_Exp", "PrimFunc_\x1b[31m\xe2\x80\xae"), NULL, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "net.ir:57: \\x1b[31m\\u202e: no operator");
}
END_TEST

/* An operator of unknown type is kept where that is asked for, and said once. */
START_TEST(unknown_operators)
{
	const struct ap_import_params params = {.micro_batches = 1, .unknown_batch_parallel = true};
	enum ap_status st;
	const char *json = imported(edited(fixture_dump, "PrimFunc_Exp", "PrimFunc_Expo"), &params, &st);

	ck_assert_int_eq(st, AP_OK);
	holds(json, "\"type\": \"Expo\"");
	holds(messages(), "net.ir:57: Expo: no operator of this type is known; it is taken");
}
END_TEST

/* All operators that do not fit are named, not only the first. */
START_TEST(all_are_named)
{
	const char *text = edited(fixture_dump, "PrimFunc_Exp", "PrimFunc_Expo");
	enum ap_status st;

	imported(edited(text, "PrimFunc_BiasAdd", "PrimFunc_BiasSub"), NULL, &st);
	holds(messages(), "net.ir:40: BiasSub");
	holds(messages(), "net.ir:57: Expo");
}
END_TEST
