/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "rule/bind.h"
#include "rule/op.h"

#include "harness.h"
#include "move_samples.h"
#include "rule_fixture.h"

/* What an operator must bind to: text of ap_rule_text(), result types, dev_matrix order. */
static const struct sample {
	const char *type, *shapes, *attrs, *declared;
	const char *text, *results, *dev;
} samples[] = {
	{"MatMul", "float16[32,784] float16[784,512]", "", "",
		"[m k], [k n] -> [m n]; m=32 k=784 n=512", "float16[32,512]", "mkn"},
	{"MatMul", "float32[32,784] float32[512,784]", "transpose_b=true", "",
		"[m k], [n k] -> [m n]; m=32 k=784 n=512", "float32[32,512]", "mkn"},
	{"MatMul", "float32[784,32] float32[784,512]", "transpose_a=true transpose_b=false", "",
		"[k m], [k n] -> [m n]; k=784 m=32 n=512", "float32[32,512]", "mkn"},
	{"MatMul", "float32[784,32] float32[512,784]", "transpose_a=true transpose_b=true", "",
		"[k m], [n k] -> [m n]; k=784 m=32 n=512", "float32[32,512]", "mkn"},
	{"MatMul", "float32[1,784] float32[784,1]", "", "",
		"[1 k], [k 1] -> [1 1]; k=784", "float32[1,1]", "k"},
	{"MatMulExt", "float16[8,4] float16[4,2]", "", "",
		"[m k], [k n] -> [m n]; m=8 k=4 n=2", "float16[8,2]", "mkn"},
	{"BatchMatMul", "float16[4,12,128,64] float16[4,12,64,128]", "", "",
		"[A B m k], [A B k n] -> [A B m n]; A=4 B=12 m=128 k=64 n=128",
		"float16[4,12,128,128]", "ABmkn"},
	{"BatchMatMul", "float16[4,12,128,64] float16[4,12,100,64]", "transpose_b=true", "",
		"[A B m k], [A B n k] -> [A B m n]; A=4 B=12 m=128 k=64 n=100",
		"float16[4,12,128,100]", "ABmkn"},
	{"BatchMatMul", "float16[12,64,128] float16[4,1,64,100]", "transpose_a=true", "",
		"[B k m], [A 1 k n] -> [A B m n]; A=4 B=12 k=64 m=128 n=100",
		"float16[4,12,128,100]", "ABmkn"},
	{"BatchMatMul", "float16[3,64,8] float16[3,9,64]", "transpose_a=true transpose_b=true",
		"", "[A k m], [A n k] -> [A m n]; A=3 k=64 m=8 n=9", "float16[3,8,9]", "Amkn"},
	{"BatchMatMulExt", "float16[4,8,2] float16[4,2,6]", "", "",
		"[A m k], [A k n] -> [A m n]; A=4 m=8 k=2 n=6", "float16[4,8,6]", "Amkn"},
	{"BiasAdd", "float32[32,512] float32[512]", "", "",
		"[b x], [x] -> [b x]; b=32 x=512", "float32[32,512]", "bx"},
	{"BiasAdd", "float32[32,64,7,7] float32[64]", "data_format=NCHW", "",
		"[b x A B], [x] -> [b x A B]; b=32 x=64 A=7 B=7", "float32[32,64,7,7]", "bxAB"},
	{"BiasAdd", "float32[32,7,7,64] float32[64]", "data_format=NHWC", "",
		"[b A B x], [x] -> [b A B x]; b=32 A=7 B=7 x=64", "float32[32,7,7,64]", "bABx"},
	{"Add", "float16[8,1,32] float16[4,1]", "", "",
		"[A 1 C], [B 1] -> [A B C]; A=8 B=4 C=32", "float16[8,4,32]", "ABC"},
	{"Mul", "float16[4] float16[8,6,4]", "", "",
		"[C], [A B C] -> [A B C]; A=8 B=6 C=4", "float16[8,6,4]", "ABC"},
	{"Sub", "float32[] float32[]", "", "", "[], [] -> []", "float32[]", ""},
	{"Greater", "float16[8,4] float16[]", "", "",
		"[A B], [] -> [A B]; A=8 B=4", "bool[8,4]", "AB"},
	{"LogicalAnd", "bool[8] bool[8]", "", "", "[A], [A] -> [A]; A=8", "bool[8]", "A"},
	{"ReLU", "float16[8,512]", "", "", "[A B] -> [A B]; A=8 B=512", "float16[8,512]", "AB"},
	{"Cast", "float16[8,512]", "dst_type=float32", "",
		"[A B] -> [A B]; A=8 B=512", "float32[8,512]", "AB"},
	{"Softmax", "float16[4,12,128,128]", "", "",
		"[A B C D!] -> [A B C D!]; A=4 B=12 C=128 D=128", "float16[4,12,128,128]", "ABCD"},
	{"Softmax", "float16[4,12,128]", "axis=0,-2", "",
		"[A! B! C] -> [A! B! C]; A=4 B=12 C=128", "float16[4,12,128]", "ABC"},
	{"LogSoftmax", "float32[4,12]", "axis=1", "",
		"[A B!] -> [A B!]; A=4 B=12", "float32[4,12]", "AB"},
	{"LayerNorm", "float16[4,128,768] float16[768] float16[768]",
		"begin_norm_axis=-1 begin_params_axis=-1", "? ? ?",
		"[A B C!], [C!], [C!] -> [A B C!], [A B 1], [A B 1]; A=4 B=128 C=768",
		"float16[4,128,768] float32[4,128,1] float32[4,128,1]", "ABC"},
	{"LayerNorm", "float16[4,128,768] float32[128,768] float32[128,768]", "", "",
		"[A B! C!], [B! C!], [B! C!] -> [A B! C!], [A 1 1], [A 1 1]; A=4 B=128 C=768",
		"float16[4,128,768] float32[4,1,1] float32[4,1,1]", "ABC"},
	{"LayerNormV3", "float16[4,768] float16[768] float16[768]", "", "?",
		"[A B!], [B!], [B!] -> [A B!], [A 1], [A 1]; A=4 B=768",
		"float16[4,768] float32[4,1] float32[4,1]", "AB"},
	{"SoftmaxCrossEntropyWithLogits", "float32[64,1000] float32[64,1000]", "", "? ?",
		"[b c!], [b c!] -> [b], [b c!]; b=64 c=1000", "float32[64] float32[64,1000]", "bc"},
	{"RmsNorm", "float16[4,128,768] float32[768]", "epsilon=0", "? ?",
		"[A B x!], [x!] -> [A B x!], [A B 1]; A=4 B=128 x=768",
		"float16[4,128,768] float32[4,128,1]", "ABx"},
	{"L2Normalize", "float32[4,8,16]", "", "",
		"[A! B C] -> [A! B C]; A=4 B=8 C=16", "float32[4,8,16]", "ABC"},
	{"GroupNorm", "float16[4,64] float16[64] float16[64]", "num_groups=16", "? ? ?",
		"[b (g! c!)], [(g! c!)], [(g! c!)] -> [b (g! c!)], [b g!], [b g!]; b=4 g=16 c=4",
		"float16[4,64] float32[4,16] float32[4,16]", "bgc"},
	{"GroupNorm", "float16[4,64,7] float16[64] float16[64]", "num_groups=64", "?",
		"[b g! w!], [g!], [g!] -> [b g! w!], [b g!], [b g!]; b=4 g=64 w=7",
		"float16[4,64,7] float32[4,64] float32[4,64]", "bgw"},
	{"GroupNorm", "float16[4,64,7,9] float16[64] float16[64]", "num_groups=1", "?",
		"[b c! h! w!], [c!], [c!] -> [b c! h! w!], [b 1], [b 1]; b=4 c=64 h=7 w=9",
		"float16[4,64,7,9] float32[4,1] float32[4,1]", "bchw"},
	{"GroupNorm", "float16[4,64,3,7,9] float16[64] float16[64]", "num_groups=8", "?",
		"[b (g! c!) d! h! w!], [(g! c!)], [(g! c!)] -> [b (g! c!) d! h! w!], [b g!], "
		"[b g!]; b=4 g=8 c=8 d=3 h=7 w=9",
		"float16[4,64,3,7,9] float32[4,8] float32[4,8]", "bgcdhw"},
	{"BatchNorm", "float16[32,64,56,56] float32[64] float32[64] float32[64] float32[64]",
		"is_training=true momentum=1", "? ? ? ? ?",
		"[b c A B], [c], [c], [c], [c] -> [b c A B], [c], [c], [c], [c]; "
		"b=32 c=64 A=56 B=56",
		"float16[32,64,56,56] float32[64] float32[64] float32[64] float32[64]", "bcAB"},
	{"BatchNorm", "float16[32,64] float32[64] float32[64] float32[64] float32[64]", "", "?",
		"[b c], [c], [c], [c], [c] -> [b c]; b=32 c=64", "float16[32,64]", "bc"},
	{"Conv2D", "float32[32,3,224,224] float32[64,3,7,7]",
		"kernel_size=7 stride=2 pad_mode=pad pad=3 dilation=1 group=1", "",
		"[n c h~7 w~7], [d c 7 7] -> [n d h w]; n=32 c=3 h=112 w=112 d=64",
		"float32[32,64,112,112]", "nchwd"},
	{"Conv2D", "float16[8,32,12,10] float16[64,1,3,5]", "group=32 pad_mode=same stride=1,1,2,1",
		"", "[n g! h~3 w~5], [(g! d!) 1 3 5] -> [n (g! d!) h w]; n=8 g=32 h=6 w=10 d=2",
		"float16[8,64,6,10]", "nghwd"},
	{"Conv2D", "float16[8,32,12,10] float16[64,16,3,1]", "group=2 dilation=3,1", "",
		"[n (g! c!) h~7 w~1], [(g! d!) c! 3 1] -> [n (g! d!) h w]; "
		"n=8 g=2 c=16 h=6 w=10 d=32", "float16[8,64,6,10]", "ngchwd"},
	{"Conv3D", "float16[2,3,16,56,58] float16[64,3,3,5,5]", "pad_mode=pad pad=1,1,2,2,0,1 "
		"stride=1,1,1,2,2", "",
		"[n c d~3 h~5 w!~5], [e c 3 5 5] -> [n e d h w!]; n=2 c=3 d=16 h=28 w=28 e=64",
		"float16[2,64,16,28,28]", "ncdhwe"},
	{"MaxPool", "float32[32,64,112,112]", "kernel_size=3 strides=2 pad_mode=same", "",
		"[n c h~3 w~3] -> [n c h w]; n=32 c=64 h=56 w=56", "float32[32,64,56,56]", "nchw"},
	{"AvgPool", "float16[8,16,7,9]", "kernel_size=7,9 strides=1,1,1,1 pad_mode=VALID", "",
		"[n c 7~7 9~9] -> [n c 1 1]; n=8 c=16", "float16[8,16,1,1]", "nc"},
	{"SparseSoftmaxCrossEntropyWithLogits", "float32[32,1001] int32[32]", "", "",
		"[b c!], [b] -> []; b=32 c=1001", "float32[]", "bc"},
	{"SparseSoftmaxCrossEntropyWithLogits", "float32[32,1001] int64[32]", "is_grad=true", "",
		"[b! c!], [b!] -> [b! c!]; b=32 c=1001", "float32[32,1001]", "bc"},
	{"PReLU", "float16[8,64,7] float16[64]", "", "",
		"[b c A], [c] -> [b c A]; b=8 c=64 A=7", "float16[8,64,7]", "bcA"},
	{"PReLU", "float16[8,64,7] float16[1]", "", "",
		"[b c A], [1] -> [b c A]; b=8 c=64 A=7", "float16[8,64,7]", "bcA"},
	{"Swiglu", "float16[2,128,22016]", "", "",
		"[A B C!] -> [A B C!]; A=2 B=128 C=11008", "float16[2,128,11008]", "ABC"},
	{"Swiglu", "float16[2,8,6]", "dim=1", "",
		"[A B! C] -> [A B! C]; A=2 B=4 C=6", "float16[2,4,6]", "ABC"},
	{"RotaryPositionEmbedding", "float16[2,32,128,64] float32[1,1,128,64] float32[1,1,128,64]",
		"mode=0", "",
		"[A B C x!], [1 1 C x!], [1 1 C x!] -> [A B C x!]; A=2 B=32 C=128 x=64",
		"float16[2,32,128,64]", "ABCx"},
	{"ReduceSum", "float32[4,8,16]", "axis=-1", "",
		"[A B C] -> [A B]; A=4 B=8 C=16", "float32[4,8]", "ABC"},
	{"ReduceSum", "float32[4,8,16]", "axis=2,0 keep_dims=true", "",
		"[A B C] -> [1 B 1]; A=4 B=8 C=16", "float32[1,8,1]", "ABC"},
	{"ReduceMean", "float32[4,8]", "", "", "[A B] -> []; A=4 B=8", "float32[]", "AB"},
	{"ReduceMean", "float32[4,8]", "axis= keep_dims=true", "",
		"[A B] -> [1 1]; A=4 B=8", "float32[1,1]", "AB"},
	{"ReduceMax", "int32[4,8]", "axis=0", "", "[A B] -> [B]; A=4 B=8", "int32[8]", "AB"},
	{"ReduceMax", "int32[4,8]", "axis=0 keep_dims=true", "",
		"[A B] -> [1 B]; A=4 B=8", "int32[1,8]", "AB"},
	{"ReduceMin", "int32[4,8]", "axis=0", "", "[A B] -> [B]; A=4 B=8", "int32[8]", "AB"},
	{"ReduceMin", "int32[4,8]", "axis=1 keep_dims=true", "",
		"[A B] -> [A 1]; A=4 B=8", "int32[4,1]", "AB"},
	{"ReduceProd", "int32[4,8]", "axis=0", "", "[A B] -> [B]; A=4 B=8", "int32[8]", "AB"},
	{"ReduceProd", "int32[4,8]", "axis=1 keep_dims=true", "",
		"[A B] -> [A 1]; A=4 B=8", "int32[4,1]", "AB"},
	{"Reshape", "float16[4,128,768]", "shape=512,768", "",
		"[A B C] -> [(A B) C]; A=4 B=128 C=768", "float16[512,768]", "ABC"},
	{"Reshape", "float16[512,768]", "shape=4,128,-1,64", "",
		"[(A B) (C D)] -> [A B C D]; A=4 B=128 C=12 D=64", "float16[4,128,12,64]", "ABCD"},
	{"Reshape", "float16[6,4,5]", "", "float16[8,3,5]",
		"[6 4 A] -> [8 3 A]; A=5", "float16[8,3,5]", "A"},
	{"Reshape", "float16[6,4]", "shape=2,3,1,4", "",
		"[(A B) C] -> [A B 1 C]; A=2 B=3 C=4", "float16[2,3,1,4]", "ABC"},
	{"Reshape", "float16[8,9]", "shape=4,2,3,3", "",
		"[(A B) (C D)] -> [A B C D]; A=4 B=2 C=3 D=3", "float16[4,2,3,3]", "ABCD"},
	{"Reshape", "float16[4,6]", "shape=2,12", "",
		"[(A B) C] -> [A (B C)]; A=2 B=2 C=6", "float16[2,12]", "ABC"},
	{"Reshape", "float16[]", "shape=1,1", "", "[] -> [1 1]", "float16[1,1]", ""},
	{"Flatten", "float32[32,1,28,28]", "", "",
		"[A 1 B C] -> [A (B C)]; A=32 B=28 C=28", "float32[32,784]", "ABC"},
	{"Transpose", "float16[4,128,12,64]", "perm=0,2,1,-1", "",
		"[A B C D] -> [A C B D]; A=4 B=128 C=12 D=64", "float16[4,12,128,64]", "ABCD"},
	{"Gather", "float32[50000,1024] int32[8,128]", "axis=0", "",
		"[v@ d], [A B] -> [A B d]; v=50000 d=1024 A=8 B=128", "float32[8,128,1024]",
		"ABvd"},
	{"Gather", "float32[50000] int64[8]", "", "",
		"[v@], [A] -> [A]; v=50000 A=8", "float32[8]", "Av"},
	{"Gather", "float32[10,4,6] int64[8]", "", "",
		"[10 e f], [A] -> [A e f]; A=8 e=4 f=6", "float32[8,4,6]", "Aef"},
	{"SparseGatherV2", "float32[100,16] int32[8]", "", "",
		"[v@ d], [A] -> [A d]; v=100 d=16 A=8", "float32[8,16]", "Avd"},
	{"OneHot", "int32[8,128] float16[] float16[]", "depth=100 axis=-1", "",
		"[A B], [], [] -> [A B d]; A=8 B=128 d=100", "float16[8,128,100]", "ABd"},
	{"OneHot", "int32[8]", "depth=10", "float16[8,10]",
		"[A] -> [A d]; A=8 d=10", "float16[8,10]", "Ad"},
	{"Dropout", "float16[8,64]", "keep_prob=0", "?",
		"[A B] -> [A B], [A B]; A=8 B=64", "float16[8,64] uint8[8,64]", "AB"},
	{"FlashAttentionScore", "float16[2,128,64] float16[2,256,64] float16[2,256,64]",
		"head_num=4", "",
		"[b s (n d!)], [b t! (n d!)], [b t! (n d!)] -> [b s (n d!)], [b n s 8], [b n s 8]; "
		"b=2 s=128 n=4 d=16 t=256",
		"float16[2,128,64] float32[2,4,128,8] float32[2,4,128,8]", "bsndt"},
	{"FlashAttentionScore", "float16[2,128,8192] float16[2,128,1024] float16[2,128,1024] "
		"- - - uint8[128,128]", "head_num=64 input_layout=BSH", "? ? ? ?",
		"[b s (n g d!)], [b t! (n d!)], [b t! (n d!)], [s t!] -> [b (n g) s 8], "
		"[b (n g) s 8], [1], [b s (n g d!)]; b=2 s=128 n=8 g=8 d=128 t=128",
		"float32[2,64,128,8] float32[2,64,128,8] float16[1] float16[2,128,8192]",
		"bsngdt"},
	{"FlashAttentionScore", "float16[2,128,64] float16[2,128,64] float16[2,128,64] "
		"- - - bool[2,1,128,128]", "head_num=4", "?",
		"[b s (n d!)], [b t! (n d!)], [b t! (n d!)], [b 1 s t!] -> [b s (n d!)], "
		"[b n s 8], [b n s 8]; b=2 s=128 n=4 d=16 t=128",
		"float16[2,128,64] float32[2,4,128,8] float32[2,4,128,8]", "bsndt"},
	{"FlashAttentionScore", "float16[2,16,128,64] float16[2,1,128,64] float16[2,1,128,64] "
		"float16[2,16,128,128] uint8[2,16,128,16] - uint8[2048,2048]",
		"input_layout=BNSD head_num=16 sparse_mode=2", "?",
		"[b g s d!], [b 1 t! d!], [b 1 t! d!], [b g s t!], [b g s 16], [2048 2048] -> "
		"[b g s d!], [b g s 8], [b g s 8]; b=2 g=16 s=128 d=64 t=128",
		"float16[2,16,128,64] float32[2,16,128,8] float32[2,16,128,8]", "bgsdt"},
};

