/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of ops.def. */
#ifndef AP_RULE_OP_H
#define AP_RULE_OP_H

#include "rule/rule.h"

/* Row i in table order; NULL past the end. */
const struct ap_op_row *ap_op_at(size_t i);

/* The next row of this type after the given one; NULL: the first. NULL when there is none. */
const struct ap_op_row *ap_op_next(const struct ap_op_row *after, const char *type);

/* What family a row of the table is of: "matrix products". */
const char *ap_op_family(const struct ap_op_row *row);

/* Does MindSpore keep a strategy for such operators? Those that take their operand's layout as it
 * comes and leave the change to the redistribution, as Reshape does, have none, nor has GetNext,
 * which has no operand. */
bool ap_op_has_strategy(const struct ap_op_row *row);

/* Do MindSpore's searches give such operators the layout of their producer, whatever strategy they
 * have? */
bool ap_op_follows(const struct ap_op_row *row);

/* Has MindSpore no class for such operators, so that it takes them for batch parallel? Rows that unknown
 * types are bound to are among them. */
bool ap_op_is_fallback(const struct ap_op_row *row);

/* Is it of MindSpore's class for batch parallel operators? Those above are, too. */
bool ap_op_is_batch_parallel(const struct ap_op_row *row);

/* Which of these two an operator of a type that has no rows is bound to. */
const char *ap_op_unknown(const char *type);

/* May attribute cross_batch leave its partial results as they are on each device? */
bool ap_op_takes_cross_batch(const struct ap_op_row *row);

/* Is an operand of it that is saved needed for the gradients of the others alone? */
bool ap_op_is_product(const struct ap_op_row *row);

/* Alias row i: old name and what it means now; false past the end. */
bool ap_op_alias_at(size_t i, const char **old_name, const char **canonical);

/* Type i of those, and why; false past the end. */
bool ap_op_unsupported_at(size_t i, const char **type, const char **reason);

/* Why no graph of a user's may have a type that MindSpore has: no rule is known for it, or only plans
 * have it (whose rows are in the table then). NULL for any other type. */
const char *ap_op_unsupported(const char *type);

/* Canonical type for a 2.x name or an old alias (TensorAdd -> Add); NULL when unknown, or refused in
 * users' graphs (ap_op_unsupported). *nearest (which may be NULL) is then the closest known name, or
 * NULL. */
const char *ap_op_canonical(const char *type, const char **nearest);

#endif
