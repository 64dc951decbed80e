/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/run.h"
#include "cli/stage_files.h"
#include "emit/bundle.h"

static enum ap_status fault(
	struct ap_run *run, enum ap_status st, const char *path, const char *text)
{
	struct ap_where where = {.file = path};

	return ap_diag_add(run->ctx.diag, AP_ERROR, st, &where, NULL, "%s", text);
}

static enum ap_status cannot_write(struct ap_run *run, const char *path)
{
	return fault(run, AP_IO, path,
		ap_arena_printf(run->ctx.arena, "cannot write: %s", strerror(errno)));
}

/* The folder, without slashes at its end. */
static const char *folder(struct ap_run *run)
{
	const char *path = run->opt->bundle;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return ap_arena_strndup(run->ctx.arena, path, len);
}

static const char *join(struct ap_run *run, const char *name)
{
	const char *dir = folder(run);

	return ap_arena_printf(run->ctx.arena, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", name);
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* Does the folder hold a bundle? */
static bool is_bundle(struct ap_run *run)
{
	const char *path = join(run, AP_BUNDLE_README);
	char text[sizeof AP_BUNDLE_MARK] = "";
	struct stat st;
	FILE *file = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file)
		fclose(file);
	return len == sizeof text - 1 && !strcmp(text, AP_BUNDLE_MARK);
}

/* Nothing, or a folder with nothing in it. */
static bool is_free(struct ap_run *run, const char *path)
{
	const char *const *name;
	size_t n;

	if (!exists(path))
		return true;
	return ap_file_is_folder(path) && !ap_folder_names(&run->ctx, path, &n, &name) && !n;
}

/* Other people's files are not written over. */
static enum ap_status check_files(struct ap_run *run)
{
	const char *path;

	if (is_bundle(run))
		return AP_OK;
	for (size_t i = 0; (path = ap_bundle_path(run, i)); i++)
		if (!is_free(run, path))
			(void)fault(run, AP_USAGE, path,
				"is in the way of a file of the bundle, and its "
				"folder holds no bundle; expected one that does, or another "
				"folder");
	return ap_diag_status(run->ctx.diag);
}

static enum ap_status check_folder(struct ap_run *run, const char *dir)
{
	const char *base = ap_file_base(dir);
	const char *parent =
		base == dir ? "."
			    : ap_arena_printf(run->ctx.arena, "%.*s.", (int)(base - dir), dir);

	if (!strcmp(dir, "-"))
		return fault(run, AP_USAGE, "standard output",
			"is no folder; expected one for the bundle");
	AP_TRY(ap_out_check_input(run, dir));
	if (!exists(dir))
		return access(parent, W_OK | X_OK) ? cannot_write(run, dir) : AP_OK;
	if (!ap_file_is_folder(dir))
		return fault(run, AP_USAGE, dir, "is no folder; expected one for the bundle");
	if (access(dir, W_OK | X_OK))
		return cannot_write(run, dir);
	return check_files(run);
}

enum ap_status ap_bundle_check(struct ap_run *run)
{
	if (run->opt->bundle)
		return check_folder(run, folder(run));
	if (!run->opt->operator_strategy_template)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"--operator-strategy-template %s is filled into a file of a bundle; --bundle DIR "
		"is missing",
		run->opt->operator_strategy_template);
}

const char *ap_bundle_path(struct ap_run *run, size_t i)
{
	const struct ap_bundle_file *file = ap_bundle_file_at(i);

	if (!run->opt->bundle)
		return NULL;
	if (file)
		return join(run, file->name);
	return i == 0 || ap_bundle_file_at(i - 1) ? join(run, AP_BUNDLE_STAGES) : NULL;
}

enum ap_status ap_bundle_template(struct ap_run *run, const struct ap_op_template **out)
{
	const char *path = run->opt->operator_strategy_template;
	struct ap_input in;
	struct ap_json *doc;

	*out = NULL;
	if (!path)
		return AP_OK;
	AP_TRY(ap_input_read(run, path, &in));
	AP_TRY(ap_input_json(run, &in, 0, &doc));
	return ap_op_template_read(&run->ctx, doc, out);
}

/* The settings of the plan, and those that no plan depends on. */
static void add_settings(struct ap_run *run, const struct ap_plan *plan, struct ap_bundle *b)
{
	struct ap_setting *list =
		AP_NEW_N(run->ctx.arena, struct ap_setting, plan->nsetting + AP_OPT_COUNT);
	uint32_t n = plan->nsetting;

	for (uint32_t i = 0; i < plan->nsetting; i++)
		list[i] = plan->setting[i];
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);

		if (row->group == AP_GROUP_ACCEPTED)
			list[n++] = (struct ap_setting){
				row->key, ap_option_json(run->ctx.arena, row, run->opt)};
	}
	b->nsetting = n;
	b->setting = list;
}

static enum ap_status stage_file(struct ap_run *run, const struct ap_bundle *b,
	const struct ap_bundle_file *file, bool older)
{
	const char *path = join(run, file->name);
	struct ap_output_sink sink;

	if (!file->wanted || file->wanted(b)) {
		AP_TRY(ap_out_open(run, path, &sink));
		file->write(&run->ctx, b, ap_output_write_fn, &sink);
	} else if (older && exists(path)) {
		AP_TRY(ap_outputs_remove(&run->ctx, run->outputs, path));
	}
	return AP_OK;
}

/* Of one stage there are no files of stages. */
static enum ap_status stage_stages(struct ap_run *run, const struct ap_bundle *b, bool older)
{
	const char *path = join(run, AP_BUNDLE_STAGES);
	uint32_t n = b->plan->nstage > 1 ? b->plan->nstage : 0;
	struct ap_ckpt *stage = AP_NEW_N(run->ctx.arena, struct ap_ckpt, n + 1);

	if (!n && !(older && ap_file_is_folder(path)))
		return AP_OK;
	if (!n)
		ap_outputs_empty(&run->ctx, run->outputs, path);
	for (uint32_t s = 0; s < n; s++)
		ap_ckpt_of_stage(&run->ctx, b->plan, (int32_t)s, b->frozen, &stage[s]);
	return ap_ckpt_stage_folder(run, path, ".ckpt", n, stage);
}

enum ap_status ap_bundle_stage(
	struct ap_run *run, const struct ap_plan *plan, const struct ap_op_template *op_template)
{
	bool older = is_bundle(run);
	struct ap_expert expert;
	struct ap_bundle b = {
		.plan = plan,
		.op_template = op_template,
		.expert = &expert,
		.frozen = !run->opt->only_trainable_params,
		.global_rank = run->opt->global_rank,
	};
	const struct ap_bundle_file *file;

	if (op_template)
		AP_TRY(ap_op_template_check(&run->ctx, op_template, plan));
	ap_expert_find(&run->ctx, plan, &expert);
	add_settings(run, plan, &b);
	AP_TRY(ap_out_folder(run, folder(run)));
	AP_TRY(stage_stages(run, &b, older));
	for (size_t i = 0; (file = ap_bundle_file_at(i)); i++)
		AP_TRY(stage_file(run, &b, file, older));
	return AP_OK;
}
