/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises a bound by sweeps over the nodes, forth and back: each node takes what its edges from
 * behind can spare, and hands what it has in equal shares to the edges ahead, for later nodes to
 * take. Each step keeps all costs nonnegative and every pick's total unchanged, so the constant is
 * a bound, and a candidate that lifts it above `most` can be dropped. (Sequential message passing
 * of Kolmogorov's TRW-S, in whole grains.) Finds the optimum on a tree, elsewhere nearly the bound
 * of the linear relaxation in a thousandth of the time. Matrices are read only, so edges share
 * them.
 */
#ifndef AP_SEARCH_SWEEP_H
#define AP_SEARCH_SWEEP_H

#include <stdbool.h>

#include "problem/problem.h"

struct ap_sweep_job {
	const struct ap_problem *p; /* its memory limit is ignored */
	double constant; /* added to the cost of every pick */
	double grain; /* a power of two that divides all costs */
	double most; /* picks dearer than this are not wanted; INFINITY: all are */
	bool in_place; /* node costs are changed in p itself */
};

struct ap_sweep { /* allocated in scratch */
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	struct ap_incident at;
	double grain, exact, most;
	double **cost; /* [n] current costs of nodes; INFINITY: dropped */
	double **taken[2]; /* [nedge] taken from rows and columns of an edge; -INFINITY: dropped */
	double *moved; /* [n] moved from the node to the constant */
	double constant; /* INFINITY if no pick is wanted */
	bool alive; /* some pick may be left, and sums are exact */
	uint64_t left; /* number of candidates left */
	uint32_t *shares; /* [n] */
	bool **out; /* [n] dropped candidates */
	double *least; /* scratch, by candidate */
};

struct ap_sweep_effort {
	int patience; /* sweeps in a row that may gain little */
	int part; /* little: less than 1/part of the missing difference */
	uint64_t enough; /* with fewer candidates left, restart without the others */
	uint64_t most_work; /* 0: no limit */
};

/* The quantum, or a fraction of it, for which sums of p's costs stay exact. */
double ap_sweep_grain(struct ap_ctx *ctx, const struct ap_problem *p);

/* Returns false if costs are negative and removing that makes numbers too large: no sweeps then. */
bool ap_sweep_open(struct ap_ctx *ctx, const struct ap_sweep_job *job, struct ap_sweep *s);

/* Inner steps of a sweep; with all that small matrices take besides. */
double ap_sweep_price(const struct ap_problem *p);
double ap_sweep_whole_price(const struct ap_problem *p);

/* Sweeps forth and back, or less if told to stop; `most` may be lowered. O(cells of the edges). */
void ap_sweep_once(struct ap_sweep *s);

/* Sweeps as long as they gain much. Adds to *work. */
void ap_sweep_run(struct ap_sweep *s, const struct ap_sweep_effort *effort, uint64_t *work);

/* Picks greedily, node by node: the last sweep back has told each what is ahead. Returns the node
 * that had to pay most. Requires s->alive. */
uint32_t ap_sweep_pick(const struct ap_sweep *s, uint32_t *pick);

#endif
