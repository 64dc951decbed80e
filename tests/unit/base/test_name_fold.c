/* SPDX-License-Identifier: Apache-2.0 */
/* Names that differ in numbers only, joined. */
#include "base/name_fold.h"
#include "base/vec.h"
#include "emit_test.h"

enum { MOST = 8 };

static const struct {
	const char *name[MOST], *fold[MOST];
	uint32_t n[MOST]; /* items of each fold */
} cases[] = {
	{{"a", "b"}, {"a", "b"}, {1, 1}},
	{{"l0.q", "l1.q", "l2.q"}, {"l[0-2].q"}, {3}},
	{{"l0.q", "l1.q"}, {"l[0,1].q"}, {2}},
	{{"l0.q", "l0.k", "l1.q", "l1.k"}, {"l[0,1].q", "l[0,1].k"}, {2, 2}},
	{{"l3", "l1", "l2", "l7"}, {"l[1-3,7]"}, {4}},
	{{"l0", "l2", "l4", "l6", "l7"}, {"l[0-6/2,7]"}, {5}},
	{{"l5.q", "m5.q"}, {"l5.q", "m5.q"}, {1, 1}},
	/* every combination is there */
	{{"l0.d1", "l0.d2", "l1.d1", "l1.d2"}, {"l[0,1].d[1,2]"}, {4}},
	/* one that has less of them stands apart */
	{{"l0.d1", "l0.d2", "l1.d1", "l1.d2", "l2.d1"}, {"l[0,1].d[1,2]", "l2.d1"}, {4, 1}},
	/* numbers that were only counted on */
	{{"l0/op7", "l1/op19", "l2/op31"}, {"l[0-2]/op*"}, {3}},
	{{"l0/op7", "l0/op8", "l1/op19", "l1/op20"}, {"l[0,1]/op*"}, {4}},
	{{"l0.d1/op4", "l0.d2/op5", "l1.d1/op6", "l1.d2/op7"}, {"l[0,1].d[1,2]/op*"}, {4}},
	/* zeros before a number */
	{{"l08", "l09", "l10"}, {"l[08-10]"}, {3}},
	{{"l8", "l09"}, {"l*"}, {2}},
	/* too long for a number */
	{{"h1234567890123456789", "h1234567890123456788"},
		{"h1234567890123456789", "h1234567890123456788"}, {1, 1}},
	{{"7", "8", "x"}, {"[7,8]", "x"}, {2, 1}},
	{{"a", "a"}, {"a"}, {2}},
};

START_LOOP_TEST(test_names, AP_COUNT(cases))
{
	struct ap_name_item item[MOST];
	struct ap_ctx ctx = new_ctx();
	const struct ap_name_fold *fold;
	uint32_t n = 0, nfold;

	for (; n < MOST && cases[_i].name[n]; n++)
		item[n] = (struct ap_name_item){cases[_i].name[n], ""};
	nfold = ap_name_folds(&ctx, n, item, &fold);
	for (uint32_t i = 0; i < nfold; i++) {
		ck_assert_ptr_nonnull(cases[_i].fold[i]);
		ck_assert_str_eq(fold[i].name, cases[_i].fold[i]);
		ck_assert_uint_eq(fold[i].n, cases[_i].n[i]);
	}
	ck_assert(nfold == MOST || !cases[_i].fold[nfold]);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_only_what_is_alike)
{
	const struct ap_name_item item[] = {{"l0", "a"}, {"l1", "a"}, {"l2", "b"}, {"l3", "a"}};
	struct ap_ctx ctx = new_ctx();
	const struct ap_name_fold *fold;

	ck_assert_uint_eq(ap_name_folds(&ctx, 4, item, &fold), 2);
	ck_assert_str_eq(fold[0].name, "l[0,1,3]");
	ck_assert_uint_eq(fold[0].item[2], 3);
	ck_assert_str_eq(fold[1].name, "l2");
	ck_assert_uint_eq(ap_name_folds(&ctx, 0, NULL, &fold), 0);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_long_lists_end)
{
	struct ap_name_item item[40];
	struct ap_ctx ctx = new_ctx();
	const struct ap_name_fold *fold;

	for (int i = 0; i < 40; i++)
		item[i] = (struct ap_name_item){
			ap_arena_printf(ctx.arena, "l%d", i * (i + 1) / 2 * 3), ""};
	ck_assert_uint_eq(ap_name_folds(&ctx, 40, item, &fold), 1);
	ck_assert_str_eq(fold[0].name, "l[0,3,9,18,30,45,63,84,108,135,165,198,..]");
	ck_assert_uint_eq(fold[0].n, 40);
	free_ctx(&ctx);
}
END_TEST

