/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "base/json.h"
#include "base/json_write.h"

static void write_example(struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "schema", "x/1");
	ap_jw_kint(w, "n", INT64_MIN);
	ap_jw_knum(w, "x", 0.1);
	ap_jw_kbool(w, "b", false);
	ap_jw_key(w, "none");
	ap_jw_null(w);
	ap_jw_kints(w, "shape", (int64_t[]){1, 2, 3}, 3);
	ap_jw_kints(w, "scalar", NULL, 0);
	ap_jw_key(w, "list");
	ap_jw_arr(w);
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", "a");
	ap_jw_key(w, "in");
	ap_jw_arr(w);
	ap_jw_ints(w, (int64_t[]){4, 5}, 2);
	ap_jw_obj(w);
	ap_jw_kbool(w, "t", true);
	ap_jw_end(w);
	ap_jw_end(w);
	ap_jw_end(w);
	ap_jw_arr(w);
	ap_jw_end(w);
	ap_jw_obj(w);
	ap_jw_end(w);
	ap_jw_num(w, 3);
	ap_jw_end(w);
	ap_jw_key(w, "o");
	ap_jw_obj(w);
	ap_jw_kint(w, "k", 1);
	ap_jw_end(w);
	ap_jw_end(w);
	ap_jw_finish(w);
}

