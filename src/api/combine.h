/* SPDX-License-Identifier: Apache-2.0 */
/* A search under settings with several values: each combination of them is planned, the fastest taken. */
#ifndef AP_API_COMBINE_H
#define AP_API_COMBINE_H

#include "api/planning.h"

/* Do settings have several values? */
bool ap_combine_asked(const struct ap_settings *set);

/* Plans every combination of the listed values of to->set, in a fixed order, as ap_planning_begin() and
 * ap_planning_make() do, and takes the plan whose simulated step is shortest: *out, with to->set then its
 * settings. Of equal ones it is that of fewer stages, segments, micro-batches, the lower level and the
 * recomputation listed first. checked: by ap_planning_check(). AP_USAGE for more than 64 combinations.
 * Where a setting is auto, the combinations are those of the fastest hybrids, three at most that differ in
 * what has several values: ap_decide() finds them, with what is not given as a search has it.
 * AP_STOPPED: others were not tried. Where no combination has a plan, errors say why. */
enum ap_status ap_combine(struct ap_writing *to, const struct ap_sources *src,
	const struct ap_planning *checked, struct ap_planning **out);

#endif
