/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attempt.h"

#include "base/arena.h"

bool ap_attempt(struct ap_ctx *ctx, void (*part)(void *user), void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->arena), scratch = ap_arena_mark(ctx->scratch);
	struct ap_refusal refusal;

	if (ap_arena_try(ctx->arena, part, NULL, user, &refusal))
		return true;
	ap_arena_release(ctx->arena, mark);
	ap_arena_release(ctx->scratch, scratch);
	return false;
}

struct own { /* its arena is created by the try, so a failure destroys it */
	struct ap_ctx *ctx;
	struct ap_arena *outer;
	void (*part)(void *user), (*undo)(void *user);
	void *user;
};

static void run(void *user)
{
	struct own *o = user;

	o->ctx->arena = ap_arena_create_like(o->outer);
	o->part(o->user);
}

static void undo_own(void *user)
{
	struct own *o = user;

	if (o->undo)
		o->undo(o->user);
}

bool ap_attempt_apart(struct ap_ctx *ctx, void (*part)(void *user), void (*undo)(void *user), void *user,
	struct ap_arena **made)
{
	struct own o = {ctx, ctx->arena, part, undo, user};
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct ap_refusal refusal;
	bool done = ap_arena_try(ctx->arena, run, undo_own, &o, &refusal);

	*made = done ? ctx->arena : NULL;
	ctx->arena = o.outer;
	if (!done)
		ap_arena_release(ctx->scratch, scratch);
	return done;
}
