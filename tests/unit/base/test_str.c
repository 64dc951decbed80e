/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

START_TEST(appends)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_str b;

	ap_str_init(&b, a);
	ck_assert_str_eq(b.s, "");
	ap_str_add(&b, "ab");
	ap_str_addc(&b, 'c');
	ap_str_addn(&b, "defg", 2);
	ap_str_addf(&b, "-%04d-%s", 42, "x");
	ck_assert_str_eq(b.s, "abcde-0042-x");
	ck_assert_uint_eq(b.len, 12);
	ap_str_addn(&b, "\0z", 2);
	ck_assert_uint_eq(b.len, 14);
	ck_assert_mem_eq(b.s, "abcde-0042-x\0z", 15);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(grows_across_every_length)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_str chars, formatted;

	ap_str_init(&chars, a);
	ap_str_init(&formatted, a);
	for (int i = 0; i < 5000; i++) {
		ap_str_addc(&chars, (char)('a' + i % 26));
		ap_str_addf(&formatted, "%c", 'a' + i % 26);
		ck_assert_uint_eq(chars.len, (size_t)i + 1);
		ck_assert_uint_eq(chars.s[chars.len], '\0');
	}
	ck_assert_str_eq(chars.s, formatted.s);
	for (int i = 0; i < 5000; i++)
		ck_assert_int_eq(chars.s[i], 'a' + i % 26);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(distance)
{
	static const struct {
		const char *a, *b;
		int distance;
	} rows[] = {
		{"", "", 0},
		{"abc", "abc", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"kitten", "sitting", 3},
		{"operators", "opertaors", 1},
		{"ab", "ba", 1},
		{"inputs", "input", 1},
		{"shape", "shpae", 1},
		{"dtype", "dytpe", 1},
		{"MatMul", "MatMult", 1},
		{"dtype", "dypte", 2},
		{"abcdef", "ghijkl", 6},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		int d = rows[i].distance;

		ck_assert_int_eq(ap_str_distance(rows[i].a, rows[i].b, 10), d);
		ck_assert_int_eq(ap_str_distance(rows[i].b, rows[i].a, 10), d);
		ck_assert_int_eq(ap_str_distance(rows[i].a, rows[i].b, d), d);
		if (d)
			ck_assert_int_eq(ap_str_distance(rows[i].a, rows[i].b, d - 1), d);
	}
	ck_assert_int_eq(ap_str_distance("abcdef", "ghijkl", 2), 3);
}
END_TEST

START_TEST(distance_of_long_strings)
{
	char a[400], b[400];

	memset(a, 'a', sizeof a);
	memset(b, 'a', sizeof b);
	a[255] = b[255] = '\0';
	b[100] = 'b';
	ck_assert_int_eq(ap_str_distance(a, b, 3), 1);
	a[255] = b[255] = 'a';
	a[399] = b[399] = '\0';
	ck_assert_int_eq(ap_str_distance(a, b, 3), 4);
	ck_assert_int_eq(ap_str_distance(a, a, 3), 0);
}
END_TEST

START_TEST(utf8)
{
	static const struct {
		const char *s;
		int bad; /* -1: valid */
	} rows[] = {
		{"", -1},
		{"plain", -1},
		{"\xC2\x80", -1},
		{"\xDF\xBF", -1},
		{"\xE0\xA0\x80", -1},
		{"\xED\x9F\xBF", -1},
		{"\xEE\x80\x80", -1},
		{"\xEF\xBF\xBF", -1},
		{"\xF0\x90\x80\x80", -1},
		{"\xF4\x8F\xBF\xBF", -1},
		{"a\x80", 1},
		{"ab\xC0\xAF", 2}, /* overlong / */
		{"\xC1\xBF", 0},
		{"\xE0\x9F\xBF", 0},
		{"\xED\xA0\x80", 0}, /* a surrogate */
		{"\xED\xBF\xBF", 0},
		{"\xF0\x8F\xBF\xBF", 0},
		{"\xF4\x90\x80\x80", 0}, /* beyond U+10FFFF */
		{"\xF5\x80\x80\x80", 0},
		{"\xFF", 0},
		{"\xFE", 0},
		{"xy\xC3", 2}, /* cut */
		{"xy\xE2\x82", 2},
		{"xy\xF0\x9F\x98", 2},
		{"\xE2\x28\xA1", 0},
		{"\xE2\x82\x28", 0},
		{"\xF0\x9F\x98\x28", 0},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		size_t bad = 99;
		bool ok = ap_str_utf8(rows[i].s, strlen(rows[i].s), &bad);

		ck_assert_msg(ok == (rows[i].bad < 0), "row %zu", i);
		ck_assert_msg(ok || bad == (size_t)rows[i].bad, "row %zu: %zu", i, bad);
	}
}
END_TEST

/* Against the definition: encode every code point and compare with what is accepted. */
START_TEST(utf8_of_every_code_point)
{
	for (uint32_t c = 0x80; c < 0x120000; c++) {
		char s[4];
		size_t bad, n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		bool valid = c < 0x110000 && !(c >= 0xD800 && c <= 0xDFFF);

		for (size_t i = n - 1; i > 0; i--)
			s[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
		s[0] = (char)((0xF00u >> n & 0xFFu) | c >> 6 * (n - 1));
		if (ap_str_utf8(s, n, &bad) != valid)
			ck_abort_msg("U+%04X", (unsigned)c);
	}
}
END_TEST

START_TEST(equal_items_fold)
{
	static const char *const pairs[][2] = {{"", ""}, {"7", "7"}, {"1,1,1,1,1,1,1", "1,1,1,1,1,1,1"},
		{"1,1,1,1,1,1,1,1", "1*8"}, {"0,1,1,1,1,1,1,1,1,1,0", "0,1*9,0"},
		{"2,2,22,22,22,22,22,22,22,22,2,2", "2,2,22*8,2,2"},
		{"-1,-1,-1,-1,-1,-1,-1,-1,1", "-1*8,1"}};
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);

	for (size_t i = 0; i < AP_COUNT(pairs); i++) {
		struct ap_str b;

		ap_str_init(&b, a);
		ap_str_add_folded(&b, pairs[i][0]);
		ck_assert_str_eq(b.s, pairs[i][1]);
	}
	ap_arena_destroy(a);
}
END_TEST
