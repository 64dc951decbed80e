/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions beyond single factors, names of operators and attributes. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "rule/attr.h"
#include "rule/bind.h"
#include "rule/legal.h"
#include "rule/op.h"

#include "harness.h"
#include "rule_fixture.h"

/* counts: by letter, "v4 A2"; factors not named are not cut. */
static bool is_legal(const struct ap_bound *b, const char *counts, int64_t ndev)
{
	int32_t count[AP_MAX_FACTOR];

	for (uint8_t f = 0; f < b->nfactor; f++) {
		const char *p = strchr(counts, b->factor[f].letter);

		count[f] = p ? (int32_t)strtol(p + 1, NULL, 10) : 1;
	}
	return ap_rule_legal(b, count, ndev, true, NULL);
}

static const struct {
	const char *counts;
	int64_t ndev;
	bool legal, deep; /* with indices A B, and A B C */
} lookups[] = { /* table v d */
	{"", 8, true, true},
	{"A2 B2 d2", 8, true, true}, /* vocabulary whole: anything */
	{"A8", 8, true, true},
	{"v8", 8, true, true},
	{"v4", 8, true, true}, /* repeats are allowed with whole rows */
	{"v4 d2", 8, true, true},
	{"v2 d2", 8, false, false}, /* rows cut: no repeats */
	{"v4 A2", 8, true, false}, /* batch and vocabulary: no repeats, two dimensions */
	{"v2 A2", 8, false, false},
	{"v2 A2 B2", 8, true, false},
	{"v2 B4", 8, true, false},
	{"v2 A2 d2", 8, false, false}, /* whole rows only */
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(vocabulary_cuts, AP_COUNT(lookups))
{
	struct ap_bound b = bind_ok("Gather", "float32[64,16] int32[8,8]", "", "");
	struct ap_bound deep = bind_ok("Gather", "float32[64,16] int32[8,8,8]", "", "");

	ck_assert_int_eq(is_legal(&b, lookups[_i].counts, lookups[_i].ndev), lookups[_i].legal);
	ck_assert_int_eq(is_legal(&deep, lookups[_i].counts, lookups[_i].ndev), lookups[_i].deep);
}
END_TEST

/* The same where the table comes second. */
START_LOOP_TEST(vocabulary_cuts_of_an_embedding, AP_COUNT(lookups))
{
	struct ap_bound b = bind_ok("Embedding", "int32[8,8] float32[64,16]", "", "");
	struct ap_bound deep = bind_ok("Embedding", "int32[8,8,8] float32[64,16]", "", "");

	ck_assert_int_eq(is_legal(&b, lookups[_i].counts, lookups[_i].ndev), lookups[_i].legal);
	ck_assert_int_eq(is_legal(&deep, lookups[_i].counts, lookups[_i].ndev), lookups[_i].deep);
}
END_TEST

/* Tables of one dimension are looked up in whole where the indices are cut. */
START_TEST(vocabulary_of_numbers)
{
	struct ap_bound b = bind_ok("Gather", "float32[64] int32[8,8]", "", "");

	ck_assert(is_legal(&b, "v4", 8));
	ck_assert(!is_legal(&b, "v4 A2", 8));
}
END_TEST

START_TEST(depth_of_one_hot)
{
	struct ap_bound v = bind_ok("OneHot", "int32[8]", "depth=16", "");
	struct ap_bound m = bind_ok("OneHot", "int32[8,8]", "depth=16", "");

	ck_assert(is_legal(&v, "A2 d4", 8));
	ck_assert(is_legal(&m, "A8", 8));
	ck_assert(!is_legal(&m, "A4 B2", 8));
	ck_assert(!is_legal(&m, "d2", 8));
}
END_TEST

START_TEST(grouped_heads)
{
	struct ap_bound g = bind_ok("FlashAttentionScore",
		"float16[2,8,64] float16[2,8,16] float16[2,8,16]", "head_num=8", "");
	struct ap_bound one = bind_ok("FlashAttentionScore",
		"float16[2,8,64] float16[2,8,8] float16[2,8,8]", "head_num=8", "");

	ck_assert_str_eq(ap_rule_text(&ctx, &g), "[b s (n g d!)], [b t! (n d!)], [b t! (n d!)] -> "
		"[b s (n g d!)], [b (n g) s 8], [b (n g) s 8]; b=2 s=8 n=2 g=4 d=8 t=8");
	ck_assert(is_legal(&g, "b2 n2", 8));
	ck_assert(!is_legal(&g, "n2 g2", 8));
	ck_assert(is_legal(&one, "g8", 8));
}
END_TEST

/* Also where the first operand is a number, and where there is no operand. */
START_TEST(samples_in_as_many_parts_as_devices)
{
	struct ap_bound number = bind_ok("VirtualDataset", "float32[] float32[8,2]", "", "? ?");
	struct ap_bound none = bind_ok("GetNext", "", "", "float32[] int32[8]");

	ck_assert(is_legal(&number, "b4", 4));
	ck_assert(!is_legal(&number, "b2", 4));
	ck_assert(number.out[0].silent);
	ck_assert(is_legal(&none, "b4", 4));
	ck_assert(!is_legal(&none, "b2", 4));
	ck_assert(none.out[0].silent);
}
END_TEST

START_TEST(operators_without_a_condition)
{
	struct ap_bound b = bind_ok("MatMul", "float32[8,8] float32[8,8]", "", "");

	ck_assert(is_legal(&b, "m2 k2 n2", 8));
}
END_TEST

/* Every condition that a row names exists: asking for it does not stop the program. */
START_TEST(every_condition_exists)
{
	const struct ap_op_row *row;
	const int32_t ones[AP_MAX_FACTOR] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct ap_operand o[8] = {{0}};

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		struct ap_bound b = {.row = row, .in = o, .out = o};

		ck_assert(ap_rule_legal(&b, ones, 1, true, NULL));
	}
}
END_TEST

