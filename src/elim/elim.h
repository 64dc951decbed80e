/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variable elimination on a cost table, in two halves: a plan, made from the shape of the problem
 * alone, that says which nodes go in which order and which eliminations are the same one; and its
 * evaluation, which may be repeated with other numbers of the same shape (ap_elim_eval).
 *
 * A factor is a table of costs over a set of nodes (its scope, ascending). Eliminating v replaces
 * all factors that hold v by one over their other nodes: its entry is the least sum over v's
 * candidates. Tables are named by how they come about, so equal ids mean equal numbers: a thousand
 * equal layers share their eliminations.
 */
#ifndef AP_ELIM_ELIM_H
#define AP_ELIM_ELIM_H

#include <stdbool.h>

#include "problem/problem.h"

enum ap_etable_kind {
	AP_ET_NODE, /* costs of node a */
	AP_ET_MATRIX, /* matrix a */
	AP_ET_FLIPPED, /* matrix a, transposed */
	AP_ET_SUM, /* table a + table b, of one scope */
	AP_ET_REDUCED /* result of reduction a */
};

struct ap_etable { /* row-major over the scope */
	enum ap_etable_kind kind;
	ap_id a, b;
	size_t cells;
};

struct ap_einput {
	uint64_t mask; /* its nodes among those of the clique, lowest bit first */
	ap_id table;
};

struct ap_ereduction { /* one distinct elimination */
	uint32_t width; /* nodes of the clique, the eliminated one included; at most 64 */
	uint32_t at; /* place of the eliminated node */
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
	ap_id node; /* the one eliminated */
	uint32_t nscope; /* of what is left of its clique */
	const ap_id *scope;
	uint32_t nfactor; /* those it consumes */
	const ap_id *factor;
	ap_id result; /* table; over scope */
};

struct ap_elim {
	uint32_t n;
	const uint32_t *k; /* [n] */
	uint32_t ntable;
	const struct ap_etable *table; /* operands come before what is made of them */
	uint32_t nreduction;
	const struct ap_ereduction *reduction;
	const struct ap_efactor *factor;
	const ap_id *own; /* [n] table of the node's costs */
	uint32_t nstep;
	const struct ap_estep *step; /* in order of elimination; steps of one node are neighbours */
	bool split; /* some node was eliminated in parts: the result is a lower bound only */
	uint64_t work; /* inner steps of one evaluation */
	size_t bytes; /* of all tables that an evaluation makes */
};

struct ap_elim_options {
	size_t table_bytes; /* for all tables of an evaluation together */
	uint64_t work; /* of one evaluation, 0: no limit */
	bool by_memory; /* nodes equal in cost but not in memory are different */
	bool no_share; /* every elimination counts as different */
};

/*
 * Plans the elimination of p (every k >= 2). Orders tried: cheapest elimination first, and cheapest
 * per node when equal ones are made once; the one with less work is kept (see elim.c). What does not fit the
 * options is split (mini-buckets), which keeps every sum a lower bound. Result in scratch. About
 * O((n + edges) * width * log n).
 */
const struct ap_elim *ap_elim_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options);

#endif
