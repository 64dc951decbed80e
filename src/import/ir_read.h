/* SPDX-License-Identifier: Apache-2.0 */
/* A dump while it is being read; shared by the files ir_*.c. */
#ifndef AP_IMPORT_IR_READ_H
#define AP_IMPORT_IR_READ_H

#include "base/arena.h"
#include "import/ir.h"

struct ap_ir_read {
	struct ap_ctx *ctx;
	const char *file;
	const char *p, *end; /* what is left */
	int64_t line;
	enum ap_status status; /* of the first fault */
	bool piece; /* once there are nodes, a fault ends what is read, with a warning */
	bool ended; /* it did */
	unsigned depth;
};

/* Reports a fault at a line, once; false. */
bool ap_ir_fault(struct ap_ir_read *r, int64_t line, enum ap_status st, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Reports that what stands here is not what was expected. */
bool ap_ir_expected(struct ap_ir_read *r, const char *what);

/* Over blanks of this line; over blanks and ends of lines. */
void ap_ir_blanks(struct ap_ir_read *r);
void ap_ir_space(struct ap_ir_read *r);

/* Over what is left of the line and its end. */
void ap_ir_skip_line(struct ap_ir_read *r);

/* Does this text stand here? take: and goes over it where it does. */
bool ap_ir_at(const struct ap_ir_read *r, const char *text);
bool ap_ir_take(struct ap_ir_read *r, const char *text);

/* Goes over `text`, or reports that it was expected. */
bool ap_ir_need(struct ap_ir_read *r, const char *text);

/* A copy of p[0..n) in the run arena. */
const char *ap_ir_copy(struct ap_ir_read *r, const char *p, size_t n);

/* What stands here up to the first of the bytes `ends`, or the end of the line: a copy; only gone over. */
const char *ap_ir_until(struct ap_ir_read *r, const char *ends);
void ap_ir_pass(struct ap_ir_read *r, const char *ends);

/* Decimal digits; -1 where there are none, or too many. */
int64_t ap_ir_digits(struct ap_ir_read *r);

/* What stands here to the bracket that closes the one here. Counts lines. */
bool ap_ir_balanced(struct ap_ir_read *r, const char **text);

/* Lists grow in scratch, from a mark on; what has become of one is kept in the run arena. */
void *ap_ir_keep(struct ap_ir_read *r, struct ap_mark mark, const void *v, size_t bytes);

#endif
