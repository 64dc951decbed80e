/* SPDX-License-Identifier: Apache-2.0 */
/* recursive_programming on a graph: the double recursion of rec/rec.h on costs priced on demand, so
 * that time does not depend on the number of candidates. */
#ifndef AP_DRIVE_RECURSIVE_H
#define AP_DRIVE_RECURSIVE_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "rec/rec.h"
#include "shard/step.h"

#define AP_RECURSION_STEPS 512 /* inner steps of a search that take as long as one of the recursion's */

struct ap_recursive {
	const int32_t *const *counts; /* [nnode][AP_MAX_FACTOR], legal; in the run arena */
	bool allowed; /* ties hold: always, unless fixed counts break them */
	bool fits; /* the limit; false proves nothing */
	double objective_s; /* of counts, as ap_plan_objective_s() */
	int64_t memory_bytes; /* kept and largest temporary */
	uint64_t work;
};

/*
 * fixed: counts that operators are fixed to; it and its rows may be NULL. limits->bytes: kept
 * memory and the largest temporary. If stopped, returns its present state.
 */
void ap_recursive_plan(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *fixed, const struct ap_rec_limits *limits,
	struct ap_recursive *out);

#endif
