/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of memory. For a price y >= 0 per byte, the least of cost + y * memory over all picks,
 * minus y * limit, is a lower bound of the constrained optimum. */
#ifndef AP_ELIM_PRICE_H
#define AP_ELIM_PRICE_H

#include "elim/elim.h"
#include "search/compact.h"
#include "search/engine.h"

/* The numbers of a problem at a price: each entry is cost + price * memory, rounded down to a
 * multiple of `quantum`, a power of two for which all totals are exact; so sums never exceed the
 * true ones. */
struct ap_priced {
	struct ap_problem p; /* only nodes and matrices that the plan reads are set */
	double price, quantum;
};

struct ap_most; /* largest magnitudes of a list */

struct ap_pricing {
	const struct ap_elim *e;
	const struct ap_problem *p; /* true costs and memory */
	const double **value; /* from ap_elim_room(): the latest evaluation */
	struct ap_priced at; /* price < 0: value is not at a price */
	double least; /* of the latest evaluation */
	const struct ap_most *node, *matrix;
};

/* room: ap_elim_room() of e. Allocates the rest in scratch, once for all prices. */
void ap_pricing_open(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **room, struct ap_pricing *out);

/* Evaluates at a price, unless the latest evaluation was; false if told to stop. */
bool ap_pricing_at(struct ap_ctx *ctx, struct ap_pricing *g, double price);

/* The largest priced total of a pick that fits and costs at most `target`, rounded up. */
double ap_pricing_threshold(const struct ap_pricing *g, double target);

struct ap_dual { /* the price with the best bound */
	bool stopped; /* told to stop, or out of work, before the best price was known */
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* of all picks; a lower bound if the plan is split */
	double price, bound; /* the best found; bound: a multiple of the quantum of p */
	uint32_t *pick; /* [n] the cheapest found that fits, polished; or NULL */
	double cost; /* of pick; INFINITY if none */
	uint64_t work;
};

/*
 * Finds the best price of g->p. `least`: its least cost without the limit; `pick`: a pick of that
 * cost (unless the plan is split) that does not fit. Intersects the lines of a pick that is too
 * large and of one that fits, and tries the price there, until no line lies below (Handler and
 * Zang's rule): about ten evaluations. Uses at most max_work. In scratch.
 */
void ap_dual_solve(struct ap_ctx *ctx, struct ap_pricing *g, double least, const uint32_t *pick,
	uint64_t max_work, struct ap_dual *out);

/*
 * Combines a pick that is too large with one that is needlessly small. If a network has many equal
 * layers, the best price makes all of them choose alike, while in the optimum as many as the memory
 * allows choose the faster way. A pick that follows one up to some node and the other from there on
 * pays for only one seam. Of all picks that follow a up to a node and b from it, or b and then a,
 * in node order, writes the cheapest that fits the memory limit to out[n]. Returns false if none
 * fits. O(n + edges).
 */
bool ap_splice(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *out);

/* Finds a good acceptable pick within the domains (none empty), as near the least as max_work
 * allows, into pick[n]; false if none was found. Adds to *work. */
typedef bool ap_few_fn(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work);

#define AP_LARGE_WORK (UINT64_C(1) << 26) /* of an evaluation that is worth saving */

struct ap_focus_job {
	struct ap_pricing *g; /* not a split plan */
	const struct ap_budget *left; /* start: picks that fit count as acceptable */
	double least; /* least cost without the limit; -INFINITY if unknown */
	const uint32_t *pick; /* a pick of that cost; NULL: unknown, then a starting pick fits */
	ap_few_fn *best_of;
	void *user;
};

/*
 * Like ap_dual_solve() for a large problem, but on few of its candidates, and with the better pick
 * that best_of finds. least_memory is AP_NO_LIMIT if it was not needed because a pick that fits was
 * given. The best price for the candidates of some picks is found; evaluating the whole problem at
 * it gives a bound, and candidates of its picks near the least are added, until the best price
 * gains no more or the best pick is near the bound. Takes a handful of evaluations of the whole
 * instead of ten or twenty.
 */
void ap_focus_solve(struct ap_ctx *ctx, const struct ap_focus_job *job, struct ap_dual *out);

/* Is the pick found so near the bound that dropping dearer candidates pays? */
bool ap_focus_near(const struct ap_dual *dual);

#endif
