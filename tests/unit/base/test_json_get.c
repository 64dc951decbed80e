/* SPDX-License-Identifier: Apache-2.0 */
/* Typed members, integers, and the messages about what is wrong with them. */
#include "unit.h"

#include <math.h>

#include "base/json.h"

/* The root object of text, in a context of its own. */
static const struct ap_jv *load(struct ap_ctx *ctx, const char *text, struct ap_json **doc)
{
	ck_assert_msg(ap_json_parse(ctx, "g.json", text, strlen(text), 0, doc) == AP_OK, "%s", text);
	return ap_json_root(*doc);
}

START_TEST(integers_are_read_from_the_text)
{
	static const struct {
		const char *text;
		bool whole;
		int64_t value;
	} rows[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"0.0", true, 0},
		{"0e5", true, 0},
		{"0.000e-7", true, 0},
		{"8", true, 8},
		{"8.0", true, 8},
		{"8e0", true, 8},
		{"8E+0", true, 8},
		{"0.8e1", true, 8},
		{"80e-1", true, 8},
		{"800.00e-2", true, 8},
		{"0.00000000008e11", true, 8},
		{"-12", true, -12},
		{"1e18", true, INT64_C(1000000000000000000)},
		{"1.234567890123456789e18", true, INT64_C(1234567890123456789)},
		{"2147483648", true, INT64_C(2147483648)},
		{"3000000000", true, INT64_C(3000000000)},
		{"9007199254740993", true, INT64_C(9007199254740993)},
		{"9223372036854775807", true, INT64_MAX},
		{"9223372036854775807.000", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"18446744073709551616", false, 0},
		{"1e19", false, 0},
		{"1e300", false, 0},
		{"1e-1", false, 0},
		{"1e-400", false, 0},
		{"8.5", false, 0},
		{"2.9", false, 0},
		{"0.99999999999999999999", false, 0},
		{"1.00000000000000000001", false, 0},
		{"9223372036854775807.5", false, 0},
		{"85e-1", false, 0},
		{"true", false, 0},
		{"\"8\"", false, 0},
		{"null", false, 0},
		{"[8]", false, 0},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;
		int64_t r = 77;
		const struct ap_jv *v = load(&ctx, rows[i].text, &doc);
		bool whole = ap_jv_int(doc, v, &r);

		ck_assert_msg(whole == rows[i].whole, "%s", rows[i].text);
		if (whole)
			ck_assert_int_eq(r, rows[i].value);
		ctx_destroy(&ctx);
	}
}
END_TEST

static const char object[] =
	"{\"s\": \"text\", \"i\": 5, \"x\": 2.5, \"t\": true,\n"
	" \"a\": [1, 2, 3], \"o\": {\"k\": 1}, \"n\": null}";

START_TEST(members_of_the_right_type)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx, object, &doc), *v;
	const char *s = NULL;
	int64_t i = 0;
	double x = 0;
	bool t = false;

	ck_assert_int_eq(ap_json_get_str(&ctx, doc, root, "s", &s), AP_OK);
	ck_assert_str_eq(s, "text");
	ck_assert_int_eq(ap_json_get_int(&ctx, doc, root, "i", 0, 5, &i), AP_OK);
	ck_assert_int_eq(i, 5);
	ck_assert_int_eq(ap_json_get_num(&ctx, doc, root, "x", 0, 2.5, &x), AP_OK);
	ck_assert(x == 2.5);
	ck_assert_int_eq(ap_json_get_num(&ctx, doc, root, "i", 5, INFINITY, &x), AP_OK);
	ck_assert(x == 5);
	ck_assert_int_eq(ap_json_get_arr(&ctx, doc, root, "a", &v), AP_OK);
	ck_assert_uint_eq(ap_jv_count(v), 3);
	ck_assert_int_eq(ap_json_get_obj(&ctx, doc, root, "o", &v), AP_OK);
	ck_assert_uint_eq(ap_jv_count(v), 1);
	ck_assert_int_eq(ap_json_opt_bool(&ctx, doc, root, "t", &t), AP_OK);
	ck_assert(t);
	i = 0;
	ck_assert_int_eq(ap_json_opt_int(&ctx, doc, root, "i", 0, 9, &i), AP_OK);
	ck_assert_int_eq(i, 5);
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(absent_options_leave_the_default)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx, object, &doc), *a = root, *o = root;
	const char *s = "default";
	int64_t i = 7;
	double x = 7.5;
	bool t = true;

	ck_assert_int_eq(ap_json_opt_str(&ctx, doc, root, "S", &s), AP_OK);
	ck_assert_int_eq(ap_json_opt_int(&ctx, doc, root, "I", 0, 1, &i), AP_OK);
	ck_assert_int_eq(ap_json_opt_num(&ctx, doc, root, "X", 0, 1, &x), AP_OK);
	ck_assert_int_eq(ap_json_opt_bool(&ctx, doc, root, "T", &t), AP_OK);
	ck_assert_int_eq(ap_json_opt_arr(&ctx, doc, root, "A", &a), AP_OK);
	ck_assert_int_eq(ap_json_opt_obj(&ctx, doc, root, "O", &o), AP_OK);
	ck_assert_str_eq(s, "default");
	ck_assert_int_eq(i, 7);
	ck_assert(x == 7.5);
	ck_assert(t);
	ck_assert_ptr_eq(a, root);
	ck_assert_ptr_eq(o, root);
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
}
END_TEST

