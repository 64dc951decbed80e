/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of tensors. Bounds count in the local slice, as a dimension that is cut is taken whole. */
#include "kern_parts.h"
#include "make_parts.h"

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

EX_CARRY(slice)
EX_CARRY(strided)

const struct ex_kernel ex_kernels_slice[] = {
	{.type = "Slice", .forward = slice, .make = ex_make_slice},
	{.type = "StridedSlice", .forward = strided, .make = ex_make_strided},
	{0}
};
