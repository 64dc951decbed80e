/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/reshard.h"

#include <assert.h>

#include "base/num.h"
#include "shard/reshard_unify.h"

enum { NO_AXIS = 31 }; /* number of no bit of an axis */

/* Steps so far. Sets of sub-dimensions are bits by number. */
struct writer {
	struct ap_unified u;
	struct ap_reshard_step *steps;
	int n;
	bool alltoall; /* may be used */
	uint32_t first; /* tensor dimension that is the first of the expanded shape */
	int64_t elements; /* of the running slice */
	uint64_t waiting; /* not cut, and shall be */
	uint64_t blocked; /* whose axis still cuts another one */
	uint64_t in_the_way; /* cut by an axis that they shall not be cut by */
	uint64_t unwanted; /* whose first axis shall cut nothing */
	int8_t holder[NO_AXIS + 1]; /* sub-dimension that an axis cuts at first */
};

static uint64_t bit(int k)
{
	return UINT64_C(1) << k;
}

static struct ap_reshard_step *emit(struct writer *w, enum ap_move move, struct ap_axis axis,
	uint32_t dim)
{
	struct ap_reshard_step *step = &w->steps[w->n++];

	assert(w->n <= AP_RESHARD_MAX);
	step->move = move;
	step->axis = axis;
	step->dim = (uint8_t)dim;
	step->concat = 0;
	step->first = false;
	step->outer = step->concat_outer = 1;
	step->before = w->elements;
	if (move == AP_MOVE_SLICE)
		w->elements /= axis.size;
	else if (move == AP_MOVE_GATHER)
		w->elements *= axis.size;
	step->after = w->elements;
	return step;
}

/* The axis of a sub-dimension. */
static struct ap_axis axis_of(const struct writer *w, const struct ap_sub *s, uint32_t axis)
{
	return (struct ap_axis){w->u.stride[ap_lowest_bit(axis)], s->size};
}

static bool is_first(const struct writer *w, int k)
{
	return k == 0 && w->u.sub[k].dim == w->first;
}

/* Sub-dimension k is no longer cut by its first axis. */
static void release(struct writer *w, int k)
{
	w->in_the_way &= ~bit(k);
	w->waiting |= (uint64_t)(w->u.sub[k].out != 0) << k;
}

static void slice(struct writer *w, int k)
{
	const struct ap_sub *s = &w->u.sub[k];

	emit(w, AP_MOVE_SLICE, axis_of(w, s, s->out), s->dim);
	w->waiting &= ~bit(k);
}

static void gather(struct writer *w, int k)
{
	const struct ap_sub *s = &w->u.sub[k];

	emit(w, AP_MOVE_GATHER, axis_of(w, s, s->in), s->dim)->first = is_first(w, k);
	release(w, k);
}

static void exchange(struct writer *w, int k, int from)
{
	const struct ap_sub *s = &w->u.sub[k];
	struct ap_reshard_step *step = emit(w, AP_MOVE_ALLTOALL, axis_of(w, s, s->out), s->dim);

	step->concat = (uint8_t)w->u.sub[from].dim;
	step->first = is_first(w, from);
	w->waiting &= ~bit(k);
	release(w, from);
}

/* Sub-dimension k takes over its axis from the one that it cuts. */
static void permute(struct writer *w, int k)
{
	int from = w->holder[ap_lowest_bit(w->u.sub[k].out)];

	if (w->alltoall) {
		exchange(w, k, from);
	} else {
		gather(w, from);
		slice(w, k);
	}
}

static void split_pass(struct writer *w)
{
	for (uint64_t rest = w->waiting & ~w->blocked; rest; rest &= rest - 1)
		slice(w, ap_lowest_bit(rest));
}

/* Passes until there is nothing left to permute: what is released before the one that took its axis is
 * the next pass's. */
static void permute_passes(struct writer *w)
{
	uint64_t all, beyond = ~UINT64_C(0);

	while ((all = w->waiting & w->blocked) != 0) {
		int k = ap_lowest_bit(all & beyond ? all & beyond : all);

		permute(w, k);
		beyond = ~UINT64_C(0) << k;
	}
}

static void concat_pass(struct writer *w)
{
	for (uint64_t rest = w->in_the_way & w->unwanted; rest; rest &= rest - 1)
		gather(w, ap_lowest_bit(rest));
}

/* The first of a cycle, in which each has the axis that the next one wants. */
static void break_cycle(struct writer *w)
{
	int k = ap_lowest_bit(w->in_the_way), next = 0;

	gather(w, k);
	while (w->u.sub[next].out != w->u.sub[k].in)
		next++;
	w->blocked &= ~bit(next);
}

static void begin(struct writer *w)
{
	const uint32_t in = w->u.in, out = w->u.out;
	uint64_t waiting = 0, blocked = 0, moving = 0, unwanted = 0;

	for (int k = w->u.n - 1; k >= 0; k--) {
		const struct ap_sub *s = &w->u.sub[k];

		w->holder[ap_lowest_bit(s->in | 1u << NO_AXIS)] = (int8_t)k;
		waiting = waiting << 1 | (s->in == 0);
		blocked = blocked << 1 | ((s->out & in) != 0);
		moving = moving << 1 | (s->in != s->out);
		unwanted = unwanted << 1 | ((s->in & out) == 0);
	}
	w->waiting = waiting;
	w->blocked = blocked;
	w->in_the_way = moving & ~waiting;
	w->unwanted = unwanted;
}

