/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of threads that work apart from each other (base/par.h), each with arenas of its own. */
#ifndef AP_BASE_WORKERS_H
#define AP_BASE_WORKERS_H

#include "base/arena.h"
#include "base/ctx.h"

struct ap_worker {
	struct ap_ctx ctx; /* of one job, without phases */
	struct ap_arena *kept; /* for what a piece of work leaves to its caller */
};

struct ap_workers {
	int n; /* jobs of the context that they are made from */
	struct ap_worker *worker; /* [n] */
};

/* Makes the contexts; ctx->arena owns them. */
void ap_workers_make(struct ap_ctx *ctx, struct ap_workers *out);

/* A context for a piece of work, with a sink of messages of its own. ap_worker_end() frees all that it has
 * allocated and said, but for what is in `kept`. */
struct ap_ctx ap_worker_begin(struct ap_worker *w);
void ap_worker_end(struct ap_worker *w);

/* Empties `kept` of all, once it was collected. */
void ap_workers_forget(struct ap_workers *w);

#endif
