/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets: collectives of gradients, and collectives that gather dealt weights, that run as one.
 *
 * Collectives of one kind, group, stage, type on the wire and fusion number may share a bucket, as
 * the step's struct ap_fusion for that kind states. The number is the parameter's comm_fusion, else
 * its owner's fusion, else 1; 0 keeps it alone. Devices other than Ascend ignore it. A parameter
 * whose users compute in different types is not fused.
 */
#ifndef AP_PLAN_BUCKETS_H
#define AP_PLAN_BUCKETS_H

#include "plan/parts.h"

struct ap_buckets {
	uint32_t n;
	const struct ap_bucket *v; /* in the order of completion: gradients, then weights */
	const uint32_t *of; /* the bucket of each of ap_parts' gradients; in scratch */
};

/* The buckets of a priced plan. v in the run arena. O(collectives). */
void ap_buckets_make(struct ap_ctx *ctx, const struct ap_parts *x, struct ap_buckets *out);

/* Bytes of the largest bucket that a collective may be in, whatever the stages: its own, if it fills one. */
double ap_buckets_most_bytes(const struct ap_step *step, const struct ap_comm *c);

/* Reports fusion numbers that are without effect. */
void ap_buckets_explain(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
