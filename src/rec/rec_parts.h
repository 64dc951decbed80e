/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of rec.h:
 *
 *   rec.c        the story, and the limit on bytes
 *   rec_open.c   neighbours and ties, and where a run starts
 *   rec_weigh.c  what a state costs among its neighbours
 *   rec_pass.c   all nodes decide at once, each among a few states
 *   rec_run.c    the recursion, and what improves its result
 */
#ifndef AP_REC_REC_PARTS_H
#define AP_REC_REC_PARTS_H

#include "base/vec.h"
#include "rec/rec.h"

struct ap_map;

struct ap_rec_side { /* an edge seen from one of its ends */
	ap_id other;
	uint32_t cls;
	bool is_v; /* seen from v */
	bool strict;
};

struct ap_rec_score { /* forbidden first, then cost */
	uint32_t forbidden;
	double cost; /* seconds, and bytes at their price */
	int64_t bytes;
};

struct ap_rec {
	struct ap_ctx *ctx;
	const struct ap_rec_view *view;
	uint32_t *first; /* [n + 1] into side */
	struct ap_rec_side *side;
	ap_id *group; /* [n] lowest node that it is tied to, over others or not */
	uint32_t *pick; /* [n] */
	uint32_t *before; /* [n] */
	struct ap_rec_rates {
		double byte; /* seconds */
		double over; /* of a temporary above cap, a byte */
		int64_t cap;
	} rates;
	struct ap_map *memo; /* decisions of sweeps by surroundings */
	AP_VEC(uint32_t) answer; /* by id in memo */
	uint32_t *key; /* surroundings in words */
	struct ap_rec_pass *pass;
	uint32_t *set_of; /* [n] of a pass: what it decides between */
	uint32_t *rest_of; /* [n] vector: what its states cost by themselves and in all that comes later */
	uint32_t *share; /* [n] neighbours before it */
	bool *torn; /* [n] group with a broken tie */
	bool *dirty; /* [n] something around changed since the node was looked at */
	uint64_t work, most_work;
	uint64_t patience; /* work up to which it does not stop when it is told to */
};

/* In ctx's scratch. */
void ap_rec_open(struct ap_rec *r, struct ap_ctx *ctx, const struct ap_rec_view *view);

/* All nodes at start(); what is tied to a node that cannot move follows it. */
void ap_rec_reset(struct ap_rec *r);

/* Seconds of a price, its bytes charged; in whole quanta. */
double ap_rec_charge(const struct ap_rec *r, struct ap_rec_price p);

/* An edge with states of the end that it is seen from and of the other. */
struct ap_rec_price ap_rec_pair(struct ap_rec *r, const struct ap_rec_side *side, uint32_t own,
	uint32_t other);

void ap_rec_add(struct ap_rec_score *score, const struct ap_rec *r, struct ap_rec_price p);
bool ap_rec_less(const struct ap_rec_score *a, const struct ap_rec_score *b);

/* Node u in this state among its neighbours. */
struct ap_rec_score ap_rec_weigh(struct ap_rec *r, ap_id u, uint32_t state);

/* Of the pick, bytes charged. *temporary (may be NULL): the largest. */
struct ap_rec_score ap_rec_total(struct ap_rec *r, int64_t *temporary);

/* Has the time come to stop? */
bool ap_rec_spent(const struct ap_rec *r);

/*
 * All nodes decide at once between their state and those one level further (prime > 0) or beside it
 * (prime 0). Messages go from the last node to the first: what each state would cost there and beyond,
 * shared out where several nodes ask; then, from the first to the last, each node takes what is
 * cheapest given those before it. Exact on trees whose nodes have one neighbour before them, else a
 * good guess; never dearer than before. backward: the nodes in reverse order. True where something
 * moved. *total is that of the pick, before and afterwards.
 */
bool ap_rec_pass(struct ap_rec *r, int32_t prime, bool backward, struct ap_rec_score *total);

/* Once in a run: passes remember what they found as long as its rates hold. In scratch. */
void ap_rec_open_passes(struct ap_rec *r);

/* One run, from the start, until nothing improves. */
void ap_rec_run(struct ap_rec *r, struct ap_rec_rates rates);

#endif
