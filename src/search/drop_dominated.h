/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops candidates that cannot be in the lexicographically smallest optimum.
 *
 * Candidate c of a node is removed when another one, d, costs no more whatever the neighbours
 * choose:
 *
 *   gain = cost(c) - cost(d) + sum over edges of the least of (edge(c, y) - edge(d, y)) >= 0,
 *
 * where y is any candidate of the neighbour that c may meet, the same holds for memory if there
 * is a limit, and either gain > 0 or d < c. This loses nothing: let x be the lexicographically
 * smallest optimum. If x chose c, then x with d in its place would be a pick that fits as well and
 * is cheaper, or as cheap and lexicographically smaller: a contradiction. So x avoids every
 * removed candidate, in whatever order and however many are removed, and y need only run over
 * candidates that are left. Not all of a node's candidates can go: along a cycle of removals the
 * gains would add up to at most 0, so all are 0, and the indices would fall all the way round.
 *
 * Also removed is a candidate that some neighbour's candidates all forbid.
 */
#ifndef AP_SEARCH_DROP_DOMINATED_H
#define AP_SEARCH_DROP_DOMINATED_H

#include "search/compact.h"

/* Shrinks the domains; nodes that look alike are judged once. A domain becomes empty only if every
 * pick is forbidden. Returns false if told to stop (with valid domains). O(k^2 * degree) per
 * distinct node if nothing is removed, k times as much at worst. */
bool ap_drop_dominated(struct ap_ctx *ctx, const struct ap_problem *p, struct ap_domain *domain,
	uint64_t *work);

/* Estimates the work of ap_drop_dominated(). */
double ap_prune_price(const struct ap_problem *p);

#endif
