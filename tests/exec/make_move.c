/* SPDX-License-Identifier: Apache-2.0 */
/* Random operators that join, split, repeat and reorder. */
#include "make_parts.h"

#include <string.h>

static unsigned add_one(struct ex_sample *s)
{
	return ex_add_any(s, "float32", 3);
}

void ex_make_concat(struct ex_sample *s)
{
	int axis;

	add_one(s);
	axis = ex_add_axis(s, "axis", s->in[0].rank);
	while (s->nin < 4 && !ex_once_in(s, 3))
		s->in[ex_add_alike(s, "float32", 0)].dim[axis] = ex_length(s);
}

void ex_make_stack(struct ex_sample *s)
{
	size_t n = strlen(s->type);

	add_one(s);
	while (s->nin < 4 && !ex_once_in(s, 3))
		ex_add_alike(s, "float32", 0);
	ex_add_axis(s, s->type[n - 1] == 't' ? "dim" : "axis", s->in[0].rank + 1);
}

void ex_make_split(struct ex_sample *s)
{
	int64_t n = 1 + ex_draw(s, 4);

	add_one(s);
	s->in[0].dim[ex_add_axis(s, "axis", s->in[0].rank)] *= n;
	ex_add_int(s, "output_num", n);
	s->nout = (uint16_t)n;
}

/* SplitV and SplitWithSize: the same with other names; one length may be left open. */
void ex_make_split_sizes(struct ex_sample *s)
{
	bool v = strcmp(s->type, "SplitV") == 0;
	int64_t length[4], sum = 0, open;
	int axis;

	add_one(s);
	axis = ex_add_axis(s, v ? "split_dim" : "dim", s->in[0].rank);
	s->nout = (uint16_t)(1 + ex_draw(s, 4));
	for (int i = 0; i < s->nout; i++)
		sum += length[i] = ex_length(s);
	for (int d = 0; d < s->in[0].rank; d++)
		s->in[0].dim[d] = d == axis ? sum : 1 + s->in[0].dim[d] / 2;
	open = ex_draw(s, s->nout + 1);
	if (open < s->nout)
		length[open] = -1;
	ex_add_list(s, v ? "size_splits" : "split_sizes", s->nout, length);
}

void ex_make_split_chunks(struct ex_sample *s)
{
	int64_t size, total;

	add_one(s);
	total = s->in[0].dim[ex_add_axis(s, "dim", s->in[0].rank)];
	size = (total + 3) / 4 + ex_draw(s, total);
	ex_add_int(s, "split_size", size);
	s->nout = (uint16_t)((total + size - 1) / size);
}

/* The same run of factors on both sides, in dimensions that end anywhere. */
void ex_make_reshape(struct ex_sample *s)
{
	static const int64_t factors[] = {1, 2, 2, 3, 4};
	int64_t in[4] = {1, 1, 1, 1}, out[4] = {1, 1, 1, 1}, open;
	uint8_t i = 0, o = 0;

	for (int k = 0; k < 6; k++) {
		int64_t f = factors[ex_draw(s, 5)];

		in[i] *= f;
		out[o] *= f;
		i = (uint8_t)(i + (i < 3 && ex_once_in(s, 2)));
		o = (uint8_t)(o + (o < 3 && ex_once_in(s, 2)));
	}
	ex_add_in(s, "float32", 4, in);
	open = ex_draw(s, 8);
	if (open < 4)
		out[open] = -1;
	ex_add_list(s, "shape", 4, out);
}

void ex_make_new_dim(struct ex_sample *s)
{
	add_one(s);
	ex_add_axis(s, "axis", s->in[0].rank + 1);
}

void ex_make_squeeze(struct ex_sample *s)
{
	add_one(s);
	if (ex_once_in(s, 2))
		s->in[0].dim[ex_add_axis(s, "axis", s->in[0].rank)] = 1;
	else
		s->in[0].dim[ex_draw(s, s->in[0].rank)] = 1;
}

void ex_make_transpose(struct ex_sample *s)
{
	int64_t perm[AP_MAX_RANK] = {0};

	ex_add_any(s, "float32", 4);
	for (int d = 0; d < s->in[0].rank; d++) {
		int64_t k = ex_draw(s, d + 1);

		perm[d] = perm[k];
		perm[k] = d;
	}
	ex_add_list(s, "perm", s->in[0].rank, perm);
}

