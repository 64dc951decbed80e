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
	static const int jobs[] = {-1, 0, 1, 2, 3, 8, 64, 1000000};

	for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
		struct shared *s = calloc(1, sizeof *s);
		int most = jobs[j] < 1 ? 0 : jobs[j] - 1;

		ap_par_for(jobs[j], ITEMS, square, s);
		for (size_t i = 0; i < ITEMS; i++) {
			ck_assert_int_eq(s->times[i], 1);
			ck_assert_uint_eq(s->result[i], (uint64_t)i * i);
		}
		ck_assert_int_le(s->most_worker, most);
		ck_assert_int_lt(s->most_worker, 256);
		ck_assert(!s->overlap);
		free(s);
	}
}
END_TEST

START_TEST(fewer_items_than_threads)
{
	struct shared *s = calloc(1, sizeof *s);

	ap_par_for(8, 0, square, s);
	ck_assert_int_eq(s->times[0], 0);
	ap_par_for(8, 3, square, s);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(s->times[i], i < 3);
	ck_assert_int_le(s->most_worker, 2);
	free(s);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		every_item_once_for_any_number_of_threads,
		fewer_items_than_threads,
	};

	return RUN_TESTS("par", tests);
}
