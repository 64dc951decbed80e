/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel for: results must go to slots by index, so that they do not depend on the number of
 * threads. */
#ifndef AP_BASE_PAR_H
#define AP_BASE_PAR_H

#include <stddef.h>

struct ap_arena;

/* Work on item i; worker in [0, jobs) picks per-thread storage. */
typedef void ap_par_fn(void *user, size_t i, int worker);

/* Calls fn for each i in [0, n), in any order, on at most jobs threads, the caller's included, or
 * fewer if threads cannot be created. Items are dealt one by one. memory: an arena of fn's budget;
 * if it runs out in a thread, it is refused in the caller after all have ended. */
void ap_par_for(struct ap_arena *memory, int jobs, size_t n, ap_par_fn *fn, void *user);

#endif
