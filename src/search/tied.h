/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A problem whose ties are contracted. An edge is a tie if each candidate of either end goes with at most one
 * of the other: one choice decides both, so nodes that ties join become one, the first of them. What is cut
 * alike by a rule, layer by layer, makes a table as wide as there are layers, which contracted is as narrow
 * as one of them.
 */
#ifndef AP_SEARCH_TIED_H
#define AP_SEARCH_TIED_H

#include "search/engine.h"

struct ap_tied {
	struct ap_problem p; /* what is left, with the limit of the whole */
	ap_id *node; /* [p.n] node of the whole, ascending; with the same candidates */
	ap_id *place; /* [n] of the whole: index in the rest of the node that decides */
	const uint32_t **goes_with; /* [n] what goes with each candidate of that node; AP_NONE: nothing
	                               may; NULL: the same candidate */
};

/*
 * Contracts the ties of p; false, and *out is not to be read, if it has none. Picks of finite cost correspond
 * one to one and in lexicographic order, with equal cost and memory. In scratch. O(size of the table).
 */
bool ap_tied_make(struct ap_ctx *ctx, const struct ap_problem *p, struct ap_tied *out);

/* Turns a pick of the rest, of finite cost, into one of the whole. */
void ap_tied_expand(const struct ap_tied *t, const struct ap_problem *whole, const uint32_t *rest,
	uint32_t *pick);

/* Turns a pick of the whole into that of the rest which has as much of it as there can be. */
void ap_tied_narrow(const struct ap_tied *t, const uint32_t *pick, uint32_t *rest);

typedef void ap_tied_fn(struct ap_ctx *ctx, const void *user, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *out);

/* Solves p without its ties, by `solve`, and answers as that does; false, and *out is as before, if it has
 * none. */
bool ap_tied_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	ap_tied_fn *solve, const void *user, struct ap_choice *out);

#endif
