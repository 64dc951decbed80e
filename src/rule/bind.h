/* SPDX-License-Identifier: Apache-2.0 */
/* A row bound to an operator's shapes and attributes. */
#ifndef AP_RULE_BIND_H
#define AP_RULE_BIND_H

#include "rule/rule.h"
#include "rule/expand.h"

/*
 * Binds the first fitting row: infers result shapes (out->out[].size, dtype); whether they agree
 * with the declared ones is the caller's question. AP_MEANING and *fault when no row fits (that of
 * the row that came furthest); nothing goes to the sink. O(rows + rank^2) per operator.
 */
enum ap_status ap_rule_bind(struct ap_ctx *ctx, const struct ap_bind_in *in, struct ap_bound *out,
	struct ap_bind_fault *fault);

/* Requires that there is one of that name. */
const struct ap_expander *ap_expander_find(struct ap_name name);

/* Human form of a bound rule with sizes, for `list operators NAME` and messages. */
const char *ap_rule_text(struct ap_ctx *ctx, const struct ap_bound *b);

#endif
