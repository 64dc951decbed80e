/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's own figures, by which its searches choose (formats 5.1-5.3, 6.1): elements and bytes,
 * not seconds. Holds only what those searches compare; plans are not priced with it. */
#ifndef AP_COST_MS_COST_H
#define AP_COST_MS_COST_H

#include "base/dtype.h"
#include "shard/layout.h"
#include "shard/step.h"

/* One end of a redistribution. All axes of its operator's device matrix count, even those that do
 * not cut this tensor. Plain data without padding: compared by bytes. */
struct ap_ms_end {
	int64_t size[AP_MAX_RANK]; /* whole extents for one micro-batch; unused ones 0 */
	struct ap_layout layout;
	struct ap_dev_matrix dev; /* standard form; unused axes 0 */
};

/* The end at an operand or result t of a placement; batch: its dimensions that carry the batch.
 * Returns false if it has no layout. */
bool ap_ms_end_make(const struct ap_placement *p, const struct ap_operand *t, uint8_t batch,
	const struct ap_step *step, struct ap_ms_end *out);

/* The end of a bare layout on ndev devices, with the coarsest device matrix it allows. */
void ap_ms_end_bare(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_ms_end *out);

/* Totals of MindSpore's operators for a redistribution, in elements. */
struct ap_ms_move {
	double forward, backward; /* communication */
	double computation;
};

/* From a to b, whose extents may differ (Reshape). Like MindSpore, charges each operator with a's
 * slice, and one more slice of computation. If boundaries do not divide one another, or the numbers
 * of elements differ, everything is gathered first. O(pieces^2). */
void ap_ms_move_make(const struct ap_ms_end *a, const struct ap_ms_end *b, bool alltoall,
	struct ap_ms_move *out);

/* RefineForPracticalCost: a flat sum for small messages, a little more for larger ones. */
double ap_ms_refine(double bytes);

struct ap_ms_cost { /* bytes */
	double computation;
	double communication; /* refined; infinite if a bool would travel; of an operator: without
	                         gradients of its parameters */
};

/* The cost of an edge of MindSpore's cost graph. */
void ap_ms_edge_cost(const struct ap_ms_end *a, const struct ap_ms_end *b, enum ap_dtype dtype,
	bool alltoall, struct ap_ms_cost *out);

/* The cost of an operator's forward pass; pure data parallelism counts one byte less. Types without
 * a formula of their own count the bytes of their operands. */
void ap_ms_operator_cost(const struct ap_placement *p, const struct ap_step *step, bool cross_batch,
	struct ap_ms_cost *out);

#endif
