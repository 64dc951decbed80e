/* SPDX-License-Identifier: Apache-2.0 */
/* Partial sums that are dealt (ReduceScatter) instead of summed up (AllReduce). */
#ifndef AP_RULE_DEAL_H
#define AP_RULE_DEAL_H

#include "rule/rule.h"

/* Letter of the factor whose sums may be dealt; 0 if there is none. */
char ap_op_deal_letter(const struct ap_op_row *row);

/* Does MindSpore deal such sums unless an out_strategy says otherwise? */
bool ap_op_deals_usually(const struct ap_op_row *row);

/* The factor whose partial sums an out_strategy may deal along dimension 0 of result 0; -1 if the
 * operator takes no out_strategy, or was given one. */
int ap_rule_deal_factor(const struct ap_bound *b);

/* Counts under which the sums of factor f, of b->dealt, are dealt because they ask for it. */
static inline bool ap_rule_asks(const struct ap_bound *b, const int32_t *count, int f)
{
	return b->deal_asked && b->dealt >> f & 1 && count[f] < 0;
}

/* The factors of b->dealt whose sums are dealt for these counts. */
uint32_t ap_rule_dealt(const struct ap_bound *b, const int32_t *count);

/* Sets b->dealt. Requires that such a factor exists and that nothing is dealt yet. */
void ap_rule_deal(struct ap_ctx *ctx, struct ap_bound *b);

/* Sets b->dealt if MindSpore deals by itself; rows: length of dimension 0 of result 0 in a
 * micro-batch. Does nothing if these rows are not those of the indices. Requires the same. */
void ap_rule_deal_usually(struct ap_ctx *ctx, struct ap_bound *b, int64_t rows);

/* Makes the sums dealt under all counts. */
void ap_rule_deal_always(struct ap_ctx *ctx, struct ap_bound *b);

/* Are two rules of an operator the same, but for whether sums are dealt? */
bool ap_rule_same_but_dealt(const struct ap_bound *a, const struct ap_bound *b);

/* Lets counts ask for dealt sums; false if that is nothing that an out_strategy could say, or the sums are
 * always dealt. */
bool ap_rule_deal_if_asked(struct ap_ctx *ctx, struct ap_bound *b);

#endif
