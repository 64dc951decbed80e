/* SPDX-License-Identifier: Apache-2.0 */
/* Two layouts brought to one device matrix and one shape (formats 5.1). */
#include "shard/reshard.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "base/vec.h"
#include "hw/group.h"

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
	step->inner = step->concat_inner = 0;
	step->outer = step->concat_outer = step->inner_outer = step->concat_inner_outer = 1;
	step->inner_parts = 1;
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

static void split_pass(struct writer *w)
{
	for (uint64_t rest = w->waiting & ~w->blocked; rest; rest &= rest - 1)
		slice(w, ap_lowest_bit(rest));
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
		uint64_t all, beyond;

		split_pass(w);
		/* Passes until there is nothing left to permute: what is released before the one
		 * that took its axis is the next pass's. */
		beyond = ~UINT64_C(0);
		while ((all = w->waiting & w->blocked) != 0) {
			int k = ap_lowest_bit(all & beyond ? all & beyond : all);
			int from = w->holder[ap_lowest_bit(w->u.sub[k].out)];

			/* Sub-dimension k takes over its axis from the one that it cuts. */
			if (w->alltoall) {
				const struct ap_sub *s = &w->u.sub[k];
				struct ap_reshard_step *step = emit(w, AP_MOVE_ALLTOALL,
					axis_of(w, s, s->out),
					s->dim);

				step->concat = (uint8_t)w->u.sub[from].dim;
				step->first = is_first(w, from);
				w->waiting &= ~bit(k);
				release(w, from);
			} else {
				gather(w, from);
				slice(w, k);
			}
			beyond = ~UINT64_C(0) << k;
		}
		split_pass(w);
		if (w->in_the_way & w->unwanted) {
			for (uint64_t rest = w->in_the_way & w->unwanted; rest; rest &= rest - 1)
				gather(w, ap_lowest_bit(rest));
		} else if (w->in_the_way) {
			int k = ap_lowest_bit(w->in_the_way), next = 0;

			/* The first of a cycle, in which each has the axis that the next one wants. */
			gather(w, k);
			while (w->u.sub[next].out != w->u.sub[k].in)
				next++;
			w->blocked &= ~bit(next);
		}
	}
}

/* Formats 5.1 step 5: gathers every dimension of a, then slices b out of the whole. */
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

void ap_reshard_end_make(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_reshard_end *out)
{
	int64_t parts = ap_layout_parts(l);

	assert(ndev % parts == 0);
	*out = (struct ap_reshard_end){.layout = *l, .elements = 1};
	for (int d = 0; d < l->rank; d++) {
		uint32_t cut = (uint32_t)l->dim[d].cut, stride = (uint32_t)l->dim[d].stride;
		bool binary = !(cut & (cut - 1)) && !(stride & (stride - 1));

		if (!binary) {
			out->other |= (uint8_t)(1 << d);
		} else if (cut > 1) {
			int start = AP_MAX_LOG - ap_lowest_bit(cut * stride);

			assert(start >= 0);
			out->dim[d] = (struct ap_reshard_axis){.start = start,
				.ends = (cut | 1) << start, .inside = (cut - 2) << start,
					.parts = (2 * cut - 2) << start};
		}
		out->elements *= size[d];
		out->slice[d] = size[d] / l->dim[d].cut;
	}
	out->elements /= parts;
	while (out->first < l->rank && size[out->first] == 1)
		out->first++;
}

