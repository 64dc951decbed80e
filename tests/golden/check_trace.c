/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: check_trace FILE: is it the trace of a step that can be? */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "trace.h"

enum { MOST_BYTES = 1 << 30 };

static const char *fault_of(struct ap_ctx *ctx, const char *path, struct trace *t)
{
	struct ap_str said;
	const char *fault;
	char *text;
	size_t len;

	if (ap_file_read(ctx, path, MOST_BYTES, &text, &len) == AP_OK) {
		fault = trace_read(ctx, path, text, len, t);
		return fault ? fault : trace_check(ctx, t);
	}
	ap_str_init(&said, ctx->arena);
	ap_diag_render(ctx->diag, AP_NOTE, 20, &said);
	return said.s;
}

int main(int argc, char **argv)
{
	struct ap_ctx ctx = {.jobs = 1};
	const char *fault;
	struct trace t;

	if (argc != 2)
		return EXIT_FAILURE;
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
	fault = fault_of(&ctx, argv[1], &t);
	if (fault)
		printf("%s: %s\n", argv[1], fault);
	else
		printf("%d stages, %d parts, %d micro-batches, %zu events, %zu flows, %zu "
		       "samples\n",
			(int)t.nstage, (int)t.npart, (int)t.nmicro, t.events.n, t.flows.n,
			t.samples.n);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
	return fault ? EXIT_FAILURE : EXIT_SUCCESS;
}
