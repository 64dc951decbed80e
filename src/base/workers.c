/* SPDX-License-Identifier: Apache-2.0 */
#include "base/workers.h"

#include "base/diag.h"

static const struct ap_mark start; /* of an arena in which there is nothing */

void ap_workers_make(struct ap_ctx *ctx, struct ap_workers *out)
{
	*out = (struct ap_workers){ctx->jobs, AP_NEW_N(ctx->arena, struct ap_worker, ctx->jobs)};
	for (int i = 0; i < out->n; i++) {
		struct ap_worker *w = &out->worker[i];

		w->ctx = *ctx;
		w->ctx.arena = ap_arena_create_like(ctx->arena);
		w->ctx.scratch = ap_arena_create_like(ctx->arena);
		w->kept = ap_arena_create_like(ctx->arena);
		ap_arena_own(ctx->arena, w->ctx.arena);
		ap_arena_own(ctx->arena, w->ctx.scratch);
		ap_arena_own(ctx->arena, w->kept);
		w->ctx.jobs = 1;
		w->ctx.phase = NULL;
		w->ctx.progress = NULL;
	}
}

struct ap_ctx ap_worker_begin(struct ap_worker *w)
{
	struct ap_ctx ctx = w->ctx;

	ctx.diag = ap_diag_create(ctx.arena, false);
	return ctx;
}

void ap_worker_end(struct ap_worker *w)
{
	ap_arena_release(w->ctx.scratch, start);
	ap_arena_release(w->ctx.arena, start);
}

void ap_workers_forget(struct ap_workers *w)
{
	for (int i = 0; i < w->n; i++)
		ap_arena_release(w->worker[i].kept, start);
}
