/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a model chosen for the least sum of absolute relative errors. No derivatives are asked for,
 * and nothing is random: the same problem gives the same bits.
 *
 * A step moves constants in their logarithms: predictions are laid out linearly about the best constants so
 * far (one evaluation for each constant), the sum of absolute errors of these lines, which is convex, is
 * minimised within a radius by exact line searches, and what comes out is evaluated. It is taken if it is
 * better, else the radius is halved. So what costs is evaluations: (constants + 1) a step, ten steps
 * mostly. */
#ifndef AP_BASE_FIT_H
#define AP_BASE_FIT_H

#include <stddef.h>

#include "base/ctx.h"

enum { AP_FIT_MOST = 16 }; /* constants */

struct ap_fit_constant {
	double from, to; /* 0 < from <= to */
	double value; /* where the search begins; moved into the range */
	double stay; /* error that moving it by a factor e costs, in units of one row's; 0: it moves freely */
};

/* Predicts all rows with these values of the constants: predicted[i] >= 0, in the unit of what was measured;
 * 0: no prediction, an error of 100 %. Must give the same for the same values. */
typedef enum ap_status ap_fit_fn(void *user, const double *values, double *predicted);

struct ap_fit {
	const struct ap_fit_constant *constant;
	size_t nconstant; /* at most AP_FIT_MOST; constants that no row depends on stay */
	const double *measured; /* above 0 */
	const double *weight; /* of each row; 0: it is left out; NULL: 1 each */
	size_t nrow;
	ap_fit_fn *predict;
	void *user;
	int evaluations; /* at most; 0: 40 for each constant */
};

struct ap_fit_result {
	double value[AP_FIT_MOST];
	double error; /* sum of weight * |predicted / measured - 1| / sum of weights */
	double before; /* the same where the search began */
	int evaluations;
};

/* Fits. Returns the status of predict() if that fails; *out is then not set. O(evaluations) predictions, and
 * for each O(rows log rows). */
enum ap_status ap_fit_least(struct ap_ctx *ctx, const struct ap_fit *fit, struct ap_fit_result *out);

/* The mean of weight * |predicted / measured - 1|; weight NULL: 1 each; 0 of no rows. O(n). */
double ap_fit_error(const double *measured, const double *predicted, const double *weight, size_t n);

#endif
