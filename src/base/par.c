/* SPDX-License-Identifier: Apache-2.0 */
#include "base/par.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_WORKERS = 256 };

struct work {
	ap_par_fn *fn;
	void *user;
	size_t n;
	atomic_size_t next;
};

struct worker {
	struct work *work;
	int id;
	pthread_t thread;
};

static void *work_on(void *arg)
{
	struct worker *w = arg;
	struct work *work = w->work;
	size_t i;

	while ((i = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->n)
		work->fn(work->user, i, w->id);
	return NULL;
}

void ap_par_for(int jobs, size_t n, ap_par_fn *fn, void *user)
{
	struct work work = {.fn = fn, .user = user, .n = n};
	struct worker workers[MAX_WORKERS];
	int wanted = jobs < MAX_WORKERS ? jobs : MAX_WORKERS, started = 1;

	if (wanted > 1 && n < (size_t)wanted)
		wanted = (int)n;
	workers[0] = (struct worker){.work = &work};
	for (; started < wanted; started++) {
		struct worker *w = &workers[started];

		*w = (struct worker){.work = &work, .id = started};
		if (pthread_create(&w->thread, NULL, work_on, w))
			break;
	}
	work_on(&workers[0]);
	for (int i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
}
