/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The double recursion of recursive_programming: over the levels of the machine, outermost first,
 * and at each level over the operators. At a level every node may be cut once further, by the
 * level's prime, or stay; messages from the last node to the first say what each of these states
 * would cost there and beyond, then the nodes decide from the first to the last. Afterwards the
 * same is done with the states beside the present ones, in either direction, and nodes are moved
 * one at a time, until nothing improves.
 *
 * Nothing here enumerates the states of a node: it sees only those that the view offers. Messages
 * and decisions are remembered by what they depend on, so that repeated layers cost look-ups.
 */
#ifndef AP_REC_REC_H
#define AP_REC_REC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_rec_price {
	double s; /* INFINITY: forbidden */
	int64_t bytes; /* adds up */
	int64_t temporary; /* of which the largest counts */
};

struct ap_rec_list {
	uint32_t n;
	const uint32_t *state;
};

struct ap_rec_edge {
	ap_id u, v;
	uint32_t cls; /* edges of one class have one price */
	bool strict; /* may forbid */
};

/* A state is the view's name for a candidate of a class of nodes. The functions are pure, lists live as
 * long as the view. */
struct ap_rec_view {
	void *self;
	uint32_t n, nedge;
	const uint32_t *cls; /* [n] nodes of one class have the same states and prices */
	const struct ap_rec_edge *edge; /* [nedge] */
	double quantum; /* every finite price is a multiple of it */
	bool negative; /* a pair may have a negative price, in seconds or bytes */
	uint32_t nlevel;
	const int32_t *prime; /* [nlevel] that further() takes */
	uint32_t (*start)(void *self, uint32_t cls); /* nothing is cut */
	struct ap_rec_list (*further)(void *self, uint32_t cls, uint32_t state, int32_t prime);
	struct ap_rec_list (*beside)(void *self, uint32_t cls, uint32_t state); /* small changes */
	/* States of an edge's u (or v) that it allows beside this state of the other end. Asked for only
	 * where start() of tied nodes is forbidden. */
	struct ap_rec_list (*matching)(void *self, uint32_t edge_cls, bool of_v, uint32_t other);
	struct ap_rec_price (*node)(void *self, uint32_t cls, uint32_t state);
	struct ap_rec_price (*pair)(void *self, uint32_t edge_cls, uint32_t u, uint32_t v);
};

struct ap_rec_limits {
	int64_t bytes; /* sum of bytes and largest temporary; AP_NO_LIMIT: none */
	uint64_t work; /* prices looked at, 0: no limit; stops where it stands */
	bool insist; /* told to stop, goes on for some millions of prices until something fits */
	bool first; /* that something fits is all that is asked: no cheaper one is looked for */
};

struct ap_rec_result {
	uint32_t *pick; /* [n] states, in the run arena; legal even where it does not fit */
	bool allowed; /* nothing is forbidden */
	bool fits;
	double s;
	int64_t bytes, temporary;
	uint64_t work;
};

/*
 * With a limit, bytes have a price, and a fixed number of prices is tried; where nothing fits, the
 * result is the leanest found, which proves nothing. Polls ctx's stop flag. O((levels + passes) *
 * (n + edges)) look-ups, and for each kind of surroundings at most the square of the states that are
 * open to a node.
 */
void ap_rec_solve(struct ap_ctx *ctx, const struct ap_rec_view *view,
	const struct ap_rec_limits *limits, struct ap_rec_result *out);

#endif
