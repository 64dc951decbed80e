/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory limit as a price. For a price y >= 0 per byte, the least of cost + y * memory over all
 * picks, less y * limit, is a lower bound of the constrained optimum. The best price is found by
 * joining the line of a pick that is too large to that of one that fits, and trying the price where
 * they cross, until no line lies below (Handler and Zang's rule): some ten evaluations.
 */
#ifndef AP_SEARCH_DUAL_H
#define AP_SEARCH_DUAL_H

#include "search/elim.h"

/*
 * The numbers of p at a price: every entry is cost + price * memory rounded down to a multiple of
 * `quantum`, a power of two for which all totals are exact; so sums never exceed the true ones.
 * Only the nodes and matrices that the plan reads are filled.
 */
struct ap_priced {
	struct ap_problem p;
	double price, quantum;
};

void ap_priced_make(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double price, struct ap_priced *out);

/* The bound of the constrained optimum that the least of all picks at a price gives. */
double ap_priced_bound(const struct ap_problem *p, const struct ap_priced *at, double least);

/* p with memory in the place of cost; what is forbidden stays so. In scratch. */
struct ap_problem ap_memory_problem(struct ap_ctx *ctx, const struct ap_problem *p);

struct ap_dual {
	bool stopped; /* told to, or out of work, before the best price was known */
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* of all picks; a lower bound if the plan is split */
	double price, bound; /* the best found; bound is a multiple of the quantum of p */
	uint32_t *pick; /* [n] the cheapest found that fits, polished; NULL: none */
	double cost; /* of pick, INFINITY: none */
	uint64_t work;
};

/* Finds the best price of p, whose least cost without the limit is `least`, by a pick that does
 * not fit (`pick`, cost `least` unless the plan is split). Uses at most max_work (0: no limit).
 * Result in scratch. */
void ap_dual_solve(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	double least, const uint32_t *pick, uint64_t max_work, struct ap_dual *out);

#endif
