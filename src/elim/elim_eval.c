/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/elim_eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/par.h"
#include "elim/minplus.h"

enum { MAX_WIDTH = 64 };

#define NO_AXIS UINT32_MAX

struct view { /* an input along the axes of the clique */
	const double *value;
	size_t stride[MAX_WIDTH]; /* in elements; 0 for an axis it lacks */
	size_t offset; /* of the current outer place */
};

/*
 * A reduction as a product of two matrices, as used by both passes through a plan. Of the axes of
 * its clique, x is the eliminated one, col the last of the others, row one that shares no input with
 * col; the rest are outer and walked by an odometer. At each outer place
 *   out[row][col] = min over x of left[row][x] + right[x][col],
 * where left and right are the sums of the inputs without and with col.
 */
struct axes {
	const struct ap_ereduction *r;
	struct view *view; /* [ninput] */
	uint32_t row, col; /* NO_AXIS if there is none */
	uint32_t nouter;
	uint32_t outer[MAX_WIDTH];
	size_t at[MAX_WIDTH]; /* position on the outer axes */
	size_t out_stride[MAX_WIDTH]; /* of the result, by axis */
};

/* Number of candidates along an axis; 1 for NO_AXIS. */
static size_t axes_extent(const struct axes *a, uint32_t axis)
{
	return axis == NO_AXIS ? 1 : a->r->dim[axis];
}

/* Does the input have the axis? */
static bool axes_holds(const struct ap_einput *input, uint32_t axis)
{
	return axis != NO_AXIS && (input->mask >> axis & 1);
}

/* Stride of a view along an axis; 0 for NO_AXIS. */
static size_t axes_along(const struct view *v, uint32_t axis)
{
	return axis == NO_AXIS ? 0 : v->stride[axis];
}

static uint32_t col_axis(const struct ap_ereduction *r)
{
	if (r->width == 1)
		return NO_AXIS;
	return r->at == r->width - 1 ? r->width - 2 : r->width - 1;
}

static bool together(const struct ap_ereduction *r, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < r->ninput; i++) {
		if (axes_holds(&r->input[i], a) && axes_holds(&r->input[i], b))
			return true;
	}
	return false;
}

static uint32_t row_axis(const struct ap_ereduction *r, uint32_t col)
{
	uint32_t best = NO_AXIS;
	for (uint32_t i = 0; i < r->width; i++) {
		if (i == r->at || i == col || together(r, i, col))
			continue;
		if (best == NO_AXIS || r->dim[i] >= r->dim[best])
			best = i;
	}
	return best;
}

static void set_views(struct axes *a, const double *const *value)
{
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		struct view *v = &a->view[i];
		*v = (struct view){.value = value[a->r->input[i].table]};
		size_t stride = 1;
		for (uint32_t axis = a->r->width; axis-- > 0;) {
			if (!axes_holds(&a->r->input[i], axis))
				continue;
			v->stride[axis] = stride;
			stride *= a->r->dim[axis];
		}
	}
}

static void set_axes(struct axes *a)
{
	const struct ap_ereduction *r = a->r;
	a->col = col_axis(r);
	a->row = row_axis(r, a->col);
	size_t stride = 1;
	for (uint32_t axis = r->width; axis-- > 0;) {
		if (axis == r->at)
			continue;
		a->out_stride[axis] = stride;
		stride *= r->dim[axis];
	}
	for (uint32_t axis = 0; axis < r->width; axis++) {
		if (axis != r->at && axis != a->row && axis != a->col)
			a->outer[a->nouter++] = axis;
	}
}

/* Starts at the first outer place. In scratch. */
static struct axes *axes_make(struct ap_ctx *ctx, const struct ap_ereduction *r,
	const double *const *value)
{
	struct axes *a = AP_NEW(ctx->scratch, struct axes);
	a->r = r;
	a->view = AP_NEW_N(ctx->scratch, struct view, r->ninput);
	set_views(a, value);
	set_axes(a);
	return a;
}