enum getter { STR, INT, NUM, ARR, OBJ, OPT_STR, OPT_INT, OPT_NUM, OPT_BOOL, OPT_ARR, OPT_OBJ };

static enum ap_status get(struct ap_ctx *ctx, const struct ap_json *doc, enum getter getter,
	const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v;
	const char *s;
	int64_t i;
	double x;
	bool t;

	switch (getter) {
	case STR:
		return ap_json_get_str(ctx, doc, obj, key, &s);
	case INT:
		return ap_json_get_int(ctx, doc, obj, key, 1, 4, &i);
	case NUM:
		return ap_json_get_num(ctx, doc, obj, key, 0, 1, &x);
	case ARR:
		return ap_json_get_arr(ctx, doc, obj, key, &v);
	case OBJ:
		return ap_json_get_obj(ctx, doc, obj, key, &v);
	case OPT_STR:
		return ap_json_opt_str(ctx, doc, obj, key, &s);
	case OPT_INT:
		return ap_json_opt_int(ctx, doc, obj, key, 1, INT64_MAX, &i);
	case OPT_NUM:
		return ap_json_opt_num(ctx, doc, obj, key, 3, INFINITY, &x);
	case OPT_BOOL:
		return ap_json_opt_bool(ctx, doc, obj, key, &t);
	case OPT_ARR:
		return ap_json_opt_arr(ctx, doc, obj, key, &v);
	case OPT_OBJ:
		return ap_json_opt_obj(ctx, doc, obj, key, &v);
	}
	return AP_INTERNAL;
}

