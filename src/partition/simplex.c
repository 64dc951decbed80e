/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/simplex.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/wide.h"

#define FEASIBLE 1e-9
#define LEAST_PIVOT 1e-9 /* no smaller element is one */
#define VECTOR 8 /* doubles of the widest that there are */
#define BLOCK 32 /* doubles that are looked through at once */
#define LATER 8 /* changes of places that rows wait for */
#define NEARLY 1e-12 /* products and quotients lose less */
#define UNEQUAL 1e-8 /* by which equal costs are made to differ, at least */

/*
 * Variables: x 0 .. nx - 1, z is nx, what the row with an id has to spare is nx + 1 + id. Each that stands
 * in a row of the table is the row's last number (apart from the others, as all of these are looked
 * through for each pivot) and the sum of the others times the variables of their columns, and so is the
 * objective. z always stands in row 0.
 */
struct ap_simplex {
	size_t nx, most, ncol, nrow;
	size_t stride; /* of rows: whole vectors, aligned to them, what is behind the columns 0 */
	int32_t nid;
	double *t; /* [most][stride] */
	double *last; /* [most] */
	double *cost; /* [stride]; what the objective has beside them is that of row 0 */
	int32_t *row_var, *col_var; /* [most], [ncol] */
	int32_t *place; /* [nx + 1] of x and z: the row, or -1 - column */
	/*
	 * While it is solved, the table goes through memory once for some changes of places. Those that rows
	 * still wait for: the column, its row, and how often that is added to each row.
	 */
	size_t nlater;
	struct change {
		size_t column;
		double *row; /* [stride] */
		double *times; /* [most]; 0 also where it is done */
	} later[LATER];
	uint8_t *done; /* [most] how many of these a row has made, or need not */
	uint8_t *waits; /* [most] a bit for each that it has to */
};

/* Not zeroed. */
static double *new_vectors(struct ap_arena *arena, size_t n)
{
	char *at = ap_arena_alloc_raw(arena, n + VECTOR, sizeof(double));

	return (double *)(at + (size_t)-(uintptr_t)at % (VECTOR * sizeof(double)));
}

struct ap_simplex *ap_simplex_create(struct ap_arena *arena, size_t nx, size_t nrow)
{
	struct ap_simplex *l = AP_NEW(arena, struct ap_simplex);
	size_t ncol = nx + 1, stride = (ncol + VECTOR - 1) / VECTOR * VECTOR;

	*l = (struct ap_simplex){.nx = nx, .most = nrow, .ncol = ncol, .stride = stride,
		.t = new_vectors(arena, nrow * stride), .last = AP_NEW_N(arena, double, nrow),
		.cost = new_vectors(arena, stride),
		.row_var = AP_NEW_N(arena, int32_t, nrow),
		.col_var = AP_NEW_N(arena, int32_t, ncol), .place = AP_NEW_N(arena, int32_t, nx + 1),
		.done = AP_NEW_N(arena, uint8_t, nrow), .waits = AP_NEW_N(arena, uint8_t, nrow)};
	for (int k = 0; k < LATER; k++)
		l->later[k] = (struct change){0, new_vectors(arena, stride), AP_NEW_N(arena, double, nrow)};
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
	memcpy(to->t, from->t, from->nrow * from->stride * sizeof *to->t);
	memcpy(to->last, from->last, from->nrow * sizeof *to->last);
	memcpy(to->cost, from->cost, from->stride * sizeof *to->cost);
	memcpy(to->row_var, from->row_var, from->nrow * sizeof *to->row_var);
	memcpy(to->col_var, from->col_var, from->ncol * sizeof *to->col_var);
	memcpy(to->place, from->place, (from->nx + 1) * sizeof *to->place);
}

static double *row_at(const struct ap_simplex *l, size_t i)
{
	return &l->t[i * l->stride];
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
	memmove(row_at(l, best), row_at(l, l->nrow), l->stride * sizeof *l->t);
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

	memset(t, 0, l->stride * sizeof *t);
	for (size_t j = 0; j < l->nx; j++)
		t[j] = -a[j];
	t[l->nx] = 1;
	l->last[0] = b;
	memcpy(l->cost, t, l->stride * sizeof *t);
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
		add_times(t, row_at(l, (size_t)l->place[j]), a[j], l->stride);
		l->last[to] += a[j] * l->last[l->place[j]];
	}
	if (az != 0) {
		add_times(t, row_at(l, 0), az, l->stride);
		l->last[to] += az * l->last[0];
	}
}

