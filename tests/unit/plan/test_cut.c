/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences cut evenly: against all cuts there are. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "plan/cut.h"
#include "unit.h"

enum { MOST = 12 };

static struct ap_ctx ctx;

static void setup(void)
{
	ctx = (struct ap_ctx){.jobs = 1};
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
}

static void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

struct value {
	int64_t most, crossing;
};

static struct value value_of(uint32_t n, const int64_t *weight, const int64_t *crossing, uint32_t parts,
	const uint32_t *first)
{
	struct value v = {0, 0};

	for (uint32_t p = 0; p < parts; p++) {
		uint32_t end = p + 1 < parts ? first[p + 1] : n;
		int64_t sum = 0;

		ck_assert_uint_lt(first[p], end);
		for (uint32_t i = first[p]; i < end; i++)
			sum += weight[i];
		v.most = sum > v.most ? sum : v.most;
		v.crossing += p > 0 ? crossing[first[p]] : 0;
	}
	return v;
}

/* All cuts in lexicographic order, the first best. */
static struct value best_of_all(uint32_t n, const int64_t *weight, const int64_t *crossing,
	uint32_t parts, uint32_t *best)
{
	struct value least = {INT64_MAX, INT64_MAX};

	for (uint32_t mask = 0; mask < UINT32_C(1) << (n - 1); mask++) {
		uint32_t first[MOST] = {0}, p = 1;
		struct value v;

		for (uint32_t i = 1; i < n; i++)
			if (mask >> (n - 1 - i) & 1 && p < MOST)
				first[p++] = i;
		if (p != parts)
			continue;
		v = value_of(n, weight, crossing, parts, first);
		if (v.most > least.most || (v.most == least.most && v.crossing > least.crossing))
			continue;
		least = v; /* a later mask of equal value cuts earlier */
		memcpy(best, first, sizeof first);
	}
	return least;
}

START_TEST(best_of_all_cuts)
{
	uint64_t seed = 0x9e3779b97f4a7c15u + (uint64_t)_i;

	for (int round = 0; round < 40; round++) {
		uint32_t n = 1 + (uint32_t)(random_next(&seed) % (MOST - 1));
		uint32_t parts = 1 + (uint32_t)(random_next(&seed) % n), first[MOST], best[MOST];
		int64_t weight[MOST], crossing[MOST], span = (int64_t[]){1, 3, 10, 1000}[_i % 4];
		struct value got, least;

		for (uint32_t i = 0; i < n; i++) {
			weight[i] = (int64_t)(random_next(&seed) % (uint64_t)span);
			crossing[i] = (int64_t)(random_next(&seed) % 4);
		}
		ap_cut_even(&ctx, n, weight, crossing, parts, first);
		got = value_of(n, weight, crossing, parts, first);
		least = best_of_all(n, weight, crossing, parts, best);
		ck_assert_int_eq(got.most, least.most);
		ck_assert_int_eq(got.crossing, least.crossing);
		ck_assert_mem_eq(first, best, parts * sizeof *first);
	}
}
END_TEST

START_TEST(by_hand)
{
	const int64_t weight[] = {4, 1, 1, 4, 1, 1}, crossing[] = {9, 5, 5, 2, 5, 5};
	uint32_t first[4];

	ap_cut_even(&ctx, 6, weight, crossing, 2, first);
	ck_assert_uint_eq(first[1], 3);
	ap_cut_even(&ctx, 6, weight, crossing, 3, first);
	ck_assert_uint_eq(first[1], 2); /* 4 1 | 1 4 | 1 1: all others have a 6 */
	ck_assert_uint_eq(first[2], 4);
}
END_TEST

/* As many as a model of a hundred thousand operators: in time, and evenly. */
START_TEST(long_sequences)
{
	enum { N = 100000, PARTS = 64 };
	int64_t *weight = AP_NEW_N(ctx.arena, int64_t, N), *crossing = AP_NEW_N(ctx.arena, int64_t, N);
	uint64_t seed = 88172645463325252u;
	int64_t total = 0, heaviest = 0;
	uint32_t first[PARTS];
	struct value v;

	for (uint32_t i = 0; i < N; i++) {
		weight[i] = (int64_t)(random_next(&seed) % 1000000);
		crossing[i] = (int64_t)(random_next(&seed) % 1000);
		total += weight[i];
		heaviest = weight[i] > heaviest ? weight[i] : heaviest;
	}
	ap_cut_even(&ctx, N, weight, crossing, PARTS, first);
	v = value_of(N, weight, crossing, PARTS, first);
	ck_assert_int_ge(v.most, total / PARTS);
	ck_assert_int_le(v.most, total / PARTS + heaviest);
}
END_TEST

START_TEST(nothing_weighs_anything)
{
	const int64_t weight[5] = {0}, crossing[] = {0, 3, 1, 2, 1};
	uint32_t first[3];

	ap_cut_even(&ctx, 5, weight, crossing, 3, first);
	ck_assert_uint_eq(first[1], 2);
	ck_assert_uint_eq(first[2], 4);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("cut");
	Suite *s = suite_create("cut");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, best_of_all_cuts, 0, 16);
	tcase_add_test(tc, by_hand);
	tcase_add_test(tc, long_sequences);
	tcase_add_test(tc, nothing_weighs_anything);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
