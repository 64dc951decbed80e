/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a route makes of the free optimum can be dear, or need more memory than there is. The additive
 * problem is then searched again with what the route decides taken for fixed, and within as much less
 * memory as the route's completion needed more.
 */
#ifndef AP_DRIVE_ROUTE_RIVALS_H
#define AP_DRIVE_ROUTE_RIVALS_H

#include "drive/rival.h"

/*
 * Adds the plans of such searches: where none fits that was found so far, of the recursion, which is not
 * stopped; then, where the best is slower than free by more than the simulation can tell, of the exact
 * engine, around the best plan, data parallel, and the best that came of them. Returns the work done.
 */
uint64_t ap_route_rivals(struct ap_rivals *r, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_plan *free);

#endif
