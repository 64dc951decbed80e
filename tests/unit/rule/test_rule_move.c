/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move, join, repeat and choose: how they bind, and what they refuse. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "rule/bind.h"
#include "harness.h"
#include "move_samples.h"
#include "rule_fixture.h"

static const char *results_text(const struct ap_bound *b)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint16_t t = 0; t < b->nout; t++) {
		ap_str_addf(&s, "%s%s[", t ? " " : "", ap_dtype_name(b->out[t].dtype));
		for (uint8_t i = 0; i < b->out[t].rank; i++)
			ap_str_addf(&s, "%s%lld", i ? "," : "", (long long)b->out[t].size[i]);
		ap_str_addc(&s, ']');
	}
	return s.s;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(samples_bind_as_written, sample_count())
{
	const struct move_sample *s = sample_at((size_t)_i);
	struct ap_bound b = bind_ok(s->type, s->shapes, s->attrs, s->declared);
	char dev[AP_MAX_FACTOR + 1] = "";

	for (uint8_t i = 0; i < b.ndev; i++)
		dev[i] = b.factor[b.dev[i]].letter;
	ck_assert_str_eq(ap_rule_text(&ctx, &b), s->text);
	ck_assert_str_eq(results_text(&b), s->results);
	ck_assert_str_eq(dev, s->dev);
	ck_assert_str_eq(b.row->name, s->type);
}
END_TEST

