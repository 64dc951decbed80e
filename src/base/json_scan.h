/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict pre-scan of JSON text: grammar of RFC 8259, UTF-8, nesting, without recursion. It
 * makes no tree; it records where each value begins, in document order. Private to base/json*.c.
 */
#ifndef AP_BASE_JSON_SCAN_H
#define AP_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "autopar/status.h"
#include "base/vec.h"

struct ap_arena;

enum {
	AP_JSCAN_DEPTH = 256, /* containers inside each other */
	AP_JSCAN_VALUES = 1 << 23, /* in one document, or one in eight bytes where that is more: bounds
	                            * the memory of the tree */
	AP_JSCAN_FINDINGS = 20, /* of one kind; later ones are not recorded */
};

/* Offsets into the text: of the value, and of the key it is the member of; of an element `key` is
 * its index in the array. */
struct ap_jscan_value {
	uint32_t offset, key;
	double number; /* that a null in `bare` stands for; NaN: the value is as it is there */
};

/* A \u0000, which a C string cannot hold: in the value itself, or in its key. */
struct ap_jscan_nul {
	uint32_t value; /* index */
	bool in_key;
};

struct ap_jscan {
	AP_VEC(struct ap_jscan_value) values;
	size_t string_bytes; /* enough for all strings and keys, decoded, each with its NUL */
	char *bare; /* the text as a parser shall see it, NUL-terminated: without trailing commas,
	             * and with null for numbers of which the value is known already */
	size_t bare_len; /* without the NUL */

	bool byte_order_mark;
	uint32_t commas[AP_JSCAN_FINDINGS]; /* offsets of trailing commas */
	size_t ncomma;
	struct ap_jscan_nul nuls[AP_JSCAN_FINDINGS];
	size_t nnul;

	size_t fault_offset; /* set unless the scan returns AP_OK */
	char fault[128];
};

/*
 * Scans text[0..len), len < UINT32_MAX; text[len] is NUL. AP_SYNTAX or AP_LIMIT with fault set.
 * Values and bare are kept in arena. O(len).
 */
enum ap_status ap_jscan_run(struct ap_jscan *scan, struct ap_arena *arena, const char *text,
	size_t len, bool trailing_commas);

#endif
