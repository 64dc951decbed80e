/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_write.h"
#include "unit.h"

static const char *render(const struct ap_ctx *ctx, enum ap_level least, size_t max)
{
	struct ap_str out;

	ap_str_init(&out, ctx->arena);
	ap_diag_render(ctx->diag, least, max, &out);
	return out.s;
}

START_TEST(every_part_of_a_place)
{
	static const struct {
		struct ap_where where;
		const char *line;
	} rows[] = {
		{{0}, "autopar-plan: error: wrong\n"},
		{{.file = "g.json"}, "autopar-plan: error: g.json: wrong\n"},
		{{.file = "g.json", .line = 3}, "autopar-plan: error: g.json:3: wrong\n"},
		{{.file = "g.json", .line = 3, .col = 7}, "autopar-plan: error: g.json:3:7: wrong\n"},
		{{.file = "g.json", .line = 1, .col = 1, .pointer = ""},
			"autopar-plan: error: g.json:1:1: wrong\n"},
		{{.file = "g.json", .line = 41, .col = 17, .pointer = "/operators/12"},
			"autopar-plan: error: g.json:41:17: /operators/12: wrong\n"},
		{{.file = "g.json", .line = 41, .col = 17, .pointer = "/operators/12", .oper = "a/b-op0"},
			"autopar-plan: error: g.json:41:17: /operators/12 (operator \"a/b-op0\"): wrong\n"},
		{{.oper = "mm"}, "autopar-plan: error: (operator \"mm\"): wrong\n"},
		{{.file = "bad\nname", .pointer = "/a\x1b[31m"},
			"autopar-plan: error: bad\\nname: /a\\x1b[31m: wrong\n"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);

		ck_assert_int_eq(ap_diag_add(ctx.diag, AP_ERROR, AP_MEANING, &rows[i].where, NULL,
			"wro%s", "ng"), AP_MEANING);
		ck_assert_str_eq(messages(&ctx), rows[i].line);
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(levels_counts_and_status)
{
	struct ap_ctx ctx = ctx_create(false);
	enum ap_level level;
	const char *check;

	ck_assert_int_eq(ap_diag_status(ctx.diag), AP_OK);
	ck_assert_str_eq(messages(&ctx), "");
	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_NOTE, AP_OK, NULL, NULL, "one"), AP_OK);
	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_WARNING, AP_OK, NULL, "edge-known", "two"), AP_OK);
	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_ERROR, AP_IO, NULL, NULL, "three"), AP_IO);
	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_ERROR, AP_SYNTAX, NULL, NULL, "four"), AP_SYNTAX);
	ck_assert_int_eq(ap_diag_status(ctx.diag), AP_IO);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_NOTE), 1);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 1);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 2);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: note: one\n"
		"autopar-plan: warning: two [edge-known]\n"
		"autopar-plan: error: three\n"
		"autopar-plan: error: four\n");
	ck_assert_str_eq(render(&ctx, AP_ERROR, 20),
		"autopar-plan: error: three\nautopar-plan: error: four\n");
	ck_assert_str_eq(ap_diag_text(ctx.diag, 1, &level, &check), "two");
	ck_assert_int_eq(level, AP_WARNING);
	ck_assert_str_eq(check, "edge-known");
	ck_assert_str_eq(ap_diag_text(ctx.diag, 3, NULL, NULL), "four");
	ck_assert_ptr_null(ap_diag_text(ctx.diag, 4, NULL, NULL));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(strict_turns_warnings_into_errors)
{
	struct ap_ctx ctx = ctx_create(true);

	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_NOTE, AP_OK, NULL, NULL, "n"), AP_OK);
	ck_assert_int_eq(ap_diag_status(ctx.diag), AP_OK);
	ck_assert_int_eq(ap_diag_add(ctx.diag, AP_WARNING, AP_OK, NULL, NULL, "w"), AP_MEANING);
	ck_assert_int_eq(ap_diag_status(ctx.diag), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 1);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 0);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: note: n\nautopar-plan: error: w\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(the_rest_is_counted)
{
	struct ap_ctx ctx = ctx_create(false);

	for (int i = 0; i < 5; i++) {
		ap_diag_add(ctx.diag, AP_ERROR, AP_MEANING, NULL, NULL, "e%d", i);
		ap_diag_add(ctx.diag, AP_WARNING, AP_OK, NULL, NULL, "w%d", i);
	}
	ck_assert_str_eq(render(&ctx, AP_WARNING, 2), "autopar-plan: error: e0\n"
		"autopar-plan: warning: w0\n"
		"autopar-plan: error: e1\n"
		"autopar-plan: warning: w1\n"
		"autopar-plan: error: and 3 more\n"
		"autopar-plan: warning: and 3 more\n");
	ck_assert_str_eq(render(&ctx, AP_ERROR, 5), "autopar-plan: error: e0\n"
		"autopar-plan: error: e1\nautopar-plan: error: e2\n"
		"autopar-plan: error: e3\nautopar-plan: error: e4\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(names_are_safe_to_print)
{
	static const struct {
		const char *raw, *safe;
	} rows[] = {
		{"", ""},
		{"Default/network-op0", "Default/network-op0"},
		{"a\nb\tc\rd", "a\\nb\\tc\\rd"},
		{"\x1b[2J\x07", "\\x1b[2J\\x07"},
		{"\x7f", "\\x7f"},
		{"\xC2\x9B" "1m", "\\x9b1m"}, /* U+009B: a control sequence in one character */
		{"\xE2\x80\xAE" "abc", "\\u202eabc"},
		{"\xE2\x81\xA6", "\\u2066"},
		{"\xE2\x80\xA8", "\\u2028"},
		{"\xC3\xA4\xF0\x9F\x98\x80\xE4\xB8\xAD", "\xC3\xA4\xF0\x9F\x98\x80\xE4\xB8\xAD"},
		{"a\xFF" "b", "a\\xffb"},
		{"cut\xE2\x82", "cut\\xe2\\x82"},
		{"\xED\xA0\x80", "\\xed\\xa0\\x80"},
		{"%s%n", "%s%n"},
		{"quote\"back\\slash", "quote\"back\\slash"},
	};
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert_str_eq(ap_diag_name(ctx.diag, rows[i].raw), rows[i].safe);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(names_are_cut)
{
	struct ap_ctx ctx = ctx_create(false);
	char raw[300], want[300];

	memset(raw, 'x', 81);
	raw[80] = '\0';
	ck_assert_str_eq(ap_diag_name(ctx.diag, raw), raw);
	raw[80] = 'x';
	raw[81] = '\0';
	snprintf(want, sizeof want, "%.80s...", raw);
	ck_assert_str_eq(ap_diag_name(ctx.diag, raw), want);
	for (int i = 0; i < 90; i++) /* 80 characters, not bytes */
		memcpy(raw + 2 * i, "\xC3\xA4", 3);
	snprintf(want, sizeof want, "%.160s...", raw);
	ck_assert_str_eq(ap_diag_name(ctx.diag, raw), want);
	ck_assert_str_eq(ap_diag_path(ctx.diag, raw), raw); /* of files less so */
	ck_assert_str_eq(ap_diag_path(ctx.diag, "a\nb"), "a\\nb");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(text_of_messages_is_safe_too)
{
	struct ap_ctx ctx = ctx_create(false);
	char *large = malloc(100001);

	ap_diag_add(ctx.diag, AP_ERROR, AP_MEANING, NULL, NULL, "got \x1b]0;x\n%s", "\xE2\x80\xAE");
	ck_assert_str_eq(messages(&ctx), "autopar-plan: error: got \\x1b]0;x\\n\\u202e\n");
	memset(large, 'y', 100000);
	large[100000] = '\0';
	ap_diag_add(ctx.diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = large,
		.pointer = large, .oper = large}, NULL, "%s", large);
	ck_assert_uint_lt(strlen(messages(&ctx)), 6000);
	free(large);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(what_is_forgotten_was_not_said)
{
	struct ap_ctx ctx = ctx_create(false), apart;
	struct ap_diag_mark none = ap_diag_mark(ctx.diag), mark;

	ap_diag_add(ctx.diag, AP_WARNING, AP_OK, NULL, NULL, "a");
	mark = ap_diag_mark(ctx.diag);
	for (int i = 0; i < 2; i++) {
		ap_diag_add(ctx.diag, AP_WARNING, AP_OK, NULL, NULL, "b");
		ap_diag_add(ctx.diag, AP_ERROR, AP_MEANING, NULL, NULL, "c");
		ck_assert_str_eq(messages(&ctx),
			"autopar-plan: warning: a\nautopar-plan: warning: b\nautopar-plan: error: c\n");
		ck_assert_int_eq(ap_diag_status(ctx.diag), AP_MEANING);
		ap_diag_forget(ctx.diag, &mark);
		ck_assert_str_eq(messages(&ctx), "autopar-plan: warning: a\n");
		ck_assert_int_eq(ap_diag_status(ctx.diag), AP_OK);
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 0);
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 1);
	}
	apart = ap_diag_apart(&ctx);
	ap_diag_add(apart.diag, AP_ERROR, AP_MEANING, NULL, NULL, "d");
	ck_assert_uint_eq(ap_diag_count(apart.diag, AP_ERROR), 1);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: warning: a\n");
	ap_diag_forget(ctx.diag, &none);
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
}
END_TEST

/* What another sink has is passed on once, with its place and its figures, and ends the run as it did there. */
START_TEST(passed_on)
{
	const struct ap_where where = {.file = "g.json", .line = 3, .col = 4, .pointer = "/a", .oper = "op"};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_diag *to = ap_diag_create(ctx.arena, false), *from = ap_diag_create(ctx.arena, false);
	struct ap_message m;
	struct ap_str text;
	struct ap_jw w;

	(void)ap_diag_add(to, AP_NOTE, AP_OK, NULL, NULL, "known");
	(void)ap_diag_add(from, AP_NOTE, AP_OK, NULL, NULL, "known");
	(void)ap_diag_add(from, AP_WARNING, AP_OK, NULL, NULL, "known");
	(void)ap_diag_add(from, AP_NOTE, AP_OK, &where, "check", "100%% %s", "new");
	ap_diag_pass_on(to, from);
	ck_assert_uint_eq(ap_diag_count(to, AP_NOTE), 2);
	ck_assert_uint_eq(ap_diag_count(to, AP_WARNING), 1);
	ck_assert_int_eq(ap_diag_status(to), AP_OK);
	ck_assert(ap_diag_at(to, 2, &m) && m.line == 3 && m.col == 4);
	ck_assert_str_eq(m.text, "100% new");
	ck_assert_str_eq(m.file, "g.json");
	ck_assert_str_eq(m.oper, "op");
	ck_assert_str_eq(m.check, "check");
	(void)ap_diag_add(from, AP_ERROR, AP_INFEASIBLE, NULL, NULL, "short");
	ap_diag_figure(from, "short_bytes", 42);
	ap_diag_pass_on(to, from);
	ck_assert_uint_eq(ap_diag_count(to, AP_NOTE), 2);
	ck_assert_uint_eq(ap_diag_count(to, AP_ERROR), 1);
	ck_assert_int_eq(ap_diag_status(to), AP_INFEASIBLE);
	ap_str_init(&text, ctx.arena);
	ap_jw_str_init(&w, &text, 0);
	ap_diag_write_figures(to, &w);
	ck_assert_str_eq(text.s, "{\"short_bytes\":42}");
	ctx_destroy(&ctx);
}
END_TEST
