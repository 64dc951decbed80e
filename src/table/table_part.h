/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a table for one pipeline stage, as a table of its own. */
#ifndef AP_TABLE_TABLE_PART_H
#define AP_TABLE_TABLE_PART_H

#include "table/table.h"

struct ap_table_part {
	struct ap_table table; /* nodes are renumbered; graph is the whole one, task is NULL */
	const ap_id *node; /* [table.problem->n] node in the whole table */
	uint32_t ninside; /* of the stage itself, which come first; the rest are outside */
};

/*
 * pick NULL: leaves out edges to other stages: no choice of the whole costs less here than the
 * part's optimum. Otherwise the other ends of these edges keep their pick (AP_NONE: the edge is
 * left out): outside nodes cost and hold nothing, but their edges keep their cost, and copies kept
 * by redistributions into the stage count. O(nodes + edges + cells of the matrices that are cut).
 */
void ap_table_part_make(struct ap_ctx *ctx, const struct ap_table *t, int32_t stage,
	const uint32_t *pick, struct ap_table_part *out);

#endif
