/* SPDX-License-Identifier: Apache-2.0 */
/* Products that are not of two matrices: of any dimensions, by groups of rows, two in a row. */
#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"
#include "kern_parts.h"
#include "make_parts.h"

/* Dimension by[0][i] of operand 0 goes with by[1][i] of operand 1. */
struct pairs {
	int n, by[2][AP_MAX_RANK];
};

static int wrapped(int64_t dim, int rank)
{
	return (int)(dim < 0 ? dim + rank : dim);
}

static struct pairs read_pairs(const struct ex_job *j)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, "axes");
	struct pairs p = {(int)(a->n == 1 ? a->list[0] : a->n / 2), {{0}}};

	for (int i = 0; i < p.n; i++) {
		p.by[0][i] = a->n == 1 ? j->in[0].box.rank - p.n + i
			: wrapped(a->list[i], j->in[0].box.rank);
		p.by[1][i] = a->n == 1 ? i : wrapped(a->list[p.n + i], j->in[1].box.rank);
	}
	return p;
}

static bool is_paired(const struct pairs *p, int operand, int dim)
{
	for (int i = 0; i < p->n; i++)
		if (p->by[operand][i] == dim)
			return true;
	return false;
}

/* What is summed over; false where the two have different parts of it. */
static bool common_box(const struct ex_job *j, const struct pairs *p, struct ex_box *b)
{
	*b = (struct ex_box){.rank = (uint8_t)p->n};
	for (int i = 0; i < p->n; i++) {
		b->size[i] = j->in[0].box.size[p->by[0][i]];
		if (b->size[i] != j->in[1].box.size[p->by[1][i]])
			return false;
	}
	return true;
}

/* Place in an operand: its pairs by `inner`, its other dimensions by at[first], at[first + 1], .. */
static int place(const struct ex_job *j, const struct pairs *p, int operand, const int64_t *inner,
	const int64_t *at, int first, int64_t *own)
{
	for (int i = 0; i < p->n; i++)
		own[p->by[operand][i]] = inner[i];
	for (int d = 0; d < j->in[operand].box.rank; d++)
		if (!is_paired(p, operand, d))
			own[d] = at[first++];
	return first;
}

static bool tensor_dot(const struct ex_job *j)
{
	struct pairs p = read_pairs(j);
	int64_t at[AP_MAX_RANK] = {0};
	struct ex_box common;

	if (!common_box(j, &p, &common))
		return false;
	do {
		int64_t inner[AP_MAX_RANK] = {0}, x[AP_MAX_RANK], y[AP_MAX_RANK];
		ex_id sum = 0;

		do {
			place(j, &p, 1, inner, at, place(j, &p, 0, inner, at, 0, x), y);
			sum = ex_mad(j->tape, sum, ex_get(&j->in[0], x), ex_get(&j->in[1], y));
		} while (ex_step(&common, inner));
		ex_put(&j->out[0], at, sum);
	} while (ex_step(&j->out[0].box, at));
	return true;
}

static bool outer(const struct ex_job *j)
{
	int64_t m = j->in[0].box.size[0], n = j->in[1].box.size[0];

	if (j->out[0].box.size[0] != m || j->out[0].box.size[1] != n)
		return false;
	for (int64_t i = 0; i < m * n; i++)
		j->out[0].id[i] = ex_times(j->tape, j->in[0].id[i / n], j->in[1].id[i % n]);
	return true;
}

/* Distance of row `at` of operand 0 and row `to` of operand 1, by a curve of the squares' sum. */
static ex_id distance(const struct ex_job *j, int64_t *at, int64_t to)
{
	int last = j->in[0].box.rank - 1;
	int64_t other[AP_MAX_RANK];
	ex_id sum = 0;

	memcpy(other, at, sizeof other);
	other[last - 1] = to;
	for (int64_t i = 0; i < j->in[0].box.size[last]; i++) {
		ex_id d;

		at[last] = other[last] = i;
		d = ex_minus(j->tape, ex_get(&j->in[0], at), ex_get(&j->in[1], other));
		sum = ex_mad(j->tape, sum, d, d);
	}
	return ex_fn1(j->tape, "root", sum);
}

static bool distances(const struct ex_job *j)
{
	const struct ex_box *out = &j->out[0].box;
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK];
	int last = out->rank - 1;

	if (j->in[0].box.size[last] != j->in[1].box.size[last] ||
		j->in[0].box.size[last - 1] != out->size[last - 1] ||
		j->in[1].box.size[last - 1] != out->size[last])
		return false;
	do {
		memcpy(own, at, sizeof own);
		ex_put(&j->out[0], at, distance(j, own, at[last]));
	} while (ex_step(out, at));
	return true;
}

/* Stands for any function of a whole matrix: each element with the sum of all. */
static bool of_matrix(const struct ex_job *j)
{
	const struct ex_box *b = &j->in[0].box;
	int64_t n = b->size[b->rank - 1] * b->size[b->rank - 2];

	for (int64_t first = 0; first < ex_count(b); first += n) {
		ex_id sum = 0;

		for (int64_t i = first; i < first + n; i++)
			sum = ex_plus(j->tape, sum, j->in[0].id[i]);
		for (int64_t i = first; i < first + n; i++)
			j->out[0].id[i] = ex_fn2(j->tape, j->type, j->in[0].id[i], sum);
	}
	return memcmp(b->size, j->out[0].box.size, sizeof b->size) == 0;
}

/* The matrix of a row, by counts that say where each group ends, or how long each is. */
static int64_t matrix_of(const struct ex_job *j, const struct ex_value *counts, int64_t row,
	bool lengths)
{
	int64_t e = 0, n = ex_count(&counts->box), end = 0;

	for (; e < n; e++) {
		int64_t v = (int64_t)ex_value_of(j->tape, counts->id[e]);

		end = lengths ? end + v : v;
		if (row < end)
			return e;
	}
	return n;
}

