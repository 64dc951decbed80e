/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of messages. A fault is reported where it is found; callers get only the status. The
 * library never prints: the program renders the sink with ap_diag_render(). */
#ifndef AP_BASE_DIAG_H
#define AP_BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_str;

enum ap_level { AP_NOTE, AP_WARNING, AP_ERROR };

/* Location of a fault; fields may be NULL or 0 (unknown). Strings are borrowed for the call. */
struct ap_where {
	const char *file; /* as the user named it */
	int64_t line, col; /* from 1 */
	const char *pointer; /* JSON pointer, "" for the root */
	const char *oper; /* operator name, raw */
};

/* A sink that keeps its messages in arena. strict: warnings count as errors (AP_MEANING). */
struct ap_diag *ap_diag_create(struct ap_arena *arena, bool strict);

/* A copy of ctx for a part whose messages its caller does not pass on, or picks from: they go to a sink of
 * its own in ctx->arena. A copy, so that ctx keeps its sink where the part ends by a lack of memory. */
struct ap_ctx ap_diag_apart(const struct ap_ctx *ctx);

/* Adds a message; 65,536 of each level are kept, more are counted. check: name of a named check, or
 * NULL. For AP_ERROR, st is returned and, if this is the first error, ends the run; else AP_OK is
 * returned, or AP_MEANING for a warning if strict. */
enum ap_status ap_diag_add(struct ap_diag *d, enum ap_level level, enum ap_status st,
	const struct ap_where *where, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
enum ap_status ap_diag_addv(struct ap_diag *d, enum ap_level level, enum ap_status st,
	const struct ap_where *where, const char *check, const char *fmt, va_list ap)
	__attribute__((format(printf, 6, 0)));

/* A point in the history of a sink; ap_diag_forget() drops what was said after it, by a part that is done
 * again. */
struct ap_diag_mark {
	size_t n, count[AP_ERROR + 1];
	enum ap_status first;
};
struct ap_diag_mark ap_diag_mark(const struct ap_diag *d);
void ap_diag_forget(struct ap_diag *d, const struct ap_diag_mark *m);

/* Adds the messages of another sink that this one does not have yet. */
void ap_diag_pass_on(struct ap_diag *to, const struct ap_diag *from);

/* Makes names from files safe to print: control characters, bidi controls and invalid UTF-8 escaped
 * (\n, \x1b, \u202e), cut to 80 characters with "...". In the sink's arena. */
const char *ap_diag_name(struct ap_diag *d, const char *raw);

/* The same for file names, cut to 400 characters, as in locations. */
const char *ap_diag_path(struct ap_diag *d, const char *raw);

size_t ap_diag_count(const struct ap_diag *d, enum ap_level level);

/* Status of the first error; AP_OK if there is none. */
enum ap_status ap_diag_status(const struct ap_diag *d);

/* Appends messages of level `least` and above, one a line, in order: "autopar-plan: error:
 * FILE:LINE:COL: /pointer (operator "NAME"): text [check]"; of each level at most max_errors, then
 * "autopar-plan: error: and N more". */
void ap_diag_render(const struct ap_diag *d, enum ap_level least, size_t max_errors,
	struct ap_str *out);

/* Adds a figure to the last message, for programs: "short_bytes". name is a static JSON key; at
 * most four. */
void ap_diag_figure(struct ap_diag *d, const char *name, int64_t value);

struct ap_jw;

/* Writes messages as members of the open object of w: arrays "errors", "warnings" and "notes" of at
 * most `most` objects each with level, file, line, column, pointer, operator, check (null:
 * unknown), text and figures; "counts" of each level. */
void ap_diag_write(const struct ap_diag *d, struct ap_jw *w, size_t most);

/* Writes the figures of the first error that has any, as an object; else null. */
void ap_diag_write_figures(const struct ap_diag *d, struct ap_jw *w);

struct ap_message { /* borrowed from the sink; NULL or 0: unknown */
	enum ap_level level;
	const char *file, *pointer, *oper, *check, *text;
	int64_t line, col;
};

/* Message i, 0-based; false past the end. */
bool ap_diag_at(const struct ap_diag *d, size_t i, struct ap_message *out);

/* The text of the first error, without location; NULL: there is none. */
const char *ap_diag_first_error(const struct ap_diag *d);

/* The text of message i (0-based) without location; NULL past the end. For tests and --json. */
const char *ap_diag_text(const struct ap_diag *d, size_t i, enum ap_level *level,
	const char **check);

#endif
