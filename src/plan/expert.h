/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a plan can be said in the words of frameworks that know only degrees of parallelism for a
 * whole network (MindFormers' YAML, Megatron's arguments): the hybrid that comes nearest to it.
 */
#ifndef AP_PLAN_EXPERT_H
#define AP_PLAN_EXPERT_H

#include "plan/drive.h"
#include "plan/hybrid.h"

struct ap_expert {
	struct ap_hybrid hybrid; /* filled; dp 0: none fits this graph and machine */
	const char *why_not; /* then */
	bool same; /* the plan is this hybrid, operator by operator */
	double step_time_s; /* simulated */
	int64_t memory_bytes;
	bool fits; /* the memory of a device */
	double loss; /* step time over the plan's, less 1 */
};

/* The fastest of the hybrids of a request's machine and pipeline that fits the memory, the leanest where
 * none does; the plan's own where it is one. */
enum ap_status ap_expert_find(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_plan *p,
	struct ap_expert *out);

#endif
