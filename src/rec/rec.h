/* SPDX-License-Identifier: Apache-2.0 */
/* The double recursion of recursive_programming: over levels of the machine, outermost first, and
 * at each level over operators. At a level each node is cut once more, by the level's prime, or
 * stays; messages from the last node to the first give the cost of each of these states there and
 * beyond, then nodes decide from first to last. The same is then repeated with neighbouring states,
 * in both directions, and with single nodes, until nothing improves. States are never enumerated:
 * only those that the view offers are seen. Messages and decisions are memoized, so repeated layers
 * cost look-ups. */
#ifndef AP_REC_REC_H
#define AP_REC_REC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_rec_price {
	double s; /* INFINITY: forbidden */
	int64_t bytes; /* summed */
	int64_t temporary; /* the largest counts */
};

struct ap_rec_list {
	uint32_t n;
	const uint32_t *state;
};

struct ap_rec_edge {
	ap_id u, v;
	uint32_t cls; /* edges of one class have equal prices */
	bool strict; /* may forbid */
};

/* A state is the view's name for a candidate of a node class. The functions are pure; lists live as
 * long as the view. */
struct ap_rec_view {
	void *self;
	uint32_t n, nedge;
	const uint32_t *cls; /* [n] nodes of one class have the same states and prices */
	const struct ap_rec_edge *edge; /* [nedge] */
	double quantum; /* all finite prices are multiples of it */
	bool negative; /* pairs may have negative seconds or bytes */
	uint32_t nlevel;
	const int32_t *prime; /* [nlevel] arguments of further() */
	uint32_t (*start)(void *self, uint32_t cls); /* nothing is cut */
	struct ap_rec_list (*further)(void *self, uint32_t cls, uint32_t state, int32_t prime);
	struct ap_rec_list (*beside)(void *self, uint32_t cls, uint32_t state); /* small changes */
	/* States of an edge's u (or v) that it allows with a state of the other end. Used only if
	 * start() of tied nodes is forbidden. */
	struct ap_rec_list (*matching)(void *self, uint32_t edge_cls, bool of_v, uint32_t other);
	struct ap_rec_price (*node)(void *self, uint32_t cls, uint32_t state);
	struct ap_rec_price (*pair)(void *self, uint32_t edge_cls, uint32_t u, uint32_t v);
};

struct ap_rec_limits {
	int64_t bytes; /* of summed bytes and largest temporary; AP_NO_LIMIT: none */
	uint64_t work; /* prices evaluated; 0: no limit */
	bool insist; /* after a stop request, goes on for some million prices until something fits */
	bool first; /* stops at the first pick that fits */
};

struct ap_rec_result {
	uint32_t *pick; /* [n] states, in the run arena; legal even if it does not fit */
	bool allowed; /* no price is INFINITY */
	bool fits;
	double s;
	int64_t bytes, temporary;
	uint64_t work;
};

/* Finds the cheapest pick it can. With a limit, bytes have a price, and a fixed number of prices is
 * tried; if nothing fits, the result is the leanest pick found, which proves nothing. Polls ctx's
 * stop flag. O((levels + passes) * (n + edges)) look-ups, and per kind of surroundings at most the
 * square of a node's open states. */
void ap_rec_solve(struct ap_ctx *ctx, const struct ap_rec_view *view,
	const struct ap_rec_limits *limits, struct ap_rec_result *out);

#endif
