/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A problem without the candidates that need not be considered. Nodes with one candidate left are
 * settled: their edges become costs of the other end, so that every node of the rest has a choice.
 */
#ifndef AP_SEARCH_COMPACT_H
#define AP_SEARCH_COMPACT_H

#include <stdbool.h>

#include "problem/problem.h"

struct ap_domain { /* candidates of a node that are left, ascending */
	uint32_t n;
	uint32_t *c;
};

struct ap_compact {
	struct ap_problem p; /* the rest; no memory where there is no limit, and the limit is what
			      * the settled nodes leave */
	ap_id *node; /* [p.n] node of the whole, ascending */
	const struct ap_domain *domain; /* [n of the whole] */
	double cost; /* of the settled nodes and the edges among them */
	int64_t memory;
};

/* All candidates whose own cost is finite, per node, in scratch. */
struct ap_domain *ap_domain_all(struct ap_ctx *ctx, const struct ap_problem *p);

/* Is a node left without candidates? */
bool ap_domain_empty(const struct ap_problem *p, const struct ap_domain *d);

/* In scratch; nothing is copied of a problem that loses nothing. O(size of what is left). Every
 * domain has a candidate. */
const struct ap_compact *ap_compact_make(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_domain *domain);

/* The pick of the whole that a pick of the rest stands for. The map keeps lexicographic order. */
void ap_compact_expand(const struct ap_compact *c, const struct ap_problem *whole,
	const uint32_t *rest, uint32_t *pick);

/* The pick of the rest that is like one of the whole; a candidate that is gone is replaced by the
 * first one left. */
void ap_compact_narrow(const struct ap_compact *c, const uint32_t *pick, uint32_t *rest);

#endif
