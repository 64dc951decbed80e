/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A route that completes a plan by a rule of its own is no sum of costs: what an operator with a
 * parameter takes moves others that nobody asked. The best plan of the additive problem is a place to
 * start from; here it is bettered step by step, each step completed by the route and simulated.
 */
#ifndef AP_DRIVE_ROUTE_IMPROVE_H
#define AP_DRIVE_ROUTE_IMPROVE_H

#include "drive/rival.h"

/*
 * A plan of the rivals' route that is no slower than start, and fits the memory if start does. A step
 * gives all equal operators (of repeated layers) that are cut alike another of their candidates; those
 * of fixed stay. Ends where no step is faster, after a hundred thousand completed operators, or when
 * told to stop. Deterministic but for the last. O(operators) for each candidate that is tried.
 */
const struct ap_plan *ap_route_improve(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan *start);

#endif
