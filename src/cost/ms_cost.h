/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MindSpore's own figures, by which its searches choose (formats 5.1-5.3, 6.1): elements and bytes, no
 * seconds. Only what those searches compare is here; nothing of a plan's price comes from it.
 */
#ifndef AP_COST_MS_COST_H
#define AP_COST_MS_COST_H

#include "base/dtype.h"
#include "shard/layout.h"
#include "shard/step.h"

/* One end of a redistribution. The axes of its operator's device matrix count, even where they cut no
 * dimension of this tensor. Plain data without padding: equal ends are equal bytes. */
struct ap_ms_end {
	int64_t size[AP_MAX_RANK]; /* whole extents, of one micro-batch; unused ones 0 */
	struct ap_layout layout;
	struct ap_dev_matrix dev; /* standard form; unused axes 0 */
};

/* The end at an operand or result of a placement, of whose dimensions these carry the batch; false where it
 * has no layout. */
bool ap_ms_end_make(const struct ap_placement *p, const struct ap_operand *t, uint8_t batch,
	const struct ap_step *step, struct ap_ms_end *out);

/* A bare layout on ndev devices: its device matrix is the coarsest that it needs. */
void ap_ms_end_bare(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_ms_end *out);

/* What MindSpore's operators of a redistribution sum up to, in elements. */
struct ap_ms_move {
	double forward, backward; /* communication */
	double computation;
};

/*
 * From a to b; their extents may differ, as across a Reshape. Every operator is charged with a's slice, and
 * one slice more of computation, as MindSpore does. Where boundaries do not divide one another, or the
 * number of elements is another one, all is brought together first. O(pieces^2).
 */
void ap_ms_move_make(const struct ap_ms_end *a, const struct ap_ms_end *b, bool alltoall,
	struct ap_ms_move *out);

/* RefineForPracticalCost: small messages cost a flat sum, larger ones some more. */
double ap_ms_refine(double bytes);

struct ap_ms_cost { /* bytes */
	double computation;
	double communication; /* refined; infinite where a bool would have to travel. Of an operator: what
	                         its parameters' gradients cost is not in it */
};

/* The cost of an edge of MindSpore's cost graph. */
void ap_ms_edge_cost(const struct ap_ms_end *a, const struct ap_ms_end *b, enum ap_dtype dtype,
	bool alltoall, struct ap_ms_cost *out);

/* The cost of an operator, forward pass, with one byte less of each for pure data parallelism. Types
 * that have no formula of their own count the bytes of their operands. */
void ap_ms_operator_cost(const struct ap_placement *p, const struct ap_step *step, bool cross_batch,
	struct ap_ms_cost *out);

#endif
