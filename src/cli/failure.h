/* SPDX-License-Identifier: Apache-2.0 */
/* What --json prints where there is no result. */
#ifndef AP_CLI_FAILURE_H
#define AP_CLI_FAILURE_H

#include "cli/run.h"

/*
 * Prints autopar-failure/1 with the messages of ctx where --json asks for it and st is neither a result nor
 * a difference: onto standard output, or onto standard error where an output takes that. code: what the
 * program ends with.
 */
void ap_failure_print(struct ap_ctx *ctx, const struct ap_cli *cli, enum ap_status st, int code);

/* The same, without messages, where no memory is left to make it. */
void ap_failure_out_of_memory(const struct ap_cli *cli, const char *text);

#endif
