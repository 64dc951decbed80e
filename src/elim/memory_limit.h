/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimum under a memory limit. The best price gives a bound; candidates that occur in no pick
 * as cheap as the best known one are dropped and the rest is solved anew, until nothing more is
 * dropped. Then labels within a support search for a pick below a target that rises from the bound
 * until one is found. That pick is the optimum, because the support of a target contains every pick
 * that fits and costs no more.
 */
#ifndef AP_ELIM_MEMORY_LIMIT_H
#define AP_ELIM_MEMORY_LIMIT_H

#include "elim/price.h"
#include "search/compact.h"
#include "search/engine.h"

struct ap_limit_job {
	const struct ap_problem *p; /* has a limit; every k >= 2 */
	const struct ap_elim *e; /* its elimination plan */
	const struct ap_budget *budget; /* start: picks of p */
	const double **room; /* ap_elim_room() of e */
	double least; /* least cost of p without the limit */
	const uint32_t *pick; /* has that cost (unless e is split) and does not fit */
};

struct ap_limited {
	bool infeasible;
	int64_t least_memory; /* if infeasible; a lower bound if the plan is split */
	uint32_t *pick; /* in scratch; NULL if none was found */
	double bound;
	uint64_t work; /* counted up */
};

void ap_limit_solve(struct ap_ctx *ctx, const struct ap_limit_job *job, struct ap_limited *out);

/* The candidates of each node of g->p in picks that fit and cost at most `cost`, as far as the
 * latest price shows; in scratch. Equal for equal nodes. NULL if told to stop. Adds to *work. */
struct ap_domain *ap_limit_narrow(struct ap_ctx *ctx, const struct ap_pricing *g, double cost,
	uint64_t *work);

struct ap_narrow_job {
	const struct ap_problem *p; /* has a limit */
	const struct ap_budget *budget; /* start: acceptable picks */
	uint64_t least_work; /* problems whose evaluation takes less are left unchanged */
	ap_few_fn *best_of; /* with domains and picks of p */
	void *user;
};

struct ap_narrowed {
	struct ap_domain *domain; /* [n] contains all acceptable picks of at most `cost`; NULL if
	                             unknown */
	double bound; /* of all picks that fit; -INFINITY if unknown */
	uint32_t *pick; /* the best acceptable pick found, or NULL */
	double cost;
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* if infeasible */
	uint64_t work;
};

/* Drops candidates of a large problem with a limit that no useful pick has: for callers with
 * further criteria for acceptable picks than the limit. Results in the run arena. */
void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out);

#endif
