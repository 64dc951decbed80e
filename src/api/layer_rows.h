/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each layer of a network takes and holds under the degrees of a point, all of them in one kind of
 * recomputation: rows of a pipeline problem (partition/partition.h). Their figures are those of the blocks
 * (plan/block_costs.h) of a plan in which the network runs in one stage, on the devices of a stage of the
 * point. What adds to a step or to memory beside that is left out, so that rows bound plans from below,
 * such as tensors that parts share; gradients are exchanged as if buckets were as large as can be, and slow
 * the kernels of their own layer alone, as little as in any way of falling into buckets.
 *
 * Neither segments nor the schedule change rows, but for passes for weights of their own, nor which kinds may
 * be mixed: a table makes those of all points that differ in nothing else once.
 */
#ifndef AP_API_LAYER_ROWS_H
#define AP_API_LAYER_ROWS_H

#include "api/layer_border.h"
#include "api/request.h"
#include "base/workers.h"
#include "decision/space.h"
#include "graph/fold.h"
#include "partition/partition.h"

/* What is around the layers, as rows behind those of the layers. */
enum ap_layer_end { AP_LAYERS_FIRST, AP_LAYERS_LAST };
#define AP_LAYERS_ENDS (AP_LAYERS_LAST + 1)

struct ap_layer_rows {
	const struct ap_partition_row *row; /* [layers that are kept + AP_LAYERS_ENDS]; NULL: no such plan */
	const char *why; /* there is none; NULL as well: layers recomputed so are no blocks of their own */
	bool by_degrees; /* why: so it is with these degrees, sp and micro-batches, whatever else
	                    is decided */
	int64_t passed_bytes; /* most that a layer passes on to others, of a micro-batch */
	int64_t context_bytes; /* of a device, beside all layers */
	double left_s; /* of a micro-batch's reductions, which run on behind any layer's backward pass (pass
	                  for weights), at least: a part ends with one of them unless it is the first */
	double summed_s; /* of a micro-batch, in rows of one stage: what several stages do not take, as
	                    all but the first receive parameters that they share */
	struct ap_layer_border border;
};

struct ap_layer_table;

/* An empty table, in the run arena. src->machine is set, src->ready is the graph that *fold tells of. Borrows
 * all. */
struct ap_layer_table *ap_layer_table_create(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_layer_fold *fold,
	const struct ap_decision_space *space);

/* Notes that the rows of a point are needed, in all kinds of its mix, and its schedule. */
void ap_layer_table_want(struct ap_layer_table *t, const struct ap_decision_point *point);

/* The rows alone, of a point whose stages are not run together. */
void ap_layer_table_want_rows(struct ap_layer_table *t, const struct ap_decision_point *point);

/* Makes what is wanted and was not made before. O(kept operators) each. */
void ap_layer_table_fill(struct ap_layer_table *t, struct ap_workers *workers);

/* The rows of a point that was wanted when the table was last filled, in kind `kind` of its mix. Threads may
 * look them up at the same time. */
const struct ap_layer_rows *ap_layer_table_find(const struct ap_layer_table *t,
	const struct ap_decision_point *point, int kind);

/* What ap_schedule_pipe() makes of a point that was wanted when the table was last filled. */
const struct ap_pipe *ap_layer_table_pipe(const struct ap_layer_table *t,
	const struct ap_decision_point *point);

/* What its graph stands for. */
const struct ap_layer_fold *ap_layer_table_fold(const struct ap_layer_table *t);

#endif
