/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"

#define SCHEMA "autopar-failure/1"

static const char *command_of(const struct ap_cli *cli)
{
	return cli->command ? cli->command->name : NULL; /* NULL if none or an unknown one was
	                                                    given */
}

/* If an output takes standard output, its reader must get nothing else. */
static int target(const struct ap_cli *cli)
{
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);
		const char *path = row->type == AP_SET_OUTPUT ? ap_setting_path(row, &cli->set) : NULL;

		if (path && !strcmp(path, "-"))
			return STDERR_FILENO;
	}
	return STDOUT_FILENO;
}

/* Write errors are ignored: the fault itself has been reported already. */
static void write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void ap_failure_print(struct ap_ctx *ctx, const struct ap_cli *cli, enum ap_status st, int code)
{
	struct ap_str text;
	struct ap_jw w;

	if (!cli->set.json || st == AP_OK || st == AP_DIFFERS || st == AP_STOPPED)
		return;
	ap_str_init(&text, ctx->arena);
	ap_jw_str_init(&w, &text, 2);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", SCHEMA);
	ap_jw_key(&w, "command");
	if (command_of(cli))
		ap_jw_str(&w, command_of(cli));
	else
		ap_jw_null(&w);
	ap_jw_kstr(&w, "status", code > 128 ? "signal" : ap_status_name(st));
	ap_jw_kint(&w, "exit", code);
	ap_jw_key(&w, "shortfall");
	ap_diag_write_figures(ctx->diag, &w);
	ap_diag_write(ctx->diag, &w, (size_t)cli->set.max_errors);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	write_all(target(cli), text.s, text.len);
}

void ap_failure_out_of_memory(const struct ap_cli *cli, const char *text)
{
	char json[640];
	int len;

	if (!cli->set.json || !cli->command)
		return;
	len = snprintf(json, sizeof json, "{\n  \"schema\": \"" SCHEMA "\",\n  \"command\": \"%s\",\n"
		"  \"status\": \"%s\",\n  \"exit\": %d,\n  \"shortfall\": null,\n  \"errors\": [\n"
		"    {\"level\": \"error\", \"file\": null, \"line\": null, \"column\": null, "
		"\"pointer\": null, \"operator\": null, \"check\": null, \"text\": \"%s\"}\n  ],\n"
		"  \"warnings\": [],\n"
		"  \"notes\": [],\n  \"counts\": {\"errors\": 1, \"warnings\": 0, \"notes\": 0}\n}\n",
		command_of(cli), ap_status_name(AP_LIMIT), ap_status_exit(AP_LIMIT), text);
	if (len > 0 && (size_t)len < sizeof json)
		write_all(target(cli), json, (size_t)len);
}
