/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/simplex.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/wide.h"

#define FEASIBLE 1e-9
#define LEAST_PIVOT 1e-9 /* no smaller element is one */
#define UNEQUAL 1e-8 /* by which equal costs are made to differ, at least */

/*
 * Variables: x 0 .. nx - 1, z is nx, what the row with an id has to spare is nx + 1 + id. Each that stands
 * in a row of the table is the row's last number (apart from the others, as all of these are looked
 * through for each pivot) and the sum of the others times the variables of their columns, and so is the
 * objective. z always stands in row 0.
 */
struct ap_simplex {
	size_t nx, most, ncol, nrow;
	int32_t nid;
	double *t; /* [most][ncol] */
	double *last; /* [most] */
	double *cost; /* [ncol]; what the objective has beside them is that of row 0 */
	int32_t *row_var, *col_var; /* [most], [ncol] */
	int32_t *place; /* [nx + 1] of x and z: the row, or -1 - column */
};

struct ap_simplex *ap_simplex_create(struct ap_arena *arena, size_t nx, size_t nrow)
{
	struct ap_simplex *l = AP_NEW(arena, struct ap_simplex);
	size_t ncol = nx + 1;

	*l = (struct ap_simplex){.nx = nx, .most = nrow, .ncol = ncol,
		.t = ap_arena_alloc_raw(arena, nrow * ncol, sizeof *l->t),
		.last = AP_NEW_N(arena, double, nrow), .cost = AP_NEW_N(arena, double, ncol),
		.row_var = AP_NEW_N(arena, int32_t, nrow),
		.col_var = AP_NEW_N(arena, int32_t, ncol), .place = AP_NEW_N(arena, int32_t, nx + 1)};
	ap_simplex_clear(l);
	return l;
}

void ap_simplex_clear(struct ap_simplex *l)
{
	l->nrow = 0;
	l->nid = 0;
	for (size_t j = 0; j < l->nx; j++) {
		l->col_var[j] = (int32_t)j;
		l->place[j] = -1 - (int32_t)j;
	}
}

void ap_simplex_copy(struct ap_simplex *to, const struct ap_simplex *from)
{
	assert(to->nx == from->nx && to->most == from->most);
	to->nrow = from->nrow;
	to->nid = from->nid;
	memcpy(to->t, from->t, from->nrow * from->ncol * sizeof *to->t);
	memcpy(to->last, from->last, from->nrow * sizeof *to->last);
	memcpy(to->cost, from->cost, from->ncol * sizeof *to->cost);
	memcpy(to->row_var, from->row_var, from->nrow * sizeof *to->row_var);
	memcpy(to->col_var, from->col_var, from->ncol * sizeof *to->col_var);
	memcpy(to->place, from->place, (from->nx + 1) * sizeof *to->place);
}

static double *row_at(const struct ap_simplex *l, size_t i)
{
	return &l->t[i * l->ncol];
}

/* Drops the row that has the most to spare. Returns false if none has any. */
static bool make_room(struct ap_simplex *l)
{
	size_t best = 0;

	for (size_t i = 1; i < l->nrow; i++)
		if (l->row_var[i] > (int32_t)l->nx && l->last[i] > FEASIBLE &&
			(best == 0 || l->last[i] > l->last[best]))
			best = i;
	if (best == 0)
		return false;
	l->nrow--;
	memmove(row_at(l, best), row_at(l, l->nrow), l->ncol * sizeof *l->t);
	l->last[best] = l->last[l->nrow];
	l->row_var[best] = l->row_var[l->nrow];
	if (l->row_var[best] <= (int32_t)l->nx)
		l->place[l->row_var[best]] = (int32_t)best;
	return true;
}

static void add_times(double *restrict to, const double *restrict from, double times, size_t n)
{
	for (size_t j = 0; j < n; j++)
		to[j] += times * from[j];
}

static int32_t begin(struct ap_simplex *l, const double *a, double b)
{
	double *t = row_at(l, 0);

	for (size_t j = 0; j < l->nx; j++)
		t[j] = -a[j];
	t[l->nx] = 1;
	l->last[0] = b;
	memcpy(l->cost, t, l->ncol * sizeof *t);
	for (size_t j = 0; j < l->nx; j++) /* the fractions of multiples of the golden ratio are far apart */
		l->cost[j] += UNEQUAL * (1 + fmod((double)j * 0.6180339887498949, 1));
	l->row_var[0] = (int32_t)l->nx;
	l->col_var[l->nx] = (int32_t)l->nx + 1;
	l->place[l->nx] = 0;
	l->nrow = 1;
	return l->nid++;
}

