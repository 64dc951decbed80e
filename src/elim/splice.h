/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pick that is too large and one that is needlessly small, put together. Where a network has many
 * equal layers, the best price makes all of them choose alike; the optimum lets as many of them as
 * the memory allows choose the faster way. A pick of the one up to some node and of the other from
 * there on pays for one seam only.
 */
#ifndef AP_ELIM_SPLICE_H
#define AP_ELIM_SPLICE_H

#include "problem/problem.h"

/*
 * Of all picks that follow a up to some node and b from it, or b and then a, in order of the nodes:
 * the cheapest one that fits the memory limit, into out[n]. False when none does. O(n + edges).
 */
bool ap_splice(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *out);

#endif
