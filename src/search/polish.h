/* SPDX-License-Identifier: Apache-2.0 */
/* Improves a pick, one node at a time. */
#ifndef AP_SEARCH_POLISH_H
#define AP_SEARCH_POLISH_H

#include "problem/problem.h"

/* Changes one node after another to the candidate with the fewest forbidden terms, then the least
 * memory above the limit, then the least cost, until nothing improves or after max_passes. The pick
 * never gets worse in that order. O(passes * (nodes + edges) * k). */
void ap_polish(struct ap_ctx *ctx, const struct ap_problem *p, uint32_t max_passes, uint32_t *pick);

#endif
