/* SPDX-License-Identifier: Apache-2.0 */
/* Random look-ups, choices and segments. */
#include "make_parts.h"

#include <string.h>

static const char *index_type(struct ex_sample *s)
{
	return ex_once_in(s, 2) ? "int32" : "int64";
}

static unsigned add_index(struct ex_sample *s, uint8_t rank, const int64_t *size, int64_t limit)
{
	unsigned i = ex_add_in(s, index_type(s), rank, size);

	s->draw[i] = EX_DRAW_INDEX;
	s->limit[i] = limit;
	return i;
}

/* Tables of up to four dimensions, looked up in along any; some dimensions may be the indices', too. */
void ex_make_gather(struct ex_sample *s)
{
	bool select = strcmp(s->type, "IndexSelect") == 0;
	bool lookup = strcmp(s->type, "EmbeddingLookup") == 0;
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 4)), batch = 0;
	uint8_t found = (uint8_t)(1 + (select ? 0 : ex_draw(s, 3)));
	uint8_t axis = (uint8_t)(lookup || ex_once_in(s, 2) ? 0 : ex_draw(s, rank));
	int64_t size[8];

	ex_draw_shape(s, (uint8_t)(rank + found), 400, size);
	if (axis > 0 && !select && ex_once_in(s, 2))
		batch = (uint8_t)(1 + ex_draw(s, axis < found ? axis : found));
	memcpy(size + rank, size, batch * sizeof *size);
	ex_add_in(s, "float32", rank, size);
	add_index(s, found, size + rank, size[axis]);
	if (lookup)
		ex_add_int(s, "offset", ex_draw(s, 3));
	else if (axis > 0 || ex_once_in(s, 2))
		ex_add_number(s, "axis", ex_once_in(s, 2) ? axis : axis - rank);
	if (batch > 0)
		ex_add_int(s, "batch_dims", batch);
}

void ex_make_embedding(struct ex_sample *s)
{
	uint8_t found = (uint8_t)(1 + ex_draw(s, 3));
	int64_t size[5];

	ex_draw_shape(s, (uint8_t)(2 + found), 1000, size);
	add_index(s, found, size + 2, size[0]);
	ex_add_in(s, "float32", 2, size);
	if (ex_once_in(s, 2))
		ex_add_int(s, "padding_idx", ex_draw(s, 2 * size[0]) - size[0]);
}

void ex_make_gather_along(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK];
	int dim;

	ex_add_any(s, "float32", 4);
	dim = ex_add_axis(s, "dim", s->in[0].rank);
	memcpy(size, s->in[0].dim, sizeof size);
	size[dim] = 1 + ex_draw(s, 6);
	add_index(s, s->in[0].rank, size, s->in[0].dim[dim]);
}

void ex_make_gather_points(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK], least;
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 3)), found = (uint8_t)(1 + ex_draw(s, 2));

	ex_add_any(s, "float32", 4);
	rank = rank > s->in[0].rank ? s->in[0].rank : rank;
	least = s->in[0].dim[0];
	for (uint8_t d = 1; d < rank; d++)
		least = s->in[0].dim[d] < least ? s->in[0].dim[d] : least;
	ex_draw_shape(s, found, 40, size);
	size[found] = rank;
	add_index(s, (uint8_t)(found + 1), size, least);
}

/* Some indices are of no place. The two values are given, or one and zero. */
void ex_make_one_hot(struct ex_sample *s)
{
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 3));
	int64_t size[4];

	ex_draw_shape(s, (uint8_t)(rank + 1), 600, size);
	add_index(s, rank, size + 1, size[0] + 1);
	if (ex_once_in(s, 2)) {
		ex_add_in(s, "float32", 0, NULL);
		ex_add_in(s, "float32", 0, NULL);
	}
	ex_add_int(s, strcmp(s->type, "OneHot") == 0 ? "depth" : "num_classes", size[0]);
	if (ex_once_in(s, 2))
		ex_add_number(s, "axis", ex_draw(s, rank + 2) - 1);
}

void ex_make_top(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_int(s, "k", 1 + ex_draw(s, s->in[0].dim[s->in[0].rank - 1]));
	s->nout = 2;
	if (s->ties)
		s->draw[0] = EX_DRAW_SMALL;
}

/* Some segments have no slices. */
void ex_make_segments(struct ex_sample *s)
{
	int64_t n = 1 + ex_draw(s, 8);
	uint8_t rank;

	ex_add_any(s, "float32", 4);
	rank = (uint8_t)(1 + ex_draw(s, s->in[0].rank));
	add_index(s, rank, s->in[0].dim, n);
	ex_add_int(s, "num_segments", n);
	if (s->ties)
		s->draw[0] = EX_DRAW_SMALL;
}