static const char *shape_text(const struct ap_operand *o, uint16_t n, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (uint16_t t = 0; t < n; t++) {
		at += (size_t)snprintf(buf + at, size - at, "%s%s[", t ? " " : "",
			ap_dtype_name(o[t].dtype));
		for (uint8_t i = 0; i < o[t].rank; i++)
			at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "," : "",
				(long long)o[t].size[i]);
		at += (size_t)snprintf(buf + at, size - at, "]");
	}
	return buf;
}

static const char *dev_text(const struct ap_bound *b, char buf[AP_MAX_FACTOR + 1])
{
	for (uint8_t i = 0; i < b->ndev; i++)
		buf[i] = b->factor[b->dev[i]].letter;
	buf[b->ndev] = '\0';
	return buf;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(samples_bind_as_written, AP_COUNT(samples))
{
	const struct sample *s = &samples[_i];
	struct ap_bound b = bind_ok(s->type, s->shapes, s->attrs, s->declared);
	char buf[512], dev[AP_MAX_FACTOR + 1];

	ck_assert_str_eq(ap_rule_text(&ctx, &b), s->text);
	ck_assert_str_eq(shape_text(b.out, b.nout, buf, sizeof buf), s->results);
	ck_assert_str_eq(dev_text(&b, dev), s->dev);
	ck_assert_str_eq(b.row->name, s->type);
}
END_TEST

/* Forms of attention: layout, causal or not, mask, number of results. */
struct attention {
	const char *shapes, *attrs;
	double flops;
};

static const struct attention attentions[] = {
	{"float16[2,128,64] float16[2,256,16] float16[2,256,16] - - - uint8[2048,2048]",
		"head_num=4 sparse_mode=3", 2},
	{"float16[2,128,64] float16[2,256,16] float16[2,256,16] - - - uint8[2048,2048]",
		"head_num=4 sparse_mode=4", 4},
	{"float16[2,128,64] float16[2,256,16] float16[2,256,16] - - - bool[2,4,128,256]",
		"head_num=4", 4},
	{"float16[2,128,64] float16[2,256,16] float16[2,256,16] - - - bool[128,256]",
		"head_num=4 sparse_mode=1", 4},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,16] - - - uint8[2048,2048]",
		"input_layout=BNSD sparse_mode=2", 2},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,16] - - - uint8[2048,2048]",
		"input_layout=BNSD head_num=4 sparse_mode=4", 4},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,16] - - - bool[1,1,128,256]",
		"input_layout=BNSD head_num=4", 4},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,16] - - - bool[128,256]",
		"input_layout=BNSD head_num=4", 4},
	{"float16[128,2,64] float16[256,2,16] float16[256,2,16] - - - uint8[2048,2048]",
		"input_layout=SBH head_num=4 sparse_mode=3", 2},
	{"float16[128,2,64] float16[256,2,16] float16[256,2,16] - - - uint8[2048,2048]",
		"input_layout=SBH head_num=4 sparse_mode=4", 4},
	{"float16[128,2,64] float16[256,2,16] float16[256,2,16] - - - bool[2,4,128,256]",
		"input_layout=SBH head_num=4", 4},
	{"float16[128,2,64] float16[256,2,16] float16[256,2,16] - - - bool[128,256]",
		"input_layout=SBH head_num=4 sparse_mode=1", 4},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=3", 2},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=4", 4},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - bool[2,4,128,256]",
		"input_layout=BSND head_num=4", 4},
	/* 64 of 256 keys; 64, at most 31 of them behind a query; half at least on neither side */
	{"float16[2,256,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=4 pre_tokens=63 next_tokens=0", 4 * 64. / 256},
	{"float16[2,256,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=4 pre_tokens=32 next_tokens=31", 4 * 64. / 256},
	{"float16[2,256,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=4 pre_tokens=255 next_tokens=0", 4 * 128.5 / 256},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,16] - - - bool[128,256]",
		"input_layout=BSND head_num=4 sparse_mode=1", 4},
	/* values in heads of half the size: each point of both sizes is worked through by its share */
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,8] - - - uint8[2048,2048]",
		"input_layout=BNSD head_num=4 sparse_mode=2", 2 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,8] - - - uint8[2048,2048]",
		"input_layout=BNSD head_num=4 sparse_mode=4", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,8] - - - bool[2,4,128,256]",
		"input_layout=BNSD head_num=4", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,4,128,16] float16[2,2,256,16] float16[2,2,256,8] - - - bool[128,256]",
		"input_layout=BNSD head_num=4 sparse_mode=1", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,8] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=2", 2 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,8] - - - uint8[2048,2048]",
		"input_layout=BSND head_num=4 sparse_mode=4", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,8] - - - bool[2,4,128,256]",
		"input_layout=BSND head_num=4", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[2,128,4,16] float16[2,256,2,16] float16[2,256,2,8] - - - bool[128,256]",
		"input_layout=BSND head_num=4 sparse_mode=1", 4 * (16. + 8) / (2 * 16 * 8)},
	{"float16[128,4,16] float16[256,2,16] float16[256,2,16]",
		"input_layout=TND head_num=4 sparse_mode=3", 2},
	{"float16[128,4,16] float16[256,2,16] float16[256,2,16]",
		"input_layout=TND head_num=4 sparse_mode=4", 4},
	{"float16[128,4,16] float16[256,2,16] float16[256,2,16]",
		"input_layout=TND head_num=4", 4},
	{"float16[128,64] float16[256,32] float16[256,32]",
		"input_layout=TH head_num=4 sparse_mode=3", 2},
	{"float16[128,64] float16[256,32] float16[256,32]",
		"input_layout=TH head_num=4 sparse_mode=4", 4},
	{"float16[128,64] float16[256,32] float16[256,32]",
		"input_layout=TH head_num=4", 4},
};

