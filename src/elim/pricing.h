/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan evaluated at prices of memory. For a price y >= 0 per byte, the least of cost + y * memory
 * over all picks, less y * limit, is a lower bound of the constrained optimum.
 */
#ifndef AP_ELIM_PRICING_H
#define AP_ELIM_PRICING_H

#include "elim/elim.h"

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

/* Evaluates with memory in the place of cost; what is forbidden stays so. */
bool ap_pricing_memory(struct ap_ctx *ctx, struct ap_pricing *g);

/* The bound of the constrained optimum that the latest price gives, a multiple of the quantum of p. */
double ap_pricing_bound(const struct ap_pricing *g);

/* The priced total that a pick of at most `target` that fits can have, rounded up. */
double ap_pricing_threshold(const struct ap_pricing *g, double target);

#endif
