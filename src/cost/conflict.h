/* SPDX-License-Identifier: Apache-2.0 */
/* Legal counts of operators that are no plan together. */
#ifndef AP_COST_CONFLICT_H
#define AP_COST_CONFLICT_H

#include "graph/graph.h"

/* What makes legal counts no plan: users of one parameter that would hold it in different layouts,
 * operators of one checkpoint key with different strategies. Rows may be NULL: not decided. NULL where
 * nothing does, else what, in words, and *node is the later one of the two. O(operands). */
const char *ap_plan_conflict(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const int32_t *const *counts, ap_id *node);

#endif
