/* SPDX-License-Identifier: Apache-2.0 */
/* From the vectors that shard() takes to dev_matrix and tensor_map, for rows of ops.def. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "bound.h"
#include "harness.h"
#include "rule/bind.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"

#define F32(...) {.rank = sizeof(int64_t[]){__VA_ARGS__} / 8, AP_FLOAT32, {__VA_ARGS__}}
#define I32(...) {.rank = sizeof(int64_t[]){__VA_ARGS__} / 8, AP_INT32, {__VA_ARGS__}}
#define BOOL(...) {.rank = sizeof(int64_t[]){__VA_ARGS__} / 8, AP_BOOL, {__VA_ARGS__}}
#define INTS(name, ...) {name, AP_ATTR_INTS, .list = (const int64_t[]){__VA_ARGS__}, \
	.n = sizeof(int64_t[]){__VA_ARGS__} / 8}
#define MAX_IN 5

struct operator {
	const char *type;
	struct ap_attr attr[3];
	uint16_t nin;
	struct ap_shape in[MAX_IN];
	int64_t ndev;
	uint32_t n; /* vectors */
	uint8_t rank[MAX_IN];
	int32_t cut[MAX_IN][AP_MAX_RANK];
	const char *dev; /* standardised */
	const char *in_map[MAX_IN], *out_map;
	bool left;
	const char *why; /* refused, if so */
	uint16_t nout; /* declared */
	struct ap_shape out[MAX_IN];
};