START_TEST(messages_about_members)
{
	static const struct {
		enum getter getter;
		const char *key, *message;
	} rows[] = {
		{STR, "q", "g.json:1:1: no key \"q\" [key-missing]"},
		{INT, "I", "g.json:1:1: no key \"I\" [key-missing]"},
		{NUM, "q", "g.json:1:1: no key \"q\" [key-missing]"},
		{ARR, "q", "g.json:1:1: no key \"q\" [key-missing]"},
		{OBJ, "", "g.json:1:1: no key \"\" [key-missing]"},
		{STR, "i", "g.json:1:20: /i: expected a string, got the number 5 [key-type]"},
		{STR, "n", "g.json:2:38: /n: expected a string, got null [key-type]"},
		{INT, "s", "g.json:1:7: /s: expected an integer, got a string [key-type]"},
		{INT, "t", "g.json:1:38: /t: expected an integer, got a boolean [key-type]"},
		{INT, "x", "g.json:1:28: /x: expected an integer, got the number 2.5 [key-type]"},
		{INT, "i",
			"g.json:1:20: /i: expected an integer from 1 to 4, got the number 5 [key-range]"},
		{NUM, "s", "g.json:1:7: /s: expected a number, got a string [key-type]"},
		{NUM, "x",
			"g.json:1:28: /x: expected a number from 0 to 1, got the number 2.5 [key-range]"},
		{ARR, "o", "g.json:2:23: /o: expected an array, got an object [key-type]"},
		{OBJ, "a", "g.json:2:7: /a: expected an object, got an array [key-type]"},
		{OPT_STR, "n", "g.json:2:38: /n: expected a string, got null [key-type]"},
		{OPT_INT, "x", "g.json:1:28: /x: expected an integer, got the number 2.5 [key-type]"},
		{OPT_NUM, "x", "g.json:1:28: /x: expected at least 3, got the number 2.5 [key-range]"},
		{OPT_NUM, "a", "g.json:2:7: /a: expected a number, got an array [key-type]"},
		{OPT_BOOL, "i", "g.json:1:20: /i: expected true or false, got the number 5 [key-type]"},
		{OPT_ARR, "s", "g.json:1:7: /s: expected an array, got a string [key-type]"},
		{OPT_OBJ, "t", "g.json:1:38: /t: expected an object, got a boolean [key-type]"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;
		const struct ap_jv *root = load(&ctx, object, &doc);
		char line[200];

		ck_assert_int_eq(get(&ctx, doc, rows[i].getter, root, rows[i].key), AP_MEANING);
		snprintf(line, sizeof line, "autopar-plan: error: %s\n", rows[i].message);
		ck_assert_str_eq(messages(&ctx), line);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* Every value of every type, asked for as every type: only the right ones come through. */
START_TEST(every_type_against_every_getter)
{
	static const char *const values[] = {"null", "true", "3", "\"s\"", "[]", "{}"};
	static const char good[][7] = {
		[STR] = "...x..", [INT] = "..x...", [NUM] = "......", [ARR] = "....x.", [OBJ] = ".....x",
		[OPT_STR] = "...x..", [OPT_INT] = "..x...", [OPT_NUM] = "..x...", [OPT_BOOL] = ".x....",
		[OPT_ARR] = "....x.", [OPT_OBJ] = ".....x",
	};

	for (int getter = STR; getter <= OPT_OBJ; getter++) {
		for (size_t i = 0; i < 6; i++) {
			struct ap_ctx ctx = ctx_create(false);
			struct ap_json *doc;
			const struct ap_jv *root;
			char text[40];

			snprintf(text, sizeof text, "{\"k\": %s}", values[i]);
			root = load(&ctx, text, &doc);
			ck_assert_int_eq(get(&ctx, doc, (enum getter)getter, root, "k"),
				good[getter][i] == 'x' ? AP_OK : AP_MEANING);
			ctx_destroy(&ctx);
		}
	}
}
END_TEST

START_TEST(a_member_of_what_is_no_object)
{
	static const char *const texts[] = {"[]", "3", "\"s\"", "null"};

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;
		const struct ap_jv *root = load(&ctx, texts[i], &doc);

		ck_assert_int_eq(get(&ctx, doc, STR, root, "k"), AP_MEANING);
		ck_contains(messages(&ctx), "g.json:1:1: expected an object, got ");
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(missing_keys_are_located_at_their_object)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx, "{\"operators\": [\n {},\n  {\"a\": 1}]}", &doc);
	const struct ap_jv *second = ap_jv_next(ap_jv_first(ap_jv_get(root, "operators")));

	ck_assert_int_eq(get(&ctx, doc, STR, second, "name"), AP_MEANING);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: g.json:3:3: /operators/1: no key \"name\" [key-missing]\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(lists_of_integers)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx,
		"{\"shape\": [32, 1, 2.8e1, 9223372036854775807], \"empty\": [],\n"
		"\"bad\": [1, 2, \"3\"], \"low\": [1, 0], \"huge\": [1, 9223372036854775808]}", &doc);
	int64_t *v = NULL;
	size_t n = 0;

	ck_assert_int_eq(ap_json_ints(&ctx, doc, ap_jv_get(root, "shape"), 1, INT64_MAX, &v, &n),
		AP_OK);
	ck_assert_uint_eq(n, 4);
	ck_assert_mem_eq(v, ((int64_t[]){32, 1, 28, INT64_MAX}), 4 * sizeof *v);
	ck_assert_int_eq(ap_json_ints(&ctx, doc, ap_jv_get(root, "empty"), 1, 9, &v, &n), AP_OK);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(ap_json_ints(&ctx, doc, ap_jv_get(root, "bad"), 1, 9, &v, &n), AP_MEANING);
	ck_assert_int_eq(ap_json_ints(&ctx, doc, ap_jv_get(root, "low"), 1, INT64_MAX, &v, &n),
		AP_MEANING);
	ck_assert_int_eq(ap_json_ints(&ctx, doc, ap_jv_get(root, "huge"), 1, INT64_MAX, &v, &n),
		AP_MEANING);
	ck_assert_int_eq(ap_json_ints(&ctx, doc, root, 1, 9, &v, &n), AP_MEANING);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: g.json:2:15: /bad/2: expected an integer, got a string [key-type]\n"
		"autopar-plan: error: g.json:2:32: /low/1: expected at least 1, got the number 0 "
		"[key-range]\n"
		"autopar-plan: error: g.json:2:48: /huge/1: expected an integer from 1 to "
		"9223372036854775807, got the number 9223372036854775808 [key-range]\n"
		"autopar-plan: error: g.json:1:1: expected an array of integers, got an object "
		"[key-type]\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(unknown_keys_are_warnings)
{
	static const char *const known[] = {"name", "inputs", "outputs", "rank_id", NULL};
	static const char text[] =
		"{\"name\": 1, \"outptus\": 2, \"zzzz\": 3,\n\"Rank_ID\": 4, \"nam\\u001b\": 5}";
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx, text, &doc);

	ck_assert_int_eq(ap_json_known(&ctx, doc, root, known), AP_OK);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: warning: g.json:1:13: /outptus: unknown key "
		"\"outptus\"; is \"outputs\" meant? [key-unknown]\n"
		"autopar-plan: warning: g.json:1:27: /zzzz: unknown key \"zzzz\" [key-unknown]\n"
		"autopar-plan: warning: g.json:2:1: /Rank_ID: unknown key \"Rank_ID\"; is \"rank_id\" "
		"meant? [key-unknown]\n"
		"autopar-plan: warning: g.json:2:15: /nam\\x1b: unknown key \"nam\\x1b\"; is \"name\" "
		"meant? [key-unknown]\n");
	ctx_destroy(&ctx);

	ctx = ctx_create(true);
	root = load(&ctx, text, &doc);
	ck_assert_int_eq(ap_json_known(&ctx, doc, root, known), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 4);
	root = load(&ctx, "{\"name\":1}", &doc);
	ck_assert_int_eq(ap_json_known(&ctx, doc, root, known), AP_OK);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(reports)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *root = load(&ctx, "{\"a/b~c\": [[], [0, \"x\"]]}", &doc);
	const struct ap_jv *x =
		ap_jv_next(ap_jv_first(ap_jv_next(ap_jv_first(ap_jv_first(root)))));

	ck_assert_int_eq(ap_json_report(&ctx, doc, x, AP_ERROR, AP_MEANING, "net/MatMul-op0",
		"edge-known", "no tensor \"%s\"", "x"), AP_MEANING);
	ck_assert_int_eq(ap_json_report(&ctx, doc, NULL, AP_NOTE, AP_OK, NULL, NULL, "n"), AP_OK);
	ck_assert_int_eq(ap_json_report(&ctx, doc, root, AP_ERROR, AP_INFEASIBLE, NULL, NULL, "r"),
		AP_INFEASIBLE);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: error: g.json:1:20: /a~1b~0c/1/1 (operator "
		"\"net/MatMul-op0\"): no tensor \"x\" [edge-known]\n"
		"autopar-plan: note: g.json: n\n"
		"autopar-plan: error: g.json:1:1: r\n");
	ctx_destroy(&ctx);
}
END_TEST

