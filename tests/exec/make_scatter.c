/* SPDX-License-Identifier: Apache-2.0 */
/* Random slices that are put into tensors, and places given for each dimension. */
#include "make_parts.h"

#include <string.h>

static void tie(struct ex_sample *s, unsigned i)
{
	if (s->ties)
		s->draw[i] = EX_DRAW_SMALL;
}

static void add_index(struct ex_sample *s, uint8_t rank, const int64_t *size, int64_t limit)
{
	unsigned i = ex_add_in(s, ex_once_in(s, 2) ? "int32" : "int64", rank, size);

	s->draw[i] = EX_DRAW_INDEX;
	s->limit[i] = limit;
}

/* As many dimensions of the indices, then those of operand 0 from there on. */
static void add_updates(struct ex_sample *s, uint8_t points, uint8_t from)
{
	int64_t size[AP_MAX_RANK];
	uint8_t rest = (uint8_t)(s->in[0].rank - from);

	memcpy(size, s->in[1].dim, points * sizeof *size);
	memcpy(size + points, s->in[0].dim + from, rest * sizeof *size);
	tie(s, ex_add_in(s, "float32", (uint8_t)(points + rest), size));
}

void ex_make_scatter_rows(struct ex_sample *s)
{
	uint8_t found = (uint8_t)(1 + ex_draw(s, 2));
	int64_t size[2];

	tie(s, ex_add_any(s, "float32", 3));
	ex_draw_shape(s, found, 6, size);
	add_index(s, found, size, s->in[0].dim[0]);
	add_updates(s, found, 1);
}

void ex_make_scatter_points(struct ex_sample *s)
{
	uint8_t found = (uint8_t)(1 + ex_draw(s, 2)), n;
	int64_t size[3], least;

	tie(s, ex_add_any(s, "float32", 3));
	n = (uint8_t)(1 + ex_draw(s, s->in[0].rank));
	least = s->in[0].dim[0];
	for (uint8_t d = 1; d < n; d++)
		least = s->in[0].dim[d] < least ? s->in[0].dim[d] : least;
	ex_draw_shape(s, found, 6, size);
	size[found] = n;
	add_index(s, (uint8_t)(found + 1), size, least);
	add_updates(s, found, n);
}

void ex_make_index(struct ex_sample *s)
{
	uint8_t found = (uint8_t)(1 + ex_draw(s, 2)), n;
	int64_t size[2];

	ex_add_any(s, "float32", 3);
	n = (uint8_t)(1 + ex_draw(s, s->in[0].rank));
	ex_draw_shape(s, found, 12, size);
	for (uint8_t d = 0; d < n; d++)
		add_index(s, found, size, s->in[0].dim[d]);
}

void ex_make_top_along(struct ex_sample *s)
{
	int dim;

	ex_add_any(s, "float32", 3);
	tie(s, 0);
	dim = s->in[0].rank - 1;
	if (ex_once_in(s, 2))
		dim = ex_add_axis(s, "dim", s->in[0].rank);
	ex_add_int(s, "k", 1 + ex_draw(s, s->in[0].dim[dim]));
	ex_add_flag(s, "largest");
	s->nout = 2;
}
