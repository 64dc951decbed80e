/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other way through an evaluated plan: what each candidate costs at least, everything else chosen
 * as well as can be. Backwards over the distinct reductions, every table learns the least that all
 * outside of it can cost, over all of its uses; so this takes as many products as the evaluation has,
 * and no more where layers are equal. Entries that no pick within the threshold passes through are
 * dropped on the way, so with a good threshold most of the products are empty.
 */
#ifndef AP_ELIM_ELIM_ADJOINT_H
#define AP_ELIM_ELIM_ADJOINT_H

#include "elim/elim.h"

/*
 * least_with[t], for each table t of kind AP_ET_NODE: by candidate, the least cost of all picks in which
 * some node of this table chooses it; INFINITY where that exceeds the threshold. The other entries are
 * not set. value and least are those of ap_elim_eval() for a plan that is not split. In scratch. *work is
 * counted up. False when told to stop.
 */
bool ap_elim_least_with(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	double least, double threshold, double **least_with, uint64_t *work);

#endif
