/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/minplus.h"

#include <math.h>
#include <stdint.h>

#include "base/par.h"
#include "base/wide.h"

#define PART (UINT64_C(1) << 22) /* steps of a thread's task, and between two polls */

/* Takes four values of x at a time for all rows: four rows of b stay in the first-level cache, and
 * each element of out is touched once per four steps. Compilers vectorize the plain loop over
 * columns and the conditional expression (not fmin(), which must honour NaN). */

AP_WIDE static void add_four(size_t n, double *restrict out, const double *restrict b, size_t stride,
	const double v[4])
{
	const double *b0 = b, *b1 = b + stride, *b2 = b1 + stride, *b3 = b2 + stride;
	double v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
	for (size_t j = 0; j < n; j++) {
		double s = v0 + b0[j], t = v1 + b1[j], u = v2 + b2[j], w = v3 + b3[j];
		s = t < s ? t : s;
		u = w < u ? w : u;
		s = u < s ? u : s;
		out[j] = s < out[j] ? s : out[j];
	}
}

static void add_one(size_t n, double *restrict out, const double *restrict b, double v)
{
	for (size_t j = 0; j < n; j++) {
		double s = v + b[j];
		out[j] = s < out[j] ? s : out[j];
	}
}

static double least_sum(size_t k, const double *a, const double *b)
{
	double s = INFINITY, t = INFINITY, u = INFINITY, v = INFINITY;
	size_t x = 0;
	for (; x + 4 <= k; x += 4) {
		double p = a[x] + b[x], q = a[x + 1] + b[x + 1];
		double r = a[x + 2] + b[x + 2], w = a[x + 3] + b[x + 3];
		s = p < s ? p : s;
		t = q < t ? q : t;
		u = r < u ? r : u;
		v = w < v ? w : v;
	}
	for (; x < k; x++)
		s = a[x] + b[x] < s ? a[x] + b[x] : s;
	s = t < s ? t : s;
	u = v < u ? v : u;
	return u < s ? u : s;
}

void ap_minplus_row(size_t k, size_t cols, const double *a, const double *b, size_t b_row, double *out)
{
	for (size_t c = 0; c < cols; c++)
		out[c] = least_sum(k, a, b + c * b_row);
}

void ap_minplus(const struct ap_minplus *m)
{
	for (size_t r = 0; r < m->rows; r++) {
		double *out = m->out + r * m->out_row;
		for (size_t c = 0; c < m->cols; c++)
			out[c] = INFINITY;
	}
	size_t x = 0;
	for (; x + 4 <= m->k; x += 4) {
		const double *b = m->b + x * m->b_x;
		for (size_t r = 0; r < m->rows; r++) {
			const double *a = m->a + r * m->a_row + x * m->a_x;
			double v[4] = {a[0], a[m->a_x], a[2 * m->a_x], a[3 * m->a_x]};
			add_four(m->cols, m->out + r * m->out_row, b, m->b_x, v);
		}
	}
	for (; x < m->k; x++) {
		const double *a = m->a + x * m->a_x, *b = m->b + x * m->b_x;
		for (size_t r = 0; r < m->rows; r++)
			add_one(m->cols, m->out + r * m->out_row, b, a[r * m->a_row]);
	}
}

struct parts { /* splits a product by rows */
	struct ap_ctx *ctx;
	const struct ap_minplus *whole;
	size_t rows; /* of each part but the last */
};

static void make_part(void *user, size_t i, int worker)
{
	const struct parts *parts = user;
	struct ap_minplus m = *parts->whole;
	size_t first = i * parts->rows;
	(void)worker;
	if (ap_ctx_stopped(parts->ctx))
		return;
	m.a += first * m.a_row;
	m.out += first * m.out_row;
	m.rows = m.rows - first < parts->rows ? m.rows - first : parts->rows;
	ap_minplus(&m);
}

void ap_minplus_parts(struct ap_ctx *ctx, const struct ap_minplus *m)
{
	struct parts parts = {ctx, m, PART / (m->k * m->cols) + 1};
	size_t n = (m->rows + parts.rows - 1) / parts.rows;
	ap_par_for(ctx->scratch, n > 1 ? ctx->jobs : 1, n, make_part, &parts);
}
