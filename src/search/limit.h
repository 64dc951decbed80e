/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum under a memory limit: the best price gives a bound, and labels within a support look
 * for a pick below a target that rises from the bound until there is one. That one is the optimum,
 * for the support of a target holds every pick that fits and costs no more.
 */
#ifndef AP_SEARCH_LIMIT_H
#define AP_SEARCH_LIMIT_H

#include "search/elim.h"
#include "search/engine.h"

struct ap_limited {
	bool infeasible;
	int64_t least_memory; /* with infeasible; AP_NO_LIMIT: not known */
	uint32_t *pick; /* in scratch; NULL: none found */
	double bound;
	uint64_t work; /* counted up */
};

/* p: with a limit, every k >= 2, planned in e. least: of its picks without the limit; pick: one
 * that attains it (unless e is split) and does not fit. budget->start are picks of p. */
void ap_limit_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_elim *e,
	const struct ap_budget *budget, double least, const uint32_t *pick,
	struct ap_limited *out);

#endif
