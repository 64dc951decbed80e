/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline problem (partition/partition.h) of a point whose layers are still to be dealt to the parts
 * and to kinds of recomputation, made of rows that many points share (api/layer_rows.h). Its bounds are
 * bounds of plans.
 */
#ifndef AP_API_LAYER_PROBLEM_H
#define AP_API_LAYER_PROBLEM_H

#include "api/layer_rows.h"

struct ap_layer_problem {
	struct ap_partition p;
	double pass_s; /* of a micro-batch, all passes, at least, of all layers and what is around
	                  them, in any number of stages */
	double least_s; /* of one layer, at least */
	double static_bytes, kept_bytes; /* of all layers, at least; kept: of each micro-batch */
	int64_t context_bytes; /* of a device, beside all of them, whatever the stages */
	bool has_all_kinds; /* of the point's mix: none is left out, because another one is as good */
};

/*
 * Makes the problem in the run arena, of rows that have the point's. limit_bytes: of a device. AP_USAGE,
 * reported, if the point is no plan; then *out is not valid. O(layers + kept layers * kinds).
 */
enum ap_status ap_layer_problem_make(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, const struct ap_decision_point *point, int64_t limit_bytes,
	struct ap_layer_problem *out);

/*
 * The problem of stages that share the space's devices, each in a degree of its own: that of one of n points,
 * whose stages are blocks of so many devices. Stages, segments, micro-batches, schedule and mix are those of
 * shape, layers lie as they like and each recomputes as it likes, so that bounds are bounds of plans on
 * blocks that each begin at a multiple of their size, on a regular machine. A send takes as long as the
 * slower end, as between stages of its degree. Degrees that others are as good as are left out: returns how
 * many are kept, of[i], of n, is the point of degree i. 0: there is no such plan. O(degrees^2 * kept layers *
 * kinds).
 */
uint32_t ap_layer_problem_share(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, const struct ap_decision_point *shape,
	const struct ap_decision_point *point, uint32_t n, int64_t limit_bytes, uint32_t *of,
	struct ap_partition *out);

/*
 * No plan of the problem takes less; it stops as soon as that is at least `enough` seconds. INFINITY:
 * there is no plan. times: its work, which adds to *work. As ap_partition_bound_to().
 */
double ap_layer_problem_bound(struct ap_ctx *ctx, const struct ap_layer_problem *q, double enough,
	uint32_t times, uint64_t *work);

/* The settings' words for a plan of the problem: what its parts have, and what they recompute. */
void ap_layer_problem_say(struct ap_ctx *ctx, const struct ap_layer_problem *q,
	const struct ap_partition_plan *plan, struct ap_decision_point *point);

#endif
