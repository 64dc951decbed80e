/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-problems of integer_programming: problems whose costs were moved about between nodes and edges. Every
 * pick costs the same as before, but for a constant. Costs are multiples of `grain`, a part of the
 * quantum for which sums stay exact, so that nothing is lost on the way. Here is what can be seen of a
 * sub-problem without a linear program, by reductions and by sweeps (sweep.h).
 *
 * A memory limit is a price per byte: with memory charged and the limit refunded, no pick that fits costs
 * more than it does. The best price, the one of the highest bound, is closed in on by halving (its
 * logarithm): where the pick that goes with a price is too large, the price is too low.
 */
#ifndef AP_ILP_SUBPROBLEM_H
#define AP_ILP_SUBPROBLEM_H

#include "search/compact.h"
#include "search/engine.h"

struct ap_lp_solver;

struct ap_ilp_level { /* how picks of a sub-problem become picks of the whole */
	const struct ap_ilp_level *up; /* NULL: the whole */
	const struct ap_compact *compact;
	const struct ap_problem *of; /* of what it is the rest */
};

struct ap_ilp_sub {
	struct ap_problem p; /* in scratch */
	bool own; /* nobody else sees these costs: they may be changed in place */
	const struct ap_ilp_level *level;
	double constant; /* a pick of p costs that more in the whole */
	double bound; /* of all its picks, in the whole; a multiple of the quantum */
};

struct ap_ilp_price { /* of a byte */
	double low, high; /* at which picks are too large, and fit */
	double best, bound;
	int tries;
};

struct ap_ilp {
	struct ap_ctx *ctx;
	struct ap_lp_solver *lp;
	const struct ap_problem *whole;
	const struct ap_budget *budget;
	double grain;
	uint32_t *best; /* [n] pick of the whole */
	double cost; /* of best; INFINITY: none */
	uint64_t work;
	uint64_t relaxing; /* of it, in linear programs */
	struct ap_ilp_price price;
};

/* Can no pick that costs as much as this, or more, be better than the best? */
bool ap_ilp_beaten(const struct ap_ilp *s, double cost);

/* Is v, a multiple of the grain, small enough for sums to be exact? */
bool ap_ilp_exact(const struct ap_ilp *s, double v);

/* Finds the grain. */
void ap_ilp_open(struct ap_ilp *s);

/* Of a problem whose edges share matrices, drops candidates that are beaten, costs staying where they
 * are. False: no pick is left that is better than the best. */
bool ap_ilp_sift(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* Without parallel edges, and with a matrix for each edge, as all that follows asks for. */
void ap_ilp_unfold(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* cost and the rent of memory, which is at most as much as it really is. */
double ap_ilp_rented(const struct ap_ilp *s, double price, double cost, int64_t memory);

/* p with memory in the place of cost, and without a limit. */
struct ap_problem ap_ilp_memory(struct ap_arena *arena, const struct ap_problem *p);

/* Is the best price of memory known? */
bool ap_ilp_price_found(const struct ap_ilp *s);

/*
 * Moves the least cost of each row and column of an edge to its ends and that of each node to the
 * constant; drops candidates and pairs that are forbidden, do not fit or are beaten, nodes that are
 * decided by that, and edges that make no difference, until nothing changes. Under a memory limit costs
 * stay where they are (moved by a sweep at some price). False: no pick is left.
 */
bool ap_ilp_reduce(struct ap_ilp *s, struct ap_ilp_sub *sub);

/*
 * Moves costs along the edges, over and over, so that the constant rises as long as it does by much;
 * drops candidates that are beaten on the way, and holds a pick against the best. Ends early when there
 * is much to be left out of the problem. Under a memory limit all this is done at a price of memory,
 * another one each time until the best is found. Only where costs are the sub-problem's own they stay
 * moved.
 */
void ap_ilp_ascend(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* Is it proven that no pick of a problem with a memory limit fits? Drops candidates that do not. */
bool ap_ilp_too_heavy(struct ap_ilp *s, struct ap_ilp_sub *sub);

/*
 * One node after the other takes what is cheapest after those before it: holds that pick against the
 * best, and names the node that had to pay most, and its candidate, to branch on.
 */
void ap_ilp_guess(struct ap_ilp *s, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate);

/* The same candidates of p with node i restricted to candidate c, or without it. */
struct ap_problem ap_ilp_fix(struct ap_ilp *s, const struct ap_problem *p, uint32_t i, uint32_t c,
	bool in);

/* Holds a pick of the sub-problem against the best. */
void ap_ilp_try(struct ap_ilp *s, const struct ap_ilp_sub *sub, const uint32_t *pick);

#endif
