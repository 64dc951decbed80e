/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that a route completes. What it makes of the free optimum can be dear, or need more memory than
 * there is: the additive problem is then searched again with what the route decides taken for fixed, and
 * within as much less memory as the route's completion needed more. And as a rule of its own is no sum of
 * costs (what an operator with a parameter takes moves others that nobody asked), the best plan of that
 * problem is bettered step by step, each step completed by the route and simulated.
 */
#ifndef AP_DRIVE_ROUTED_H
#define AP_DRIVE_ROUTED_H

#include "drive/rival.h"

/* How plan, of this route, differs from the free one of the same graph, machine and step. Both priced.
 * O(operators + redistributions). */
const struct ap_plan_route *ap_routed_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free);

/*
 * Adds the plans of such searches: where none fits that was found so far, of the recursion, which is not
 * stopped; then, where the best is slower than free by more than the simulation can tell, of the exact
 * engine, around the best plan, data parallel, and the best that came of them. Returns the work done.
 */
uint64_t ap_routed_search(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free);

/*
 * A plan of the rivals' route that is no slower than start, and fits the memory if start does. A step
 * gives all equal operators (of repeated layers) that are cut alike another of their candidates; those
 * of fixed stay. Ends where no step is faster, after a hundred thousand completed operators, or when
 * told to stop. Deterministic but for the last. O(operators) for each candidate that is tried.
 */
const struct ap_plan *ap_routed_improve(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan *start);

#endif
