/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's own costs of operators (formats 6.1). */
#include "cost/ms_cost.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "shard/space.h"
#include "shard/strategy.h"

#define MOST_PIECES 64 /* each has at least two elements, and a tensor has fewer than 2^62 */

struct piece { /* a dimension of the unified shape */
	int64_t size;
	int32_t cut, stride; /* axis of the ranks that cuts it; 1 and 0 if none */
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

/* Divides piece k into x elements outside and the rest inside; its axis, too, if it is longer. */
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

/* Divides pieces whose axis would be cut inside by an axis ending at rank stride `end`. */
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

/* Divides the piece that contains a boundary of the other shape. */
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

/* Returns false if the shapes cannot be expanded. */
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

/* Operators so far. Axes are identified by stride; 0 is none. */
struct walk {
	struct ap_ms_move *sum;
	double slice; /* elements charged for each operator */
	int n, left, operators;
	bool open[MOST_PIECES]; /* pieces still to be moved into place */
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

/* Cost of joining parts: more than an AllGather unless along the first dimension. */
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

/* The open piece that an axis cuts now; -1 if none. */
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

static void permute_passes(struct walk *w)
{
	int before;

	do {
		before = w->operators;
		for (int k = 0; k < w->n; k++) {
			if (!w->open[k])
				continue;
			if (w->now[k] == w->want[k]) {
				close_piece(w, k);
			} else if (w->now[k] == 0 && holder(w, w->want[k]) >= 0) {
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
		}
	} while (w->operators > before);
}

/* Follows formats 5.2 literally: the order of the passes decides which operators there are. */
static void infer(struct walk *w)
{
	while (w->left > 0) {
		int before = w->operators, inner;

		do {
			inner = w->operators;
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
			permute_passes(w);
		} while (w->operators > inner);
		for (int k = 0; k < w->n; k++) {
			if (!w->open[k] || w->now[k] == 0 || is_in(w->want, w->n, w->now[k]))
				continue;
			concat(w, k, w->parts[k]);
			w->now[k] = 0;
			if (w->want[k] == 0)
				close_piece(w, k);
		}
		if (w->operators == before && w->left > 0) {
			int k = 0;

			while (!w->open[k])
				k++;
			concat(w, k, w->parts[k]);
			w->now[k] = 0;
		}
	}
}

struct op {
	const struct ap_placement *p;
	const struct ap_bound *b;
	const struct ap_step *step;
	bool cross_batch;
};

static int64_t elements(const struct side *s);

static double slice_elements(const struct op *o, const struct ap_operand *t)
{
	double elements = 1;

	for (int d = 0; d < t->rank; d++) {
		elements *= (double)t->size[d];
		for (int i = 0; i < t->dim[d].n; i++) {
			int f = t->dim[d].factor[i];

			elements = elements / (double)o->b->factor[f].size *
				(double)ap_factor_extent(o->b, f, o->step) / ap_placement_parts(o->p, t, f);
		}
	}
	return elements;
}

static double slice_bytes(const struct op *o, const struct ap_operand *t)
{
	return slice_elements(o, t) * ap_dtype_bytes(t->dtype);
}

static double result_bytes(const struct op *o)
{
	return slice_bytes(o, &o->b->out[0]);
}

/* Is any of these factors cut? */
static bool is_cut(const struct op *o, uint32_t factors)
{
	for (int f = 0; f < o->b->nfactor; f++)
		if (factors >> f & 1 && o->p->count[f] > 1)
			return true;
	return false;
}

static bool is_dim_cut(const struct op *o, const struct ap_operand *t, int d)
{
	for (int i = 0; d >= 0 && d < t->rank && i < t->dim[d].n; i++)
		if (ap_placement_parts(o->p, t, t->dim[d].factor[i]) > 1)
			return true;
	return false;
}

/* Factors that are summed over. */
static uint32_t summed(const struct ap_bound *b)
{
	return b->in[0].factors & ~b->out[0].factors;
}

static void product(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = slice_bytes(o, &o->b->in[0]) + slice_bytes(o, &o->b->in[1]);
	if (is_cut(o, summed(o->b)))
		out->computation += result_bytes(o);
	if (is_dim_cut(o, &o->b->in[0], o->b->in[0].rank - 1))
		out->communication = result_bytes(o);
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

/* Does the slice have the shape that the operators see? */
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

/* Do the slices differ in shape, so that a local Reshape suffices if no operator needs another? */
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
		w.n = w.left = x.n;
		for (int k = 0; k < x.n; k++) {
			w.open[k] = true;
			w.first[k] = w.now[k] = x.v[k].stride;
			w.want[k] = y.v[k].stride;
			w.parts[k] = x.v[k].cut;
			w.want_parts[k] = y.v[k].cut;
		}
		infer(&w);
		reshaped = w.operators == 0 ? is_reshaped(a, b) : !is_shape(a, &x) || !is_shape(b, &y);
	} else {
		read_side(a, &x);
		read_side(b, &y);
		/* formats 5.1, step 5 */
		for (int k = 0; k < x.n; k++)
			if (x.v[k].cut > 1)
				concat(&w, k, x.v[k].cut);
		for (int k = 0; k < x.n; k++)
			w.slice *= x.v[k].cut;
		for (int k = 0; k < y.n; k++)
			if (y.v[k].cut > 1)
				charge(&w, 0, 0, 0);
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

static double operand_bytes(const struct op *o)
{
	double bytes = 0;

	for (unsigned i = 0; i < o->b->nin; i++)
		bytes += slice_bytes(o, &o->b->in[i]);
	return bytes;
}

static bool is_type(const struct ap_bound *b, const char *const *names)
{
	while (*names && strcmp(*names, b->row->name) != 0)
		names++;
	return *names != NULL;
}

static bool is_product(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_CUBE && b->nwindow == 0 && b->nin >= 2;
}

static bool is_reduction(const struct ap_bound *b)
{
	return b->nin == 1 && summed(b) && b->row->unit == AP_OP_VECTOR && b->nwindow == 0;
}

/* Is the first dimension cut and no other? */
static bool is_data_parallel(const struct op *o)
{
	const struct ap_operand *x = &o->b->in[0];

	for (int d = 1; d < x->rank; d++)
		if (is_dim_cut(o, x, d))
			return false;
	return is_dim_cut(o, x, 0);
}

static void reduction(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = operand_bytes(o);
	if (!is_cut(o, summed(o->b)))
		return;
	out->computation += result_bytes(o) * (o->b->row->reduce == AP_REDUCE_MEAN ? 2 : 1);
	if (!o->cross_batch || !is_data_parallel(o))
		out->communication = result_bytes(o);
}

static uint32_t looked_up(const struct ap_bound *b)
{
	uint32_t mask = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP)
			mask |= UINT32_C(1) << f;
	return mask & b->in[0].factors;
}

static void gather(const struct op *o, struct ap_ms_cost *out)
{
	const struct ap_operand *table = &o->b->in[0], *indices = &o->b->in[1];
	double rows = slice_elements(o, indices);

	out->computation = slice_bytes(o, table) + slice_bytes(o, indices);
	if (!is_cut(o, looked_up(o->b)))
		return;
	out->computation = 3 * slice_bytes(o, table) + 7 * slice_bytes(o, indices);
	out->communication = ap_dtype_bytes(o->b->out[0].dtype) *
		(table->rank == 2 ? slice_elements(o, &o->b->out[0]) : rows);
}

/* Does the strategy's first vector start with all devices? */
static bool is_preferred(const struct ap_placement *p)
{
	uint8_t rank[1] = {0};
	int32_t cut[1][AP_MAX_RANK] = {{0}};

	return ap_space_to_strategy(p, rank, cut, 1) > 0 && rank[0] > 0 && cut[0][0] == p->ndev;
}

void ap_ms_operator_cost(const struct ap_placement *p, const struct ap_step *step, bool cross_batch,
	struct ap_ms_cost *out)
{
	struct op o = {p, p->bound, step, cross_batch};
	static const char *const batch_norms[] = {"BatchNorm", "SyncBatchNorm", NULL};
	static const char *const by_result[] = {"Softmax", "LogSoftmax", "Tile", NULL};
	static const char *const by_first[] = {"OneHot", NULL}, *const dropouts[] = {"Dropout", NULL};
	const struct ap_bound *b;

	*out = (struct ap_ms_cost){0};
	if (p->bound->nin == 0)
		return;
	b = o.b;
	if (is_product(b)) {
		product(&o, out);
	} else if (is_type(b, batch_norms)) {
		out->computation = operand_bytes(&o);
		if (is_dim_cut(&o, &o.b->in[0], 1))
			out->communication = slice_bytes(&o, &o.b->in[0]);
	} else if (strncmp(b->row->name, "UnsortedSegment", 15) == 0) {
		out->computation = operand_bytes(&o) + result_bytes(&o);
		for (int d = 0; o.b->nin > 1 && d < o.b->in[1].rank; d++)
			if (is_dim_cut(&o, &o.b->in[0], d))
				out->communication = result_bytes(&o);
	} else if (b->nin == 2 && looked_up(b)) {
		gather(&o, out);
	} else if (is_type(b, by_result)) {
		out->computation = result_bytes(&o);
	} else if (is_type(b, dropouts)) {
		out->computation = 1.125 * operand_bytes(&o);
	} else if (is_type(b, by_first)) {
		out->computation = slice_bytes(&o, &b->in[0]);
	} else if (is_reduction(b)) {
		reduction(&o, out);
	} else {
		out->computation = operand_bytes(&o);
	}
	if (is_preferred(p)) {
		out->computation -= out->computation > 1;
		out->communication -= out->communication > 1;
	}
	out->communication = ap_ms_refine(out->communication);
}
