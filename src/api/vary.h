/* SPDX-License-Identifier: Apache-2.0 */
/* --vary: which plan is best where a number of the machine, of the software or of the run is another. */
#ifndef AP_API_VARY_H
#define AP_API_VARY_H

#include "api/request.h"
#include "report/varied.h"

struct ap_vary_present { /* must not be copied */
	bool any; /* else none fits, it was not asked for, or the run was stopped before */
	struct ap_inputs in;
	struct ap_plan plan;
};

/*
 * Searches (use AP_FOR_search) or decides (AP_FOR_plan) at several values of what set->vary names, and finds
 * the intervals in which one of the plans is best. Every plan that is found anywhere is priced anew
 * at all other values, so that no interval has a plan that is slower than a known one. Where two plans meet,
 * both sides are searched, 0.1 % apart at most; then intervals are divided until a bound proves
 * that nothing in them is faster, where more of the number makes no plan slower, or none faster. A number of
 * devices or samples takes values a, 2a, 4a, .. instead, each of which is searched.
 *
 * AP_USAGE, reported, for an unknown number (the nearest names are named) and for a range that is empty, goes
 * down, or is not what a profile may state. AP_STOPPED: what is known so far. Otherwise, where no value has
 * a plan for another reason than that none fits, that reason is reported and returned. With set->plan_out,
 * *present is the best plan of what the number is without --vary, which may have been found at another value;
 * AP_USAGE, reported, if that is not in the range.
 */
enum ap_status ap_vary(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	unsigned use, struct ap_varied *out, struct ap_vary_present *present);

#endif
