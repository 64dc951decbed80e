/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a table that one pipeline stage is, as a table of its own. */
#ifndef AP_TABLE_TABLE_PART_H
#define AP_TABLE_TABLE_PART_H

#include "table/table.h"

struct ap_table_part {
	struct ap_table table; /* nodes renumbered; its graph is the whole one, task is NULL */
	const ap_id *node; /* [table.problem->n] node of the whole table */
	uint32_t ninside; /* the first of them are the stage's; the others stand for what it is joined to */
};

/*
 * pick NULL: the edges to other stages are left out, so that no choice of the whole costs less there
 * than the part's optimum. Else the other ends of these edges keep their pick (AP_NONE: the edge is left
 * out): they cost and hold nothing, but the edges cost what they do, and what is kept of the
 * redistributions into the stage counts. O(nodes + edges + cells of the matrices that are cut).
 */
void ap_table_part_make(struct ap_ctx *ctx, const struct ap_table *t, int32_t stage,
	const uint32_t *pick, struct ap_table_part *out);

#endif
