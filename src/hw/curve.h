/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A measured curve of a collective on one kind of group: seconds by bytes, which a chip's profile may have
 * beside its links. Between points it is a straight line, behind the last it goes on as the last line does,
 * and before the first as the first does, but not below 0. It does not fall: points that do are pooled with
 * those before them into their mean, which is the curve that does not fall with the least sum of squares
 * (isotonic regression; Barlow et al. 1972). So a point is met unless the measurements around it fall.
 */
#ifndef AP_HW_CURVE_H
#define AP_HW_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct ap_curve_point {
	double bytes; /* of the whole buffer, as ap_coll_time_s() counts; above 0 */
	double time_s; /* above 0 */
};

struct ap_curve {
	int coll; /* enum ap_coll */
	int64_t ranks, servers; /* of the group, as many ranks on each server */
	const struct ap_curve_point *point; /* as measured, of rising bytes, each size once */
	const struct ap_curve_point *rising; /* [npoint] the same with times that do not fall */
	int npoint; /* 2 or more */
	const char *source;
};

enum { AP_MOST_CURVES = 64, AP_MOST_CURVE_POINTS = 256 };

/* Sets out->point and ->rising from points in any order; sizes that were measured several times have the mean
 * of their times. In the arena. O(n log n). */
void ap_curve_set(struct ap_arena *arena, const struct ap_curve_point *v, size_t n, struct ap_curve *out);

/* Are both of one collective and one kind of group? */
static inline bool ap_curve_is_like(const struct ap_curve *a, const struct ap_curve *b)
{
	return a->coll == b->coll && a->ranks == b->ranks && a->servers == b->servers;
}

/* Seconds for so many bytes, 0 or more. Monotone. O(log points). */
double ap_curve_time_s(const struct ap_curve *c, double bytes);

/* The greatest s such that no size up to `most` bytes takes less than ap_curve_time_s(c, 0) + s bytes.
 * O(points). */
double ap_curve_least_slope(const struct ap_curve *c, double most);

/* The mean of |curve / measured - 1| over the points. O(points log points). */
double ap_curve_off(const struct ap_curve *c);

#endif
