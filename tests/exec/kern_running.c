/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along lines: running sums, products and extremes, and sorting. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* A line of operand 0 along an axis. */
struct line {
	const struct ex_job *j;
	int axis;
	int64_t at[AP_MAX_RANK]; /* of its first element */
};

typedef void line_fn(const struct line *l);

static ex_id get(const struct line *l, int64_t i)
{
	int64_t own[AP_MAX_RANK];

	memcpy(own, l->at, sizeof own);
	own[l->axis] = i;
	return ex_get(&l->j->in[0], own);
}

static void put(const struct line *l, unsigned r, int64_t i, ex_id v)
{
	int64_t own[AP_MAX_RANK];

	memcpy(own, l->at, sizeof own);
	own[l->axis] = i;
	if (r < l->j->nout)
		ex_put(&l->j->out[r], own, v);
}

static int64_t length(const struct line *l)
{
	return l->j->in[0].box.size[l->axis];
}

/* All lines; results have the extents of the operand. */
static bool each_line(const struct ex_job *j, line_fn *fill)
{
	const struct ex_box *b = &j->in[0].box;
	bool dim = ex_ends(j, "Ext");
	struct line l = {j, ex_axis(j, dim ? "dim" : "axis", ex_begins(j, "Sort") ? -1 : 0,
		b->rank), {0}};

	for (unsigned r = 0; r < j->nout; r++)
		if (memcmp(b->size, j->out[r].box.size, sizeof b->size) != 0)
			return false;
	do
		if (l.at[l.axis] == 0)
			fill(&l);
	while (ex_step(b, l.at));
	return true;
}

/* exclusive: without the element itself; reverse: from the end. */
static void run(const struct line *l)
{
	const struct ap_attrs *a = l->j->attrs;
	bool sum = ex_begins(l->j, "CumSum") || ex_begins(l->j, "Cumsum");
	bool exclusive = ap_attr_bool(a, "exclusive", false);
	bool reverse = ap_attr_bool(a, "reverse", false);
	ex_id so_far = sum ? 0 : ex_leaf(l->j->tape, 1);
	int64_t n = length(l);

	for (int64_t k = 0; k < n; k++) {
		int64_t i = reverse ? n - 1 - k : k;

		if (exclusive)
			put(l, 0, i, so_far);
		so_far = sum ? ex_plus(l->j->tape, so_far, get(l, i))
			     : ex_times(l->j->tape, so_far, get(l, i));
		if (!exclusive)
			put(l, 0, i, so_far);
	}
}

/* Values and their places, the last of equals. */
static void run_extreme(const struct line *l)
{
	bool most = ex_begins(l->j, "Cummax");
	int64_t best = 0;

	for (int64_t i = 0; i < length(l); i++) {
		ex_id v = get(l, i), b = get(l, best);

		if (most ? !ex_less(l->j->tape, v, b) : !ex_less(l->j->tape, b, v))
			best = i;
		put(l, 0, i, get(l, best));
		put(l, 1, i, ex_leaf(l->j->tape, (uint64_t)best));
	}
}

/* Does element i come before element k? Equals keep their order. */
static bool comes_before(const struct line *l, int64_t i, int64_t k, bool down)
{
	ex_id a = get(l, i), b = get(l, k);

	if (ex_less(l->j->tape, a, b) || ex_less(l->j->tape, b, a))
		return ex_less(l->j->tape, a, b) != down;
	return i < k;
}

static void sort(const struct line *l)
{
	bool down = ap_attr_bool(l->j->attrs, "descending", false);
	int64_t n = length(l);

	for (int64_t i = 0; i < n; i++) {
		int64_t before = 0;

		for (int64_t k = 0; k < n; k++)
			before += comes_before(l, k, i, down);
		put(l, 0, before, get(l, i));
		put(l, 1, before, ex_leaf(l->j->tape, (uint64_t)i));
	}
}

static bool running(const struct ex_job *j)
{
	return each_line(j, run);
}

static bool running_extreme(const struct ex_job *j)
{
	return each_line(j, run_extreme);
}

static bool sorting(const struct ex_job *j)
{
	return each_line(j, sort);
}

const struct ex_kernel ex_kernels_running[] = {
	{.type = "CumSum", .forward = running, .make = ex_make_running},
	{.type = "CumProd", .forward = running, .make = ex_make_running},
	{.type = "Cummax", .forward = running_extreme, .make = ex_make_running, .ordered = true},
	{.type = "Cummin", .forward = running_extreme, .make = ex_make_running, .ordered = true},
	{.type = "Sort", .forward = sorting, .make = ex_make_sort, .ordered = true},
	{.type = "CumsumExt", .forward = running, .make = ex_make_running},
	{.type = "SortExt", .forward = sorting, .make = ex_make_sort, .ordered = true},
	{0}
};
