/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/elim.h"
#include "search/minplus.h"

enum { MAX_WIDTH = 64, PART = 1 << 26 /* steps of a product between two polls */ };

/* An input of a reduction, seen along the axes of the clique: element strides, 0 where it lacks
 * one. */
struct view {
	const double *value;
	size_t stride[MAX_WIDTH];
	size_t offset; /* of the outer axes at hand */
};

/*
 * The axes of a reduction: x is eliminated, col is the last of the others, row one that shares no
 * input with col; the rest are outer, walked by an odometer. For each outer place
 *   out[row][col] = min over x of left[row][x] + right[x][col],
 * left and right being the sums of the inputs without and with col: one min-plus product.
 */
struct job {
	const struct ap_reduction *r;
	struct view *view;
	uint32_t row, col; /* axes, or NO_AXIS */
	uint32_t nouter;
	uint32_t outer[MAX_WIDTH];
	size_t at[MAX_WIDTH]; /* of the outer axes */
	size_t out_stride[MAX_WIDTH];
	double *out;
	double *left, *right; /* sums that had to be made */
};

#define NO_AXIS UINT32_MAX

static size_t extent(const struct ap_reduction *r, uint32_t axis)
{
	return axis == NO_AXIS ? 1 : r->dim[axis];
}

static bool holds(const struct ap_einput *input, uint32_t axis)
{
	return axis != NO_AXIS && (input->mask >> axis & 1);
}

static uint32_t col_axis(const struct ap_reduction *r)
{
	if (r->width == 1)
		return NO_AXIS;
	return r->at == r->width - 1 ? r->width - 2 : r->width - 1;
}

static bool together(const struct ap_reduction *r, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < r->ninput; i++) {
		if (holds(&r->input[i], a) && holds(&r->input[i], b))
			return true;
	}
	return false;
}

static uint32_t row_axis(const struct ap_reduction *r, uint32_t col)
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

static void set_views(struct job *j, const double *const *value)
{
	for (uint32_t i = 0; i < j->r->ninput; i++) {
		struct view *v = &j->view[i];
		*v = (struct view){.value = value[j->r->input[i].table]};
		size_t stride = 1;
		for (uint32_t axis = j->r->width; axis-- > 0;) {
			if (!holds(&j->r->input[i], axis))
				continue;
			v->stride[axis] = stride;
			stride *= j->r->dim[axis];
		}
	}
}

static void set_axes(struct job *j)
{
	const struct ap_reduction *r = j->r;
	j->col = col_axis(r);
	j->row = row_axis(r, j->col);
	size_t stride = 1;
	for (uint32_t axis = r->width; axis-- > 0;) {
		if (axis == r->at)
			continue;
		j->out_stride[axis] = stride;
		stride *= r->dim[axis];
	}
	for (uint32_t axis = 0; axis < r->width; axis++) {
		if (axis != r->at && axis != j->row && axis != j->col)
			j->outer[j->nouter++] = axis;
	}
}

static size_t along(const struct view *v, uint32_t axis)
{
	return axis == NO_AXIS ? 0 : v->stride[axis];
}

/* An operand of the product: read where it lies when one input is all there is, else summed up. */
struct operand {
	const double *value;
	size_t row, col; /* strides */
};

static void add_view(double *sum, const struct view *v, uint32_t row, uint32_t col,
	const struct ap_reduction *r)
{
	const double *from = v->value + v->offset;
	size_t rows = extent(r, row), cols = extent(r, col), rs = along(v, row), cs = along(v, col);
	for (size_t i = 0; i < rows; i++) {
		for (size_t c = 0; c < cols; c++)
			sum[c] += from[c * cs];
		sum += cols;
		from += rs;
	}
}

/* The input that is an operand alone; NULL: there are several or none. */
static const struct view *only_view(const struct job *j, bool with_col)
{
	const struct view *only = NULL;
	for (uint32_t i = 0; i < j->r->ninput; i++) {
		if (holds(&j->r->input[i], j->col) != with_col)
			continue;
		if (only)
			return NULL;
		only = &j->view[i];
	}
	return only;
}

static struct operand make_operand(struct job *j, bool with_col, uint32_t row, uint32_t col,
	double *sum)
{
	const struct view *only = only_view(j, with_col);
	/* Columns of the right operand are added to in bulk, so they must lie together. */
	if (only && (!with_col || along(only, col) == 1))
		return (struct operand){only->value + only->offset, along(only, row),
			along(only, col)};
	memset(sum, 0, extent(j->r, row) * extent(j->r, col) * sizeof *sum);
	for (uint32_t i = 0; i < j->r->ninput; i++) {
		if (holds(&j->r->input[i], j->col) == with_col)
			add_view(sum, &j->view[i], row, col, j->r);
	}
	return (struct operand){sum, extent(j->r, col), 1};
}

