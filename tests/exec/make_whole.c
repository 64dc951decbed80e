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
