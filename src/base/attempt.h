/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a run that may lack memory: they end, and the run goes on with what was there before. */
#ifndef AP_BASE_ATTEMPT_H
#define AP_BASE_ATTEMPT_H

#include <stdbool.h>

#include "base/ctx.h"

/*
 * Runs part(user). False: memory ran out; what it allocated in ctx->arena, where ctx->diag may not be, and in
 * ctx->scratch is gone. What was there before may be half changed, or have grown into what is gone: the
 * caller puts it back, or does without it.
 */
bool ap_attempt(struct ap_ctx *ctx, void (*part)(void *user), void *user);

/* The same with an arena of its own in the place of ctx->arena: it is *made, for the caller to destroy; NULL
 * with false. Before it goes, undo(user) gives back what is not memory; NULL: nothing is. */
bool ap_attempt_apart(struct ap_ctx *ctx, void (*part)(void *user), void (*undo)(void *user), void *user,
	struct ap_arena **made);

#endif
