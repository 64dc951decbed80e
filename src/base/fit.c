/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fit.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static const double probe = 0.02; /* by which a logarithm is moved to see what predictions do */
static const double widest = 0.7, narrowest = 1e-5; /* radii of steps: the first, and where a search ends */
static const double between = 0.25; /* places that are looked at for a constant that is hidden */

enum { SWEEPS = 12, DIRECTIONS = 24, /* of line searches in a step */ HALVES = 6, PLACES = 8 };

struct search {
	const struct ap_fit *fit;
	double *predicted, *slope; /* at the best values; [constant * nrow + row] by logarithms */
	double *residual; /* of the lines where the step stands: relative errors */
	double *along; /* the same as changes along a direction */
	struct kink *kinks;
	double at[AP_FIT_MOST]; /* logarithms */
	bool idle[AP_FIT_MOST]; /* no prediction changes with it, at the best values */
	double best; /* sum of errors and of what moving costs */
	int evaluations;
};

struct kink { /* where a line crosses zero, and what its slope changes by there */
	double t, weight;
};

static double weight_of(const struct ap_fit *fit, size_t row)
{
	return fit->weight ? fit->weight[row] : 1;
}

double ap_fit_error(const double *measured, const double *predicted, const double *weight, size_t n)
{
	double sum = 0, weights = 0;

	for (size_t i = 0; i < n; i++) {
		double w = weight ? weight[i] : 1;

		sum += w * fabs(predicted[i] / measured[i] - 1);
		weights += w;
	}
	return weights > 0 ? sum / weights : 0;
}

static double start_of(const struct ap_fit_constant *c)
{
	return log(fmin(fmax(c->value, c->from), c->to));
}

/* Predictions and the sum of their errors at logarithms of the constants. */
static enum ap_status evaluate(struct search *s, const double *at, double *predicted, double *sum)
{
	const struct ap_fit *fit = s->fit;
	double value[AP_FIT_MOST];

	*sum = 0;
	for (size_t c = 0; c < fit->nconstant; c++) {
		value[c] = fmin(fmax(exp(at[c]), fit->constant[c].from), fit->constant[c].to);
		*sum += fit->constant[c].stay * fabs(at[c] - start_of(&fit->constant[c]));
	}
	s->evaluations++;
	AP_TRY(fit->predict(fit->user, value, predicted));
	for (size_t i = 0; i < fit->nrow; i++)
		*sum += weight_of(fit, i) * fabs(predicted[i] / fit->measured[i] - 1);
	return AP_OK;
}

static int by_place(const void *a, const void *b)
{
	const struct kink *x = a, *y = b;

	return (x->t > y->t) - (x->t < y->t);
}

/* Where on from .. to a sum of |residual + t * along| is least, and some |moved + t * direction| beside it: a
 * convex function, whose slope rises by twice a kink's weight at each. */
static double line_search(struct search *s, const double *step, const double *direction, double from,
	double to)
{
	const struct ap_fit *fit = s->fit;
	double slope = 0;
	size_t n = 0;

	for (size_t i = 0; i < fit->nrow + fit->nconstant; i++) {
		bool is_row = i < fit->nrow;
		size_t c = is_row ? 0 : i - fit->nrow;
		double w = is_row ? weight_of(fit, i) : fit->constant[c].stay;
		double rise = is_row ? s->along[i] : direction[c];
		double value = is_row ? s->residual[i] : s->at[c] + step[c] - start_of(&fit->constant[c]);

		if (!(w > 0) || !(fabs(rise) > 1e-12))
			continue;
		s->kinks[n++] = (struct kink){-value / rise, w * fabs(rise)};
		slope -= w * fabs(rise);
	}
	qsort(s->kinks, n, sizeof *s->kinks, by_place);
	for (size_t i = 0; i < n; i++) {
		slope += 2 * s->kinks[i].weight;
		if (slope >= 0)
			return fmin(fmax(s->kinks[i].t, from), to);
	}
	return 0; /* nothing changes along it */
}

/* Direction k of a sweep: each constant, each two of them together and against each other, and then some that
 * mix all, always the same. */
