/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sheet: what a command tells of several things, each in blocks of facts, a table and remarks,
 * written as text, as Markdown or as JSON, from the same numbers. In JSON a thing is an object of its
 * blocks, a block one of its facts, "rows" and "remarks"; numbers are there in seconds, bytes and
 * shares of 1.
 */
#ifndef AP_REPORT_SHEET_H
#define AP_REPORT_SHEET_H

#include <stdbool.h>

#include "base/ctx.h"

struct ap_str;
struct ap_sheet;

enum ap_cell_type { /* how a value is written */
	AP_CELL_TEXT, /* words of ours */
	AP_CELL_NAME, /* from a file: escaped where people read it */
	AP_CELL_INT,
	AP_CELL_NUMBER,
	AP_CELL_SECONDS,
	AP_CELL_BYTES,
	AP_CELL_SHARE, /* of 1: "12.3 %" */
	AP_CELL_CHANGE, /* of 1: "+12.3 %" */
	AP_CELL_BOOL /* "yes", or nothing */
};

struct ap_column {
	const char *key, *title;
	enum ap_cell_type type;
};

enum ap_sheet_form { AP_SHEET_TEXT, AP_SHEET_MARKDOWN, AP_SHEET_JSON };

/* schema: of the JSON. In the arena of ctx. */
struct ap_sheet *ap_sheet_create(struct ap_ctx *ctx, const char *schema);

/* Begins a thing: what it is ("operator"), its raw name, and words behind that, "" for none. */
void ap_sheet_thing(struct ap_sheet *s, const char *kind, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Begins a block of the thing; key: of JSON, once in a thing. */
void ap_sheet_block(struct ap_sheet *s, const char *key, const char *title);

/* Adds to the block. */
void ap_sheet_remark(struct ap_sheet *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ap_sheet_number(struct ap_sheet *s, const char *key, const char *label, enum ap_cell_type type,
	double v);
void ap_sheet_words(struct ap_sheet *s, const char *key, const char *label, const char *text);

/* The columns of the block's table, which live as long as the sheet; then its rows, cell by cell. A
 * value that is not finite is none, as is a NULL text. */
void ap_sheet_columns(struct ap_sheet *s, const struct ap_column *column, size_t n);
void ap_sheet_cell(struct ap_sheet *s, double v);
void ap_sheet_cell_text(struct ap_sheet *s, const char *text);

/* Writes all of it. O(cells). */
void ap_sheet_write(const struct ap_sheet *s, enum ap_sheet_form form, struct ap_str *out);

#endif
