/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan in terms of frameworks that know only degrees of parallelism for a whole network
 * (MindFormers' YAML, Megatron's arguments): the hybrid nearest to it.
 */
#ifndef AP_DRIVE_EXPERT_H
#define AP_DRIVE_EXPERT_H

#include "hybrid/hybrid.h"
#include "plan/plan.h"

struct ap_expert {
	struct ap_hybrid hybrid; /* filled; vocab AP_VOCAB_AUTO: tp does not divide every table that could be
	                          * cut. dp 0: none fits this graph and machine */
	const char *why_not; /* if dp is 0 */
	bool same; /* the plan is this hybrid, views aside */
	uint32_t differ; /* operators, without views, that the plan cuts otherwise */
	double step_time_s; /* simulated */
	int64_t memory_bytes;
	bool fits; /* in the memory of a device */
	double loss; /* step time over the plan's, less 1 */
};

/*
 * Finds the plan's own hybrid if it is one, asked (which may be NULL) before others; else the fastest
 * in the plan's pipeline that fits the memory, or if none fits, the one with the least memory. For a
 * large graph only hybrids with the fewest kinds of cuts are tried, up to some hundred thousand
 * operators in all; in a stopped run those reached.
 */
void ap_expert_find(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_hybrid *asked,
	struct ap_expert *out);

#endif