/* Row `to` += a x + az z, with what stands in rows of the table put in. */
AP_WIDE static void put_in(struct ap_simplex *l, const double *a, double az, size_t to)
{
	double *t = row_at(l, to);

	for (size_t j = 0; j < l->nx; j++) {
		if (a[j] == 0)
			continue;
		if (l->place[j] < 0) {
			t[-1 - l->place[j]] += a[j];
			continue;
		}
		add_times(t, row_at(l, (size_t)l->place[j]), a[j], l->ncol);
		l->last[to] += a[j] * l->last[l->place[j]];
	}
	if (az != 0) {
		add_times(t, row_at(l, 0), az, l->ncol);
		l->last[to] += az * l->last[0];
	}
}

int32_t ap_simplex_add(struct ap_simplex *l, const double *a, double az, double b)
{
	if (l->nrow == 0)
		return begin(l, a, b);
	if (l->nrow == l->most && !make_room(l))
		return -1;
	memset(row_at(l, l->nrow), 0, l->ncol * sizeof *l->t);
	l->last[l->nrow] = -b;
	put_in(l, a, az, l->nrow);
	l->row_var[l->nrow++] = (int32_t)l->nx + 1 + l->nid;
	return l->nid++;
}

/* The column that row r can change places with so that no cost falls below 0; ncol: none. */
static size_t entering(const struct ap_simplex *l, const double *row)
{
	size_t best = l->ncol;
	double least = 0;

	for (size_t j = 0; j < l->ncol; j++) {
		double cost, ratio;

		if (row[j] <= LEAST_PIVOT)
			continue;
		cost = l->cost[j] > 0 ? l->cost[j] : 0;
		ratio = cost / row[j];
		if (best == l->ncol || ratio < least || (ratio == least && row[j] > row[best])) {
			best = j;
			least = ratio;
		}
	}
	return best;
}

AP_WIDE static void change_places(struct ap_simplex *l, size_t r, size_t c)
{
	double *row = row_at(l, r), by = 1 / row[c], out;
	int32_t var = l->row_var[r];

	for (size_t j = 0; j < l->ncol; j++)
		row[j] *= -by;
	l->last[r] *= -by;
	row[c] = by;
	for (size_t i = 0; i <= l->nrow; i++) {
		double *to = i < l->nrow ? row_at(l, i) : l->cost;

		if (i == r || to[c] == 0)
			continue;
		out = to[c];
		to[c] = 0;
		add_times(to, row, out, l->ncol);
		if (i < l->nrow)
			l->last[i] += out * l->last[r];
	}
	l->row_var[r] = l->col_var[c];
	l->col_var[c] = var;
	if (l->row_var[r] <= (int32_t)l->nx)
		l->place[l->row_var[r]] = (int32_t)r;
	if (var <= (int32_t)l->nx)
		l->place[var] = -1 - (int32_t)c;
}

/* The row that is violated most; 0: none is. */
static size_t find_worst(const struct ap_simplex *l)
{
	size_t worst = 0;
	double least = -FEASIBLE;

	for (size_t i = 1; i < l->nrow; i++)
		if (l->last[i] < least) {
			least = l->last[i];
			worst = i;
		}
	return worst;
}

enum ap_simplex_end ap_simplex_solve(struct ap_simplex *l, size_t pivots, uint64_t *work)
{
	for (size_t n = 0; n < pivots; n++) {
		size_t worst = find_worst(l), c;

		if (worst == 0)
			return AP_SIMPLEX_SOLVED;
		c = entering(l, row_at(l, worst));
		*work += l->ncol * (l->nrow + 2) / 16;
		if (c == l->ncol)
			return AP_SIMPLEX_NONE;
		change_places(l, worst, c);
	}
	return AP_SIMPLEX_PIVOTS;
}

double ap_simplex_z(const struct ap_simplex *l)
{
	return l->last[0];
}

void ap_simplex_x(const struct ap_simplex *l, double *x)
{
	for (size_t j = 0; j < l->nx; j++) {
		x[j] = l->place[j] < 0 ? 0 : l->last[l->place[j]];
		x[j] = x[j] > 0 ? x[j] : 0;
	}
}

void ap_simplex_duals(const struct ap_simplex *l, double *y, size_t n)
{
	memset(y, 0, n * sizeof *y);
	for (size_t j = 0; j < l->ncol; j++) {
		size_t id = (size_t)(l->col_var[j] - (int32_t)l->nx - 1);

		if (l->col_var[j] > (int32_t)l->nx && id < n)
			y[id] = l->cost[j] > 0 ? l->cost[j] : 0;
	}
}

void ap_simplex_refusal(const struct ap_simplex *l, double *y, size_t n)
{
	size_t worst = find_worst(l), id = (size_t)(l->row_var[worst] - (int32_t)l->nx - 1);

	memset(y, 0, n * sizeof *y);
	for (size_t j = 0; j < l->ncol; j++) {
		size_t at = (size_t)(l->col_var[j] - (int32_t)l->nx - 1);

		if (l->col_var[j] > (int32_t)l->nx && at < n)
			y[at] = row_at(l, worst)[j] < 0 ? -row_at(l, worst)[j] : 0;
	}
	if (l->row_var[worst] > (int32_t)l->nx && id < n)
		y[id] = 1;
}
