/* SPDX-License-Identifier: Apache-2.0 */
/* What --json prints if there is no result. */
#ifndef AP_CLI_FAILURE_H
#define AP_CLI_FAILURE_H

#include "cli/run.h"

/* With --json, prints autopar-failure/1 with the messages of ctx, unless st is a result or a
 * difference: on standard output, or on standard error if an output takes that. code: exit status
 * of the program. */
void ap_failure_print(struct ap_ctx *ctx, const struct ap_cli *cli, enum ap_status st, int code);

/* The same without messages, for when memory has run out. */
void ap_failure_out_of_memory(const struct ap_cli *cli, const char *text);

#endif
