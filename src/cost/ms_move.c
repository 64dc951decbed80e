/* SPDX-License-Identifier: Apache-2.0 */
/* A redistribution as MindSpore infers it, both tensors' shapes and device matrices unified. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "cost/ms_cost.h"

#define MOST_PIECES 64 /* of at least two elements each: a tensor has fewer than 2^62 */

struct piece { /* a dimension of the unified shape */
	int64_t size;
	int32_t cut, stride; /* the axis of the ranks that cuts it; 1 and 0: none */
};

struct side {
	int n;
	struct piece v[MOST_PIECES];
};

static void read_side(const struct ap_ms_end *e, struct side *out)
{
	out->n = 0;
	for (int d = 0; d < e->layout.rank; d++)
		if (e->size[d] > 1)
			out->v[out->n++] = (struct piece){e->size[d], e->layout.dim[d].cut,
				e->layout.dim[d].stride};
}

/* Divides piece k: x elements outside, the rest inside, and its axis where that reaches further. */
static bool divide(struct side *s, int k, int64_t x)
{
	struct piece *p = &s->v[k], outer = {x, p->cut, p->stride}, inner = {p->size / x, 1, 0};

	if (p->size % x || (x > p->cut ? x % p->cut : p->cut % x) != 0)
		return false;
	if (x < p->cut) {
		inner.cut = p->cut / (int32_t)x;
		inner.stride = p->stride;
		outer.cut = (int32_t)x;
		outer.stride = p->stride * inner.cut;
	}
	assert(s->n < MOST_PIECES);
	memmove(p + 2, p + 1, (size_t)(s->n - k - 1) * sizeof *p);
	p[0] = outer;
	p[1] = inner;
	s->n++;
	return true;
}

enum step { SAME, CHANGED, FAILED };

/* Divides what an axis that ends at rank stride `end` would cut in the middle. */
static enum step divide_axes(struct side *s, int64_t end)
{
	enum step st = SAME;

	for (int k = 0; k < s->n; k++) {
		int64_t stride = s->v[k].stride, top = stride * s->v[k].cut;

		if (s->v[k].cut == 1 || end <= stride || end >= top)
			continue;
		if (end % stride || top % end || !divide(s, k, top / end))
			return FAILED;
		st = CHANGED;
	}
	return st;
}

/* Divides the piece that would have elements of both sides of a boundary of the other shape. */
static enum step divide_shape(struct side *s, int64_t boundary)
{
	int64_t before = 1;

	for (int k = 0; k < s->n; before *= s->v[k++].size) {
		if (boundary <= before || boundary >= before * s->v[k].size)
			continue;
		return boundary % before || !divide(s, k, boundary / before) ? FAILED : CHANGED;
	}
	return SAME;
}

static enum step divide_by_matrix(struct side *s, const struct ap_dev_matrix *dev)
{
	enum step worst = SAME, st;
	int64_t end = 1;

	for (int i = dev->n - 1; i >= 0; i--) {
		end *= dev->axis[i];
		st = divide_axes(s, end);
		worst = st > worst ? st : worst;
	}
	return worst;
}

static enum step divide_as(struct side *s, const struct side *other)
{
	enum step worst = SAME, st;
	int64_t boundary = 1;

	for (int k = 0; k < other->n; k++) {
		const struct piece *p = &other->v[k];

		st = divide_shape(s, boundary *= p->size);
		worst = st > worst ? st : worst;
		if (p->cut == 1)
			continue;
		st = divide_axes(s, p->stride);
		worst = st > worst ? st : worst;
		st = divide_axes(s, (int64_t)p->stride * p->cut);
		worst = st > worst ? st : worst;
	}
	return worst;
}

/* False: not expandable. */
static bool unify(const struct ap_ms_end *a, const struct ap_ms_end *b, struct side *x,
	struct side *y)
{
	enum step worst;

	do {
		const enum step st[] = {divide_by_matrix(x, &b->dev), divide_by_matrix(y, &a->dev),
			divide_as(x, y), divide_as(y, x)};

		worst = SAME;
		for (size_t i = 0; i < AP_COUNT(st); i++)
			worst = st[i] > worst ? st[i] : worst;
	} while (worst == CHANGED);
	return worst == SAME;
}