START_LOOP_TEST(attention_in_all_forms, 2 * AP_COUNT(attentions))
{
	const struct attention *a = &attentions[_i / 2];
	bool four = _i % 2;
	struct ap_bound b = bind_ok("FlashAttentionScore", a->shapes, a->attrs,
		four ? "? ? ? ?" : "?");
	const struct ap_operand *o = &b.out[four ? 3 : 0];

	ck_assert_double_eq(b.flops, a->flops);
	ck_assert_double_eq(b.row->backward, 2.5);
	ck_assert_uint_eq(b.nout, four ? 4 : 3);
	ck_assert_int_eq(o->rank, b.in[0].rank);
	for (int d = 0; d + 1 < o->rank; d++)
		ck_assert_int_eq(o->size[d], b.in[0].size[d]);
	ck_assert_int_eq(o->size[o->rank - 1], (o->rank == 4 ? &b.in[2] : &b.in[0])->size[o->rank - 1]);
	ck_assert(o->saved);
	ck_assert(b.in[2].differentiable && !b.in[3].differentiable);
}
END_TEST

/* Element-wise rows share two rules; any shapes do for them. */
static bool bind_family(const struct ap_op_row *row)
{
	bool two = strcmp(row->rule, "*,*->*") == 0;
	const char *t = *row->types == 'b' ? "bool" : *row->types == 'i' ? "int32" : "float32";
	char shapes[64];

	if (*row->when || (!two && strcmp(row->rule, "*->*") != 0))
		return false;
	snprintf(shapes, sizeof shapes, "%s[8,6]%s%s%s", t, two ? " " : "", two ? t : "",
		two ? "[6]" : "");
	ck_assert_ptr_eq(bind_ok(row->name, shapes, strcmp(row->name, "Cast") == 0 ?
		"dst_type=float16" : "", "").row, row);
	return true;
}