/* Lines and columns far into a long text, in characters. */
START_TEST(places_in_long_texts)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	struct ap_str text;
	int64_t line = 1;

	ap_str_init(&text, ctx.arena);
	ap_str_add(&text, "[\"\xC3\xA4\"");
	for (int i = 0; i < 5000; i++)
		ap_str_addf(&text, "%s,\"\xE4\xB8\xAD\",%d", i % 3 ? "" : "\r\n", i);
	ap_str_add(&text, "]");
	load(&ctx, text.s, &doc);
	for (const struct ap_jv *v = ap_jv_first(ap_json_root(doc)); v; v = ap_jv_next(v)) {
		int i = ap_jv_type(v) == AP_JNUMBER ? (int)ap_jv_double(v) : -1;

		if (i > 0 && i % 150 == 0) {
			struct ap_ctx own = ctx_create(false);
			char want[40];

			line = 2 + i / 3;
			snprintf(want, sizeof want, ":%" PRId64 ":6: /%d: x\n", line, 2 * i + 2);
			ap_json_report(&own, doc, v, AP_ERROR, AP_MEANING, NULL, NULL, "x");
			ck_contains(messages(&own), want);
			ctx_destroy(&own);
		}
	}
	ck_assert_int_gt(line, 1500);
	ctx_destroy(&ctx);
}
END_TEST
