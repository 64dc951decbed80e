/* SPDX-License-Identifier: Apache-2.0 */
/* Where semi_auto_parallel cuts an operator without a strategy. */
#ifndef AP_RULE_BATCH_H
#define AP_RULE_BATCH_H

#include "rule/rule.h"

/* Number of vectors that shard() takes: one per operand, or as in the row's column `strategy`. */
uint32_t ap_op_vectors(const struct ap_bound *b);

/* The tensor of vector v; NULL if the vector is empty. */
const struct ap_operand *ap_op_vector(const struct ap_bound *b, uint32_t v);

/* The row's BATCH notation (ops.def); NULL: dimension 0 of the first operand. */
const char *ap_op_batch_notation(const struct ap_op_row *row);

enum ap_batch ap_op_batch_positions(const struct ap_bound *b, uint8_t *mask);

#endif
