/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans (plan.h) from counts per operator. */
#ifndef AP_PLAN_MAKE_H
#define AP_PLAN_MAKE_H

#include "plan/plan.h"

/*
 * Makes plans of one graph on one machine. Straight from the rules, not from the table; what is
 * equal, operator and cut or redistribution, is priced once for all plans of a maker.
 */
struct ap_plan_maker;
struct ap_plan_maker *ap_plan_maker_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, int64_t capacity_bytes);

/*
 * A plan from counts per node (counts[node][factor], legal): placements, layouts, costs, collectives,
 * redistributions, objective and memory. O(operands).
 */
void ap_plan_price(struct ap_plan_maker *maker, const int32_t *const *counts, struct ap_plan *out);

/* That and the simulated times: all but parameters and schedule, so that plans can be compared. */
void ap_plan_sketch(struct ap_plan_maker *maker, const int32_t *const *counts, struct ap_plan *out);

/* A complete plan from a sketch: with parameters and schedule. Notes what settings are without effect. */
void ap_plan_complete(struct ap_ctx *ctx, const struct ap_plan *sketch, struct ap_plan *out);

/* The counts that a plan is of; they live as long as it does. */
const int32_t *const *ap_plan_counts(struct ap_ctx *ctx, const struct ap_plan *p);

/* A complete plan, by a maker of its own. */
void ap_plan_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *counts, int64_t capacity_bytes,
	struct ap_plan *out);

/* Additive objective of a plan: operators' shares and redistributions, quantised, straight sums. */
double ap_plan_objective_s(const struct ap_plan *p);

#endif
