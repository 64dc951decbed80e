/* SPDX-License-Identifier: Apache-2.0 */
#include "base/par.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"

enum { MAX_WORKERS = 256 };

struct work {
	struct ap_arena *memory;
	ap_par_fn *fn;
	void *user;
	size_t n;
	atomic_size_t next;
};

struct worker {
	struct work *work;
	int id;
	pthread_t thread;
	bool refused;
	struct ap_refusal refusal; /* if refused */
};

static void work_on(void *arg)
{
	struct worker *w = arg;
	struct work *work = w->work;
	size_t i;

	while ((i = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->n)
		work->fn(work->user, i, w->id);
}

/* If memory runs out in one worker, the others take no more items. */
static void *try_to_work(void *arg)
{
	struct worker *w = arg;

	w->refused = !ap_arena_try(w->work->memory, work_on, NULL, w, &w->refusal);
	if (w->refused)
		atomic_store_explicit(&w->work->next, w->work->n, memory_order_relaxed);
	return NULL;
}

void ap_par_for(struct ap_arena *memory, int jobs, size_t n, ap_par_fn *fn, void *user)
{
	struct work work = {.memory = memory, .fn = fn, .user = user, .n = n};
	struct worker workers[MAX_WORKERS];
	int wanted = jobs < MAX_WORKERS ? jobs : MAX_WORKERS, started = 1;

	if (wanted > 1 && n < (size_t)wanted)
		wanted = (int)n;
	workers[0] = (struct worker){.work = &work};
	if (wanted <= 1) {
		work_on(&workers[0]);
		return;
	}
	for (; started < wanted; started++) {
		struct worker *w = &workers[started];

		*w = (struct worker){.work = &work, .id = started};
		if (pthread_create(&w->thread, NULL, try_to_work, w))
			break;
	}
	try_to_work(&workers[0]);
	for (int i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < started; i++)
		if (workers[i].refused)
			ap_arena_refuse(&workers[i].refusal);
}