/* Formats 5.2. SPLIT and PERMUTE passes leave nothing waiting: what a permute releases is permuted, or
 * its axis is free. Then no axis that is in the way can leave but by a concatenation. */
static void infer(struct writer *w)
{
	begin(w);
	while (w->waiting | w->in_the_way) {
		split_pass(w);
		permute_passes(w);
		split_pass(w);
		if (w->in_the_way & w->unwanted)
			concat_pass(w);
		else if (w->in_the_way)
			break_cycle(w);
	}
}

/* Formats 5.1 step 5: nothing in common, so all is brought together and dealt out anew. */
static void through_whole(struct writer *w, const struct ap_layout *a, const struct ap_layout *b)
{
	for (uint32_t d = 0; d < (uint32_t)a->rank; d++) {
		struct ap_axis axis = {a->dim[d].stride, a->dim[d].cut};

		if (axis.size > 1)
			emit(w, AP_MOVE_GATHER, axis, d)->first = d <= w->first;
	}
	for (uint32_t d = 0; d < (uint32_t)b->rank; d++) {
		struct ap_axis axis = {b->dim[d].stride, b->dim[d].cut};

		if (axis.size > 1)
			emit(w, AP_MOVE_SLICE, axis, d);
	}
}

static struct ap_reshard_axis read_axis(uint32_t cut, uint32_t stride)
{
	int start = AP_MAX_LOG - ap_lowest_bit(cut * stride);

	assert(start >= 0);
	return (struct ap_reshard_axis){.start = start,
		.ends = (cut | 1) << start,
		.inside = (cut - 2) << start,
		.parts = (2 * cut - 2) << start};
}

void ap_reshard_end_make(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_reshard_end *out)
{
	int64_t parts = ap_layout_parts(l);

	assert(ndev % parts == 0);
	*out = (struct ap_reshard_end){.layout = *l, .elements = 1};
	for (int d = 0; d < l->rank; d++) {
		uint32_t cut = (uint32_t)l->dim[d].cut, stride = (uint32_t)l->dim[d].stride;
		bool binary = !(cut & (cut - 1)) && !(stride & (stride - 1));

		if (!binary)
			out->other |= (uint8_t)(1 << d);
		else if (cut > 1)
			out->dim[d] = read_axis(cut, stride);
		out->elements *= size[d];
	}
	out->elements /= parts;
	while (out->first < l->rank && size[out->first] == 1)
		out->first++;
}

/* False: through the whole. */
static bool write_steps(struct writer *w, const struct ap_reshard_end *a,
	const struct ap_reshard_end *b, bool alltoall, struct ap_reshard_step *steps)
{
	assert(a->layout.rank == b->layout.rank);
	w->steps = steps;
	w->n = 0;
	w->alltoall = alltoall;
	w->first = a->first;
	w->elements = a->elements;
	if (!ap_reshard_unify(a, b, &w->u)) {
		through_whole(w, &a->layout, &b->layout);
		return false;
	}
	infer(w);
	return true;
}

int ap_reshard_moves(const struct ap_reshard_end *a, const struct ap_reshard_end *b, bool alltoall,
	struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	struct writer w;

	write_steps(&w, a, b, alltoall, steps);
	return w.n;
}

/* Elements of its tensor dimension's running slice that stand outside sub-dimension k. */
static int32_t outer_of(const struct ap_unified *u, const uint32_t *axis, int k)
{
	int32_t outer = 1;

	for (int i = k - 1; i >= 0 && u->sub[i].dim == u->sub[k].dim; i--)
		if (!axis[i])
			outer *= u->sub[i].size;
	return outer;
}

/* The sub-dimension of an axis, whose stride is given. */
static int find_axis(const struct ap_unified *u, const uint32_t *axis, int32_t stride)
{
	int k = 0;

	while (!axis[k] || u->stride[ap_lowest_bit(axis[k])] != stride)
		k++;
	assert(k < u->n);
	return k;
}

/* Runs the steps over the sub-dimensions, to see where each stands in its tensor dimension. */
static void find_outer(const struct ap_unified *u, struct ap_reshard_step *steps, int n)
{
	uint32_t axis[AP_MAX_SUBS], out[AP_MAX_SUBS]; /* that cut each, now and in the end */

	for (int k = 0; k < u->n; k++) {
		axis[k] = u->sub[k].in;
		out[k] = u->sub[k].out;
	}
	for (struct ap_reshard_step *s = steps; s < steps + n; s++) {
		int from = s->move == AP_MOVE_SLICE ? -1 : find_axis(u, axis, s->axis.stride);
		int to = s->move == AP_MOVE_GATHER ? -1 : find_axis(u, out, s->axis.stride);

		s->outer = outer_of(u, axis, to < 0 ? from : to);
		if (from >= 0)
			axis[from] = 0;
		if (to >= 0)
			axis[to] = out[to];
		if (s->move == AP_MOVE_ALLTOALL)
			s->concat_outer = outer_of(u, axis, from);
	}
}

int ap_reshard(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, bool alltoall, struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	struct ap_reshard_end from, to;
	struct writer w;

	ap_reshard_end_make(a, size, ndev, &from);
	ap_reshard_end_make(b, size, ndev, &to);
	if (write_steps(&w, &from, &to, alltoall, steps))
		find_outer(&w.u, steps, w.n);
	return w.n;
}
