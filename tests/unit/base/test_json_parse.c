/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts are JSON, with what status and message, and what becomes of those that are. */
#include "unit.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "base/str.h"

/* Text may hold NUL bytes. */
#define TEXT(literal) (literal), sizeof(literal) - 1

/* The document is valid until the next one is parsed. */
static enum ap_status parse(struct ap_ctx *ctx, const char *text, size_t len, unsigned flags,
	struct ap_json **doc)
{
	static char *exact; /* so that reading past the end is seen */

	free(exact);
	exact = malloc(len + 1);
	memcpy(exact, text, len);
	exact[len] = '\0';
	return ap_json_parse(ctx, "f.json", exact, len, flags, doc);
}

struct accepted {
	const char *text;
	size_t len;
	enum ap_jtype type;
	size_t count;
};

static const struct accepted accepts[] = {
	{TEXT("null"), AP_JNULL, 0},
	{TEXT("true"), AP_JBOOL, 0},
	{TEXT("false"), AP_JBOOL, 0},
	{TEXT("0"), AP_JNUMBER, 0},
	{TEXT("-0"), AP_JNUMBER, 0},
	{TEXT("-1"), AP_JNUMBER, 0},
	{TEXT("12345678901234567890"), AP_JNUMBER, 0},
	{TEXT("0.5"), AP_JNUMBER, 0},
	{TEXT("-0.0"), AP_JNUMBER, 0},
	{TEXT("1e5"), AP_JNUMBER, 0},
	{TEXT("1E5"), AP_JNUMBER, 0},
	{TEXT("1e+5"), AP_JNUMBER, 0},
	{TEXT("1e-5"), AP_JNUMBER, 0},
	{TEXT("1.5e05"), AP_JNUMBER, 0},
	{TEXT("0e0"), AP_JNUMBER, 0},
	{TEXT("1e-400"), AP_JNUMBER, 0},
	{TEXT("4.9e-324"), AP_JNUMBER, 0},
	{TEXT("\"\""), AP_JSTRING, 0},
	{TEXT("\"abc\""), AP_JSTRING, 0},
	{TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), AP_JSTRING, 0},
	{TEXT("\"\\u0041\\u00e4\\u4E2D\""), AP_JSTRING, 0},
	{TEXT("\"\\uD83D\\uDE00\""), AP_JSTRING, 0},
	{TEXT("\"\\uFFFF\\uFFFE\""), AP_JSTRING, 0},
	{TEXT("\"\\u0001\\u001f\""), AP_JSTRING, 0},
	{TEXT("\"\x7F\""), AP_JSTRING, 0},
	{TEXT("\"\xC2\x80\xEF\xBF\xBF\xF4\x8F\xBF\xBF\""), AP_JSTRING, 0},
	{TEXT("\"\xE2\x80\xA8\""), AP_JSTRING, 0},
	{TEXT("\"// not a comment /* */ # ' , ] }\""), AP_JSTRING, 0},
	{TEXT("[]"), AP_JARRAY, 0},
	{TEXT("[ ]"), AP_JARRAY, 0},
	{TEXT("[1]"), AP_JARRAY, 1},
	{TEXT("[1,2 , 3]"), AP_JARRAY, 3},
	{TEXT("[[],[[]],{}]"), AP_JARRAY, 3},
	{TEXT("[null,true,false,0,\"\",[],{}]"), AP_JARRAY, 7},
	{TEXT("{}"), AP_JOBJECT, 0},
	{TEXT("{ }"), AP_JOBJECT, 0},
	{TEXT("{\"a\":1}"), AP_JOBJECT, 1},
	{TEXT("{\"a\":1,\"b\":{\"a\":2}}"), AP_JOBJECT, 2},
	{TEXT("{\"\":0}"), AP_JOBJECT, 1},
	{TEXT("{\"a\":1,\"A\":2}"), AP_JOBJECT, 2},
	{TEXT("{\"\\u0061\\n\":1}"), AP_JOBJECT, 1},
	{TEXT(" \t\r\n{ \"a\" \r\n:\t1 } \n"), AP_JOBJECT, 1},
	{TEXT("\n\n[1]\n\n\n"), AP_JARRAY, 1},
};

