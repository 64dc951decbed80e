/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that join, split, repeat and reorder: from where each element of a result is taken. */
#include <string.h>

#include "graph/sequence_first.h"
#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static void concat_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	int axis = ex_axis(j, "axis", 0, j->out[r].box.rank);
	unsigned i = 0;

	(void)at;
	while (i + 1 < j->nin && s->at[axis] >= j->in[i].box.size[axis])
		s->at[axis] -= j->in[i++].box.size[axis];
	s->t = &j->in[i];
}

static void stack_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	int rank = j->out[r].box.rank, n = 0;
	int axis = ex_axis(j, ex_ends(j, "Ext") ? "dim" : "axis", 0, rank);

	s->t = &j->in[at[axis] < j->nin ? at[axis] : 0];
	for (int d = 0; d < rank; d++)
		if (d != axis)
			s->at[n++] = at[d];
}

static void split_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	const char *name = strcmp(j->type, "Split") == 0 ? "axis"
		: strcmp(j->type, "SplitV") == 0 ? "split_dim" : "dim";
	int axis = ex_axis(j, name, 0, j->in[0].box.rank);

	(void)at;
	for (unsigned i = 0; i < r; i++)
		s->at[axis] += j->out[i].box.size[axis];
}

/* Of groups of samples, rows stand token by token: samples to such rows, or back. */
static bool sequence_first(const struct ex_job *j)
{
	int64_t samples = ap_attr_int(j->attrs, AP_SEQUENCE_FIRST, 1), all = ex_count(&j->in[0].box);
	int64_t in = j->in[0].box.size[0], out = j->out[0].box.size[0];
	int64_t few = in < out ? in : out, tokens = (in < out ? out : in) / few, length = all / (few * tokens);

	if (few % samples != 0 || few * tokens * length != all)
		return false;
	for (int64_t i = 0; i < all; i++) {
		int64_t row = i / length, group = row / (tokens * samples), rest = row % (tokens * samples);
		int64_t sample = in < out ? rest / tokens : rest % samples;
		int64_t token = in < out ? rest % tokens : rest / samples;
		int64_t to = in < out ? token * samples + sample : sample * tokens + token;

		j->out[0].id[(group * tokens * samples + to) * length + i % length] = j->in[0].id[i];
	}
	return true;
}

/* The same elements in the same order. */
static bool view(const struct ex_job *j)
{
	int64_t n = ex_count(&j->in[0].box);

	if (n != ex_count(&j->out[0].box))
		return false;
	if (ap_attr_get(j->attrs, AP_SEQUENCE_FIRST))
		return sequence_first(j);
	memcpy(j->out[0].id, j->in[0].id, (size_t)n * sizeof *j->in[0].id);
	return true;
}

static void broadcast_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	const struct ex_box *in = &j->in[0].box;

	for (int d = 0; d < in->rank; d++)
		s->at[d] = in->size[d] == 1 ? 0 : at[j->out[r].box.rank - in->rank + d];
}

static void tile_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	const struct ex_box *in = &j->in[0].box;

	for (int d = 0; d < in->rank; d++)
		s->at[d] = at[j->out[r].box.rank - in->rank + d] % in->size[d];
}

static void repeat_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	(void)r;
	(void)at;
	s->at[ex_axis(j, "axis", 0, j->in[0].box.rank)] /= ap_attr_int(j->attrs, "rep", 1);
}

static void transpose_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	int rank = j->out[r].box.rank;

	for (int d = 0; d < rank; d++) {
		int64_t p = ex_listed(j, "perm", (unsigned)d);

		s->at[p < 0 ? p + rank : p] = at[d];
	}
}

static void reverse_from(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s)
{
	const struct ex_box *in = &j->in[0].box;
	uint32_t mask = 0;

	(void)r;
	(void)at;
	ex_axes(j, "axis", in->rank, false, &mask);
	for (int d = 0; d < in->rank; d++)
		if (mask >> d & 1)
			s->at[d] = in->size[d] - 1 - s->at[d];
}

