/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: each is given a run that is ready, and returns what the program ends with. */
#ifndef AP_CLI_COMMANDS_H
#define AP_CLI_COMMANDS_H

#include "base/ctx.h"

struct ap_run;

#define COMMAND(name, ...) enum ap_status ap_cmd_##name(struct ap_run *run);
#include "cli/commands.def"
#undef COMMAND

#endif
