/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Improves a plan by its simulated step, which is no sum of costs: exchanges overlap, buckets share
 * latencies, a route completes what a checkpoint leaves open. A trial gives all equal operators that are
 * cut alike (those of repeated layers) another candidate, alone or together with what their neighbours
 * then do best, and is simulated. Groups that take most of the step come first; of their candidates those
 * whose operators and redistributions, with the gradient exchange charged or not, cost less.
 *
 * A deep improvement goes on where no such trial is faster: with all other candidates, those that cost least
 * more first; with runs, in which one group more at a time changes beside those that did; with equal
 * operators apart; and from the fastest of the plans that were tried, until some in a row have led to none.
 */
#ifndef AP_DRIVE_IMPROVE_H
#define AP_DRIVE_IMPROVE_H

#include "plan/make.h"

struct ap_improving {
	struct ap_ctx *ctx;
	struct ap_plan_maker *maker; /* of start's graph */
	struct ap_completer *completer; /* decides what a checkpoint does not hold; NULL: nothing does */
	const int32_t *const *fixed; /* rows that stay as they are; may be NULL */
	struct ap_arena *scratch; /* for one plan at a time */
	bool deep;
	uint64_t steps; /* that may be taken, in inner steps of a search; reduced by those taken */
	bool done; /* set: no trial is left that is faster */
};

/*
 * A plan that is no slower than start and fits the memory if start does, in the run arena; start itself if
 * there is none. Ends if no trial is faster, the steps are spent, or stopped; deterministic unless stopped,
 * and with more steps it goes through the same plans first. O(operators) per trial.
 */
const struct ap_plan *ap_improve(struct ap_improving *x, const struct ap_plan *start);

#endif
