/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stages of unequal numbers of devices would take: how much they could gain over a decided plan is known
 * from its layers, and the fastest of those that have other degrees than dp in common are priced whole.
 */
#ifndef AP_API_UNEQUAL_H
#define AP_API_UNEQUAL_H

#include "api/decide.h"
#include "plan/plan.h"

/*
 * Looks at pipelines of two stages and more, as many as may be, with the micro-batches, schedule, segments
 * and level of the best point of d: their stages are blocks of a quotient of the devices, equal or not, each
 * with its own degrees. step_s: of the plan. *out in the run arena; out->why, and no bound, where nothing can
 * be said. True if a plan of them, of which *point is made, is faster than step_s. set, src: of the
 * decision. The same for any number of jobs. O(stages) pipeline problems of all degrees.
 */
bool ap_unequal_look(struct ap_ctx *ctx, const struct ap_decision *d, const struct ap_settings *set,
	const struct ap_sources *src, double step_s, struct ap_plan_unequal *out,
	struct ap_decision_point *point);

#endif
