/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settle.h"
#include "autopar/version.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/run.h"
#include "cli/stop.h"

/* Handles --help, --version and --print-config, which replace the command. */
static enum ap_status answer(struct ap_run *run)
{
	const struct ap_settings *o = run->set;
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	if (o->help)
		ap_help_text(run->cli, &text);
	else if (o->version)
		ap_str_add(&text, "autopar-plan " AP_VERSION "\n");
	else if (o->print_config)
		ap_help_config(run->cli, &text);
	else {
		AP_TRY(ap_settings_note(&run->ctx, o, ap_cli_uses(run->cli)));
		return run->cli->command->run(run);
	}
	return ap_stdout_write(&run->ctx, text.s, text.len);
}

int main(int argc, char **argv)
{
	struct ap_ctx ctx = {.jobs = 1}; /* for parsing only: its settings come from there */
	struct ap_cli cli;
	struct ap_run run;
	enum ap_status st;
	int code;

	ap_streams_secure();
	ap_stop_install();
	ctx.arena = ap_arena_create(0, ap_run_out_of_memory, NULL);
	ctx.scratch = ap_arena_create(0, ap_run_out_of_memory, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
	st = ap_cli_parse(&ctx, argc, argv, &cli);
	ap_run_print(&ctx, &cli.set);
	code = ap_status_exit(st);
	ap_failure_print(&ctx, &cli, st, code);
	if (st == AP_OK) {
		ap_run_begin(&run, &cli);
		code = ap_run_end(&run, answer(&run));
	}
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
	return code;
}
