/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: commands.def lists the commands, api/settings.def the options. A config file
 * and the environment apply where no option does, then the defaults of a site. */
#ifndef AP_CLI_PARSE_H
#define AP_CLI_PARSE_H

#include "api/settings.h"

struct ap_run;

struct ap_command {
	const char *name;
	unsigned use; /* AP_FOR_... */
	const char *args; /* synopsis */
	int least, most; /* limits of the number of arguments */
	const char *help; /* one line */
	const char *details; /* a paragraph */
	const char *examples; /* whole lines */
	enum ap_status (*run)(struct ap_run *run);
};

/* Row i of commands.def; NULL past the end. */
const struct ap_command *ap_command_at(size_t i);

struct ap_cli {
	const struct ap_command *command; /* NULL if none named (--help, --version,
	                                     --print-config) */
	struct ap_settings set;
	const char *site; /* the file whose defaults were taken; NULL: none */
	bool brief; /* help was asked for by -h */
	size_t narg;
	const char *const *arg; /* arguments of the command */
};

/* Reads the command line, the config file, the environment and, for commands that plan, the defaults of the
 * site. Reports all faults; AP_USAGE, or the status of a file. */
enum ap_status ap_cli_parse(struct ap_ctx *ctx, int argc, char **argv, struct ap_cli *out);

/* AP_FOR_ bits of the command, or all bits. */
unsigned ap_cli_uses(const struct ap_cli *cli);

#endif
