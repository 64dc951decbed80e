/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of logs, a row each in format.c: what a line of each looks like. */
#ifndef AP_RUNLOG_FORMAT_H
#define AP_RUNLOG_FORMAT_H

#include "base/csv.h"
#include "runlog/runlog.h"

struct ap_run_reading { /* a log while it is read as one of a form */
	struct ap_arena *arena;
	struct ap_runlog log;
	bool marked; /* a line was seen that only this form has */
	int64_t rank; /* that the line's prefix names; -1: none does */
	int64_t line;
};

struct ap_run_format {
	const char *name, *what;
	/* Takes what a line says; it has neither prefix nor colours. NULL: of tables. */
	void (*line)(struct ap_run_reading *r, const char *line);
	/* A table of records: a header with one of these columns is of this form. */
	const char *const *columns;
	bool wants_mark; /* lines of another form alone are none of this one */
};

const struct ap_run_format *ap_run_format_at(size_t i); /* NULL past the end */

/* Reads a table whose header has been read. */
enum ap_status ap_run_table_read(struct ap_ctx *ctx, struct ap_csv *csv, const struct ap_csv_record *header,
	struct ap_runlog *log);

#endif
