/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which counts an operator's rule allows. */
#ifndef AP_RULE_LEGAL_H
#define AP_RULE_LEGAL_H

#include "rule/rule.h"

/* What a condition of column `legal` requires, in words. */
const char *ap_legal_says(const char *name);

/* Is result o only an intermediate one: does it lack factors of mask that another result has?
 * Example: statistics of a normalisation when the batch is cut. */
bool ap_rule_is_inner(const struct ap_bound *b, unsigned o, uint32_t mask);

/* Does the row's extra condition allow these counts on ndev devices? True if there is none, or if it is
 * one of MindSpore's implementation and who runs the operator is another; if false, *why gives the
 * reason (why may be NULL). */
bool ap_rule_legal(const struct ap_bound *b, const int32_t *count, int64_t ndev, bool mindspore,
	struct ap_legal_why *why);

#endif
