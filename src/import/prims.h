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
	bool constant; /* an attribute of that name */
	bool always; /* and an operand in old dumps, too */
	bool optional, many, number, fixed; /* ? * # ! */
};

/* The table, made ready for look-ups. */
struct ap_prims *ap_prims_create(struct ap_ctx *ctx);

/* The operands of a primitive; NULL where the table has none. */
const struct ap_prim_slot *ap_prim_slots(const struct ap_prims *p, const char *prim, uint32_t *n);

/* Row i of the table: its name and operands; NULL past the end. For tests. */
const char *ap_prim_at(size_t i, const char **operands);

/* What number i stands for in an attribute; NULL: no such word. */
const char *ap_prim_number(const char *attribute, int64_t i);

/* What an attribute of the primitive is called now. */
const char *ap_prim_attr(const char *name);

/* Does the attribute say nothing of what operators of this type compute? */
bool ap_prim_ignores(const char *type, const char *attribute);

#endif
