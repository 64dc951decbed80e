/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, plain, batched and quantised, with all transpositions. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* A matrix in the last two dimensions, seen as rows x columns. */
struct matrix {
	const struct ex_value *t;
	bool transposed;
};

static int64_t rows(const struct matrix *m)
{
	const struct ex_box *b = &m->t->box;

	return b->size[b->rank - (m->transposed ? 1 : 2)];
}

static int64_t columns(const struct matrix *m)
{
	const struct ex_box *b = &m->t->box;

	return b->size[b->rank - (m->transposed ? 2 : 1)];
}

/* Number of element (row, column) of the matrix that belongs to element `at` of the result. */
static int64_t place(const struct matrix *m, const int64_t *at, int rank, int64_t row, int64_t column)
{
	const struct ex_box *b = &m->t->box;
	int64_t i = 0, r = m->transposed ? column : row, c = m->transposed ? row : column;

	for (int d = 0; d < b->rank - 2; d++)
		i = i * b->size[d] + (b->size[d] == 1 ? 0 : at[rank - b->rank + d]);
	i = i * b->size[b->rank - 2] + r;
	return i * b->size[b->rank - 1] + c;
}

/* From an element to the next one of its row, or of its column. */
static int64_t next_of(const struct matrix *m, bool of_row)
{
	return m->transposed == of_row ? m->t->box.size[m->t->box.rank - 1] : 1;
}

static bool batches_fit(const struct ex_box *b, const struct ex_box *out)
{
	for (int d = 0; d < b->rank - 2; d++)
		if (b->size[d] != 1 && b->size[d] != out->size[d + out->rank - b->rank])
			return false;
	return b->rank >= 2 && b->rank <= out->rank;
}

static bool fits(const struct matrix *a, const struct matrix *b, const struct ex_box *out)
{
	return batches_fit(&a->t->box, out) && batches_fit(&b->t->box, out) &&
		columns(a) == rows(b) && rows(a) == out->size[out->rank - 2] &&
		columns(b) == out->size[out->rank - 1];
}

static bool product(const struct ex_job *j)
{
	struct matrix a = {&j->in[0], ap_attr_bool(j->attrs, "transpose_a", false)};
	struct matrix b = {&j->in[1], ap_attr_bool(j->attrs, "transpose_b", false)};
	int64_t at[AP_MAX_RANK] = {0}, n, by_row, by_column;
	struct ex_value *out = &j->out[0];
	int rank = out->box.rank;

	if (!fits(&a, &b, &out->box))
		return false;
	n = columns(&a);
	by_row = next_of(&a, true);
	by_column = next_of(&b, false);
	do {
		const ex_id *x = &a.t->id[place(&a, at, rank, at[rank - 2], 0)];
		const ex_id *y = &b.t->id[place(&b, at, rank, 0, at[rank - 1])];
		ex_id sum = 0;

		for (int64_t k = 0; k < n; k++)
			sum = ex_mad(j->tape, sum, x[k * by_row], y[k * by_column]);
		ex_put(out, at, sum);
	} while (ex_step(&out->box, at));
	return true;
}

/* A number per channel, or one for all. */
static ex_id of_channel(const struct ex_value *t, int64_t i)
{
	return t->id[t->box.size[0] == 1 ? 0 : i];
}

static bool is_per_channel(const struct ex_job *j, unsigned slot, int64_t n)
{
	const struct ex_value *t = ex_in(j, slot);

	return !t || (t->box.rank == 1 && (t->box.size[0] == n || t->box.whole[0] == 1));
}

static ex_id scaled(const struct ex_job *j, ex_id v, unsigned slot, int64_t i)
{
	const struct ex_value *t = ex_in(j, slot);

	return t ? ex_times(j->tape, v, of_channel(t, i)) : v;
}

static ex_id shifted(const struct ex_job *j, ex_id v, unsigned slot, int64_t i)
{
	const struct ex_value *t = ex_in(j, slot);

	return t ? ex_plus(j->tape, v, of_channel(t, i)) : v;
}

/* (x1 x2 + bias) scale per_token + offset */
static ex_id requantised(const struct ex_job *j, ex_id sum, int64_t row, int64_t column)
{
	sum = shifted(j, sum, 4, column);
	sum = scaled(j, sum, 2, column);
	sum = scaled(j, sum, 5, row);
	return shifted(j, sum, 3, column);
}

/* (x w) quant_scale + quant_offset + bias */
static ex_id completed(const struct ex_job *j, ex_id sum, int64_t column)
{
	sum = scaled(j, sum, 4, column);
	sum = shifted(j, sum, 5, column);
	return shifted(j, sum, 6, column);
}

/* Of the weight of WeightQuantBatchMatmul: (w + offset) scale. */
static ex_id weight(const struct ex_job *j, ex_id w, int64_t column)
{
	return scaled(j, shifted(j, w, 3, column), 2, column);
}

static bool quantised(const struct ex_job *j)
{
	bool of_weight = ex_begins(j, "Weight");
	struct matrix a = {&j->in[0],
		ap_attr_bool(j->attrs, of_weight ? "transpose_x" : "transpose_x1", false)};
	struct matrix b = {&j->in[1],
		ap_attr_bool(j->attrs, of_weight ? "transpose_weight" : "transpose_x2", false)};
	struct ex_value *out = &j->out[0];
	int64_t at[AP_MAX_RANK] = {0};
	int rank = out->box.rank;

	if (!fits(&a, &b, &out->box))
		return false;
	for (unsigned slot = 2; slot < 7; slot++)
		if (!is_per_channel(j, slot, !of_weight && slot == 5 ? rows(&a) : columns(&b)))
			return false;
	do {
		int64_t row = at[rank - 2], column = at[rank - 1];
		ex_id sum = 0;

		for (int64_t k = 0; k < columns(&a); k++) {
			ex_id w = b.t->id[place(&b, at, rank, k, column)];

			sum = ex_mad(j->tape, sum, a.t->id[place(&a, at, rank, row, k)],
				of_weight ? weight(j, w, column) : w);
		}
		ex_put(out, at, of_weight ? completed(j, sum, column)
			: requantised(j, sum, row, column));
	} while (ex_step(&out->box, at));
	return true;
}

const struct ex_kernel ex_kernels_product[] = {
	{.type = "MatMul", .forward = product, .make = ex_make_product},
	{.type = "MatMulExt", .forward = product, .make = ex_make_product_ext},
	{.type = "BatchMatMul", .forward = product, .make = ex_make_products},
	{.type = "BatchMatMulExt", .forward = product, .make = ex_make_products},
	{.type = "QuantBatchMatmul", .forward = quantised, .make = ex_make_quantised,
		.no_grad = 0x3f},
	{.type = "WeightQuantBatchMatmul", .forward = quantised, .make = ex_make_quantised_weight,
		.no_grad = 0x7f},
	{0}
};
