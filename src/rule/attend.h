/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that is one operator, of queries, keys and values; and what becomes of it where cut. */
#ifndef AP_RULE_ATTEND_H
#define AP_RULE_ATTEND_H

#include "rule/rule.h"

struct ap_attention { /* factors of an operator */
	int queries; /* the sequence of operand 0 and of the result */
	int keys; /* the sequence of operands 1 and 2, never cut; as long */
	int heads; /* that all of them and the result have; -1: none, or a mask has it as well */
};

/* Does it attend with as many queries as keys? Also of what the functions below made. */
bool ap_rule_attends(const struct ap_bound *b, struct ap_attention *out);

/* Is result o what it attended to, not statistics of it? Requires an operator that attends. */
bool ap_rule_attend_is_result(const struct ap_bound *b, int o);

/* The factor of queries whose mask hides all keys behind them (causal); -1 if there is none. */
int ap_rule_causal_factor(const struct ap_bound *b);

/* FLOPs of attention / those of its row at each point: of keys that a band hides from a query (sparse_mode 4)
 * none are computed, and of heads whose sizes differ each is counted once. 1 for other operators. */
double ap_rule_attend_work(const struct ap_bound *b, const struct ap_attrs *attrs);

/* Keys and values in the same parts as queries, which go round among the ranks. Requires that it attends. */
void ap_rule_attend_round(struct ap_ctx *ctx, struct ap_bound *b);

/* All in the same parts of the sequence, exchanged for heads while it works. Requires that it has heads. */
void ap_rule_attend_by_heads(struct ap_ctx *ctx, struct ap_bound *b);

#endif
