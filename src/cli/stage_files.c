/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stage_files.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/inputs.h"
#include "cli/kind.h"
#include "cli/outputs.h"
#include "cli/run.h"
#include "cli/written.h"

#define STAGES ".stages"

static enum ap_status fault(struct ap_run *run, enum ap_status st, const char *path, const char *text)
{
	struct ap_where where = {.file = path};

	return ap_diag_add(run->ctx.diag, AP_ERROR, st, &where, NULL, "%s", text);
}

static const char *join(struct ap_run *run, const char *folder, const char *name)
{
	bool slash = *folder && folder[strlen(folder) - 1] == '/';

	return ap_arena_printf(run->ctx.arena, "%s%s%s", folder, slash ? "" : "/", name);
}

static enum ap_status load_file(struct ap_run *run, const char *path, struct ap_ckpt *out)
{
	struct ap_input file;
	bool json;

	AP_TRY(ap_input_read(run, path, &file));
	AP_TRY(ap_kind_check(run, &file));
	json = strcmp(path, "-") ? ap_out_is_json(path) : ap_kind_is_json(&file);
	return ap_ckpt_read(&run->ctx, file.path, file.text, file.len, json, out);
}

struct paths {
	const char **v;
	size_t n, cap;
};

/* The files of a folder that MindSpore would merge. */
static enum ap_status find_files(struct ap_run *run, const char *folder, struct paths *out)
{
	const char *const *name;
	size_t n, json = 0;

	AP_TRY(ap_folder_names(&run->ctx, folder, &n, &name));
	for (size_t i = 0; i < n; i++) {
		bool is_json = ap_file_suffix(name[i], ".json");

		if (!is_json && !ap_file_suffix(name[i], ".ckpt"))
			continue;
		json += is_json;
		AP_PUSH(run->ctx.arena, *out, join(run, folder, name[i]));
	}
	if (!out->n)
		return fault(run, AP_MEANING, folder, "is a folder without files in .ckpt or .json");
	if (json && json < out->n)
		return fault(run, AP_MEANING, folder,
			"holds files in .ckpt and in .json; MindSpore merges those of one form only");
	return AP_OK;
}

static enum ap_status load_part(struct ap_run *run, const char *path, struct ap_ckpt *out)
{
	struct ap_known file;

	AP_TRY(ap_kind_read(run, path, &file));
	if (file.kind != AP_KIND_STRATEGY)
		return fault(run, AP_MEANING, path, ap_arena_printf(run->ctx.arena,
			"is %s; expected the strategy checkpoint of a pipeline stage",
			ap_kind_text(file.kind)));
	return ap_ckpt_read(&run->ctx, file.in.path, file.in.text, file.in.len, ap_out_is_json(path),
		out);
}

enum ap_status ap_ckpt_load(struct ap_run *run, const char *path, struct ap_ckpt *out)
{
	struct paths files = {0};
	struct ap_ckpt *part;

	if (!ap_file_is_folder(path))
		return load_file(run, path, out);
	AP_TRY(find_files(run, path, &files));
	part = AP_NEW_N(run->ctx.arena, struct ap_ckpt, files.n);
	for (size_t i = 0; i < files.n; i++)
		AP_TRY(load_part(run, files.v[i], &part[i]));
	if (files.n > 1)
		AP_TRY(ap_ckpt_merge(&run->ctx, (uint32_t)files.n, part, out));
	else
		*out = *part;
	out->file = path;
	return AP_OK;
}

static enum ap_status stage_file(struct ap_run *run, const char *path, const struct ap_ckpt *c,
	struct ap_output_sink *sink)
{
	AP_TRY(ap_out_open(run, path, sink));
	if (ap_out_is_json(path))
		ap_ckpt_write_json(c, ap_output_write_fn, sink);
	else
		ap_ckpt_write_pb(&run->ctx, c, ap_output_write_fn, sink);
	return AP_OK;
}

enum ap_status ap_ckpt_stage_file(struct ap_run *run, const char *path, const struct ap_ckpt *c)
{
	struct ap_output_sink sink;

	return stage_file(run, path, c, &sink);
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

static const char *stage_name(struct ap_run *run, uint32_t stage, const char *suffix)
{
	return ap_arena_printf(run->ctx.arena, "stage_%" PRIu32 "%s", stage, suffix);
}

/* One file of the folder that is not among those of this run: it goes, or a warning says why it stays. */
static enum ap_status clear_file(struct ap_run *run, const char *path, const char *name,
	const struct ap_written *older)
{
	bool gone;

	AP_TRY(ap_written_remove(run, older, name, path, &gone));
	if (gone || (!ap_file_suffix(path, ".ckpt") && !ap_file_suffix(path, ".json")))
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path}, "stage-files",
		"is no file of this pipeline%s, but stands where MindSpore's merge would read it",
		!is_stage_name(ap_file_base(path)) ? ""
		: ap_written_has(older, name)      ? ", and was changed after a run had written it"
						   : ", and is not known to be written by a run");
}

