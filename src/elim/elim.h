/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variable elimination on a cost table in two halves: a plan, made from the shape of the problem
 * alone, that states the order of nodes and which eliminations are equal; and its evaluation, which
 * can be repeated with other numbers of the same shape (ap_elim_eval).
 *
 * A factor is a table of costs over a set of nodes (its scope, ascending). Eliminating v replaces
 * all factors that contain v by one over their other nodes: each entry is the least sum over v's
 * candidates. Tables are identified by how they are made, so equal ids mean equal numbers: a
 * thousand equal layers share their eliminations.
 */
#ifndef AP_ELIM_ELIM_H
#define AP_ELIM_ELIM_H

#include <stdbool.h>

#include "problem/problem.h"

enum ap_etable_kind {
	AP_ET_NODE, /* costs of node a */
	AP_ET_MATRIX, /* matrix a */
	AP_ET_FLIPPED, /* matrix a, transposed */
	AP_ET_SUM, /* table a + table b, of equal scope */
	AP_ET_REDUCED /* result of reduction a */
};

struct ap_etable { /* row-major over the scope */
	enum ap_etable_kind kind;
	ap_id a, b;
	size_t cells;
};

struct ap_einput {
	uint64_t mask; /* its nodes as clique indices, lowest bit first */
	ap_id table;
};

struct ap_ereduction { /* one distinct elimination */
	uint32_t width; /* number of nodes in the clique with the eliminated one; at most 64 */
	uint32_t at; /* clique index of the eliminated node */
	const uint32_t *dim; /* [width] candidates */
	uint32_t ninput;
	const struct ap_einput *input;
};

struct ap_efactor {
	ap_id table;
	uint32_t nscope;
	const ap_id *scope;
};

struct ap_estep {
	ap_id node; /* the eliminated node */
	uint32_t nscope; /* size of the rest of its clique */
	const ap_id *scope;
	uint32_t nfactor; /* number of factors consumed */
	const ap_id *factor;
	ap_id result; /* table over scope */
};

struct ap_elim {
	uint32_t n;
	const uint32_t *k; /* [n] */
	uint32_t ntable;
	const struct ap_etable *table; /* operands come before results */
	uint32_t nreduction;
	const struct ap_ereduction *reduction;
	const struct ap_efactor *factor;
	const ap_id *own; /* [n] table of the node's costs */
	uint32_t nstep;
	const struct ap_estep *step; /* in order of elimination; steps of one node are adjacent */
	bool work_splits; /* not the tables' size, but the limit of work needs it to be split */
	bool split; /* some node was eliminated in parts: the result is only a lower bound */
	uint64_t work; /* inner steps of one evaluation */
	size_t bytes; /* of all tables made by an evaluation */
};

struct ap_elim_options {
	size_t table_bytes; /* limit of all tables of an evaluation together */
	uint64_t work; /* limit of one evaluation; 0: none */
	bool by_memory; /* nodes that differ only in memory are different */
	bool whole; /* a plan that has to be split is of no use: the first one tells */
	bool no_share; /* treat all eliminations as different */
};

/*
 * Plans the elimination of p (every k >= 2). Tries two orders, cheapest elimination first, and
 * cheapest per node when equal ones are made once; keeps the one with less work (see elim.c).
 * Splits what exceeds the options (mini-buckets), which keeps every sum a lower bound. In scratch.
 * About O((n + edges) * width * log n).
 */
const struct ap_elim *ap_elim_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options);

#endif