START_TEST(accepts_json)
{
	for (size_t i = 0; i < AP_COUNT(accepts); i++) {
		const struct accepted *row = &accepts[i];
		struct ap_ctx ctx = ctx_create(true);
		struct ap_json *doc = NULL;

		ck_assert_msg(parse(&ctx, row->text, row->len, 0, &doc) == AP_OK, "row %zu: %s: %s",
			i, row->text, messages(&ctx));
		ck_assert_str_eq(messages(&ctx), "");
		ck_assert_int_eq(ap_jv_type(ap_json_root(doc)), row->type);
		ck_assert_uint_eq(ap_jv_count(ap_json_root(doc)), row->count);
		ck_assert_str_eq(ap_json_file(doc), "f.json");
		ctx_destroy(&ctx);
	}
}
END_TEST

struct refused {
	const char *text;
	size_t len;
	enum ap_status st;
	const char *message; /* from behind "error: f.json:" on, its beginning */
};

static const struct refused refuses[] = {
	/* nothing */
	{TEXT(""), AP_SYNTAX, "1:1: empty"},
	{TEXT(" "), AP_SYNTAX, "1:2: nothing but blanks"},
	{TEXT(" \r\n\t\n "), AP_SYNTAX, "3:2: nothing but blanks"},
	{TEXT("\xEF\xBB\xBF"), AP_SYNTAX, "1:2: nothing but blanks"},
	/* encodings */
	{TEXT("\xFF\xFE{\0}\0"), AP_SYNTAX, "1:1: looks like UTF-16; expected UTF-8"},
	{TEXT("\xFE\xFF\0{\0}"), AP_SYNTAX, "1:1: looks like UTF-16"},
	{TEXT("{\0}\0"), AP_SYNTAX, "1:1: looks like UTF-16"},
	{TEXT("\0{\0}"), AP_SYNTAX, "1:1: looks like UTF-16"},
	{TEXT("\0\0\0{"), AP_SYNTAX, "1:1: expected a value, got the byte 0x00"},
	{TEXT("[\"\xFF\"]"), AP_SYNTAX, "1:3: byte 0xff at offset 2 is not UTF-8"},
	{TEXT("[\n \"\xC0\xAF\"]"), AP_SYNTAX, "2:3: byte 0xc0 at offset 4 is not UTF-8"},
	{TEXT("[\"\xED\xA0\x80\"]"), AP_SYNTAX, "1:3: byte 0xed at offset 2 is not UTF-8"},
	{TEXT("[\"\xF4\x90\x80\x80\"]"), AP_SYNTAX, "1:3: byte 0xf4 at offset 2 is not UTF-8"},
	{TEXT("[\"\xE2\x82"), AP_SYNTAX, "1:3: byte 0xe2 at offset 2 is not UTF-8"},
	{TEXT("[\xE4]"), AP_SYNTAX, "1:2: byte 0xe4 at offset 1 is not UTF-8"},
	{TEXT("\xC3\xA4"), AP_SYNTAX, "1:1: expected a value, got the byte 0xc3"},
	{TEXT("[1]\xC2\xA0"), AP_SYNTAX, "1:4: expected the end of the file, got the byte 0xc2"},
	{TEXT("[\"\xC3\xA4\xE4\xB8\xAD\", x]"), AP_SYNTAX, "1:8: expected a value, got 'x'"},
	{TEXT("\xEF\xBB\xBF\xEF\xBB\xBF{}"), AP_SYNTAX, "1:2: expected a value, got the byte 0xef"},
	/* NUL */
	{TEXT("[1]\0"), AP_SYNTAX, "1:4: expected the end of the file, got the byte 0x00"},
	{TEXT("[1]\0[2]"), AP_SYNTAX, "1:4: expected the end of the file, got the byte 0x00"},
	{TEXT("[\"a\0b\"]"), AP_SYNTAX, "1:4: control character 0x00 in a string"},
	{TEXT("[1,\0 2]"), AP_SYNTAX, "1:4: expected a value, got the byte 0x00"},
	{TEXT("[1\0]"), AP_SYNTAX, "1:3: expected ',' or ']', got the byte 0x00"},
	{TEXT("[\"a\\u0000b\"]"), AP_MEANING, "1:2: /0: \\u0000 in a string [string-nul]"},
	{TEXT("{\"k\": [1, \"\\u0000\"]}"), AP_MEANING, "1:11: /k/1: \\u0000 in a string"},
	{TEXT("{\"a\": 0, \"a\\u0000evil\":1}"), AP_MEANING, "1:10: /a: \\u0000 in a key"},
	/* surrogates and escapes */
	{TEXT("[\"\\uD800\"]"), AP_SYNTAX, "1:3: \\ud800 is half of a surrogate pair"},
	{TEXT("[\"\\uDC00\"]"), AP_SYNTAX, "1:3: \\udc00 is half of a surrogate pair"},
	{TEXT("[\"\\uD83Dx\"]"), AP_SYNTAX, "1:3: \\ud83d is half of a surrogate pair"},
	{TEXT("[\"\\uD83D\\n\"]"), AP_SYNTAX, "1:3: \\ud83d is half of a surrogate pair"},
	{TEXT("[\"\\uD83D\\u0041\"]"), AP_SYNTAX, "1:3: \\ud83d is half of a surrogate pair"},
	{TEXT("[\"\\uD83D\\uD83D\"]"), AP_SYNTAX, "1:3: \\ud83d is half of a surrogate pair"},
	{TEXT("[\"\\uDE00\\uD83D\"]"), AP_SYNTAX, "1:3: \\ude00 is half of a surrogate pair"},
	{TEXT("[\"\\u12\"]"), AP_SYNTAX, "1:7: expected four hexadecimal digits after \\u, got '\"'"},
	{TEXT("[\"\\u00g0\"]"), AP_SYNTAX, "1:7: expected four hexadecimal digits"},
	{TEXT("[\"\\u"), AP_SYNTAX, "1:5: expected four hexadecimal digits after \\u, got the end"},
	{TEXT("[\"\\U0041\"]"), AP_SYNTAX, "1:4: expected one of"},
	{TEXT("[\"\\x41\"]"), AP_SYNTAX, "1:4: expected one of"},
	{TEXT("[\"\\'\"]"), AP_SYNTAX, "1:4: expected one of"},
	{TEXT("[\"\\a\"]"), AP_SYNTAX, "1:4: expected one of"},
	{TEXT("[\"\\\0\"]"), AP_SYNTAX, "1:4: expected one of"},
	{TEXT("[\"\\"), AP_SYNTAX, "1:4: expected one of"},
	/* strings */
	{TEXT("[\"a\nb\"]"), AP_SYNTAX, "1:4: control character 0x0a in a string"},
	{TEXT("[\"a\tb\"]"), AP_SYNTAX, "1:4: control character 0x09 in a string"},
	{TEXT("[\"a\x1f\"]"), AP_SYNTAX, "1:4: control character 0x1f in a string"},
	{TEXT("[\"a"), AP_SYNTAX, "1:2: string without an end"},
	{TEXT("\""), AP_SYNTAX, "1:1: string without an end"},
	{TEXT("['a']"), AP_SYNTAX, "1:2: expected a value, got '''; strings need double quotes"},
	{TEXT("[`a`]"), AP_SYNTAX, "1:2: expected a value, got '`'"},
	{TEXT("[\"a\" \"b\"]"), AP_SYNTAX, "1:6: expected ',' or ']', got '\"'"},
	{TEXT("\"a\"b"), AP_SYNTAX, "1:4: expected the end of the file, got 'b'"},
	/* numbers */
	{TEXT("[01]"), AP_SYNTAX, "1:2: number with a leading zero"},
	{TEXT("[-01]"), AP_SYNTAX, "1:2: number with a leading zero"},
	{TEXT("[00]"), AP_SYNTAX, "1:2: number with a leading zero"},
	{TEXT("[+1]"), AP_SYNTAX, "1:2: expected a value, got '+'; a number must not begin with +"},
	{TEXT("[1.]"), AP_SYNTAX, "1:4: expected a digit after the point, got ']'"},
	{TEXT("[1.e1]"), AP_SYNTAX, "1:4: expected a digit after the point, got 'e'"},
	{TEXT("[.5]"), AP_SYNTAX, "1:2: expected a value, got '.'; a number needs digits on both"},
	{TEXT("[-.5]"), AP_SYNTAX, "1:3: expected a digit, got '.'"},
	{TEXT("[-]"), AP_SYNTAX, "1:3: expected a digit, got ']'"},
	{TEXT("-"), AP_SYNTAX, "1:2: expected a digit, got the end of the file"},
	{TEXT("[--1]"), AP_SYNTAX, "1:3: expected a digit, got '-'"},
	{TEXT("[1e]"), AP_SYNTAX, "1:4: expected a digit of the exponent, got ']'"},
	{TEXT("[1e+]"), AP_SYNTAX, "1:5: expected a digit of the exponent, got ']'"},
	{TEXT("[1e+-1]"), AP_SYNTAX, "1:5: expected a digit of the exponent, got '-'"},
	{TEXT("[1e1.5]"), AP_SYNTAX, "1:5: expected ',' or ']', got '.'"},
	{TEXT("[1.2.3]"), AP_SYNTAX, "1:5: expected ',' or ']', got '.'"},
	{TEXT("[0x10]"), AP_SYNTAX, "1:3: expected ',' or ']', got 'x'"},
	{TEXT("[1_000]"), AP_SYNTAX, "1:3: expected ',' or ']', got '_'"},
	{TEXT("[1 000]"), AP_SYNTAX, "1:4: expected ',' or ']', got '0'"},
	{TEXT("[1f]"), AP_SYNTAX, "1:3: expected ',' or ']', got 'f'"},
	{TEXT("[NaN]"), AP_SYNTAX, "1:2: expected a value, got 'N'; NaN and Infinity are not allowed"},
	{TEXT("[Infinity]"), AP_SYNTAX, "1:2: expected a value, got 'I'; NaN and Infinity"},
	{TEXT("[-Infinity]"), AP_SYNTAX, "1:3: expected a digit, got 'I'; NaN and Infinity"},
	{TEXT("[nan]"), AP_SYNTAX, "1:2: expected a value, got 'n'"},
	{TEXT("[\xEF\xBC\x91]"), AP_SYNTAX, "1:2: expected a value, got the byte 0xef"},
	{TEXT("1e400"), AP_MEANING, "1:1: number is not finite [number-finite]"},
	{TEXT("[[0], {\"a/b\": [-1e400]}]"), AP_MEANING, "1:16: /1/a~1b/0: number is not finite"},
	{TEXT("{\"~\":\n{\"x\": 1e999}}"), AP_MEANING, "2:7: /~0/x: number is not finite"},
	/* words */
	{TEXT("[True]"), AP_SYNTAX, "1:2: expected a value, got 'T'"},
	{TEXT("[TRUE]"), AP_SYNTAX, "1:2: expected a value, got 'T'"},
	{TEXT("[tru]"), AP_SYNTAX, "1:2: expected a value, got 't'"},
	{TEXT("[truex]"), AP_SYNTAX, "1:6: expected ',' or ']', got 'x'"},
	{TEXT("[nul"), AP_SYNTAX, "1:2: expected a value, got 'n'"},
	{TEXT("[None]"), AP_SYNTAX, "1:2: expected a value, got 'N'"},
	{TEXT("[undefined]"), AP_SYNTAX, "1:2: expected a value, got 'u'"},
	/* arrays */
	{TEXT("["), AP_SYNTAX, "1:2: expected a value, got the end of the file"},
	{TEXT("[1"), AP_SYNTAX, "1:3: expected ',' or ']', got the end of the file"},
	{TEXT("[1,"), AP_SYNTAX, "1:4: expected a value, got the end of the file"},
	{TEXT("[,]"), AP_SYNTAX, "1:2: expected a value, got ','"},
	{TEXT("[,1]"), AP_SYNTAX, "1:2: expected a value, got ','"},
	{TEXT("[1,,2]"), AP_SYNTAX, "1:4: expected a value, got ','"},
	{TEXT("[1,]"), AP_SYNTAX, "1:3: trailing comma"},
	{TEXT("[1 , ]"), AP_SYNTAX, "1:4: trailing comma"},
	{TEXT("[1,,]"), AP_SYNTAX, "1:4: expected a value, got ','"},
	{TEXT("[1}"), AP_SYNTAX, "1:3: expected ',' or ']', got '}'"},
	{TEXT("[1;2]"), AP_SYNTAX, "1:3: expected ',' or ']', got ';'"},
	{TEXT("[1:2]"), AP_SYNTAX, "1:3: expected ',' or ']', got ':'"},
	{TEXT("]"), AP_SYNTAX, "1:1: expected a value, got ']'"},
	{TEXT("[]]"), AP_SYNTAX, "1:3: expected the end of the file, got ']'"},
	{TEXT("[(1)]"), AP_SYNTAX, "1:2: expected a value, got '('"},
	/* objects */
	{TEXT("{"), AP_SYNTAX, "1:2: expected a key in double quotes, got the end of the file"},
	{TEXT("{\"a\""), AP_SYNTAX, "1:5: expected ':' after the key, got the end of the file"},
	{TEXT("{\"a\":"), AP_SYNTAX, "1:6: expected a value, got the end of the file"},
	{TEXT("{\"a\":1"), AP_SYNTAX, "1:7: expected ',' or '}', got the end of the file"},
	{TEXT("{\"a\":}"), AP_SYNTAX, "1:6: expected a value, got '}'"},
	{TEXT("{\"a\"}"), AP_SYNTAX, "1:5: expected ':' after the key, got '}'"},
	{TEXT("{\"a\",1}"), AP_SYNTAX, "1:5: expected ':' after the key, got ','"},
	{TEXT("{\"a\":1,}"), AP_SYNTAX, "1:7: trailing comma"},
	{TEXT("{\"a\":1,\n}"), AP_SYNTAX, "1:7: trailing comma"},
	{TEXT("{,\"a\":1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got ','"},
	{TEXT("{\"a\":1,,}"), AP_SYNTAX, "1:8: expected a key in double quotes, got ','"},
	{TEXT("{\"a\":1 \"b\":2}"), AP_SYNTAX, "1:8: expected ',' or '}', got '\"'"},
	{TEXT("{a:1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got 'a'"},
	{TEXT("{'a':1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got '''; strings need"},
	{TEXT("{1:1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got '1'"},
	{TEXT("{null:1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got 'n'"},
	{TEXT("{\"a\"=1}"), AP_SYNTAX, "1:5: expected ':' after the key, got '='"},
	{TEXT("{\"a\"::1}"), AP_SYNTAX, "1:6: expected a value, got ':'"},
	{TEXT("{\"a\":1]"), AP_SYNTAX, "1:7: expected ',' or '}', got ']'"},
	{TEXT("{\"a\":1}}"), AP_SYNTAX, "1:8: expected the end of the file, got '}'"},
	{TEXT("{[]:1}"), AP_SYNTAX, "1:2: expected a key in double quotes, got '['"},
	{TEXT("}"), AP_SYNTAX, "1:1: expected a value, got '}'"},
	/* comments, more than one document, other blanks */
	{TEXT("// x\n[]"), AP_SYNTAX, "1:1: expected a value, got '/'; comments are not allowed"},
	{TEXT("[1, /* x */ 2]"), AP_SYNTAX, "1:5: expected a value, got '/'; comments are not"},
	{TEXT("{\"a\":1 // x\n}"), AP_SYNTAX, "1:8: expected ',' or '}', got '/'; comments are not"},
	{TEXT("{\n# x\n}"), AP_SYNTAX, "2:1: expected a key in double quotes, got '#'; comments"},
	{TEXT("[] // x"), AP_SYNTAX, "1:4: expected the end of the file, got '/'; comments are not"},
	{TEXT("{}{}"), AP_SYNTAX, "1:3: expected the end of the file, got '{'"},
	{TEXT("[1]\n[2]"), AP_SYNTAX, "2:1: expected the end of the file, got '['"},
	{TEXT("1 2"), AP_SYNTAX, "1:3: expected the end of the file, got '2'"},
	{TEXT("[1]x"), AP_SYNTAX, "1:4: expected the end of the file, got 'x'"},
	{TEXT("[\f1]"), AP_SYNTAX, "1:2: expected a value, got the byte 0x0c"},
	{TEXT("[\v1]"), AP_SYNTAX, "1:2: expected a value, got the byte 0x0b"},
	{TEXT("[1\b]"), AP_SYNTAX, "1:3: expected ',' or ']', got the byte 0x08"},
	{TEXT("<json/>"), AP_SYNTAX, " is XML (<json>); every input is JSON, but"},
	{TEXT("\r\n\r\n [1,\r\n  x]"), AP_SYNTAX, "4:3: expected a value, got 'x'"},
	/* duplicate keys */
	{TEXT("{\"a\":1,\n\"a\":1}"), AP_MEANING,
		"2:1: /a: duplicate key \"a\"; it is already on line 1 [key-duplicate]"},
	{TEXT("{\"a\":1,\n\n\"\\u0061\":2}"), AP_MEANING,
		"3:1: /a: duplicate key \"a\"; it is already on line 1"},
	{TEXT("[{},\n{\"x\":\n{\"b\":1,\"c\":1,\n\"b\":2}}]"), AP_MEANING,
		"4:1: /1/x/b: duplicate key \"b\"; it is already on line 3"},
	{TEXT("{\"\":1,\"\":2}"), AP_MEANING, "1:7: /: duplicate key \"\"; it is already on line 1"},
};

START_TEST(refuses_what_is_none)
{
	ck_assert_uint_ge(AP_COUNT(refuses), 120);
	for (size_t i = 0; i < AP_COUNT(refuses); i++) {
		const struct refused *row = &refuses[i];
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc = NULL;
		enum ap_status st = parse(&ctx, row->text, row->len, 0, &doc);
		const char *error = strstr(messages(&ctx), "autopar-plan: error: f.json:");

		ck_assert_msg(st == row->st, "row %zu: %s: %d", i, row->text, st);
		ck_assert_msg(error && !strncmp(error + strlen("autopar-plan: error: f.json:"),
			row->message, strlen(row->message)), "row %zu: not \"%s\" but \"%s\"", i,
			row->message, messages(&ctx));
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 1);
		ck_assert_int_eq(ap_diag_status(ctx.diag), row->st);
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(byte_order_mark_is_a_warning)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, TEXT("\xEF\xBB\xBF{\"a\": 1}"), 0, &doc), AP_OK);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: warning: f.json: begins with a byte order "
		"mark, which JSON does not allow [byte-order-mark]\n");
	ck_assert(ap_jv_double(ap_jv_get(ap_json_root(doc), "a")) == 1);
	ctx_destroy(&ctx);

	ctx = ctx_create(true);
	ck_assert_int_eq(parse(&ctx, TEXT("\xEF\xBB\xBF[]"), 0, &doc), AP_MEANING);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(trailing_commas_are_warnings_where_allowed)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_jv *root, *list;
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, TEXT("{\"a\": [1, 2,\n],\n\"b\": \",]\" , }\n"),
		AP_JSON_TRAILING_COMMA, &doc), AP_OK);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: warning: f.json:1:12: trailing comma [trailing-comma]\n"
		"autopar-plan: warning: f.json:3:11: trailing comma [trailing-comma]\n");
	root = ap_json_root(doc);
	ck_assert_uint_eq(ap_jv_count(root), 2);
	list = ap_jv_get(root, "a");
	ck_assert_uint_eq(ap_jv_count(list), 2);
	ck_assert(ap_jv_double(ap_jv_next(ap_jv_first(list))) == 2);
	ck_assert_str_eq(ap_jv_str(ap_jv_get(root, "b")), ",]");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(other_commas_stay_errors)
{
	static const char *const texts[] = {"[,]", "{,}", "[1,,]", "{\"a\":1,,}", "[,1]", "[1],", ","};

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;

		ck_assert_int_eq(parse(&ctx, texts[i], strlen(texts[i]), AP_JSON_TRAILING_COMMA, &doc),
			AP_SYNTAX);
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(strict_sink_refuses_trailing_commas)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, TEXT("[1,]"), AP_JSON_TRAILING_COMMA, &doc), AP_MEANING);
	ctx_destroy(&ctx);
}
END_TEST

