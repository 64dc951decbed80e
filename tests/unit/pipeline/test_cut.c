/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences cut evenly: against all cuts there are. */
#include <math.h>
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
			sum += c->own ? c->own[p][i] : c->weight[i];
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
			round % 3, vital, 0, NULL};
		int64_t other[MOST];
		const int64_t *own[MOST];
		struct value got, least;

		for (uint32_t i = 0; i < n; i++) {
			weight[i] = (int64_t)(random_next(&seed) % (uint64_t)span);
			for (int k = 0; k < 2; k++)
				dear[k][i] = (int64_t)(random_next(&seed) % crossings);
			crossing[i] = dear[random_next(&seed) % 2];
			vital[i] = random_next(&seed) % 3 != 0;
		}
		for (uint32_t i = 0; i < n; i++) { /* a run of a quicker kind */
			other[i] = weight[i] / 3;
			own[i] = random_next(&seed) % 2 ? other : weight;
		}
		cut.own = round % 2 ? own : NULL;
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

enum { MOST_WAYS = 4 };

struct tight { /* a cut under limits, with room for its numbers */
	struct ap_cut cut;
	struct ap_cut_ways ways;
	double time_s[MOST_WAYS][MOST];
	int64_t held[MOST_WAYS][MOST], each[MOST_WAYS][MOST], dear[2][MOST], in_flight[MOST], limit[MOST];
	struct ap_cut_way way[MOST_WAYS];
	const int64_t *crossing[MOST];
	bool vital[MOST];
};

static void make_tight(uint64_t *seed, struct tight *t)
{
	uint32_t n = 2 + (uint32_t)random_below(seed, MOST - 3);
	uint32_t parts = 1 + (uint32_t)random_below(seed, n < 5 ? n : 5);
	uint32_t nway = 1 + (uint32_t)random_below(seed, MOST_WAYS);
	int64_t room = 10 + (int64_t)random_below(seed, 120);

	memset(t, 0, sizeof *t);
	for (uint32_t g = 0; g < nway; g++) { /* each slower and smaller than the one before, as a rule */
		for (uint32_t i = 0; i < n; i++) {
			t->time_s[g][i] = (double)(random_below(seed, 20) + g * 4);
			t->held[g][i] = (int64_t)random_below(seed, 20 / (g + 1));
			t->each[g][i] = (int64_t)random_below(seed, 8 / (g + 1));
		}
		t->way[g] = (struct ap_cut_way){t->time_s[g], t->held[g], t->each[g],
			(int64_t)random_below(seed, 4), (int64_t)random_below(seed, 3)};
	}
	for (uint32_t p = 0; p < parts; p++) {
		t->in_flight[p] = parts - p;
		t->limit[p] = room;
	}
	for (uint32_t i = 0; i < n; i++) {
		for (int k = 0; k < 2; k++)
			t->dear[k][i] = 2 * (int64_t)random_below(seed, 5);
		t->crossing[i] = t->dear[random_below(seed, 2)];
		t->vital[i] = random_below(seed, 4) != 0;
	}
	t->cut = (struct ap_cut){n, parts, NULL, t->crossing, (int)random_below(seed, 3), t->vital, 0};
	t->cut.wanting = (uint32_t)random_below(seed, parts + 1);
	t->ways = (struct ap_cut_ways){nway, t->way, t->in_flight, t->limit, 0.5};
}

/* The least time of a mixture of all ways, by its dual: the best price of a byte is one at which two ways
 * cost the same, or 0. What cannot fit: how many times the limit. */
static double mixed_s(const struct tight *t, uint32_t p, uint32_t first, uint32_t end, double *excess)
{
	double time_s[MOST_WAYS] = {0}, bytes[MOST_WAYS], least = INFINITY, best = -INFINITY;
	uint32_t n = t->ways.nway;

	for (uint32_t g = 0; g < n; g++) {
		int64_t sum = t->way[g].once + (p > 0 ? t->way[g].border * t->in_flight[p] : 0);

		for (uint32_t i = first; i < end; i++) {
			time_s[g] += t->time_s[g][i];
			sum += t->held[g][i] + t->each[g][i] * t->in_flight[p];
		}
		bytes[g] = (double)sum;
		least = fmin(least, bytes[g]);
	}
	*excess = least / (double)t->limit[p];
	if (*excess > 1)
		return INFINITY;
	for (uint32_t g = 0; g < n; g++)
		for (uint32_t h = 0; h < n; h++) {
			double price = g == h ? 0 : (time_s[g] - time_s[h]) / (bytes[h] - bytes[g]);
			double dual = INFINITY;

			if (!(price >= 0 && price < INFINITY))
				continue;
			for (uint32_t k = 0; k < n; k++)
				dual = fmin(dual, time_s[k] + price * (bytes[k] - (double)t->limit[p]));
			best = fmax(best, dual);
		}
	return best;
}

