/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best price of a large problem, found on few of its candidates. The dual is solved on the
 * candidates that some picks use; the whole problem is evaluated at the price found, which gives a
 * bound, and the candidates of its picks near the least join, until they no longer lower it or the best
 * pick of the few is near the bound. A handful of evaluations of the whole do what takes ten or twenty
 * without.
 */
#ifndef AP_ELIM_FOCUS_H
#define AP_ELIM_FOCUS_H

#include "elim/dual.h"
#include "elim/narrow.h"

struct ap_focus_job {
	struct ap_pricing *g; /* not split */
	const struct ap_budget *left; /* start: picks that fit are taken for acceptable */
	double least; /* of picks without the limit, -INFINITY: not known */
	const uint32_t *pick; /* attains it; NULL: not known, then a pick to start from fits */
	ap_few_fn *best_of;
	void *user;
};

/* As ap_dual_solve(), with the better pick that best_of finds; least_memory is AP_NO_LIMIT where it was
 * not asked for, because a pick that fits was given. */
void ap_focus_solve(struct ap_ctx *ctx, const struct ap_focus_job *job, struct ap_dual *out);

/* Is the pick found so near the bound that dropping what is dearer pays? */
bool ap_focus_near(const struct ap_dual *dual);

#endif