int32_t ap_simplex_add(struct ap_simplex *l, const double *a, double az, double b)
{
	if (l->nrow == 0)
		return begin(l, a, b);
	if (l->nrow == l->most && !make_room(l))
		return -1;
	memset(row_at(l, l->nrow), 0, l->stride * sizeof *l->t);
	l->last[l->nrow] = -b;
	put_in(l, a, az, l->nrow);
	l->row_var[l->nrow++] = (int32_t)l->nx + 1 + l->nid;
	return l->nid++;
}

/* May some column of n be better than one whose ratio is a little less than `near`? */
static inline bool has_near(const double *restrict row, const double *restrict cost, double near, size_t n)
{
	int64_t any = 0;

	for (size_t j = 0; j < n; j++)
		any |= (int64_t)(row[j] > LEAST_PIVOT) & (int64_t)(cost[j] <= near * row[j]);
	return any;
}

/* The column that row r can change places with so that no cost falls below 0; ncol: none. What is behind the
 * columns is 0, and none. */
AP_WIDE static size_t entering(const struct ap_simplex *l, const double *row)
{
	size_t best = l->ncol;
	double least = INFINITY, near = INFINITY;

	for (size_t from = 0; from < l->stride; from += BLOCK) {
		size_t to = from + BLOCK < l->stride ? from + BLOCK : l->stride;

		if (!has_near(&row[from], &l->cost[from], near, to - from)) /* few have */
			continue;
		for (size_t j = from; j < to; j++) {
			double cost, ratio;

			if (!((row[j] > LEAST_PIVOT) & (l->cost[j] <= near * row[j])))
				continue;
			cost = l->cost[j] > 0 ? l->cost[j] : 0;
			ratio = cost / row[j];
			if (best == l->ncol || ratio < least || (ratio == least && row[j] > row[best])) {
				best = j;
				least = ratio;
				near = ratio * (1 + NEARLY);
			}
		}
	}
	return best;
}

/* to += from[k] * times[k], one after the other; n: 1 to 4. */
static inline void add_some(double *restrict to, const double *const *from, const double *times, int n,
	size_t len)
{
	const double *restrict a = from[0], *restrict b = from[n > 1], *restrict c = from[n > 2 ? 2 : 0];
	const double *restrict d = from[n > 3 ? 3 : 0];

	if (n == 1)
		add_times(to, a, times[0], len);
	else if (n == 2)
		for (size_t j = 0; j < len; j++)
			to[j] = to[j] + times[0] * a[j] + times[1] * b[j];
	else if (n == 3)
		for (size_t j = 0; j < len; j++)
			to[j] = to[j] + times[0] * a[j] + times[1] * b[j] + times[2] * c[j];
	else
		for (size_t j = 0; j < len; j++)
			to[j] = to[j] + times[0] * a[j] + times[1] * b[j] + times[2] * c[j] +
				times[3] * d[j];
}

/* Makes the changes of row i that wait, in their order, as if none had. */
static inline void make_changes(struct ap_simplex *l, size_t i)
{
	double *to = row_at(l, i), times[LATER];
	const double *from[LATER];
	size_t column[LATER];
	int n = 0;

	for (size_t k = l->done[i]; l->waits[i] >> k; k++)
		if (l->waits[i] >> k & 1) {
			times[n] = l->later[k].times[i];
			column[n] = l->later[k].column;
			from[n++] = l->later[k].row;
			l->later[k].times[i] = 0;
		}
	for (int k = 0; k < n; k += 4)
		add_some(to, &from[k], &times[k], n - k < 4 ? n - k : 4, l->stride);
	for (int k = 0; k < n; k++) { /* where columns changed, rows began again */
		double sum = 0;

		for (int m = k; m < n; m++)
			sum += times[m] * from[m][column[k]];
		to[column[k]] = sum;
	}
	l->waits[i] = 0;
	l->done[i] = (uint8_t)l->nlater;
}