/* What is read is written as it was: compact, or on one line of a pretty text. */
START_TEST(values_are_copied)
{
	static const char text[] =
		"{\"a\":[1,-9223372036854775808,0.1,1e+300],\"b\":{\"c\":[[],{}],\"d\":\"\\u0001\\n\"},\"e\":null,\"f\":true}";
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_jv *root;
	struct ap_json *doc;
	struct ap_str out;
	struct ap_jw w;

	ck_assert_int_eq(ap_json_parse(&ctx, "x.json", text, strlen(text), 0, &doc), AP_OK);
	root = ap_json_root(doc);
	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 0);
	ap_jw_value(&w, doc, root);
	ck_assert_str_eq(out.s, text);
	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 1);
	ap_jw_value(&w, doc, ap_jv_get(root, "b"));
	ck_assert_str_eq(out.s, "{\"c\": [[], {}], \"d\": \"\\u0001\\n\"}");
	ck_assert(ap_jv_is_shallow(root, 4) && ap_jv_is_shallow(ap_jv_get(root, "f"), 0));
	ck_assert(!ap_jv_is_shallow(root, 3) && !ap_jv_is_shallow(ap_jv_get(root, "a"), 0));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(pretty)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 2);
	write_example(&w);
	ck_assert_str_eq(out.s,
		"{\n"
		"  \"schema\": \"x/1\",\n"
		"  \"n\": -9223372036854775808,\n"
		"  \"x\": 0.1,\n"
		"  \"b\": false,\n"
		"  \"none\": null,\n"
		"  \"shape\": [1, 2, 3],\n"
		"  \"scalar\": [],\n"
		"  \"list\": [\n"
		"    {\"name\": \"a\", \"in\": [[4, 5], {\"t\": true}]},\n"
		"    [],\n"
		"    {},\n"
		"    3\n"
		"  ],\n"
		"  \"o\": {\n"
		"    \"k\": 1\n"
		"  }\n"
		"}\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(compact)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 0);
	write_example(&w);
	ck_assert_str_eq(out.s, "{\"schema\":\"x/1\",\"n\":-9223372036854775808,\"x\":0.1,\"b\":false,"
		"\"none\":null,\"shape\":[1,2,3],\"scalar\":[],\"list\":[{\"name\":\"a\",\"in\":[[4,5],"
		"{\"t\":true}]},[],{},3],\"o\":{\"k\":1}}\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(scalars)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 0);
	ap_jw_arr(&w);
	ap_jw_num(&w, INFINITY);
	ap_jw_num(&w, -INFINITY);
	ap_jw_num(&w, NAN);
	ap_jw_num(&w, 1e300);
	ap_jw_num(&w, 9007199254740993.0);
	ap_jw_int(&w, 9007199254740993);
	ap_jw_bool(&w, true);
	ap_jw_raw(&w, "{\"raw\":[]}");
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ck_assert_str_eq(out.s,
		"[null,null,null,1e+300,9007199254740992,9007199254740993,true,{\"raw\":[]}]\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(strings_are_escaped)
{
	static const struct {
		const char *raw, *text;
	} rows[] = {
		{"", "\"\"\n"},
		{"plain", "\"plain\"\n"},
		{"a\"b\\c/d", "\"a\\\"b\\\\c/d\"\n"},
		{"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"\n"},
		{"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"\n"},
		{"\xC3\xA4\xE2\x80\xA8\xF0\x9F\x98\x80", "\"\xC3\xA4\xE2\x80\xA8\xF0\x9F\x98\x80\"\n"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;
		struct ap_str out;
		struct ap_jw w;

		ap_str_init(&out, ctx.arena);
		ap_jw_str_init(&w, &out, 2);
		ap_jw_str(&w, rows[i].raw);
		ap_jw_finish(&w);
		ck_assert_str_eq(out.s, rows[i].text);
		ck_assert_int_eq(ap_json_parse(&ctx, "f", out.s, out.len, 0, &doc), AP_OK);
		ck_assert_str_eq(ap_jv_str(ap_json_root(doc)), rows[i].raw);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* Members written apart and put in where they would stand, twice. */
START_TEST(forks)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str out, part;
	struct ap_jw w, fork;

	ap_str_init(&out, ctx.arena);
	ap_str_init(&part, ctx.arena);
	ap_jw_str_init(&w, &out, 1);
	ap_jw_arr(&w);
	for (int i = 0; i < 2; i++) {
		ap_jw_obj(&w);
		ap_jw_kint(&w, "i", i);
		if (i == 0) {
			ap_jw_fork(&fork, &w, &part);
			ap_jw_kstr(&fork, "s", "t");
			ap_jw_kints(&fork, "v", (int64_t[]){1, 2}, 2);
			ap_jw_fork_end(&fork);
		}
		ap_jw_join(&w, part.s, part.len);
		ap_jw_kbool(&w, "last", i == 1);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ck_assert_str_eq(out.s,
		"[\n"
		" {\n  \"i\": 0,\n  \"s\": \"t\",\n  \"v\": [1, 2],\n  \"last\": false\n },\n"
		" {\n  \"i\": 1,\n  \"s\": \"t\",\n  \"v\": [1, 2],\n  \"last\": true\n }\n"
		"]\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(sixty_four_levels)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, ctx.arena);
	ap_jw_str_init(&w, &out, 0);
	for (int i = 0; i < 32; i++) {
		ap_jw_arr(&w);
		ap_jw_obj(&w);
		ap_jw_key(&w, "k");
	}
	ap_jw_null(&w);
	for (int i = 0; i < 64; i++)
		ap_jw_end(&w);
	ap_jw_finish(&w);
	ck_assert_uint_eq(out.len, 32 * strlen("[{\"k\":}]") + strlen("null\n"));
	ctx_destroy(&ctx);
}
END_TEST

static void write_random(struct ap_jw *w, uint64_t *state, int depth)
{
	static const char *const strings[] = {"", "a", "\xC3\xA4\n\"", "\\", "\x01", "long name/op-1"};
	uint64_t kind = random_below(state, depth < 6 ? 9 : 5), n = random_below(state, 5);
	bool object = kind == 5 || kind == 6;
	char key[40];
	double v;

	switch (kind) {
	case 0:
		ap_jw_null(w);
		return;
	case 1:
		ap_jw_bool(w, n & 1);
		return;
	case 2:
		ap_jw_int(w, (int64_t)(random_next(state) >> random_below(state, 64)));
		return;
	case 3:
		v = ldexp((double)(random_next(state) >> 11 | 1), -1 - (int)random_below(state, 200));
		ap_jw_num(w, n & 1 ? v : -v);
		return;
	case 4:
		ap_jw_str(w, strings[random_below(state, AP_COUNT(strings))]);
		return;
	case 5:
		ap_jw_obj(w);
		break;
	case 6:
		ap_jw_obj_flat(w);
		break;
	case 7:
		ap_jw_arr(w);
		break;
	default:
		ap_jw_arr_flat(w);
	}
	for (uint64_t i = 0; i < n; i++) {
		if (object) {
			snprintf(key, sizeof key, "k%d%s", (int)i, strings[random_below(state, 6)]);
			ap_jw_key(w, key);
		}
		write_random(w, state, depth + 1);
	}
	ap_jw_end(w);
}

/* Writes what was read. */
static void copy(struct ap_jw *w, const struct ap_json *doc, const struct ap_jv *v)
{
	int64_t i;

	switch (ap_jv_type(v)) {
	case AP_JNULL:
		ap_jw_null(w);
		return;
	case AP_JBOOL:
		ap_jw_bool(w, ap_jv_bool(v));
		return;
	case AP_JNUMBER:
		if (ap_jv_int(doc, v, &i))
			ap_jw_int(w, i);
		else
			ap_jw_num(w, ap_jv_double(v));
		return;
	case AP_JSTRING:
		ap_jw_str(w, ap_jv_str(v));
		return;
	case AP_JARRAY:
		ap_jw_arr(w);
		break;
	case AP_JOBJECT:
		ap_jw_obj(w);
		break;
	}
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e)) {
		if (ap_jv_key(e))
			ap_jw_key(w, ap_jv_key(e));
		copy(w, doc, e);
	}
	ap_jw_end(w);
}

static void init(struct ap_ctx *ctx, struct ap_jw *w, struct ap_str *out, int indent)
{
	ap_str_init(out, ctx->arena);
	ap_jw_str_init(w, out, indent);
}

/* Any layout read back and written compactly is what would have been written compactly at once. */
START_TEST(what_is_written_is_read)
{
	uint64_t state = random_seed();

	for (int round = 0; round < 2000; round++) {
		struct ap_ctx ctx = ctx_create(true);
		struct ap_str laid_out, direct, again;
		uint64_t start;
		struct ap_json *doc;
		struct ap_jw w;

		init(&ctx, &w, &laid_out, (int)random_below(&state, 4));
		start = state;
		write_random(&w, &state, 0);
		ap_jw_finish(&w);
		if (ap_json_parse(&ctx, "f", laid_out.s, laid_out.len, 0, &doc) != AP_OK)
			ck_abort_msg("%s: %s", laid_out.s, messages(&ctx));

		init(&ctx, &w, &direct, 0);
		write_random(&w, &start, 0);
		ap_jw_finish(&w);
		init(&ctx, &w, &again, 0);
		copy(&w, doc, ap_json_root(doc));
		ap_jw_finish(&w);
		ck_assert_str_eq(direct.s, again.s);
		ctx_destroy(&ctx);
	}
}
END_TEST
