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

/* *taken: path, if it is such a file, which is then applied. */
static enum ap_status try_file(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into, const char **taken)
{
	bool is_one;

	if (access(path, F_OK) || ap_file_is_folder(path))
		return AP_OK;
	AP_TRY(ap_config_site(ctx, path, uses, into, &is_one));
	*taken = is_one ? path : NULL;
	return AP_OK;
}

enum ap_status ap_site_load(struct ap_ctx *ctx, unsigned uses, struct ap_settings *into, const char **path)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *up = "";

	*path = NULL;
	for (int i = 0; i < MAX_FOLDERS; i++) {
		AP_TRY(try_file(ctx, ap_arena_printf(ctx->arena, "%s" NAME, up), uses, into, path));
		if (*path || ap_file_same(*up ? up : ".", ap_arena_printf(ctx->arena, "%s..", up)))
			break;
		up = ap_arena_printf(ctx->arena, "%s../", up);
	}
	if (*path)
		return AP_OK;
	if (config && *config == '/') /* its specification has others ignored */
		return try_file(ctx, ap_arena_printf(ctx->arena, "%s/autopar-plan/" NAME, config), uses, into,
			path);
	if (home && *home == '/')
		return try_file(ctx, ap_arena_printf(ctx->arena, "%s/.config/autopar-plan/" NAME, home), uses,
			into, path);
	return AP_OK;
}
