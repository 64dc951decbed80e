/* SPDX-License-Identifier: Apache-2.0 */
/* The table of primitives, prims.def. */
#ifndef AP_IMPORT_PRIMS_H
#define AP_IMPORT_PRIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_prims;

struct ap_prim_slot {
	const char *name;
	bool constant; /* it is an attribute */
	bool always; /* also an operand in old dumps */
	bool optional, many, number, fixed; /* ? * # ! */
};

/* Prepares the table for look-ups. */
struct ap_prims *ap_prims_create(struct ap_ctx *ctx);

/* Operands of a primitive; NULL if it is not in the table. */
const struct ap_prim_slot *ap_prim_slots(const struct ap_prims *p, const char *prim, uint32_t *n);

/* Name and operands of row i; NULL past the end. For tests. */
const char *ap_prim_at(size_t i, const char **operands);

/* The word for number i in an attribute; NULL if there is none. */
const char *ap_prim_number(const char *attribute, int64_t i);

/* The current name of a primitive's attribute. */
const char *ap_prim_attr(const char *name);

/* Can the attribute be ignored, as it does not change what operators of this type compute? */
bool ap_prim_ignores(const char *type, const char *attribute);

#endif
