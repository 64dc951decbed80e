/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of costs that are hard for elimination: wide graphs, frustrated cycles, limits of memory.
 * The same specification gives the same table everywhere.
 *
 * Of a planted table the optimum is known. Its edges are taken apart into triangles, squares and
 * single edges; each part gets costs of its own, of which the best are put where the planted pick
 * is, so that this is the best of every part at once.
 */
#ifndef AP_BENCH_HARD_PROBLEM_H
#define AP_BENCH_HARD_PROBLEM_H

#include "problem/problem.h"

enum hard_shape {
	HARD_GRID, /* a x b nodes, joined to the right and down */
	HARD_TORUS, /* the same, joined around */
	HARD_REGULAR, /* a nodes of b neighbours each, at random */
	HARD_CLIQUE, /* a nodes, all joined */
	HARD_DAG, /* a layers of b nodes, each joined to two of the layer before, some to one before that */
	HARD_SHAPES
};

enum hard_costs {
	HARD_NODES, /* any number, mostly of the nodes; pairs of equal candidates are free */
	HARD_EDGES, /* any number, mostly of the edges: the hardest */
	HARD_LEVELS, /* 0 to 3: many ties */
	HARD_LAYOUT, /* of an edge: its tensor's size times the distance of two layouts, 0 if equal */
	HARD_COSTS
};

struct hard_spec {
	enum hard_shape shape;
	uint32_t a, b, k; /* size; candidates of a node */
	enum hard_costs costs;
	bool planted;
	uint32_t forbidden; /* percent of all pairs */
	bool memory; /* dear candidates need less of it; there is a limit */
	uint64_t seed;
};

struct hard_problem {
	const struct ap_problem *p; /* a pick is always allowed */
	const uint32_t *planted; /* an optimum, or NULL */
	double optimum; /* of a planted table */
};

/* Everything lies in the run arena. k >= 2; a regular graph needs a > b, and a * b even. Memory for about
 * edges * k * k numbers; O(edges * k^3) if planted. */
struct hard_problem hard_problem_make(struct ap_ctx *ctx, const struct hard_spec *spec);

/* The spelling of a shape or a kind of costs; NULL past the end. */
const char *hard_shape_name(size_t i);
const char *hard_costs_name(size_t i);

#endif
