/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of a dump into functions and nodes. */
#ifndef AP_IMPORT_IR_PARSE_H
#define AP_IMPORT_IR_PARSE_H

#include "import/ir.h"

/* The attribute of a name; NULL if there is none. */
const struct ap_ir_value *ap_ir_attr(const struct ap_ir_attrs *attrs, const char *key);

/* The node of a number; NULL if there is none. O(log nodes). */
const struct ap_ir_node *ap_ir_node(const struct ap_ir_func *f, int64_t id);

size_t ap_ir_most_bytes(const struct ap_ir *ir);

/* Reads a dump. Faults have their line: returns AP_SYNTAX if it is no dump or violates the grammar,
 * AP_MEANING if node numbers do not ascend, AP_LIMIT if nested too deep. partial: after the first
 * node, one of the first two only ends reading, with a warning. O(bytes). */
enum ap_status ap_ir_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	bool partial, struct ap_ir *out);

#endif