static bool direction_of(size_t k, size_t n, uint64_t *seed, double *direction)
{
	size_t pairs = n * (n - 1) / 2;

	memset(direction, 0, n * sizeof *direction);
	if (k < n) {
		direction[k] = 1;
		return true;
	}
	k -= n;
	if (k < 2 * pairs) {
		size_t a = 0, pair = k / 2;

		while (pair >= n - 1 - a)
			pair -= n - 1 - a++;
		direction[a] = 1;
		direction[a + 1 + pair] = k % 2 ? -1 : 1;
		return true;
	}
	k -= 2 * pairs;
	for (size_t c = 0; c < n; c++) {
		*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		direction[c] = (double)(*seed >> 40) / 0x1p23 - 1;
	}
	return n > 2 && k < DIRECTIONS;
}

/* The step within a radius that is best by the lines; residuals are those of the best values. */
static void step_by_lines(struct search *s, double radius, double *step)
{
	const struct ap_fit *fit = s->fit;
	double direction[AP_FIT_MOST];
	uint64_t seed = 1;

	memset(step, 0, fit->nconstant * sizeof *step);
	for (size_t i = 0; i < fit->nrow; i++)
		s->residual[i] = s->predicted[i] / fit->measured[i] - 1;
	for (int sweep = 0; sweep < SWEEPS; sweep++)
		for (size_t k = 0; direction_of(k, fit->nconstant, &seed, direction); k++) {
			double from = -INFINITY, to = INFINITY, t;

			for (size_t c = 0; c < fit->nconstant; c++)
				direction[c] = s->idle[c] ? 0 : direction[c];
			for (size_t c = 0; c < fit->nconstant; c++) {
				double low = fmax(-radius, log(fit->constant[c].from) - s->at[c]) - step[c];
				double high = fmin(radius, log(fit->constant[c].to) - s->at[c]) - step[c];

				if (direction[c] > 0 || direction[c] < 0) {
					double a = low / direction[c], b = high / direction[c];

					from = fmax(from, fmin(a, b));
					to = fmin(to, fmax(a, b));
				}
			}
			if (!(from < to) || !isfinite(from))
				continue;
			for (size_t i = 0; i < fit->nrow; i++) {
				s->along[i] = 0;
				for (size_t c = 0; c < fit->nconstant; c++)
					s->along[i] += direction[c] * s->slope[c * fit->nrow + i];
			}
			t = line_search(s, step, direction, from, to);
			for (size_t i = 0; i < fit->nrow; i++)
				s->residual[i] += t * s->along[i];
			for (size_t c = 0; c < fit->nconstant; c++)
				step[c] += t * direction[c];
		}
}

/* How relative errors change with each constant's logarithm, from the best values. */
static enum ap_status find_slopes(struct search *s, double *predicted, double radius)
{
	const struct ap_fit *fit = s->fit;

	for (size_t c = 0; c < fit->nconstant; c++) {
		double at[AP_FIT_MOST], sum, room = log(fit->constant[c].to) - s->at[c];
		double move = fmin(probe, radius);

		memcpy(at, s->at, sizeof at);
		move = room < move ? -move : move;
		at[c] = fmax(s->at[c] + move, log(fit->constant[c].from));
		move = at[c] - s->at[c];
		s->idle[c] = true;
		memset(s->slope + c * fit->nrow, 0, fit->nrow * sizeof *s->slope);
		if (!(fabs(move) > 0))
			continue;
		AP_TRY(evaluate(s, at, predicted, &sum));
		for (size_t i = 0; i < fit->nrow; i++) {
			double slope = (predicted[i] - s->predicted[i]) / fit->measured[i] / move;

			s->slope[c * fit->nrow + i] = slope;
			s->idle[c] = s->idle[c] && fabs(slope) < 1e-9;
		}
	}
	return AP_OK;
}

/* Sets *best to a better place of a constant on which nothing depends near its value, because something
 * longer hides it: on the way to an end of its range, where predictions begin to change and some way
 * beyond. */
static enum ap_status scan(struct search *s, size_t c, double end, double *predicted, double *best)
{
	size_t bytes = s->fit->nrow * sizeof *predicted;
	double at[AP_FIT_MOST], near = s->at[c], far = end, sum;

