/* SPDX-License-Identifier: Apache-2.0 */
#include "ranking.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

size_t groups_of(struct ap_arena *arena, const struct table *t, struct group **out)
{
	static const enum column alike[] = {COL_arch, COL_layers, COL_hidden, COL_heads, COL_ffn, COL_vocab,
		COL_seq_len, COL_hw, COL_interconnect, COL_devices, COL_gbs, COL_precision};
	struct { struct group *v; size_t n, cap; } all = {0};
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		const char *key = r->field[COL_model];
		size_t k = 0;

		if (!has_time(r))
			continue;
		for (size_t c = 0; c < AP_COUNT(alike); c++)
			key = ap_arena_printf(arena, "%s|%s", key, r->field[alike[c]]);
		while (k < all.n && strcmp(all.v[k].key, key) != 0)
			k++;
		if (k == all.n)
			AP_PUSH(arena, all, ((struct group){.key = key, .name = ap_arena_printf(arena,
				"%s, %s devices, batch %s", r->field[COL_model], r->field[COL_devices],
				r->field[COL_gbs])}));
		AP_PUSH(arena, all.v[k].rows, r);
	}
	for (size_t k = 0; k < all.n; k++)
		if (all.v[k].rows.n >= GROUP)
			all.v[n++] = all.v[k];
	*out = all.v;
	return n;
}

/* Ranks from 1; of equal values the mean of theirs. O(n^2). */
static double *ranks(struct ap_arena *arena, const double *v, size_t n)
{
	double *rank = AP_NEW_N(arena, double, n);

	for (size_t i = 0; i < n; i++) {
		double below = 0, equal = 0;

		for (size_t k = 0; k < n; k++) {
			below += v[k] < v[i];
			equal += v[k] == v[i];
		}
		rank[i] = below + (equal + 1) / 2;
	}
	return rank;
}

/* Correlation of ranks; 0 where all are alike. */
static double spearman(struct ap_arena *arena, const double *x, const double *y, size_t n)
{
	const double *a = ranks(arena, x, n), *b = ranks(arena, y, n);
	double mean = ((double)n + 1) / 2, ab = 0, aa = 0, bb = 0;

	for (size_t i = 0; i < n; i++) {
		ab += (a[i] - mean) * (b[i] - mean);
		aa += (a[i] - mean) * (a[i] - mean);
		bb += (b[i] - mean) * (b[i] - mean);
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* The least time of the n rows that are predicted best; of equal ones the first are. O(rows * n). */
static double least_of_best(const struct group *g, size_t n)
{
	double least = INFINITY, last_s = 0;
	size_t last = g->rows.n;

	for (size_t k = 0; k < n && k < g->rows.n; k++) {
		size_t best = g->rows.n;

		for (size_t i = 0; i < g->rows.n; i++) {
			double s = g->rows.v[i]->predicted_s;
			bool met = last < g->rows.n && (s < last_s || (s <= last_s && i <= last));

			if (!met && (best == g->rows.n || s < g->rows.v[best]->predicted_s))
				best = i;
		}
		last = best;
		last_s = g->rows.v[best]->predicted_s;
		least = fmin(least, g->rows.v[best]->measured_s);
	}
	return least;
}

struct ranking ranking_of(struct ap_arena *arena, const struct group *g)
{
	size_t n = g->rows.n, best = 0;
	double *measured = AP_NEW_N(arena, double, n), *predicted = AP_NEW_N(arena, double, n), least,
		error = 0;

	for (size_t i = 0; i < n; i++) {
		measured[i] = g->rows.v[i]->measured_s;
		predicted[i] = g->rows.v[i]->predicted_s;
		best = predicted[i] < predicted[best] ? i : best;
		error += fabs(predicted[i] / measured[i] - 1) * 100 / (double)n;
	}
	least = least_of_best(g, n);
	return (struct ranking){spearman(arena, predicted, measured, n),
		(least_of_best(g, 1) / least - 1) * 100, (least_of_best(g, SHOWN) / least - 1) * 100,
		error, fabs(predicted[best] / measured[best] - 1) * 100};
}
