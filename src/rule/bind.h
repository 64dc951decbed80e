/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a row to an operator's shapes and attributes. */
#ifndef AP_RULE_BIND_H
#define AP_RULE_BIND_H

#include "rule/rule.h"
#include "rule/expand.h"

/* Binds the first row that fits and infers result shapes (out->out[].size, dtype); the caller
 * compares them with the declared ones. AP_MEANING if no row fits, with the *fault of the row that
 * got furthest; sends nothing to the sink. O(rows + rank^2) per operator. */
enum ap_status ap_rule_bind(struct ap_ctx *ctx, const struct ap_bind_in *in, struct ap_bound *out,
	struct ap_bind_fault *fault);

/* The expander of that name, which must exist. */
const struct ap_expander *ap_expander_find(struct ap_name name);

/* Readable text of a bound rule with sizes, for `list operators NAME` and messages. */
const char *ap_rule_text(struct ap_ctx *ctx, const struct ap_bound *b);

#endif