/* The rank table of the seed document: numbers as strings, a comma at the end of the last list. */
START_TEST(rank_table_of_the_lab_form)
{
	static const char text[] =
		"{\n"
		"    \"version\": \"1.0\",\n"
		"    \"server_count\": \"1\",\n"
		"    \"server_list\": [\n"
		"        {\n"
		"            \"server_id\": \"10.*.*.*\",\n"
		"            \"device\": [\n"
		"                {\"device_id\": \"0\",\"device_ip\": \"192.1.27.6\",\"rank_id\": \"0\"},\n"
		"                {\"device_id\": \"1\",\"device_ip\": \"192.2.27.6\",\"rank_id\": \"1\"}"
		"],\n"
		"             \"host_nic_ip\": \"reserve\"\n"
		"        },\n"
		"    ],\n"
		"    \"status\": \"completed\"\n"
		"}\n";
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	const struct ap_jv *device;

	ck_assert_int_eq(parse(&ctx, text, sizeof text - 1, 0, &doc), AP_SYNTAX);
	ck_contains(messages(&ctx), "f.json:11:10: trailing comma\n");
	ctx_destroy(&ctx);

	ctx = ctx_create(false);
	ck_assert_int_eq(parse(&ctx, text, sizeof text - 1, AP_JSON_TRAILING_COMMA, &doc), AP_OK);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 1);
	device = ap_jv_get(ap_jv_first(ap_jv_get(ap_json_root(doc), "server_list")), "device");
	ck_assert_uint_eq(ap_jv_count(device), 2);
	ck_assert_str_eq(ap_jv_str(ap_jv_get(ap_jv_next(ap_jv_first(device)), "device_ip")),
		"192.2.27.6");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(the_tree_holds_what_the_text_says)
{
	static const char text[] = "{\"n\": null, \"t\": true, \"f\": false, \"x\": -2.5e-3,\n"
		"\"s\": \"\\u00e4\\ud83d\\ude00\\n\\\"\\\\\\/\",\n"
		"\"l\": [1, [2, []], 3], \"o\": {\"k\": {}}}";
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_jv *root, *v;
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, text, sizeof text - 1, 0, &doc), AP_OK);
	root = ap_json_root(doc);
	ck_assert_uint_eq(ap_jv_count(root), 7);
	ck_assert_ptr_null(ap_jv_key(root));
	ck_assert_ptr_null(ap_jv_next(root));
	v = ap_jv_first(root);
	ck_assert_str_eq(ap_jv_key(v), "n");
	ck_assert_int_eq(ap_jv_type(v), AP_JNULL);
	v = ap_jv_next(v);
	ck_assert(ap_jv_bool(v));
	v = ap_jv_next(v);
	ck_assert(!ap_jv_bool(v));
	v = ap_jv_next(v);
	ck_assert(ap_jv_double(v) == -2.5e-3);
	v = ap_jv_next(v);
	ck_assert_str_eq(ap_jv_str(v), "\xC3\xA4\xF0\x9F\x98\x80\n\"\\/");
	v = ap_jv_next(v);
	ck_assert_str_eq(ap_jv_key(v), "l");
	v = ap_jv_first(v);
	ck_assert_ptr_null(ap_jv_key(v));
	ck_assert(ap_jv_double(v) == 1);
	v = ap_jv_next(v);
	ck_assert_uint_eq(ap_jv_count(v), 2);
	ck_assert_ptr_null(ap_jv_first(ap_jv_next(ap_jv_first(v))));
	v = ap_jv_next(v);
	ck_assert(ap_jv_double(v) == 3);
	ck_assert_ptr_null(ap_jv_next(v));
	v = ap_jv_get(ap_jv_get(root, "o"), "k");
	ck_assert_int_eq(ap_jv_type(v), AP_JOBJECT);
	ck_assert_ptr_null(ap_jv_next(v));
	ck_assert_ptr_null(ap_jv_get(root, "N"));
	ck_assert_ptr_null(ap_jv_get(ap_jv_get(root, "l"), "k"));
	ctx_destroy(&ctx);
}
END_TEST