struct tight_value {
	double excess, most_s; /* the largest over a limit, at least 1; the slowest if all fit */
	int64_t sends;
};

static struct tight_value tight_value_of(const struct tight *t, const uint32_t *first)
{
	const struct ap_cut *c = &t->cut;
	struct tight_value v = {1, 0, 0};

	for (uint32_t p = 0; p < c->parts; p++) {
		uint32_t end = p + 1 < c->parts ? first[p + 1] : c->n;
		int64_t before = p > 0 ? c->crossing[p][first[p]] : 0;
		int64_t behind = p + 1 < c->parts ? c->crossing[p + 1][end] : 0;
		double excess, s = mixed_s(t, p, first[p], end, &excess);
		bool vital = false;

		for (uint32_t i = first[p]; i < end; i++)
			vital |= t->vital[i];
		if (p < c->wanting && !vital)
			return (struct tight_value){INFINITY, INFINITY, 0};
		v.excess = fmax(v.excess, excess);
		v.most_s = fmax(v.most_s, s + (double)((before / 2 + behind / 2) * c->halves) * 0.5);
		v.sends += before;
	}
	return v;
}

/* Where some cut fits, the fastest is found; else the one that exceeds least. */
START_LOOP_TEST(best_within_limits, 8)
{
	uint64_t seed = random_seed() + (uint64_t)_i;
	uint32_t fitting = 0, tight = 0;

	for (int round = 0; round < 60; round++) {
		struct tight_value least = {INFINITY, INFINITY, INT64_MAX}, got;
		uint32_t first[MOST] = {0};
		struct tight t;

		make_tight(&seed, &t);
		for (uint32_t mask = 0; mask < UINT32_C(1) << (t.cut.n - 1); mask++) {
			uint32_t at[MOST] = {0}, p = 1;
			struct tight_value v;

			for (uint32_t i = 1; i < t.cut.n; i++)
				if (mask >> (i - 1) & 1 && p < MOST)
					at[p++] = i;
			if (p != t.cut.parts)
				continue;
			v = tight_value_of(&t, at);
			if (v.excess < least.excess - 1e-9 || (v.excess <= least.excess + 1e-9 &&
				(v.most_s < least.most_s - 1e-9 || (v.most_s <= least.most_s + 1e-9 &&
					v.sends < least.sends))))
				least = v;
		}
		if (!ap_cut_possible(&t.cut)) {
			ck_assert(least.excess == INFINITY);
			continue;
		}
		ck_assert(ap_cut_within(&ctx, &t.cut, &t.ways, first));
		got = tight_value_of(&t, first);
		ck_assert_double_eq_tol(got.excess, least.excess, 1e-9);
		if (least.excess > 1) {
			tight++;
			continue;
		}
		fitting++;
		ck_assert_double_eq_tol(got.most_s, least.most_s, 1e-9);
		ck_assert_int_eq(got.sends, least.sends);
	}
	ck_assert_uint_gt(fitting, 0);
	ck_assert_uint_gt(tight, 0);
}
END_TEST

/* 2,000 equal items, of which those in earlier runs take more room: these get fewer, in proportion. */
START_TEST(earlier_runs_hold_more)
{
	enum { N = 2000, PARTS = 4 };
	static double fast_s[N], slow_s[N];
	static int64_t nothing[N], much[N], little[N];
	const int64_t *const crossing[PARTS] = {nothing, nothing, nothing, nothing};
	const int64_t in_flight[PARTS] = {4, 3, 2, 1}, limit[PARTS] = {4000, 4000, 4000, 4000};
	const struct ap_cut_way way[] = {{fast_s, nothing, much, 0, 0}, {slow_s, nothing, little, 0, 0}};
	const struct ap_cut cut = {N, PARTS, NULL, crossing, 0, NULL, 0};
	const struct ap_cut_ways ways = {2, way, in_flight, limit, 0};
	uint32_t first[PARTS];

	for (int i = 0; i < N; i++) {
		fast_s[i] = 1;
		slow_s[i] = 2;
		much[i] = 4;
		little[i] = 1;
	}
	ck_assert(ap_cut_within(&ctx, &cut, &ways, first));
	/* of n items, k in flight, x slow: k (4 n - 3 x) = 4000; n + x is at least 605, for 402, 450, 545, 605 */
	for (int p = 0; p < PARTS; p++) {
		const double even[PARTS] = {402, 450, 545, 605};
		uint32_t n = (p + 1 < PARTS ? first[p + 1] : N) - first[p];
		double x = fmax(0, (4.0 * n - 4000.0 / (PARTS - p)) / 3);

		ck_assert_double_le(n + x, 605 * 1.02);
		ck_assert_double_eq_tol(n, even[p], 24); /* runs begin at some items only */
	}
}
END_TEST