/* Steps to the next outer place; false after the last. */
static bool axes_advance(struct axes *a)
{
	for (uint32_t i = a->nouter; i-- > 0;) {
		uint32_t axis = a->outer[i];
		bool carry = ++a->at[i] == a->r->dim[axis];
		size_t back = carry ? a->at[i] : 0;
		for (uint32_t k = 0; k < a->r->ninput; k++) {
			struct view *v = &a->view[k];
			v->offset = v->offset + v->stride[axis] - back * v->stride[axis];
		}
		if (!carry)
			return true;
		a->at[i] = 0;
	}
	return false;
}

/* The number of outer places; and a move to a given one. */
static size_t axes_places(const struct axes *a)
{
	size_t n = 1;
	for (uint32_t i = 0; i < a->nouter; i++)
		n *= a->r->dim[a->outer[i]];
	return n;
}

static void axes_go_to(struct axes *a, size_t place)
{
	for (uint32_t k = 0; k < a->r->ninput; k++)
		a->view[k].offset = 0;
	for (uint32_t i = a->nouter; i-- > 0;) {
		uint32_t axis = a->outer[i];
		a->at[i] = place % a->r->dim[axis];
		place /= a->r->dim[axis];
		for (uint32_t k = 0; k < a->r->ninput; k++)
			a->view[k].offset += a->at[i] * a->view[k].stride[axis];
	}
}

/* Offset of the outer place in the result. */
static size_t axes_out(const struct axes *a)
{
	size_t out = 0;
	for (uint32_t i = 0; i < a->nouter; i++)
		out += a->at[i] * a->out_stride[a->outer[i]];
	return out;
}

enum { TILE = 16, SHARES = 8 /* per thread */ };

#define WORTH_THREADS 3e7 /* steps of a reduction: about ten milliseconds */

struct job {
	struct ap_ctx *ctx;
	struct axes *axes;
	double *out;
	double *left, *right; /* buffers for sums */
};

/* An operand of the product: a single input is read in place, several are summed. */
struct operand {
	const double *value;
	size_t row, col; /* strides */
};

static void add_view(double *sum, const struct view *v, uint32_t row, uint32_t col,
	const struct axes *a)
{
	const double *from = v->value + v->offset;
	size_t rows = axes_extent(a, row), cols = axes_extent(a, col);
	size_t rs = axes_along(v, row), cs = axes_along(v, col);
	for (size_t i = 0; i < rows; i++) {
		for (size_t c = 0; c < cols; c++)
			sum[c] += from[c * cs];
		sum += cols;
		from += rs;
	}
}

/* The only input of an operand; NULL if there are several or none. */
static const struct view *only_view(const struct axes *a, bool with_col)
{
	const struct view *only = NULL;
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		if (axes_holds(&a->r->input[i], a->col) != with_col)
			continue;
		if (only)
			return NULL;
		only = &a->view[i];
	}
	return only;
}

static struct operand make_operand(const struct axes *a, bool with_col, uint32_t row,
	uint32_t col, double *sum)
{
	const struct view *only = only_view(a, with_col);
	/* columns of the right operand are added in bulk, so they must be contiguous */
	if (only && (!with_col || axes_along(only, col) == 1))
		return (struct operand){only->value + only->offset, axes_along(only, row),
			axes_along(only, col)};
	memset(sum, 0, axes_extent(a, row) * axes_extent(a, col) * sizeof *sum);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		if (axes_holds(&a->r->input[i], a->col) == with_col)
			add_view(sum, &a->view[i], row, col, a);
	}
	return (struct operand){sum, axes_extent(a, col), 1};
}

/* Handles one row with a single, transposed right operand; false if it is not this case. */
static bool row_product(const struct axes *a, struct operand left, double *out)
{
	const struct view *right = only_view(a, true);
	if (!right || a->row != NO_AXIS || a->col == NO_AXIS || left.col != 1 ||
		axes_along(right, a->r->at) != 1)
		return false;
	ap_minplus_row(a->r->dim[a->r->at], axes_extent(a, a->col), left.value,
		right->value + right->offset, axes_along(right, a->col), out);
	return true;
}

