/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan --keep: what an older plan decided, as one more candidate of a decision. It is priced anew; while it
 * is a plan of the inputs of now, fits, can be told to the executor, and takes at most --within longer than
 * the best that is found, it is taken. What is given wins over it.
 */
#ifndef AP_API_OLD_DECISION_H
#define AP_API_OLD_DECISION_H

#include "api/decide.h"
#include "planfile/plan_read.h"

struct ap_old_decision; /* what an older plan decided, and how it cuts operators */

/* Reads the plan, or that of the bundle, that set->keep names: *out in the run arena, NULL without --keep.
 * AP_MEANING and others if the file is no plan, reported. */
enum ap_status ap_old_decision_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_old_decision **out);

/* The plan that is taken so far, and becomes the old one if that is kept. */
struct ap_old_decision_rivals {
	const struct ap_settings *set;
	const struct ap_sources *src;
	bool search; /* there is time to search cuts of operators */
	struct ap_decision *d; /* best is the old trial then, where the old plan is a hybrid */
	struct ap_settings *out; /* of the plan */
	unsigned *use; /* what makes it */
	double *cuts_s; /* its step where it cuts operators one by one; 0: it is a hybrid */
	uint32_t *trial; /* of which the settings are */
};

/*
 * Prices what the old plan decided, and takes it where it is within the tolerance. Of a plan that cuts
 * operators one by one the settings are kept where a search under them, which changes as few operators as
 * can be, is within it. Returns what is told of it, in the run arena, to be completed by
 * ap_old_decision_finish(). O(trials), beside a search.
 */
struct ap_plan_kept *ap_old_decision_hold(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_old_decision_rivals *rivals);

/* Counts the operators that the plan cuts otherwise than the old one, and sets plan->kept. O(operators). */
void ap_old_decision_finish(struct ap_ctx *ctx, const struct ap_old_decision *old,
	struct ap_plan_kept *told, struct ap_plan *plan);

#endif