/* To the last bit, whichever of two ways a number is read, and what stands behind it. */
START_TEST(numbers_are_what_strtod_reads)
{
	static const char *const texts[] = {"7", "-7", "42", "1024", "-0", "-0.0", "0.0e5", "0.5",
		"4.599996827892028e-07", "0.0007610590000695083", "-2.5E+03", "1e22", "1e23", "1e-27",
		"1e-28", "9007199254740993", "9007199254740992.99", "9223372036854775807",
		"9223372036854775808", "18446744073709551616", "0.1000000000000000055511151231257827",
		"0.000000000000000000000000000000000001234567890123456789",
		"2.2250738585072011e-308", "4.9e-324", "1.7976931348623157e308", "1e-99999999999",
		"0e99999999999", "123456789e-00000000000000000000000000004"};
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		double expected = strtod(texts[i], NULL), v;
		struct ap_json *doc;
		char text[256];
		int len = snprintf(text, sizeof text, "[%s,{\"k\":%s }, %s]", texts[i], texts[i],
			texts[i]);

		ck_assert_int_eq(parse(&ctx, text, (size_t)len, 0, &doc), AP_OK);
		for (const struct ap_jv *e = ap_jv_first(ap_json_root(doc)); e; e = ap_jv_next(e)) {
			v = ap_jv_double(ap_jv_type(e) == AP_JOBJECT ? ap_jv_get(e, "k") : e);
			if (memcmp(&v, &expected, sizeof v) != 0)
				ck_abort_msg("%s is read as %a", texts[i], v);
		}
	}
	ctx_destroy(&ctx);
}
END_TEST

