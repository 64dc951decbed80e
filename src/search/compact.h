/* SPDX-License-Identifier: Apache-2.0 */
/* A problem reduced to some candidates of each node. Nodes with one candidate left are settled:
 * their edges become costs of the other end, so every node of the rest has a choice. */
#ifndef AP_SEARCH_COMPACT_H
#define AP_SEARCH_COMPACT_H

#include <stdbool.h>

#include "problem/problem.h"

struct ap_domain { /* remaining candidates of a node, ascending */
	uint32_t n;
	uint32_t *c;
};

struct ap_compact {
	struct ap_problem p; /* the rest; without memory if there is no limit, else with the limit
	                        reduced by settled nodes */
	ap_id *node; /* [p.n] node of the whole, ascending */
	const struct ap_domain *domain; /* [n] of the whole */
	double cost; /* of settled nodes and the edges among them */
	int64_t memory;
};

/* All candidates with finite cost, by node. In scratch. */
struct ap_domain *ap_domain_all(struct ap_ctx *ctx, const struct ap_problem *p);

/* Has some node no candidates? */
bool ap_domain_empty(const struct ap_problem *p, const struct ap_domain *d);

/* Reduces p to the domains, none of which may be empty. In scratch; if nothing is dropped, nothing
 * is copied. O(size of the rest). */
const struct ap_compact *ap_compact_make(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_domain *domain);

/* Turns a pick of the rest into one of the whole. Keeps the lexicographic order. */
void ap_compact_expand(const struct ap_compact *c, const struct ap_problem *whole,
	const uint32_t *rest, uint32_t *pick);

/* Turns a pick of the whole into one of the rest; a dropped candidate becomes the first one
 * left. */
void ap_compact_narrow(const struct ap_compact *c, const uint32_t *pick, uint32_t *rest);

#endif
