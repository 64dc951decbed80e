/* SPDX-License-Identifier: Apache-2.0 */
/* What a parsed document is made of. Private to base/json*.c. */
#ifndef AP_BASE_JSON_TREE_H
#define AP_BASE_JSON_TREE_H

#include <stdint.h>

#include "base/json.h"

/* Values lie in document order in one array, so relations are distances in it. */
struct ap_jv {
	uint32_t offset; /* of the value in the text */
	uint32_t key_offset; /* of a member's key; of an element: its index in the array */
	uint32_t up; /* distance back to the container; 0: root */
	uint32_t skip; /* distance to the next of the same container; 0: last */
	uint32_t count; /* of elements or members; the first lies behind the container */
	enum ap_jtype type;
	const char *key; /* NULL: no member */
	union {
		bool flag;
		double number;
		const char *string;
	} u;
};

struct ap_json_place {
	uint32_t line, col; /* from 1; columns are characters */
};

struct ap_json {
	const char *file;
	const char *text; /* NUL-terminated */
	size_t len;
	struct ap_json_place *blocks; /* of every 4096th byte */
	struct ap_jv *values;
	size_t nvalue;
};

/* Fills blocks from the text. O(len). */
void ap_json_place_index(struct ap_ctx *ctx, struct ap_json *doc);

/* Line and column of an offset <= len. O(1). */
struct ap_json_place ap_json_place_of(const struct ap_json *doc, size_t offset);

/* A report at an offset of the text; v gives the pointer (NULL: none). */
enum ap_status ap_json_report_at(struct ap_ctx *ctx, const struct ap_json *doc, size_t offset,
	const struct ap_jv *v, enum ap_level level, enum ap_status st, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 8, 9)));

#endif
