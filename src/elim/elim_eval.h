/* SPDX-License-Identifier: Apache-2.0 */
/* The forward and the backward pass through the tables of a planned elimination. */
#ifndef AP_ELIM_ELIM_EVAL_H
#define AP_ELIM_ELIM_EVAL_H

#include "elim/elim.h"

/* Allocates the tables of an evaluation, [ntable], in scratch; later evaluations can reuse them. */
const double **ap_elim_room(struct ap_ctx *ctx, const struct ap_elim *e);

/*
 * Evaluates the plan with the numbers of p (of the planned shape; nodes and matrices that were
 * equal must be equal). value comes from ap_elim_room(); tables that are not made are borrowed from
 * p. *least is the least cost of all picks (of a split plan: a lower bound), INFINITY if all are
 * forbidden. Returns false if told to stop.
 */
bool ap_elim_eval(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **value, double *least);

/* A pick of least cost (of a split plan: a good guess). O(n * k * degree). */
void ap_elim_pick(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	uint32_t *pick);

/* Adds to cost[0..k), for each candidate x of the node of step s, its cost in the factors of s,
 * given candidates pick[] of the other nodes. Does not read pick of the node itself. */
void ap_elim_costs(const struct ap_elim *e, const double *const *value, const struct ap_estep *s,
	const uint32_t *pick, double *cost);

/*
 * The backward pass through an evaluated plan: the least cost of all picks with a given candidate.
 * Going backwards over the distinct reductions, each table gets the least cost of everything
 * outside it, over all of its uses; this takes as many products as the evaluation, and no more if
 * layers are equal. Entries that no pick within the threshold uses are dropped on the way, so with
 * a good threshold most products are empty.
 *
 * least_with[t], for each table t of kind AP_ET_NODE: by candidate, the least cost of all picks in
 * which some node of this table chooses it; INFINITY if above the threshold. Other entries are not
 * set. value and least come from ap_elim_eval() of a plan that is not split. In scratch. Adds to
 * *work. Returns false if told to stop.
 */
bool ap_elim_least_with(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	double least, double threshold, double **least_with, uint64_t *work);

/*
 * The same for one use of a reduction: from outside, [cells of the step's scope] the least cost of everything
 * outside the eliminated node and its factors, to of_factor[i], [cells of its table] that of everything
 * outside factor i of the step; NULL entries are not asked for. INFINITY where no pick is allowed.
 * O(work of the reduction) for each side of its product. Adds to *work. Returns false if told to stop.
 */
bool ap_elim_outside(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	const struct ap_estep *s, const double *outside, double *const *of_factor, uint64_t *work);

#endif
