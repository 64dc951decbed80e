/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values as RFC 4180 has them, record by record. */
#ifndef AP_BASE_CSV_H
#define AP_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_csv { /* a text that is read */
	const char *file; /* for messages */
	const char *at, *end;
	int64_t line; /* of what is next, from 1 */
};

struct ap_csv_record {
	const char *const *field; /* without quotes, and without blanks around those that have none */
	size_t n; /* at least 1 */
	int64_t line; /* on which it begins */
};

/* Begins to read a text, which outlives the reading; a mark of UTF-8 at its beginning is left out. */
struct ap_csv ap_csv_begin(const char *file, const char *text, size_t len);

/* The next record that is not blank, in the run arena; *any false: there is none. AP_SYNTAX with its place
 * for a quoted field that does not end, or behind whose quotes something follows. A zero byte ends its
 * field. O(its bytes). */
enum ap_status ap_csv_next(struct ap_ctx *ctx, struct ap_csv *csv, struct ap_csv_record *out, bool *any);

#endif