static const struct operator operators[] = {
	/* formats 1.5 */
	{"MatMul", .nin = 2, .in = {F32(128, 64), F32(64, 32)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{2, 2}, {2, 1}},
		.dev = "2 2 2", .in_map = {"2 1", "1 -1"}, .out_map = "2 -1"},
	{"MatMul", .nin = 2, .in = {F32(128, 64), F32(64, 32)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{4, 1}, {1, 2}},
		.dev = "4 2", .in_map = {"1 -1", "-1 0"}, .out_map = "1 0"},
	{"BiasAdd", .nin = 2, .in = {F32(128, 32), F32(32)}, .ndev = 8,
		.n = 2, .rank = {2, 1}, .cut = {{4, 2}, {2}},
		.dev = "4 2", .in_map = {"1 0", "0"}, .out_map = "1 0"},
	{"LayerNorm", .nin = 3, .in = {F32(128, 64), F32(64), F32(64)}, .ndev = 8,
		.n = 3, .rank = {2, 1, 1}, .cut = {{8, 1}, {1}, {1}},
		.dev = "8", .in_map = {"0 -1", "-1", "-1"}, .out_map = "0 -1"},
	/* the dev_matrix is [I,K,J] whatever is transposed */
	{"MatMul", {{"transpose_b", AP_ATTR_BOOL, .i = 1}}, 2, {F32(128, 64), F32(32, 64)}, 8,
		2, {2, 2}, {{2, 2}, {2, 2}},
		"2 2 2", {"2 1", "0 1"}, "2 0"},
	{"MatMul", {{"transpose_a", AP_ATTR_BOOL, .i = 1}}, 2, {F32(64, 128), F32(64, 32)}, 8,
		2, {2, 2}, {{2, 4}, {2, 1}},
		"4 2", {"0 1", "0 -1"}, "1 -1"},
	/* repeats go left where the vocabulary is cut; else indices come before the table */
	{"Gather", .nin = 2, .in = {F32(100, 64), I32(16, 8)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{4, 1}, {1, 1}},
		.dev = "2 4", .in_map = {"0 -1", "-1 -1"}, .out_map = "-1 -1 -1", .left = true},
	{"Gather", .nin = 2, .in = {F32(100, 64), I32(16, 8)}, .ndev = 16,
		.n = 2, .rank = {2, 2}, .cut = {{1, 2}, {4, 1}},
		.dev = "4 2 2", .in_map = {"-1 1", "2 -1"}, .out_map = "2 -1 1"},
	{"Gather", .nin = 2, .in = {F32(100, 64), I32(16, 8)}, .ndev = 16,
		.n = 2, .rank = {2, 2}, .cut = {{4, 2}, {1, 1}},
		.why = "input 0, dimension 1 of length 64: 2 parts; with a cut vocabulary 1 is "
			"allowed, or what leaves no device over"},
	{"OneHot", {{"depth", AP_ATTR_INT, .i = 32}}, 1, {I32(16)}, 16,
		3, {2, 0, 0}, {{4, 2}},
		"4 2 2", {"2"}, "2 1"},
	/* columns looked up in: the sums are dealt along the rows */
	{"Gather", {INTS("axis", 1)}, 2, {F32(8, 100), I32(16, 8)}, 8,
		2, {2, 2}, {{1, 4}, {1, 1}},
		"2 4", {"-1 0", "-1 -1"}, "0 -1 -1", true},
	{"Gather", {INTS("axis", -1)}, 2, {F32(8, 100), I32(16, 8)}, 8,
		2, {2, 2}, {{2, 4}, {1, 1}}, .why = "input 0, dimension 0 of length 8: 2 parts; with a "
			"cut vocabulary 1 is allowed"},
	{"Gather", {INTS("axis", 1)}, 2, {F32(8, 100), I32(16, 8)}, 8,
		2, {2, 2}, {{1, 4}, {2, 1}}, .why = "input 1, dimension 0 of length 16: 2 parts; with a "
			"cut vocabulary 1 is allowed"},
	{"IndexSelect", {INTS("axis", 1)}, 2, {F32(8, 100, 6), I32(16)}, 8,
		2, {3, 1}, {{2, 1, 2}, {2}},
		"2 2 2", {"1 -1 0", "2"}, "1 2 0"},
	{"OneHot", {{"depth", AP_ATTR_INT, .i = 32}, INTS("axis", 0)}, 1, {I32(16)}, 16,
		3, {2, 0, 0}, {{2, 4}},
		"2 4 2", {"1"}, "2 1"},
	/* a broadcast dimension is not cut where its length is one */
	{"Add", .nin = 2, .in = {F32(16, 32), F32(1, 32)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{4, 2}, {1, 2}},
		.dev = "4 2", .in_map = {"1 0", "-1 0"}, .out_map = "1 0"},
	{"Add", .nin = 2, .in = {F32(16, 32), F32(1, 32)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{4, 2}, {4, 2}},
		.why = "input 1, dimension 0 of length 1: 4 parts; 1 is allowed"},
	{"Softmax", .nin = 1, .in = {F32(16, 32)}, .ndev = 8,
		.n = 1, .rank = {2}, .cut = {{4, 2}},
		.why = "input 0, dimension 1 of length 32: 2 parts; 1 is allowed"},
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 4},
			{"input_layout", AP_ATTR_STRING, .s = "TND"}}, 3,
		{F32(16, 4, 8), F32(16, 4, 8), F32(16, 4, 8)}, 8,
		3, {3, 3, 3}, {{2, 2, 1}, {1, 2, 1}, {1, 2, 1}},
		"2 2 2", {"2 1 -1", "-1 1 -1", "-1 1 -1"}, "2 1 -1"},
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 4}}, 3,
		{F32(2, 16, 64), F32(2, 16, 64), F32(2, 16, 64)}, 8,
		3, {3, 3, 3}, {{2, 2, 2}, {2, 1, 2}, {2, 1, 2}},
		"2 2 2", {"2 1 0", "2 -1 0", "2 -1 0"}, "2 1 0"},
	/* [N,Ci,H,W,Co]; kernel dimensions have no axis */
	{"Conv2D", {{"pad_mode", AP_ATTR_STRING, .s = "same"}}, 2, {F32(8, 4, 16, 16), F32(8, 4, 3, 3)},
		16, 2, {4, 4}, {{2, 2, 2, 1}, {2, 2, 1, 1}},
		"2 2 2 2", {"3 2 1 -1", "0 2 -1 -1"}, "3 0 1 -1"},
	{"Conv2D", {{"pad_mode", AP_ATTR_STRING, .s = "same"}}, 2, {F32(8, 4, 16, 16), F32(8, 4, 3, 3)},
		16, 2, {4, 4}, {{1, 1, 4, 4}, {1, 1, 1, 1}},
		"4 4", {"-1 -1 1 0", "-1 -1 -1 -1"}, "-1 -1 1 0"},
	{"Conv2D", {{"pad_mode", AP_ATTR_STRING, .s = "same"}}, 2, {F32(8, 4, 16, 16), F32(8, 4, 3, 3)},
		16, 2, {4, 4}, {{1, 1, 1, 1}, {1, 1, 3, 1}},
		.why = "input 1, dimension 2 of length 3: 3 parts; 1 is allowed"},
	{"Conv2D", {{"pad_mode", AP_ATTR_STRING, .s = "valid"}}, 2, {F32(8, 4, 18, 18), F32(8, 4, 3, 3)},
		16, 2, {4, 4}, {{1, 1, 2, 1}, {1, 1, 1, 1}},
		.why = "input 0, dimension 2 of length 18: 2 parts; parts with windows of "
			"their own, or with windows that reach into the next part alone, are "
			"allowed"},
	{"Conv2D", {{"group", AP_ATTR_INT, .i = 2}}, 2, {F32(8, 4, 16, 16), F32(8, 2, 3, 3)},
		16, 2, {4, 4}, {{1, 2, 1, 1}, {2, 1, 1, 1}},
		.why = "input 0, dimension 1 of length 4 = 2 x 2: 2 parts of its factor of 2; "
			"1 is allowed"},
	{"BatchNorm", {{"is_training", AP_ATTR_BOOL, .i = 1}}, 5,
		{F32(8, 4, 16, 16), F32(4), F32(4), F32(4), F32(4)},
		16, 5, {4, 1, 1, 1, 1}, {{4, 2, 1, 2}, {2}, {2}, {2}, {2}},
		"4 2 2", {"2 1 -1 0", "1", "1", "1", "1"}, "2 1 -1 0"},
	{"RmsNorm", .nin = 2, .in = {F32(8, 16, 32), F32(32)}, .ndev = 8,
		.n = 2, .rank = {3, 1}, .cut = {{4, 2, 1}, {1}},
		.dev = "4 2", .in_map = {"1 0 -1", "-1"}, .out_map = "1 0 -1"},
	{"SparseSoftmaxCrossEntropyWithLogits", .nin = 2, .in = {F32(32, 100), I32(32)},
		.ndev = 8, .n = 2, .rank = {2, 1}, .cut = {{8, 1}, {8}},
		.dev = "8", .in_map = {"0 -1", "0"}, .out_map = ""},
	/* eight heads of keys for eight queries each: parts of whole heads of keys */
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 64}}, 3,
		{F32(2, 16, 8192), F32(2, 16, 1024), F32(2, 16, 1024)}, 16,
		3, {3, 3, 3}, {{2, 1, 8}, {2, 1, 8}, {2, 1, 8}},
		"2 8", {"1 -1 0", "1 -1 0", "1 -1 0"}, "1 -1 0"},
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 64}}, 3,
		{F32(2, 16, 8192), F32(2, 16, 1024), F32(2, 16, 1024)}, 16,
		3, {3, 3, 3}, {{1, 1, 16}, {1, 1, 8}, {1, 1, 8}},
		.why = "input 0, dimension 2 of length 8192 = 8 x 8 x 128: 16 parts; parts "
			"that no head of keys and values is divided between are allowed"},
	/* the batch among all devices, or not at all */
	{"SolveTriangular", .nin = 2, .in = {F32(48, 4, 4), F32(48, 4, 2)}, .nout = 1,
		.out = {F32(48, 4, 2)}, .ndev = 8,
		.n = 2, .rank = {3, 3}, .cut = {{8, 1, 1}, {8, 1, 1}},
		.dev = "8", .in_map = {"0 -1 -1", "0 -1 -1"}, .out_map = "0 -1 -1"},
	{"SolveTriangular", .nin = 2, .in = {F32(48, 4, 4), F32(48, 4, 2)}, .nout = 1,
		.out = {F32(48, 4, 2)}, .ndev = 8,
		.n = 2, .rank = {3, 3}, .cut = {{2, 1, 1}, {2, 1, 1}},
		.why = "input 0, dimension 0 of length 48: 2 parts; 1 or the number of devices is "
			"allowed"},
	{"SolveTriangular", .nin = 2, .in = {F32(48, 4, 4), F32(48, 4, 2)}, .nout = 1,
		.out = {F32(48, 4, 2)}, .ndev = 8,
		.n = 2, .rank = {3, 3}, .cut = {{8, 1, 1}, {1, 1, 1}},
		.why = "input 1, dimension 0 of length 48: 1 parts; 8 are allowed, as many as of input "
			"0, dimension 0 of length 48"},
	{"VirtualDataset", .nin = 2, .in = {F32(48, 4), I32(48)}, .nout = 2,
		.out = {F32(48, 4), I32(48)}, .ndev = 8,
		.n = 2, .rank = {2, 1}, .cut = {{8, 1}, {8}},
		.dev = "8", .in_map = {"0 -1", "0"}, .out_map = "0 -1"},
	/* where each number stands in the result decides what it is */
	{"LinSpace", .nin = 1, .in = {{0, AP_FLOAT32, {0}}}, .nout = 1, .out = {F32(16)}, .ndev = 8,
		.n = 1, .rank = {1}, .cut = {{4}}, .dev = "4 2", .in_map = {""}, .out_map = "1"},
	{"PadV3", {INTS("paddings", 1, 1)}, 1, {F32(16, 6)}, 8,
		1, {2}, {{4, 1}}, "4 2", {"1 -1"}, "1 -1"},
	{"PadV3", {INTS("paddings", 1, 1)}, 1, {F32(16, 6)}, 8,
		1, {2}, {{4, 2}}, .why = "input 0, dimension 1 of length 6: 2 parts; 1 is allowed"},
	{"Tril", .nin = 1, .in = {F32(16, 6, 6)}, .ndev = 8,
		.n = 1, .rank = {3}, .cut = {{8, 1, 1}}, .dev = "8", .in_map = {"0 -1 -1"},
		.out_map = "0 -1 -1"},
	{"InplaceUpdate", {INTS("indices", 1, 3)}, 2, {F32(16, 6), F32(2, 6)}, 4,
		2, {2, 2}, {{1, 2}, {1, 2}}, "2 2", {"-1 1", "-1 1"}, "-1 1"},
	{"InplaceUpdate", {INTS("indices", 1, 3)}, 2, {F32(16, 6), F32(2, 6)}, 4,
		2, {2, 2}, {{2, 1}, {1, 1}},
		.why = "input 0, dimension 0 of length 16: 2 parts; 1 is allowed"},
	/* the order of the axes follows the layout */
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 8},
		{"input_layout", AP_ATTR_STRING, .s = "SBH"}}, 3,
		{F32(16, 4, 64), F32(16, 4, 64), F32(16, 4, 64)}, 16,
		3, {3, 3, 3}, {{2, 4, 2}, {1, 4, 2}, {1, 4, 2}},
		"2 4 2", {"2 1 0", "-1 1 0", "-1 1 0"}, "2 1 0"},
	{"FlashAttentionScore", {{"head_num", AP_ATTR_INT, .i = 8},
		{"input_layout", AP_ATTR_STRING, .s = "BSND"}}, 3,
		{F32(4, 16, 8, 8), F32(4, 16, 8, 8), F32(4, 16, 8, 8)}, 16,
		3, {4, 4, 4}, {{4, 2, 2, 1}, {4, 1, 2, 1}, {4, 1, 2, 1}},
		"4 2 2", {"2 1 0 -1", "2 -1 0 -1", "2 -1 0 -1"}, "2 1 0 -1"},
	/* joined and split dimensions stay whole */
	{"Concat", {INTS("axis", 1)}, 2, {F32(8, 1, 64), F32(8, 196, 64)}, 16,
		2, {3, 3}, {{4, 1, 2}, {4, 1, 2}},
		"4 2 2", {"2 -1 1", "2 -1 1"}, "2 -1 1"},
	{"Concat", {INTS("axis", 1)}, 2, {F32(8, 1, 64), F32(8, 196, 64)}, 16,
		2, {3, 3}, {{4, 1, 2}, {4, 1, 1}},
		.why = "input 1, dimension 2 of length 64: 1 parts; 2 are allowed, as many as "
			"of input 0, dimension 2 of length 64"},
	{"Concat", {INTS("axis", 1)}, 2, {F32(8, 4, 64), F32(8, 4, 64)}, 16,
		2, {3, 3}, {{1, 4, 1}, {1, 4, 1}},
		.why = "input 0, dimension 1 of length 4: 4 parts; 1 is allowed"},
	{"Stack", {INTS("axis", 1)}, 3, {F32(8, 6), F32(8, 6), F32(8, 6)}, 8,
		3, {2, 2, 2}, {{4, 2}, {4, 2}, {4, 2}},
		"4 2", {"1 0", "1 0", "1 0"}, "1 -1 0"},
	{"AddN", .nin = 3, .in = {F32(8, 6), F32(8, 6), F32(8, 6)}, .ndev = 8,
		.n = 3, .rank = {2, 2, 2}, .cut = {{4, 1}, {4, 1}, {4, 1}},
		.dev = "4 2", .in_map = {"1 -1", "1 -1", "1 -1"}, .out_map = "1 -1"},
	{"SplitTensor", {{"split_size", AP_ATTR_INT, .i = 6}}, 1, {F32(6, 64)}, 8,
		1, {2}, {{1, 8}}, "8", {"-1 0"}, "-1 0"},
	/* parts of a tensor: a dimension that is not taken as a whole is not cut */
	{"StridedSlice", {INTS("begin", 0, 0), INTS("end", 8, 1),
		{"shrink_axis_mask", AP_ATTR_INT, .i = 2}}, 1, {F32(8, 197, 64)}, 8,
		1, {3}, {{4, 1, 2}}, "4 2", {"1 -1 0"}, "1 0"},
	{"StridedSlice", {INTS("begin", 0, 0), INTS("end", 8, 4),
		{"new_axis_mask", AP_ATTR_INT, .i = 1}}, 1, {F32(8, 64)}, 8,
		1, {2}, {{2, 4}},
		.why = "input 0, dimension 0 of length 8: 2 parts; 1 is allowed"},
	{"Slice", {INTS("begin", 0, 8), INTS("size", 16, 8)}, 1, {F32(16, 32)}, 8,
		1, {2}, {{8, 1}}, "8", {"0 -1"}, "0 -1"},
	/* the vector of a tiling is for the copies and for what is not copied */
	{"Tile", {INTS("multiples", 8, 1, 1)}, 1, {F32(1, 4, 64)}, 16,
		1, {3}, {{4, 1, 2}}, "4 2 2", {"-1 -1 1"}, "2 -1 1"},
	{"Tile", {INTS("multiples", 4, 2)}, 1, {F32(8)}, 8,
		1, {2}, {{4, 2}}, "4 2", {"-1"}, "1 0"},
	{"Tile", {INTS("multiples", 2)}, 1, {F32(8)}, 4,
		1, {1}, {{4}}, .why = "input 0, dimension 0 of length 8: 2 parts; 1 is allowed"},
	{"BroadcastTo", {INTS("shape", 8, -1, 64)}, 1, {F32(4, 1)}, 8,
		1, {2}, {{4, 1}}, "4 2", {"1 -1"}, "-1 1 -1"},
	{"BroadcastTo", {INTS("shape", 8, -1, 64)}, 1, {F32(4, 1)}, 8,
		1, {2}, {{4, 2}}, .why = "input 0, dimension 1 of length 1: 2 parts; 1 is allowed"},
	{"ExpandDims", {INTS("axis", 1)}, 1, {F32(8, 64)}, 8,
		1, {2}, {{4, 2}}, "4 2", {"1 0"}, "1 -1 0"},
	{"Squeeze", {INTS("axis", 1)}, 1, {F32(8, 1, 64)}, 8,
		1, {3}, {{4, 1, 2}}, "4 2", {"1 -1 0"}, "1 0"},
	{"Transpose", {INTS("perm", 1, 0)}, 1, {F32(8, 64)}, 8,
		1, {2}, {{4, 2}}, "4 2", {"1 0"}, "0 1"},
	{"Select", .nin = 3, .in = {BOOL(16, 1), F32(16, 32), F32(1, 32)}, .ndev = 8,
		.n = 3, .rank = {2, 2, 2}, .cut = {{4, 1}, {4, 2}, {1, 2}},
		.dev = "4 2", .in_map = {"1 -1", "1 0", "-1 0"}, .out_map = "1 0"},
	{"TopK", {{"k", AP_ATTR_INT, .i = 2}}, 1, {F32(16, 32)}, 8,
		1, {2}, {{8, 1}}, "8", {"0 -1"}, "0 -1"},
	{"TopK", {{"k", AP_ATTR_INT, .i = 2}}, 1, {F32(16, 32)}, 8,
		1, {2}, {{4, 2}}, .why = "input 0, dimension 1 of length 32: 2 parts; 1 is allowed"},
	{"CumSum", {INTS("axis", 0)}, 1, {F32(16, 32)}, 8,
		1, {2}, {{1, 8}}, "8", {"-1 0"}, "-1 0"},
	{"GatherD", {INTS("dim", 1)}, 2, {F32(16, 32, 4), I32(16, 2, 4)}, 8,
		2, {3, 3}, {{4, 1, 2}, {4, 1, 2}}, "4 2", {"1 -1 0", "1 -1 0"}, "1 -1 0"},
	{"Embedding", .nin = 2, .in = {I32(16, 8), F32(100, 64)}, .ndev = 8,
		.n = 2, .rank = {2, 2}, .cut = {{1, 1}, {4, 1}},
		.dev = "2 4", .in_map = {"-1 -1", "0 -1"}, .out_map = "-1 -1 -1", .left = true},
	{"UnsortedSegmentSum", {{"num_segments", AP_ATTR_INT, .i = 4}}, 2,
		{F32(16, 32), I32(16)}, 8, 2, {2, 1}, {{4, 2}, {4}}, "4 2", {"1 0", "1"}, "-1 0"},
};

