/* SPDX-License-Identifier: Apache-2.0 */
/* Random products that are not of two matrices. */
#include "make_parts.h"

#include <string.h>

static void shuffle(struct ex_sample *s, int64_t *v, int n)
{
	for (int i = 0; i < n; i++) {
		int k = (int)ex_draw(s, i + 1);
		int64_t t = v[i];

		v[i] = v[k];
		v[k] = t;
	}
}

/* The last dimensions with the first ones, or some with some; negative ones, too. */
void ex_make_tensor_dot(struct ex_sample *s)
{
	uint8_t rank[2] = {(uint8_t)(1 + ex_draw(s, 3)), (uint8_t)(1 + ex_draw(s, 3))};
	int64_t most = rank[0] < rank[1] ? rank[0] : rank[1], n = ex_draw(s, most + 1);
	int64_t all[6], size[2][AP_MAX_RANK], axes[2 * AP_MAX_RANK], dims[2][3] = {{0, 1, 2}, {0, 1, 2}};
	bool ends = n == 1 ? ex_once_in(s, 2) : n == 0 || ex_once_in(s, 3);

	ex_draw_shape(s, 6, 3000, all);
	memcpy(size[0], all, 3 * sizeof *all);
	memcpy(size[1], all + 3, 3 * sizeof *all);
	shuffle(s, dims[0], rank[0]);
	shuffle(s, dims[1], rank[1]);
	for (int64_t i = 0; i < n; i++) {
		axes[i] = ends ? rank[0] - n + i : dims[0][i];
		axes[n + i] = ends ? i : dims[1][i];
		size[1][axes[n + i]] = size[0][axes[i]];
	}
	for (int64_t i = 0; i < 2 * n; i++)
		axes[i] -= ex_once_in(s, 3) ? rank[i >= n] : 0;
	ex_add_in(s, "float32", rank[0], size[0]);
	ex_add_in(s, "float32", rank[1], size[1]);
	if (ends)
		ex_add_list(s, "axes", 1, &n);
	else
		ex_add_list(s, "axes", 2 * (uint32_t)n, axes);
}

void ex_make_outer(struct ex_sample *s)
{
	ex_add_any(s, "float32", 1);
	ex_add_any(s, "float32", 1);
}

void ex_make_distances(struct ex_sample *s)
{
	int64_t size[4], other[3];

	ex_draw_shape(s, 4, 2000, size);
	memcpy(other, size, sizeof other);
	other[1] = size[3];
	ex_add_in(s, "float32", 3, size);
	ex_add_in(s, "float32", 3, other);
}

void ex_make_square(struct ex_sample *s)
{
	int64_t size[4];

	ex_draw_shape(s, 3, 150, size);
	size[3] = size[2];
	ex_add_in(s, "float32", 3, size + 1);
}

/* Where each of n groups of rows ends, in ascending order. */
static void add_counts(struct ex_sample *s, int64_t groups, int64_t rows)
{
	unsigned i = ex_add_in(s, "int64", 1, &groups);

	s->draw[i] = EX_DRAW_INDEX;
	s->limit[i] = 1 + rows;
}

static void add_table(struct ex_sample *s, int64_t e, int64_t n, bool there)
{
	if (there)
		ex_add_in(s, "float32", 2, (const int64_t[]){e, n});
	else
		ex_skip_in(s);
}

/* A weight, its bias, scales and offsets. Plain, or quantised in one of two ways. */
void ex_make_grouped(struct ex_sample *s)
{
	int64_t size[4]; /* rows, matrices, sum, columns */
	bool bias = ex_once_in(s, 3), quant = ex_once_in(s, 4), antiquant = ex_once_in(s, 4);

	ex_draw_shape(s, 4, 2000, size);
	ex_add_in(s, "float16", 2, (const int64_t[]){size[0], size[2]});
	ex_add_in(s, "float16", 3, size + 1);
	add_table(s, size[1], size[3], bias);
	add_table(s, size[1], size[3], quant);
	add_table(s, size[1], size[3], quant && ex_once_in(s, 2));
	add_table(s, size[1], size[3], antiquant);
	add_table(s, size[1], size[3], antiquant && ex_once_in(s, 2));
	add_counts(s, size[1], size[0]);
}

static void add_bias(struct ex_sample *s, bool experts, int64_t e, int64_t n)
{
	if (ex_once_in(s, 2))
		ex_skip_in(s);
	else if (experts)
		ex_add_in(s, "float16", 2, (const int64_t[]){e, n});
	else
		ex_add_in(s, "float16", 1, &n);
}

/* One expert or several. */
void ex_make_feed_forward(struct ex_sample *s)
{
	int64_t size[5]; /* rows twice, experts, model, inner */
	bool experts = ex_once_in(s, 2);

	ex_draw_shape(s, 5, 800, size);
	if (experts)
		ex_add_in(s, "float16", 2, (const int64_t[]){size[0], size[3]});
	else
		ex_add_in(s, "float16", 3, (const int64_t[]){size[0], size[1], size[3]});
	for (int i = 0; i < 2; i++) {
		const int64_t w[] = {size[2], size[3 + i], size[4 - i]};

		ex_add_in(s, "float16", experts ? 3 : 2, experts ? w : w + 1);
	}
	if (experts)
		add_counts(s, size[2], size[0]);
	else
		ex_skip_in(s);
	add_bias(s, experts, size[2], size[4]);
	add_bias(s, experts, size[2], size[3]);
	ex_add_text(s, "activation", "gelu");
}
