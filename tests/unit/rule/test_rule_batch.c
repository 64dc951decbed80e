/* SPDX-License-Identifier: Apache-2.0 */
/* Where MindSpore's batch strategy cuts operators. */
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "rule/batch.h"
#include "rule/op.h"
#include "harness.h"
#include "rule_fixture.h"

static const char *const ways[] = {
	[AP_BATCH_COMMON] = "", [AP_BATCH_WHOLLY] = " wholly", [AP_BATCH_SAMPLES] = " samples",
	[AP_BATCH_DATA] = " data",
};

/* "10,0": dimension 0 of vector 0, which has two, nothing of vector 1; "+1": a value too many. */
static const char *positions(const struct ap_bound *b)
{
	uint8_t mask[AP_MAX_OPERAND];
	enum ap_batch way = ap_op_batch_positions(b, mask);
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint32_t v = 0; v < ap_op_vectors(b); v++) {
		const struct ap_operand *t = ap_op_vector(b, v);
		int rank = t ? t->rank : 0;

		ap_str_add(&s, v ? "," : "");
		for (int d = 0; d < rank; d++)
			ap_str_addc(&s, mask[v] >> d & 1 ? '1' : '0');
		ap_str_add(&s, mask[v] >> rank ? "+1" : "");
	}
	ap_str_add(&s, ways[way]);
	return s.s;
}

