/* SPDX-License-Identifier: Apache-2.0 */
/* Norms, losses, windows, look-ups, choices and other products against numbers worked out by hand. */
#include "pinned.h"

#define SUM "(exp(1)+exp(2))"

static const struct ex_pinned pinned[] = {
	{"LayerNorm", "", "[1,2] 1 3; [2] 2 3; [2] 5 7",
		"[1,2] 5-2*rsqrt(1) 7+3*rsqrt(1); [1,1] 2; [1,1] 1",
		"[1,2] -1/2-2*rsqrt(1)-4*rsqrt'(1) 3/2+2*rsqrt(1)+4*rsqrt'(1); "
		"[2] 0-rsqrt(1) 2*rsqrt(1); [2] 1 2"},
	{"LayerNormV3", "begin_norm_axis=-1 begin_params_axis=-2", "[1,2] 1 3; [1,2] 2 3; [1,2] 5 7",
		"[1,2] 5-2*rsqrt(1) 7+3*rsqrt(1); [1,1] 2; [1,1] rsqrt(1)",
		"[1,2] 1/2-2*rsqrt(1)-5*rsqrt'(1) 1/2+2*rsqrt(1)+5*rsqrt'(1)"},
	{"RmsNorm", "", "[1,2] 1 3; [2] 2 3", "[1,2] 2*rsqrt(5) 9*rsqrt(5); [1,1] rsqrt(5)",
		"[1,2] 2*rsqrt(5)+21*rsqrt'(5) 6*rsqrt(5)+63*rsqrt'(5); [2] rsqrt(5) 6*rsqrt(5)"},
	{"GroupNorm", "num_groups=1", "[1,2] 1 3; [2] 2 3; [2] 5 7",
		"[1,2] 5-2*rsqrt(1) 7+3*rsqrt(1); [1,1] 2; [1,1] rsqrt(1)",
		"[1,2] 1/2-2*rsqrt(1)-5*rsqrt'(1) 1/2+2*rsqrt(1)+5*rsqrt'(1)"},
	{"GroupNorm", "num_groups=2", "[1,2,2] 1 3 4 8; [2] 1 2; [2] 0 0",
		"[1,2,2] 0-rsqrt(1) rsqrt(1) -4*rsqrt(4) 4*rsqrt(4); [1,2] 2 6; "
		"[1,2] rsqrt(1) rsqrt(4)", ""},
	{"BatchNorm", "is_training=1", "[2,1] 1 3; [1] 2; [1] 5; [1] 8; [1] 9",
		"[2,1] 5-2*rsqrt(1) 5+2*rsqrt(1); [1] 2; [1] 1",
		"[2,1] -1/2-rsqrt(1)-2*rsqrt'(1) 3/2+rsqrt(1)+2*rsqrt'(1); [1] rsqrt(1); [1] 3; "
		"[1] 0; [1] 0"},
	{"BatchNorm", "", "[2,1] 1 3; [1] 2; [1] 5; [1] 8; [1] 9",
		"[2,1] 5-14*rsqrt(9) 5-10*rsqrt(9); [1] 8; [1] 9; [1] 8; [1] 9",
		"[2,1] 2*rsqrt(9) 4*rsqrt(9); [1] -17*rsqrt(9); [1] 3"},
	{"L2Normalize", "", "[2] 1 2", "[2] rsqrt(5) 2*rsqrt(5)",
		"[2] rsqrt(5)+10*rsqrt'(5) 2*rsqrt(5)+20*rsqrt'(5)"},
	{"L2Normalize", "axis=[0,-1]", "[2,1] 1 2", "[2,1] rsqrt(5) 2*rsqrt(5)", ""},
	{"Softmax", "axis=[0]", "[2,1] 1 2", "[2,1] exp(1)/" SUM " exp(2)/" SUM,
		"[2,1] exp'(1)/" SUM "-exp'(1)*(exp(1)+2*exp(2))/" SUM "/" SUM
		" 2*exp'(2)/" SUM "-exp'(2)*(exp(1)+2*exp(2))/" SUM "/" SUM},
	{"LogSoftmax", "", "[1,2] 1 2", "[1,2] 1-log" SUM " 2-log" SUM,
		"[1,2] 1-3*log'" SUM "*exp'(1) 2-3*log'" SUM "*exp'(2)"},

	{"SoftmaxCrossEntropyWithLogits", "", "[1,2] 1 2; [1,2] 3 4",
		"[1] 7*log" SUM "-11; [1,2] exp(1)/" SUM "-3 exp(2)/" SUM "-4",
		"[1,2] 7*log'" SUM "*exp'(1)-3 7*log'" SUM "*exp'(2)-4"},
	{"SparseSoftmaxCrossEntropyWithLogits", "", "[1,2] 1 2; [1] 1", "[] log" SUM "-2",
		"[1,2] log'" SUM "*exp'(1) log'" SUM "*exp'(2)-1"},
	{"SparseSoftmaxCrossEntropyWithLogits", "", "[2,1] 1 2; [2] 0 0",
		"[] (log(exp(1))+log(exp(2))-3)/2",
		"[2,1] (log'(exp(1))*exp'(1)-1)/2 (log'(exp(2))*exp'(2)-1)/2"},
	{"SparseSoftmaxCrossEntropyWithLogits", "is_grad=1", "[2,2] 1 2 1 2; [2] 0 1",
		"[2,2] (exp(1)/" SUM "-1)/2 exp(2)/" SUM "/2 exp(1)/" SUM "/2 (exp(2)/" SUM "-1)/2",
		"[2,2] 0 0 0 0"},

	{"Conv2D", "", "[1,1,3,3] 1 2 3 4 5 6 7 8 9; [1,1,2,2] 1 0 0 1", "[1,1,2,2] 6 8 12 14",
		"[1,1,3,3] 1 2 0 3 5 2 0 3 4; [1,1,2,2] 37 47 67 77"},
	{"Conv2D", "pad_mode=same stride=[2,1]", "[1,1,3,1] 1 2 3; [1,1,2,1] 1 10",
		"[1,1,2,1] 21 3", "[1,1,3,1] 1 10 2; [1,1,2,1] 7 2"},
	{"Conv2D", "pad_mode=pad pad=[0,0,1,2]", "[1,1,1,2] 3 5; [1,1,1,2] 1 10",
		"[1,1,1,4] 30 53 5 0", "[1,1,1,2] 12 23; [1,1,1,2] 21 13"},
	{"Conv2D", "dilation=[1,2]", "[1,1,1,3] 1 2 3; [1,1,1,2] 1 10", "[1,1,1,1] 31",
		"[1,1,1,3] 1 0 10; [1,1,1,2] 1 3"},
	{"Conv2D", "group=2", "[1,2,1,1] 2 3; [2,1,1,1] 5 7", "[1,2,1,1] 10 21",
		"[1,2,1,1] 5 14; [2,1,1,1] 2 6"},
	{"Conv2D", "", "[1,2,1,1] 2 3; [1,2,1,1] 5 7", "[1,1,1,1] 31",
		"[1,2,1,1] 5 7; [1,2,1,1] 2 3"},
	{"Conv3D", "", "[1,1,2,1,1] 2 3; [1,1,1,1,1] 5", "[1,1,2,1,1] 10 15",
		"[1,1,2,1,1] 5 10; [1,1,1,1,1] 8"},
	{"MaxPool", "kernel_size=2 strides=2", "[1,1,2,2] 1 4 3 2", "[1,1,1,1] 4",
		"[1,1,2,2] 0 1 0 0"},
	{"AvgPool", "kernel_size=[1,2] strides=[1,2] pad_mode=same", "[1,1,1,3] 1 2 6",
		"[1,1,1,2] 3/2 6", "[1,1,1,3] 1/2 1/2 2"},

	{"Gather", "axis=[0]", "[3,2] 1 2 3 4 5 6; [2] 2 0", "[2,2] 5 6 1 2", "[3,2] 3 4 0 0 1 2"},
	{"Gather", "axis=[1]", "[2,3] 1 2 3 4 5 6; [2] 2 2", "[2,2] 3 3 6 6", "[2,3] 0 0 3 0 0 7"},
	{"Gather", "axis=[1] batch_dims=1", "[2,2] 1 2 3 4; [2,1] 1 0", "[2,1] 2 3",
		"[2,2] 0 1 2 0"},
	{"EmbeddingLookup", "offset=1", "[2] 5 6; [3] 2 0 1", "[3] 6 0 5", "[2] 3 1"},
	{"Embedding", "padding_idx=-1", "[2] 1 0; [2,1] 5 6", "[2,1] 6 5", "[2] 0 0; [2,1] 2 0"},
	{"GatherD", "dim=1", "[2,2] 1 2 3 4; [2,3] 1 1 0 0 1 0", "[2,3] 2 2 1 3 4 3",
		"[2,2] 3 3 10 5"},
	{"GatherNd", "", "[2,2] 1 2 3 4; [3,2] 1 0 0 1 1 0", "[3] 3 2 3", "[2,2] 0 2 4 0"},
	{"GatherNd", "", "[2,2] 1 2 3 4; [1,1] 1", "[1,2] 3 4", "[2,2] 0 0 1 2"},
	{"OneHot", "depth=3", "[2] 2 3; [] 7; [] 4", "[2,3] 4 4 7 4 4 4", ""},
	{"OneHot", "depth=2", "[1,2] 0 1", "[1,2,2] 1 0 0 1", ""},
	{"TopK", "k=2", "[2,3] 1 5 5 7 2 3", "[2,2] 5 5 7 3; [2,2] 1 2 0 2", "[2,3] 0 1 2 3 0 4"},
	{"UnsortedSegmentSum", "num_segments=3", "[3,2] 1 2 3 4 5 6; [3] 2 0 2",
		"[3,2] 3 4 0 0 6 8", "[3,2] 5 6 1 2 5 6"},
	{"UnsortedSegmentProd", "num_segments=2", "[3] 2 3 5; [3] 0 0 0", "[2] 30 1", "[3] 15 10 6"},
	{"UnsortedSegmentMax", "num_segments=2", "[3] 2 5 3; [3] 1 1 1", "[2] 0 5", "[3] 0 2 0"},
	{"UnsortedSegmentMin", "num_segments=2", "[3] 2 5 3; [3] 1 1 1", "[2] -1 2", "[3] 2 0 0"},

	{"TensorDot", "axes=[1]", "[2,2] 1 2 3 4; [2] 5 6", "[2] 17 39", "[2,2] 5 6 10 12; [2] 7 10"},
	{"TensorDot", "axes=[0,1,-1,0]", "[2,2] 1 2 3 4; [2,2] 5 6 7 8", "[] 69",
		"[2,2] 5 7 6 8; [2,2] 1 3 2 4"},
	{"Outer", "", "[2] 1 2; [2] 3 4", "[2,2] 3 4 6 8", "[2] 11 25; [2] 7 10"},
	{"Cdist", "", "[1,2] 1 2; [1,2] 4 6", "[1,1] root(25)",
		"[1,2] -6*root'(25) -8*root'(25); [1,2] 6*root'(25) 8*root'(25)"},
	{"QuantBatchMatmul", "", "[1,2] 1 2; [2,1] 3 4; [1] 5; [1] 6; [1] 7; [1] 2", "[1,1] 186", ""},
	{"WeightQuantBatchMatmul", "transpose_x=1",
		"[2,1] 1 2; [2,1] 3 4; [1] 5; [1] 1; [1] 2; [1] 3; [1] 4", "[1,1] 147", ""},
	{"GroupedMatmul", "", "[3,1] 1 2 3; [2,1,1] 10 100; [2,1] 1 2; [2,1] 1 2; [2,1] 0 5; [2,1] 1 1; "
		"[2,1] 0 0; [2] 1 3", "[3,1] 11 409 609", "[3,1] 10 400 600; [2,1,1] 1 26; [2,1] 1 10"},
	{"FFN", "", "[1,1] 2; [1,1] 3; [1,1] 5", "[1,1] 5*activation(6)", ""},
	{"FFN", "", "[3,1] 1 2 3; [2,1,1] 1 10; [2,1,1] 3 4; [2] 1 2; [2,1] 0 7; [2,1] 5 6",
		"[3,1] 5+3*activation(1) 6+4*activation(27) 6+4*activation(37)", ""},
};

int main(void)
{
	return ex_pinned_main("kernels_b", pinned, sizeof pinned / sizeof *pinned);
}
