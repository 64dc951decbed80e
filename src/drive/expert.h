/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a plan can be said in the words of frameworks that know only degrees of parallelism for a
 * whole network (MindFormers' YAML, Megatron's arguments): the hybrid that comes nearest to it.
 */
#ifndef AP_DRIVE_EXPERT_H
#define AP_DRIVE_EXPERT_H

#include "hybrid/hybrid.h"
#include "plan/plan.h"

struct ap_expert {
	struct ap_hybrid hybrid; /* filled; vocab AP_VOCAB_AUTO: tp does not divide every table that could be
	                          * cut. dp 0: none fits this graph and machine */
	const char *why_not; /* then */
	bool same; /* the plan is this hybrid, operator by operator but for views */
	uint32_t differ; /* operators but views that the plan cuts otherwise */
	double step_time_s; /* simulated */
	int64_t memory_bytes;
	bool fits; /* the memory of a device */
	double loss; /* step time over the plan's, less 1 */
};

/*
 * The plan's own hybrid where it is one; else the fastest, in the plan's pipeline, of those that fit its
 * memory, the leanest where none does. Of a large graph the hybrids with the fewest kinds of cuts only,
 * as many as some hundred thousand operators make; of a stopped run those that were looked at.
 */
void ap_expert_find(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_expert *out);

#endif