enum ap_status ap_ckpt_clear_folder(struct ap_run *run, const char *folder, const char *prefix,
	const struct ap_written *older, const struct ap_written *written)
{
	const char *const *name;
	size_t count;

	AP_TRY(ap_folder_names(&run->ctx, folder, &count, &name));
	for (size_t i = 0; i < count; i++) {
		const char *known = ap_arena_printf(run->ctx.arena, "%s%s", prefix, name[i]);

		if (!ap_written_has(written, known))
			AP_TRY(clear_file(run, join(run, folder, name[i]), known, older));
	}
	return AP_OK;
}

enum ap_status ap_ckpt_stage_files(struct ap_run *run, const char *folder, const char *prefix,
	const char *suffix, uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older,
	ap_ckpt_staged_fn *staged, void *user)
{
	AP_TRY(ap_out_folder(run, folder));
	for (uint32_t s = 0; s < n; s++) {
		const char *name = stage_name(run, s, suffix);
		const char *known = ap_arena_printf(run->ctx.arena, "%s%s", prefix, name);
		const char *path = join(run, folder, name);
		struct ap_output_sink sink;
		struct ap_file_sum sum;

		AP_TRY(ap_out_check_input(run, path));
		AP_TRY(ap_ckpt_check_empty(&run->ctx, path, &stage[s]));
		AP_TRY(stage_file(run, path, &stage[s], &sink));
		ap_outputs_sum(sink.o, sink.id, &sum);
		if (older)
			AP_TRY(ap_written_replace(run, older, known, path, sum.sha256));
		staged(user, known, &sum);
	}
	return AP_OK;
}

struct listing {
	struct ap_run *run;
	struct ap_written written;
};

static void list(void *user, const char *name, const struct ap_file_sum *sum)
{
	struct listing *l = user;

	ap_written_add(&l->run->ctx, &l->written, name, ap_arena_strdup(l->run->ctx.arena, sum->sha256));
}

enum ap_status ap_ckpt_stage_folder(struct ap_run *run, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older)
{
	static const struct ap_written nothing;
	struct listing l = {.run = run};

	AP_TRY(ap_ckpt_stage_files(run, folder, "", suffix, n, stage, older, list, &l));
	return ap_ckpt_clear_folder(run, folder, "", older ? older : &nothing, &l.written);
}

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

/* The stage files that make up a merged file, if it is one, as a run wrote them. */
static void add_parts(struct ap_run *run, const char *path, struct ap_written *out)
{
	bool json = ap_out_is_json(path);
	struct ap_ckpt merged, *stage;
	size_t len;
	char *text;
	uint32_t n;

	if (ap_file_read(&run->ctx, path, AP_FILE_MAX_BYTES, &text, &len) != AP_OK ||
		ap_ckpt_read(&run->ctx, path, text, len, json, &merged) != AP_OK ||
		!ap_ckpt_is_merged(&merged) || ap_ckpt_split(&run->ctx, &merged, &n, &stage) != AP_OK)
		return;
	for (uint32_t s = 0; s < n; s++) {
		char *sha256 = ap_arena_alloc(run->ctx.arena, 65, 1);
		struct ap_str bytes;

		ap_str_init(&bytes, run->ctx.arena);
		if (json)
			ap_ckpt_write_json(&stage[s], add_text, &bytes);
		else
			ap_ckpt_write_pb(&run->ctx, &stage[s], add_text, &bytes);
		ap_sha256_hex(bytes.s, bytes.len, sha256);
		ap_written_add(&run->ctx, out, stage_name(run, s, json ? ".json" : ".ckpt"), sha256);
	}
}

void ap_ckpt_written(struct ap_run *run, const char *path, struct ap_written *out)
{
	static const char *const ends[] = {".ckpt", ".json", ""};
	const char *folder = ap_ckpt_folder(run, path);
	struct ap_diag *real = run->ctx.diag;

	if (!ap_file_is_folder(folder))
		return;
	run->ctx.diag = ap_diag_create(run->ctx.arena, false); /* what cannot be read says nothing */
	add_parts(run, path, out);
	for (size_t i = 0; i < AP_COUNT(ends); i++) {
		const char *other = ap_arena_printf(run->ctx.arena, "%.*s%s",
			(int)(strlen(folder) - strlen(STAGES)), folder, ends[i]);

		if (strcmp(other, path) != 0 && access(other, R_OK) == 0)
			add_parts(run, other, out);
	}
	run->ctx.diag = real;
}

const char *ap_ckpt_folder(struct ap_run *run, const char *path)
{
	const char *base = ap_file_base(path), *dot = strrchr(base, '.');
	size_t len = dot && dot != base ? (size_t)(dot - path) : strlen(path);

	return ap_arena_printf(run->ctx.arena, "%.*s" STAGES, (int)len, path);
}
