/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the cost table: graph x machine x step -> ap_problem. Each distinct operator, layout pair
 * and collective is priced once; repeated layers share candidates, costs and matrices.
 */
#ifndef AP_TABLE_TABLE_H
#define AP_TABLE_TABLE_H

#include "cost/cost.h"
#include "cost/leg.h"
#include "problem/problem.h"
#include "shard/space.h"

struct ap_table_class { /* a class of nodes with equal candidates */
	uint32_t k; /* number of candidates left after pruning */
	uint32_t before; /* number before pruning */
	uint8_t nfactor;
	const int32_t *count; /* [k][nfactor] */
	const double *cost; /* [k] share of the objective, quantised; INFINITY: forbidden */
	const double *hidden; /* [k] gradient exchange taken for hidden by the objective,
	                         quantised */
	const double *bucketed; /* [k] what buckets save by the objective, quantised */
	const int64_t *memory; /* [k] */
	const int64_t *temporary; /* [k] */
	uint32_t nway; /* each prime of the number of devices, ascending, and each factor */
	const int32_t *next; /* [k][nway] the candidate left with that factor cut by that prime
	                        further, or -1 */
};

struct ap_table {
	const struct ap_graph *graph;
	const struct ap_machine *machine;
	const struct ap_step *step;
	const struct ap_task *task; /* [nnode] */
	const uint32_t *class_of; /* [nnode] */
	uint32_t nclass;
	const struct ap_table_class *cls;
	const struct ap_problem *problem; /* its node i is node i of the graph */
	bool lacks_memory; /* of one that was not made: else it lacks work */
	double least_s; /* a lower bound of the cost: nodes only, without redistribution */
	int64_t least_bytes; /* a lower bound of memory on the stage that needs most: nodes only,
	                        temporary included; -1 if an operator has no candidate */
	int32_t least_stage; /* the stage of least_bytes */
	uint64_t work; /* spent on pricing, in inner steps of a search */
	const struct ap_making *making; /* private to table.c */
};

struct ap_table_params {
	bool prune; /* drop candidates that another beats whatever the neighbours choose (exact) */
	bool by_memory; /* pruning must not cost memory either: for problems with a limit */
	const int32_t *const *fixed; /* [nnode] counts that a node is fixed to, or NULL for none */
	size_t budget_bytes; /* limit for matrices; 0: 2 GiB */
	uint64_t work; /* limit for pricing, in inner steps of a search; 0: none */
};

/* AP_LIMIT, with a warning, if redistribution prices would exceed the budget or the work, which is
 * checked before any is made: *out then has only the lower bounds. AP_STOPPED without a message if
 * told to stop. */
enum ap_status ap_table_make(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const struct ap_table_params *params,
	const struct ap_table **out);

/* The table pruned by memory, too, for problems with a limit; t itself if it already is. Uses the
 * prices of t. NULL if told to stop. */
const struct ap_table *ap_table_by_memory(struct ap_ctx *ctx, const struct ap_table *t);

/* The table in which some nodes, [nnode], have all their candidates, and the others those that pruning beside
 * these leaves, from the prices of t. So the least cost of a plan with a certain candidate of one of
 * these nodes is that of the problem before pruning. NULL if told to stop. */
const struct ap_table *ap_table_whole(struct ap_ctx *ctx, const struct ap_table *t, const bool *whole);

/* The table with some nodes fixed to counts (row NULL: not fixed), from the prices of t, which must
 * not be a narrowed table. NULL if t has no such candidate, or if told to stop. */
const struct ap_table *ap_table_narrow(struct ap_ctx *ctx, const struct ap_table *t,
	const int32_t *const *fixed);

/* What each candidate of t's operators adds to a path, before pruning: made once for all paths. */
struct ap_table_legs {
	const struct ap_legs *const *of_kind; /* [kinds][candidates] */
	const bool *finite; /* [bonds] a redistribution that no pair of layouts forbids */
	uint64_t work;
};

/* Incomplete if told to stop. */
void ap_table_legs_make(struct ap_ctx *ctx, const struct ap_table *t, struct ap_table_legs *out);

/* Some candidates of a table's operators: equal operators have equal ones. */
struct ap_table_pool {
	bool *const *of_kind; /* [kinds][candidates] */
};

/* None. */
void ap_table_pool_init(struct ap_ctx *ctx, const struct ap_table *t, struct ap_table_pool *out);

/* Adds what each node's counts are, [nnode]. O(candidates). */
void ap_table_pool_add(const struct ap_table_pool *pool, const struct ap_table *t,
	const int32_t *const *counts);

/* The table with what a path takes for costs, rounded down, from the prices of t, with pruning of its
 * own: the optimum's cost is a lower bound of the step of every choice from t's candidates before
 * pruning, or those of the pool unless that is NULL; of node i those in left[i], unless that or left is NULL.
 * Equal operators of equal weights share candidates. NULL if told to stop. */
const struct ap_table *ap_table_weighted(struct ap_ctx *ctx, const struct ap_table *t,
	const struct ap_table_legs *legs, const struct ap_path_weights *weights,
	const struct ap_table_pool *pool, const bool *const *left);

/* How many candidates node has in t before pruning: 1 if it is fixed. */
uint32_t ap_table_candidates(const struct ap_table *t, ap_id node);

/* The candidate of a node that has these counts; AP_NONE if there is none. O(candidates). */
uint32_t ap_table_candidate(const struct ap_table *t, ap_id node, const int32_t *counts);

/* By how much what a path takes of node's candidates differs, of those in left or (NULL) all; for a node that
 * is not fixed. O(candidates). */
double ap_table_spread_s(const struct ap_table *t, const struct ap_table_legs *legs,
	const struct ap_path_weights *weights, ap_id node, const bool *left);

/* Counts of candidate c of node i. */
const int32_t *ap_table_counts(const struct ap_table *t, ap_id node, uint32_t c);

/* The table's problem with other costs: cost[class][candidate]. Its nodes in arena, all else shared. */
struct ap_problem ap_table_repriced(struct ap_arena *arena, const struct ap_table *t, double *const *cost);

#endif