void ex_make_reverse(struct ex_sample *s)
{
	int64_t axis[AP_MAX_RANK];
	uint32_t n = 0;

	add_one(s);
	for (int d = 0; d < s->in[0].rank; d++)
		if (ex_once_in(s, 2))
			axis[n++] = ex_once_in(s, 2) ? d : d - s->in[0].rank;
	if (n == 0)
		axis[n++] = 0;
	ex_add_list(s, "axis", n, axis);
}

void ex_make_broadcast(struct ex_sample *s)
{
	int64_t shape[AP_MAX_RANK];
	uint32_t n = (uint32_t)ex_draw(s, 2);

	add_one(s);
	if (n)
		shape[0] = 1 + ex_draw(s, 4);
	for (int d = 0; d < s->in[0].rank; d++) {
		int64_t *own = &s->in[0].dim[d];

		if (ex_once_in(s, 4))
			*own = 1;
		shape[n++] = *own == 1 ? 1 + ex_draw(s, 4) : ex_once_in(s, 2) ? -1 : *own;
	}
	ex_add_list(s, "shape", n, shape);
}

void ex_make_repeat(struct ex_sample *s)
{
	add_one(s);
	ex_add_axis(s, "axis", s->in[0].rank);
	ex_add_int(s, "rep", 1 + ex_draw(s, 3));
}

void ex_make_tile(struct ex_sample *s)
{
	static const int64_t copies[] = {1, 1, 2, 4, 6};
	int64_t size[AP_MAX_RANK] = {0}, multiples[AP_MAX_RANK];
	uint8_t rank = (uint8_t)(1 + ex_draw(s, 2));
	uint32_t n = rank + (uint32_t)ex_draw(s, 2);

	ex_draw_shape(s, rank, 48, size);
	ex_add_in(s, "float32", rank, size);
	for (uint32_t i = 0; i < n; i++)
		multiples[i] = copies[ex_draw(s, 5)];
	ex_add_list(s, "multiples", n, multiples);
}

/* Some dimensions; all where none is named. */
void ex_make_shift(struct ex_sample *s)
{
	int64_t dim[AP_MAX_RANK];
	uint32_t n = 0;

	add_one(s);
	for (int d = 0; d < s->in[0].rank; d++)
		if (ex_once_in(s, 2))
			dim[n++] = ex_once_in(s, 2) ? d : d - s->in[0].rank;
	if (n)
		ex_add_list(s, "dim", n, dim);
}

/* Each once but the last one, in whose place the first one is twice. */
static void swap_for_one(int64_t *often, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		often[i] = 1 + (n > 1 && i == 0) - (n > 1 && i == n - 1);
}

/* All elements as often, or each as often as it is said; along a dimension or all in one line. */
void ex_make_repeats(struct ex_sample *s)
{
	int64_t often[2 * AP_MAX_RANK] = {0}, n;

	add_one(s);
	if (ex_once_in(s, 3)) {
		ex_add_int(s, "repeats", 1 + ex_draw(s, 3));
		return;
	}
	n = s->in[0].dim[ex_add_axis(s, "dim", s->in[0].rank)];
	for (int64_t i = 0; i < n && n <= 2 * AP_MAX_RANK; i++)
		often[i] = i ? ex_draw(s, 3) : 1;
	if (n <= 2 * AP_MAX_RANK && ex_once_in(s, 3))
		swap_for_one(often, n);
	if (n <= 2 * AP_MAX_RANK && strcmp(s->type, "RepeatInterleave") == 0 && ex_once_in(s, 2))
		ex_add_list(s, "repeats", (uint32_t)n, often);
	else
		ex_add_int(s, "repeats", 1 + ex_draw(s, 3));
}

/* How often is an operand: the extents of the result must be said. */
void ex_make_repeat_by(struct ex_sample *s)
{
	int64_t one = 1;
	unsigned by;
	int axis;

	add_one(s);
	axis = ex_add_axis(s, "dim", s->in[0].rank);
	by = ex_add_in(s, "int32", 1, ex_once_in(s, 2) ? &one : &s->in[0].dim[axis]);
	s->draw[by] = EX_DRAW_SMALL;
	s->nout = 1;
	s->declared[0] = s->in[0];
	s->declared[0].dim[axis] = ex_length(s);
}
