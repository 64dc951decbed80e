/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a dump, parsed into functions and nodes. */
#ifndef AP_IMPORT_IR_PARSE_H
#define AP_IMPORT_IR_PARSE_H

#include "import/ir.h"

/* The attribute of that name; NULL where there is none. */
const struct ap_ir_value *ap_ir_attr(const struct ap_ir_attrs *attrs, const char *key);

/* The node with that number; NULL where there is none. O(log nodes). */
const struct ap_ir_node *ap_ir_node(const struct ap_ir_func *f, int64_t id);

size_t ap_ir_most_bytes(const struct ap_ir *ir);

/* Reads a dump. Faults have their line: AP_SYNTAX for what is no dump or does not follow its grammar,
 * AP_MEANING for numbers of nodes that do not ascend, AP_LIMIT for nesting that is too deep. partial: behind
 * the first node one of the first two ends what is read, with a warning. O(bytes). */
enum ap_status ap_ir_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	bool partial, struct ap_ir *out);

#endif
