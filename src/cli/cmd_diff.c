/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "api/fail_if.h"
#include "api/files.h"
#include "api/outputs.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "ckpt/ckpt_file.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "diff/diff.h"
#include "diff/diff_write.h"

/* A plan, or else a strategy checkpoint. */
static enum ap_status read_file(struct ap_run *run, const char *path, struct ap_json **plan,
	struct ap_ckpt *ckpt)
{
	struct ap_known file;

	*plan = NULL;
	if (ap_file_is_folder(path))
		return ap_ckpt_load(&run->ctx, run->set, path, ckpt);
	AP_TRY(ap_kind_read(&run->ctx, run->set, path, &file));
	if (file.kind == AP_KIND_PLAN) {
		*plan = file.doc;
		return AP_OK;
	}
	if (file.kind != AP_KIND_STRATEGY)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file.in.path}, NULL,
			"is %s; expected a plan or a strategy checkpoint", ap_kind_text(file.kind));
	return ap_ckpt_read(&run->ctx, file.in.path, file.in.text, file.in.len, file.json, ckpt);
}

/* What is compared takes a small part of the file that it is from: that one goes, but for a plan's. */
static enum ap_status read_side(struct ap_run *run, const char *path, struct ap_saved *out)
{
	struct ap_arena *arena = run->ctx.arena, *own = ap_arena_create_like(arena);
	struct ap_json *plan;
	struct ap_ckpt ckpt;
	enum ap_status st;

	run->ctx.arena = own;
	st = read_file(run, path, &plan, &ckpt);
	run->ctx.arena = arena;
	if (st == AP_OK && plan) {
		ap_arena_own(arena, own);
		return ap_saved_of_plan(&run->ctx, plan, out);
	}
	if (st == AP_OK)
		ap_saved_of_ckpt(&run->ctx, &ckpt, out);
	ap_arena_destroy(own);
	return st;
}

/* The writer that --format or --json names. */
static enum ap_status choose_writer(struct ap_run *run, const struct ap_diff_writer **out)
{
	const struct ap_settings *o = run->set;
	size_t i = (size_t)o->format;

	*out = ap_diff_writer_at(i);
	if (!o->json || !strcmp((*out)->name, "json"))
		return AP_OK;
	if (o->origin[AP_SET_format] == AP_FROM_OPTION)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--json and --format %s contradict each other", (*out)->name);
	for (i = 0; strcmp(ap_diff_writer_at(i)->name, "json") != 0; i++)
		;
	*out = ap_diff_writer_at(i);
	return AP_OK;
}

static enum ap_status print(struct ap_run *run, const struct ap_diff *d,
	const struct ap_diff_writer *writer)
{
	const struct ap_diff_style style = {.color = run->set->color == AP_COLOR_ALWAYS ||
		(run->set->color == AP_COLOR_AUTO && isatty(STDOUT_FILENO))};
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	writer->write(&run->ctx, d, &style, &text);
	run->answered = true;
	return ap_stdout_write(&run->ctx, text.s, text.len);
}

enum ap_status ap_cmd_diff(struct ap_run *run)
{
	const struct ap_diff_writer *writer;
	struct ap_fail_if conditions;
	struct ap_saved was, is;
	enum ap_status verdict;
	struct ap_diff d;

	AP_TRY(choose_writer(run, &writer));
	AP_TRY(ap_fail_if_read(&run->ctx, run->set, &conditions));
	AP_TRY(ap_out_check(&run->to, NULL));
	ap_ctx_phase(&run->ctx, "reading");
	AP_TRY(read_side(run, run->cli->arg[0], &was));
	AP_TRY(read_side(run, run->cli->arg[1], &is));
	ap_ctx_phase(&run->ctx, "comparing");
	ap_diff_make(&run->ctx, &was, &is, &d);
	verdict = ap_fail_if_judge(&run->ctx, &conditions, &was, &is, &d.verdict);
	if (verdict != AP_DIFFERS)
		AP_TRY(verdict);
	d.nverdict = conditions.n;
	if (!run->set->quiet)
		AP_TRY(print(run, &d, writer));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return d.equal || conditions.n ? AP_OK : AP_DIFFERS;
}
