/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices of memory. For a price y >= 0 per byte, the least of cost + y * memory
 * over all picks, less y * limit, is a lower bound of the constrained optimum.
 */
#ifndef AP_ELIM_PRICE_H
#define AP_ELIM_PRICE_H

#include "elim/elim.h"
#include "search/compact.h"
#include "search/engine.h"

/*
 * The numbers of a problem at a price: every entry is cost + price * memory rounded down to a multiple
 * of `quantum`, a power of two for which all totals are exact; so sums never exceed the true ones.
 */
struct ap_priced {
	struct ap_problem p; /* only the nodes and matrices that the plan reads are filled */
	double price, quantum;
};

struct ap_most; /* the largest numbers of a list */

struct ap_pricing {
	const struct ap_elim *e;
	const struct ap_problem *p; /* true costs and memory */
	const double **value; /* room of the plan: the latest evaluation */
	struct ap_priced at; /* price < 0: value is not of a price */
	double least; /* of the latest evaluation */
	const struct ap_most *node, *matrix;
};

/* room: ap_elim_room() of e. The rest in scratch, allocated once for all prices. */
void ap_pricing_open(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **room, struct ap_pricing *out);

/* Evaluates at a price, unless that was the latest one; false when told to stop. */
bool ap_pricing_at(struct ap_ctx *ctx, struct ap_pricing *g, double price);

/* The priced total that a pick of at most `target` that fits can have, rounded up. */
double ap_pricing_threshold(const struct ap_pricing *g, double target);

struct ap_dual { /* the price that gives the best bound */
	bool stopped; /* told to, or out of work, before the best price was known */
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* of all picks; a lower bound if the plan is split */
	double price, bound; /* the best found; bound is a multiple of the quantum of p */
	uint32_t *pick; /* [n] the cheapest found that fits, polished; NULL: none */
	double cost; /* of pick, INFINITY: none */
	uint64_t work;
};

/*
 * Finds the best price of g->p, whose least cost without the limit is `least`, by a pick that does not
 * fit (`pick`, cost `least` unless the plan is split): joins the line of a pick that is too large to
 * that of one that fits, and tries the price where they cross, until no line lies below (Handler and
 * Zang's rule), some ten evaluations. Uses at most max_work. Result in scratch.
 */
void ap_dual_solve(struct ap_ctx *ctx, struct ap_pricing *g, double least, const uint32_t *pick,
	uint64_t max_work, struct ap_dual *out);

/*
 * Puts together a pick that is too large and one that is needlessly small. Where a network has many
 * equal layers, the best price makes all of them choose alike; the optimum lets as many of them as
 * the memory allows choose the faster way. A pick of the one up to some node and of the other from
 * there on pays for one seam only. Of all picks that follow a up to some node and b from it, or b and
 * then a, in order of the nodes: the cheapest one that fits the memory limit, into out[n]. False when
 * none does. O(n + edges).
 */
bool ap_splice(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *out);

/* A good pick within the domains (each has a candidate) that is acceptable, as near the least as
 * max_work allows, into pick[n]; false: none found. *work is counted up. */
typedef bool ap_few_fn(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work);

#define AP_LARGE_WORK (UINT64_C(1) << 26) /* of an evaluation that is worth saving */

struct ap_focus_job {
	struct ap_pricing *g; /* not split */
	const struct ap_budget *left; /* start: picks that fit are taken for acceptable */
	double least; /* of picks without the limit, -INFINITY: not known */
	const uint32_t *pick; /* attains it; NULL: not known, then a pick to start from fits */
	ap_few_fn *best_of;
	void *user;
};

/*
 * As ap_dual_solve(), of a large problem, on few of its candidates, with the better pick that best_of
 * finds; least_memory is AP_NO_LIMIT where it was not asked for, because a pick that fits was given. The
 * best price is that of the candidates that some picks use; the whole problem is evaluated at it,
 * which gives a bound, and the candidates of its picks near the least join, until they no longer lower
 * it or the best pick of the few is near the bound. A handful of evaluations of the whole do what takes
 * ten or twenty without.
 */
void ap_focus_solve(struct ap_ctx *ctx, const struct ap_focus_job *job, struct ap_dual *out);

/* Is the pick found so near the bound that dropping what is dearer pays? */
bool ap_focus_near(const struct ap_dual *dual);

#endif