#define F "float32"
static const struct {
	const char *type, *shapes, *attrs, *declared, *positions;
} cases[] = {
	{"ReLU", F "[8,6]", "", "", "10"},
	{"ReLU", F "[]", "", "", ""},
	{"Softmax", F "[8,6]", "axis=0", "", "10"},
	{"ReduceSum", F "[8,6]", "axis=0", "", "10"},
	{"Transpose", F "[8,6]", "perm=1,0", "", "10"},
	{"LayerNorm", F "[8,6] " F "[6] " F "[6]", "", "", "10,0,0"},
	{"BiasAdd", F "[8,6] " F "[6]", "", "", "10,0"},
	{"Conv2D", F "[8,3,6,6] " F "[4,3,3,3]", "out_channel=4 kernel_size=3,3", "", "1000,0000"},
	{"Add", F "[8,6] " F "[8,6]", "", "", "10,10"},
	{"Add", F "[8,6] " F "[6]", "", "", "10,0"},
	{"Add", F "[6] " F "[8,6]", "", "", "0,10"},
	{"Sub", F "[32,1] " F "[32]", "", "", "10,0"},
	{"Mul", F "[1,6] " F "[8,6]", "", "", "00,10"},
	{"Mul", F "[1,6] " F "[1,6]", "", "", "00,00"},
	{"Equal", F "[8,1] " F "[1,6]", "", "", "10,00"},
	{"Lerp", F "[8,6] " F "[8,6] " F "[6]", "", "", "10,10,0"},
	{"MaskedFill", F "[8,6] bool[8,6] " F "[]", "", "", "10,10,"},
	{"SigmoidCrossEntropyWithLogits", F "[8,6] " F "[8,6]", "", "", "10,10"},
	{"MatMul", F "[8,6] " F "[6,4]", "", "", "10,00"},
	{"MatMul", F "[6,8] " F "[6,4]", "transpose_a=true", "", "01,00"},
	{"MatMul", F "[8,6] " F "[4,6]", "transpose_b=true", "", "10,00"},
	{"BatchMatMul", F "[8,2,6] " F "[8,6,4]", "", "", "100,100"},
	{"BatchMatMul", F "[8,6] " F "[6,4]", "", "", "10,00"},
	{"BatchMatMul", F "[8,2,6] " F "[6,4]", "", "", "100,00"},
	{"BatchMatMul", F "[2,6] " F "[8,6,4]", "", "", "00,100"},
	{"Gather", F "[16,4] int32[8,2]", "", "", "00,10"},
	{"Gather", F "[16,4] int32[]", "", "", "00,+1"},
	{"Gather", F "[8,16,4] int32[8,2]", "batch_dims=1 axis=1", "", "100,10"},
	{"GatherD", F "[8,6] int32[8,3]", "dim=1", "", "10,10"},
	{"GatherD", F "[8,6] int32[3,6]", "dim=0", "", "00,00"},
	{"GatherNd", F "[16,4] int32[8,1]", "", "", "00,10"},
	{"TopK", F "[8]", "k=2", "", "1"},
	{"OneHot", "int32[8] " F "[] " F "[]", "depth=10", "", "10,, wholly"},
	{"SoftmaxCrossEntropyWithLogits", F "[8,6] " F "[8,6]", "", "", "10,10"},
	{"SparseSoftmaxCrossEntropyWithLogits", F "[8,6] int32[8]", "", "", "10,1"},
	{"Select", "bool[8,6] " F "[8,6] " F "[8,6]", "", "", "10,10,10"},
	{"AddN", F "[8,6] " F "[8,6] " F "[8,6]", "", "", "10,10,10"},
	{"AddN", F "[] " F "[]", "", "", ","},
	{"KLDivLoss", F "[8,6] " F "[8,6]", "", "", "10,10"},
	{"Concat", F "[8,6] " F "[8,4]", "axis=1", "", "10,10"},
	{"Concat", F "[8,6] " F "[4,6]", "axis=0", "", "00,00"},
	{"Concat", F "[8,6] " F "[4,6]", "axis=-2", "", "00,00"},
	{"Stack", F "[8,6] " F "[8,6]", "axis=0", "", "10,10"},
	{"Split", F "[8,6]", "axis=1 output_num=2", F "[8,3] " F "[8,3]", "10"},
	{"Split", F "[8,6]", "axis=0 output_num=2", F "[4,6] " F "[4,6]", "00"},
	{"Split", F "[8]", "axis=0 output_num=2", F "[4] " F "[4]", "0"},
	{"Argmax", F "[8,6]", "axis=-1", "", "10"},
	{"Argmax", F "[8,6]", "axis=0", "", "00"},
	{"TopkExt", F "[8,6]", "k=2", "", "10"},
	{"TopkExt", F "[8]", "k=2", "", "0"},
	{"CumSum", F "[8,6]", "axis=0", "", "00"},
	{"CumSum", F "[8,6]", "axis=1", "", "10"},
	{"LinSpace", "", "", F "[12]", "1"},
	{"Range", "", "", F "[12]", "0"},
	{"FFT", "complex64[8,6]", "dim=0", "", "00"},
	{"FFT", "complex64[8,6]", "dim=-1", "", "10"},
	{"FFTShift", F "[8,6]", "dim=1", "", "10"},
	{"InplaceAdd", F "[8,6] " F "[2,6]", "indices=0,1", "", "00,00"},
	{"TensorDot", F "[8,6] " F "[6,8]", "axes=1,0", "", "10,00"},
	{"TensorDot", F "[8,6] " F "[6,8]", "axes=0,1", "", "10,01"},
	{"TensorDot", F "[8,6] " F "[8,4]", "axes=0,0", "", "10,10"},
	{"PromptFlashAttention", "float16[2,8,16] float16[2,8,16] float16[2,8,16] bool[2,1,8,8]",
		"num_heads=2 input_layout=BSH", "", "100,100,100,1000"},
	{"PromptFlashAttention", "float16[2,8,16] float16[2,8,16] float16[2,8,16] bool[8,8]",
		"num_heads=2 input_layout=BSH", "", "100,100,100,00"},
	{"Slice", F "[8,6]", "begin=0,0 size=8,3", "", "10"},
	{"Slice", F "[8,6]", "begin=0,0 size=4,6", "", "00"},
	{"StridedSlice", F "[8,6]", "begin=0,1 end=8,4 strides=1,1", "", "10"},
	{"StridedSlice", F "[8,6]", "begin=2,0 end=8,6 strides=1,1", "", "00"},
	{"Tile", F "[8,6]", "multiples=2,1", "", "10"},
	{"Tile", F "[8,6]", "multiples=4,1,1", "", "100"},
	{"UnsortedSegmentSum", F "[8,6] int32[8]", "num_segments=4", "", "10,1"},
	{"ScatterUpdate", F "[16,6] int32[8] " F "[8,6]", "", "", "00,0,00"},
	{"TensorScatterUpdate", F "[16,6] int32[8,1] " F "[8,6]", "", "", "00,00,00"},
	{"DropoutDoMask", F "[8,6] uint8[16]", "", "", "10"},
	{"BatchParallel", F "[8,6] " F "[8]", "", F "[8,3]", "10,0 samples"},
	{"StandAlone", F "[8,6] " F "[8]", "", F "[8,3]", "00,0"},
	{"FakeQuantPerChannel", F "[8,6] " F "[8] " F "[8]", "channel_axis=0", "", "10,1,1"},
	{"FakeQuantPerChannel", F "[8,6] " F "[6] " F "[6]", "channel_axis=1", "", "10,0,0"},
	{"FlashAttentionScore", "float16[2,8,16] float16[2,8,16] float16[2,8,16] - - - uint8[8,8]",
		"head_num=2 input_layout=BSH", "", "100,100,100,10"},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(positions_by_hand, AP_COUNT(cases))
{
	struct ap_bound b = bind_ok(cases[_i].type, cases[_i].shapes, cases[_i].attrs,
		cases[_i].declared);

	ck_assert_msg(strcmp(positions(&b), cases[_i].positions) == 0, "%s %s: %s, not %s",
		cases[_i].type, cases[_i].shapes, positions(&b), cases[_i].positions);
}
END_TEST

/* What the table names is in the table of operators, and in the notation. */
START_TEST(every_notation_is_one)
{
	const struct ap_op_row *row;
	size_t noted = 0;

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		const char *n = ap_op_batch_notation(row);

		if (!n)
			continue;
		noted++;
		n += strspn(n, "*~#") ? 1 : strcspn(n, "&?=!");
		n += strspn(n, "&");
		n += strspn(n, "?");
		n += strcmp(n, "==") == 0 ? 2 : strspn(n, "=!");
		ck_assert_msg(!*n, "%s: %s", row->name, n);
	}
	ck_assert_uint_gt(noted, 100);
}
END_TEST
