/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the cost table: graph x machine x step -> ap_problem. Each distinct operator, layout pair
 * and collective is priced once; repeated layers share candidates, costs and matrices.
 */
#ifndef AP_TABLE_TABLE_H
#define AP_TABLE_TABLE_H

#include "cost/cost.h"
#include "problem/problem.h"
#include "shard/space.h"

struct ap_table_class { /* one per distinct operator */
	uint32_t k; /* candidates left after pruning */
	uint32_t before; /* candidates before */
	uint8_t nfactor;
	const int32_t *count; /* [k][nfactor] */
	const double *cost; /* [k] objective share, quantised; INFINITY: forbidden */
	const double *hidden; /* [k] gradient exchange that the objective takes for hidden, quantised */
	const int64_t *memory; /* [k] */
	const int64_t *temporary; /* [k] */
	uint32_t nway; /* for each prime of the number of devices, ascending, the factors */
	const int32_t *next; /* [k][nway] the candidate with that factor cut by that prime further, -1
	                        where there is none among those left */
};

struct ap_table {
	const struct ap_graph *graph;
	const struct ap_machine *machine;
	const struct ap_step *step;
	const struct ap_task *task; /* [nnode] */
	const uint32_t *class_of; /* [nnode] */
	uint32_t nclass;
	const struct ap_table_class *cls;
	const struct ap_problem *problem; /* node i = graph node i */
	double least_s; /* what the nodes cost at least, redistribution left out: a bound */
	int64_t least_bytes; /* what they need at least on the stage that needs most, temporary included,
	                      * redistribution left out: a bound; -1: an operator has no candidate */
	int32_t least_stage; /* that stage */
	uint64_t work; /* that pricing took, in inner steps of a search */
	const struct ap_making *making; /* of table.c */
};

struct ap_table_params {
	bool prune; /* drop candidates that another beats wherever they may stand (exact) */
	bool by_memory; /* pruning must also not cost memory: for problems with a limit */
	const int32_t *const *fixed; /* [nnode] counts a node is fixed to, or NULL; may be NULL */
	size_t budget_bytes; /* of matrices; 0: 2 GiB */
	uint64_t work; /* that pricing may take, in inner steps of a search; 0: no limit */
};

/* AP_LIMIT, with a warning, when the prices of redistributions would exceed the budget or the work,
 * which is known before any is made: *out has only what is least then. AP_STOPPED, without a message,
 * when told to. */
enum ap_status ap_table_make(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const struct ap_table_params *params,
	const struct ap_table **out);

/* The same table, pruned so that it does not cost memory either, t itself where it is so: for problems
 * with a limit. Its prices are those of t. NULL when told to stop. */
const struct ap_table *ap_table_by_memory(struct ap_ctx *ctx, const struct ap_table *t);

/* The table in which some nodes are fixed to counts (rows NULL: not), at the prices of t, which must not
 * be narrowed itself; NULL where t has no such candidate, or when told to stop. */
const struct ap_table *ap_table_narrow(struct ap_ctx *ctx, const struct ap_table *t,
	const int32_t *const *fixed);

/* Counts of candidate c of node i. */
const int32_t *ap_table_counts(const struct ap_table *t, ap_id node, uint32_t c);

#endif
