/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences cut evenly: against all cuts there are. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "harness.h"
#include "pipeline/cut.h"
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

TEST_FIXTURE(setup, teardown)

struct value {
	int64_t most, crossing;
};

static struct value value_of(const struct ap_cut *c, const uint32_t *first)
{
	struct value v = {0, 0};

	for (uint32_t p = 0; p < c->parts; p++) {
		uint32_t end = p + 1 < c->parts ? first[p + 1] : c->n;
		int64_t before = p > 0 ? c->crossing[p][first[p]] : 0;
		int64_t behind = p + 1 < c->parts ? c->crossing[p + 1][end] : 0;
		int64_t sum = (before / 2 + behind / 2) * c->halves;
		bool vital = false;

		ck_assert_uint_lt(first[p], end);
		for (uint32_t i = first[p]; i < end; i++) {
			sum += c->weight[i];
			vital |= c->vital && c->vital[i];
		}
		if (p < c->wanting && !vital)
			return (struct value){INT64_MAX, INT64_MAX};
		v.most = sum > v.most ? sum : v.most;
		v.crossing += before;
	}
	return v;
}

/* All cuts in lexicographic order, the first best. */
static struct value best_of_all(const struct ap_cut *c, uint32_t *best)
{
	struct value least = {INT64_MAX, INT64_MAX};

	for (uint32_t mask = 0; mask < UINT32_C(1) << (c->n - 1); mask++) {
		uint32_t first[MOST] = {0}, p = 1;
		struct value v;

		for (uint32_t i = 1; i < c->n; i++)
			if (mask >> (c->n - 1 - i) & 1 && p < MOST)
				first[p++] = i;
		if (p != c->parts)
			continue;
		v = value_of(c, first);
		if (v.most > least.most || (v.most == least.most && v.crossing > least.crossing))
			continue;
		least = v; /* a later mask of equal value cuts earlier */
		memcpy(best, first, sizeof first);
	}
	return least;
}

/* Some crossings depend on the run, others do not. */
START_LOOP_TEST(best_of_all_cuts, 16)
{
	uint64_t seed = 0x9e3779b97f4a7c15u + (uint64_t)_i;

	for (int round = 0; round < 60; round++) {
		uint32_t n = 1 + (uint32_t)(random_next(&seed) % (MOST - 1)), first[MOST], best[MOST];
		int64_t weight[MOST], dear[2][MOST], span = (int64_t[]){1, 3, 10, 1000}[_i % 4];
		uint64_t crossings = (uint64_t[]){1, 4, 40, 4000}[_i / 4];
		const int64_t *crossing[MOST];
		bool vital[MOST];
		struct ap_cut cut = {n, 1 + (uint32_t)(random_next(&seed) % n), weight, crossing,
			round % 3, vital, 0};
		struct value got, least;

		for (uint32_t i = 0; i < n; i++) {
			weight[i] = (int64_t)(random_next(&seed) % (uint64_t)span);
			for (int k = 0; k < 2; k++)
				dear[k][i] = (int64_t)(random_next(&seed) % crossings);
			crossing[i] = dear[random_next(&seed) % 2];
			vital[i] = random_next(&seed) % 3 != 0;
		}
		cut.wanting = (uint32_t)(random_next(&seed) % (cut.parts + 1));
		if (!ap_cut_possible(&cut)) {
			ck_assert_int_eq(best_of_all(&cut, best).most, INT64_MAX);
			continue;
		}
		ap_cut_even(&ctx, &cut, first);
		got = value_of(&cut, first);
		least = best_of_all(&cut, best);
		ck_assert_int_eq(got.most, least.most);
		ck_assert_int_eq(got.crossing, least.crossing);
		ck_assert_mem_eq(first, best, cut.parts * sizeof *first);
	}
}
END_TEST

START_TEST(by_hand)
{
	const int64_t weight[] = {4, 1, 1, 4, 1, 1}, even[] = {9, 6, 6, 2, 6, 6}, early[] = {9, 0, 4, 4, 9, 9};
	const int64_t *const same[] = {NULL, even, even}, *const other[] = {NULL, early, even};
	const struct {
		uint32_t parts;
		const int64_t *const *crossing;
		int halves;
		uint32_t first, second;
	} rows[] = {
		{2, same, 2, 3, 0}, /* 6 + 2 | 2 + 6 */
		{3, same, 0, 2, 4}, /* 4 1 | 1 4 | 1 1: all others have a 6 */
		{3, same, 1, 1, 3}, /* 4 + 3 | 3 + 2 + 1 | 1 + 6, before 6 + 1 | 1 + 4 + 3 | 3 + 2 */
		{3, same, 2, 1, 3}, /* 4 + 6 | 6 + 2 + 2 | 2 + 6 */
		{3, other, 2, 1, 3}, /* 4 + 0 | 0 + 2 + 2 | 2 + 6 */
	};
	uint32_t first[4];

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ap_cut_even(&ctx, &(struct ap_cut){6, rows[i].parts, weight, rows[i].crossing,
			rows[i].halves, NULL, 0}, first);
		ck_assert_uint_eq(first[1], rows[i].first);
		ck_assert_uint_eq(rows[i].parts > 2 ? first[2] : 0, rows[i].second);
	}
}
END_TEST

