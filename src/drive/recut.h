/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cut of a pipeline where memory binds. A stage that holds more micro-batches than the next has to take
 * slower ways of cutting its operators to fit, so the cut that is even without a limit is uneven within it.
 * What memory costs is learnt from plans of the cut at hand: each is the optimum at a price per byte, from
 * none to one at which nothing gets smaller.
 */
#ifndef AP_DRIVE_RECUT_H
#define AP_DRIVE_RECUT_H

#include "drive/request.h"
#include "graph/staged.h"
#include "pipeline/stages.h"
#include "plan/make.h"
#include "table/table.h"

/* The ways of the operators of rq->cutting->graph in the plans of t, a table of the request's graph, at
 * rising prices of memory; maker makes the request's plans. False if the fastest fits each stage, or no
 * plan was found: then memory does not say where to cut. Adds to *work. A dozen searches without a limit. */
bool ap_recut_ways(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *t,
	struct ap_plan_maker *maker, struct ap_stage_ways *out, uint64_t *work);

/* The spots of a graph's operators, by name, in a staged graph that was made of it. */
const struct ap_spot *ap_recut_spots(struct ap_ctx *ctx, const struct ap_stages_request *cutting,
	const struct ap_graph *staged);

#endif
