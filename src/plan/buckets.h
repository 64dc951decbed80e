/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets: the collectives of gradients, and those that gather dealt weights, that run as one.
 *
 * What is of one kind, group, stage, type on the wire and fusion number may share a bucket, as the
 * step says for that kind (struct ap_fusion). The number is the parameter's comm_fusion, else its
 * owner's fusion, else 1; 0 keeps it alone. Devices that are not Ascend know no numbers. A parameter
 * whose users compute in different types is not fused.
 */
#ifndef AP_PLAN_BUCKETS_H
#define AP_PLAN_BUCKETS_H

#include "plan/parts.h"

struct ap_buckets {
	uint32_t n;
	const struct ap_bucket *v; /* in the order in which they are complete: gradients, then weights */
	const uint32_t *of; /* the bucket of each gradient of the index; in scratch */
};

/* Of a priced plan. O(collectives). */
void ap_buckets_make(struct ap_ctx *ctx, const struct ap_parts *x, struct ap_buckets *out);

/* Says where fusion numbers are without effect. */
void ap_buckets_explain(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
