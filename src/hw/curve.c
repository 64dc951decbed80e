/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int by_bytes(const void *x, const void *y)
{
	const struct ap_curve_point *a = x, *b = y;

	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Puts the mean in the place of all times of a size. Returns the number of sizes. */
static size_t join_sizes(struct ap_curve_point *v, size_t n)
{
	size_t out = 0;

	for (size_t i = 0, k; i < n; i = k) {
		double sum = 0;

		for (k = i; k < n && v[k].bytes <= v[i].bytes; k++)
			sum += v[k].time_s;
		v[out++] = (struct ap_curve_point){v[i].bytes, sum / (double)(k - i)};
	}
	return out;
}

/* Pools neighbours that fall: a pool takes in the one before it for as long as that has the greater mean. */
static void make_rising(struct ap_arena *arena, struct ap_curve_point *v, size_t n)
{
	size_t *first = AP_NEW_N(arena, size_t, n), pools = 0;

	for (size_t i = 0; i < n; i++) {
		double sum = v[i].time_s;
		size_t from = i;

		while (pools > 0 && v[first[pools - 1]].time_s > sum / (double)(i + 1 - from)) {
			size_t before = first[--pools];

			sum += v[before].time_s * (double)(from - before);
			from = before;
		}
		for (size_t k = from; k <= i; k++)
			v[k].time_s = sum / (double)(i + 1 - from);
		first[pools++] = from;
	}
}

void ap_curve_set(struct ap_arena *arena, const struct ap_curve_point *v, size_t n, struct ap_curve *out)
{
	struct ap_curve_point *point = ap_arena_memdup(arena, v, n * sizeof *point), *rising;

	qsort(point, n, sizeof *point, by_bytes);
	n = join_sizes(point, n);
	rising = ap_arena_memdup(arena, point, n * sizeof *rising);
	make_rising(arena, rising, n);
	out->point = point;
	out->rising = rising;
	out->npoint = (int)n;
}

static double slope(const struct ap_curve_point *a, const struct ap_curve_point *b)
{
	return (b->time_s - a->time_s) / (b->bytes - a->bytes);
}

/* Of the line behind the last point. Where the last points were pooled, as no time can stay for ever, that
 * from the origin. */
static double last_slope(const struct ap_curve *c)
{
	const struct ap_curve_point *last = &c->rising[c->npoint - 1];
	double s = slope(last - 1, last);

	return s > 0 ? s : last->time_s / last->bytes;
}

double ap_curve_time_s(const struct ap_curve *c, double bytes)
{
	const struct ap_curve_point *v = c->rising;
	int lo = 0, hi = c->npoint - 1; /* the line between them */

	assert(c->npoint >= 2);
	if (bytes <= v[0].bytes) {
		double at_none = fmax(0, v[0].time_s - slope(&v[0], &v[1]) * v[0].bytes);

		return at_none + (v[0].time_s - at_none) * (bytes / v[0].bytes);
	}
	if (bytes >= v[hi].bytes)
		return v[hi].time_s + last_slope(c) * (bytes - v[hi].bytes);
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		if (v[mid].bytes <= bytes)
			lo = mid;
		else
			hi = mid;
	}
	return fmin(v[hi].time_s, v[lo].time_s + slope(&v[lo], &v[hi]) * (bytes - v[lo].bytes));
}

double ap_curve_least_slope(const struct ap_curve *c, double most)
{
	double none = ap_curve_time_s(c, 0), least = (ap_curve_time_s(c, most) - none) / most;

	/* a straight piece takes the least of what its ends do */
	for (int i = 0; i < c->npoint && c->rising[i].bytes < most; i++)
		least = fmin(least, (c->rising[i].time_s - none) / c->rising[i].bytes);
	return least;
}

double ap_curve_off(const struct ap_curve *c)
{
	double sum = 0;

	for (int i = 0; i < c->npoint; i++)
		sum += fabs(c->rising[i].time_s / c->point[i].time_s - 1);
	return sum / c->npoint;
}
