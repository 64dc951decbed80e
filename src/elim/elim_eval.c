/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/par.h"
#include "elim/elim.h"
#include "elim/elim_axes.h"
#include "elim/minplus.h"

enum { TILE = 16, SHARES = 8 /* of the outer places, for each thread */ };

#define WORTH_THREADS 3e7 /* steps of a reduction: some ten milliseconds */

struct job {
	struct ap_ctx *ctx;
	struct ap_eaxes *axes;
	double *out;
	double *left, *right; /* sums that had to be made */
};

/* An operand of the product: read where it lies when one input is all there is, else summed up. */
struct operand {
	const double *value;
	size_t row, col; /* strides */
};

static void add_view(double *sum, const struct ap_eview *v, uint32_t row, uint32_t col,
	const struct ap_eaxes *a)
{
	const double *from = v->value + v->offset;
	size_t rows = ap_eaxes_extent(a, row), cols = ap_eaxes_extent(a, col);
	size_t rs = ap_eaxes_along(v, row), cs = ap_eaxes_along(v, col);
	for (size_t i = 0; i < rows; i++) {
		for (size_t c = 0; c < cols; c++)
			sum[c] += from[c * cs];
		sum += cols;
		from += rs;
	}
}

/* The input that is an operand alone; NULL: there are several or none. */
static const struct ap_eview *only_view(const struct ap_eaxes *a, bool with_col)
{
	const struct ap_eview *only = NULL;
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		if (ap_eaxes_holds(&a->r->input[i], a->col) != with_col)
			continue;
		if (only)
			return NULL;
		only = &a->view[i];
	}
	return only;
}

static struct operand make_operand(const struct ap_eaxes *a, bool with_col, uint32_t row,
	uint32_t col, double *sum)
{
	const struct ap_eview *only = only_view(a, with_col);
	/* Columns of the right operand are added to in bulk, so they must lie together. */
	if (only && (!with_col || ap_eaxes_along(only, col) == 1))
		return (struct operand){only->value + only->offset, ap_eaxes_along(only, row),
			ap_eaxes_along(only, col)};
	memset(sum, 0, ap_eaxes_extent(a, row) * ap_eaxes_extent(a, col) * sizeof *sum);
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		if (ap_eaxes_holds(&a->r->input[i], a->col) == with_col)
			add_view(sum, &a->view[i], row, col, a);
	}
	return (struct operand){sum, ap_eaxes_extent(a, col), 1};
}

/* One row and a single right operand that lies the other way round: false where it is not so. */
static bool row_product(const struct ap_eaxes *a, struct operand left, double *out)
{
	const struct ap_eview *right = only_view(a, true);
	if (!right || a->row != AP_NO_AXIS || a->col == AP_NO_AXIS || left.col != 1 ||
		ap_eaxes_along(right, a->r->at) != 1)
		return false;
	ap_minplus_row(a->r->dim[a->r->at], ap_eaxes_extent(a, a->col), left.value,
		right->value + right->offset, ap_eaxes_along(right, a->col), out);
	return true;
}

static void product(const struct job *j)
{
	const struct ap_eaxes *a = j->axes;
	uint32_t x = a->r->at;
	struct operand left = make_operand(a, false, a->row, x, j->left);
	struct operand right;
	double *out = j->out + ap_eaxes_out(a);
	if (row_product(a, left, out))
		return;
	right = make_operand(a, true, x, a->col, j->right);
	struct ap_minplus m = {
		.rows = ap_eaxes_extent(a, a->row), .k = a->r->dim[x],
		.cols = ap_eaxes_extent(a, a->col),
		.a = left.value, .a_row = left.row, .a_x = left.col,
		.b = right.value, .b_x = right.row,
		.out = out, .out_row = a->row == AP_NO_AXIS ? 0 : a->out_stride[a->row],
	};
	ap_minplus_parts(j->ctx, &m);
}

static struct job make_job(struct ap_ctx *ctx, const struct ap_reduction *r,
	const double *const *value, double *out)
{
	struct job j = {.ctx = ctx, .axes = ap_eaxes_make(ctx, r, value), .out = out};
	size_t k = r->dim[r->at];
	j.left = ap_arena_alloc_raw(ctx->scratch, k * ap_eaxes_extent(j.axes, j.axes->row),
		sizeof(double));
	j.right = ap_arena_alloc_raw(ctx->scratch, k * ap_eaxes_extent(j.axes, j.axes->col),
		sizeof(double));
	return j;
}

struct sharing { /* of the outer places of a reduction, consecutive ones */
	struct job *job; /* by worker */
	size_t places, part;
};

static void reduce_share(void *user, size_t share, int worker)
{
	const struct sharing *s = user;
	const struct job *j = &s->job[worker];
	size_t first = share * s->part;
	size_t n = s->places - first < s->part ? s->places - first : s->part;
	ap_eaxes_go_to(j->axes, first);
	for (; n > 0 && !ap_ctx_stopped(j->ctx); n--) {
		product(j);
		ap_eaxes_advance(j->axes);
	}
}

static double steps_of(const struct ap_reduction *r)
{
	double steps = 1;
	for (uint32_t i = 0; i < r->width; i++)
		steps *= r->dim[i];
	return steps;
}

/* By several threads where that is worth it: of few places each product is shared out, else they are. */
static bool reduce(struct ap_ctx *ctx, const struct ap_reduction *r, const double *const *value,
	double *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_ctx alone = *ctx;
	struct job first = make_job(ctx, r, value, out);
	struct sharing s = {.job = &first, .places = ap_eaxes_places(first.axes)};
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

/* Is it made, rather than borrowed from the problem? */
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

/* Most factors lie along the node. */
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
			continue; /* more parts of this node to come */
		pick[s->node] = least_at(cost, e->k[s->node]);
		memset(cost, 0, e->k[s->node] * sizeof *cost);
	}
	ap_arena_release(ctx->scratch, mark);
}