/* A cut that would be even is not made where much goes over it. */
START_TEST(dear_crossings)
{
	const int64_t weight[] = {5, 5, 5, 5}, high[] = {0, 0, 10, 10}, low[] = {0, 0, 5, 10};
	const int64_t *const dear[] = {NULL, high}, *const even[] = {NULL, low};
	uint32_t first[2];

	ap_cut_even(&ctx, &(struct ap_cut){4, 2, weight, dear, 2, NULL, 0}, first);
	ck_assert_uint_eq(first[1], 1); /* 5 | 15 before 10 + 10 | 10 + 10 */
	ap_cut_even(&ctx, &(struct ap_cut){4, 2, weight, dear, 1, NULL, 0}, first);
	ck_assert_uint_eq(first[1], 1); /* 15 | 15 as well, but more goes over it */
	ap_cut_even(&ctx, &(struct ap_cut){4, 2, weight, even, 1, NULL, 0}, first);
	ck_assert_uint_eq(first[1], 2); /* 12 | 12 */
}
END_TEST

/* As many as a model of a hundred thousand operators: in time, and evenly. */
START_LOOP_TEST(long_sequences, 2)
{
	enum { N = 100000, PARTS = 64 };
	int64_t *weight = AP_NEW_N(ctx.arena, int64_t, N), *dear = AP_NEW_N(ctx.arena, int64_t, N);
	int64_t span = _i ? 100000000 : 1000; /* of crossings: little, or as much as a run weighs */
	const int64_t *crossing[PARTS];
	const struct ap_cut cut = {N, PARTS, weight, crossing, 2, NULL, 0};
	uint64_t seed = 88172645463325252u;
	int64_t total = 0, heaviest = 0;
	uint32_t first[PARTS];
	struct value v;

	for (uint32_t i = 0; i < N; i++) {
		weight[i] = (int64_t)(random_next(&seed) % 1000000);
		dear[i] = (int64_t)(random_next(&seed) % (uint64_t)span);
		total += weight[i];
		heaviest = weight[i] > heaviest ? weight[i] : heaviest;
	}
	for (int p = 0; p < PARTS; p++)
		crossing[p] = dear;
	ap_cut_even(&ctx, &cut, first);
	v = value_of(&cut, first);
	ck_assert_int_ge(v.most, total / PARTS);
	ck_assert_int_le(v.most, total / PARTS + heaviest + (_i ? span / 5 : 2 * span));
}
END_TEST

START_TEST(nothing_weighs_anything)
{
	const int64_t weight[5] = {0}, crossing[] = {0, 3, 1, 2, 1}, free[5] = {0};
	const int64_t *const some[] = {NULL, crossing, crossing}, *const none[] = {NULL, free, free};
	uint32_t first[3];

	for (int halves = 0; halves <= 2; halves++) {
		ap_cut_even(&ctx, &(struct ap_cut){5, 3, weight, some, halves, NULL, 0}, first);
		ck_assert_uint_eq(first[1], 2);
		ck_assert_uint_eq(first[2], 4);
		ap_cut_even(&ctx, &(struct ap_cut){5, 3, weight, none, halves, NULL, 0}, first);
		ck_assert_uint_eq(first[1], 1);
		ck_assert_uint_eq(first[2], 2);
	}
}
END_TEST

/* All that may be asked for: no sum overflows. */
START_TEST(as_heavy_as_can_be)
{
	const int64_t half = AP_CUT_MOST / 2, weight[] = {half, half}, crossing[] = {0, AP_CUT_MOST};
	const int64_t *const all[] = {NULL, crossing};
	uint32_t first[2];

	ap_cut_even(&ctx, &(struct ap_cut){2, 2, weight, all, 2, NULL, 0}, first);
	ck_assert_uint_eq(first[1], 1);
}
END_TEST
