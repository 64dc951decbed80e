/* SPDX-License-Identifier: Apache-2.0 */
/* Matches a plan with inputs that may have changed since it was made. */
#ifndef AP_DIFF_PLAN_MATCH_H
#define AP_DIFF_PLAN_MATCH_H

#include "diff/diff.h"
#include "graph/graph.h"
#include "shard/step.h"

struct ap_plan_match {
	const int32_t *const *counts; /* [nnode]; NULL: the plan has no operator of this name, or
			its strategy is not valid here */
	const char *const *why; /* [nnode] why it is not valid; NULL: valid, or no such operator */
	uint32_t nopen; /* NULL rows of counts */
};

/* Takes the cuts of a graph's operators from a plan, on ndev devices a stage. O(operators), plus
 * O(operands) per conflict. */
void ap_plan_match(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, struct ap_plan_match *out);

struct ap_plan_change {
	struct ap_diff diff; /* equal: nothing changed; only figures of inputs and, if all
			strategies were kept, of the prediction */
	bool inputs; /* graph, machine or settings have changed */
	bool outcome; /* the same strategies now cost something else */
};

/* Compares a plan with `now`, the same strategies on current inputs, and with the reasons in match
 * for strategies no longer valid. Operators are also compared by shapes and types of results.
 * Redistributions and collectives are listed only if changed inputs do not explain them. machine:
 * now's machine was requested. */
void ap_plan_change(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_saved *now,
	const struct ap_plan_match *match, const struct ap_graph *g, bool machine,
	struct ap_plan_change *out);

#endif
