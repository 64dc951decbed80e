/* SPDX-License-Identifier: Apache-2.0 */
/* A plan held against inputs that may have changed since it was made. */
#ifndef AP_DIFF_PLAN_MATCH_H
#define AP_DIFF_PLAN_MATCH_H

#include "diff/diff.h"
#include "graph/graph.h"
#include "shard/step.h"

struct ap_plan_match {
	const int32_t *const *counts; /* per node of the graph; NULL rows: the plan has no operator of
	                                 this name, or its strategy is none of it */
	const char *const *why; /* per node: why it is none; NULL: it is one, or there is no operator */
	uint32_t nopen; /* rows that are NULL */
};

/* The cuts that a plan gives the operators of a graph, on ndev devices a stage. O(operators), and
 * O(operands) for each that conflicts with another one. */
void ap_plan_match(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, struct ap_plan_match *out);

struct ap_plan_change {
	struct ap_diff diff; /* equal: nothing changed at all; its figures are of the inputs and, where
	                        every strategy was kept, of the prediction */
	bool inputs; /* graph, machine or settings are others for the plan */
	bool outcome; /* the same strategies cost something else */
};

/*
 * What changed between a plan and what became of it: now, the plan of the same strategies on the inputs
 * as they are, and what the match says of strategies that are none any more. Of operators shapes and
 * types of results count, too. Moves and collectives are told only where the inputs do not say why
 * they are others. machine: that of now is the one that was asked for.
 */
void ap_plan_change(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_saved *now,
	const struct ap_plan_match *match, const struct ap_graph *g, bool machine,
	struct ap_plan_change *out);

#endif
