/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small linear program, dense: the least z so that rows a x + az z >= b hold, x >= 0, whose rows are added
 * while it is solved (the dual simplex method, in double precision). Its multipliers are for bounds that are
 * computed anew from them: nothing here has to be exact, and costs are moved by up to 2e-8, as equal ones may
 * keep it from an end.
 */
#ifndef AP_PARTITION_SIMPLEX_H
#define AP_PARTITION_SIMPLEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ap_arena;
struct ap_simplex;

/* At most nrow rows at a time. The first row has to bound z: az = 1, a <= 0. In arena, O(nx * nrow). */
struct ap_simplex *ap_simplex_create(struct ap_arena *arena, size_t nx, size_t nrow);

/* Takes all rows away. */
void ap_simplex_clear(struct ap_simplex *l);

/* Makes `to`, of the same size, the same. */
void ap_simplex_copy(struct ap_simplex *to, const struct ap_simplex *from);

/* Adds a row; a: [nx]. Of other rows, one that is not needed now goes where there is no room. Returns its id,
 * or -1 if there is no room. */
int32_t ap_simplex_add(struct ap_simplex *l, const double *a, double az, double b);

enum ap_simplex_end {
	AP_SIMPLEX_SOLVED, /* all rows hold */
	AP_SIMPLEX_NONE, /* they cannot */
	AP_SIMPLEX_ENOUGH, /* z is more than was asked for, if they can */
	AP_SIMPLEX_PIVOTS /* these ended */
};

/* Adds its work. */
enum ap_simplex_end ap_simplex_solve(struct ap_simplex *l, size_t pivots, uint64_t *work);

/* The same, with as many of *pivots as it takes, until z is more than enough. */
enum ap_simplex_end ap_simplex_solve_to(struct ap_simplex *l, size_t *pivots, double enough, uint64_t *work);

double ap_simplex_z(const struct ap_simplex *l);
void ap_simplex_x(const struct ap_simplex *l, double *x);

/* Multipliers of rows, by id, into y, [n]; 0 of those that went. */
void ap_simplex_duals(const struct ap_simplex *l, double *y, size_t n);

/* After AP_SIMPLEX_NONE: multipliers of rows with which these add up to what no x >= 0 keeps. */
void ap_simplex_refusal(const struct ap_simplex *l, double *y, size_t n);

#endif
