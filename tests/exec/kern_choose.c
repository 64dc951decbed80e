/* SPDX-License-Identifier: Apache-2.0 */
/* Elements by value, and slices combined by the segment that each is of. */
#include <string.h>

#include "rule/attr.h"
#include "kern_parts.h"
#include "make_parts.h"

/* Larger ones first, of equals the one with the lower index. */
static bool precedes(const struct ex_job *j, const ex_id *line, int64_t a, int64_t b)
{
	if (ex_less(j->tape, line[a], line[b]))
		return false;
	return ex_less(j->tape, line[b], line[a]) || a < b;
}

static bool top(const struct ex_job *j)
{
	const struct ex_box *in = &j->in[0].box, *out = &j->out[0].box;
	int64_t n = in->size[in->rank - 1], k = out->size[out->rank - 1];

	if (in->rank != out->rank || ex_count(in) / n != ex_count(out) / k ||
		k != ap_attr_int(j->attrs, "k", 0) || k > n)
		return false;
	for (int64_t l = 0; l < ex_count(in) / n; l++)
		for (int64_t i = 0; i < n; i++) {
			const ex_id *line = j->in[0].id + l * n;
			int64_t place = 0;

			for (int64_t other = 0; other < n; other++)
				place += precedes(j, line, other, i);
			if (place >= k)
				continue;
			j->out[0].id[l * k + place] = line[i];
			if (j->nout > 1)
				j->out[1].id[l * k + place] = ex_leaf(j->tape, (uint64_t)i);
		}
	return true;
}

static ex_id combined(const struct ex_job *j, ex_id a, ex_id b)
{
	if (ex_ends(j, "Max"))
		return ex_less(j->tape, a, b) ? b : a;
	if (ex_ends(j, "Min"))
		return ex_less(j->tape, b, a) ? b : a;
	return ex_ends(j, "Prod") ? ex_times(j->tape, a, b) : ex_plus(j->tape, a, b);
}

/* What a segment without slices is, so that it changes nothing in other parts. */
static uint64_t neutral(const struct ex_job *j)
{
	return ex_ends(j, "Prod") ? 1 : ex_ends(j, "Min") ? EX_P - 1 : 0;
}

static bool segments(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *segment = &j->in[1];
	struct ex_value *out = &j->out[0];
	int64_t slices = ex_count(&segment->box), slice = ex_count(&x->box) / slices;

	for (int d = 0; d < segment->box.rank; d++)
		if (segment->box.size[d] != x->box.size[d])
			return false;
	if (out->box.size[0] != ap_attr_int(j->attrs, "num_segments", 0) ||
		ex_count(&out->box) != out->box.size[0] * slice)
		return false;
	for (int64_t i = 0; i < ex_count(&out->box); i++)
		out->id[i] = ex_leaf(j->tape, neutral(j));
	for (int64_t i = 0; i < slices; i++) {
		int64_t to = (int64_t)ex_value_of(j->tape, segment->id[i]);

		for (int64_t k = 0; k < slice; k++)
			out->id[to * slice + k] = combined(j, out->id[to * slice + k],
				x->id[i * slice + k]);
	}
	return true;
}

static int64_t limit_segments(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? ap_attr_int(&n->attrs, "num_segments", 1) : 0;
}

#define SEGMENT(name, by_order) {.type = name, .forward = segments, .make = ex_make_segments, \
	.limit = limit_segments, .no_grad = 1 << 1, .ordered = by_order}

const struct ex_kernel ex_kernels_choose[] = {
	{.type = "TopK", .forward = top, .make = ex_make_top, .ordered = true},
	SEGMENT("UnsortedSegmentSum", false), SEGMENT("UnsortedSegmentProd", false),
	SEGMENT("UnsortedSegmentMax", true), SEGMENT("UnsortedSegmentMin", true),
	{0}
};
