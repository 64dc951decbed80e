/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions for several machines, and what is told of the one that is taken. */
#ifndef AP_API_DECIDED_H
#define AP_API_DECIDED_H

#include "api/decide.h"
#include "api/old_decision.h"
#include "api/shortlist.h"

/* Decisions for several machines: numbers of devices or rank tables, times chips. */
struct ap_decided {
	size_t n; /* at least 1 */
	const struct ap_settings *set; /* [n] the settings, with one chip and number of devices */
	const struct ap_sources *src; /* [n] with the rank table */
	const struct ap_decision *decision; /* [n] best AP_NONE: nothing fits */
	const double *price; /* [n] of a device, by the hour; 0: not given */
	const char *const *why; /* [n] nothing fits; else NULL */
	size_t taken;
	const struct ap_old_decision *old; /* of --keep; NULL: none */
	struct ap_plan_kept *kept; /* what became of it, once it is taken or left */
};

/*
 * ap_decide() for each chip that --chip lists, and of it for each number of devices that --device-num has or
 * for each rank table: that of src and `tables`, NULL-terminated paths. Taken is the shortest step, of equals
 * the fewest devices; under --max-step-time or --deadline the fewest devices that keep it, of equals the
 * cheapest, and AP_INFEASIBLE, reported, if none do. AP_USAGE, reported, if --price has several prices
 * and not one for each chip.
 */
enum ap_status ap_decide_machines(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const char *const *tables, struct ap_decided *out);

/* Takes the decision, or that of --keep, which then is the best of the machine's: *out are its settings,
 * *use what makes the plan of them (AP_FOR_evaluate, or AP_FOR_search where cuts of single operators are
 * faster, which are looked at if `cuts`). Returns what the plan tells of it, in the run arena.
 * O(points * dimensions), beside the search of cuts. */
struct ap_plan_joint *ap_decided_take(struct ap_ctx *ctx, struct ap_decided *all, bool cuts,
	struct ap_settings *out, unsigned *use);

/*
 * What is known once the plan is made: model FLOPs utilisation, which degrees are inside a server, and what
 * of --keep's plan is cut otherwise, plan->kept. in: what it was made of. O(operators).
 */
void ap_decided_finish(struct ap_ctx *ctx, const struct ap_decided *all, const struct ap_inputs *in,
	struct ap_plan *plan, struct ap_plan_joint *told);

/*
 * What plan would gain over a searched plan, where its settings leave stages and micro-batches to their
 * defaults: "dp=8 .. would take 18.6 s instead of 30.0 s", found in a few trials that take about a tenth of
 * the search's own work, the same on every machine. NULL: nothing that is worth it. Reports nothing.
 */
const char *ap_decided_hint(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_plan *plan);

/*
 * The list of bundles that --top and --bundle ask for: the plan that the run itself writes first, then the
 * fastest others. *out in the run arena; told->bundles is set.
 */
void ap_decided_shortlist(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *told,
	struct ap_shortlist *out);

#endif