static bool bind_sample(const struct ap_op_row *row)
{
	const struct move_sample *s;

	for (size_t i = 0; i < AP_COUNT(samples); i++)
		if (strcmp(samples[i].type, row->name) == 0 && bind_ok(row->name,
			samples[i].shapes, samples[i].attrs, samples[i].declared).row == row)
			return true;
	for (size_t i = 0; (s = sample_at(i)); i++)
		if (strcmp(s->type, row->name) == 0 &&
			bind_ok(row->name, s->shapes, s->attrs, s->declared).row == row)
			return true;
	for (size_t i = 0; i < 2 * AP_COUNT(attentions); i++)
		if (strcmp(row->name, "FlashAttentionScore") == 0 &&
			bind_ok(row->name, attentions[i / 2].shapes, attentions[i / 2].attrs,
				i % 2 ? "? ? ? ?" : "?").row == row)
			return true;
	return false;
}

START_TEST(every_row_binds_to_a_sample)
{
	const struct ap_op_row *row;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		ck_assert_msg(bind_family(row) || bind_sample(row), "%s \"%s\" (%s) has no sample",
			row->name, row->rule, row->when);
}
END_TEST

/* Which operands and results are kept, which operands gradients flow into. */
static const struct {
	const char *type, *shapes, *attrs, *kept, *grad;
} flows[] = {
	{"MatMul", "float16[4,6] float16[6,2]", "", "ab", "ab"},
	{"Add", "float16[4,6] float16[6]", "", "", "ab"},
	{"RealDiv", "float16[4,6] float16[6]", "", "bo", "ab"},
	{"Equal", "float16[4,6] float16[6]", "", "", ""},
	{"Mul", "int32[4,6] int32[6]", "", "ab", ""},
	{"ReLU", "float16[4]", "", "o", "a"},
	{"GeLU", "float16[4]", "", "a", "a"},
	{"Softmax", "float16[4]", "", "o", "a"},
	{"LayerNorm", "float16[4,6] float16[6] float16[6]", "", "abpq", "abc"},
	{"RmsNorm", "float16[4,6] float16[6]", "", "abp", "ab"},
	{"BatchNorm", "float16[4,6] float32[6] float32[6] float32[6] float32[6]",
		"is_training=true", "abpq", "abc"},
	{"BatchNorm", "float16[4,6] float32[6] float32[6] float32[6] float32[6]", "", "abde",
		"abc"},
	{"Conv2D", "float16[4,6,5,5] float16[8,6,3,3]", "", "ab", "ab"},
	{"MaxPool", "float16[4,6,5,5]", "kernel_size=2", "ao", "a"},
	{"AvgPool", "float16[4,6,5,5]", "kernel_size=2", "", "a"},
	{"SparseSoftmaxCrossEntropyWithLogits", "float16[4,6] int32[4]", "", "ab", "a"},
	{"Dropout", "float16[4]", "", "p", "a"},
	{"Gather", "float32[4,6] int32[3]", "", "b", "a"},
	{"OneHot", "int32[3]", "depth=4", "", ""},
	{"Floor", "float32[3]", "", "", ""},
	{"SoftmaxCrossEntropyWithLogits", "float32[3,4] float32[3,4]", "", "p", "a"},
	{"FlashAttentionScore", "float16[2,8,4] float16[2,8,4] float16[2,8,4] - - - bool[8,8]",
		"head_num=2", "abcdopq", "abc"},
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

static const struct {
	const char *type, *shapes, *attrs, *declared;
	const char *check, *words;
	int operand;
} faults[] = {
	{"NoSuch", "", "", "", "operator-known", "unknown", -1},
	{"MatMul", "float32[4,6]", "", "", "operator-inputs", "needs 2 operands; 1 are given", -1},
	{"MatMul", "- float32[4,6]", "", "", "operator-inputs", "needs 2", -1},
	{"ReLU", "float32[4] float32[4]", "", "", "operator-inputs", "at most 1", -1},
	{"ReLU", "float32[4]", "", "? ?", "operator-outputs", "1 results; 2 are declared", -1},
	{"FlashAttentionScore", "float16[2,8,4] float16[2,8,4] float16[2,8,4]", "head_num=2",
		"? ?", "operator-outputs", "2 results are declared; 1 is expected", -1},
	{"MatMul", "float32[6] float32[6,2]", "", "", "operator-rank",
		"operand 0 has shape [6]; MatMul needs 2 dimensions there", 0},
	{"BatchMatMul", "float32[4,6] float32[6]", "", "", "operator-rank", "at least 2", 1},
	{"MatMul", "float32[4,6] float32[6,2]", "transpose_a=true", "", "operator-shape",
		"dimension 0 of operand 1 is 6, dimension 0 of operand 0 is 4", 1},
	{"MatMul", "float32[4,3] float32[6,2]", "", "", "operator-shape", "equal lengths", 1},
	{"BiasAdd", "float32[4,3] float32[4]", "", "", "operator-shape", "equal lengths", 1},
	{"BiasAdd", "float32[4,3] float32[3]", "data_format=ND", "", "operator-attr",
		"attribute data_format is ND; NCHW or NCDHW is expected", -1},
	{"Add", "float32[2,3] float32[2]", "", "", "operator-shape",
		"dimension 0 of operand 1 is 2, another operand has 3 there", 1},
	{"Conv2D", "float32[8,3,9,9] float32[4,2,3,3]", "", "", "operator-shape", "equal lengths", 1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "kernel_size=3,5", "", "operator-attr",
		"kernel_size is 5; the weight has a kernel of 3", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "stride=2,1,1,1", "", "operator-attr",
		"attribute stride has 2 at 0; 1 is expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "stride=1,1,1", "", "operator-attr",
		"attribute stride has 3 values; 1, 2 or 4 are expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "dilation=0", "", "operator-attr",
		"attribute dilation has 0 at 0; at least 1 is expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "pad_mode=full", "", "operator-attr",
		"pad_mode is \"full\"; valid, same or pad is expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "pad=1", "", "operator-attr",
		"attribute pad has 1 at 0; 0 without pad_mode \"pad\" is expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "pad_mode=pad pad=1,1", "",
		"operator-attr", "attribute pad has 2 values; 1 or 4 are expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "pad_mode=pad pad=-1", "",
		"operator-attr", "attribute pad has -1 at 0; at least 0 is expected", -1},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "dilation=5", "", "operator-shape",
		"dimension 2 of operand 0 is 9, 9 with its padding; at least the window, 11, is "
		"expected", 0},
	{"Conv2D", "float32[8,3,9,9] float32[4,3,3,3]", "data_format=NHWC", "", "operator-attr",
		"attribute data_format is NHWC; NCHW is expected", -1},
	{"Conv2D", "float32[8,4,9,9] float32[6,1,3,3]", "group=3", "", "operator-shape",
		"dimension 0 of operand 1 is 6, dimension 1 of operand 0 is 4; equal lengths of "
		"what they share are expected", 1},
	{"MaxPool", "float32[8,3,9,9]", "", "", "operator-attr",
		"attribute kernel_size is missing", -1},
	{"Swiglu", "float32[8,5]", "", "", "operator-shape",
		"dimension 1 of operand 0 is 5; it has no two halves", 0},
	{"GroupNorm", "float32[8,6,9] float32[6] float32[6]", "num_groups=4", "",
		"operator-shape", "what goes with attribute num_groups of 4 is expected", 0},
	{"BatchNorm", "float32[8,6,9] float32[6] float32[9] float32[6] float32[6]", "", "",
		"operator-shape", "equal lengths", 2},
	{"Softmax", "complex64[2]", "", "", "operator-dtype", "a floating type is expected", 0},
	{"Argmax", "float32[2]", "output_type=int33", "", "operator-attr", "\"int33\"; a known", -1},
	{"Argmax", "float32[2]", "output_type=float32", "", "operator-attr", "an integer type", -1},
	{"SumExt", "float32[2]", "dtype=half", "", "operator-attr", "dtype is \"half\"; a known", -1},
	{"LogicalAnd", "bool[2] float32[2]", "", "", "operator-dtype", "bool is expected", 1},
	{"Softmax", "float32[]", "", "", "operator-attr", "attribute axis is -1", -1},
	{"LayerNorm", "float32[2,3] float32[3] float32[3]", "begin_norm_axis=2", "",
		"operator-attr", "attribute begin_norm_axis is 2", -1},
	{"LayerNorm", "float32[2,3] float32[3] float32[2,3]", "", "", "operator-rank",
		"operand 2 has shape [2, 3]; 1 dimensions are expected", 2},
	{"Transpose", "float32[2,3]", "perm=0,2", "", "operator-attr", "attribute perm is 2", -1},
	{"Gather", "float32[] int32[3]", "", "", "operator-rank", "operand 0", 0},
	{"Gather", "float32[4,6] int32[3]", "batch_dims=1", "", "operator-attr",
		"attribute batch_dims is 1; with 1 dimensions of the indices and axis 0 at most 0 is "
		"allowed", -1},
	{"OneHot", "int32[4]", "", "", "operator-attr", "attribute depth is missing", -1},
	{"OneHot", "int32[4]", "depth=3 axis=2", "", "operator-attr",
		"attribute axis is 2; with 2 dimensions -2..1 is allowed", -1},
	{"Reshape", "float32[4,6]", "shape=5,-1", "", "operator-shape", "cannot be shaped", 0},
	{"Reshape", "float32[4,6]", "shape=1,1,1,1,1,1,1,1,24", "", "operator-attr",
		"more than 8 values", -1},
	{"Reshape", "float32[4,6]", "", "float32[5,5]", "operator-shape", "another number", 0},
	{"FlashAttentionScore", "float16[2,8,64] float16[2,8,24] float16[2,8,24]", "head_num=4", "",
		"operator-shape", "dimension 2 of operand 0 is 64, dimension 2 of operand 1 is 24", 0},
	{"FlashAttentionScore", "float16[2,8,64] float16[2,8,64] float16[2,9,64]", "head_num=4", "",
		"operator-shape", "dimension 1 of operand 2 is 9", 2},
	{"FlashAttentionScore", "float16[2,8,64] float16[2,8,64] float16[2,8,64] - - - bool[9,8]",
		"head_num=4", "", "operator-shape", "dimension 0 of operand 3 is 9", 3},
	{"FlashAttentionScore", "float16[2,8,64] float16[2,8,64] float16[2,8,64]", "head_num=0",
		"", "operator-attr", "head_num must be at least 1", -1},
	{"Cast", "float16[2]", "", "", "operator-attr", "attribute dst_type is missing", -1},
};

