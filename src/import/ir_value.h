/* SPDX-License-Identifier: Apache-2.0 */
/* Values and types in a dump. */
#ifndef AP_IMPORT_IR_VALUE_H
#define AP_IMPORT_IR_VALUE_H

#include "import/ir.h"
#include "import/ir_read.h"

/* Sets size and depth of a list from its elements. */
void ap_ir_measure_list(struct ap_ir_value *list);

/* Reads a constant or reference. operand: as an operand, else in braces. */
bool ap_ir_read_value(struct ap_ir_read *r, bool operand, struct ap_ir_value *out);

/* Reads values separated by commas up to and including `close`. */
bool ap_ir_read_values(struct ap_ir_read *r, bool operand, char close, uint32_t *n,
	const struct ap_ir_value **out);

/* Read "<Tensor[Float32], (32, 64)>"; and such types in parentheses. */
bool ap_ir_read_type(struct ap_ir_read *r, struct ap_ir_type *out);
bool ap_ir_read_types(struct ap_ir_read *r, uint32_t *n, const struct ap_ir_type **out);

#endif
