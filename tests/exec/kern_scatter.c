/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices put into a tensor. Where MindSpore rewrites the look-up of a rank (sums, products), indices
 * count in the whole; elsewhere in what is here.
 */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"

static ex_id combined(const struct ex_job *j, ex_id old, ex_id new)
{
	if (ex_ends(j, "Add"))
		return ex_plus(j->tape, old, new);
	if (ex_ends(j, "Sub"))
		return ex_minus(j->tape, old, new);
	if (ex_ends(j, "Mul"))
		return ex_times(j->tape, old, new);
	if (ex_ends(j, "Div"))
		return ex_over(j->tape, old, new);
	if (ex_ends(j, "Max"))
		return ex_less(j->tape, old, new) ? new : old;
	if (ex_ends(j, "Min"))
		return ex_less(j->tape, new, old) ? new : old;
	return new;
}

struct scatter {
	const struct ex_job *j;
	int coordinates; /* dimensions that an index is for */
	int64_t points, slice; /* indices; elements of a slice */
	bool masked;
};

/* The slice that index p names; -1 where it is in another part, -2 nowhere. */
static int64_t slice_of(const struct scatter *s, int64_t p)
{
	const struct ex_box *x = &s->j->in[0].box;
	int64_t to = 0;

	for (int d = 0; d < s->coordinates; d++) {
		int64_t i = (int64_t)ex_value_of(s->j->tape,
			s->j->in[1].id[p * s->coordinates + d]);

		i -= s->masked ? x->first[d] : 0;
		if (i < 0 || i >= x->size[d])
			return s->masked ? -1 : -2;
		to = to * x->size[d] + i;
	}
	return to;
}

/* Is operand 2 made of whole slices, one for each index? */
static bool fits(const struct scatter *s, int of_index)
{
	const struct ex_box *x = &s->j->in[0].box, *u = &s->j->in[2].box, *index = &s->j->in[1].box;

	if (u->rank != of_index + x->rank - s->coordinates ||
		memcmp(x->size, s->j->out[0].box.size, x->rank * sizeof *x->size) != 0)
		return false;
	for (int d = 0; d < u->rank; d++)
		if (u->size[d] != (d < of_index ? index->size[d] :
			x->size[s->coordinates + d - of_index]))
			return false;
	return true;
}

static bool put_all(const struct scatter *s)
{
	const struct ex_job *j = s->j;
	ex_id *out = j->out[0].id;

	memcpy(out, j->in[0].id, (size_t)ex_count(&j->in[0].box) * sizeof *out);
	for (int64_t p = 0; p < s->points; p++) {
		int64_t to = slice_of(s, p);

		if (to == -2)
			return false;
		for (int64_t k = 0; to >= 0 && k < s->slice; k++)
			out[to * s->slice + k] = combined(j, out[to * s->slice + k],
				j->in[2].id[p * s->slice + k]);
	}
	return true;
}

/* An index names a row. */
static bool rows(const struct ex_job *j)
{
	struct scatter s = {.j = j, .coordinates = 1, .points = ex_count(&j->in[1].box)};

	s.masked = ex_ends(j, "Add") || ex_ends(j, "Sub") || ex_ends(j, "Mul") || ex_ends(j, "Div");
	s.slice = ex_count(&j->in[2].box) / s.points;
	return fits(&s, j->in[1].box.rank) && put_all(&s);
}

/* The last dimension of the indices holds a place in the first dimensions. */
static bool points(const struct ex_job *j)
{
	const struct ex_box *index = &j->in[1].box;
	int last = index->rank - 1;
	struct scatter s = {.j = j, .coordinates = (int)index->size[last]};

	s.points = ex_count(index) / s.coordinates;
	s.slice = ex_count(&j->in[2].box) / s.points;
	return s.coordinates <= j->in[0].box.rank && fits(&s, last) && put_all(&s);
}

static int64_t limit_rows(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? n->bound.in[0].size[0] : 0;
}

static int64_t limit_points(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *x = &n->bound.in[0], *index = &n->bound.in[1];
	int64_t least = x->size[0];

	for (int64_t d = 1; d < index->size[index->rank - 1]; d++)
		least = x->size[d] < least ? x->size[d] : least;
	return slot == 1 ? least : 0;
}

#define ROWS(name, by_order) {.type = name, .forward = rows, .make = ex_make_scatter_rows, \
	.limit = limit_rows, .no_grad = 7, .ordered = by_order}
#define POINTS(name, without, by_order) {.type = name, .forward = points, \
	.make = ex_make_scatter_points, .limit = limit_points, .no_grad = without, .ordered = by_order}

const struct ex_kernel ex_kernels_scatter[] = {
	ROWS("ScatterUpdate", false), ROWS("ScatterAdd", false), ROWS("ScatterSub", false),
	ROWS("ScatterMul", false), ROWS("ScatterDiv", false), ROWS("ScatterMax", true),
	ROWS("ScatterMin", true),
	POINTS("ScatterNdUpdate", 7, false), POINTS("ScatterNdAdd", 7, false),
	POINTS("ScatterNdSub", 7, false),
	POINTS("TensorScatterUpdate", 2, false), POINTS("TensorScatterAdd", 2, false),
	POINTS("TensorScatterSub", 2, false), POINTS("TensorScatterMul", 2, false),
	POINTS("TensorScatterDiv", 2, false), POINTS("TensorScatterMax", 2, true),
	POINTS("TensorScatterMin", 2, true),
	{0}
};
