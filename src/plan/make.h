/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans (plan.h) from counts per operator. */
#ifndef AP_PLAN_MAKE_H
#define AP_PLAN_MAKE_H

#include "plan/plan.h"

/*
 * Makes plans of one graph on one machine, directly from the rules, not from the table. Equal cuts
 * of equal operators, and equal redistributions, are priced once for all plans of a maker.
 */
struct ap_plan_maker;
struct ap_plan_maker *ap_plan_maker_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, int64_t capacity_bytes);

/*
 * Prices a plan from counts per node (counts[node][factor], legal): placements, layouts, costs,
 * collectives, redistributions, objective and memory. O(operands).
 */
void ap_plan_price(struct ap_plan_maker *maker, const int32_t *const *counts, struct ap_plan *out);

/* The same with simulated times: all but parameters and schedule, enough to compare plans. */
void ap_plan_sketch(struct ap_plan_maker *maker, const int32_t *const *counts, struct ap_plan *out);

/* The same, laid into an arena of the caller's, which may be released after each of many plans: the
 * maker keeps its prices. */
void ap_plan_sketch_in(struct ap_plan_maker *maker, struct ap_arena *arena, const int32_t *const *counts,
	struct ap_plan *out);

/* The same if the plan fits the capacity; else false, and *out has costs and memory alone. */
bool ap_plan_sketch_if_fits(struct ap_plan_maker *maker, struct ap_arena *arena, const int32_t *const *counts,
	struct ap_plan *out);

/* What an operator costs in a step between its neighbours. */
struct ap_plan_guess {
	double own_s; /* kernels, collectives that computation waits for, the optimizer */
	double busy_s; /* the same, with redistributions to and from it; INFINITY: others hold its parameters
	                * in other layouts */
	double exchange_s; /* of its gradients, none of it hidden */
};

/* The same for a node with these counts, the others as in row; those whose row is `with` change with it, and
 * redistributions to and from those without a row are left out. */
struct ap_plan_guess ap_plan_guess(struct ap_plan_maker *maker, ap_id node, const int32_t *count,
	const int32_t *const *row, const int32_t *with);

/* Completes a sketch with parameters and schedule. Reports settings that are without effect. */
void ap_plan_complete(struct ap_ctx *ctx, const struct ap_plan *sketch, struct ap_plan *out);

/* Does a strategy checkpoint hold the operator? It has a parameter, and takes a strategy. */
bool ap_plan_is_held(const struct ap_node *n);

/* The plan's counts; they live as long as the plan. */
const int32_t *const *ap_plan_counts(struct ap_ctx *ctx, const struct ap_plan *p);

/* Makes a complete plan with a maker of its own. */
void ap_plan_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *counts, int64_t capacity_bytes,
	struct ap_plan *out);

/* Additive objective of a plan: the sum of operators' shares and redistributions, quantised. */
double ap_plan_objective_s(const struct ap_plan *p);

#endif
