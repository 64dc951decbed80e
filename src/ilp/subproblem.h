/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-problems of integer_programming: problems whose costs were moved between nodes and edges.
 * Every pick keeps its cost, apart from a constant. Costs are multiples of `grain`, a part of the
 * quantum for which sums stay exact, so nothing is lost. This file reduces sub-problems without a
 * linear program, by reductions and sweeps (sweep.h).
 *
 * A memory limit is handled by a price per byte: with memory charged and the limit refunded, no
 * pick that fits costs more than before. The best price, with the highest bound, is approached by
 * bisecting its logarithm: if the pick found at a price is too large, the price is too low.
 */
#ifndef AP_ILP_SUBPROBLEM_H
#define AP_ILP_SUBPROBLEM_H

#include "search/compact.h"
#include "search/engine.h"

struct ap_lp_solver;

struct ap_ilp_level { /* maps picks of a sub-problem to picks of the whole */
	const struct ap_ilp_level *up; /* NULL: the whole */
	const struct ap_compact *compact;
	const struct ap_problem *of; /* the problem that compact reduces */
};

struct ap_ilp_sub {
	struct ap_problem p; /* allocated in scratch */
	bool own; /* the costs are not shared and may be changed in place */
	const struct ap_ilp_level *level;
	double constant; /* added to a pick's cost in p gives its cost in the whole */
	double bound; /* of all its picks, in costs of the whole; a multiple of the quantum */
};

struct ap_ilp_price { /* price of a byte */
	double low, high; /* prices at which picks are too large, and at which they fit */
	double best, bound;
	int tries;
};

struct ap_ilp {
	struct ap_ctx *ctx;
	struct ap_lp_solver *lp;
	const struct ap_problem *whole;
	const struct ap_budget *budget;
	double grain;
	uint32_t *best; /* [n] best pick of the whole */
	double cost; /* of best; INFINITY if none */
	uint64_t work;
	bool branching; /* sub-problems are parts of the whole */
	uint64_t relaxing; /* part of work spent on linear programs */
	struct ap_ilp_price price;
};

/* Can no pick of at least this cost beat the best? */
bool ap_ilp_beaten(const struct ap_ilp *s, double cost);

/* Is v, a multiple of the grain, small enough for exact sums? */
bool ap_ilp_exact(const struct ap_ilp *s, double v);

/* Sets the grain. */
void ap_ilp_open(struct ap_ilp *s);

/* Drops beaten candidates of a problem whose edges share matrices, without moving costs. Returns
 * false if no pick is left that beats the best. */
bool ap_ilp_sift(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* Merges parallel edges and gives each edge its own matrix, as the functions below require. */
void ap_ilp_unfold(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* cost plus the rent of memory, which is never overstated. */
double ap_ilp_rented(const struct ap_ilp *s, double price, double cost, int64_t memory);

/* p with memory in place of cost and without a limit. */
struct ap_problem ap_ilp_memory(struct ap_arena *arena, const struct ap_problem *p);

/* Is the best price of memory known? */
bool ap_ilp_price_found(const struct ap_ilp *s);

/*
 * Moves the least cost of each row and column of an edge to its ends, and the least of each node to
 * the constant; drops candidates and pairs that are forbidden, do not fit or are beaten, nodes
 * decided by that, and edges that make no difference, until nothing changes. Under a memory limit
 * costs stay in place (a sweep at some price moves them). Returns false if no pick is left.
 */
bool ap_ilp_reduce(struct ap_ilp *s, struct ap_ilp_sub *sub);

/*
 * Moves costs along edges repeatedly, while the constant rises by much; drops beaten candidates on
 * the way, and compares a pick with the best. Ends early once much can be dropped from the problem.
 * Under a memory limit, works at a price of memory, a new one each time until the best is found.
 * Costs stay moved only if the sub-problem owns them.
 */
void ap_ilp_ascend(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* Is it proven that no pick of a problem with a memory limit fits? Drops candidates that do not. */
bool ap_ilp_too_heavy(struct ap_ilp *s, struct ap_ilp_sub *sub);

/* Picks greedily, node by node, compares that pick with the best, and chooses the node that had to
 * pay most and its candidate to branch on. */
void ap_ilp_guess(struct ap_ilp *s, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate);

/* p with node i restricted to candidate c (in), or without c. */
struct ap_problem ap_ilp_fix(struct ap_ilp *s, const struct ap_problem *p, uint32_t i, uint32_t c,
	bool in);

/* Compares a pick of the sub-problem with the best. */
void ap_ilp_try(struct ap_ilp *s, const struct ap_ilp_sub *sub, const uint32_t *pick);

#endif
