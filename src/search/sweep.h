/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises a bound by sweeps over the nodes, forth and back: each takes what its edges from behind can
 * spare and hands what it then has, in equal shares, to those ahead, for the next nodes to take. After
 * each step nothing is negative, and every pick still costs the same; so the constant is a bound, and
 * a candidate that lifts it above what is wanted is out. (The sequential message passing of
 * Kolmogorov's TRW-S, in whole grains.) On a tree that finds the optimum, elsewhere nearly what the
 * linear relaxation would, in a thousandth of the time. Matrices are only read, so edges share them.
 */
#ifndef AP_SEARCH_SWEEP_H
#define AP_SEARCH_SWEEP_H

#include <stdbool.h>

#include "problem/problem.h"

struct ap_sweep_job {
	const struct ap_problem *p; /* its limit is not looked at */
	double constant; /* that every pick costs more */
	double grain; /* costs are multiples of it; a power of two */
	double most; /* picks that cost more than this are not wanted; INFINITY: all are */
	bool in_place; /* costs of nodes are moved where they lie, in p */
};

struct ap_sweep { /* in scratch */
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	struct ap_incident at;
	double grain, exact, most;
	double **cost; /* [n] what nodes have now; INFINITY: out */
	double **taken[2]; /* [nedge] from rows and columns of the edge; -INFINITY: out */
	double *moved; /* [n] from the node to the constant */
	double constant; /* INFINITY: no pick is wanted */
	bool alive; /* a pick may be left, and numbers are exact */
	uint64_t left; /* candidates */
	uint32_t *shares; /* [n] */
	bool **out; /* [n] was left out */
	double *least; /* of some candidates */
};

struct ap_sweep_effort {
	int patience; /* sweeps in a row that may bring little */
	int part; /* of what is missing: less than one of so many is little */
	uint64_t enough; /* candidates: with fewer left it pays to begin anew without the others */
	uint64_t most_work; /* 0: no limit */
};

/* A part of the quantum, or all of it, for which sums of the costs of p stay exact. */
double ap_sweep_grain(struct ap_ctx *ctx, const struct ap_problem *p);

/* False: some cost is negative, and moving them about until none is makes numbers too large. Then the
 * sweep is good for nothing. */
bool ap_sweep_open(struct ap_ctx *ctx, const struct ap_sweep_job *job, struct ap_sweep *s);

/* Inner steps of one sweep. */
double ap_sweep_price(const struct ap_problem *p);

/* Forth and back, or less when told to stop. `most` may be lowered before. O(cells of the edges). */
void ap_sweep_once(struct ap_sweep *s);

/* Sweeps as long as that brings much. *work is counted up. */
void ap_sweep_run(struct ap_sweep *s, const struct ap_sweep_effort *effort, uint64_t *work);

/* One node after the other takes what is cheapest: the last sweep back has told it what is ahead. The
 * node that had to pay most. The sweep is alive. */
uint32_t ap_sweep_pick(const struct ap_sweep *s, uint32_t *pick);

#endif
