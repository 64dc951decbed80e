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
	struct ap_writing to; /* its staged files are removed if memory runs out */
	const char *phase; /* NULL if none */
	struct timespec phase_start;
	struct timespec start, shown; /* of the run; when progress was shown */
	struct ap_progress progress; /* what is known */
	bool phase_shown; /* shown on the terminal, must be wiped */
	bool answered; /* the result for --json has been printed */
};

/* Sets up arenas, sink and stop flag from the settings. */
void ap_run_begin(struct ap_run *run, const struct ap_cli *cli);

/* The graph, the rank table (second argument, else from the environment), and a checkpoint (NULL:
 * none). */
struct ap_named ap_run_inputs(const struct ap_run *run, const char *graph, const char *strategy);

/* Starts a phase unless it is running already; NULL ends the last one. --verbose prints each
 * phase's time and the memory held at its end; a terminal shows the running phase. */
void ap_run_phase(struct ap_run *run, const char *phase);

/* Prints the messages and frees everything. Returns the exit code for st. */
int ap_run_end(struct ap_run *run, enum ap_status st);

/* Out-of-memory hook of the arenas (user: a run, or NULL): removes staged files, reports, and ends
 * the program. Must not allocate. */
void ap_run_out_of_memory(void *user, size_t wanted);

/* Prints the result of the command on standard output, unless --quiet. */
enum ap_status ap_run_answer(struct ap_run *run, const struct ap_str *text);

/* Prints the messages to standard error in the form that the settings ask for. */
void ap_run_print(struct ap_ctx *ctx, const struct ap_settings *set);

/* Does this file descriptor get colour? */
bool ap_run_colors(const struct ap_settings *set, int fd);

#endif
