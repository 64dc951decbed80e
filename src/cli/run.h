/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the program: context, settings, messages, phases. */
#ifndef AP_CLI_RUN_H
#define AP_CLI_RUN_H

#include <time.h>

#include "api/outputs.h"
#include "api/request.h"
#include "cli/parse.h"

struct ap_str;

struct ap_run {
	struct ap_ctx ctx;
	const struct ap_cli *cli;
	const struct ap_settings *set; /* of cli */
	struct ap_writing to; /* what is staged is removed when memory runs out */
	const char *phase; /* NULL: none */
	struct timespec phase_start;
	bool phase_shown; /* on the terminal, to be wiped */
	bool answered; /* what --json asks for is on standard output, whatever the outcome */
};

/* Arenas, sink and stop flag as the settings want them. */
void ap_run_begin(struct ap_run *run, const struct ap_cli *cli);

/* The graph, the rank table that is the second argument, else that of the environment, and a checkpoint
 * (NULL: none). */
struct ap_named ap_run_inputs(const struct ap_run *run, const char *graph, const char *strategy);

/* Starts a phase, unless it is the one that runs: --verbose prints each with its time and the memory
 * that is held at its end, a terminal shows the one that runs. NULL ends the last. */
void ap_run_phase(struct ap_run *run, const char *phase);

/* Prints the messages and frees everything; the exit code of st. */
int ap_run_end(struct ap_run *run, enum ap_status st);

/* The hook of the arenas (user: a run, or NULL): removes what is staged, says so, and ends the program.
 * Nothing may be allocated any more. */
void ap_run_out_of_memory(void *user, size_t wanted);

/* Prints what the command has found on standard output, unless --quiet. */
enum ap_status ap_run_answer(struct ap_run *run, const struct ap_str *text);

/* Prints a sink to standard error as the settings want it. */
void ap_run_print(struct ap_ctx *ctx, const struct ap_settings *set);

/* Is colour wanted on this file descriptor? */
bool ap_run_colors(const struct ap_settings *set, int fd);

#endif
