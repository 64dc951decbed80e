/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions for several machines, and what is told of the one that is taken. */
#ifndef AP_API_DECIDED_H
#define AP_API_DECIDED_H

#include "api/decide.h"
#include "api/shortlist.h"

/* Decisions for several numbers of devices. */
struct ap_decided {
	size_t n; /* at least 1 */
	const struct ap_settings *set; /* [n] the settings, with that number */
	const struct ap_decision *decision; /* [n] best AP_NONE: nothing fits */
	size_t taken;
};

/*
 * ap_decide() for each number of devices that --device-num has. Taken is the shortest step; under
 * --max-step-time or --deadline the fewest devices that keep it, and AP_INFEASIBLE, reported, if none do.
 */
enum ap_status ap_decide_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_decided *out);

/* What a plan tells of the decision that was taken, in the run arena. O(points * dimensions). */
struct ap_plan_joint *ap_decided_report(struct ap_ctx *ctx, const struct ap_decided *all);

/*
 * The list of bundles that --top and --bundle ask for: the plan that the run itself writes first, then the
 * fastest others. *out in the run arena; told->bundles is set.
 */
void ap_decided_shortlist(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *told,
	struct ap_shortlist *out);

#endif
