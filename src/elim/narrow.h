/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large problem with a limit, less the candidates that no pick worth having uses. For callers who
 * know more about which pick will do than that it keeps to the limit.
 */
#ifndef AP_ELIM_NARROW_H
#define AP_ELIM_NARROW_H

#include "search/compact.h"
#include "search/engine.h"

/* A good pick within the domains (each has a candidate) that is acceptable, as near the least as
 * max_work (0: no limit) allows, into pick[n]; false: none found. *work is counted up. */
typedef bool ap_few_fn(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work);

#define AP_LARGE_WORK (UINT64_C(1) << 26) /* of an evaluation that is worth saving */

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

/* Results in the run arena. */
void ap_narrow(struct ap_ctx *ctx, const struct ap_narrow_job *job, struct ap_narrowed *out);

#endif
