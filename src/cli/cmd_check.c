/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "api/against.h"
#include "api/check.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cmd.h"
#include "cli/run.h"

/* --against. AP_DIFFERS: no longer right. */
static enum ap_status check_against(struct ap_run *run)
{
	struct ap_named named = ap_run_inputs(run, run->set->against, NULL);
	struct ap_against found;
	struct ap_str text;

	if (run->cli->narg > 2)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"check --against: one argument too many, \"%s\"; expected PLAN [RANK_TABLE]",
			run->cli->arg[2]);
	AP_TRY(ap_against(&run->ctx, run->set, run->cli->arg[0], &named, &found));
	if (run->cli->narg < 2) /* what the environment says is not told */
		found.table = NULL;
	ap_str_init(&text, run->ctx.arena);
	ap_against_write(&run->ctx, run->set, &found, ap_run_colors(run->set, STDOUT_FILENO), &text);
	AP_TRY(ap_run_answer(run, &text));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return found.fits ? AP_OK : AP_DIFFERS;
}

/* What says how a plan is held against inputs says nothing else. */
static enum ap_status check_options(struct ap_run *run)
{
	static const enum ap_setting_id inputs[] = {AP_SET_device_num, AP_SET_devices_per_server,
		AP_SET_devices_per_pod, AP_SET_chip, AP_SET_memory, AP_SET_software, AP_SET_batch,
		AP_SET_micro_batches, AP_SET_search};

	for (size_t i = 0; i < AP_COUNT(inputs); i++)
		if (run->set->origin[inputs[i]] == AP_FROM_OPTION)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: check takes it beside --against only", run->set->name[inputs[i]]);
	return ap_diag_status(run->ctx.diag);
}

/* One line about a file: what it is, and how many findings there are. */
static void report(struct ap_run *run, const char *path, const struct ap_checked *file, size_t errors,
	size_t warnings, struct ap_str *text, struct ap_jw *w)
{
	struct ap_diag *diag = run->ctx.diag;

	if (run->set->json) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "file", ap_diag_path(diag, path));
		if (file->kind) {
			ap_jw_kstr(w, "kind", strchr(file->kind, ' ') + 1); /* without its article */
			ap_jw_kstr(w, "what", ap_diag_name(diag, file->what));
		}
		ap_jw_kint(w, "errors", (int64_t)errors);
		ap_jw_kint(w, "warnings", (int64_t)warnings);
		ap_jw_end(w);
		return;
	}
	ap_str_addf(text, "%s: ", ap_diag_path(diag, path));
	if (file->kind)
		ap_str_addf(text, "%s (%s): ", file->kind, ap_diag_name(diag, file->what));
	if (errors || warnings)
		ap_str_addf(text, "errors %zu, warnings %zu\n", errors, warnings);
	else
		ap_str_add(text, "nothing to report\n");
}

static enum ap_status check_files(struct ap_run *run, const struct ap_fail_if *conditions)
{
	struct ap_diag *diag = run->ctx.diag;
	uint32_t nplan = 0;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, run->ctx.arena);
	if (run->set->json) {
		ap_jw_str_init(&w, &text, 1);
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "schema", "autopar-check/1");
		ap_jw_key(&w, "files");
		ap_jw_arr(&w);
	}
	ap_ctx_phase(&run->ctx, "checking");
	for (size_t i = 0; i < run->cli->narg; i++) {
		size_t errors = ap_diag_count(diag, AP_ERROR), warnings = ap_diag_count(diag, AP_WARNING);
		struct ap_checked file;

		ap_check_file(&run->ctx, run->set, run->cli->arg[i], conditions, &nplan, &file);
		report(run, run->cli->arg[i], &file, ap_diag_count(diag, AP_ERROR) - errors,
			ap_diag_count(diag, AP_WARNING) - warnings, &text, &w);
	}
	if (conditions->n && !nplan)
		(void)ap_diag_add(diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--fail-if: none of these files is a plan");
	if (run->set->json) {
		ap_jw_end(&w);
		ap_diag_write(diag, &w, (size_t)run->set->max_errors);
		ap_jw_end(&w);
		ap_jw_finish(&w);
	}
	AP_TRY(ap_run_answer(run, &text));
	return ap_diag_status(diag);
}

enum ap_status ap_cmd_check(struct ap_run *run)
{
	struct ap_fail_if conditions;

	AP_TRY(ap_out_check(&run->to, NULL));
	if (run->set->against)
		return check_against(run);
	AP_TRY(check_options(run));
	AP_TRY(ap_fail_if_read(&run->ctx, run->set, &conditions));
	return check_files(run, &conditions);
}
