/* SPDX-License-Identifier: Apache-2.0 */
#include "api/stage_files.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_pb.h"

#define STAGES ".stages"

static enum ap_status stage_file(struct ap_writing *to, const char *path, const struct ap_ckpt *c,
	struct ap_output_sink *sink)
{
	AP_TRY(ap_out_open(to, path, sink));
	if (ap_path_is_json(path))
		ap_ckpt_write_json(c, ap_output_write_fn, sink);
	else
		ap_ckpt_write_pb(to->ctx, c, ap_output_write_fn, sink);
	return AP_OK;
}

enum ap_status ap_ckpt_stage_file(struct ap_writing *to, const char *path, const struct ap_ckpt *c)
{
	struct ap_output_sink sink;

	return stage_file(to, path, c, &sink);
}

/* Is this the name of a stage file in either form? */
static bool is_stage_name(const char *name)
{
	size_t digits;

	if (strncmp(name, "stage_", 6) != 0)
		return false;
	digits = strspn(name + 6, "0123456789");
	return digits && (!strcmp(name + 6 + digits, ".ckpt") || !strcmp(name + 6 + digits, ".json"));
}

static const char *stage_name(struct ap_arena *arena, uint32_t stage, const char *suffix)
{
	return ap_arena_printf(arena, "stage_%" PRIu32 "%s", stage, suffix);
}

/* Removes a file of the folder that this run did not write, or warns why it stays. */
static enum ap_status clear_file(struct ap_writing *to, const char *path, const char *name,
	const struct ap_written *older)
{
	bool gone;

	AP_TRY(ap_written_remove(to, older, name, path, &gone));
	if (gone || (!ap_file_suffix(path, ".ckpt") && !ap_file_suffix(path, ".json")))
		return AP_OK;
	return ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path}, "stage-files",
		"is no file of this pipeline%s, but stands where MindSpore's merge would read it",
		!is_stage_name(ap_file_base(path)) ? ""
		: ap_written_has(older, name)      ? ", and was changed after a run had written it"
						   : ", and is not known to be written by a run");
}

/* Removes files that are not in written if they are in older; warns about others that MindSpore
 * would merge. */
static enum ap_status clear_folder(struct ap_writing *to, const char *folder,
	const struct ap_written *older, const struct ap_written *written)
{
	const char *const *name;
	size_t count;

	AP_TRY(ap_folder_names(to->ctx, folder, &count, &name));
	for (size_t i = 0; i < count; i++)
		if (!ap_written_has(written, name[i]))
			AP_TRY(clear_file(to, ap_path_join(to->ctx->arena, folder, name[i]), name[i], older));
	return AP_OK;
}

enum ap_status ap_ckpt_stage_files(struct ap_writing *to, const char *folder, const char *prefix,
	const char *suffix, uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older,
	ap_ckpt_staged_fn *staged, void *user)
{
	AP_TRY(ap_out_folder(to, folder));
	for (uint32_t s = 0; s < n; s++) {
		const char *name = stage_name(to->ctx->arena, s, suffix);
		const char *known = ap_arena_printf(to->ctx->arena, "%s%s", prefix, name);
		const char *path = ap_path_join(to->ctx->arena, folder, name);
		struct ap_output_sink sink;
		struct ap_file_sum sum;

		AP_TRY(ap_out_check_input(to, path));
		AP_TRY(ap_ckpt_check_empty(to->ctx, path, &stage[s]));
		AP_TRY(stage_file(to, path, &stage[s], &sink));
		ap_outputs_sum(sink.o, sink.id, &sum);
		if (older)
			AP_TRY(ap_written_replace(to, older, known, path, sum.sha256));
		staged(user, known, &sum);
	}
	return AP_OK;
}

struct listing {
	struct ap_ctx *ctx;
	struct ap_written written;
};

static void list(void *user, const char *name, const struct ap_file_sum *sum)
{
	struct listing *l = user;

	ap_written_add(l->ctx, &l->written, name, ap_arena_strdup(l->ctx->arena, sum->sha256));
}

enum ap_status ap_ckpt_stage_folder(struct ap_writing *to, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older)
{
	static const struct ap_written nothing;
	struct listing l = {.ctx = to->ctx};

	AP_TRY(ap_ckpt_stage_files(to, folder, "", suffix, n, stage, older, list, &l));
	return clear_folder(to, folder, older ? older : &nothing, &l.written);
}

/* Adds the stage files that make up a merged file, as a run wrote them. */
static void add_parts(struct ap_ctx *ctx, const char *path, struct ap_written *out)
{
	bool json = ap_path_is_json(path);
	struct ap_ckpt merged, *stage;
	size_t len;
	char *text;
	uint32_t n;

	if (ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &text, &len) != AP_OK ||
		ap_ckpt_read(ctx, path, text, len, json, &merged) != AP_OK ||
		!ap_ckpt_is_merged(&merged) || ap_ckpt_split(ctx, &merged, &n, &stage) != AP_OK)
		return;
	for (uint32_t s = 0; s < n; s++) {
		char *sha256 = ap_arena_alloc(ctx->arena, AP_SHA256_HEX + 1, 1);
		struct ap_str bytes;

		ap_str_init(&bytes, ctx->arena);
		if (json)
			ap_ckpt_write_json(&stage[s], ap_str_take, &bytes);
		else
			ap_ckpt_write_pb(ctx, &stage[s], ap_str_take, &bytes);
		ap_sha256_hex(bytes.s, bytes.len, sha256);
		ap_written_add(ctx, out, stage_name(ctx->arena, s, json ? ".json" : ".ckpt"), sha256);
	}
}

void ap_ckpt_written(struct ap_ctx *ctx, const char *path, struct ap_written *out)
{
	static const char *const ends[] = {".ckpt", ".json", ""};
	const char *folder = ap_ckpt_folder(ctx->arena, path);
	struct ap_ctx quiet = ap_diag_apart(ctx); /* unreadable files are ignored silently */

	if (!ap_file_is_folder(folder))
		return;
	add_parts(&quiet, path, out);
	for (size_t i = 0; i < AP_COUNT(ends); i++) {
		const char *other = ap_arena_printf(ctx->arena, "%.*s%s",
			(int)(strlen(folder) - strlen(STAGES)), folder, ends[i]);

		if (strcmp(other, path) != 0 && access(other, R_OK) == 0)
			add_parts(&quiet, other, out);
	}
}

const char *ap_ckpt_folder(struct ap_arena *arena, const char *path)
{
	const char *base = ap_file_base(path), *dot = strrchr(base, '.');
	size_t len = dot && dot != base ? (size_t)(dot - path) : strlen(path);

	return ap_arena_printf(arena, "%.*s" STAGES, (int)len, path);
}