/* A name of very many numbers must not be gone through by as deep a recursion. */
START_TEST(test_many_numbers)
{
	enum { PAIRS = 200000 };
	struct ap_ctx ctx = new_ctx();
	char *a = ap_arena_alloc(ctx.arena, 2 * PAIRS + 1, 1);
	const struct ap_name_fold *fold;
	char *b;

	for (int i = 0; i < PAIRS; i++)
		memcpy(a + 2 * i, "a1", 2);
	b = ap_arena_strdup(ctx.arena, a);
	b[1] = '2';
	ck_assert_uint_eq(ap_name_folds(&ctx, 2,
				  (const struct ap_name_item[]){{a, ""}, {b, ""}}, &fold),
		1);
	ck_assert_int_eq(strncmp(fold[0].name, "a[1,2]a1a1", 10), 0);
	free_ctx(&ctx);
}
END_TEST

/* How many names a fold without '*' stands for. */
static size_t combinations(const char *name)
{
	size_t all = 1;

	for (const char *s = name; (s = strchr(s, '[')); s++) {
		size_t n = 0;

		for (const char *p = s + 1; *p != ']';) {
			char *end;
			long first = strtol(p, &end, 10), last = first, step = 1;

			if (*end == '-')
				last = strtol(end + 1, &end, 10);
			if (*end == '/')
				step = strtol(end + 1, &end, 10);
			n += (size_t)((last - first) / step) + 1;
			p = *end == ',' ? end + 1 : end;
		}
		all *= n;
	}
	return all;
}

/* Each name is in one fold, and a fold says exactly how many there are. */
static void check_folds(struct ap_ctx *ctx, const struct ap_name_item *item, uint32_t n)
{
	const struct ap_name_fold *fold;
	uint32_t nfold = ap_name_folds(ctx, n, item, &fold), seen = 0;
	bool in[60] = {false};

	for (uint32_t i = 0; i < nfold; i++) {
		if (!strchr(fold[i].name, '*'))
			ck_assert_uint_eq(combinations(fold[i].name), fold[i].n);
		for (uint32_t j = 0; j < fold[i].n; j++, seen++) {
			ck_assert(!in[fold[i].item[j]]);
			ck_assert_str_eq(item[fold[i].item[j]].same, item[fold[i].item[0]].same);
			in[fold[i].item[j]] = true;
		}
	}
	ck_assert_uint_eq(seen, n);
}

START_TEST(test_random_names)
{
	uint64_t random = seed_of_run();
	struct ap_name_item item[60];
	struct ap_ctx ctx = new_ctx();

	for (int round = 0; round < 300; round++) {
		uint32_t n = 0;

		for (unsigned i = 0; i < 60; i++)
			if (next_random(&random) % 4)
				item[n++] = (struct ap_name_item){
					ap_arena_printf(ctx.arena, "a%u.b%u.c%u", i / 20, i / 5 % 4,
						i % 5),
					next_random(&random) % 3 ? "x" : "y"};
		check_folds(&ctx, item, n);
	}
	free_ctx(&ctx);
}
END_TEST
