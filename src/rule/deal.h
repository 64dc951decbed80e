/* SPDX-License-Identifier: Apache-2.0 */
/* Partial sums that are dealt instead of added up. */
#ifndef AP_RULE_DEAL_H
#define AP_RULE_DEAL_H

#include "rule/rule.h"

/* Its letter, by the row; 0 where there is none. */
char ap_op_deal_letter(const struct ap_op_row *row);

/* Does MindSpore deal them unless an out_strategy says otherwise? */
bool ap_op_deals_usually(const struct ap_op_row *row);

/* The factor whose partial sums an out_strategy may deal along the first dimension of result 0; -1
 * where the operator takes no out_strategy, or has been given one. */
int ap_rule_deal_factor(const struct ap_bound *b);

/* Which factors of b->dealt have their sums dealt with these counts? */
uint32_t ap_rule_dealt(const struct ap_bound *b, const int32_t *count);

/* Deals them: b->dealt. Requires that there is such a factor and that nothing is dealt yet. */
void ap_rule_deal(struct ap_ctx *ctx, struct ap_bound *b);

/* Deals them where MindSpore does by itself: rows is the length of dimension 0 of result 0 in a
 * micro-batch. Nothing where the rows are none of what is looked up with. Requires the same. */
void ap_rule_deal_usually(struct ap_ctx *ctx, struct ap_bound *b, int64_t rows);

/* Leaves no choice any more: they are dealt always. */
void ap_rule_deal_always(struct ap_ctx *ctx, struct ap_bound *b);

#endif
