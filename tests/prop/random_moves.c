/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that join, split, slice, repeat and choose. */
#include "random_maker.h"

static const char *numbers(struct maker *m, const char *name, const int64_t *v, int n)
{
	struct ap_str s;

	ap_str_init(&s, m->ctx->arena);
	ap_str_addf(&s, "\"%s\":[", name);
	for (int i = 0; i < n; i++)
		ap_str_addf(&s, i ? ",%" PRId64 : "%" PRId64, v[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

static const char *axis_text(struct maker *m, int axis)
{
	return ap_arena_printf(m->ctx->arena, "\"axis\":%d", axis);
}

bool random_concat(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4), in[3] = {x};
	int n = 2 + (int)maker_below(m, 2), axis;
	struct tensor t;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	axis = (int)maker_below(m, (uint64_t)t.rank);
	for (int i = 1; i < n; i++) {
		int64_t dim[RANK];

		for (int d = 0; d < t.rank; d++)
			dim[d] = d == axis ? maker_small_length(m) : t.dim[d];
		in[i] = maker_operand(m, t.type, t.rank, dim);
	}
	t.dim[axis] = 0;
	for (int i = 0; i < n; i++)
		t.dim[axis] += m->tensor[in[i]].dim[axis];
	return maker_add_op(m, "Concat", axis_text(m, axis), in, n,
		maker_add_tensor(m, t.type, t.rank, t.dim));
}

/* Sums and stacks of equal shapes; an operand may be there twice. */
bool random_joined(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 3), in[3] = {x};
	int n = 1 + (int)maker_below(m, 3), axis;
	struct tensor t;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	for (int i = 1; i < n; i++)
		in[i] = maker_operand(m, t.type, t.rank, t.dim);
	if (maker_one_in(m, 2))
		return maker_add_op(m, "AddN", "", in, n, maker_add_like(m, x));
	axis = (int)maker_below(m, (uint64_t)t.rank + 1);
	for (int d = t.rank++; d > axis; d--)
		t.dim[d] = t.dim[d - 1];
	t.dim[axis] = n;
	return maker_add_op(m, "Stack", axis_text(m, axis), in, n,
		maker_add_tensor(m, t.type, t.rank, t.dim));
}

bool random_split(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4), first = m->ntensor;
	struct tensor t;
	int axis, n = 2;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	axis = (int)maker_below(m, (uint64_t)t.rank);
	while (n < 4 && t.dim[axis] % n)
		n++;
	if (t.dim[axis] % n)
		return false;
	t.dim[axis] /= n;
	for (int i = 0; i < n; i++)
		maker_add_tensor(m, t.type, t.rank, t.dim);
	return maker_add_op(m, "Split", ap_arena_printf(m->ctx->arena,
		"\"axis\":%d,\"output_num\":%d", axis, n), &x, 1, first);
}

/* A range of some dimensions, the whole of others; as a strided slice one may go. */
bool random_slice(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4);
	bool strided = maker_one_in(m, 2);
	int64_t begin[RANK], end[RANK], size[RANK];
	struct tensor t, out;
	int gone = -1;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	out = (struct tensor){.type = t.type};
	if (strided && t.rank > 1 && maker_one_in(m, 2))
		gone = (int)maker_below(m, (uint64_t)t.rank);
	for (int d = 0; d < t.rank; d++) {
		bool part = d == gone || maker_one_in(m, 3);

		begin[d] = part ? maker_below(m, (uint64_t)t.dim[d]) : 0;
		size[d] = part ? 1 + maker_below(m, (uint64_t)(t.dim[d] - begin[d])) : t.dim[d];
		end[d] = begin[d] + size[d];
		if (d != gone)
			out.dim[out.rank++] = size[d];
	}
	return maker_add_op(m, strided ? "StridedSlice" : "Slice", ap_arena_printf(m->ctx->arena,
		"%s,%s,\"shrink_axis_mask\":%d", numbers(m, "begin", begin, t.rank),
		strided ? numbers(m, "end", end, t.rank) : numbers(m, "size", size, t.rank),
		gone < 0 ? 0 : 1 << gone), &x, 1, maker_add_tensor(m, t.type, out.rank, out.dim));
}