/* Rolled by half of the length, rounded down for FFTShift, up for its inverse. */
static void shift_from(const struct ex_job *j, unsigned r, const int64_t *at, struct ex_source *s)
{
	const struct ex_box *in = &j->in[0].box;
	uint32_t mask = 0;

	(void)r;
	ex_axes(j, "dim", in->rank, true, &mask);
	for (int d = 0; d < in->rank; d++) {
		int64_t n = in->size[d], half = ex_begins(j, "I") ? (n + 1) / 2 : n / 2;

		if (mask >> d & 1)
			s->at[d] = (at[d] + n - half) % n;
	}
}

/* How often element i is repeated. */
static int64_t times(const struct ex_job *j, int64_t i)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, "repeats");

	if (j->nin > 1)
		return (int64_t)ex_value_of(j->tape,
			j->in[1].id[ex_count(&j->in[1].box) == 1 ? 0 : i]);
	return a->type != AP_ATTR_INTS ? a->i : a->list[a->n == 1 ? 0 : i];
}

/* Element k of the repeated ones: which of the n it is; the last one fills up what is left. */
static int64_t repeated(const struct ex_job *j, int64_t n, int64_t k)
{
	int64_t i = 0;

	while (i < n - 1 && k >= times(j, i))
		k -= times(j, i++);
	return i;
}

/* Without a dimension all elements are one line. */
static bool repeat_each(const struct ex_job *j)
{
	const struct ex_value *in = &j->in[0];
	bool line = !ap_attr_get(j->attrs, "dim");
	int axis = ex_axis(j, "dim", 0, in->box.rank);
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK];
	int64_t n = line ? ex_count(&in->box) : in->box.size[axis];

	if (j->out[0].box.rank != (line ? 1 : in->box.rank))
		return false;
	do {
		int64_t i = repeated(j, n, at[line ? 0 : axis]);

		memcpy(own, at, sizeof own);
		own[axis] = i;
		ex_put(&j->out[0], at, line ? in->id[i] : ex_get(in, own));
	} while (ex_step(&j->out[0].box, at));
	return true;
}

EX_CARRY(concat)
EX_CARRY(shift)
EX_CARRY(stack)
EX_CARRY(split)
EX_CARRY(broadcast)
EX_CARRY(tile)
EX_CARRY(repeat)
EX_CARRY(transpose)
EX_CARRY(reverse)

const struct ex_kernel ex_kernels_move[] = {
	{.type = "Reshape", .forward = view, .make = ex_make_reshape},
	{.type = "Flatten", .forward = view, .make = ex_make_unary},
	{.type = "ExpandDims", .forward = view, .make = ex_make_new_dim},
	{.type = "Squeeze", .forward = view, .make = ex_make_squeeze},
	{.type = "Transpose", .forward = transpose, .make = ex_make_transpose},
	{.type = "ReverseV2", .forward = reverse, .make = ex_make_reverse},
	{.type = "Concat", .forward = concat, .make = ex_make_concat},
	{.type = "Stack", .forward = stack, .make = ex_make_stack},
	{.type = "Split", .forward = split, .make = ex_make_split},
	{.type = "SplitV", .forward = split, .make = ex_make_split_sizes},
	{.type = "SplitWithSize", .forward = split, .make = ex_make_split_sizes},
	{.type = "SplitTensor", .forward = split, .make = ex_make_split_chunks},
	{.type = "BroadcastTo", .forward = broadcast, .make = ex_make_broadcast},
	{.type = "RepeatElements", .forward = repeat, .make = ex_make_repeat},
	{.type = "Tile", .forward = tile, .make = ex_make_tile},
	{.type = "StackExt", .forward = stack, .make = ex_make_stack},
	{.type = "FFTShift", .forward = shift, .make = ex_make_shift},
	{.type = "IFFTShift", .forward = shift, .make = ex_make_shift},
	{.type = "RepeatInterleave", .forward = repeat_each, .make = ex_make_repeats},
	{.type = "RepeatInterleaveInt", .forward = repeat_each, .make = ex_make_repeats},
	{.type = "RepeatInterleaveTensor", .forward = repeat_each, .make = ex_make_repeat_by,
		.no_grad = 2},
	{0}
};
