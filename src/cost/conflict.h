/* SPDX-License-Identifier: Apache-2.0 */
/* Finds legal counts of operators that do not go together. */
#ifndef AP_COST_CONFLICT_H
#define AP_COST_CONFLICT_H

#include "graph/graph.h"

/* Why legal counts are no plan together: users of one parameter hold it in different layouts, or
 * operators of one checkpoint key have different strategies; *node is the later of the two. NULL if
 * they are one. Rows may be NULL: undecided. O(operands). */
const char *ap_plan_conflict(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const int32_t *const *counts, ap_id *node);

#endif
