/* SPDX-License-Identifier: Apache-2.0 */
/* Random operators of which only is known what goes in and comes out. */
#include "make_parts.h"

#include <string.h>

static const char *any_type(struct ex_sample *s)
{
	return ex_once_in(s, 4) ? "int32" : "float32";
}

/* A shape whose first dimension has a part for each of n. */
static struct ap_shape with_lines(struct ex_sample *s, int64_t n)
{
	struct ap_shape t = {.rank = (uint8_t)ex_draw(s, 3), .dtype = ap_dtype_find(any_type(s))};

	ex_draw_shape(s, t.rank, 60, t.dim + 1);
	t.dim[0] = ex_once_in(s, 4) ? 2 * n : n;
	t.rank++;
	return t;
}

static struct ap_shape alone(struct ex_sample *s)
{
	struct ap_shape t = {.rank = (uint8_t)ex_draw(s, 2), .dtype = ap_dtype_find(any_type(s))};

	t.dim[0] = 1;
	return t;
}

/* Up to three operands and two results; now and then one that has no lines. */
void ex_make_batches(struct ex_sample *s)
{
	int64_t n = ex_length(s), odd = ex_draw(s, 12), nin = 1 + ex_draw(s, 3);

	if (ex_once_in(s, 4))
		ex_add_bool(s, "stand_alone", ex_once_in(s, 2));
	for (int64_t i = 0; i < nin; i++) {
		struct ap_shape t = i == odd ? alone(s) : with_lines(s, n);

		ex_add_in(s, ap_dtype_name(t.dtype), t.rank, t.dim);
	}
	s->nout = (uint16_t)(1 + ex_draw(s, 2));
	for (int r = 0; r < s->nout; r++)
		s->declared[r] = odd == 3 + r ? alone(s) : with_lines(s, n);
}

static struct ap_shape declared(const char *dtype, uint8_t rank, int64_t n, int64_t m)
{
	return (struct ap_shape){rank, ap_dtype_find(dtype), {n, m}};
}

/* As many different elements as there happen to be, and a place among them for each. */
void ex_make_unique(struct ex_sample *s)
{
	int64_t n = 4 * ex_length(s);
	const char *type = any_type(s);

	ex_add_in(s, type, 1, &n);
	s->nout = 2;
	s->declared[0] = declared(type, 1, n / 2, 0);
	s->declared[1] = declared("int32", 1, n, 0);
}

void ex_make_choice(struct ex_sample *s)
{
	int64_t count = ex_length(s);

	s->draw[ex_add_any(s, "bool", 3)] = EX_DRAW_BOOL;
	ex_add_int(s, "count", count);
	s->nout = 2;
	s->declared[0] = declared("int32", 2, count, s->in[0].rank);
	s->declared[1] = declared("bool", 1, count, 0);
}

void ex_make_sampler(struct ex_sample *s)
{
	int64_t size[] = {ex_length(s), 1 + ex_draw(s, 3)}, drawn = ex_length(s);

	ex_add_in(s, "int64", 2, size);
	ex_add_int(s, "num_true", size[1]);
	ex_add_int(s, "num_sampled", drawn);
	s->nout = 3;
	s->declared[0] = declared("int64", 1, drawn, 0);
	s->declared[1] = declared("float32", 2, size[0], size[1]);
	s->declared[2] = declared("float32", 1, drawn, 0);
}

/* Operands: a shape, and two numbers. */
void ex_make_gamma(struct ex_sample *s)
{
	int64_t two = 2, columns = ex_length(s);

	ex_add_in(s, "int32", 1, &two);
	ex_add_in(s, "float32", 0, NULL);
	ex_add_in(s, "float32", 0, NULL);
	s->nout = 1;
	s->declared[0] = declared("float32", 2, ex_length(s), columns);
}

/* A batch of matrices n x n and as many right sides, or one of each. */
static void add_systems(struct ex_sample *s, int64_t rows, int64_t columns)
{
	int64_t batch = ex_length(s), k = 1 + ex_draw(s, 3);
	bool many = !ex_once_in(s, 3);
	int64_t a[] = {batch, rows, columns}, b[] = {batch, rows, k};
	uint8_t rank = many ? 3 : 2;

	ex_add_in(s, "float32", rank, a + !many);
	ex_add_in(s, "float32", rank, b + !many);
}

void ex_make_systems(struct ex_sample *s)
{
	int64_t n = 2 * (1 + ex_draw(s, 3));

	add_systems(s, n, n);
	ex_add_flag(s, "lower");
	ex_add_flag(s, "unit_diagonal");
	s->nout = 1;
	s->declared[0] = s->in[1];
}

void ex_make_matrices(struct ex_sample *s)
{
	int64_t rows = 2 * (1 + ex_draw(s, 3)), columns = 1 + ex_draw(s, 4);
	uint8_t at;

	add_systems(s, rows, columns);
	at = (uint8_t)(s->in[0].rank - 2);
	s->nout = 1;
	s->declared[0] = s->in[1];
	s->declared[0].dim[at] = columns;
}

void ex_make_valid(struct ex_sample *s)
{
	int64_t n = ex_length(s);

	s->draw[ex_add_in(s, "float16", 2, (int64_t[]){n, 4})] = EX_DRAW_SMALL;
	s->draw[ex_add_in(s, "float16", 1, (int64_t[]){3})] = EX_DRAW_SMALL;
	s->nout = 1;
	s->declared[0] = (struct ap_shape){1, AP_BOOL, {n}};
}
