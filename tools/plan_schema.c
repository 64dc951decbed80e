/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the JSON Schema of the plan file to standard output. */
#include <stdio.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/json_write.h"
#include "planfile/plan_form.h"

static void write_out(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

int main(void)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	struct ap_jw w;

	ap_jw_init(&w, write_out, stdout, 1);
	ap_plan_form_schema(&ctx, &w);
	ap_arena_destroy(ctx.arena);
	return ferror(stdout) || fclose(stdout);
}
