/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of an operator type, in words: what rows, conditions, expanders and attributes say,
 * and what follows from them. `list operators NAME` prints it.
 */
#ifndef AP_RULE_DESCRIBE_H
#define AP_RULE_DESCRIBE_H

#include "base/str.h"
#include "rule/rule.h"

/* All rows of a type. Requires that it is canonical. */
void ap_op_describe(const char *type, struct ap_str *out);

/* What a row's rule exchanges, a line each for forward, backward, gradient. */
void ap_op_describe_comm(const struct ap_op_row *row, struct ap_str *out);

#endif
