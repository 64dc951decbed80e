/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The price of memory that gives the best bound (pricing.h). It is found by joining the line of a pick
 * that is too large to that of one that fits, and trying the price where they cross, until no line
 * lies below (Handler and Zang's rule): some ten evaluations.
 */
#ifndef AP_ELIM_DUAL_H
#define AP_ELIM_DUAL_H

#include "elim/pricing.h"

struct ap_dual {
	bool stopped; /* told to, or out of work, before the best price was known */
	bool infeasible; /* proven: no pick fits */
	int64_t least_memory; /* of all picks; a lower bound if the plan is split */
	double price, bound; /* the best found; bound is a multiple of the quantum of p */
	uint32_t *pick; /* [n] the cheapest found that fits, polished; NULL: none */
	double cost; /* of pick, INFINITY: none */
	uint64_t work;
};

/* Finds the best price of g->p, whose least cost without the limit is `least`, by a pick that does
 * not fit (`pick`, cost `least` unless the plan is split). Uses at most max_work (0: no limit).
 * Result in scratch. */
void ap_dual_solve(struct ap_ctx *ctx, struct ap_pricing *g, double least, const uint32_t *pick,
	uint64_t max_work, struct ap_dual *out);

#endif
