/* SPDX-License-Identifier: Apache-2.0 */
/* State of reading a dump; shared by ir_*.c. */
#ifndef AP_IMPORT_IR_READ_H
#define AP_IMPORT_IR_READ_H

#include "base/arena.h"
#include "import/ir.h"

struct ap_ir_read {
	struct ap_ctx *ctx;
	const char *file;
	const char *p, *end; /* unread text */
	int64_t line;
	enum ap_status status; /* of the first fault */
	bool piece; /* after the first node, a fault ends reading with a warning */
	bool ended; /* a fault ended reading */
	unsigned depth;
};

/* Reports a fault at a line, once; returns false. */
bool ap_ir_fault(struct ap_ir_read *r, int64_t line, enum ap_status st, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Reports that `what` was expected here; returns false. */
bool ap_ir_expected(struct ap_ir_read *r, const char *what);

/* Skip blanks; blanks and line ends. */
void ap_ir_blanks(struct ap_ir_read *r);
void ap_ir_space(struct ap_ir_read *r);

/* Skips the rest of the line and its end. */
void ap_ir_skip_line(struct ap_ir_read *r);

/* Is this text next? take: also skips it if so. */
bool ap_ir_at(const struct ap_ir_read *r, const char *text);
bool ap_ir_take(struct ap_ir_read *r, const char *text);

/* Skips `text`, or reports that it was expected. */
bool ap_ir_need(struct ap_ir_read *r, const char *text);

/* A copy of p[0..n) in the run arena. */
const char *ap_ir_copy(struct ap_ir_read *r, const char *p, size_t n);

/* The text up to one of the bytes in `ends`, or the line's end: copied; skipped. */
const char *ap_ir_until(struct ap_ir_read *r, const char *ends);
void ap_ir_pass(struct ap_ir_read *r, const char *ends);

/* Reads decimal digits; -1 if there are none or too many. */
int64_t ap_ir_digits(struct ap_ir_read *r);

/* Reads up to the bracket that closes the next one. Counts lines. */
bool ap_ir_balanced(struct ap_ir_read *r, const char **text);

/* Copies a list that grew in scratch from a mark to the run arena, and releases the mark. */
void *ap_ir_keep(struct ap_ir_read *r, struct ap_mark mark, const void *v, size_t bytes);

#endif