	memcpy(at, s->at, sizeof at);
	at[c] = end;
	AP_TRY(evaluate(s, at, predicted, &sum));
	if (!memcmp(predicted, s->predicted, bytes))
		return AP_OK;
	for (int k = 0; k < HALVES; k++) {
		at[c] = (near + far) / 2;
		AP_TRY(evaluate(s, at, predicted, &sum));
		*(memcmp(predicted, s->predicted, bytes) ? &far : &near) = at[c];
	}
	for (int k = 0; k < PLACES; k++) {
		double beyond = k * (far > near ? between : -between);

		at[c] = far > near ? fmin(far + beyond, end) : fmax(far + beyond, end);
		AP_TRY(evaluate(s, at, predicted, &sum));
		if (sum < s->best) {
			s->best = sum;
			*best = at[c];
		}
	}
	return AP_OK;
}

/* Moves what is idle to better places. */
static enum ap_status wake(struct search *s, double *predicted)
{
	for (size_t c = 0; c < s->fit->nconstant; c++) {
		double best = s->at[c];

		if (!s->idle[c])
			continue;
		AP_TRY(scan(s, c, log(s->fit->constant[c].to), predicted, &best));
		AP_TRY(scan(s, c, log(s->fit->constant[c].from), predicted, &best));
		s->at[c] = best;
		AP_TRY(evaluate(s, s->at, s->predicted, &s->best));
	}
	return AP_OK;
}

/* Steps until none is better; *tried is room for predictions, as is s->predicted, with which it is
 * exchanged. */
static enum ap_status descend(struct search *s, double **tried, int most)
{
	const struct ap_fit *fit = s->fit;
	double radius = widest, probed = 0, sum; /* probed: radius of the slopes; 0: none are there */

	while (radius >= narrowest && s->evaluations < most) {
		double step[AP_FIT_MOST], at[AP_FIT_MOST], reach = 0;

		if (!(probed > 0) || radius < probed / 4) {
			AP_TRY(find_slopes(s, *tried, radius));
			probed = fmin(probe, radius);
		}
		step_by_lines(s, radius, step);
		for (size_t c = 0; c < fit->nconstant; c++) {
			at[c] = s->at[c] + step[c];
			reach = fmax(reach, fabs(step[c]));
		}
		if (reach < narrowest)
			return AP_OK;
		AP_TRY(evaluate(s, at, *tried, &sum));
		if (sum < s->best) {
			double *other = s->predicted;

			memcpy(s->at, at, fit->nconstant * sizeof *at);
			s->predicted = *tried;
			*tried = other;
			s->best = sum;
			probed = 0;
			radius = reach < radius / 2 ? fmax(2 * reach, narrowest) : radius;
		} else {
			radius = fmin(radius, reach) / 4;
		}
	}
	return AP_OK;
}

enum ap_status ap_fit_least(struct ap_ctx *ctx, const struct ap_fit *fit, struct ap_fit_result *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	size_t n = fit->nconstant, rows = fit->nrow ? fit->nrow : 1;
	int most = fit->evaluations ? fit->evaluations : 40 * (int)(n ? n : 1);
	double *tried = AP_NEW_N(ctx->scratch, double, rows), best;
	struct search s = {.fit = fit, .predicted = AP_NEW_N(ctx->scratch, double, rows),
		.slope = AP_NEW_N(ctx->scratch, double, rows * AP_FIT_MOST),
		.residual = AP_NEW_N(ctx->scratch, double, rows),
		.along = AP_NEW_N(ctx->scratch, double, rows),
		.kinks = AP_NEW_N(ctx->scratch, struct kink, rows + AP_FIT_MOST)};

	assert(n <= AP_FIT_MOST);
	for (size_t c = 0; c < n; c++) {
		assert(fit->constant[c].from > 0 && fit->constant[c].from <= fit->constant[c].to);
		s.at[c] = start_of(&fit->constant[c]);
	}
	AP_TRY(evaluate(&s, s.at, s.predicted, &s.best));
	*out = (struct ap_fit_result){.before = ap_fit_error(fit->measured, s.predicted, fit->weight,
		fit->nrow)};
	do {
		AP_TRY(descend(&s, &tried, most));
		best = s.best;
		if (s.evaluations < most)
			AP_TRY(wake(&s, tried));
	} while (s.best < best && s.evaluations < most);
	for (size_t c = 0; c < n; c++)
		out->value[c] = fmin(fmax(exp(s.at[c]), fit->constant[c].from), fit->constant[c].to);
	out->error = ap_fit_error(fit->measured, s.predicted, fit->weight, fit->nrow);
	out->evaluations = s.evaluations;
	ap_arena_release(ctx->scratch, mark);
	return AP_OK;
}