static void product(const struct job *j)
{
	const struct axes *a = j->axes;
	uint32_t x = a->r->at;
	struct operand left = make_operand(a, false, a->row, x, j->left);
	struct operand right;
	double *out = j->out + axes_out(a);
	if (row_product(a, left, out))
		return;
	right = make_operand(a, true, x, a->col, j->right);
	struct ap_minplus m = {
		.rows = axes_extent(a, a->row), .k = a->r->dim[x],
		.cols = axes_extent(a, a->col),
		.a = left.value, .a_row = left.row, .a_x = left.col,
		.b = right.value, .b_x = right.row,
		.out = out, .out_row = a->row == NO_AXIS ? 0 : a->out_stride[a->row],
	};
	ap_minplus_parts(j->ctx, &m);
}

static struct job make_job(struct ap_ctx *ctx, const struct ap_ereduction *r,
	const double *const *value, double *out)
{
	struct job j = {.ctx = ctx, .axes = axes_make(ctx, r, value), .out = out};
	size_t k = r->dim[r->at];
	j.left = ap_arena_alloc_raw(ctx->scratch, k * axes_extent(j.axes, j.axes->row),
		sizeof(double));
	j.right = ap_arena_alloc_raw(ctx->scratch, k * axes_extent(j.axes, j.axes->col),
		sizeof(double));
	return j;
}

struct sharing { /* shares out consecutive outer places of a reduction */
	struct job *job; /* by worker */
	size_t places, part;
};

static void reduce_share(void *user, size_t share, int worker)
{
	const struct sharing *s = user;
	const struct job *j = &s->job[worker];
	size_t first = share * s->part;
	size_t n = s->places - first < s->part ? s->places - first : s->part;
	axes_go_to(j->axes, first);
	for (; n > 0 && !ap_ctx_stopped(j->ctx); n--) {
		product(j);
		axes_advance(j->axes);
	}
}

static double steps_of(const struct ap_ereduction *r)
{
	double steps = 1;
	for (uint32_t i = 0; i < r->width; i++)
		steps *= r->dim[i];
	return steps;
}

/* Uses threads if that pays: with few places each product is divided, else the places are. */
static bool reduce(struct ap_ctx *ctx, const struct ap_ereduction *r, const double *const *value,
	double *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_ctx alone = *ctx;
	struct job first = make_job(ctx, r, value, out);
	struct sharing s = {.job = &first, .places = axes_places(first.axes)};
	int jobs = steps_of(r) < WORTH_THREADS || s.places / SHARES < (size_t)ctx->jobs ? 1
		: ctx->jobs;
	s.part = jobs == 1 ? s.places : s.places / (SHARES * (size_t)jobs) + 1;
	alone.jobs = 1;
	if (jobs > 1)
		s.job = AP_NEW_N(ctx->scratch, struct job, jobs);
	for (int w = 0; w < jobs && jobs > 1; w++)
		s.job[w] = make_job(&alone, r, value, out);
	ap_par_for(ctx->scratch, jobs, (s.places + s.part - 1) / s.part, reduce_share, &s);
	ap_arena_release(ctx->scratch, mark);
	return !ap_ctx_stopped(ctx);
}

static void flip(const struct ap_pmatrix *m, double *out)
{
	size_t rows = m->rows, cols = m->cols;
	for (size_t r = 0; r < rows; r += TILE) {
		for (size_t c = 0; c < cols; c++) {
			for (size_t i = r; i < rows && i < r + TILE; i++)
				out[c * rows + i] = m->cost[i * cols + c];
		}
	}
}

static void add(const double *a, const double *b, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = a[i] + b[i];
}

/* Is the table made, rather than borrowed from the problem? */
static bool made(enum ap_etable_kind kind)
{
	return kind != AP_ET_NODE && kind != AP_ET_MATRIX;
}

