/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/site.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/config.h"
#include "base/arena.h"
#include "base/ctx.h"
#include "base/file.h"

#define NAME "autopar-plan.json"

enum { MAX_FOLDERS = 256 }; /* above the working folder */

/* *taken: there is such a file, and it was applied. */
static enum ap_status try_file(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into, bool *taken)
{
	if (access(path, F_OK) || ap_file_is_folder(path))
		return AP_OK;
	return ap_config_site(ctx, path, uses, into, taken);
}

enum ap_status ap_site_load(struct ap_ctx *ctx, unsigned uses, struct ap_settings *into)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *up = "";
	bool taken = false;

	for (int i = 0; i < MAX_FOLDERS; i++) {
		AP_TRY(try_file(ctx, ap_arena_printf(ctx->arena, "%s" NAME, up), uses, into, &taken));
		if (taken || ap_file_same(*up ? up : ".", ap_arena_printf(ctx->arena, "%s..", up)))
			break;
		up = ap_arena_printf(ctx->arena, "%s../", up);
	}
	if (taken)
		return AP_OK;
	if (config && *config == '/') /* its specification has others ignored */
		return try_file(ctx, ap_arena_printf(ctx->arena, "%s/autopar-plan/" NAME, config), uses, into,
			&taken);
	if (home && *home == '/')
		return try_file(ctx, ap_arena_printf(ctx->arena, "%s/.config/autopar-plan/" NAME, home), uses,
			into, &taken);
	return AP_OK;
}
