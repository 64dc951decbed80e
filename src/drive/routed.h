/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that a route completes. Its completion of the free optimum can be dear, or need too much
 * memory: then the additive problem is searched again with the route's decisions fixed, and the
 * memory limit lowered by what the completion needed in excess. As a route's rule is no sum of
 * costs (the cut of an operator with a parameter changes others), the best plan of that problem is
 * then improved, each trial completed by the route (drive/improve.h).
 */
#ifndef AP_DRIVE_ROUTED_H
#define AP_DRIVE_ROUTED_H

#include "drive/rival.h"

/* The differences of a route's plan from the free one of the same graph, machine and step, both
 * priced; in the run arena. O(operators + redistributions). */
const struct ap_plan_route *ap_routed_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free);

/* Looks for any plan that fits by the recursion, which is not stopped, around the best plan without
 * the route and around data parallel. Takes it in r; returns the work done. */
uint64_t ap_routed_quick(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free);

/*
 * If the best of r is slower than free by more than a hundredth, takes the plans of the exact engine
 * around the best plan, data parallel, and the best of these. Returns the work done.
 */
uint64_t ap_routed_search(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free);

#endif
