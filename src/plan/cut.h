/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence cut into runs of equal weight, as far as that goes. Knows no graph; pure, deterministic. */
#ifndef AP_PLAN_CUT_H
#define AP_PLAN_CUT_H

#include "base/ctx.h"

/*
 * Cuts items 0..n-1 into `parts` runs (1..n), none of them empty: the heaviest is as light as can be;
 * of such cuts the crossings are least; of those the cuts come as early as can be. weight[i] >= 0,
 * their sum fits; crossing[i] >= 0 is what a cut in front of item i costs (crossing[0] is not looked
 * at). first[p] is the first item of run p. O(n log(sum of weights) + n parts).
 */
void ap_cut_even(struct ap_ctx *ctx, uint32_t n, const int64_t *weight, const int64_t *crossing,
	uint32_t parts, uint32_t *first);

#endif
