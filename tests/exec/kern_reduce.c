/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over dimensions, sums of squares, and the places of extremes. */
#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"
#include "kern_parts.h"
#include "make_parts.h"

/* The better one of two, the first of equals. */
static ex_id extreme(const struct ex_job *j, ex_id best, ex_id v, bool most)
{
	return (most ? ex_less(j->tape, best, v) : ex_less(j->tape, v, best)) ? v : best;
}

static bool is_most(const struct ex_job *j)
{
	return strstr(j->type, "Max") || strstr(j->type, "max") || ex_ends(j, "Any");
}

static bool is_least(const struct ex_job *j)
{
	return strstr(j->type, "Min") || strstr(j->type, "min") || ex_ends(j, "All");
}

static ex_id join(const struct ex_job *j, ex_id sum, ex_id v)
{
	if (is_most(j) || is_least(j))
		return extreme(j, sum, v, is_most(j));
	return ex_ends(j, "Prod") ? ex_times(j->tape, sum, v) : ex_plus(j->tape, sum, v);
}

/* Element of the result that element `at` of the operand goes to: without the dimensions of gone. */
static void place(const struct ex_box *in, uint32_t gone, const struct ex_box *out,
	const int64_t *at, int64_t *to)
{
	int n = 0;

	for (int d = 0; d < in->rank; d++) {
		if (gone >> d & 1 && out->rank < in->rank)
			continue;
		to[n++] = gone >> d & 1 ? 0 : at[d];
	}
}

/* Has the result the extents that are left? */
static bool is_left(const struct ex_box *in, uint32_t gone, const struct ex_box *out)
{
	int n = 0;

	for (int d = 0; d < in->rank; d++) {
		if (gone >> d & 1 && out->rank < in->rank)
			continue;
		if (n == out->rank || out->size[n++] != (gone >> d & 1 ? 1 : in->size[d]))
			return false;
	}
	return n == out->rank;
}

static int64_t count_gone(const struct ex_box *in, uint32_t gone)
{
	int64_t n = 1;

	for (int d = 0; d < in->rank; d++)
		n *= gone >> d & 1 ? in->size[d] : 1;
	return n;
}

static bool reduce_over(const struct ex_job *j, uint32_t gone)
{
	const struct ex_value *in = &j->in[0];
	struct ex_value *out = &j->out[0];
	bool *seen = AP_NEW_N(j->arena, bool, ex_count(&out->box));
	int64_t at[AP_MAX_RANK] = {0}, to[AP_MAX_RANK] = {0};

	if (!is_left(&in->box, gone, &out->box))
		return false;
	do {
		int64_t o;

		place(&in->box, gone, &out->box, at, to);
		o = ex_at(&out->box, to);
		out->id[o] = seen[o] ? join(j, out->id[o], ex_get(in, at)) : ex_get(in, at);
		seen[o] = true;
	} while (ex_step(&in->box, at));
	if (strstr(j->type, "Mean")) {
		uint64_t n = (uint64_t)count_gone(&in->box, gone);

		for (int64_t i = 0; i < ex_count(&out->box); i++)
			out->id[i] = ex_scale(j->tape, out->id[i], ex_inverse(n));
	}
	return true;
}

/* With skip_mode an empty list of dimensions leaves all as it is. */
static bool reduce(const struct ex_job *j)
{
	const char *name = ex_ends(j, "Ext") ? "dim" : "axis";
	bool all = !ap_attr_bool(j->attrs, "skip_mode", false);
	uint32_t gone;

	return ex_axes(j, name, j->in[0].box.rank, all, &gone) && reduce_over(j, gone);
}

static ex_id square_sum(const struct ex_job *j, const struct ex_value *t)
{
	ex_id sum = 0;

	for (int64_t i = 0; i < ex_count(&t->box); i++)
		sum = ex_mad(j->tape, sum, t->id[i], t->id[i]);
	return sum;
}

static bool half_square_sum(const struct ex_job *j)
{
	j->out[0].id[0] = ex_scale(j->tape, square_sum(j, &j->in[0]), ex_inverse(2));
	return j->out[0].box.rank == 0;
}

static bool square_sums(const struct ex_job *j)
{
	for (unsigned r = 0; r < j->nout; r++)
		j->out[r].id[0] = square_sum(j, &j->in[r]);
	return j->nin == 2;
}

/* Place of the extreme along an axis of the line through element `at` of the result. */
static int64_t place_of(const struct ex_job *j, int axis, int64_t *at)
{
	const struct ex_value *in = &j->in[0];
	int64_t best = 0;
	ex_id v;

	at[axis] = 0;
	v = ex_get(in, at);
	for (int64_t i = 1; i < in->box.size[axis]; i++) {
		at[axis] = i;
		if (extreme(j, v, ex_get(in, at), is_most(j)) != v) {
			v = ex_get(in, at);
			best = i;
		}
	}
	return best;
}

/* The element of the operand that begins the line of element `at` of the result. */
static void line_of(const struct ex_job *j, int axis, const int64_t *at, int64_t *own)
{
	bool kept = j->out[0].box.rank == j->in[0].box.rank;

	for (int d = 0; d < j->in[0].box.rank; d++)
		own[d] = d == axis ? 0 : at[d > axis && !kept ? d - 1 : d];
}

/* Results are the place, the value, or both, in the order that the type has them. */
static bool extremes(const struct ex_job *j)
{
	bool valued = ex_ends(j, "WithValue"), dim = ex_ends(j, "Dim");
	int axis = ex_axis(j, dim ? "dim" : "axis", valued ? 0 : -1, j->in[0].box.rank);
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK], best;

	for (unsigned r = 0; r < j->nout; r++)
		if (!is_left(&j->in[0].box, UINT32_C(1) << axis, &j->out[r].box))
			return false;
	do {
		line_of(j, axis, at, own);
		best = place_of(j, axis, own);
		own[axis] = best;
		for (unsigned r = 0; r < j->nout; r++)
			ex_put(&j->out[r], at, r == (dim ? 0 : 1) ? ex_get(&j->in[0], own)
				: ex_leaf(j->tape, (uint64_t)best));
	} while (ex_step(&j->out[0].box, at));
	return true;
}

#define REDUCE(name) {.type = name, .forward = reduce, .make = ex_make_reduce}
#define ORDER(name) {.type = name, .forward = reduce, .make = ex_make_reduce, .ordered = true}
#define LOGIC(name) {.type = name, .forward = reduce, .make = ex_make_reduce_logic, .no_grad = 1}
#define EXTREME(name) \
	{.type = name, .forward = extremes, .make = ex_make_extreme, .ordered = true}
#define PLACE(name) {.type = name, .forward = extremes, .make = ex_make_extreme, .no_grad = 1, \
	.ordered = true}

const struct ex_kernel ex_kernels_reduce[] = {
	REDUCE("ReduceSum"), REDUCE("ReduceMean"), REDUCE("ReduceProd"), REDUCE("SumExt"),
	REDUCE("MeanExt"), ORDER("ReduceMax"), ORDER("ReduceMin"), LOGIC("ReduceAll"),
	LOGIC("ReduceAny"),
	{.type = "Max", .forward = reduce, .make = ex_make_largest, .ordered = true},
	{.type = "L2Loss", .forward = half_square_sum, .make = ex_make_unary},
	{.type = "SquareSumAll", .forward = square_sums, .make = ex_make_pair},
	EXTREME("ArgMaxWithValue"), EXTREME("ArgMinWithValue"), EXTREME("MaxDim"), PLACE("Argmax"), PLACE("Argmin"),
	{0}
};
