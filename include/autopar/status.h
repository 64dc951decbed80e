/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcome of a run. One row per outcome: name, process exit code, word for programs, text.
 * Everything that names an outcome (exit codes, man page, tests) reads these rows.
 */
#ifndef AUTOPAR_STATUS_H
#define AUTOPAR_STATUS_H

#define AP_STATUS_ROWS(X) \
	X(OK, 0, "ok", "done") \
	X(DIFFERS, 1, "differs", "the two differ, or the plan no longer fits its inputs") \
	X(USAGE, 2, "usage", "the command line is wrong") \
	X(SYNTAX, 3, "malformed", "a file is malformed") \
	X(MEANING, 4, "wrong", "a file is well-formed but wrong") \
	X(INFEASIBLE, 5, "infeasible", "proven: no strategy fits") \
	X(IO, 6, "io", "a file could not be read or written") \
	X(LIMIT, 7, "limit", "a limit was hit before any plan existed") \
	X(STOPPED, 8, "stopped", "stopped early; the best plan so far was written") \
	X(INTERNAL, 70, "bug", "a bug in autopar-plan")

enum ap_status {
#define AP_STATUS_ENUM(name, code, word, text) AP_##name,
	AP_STATUS_ROWS(AP_STATUS_ENUM)
#undef AP_STATUS_ENUM
	AP_STATUS_COUNT
};

/* The process exit code of st. */
int ap_status_exit(enum ap_status st);

/* "ok", "usage", "infeasible": the row's name, for programs. */
const char *ap_status_name(enum ap_status st);

/* One English line for st, static storage. */
const char *ap_status_text(enum ap_status st);

#endif