/* In parts small enough to poll in between. */
static void run_product(struct ap_ctx *ctx, struct ap_minplus m)
{
	size_t rows = m.rows, part = PART / (m.k * m.cols) + 1;
	for (size_t r = 0; r < rows && !ap_ctx_stopped(ctx); r += part) {
		m.rows = rows - r < part ? rows - r : part;
		ap_minplus(&m);
		m.a += part * m.a_row;
		m.out += part * m.out_row;
	}
}

/* One row and a single right operand that lies the other way round: false where it is not so. */
static bool row_product(const struct job *j, struct operand left, double *out)
{
	const struct ap_reduction *r = j->r;
	const struct view *right = only_view(j, true);
	if (!right || j->row != NO_AXIS || j->col == NO_AXIS || left.col != 1 ||
		along(right, r->at) != 1)
		return false;
	ap_minplus_row(r->dim[r->at], extent(r, j->col), left.value, right->value + right->offset,
		along(right, j->col), out);
	return true;
}

static void product(struct ap_ctx *ctx, struct job *j)
{
	const struct ap_reduction *r = j->r;
	struct operand left = make_operand(j, false, j->row, r->at, j->left);
	struct operand right;
	double *out = j->out;
	for (uint32_t i = 0; i < j->nouter; i++)
		out += j->at[i] * j->out_stride[j->outer[i]];
	if (row_product(j, left, out))
		return;
	right = make_operand(j, true, r->at, j->col, j->right);
	struct ap_minplus m = {
		.rows = extent(r, j->row), .k = r->dim[r->at], .cols = extent(r, j->col),
		.a = left.value, .a_row = left.row, .a_x = left.col,
		.b = right.value, .b_x = right.row,
		.out = out, .out_row = j->row == NO_AXIS ? 0 : j->out_stride[j->row],
	};
	run_product(ctx, m);
}

/* Steps the outer axes; false after the last place. */
static bool advance(struct job *j)
{
	for (uint32_t i = j->nouter; i-- > 0;) {
		uint32_t axis = j->outer[i];
		bool carry = ++j->at[i] == j->r->dim[axis];
		size_t back = carry ? j->at[i] : 0;
		for (uint32_t k = 0; k < j->r->ninput; k++) {
			struct view *v = &j->view[k];
			v->offset = v->offset + v->stride[axis] - back * v->stride[axis];
		}
		if (!carry)
			return true;
		j->at[i] = 0;
	}
	return false;
}

static bool reduce(struct ap_ctx *ctx, const struct ap_reduction *r, const double *const *value,
	double *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct job *j = AP_NEW(ctx->scratch, struct job);
	j->r = r;
	j->out = out;
	j->view = AP_NEW_N(ctx->scratch, struct view, r->ninput);
	set_views(j, value);
	set_axes(j);
	size_t k = r->dim[r->at];
	j->left = ap_arena_alloc_raw(ctx->scratch, k * extent(r, j->row), sizeof(double));
	j->right = ap_arena_alloc_raw(ctx->scratch, k * extent(r, j->col), sizeof(double));
	bool more = true;
	while (more && !ap_ctx_stopped(ctx)) {
		product(ctx, j);
		more = advance(j);
	}
	ap_arena_release(ctx->scratch, mark);
	return !more && !ap_ctx_stopped(ctx);
}

static const double *flipped(struct ap_ctx *ctx, const struct ap_pmatrix *m)
{
	size_t rows = m->rows, cols = m->cols;
	double *out = ap_arena_alloc_raw(ctx->scratch, rows * cols, sizeof *out);
	for (size_t c = 0; c < cols; c++) {
		for (size_t r = 0; r < rows; r++)
			out[c * rows + r] = m->cost[r * cols + c];
	}
	return out;
}

static const double *added(struct ap_ctx *ctx, const double *a, const double *b, size_t n)
{
	double *out = ap_arena_alloc_raw(ctx->scratch, n, sizeof *out);
	for (size_t i = 0; i < n; i++)
		out[i] = a[i] + b[i];
	return out;
}

static const double *make_table(struct ap_ctx *ctx, const struct ap_elim *e,
	const struct ap_problem *p, const double *const *value, const struct ap_etable *t)
{
	switch (t->kind) {
	case AP_ET_NODE:
		return p->node[t->a].cost;
	case AP_ET_MATRIX:
		return p->matrix[t->a].cost;
	case AP_ET_FLIPPED:
		return flipped(ctx, &p->matrix[t->a]);
	case AP_ET_SUM:
		return added(ctx, value[t->a], value[t->b], t->cells);
	case AP_ET_REDUCED:
		break;
	}
	double *out = ap_arena_alloc_raw(ctx->scratch, t->cells, sizeof *out);
	return reduce(ctx, &e->reduction[t->a], value, out) ? out : NULL;
}

bool ap_elim_eval(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **value, double *least)
{
	for (uint32_t i = 0; i < e->ntable; i++) {
		value[i] = make_table(ctx, e, p, value, &e->table[i]);
		if (!value[i])
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