static const struct {
	const char *type, *shapes, *attrs, *declared;
	const char *check, *text;
	int operand;
} faults[] = {
	{"Concat", "float32[] float32[]", "", "", "operator-rank",
		"operand 0 has shape []; Concat needs at least 1 dimensions there", 0},
	{"Concat", "float32[4,6] float32[4,6]", "axis=2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"Concat", "float32[4,6] float32[4,6]", "axis=0,1", "", "operator-attr",
		"attribute axis has 2 values; one number is expected", -1},
	{"Concat", "float32[4,6] float32[6]", "", "", "operator-rank", "operand 1 has shape [6], "
		"operand 0 has [4, 6]; equal ranks are expected", 1},
	{"Concat", "float32[4,6] float32[4,6] float32[4,5]", "", "", "operator-shape",
		"dimension 1 of operand 2 is 5, that of operand 0 is 6; equal lengths are expected",
		2},
	{"StackExt", "float32[4,6] float32[4,6]", "dim=3", "", "operator-attr",
		"attribute dim is 3; with 3 dimensions -3..2 is allowed", -1},
	{"SliceExt", "float32[4,6]", "dim=2", "", "operator-attr",
		"attribute dim is 2; with 2 dimensions -2..1 is allowed", -1},
	{"SliceExt", "float32[4,6]", "dim=1 start=4 end=2", "", "operator-attr",
		"attributes start and end leave nothing of dimension 1 of length 6", -1},
	{"SliceExt", "float32[4,6]", "step=0", "", "operator-attr",
		"attribute step is 0; at least 1 is expected", -1},
	{"SliceExt", "float32[]", "", "", "operator-rank",
		"operand 0 has shape []; SliceExt needs at least 1 dimensions there", 0},
	{"PadV3", "float32[4,6]", "", "", "operator-attr", "attribute paddings is missing", -1},
	{"PadV3", "float32[4,6]", "paddings=1", "", "operator-attr", "attribute paddings has 1 values; "
		"with 2 dimensions an even number from 2 to 4 is allowed", -1},
	{"PadV3", "float32[4,6]", "paddings=1,1,1,1,1,1", "", "operator-attr",
		"attribute paddings has 6 values", -1},
	{"PadV3", "float32[4,6]", "paddings=6,0 mode=reflect", "", "operator-attr", "attribute paddings "
		"has 6 for dimension 1 of length 6; with mode \"reflect\" at most 5 is allowed", -1},
	{"PadV3", "float32[4,6]", "paddings=0,0,0,5 mode=circular", "", "operator-attr", "with mode "
		"\"circular\" at most 4 is allowed", -1},
	{"PadV3", "float32[4,6]", "paddings=0,0,-3,-1", "", "operator-attr", "attribute paddings has -3 "
		"and -1 for dimension 0 of length 4; at least one element must be left", -1},
	{"RepeatInterleave", "float32[4,6]", "dim=0", "", "operator-attr",
		"attribute rep or repeats is missing", -1},
	{"RepeatInterleave", "float32[4,6]", "repeats=0 dim=0", "", "operator-attr",
		"attribute repeats is 0; a number of at least 1 is expected", -1},
	{"RepeatInterleave", "float32[4,6]", "repeats=1,2 dim=0", "", "operator-attr",
		"attribute repeats has 2 values; 1 or 4 are expected", -1},
	{"RepeatInterleave", "float32[2,6]", "repeats=1,-2 dim=0", "", "operator-attr",
		"attribute repeats has -2 at 1; at least 0 is expected", -1},
	{"RepeatInterleave", "float32[2,6]", "repeats=0,0 dim=0", "", "operator-attr",
		"attribute repeats has no number above 0", -1},
	{"RepeatInterleaveTensor", "float32[4,6] int32[4]", "dim=0", "", "operator-outputs",
		"the length of the result does not follow from the shapes", -1},
	{"RepeatInterleaveTensor", "float32[4,6] int32[4]", "", "float32[9,6]", "operator-outputs",
		"without attribute dim the result has 1 dimension; 2 are declared", -1},
	{"RepeatInterleaveTensor", "float32[4,6] int32[4]", "dim=0", "float32[9]", "operator-outputs",
		"the result has 2 dimensions; 1 are declared", -1},
	{"RepeatInterleaveTensor", "float32[4,6] float32[4]", "dim=0", "float32[9,6]",
		"operator-dtype", "operand 1 is float32; an integer type is expected", 1},
	{"TraceV2", "float32[4,6]", "axis1=0 axis2=-2", "", "operator-attr",
		"attributes axis1 and axis2 both name dimension 0; two dimensions are expected", -1},
	{"TraceV2", "float32[4]", "", "", "operator-rank",
		"operand 0 has shape [4]; TraceV2 needs at least 2 dimensions there", 0},
	{"Tril", "float32[4]", "", "", "operator-rank",
		"operand 0 has shape [4]; Tril needs at least 2 dimensions there", 0},
	{"FFTShift", "float32[4,6]", "dim=2", "", "operator-attr", "attribute dim is 2", -1},
	{"Assign", "float32[8] float32[4,8]", "", "", "operator-rank", "operand 1 has shape [4, 8], "
		"operand 0 has [8]; equal ranks are expected", 1},
	{"AssignAdd", "float32[8] float32[1]", "", "", "operator-shape", "dimension 0 of operand 1 is "
		"1, that of operand 0 is 8; equal lengths are expected", 1},
	{"Polar", "float32[8] float64[8]", "", "", "operator-dtype",
		"operand 1 is float64; float32 is expected", 1},
	{"Polar", "complex64[8] complex64[8]", "", "", "operator-dtype",
		"operand 0 is complex64; a floating type is expected", 0},
	{"InplaceCopy", "float32[8] float32[4,8]", "", "", "operator-rank", "operand 1 has shape "
		"[4, 8], operand 0 has [8]; at most 1 dimensions are expected", 1},
	{"InplaceCopy", "float32[4,8] float32[4]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 4; 1 or 8 is expected", 1},
	{"InplaceAdd", "float32[8,6] float32[2,5]", "indices=1,3", "", "operator-shape",
		"dimension 1 of operand 1 is 5, that of operand 0 is 6; equal lengths are expected",
		1},
	{"BatchParallel", "float32[8]", "", "", "operator-outputs",
		"shape and type of result 0 do not follow from the operands; they must be declared", -1},
	{"CheckValid", "float32[8,5] float32[3]", "", "", "operator-shape",
		"dimension 1 of operand 0 is 5; 4 is expected", 0},
	{"Unique", "int32[8]", "", "int32[4] ?", "operator-outputs",
		"shape and type of result 1 do not follow", -1},
	{"RandomChoiceWithMask", "int32[8,4]", "", "int32[6,2] bool[6]", "operator-dtype",
		"operand 0 is int32; bool is expected", 0},
	{"LinSpace", "float32[] float32[]", "", "", "operator-outputs",
		"shape and type of result 0 do not follow", -1},
	{"GetNext", "", "", "", "operator-outputs", "shape and type of result 0 do not follow", -1},
	{"VirtualDataset", "float32[8] float32[8]", "", "? ? ?", "operator-outputs",
		"3 results are declared; VirtualDataset has one for each of its 2 operands", -1},
	{"PopulationCount", "float32[8]", "", "", "operator-dtype",
		"operand 0 is float32; an integer type is expected", 0},
	{"Igamma", "int32[8] int32[8]", "", "", "operator-dtype",
		"operand 0 is int32; a floating type is expected", 0},
	{"Betainc", "float32[8] float32[8]", "", "", "operator-inputs",
		"Betainc needs 3 operands; 2 are given", -1},
	{"Concat", "float32[4] float16[4]", "", "", "operator-dtype",
		"operand 1 is float16; float32 is expected", 1},
	{"Concat", "float32[4] - float32[4]", "", "", "operator-inputs",
		"Concat needs 3 operands; 2 are given", -1},
	{"Concat", "", "", "", "operator-inputs", "Concat needs 1 operands; 0 are given", -1},
	{"Concat", "float32[4]", "", "? ?", "operator-outputs",
		"Concat has 1 results; 2 are declared", -1},
	{"Concat", "int8[9223372036854775807] int8[1]", "", "", "operator-shape",
		"dimension 0 of the result overflows", 1},
	{"Stack", "float32[4,6] float32[6,4]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 6, that of operand 0 is 4", 1},
	{"Stack", "float32[4]", "axis=-3", "", "operator-attr",
		"attribute axis is -3; with 2 dimensions -2..1 is allowed", -1},
	{"Stack", "int8[1,1,1,1,1,1,1,2]", "", "", "operator-rank",
		"the result would have more than 8 dimensions", -1},
	{"AddN", "float32[4,6] float32[6]", "", "", "operator-rank", "equal ranks are expected", 1},
	{"AddN", "float32[4,6] float32[1,6]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 1, that of operand 0 is 4", 1},
	{"Split", "float32[4,10]", "axis=1 output_num=3", "? ? ?", "operator-shape",
		"dimension 1 of operand 0 is 10; a multiple of attribute output_num, 3, is expected", 0},
	{"Split", "float32[4,9]", "axis=1 output_num=3", "? ?", "operator-outputs",
		"2 results are declared; by attribute output_num 3 are expected", -1},
	{"Split", "float32[4]", "output_num=0", "", "operator-attr",
		"attribute output_num is 0; at least 1 is expected", -1},
	{"Split", "float32[]", "", "", "operator-rank", "at least 1 dimensions", 0},
	{"SplitV", "float32[10]", "size_splits=4,5", "? ?", "operator-shape",
		"dimension 0 of operand 0 is 10; attribute size_splits adds up to 9, as much is "
		"expected", 0},
	{"SplitV", "float32[10]", "size_splits=4,-1,-1", "? ? ?", "operator-attr",
		"attribute size_splits has -1 at 2; a length or one -1 is expected", -1},
	{"SplitV", "float32[10]", "size_splits=4,-1,6", "? ? ?", "operator-shape",
		"attribute size_splits adds up to 10", 0},
	{"SplitV", "float32[10]", "size_splits=5,5 num_split=3", "? ?", "operator-attr",
		"attribute num_split is 3; attribute size_splits has 2 values", -1},
	{"SplitV", "float32[10]", "size_splits=5,5 split_dim=1", "? ?", "operator-attr",
		"attribute split_dim is 1; with 1 dimensions -1..0 is allowed", -1},
	{"SplitWithSize", "float32[10]", "", "", "operator-attr",
		"attribute split_sizes is missing", -1},
	{"SplitTensor", "float32[10]", "", "", "operator-attr", "attribute split_size is missing",
		-1},
	{"SplitTensor", "float32[10]", "split_size=-2", "", "operator-attr",
		"attribute split_size is -2; at least 1 is expected", -1},
	{"SplitTensor", "float32[10]", "split_size=3", "? ? ?", "operator-outputs",
		"3 results are declared; by attribute split_size 4 are expected", -1},
	{"Slice", "float32[4,6]", "begin=0,0", "", "operator-attr", "attribute size is missing",
		-1},
	{"Slice", "float32[4,6]", "begin=0 size=4,6", "", "operator-attr",
		"attribute begin has 1 values; 2 are expected", -1},
	{"Slice", "float32[4,6]", "begin=0,6 size=4,1", "", "operator-attr",
		"attribute begin has 6 at 1; for a length of 6 0..5 is allowed", -1},
	{"Slice", "float32[4,6]", "begin=0,-1 size=4,1", "", "operator-attr",
		"attribute begin has -1 at 1", -1},
	{"Slice", "float32[4,6]", "begin=0,2 size=4,5", "", "operator-attr",
		"attribute size has 5 at 1; from 2 on 1..4 or -1 is allowed", -1},
	{"Slice", "float32[4,6]", "begin=0,2 size=0,1", "", "operator-attr",
		"attribute size has 0 at 0", -1},
	{"StridedSlice", "float32[4]", "begin=0", "", "operator-attr", "attribute end is missing",
		-1},
	{"StridedSlice", "float32[4,6]", "begin=0,0 end=4", "", "operator-attr",
		"attribute end has 1 values; 2 are expected", -1},
	{"StridedSlice", "float32[4,6]", "begin=0,0 end=4,6 strides=1", "", "operator-attr",
		"attribute strides has 1 values; 2 are expected", -1},
	{"StridedSlice", "float32[4,6]", "begin=0,0,0 end=4,6,1", "", "operator-attr",
		"attribute begin is for 3 dimensions; at most 2 are expected", -1},
	{"StridedSlice", "float32[4,6]", "begin=0,0 end=4,6 strides=1,0", "", "operator-attr",
		"attribute strides has 0 at 1; another number is expected", -1},
	{"StridedSlice", "float32[4,6]", "begin=0,3 end=4,2", "", "operator-shape",
		"of dimension 1 of operand 0, length 6, nothing is taken", 0},
	{"StridedSlice", "float32[4,6]", "begin=0,2 end=4,3 strides=1,-1", "", "operator-shape",
		"nothing is taken", 0},
	{"StridedSlice", "float32[4]", "begin=4 end=5 shrink_axis_mask=1", "", "operator-attr",
		"attribute begin has 4 at 0; for a length of 4 -4..3 is allowed", -1},
	{"StridedSlice", "float32[4]", "begin=0 end=4 end_mask=-1", "", "operator-attr",
		"attribute end_mask is -1; at least 0 is expected", -1},
	{"StridedSlice", "float32[4]", "begin=0,0 end=4,4 ellipsis_mask=3", "", "operator-attr",
		"attribute ellipsis_mask has several bits; one is allowed", -1},
	{"StridedSlice", "float32[4]", "begin=0,0,0,0,0,0,0,0,0 end=1,1,1,1,1,1,1,1,4 "
		"new_axis_mask=255", "", "operator-rank",
		"the result would have more than 8 dimensions", -1},
	{"StridedSlice", "float32[4]", "begin=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 end=1", "",
		"operator-attr", "attribute begin has 17 values; at most 16 are expected", -1},
	{"ExpandDims", "float32[4]", "", "", "operator-attr", "attribute axis is missing", -1},
	{"ExpandDims", "float32[4]", "axis=2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"ExpandDims", "float32[1,1,1,1,1,1,1,1]", "axis=0", "", "operator-rank",
		"more than 8 dimensions", -1},
	{"Squeeze", "float32[4,1]", "axis=0", "", "operator-shape",
		"dimension 0 of operand 0 is 4; 1 is expected where it is dropped", 0},
	{"Squeeze", "float32[4,1]", "axis=1,2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"BroadcastTo", "float32[4]", "", "", "operator-attr", "attribute shape is missing", -1},
	{"BroadcastTo", "float32[4,1]", "shape=4", "", "operator-attr",
		"attribute shape has 1 values; with 2 dimensions 2..8 are allowed", -1},
	{"BroadcastTo", "float32[4,1]", "shape=2,8,2", "", "operator-shape",
		"dimension 0 of operand 0 is 4; 1 or, by attribute shape, 8 is expected", 0},
	{"BroadcastTo", "float32[4,1]", "shape=-1,4,1", "", "operator-attr",
		"attribute shape has -1 at 0; a length is expected", -1},
	{"BroadcastTo", "float32[4,1]", "shape=-1,0", "", "operator-attr",
		"attribute shape has 0 at 1; a length or -1 is expected", -1},
	{"Tile", "float32[4]", "", "", "operator-attr", "attribute multiples is missing", -1},
	{"Tile", "float32[4,2]", "multiples=2", "", "operator-attr",
		"attribute multiples has 1 values; with 2 dimensions 2..8 are allowed", -1},
	{"Tile", "float32[4,2]", "multiples=2,0", "", "operator-attr",
		"attribute multiples has 0 at 1; a number of at least 1 is expected", -1},
	{"RepeatElements", "float32[4,2]", "rep=0", "", "operator-attr", "attribute rep is 0", -1},
	{"RepeatElements", "float32[4,2]", "rep=2 axis=2", "", "operator-attr",
		"attribute axis is 2", -1},
	{"RepeatElements", "float32[4,2]", "", "", "operator-attr",
		"attribute rep or repeats is missing", -1},
	{"Select", "float32[4] float32[4] float32[4]", "", "", "operator-dtype",
		"operand 0 is float32; bool is expected", 0},
	{"Select", "bool[4] float32[4] float32[3]", "", "", "operator-shape",
		"dimension 0 of operand 2 is 3, another operand has 4 there", 2},
	{"MaskedFill", "float32[4] bool[4] float32[4]", "", "", "operator-rank",
		"operand 2 has shape [4]; MaskedFill needs 0 dimensions there", 2},
	{"TopK", "float32[4,6]", "", "", "operator-attr", "attribute k is missing", -1},
	{"TopK", "float32[4,6]", "k=7", "? ?", "operator-attr",
		"attribute k is 7; of a dimension of 6 1..6 can be taken", -1},
	{"TopK", "float32[]", "k=1", "? ?", "operator-rank", "at least 1 dimensions", 0},
	{"TopK", "float32[4]", "k=1", "? ? ?", "operator-outputs",
		"TopK has 2 results; 3 are declared", -1},
	{"ArgMaxWithValue", "float32[4,6]", "axis=0,1", "? ?", "operator-attr",
		"attribute axis must be one number", -1},
	{"Argmax", "float32[4,6]", "axis=2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"CumSum", "float32[4,6]", "", "", "operator-attr", "attribute axis must be one number",
		-1},
	{"GatherD", "float32[4,6] int32[4,3]", "", "", "operator-attr",
		"attribute dim is missing", -1},
	{"GatherD", "float32[4,6] int32[3,3]", "dim=1", "", "operator-shape",
		"dimension 0 of operand 1 is 3, that of operand 0 is 4", 1},
	{"GatherD", "float32[4,6] int32[4]", "dim=0", "", "operator-rank",
		"equal ranks are expected", 1},
	{"GatherD", "float32[4,6] float32[4,6]", "dim=0", "", "operator-dtype",
		"operand 1 is float32; an integer type is expected", 1},
	{"GatherNd", "float32[4,6] int32[4,3]", "", "", "operator-shape",
		"dimension 1 of operand 1 is 3; operand 0 has 2 dimensions", 1},
	{"GatherNd", "float32[4,6] int32[]", "", "", "operator-rank",
		"operand 1 has shape []; GatherNd needs at least 1 dimensions there", 1},
	{"UnsortedSegmentSum", "float32[4,6] int32[4]", "", "", "operator-attr",
		"attribute num_segments is missing", -1},
	{"UnsortedSegmentSum", "float32[4,6] int32[4]", "num_segments=0", "", "operator-attr",
		"attribute num_segments is 0; at least 1 is expected", -1},
	{"UnsortedSegmentSum", "float32[4,6] int32[4,5]", "num_segments=3", "", "operator-shape",
		"dimension 1 of operand 1 is 5, that of operand 0 is 6", 1},
	{"UnsortedSegmentSum", "float32[4] int32[4,5]", "num_segments=3", "", "operator-rank",
		"operand 0 has shape [4]; UnsortedSegmentSum needs at least 2 dimensions there", 0},
};

START_LOOP_TEST(faults_name_check_operand_and_sizes, AP_COUNT(faults))
{
	struct ap_bind_fault f = bind_bad(faults[_i].type, faults[_i].shapes, faults[_i].attrs,
		faults[_i].declared);

	ck_assert_msg(strstr(f.text, faults[_i].text), "%s", f.text);
	ck_assert_str_eq(f.check, faults[_i].check);
	ck_assert_int_eq(f.operand, faults[_i].operand);
}
END_TEST

/* Which operands and results are kept, which operands gradients flow into. */
static const struct {
	const char *type, *shapes, *attrs, *kept, *grad;
} flows[] = {
	{"Concat", "float16[4] float16[4]", "", "", "ab"},
	{"Concat", "int32[4] int32[4]", "", "", ""},
	{"Select", "bool[4] float16[4] float16[4]", "", "a", "bc"},
	{"MaskedFill", "float16[4] bool[4] float16[]", "", "b", "ac"},
	{"TopK", "float16[4]", "k=2", "p", "a"},
	{"ArgMaxWithValue", "float16[4]", "", "o", "a"},
	{"Argmax", "float16[4]", "", "", ""},
	{"CumSum", "float16[4]", "axis=0", "", "a"},
	{"CumProd", "float16[4]", "axis=0", "ao", "a"},
	{"GatherD", "float16[4] int32[4]", "dim=0", "b", "a"},
	{"Embedding", "int32[4] float16[4,2]", "", "a", "b"},
	{"UnsortedSegmentSum", "float16[4] int32[4]", "num_segments=2", "b", "a"},
	{"UnsortedSegmentMax", "float16[4] int32[4]", "num_segments=2", "abo", "a"},
	{"Lerp", "float16[4] float16[4] float16[]", "", "abc", "abc"},
	{"BroadcastTo", "float16[1]", "shape=4", "", "a"},
	{"AddN", "float16[4] float16[4] float16[4]", "", "", "abc"},
};

START_LOOP_TEST(what_is_kept_and_where_gradients_flow, AP_COUNT(flows))
{
	struct ap_bound b = bind_ok(flows[_i].type, flows[_i].shapes, flows[_i].attrs, "");
	char kept[16] = "", grad[16] = "";

	for (uint16_t k = 0; k < b.nin; k++) {
		if (b.in[k].saved)
			kept[strlen(kept)] = (char)('a' + k);
		if (b.in[k].differentiable)
			grad[strlen(grad)] = (char)('a' + k);
	}
	for (uint16_t k = 0; k < b.nout; k++)
		if (b.out[k].saved)
			kept[strlen(kept)] = (char)('o' + k);
	ck_assert_str_eq(kept, flows[_i].kept);
	ck_assert_str_eq(grad, flows[_i].grad);
}
END_TEST

/* n operands of 4 x 6, of the first n slots. */
static enum ap_status bind_many(const char *type, uint16_t n, struct ap_bound *b,
	struct ap_bind_fault *fault)
{
	struct ap_shape *in = AP_NEW_N(ctx.arena, struct ap_shape, n);
	const struct ap_attrs none = {0};
	struct ap_bind_in want = {.type = type, .attrs = &none, .nin = n, .in = in};

	for (uint16_t i = 0; i < n; i++)
		in[i] = (struct ap_shape){2, AP_FLOAT32, {4, 6}};
	return ap_rule_bind(&ctx, &want, b, fault);
}

START_TEST(as_many_operands_as_there_may_be)
{
	struct ap_bind_fault fault;
	struct ap_bound b;

	ck_assert_int_eq(bind_many("AddN", 40, &b, &fault), AP_OK);
	ck_assert_uint_eq(b.nin, 40);
	ck_assert_uint_eq(b.nfactor, 2);
	ck_assert_uint_eq(b.in[39].factors, 3);
	ck_assert(b.in[39].differentiable && !b.in[39].saved);
	ck_assert_int_eq(bind_many("Concat", AP_MAX_OPERAND, &b, &fault), AP_OK);
	ck_assert_int_eq(b.out[0].size[0], 4 * AP_MAX_OPERAND);
	ck_assert(!b.in[14].saved && !b.in[159].saved && b.in[159].differentiable);
	ck_assert_int_eq(bind_many("Stack", AP_MAX_OPERAND + 1, &b, &fault), AP_MEANING);
	ck_assert_str_eq(fault.check, "operator-inputs");
	ck_assert_str_eq(fault.text, "Stack takes at most 65534 operands; operand 65534 is too much");
}
END_TEST

START_TEST(as_many_results_as_there_may_be)
{
	const struct ap_attr v = {.name = "output_num", .type = AP_ATTR_INT, .i = 200};
	const struct ap_attrs attrs = {1, &v};
	const struct ap_shape in = {2, AP_FLOAT16, {400, 6}};
	struct ap_bind_in want = {.type = "Split", .attrs = &attrs, .nin = 1, .nout = 200,
		.in = &in};
	struct ap_bind_fault fault;
	struct ap_bound b;

	ck_assert_int_eq(ap_rule_bind(&ctx, &want, &b, &fault), AP_OK);
	ck_assert_uint_eq(b.nout, 200);
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(b.out[i].size[0], 2);
		ck_assert_uint_eq(b.out[i].factors, 1);
		ck_assert_int_eq(b.out[i].dtype, AP_FLOAT16);
		ck_assert(!b.out[i].saved && !b.out[i].silent);
	}
}
END_TEST

