/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of operators as MindSpore enumerates them, their cost by its own cost model, and which
 * of them its propagation prefers. Independent of the graph and of what is held. */
#ifndef AP_ROUTE_MS_CANDIDATES_H
#define AP_ROUTE_MS_CANDIDATES_H

#include "base/map.h"
#include "base/vec.h"
#include "cost/ms_cost.h"

/* Ends of redistributions are interned: equal ones have equal ids. */
struct ap_ms_class { /* operators with equal candidates; filled on demand */
	const struct ap_bound *bound;
	const uint8_t *batch; /* [nend] dimensions that carry the batch */
	bool cross_batch;
	uint32_t nend; /* ends of a candidate: operands, then results */
	uint32_t n; /* candidates; 0: not enumerated yet */
	const int32_t *count; /* [n][AP_MAX_FACTOR], in MindSpore's order */
	const ap_id **end; /* [nend][n]; NULL rows: not yet */
	struct ap_ms_cost *cost; /* [n] */
	bool *priced; /* [n] is cost set? */
};

struct ap_ms_candidates { /* of all classes; made on demand, and kept from run to run */
	struct ap_ctx *ctx; /* of the present run */
	struct ap_arena *arena; /* owns what is kept */
	int64_t ndev;
	const struct ap_step *step;
	AP_VEC(struct ap_ms_class) classes;
	struct ap_map *class_ids;
	struct ap_map *end_ids; /* of struct ap_ms_end */
	struct ap_map *cost_ids; /* of two ends and an element type */
	AP_VEC(struct ap_ms_cost) costs;
	struct ap_map *row_ids; /* of a class and counts */
	AP_VEC(const ap_id *) rows;
	struct ap_map *choice_ids;
	AP_VEC(uint32_t) choices;
};

/* The class of an operator. batch: as in ap_ms_class. */
uint32_t ap_ms_class_of(struct ap_ms_candidates *s, const struct ap_bound *b, const uint8_t *batch,
	bool cross_batch);

/* The class, with its candidates enumerated. */
const struct ap_ms_class *ap_ms_class(struct ap_ms_candidates *s, uint32_t class);

/* [n] each candidate's end at a slot: operands, then results. */
const ap_id *ap_ms_cand_ends(struct ap_ms_candidates *s, uint32_t class, uint32_t slot);

/* [nend] the ends of an operator of this class with these counts. */
const ap_id *ap_ms_ends(struct ap_ms_candidates *s, uint32_t class, const int32_t *count);

ap_id ap_ms_end_id(struct ap_ms_candidates *s, const struct ap_ms_end *e);
const struct ap_ms_end *ap_ms_end_at(const struct ap_ms_candidates *s, ap_id id);
const struct ap_ms_cost *ap_ms_cost_between(struct ap_ms_candidates *s, ap_id from, ap_id to,
	enum ap_dtype dtype);

static inline const int32_t *ap_ms_count(const struct ap_ms_class *c, uint32_t i)
{
	return c->count + (size_t)i * AP_MAX_FACTOR;
}

struct ap_ms_known { /* a known end next to an operator to be decided */
	uint32_t slot; /* the operator's end that it is next to */
	ap_id end;
};

enum ap_ms_choice {
	AP_MS_FORWARD, /* from the producer of the only operand */
	AP_MS_BACKWARD, /* from a consumer */
	AP_MS_JOINT /* from the known producers of several operands */
};

/* The candidate with the least cost, by MindSpore's comparison for such a choice. */
uint32_t ap_ms_choose(struct ap_ms_candidates *s, uint32_t class, enum ap_ms_choice kind, uint32_t n,
	const struct ap_ms_known *known);

/* For an element-wise operator whose producers are all known and have one layout (or with one
 * operand and a known consumer), MindSpore also tries that layout, whatever its device matrix, if
 * its vector of cuts is a strategy. Is it the strategy of candidate i? */
bool ap_ms_takes_layout(struct ap_ms_candidates *s, uint32_t class, uint32_t i, uint32_t n,
	const struct ap_ms_known *known);

/* Do counts x of operator a and y of operator b make the same strategy? */
bool ap_ms_same_strategy(const struct ap_ms_candidates *s, const struct ap_bound *a, const int32_t *x,
	const struct ap_bound *b, const int32_t *y);

/* The first candidate that cuts this slot as the end is cut; 0 if none. */
uint32_t ap_ms_find_cuts(struct ap_ms_candidates *s, uint32_t class, uint32_t slot, ap_id end);

/* The first candidate with this end at the slot; the number of candidates if none. */
uint32_t ap_ms_find(struct ap_ms_candidates *s, uint32_t class, uint32_t slot, ap_id end);

/* Replaces *best by end if the redistribution between it and the known end (forward: from known)
 * has less communication, or neither has any and end has less computation. */
struct ap_ms_reach {
	ap_id end; /* AP_NONE: none yet */
	struct ap_ms_cost cost;
};
void ap_ms_reach(struct ap_ms_candidates *s, ap_id known, bool forward, ap_id end, enum ap_dtype dtype,
	struct ap_ms_reach *best);

#endif
