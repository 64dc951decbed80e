/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear programs, solved by GLPK in a program of its own, autopar-plan-glpk, so that nothing here is
 * linked with it and nothing that happens to it happens to us. What comes back is that program's
 * opinion, in floating point: nothing may be believed of it that is not computed anew.
 */
#ifndef AP_ILP_LP_H
#define AP_ILP_LP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ctx.h"

/* Least cost * x, x >= 0, every row equal to its right-hand side or, where it is `loose`, at most it.
 * All numbers finite and near 1. */
struct ap_lp {
	size_t ncol, nrow, ncell;
	const double *cost; /* [ncol] */
	const double *right; /* [nrow] */
	const bool *loose; /* [nrow] */
	const int32_t *row, *col; /* [1 + ncell], cell 0 is not used; numbers from 1 */
	const double *value; /* [1 + ncell] */
};

struct ap_lp_limits {
	uint64_t iterations; /* 0: none */
	size_t bytes; /* of GLPK itself, which gives up where it needs more; 0: none */
};

enum ap_lp_end { AP_LP_OPTIMAL, AP_LP_INFEASIBLE, AP_LP_STOPPED, AP_LP_UNANSWERED };

struct ap_lp_solver { /* zeroed, but for ctx: not started */
	struct ap_ctx *ctx;
	pid_t pid; /* of the program; 0: it does not run */
	int fd; /* both ways */
	const char *failed; /* what is wrong with it, in ctx->arena; NULL: nothing so far */
};

/* Starts the program unless it runs. False: it cannot be had (any more). */
bool ap_lp_start(struct ap_lp_solver *s);

/*
 * Of a solver that was started: fills x [ncol] and dual [nrow], all finite, which hold the last basis
 * unless OPTIMAL; adds to *iterations. UNANSWERED, with nothing filled in: ctx is told to stop, or the
 * program has failed, and is ended.
 */
enum ap_lp_end ap_lp_solve(struct ap_lp_solver *s, const struct ap_lp *lp,
	const struct ap_lp_limits *limits, double *x, double *dual, uint64_t *iterations);

/* Ends the program, if it runs; allocates nothing. */
void ap_lp_end(struct ap_lp_solver *s);

#endif
