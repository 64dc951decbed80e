/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best price of a large problem, found on few of its candidates. The dual is solved on the
 * candidates that some picks use; the whole problem is evaluated at the price found, which gives a
 * bound, and the candidates of its picks near the least join, until they no longer lower it. A
 * handful of evaluations of the whole do what takes ten or twenty without.
 */
#ifndef AP_SEARCH_FOCUS_H
#define AP_SEARCH_FOCUS_H

#include "search/dual.h"
#include "search/engine.h"

/* As ap_dual_solve(), with the better pick that an exact search among the few candidates finds.
 * e is not split. */
void ap_focus_solve(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double least, const uint32_t *pick, const struct ap_budget *left, struct ap_dual *out);

#endif
