/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.json and shard.json: the calls of cells and primitives that mark what the plan recomputes, and
 * that cut operators of which the graph has an in_strategy. A primitive is known by its cell and the
 * attribute that holds it; for a mark, where the graph does not tell that, by its cell and its type.
 */
#ifndef AP_BUNDLE_BUNDLE_MARKS_H
#define AP_BUNDLE_BUNDLE_MARKS_H

#include "bundle/bundle.h"

#define AP_BUNDLE_SHARD "shard.json"

void ap_bundle_write_recompute(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

/* Operators that the plan recomputes, or keeps, and that recompute.json cannot tell from others. */
uint32_t ap_bundle_recompute_rest(struct ap_ctx *ctx, const struct ap_bundle *b);

/* Calls of shard(), where a checkpoint is loaded: it cannot say strategies of operators without a
 * parameter, and no out_strategy at all. */
struct ap_bundle_pins {
	uint32_t said, left; /* operators that it is called of, or cannot be */
	uint32_t dealt; /* of those that it is called of: with an out_strategy that has to be said */
};
struct ap_bundle_pins ap_bundle_pins(struct ap_ctx *ctx, const struct ap_bundle *b);
bool ap_bundle_shards(const struct ap_bundle *b); /* is any operator among them? */
void ap_bundle_write_shard(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

#endif
