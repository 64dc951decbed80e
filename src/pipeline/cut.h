/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a sequence into runs of nearly equal cost. Knows no graph; pure, deterministic. */
#ifndef AP_PIPELINE_CUT_H
#define AP_PIPELINE_CUT_H

#include <stdbool.h>

#include "base/ctx.h"

#define AP_CUT_MOST (INT64_MAX / 8) /* so that all sums fit */

struct ap_cut {
	uint32_t n, parts; /* items; runs, 1..n */
	const int64_t *weight; /* [n] */
	const int64_t *const *crossing; /* [parts][n] [p][i]: cost of a cut between run
	                                   p - 1 and p in front of item i; p, i > 0 */
	int halves; /* of a crossing (0, 1 or 2) that count for each of the runs on its sides */
	const bool *vital; /* [n] the first `wanting` runs need such an item each; NULL: any will do */
	uint32_t wanting;
};

/* Can the runs be as vital and wanting require? O(n). */
bool ap_cut_possible(const struct ap_cut *cut);

/*
 * Cuts the items, in order, into runs, none of them empty. A run costs the weights of its items and
 * its share of the crossings on both sides. The dearest run is as cheap as possible; among such
 * cuts the sum of all crossings is least; among those every cut comes as early as possible. Weights
 * and crossings are at least 0, the sum of the weights and each crossing at most AP_CUT_MOST; the
 * cut is possible. first[p] is the first item of run p. O(n parts log n) at most; less if the cost
 * is nearly even, as most items then cannot begin most runs.
 */
void ap_cut_even(struct ap_ctx *ctx, const struct ap_cut *cut, uint32_t *first);

#endif
