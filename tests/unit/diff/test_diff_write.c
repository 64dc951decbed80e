/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a comparison, hostile names in them, and plan files that are none. */
#include "diff_test.h"

#include "base/vec.h"

#define HOSTILE "a|b`c\\\\<script>&*_[x](y)\\n\\u001b[31m\\u202e"

static void hostile(struct ap_ctx *ctx, struct ap_diff *d)
{
	const struct op_spec was[] = {{HOSTILE, "Add", "[[1]]", NULL, NULL, NULL}};
	const struct op_spec is[] = {{HOSTILE, "Add", "[[2]]", NULL, NULL, NULL}};

	compare(ctx, &(struct plan_spec){.op = was, .nop = 1},
		&(struct plan_spec){.op = is, .nop = 1}, d);
}

START_TEST(test_text)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;
	const char *text;

	hostile(&ctx, &d);
	text = write_as(&ctx, &d, "text", false);
	ck_assert_ptr_null(strchr(text, '\033'));
	ck_assert_ptr_null(strstr(text, "\u202e"));
	ck_assert_ptr_nonnull(strstr(text, "\\x1b[31m\\u202e"));
	ck_assert_ptr_nonnull(strstr(text, "[1] -> [2]\n"));
	text = write_as(&ctx, &d, "text", true);
	ck_assert_ptr_nonnull(strstr(text, "\033[33m~\033[0m"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_markdown)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;
	const char *text;

	hostile(&ctx, &d);
	text = write_as(&ctx, &d, "markdown", true);
	ck_assert_ptr_null(strchr(text, '\033'));
	ck_assert_ptr_null(strstr(text, "<script"));
	ck_assert_ptr_nonnull(strstr(text,
		"| 1 | `Add` | <code>a&#124;b&#96;c&#92;&#60;script&#62;&#38;&#42;&#95;&#91;x&#93;(y)"
		"&#92;n&#92;x1b&#91;31m&#92;u202e</code> | `[1]` | `[2]` |\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"| n | type | operator | old | new |\n| ---: | --- | --- | --- | --- |\n"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_json)
{
	struct ap_ctx ctx = new_ctx();
	const struct ap_jv *root, *line, *names;
	struct ap_json *doc;
	struct ap_diff d;
	const char *text;

	hostile(&ctx, &d);
	text = write_as(&ctx, &d, "json", true);
	ck_assert_int_eq(ap_json_parse(&ctx, "d", text, strlen(text), 0, &doc), AP_OK);
	root = ap_json_root(doc);
	ck_assert_str_eq(ap_jv_str(ap_jv_get(root, "schema")), "autopar-diff/1");
	ck_assert(!ap_jv_bool(ap_jv_get(root, "equal")));
	line = ap_jv_first(ap_jv_get(root, "operators"));
	ck_assert_str_eq(ap_jv_str(ap_jv_get(line, "change")), "changed");
	names = ap_jv_get(line, "names");
	ck_assert_uint_eq(ap_jv_count(names), 1);
	ck_assert_str_eq(ap_jv_str(ap_jv_first(names)),
		"a|b`c\\<script>&*_[x](y)\n\033[31m\u202e");
	ck_assert_str_eq(text, write_as(&ctx, &d, "json", false));
	free_ctx(&ctx);
}
END_TEST

/* What is put in the place of what, and the message. */
static const struct {
	const char *from, *to, *check, *text;
} faults[] = {
	{"autopar-plan/1", "autopar-plan/2", "plan-file", "expected \"autopar-plan/1\""},
	{"\"tool\"", "\"tol\"", "key-missing", "no key \"tool\""},
	{"\"settings\":{}", "\"settings\":{\"x\":[[[[1]]]]}", "plan-file",
		"expected a plain value"},
	{"\"step_time_s\":1.5", "\"step_time_s\":\"1\"", "plan-file", "expected a number"},
	{"\"complete\":true", "\"complete\":1", "plan-file", "expected true or false"},
	{"\"levels\":[{", "\"levels\":[1,{", "plan-file", "expected an object"},
	{"\"stages\":[{\"micro_batches\":1}]", "\"stages\":[]", "plan-file",
		"expected a stage at least"},
	{"\"micro_batches\":1", "\"micro_batches\":0", "key-range",
		"expected an integer from 1 to 2147483647, got the number 0"},
	{"\"name\":\"b\"", "\"name\":\"a\"", "plan-file",
		"an operator of this name is there already"},
	{"\"in_strategy\":[[1]]", "\"in_strategy\":{}", "plan-file", "expected an array"},
	{"\"axes\":[[1,8]]", "\"axes\":[[1,8,2]]", "plan-file", "expected a stride and a size"},
	{"\"axes\":[[1,8]]", "\"axes\":[[1,2147483647],[1,2147483647],[1,2147483647]]",
		"plan-file", "expected fewer devices"},
	{"\"bytes\":100", "\"bytes\":-1", "key-range", "expected at least 0, got the number -1"},
	{"\"to\":\"b\"", "\"to\":\"z\"", "plan-file", "is no operator of this plan"},
	{"\"operand\":0", "\"operand\":9", "plan-file", "\"operand\" is none of this operator"},
	{"\"slice_shape\":[8,32]", "\"slice_shape\":[8]", "plan-file",
		"expected as many dimensions as in tensor_shape"},
	{"\"slice_shape\":[8,32]", "\"slice_shape\":[0,32]", "key-range",
		"expected at least 1, got the number 0"},
	{"\"name\":\"w2\"", "\"name\":\"w1\"", "plan-file",
		"a parameter of this name is there already"},
};

static const char *whole_plan(struct ap_ctx *ctx)
{
	const struct op_spec op[] = {{"a", "Add", "[[1]]", "\"x\"", "\"t\"", COMM("AllReduce",
						"forward", "100", "8")},
		{"b", "Add", "[[1]]", "\"t\"", "\"u\"", NULL}};

	return plan_text(ctx, &(struct plan_spec){.op = op, .nop = 2,
		.moves = MOVE("b", "0", "Slice", "2", "0"),
		.params = PARAM("w1", "[8,32]", "1") "," PARAM("w2", "[8,32]", "1")});
}

START_LOOP_TEST(test_faults, AP_COUNT(faults))
{
	struct ap_ctx ctx = new_ctx();
	const char *text = whole_plan(&ctx), *at = strstr(text, faults[_i].from), *check;
	struct ap_saved s;

	ck_assert_int_eq(read_text(&ctx, text, &s), AP_OK);
	ck_assert_ptr_nonnull(at);
	text = ap_arena_printf(ctx.arena, "%.*s%s%s", (int)(at - text), text, faults[_i].to,
		at + strlen(faults[_i].from));
	ck_assert_int_eq(read_text(&ctx, text, &s), AP_MEANING);
	ck_assert_str_eq(last_message(&ctx, &check), faults[_i].text);
	ck_assert_str_eq(check, faults[_i].check);
	free_ctx(&ctx);
}
END_TEST

/* A plan that lacks one thing after the other: a message or a plan, never anything else. */
START_TEST(test_cut_short)
{
	struct ap_ctx ctx = new_ctx();
	const char *text = whole_plan(&ctx);
	size_t len = strlen(text);

	for (const char *at = text; (at = strchr(at, '"')); at++) {
		char *copy = ap_arena_strndup(ctx.arena, text, len);
		struct ap_saved s;

		copy[at - text + 1] = '#'; /* an odd key or value, or no JSON at all */
		if (read_text(&ctx, copy, &s) != AP_OK)
			ck_assert_uint_ge(ap_diag_count(ctx.diag, AP_ERROR), 1);
	}
	free_ctx(&ctx);
}
END_TEST