START_LOOP_TEST(faults_name_check_operand_and_sizes, AP_COUNT(faults))
{
	struct ap_bind_fault f = bind_bad(faults[_i].type, faults[_i].shapes, faults[_i].attrs,
		faults[_i].declared);

	ck_assert_msg(strstr(f.text, faults[_i].words), "%s", f.text);
	ck_assert_str_eq(f.check, faults[_i].check);
	ck_assert_int_eq(f.operand, faults[_i].operand);
}
END_TEST

START_TEST(repeats_go_left_where_a_vocabulary_is_cut)
{
	struct ap_bound g = bind_ok("Gather", "float32[50,10] int32[8]", "", "");
	struct ap_bound m = bind_ok("MatMul", "float32[50,10] float32[10,8]", "", "");

	ck_assert_uint_eq(g.left, 1); /* v is the first factor */
	ck_assert_int_eq(g.factor[0].letter, 'v');
	ck_assert_uint_eq(g.factor[0].flags, AP_FACTOR_LOOKUP);
	ck_assert_uint_eq(m.left, 0);
}
END_TEST

START_TEST(reductions_tell_how_parts_combine)
{
	ck_assert_int_eq(bind_ok("ReduceSum", "float32[8]", "", "").row->reduce, AP_REDUCE_SUM);
	ck_assert_int_eq(bind_ok("ReduceMean", "float32[8]", "", "").row->reduce, AP_REDUCE_MEAN);
	ck_assert_int_eq(bind_ok("ReduceMax", "float32[8]", "", "").row->reduce, AP_REDUCE_MAX);
	ck_assert_int_eq(bind_ok("ReduceMin", "float32[8]", "", "").row->reduce, AP_REDUCE_MIN);
	ck_assert_int_eq(bind_ok("ReduceProd", "float32[8]", "", "").row->reduce, AP_REDUCE_PROD);
}
END_TEST