START_TEST(names_and_aliases)
{
	const char *old, *now, *nearest = NULL;

	ck_assert_str_eq(ap_op_canonical("MatMul", NULL), "MatMul");
	ck_assert_str_eq(ap_op_canonical("TensorAdd", NULL), "Add");
	ck_assert_str_eq(ap_op_canonical("GatherV2", NULL), "Gather");
	ck_assert_str_eq(ap_op_canonical("Gelu", NULL), "GeLU");
	for (size_t i = 0; ap_op_alias_at(i, &old, &now); i++) {
		ck_assert_str_eq(ap_op_canonical(now, NULL), now);
		ck_assert_str_eq(ap_op_canonical(old, NULL), now);
	}
	ck_assert_ptr_null(ap_op_canonical("matmul", &nearest));
	ck_assert_str_eq(nearest, "MatMul");
	ck_assert_ptr_null(ap_op_canonical("LayerNrom", &nearest));
	ck_assert_str_eq(nearest, "LayerNorm");
	ck_assert_ptr_null(ap_op_canonical("Add2", &nearest));
	ck_assert_str_eq(nearest, "Add");
	nearest = "left alone";
	ck_assert_ptr_null(ap_op_canonical("Frobnicate", &nearest));
	ck_assert_ptr_null(nearest);
}
END_TEST

START_TEST(what_has_no_strategy)
{
	ck_assert(!ap_op_has_strategy(bind_ok("Reshape", "float32[4,2]", "shape=8", "").row));
	ck_assert(!ap_op_has_strategy(bind_ok("GetNext", "", "", "float32[8]").row));
	ck_assert(ap_op_has_strategy(bind_ok("Flatten", "float32[4,2]", "", "").row));
	ck_assert(ap_op_has_strategy(bind_ok("ExpandDims", "float32[4]", "axis=0", "").row));
	ck_assert(ap_op_has_strategy(bind_ok("Transpose", "float32[4]", "perm=0", "").row));
}
END_TEST

START_TEST(attributes)
{
	static const int64_t one[] = {7}, two[] = {1, 2};
	const struct ap_attr v[] = {
		{.name = "axis", .type = AP_ATTR_INTS, .list = one, .n = 1},
		{.name = "perm", .type = AP_ATTR_INTS, .list = two, .n = 2},
		{.name = "depth", .type = AP_ATTR_INT, .i = 3},
		{.name = "keep_dims", .type = AP_ATTR_BOOL, .i = 1},
		{.name = "dst_type", .type = AP_ATTR_STRING, .s = "int8"},
	};
	const struct ap_attrs a = {5, v};
	enum ap_attr_type type;

	ck_assert_int_eq(ap_attr_int(&a, "axis", -1), 7);
	ck_assert_int_eq(ap_attr_int(&a, "perm", -1), -1); /* not one number */
	ck_assert_int_eq(ap_attr_int(&a, "depth", -1), 3);
	ck_assert_int_eq(ap_attr_int(&a, "shape", -5), -5);
	ck_assert(ap_attr_bool(&a, "keep_dims", false));
	ck_assert(ap_attr_bool(&a, "transpose_a", true));
	ck_assert_str_eq(ap_attr_str(&a, "dst_type", "x"), "int8");
	ck_assert_str_eq(ap_attr_str(&a, "depth", "x"), "x");
	ck_assert_str_eq(ap_attr_find("LayerNorm", "begin_norm_axis", &type), "begin_norm_axis");
	ck_assert_int_eq(type, AP_ATTR_INT);
	ck_assert_ptr_null(ap_attr_find("", "Axis", &type));
	for (size_t i = 1; ap_attr_at(i); i++)
		ck_assert_int_lt(strcmp(ap_attr_at(i - 1), ap_attr_at(i)), 0);
}
END_TEST

START_TEST(attributes_of_operators)
{
	enum ap_attr_type type;

	ck_assert_str_eq(ap_attr_find("Conv2D", "format", &type), "data_format");
	ck_assert_str_eq(ap_attr_find("Conv2D", "groups", &type), "group");
	ck_assert_str_eq(ap_attr_find("Tile", "dims", &type), "multiples");
	ck_assert_ptr_null(ap_attr_find("Til", "dims", &type));
	ck_assert_str_eq(ap_attr_find("Conv2D", "mode", &type), "mode");
	ck_assert_int_eq(type, AP_ATTR_INT);
	ck_assert_str_eq(ap_attr_find("PadV3", "mode", &type), "mode");
	ck_assert_int_eq(type, AP_ATTR_STRING);
	ck_assert_str_eq(ap_attr_find("IOU", "mode", &type), "mode");
	ck_assert_int_eq(type, AP_ATTR_STRING);
}
END_TEST

/* Every alias leads to a declared name, and is one for its operators only. */
START_TEST(aliases_of_attributes)
{
	struct ap_attr_alias a;
	enum ap_attr_type type;

	for (size_t i = 0; ap_attr_alias_at(i, &a); i++) {
		const char *elsewhere = ap_attr_find("NoSuch", a.old, &type);

		ck_assert_str_eq(ap_attr_find("", a.now, &type), a.now);
		ck_assert_int_eq(elsewhere && strcmp(elsewhere, a.now) == 0, !*a.operators);
	}
}
END_TEST
