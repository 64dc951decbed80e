/* SPDX-License-Identifier: Apache-2.0 */
/* What a route makes of a plan. */
#ifndef AP_DRIVE_ROUTE_COST_H
#define AP_DRIVE_ROUTE_COST_H

#include "plan/plan.h"

/* How plan, of this route, differs from the free one of the same graph, machine and step. Both priced.
 * O(operators + redistributions). */
const struct ap_plan_route *ap_route_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free);

#endif
