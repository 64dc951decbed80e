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
	const uint32_t *of; /* the bucket of each of ap_parts' gradients; in scratch. One with more parts
	                       (n) than gradients is never complete */
};

/* The buckets of a priced plan. v in the run arena. O(collectives). */
void ap_buckets_make(struct ap_ctx *ctx, const struct ap_parts *x, struct ap_buckets *out);

struct ap_pricer;

/* Seconds of a collective at least, as a part of a bucket that is as large as can be. */
double ap_buckets_least_s(struct ap_pricer *pricer, const struct ap_comm *c);

/* Bytes of the largest bucket that a collective may be in, whatever the stages: its own, if it fills one. */
double ap_buckets_most_bytes(const struct ap_step *step, const struct ap_comm *c);

/*
 * The least that plans exchange in a block (plan/blocks.h). Whatever the stages, gradients of a kind go into
 * buckets in one order, so that those of a block do as if they were its only ones, but for its first ones,
 * which join a bucket of blocks before it, and its last ones, whose bucket may wait for blocks behind. How
 * many join says where all buckets in the block end: each such number, of each kind, is a way. A bucket that
 * begins before the block takes as long as its bytes from the block do in the largest bucket; one that may
 * wait for others is never complete. Nor are gradients of parameters that several blocks use, and, of kinds
 * in which these may lie in buckets with others, or which follow on several kinds, all that do not fill a
 * bucket.
 */
struct ap_bucket_ways;

/* In scratch. O(gradients). */
struct ap_bucket_ways *ap_bucket_ways_make(struct ap_ctx *ctx, const struct ap_parts *x);
uint32_t ap_bucket_ways_count(const struct ap_bucket_ways *w); /* from 1 to 64: of the block with most */

/* The buckets of a way, all blocks by themselves; a block with fewer ways begins anew. In scratch, valid
 * until the next one is made. O(gradients). */
void ap_bucket_ways_at(struct ap_bucket_ways *w, uint32_t way, struct ap_buckets *out);

/* Reports fusion numbers that are without effect. */
void ap_buckets_explain(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
