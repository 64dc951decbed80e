/* SPDX-License-Identifier: Apache-2.0 */
/* The pick that changes least: of all picks of at most a given cost one that differs from an old one in the
 * fewest nodes. */
#ifndef AP_SEARCH_FEWEST_H
#define AP_SEARCH_FEWEST_H

#include "search/engine.h"

struct ap_fewest {
	const uint32_t *pick; /* [n] in the run arena; NULL: none was found */
	double changes; /* nodes in which it differs */
	double bound; /* no pick of at most that cost differs in fewer; equal to changes: proven */
	uint64_t work;
};

/*
 * old: [n] the old candidates; AP_NONE: such a node counts as no change whatever it chooses. Of picks with
 * the fewest changes one of least cost, where the engine finds it. Changes are what is minimised, and the
 * cost is the engine's memory, so that its exact limit holds: the engine must respect one.
 */
void ap_fewest_changes(struct ap_ctx *ctx, const struct ap_engine *engine, const struct ap_problem *p,
	const uint32_t *old, double most_cost, const struct ap_budget *budget, struct ap_fewest *out);

#endif
