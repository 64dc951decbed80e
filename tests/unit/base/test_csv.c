/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/csv.h"

static struct ap_ctx ctx;

static void setup(void)
{
	ctx = ctx_create(false);
}

static void teardown(void)
{
	ctx_destroy(&ctx);
}

TEST_FIXTURE(setup, teardown)

/* The records of a text as "line:field|field", one after the other. */
static const char *records(const char *text, size_t len)
{
	struct ap_csv csv = ap_csv_begin("t.csv", text, len);
	struct ap_csv_record r;
	struct ap_str out;
	bool any;

	ap_str_init(&out, ctx.arena);
	while (ap_csv_next(&ctx, &csv, &r, &any) == AP_OK && any) {
		ap_str_addf(&out, "%" PRId64 ":", r.line);
		for (size_t i = 0; i < r.n; i++)
			ap_str_addf(&out, "%s|", r.field[i]);
	}
	return out.s;
}

START_TEST(fields)
{
	static const struct { const char *text, *records; } cases[] = {
		{"a,b\n1,2\n", "1:a|b|2:1|2|"},
		{"\xef\xbb\xbf" "a\r\n\r\n 1 ,, x y \r\n", "1:a|3:1||x y|"},
		{"\"a,\"\"b\"\"\",\"c\nd\" ,e\nf", "1:a,\"b\"|c\nd|e|3:f|"},
		{"a,\n,", "1:a||2:||"},
		{"", ""},
		{"\n\n", ""},
		{"a\rb\r", "1:a\rb|"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_str_eq(records(cases[i].text, strlen(cases[i].text)), cases[i].records);
	ck_assert_str_eq(messages(&ctx), "");
}
END_TEST

START_TEST(faults_have_their_place)
{
	ck_assert_str_eq(records("a\n\"b\nc", 6), "1:a|");
	ck_contains(messages(&ctx), "t.csv:2: a field begins with a quote, and none ends it");
	ck_assert_str_eq(records("\"a\"b,c\n", 7), "");
	ck_contains(messages(&ctx), "t.csv:1: something stands between the quote");
}
END_TEST
