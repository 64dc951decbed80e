/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel for: results must go to slots by index, so that the number of threads never shows. */
#ifndef AP_BASE_PAR_H
#define AP_BASE_PAR_H

#include <stddef.h>

struct ap_arena;

/* Work on item i; worker in [0, jobs) picks per-thread storage. */
typedef void ap_par_fn(void *user, size_t i, int worker);

/* Calls fn for every i in [0, n), in any order, on at most jobs threads (the caller's included).
 * Items are handed out one at a time. Falls back to fewer threads where none can be had. memory: an arena
 * of the budget that fn allocates from; where that runs out in a thread, it does in the caller, once all
 * have ended. */
void ap_par_for(struct ap_arena *memory, int jobs, size_t n, ap_par_fn *fn, void *user);

#endif
