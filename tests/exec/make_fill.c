/* SPDX-License-Identifier: Apache-2.0 */
/* Random operators whose numbers follow from their places, and what is read in. */
#include <string.h>

#include "make_parts.h"

/* Numbers as operands, or as attributes. */
void ex_make_line(struct ex_sample *s)
{
	static const char *const names[] = {"start", "end", "step"};
	bool to_end = strncmp(s->type, "Lin", 3) == 0, operands = ex_once_in(s, 2);
	int64_t n = ex_length(s);

	for (int i = 0; i < (to_end ? 2 : 3); i++)
		if (operands)
			ex_add_in(s, "float32", 0, NULL);
		else
			ex_add_float(s, names[i], (double)ex_draw(s, 20) - 7);
	s->nout = 1;
	s->declared[0] = (struct ap_shape){1, AP_FLOAT32, {n}};
}

/* A shape, which may be left out, and a number. */
void ex_make_constant(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK] = {0};
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 3));
	int64_t rank_of = rank;

	ex_draw_shape(s, rank, 600, size);
	if (ex_once_in(s, 2))
		ex_skip_in(s);
	else
		ex_add_in(s, "int64", 1, &rank_of);
	ex_add_in(s, "float32", 0, NULL);
	s->nout = 1;
	s->declared[0] = (struct ap_shape){rank, AP_FLOAT32, {size[0], size[1], size[2]}};
}

/* Samples along dimension 0 of what is read; GetNext has no operands. */
void ex_make_dataset(struct ex_sample *s)
{
	bool none = strcmp(s->type, "GetNext") == 0;
	int64_t n = ex_length(s), size[AP_MAX_RANK] = {0};

	s->nout = (uint16_t)(1 + ex_draw(s, 3));
	for (int i = 0; i < s->nout; i++) {
		uint8_t rank = (uint8_t)ex_draw(s, 4);

		ex_draw_shape(s, rank, 200, size);
		size[0] = ex_once_in(s, 3) ? 2 * n : n;
		if (!none)
			ex_add_in(s, ex_once_in(s, 2) ? "int32" : "float32", rank, size);
		else
			s->declared[i] = (struct ap_shape){rank, AP_FLOAT32, {size[0], size[1], size[2]}};
	}
}
