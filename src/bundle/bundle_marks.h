/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.json and shard.json: the calls of cells and primitives that mark what the plan
 * recomputes, and that cut operators with an in_strategy in the graph. A primitive is identified by
 * its cell and the attribute that holds it; for a mark, if the graph does not give that, by its
 * cell and type.
 */
#ifndef AP_BUNDLE_BUNDLE_MARKS_H
#define AP_BUNDLE_BUNDLE_MARKS_H

#include "bundle/bundle.h"

#define AP_BUNDLE_SHARD "shard.json"

void ap_bundle_write_recompute(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

/* The number of operators that the plan recomputes or keeps, but recompute.json cannot identify. */
uint32_t ap_bundle_recompute_rest(struct ap_ctx *ctx, const struct ap_bundle *b);

/* The number of norms of which the plan gathers anew what is gathered, which it cannot identify either. */
uint32_t ap_bundle_gather_rest(struct ap_ctx *ctx, const struct ap_bundle *b);

/* Calls of shard() beside a checkpoint, which cannot hold strategies of operators without a
 * parameter, nor any out_strategy. */
struct ap_bundle_pins {
	uint32_t said, left; /* operators with a call, and those that cannot have one */
	uint32_t dealt; /* of said: those that need an out_strategy */
};
struct ap_bundle_pins ap_bundle_pins(struct ap_ctx *ctx, const struct ap_bundle *b);
bool ap_bundle_shards(const struct ap_bundle *b); /* is said above 0? */
void ap_bundle_write_shard(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

#endif
