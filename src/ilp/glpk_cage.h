/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear programs, solved by GLPK, which is seen nowhere else. What comes back is GLPK's opinion, in
 * floating point: nothing may be believed of it that is not computed anew. GLPK ends the process
 * where it is at its wits' end, so it is called in a child only (child.h).
 */
#ifndef AP_ILP_GLPK_CAGE_H
#define AP_ILP_GLPK_CAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Least cost * x, x >= 0, every row equal to its right-hand side or, where it is `loose`, at most it.
 * All numbers finite and near 1. */
struct ap_lp {
	size_t ncol, nrow, ncell;
	const double *cost; /* [ncol] */
	const double *right; /* [nrow] */
	const bool *loose; /* [nrow] */
	const int *row, *col; /* [1 + ncell], cell 0 is not used; numbers from 1 */
	const double *value; /* [1 + ncell] */
};

struct ap_lp_limits {
	uint64_t iterations; /* 0: none */
	size_t bytes; /* of GLPK itself; the process ends where it needs more; 0: none */
	/* Called now and then with `user`; where it says false, the process ends. */
	bool (*go_on)(void *user);
	void *user;
};

enum ap_lp_end { AP_LP_OPTIMAL, AP_LP_INFEASIBLE, AP_LP_STOPPED };

/* Fills x [ncol] and dual [nrow], which hold the last basis unless OPTIMAL; adds to *iterations. */
enum ap_lp_end ap_lp_solve(const struct ap_lp *lp, const struct ap_lp_limits *limits, double *x,
	double *dual, uint64_t *iterations);

#endif
