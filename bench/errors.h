/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of predictions, by sets of rows. */
#ifndef BENCH_ERRORS_H
#define BENCH_ERRORS_H

#include "rows.h"

struct errors { /* of a set of rows */
	const char *name;
	size_t rows, unexpressed;
	struct { double *v; size_t n, cap; } time, memory; /* predicted / measured - 1 */
	size_t ran, died, too_large, too_small; /* ran, and is predicted not to fit; died, and is to */
};

struct spread { /* of errors, in percent */
	double mean, median, ninety; /* of amounts; what nine of ten of them are within */
	double bias; /* mean, with signs */
};
struct spread spread_of(struct ap_arena *arena, const double *error, size_t n);

const char *source_of(const struct row *r);
const char *profile_of(const struct row *r); /* the software profile of a row's framework */

/* The sets of all names, in the order in which they come, and the last of all rows. */
size_t errors_by(struct ap_arena *arena, const struct table *t, const char *(*name_of)(const struct row *),
	struct errors **out);

#endif
