/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum under a memory limit. The best price gives a bound; candidates of which no pick is as
 * cheap as the best one known are dropped, and what is left is solved anew, until nothing drops any
 * more. Then labels within a support look for a pick below a target that rises from the bound until
 * there is one. That one is the optimum, for the support of a target holds every pick that fits and
 * costs no more.
 */
#ifndef AP_ELIM_LIMIT_H
#define AP_ELIM_LIMIT_H

#include "elim/pricing.h"
#include "search/compact.h"
#include "search/engine.h"

struct ap_limit_job {
	const struct ap_problem *p; /* with a limit, every k >= 2 */
	const struct ap_elim *e; /* its plan */
	const struct ap_budget *budget; /* start: picks of p */
	const double **room; /* of e */
	double least; /* of the picks of p without the limit */
	const uint32_t *pick; /* attains it (unless e is split) and does not fit */
};

struct ap_limited {
	bool infeasible;
	int64_t least_memory; /* with infeasible; a lower bound if the plan is split */
	uint32_t *pick; /* in scratch; NULL: none found */
	double bound;
	uint64_t work; /* counted up */
};

void ap_limit_solve(struct ap_ctx *ctx, const struct ap_limit_job *job, struct ap_limited *out);

/* Is it worth the time to drop what is dearer than a pick of this cost? */
bool ap_limit_worth(const struct ap_pricing *g, double cost, double bound);

/*
 * The candidates of the nodes of g->p that a pick of at most `cost` that fits can choose, as the latest
 * price tells; in scratch. The same for equal nodes. NULL when told to stop. *work is counted up.
 */
struct ap_domain *ap_limit_narrow(struct ap_ctx *ctx, const struct ap_pricing *g, double cost,
	uint64_t *work);

#endif
