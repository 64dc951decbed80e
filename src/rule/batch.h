/* SPDX-License-Identifier: Apache-2.0 */
/* Where semi_auto_parallel cuts an operator that is given no strategy. */
#ifndef AP_RULE_BATCH_H
#define AP_RULE_BATCH_H

#include "rule/rule.h"

/* Tensors that shard() takes a vector for: operands, or as the row's column `strategy` says. */
uint32_t ap_op_vectors(const struct ap_bound *b);

/* What vector v is of; NULL: it is empty. */
const struct ap_operand *ap_op_vector(const struct ap_bound *b, uint32_t v);

/* The same as the table has it (ops.def); NULL: dimension 0 of the first operand. */
const char *ap_op_batch_notation(const struct ap_op_row *row);

enum ap_batch ap_op_batch_positions(const struct ap_bound *b, uint8_t *mask);

#endif