const double **ap_elim_room(struct ap_ctx *ctx, const struct ap_elim *e)
{
	const double **value = AP_NEW_N(ctx->scratch, const double *, e->ntable);
	for (uint32_t i = 0; i < e->ntable; i++) {
		if (made(e->table[i].kind))
			value[i] = ap_arena_alloc_raw(ctx->scratch, e->table[i].cells, sizeof(double));
	}
	return value;
}

static bool make_table(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **value, ap_id id)
{
	const struct ap_etable *t = &e->table[id];
	double *out = (double *)value[id];
	switch (t->kind) {
	case AP_ET_NODE:
		value[id] = p->node[t->a].cost;
		return true;
	case AP_ET_MATRIX:
		value[id] = p->matrix[t->a].cost;
		return true;
	case AP_ET_FLIPPED:
		flip(&p->matrix[t->a], out);
		return true;
	case AP_ET_SUM:
		add(value[t->a], value[t->b], t->cells, out);
		return true;
	case AP_ET_REDUCED:
		break;
	}
	return reduce(ctx, &e->reduction[t->a], value, out);
}

bool ap_elim_eval(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **value, double *least)
{
	for (uint32_t i = 0; i < e->ntable; i++) {
		if (!make_table(ctx, e, p, value, i))
			return false;
	}
	*least = 0;
	for (uint32_t i = 0; i < e->nstep; i++) {
		if (e->step[i].nscope == 0)
			*least += value[e->step[i].result][0];
	}
	return true;
}

/* Most factors are contiguous along the node. */
static void add_along(size_t k, double *restrict cost, const double *restrict at, size_t stride)
{
	if (stride == 1) {
		for (size_t x = 0; x < k; x++)
			cost[x] += at[x];
	} else {
		for (size_t x = 0; x < k; x++)
			cost[x] += at[x * stride];
	}
}

void ap_elim_costs(const struct ap_elim *e, const double *const *value, const struct ap_estep *s,
	const uint32_t *pick, double *cost)
{
	for (uint32_t i = 0; i < s->nfactor; i++) {
		const struct ap_efactor *f = &e->factor[s->factor[i]];
		const double *at = value[f->table];
		size_t stride = 1, own = 1;
		for (uint32_t a = f->nscope; a-- > 0;) {
			if (f->scope[a] == s->node)
				own = stride;
			else
				at += stride * pick[f->scope[a]];
			stride *= e->k[f->scope[a]];
		}
		add_along(e->k[s->node], cost, at, own);
	}
}

static uint32_t least_at(const double *cost, uint32_t k)
{
	uint32_t best = 0;
	for (uint32_t x = 1; x < k; x++) {
		if (cost[x] < cost[best])
			best = x;
	}
	return best;
}

static uint32_t widest(const struct ap_elim *e)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < e->n; i++)
		k = e->k[i] > k ? e->k[i] : k;
	return k;
}

void ap_elim_pick(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *cost = AP_NEW_N(ctx->scratch, double, widest(e));
	for (uint32_t i = e->nstep; i-- > 0;) {
		const struct ap_estep *s = &e->step[i];
		ap_elim_costs(e, value, s, pick, cost);
		if (i > 0 && e->step[i - 1].node == s->node)
			continue; /* more parts of this node follow */
		pick[s->node] = least_at(cost, e->k[s->node]);
		memset(cost, 0, e->k[s->node] * sizeof *cost);
	}
	ap_arena_release(ctx->scratch, mark);
}

struct adjoint {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const double *const *value;
	double threshold;
	double **outside; /* by table: least cost of all else; NULL if not needed */
	uint64_t work;
};

/* One side of a reduction's product: the inputs without col, or those with it. */
struct side {
	bool with_col;
	uint32_t axis; /* row or col */
	bool wanted; /* does an input need its own result, not only what the other side gives? */
	uint32_t nlive;
	uint32_t *live; /* candidates along axis used by picks within the threshold */
	double *sum; /* [nlive][x] sum of its inputs */
	double *through; /* [nlive][x] least total */
};

struct reversing {
	struct adjoint *d;
	struct axes *axes;
	const double *outside; /* outside of the result */
	struct side left, right;
	double *plane; /* [left.nlive][right.nlive] outside values at the current outer place */
};

