/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of ops.def. */
#ifndef AP_RULE_OP_H
#define AP_RULE_OP_H

#include "rule/rule.h"

/* Row i in table order; NULL past the end. */
const struct ap_op_row *ap_op_at(size_t i);

/* The next row of this type after the given one (NULL: the first); NULL if there is none. */
const struct ap_op_row *ap_op_next(const struct ap_op_row *after, const char *type);

/* The family of a row: "matrix products". */
const char *ap_op_family(const struct ap_op_row *row);

/* Does MindSpore keep a strategy for such operators? It keeps none for those that take any layout
 * of their operand and leave changes to redistribution, like Reshape, nor for GetNext, which has no
 * operand. */
bool ap_op_has_strategy(const struct ap_op_row *row);

/* Does it only show its operand in another shape, so that nothing is computed or copied? */
bool ap_op_is_view(const struct ap_op_row *row);

/* Do MindSpore's searches give such operators their producer's layout, whatever their strategy? */
bool ap_op_follows(const struct ap_op_row *row);

/* Has MindSpore no class for such operators, so that it treats them as batch parallel? Includes
 * rows for unknown types. */
bool ap_op_is_fallback(const struct ap_op_row *row);

/* Is the operator in MindSpore's class of batch parallel operators? Includes fallbacks. */
bool ap_op_is_batch_parallel(const struct ap_op_row *row);

/* The row for a type without rows: AP_OP_UNKNOWN or AP_OP_UNCUT. */
const char *ap_op_unknown(const char *type);

/* May attribute cross_batch leave its partial results unsummed on each device? */
bool ap_op_takes_cross_batch(const struct ap_op_row *row);

/* Is a saved operand needed only for the gradients of the others? */
bool ap_op_is_product(const struct ap_op_row *row);

/* Alias row i: old and current name; false past the end. */
bool ap_op_alias_at(size_t i, const char **old_name, const char **canonical);

/* Unsupported type i and the reason; false past the end. */
bool ap_op_unsupported_at(size_t i, const char **type, const char **reason);

/* Why users' graphs may not have a type that MindSpore has: its rule is unknown, or only plans have
 * it (with rows in the table). NULL for any other type. */
const char *ap_op_unsupported(const char *type);

/* Canonical type of a 2.x name or an old alias (TensorAdd -> Add); NULL if unknown, or refused in
 * users' graphs (ap_op_unsupported). *nearest (may be NULL) is then the closest known name, or
 * NULL. */
const char *ap_op_canonical(const char *type, const char **nearest);

#endif
