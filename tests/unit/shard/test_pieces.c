/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces from one number of ranks to another, against the elements that each rank has. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "harness.h"
#include "layouts.h"
#include "shard/pieces.h"

enum { MOST_RANKS = 24, MOST_ELEMENTS = 4096 };

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

struct taken {
	const struct ap_pieces_side *from, *to;
	const int64_t *size;
	int64_t pairs[MOST_RANKS][MOST_RANKS];
	int64_t sent[MOST_RANKS]; /* pieces */
	int64_t got[MOST_RANKS][MOST_ELEMENTS];
	int64_t last_to;
};

/* Does the rank have this index of a dimension? By the definition of a layout. */
static bool has(const struct ap_layout *l, const int64_t *size, int64_t rank, const int64_t *at)
{
	for (int d = 0; d < l->rank; d++) {
		int64_t part = l->dim[d].cut > 1 ? rank / l->dim[d].stride % l->dim[d].cut : 0;

		if (at[d] / (size[d] / l->dim[d].cut) != part)
			return false;
	}
	return true;
}

static void take(void *user, const struct ap_piece *p)
{
	struct taken *t = user;
	int rank = t->from->layout->rank;
	int64_t elements = 1;

	ck_assert_int_ge(p->to, t->last_to);
	t->last_to = p->to;
	ck_assert(p->from >= 0 && p->from < t->from->ndev && p->to >= 0 && p->to < t->to->ndev);
	t->pairs[p->from][p->to]++;
	t->sent[p->from]++;
	for (int d = 0; d < rank; d++)
		elements *= p->extent[d];
	ck_assert_int_eq(elements, p->elements);
	for (int64_t i = 0; i < elements; i++) {
		int64_t at[AP_MAX_RANK], rest = i, flat = 0;

		for (int d = rank; d-- > 0; rest /= p->extent[d])
			at[d] = p->start[d] + rest % p->extent[d];
		for (int d = 0; d < rank; d++)
			flat = flat * t->size[d] + at[d];
		ck_assert(has(t->from->layout, t->size, p->from, at));
		ck_assert(has(t->to->layout, t->size, p->to, at));
		t->got[p->to][flat]++;
	}
}

/* Every rank gets each of its elements once, from a rank that has it; of a pair there is one piece at most; of
 * ranks that have the same, none sends two pieces more than another. */
static void check(const struct ap_layout *a, int64_t from_ranks, const struct ap_layout *b, int64_t to_ranks,
	const int64_t *size)
{
	struct ap_mark mark = ap_arena_mark(ctx.scratch);
	struct ap_pieces_side from = {a, from_ranks}, to = {b, to_ranks};
	struct taken *t = AP_NEW(ctx.scratch, struct taken);
	int64_t all = 1;

	*t = (struct taken){.from = &from, .to = &to, .size = size};
	for (int d = 0; d < a->rank; d++)
		all *= size[d];
	ck_assert_int_le(all, MOST_ELEMENTS);
	ap_pieces_each(ctx.scratch, &from, &to, size, take, t);
	for (int64_t r = 0; r < to_ranks; r++)
		for (int64_t i = 0; i < all; i++) {
			int64_t at[AP_MAX_RANK], rest = i;

			for (int d = a->rank; d-- > 0; rest /= size[d])
				at[d] = rest % size[d];
			ck_assert_int_eq(t->got[r][i], has(b, size, r, at));
		}
	for (int64_t r = 0; r < from_ranks; r++) {
		for (int64_t q = 0; q < to_ranks; q++)
			ck_assert_int_le(t->pairs[r][q], 1);
		for (int64_t q = 0; q < r; q++) {
			bool alike = true;

			for (int d = 0; d < a->rank; d++)
				alike &= a->dim[d].cut == 1 || r / a->dim[d].stride % a->dim[d].cut ==
					q / a->dim[d].stride % a->dim[d].cut;
			if (alike)
				ck_assert_int_le(llabs(t->sent[r] - t->sent[q]), 1);
		}
	}
	ap_arena_release(ctx.scratch, mark);
}

START_TEST(two_to_four)
{
	const struct ap_layout rows = {2, {{2, 1}, {1, 0}}}, both = {2, {{2, 2}, {2, 1}}};
	const struct ap_layout whole = {2, {{1, 0}, {1, 0}}}, four = {2, {{4, 1}, {1, 0}}};
	static const int64_t size[] = {4, 6};

	check(&rows, 2, &four, 4, size);
	check(&rows, 2, &both, 4, size);
	check(&whole, 2, &four, 4, size);
	check(&whole, 3, &whole, 4, size);
	check(&four, 4, &rows, 2, size);
	check(&four, 4, &whole, 3, size);
	check(&both, 8, &rows, 6, size);
}
END_TEST

START_TEST(scalars)
{
	const struct ap_layout none = {0};

	check(&none, 5, &none, 3, (int64_t[]){0});
}
END_TEST

START_LOOP_TEST(random_layouts, 8)
{
	static const int64_t ranks[] = {1, 2, 3, 4, 6, 8, 12, 24};
	uint64_t seed = 0x2545f4914f6cdd1du + (uint64_t)_i;

	for (int round = 0; round < 60; round++) {
		int64_t n = ranks[(random_next(&seed) % 8)], m = ranks[(random_next(&seed) % 8)], size[AP_MAX_RANK];
		int rank = 1 + (int)(random_next(&seed) % 3);
		struct ap_layout a = layouts_random(rank, n, &seed), b = layouts_random(rank, m, &seed);
		int64_t all = 1;

		layouts_sizes(&a, &b, (int)(random_next(&seed) % 4), size);
		for (int d = 0; d < rank; d++)
			all *= size[d];
		if (all <= MOST_ELEMENTS)
			check(&a, n, &b, m, size);
	}
}
END_TEST
