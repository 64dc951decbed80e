/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, caches, routers, scatters and places against numbers worked out by hand. */
#include "base/vec.h"
#include "harness.h"
#include "pinned.h"

#define EIGHT(x) x " " x " " x " " x " " x " " x " " x " " x
#define BOTH "(5*exp(3)+6*exp(4))/(exp(3)+exp(4))"

static const struct ex_pinned pinned[] = {
	{"FlashAttentionScore", "head_num=1 sparse_mode=2",
		"[1,2,1] 1 2; [1,2,1] 3 4; [1,2,1] 5 6",
		"[1,2,1] 5 (5*exp(6)+6*exp(8))/(exp(6)+exp(8)); [1,1,2,8] " EIGHT("3") " " EIGHT("8")
		"; [1,1,2,8] " EIGHT("exp(3)") " " EIGHT("exp(6)+exp(8)"), ""},
	{"FlashAttentionScore", "head_num=1 scale_value=2",
		"[1,1,1] 2; [1,2,1] 3 4; [1,2,1] 5 6; [1,1,1,2] 10 20; -; -; [1,2] 0 1",
		"[1,1,1,8] " EIGHT("22") "; [1,1,1,8] " EIGHT("exp(22)") "; [1] 0; [1,1,1] 5", ""},
	{"FlashAttentionScore", "head_num=4 input_layout=BNSD",
		"[1,4,1,1] 1 2 3 4; [1,2,1,1] 5 6; [1,2,1,1] 7 8",
		"[1,4,1,1] 7 7 8 8; [1,4,1,8] " EIGHT("5") " " EIGHT("10") " " EIGHT("18") " "
		EIGHT("24") "; [1,4,1,8] " EIGHT("exp(5)") " " EIGHT("exp(10)") " " EIGHT("exp(18)")
		" " EIGHT("exp(24)"), ""},
	{"FlashAttentionScore", "head_num=1 input_layout=BSND",
		"[1,1,1,2] 1 2; [1,2,1,2] 3 0 2 1; [1,2,1,1] 5 6",
		"[1,1,1,1] " BOTH "; [1,1,1,8] " EIGHT("4") "; [1,1,1,8] " EIGHT("exp(3)+exp(4)"), ""},
	{"FlashAttentionScore", "head_num=1 keep_prob=2",
		"[1,1,1] 1; [1,2,1] 3 4; [1,2,1] 5 6; -; [1,1,1,1] 2",
		"[1,1,1] 6*exp(4)/(exp(3)+exp(4))/2; [1,1,1,8] " EIGHT("4") "; [1,1,1,8] "
		EIGHT("exp(3)+exp(4)"), ""},
	{"FlashAttentionScore", "head_num=1 sparse_mode=3",
		"[1,1,1] 1; [1,2,1] 3 4; [1,2,1] 5 6",
		"[1,1,1] " BOTH "; [1,1,1,8] " EIGHT("4") "; [1,1,1,8] " EIGHT("exp(3)+exp(4)"), ""},
	{"FlashAttentionScore", "head_num=1 sparse_mode=4 pre_tokens=0 next_tokens=0",
		"[1,2,1] 1 1; [1,2,1] 3 4; [1,2,1] 5 6",
		"[1,2,1] 5 6; [1,1,2,8] " EIGHT("3") " " EIGHT("4") "; [1,1,2,8] " EIGHT("exp(3)") " "
		EIGHT("exp(4)"), ""},
	{"FlashAttentionScore",
		"head_num=1 input_layout=TND actual_seq_qlen=[1,2] actual_seq_kvlen=[1,2]",
		"[2,1,1] 1 1; [2,1,1] 3 4; [2,1,1] 5 6",
		"[2,1,1] 5 6; [2,1,8] " EIGHT("3") " " EIGHT("4") "; [2,1,8] " EIGHT("exp(3)") " "
		EIGHT("exp(4)"), ""},
	{"RotaryPositionEmbedding", "", "[1,2] 1 2; [1,2] 3 4; [2] 5 6", "[1,2] -7 14",
		"[1,2] 15 3; [1,2] 1 4; [2] -2 2"},
	{"RotaryPositionEmbedding", "mode=1", "[4] 1 2 3 4; [4] 0 0 0 0; [4] 1 1 1 1",
		"[4] -2 1 -4 3", "[4] 2 -1 4 -3"},

	{"PromptFlashAttention", "num_heads=1",
		"[1,2,1] 1 2; [1,2,1] 3 4; [1,2,1] 5 6; -; [1] 1; [1] 1", "[1,2,1] 5 0", ""},
	{"PromptFlashAttention", "num_heads=1", "[1,1,1] 1; [1,2,1] 3 4; [1,2,1] 5 6",
		"[1,1,1] " BOTH, ""},
	{"FusedInferAttentionScore", "num_heads=1 input_layout=BSND",
		"[1,1,1,1] 1; [1,1,1,1] 3; [1,1,1,1] 5", "[1,1,1,1] 5; [1,1,1,1] log(exp(3))", ""},
	{"IncreFlashAttention", "num_heads=1", "[1,1,1] 1; [1,2,1] 3 4; [1,2,1] 5 6; [1,2] 1 0",
		"[1,1,1] 6", ""},
	{"PagedAttention", "head_num=1",
		"[1,1,1] 1; [2,1,1,1] 3 4; [2,1,1,1] 5 6; [1,2] 1 0; [1] 1", "[1,1,1] 6", ""},
	{"PagedAttentionMask", "head_num=1",
		"[1,1,1] 1; [2,1,1,1] 3 4; [2,1,1,1] 5 6; [1,2] 1 0; [1] 2; [1,1,1,2] 10 20",
		"[1,1,1] (6*exp(14)+5*exp(23))/(exp(14)+exp(23))", ""},
	{"ReshapeAndCache", "", "[1,2,1] 1 2; [1,2,1] 3 4; [1,2,1,1] 0 0; [1,2,1,1] 0 0; [2] 1 0",
		"[1,2,1] 1 2", ""},
	{"KVCacheMgr", "", "[1,1,3,1] 1 2 3; [1,1,1,1] 9; [1] 1", "[1,1,3,1] 1 9 3", ""},
	{"KVCacheScatterUpdate", "", "[1,1,3,1] 1 2 3; [1] 1; [1,1,2,1] 8 9", "[1,1,3,1] 1 8 9", ""},
	{"KVCacheScatterUpdate", "axis=-1", "[1,1,1,3] 1 2 3; [1] 2; [1,1,1,1] 9", "[1,1,1,3] 1 2 9",
		""},
	{"ApplyRotaryPosEmb", "",
		"[1,1,2] 1 2; [1,1,2] 3 4; [2,2] 0 0 3 4; [2,2] 0 0 5 6; [1] 1",
		"[1,1,2] -7 14; [1,1,2] -11 34", ""},
	{"WKV", "", "[1] 2; [1] 3; [1,1,1] 4; [1,1,1] 5; [1,1] 6; [1,1] 7; [1,1] 8",
		"[1,1,1] (6+5*exp(7))/(7+exp(7)); [1,1] 6*exp(2)+5*exp(4); [1,1] 7*exp(2)+exp(4); "
		"[1,1] most(8)+4", ""},

	{"MoeInitRouting", "", "[2,1] 10 20; [2,1] 0 1; [2,1] 1 0",
		"[2,1] 20 10; [2] 1 0; [2] 0 1", ""},
	{"MoeGatingTopKSoftmax", "k=1", "[2,2] 3 1 1 3; [2] 0 1",
		"[2,1] exp(3)/(exp(3)+exp(1)) exp(3)/(exp(3)+exp(1)); [2,1] 0 2; [2,1] 0 1", ""},
	{"MoeComputeExpertTokens", "num_experts=3", "[3] 0 0 2", "[3] 2 2 3", ""},
	{"MoeFinalizeRouting", "",
		"[2,1] 10 20; [1,1] 1; -; [2,1] 3 4; [1,2] 5 6; [2] 1 0; [1,2] 0 1", "[1,1] 200", ""},
	{"TopKRouter", "", "[1,3,1] 0 1 0", "[1,2,1] 1 2; [1,3,1] 1 2 0", ""},
	{"TopPRouter", "", "[1,3,1] 0 1 0; [1,3,1] 4 1 1", "[1,2,1] 3 2; [1,3,1] 0 2 1", ""},

	{"MoeDispatch", "num_groups=2 capacity=1 expert_num=2", "[1,4,1] 5 6 7 8; [1,4,1] 1 1 0 1",
		"[1,2,2,1] 0 7 5 8", ""},
	{"MoeCombine", "num_groups=2 capacity=1", "[1,2,2,1] 2 3 4 5; [1,4,1] 1 1 0 1; [1,4,1] 10 20 30 40",
		"[1,4,1] 40 0 90 200", ""},

	{"MoeCombine", "num_groups=2 capacity=1", "[1,2,2,1] 2 3 4 5; [1,4,1] 1 1 0 1", "[1,4,1] 4 0 3 5", ""},
	{"MoeWeights", "num_groups=2 capacity=1 expert_num=2", "[1,4,1] 10 20 30 40; [1,4,1] 1 1 0 1",
		"[1,2,2,1] 0 30 10 40", ""},
	{"IndexSelect", "axis=[1]", "[2,2] 1 2 3 4; [1] 1", "[2,1] 2 4", "[2,2] 0 1 0 2"},
	{"Index", "", "[2,2] 1 2 3 4; [2] 1 0", "[2,2] 3 4 1 2", "[2,2] 3 4 1 2"},
	{"Index", "", "[2,2] 1 2 3 4; [2] 1 0; [2] 0 0", "[2] 3 1", "[2,2] 2 0 1 0"},
	{"OneHot", "depth=2 axis=0", "[3] 1 0 1", "[2,3] 0 1 0 1 0 1", ""},
	{"OneHotExt", "num_classes=2 axis=1", "[1,2] 1 0", "[1,2,2] 0 1 1 0", ""},
	{"TopkExt", "k=1 dim=0 largest=0", "[2,2] 1 5 3 2", "[1,2] 1 2; [1,2] 0 1", "[2,2] 1 0 0 2"},
	{"TopkExt", "k=2", "[3] 4 7 7", "[2] 7 7; [2] 1 2", "[3] 0 1 2"},
	{"ScatterUpdate", "", "[3] 1 2 3; [2] 2 2; [2] 10 20", "[3] 1 2 20", ""},
	{"ScatterAdd", "", "[3] 1 2 3; [2] 2 2; [2] 10 20", "[3] 1 2 33", ""},
	{"ScatterSub", "", "[2,1] 1 2; [1] 1; [1,1] 5", "[2,1] 1 -3", ""},
	{"ScatterMul", "", "[2] 1 2; [2] 1 1; [2] 5 7", "[2] 1 70", ""},
	{"ScatterDiv", "", "[2] 1 2; [1] 1; [1] 5", "[2] 1 2/5", ""},
	{"ScatterMax", "", "[2] 5 1; [2] 0 1; [2] 3 4", "[2] 5 4", ""},
	{"ScatterMin", "", "[2] 5 1; [2] 0 1; [2] 3 4", "[2] 3 1", ""},
	{"ScatterNdUpdate", "", "[2,2] 1 2 3 4; [1,2] 1 0; [1] 9", "[2,2] 1 2 9 4", ""},
	{"ScatterNdAdd", "", "[2,2] 1 2 3 4; [1,1] 1; [1,2] 5 6", "[2,2] 1 2 8 10", ""},
	{"ScatterNdSub", "", "[2,2] 1 2 3 4; [1,1] 1; [1,2] 5 6", "[2,2] 1 2 -2 -2", ""},
	{"TensorScatterUpdate", "", "[2,2] 1 2 3 4; [1,1] 1; [1,2] 10 20", "[2,2] 1 2 10 20",
		"[2,2] 1 2 0 0; [1,1] 0; [1,2] 3 4"},
	{"TensorScatterAdd", "", "[2,2] 1 2 3 4; [1,1] 1; [1,2] 10 20", "[2,2] 1 2 13 24",
		"[2,2] 1 2 3 4; [1,1] 0; [1,2] 3 4"},
	{"TensorScatterSub", "", "[2] 1 2; [2,1] 1 1; [2] 10 20", "[2] 1 -28",
		"[2] 1 2; [2,1] 0 0; [2] -2 -2"},
	{"TensorScatterMul", "", "[2,2] 1 2 3 4; [1,1] 1; [1,2] 10 20", "[2,2] 1 2 30 80",
		"[2,2] 1 2 30 80; [1,1] 0; [1,2] 9 16"},
	{"TensorScatterDiv", "", "[2] 1 6; [1,1] 1; [1] 2", "[2] 1 3", "[2] 1 1; [1,1] 0; [1] -3"},
	{"TensorScatterMax", "", "[2] 5 1; [2,1] 0 1; [2] 3 4", "[2] 5 4", "[2] 1 0; [2,1] 0 0; [2] 0 2"},
	{"TensorScatterMin", "", "[2] 5 1; [2,1] 0 1; [2] 3 4", "[2] 3 1", "[2] 0 2; [2,1] 0 0; [2] 1 0"},
};

START_LOOP_TEST(numbers_are_as_worked_out, AP_COUNT(pinned))
{
	ex_pinned_check(&pinned[_i]);
}
END_TEST
