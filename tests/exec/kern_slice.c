/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tensors. Bounds count in the local slice, as a dimension that is cut is taken whole. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static void slice_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	for (unsigned d = 0; d < j->out[r].box.rank; d++)
		s->at[d] = at[d] + ex_listed(j, "begin", d);
}

static int64_t within(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Index that entry i, begin:end:stride, of a dimension of length n has at place k. */
static int64_t range_index(const struct ex_job *j, unsigned i, int64_t n, int64_t k)
{
	int64_t step = ap_attr_get(j->attrs, "strides") ? ex_listed(j, "strides", i) : 1;
	int64_t from = ex_listed(j, "begin", i);

	from = from < 0 ? from + n : from;
	from = step > 0 ? within(from, 0, n) : within(from, -1, n - 1);
	if (ap_attr_int(j->attrs, "begin_mask", 0) >> i & 1)
		from = step > 0 ? 0 : n - 1;
	return from + k * step;
}

/* Entries name the dimensions in order, but for those that masks make an ellipsis or a new one. */
static void strided_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	int64_t ellipsis = ap_attr_int(j->attrs, "ellipsis_mask", 0);
	int64_t added = ap_attr_int(j->attrs, "new_axis_mask", 0) & ~ellipsis;
	int64_t shrunk = ap_attr_int(j->attrs, "shrink_axis_mask", 0);
	unsigned n = ap_attr_get(j->attrs, "begin")->n;
	int d = 0, k = 0, rank = j->in[0].box.rank, rest = rank;

	(void)r;
	for (unsigned i = 0; i < n; i++)
		rest -= !((ellipsis | added) >> i & 1);
	for (unsigned i = 0; i < n; i++) {
		if (ellipsis >> i & 1) {
			for (; rest > 0; rest--)
				s->at[d++] = at[k++];
		} else if (added >> i & 1) {
			k++;
		} else {
			s->at[d] = range_index(j, i, j->in[0].box.size[d],
				shrunk >> i & 1 ? 0 : at[k++]);
			d++;
		}
	}
	while (d < rank)
		s->at[d++] = at[k++];
}

/* One dimension alone: a[start:end:step]. */
static void slice_one_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	int axis = ex_axis(j, "dim", 0, j->in[0].box.rank);
	int64_t n = j->in[0].box.size[axis], from = ap_attr_int(j->attrs, "start", 0);

	(void)r;
	from = within(from < 0 ? from + n : from, 0, n);
	s->at[axis] = from + at[axis] * ap_attr_int(j->attrs, "step", 1);
}

/* Place i of a dimension of n elements, continued on both sides; -1 where it is filled. */
static int64_t continued(const char *mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	if (strcmp(mode, "edge") == 0)
		return i < 0 ? 0 : n - 1;
	if (strcmp(mode, "circular") == 0)
		return (i % n + n) % n;
	if (strcmp(mode, "reflect") == 0)
		return i < 0 ? -i : 2 * (n - 1) - i;
	return -1;
}

/* Rows before dimension d; the last dimension comes first. */
static int64_t rows_before(const struct ex_job *j, int d)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, "paddings");
	uint32_t k = (uint32_t)(j->in[0].box.rank - 1 - d);

	return 2 * k >= a->n ? 0
		: a->list[ap_attr_bool(j->attrs, "paddings_contiguous", true) ? 2 * k : k];
}

static ex_id padded_at(const struct ex_job *j, const int64_t *at)
{
	const char *mode = ap_attr_str(j->attrs, "mode", "constant");
	const struct ex_value *fill = ex_in(j, 2);
	int64_t own[AP_MAX_RANK];

	for (int d = 0; d < j->in[0].box.rank; d++) {
		own[d] = continued(mode, at[d] - rows_before(j, d), j->in[0].box.size[d]);
		if (own[d] < 0)
			return fill ? fill->id[0] : 0;
	}
	return ex_get(&j->in[0], own);
}

static bool pad(const struct ex_job *j)
{
	int64_t at[AP_MAX_RANK] = {0};

	do
		ex_put(&j->out[0], at, padded_at(j, at));
	while (ex_step(&j->out[0].box, at));
	return j->out[0].box.rank == j->in[0].box.rank;
}

/* Elements on one side of a diagonal of the last two dimensions; zero on the other. */
static void triangle_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	int rank = j->out[r].box.rank;
	int64_t right = at[rank - 1] - at[rank - 2] - ap_attr_int(j->attrs, "diagonal", 0);

	if (ex_ends(j, "u") ? right < 0 : right > 0)
		s->t = NULL;
}

/* Sums of diagonals. */
static bool trace(const struct ex_job *j)
{
	const struct ex_value *in = &j->in[0];
	int rank = in->box.rank, n = 0;
	int row = ex_axis(j, "axis1", 1, rank), column = ex_axis(j, "axis2", 0, rank);
	int64_t at[AP_MAX_RANK] = {0}, to[AP_MAX_RANK], offset = ap_attr_int(j->attrs, "offset", 0);

	if (rank != j->out[0].box.rank + 2 || row == column)
		return false;
	memset(j->out[0].id, 0, (size_t)ex_count(&j->out[0].box) * sizeof *j->out[0].id);
	do {
		n = 0;
		for (int d = 0; d < rank; d++)
			if (d != row && d != column)
				to[n++] = at[d];
		if (at[column] - at[row] == offset)
			ex_put(&j->out[0], to, ex_plus(j->tape, ex_get(&j->out[0], to),
				ex_get(in, at)));
	} while (ex_step(&in->box, at));
	return true;
}

EX_CARRY(slice)
EX_CARRY(strided)
EX_CARRY(slice_one)
EX_CARRY(triangle)

const struct ex_kernel ex_kernels_slice[] = {
	{.type = "Slice", .forward = slice, .make = ex_make_slice},
	{.type = "StridedSlice", .forward = strided, .make = ex_make_strided},
	{.type = "SliceExt", .forward = slice_one, .make = ex_make_slice_one},
	{.type = "PadV3", .forward = pad, .make = ex_make_pad, .no_grad = 6},
	{.type = "Tril", .forward = triangle, .make = ex_make_triangle},
	{.type = "Triu", .forward = triangle, .make = ex_make_triangle},
	{.type = "TraceV2", .forward = trace, .make = ex_make_diagonal},
	{0}
};
