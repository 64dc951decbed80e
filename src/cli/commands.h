/* SPDX-License-Identifier: Apache-2.0 */
/* The commands. Each gets a run that has begun, and returns its status. */
#ifndef AP_CLI_COMMANDS_H
#define AP_CLI_COMMANDS_H

#include "base/ctx.h"

struct ap_run;

#define COMMAND(name, ...) enum ap_status ap_cmd_##name(struct ap_run *run);
#include "cli/commands.def"
#undef COMMAND

#endif