/* Operators so far. Axes are told apart by their stride, 0 none. */
struct walk {
	struct ap_ms_move *sum;
	double slice; /* elements that every operator is charged with */
	int n, left, operators;
	bool open[MOST_PIECES]; /* pieces still to be brought in place */
	int32_t first[MOST_PIECES], now[MOST_PIECES], want[MOST_PIECES];
	int32_t parts[MOST_PIECES], want_parts[MOST_PIECES];
	bool alltoall;
};

static void charge(struct walk *w, double forward, double backward, double computation)
{
	w->sum->forward += forward * w->slice;
	w->sum->backward += backward * w->slice;
	w->sum->computation += (computation + 1) * w->slice;
	w->operators++;
}

/* What puts the parts together: more than an AllGather where they are not of the first dimension. */
static double joining(int k, int32_t parts)
{
	return k == 0 ? 1 : 1 + 2.0 * parts;
}

static void concat(struct walk *w, int k, int32_t parts)
{
	charge(w, 0.5 * parts, 0.5, joining(k, parts));
}

static void close_piece(struct walk *w, int k)
{
	w->open[k] = false;
	w->left--;
}

/* The open piece that an axis cuts now; -1 none. */
static int holder(const struct walk *w, int32_t axis)
{
	for (int k = 0; k < w->n; k++)
		if (w->open[k] && w->now[k] == axis)
			return k;
	return -1;
}

static bool is_in(const int32_t *axes, int n, int32_t axis)
{
	for (int k = 0; k < n; k++)
		if (axes[k] == axis)
			return true;
	return false;
}

static void split_pass(struct walk *w)
{
	for (int k = 0; k < w->n; k++) {
		if (!w->open[k])
			continue;
		if (w->now[k] == w->want[k]) {
			close_piece(w, k);
		} else if (w->now[k] == 0 && holder(w, w->want[k]) < 0) {
			charge(w, 0, 0, 0);
			close_piece(w, k);
		}
	}
}

static void permute(struct walk *w, int k)
{
	int from = 0;

	while (w->first[from] != w->want[k])
		from++;
	if (w->alltoall) {
		charge(w, 2, 2, joining(from, w->want_parts[k]));
	} else {
		concat(w, from, w->want_parts[k]);
		charge(w, 0, 0, 0);
	}
	close_piece(w, k);
	w->left += !w->open[from];
	w->open[from] = true;
	w->now[from] = 0;
}

static void permute_passes(struct walk *w)
{
	int before;

	do {
		before = w->operators;
		for (int k = 0; k < w->n; k++) {
			if (!w->open[k])
				continue;
			if (w->now[k] == w->want[k])
				close_piece(w, k);
			else if (w->now[k] == 0 && holder(w, w->want[k]) >= 0)
				permute(w, k);
		}
	} while (w->operators > before);
}

static void concat_pass(struct walk *w)
{
	for (int k = 0; k < w->n; k++) {
		if (!w->open[k] || w->now[k] == 0 || is_in(w->want, w->n, w->now[k]))
			continue;
		concat(w, k, w->parts[k]);
		w->now[k] = 0;
		if (w->want[k] == 0)
			close_piece(w, k);
	}
}

static void break_cycle(struct walk *w)
{
	int k = 0;

	while (!w->open[k])
		k++;
	concat(w, k, w->parts[k]);
	w->now[k] = 0;
}

/* Formats 5.2, to the letter: the order of the passes decides which operators there are. */
static void infer(struct walk *w)
{
	while (w->left > 0) {
		int before = w->operators, inner;

		do {
			inner = w->operators;
			split_pass(w);
			permute_passes(w);
		} while (w->operators > inner);
		concat_pass(w);
		if (w->operators == before && w->left > 0)
			break_cycle(w);
	}
}

static void begin(struct walk *w, const struct side *a, const struct side *b)
{
	w->n = w->left = a->n;
	for (int k = 0; k < a->n; k++) {
		w->open[k] = true;
		w->first[k] = w->now[k] = a->v[k].stride;
		w->want[k] = b->v[k].stride;
		w->parts[k] = a->v[k].cut;
		w->want_parts[k] = b->v[k].cut;
	}
}

/* Formats 5.1 step 5. */
static void through_whole(struct walk *w, const struct side *a, const struct side *b)
{
	for (int k = 0; k < a->n; k++)
		if (a->v[k].cut > 1)
			concat(w, k, a->v[k].cut);
	for (int k = 0; k < a->n; k++)
		w->slice *= a->v[k].cut;
	for (int k = 0; k < b->n; k++)
		if (b->v[k].cut > 1)
			charge(w, 0, 0, 0);
}

