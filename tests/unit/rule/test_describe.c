/* SPDX-License-Identifier: Apache-2.0 */
/* Operators in words. */
#include <string.h>

#include "base/vec.h"
#include "harness.h"
#include "rule/describe.h"
#include "rule/op.h"
#include "rule_fixture.h"

static const char *describe(const char *type)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_op_describe(type, &s);
	return s.s;
}

static const struct {
	const char *type, *line;
} lines[] = {
	{"MatMul", "\n  family       matrix products\n"},
	{"MatMul", "\n  attributes   transpose_a, transpose_b\n"},
	{"MatMul", "\n  out_strategy deals the partial sums over k along dimension 0 of the result "
		"(ReduceScatter)\n"},
	{"MatMul", "\n  types        one type -> that type\n"},
	{"MatMul", "\n  dev_matrix   in the order mkn, the repetition last\n"},
	{"MatMul", "\n  forward      AllReduce (sum) of result 0 over k\n"
		"  backward     mindspore: AllReduce (sum) of the results' gradients over the same\n"
		"               generic: sum, on its way back, of the gradient of operand 0 over n; "
		"operand 1 over m\n"},
	{"MatMul", "\n  saved        operand 0, operand 1\n"},
	{"Add", "\n  aliases      TensorAdd\n"},
	{"Add", "\n  forward      none\n"},
	{"Softmax", "\n  whole        [axis]\n"},
	{"Transpose", "\n  attributes   perm (or input_perm)\n"},
	{"BatchNorm", "\n  refused      group_size but 0: it restricts the statistics to a part of the "
		"devices\n"},
	{"BatchNorm", "AllReduce (sum) of result 1 over b, *\n"},
	{"LayerNorm", "of the gradient of operand 1 over *; operand 2 over *\n"},
	{"ReduceMax", "AllReduce (maximum) of result 0 over [axis]\n"
		"               none with cross_batch\n"},
	{"ReduceMax", "\n  attributes   keep_dims, axis, cross_batch\n"},
	{"ReduceMean", "AllReduce (sum, divided by the parts) of result 0 over [axis]\n"
		"               none with cross_batch where the batch alone is cut, among all devices\n"},
	{"SquareSumAll", "AllReduce (sum) of the results over all cut dimensions\n"},
	{"MaxPool", "\n  forward      NeighborExchange of operand 0 along h, w, where windows reach into "
		"the next part\n"},
	{"Embedding", "\n  masked       v: a part gives zero for what it does not hold\n"},
	{"Embedding", "the repetition last, but first where v is cut\n"},
	{"Tile", "\n  shard()      a vector for result 0\n"},
	{"Reshape", "\n  shard()      takes no strategy: the operator follows its neighbours\n"},
	{"Cast", "\n  shard()      a vector for each operand; searches of MindSpore give it its "
		"producer's layout all the same\n"},
	{"ReLU", "\n  semi_auto    cuts dimension 0 of operand 0\n"},
	{"MatMul", "\n  semi_auto    cuts m of operand 0\n"},
	{"Gather", "\n  semi_auto    cuts dimension 0 of operand 1, and what is cut along with it\n"},
	{"Concat", "\n  semi_auto    cuts dimension 0 of every operand, or nothing where that stays whole\n"},
	{"OneHot", "\n  semi_auto    cuts dimension 0 of operand 0, by all devices or not at all\n"},
	{"ScatterAdd", "\n  semi_auto    cuts nothing\n"},
	{"UnsortedSegmentSum", "\n  semi_auto    cuts dimension 0 of operand 0, dimension 0 of operand 1\n"},
	{"Cast", "\n  semi_auto    lies as its neighbours\n"},
	{"Equal", "\n  types        one type -> bool\n"},
	{"Equal", "\n  backward     none\n"},
	{"BatchParallel", "\n  condition    batch-parallel: dimension 0 is cut in as many parts as there "
		"are devices, or not at all\n"},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(lines_by_hand, AP_COUNT(lines))
{
	const char *text = describe(lines[_i].type);

	ck_assert_msg(strstr(text, lines[_i].line), "%s: no \"%s\" in\n%s", lines[_i].type,
		lines[_i].line, text);
}
END_TEST

/* Every row's rule, source and collectives are there; no word is missing. */
START_TEST(every_operator_is_described)
{
	const struct ap_op_row *row;

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		const char *text = describe(row->name);

		ck_assert_msg(strstr(text, row->rule), "%s", text);
		ck_assert_msg(strstr(text, "\n  source       "), "%s", text);
		ck_assert_msg(strstr(text, "\n  forward      "), "%s", text);
		ck_assert_msg(strstr(text, "\n  backward     "), "%s", text);
		ck_assert_msg(strstr(text, "\n  family       "), "%s", text);
		ck_assert_msg(!strstr(text, "(null)"), "%s", text);
		ck_assert_msg(!strstr(text, "over \n") && !strstr(text, " ;"), "%s", text);
	}
}
END_TEST

START_TEST(unsupported_types_have_a_reason)
{
	const char *type, *reason, *near;

	for (size_t i = 0; ap_op_unsupported_at(i, &type, &reason); i++) {
		ck_assert_str_eq(ap_op_unsupported(type), reason);
		ck_assert_ptr_null(ap_op_canonical(type, &near));
		ck_assert_uint_gt(strlen(reason), 20);
	}
	ck_assert_ptr_null(ap_op_unsupported("MatMul"));
}
END_TEST
