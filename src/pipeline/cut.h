/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence cut into runs of equal cost, as far as that goes. Knows no graph; pure, deterministic. */
#ifndef AP_PIPELINE_CUT_H
#define AP_PIPELINE_CUT_H

#include <stdbool.h>

#include "base/ctx.h"

#define AP_CUT_MOST (INT64_MAX / 8) /* so that all sums fit */

struct ap_cut {
	uint32_t n, parts; /* items; runs, 1..n */
	const int64_t *weight; /* [n] */
	const int64_t *const *crossing; /* [parts][n] [p][i]: of a cut in front of item i and of run p; that
	                                   in front of item 0 or run 0 is not looked at */
	int halves; /* 0, 1 or 2 of a crossing count for the run before it, and for that behind it */
	const bool *vital; /* [n] the first `wanting` runs hold such an item each; NULL: any will do */
	uint32_t wanting;
};

/* Can the runs be as vital and wanting say? */
bool ap_cut_possible(const struct ap_cut *cut);

/*
 * Cuts the items, in order, into runs, none of them empty. A run costs the weights of its items and its
 * share of the crossings on both sides. The dearest run is as cheap as can be; of such cuts the
 * sum of all crossings is least; of those the cuts come as early as can be. Weights and crossings
 * are at least 0, the sum of the weights and each crossing at most AP_CUT_MOST; the cut is possible.
 * first[p] is the first item of run p. O(n parts log n) at most; near even cuts, most items cannot
 * begin most runs, and cost nothing there.
 */
void ap_cut_even(struct ap_ctx *ctx, const struct ap_cut *cut, uint32_t *first);

#endif
