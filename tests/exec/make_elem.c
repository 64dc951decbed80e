/* SPDX-License-Identifier: Apache-2.0 */
/* Random element-wise operators. */
#include "make_parts.h"

#include <string.h>

static const char *real(struct ex_sample *s)
{
	static const char *const types[] = {"float32", "float16", "bfloat16"};

	return types[ex_draw(s, 3)];
}

static void draw_all(struct ex_sample *s, enum ex_draw how)
{
	for (unsigned i = 0; i < s->nin; i++)
		s->draw[i] = how;
}

void ex_make_unary(struct ex_sample *s)
{
	ex_add_any(s, real(s), 4);
}

void ex_make_logic(struct ex_sample *s)
{
	ex_add_any(s, "bool", 3);
	draw_all(s, EX_DRAW_BOOL);
}

void ex_make_integer(struct ex_sample *s)
{
	ex_add_any(s, "int32", 3);
}

void ex_make_masked(struct ex_sample *s)
{
	ex_make_unary(s);
	s->nout = 2;
}

void ex_make_cast(struct ex_sample *s)
{
	static const char *const types[] = {"float32", "float16", "bfloat16", "int32", "int64"};

	ex_add_any(s, types[ex_draw(s, 5)], 3);
	ex_add_text(s, "dst_type", types[ex_draw(s, 5)]);
}

void ex_make_halves(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK] = {0};
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 3));
	int axis = rank - 1;

	if (!ex_once_in(s, 3))
		axis = ex_add_axis(s, "dim", rank);
	ex_draw_shape(s, rank, 200, size);
	size[axis] *= 2;
	ex_add_in(s, real(s), rank, size);
}

/* Two operands, either of which may be the wider one, and both may repeat. */
static void add_two(struct ex_sample *s, const char *dtype)
{
	struct ap_shape wide;

	ex_add_any(s, dtype, 4);
	ex_add_narrow(s, dtype, 0);
	if (ex_once_in(s, 3)) {
		wide = s->in[0];
		s->in[0] = s->in[1];
		s->in[1] = wide;
	}
	if (s->in[0].rank == s->in[1].rank && s->in[0].rank > 1 && ex_once_in(s, 4))
		s->in[0].dim[ex_draw(s, s->in[0].rank)] = 1;
}

void ex_make_binary(struct ex_sample *s)
{
	add_two(s, real(s));
}

void ex_make_scaled(struct ex_sample *s)
{
	add_two(s, "float32");
	if (!ex_once_in(s, 3))
		ex_add_float(s, "alpha", (double)ex_draw(s, 5) - 2);
}

void ex_make_divided(struct ex_sample *s)
{
	ex_make_binary(s);
	if (ex_once_in(s, 2))
		ex_add_text(s, "rounding_mode", ex_once_in(s, 2) ? "floor" : "trunc");
}

void ex_make_copy(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_narrow(s, "float32", 0);
}

/* Some rows, each once. */
void ex_make_rows(struct ex_sample *s)
{
	int64_t row[32], first, n = 0;
	unsigned v;

	ex_make_unary(s);
	first = s->in[0].dim[0] > 32 ? s->in[0].dim[0] - 32 : 0;
	for (int64_t i = first; i < s->in[0].dim[0]; i++)
		if (n < 2 * AP_MAX_RANK && ex_once_in(s, 2))
			row[n++] = i;
	if (n == 0)
		row[n++] = 0;
	ex_add_list(s, "indices", (uint32_t)n, row);
	v = ex_add_alike(s, ap_dtype_name(s->in[0].dtype), 0);
	s->in[v].dim[0] = n;
}

void ex_make_order(struct ex_sample *s)
{
	add_two(s, "float32");
	draw_all(s, s->ties ? EX_DRAW_SMALL : EX_DRAW_FIELD);
}

void ex_make_bits(struct ex_sample *s)
{
	add_two(s, "int32");
}

void ex_make_faulty(struct ex_sample *s)
{
	int64_t n = ex_draw(s, 5);

	ex_make_unary(s);
	for (int64_t i = 0; i < n; i++)
		ex_add_in(s, "int64", 0, NULL);
}

void ex_make_real_pair(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_alike(s, "float32", 0);
}

void ex_make_store(struct ex_sample *s)
{
	ex_make_unary(s);
	ex_add_in(s, ap_dtype_name(s->in[0].dtype), s->in[0].rank, s->in[0].dim);
}

void ex_make_compare(struct ex_sample *s)
{
	add_two(s, "float32");
	draw_all(s, EX_DRAW_SMALL);
}

void ex_make_logics(struct ex_sample *s)
{
	add_two(s, "bool");
	draw_all(s, EX_DRAW_BOOL);
}

void ex_make_many(struct ex_sample *s)
{
	ex_make_unary(s);
	while (s->nin < 4 && !ex_once_in(s, 3))
		ex_add_alike(s, ap_dtype_name(s->in[0].dtype), 0);
}

void ex_make_pair(struct ex_sample *s)
{
	ex_make_unary(s);
	ex_add_alike(s, ap_dtype_name(s->in[0].dtype), 0);
	s->nout = 2;
}

void ex_make_select(struct ex_sample *s)
{
	s->draw[ex_add_any(s, "bool", 3)] = EX_DRAW_BOOL;
	ex_add_narrow(s, "float32", 0);
	ex_add_narrow(s, "float32", 0);
}

/* The value is an operand, or left out where it is an attribute. */
void ex_make_fill(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	s->draw[ex_add_narrow(s, "bool", 0)] = EX_DRAW_BOOL;
	if (!ex_once_in(s, 3))
		ex_add_in(s, "float32", 0, NULL);
}

void ex_make_three(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_narrow(s, "float32", 0);
	ex_add_narrow(s, "float32", 0);
}

void ex_make_scaled_three(struct ex_sample *s)
{
	ex_make_three(s);
	if (!ex_once_in(s, 3))
		ex_add_float(s, "value", (double)ex_draw(s, 5) - 2);
}

static void add_channels(struct ex_sample *s, uint8_t least, int from_end)
{
	uint8_t rank = (uint8_t)(least + ex_draw(s, 5 - least));
	int64_t size[AP_MAX_RANK] = {0};

	ex_draw_shape(s, rank, 600, size);
	ex_add_in(s, "float32", rank, size);
	ex_add_in(s, "float32", 1, &size[from_end ? rank - from_end : 1]);
}

void ex_make_bias(struct ex_sample *s)
{
	bool last = ex_once_in(s, 3);

	add_channels(s, 2, last ? 1 : 0);
	if (last || ex_once_in(s, 2))
		ex_add_text(s, "data_format", last ? "NHWC" : "NCHW");
}

void ex_make_slope(struct ex_sample *s)
{
	add_channels(s, 2, 0);
	if (ex_once_in(s, 3))
		s->in[1].dim[0] = 1;
}
