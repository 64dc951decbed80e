/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that take a few lines; cmd_plan.c and cmd_check.c have the others. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/catalogue.h"
#include "api/compare.h"
#include "api/convert.h"
#include "api/solve.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/run.h"
#include "cli/stop.h"

enum ap_status ap_cmd_import(struct ap_run *run)
{
	return ap_import_dump(&run->to, run->cli->arg[0]);
}

enum ap_status ap_cmd_render(struct ap_run *run)
{
	return ap_render(&run->to, run->cli->arg[0]);
}

enum ap_status ap_cmd_convert(struct ap_run *run)
{
	size_t last = run->cli->narg - 1;

	run->to.nread--; /* the last one is written */
	return ap_convert(&run->to, last, run->cli->arg, run->cli->arg[last]);
}

enum ap_status ap_cmd_diff(struct ap_run *run)
{
	struct ap_str text;
	enum ap_status st;

	ap_str_init(&text, run->ctx.arena);
	st = ap_compare(&run->to, run->cli->arg[0], run->cli->arg[1], ap_run_colors(run->set,
		STDOUT_FILENO), &text);
	if (st != AP_OK && st != AP_DIFFERS)
		return st;
	AP_TRY(ap_run_answer(run, &text));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return st;
}

static bool takes_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

enum ap_status ap_cmd_solve(struct ap_run *run)
{
	const struct ap_settings *set = run->set;
	const char *rest;
	enum ap_status st;

	if (set->time_limit > 0)
		ap_stop_after(set->time_limit);
	st = ap_solve(&run->to, run->cli->arg[0], &rest);
	if (takes_stdout(set->write_lp) || takes_stdout(set->write_wcsp))
		fputs(rest, stderr);
	else if (*rest)
		(void)ap_stdout_write(&run->ctx, rest, strlen(rest));
	if (st == AP_LIMIT && !ap_stop_signal() && !ap_diag_count(run->ctx.diag, AP_ERROR))
		return ap_diag_add(run->ctx.diag, AP_ERROR, st, NULL, NULL,
			"a limit was hit before any choice was found");
	return st;
}

enum ap_status ap_cmd_list(struct ap_run *run)
{
	const char *topic = run->cli->arg[0], *name = run->cli->narg > 1 ? run->cli->arg[1] : NULL;
	bool known = true, found;
	struct ap_str out;
	struct ap_jw w, *json = run->set->json ? &w : NULL;

	ap_str_init(&out, run->ctx.arena);
	if (json) {
		ap_jw_str_init(json, &out, 2);
		ap_jw_arr(json);
	}
	found = !strcmp(topic, "settings") ? ap_help_settings(name, &out, json)
		: ap_catalogue(&run->ctx, run->set, topic, name, &out, json, &known);
	if (!known)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"list: \"%s\" is not accepted; expected one of chips, engines, models, operators, "
			"optimizers, settings, software", topic);
	AP_TRY(ap_diag_status(run->ctx.diag));
	if (!found)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no \"%s\" among the %s; see `autopar-plan list %s`", name, topic, topic);
	if (json) {
		ap_jw_end(json);
		ap_jw_finish(json);
	}
	return ap_stdout_write(&run->ctx, out.s, out.len);
}
