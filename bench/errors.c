/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "run.h"

static void add_row(struct ap_arena *arena, struct errors *e, const struct row *r)
{
	e->rows++;
	e->unexpressed += r->reason != NULL;
	if (has_time(r))
		AP_PUSH(arena, e->time, r->predicted_s / r->measured_s - 1);
	if (has_memory(r))
		AP_PUSH(arena, e->memory, (double)r->predicted_bytes / (double)r->measured_bytes - 1);
	e->ran += outcome_of(r) == RAN;
	e->died += outcome_of(r) == DIED;
	e->too_large += outcome_of(r) == RAN && !fits(r);
	e->too_small += outcome_of(r) == DIED && fits(r);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread spread_of(struct ap_arena *arena, const double *error, size_t n)
{
	double *amount = AP_NEW_N(arena, double, (n ? n : 1));
	struct spread s = {0};

	for (size_t i = 0; i < n; i++) {
		amount[i] = fabs(error[i]) * 100;
		s.mean += amount[i] / (double)n;
		s.bias += error[i] * 100 / (double)n;
	}
	qsort(amount, n, sizeof *amount, by_value);
	if (n) {
		double at = 0.9 * (double)(n - 1);
		size_t below = (size_t)at, above = below + (below + 1 < n);

		s.median = (amount[(n - 1) / 2] + amount[n / 2]) / 2;
		s.ninety = amount[below] + (at - (double)below) * (amount[above] - amount[below]);
	}
	return s;
}

const char *source_of(const struct row *r)
{
	return r->field[COL_source_id];
}

const char *profile_of(const struct row *r)
{
	const struct framework *f = framework_of(r->field[COL_framework]);

	return f ? f->software : "unknown";
}

size_t errors_by(struct ap_arena *arena, const struct table *t,
	const char *(*name_of)(const struct row *), struct errors **out)
{
	struct { struct errors *v; size_t n, cap; } sets = {0};
	struct errors all = {.name = "total"};

	for (size_t i = 0; i < t->n; i++) {
		const char *source = name_of(&t->v[i]);
		size_t k = 0;

		while (k < sets.n && strcmp(sets.v[k].name, source) != 0)
			k++;
		if (k == sets.n)
			AP_PUSH(arena, sets, (struct errors){.name = source});
		add_row(arena, &sets.v[k], &t->v[i]);
		add_row(arena, &all, &t->v[i]);
	}
	AP_PUSH(arena, sets, all);
	*out = sets.v;
	return sets.n;
}
