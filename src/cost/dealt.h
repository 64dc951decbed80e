/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parallel optimizer of data_parallel: parameters are whole on every device. Device i updates
 * parameter i, i + n, i + 2 n, .. of those that are trained, in the graph's order, and broadcasts them.
 */
#ifndef AP_COST_DEALT_H
#define AP_COST_DEALT_H

#include "graph/graph.h"
#include "shard/step.h"

/* Why an optimizer (NULL: none) cannot be dealt so to ndev devices, with what is needed; NULL: it
 * can. */
const char *ap_dealt_refuses(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_optimizer *optimizer);

/* The parameters [ntensor] of the device with most bytes to update, the first of them: what it holds and
 * how long it takes is what counts. NULL where nothing is dealt so. In scratch. */
const bool *ap_dealt_params(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step);

#endif
