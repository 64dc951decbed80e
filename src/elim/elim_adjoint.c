/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/elim_adjoint.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/elim_axes.h"
#include "elim/minplus.h"

struct adjoint {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const double *const *value;
	double threshold;
	double **outside; /* by table: least cost of all else; NULL: not wanted */
	uint64_t work;
};

/* One side of the product of a reduction: the inputs without col, or those with it. */
struct side {
	bool with_col;
	uint32_t axis; /* row or col */
	bool wanted; /* does an input need to know more than what the other side can tell? */
	uint32_t nlive;
	uint32_t *live; /* candidates along the axis that picks within the threshold use */
	double *sum; /* [nlive][x] of the inputs */
	double *through; /* [nlive][x] of everything */
};

struct reversing {
	struct adjoint *d;
	struct ap_eaxes *axes;
	const double *outside; /* of the result */
	struct side left, right;
	double *plane; /* [left.nlive][right.nlive] outside, at the outer place */
};

/* Does only x, or an outer axis beside it, matter to the input? Then either side can tell it. */
static bool plain(const struct reversing *v, const struct ap_einput *input)
{
	return !ap_eaxes_holds(input, v->axes->row) && !ap_eaxes_holds(input, v->axes->col);
}

static size_t stride_of(const struct reversing *v, uint32_t axis)
{
	return axis == AP_NO_AXIS ? 0 : v->axes->out_stride[axis];
}

/* ---- what is left of an outer place ---- */

static void find_live(struct reversing *v, const double *at)
{
	size_t rows = ap_eaxes_extent(v->axes, v->axes->row);
	size_t cols = ap_eaxes_extent(v->axes, v->axes->col);
	size_t rs = stride_of(v, v->axes->row), cs = stride_of(v, v->axes->col);
	v->left.nlive = v->right.nlive = 0;
	memset(v->right.sum, 0, cols * sizeof *v->right.sum); /* borrowed as marks */
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
	const struct ap_eaxes *a = v->axes;
	size_t k = a->r->dim[a->r->at];
	memset(s->sum, 0, s->nlive * k * sizeof *s->sum);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		const struct ap_eview *in = &a->view[i];
		size_t step = in->stride[a->r->at], along = ap_eaxes_along(in, s->axis);
		if (ap_eaxes_holds(&a->r->input[i], a->col) != s->with_col)
			continue;
		for (uint32_t l = 0; l < s->nlive; l++) {
			const double *from = in->value + in->offset + s->live[l] * along;
			double *to = s->sum + l * k;
			for (size_t x = 0; x < k; x++)
				to[x] += from[x * step];
		}
	}
}

/* ---- what the inputs learn ---- */

/* through = own sum + the least of what lies beyond. */
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

/* Where the input forbids something, what is outside does not matter. */
static void tell_row(size_t k, const double *through, const double *value, double *outside,
	size_t step, double threshold)
{
	for (size_t x = 0; x < k; x++) {
		double own = value[x * step];
		if (through[x] <= threshold && through[x] - own < outside[x * step])
			outside[x * step] = through[x] - own;
	}
}

static void tell(struct reversing *v, const struct side *s, uint32_t input)
{
	const struct ap_eaxes *a = v->axes;
	const struct ap_eview *in = &a->view[input];
	size_t k = a->r->dim[a->r->at], along = ap_eaxes_along(in, s->axis);
	double *outside = v->d->outside[a->r->input[input].table];
	for (uint32_t l = 0; l < s->nlive; l++) {
		size_t from = in->offset + s->live[l] * along;
		tell_row(k, s->through + l * k, in->value + from, outside + from,
			in->stride[a->r->at], v->d->threshold);
	}
}

static void tell_side(struct reversing *v, const struct side *s)
{
	const struct ap_reduction *r = v->axes->r;
	for (uint32_t i = 0; i < r->ninput; i++) {
		const struct ap_einput *input = &r->input[i];
		if (v->d->outside[input->table] &&
			(plain(v, input) || ap_eaxes_holds(input, v->axes->col) == s->with_col))
			tell(v, s, i);
	}
}

static void reverse_place(struct reversing *v)
{
	const double *at = v->outside + ap_eaxes_out(v->axes);
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
	const struct ap_eaxes *a = v->axes;
	struct ap_arena *arena = v->d->ctx->scratch;
	*s = (struct side){.with_col = with_col, .axis = with_col ? a->col : a->row};
	size_t n = ap_eaxes_extent(a, s->axis), cells = n * a->r->dim[a->r->at];
	s->live = AP_NEW_N(arena, uint32_t, n);
	s->sum = ap_arena_alloc_raw(arena, cells, sizeof *s->sum);
	s->through = ap_arena_alloc_raw(arena, cells, sizeof *s->through);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		const struct ap_einput *input = &a->r->input[i];
		s->wanted |= v->d->outside[input->table] && !plain(v, input) &&
			ap_eaxes_holds(input, a->col) == with_col;
	}
}

static bool reverse(struct adjoint *d, const struct ap_reduction *r, const double *outside)
{
	struct ap_mark mark = ap_arena_mark(d->ctx->scratch);
	struct reversing v = {.d = d, .axes = ap_eaxes_make(d->ctx, r, d->value), .outside = outside};
	bool more = true;
	start_side(&v, &v.left, false);
	start_side(&v, &v.right, true);
	v.plane = ap_arena_alloc_raw(d->ctx->scratch,
		ap_eaxes_extent(v.axes, v.axes->row) * ap_eaxes_extent(v.axes, v.axes->col),
		sizeof *v.plane);
	while (more && !ap_ctx_stopped(d->ctx)) {
		reverse_place(&v);
		more = ap_eaxes_advance(v.axes);
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

/* Forgets the entries of a table that no pick within the threshold uses. */
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

/* Room for all that nodes are part of. */
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
