/* SPDX-License-Identifier: Apache-2.0 */
/* Improves any pick, one node at a time. */
#ifndef AP_SEARCH_POLISH_H
#define AP_SEARCH_POLISH_H

#include "problem/problem.h"

/*
 * Changes one node after the other, always to the candidate that leaves the fewest forbidden
 * choices, then the least memory above the limit, then the least cost, until nothing improves or
 * max_passes are done. The pick never gets worse in that order. O(passes * (nodes + edges) * k).
 */
void ap_polish(struct ap_ctx *ctx, const struct ap_problem *p, uint32_t max_passes, uint32_t *pick);

#endif