AP_WIDE static void catch_up(struct ap_simplex *l, size_t i)
{
	make_changes(l, i);
}

AP_WIDE static void catch_up_all(struct ap_simplex *l)
{
	for (size_t i = 0; i < l->nrow; i++)
		if (l->waits[i])
			make_changes(l, i);
	memset(l->done, 0, l->nrow);
	l->nlater = 0;
}

/* What the rows have in a column now, into v. */
AP_WIDE static void take_column(const struct ap_simplex *l, size_t c, double *restrict v)
{
	for (size_t i = 0; i < l->nrow; i++)
		v[i] = row_at(l, i)[c];
	for (size_t k = 0; k < l->nlater; k++) {
		const double *restrict times = l->later[k].times;
		double by = l->later[k].row[c];

		for (size_t i = 0; i < l->nrow && l->later[k].column == c; i++)
			v[i] = l->done[i] <= k ? 0 : v[i];
		for (size_t i = 0; i < l->nrow; i++)
			v[i] += times[i] * by;
	}
}

/* Row r has caught up. */
AP_WIDE static void change_places(struct ap_simplex *l, size_t r, size_t c)
{
	struct change *change = &l->later[l->nlater];
	double *row = row_at(l, r), by = 1 / row[c], *restrict times = change->times, out;
	double *restrict last = l->last;
	int32_t var = l->row_var[r];

	take_column(l, c, times);
	times[r] = 0;
	for (size_t j = 0; j < l->stride; j++)
		row[j] *= -by;
	last[r] *= -by;
	row[c] = by;
	for (size_t i = 0; i < l->nrow; i++) {
		last[i] += times[i] * last[r];
		l->waits[i] |= (uint8_t)((times[i] != 0) << l->nlater);
	}
	out = l->cost[c];
	l->cost[c] = 0;
	add_times(l->cost, row, out, l->stride);
	memcpy(change->row, row, l->stride * sizeof *row);
	change->column = c;
	l->done[r] = (uint8_t)++l->nlater;
	if (l->nlater == LATER)
		catch_up_all(l);
	l->row_var[r] = l->col_var[c];
	l->col_var[c] = var;
	if (l->row_var[r] <= (int32_t)l->nx)
		l->place[l->row_var[r]] = (int32_t)r;
	if (var <= (int32_t)l->nx)
		l->place[var] = -1 - (int32_t)c;
}

static inline bool has_less(const double *v, double than, size_t n)
{
	int64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= v[i] < than;
	return any;
}

/* The row that is violated most, the first of equals; 0: none is. z, in row 0, is none. */
AP_WIDE static size_t find_worst(const struct ap_simplex *l)
{
	size_t worst = 0;
	double least = -FEASIBLE;

	for (size_t from = 1; from < l->nrow; from += BLOCK) {
		size_t to = from + BLOCK < l->nrow ? from + BLOCK : l->nrow;

		if (!has_less(&l->last[from], least, to - from))
			continue;
		for (size_t i = from; i < to; i++)
			if (l->last[i] < least) {
				least = l->last[i];
				worst = i;
			}
	}
	return worst;
}

enum ap_simplex_end ap_simplex_solve_to(struct ap_simplex *l, size_t *pivots, double enough, uint64_t *work)
{
	enum ap_simplex_end end = AP_SIMPLEX_PIVOTS;

	for (; *pivots > 0 && end == AP_SIMPLEX_PIVOTS; --*pivots) {
		size_t worst = find_worst(l), c;

		if (worst == 0) {
			end = AP_SIMPLEX_SOLVED;
			break;
		}
		if (l->waits[worst])
			catch_up(l, worst);
		c = entering(l, row_at(l, worst));
		*work += l->ncol * (l->nrow + 2) / 16;
		if (c < l->ncol)
			change_places(l, worst, c);
		else
			end = AP_SIMPLEX_NONE;
		if (end == AP_SIMPLEX_PIVOTS && l->last[0] > enough)
			end = AP_SIMPLEX_ENOUGH;
	}
	catch_up_all(l);
	return end;
}

enum ap_simplex_end ap_simplex_solve(struct ap_simplex *l, size_t pivots, uint64_t *work)
{
	return ap_simplex_solve_to(l, &pivots, INFINITY, work);
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
