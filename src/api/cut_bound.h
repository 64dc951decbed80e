/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of plans that cut each operator by itself, under settings that were decided by hybrids. */
#ifndef AP_API_CUT_BOUND_H
#define AP_API_CUT_BOUND_H

#include "api/request.h"
#include "decision/space.h"

/* What the bound of a point depends on: those with equal keys have the same. */
#define AP_CUT_BOUND_KEY 3
void ap_cut_bound_key(const struct ap_decision_point *p, int64_t key[AP_CUT_BOUND_KEY]);

/*
 * Seconds that a step takes at least under the settings of each of n points, whatever the cut of each
 * operator and of the stages: [n], in the run arena. Bounded by kernels and their starts alone
 * (cost/least.h), on the devices of a stage: the mean stage works on all micro-batches, and where a stage is
 * one segment whose backward passes are not split, each waits for those before it, once. Fewer micro-batches
 * on as many devices have no longer kernels, so that few numbers of them tell of the others. src, set: as
 * ap_decide() had them. NULL:
 * not known. O(stages + some dozens of micro-batches' numbers) times operators' candidates.
 */
const double *ap_cut_bound(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision_point *point, uint32_t n);

#endif
