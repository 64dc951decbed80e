/* SPDX-License-Identifier: Apache-2.0 */
/* How slices are dealt to ranks: worked examples, and random slices dealt element by element. */
#include "bound.h"
#include "harness.h"
#include "shard/dealing.h"

enum { MOST_RANKS = 24 };

/* A weight of 1001 x 8: 1001 = 3 x 251 + 248, 8008 = 4 x 2002. */
START_TEST(by_hand)
{
	const int64_t weight[] = {1001, 8}, words[] = {50257, 4}, few[] = {3, 8}, bias[] = {7};

	ck_assert_int_eq(ap_dealing_part(AP_DEALING_ROWS, 2, weight, 4), 0);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_PADDED_ROWS, 2, weight, 4), 251 * 8);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_FLAT, 2, weight, 4), 2002);
	/* rows that divide are rows to all */
	for (enum ap_dealing rule = AP_DEALING_ROWS; rule <= AP_DEALING_FLAT; rule++) {
		ck_assert_int_eq(ap_dealing_part(rule, 2, weight, 7), 143 * 8);
		ck_assert_int_eq(ap_dealing_part(rule, 2, weight, 1), 8008);
		ck_assert_int_eq(ap_dealing_part(rule, 0, NULL, 4), 0);
	}
	/* 8 x 6283 = 50264 rows; 201028 elements, 25128.5 each */
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_PADDED_ROWS, 2, words, 8), 6283 * 4);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_FLAT, 2, words, 8), 25129);
	/* fewer rows than ranks: the last ones have none, or a part of a row each */
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_PADDED_ROWS, 2, few, 4), 8);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_FLAT, 2, few, 4), 6);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_FLAT, 1, bias, 4), 2);
	ck_assert_int_eq(ap_dealing_part(AP_DEALING_PADDED_ROWS, 1, bias, 4), 2);
}
END_TEST

START_TEST(rows_that_parts_begin_with)
{
	const int64_t weight[] = {1001, 8}, few[] = {3, 8};

	for (int64_t i = 0; i < 4; i++)
		ck_assert_int_eq(ap_dealing_first_row(2, weight, 251 * 8, i), i * 251);
	ck_assert_int_eq(ap_dealing_first_row(2, weight, 251 * 8, 4), 1001);
	ck_assert_int_eq(ap_dealing_first_row(2, weight, 2002, 1), 250); /* of which 2 elements are the first's */
	ck_assert_int_eq(ap_dealing_first_row(2, weight, 2002, 4), 1001);
	ck_assert_int_eq(ap_dealing_first_row(2, few, 8, 3), 3);
	ck_assert_int_eq(ap_dealing_first_row(2, few, 8, 4), 3);
	ck_assert_int_eq(ap_dealing_first_row(2, few, 6, 1), 0);
}
END_TEST

/* Deals unit after unit to ranks in turns as cards, so many each, then counts what each has. */
static int64_t most_of_a_rank(int64_t units, int64_t ranks, int64_t each, int64_t held[MOST_RANKS])
{
	int64_t most = 0;

	for (int64_t r = 0; r < ranks; r++)
		held[r] = 0;
	for (int64_t u = 0, r = 0; u < units; u++) {
		while (held[r] == each)
			r++;
		REQUIRE(r < ranks);
		most = ++held[r] > most ? held[r] : most;
	}
	return most;
}

/* The smallest number each, tried from one on, with which all units find a place. */
static int64_t fewest_each(int64_t units, int64_t ranks)
{
	int64_t each = 1;

	while (each * ranks < units)
		each++;
	return each;
}

static int64_t below(uint64_t *rng, uint64_t n)
{
	return (int64_t)(random_next(rng) % n);
}

START_TEST(random_slices)
{
	uint64_t rng = random_seed("random_slices");

	for (int n = 0; n < 3000; n++) {
		int rank = 1 + (int)below(&rng, 3);
		int64_t slice[3] = {1 + below(&rng, 40), 1 + below(&rng, 9), 1 + below(&rng, 9)};
		int64_t ranks = 1 + below(&rng, MOST_RANKS), row = 1, held[MOST_RANKS];

		for (int d = 1; d < rank; d++)
			row *= slice[d];
		for (enum ap_dealing rule = AP_DEALING_ROWS; rule <= AP_DEALING_FLAT; rule++) {
			int64_t part = ap_dealing_part(rule, rank, slice, ranks), unit = row, units = slice[0];
			int64_t all = 0;

			if (slice[0] % ranks != 0 && rule == AP_DEALING_ROWS) {
				REQUIRE(part == 0);
				continue;
			}
			if (slice[0] % ranks != 0 && rule == AP_DEALING_FLAT) {
				unit = 1;
				units = slice[0] * row;
			}
			REQUIRE(part == fewest_each(units, ranks) * unit);
			REQUIRE(most_of_a_rank(units, ranks, part / unit, held) * unit == part);
			/* what ranks hold are the elements from part to part, and the rows that begin there */
			for (int64_t r = 0; r < ranks; r++) {
				int64_t first = ap_dealing_first_row(rank, slice, part, r);

				REQUIRE(first == (all == slice[0] * row ? slice[0] : all / row));
				REQUIRE(all == (r * part < slice[0] * row ? r * part : slice[0] * row));
				all += held[r] * unit;
			}
			REQUIRE(all == slice[0] * row);
			REQUIRE(ap_dealing_first_row(rank, slice, part, ranks) == slice[0]);
		}
	}
}
END_TEST