/* Does the input have only x and outer axes? Then either side can give its result. */
static bool plain(const struct reversing *v, const struct ap_einput *input)
{
	return !axes_holds(input, v->axes->row) && !axes_holds(input, v->axes->col);
}

static size_t stride_of(const struct reversing *v, uint32_t axis)
{
	return axis == NO_AXIS ? 0 : v->axes->out_stride[axis];
}

/* ---- live rows and columns of an outer place ---- */

static void find_live(struct reversing *v, const double *at)
{
	size_t rows = axes_extent(v->axes, v->axes->row);
	size_t cols = axes_extent(v->axes, v->axes->col);
	size_t rs = stride_of(v, v->axes->row), cs = stride_of(v, v->axes->col);
	v->left.nlive = v->right.nlive = 0;
	memset(v->right.sum, 0, cols * sizeof *v->right.sum); /* used as marks */
	for (size_t r = 0; r < rows; r++) {
		bool any = false;
		for (size_t c = 0; c < cols; c++) {
			if (at[r * rs + c * cs] < INFINITY) {
				v->right.sum[c] = 1;
				any = true;
			}
		}
		if (any)
			v->left.live[v->left.nlive++] = (uint32_t)r;
	}
	for (size_t c = 0; c < cols; c++) {
		if (v->right.sum[c] > 0)
			v->right.live[v->right.nlive++] = (uint32_t)c;
	}
}

static void fill_plane(struct reversing *v, const double *at)
{
	size_t rs = stride_of(v, v->axes->row), cs = stride_of(v, v->axes->col);
	double *to = v->plane;
	for (uint32_t r = 0; r < v->left.nlive; r++) {
		for (uint32_t c = 0; c < v->right.nlive; c++)
			*to++ = at[v->left.live[r] * rs + v->right.live[c] * cs];
	}
}

static void fill_sum(struct reversing *v, struct side *s)
{
	const struct axes *a = v->axes;
	size_t k = a->r->dim[a->r->at];
	memset(s->sum, 0, s->nlive * k * sizeof *s->sum);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		const struct view *in = &a->view[i];
		size_t step = in->stride[a->r->at], along = axes_along(in, s->axis);
		if (axes_holds(&a->r->input[i], a->col) != s->with_col)
			continue;
		for (uint32_t l = 0; l < s->nlive; l++) {
			const double *from = in->value + in->offset + s->live[l] * along;
			double *to = s->sum + l * k;
			for (size_t x = 0; x < k; x++)
				to[x] += from[x * step];
		}
	}
}

/* ---- results for the inputs ---- */

/* through = own sum + least of the other side. */
static void find_through(struct reversing *v, struct side *own, const struct side *beyond)
{
	size_t k = v->axes->r->dim[v->axes->r->at], n = own->nlive * k;
	bool left = own == &v->left;
	ap_minplus_parts(v->d->ctx, &(struct ap_minplus){
		.rows = own->nlive, .k = beyond->nlive, .cols = k,
		.a = v->plane, .a_row = left ? beyond->nlive : 1, .a_x = left ? 1 : own->nlive,
		.b = beyond->sum, .b_x = k,
		.out = own->through, .out_row = k,
	});
	v->d->work += (uint64_t)n * beyond->nlive;
	for (size_t i = 0; i < n; i++)
		own->through[i] += own->sum[i];
}

/* Cells that the input forbids keep no outside value. */
static void tell_row(size_t k, const double *through, const double *value, double *outside,
	size_t step, double threshold)
{
	for (size_t x = 0; x < k; x++) {
		double own = value[x * step];
		if (through[x] <= threshold && through[x] - own < outside[x * step])
			outside[x * step] = through[x] - own;
	}
}