static int random_digits(uint64_t *state, char *to, int most)
{
	int n = 1 + (int)random_below(state, (uint64_t)most);

	for (int i = 0; i < n; i++)
		to[i] = (char)('0' + random_below(state, 10));
	to[n] = '\0';
	return n;
}

/* A number of any length and size, one as programs write them, a subnormal one, or the middle of two doubles,
 * exactly or almost. */
static void random_number(uint64_t *state, char *to)
{
	double v;
	uint64_t bits = random_next(state) & ~(UINT64_C(1) << 63);

	to += sprintf(to, "%s", random_below(state, 4) ? "" : "-");
	switch (random_below(state, 4)) {
	case 0:
		to += random_below(state, 2) ? sprintf(to, "0") :
			sprintf(to, "%d", 1 + (int)random_below(state, 9)) + random_digits(state, to + 1, 25);
		if (random_below(state, 2)) {
			*to++ = '.';
			to += random_digits(state, to, random_below(state, 8) ? 20 : 400);
		}
		if (random_below(state, 2))
			sprintf(to, "%c%s%d", random_below(state, 2) ? 'e' : 'E', random_below(state, 2) ? "-" : "",
				(int)random_below(state, 280));
		return;
	case 1: /* sizes of times, and of all doubles */
		if (random_below(state, 2))
			bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) - 40 + random_below(state, 60)) << 52;
		memcpy(&v, &bits, sizeof v);
		sprintf(to, "%.*g", 15 + (int)random_below(state, 3), isfinite(v) ? v : 0.);
		return;
	case 2: /* subnormal */
		bits >>= 12 + random_below(state, 50);
		memcpy(&v, &bits, sizeof v);
		sprintf(to, "%.*e", 1 + (int)random_below(state, 30), v);
		return;
	default:
		bits = (UINT64_C(1) << 53 | bits >> 11 | 1) * (random_below(state, 2) ? 1 : 5);
		sprintf(to, "%" PRIu64 "e-%d", bits + random_below(state, 3) - 1, (int)random_below(state, 2));
	}
}

