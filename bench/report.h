/* SPDX-License-Identifier: Apache-2.0 */
/* What the bench writes: a line for each row, tables of errors, CSV and Markdown. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "rows.h"

/* Files that end the program where they cannot be written. */
FILE *open_out(const char *path);
void close_out(FILE *out, const char *path);

void print_rows(const struct table *t); /* on standard output */

/* Tables of Markdown: errors of sources and of software, rankings of groups, runs that ran or died of memory;
 * why rows are not expressed. */
void write_errors(FILE *out, struct ap_arena *arena, const struct table *t);
void write_reasons(FILE *out, struct ap_arena *arena, const struct table *t);

/* src/hw/measured.def: mean errors by chip, software and kind of network. */
void write_measured(const char *path, struct ap_arena *arena, const struct table *t);

void write_csv(const char *path, const struct table *t);

/* docs/fidelity.md of the rows of `file`; svg: its picture, NULL if there is none. */
void write_markdown(const char *path, struct ap_arena *arena, const char *file, const char *svg,
	const struct table *t, bool is_neutral);

#endif
