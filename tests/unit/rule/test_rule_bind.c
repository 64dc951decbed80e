/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		"[v! d e], [A] -> [A d e]; v=10 d=4 e=6 A=8", "float32[8,4,6]", "Avde"},
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

START_TEST(samples_bind_as_written)
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

int main(void)
{
	Suite *s = suite_create("rule_bind");
	TCase *t = tcase_create("rule_bind");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, fixture_setup, fixture_teardown);
	tcase_add_loop_test(t, samples_bind_as_written, 0,
		(int)(sizeof samples / sizeof *samples));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
