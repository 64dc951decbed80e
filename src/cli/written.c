/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/written.h"

#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/outputs.h"
#include "cli/run.h"

enum { HASH = 64 };

static bool is_one(const struct ap_written *w, const char *name, const char *sha256)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].name, name) && !strcmp(w->v[i].sha256, sha256))
			return true;
	return false;
}

void ap_written_add(struct ap_ctx *ctx, struct ap_written *w, const char *name, const char *sha256)
{
	const struct ap_written_file file = {name, sha256};

	if (!is_one(w, name, sha256))
		AP_PUSH(ctx->arena, *w, file);
}

void ap_written_add_text(struct ap_ctx *ctx, struct ap_written *w, const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len < HASH + 3 || strspn(text, "0123456789abcdef") != HASH ||
			strncmp(text + HASH, "  ", 2) != 0)
			continue;
		ap_written_add(ctx, w, ap_arena_strndup(ctx->arena, text + HASH + 2, len - HASH - 2),
			ap_arena_strndup(ctx->arena, text, HASH));
	}
}

const char *ap_written_text(struct ap_ctx *ctx, const struct ap_written *w)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < w->n; i++)
		ap_str_addf(&text, "%s  %s\n", w->v[i].sha256, w->v[i].name);
	return text.s;
}

bool ap_written_has(const struct ap_written *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].name, name))
			return true;
	return false;
}

bool ap_written_is(const struct ap_written *w, const char *name, const char *path)
{
	struct ap_file_sum sum;

	return ap_written_has(w, name) && !ap_file_sum(path, &sum) && is_one(w, name, sum.sha256);
}

enum ap_status ap_written_replace(struct ap_run *run, const struct ap_written *w, const char *name,
	const char *path, const char *sha256)
{
	struct ap_file_sum sum;

	if (ap_file_sum(path, &sum) || !strcmp(sum.sha256, sha256) || is_one(w, name, sum.sha256))
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path}, "file-changed",
		ap_written_has(w, name) ? "was changed after a run had written it, and is replaced"
					: "is not known to be written by a run, and is replaced");
}

enum ap_status ap_written_remove(struct ap_run *run, const struct ap_written *w, const char *name,
	const char *path, bool *gone)
{
	*gone = ap_written_is(w, name, path);
	if (!*gone)
		return AP_OK;
	AP_TRY(ap_out_check_input(run, path));
	return ap_outputs_remove(&run->ctx, run->outputs, path);
}