/* False if the tensor has to be gathered whole. */
static bool write_steps(struct writer *w, const struct ap_reshard_end *a,
	const struct ap_reshard_end *b, unsigned ways, struct ap_reshard_step *steps)
{
	assert(a->layout.rank == b->layout.rank);
	w->steps = steps;
	w->n = 0;
	w->alltoall = ways & AP_RESHARD_ALLTOALL;
	w->first = a->first;
	w->elements = a->elements;
	if (!ap_reshard_unify(a, b, &w->u)) {
		through_whole(w, &a->layout, &b->layout);
		return false;
	}
	infer(w);
	return true;
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

/* Are these one step, the axis of one lying just inside that of the other? Of one dimension the parts have
 * to lie so too: those of the outer axis, put together first or cut last, stand outside the others. What an
 * ALLTOALL puts together the other one may not cut. */
static bool can_join(const struct ap_reshard_step *a, const struct ap_reshard_step *b)
{
	bool ordered = a->axis.stride > b->axis.stride;
	const struct ap_reshard_step *x = ordered ? a : b, *y = ordered ? b : a;
	bool gather = a->move == AP_MOVE_GATHER, exchange = a->move == AP_MOVE_ALLTOALL;

	if (a->move != b->move || a->move == AP_MOVE_ALLREDUCE || a->inner_parts > 1 ||
		x->axis.stride != y->axis.stride * y->axis.size)
		return false;
	if (exchange && (x->dim == x->concat || x->dim == y->concat || y->dim == x->concat ||
		y->dim == y->concat || (x->concat == y->concat &&
		y->concat_outer != x->concat_outer * (ordered ? x->axis.size : 1))))
		return false;
	return x->dim != y->dim || y->outer == x->outer * (gather == ordered ? x->axis.size : 1);
}

static void join_step(struct ap_reshard_step *a, const struct ap_reshard_step *b)
{
	const struct ap_reshard_step first = *a;
	bool ordered = first.axis.stride > b->axis.stride;
	const struct ap_reshard_step *x = ordered ? &first : b, *y = ordered ? b : &first;

	*a = *x;
	a->axis = (struct ap_axis){y->axis.stride, x->axis.size * y->axis.size};
	if (a->move == AP_MOVE_ALLTOALL ? x->dim != y->dim || x->concat != y->concat : x->dim != y->dim) {
		a->inner = y->dim;
		a->inner_outer = x->dim != y->dim ? y->outer : x->outer;
		a->inner_parts = y->axis.size;
	}
	if (a->move == AP_MOVE_ALLTOALL && a->inner_parts > 1) {
		a->concat_inner = y->concat;
		a->concat_inner_outer = x->concat != y->concat ? y->concat_outer : x->concat_outer;
	}
	a->before = first.before;
	a->after = b->after;
}

/* Do the slices of a group, one behind the other, make what a GATHER makes of slices of this extent? */
static bool is_contiguous(const struct ap_reshard_step *s, const int64_t *extent)
{
	int64_t outside = s->outer;

	for (int d = 0; d < s->dim; d++)
		outside *= extent[d];
	if (s->inner_parts == 1)
		return outside == 1;
	for (int d = s->dim; d < s->inner; d++)
		outside *= extent[d];
	return outside * s->inner_outer == 1 && s->dim < s->inner;
}

/* Puts steps together; returns the number of those left. What is in place as it arrives takes no copies,
 * whatever its dimension. */
static int join(const struct ap_reshard_end *a, struct ap_reshard_step *steps, int n)
{
	int64_t extent[AP_MAX_RANK];
	int left = 0;

	for (int i = 0; i < n; i++)
		if (left > 0 && can_join(&steps[left - 1], &steps[i]))
			join_step(&steps[left - 1], &steps[i]);
		else
			steps[left++] = steps[i];
	memcpy(extent, a->slice, sizeof extent);
	for (struct ap_reshard_step *s = steps; s < steps + left; s++) {
		int32_t parts = s->axis.size / s->inner_parts;

		if (s->move == AP_MOVE_ALLREDUCE)
			continue;
		if (s->move == AP_MOVE_GATHER) {
			s->first = is_contiguous(s, extent);
			extent[s->dim] *= parts;
			extent[s->inner] *= s->inner_parts;
		} else {
			extent[s->dim] /= parts;
			extent[s->inner] /= s->inner_parts;
			if (s->move == AP_MOVE_ALLTOALL) {
				extent[s->concat] *= parts;
				extent[s->concat_inner] *= s->inner_parts;
			}
			if (s->move == AP_MOVE_REDUCESCATTER)
				s->first = is_contiguous(s, extent);
		}
	}
	return left;
}

static int make_steps(const struct ap_reshard_end *a, const struct ap_reshard_end *b, unsigned ways,
	bool outer, struct ap_reshard_step *steps)
{
	struct writer w;

	if (write_steps(&w, a, b, ways, steps) && (outer || ways & AP_RESHARD_JOINT))
		find_outer(&w.u, steps, w.n);
	return ways & AP_RESHARD_JOINT ? join(a, steps, w.n) : w.n;
}

int ap_reshard_moves(const struct ap_reshard_end *a, const struct ap_reshard_end *b, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	return make_steps(a, b, ways, false, steps);
}

int ap_reshard_steps(const struct ap_reshard_end *a, const struct ap_reshard_end *b, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	return make_steps(a, b, ways, true, steps);
}

/* A gradient on its way back, so far. */
struct summing {
	struct ap_axes left; /* over which it is still partial */
	struct ap_reshard_step *steps;
	int n;
	int64_t elements; /* of the running slice */
};

static void add_step(struct summing *x, const struct ap_reshard_step *s, enum ap_move move,
	struct ap_axis axis, int32_t outer)
{
	struct ap_reshard_step *step = &x->steps[x->n++];

	assert(x->n <= AP_RESHARD_MAX);
	*step = *s;
	step->move = move;
	step->axis = axis;
	step->outer = outer;
	step->before = x->elements;
	if (move == AP_MOVE_GATHER)
		x->elements *= axis.size;
	else if (move == AP_MOVE_SLICE || move == AP_MOVE_REDUCESCATTER)
		x->elements /= axis.size;
	step->after = x->elements;
}

static void sum_rest(struct summing *x)
{
	static const struct ap_reshard_step none = {.inner_outer = 1, .concat_inner_outer = 1,
		.inner_parts = 1};

	for (int i = 0; i < x->left.n; i++)
		add_step(x, &none, AP_MOVE_ALLREDUCE, x->left.axis[i], 1);
	x->left.n = 0;
}

/* A SLICE, in pieces: those over axes of which nothing is partial, then those of which all is. */
static void slice_sum(struct summing *x, const struct ap_reshard_step *s)
{
	const struct ap_axes axis = {1, {s->axis}};
	struct ap_axes kept, summed;

	if (!ap_axes_compatible(&axis, &x->left))
		sum_rest(x);
	ap_axes_without(&axis, &x->left, &kept);
	ap_axes_without(&axis, &kept, &summed);
	for (int i = 0; i < kept.n; i++) {
		int32_t outer = s->outer;

		/* within the parts of outer pieces, which come later */
		for (int k = 0; k < summed.n; k++)
			if (summed.axis[k].stride > kept.axis[i].stride)
				outer *= summed.axis[k].size;
		add_step(x, s, AP_MOVE_SLICE, kept.axis[i], outer);
	}
	for (int i = 0; i < summed.n; i++) {
		struct ap_axes piece = {1, {summed.axis[i]}}, left = x->left;

		add_step(x, s, AP_MOVE_REDUCESCATTER, summed.axis[i], s->outer);
		ap_axes_without(&left, &piece, &x->left);
	}
}

int ap_reshard_back(const struct ap_reshard_end *from, const struct ap_reshard_end *to, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	struct ap_reshard_step moves[AP_RESHARD_MAX];
	struct summing x = {.left = from->partial, .steps = steps, .elements = from->elements};
	int n;

	if (from->partial.n == 0)
		return ap_reshard_steps(from, to, ways, steps);
	n = make_steps(from, to, ways & ~AP_RESHARD_JOINT, true, moves);
	for (int i = 0; i < n; i++) {
		if (moves[i].move == AP_MOVE_SLICE) {
			slice_sum(&x, &moves[i]);
			continue;
		}
		if (moves[i].move == AP_MOVE_GATHER)
			sum_rest(&x);
		add_step(&x, &moves[i], moves[i].move, moves[i].axis, moves[i].outer);
	}
	sum_rest(&x);
	return ways & AP_RESHARD_JOINT ? join(from, steps, x.n) : x.n;
}

int ap_reshard(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, unsigned ways, struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	struct ap_reshard_end from, to;

	ap_reshard_end_make(a, size, ndev, &from);
	ap_reshard_end_make(b, size, ndev, &to);
	return ap_reshard_steps(&from, &to, ways, steps);
}

/* A tensor dimension that lies differently in the two layouts. */
struct change {
	struct ap_cut_dim side[2];
	uint8_t dim;
};

struct changes {
	int n;
	struct change v[AP_MAX_RANK];
};

static void find_changes(const struct ap_layout *a, const struct ap_layout *b, struct changes *out)
{
	out->n = 0;
	for (int d = 0; d < a->rank; d++) {
		const struct ap_cut_dim x = a->dim[d], y = b->dim[d];

		if (x.cut != y.cut || x.stride != y.stride)
			out->v[out->n++] = (struct change){{x, y}, (uint8_t)d};
	}
}

struct chain { /* numbers that divide one another, ascending */
	int n;
	int32_t v[AP_MAX_CHAIN];
};

/* Adds v unless it is there; false where it and a neighbour do not divide. */
static bool chain_add(struct chain *c, int32_t v)
{
	int at = c->n;

	while (at > 0 && c->v[at - 1] > v)
		at--;
	if (at > 0 && c->v[at - 1] == v)
		return true;
	if ((at > 0 && v % c->v[at - 1]) || (at < c->n && c->v[at] % v))
		return false;
	assert(c->n < AP_MAX_CHAIN);
	for (int i = c->n++; i > at; i--)
		c->v[i] = c->v[i - 1];
	c->v[at] = v;
	return true;
}

struct boundaries {
	struct chain dev; /* where axes begin and end, as strides */
	struct chain parts[AP_MAX_RANK]; /* per change, prefix products of its parts */
};

static bool outer_boundaries(struct boundaries *b, const struct changes *changes)
{
	b->dev.n = 0;
	for (int i = 0; i < changes->n; i++) {
		b->parts[i].n = 0;
		for (int s = 0; s < 2; s++) {
			const struct ap_cut_dim *axis = &changes->v[i].side[s];

			if (axis->cut > 1 && (!chain_add(&b->parts[i], axis->cut) ||
				!chain_add(&b->dev, axis->stride) ||
				!chain_add(&b->dev, axis->stride * axis->cut)))
				return false;
		}
	}
	return true;
}

/* An axis that the device matrix divides further cuts its dimension in as many steps. */
static bool refine_parts(const struct chain *dev, struct chain *parts,
	const struct ap_cut_dim *axis)
{
	int32_t end = axis->stride * axis->cut;

	for (int i = 0; i < dev->n && dev->v[i] < end; i++)
		if (dev->v[i] > axis->stride && !chain_add(parts, end / dev->v[i]))
			return false;
	return true;
}

/* And a dimension that is cut in steps divides its axis. */
static bool refine_dev(struct chain *dev, const struct chain *parts, const struct ap_cut_dim *axis)
{
	for (int i = 0; i < parts->n && parts->v[i] < axis->cut; i++)
		if (!chain_add(dev, axis->stride * (axis->cut / parts->v[i])))
			return false;
	return true;
}

/* The part of an axis that ends with this prefix product, as a bit; 0 where it does not reach. */
static uint32_t axis_at(const struct chain *dev, const struct ap_cut_dim *axis, int32_t product)
{
	int number = 0;

	if (product > axis->cut)
		return 0;
	while (dev->v[number] != axis->stride * (axis->cut / product))
		number++;
	return 1u << number;
}

static void add_sub(struct ap_unified *u, int32_t size, uint32_t in, uint32_t out, uint32_t dim)
{
	assert(u->n < AP_MAX_SUBS);
	u->sub[u->n++] = (struct ap_sub){size, in, out, dim};
	u->in |= in;
	u->out |= out;
}

static bool unify_any(const struct ap_layout *a, const struct ap_layout *b, struct ap_unified *out)
{
	struct boundaries bs;
	struct changes changes;
	int before;

	find_changes(a, b, &changes);
	if (!outer_boundaries(&bs, &changes))
		return false;
	do {
		before = bs.dev.n;
		for (int i = 0; i < changes.n; i++) {
			const struct ap_cut_dim *side = changes.v[i].side;

			if (!refine_parts(&bs.dev, &bs.parts[i], &side[0]) ||
				!refine_parts(&bs.dev, &bs.parts[i], &side[1]) ||
				!refine_dev(&bs.dev, &bs.parts[i], &side[0]) ||
				!refine_dev(&bs.dev, &bs.parts[i], &side[1]))
				return false;
		}
	} while (bs.dev.n > before);
	for (int i = 0; i < changes.n; i++) {
		const struct change *c = &changes.v[i];
		int32_t outer = 1;

		for (int k = 0; k < bs.parts[i].n; k++) {
			int32_t product = bs.parts[i].v[k];

			add_sub(out, product / outer, axis_at(&bs.dev, &c->side[0], product),
				axis_at(&bs.dev, &c->side[1], product), c->dim);
			outer = product;
		}
	}
	memcpy(out->own_stride, bs.dev.v, (size_t)bs.dev.n * sizeof *out->own_stride);
	out->stride = out->own_stride;
	return true;
}

/*
 * The same for powers of two, many times as fast: they always divide one another, and a set of them is an
 * integer. The prefix products of a dimension are the boundaries of an axis that cuts it, shifted to where
 * that starts.
 */
struct pair {
	const struct ap_reshard_axis *a, *b; /* of one dimension */
	uint32_t parts; /* prefix products */
	uint32_t dim;
};

static int find_pairs(const struct ap_reshard_end *a, const struct ap_reshard_end *b, struct pair *out)
{
	int n = 0;

	for (int d = 0; d < a->layout.rank; d++) {
		const struct ap_reshard_axis *x = &a->dim[d], *y = &b->dim[d];

		if (x->ends == y->ends)
			continue;
		out[n++] = (struct pair){x, y, (x->ends >> x->start | y->ends >> y->start) & ~1u,
			(uint32_t)d};
	}
	return n;
}

/* Where an axis is divided its dimension is, and the other way round. Returns where axes begin and
 * end. */
static uint32_t divide(struct pair *v, int n)
{
	uint32_t dev = 0, before;

	for (int i = 0; i < n; i++)
		dev |= v[i].a->ends | v[i].b->ends;
	do {
		before = dev;
		for (struct pair *p = v; p < v + n; p++) {
			const struct ap_reshard_axis *a = p->a, *b = p->b;
			uint32_t parts = p->parts | (dev & a->inside) >> a->start |
				(dev & b->inside) >> b->start;

			dev |= (parts << a->start & a->inside) | (parts << b->start & b->inside);
			p->parts = parts;
		}
	} while (dev != before);
	return dev;
}

/* The bit of an axis is where it ends. */
static struct ap_sub *add_subs(struct ap_sub *sub, const struct pair *p)
{
	const struct ap_reshard_axis a = *p->a, b = *p->b;
	int outer = 0;

	for (uint32_t rest = p->parts; rest; rest &= rest - 1) {
		uint32_t product = rest & -rest;
		int log = ap_lowest_bit(rest);

		*sub++ = (struct ap_sub){1 << (log - outer), product << a.start & a.parts,
			product << b.start & b.parts, p->dim};
		outer = log;
	}
	return sub;
}

bool ap_reshard_unify(const struct ap_reshard_end *a, const struct ap_reshard_end *b,
	struct ap_unified *out)
{
	static const int32_t stride[] = {1 << 20, 1 << 19, 1 << 18, 1 << 17, 1 << 16, 1 << 15, 1 << 14,
		1 << 13, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 8, 1 << 7, 1 << 6, 1 << 5, 1 << 4,
		1 << 3, 1 << 2, 1 << 1, 1};
	struct pair pairs[AP_MAX_RANK];
	int n;
	struct ap_sub *sub;
	uint32_t from = 0, to = 0, dev;

	out->n = 0;
	out->in = out->out = 0;
	/* Is every dimension that lies differently cut by powers of two? */
	for (uint32_t rest = a->other | b->other; rest; rest &= rest - 1) {
		int d = ap_lowest_bit(rest);

		if (a->layout.dim[d].cut != b->layout.dim[d].cut ||
			a->layout.dim[d].stride != b->layout.dim[d].stride)
			return unify_any(&a->layout, &b->layout, out);
	}
	n = find_pairs(a, b, pairs);
	sub = out->sub;
	static_assert(AP_COUNT(stride) == AP_MAX_CHAIN, "a stride for each boundary");
	dev = divide(pairs, n);
	for (int i = 0; i < n; i++) {
		sub = add_subs(sub, &pairs[i]);
		from |= dev & pairs[i].a->parts;
		to |= dev & pairs[i].b->parts;
	}
	out->n = (int)(sub - out->sub);
	out->in = from;
	out->out = to;
	assert(out->n <= AP_MAX_SUBS);
	out->stride = stride;
	return true;
}
