/* SPDX-License-Identifier: Apache-2.0 */
/* Describes an operator type in words, from its rows, conditions, expanders and attributes. `list
 * operators NAME` prints it. */
#ifndef AP_RULE_DESCRIBE_H
#define AP_RULE_DESCRIBE_H

#include "base/str.h"
#include "rule/rule.h"

/* Describes all rows of a type, which must be canonical. */
void ap_op_describe(const char *type, struct ap_str *out);

/* Lists what a row's rule exchanges: lines for forward, backward, gradient. */
void ap_op_describe_comm(const struct ap_op_row *row, struct ap_str *out);

#endif
