/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: which commands there are is written in commands.def, which options in api/settings.def. A
 * config file and the environment count where no option says anything. */
#ifndef AP_CLI_PARSE_H
#define AP_CLI_PARSE_H

#include "api/settings.h"

struct ap_run;

struct ap_command {
	const char *name;
	unsigned use; /* AP_FOR_... */
	const char *args; /* synopsis */
	int least, most; /* number of arguments */
	const char *help; /* one line */
	const char *details; /* a paragraph */
	const char *examples; /* whole lines */
	enum ap_status (*run)(struct ap_run *run);
};

/* Row i of commands.def; NULL past the end. */
const struct ap_command *ap_command_at(size_t i);

struct ap_cli {
	const struct ap_command *command; /* NULL: none was named (--help, --version, --print-config) */
	struct ap_settings set;
	bool brief; /* help was asked for with the letter */
	size_t narg;
	const char *const *arg; /* of the command */
};

/* Reads the command line, then the config file and the environment. Reports every fault of it;
 * AP_USAGE, or what the config file ended with. */
enum ap_status ap_cli_parse(struct ap_ctx *ctx, int argc, char **argv, struct ap_cli *out);

/* What the settings are for: the command, or any where there is none. */
unsigned ap_cli_uses(const struct ap_cli *cli);

#endif
