/* SPDX-License-Identifier: Apache-2.0 */
/* Runs parts that may run out of memory; the rest of the run can continue. */
#ifndef AP_BASE_ATTEMPT_H
#define AP_BASE_ATTEMPT_H

#include <stdbool.h>

#include "base/ctx.h"

/* Runs part(user). Returns false if memory ran out: then what it allocated in ctx->arena (where
 * ctx->diag must not be) and ctx->scratch is gone. Older data may be half changed, or may have
 * grown into freed memory: the caller restores or drops it. */
bool ap_attempt(struct ap_ctx *ctx, void (*part)(void *user), void *user);

/* The same with an arena of its own as ctx->arena: *made, which the caller destroys; NULL on
 * failure. Before it is destroyed, undo(user), if not NULL, releases other resources. */
bool ap_attempt_apart(struct ap_ctx *ctx, void (*part)(void *user), void (*undo)(void *user), void *user,
	struct ap_arena **made);

#endif
