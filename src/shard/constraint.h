/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user demands of cuts, beside the strategies that a graph gives:
 *   pin GLOB=[8,1],[1,8]      these operators have this strategy, as shard() takes it
 *   forbid GLOB:OPERAND[.DIM] this tensor is not cut there; any other cut is free
 *   same GLOB                 operators that are the same part of different layers are cut alike
 * GLOB: see graph/glob.h. OPERAND: the number of an operand, `out` or out0, out1, .., or the name of a
 * tensor; DIM: from 0, or from the end as -1. A demand becomes a part of the graph: a pin a strategy of
 * the operator, a forbidden cut a factor that is not cut, equal cuts a number that operators share. So
 * whoever reads the graph keeps to it.
 */
#ifndef AP_SHARD_CONSTRAINT_H
#define AP_SHARD_CONSTRAINT_H

#include "graph/graph.h"
#include "shard/step.h"

enum ap_demand { AP_DEMAND_PIN, AP_DEMAND_FORBID, AP_DEMAND_SAME, AP_DEMAND_COUNT };

struct ap_constraint {
	enum ap_demand demand;
	const char *text; /* as given, without the word */
	const char *glob;
	struct ap_pin pin; /* PIN */
	const char *operand; /* FORBID */
	bool all; /* FORBID: every dimension of it */
	int dim;
};

struct ap_constraints {
	uint32_t n;
	const struct ap_constraint *v;
};

/* "pin", "forbid", "same". */
const char *ap_demand_name(enum ap_demand d);

/* Parses demands of one kind with commas between them, behind those of *io. AP_USAGE, reported at
 * `where` (NULL: an option). A pin begins at the comma in front of its GLOB=. */
enum ap_status ap_constraints_parse(struct ap_ctx *ctx, enum ap_demand d, const char *texts,
	const struct ap_where *where, struct ap_constraints *io);

/*
 * The graph with what is demanded, on ndev devices a stage; g itself if nothing is. AP_USAGE, reported,
 * for one that means no operator, or no operand, or a strategy that is none; AP_INFEASIBLE if two
 * contradict each other, or one contradicts what the graph gives or the executor imposes. O(demands *
 * operators).
 */
enum ap_status ap_constraints_apply(struct ap_ctx *ctx, const struct ap_constraints *c,
	const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const struct ap_graph **out);

#endif
