/* SPDX-License-Identifier: Apache-2.0 */
/* Which counts of parts an operator's rule allows. */
#ifndef AP_RULE_LEGAL_H
#define AP_RULE_LEGAL_H

#include "rule/rule.h"

/* What a condition of column `legal` asks for, in words. */
const char *ap_legal_says(const char *name);

/* Is result o only a step on the way to another one: does it lack factors of mask that another
 * result has? The statistics of a normalisation, for one, when the batch is cut. */
bool ap_rule_is_inner(const struct ap_bound *b, unsigned o, uint32_t mask);

/* The row's extra condition: may these counts stand on ndev devices? true where it has none; where
 * not, *why says what is in the way (why may be NULL). */
bool ap_rule_legal(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	struct ap_legal_why *why);

#endif