START_TEST(random_numbers_are_what_strtod_reads)
{
	uint64_t state = random_seed();

	for (int round = 0; round < 200; round++) {
		struct ap_ctx ctx = ctx_create(true);
		static char numbers[500][512];
		const struct ap_jv *e;
		struct ap_json *doc;
		struct ap_str text;

		ap_str_init(&text, ctx.scratch);
		for (size_t i = 0; i < AP_COUNT(numbers); i++) {
			random_number(&state, numbers[i]);
			ap_str_addf(&text, "%c%s", i ? ',' : '[', numbers[i]);
		}
		ap_str_addc(&text, ']');
		ck_assert_int_eq(parse(&ctx, text.s, text.len, 0, &doc), AP_OK);
		e = ap_jv_first(ap_json_root(doc));
		for (size_t i = 0; i < AP_COUNT(numbers); i++, e = ap_jv_next(e)) {
			double v = ap_jv_double(e), expected = strtod(numbers[i], NULL);

			if (memcmp(&v, &expected, sizeof v) != 0)
				ck_abort_msg("%s is read as %a, expected %a", numbers[i], v, expected);
		}
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(escapes_of_each_length)
{
	static const char text[] = "[\"\\u0001\\u007f\", \"\\u0080\\u07FF\", \"\\u0800\\uD7ff\\uE000\\uffff\",\n"
		"\"\\uD800\\uDC00\\uDBFF\\uDFFF\", \"\\b\\f\\n\\r\\t\\/\\\\\\\"\", \"a\\tb\\u00e4c\"]";
	static const char *const expected[] = {"\x01\x7F", "\xC2\x80\xDF\xBF",
		"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF",
		"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", "\b\f\n\r\t/\\\"", ("a\tb\xC3\xA4" "c")};
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_jv *e;
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, text, sizeof text - 1, 0, &doc), AP_OK);
	e = ap_jv_first(ap_json_root(doc));
	for (size_t i = 0; i < AP_COUNT(expected); i++, e = ap_jv_next(e))
		ck_assert_str_eq(ap_jv_str(e), expected[i]);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(keys_that_differ_in_case_are_different)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, TEXT("{\"Rank\":1,\"rank\":2,\"RANK\":3}"), 0, &doc), AP_OK);
	ck_assert(ap_jv_double(ap_jv_get(ap_json_root(doc), "rank")) == 2);
	ck_assert(ap_jv_double(ap_jv_get(ap_json_root(doc), "RANK")) == 3);
	ck_assert_ptr_null(ap_jv_get(ap_json_root(doc), "rANK"));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(several_findings_are_all_reported)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;

	ck_assert_int_eq(parse(&ctx, TEXT("{\"a\":1e400,\"b\":[-1e400],\"a\":2,\"b\":3}"), 0, &doc),
		AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 4);
	ctx_destroy(&ctx);
}
END_TEST