/* Row e of a table of numbers for each matrix and column; of a vector without matrices. */
static ex_id of_matrix_column(const struct ex_value *t, int64_t e, int64_t column)
{
	return t->id[(t->box.rank == 1 ? 0 : e * t->box.size[1]) + column];
}

static ex_id adjusted(const struct ex_job *j, unsigned slot, ex_id v, int64_t e, int64_t column)
{
	const struct ex_value *t = ex_in(j, slot);
	bool product = slot == 3 || slot == 5;

	if (!t)
		return v;
	return product ? ex_times(j->tape, v, of_matrix_column(t, e, column))
		: ex_plus(j->tape, v, of_matrix_column(t, e, column));
}

/* ((x ((w + antiquant offset) antiquant scale)) + bias) scale + offset; rows of no group are zero. */
static ex_id grouped_at(const struct ex_job *j, int64_t e, int64_t row, int64_t column)
{
	const struct ex_box *w = &j->in[1].box;
	ex_id sum = 0;

	if (e == w->size[0])
		return 0;
	for (int64_t h = 0; h < w->size[1]; h++) {
		ex_id v = j->in[1].id[(e * w->size[1] + h) * w->size[2] + column];

		v = adjusted(j, 5, adjusted(j, 6, v, e, column), e, column);
		sum = ex_mad(j->tape, sum, j->in[0].id[row * w->size[1] + h], v);
	}
	sum = adjusted(j, 3, adjusted(j, 2, sum, e, column), e, column);
	return adjusted(j, 4, sum, e, column);
}

static bool grouped(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box, *w = &j->in[1].box, *out = &j->out[0].box;
	const struct ex_value *counts = ex_in(j, 7);

	if (x->size[1] != w->size[1] || out->size[0] != x->size[0] || out->size[1] != w->size[2])
		return false;
	for (unsigned slot = 2; slot < 7; slot++) {
		const struct ex_value *t = ex_in(j, slot);

		if (t && (t->box.size[0] != w->size[0] || t->box.size[1] != w->size[2]))
			return false;
	}
	for (int64_t n = 0; n < x->size[0]; n++) {
		int64_t e = counts ? matrix_of(j, counts, n, false) : 0;

		for (int64_t k = 0; k < out->size[1]; k++)
			j->out[0].id[n * out->size[1] + k] = grouped_at(j, e, n, k);
	}
	return true;
}

/* Of matrix e of a weight, or of the only one: x W + bias. */
static ex_id layer(const struct ex_job *j, const ex_id *x, const struct ex_value *w,
	const struct ex_value *bias, int64_t e, int64_t column)
{
	const struct ex_box *b = &w->box;
	int64_t n = b->size[b->rank - 2], m = b->size[b->rank - 1];
	const ex_id *first = w->id + (b->rank == 3 ? e * n * m : 0);
	ex_id sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum = ex_mad(j->tape, sum, x[i], first[i * m + column]);
	return bias ? ex_plus(j->tape, sum, of_matrix_column(bias, e, column)) : sum;
}

static bool layers_fit(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box, *w1 = &j->in[1].box, *w2 = &j->in[2].box;
	const struct ex_box *out = &j->out[0].box;

	return x->size[x->rank - 1] == w1->size[w1->rank - 2] &&
		w1->size[w1->rank - 1] == w2->size[w2->rank - 2] &&
		w2->size[w2->rank - 1] == out->size[out->rank - 1] &&
		ex_count(x) / x->size[x->rank - 1] == ex_count(out) / out->size[out->rank - 1];
}

static bool feed_forward(const struct ex_job *j)
{
	const struct ex_value *w1 = &j->in[1], *w2 = &j->in[2], *counts = ex_in(j, 3);
	const struct ex_value *bias1 = ex_in(j, 4), *bias2 = ex_in(j, 5);
	int64_t h = w1->box.size[w1->box.rank - 2], f = w1->box.size[w1->box.rank - 1];
	int64_t o = w2->box.size[w2->box.rank - 1];
	ex_id *inner = AP_NEW_N(j->arena, ex_id, f);

	if (!layers_fit(j))
		return false;
	for (int64_t n = 0; n < ex_count(&j->in[0].box) / h; n++) {
		int64_t e = counts && w1->box.rank == 3 ? matrix_of(j, counts, n, true) : 0;

		if (w1->box.rank == 3 && e == w1->box.size[0])
			continue;
		for (int64_t k = 0; k < f; k++)
			inner[k] = ex_fn1(j->tape, "activation",
				layer(j, j->in[0].id + n * h, w1, bias1, e, k));
		for (int64_t k = 0; k < o; k++)
			j->out[0].id[n * o + k] = layer(j, inner, w2, bias2, e, k);
	}
	return true;
}

const struct ex_kernel ex_kernels_dot[] = {
	{.type = "TensorDot", .forward = tensor_dot, .make = ex_make_tensor_dot},
	{.type = "Outer", .forward = outer, .make = ex_make_outer},
	{.type = "Cdist", .forward = distances, .make = ex_make_distances},
	{.type = "Cholesky", .forward = of_matrix, .make = ex_make_square},
	{.type = "GroupedMatmul", .forward = grouped, .make = ex_make_grouped, .no_grad = 0xf8},
	{.type = "FFN", .forward = feed_forward, .make = ex_make_feed_forward, .no_grad = 0x3f},
	{.type = "FFNExt", .forward = feed_forward, .make = ex_make_feed_forward, .no_grad = 0x3f},
	{0}
};
