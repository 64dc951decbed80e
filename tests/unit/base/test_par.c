/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdatomic.h>

#include "base/par.h"

enum { ITEMS = 10000, WORKERS = 300 };

struct shared {
	atomic_int times[ITEMS]; /* each item was done */
	uint64_t result[ITEMS];
	atomic_int busy[WORKERS]; /* calls a worker is in */
	atomic_int most_worker;
	atomic_bool overlap; /* two items at once under one worker's number */
};

static void square(void *user, size_t i, int worker)
{
	struct shared *s = user;
	int seen = atomic_load(&s->most_worker);

	if (atomic_fetch_add(&s->busy[worker], 1))
		atomic_store(&s->overlap, true);
	atomic_fetch_add(&s->times[i], 1);
	s->result[i] = (uint64_t)i * i;
	while (worker > seen && !atomic_compare_exchange_weak(&s->most_worker, &seen, worker))
		;
	atomic_fetch_sub(&s->busy[worker], 1);
}

START_TEST(every_item_once_for_any_number_of_threads)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	static const int jobs[] = {-1, 0, 1, 2, 3, 8, 64, 1000000};

	for (size_t j = 0; j < AP_COUNT(jobs); j++) {
		struct shared *s = calloc(1, sizeof *s);
		int most = jobs[j] < 1 ? 0 : jobs[j] - 1;

		ap_par_for(arena, jobs[j], ITEMS, square, s);
		for (size_t i = 0; i < ITEMS; i++) {
			ck_assert_int_eq(s->times[i], 1);
			ck_assert_uint_eq(s->result[i], (uint64_t)i * i);
		}
		ck_assert_int_le(s->most_worker, most);
		ck_assert_int_lt(s->most_worker, 256);
		ck_assert(!s->overlap);
		free(s);
	}
	ap_arena_destroy(arena);
}
END_TEST

START_TEST(fewer_items_than_threads)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	struct shared *s = calloc(1, sizeof *s);

	ap_par_for(arena, 8, 0, square, s);
	ck_assert_int_eq(s->times[0], 0);
	ap_par_for(arena, 8, 3, square, s);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(s->times[i], i < 3);
	ck_assert_int_le(s->most_worker, 2);
	free(s);
	ap_arena_destroy(arena);
}
END_TEST

struct greedy {
	struct ap_arena *arena, *of[WORKERS];
	atomic_int begun;
	int jobs;
};

static void take_much(void *user, size_t i, int worker)
{
	struct greedy *g = user;

	(void)i;
	atomic_fetch_add(&g->begun, 1);
	ap_arena_alloc(g->of[worker], 1, 100);
	if (worker == g->jobs - 1 || g->begun > ITEMS / 2)
		ap_arena_alloc(g->of[worker], 1, (size_t)1 << 30);
}

static void take_in_threads(void *user)
{
	struct greedy *g = user;

	for (int w = 0; w < g->jobs; w++)
		g->of[w] = ap_arena_create_like(g->arena);
	ap_par_for(g->arena, g->jobs, ITEMS, take_much, g);
	ck_abort_msg("there was memory enough");
}

/* What runs out in any thread does in the caller, when none is at work any more. */
START_TEST(memory_runs_out_in_the_caller)
{
	for (int jobs = 1; jobs <= 8; jobs *= 2) {
		struct ap_arena *a = ap_arena_create(16 << 20, NULL, NULL);
		struct greedy g = {.arena = a, .jobs = jobs};
		struct ap_refusal refusal;

		ck_assert(!ap_arena_try(a, take_in_threads, NULL, &g, &refusal));
		ck_assert_uint_eq(refusal.wanted, (size_t)1 << 30);
		ck_assert_int_ge(g.begun, 1);
		ck_assert_int_le(g.begun, ITEMS);
		ap_arena_destroy(a);
	}
}
END_TEST