static void tell_side(struct reversing *v, const struct side *s)
{
	const struct ap_ereduction *r = v->axes->r;
	for (uint32_t i = 0; i < r->ninput; i++) {
		const struct ap_einput *input = &r->input[i];
		if (v->d->outside[input->table] &&
			(plain(v, input) || axes_holds(input, v->axes->col) == s->with_col)) {
			const struct axes *a = v->axes;
			const struct view *in = &a->view[i];
			size_t k = a->r->dim[a->r->at], along = axes_along(in, s->axis);
			double *outside = v->d->outside[a->r->input[i].table];

			for (uint32_t l = 0; l < s->nlive; l++) {
				size_t from = in->offset + s->live[l] * along;
				tell_row(k, s->through + l * k, in->value + from, outside + from,
					in->stride[a->r->at], v->d->threshold);
			}
		}
	}
}

static void reverse_place(struct reversing *v)
{
	const double *at = v->outside + axes_out(v->axes);
	find_live(v, at);
	if (!v->left.nlive)
		return;
	fill_plane(v, at);
	fill_sum(v, &v->left);
	fill_sum(v, &v->right);
	if (v->left.wanted || !v->right.wanted) {
		find_through(v, &v->left, &v->right);
		tell_side(v, &v->left);
	}
	if (v->right.wanted) {
		find_through(v, &v->right, &v->left);
		tell_side(v, &v->right);
	}
}

/* ---- tables ---- */

static void start_side(struct reversing *v, struct side *s, bool with_col)
{
	const struct axes *a = v->axes;
	struct ap_arena *arena = v->d->ctx->scratch;
	*s = (struct side){.with_col = with_col, .axis = with_col ? a->col : a->row};
	size_t n = axes_extent(a, s->axis), cells = n * a->r->dim[a->r->at];
	s->live = AP_NEW_N(arena, uint32_t, n);
	s->sum = ap_arena_alloc_raw(arena, cells, sizeof *s->sum);
	s->through = ap_arena_alloc_raw(arena, cells, sizeof *s->through);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		const struct ap_einput *input = &a->r->input[i];
		s->wanted |= v->d->outside[input->table] && !plain(v, input) &&
			axes_holds(input, a->col) == with_col;
	}
}

static bool reverse(struct adjoint *d, const struct ap_ereduction *r, const double *outside)
{
	struct ap_mark mark = ap_arena_mark(d->ctx->scratch);
	struct reversing v = {.d = d, .axes = axes_make(d->ctx, r, d->value), .outside = outside};
	bool more = true;
	start_side(&v, &v.left, false);
	start_side(&v, &v.right, true);
	v.plane = ap_arena_alloc_raw(d->ctx->scratch,
		axes_extent(v.axes, v.axes->row) * axes_extent(v.axes, v.axes->col),
		sizeof *v.plane);
	while (more && !ap_ctx_stopped(d->ctx)) {
		reverse_place(&v);
		more = axes_advance(v.axes);
	}
	ap_arena_release(d->ctx->scratch, mark);
	return !more && !ap_ctx_stopped(d->ctx);
}

static void tell_term(struct adjoint *d, ap_id term, const double *outside, const double *other)
{
	size_t cells = d->e->table[term].cells;
	if (d->outside[term])
		for (size_t i = 0; i < cells; i++) {
			double v = outside[i] + other[i];
			if (v < d->outside[term][i])
				d->outside[term][i] = v;
		}
}

/* Drops the entries of a table that no pick within the threshold uses. */
static void drop_far(struct adjoint *d, ap_id t)
{
	double *outside = d->outside[t];
	const double *value = d->value[t];
	size_t cells = d->e->table[t].cells;
	for (size_t i = 0; i < cells; i++)
		outside[i] = outside[i] + value[i] <= d->threshold ? outside[i] : INFINITY;
}

static bool tell_operands(struct adjoint *d, ap_id t)
{
	const struct ap_etable *table = &d->e->table[t];
	if (!d->outside[t] || (table->kind != AP_ET_SUM && table->kind != AP_ET_REDUCED))
		return true;
	drop_far(d, t);
	if (table->kind == AP_ET_REDUCED)
		return reverse(d, &d->e->reduction[table->a], d->outside[t]);
	tell_term(d, table->a, d->outside[t], d->value[table->b]);
	tell_term(d, table->b, d->outside[t], d->value[table->a]);
	return true;
}