static struct ap_ctx ctx;

static void setup(void)
{
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
}

static void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

TEST_FIXTURE(setup, teardown)

static struct ap_bound bind(const struct operator *o)
{
	struct ap_attrs attrs = {.v = o->attr};
	struct ap_bind_in in = {.type = o->type, .attrs = &attrs, .nin = o->nin, .in = o->in,
		.nout = o->nout, .declared = o->nout ? o->out : NULL};
	struct ap_bind_fault fault;
	struct ap_bound b;

	while (attrs.n < 3 && o->attr[attrs.n].name)
		attrs.n++;
	if (ap_rule_bind(&ctx, &in, &b, &fault) != AP_OK)
		ck_abort_msg("%s: %s", o->type, fault.text);
	return b;
}

static void check_map(const struct ap_placement *p, const struct ap_operand *t,
	const struct ap_dev_matrix *dev, const char *want)
{
	int32_t map[AP_MAX_RANK];

	ck_assert(ap_tensor_map(p, t, dev, map));
	check_list("tensor map", map, t->rank, want);
}

START_LOOP_TEST(vectors_to_dev_matrix_and_maps, AP_COUNT(operators))
{
	const struct operator *o = &operators[_i];
	const struct ap_step step = AP_STEP_DEFAULT;
	struct ap_bound b = bind(o);
	struct ap_placement p;
	struct ap_dev_matrix dev;
	int32_t count[AP_MAX_FACTOR];
	const char *why = "accepted";
	bool legal = ap_space_from_strategy(&ctx, &b, o->ndev, &step, o->n, o->rank, o->cut, count,
		&why);

	ck_assert_str_eq(why, o->why ? o->why : "accepted");
	ck_assert_int_eq(legal, !o->why);
	if (!legal)
		return;
	ap_placement_make(&b, count, o->ndev, &p);
	ck_assert_int_eq(p.left, o->left);
	ap_dev_matrix_standard(&p, &dev);
	check_list("dev_matrix", dev.axis, dev.n, o->dev);
	for (int i = 0; i < o->nin; i++)
		check_map(&p, &b.in[i], &dev, o->in_map[i]);
	check_map(&p, &b.out[0], &dev, o->out_map);
}
END_TEST

/* What is offered for an operator is what its vectors may say: out and in again. */
START_LOOP_TEST(offered_candidates_are_accepted, AP_COUNT(operators))
{
	const struct operator *o = &operators[_i];
	const struct ap_step step = AP_STEP_DEFAULT;
	struct ap_bound b = bind(o);
	struct ap_space s;

	ap_space_make(&ctx, &b, 48, &step, &s);
	ck_assert_uint_gt(s.n, 1);
	for (uint32_t i = 0; i < s.n; i++) {
		struct ap_placement p;
		uint8_t rank[MAX_IN];
		int32_t cut[MAX_IN][AP_MAX_RANK], count[AP_MAX_FACTOR];
		const char *why;
		uint32_t n;

		ap_placement_make(&b, &s.count[i * s.nfactor], 48, &p);
		n = ap_space_to_strategy(&p, rank, cut, MAX_IN);
		REQUIRE(n == o->n);
		REQUIRE(ap_space_from_strategy(&ctx, &b, 48, &step, n, rank,
			(const int32_t(*)[AP_MAX_RANK])cut, count, &why));
		REQUIRE(!memcmp(count, &s.count[i * s.nfactor], s.nfactor * sizeof *count));
	}
}
END_TEST