static int64_t elements(const struct side *s)
{
	int64_t product = 1;

	for (int k = 0; k < s->n; k++)
		product *= s->v[k].size;
	return product;
}

static double slice_of(const struct side *s)
{
	double elements = 1;

	for (int k = 0; k < s->n; k++)
		elements *= (double)(s->v[k].size / s->v[k].cut);
	return elements;
}

/* Has the slice the shape that the operators see it in? */
static bool is_shape(const struct ap_ms_end *e, const struct side *s)
{
	if (e->layout.rank != s->n)
		return false;
	for (int k = 0; k < s->n; k++)
		if (e->size[k] / e->layout.dim[k].cut != s->v[k].size / s->v[k].cut)
			return false;
	return true;
}

static bool is_same_shape(const struct ap_ms_end *a, const struct ap_ms_end *b)
{
	return a->layout.rank == b->layout.rank && memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* A local Reshape of the slice, where no operator needs another shape. */
static bool is_reshaped(const struct ap_ms_end *a, const struct ap_ms_end *b)
{
	if (a->layout.rank != b->layout.rank)
		return true;
	for (int d = 0; d < a->layout.rank; d++)
		if (a->size[d] / a->layout.dim[d].cut != b->size[d] / b->layout.dim[d].cut)
			return true;
	return false;
}

void ap_ms_move_make(const struct ap_ms_end *a, const struct ap_ms_end *b, bool alltoall,
	struct ap_ms_move *out)
{
	struct side x, y;
	struct walk w = {.sum = out, .alltoall = alltoall};
	bool reshaped;
	double slice;

	*out = (struct ap_ms_move){0};
	read_side(a, &x);
	read_side(b, &y);
	slice = w.slice = slice_of(&x);
	if (elements(&x) == elements(&y) && unify(a, b, &x, &y)) {
		assert(x.n == y.n);
		begin(&w, &x, &y);
		infer(&w);
		reshaped = w.operators == 0 ? is_reshaped(a, b) : !is_shape(a, &x) || !is_shape(b, &y);
	} else {
		read_side(a, &x);
		read_side(b, &y);
		through_whole(&w, &x, &y);
		slice = w.slice;
		reshaped = !is_same_shape(a, b);
	}
	if (reshaped)
		out->computation += 2 * slice;
}

static void set_dev(const struct ap_dev_matrix *dev, struct ap_ms_end *out)
{
	out->dev.n = dev->n;
	for (int i = 0; i < dev->n; i++)
		out->dev.axis[i] = dev->axis[i];
}

bool ap_ms_end_make(const struct ap_placement *p, const struct ap_operand *t, uint8_t batch,
	const struct ap_step *step, struct ap_ms_end *out)
{
	struct ap_dev_matrix dev;

	memset(out, 0, sizeof *out);
	if (!ap_layout_make(p, t, &out->layout))
		return false;
	ap_dev_matrix_standard(p, &dev);
	set_dev(&dev, out);
	for (int d = 0; d < t->rank; d++)
		out->size[d] = t->size[d] / (batch >> d & 1 ? step->micro_batches : 1);
	return true;
}

void ap_ms_end_bare(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_ms_end *out)
{
	struct ap_dev_matrix dev;
	int32_t map[AP_MAX_RANK];

	memset(out, 0, sizeof *out);
	out->layout = *l;
	ap_layout_dev_matrix(l, ndev, &dev, map);
	set_dev(&dev, out);
	memcpy(out->size, size, (size_t)l->rank * sizeof *size);
}

double ap_ms_refine(double bytes)
{
	if (bytes <= 0)
		return bytes;
	return bytes <= 2048 ? 3072 : bytes + 1024;
}

void ap_ms_edge_cost(const struct ap_ms_end *a, const struct ap_ms_end *b, enum ap_dtype dtype,
	bool alltoall, struct ap_ms_cost *out)
{
	double bytes = (double)ap_dtype_bytes(dtype);
	struct ap_ms_move m;

	ap_ms_move_make(a, b, alltoall, &m);
	out->computation = bytes * m.computation;
	out->communication = ap_ms_refine(bytes * m.forward) + ap_ms_refine(bytes * m.backward);
	if (dtype == AP_BOOL && m.forward + m.backward > 0)
		out->computation = out->communication = (double)INFINITY;
}
