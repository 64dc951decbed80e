/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/operators.md: the same bytes on every machine. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "fault.h"

int main(void)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	struct ap_str text;

	ap_str_init(&text, ctx.arena);
	ex_coverage_write(&ctx, EX_USUAL_SEED, &text);
	fputs(text.s, stdout);
	ap_arena_destroy(ctx.arena);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
