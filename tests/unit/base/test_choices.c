/* SPDX-License-Identifier: Apache-2.0 */
/* Several integers in place of one: what is read, what is refused and why, and that what is written reads back. */
#include "base/choices.h"
#include "unit.h"

static struct ap_choices taken(struct ap_arena *arena, const char *text, enum ap_range range)
{
	struct ap_choices c;
	const char *why;

	ck_assert_msg(ap_choices_read(arena, text, -1, 1 << 20, range, &c, &why), "%s: %s", text, why ? why : "");
	return c;
}

START_TEST(lists_and_ranges)
{
	static const struct {
		const char *text;
		enum ap_range range;
		const char *again;
		size_t n;
		int64_t v[8];
	} rows[] = {
		{"4", AP_RANGE_EVERY, "4", 1, {4}},
		{"1,2,4", AP_RANGE_EVERY, "1,2,4", 3, {1, 2, 4}},
		{"1,2,4..8", AP_RANGE_EVERY, "1,2,4..8", 7, {1, 2, 4, 5, 6, 7, 8}},
		{"4,2,1", AP_RANGE_EVERY, "1,2,4", 3, {1, 2, 4}},
		{"1..3,2..4,3", AP_RANGE_EVERY, "1..4", 4, {1, 2, 3, 4}},
		{"7,7", AP_RANGE_EVERY, "7", 1, {7}},
		{"7..7", AP_RANGE_EVERY, "7", 1, {7}},
		{"-1..1", AP_RANGE_EVERY, "-1,0,1", 3, {-1, 0, 1}},
		{"8..64", AP_RANGE_DOUBLINGS, "8..64", 4, {8, 16, 32, 64}},
		{"8..63", AP_RANGE_DOUBLINGS, "8..32", 3, {8, 16, 32}},
		{"3..12", AP_RANGE_DOUBLINGS, "3..12", 3, {3, 6, 12}},
		{"8..15", AP_RANGE_DOUBLINGS, "8", 1, {8}},
		{"-1,0,4..16", AP_RANGE_DOUBLINGS, "-1,0,4..16", 5, {-1, 0, 4, 8, 16}},
		{"1048576", AP_RANGE_NONE, "1048576", 1, {1048576}},
		{"auto", AP_RANGE_EVERY, "auto", 0, {0}},
	};
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_choices c = taken(ctx.arena, rows[i].text, rows[i].range);

		ck_assert_msg(c.n == rows[i].n, "%s", rows[i].text);
		for (size_t k = 0; k < c.n; k++)
			ck_assert_msg(c.v[k] == rows[i].v[k], "%s", rows[i].text);
		ck_assert_str_eq(ap_choices_text(ctx.arena, &c, rows[i].range), rows[i].again);
		ck_assert(c.any == !rows[i].n && ap_choices_has(&c, 5) == (c.any || i == 2));
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(refused)
{
	static const struct {
		const char *text;
		enum ap_range range;
		const char *why;
	} rows[] = {
		{"", AP_RANGE_EVERY, NULL}, {",", AP_RANGE_EVERY, NULL}, {"1,", AP_RANGE_EVERY, NULL},
		{",1", AP_RANGE_EVERY, NULL}, {"1,,2", AP_RANGE_EVERY, NULL}, {"1, 2", AP_RANGE_EVERY, NULL},
		{" 1", AP_RANGE_EVERY, NULL}, {"1 ..2", AP_RANGE_EVERY, NULL}, {"..", AP_RANGE_EVERY, NULL},
		{"1..", AP_RANGE_EVERY, NULL}, {"..2", AP_RANGE_EVERY, NULL}, {"1...2", AP_RANGE_EVERY, NULL},
		{"1..2..3", AP_RANGE_EVERY, NULL}, {"1..2", AP_RANGE_NONE, NULL}, {"-2", AP_RANGE_EVERY, NULL},
		{"1048577", AP_RANGE_EVERY, NULL}, {"1..1048577", AP_RANGE_DOUBLINGS, NULL},
		{"99999999999999999999", AP_RANGE_EVERY, NULL}, {"1..99999999999999999999", AP_RANGE_EVERY, NULL},
		{"auto,1", AP_RANGE_EVERY, NULL}, {"1,auto", AP_RANGE_EVERY, NULL}, {"AUTO", AP_RANGE_EVERY, NULL},
		{"1.5", AP_RANGE_EVERY, NULL}, {"1;2", AP_RANGE_EVERY, NULL},
		{"16..4", AP_RANGE_EVERY, "16..4 goes down"},
		{"1,16..4", AP_RANGE_DOUBLINGS, "16..4 goes down"},
		{"0..4", AP_RANGE_DOUBLINGS, "0 cannot be doubled up to 4"},
		{"-1..4", AP_RANGE_DOUBLINGS, "-1 cannot be doubled up to 4"},
		{"1..4097", AP_RANGE_EVERY, "these are more than 4096 values"},
		{"1..4096,1", AP_RANGE_EVERY, "these are more than 4096 values"},
		{"1..1048576", AP_RANGE_EVERY, "these are more than 4096 values"},
	};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_choices c;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const char *why;

		ck_assert_msg(!ap_choices_read(ctx.arena, rows[i].text, -1, 1 << 20, rows[i].range, &c, &why), "%s",
			rows[i].text);
		ck_assert_msg(rows[i].why ? why && !strcmp(why, rows[i].why) : !why, "%s: %s", rows[i].text,
			why ? why : "no reason");
	}
	c = taken(ctx.arena, "1..4096", AP_RANGE_EVERY);
	ck_assert_uint_eq(c.n, AP_CHOICES_MOST);
	ck_assert_int_eq(c.v[4095], 4096);
	ctx_destroy(&ctx);
}
END_TEST

/* Random sets: what is written reads back, and is no longer than the list of all. */
START_TEST(texts_read_back)
{
	unsigned seed = 7;
	struct ap_ctx ctx = ctx_create(false);

	for (int round = 0; round < 2000; round++) {
		enum ap_range range = round % 2 ? AP_RANGE_EVERY : AP_RANGE_DOUBLINGS;
		struct ap_choices c = {0}, again;
		int64_t v[12];
		size_t plain = 0;
		char word[32];

		for (size_t wanted = 1 + (size_t)(rand_r(&seed) % 12); c.n < wanted; c.n++)
			v[c.n] = round % 3 ? rand_r(&seed) % 14 - 1 : (int64_t)1 << rand_r(&seed) % 20;
		c.n = ap_choices_sort(v, c.n);
		c.v = v;
		for (size_t i = 0; i < c.n; i++) {
			plain += (size_t)snprintf(word, sizeof word, ",%" PRId64, v[i]);
			ck_assert(!i || v[i - 1] < v[i]);
		}
		again = taken(ctx.arena, ap_choices_text(ctx.arena, &c, range), range);
		ck_assert_uint_eq(again.n, c.n);
		ck_assert_int_eq(memcmp(again.v, v, c.n * sizeof *v), 0);
		ck_assert_uint_le(strlen(ap_choices_text(ctx.arena, &c, range)), plain - 1);
	}
	ctx_destroy(&ctx);
}
END_TEST
