/* SPDX-License-Identifier: Apache-2.0 */
/* The data-parallel baseline. */
#ifndef AP_DRIVE_BASELINE_H
#define AP_DRIVE_BASELINE_H

#include "graph/graph.h"
#include "shard/step.h"

/* Counts of the data-parallel baseline, in the run arena: the batch factor of every operator is cut
 * by the largest divisor of ndev that divides it, the rest repeated. Returns NULL, with the reason
 * in *why, if the graph has no batch, or these counts are no plan. */
const int32_t *const *ap_baseline_data_parallel(struct ap_ctx *ctx, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const char **why);

#endif
