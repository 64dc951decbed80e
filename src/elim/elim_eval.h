/* SPDX-License-Identifier: Apache-2.0 */
/* Both ways through the tables of a planned elimination. */
#ifndef AP_ELIM_ELIM_EVAL_H
#define AP_ELIM_ELIM_EVAL_H

#include "elim/elim.h"

/* Room for the tables of an evaluation, [ntable], in scratch; the next evaluation can use it again. */
const double **ap_elim_room(struct ap_ctx *ctx, const struct ap_elim *e);

/*
 * Evaluates the plan with the numbers of p (of the shape it was planned for; nodes and matrices
 * that were equal then are equal now). value is room of the plan; what is not made is borrowed from p.
 * *least is the least cost of all picks (of a split plan: a lower bound), INFINITY when
 * all are forbidden. False when told to stop.
 */
bool ap_elim_eval(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **value, double *least);

/* A pick that attains the least cost (of a split plan: a good guess). O(n * k * degree). */
void ap_elim_pick(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	uint32_t *pick);

/*
 * For given candidates pick[] of the other nodes of step s, adds what each candidate x of its node
 * costs in the factors of s to cost[0..k). pick of the node itself is not read.
 */
void ap_elim_costs(const struct ap_elim *e, const double *const *value, const struct ap_estep *s,
	const uint32_t *pick, double *cost);

/*
 * The other way through an evaluated plan: what each candidate costs at least, everything else chosen
 * as well as can be. Backwards over the distinct reductions, every table learns the least that all
 * outside of it can cost, over all of its uses; so this takes as many products as the evaluation has,
 * and no more where layers are equal. Entries that no pick within the threshold passes through are
 * dropped on the way, so with a good threshold most of the products are empty.
 *
 * least_with[t], for each table t of kind AP_ET_NODE: by candidate, the least cost of all picks in which
 * some node of this table chooses it; INFINITY where that exceeds the threshold. The other entries are
 * not set. value and least are those of ap_elim_eval() for a plan that is not split. In scratch. *work is
 * counted up. False when told to stop.
 */
bool ap_elim_least_with(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	double least, double threshold, double **least_with, uint64_t *work);

#endif
