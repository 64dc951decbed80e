/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stage_files.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "cli/inputs.h"
#include "cli/kind.h"
#include "cli/outputs.h"
#include "cli/run.h"

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

enum ap_status ap_ckpt_stage_file(struct ap_run *run, const char *path, const struct ap_ckpt *c)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(run, path, &sink));
	if (ap_out_is_json(path))
		ap_ckpt_write_json(c, ap_output_write_fn, &sink);
	else
		ap_ckpt_write_pb(&run->ctx, c, ap_output_write_fn, &sink);
	return AP_OK;
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

static bool is_written(struct ap_run *run, const char *name, const char *suffix, uint32_t n)
{
	for (uint32_t s = 0; s < n; s++)
		if (!strcmp(name, stage_name(run, s, suffix)))
			return true;
	return false;
}

/* What a run of before left, and what is not ours. */
static enum ap_status clear(struct ap_run *run, const char *folder, const char *suffix, uint32_t n)
{
	const char *const *name;
	size_t count;

	AP_TRY(ap_folder_names(&run->ctx, folder, &count, &name));
	for (size_t i = 0; i < count; i++) {
		const char *path = join(run, folder, name[i]);

		if (is_stage_name(name[i]) && !is_written(run, name[i], suffix, n)) {
			AP_TRY(ap_out_check_input(run, path));
			AP_TRY(ap_outputs_remove(&run->ctx, run->outputs, path));
		} else if (!is_stage_name(name[i]) &&
			(ap_file_suffix(name[i], ".ckpt") || ap_file_suffix(name[i], ".json"))) {
			AP_TRY(ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = path}, "stage-files",
				"is no file of this pipeline, but stands where MindSpore's merge "
				"would read it"));
		}
	}
	return AP_OK;
}

enum ap_status ap_ckpt_stage_folder(struct ap_run *run, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage)
{
	AP_TRY(ap_out_folder(run, folder));
	for (uint32_t s = 0; s < n; s++) {
		const char *path = join(run, folder, stage_name(run, s, suffix));

		AP_TRY(ap_out_check_input(run, path));
		AP_TRY(ap_ckpt_check_empty(&run->ctx, path, &stage[s]));
		AP_TRY(ap_ckpt_stage_file(run, path, &stage[s]));
	}
	return clear(run, folder, suffix, n);
}

const char *ap_ckpt_folder(struct ap_run *run, const char *path)
{
	const char *base = ap_file_base(path), *dot = strrchr(base, '.');
	size_t len = dot && dot != base ? (size_t)(dot - path) : strlen(path);

	return ap_arena_printf(run->ctx.arena, "%.*s.stages", (int)len, path);
}
