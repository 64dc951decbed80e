/* SPDX-License-Identifier: Apache-2.0 */
/* What look-ups, scatters, boxes, losses, routers and attention do not bind to. */
#include <string.h>

#include "base/vec.h"
#include "rule/deal.h"

#include "harness.h"
#include "rule_fixture.h"

struct fault {
	const char *type, *shapes, *attrs, *declared;
	const char *check, *text; /* text: part of it */
	int operand;
};

static const struct fault faults[] = {
	{"Gather", "float32[4,6] int32[3]", "axis=2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"Gather", "float32[4,6] int32[3]", "axis=0,1", "", "operator-attr",
		"attribute axis has 2 values; one number is expected", -1},
	{"Gather", "float32[4,6] int32[3]", "axis=1 batch_dims=-2", "", "operator-attr",
		"attribute batch_dims is -2; with 1 dimensions of the indices and axis 1 at "
			"most 1 is allowed", -1},
	{"Gather", "float32[4,6] int32[3,2]", "axis=1 batch_dims=1", "", "operator-shape",
		"dimension 0 of operand 1 is 3, that of operand 0 is 4; equal lengths are "
			"expected", 1},
	{"Gather", "float32[4,6] float32[3]", "", "", "operator-dtype",
		"operand 1 is float32; an integer type is expected", 1},
	{"Gather", "float32[4,6]", "", "", "operator-inputs",
		"Gather needs 2 operands; 1 are given", -1},
	{"Gather", "float32[4,6] int32[3] int32[3]", "", "", "operator-inputs",
		"Gather takes at most 2 operands; operand 2 is too much", -1},
	{"IndexSelect", "float32[4,6] int32[3]", "axis=-3", "", "operator-attr",
		"attribute axis is -3; with 2 dimensions -2..1 is allowed", -1},
	{"Index", "float32[4] int32[3] int32[3]", "", "", "operator-rank",
		"operand 0 has shape [4]; Index needs at least 2 dimensions there", 0},
	{"Index", "float32[4,6] int32[3] int32[4]", "", "", "operator-shape",
		"operand 2 has shape [4], operand 1 has [3]; equal shapes are expected", 2},
	{"Index", "float32[4,6]", "", "", "operator-inputs",
		"Index needs 2 operands; 1 are given", -1},
	{"OneHot", "int32[4]", "depth=0", "", "operator-attr",
		"attribute depth is 0; at least 1 is expected", -1},
	{"OneHot", "float32[4]", "depth=3", "", "operator-dtype",
		"operand 0 is float32; an integer type is expected", 0},
	{"OneHot", "int32[4]", "depth=3 axis=-3", "", "operator-attr",
		"attribute axis is -3; with 2 dimensions -2..1 is allowed", -1},
	{"OneHotExt", "int64[4]", "num_classes=-1", "", "operator-attr",
		"attribute num_classes is -1; at least 1 is expected", -1},
	{"OneHotExt", "int64[4]", "", "", "operator-attr", "attribute num_classes is missing", -1},
	{"TopkExt", "float32[4,6]", "k=7 dim=1", "? ?", "operator-attr",
		"attribute k is 7; of a dimension of 6 1..6 can be taken", -1},
	{"TopkExt", "float32[4,6]", "k=5 dim=2", "? ?", "operator-attr",
		"attribute dim is 2; with 2 dimensions -2..1 is allowed", -1},
	{"ScatterAdd", "float32[] int32[3] float32[3]", "", "", "operator-rank",
		"operand 0 has shape []; ScatterAdd needs at least 1 dimensions there", 0},
	{"ScatterAdd", "float32[4,6] int32[3] float32[3]", "", "", "operator-rank",
		"operand 2 has shape [3]; 2 dimensions are expected", 2},
	{"ScatterAdd", "float32[4,6] int32[3] float32[3,5]", "", "", "operator-shape",
		"dimension 1 of operand 2 is 5; 6 is expected", 2},
	{"ScatterUpdate", "float32[4,6] int32[3] float32[2,6]", "", "", "operator-shape",
		"dimension 0 of operand 2 is 2; 3 is expected", 2},
	{"ScatterUpdate", "float32[4,6] int32[3] float16[3,6]", "", "", "operator-dtype",
		"operand 2 is float16; float32 is expected", 2},
	{"TensorScatterAdd", "float32[4,6] int32[3,3] float32[3]", "", "", "operator-shape",
		"dimension 1 of operand 1 is 3; operand 0 has 2 dimensions", 1},
	{"TensorScatterAdd", "float32[4,6] int32[3,1] float32[3]", "", "", "operator-rank",
		"operand 2 has shape [3]; 2 dimensions are expected", 2},
	{"TensorScatterAdd", "float32[4,6] int32[3,2] float32[4]", "", "", "operator-shape",
		"dimension 0 of operand 2 is 4; 3 is expected", 2},
	{"TensorScatterAdd", "float32[4,6] int32[] float32[4]", "", "", "operator-rank",
		"operand 1 has shape []; TensorScatterAdd needs at least 1 dimensions there", 1},
	{"ScatterNdUpdate", "float32[4,6] float32[3,1] float32[3,6]", "", "", "operator-dtype",
		"operand 1 is float32; an integer type is expected", 1},
	{"BoundingBoxEncode", "float32[4,5] float32[4,5]", "", "", "operator-shape",
		"dimension 1 of operand 0 is 5; 4 is expected", 0},
	{"BoundingBoxEncode", "float32[4,4] float32[5,4]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 5, dimension 0 of operand 0 is 4", 1},
	{"IOU", "float32[4,4] float32[5,3]", "", "", "operator-shape",
		"dimension 1 of operand 1 is 3; 4 is expected", 1},
	{"CropAndResize", "float32[2,9,7,6] float32[8,4] int32[8]", "", "", "operator-attr",
		"attribute crop_size is missing", -1},
	{"CropAndResize", "float32[2,9,7,6] float32[8,4] int32[8]", "crop_size=3", "",
		"operator-attr", "attribute crop_size must be a height and a width of at least 1", -1},
	{"CropAndResize", "float32[2,9,7] float32[8,4] int32[8]", "crop_size=3,5", "",
		"operator-rank",
		"operand 0 has 3 dimensions; 4 are expected", 0},
	{"CropAndResize", "float32[2,9,7,6] float32[8,4] int32[7]", "crop_size=3,5", "",
		"operator-shape", "operand 1 has shape [8, 4]; [7, 4] is expected", 1},
	{"ROIAlign", "float32[2,6,9,7] float32[8,5]", "pooled_height=3", "", "operator-attr",
		"attribute pooled_width is missing", -1},
	{"ROIAlign", "float32[2,6,9,7] float32[8,4]", "pooled_height=3 pooled_width=3", "",
		"operator-shape", "dimension 1 of operand 1 is 4; 5 is expected", 1},
	{"GridSampler2D", "float32[2,6,9,7] float32[3,4,3,2]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 3, dimension 0 of operand 0 is 2", 1},
	{"GridSampler2D", "float32[2,6,9,7] float32[2,4,3,3]", "", "", "operator-shape",
		"dimension 3 of operand 1 is 3; 2 is expected", 1},
	{"SigmoidCrossEntropyWithLogits", "float32[4,6] float32[6]", "", "", "operator-rank",
		"operand 1 has shape [6], operand 0 has [4, 6]; equal ranks are expected", 1},
	{"KLDivLoss", "float32[4,6] float32[1,6]", "reduction=sum", "", "operator-shape",
		"dimension 0 of operand 1 is 1, that of operand 0 is 4; equal lengths are "
			"expected", 1},
	{"KLDivLoss", "float32[4,6] float32[4,6]", "reduction=max", "", "operator-attr",
		"attribute reduction is max; none or mean or sum or batchmean is expected", -1},
	{"KLDivLoss", "float32[] float32[]", "reduction=batchmean", "", "operator-rank",
		"operand 0 has shape []; KLDivLoss needs at least 1 dimensions there", 0},
	{"DropoutExt", "int32[4,6]", "p=0.5", "? ?", "operator-dtype",
		"operand 0 is int32; a floating type is expected", 0},
	{"DropoutDoMask", "float32[4,6]", "", "", "operator-inputs",
		"DropoutDoMask needs 2 operands; 1 are given", -1},
	{"DropoutGenMask", "", "Seed0=1", "", "operator-outputs",
		"shape and type of result 0 do not follow from the operands; they must be "
			"declared", -1},
	{"MoeInitRouting", "float16[8,6] int32[8,2] int32[8,2]", "active_num=8", "",
		"operator-outputs",
		"shape and type of result 0 do not follow from the operands; they must be "
			"declared", -1},
	{"MoeFinalizeRouting", "float16[16,6] float16[8,5]", "", "", "operator-shape",
		"dimension 1 of operand 1 is 5, dimension 1 of operand 0 is 6", 1},
	{"MoeFinalizeRouting",
		"float16[16,6] float16[8,6] - float16[4,6] float16[8,2] int32[15] int32[8,2]", "",
		"", "operator-shape",
		"dimension 0 of operand 4 is 15, dimension 0 of operand 0 is 16", 4},
	{"TopKRouter", "int32[4,8,2]", "capacity=3", "? ?", "operator-attr",
		"attribute expert_num is missing", -1},
	{"TopKRouter", "int32[4,8]", "capacity=3 expert_num=5", "? ?", "operator-rank",
		"operand 0 has shape [4, 8]; TopKRouter needs 3 dimensions there", 0},
	{"FlashAttentionScore", "float16[16,6,4] float16[20,4,4] float16[20,4,4]",
		"head_num=6 input_layout=TND", "", "operator-shape",
		"dimension 1 of operand 0 is 6, dimension 1 of operand 1 is 4", 0},
	{"FlashAttentionScore", "float16[16,6,4] float16[20,2,4] float16[20,2,4]",
		"head_num=6 input_layout=BSHD", "", "operator-attr",
		"attribute input_layout is BSHD; BSH is expected", -1},
	{"FlashAttentionScore", "float16[16,6,4] float16[20,2,4] float16[20,2,4]",
		"head_num=6 input_layout=TND sparse_mode=7", "", "operator-attr",
		"attribute sparse_mode is 7; 2 or 3 is expected", -1},
	{"FlashAttentionScore", "float16[2,8,24] float16[2,8,24] float16[2,8,24]",
		"head_num=6 enable_ring_attention=true", "", "operator-attr",
		"attribute enable_ring_attention is true: keys and values would go around the "
			"devices, which is not planned with; false is allowed", -1},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,8,8] float16[2,8,8]", "", "",
		"operator-attr", "attribute num_heads is missing", -1},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,8,8] float16[2,8,8] bool[8,9]",
		"num_heads=6", "", "operator-shape",
		"dimension 1 of operand 3 is 9, dimension 1 of operand 1 is 8", 3},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,8,8] float16[2,8,8] - int64[3]",
		"num_heads=6", "", "operator-shape",
		"dimension 0 of operand 3 is 3, dimension 0 of operand 0 is 2", 3},
	{"FusedInferAttentionScore", "float16[2,8,24] float16[2,8,8] float16[3,8,8]",
		"num_heads=6", "", "operator-shape",
		"dimension 0 of operand 2 is 3, dimension 0 of operand 0 is 2", 2},
	{"IncreFlashAttention", "float16[2,2,24] float16[2,8,8] float16[2,8,8]", "num_heads=6",
		"", "operator-shape", "dimension 1 of operand 0 is 2; 1 is expected", 0},
	{"PagedAttention", "float16[2,1,24] float16[9,16,2,4] float16[9,16,2,4] int32[2,3]",
		"head_num=6", "", "operator-inputs",
		"PagedAttention needs 5 operands; 4 are given", -1},
	{"PagedAttention",
		"float16[2,1,24] float16[9,16,2,4] float16[9,16,2,4] int32[2,3] int32[3]",
		"head_num=6", "", "operator-shape",
		"dimension 0 of operand 4 is 3, dimension 0 of operand 0 is 2", 4},
	{"PagedAttention",
		"float16[2,1,24] float16[9,16,2,4] float16[9,16,2,4] int32[2,3] int32[2]",
		"head_num=5", "", "operator-shape",
		"dimension 2 of operand 1", 1},
	{"ReshapeAndCache",
		"float16[2,3,9] float16[2,3,9] float16[9,16,2,4] float16[9,16,2,4] int32[6]", "",
		"", "operator-shape",
		"dimension 2 of operand 0 is 9, dimension 2 of operand 2 is 2", 0},
	{"KVCacheMgr", "float16[2,6,8,4] float16[2,6,1,5] int32[1]", "", "", "operator-shape",
		"dimension 3 of operand 1 is 5, dimension 3 of operand 0 is 4", 1},
	{"KVCacheScatterUpdate", "float16[2,6,8,4] int64[2] float16[2,6,1,4]", "axis=-1", "",
		"operator-shape",
		"dimension 2 of operand 2 is 1, dimension 2 of operand 0 is 8", 2},
	{"KVCacheScatterUpdate", "float16[2,6,8,4] int64[2] float16[2,6,1,4]", "axis=1", "",
		"operator-attr", "attribute axis is 1; -2 is expected", -1},
	{"ApplyRotaryPosEmb", "float16[2,3,24] float16[2,3,8] float16[9,5] float16[9,5] int32[2]",
		"", "? ?", "operator-shape",
		"dimension 2 of operand 1 is 8, dimension 1 of operand 2 is 5", 1},
	{"WKV",
		"float32[6] float32[6] float32[2,5,7] float32[2,5,7] float32[2,6] float32[2,6] "
			"float32[2,6]", "", "? ? ? ?", "operator-shape",
		"dimension 2 of operand 2 is 7, dimension 0 of operand 0 is 6", 2},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(faults_name_check_operand_and_sizes, AP_COUNT(faults))
{
	const struct fault *want = &faults[_i];
	struct ap_bind_fault f = bind_bad(want->type, want->shapes, want->attrs, want->declared);

	ck_assert_str_eq(f.check, want->check);
	ck_assert_msg(strstr(f.text, want->text), "%s", f.text);
	ck_assert_int_eq(f.operand, want->operand);
}
END_TEST

/* A matrix that is looked up in along its columns has its sums dealt from the beginning: the result
 * is cut as the columns are, and lacks none of their parts. */
START_TEST(columns_are_dealt)
{
	struct ap_bound b = bind_ok("Gather", "float32[8,6] int32[4]", "axis=1", "");
	struct ap_bound whole = bind_ok("Gather", "float32[1,6] int32[4]", "axis=1", "");

	ck_assert_uint_eq(b.nfactor, 3);
	ck_assert_int_eq(b.factor[2].letter, 'v');
	ck_assert_uint_eq(b.dealt, UINT32_C(1) << 2);
	ck_assert_uint_eq(b.out[0].factors, 3);
	ck_assert_int_eq(b.out[0].dim[0].n, 2);
	ck_assert_int_eq(b.out[0].dim[0].factor[1], 2);
	ck_assert_int_lt(ap_rule_deal_factor(&b), 0);
	ck_assert_uint_eq(whole.dealt, 0);
}
END_TEST