/* Allocates tables that depend on nodes. */
static void start_tables(struct adjoint *d)
{
	d->outside = AP_NEW_N(d->ctx->scratch, double *, d->e->ntable);
	for (ap_id t = 0; t < d->e->ntable; t++) {
		const struct ap_etable *table = &d->e->table[t];
		bool wanted = table->kind == AP_ET_NODE || table->kind == AP_ET_REDUCED ||
			(table->kind == AP_ET_SUM && (d->outside[table->a] || d->outside[table->b]));
		if (!wanted)
			continue;
		d->outside[t] = ap_arena_alloc_raw(d->ctx->scratch, table->cells, sizeof(double));
		for (size_t i = 0; i < table->cells; i++)
			d->outside[t][i] = INFINITY;
	}
}

bool ap_elim_least_with(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	double least, double threshold, double **least_with, uint64_t *work)
{
	struct adjoint d = {.ctx = ctx, .e = e, .value = value, .threshold = threshold};
	assert(!e->split && least < INFINITY);
	start_tables(&d);
	for (uint32_t i = 0; i < e->nstep; i++) {
		ap_id t = e->step[i].result;
		if (e->step[i].nscope == 0)
			d.outside[t][0] = least - value[t][0];
	}
	for (ap_id t = e->ntable; t-- > 0;) {
		if (!tell_operands(&d, t))
			return false;
		if (e->table[t].kind != AP_ET_NODE)
			continue;
		least_with[t] = d.outside[t];
		for (size_t x = 0; x < e->table[t].cells; x++)
			least_with[t][x] += value[t][x];
	}
	*work += d.work;
	return true;
}

/* The step's factors as inputs of a reduction of its own, so that equal tables are told apart. */
static struct ap_ereduction single_use(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_estep *s)
{
	uint32_t width = s->nscope + 1, at = 0;
	ap_id *clique = AP_NEW_N(ctx->scratch, ap_id, width);
	uint32_t *dim = AP_NEW_N(ctx->scratch, uint32_t, width);
	struct ap_einput *input = AP_NEW_N(ctx->scratch, struct ap_einput, s->nfactor);

	while (at < s->nscope && s->scope[at] < s->node)
		at++;
	for (uint32_t i = 0; i < width; i++) {
		clique[i] = i < at ? s->scope[i] : i == at ? s->node : s->scope[i - 1];
		dim[i] = e->k[clique[i]];
	}
	for (uint32_t i = 0; i < s->nfactor; i++) {
		const struct ap_efactor *f = &e->factor[s->factor[i]];

		input[i].table = i;
		for (uint32_t k = 0, a = 0; k < f->nscope; k++) {
			while (clique[a] != f->scope[k])
				a++;
			input[i].mask |= UINT64_C(1) << a;
		}
	}
	return (struct ap_ereduction){.width = width, .at = at, .dim = dim, .ninput = s->nfactor,
		.input = input};
}

bool ap_elim_outside(struct ap_ctx *ctx, const struct ap_elim *e, const double *const *value,
	const struct ap_estep *s, const double *outside, double *const *of_factor, uint64_t *work)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const double **own = AP_NEW_N(ctx->scratch, const double *, s->nfactor);
	struct adjoint d = {.ctx = ctx, .e = e, .value = own, .threshold = INFINITY,
		.outside = AP_NEW_N(ctx->scratch, double *, s->nfactor)};
	struct ap_ereduction r = single_use(ctx, e, s);
	bool done;

	for (uint32_t i = 0; i < s->nfactor; i++) {
		ap_id table = e->factor[s->factor[i]].table;

		own[i] = value[table];
		d.outside[i] = of_factor[i];
		for (size_t c = 0; of_factor[i] && c < e->table[table].cells; c++)
			of_factor[i][c] = INFINITY;
	}
	done = reverse(&d, &r, outside);
	*work += d.work;
	ap_arena_release(ctx->scratch, mark);
	return done;
}