START_TEST(types_of_results_that_the_file_may_choose)
{
	struct ap_bound n = bind_ok("LayerNorm", "bfloat16[4,6] float32[6] float32[6]", "",
		"bfloat16[4,6] bfloat16[4,1] float32[4,1]");
	struct ap_bound d = bind_ok("Dropout", "float16[4]", "", "float16[4] float16[4]");
	struct ap_bound o = bind_ok("OneHot", "int32[4]", "depth=2", "");

	ck_assert_int_eq(n.out[1].dtype, AP_BFLOAT16);
	ck_assert_int_eq(n.out[2].dtype, AP_FLOAT32);
	ck_assert_int_eq(d.out[1].dtype, AP_FLOAT16);
	ck_assert_int_eq(o.out[0].dtype, AP_FLOAT32);
	n = bind_ok("MatMul", "float8_e4m3fn[4,6] float8_e4m3fn[6,8]", "", "");
	ck_assert_int_eq(n.out[0].dtype, AP_BFLOAT16);
	n = bind_ok("BatchMatMul", "float8_e5m2[2,4,6] float8_e5m2[2,6,8]", "", "float32[2,4,8]");
	ck_assert_int_eq(n.out[0].dtype, AP_FLOAT32);
	n = bind_ok("ReLU", "float8_e5m2[4,6]", "", "");
	ck_assert_int_eq(n.out[0].dtype, AP_FLOAT8_E5M2);
}
END_TEST