/* A dimension of length one comes, or one goes. */
bool random_new_dim(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, RANK);
	struct tensor t;
	int axis = 0;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	while (axis < t.rank && t.dim[axis] != 1)
		axis++;
	if (axis < t.rank) {
		for (int d = axis; d < t.rank - 1; d++)
			t.dim[d] = t.dim[d + 1];
		return maker_add_op(m, "Squeeze", axis_text(m, axis), &x, 1,
			maker_add_tensor(m, t.type, t.rank - 1, t.dim));
	}
	if (t.rank == RANK)
		return false;
	axis = (int)maker_below(m, (uint64_t)t.rank + 1);
	for (int d = t.rank; d > axis; d--)
		t.dim[d] = t.dim[d - 1];
	t.dim[axis] = 1;
	return maker_add_op(m, "ExpandDims", axis_text(m, axis), &x, 1,
		maker_add_tensor(m, t.type, t.rank + 1, t.dim));
}

/* Dimensions of length one, or new ones before all, are repeated; or any is copied. */
bool random_repeat(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, RANK - 1);
	int64_t times[RANK] = {1, 1, 1, 1};
	struct tensor t;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	for (int d = t.rank++; d > 0; d--)
		t.dim[d] = t.dim[d - 1];
	t.dim[0] = times[0] = maker_small_length(m);
	if (maker_one_in(m, 2)) {
		for (int d = 1; d < t.rank; d++)
			t.dim[d] = t.dim[d] == 1 ? maker_small_length(m) : t.dim[d];
		return maker_add_op(m, "BroadcastTo", numbers(m, "shape", t.dim, t.rank), &x, 1,
			maker_add_tensor(m, t.type, t.rank, t.dim));
	}
	for (int d = 1; d < t.rank; d++) {
		times[d] = maker_one_in(m, 6) ? 2 : 1;
		t.dim[d] *= times[d];
	}
	return maker_add_op(m, "Tile", numbers(m, "multiples", times, t.rank), &x, 1,
		maker_add_tensor(m, t.type, t.rank, t.dim));
}

/* Indices of x's shape but in the last dimension; NONE where there are none. */
static uint32_t places_in(struct maker *m, const struct tensor *x)
{
	for (uint32_t id = m->base; id < m->ntensor; id++) {
		const struct tensor *t = &m->tensor[id];
		bool fits = t->type == 'i' && t->rank == x->rank;

		for (int d = 0; fits && d < x->rank - 1; d++)
			fits = t->dim[d] == x->dim[d];
		if (fits)
			return id;
	}
	return NONE;
}

/* The largest of the last dimension, elements at given places of it, or a running sum. */
bool random_choice(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4), in[2] = {x}, first = m->ntensor;
	struct tensor t;
	int64_t k;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	in[1] = places_in(m, &t);
	if (in[1] != NONE) {
		t.dim[t.rank - 1] = m->tensor[in[1]].dim[t.rank - 1];
		return maker_add_op(m, "GatherD", "\"dim\":-1", in, 2,
			maker_add_tensor(m, t.type, t.rank, t.dim));
	}
	if (maker_one_in(m, 2))
		return maker_add_op(m, "CumSum",
			axis_text(m, (int)maker_below(m, (uint64_t)t.rank)), &x, 1,
			maker_add_like(m, x));
	k = t.dim[t.rank - 1] = 1 + maker_below(m, (uint64_t)t.dim[t.rank - 1]);
	maker_add_tensor(m, t.type, t.rank, t.dim);
	maker_add_tensor(m, 'i', t.rank, t.dim);
	return maker_add_op(m, "TopK", ap_arena_printf(m->ctx->arena, "\"k\":%" PRId64, k), &x, 1,
		first);
}
