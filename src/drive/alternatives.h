/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What else the operators of a plan could be cut like, and what the whole plan would then be: by the sum that
 * searches minimise, exactly (elim/marginal.h), and for the nearest by the simulated step.
 */
#ifndef AP_DRIVE_ALTERNATIVES_H
#define AP_DRIVE_ALTERNATIVES_H

#include "drive/charge.h"
#include "drive/request.h"

struct ap_alternative { /* a cut of an operator */
	const int32_t *count; /* [factor] */
	bool taken; /* the plan's */
	double own_s; /* the operator's own share of the sum */
	double sum_s; /* least objective of all plans that have this cut; INFINITY: none can have it */
	bool exact; /* such a plan exists and fits the memory: else sum_s is a bound */
	double step_s; /* simulated, of the fastest plan with it that was made; 0: none was made */
	int64_t memory_bytes; /* of that plan */
	bool fits;
	uint32_t nchange; /* operators that it cuts otherwise than the plan does, with this one */
};

struct ap_alternatives {
	ap_id node;
	uint32_t n; /* all its cuts */
	const struct ap_alternative *v; /* by sum, of equal ones the taken one first, then as candidates
					   are */
	uint32_t taken; /* index of the plan's cut; n: it is none of them */
};

struct ap_alternatives_job {
	const struct ap_request *rq;
	const struct ap_plan *plan; /* of rq's graph */
	const bool *wanted; /* [nnode] */
	uint32_t nsimulated; /* so many of the nearest cuts of each operator are simulated */
	bool prove; /* those whose best plan does not fit are searched within the memory; by the usual
	               objective, whatever the plan is near to */
};

struct ap_alternatives_report {
	const char *unknown; /* why there are no sums: nothing else is then set; NULL: there are */
	enum ap_charge charge; /* the objective of the solve in which the plan was nearest to the best */
	double least_s; /* the optimum by that, without regard to memory */
	double plan_s; /* the plan by that */
	bool binds; /* that optimum does not fit the memory */
	uint32_t n;
	const struct ap_alternatives *of; /* [n] of the wanted operators, in the graph's order */
	uint64_t work;
};

/*
 * In the run arena. AP_OK whether sums are known or not. AP_STOPPED if told to stop. What the graph or the
 * request gives is one cut. Plans that a route would complete are made as they are. O(table), then for each
 * operator O(simulated cuts * (a solve + operators)).
 */
enum ap_status ap_alternatives_make(struct ap_ctx *ctx, const struct ap_alternatives_job *job,
	struct ap_alternatives_report *out);

#endif
