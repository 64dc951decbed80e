/* SPDX-License-Identifier: Apache-2.0 */
/* Linear programs, solved by GLPK in a separate program, autopar-plan-glpk, so that nothing here
 * links with GLPK and its failures cannot hurt this process. Its answers are floating-point advice:
 * whatever is used of them must be computed anew. */
#ifndef AP_ILP_LP_H
#define AP_ILP_LP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ctx.h"

/* Minimises cost * x subject to x >= 0 and each row equal to its right-hand side or, if `loose`, at
 * most that. All numbers are finite and near 1. */
struct ap_lp {
	size_t ncol, nrow, ncell;
	const double *cost; /* [ncol] */
	const double *right; /* [nrow] */
	const bool *loose; /* [nrow] */
	const int32_t *row, *col; /* [1 + ncell], numbers from 1; cell 0 is unused */
	const double *value; /* [1 + ncell] */
};

struct ap_lp_limits {
	uint64_t iterations; /* 0: no limit */
	size_t bytes; /* limit for GLPK, which then gives up; 0: none */
};

enum ap_lp_end { AP_LP_OPTIMAL, AP_LP_INFEASIBLE, AP_LP_STOPPED, AP_LP_UNANSWERED };

struct ap_lp_solver { /* to begin with, zero apart from ctx */
	struct ap_ctx *ctx;
	pid_t pid; /* of the program; 0 if it is not running */
	int fd; /* a socket, for both directions */
	const char *failed; /* why it failed, in ctx->arena; NULL if it did not */
};

/* Starts the program unless it is running. Returns false if that fails, or has failed before. */
bool ap_lp_start(struct ap_lp_solver *s);

/* Solves with a started solver: fills x [ncol] and dual [nrow] with finite numbers, of the last
 * basis unless OPTIMAL; adds to *iterations. UNANSWERED, with nothing filled in: ctx was told to
 * stop, or the program failed and was ended. */
enum ap_lp_end ap_lp_solve(struct ap_lp_solver *s, const struct ap_lp *lp,
	const struct ap_lp_limits *limits, double *x, double *dual, uint64_t *iterations);

/* Ends the program if it is running; allocates nothing. */
void ap_lp_end(struct ap_lp_solver *s);

#endif
