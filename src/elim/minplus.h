/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop of variable elimination. */
#ifndef AP_ELIM_MINPLUS_H
#define AP_ELIM_MINPLUS_H

#include <stddef.h>

#include "base/ctx.h"

/* out[r][c] = min over x in [0, k) of a[r][x] + b[x][c], for r in [0, rows), c in [0, cols).
 * Columns of b and out are contiguous; the other strides are in elements. k >= 1.
 * O(rows * k * cols), about two steps a cycle with SSE2. */
struct ap_minplus {
	size_t rows, k, cols;
	const double *a;
	size_t a_row, a_x;
	const double *b;
	size_t b_x;
	double *out;
	size_t out_row;
};

void ap_minplus(const struct ap_minplus *m);

/* ap_minplus() on ctx->jobs threads if it is large; incomplete if told to stop. */
void ap_minplus_parts(struct ap_ctx *ctx, const struct ap_minplus *m);

/* out[c] = min over x in [0, k) of a[x] + b[c][x], for c in [0, cols): one row, b transposed. a and
 * the rows of b are contiguous. k >= 1. */
void ap_minplus_row(size_t k, size_t cols, const double *a, const double *b, size_t b_row, double *out);

#endif
