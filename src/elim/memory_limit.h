/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum under a memory limit. The best price gives a bound; candidates of which no pick is as
 * cheap as the best one known are dropped, and what is left is solved anew, until nothing drops any
 * more. Then labels within a support look for a pick below a target that rises from the bound until
 * there is one. That one is the optimum, for the support of a target holds every pick that fits and
 * costs no more.
 */
#ifndef AP_ELIM_MEMORY_LIMIT_H
#define AP_ELIM_MEMORY_LIMIT_H

#include "elim/price.h"
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

/*
 * The candidates of the nodes of g->p that a pick of at most `cost` that fits can choose, as the latest
 * price tells; in scratch. The same for equal nodes. NULL when told to stop. *work is counted up.
 */
struct ap_domain *ap_limit_narrow(struct ap_ctx *ctx, const struct ap_pricing *g, double cost,
	uint64_t *work);

struct ap_narrow_job {
	const struct ap_problem *p; /* with a limit */
	const struct ap_budget *budget; /* start: acceptable picks */
	uint64_t least_work; /* of an evaluation: what takes less is left as it is */
	ap_few_fn *best_of; /* domains and pick are those of p */
	void *user;
};

struct ap_narrowed {
	struct ap_domain *domain; /* [n] all that acceptable picks of at most `cost` can choose; NULL:
				   * nothing is known */
	double bound; /* no pick that fits costs less; -INFINITY: not known */
	uint32_t *pick; /* the best acceptable one found; NULL: none */
	double cost;
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* with infeasible */
	uint64_t work;
};

/* A large problem with a limit, less the candidates that no pick worth having uses: for callers who know
 * more about which pick will do than that it keeps to the limit. Results in the run arena. */
void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out);

#endif