/* Grouped queries with small operators: what makes every head of the keys eight. The cut of the
 * eight heads of the keys goes through all of them, unchanged. */
static const struct {
	const char *type, *shapes, *attrs;
	int in, out; /* dimensions of the heads */
} heads[] = {
	{"Reshape", "float16[2,16,512]", "shape=2,16,8,64", 2, 2},
	{"Transpose", "float16[2,16,8,64]", "perm=0,2,1,3", 2, 1},
	{"Concat", "float16[2,8,16,32] float16[2,8,16,32]", "axis=-1", 1, 1},
	{"ExpandDims", "float16[2,8,16,64]", "axis=2", 1, 1},
	{"BroadcastTo", "float16[2,8,1,16,64]", "shape=2,8,8,16,64", 1, 1},
	{"Tile", "float16[2,8,1,16,64]", "multiples=1,1,8,1,1", 1, 1},
	{"Reshape", "float16[2,8,8,16,64]", "shape=2,64,16,64", 1, 1},
	{"StridedSlice", "float16[2,64,16,64]", "begin=0,0,0,0 end=2,64,8,64", 1, 1},
};

START_LOOP_TEST(heads_stay_cut, AP_COUNT(heads))
{
	struct ap_bound b = bind_ok(heads[_i].type, heads[_i].shapes, heads[_i].attrs, "");
	const struct ap_dim *in = &b.in[0].dim[heads[_i].in], *out = &b.out[0].dim[heads[_i].out];

	ck_assert(in->n > 0 && out->n > 0);
	ck_assert_int_eq(in->factor[0], out->factor[0]);
	ck_assert_int_eq(b.factor[in->factor[0]].size % 8, 0);
	ck_assert(!(b.factor[in->factor[0]].flags & AP_FACTOR_FROZEN));
}
END_TEST
