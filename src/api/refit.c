/* SPDX-License-Identifier: Apache-2.0 */
#include "api/refit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/fit.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/constant.h"
#include "hw/profile_write.h"

enum { DIGITS = 4, EVALUATIONS = 16, PLACES = 8, MOST_FREE = 6 };

static const double plausible = 3; /* times as much, or as little */
static const double small = 0.01; /* an error that wants no explanation */
static const double tie = 0.004; /* errors that are told apart */

struct sample { /* what was measured of a run: its time, or the memory of its fullest device */
	size_t run;
	bool is_bytes;
};

struct fitting {
	struct ap_ctx *ctx;
	size_t n;
	struct ap_run_held *run;
	AP_VEC(struct sample) samples;
	double *measured;
	const char *path[AP_FIT_MOST]; /* of the numbers that are moved */
	size_t nfree;
};

/* The number of a path in a run's profiles, of the software or else of the chip; NULL: they have none. */
static const struct ap_constant *number_of(struct ap_arena *arena, struct ap_run_held *run, const char *path)
{
	struct ap_constant *list;
	size_t n = ap_software_constants(arena, &run->software, &list);
	const struct ap_constant *c = ap_constant_find(list, n, path);

	if (c)
		return c;
	n = ap_chip_constants(arena, &run->chip, &list);
	return ap_constant_find(list, n, path);
}

static void set_all(struct fitting *f, const double *values)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);

	for (size_t r = 0; r < f->n; r++)
		for (size_t i = 0; i < f->nfree; i++) {
			const struct ap_constant *c = number_of(f->ctx->scratch, &f->run[r], f->path[i]);

			if (c)
				ap_constant_set(c, fmin(fmax(values[i], c->least), c->most));
		}
	ap_arena_release(f->ctx->scratch, mark);
}

static enum ap_status predict(void *user, const double *values, double *predicted)
{
	struct fitting *f = user;
	struct ap_run_predicted *all = AP_NEW_N(f->ctx->arena, struct ap_run_predicted, f->n);

	set_all(f, values);
	for (size_t r = 0; r < f->n; r++)
		ap_run_predict(f->ctx, &f->run[r], &all[r]);
	for (size_t i = 0; i < f->samples.n; i++) {
		const struct sample *s = &f->samples.v[i];

		predicted[i] = s->is_bytes ? (double)all[s->run].bytes[f->run[s->run].memory_kind]
			: all[s->run].step_s;
	}
	return ap_ctx_stopped(f->ctx) ? AP_LIMIT : AP_OK;
}

/* A fit of the runs that have both times, of times alone or of memory, too. */
static struct fitting begin(struct ap_ctx *ctx, size_t n, struct ap_run_held *run, bool memory)
{
	struct fitting f = {.ctx = ctx, .n = n, .run = run};

	for (size_t r = 0; r < n; r++) {
		if (run[r].graph && run[r].found.settled.read)
			AP_PUSH(ctx->arena, f.samples, ((struct sample){r, false}));
		if (run[r].graph && memory && run[r].memory_kind >= 0)
			AP_PUSH(ctx->arena, f.samples, ((struct sample){r, true}));
	}
	f.measured = AP_NEW_N(ctx->arena, double, f.samples.n + 1);
	for (size_t i = 0; i < f.samples.n; i++) {
		const struct ap_run_held *of = &run[f.samples.v[i].run];

		f.measured[i] = f.samples.v[i].is_bytes ? (double)of->memory_bytes
			: of->found.settled.median_s;
	}
	return f;
}

static double rounded(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.*e", DIGITS - 1, value);
	return ap_strtod(text, NULL);
}

/* Sets *term to the best value of one number alone. False: it changes nothing, or makes nothing better. */
static enum ap_status move_alone(struct fitting *f, const struct ap_constant *c, double was, double error,
	struct ap_compared_term *term, bool *better)
{
	struct ap_fit_constant constant = {.from = fmax(c->from, was / plausible),
		.to = was > 0 ? fmin(c->to, was * plausible) : c->to, .value = was};
	const struct ap_fit problem = {.constant = &constant, .nconstant = 1, .measured = f->measured,
		.nrow = f->samples.n, .predict = predict, .user = f, .evaluations = EVALUATIONS};
	double *at_from = AP_NEW_N(f->ctx->arena, double, f->samples.n);
	double *at_to = AP_NEW_N(f->ctx->arena, double, f->samples.n), value, least = error;
	struct ap_fit_result result;

	*better = false;
	f->path[0] = c->path;
	f->nfree = 1;
	if (!(constant.from < constant.to))
		return AP_OK;
	AP_TRY(predict(f, &constant.from, at_from));
	AP_TRY(predict(f, &constant.to, at_to));
	if (!memcmp(at_from, at_to, f->samples.n * sizeof *at_to))
		return AP_OK;
	if (!(was > 0)) /* far from where it may have to go: a fit begins at the best of some places */
		for (int k = 1; k < PLACES; k++) {
			double at = constant.from * pow(constant.to / constant.from, (double)k / PLACES);

			AP_TRY(predict(f, &at, at_to));
			if (ap_fit_error(f->measured, at_to, NULL, f->samples.n) < least) {
				least = ap_fit_error(f->measured, at_to, NULL, f->samples.n);
				constant.value = at;
			}
		}
	AP_TRY(ap_fit_least(f->ctx, &problem, &result));
	value = fmin(fmax(rounded(result.value[0]), constant.from), constant.to);
	AP_TRY(predict(f, &value, at_to));
	term->is = value;
	term->error = ap_fit_error(f->measured, at_to, NULL, f->samples.n);
	*better = term->error < error - tie;
	return AP_OK;
}

static double moved(const struct ap_compared_term *t)
{
	return t->was > 0 && t->is > 0 ? fabs(log(t->is / t->was)) : INFINITY;
}

static int by_error(const void *a, const void *b)
{
	const struct ap_compared_term *x = a, *y = b;
	double ex = floor(x->error / tie), ey = floor(y->error / tie), mx = moved(x), my = moved(y);

	if (ex < ey || ex > ey)
		return ex < ey ? -1 : 1;
	if (mx < my || mx > my)
		return mx < my ? -1 : 1;
	return strcmp(x->path, y->path);
}

enum ap_status ap_refit_suspects(struct ap_ctx *ctx, size_t n, struct ap_run_held *run,
	struct ap_compared *out)
{
	struct fitting f = begin(ctx, n, run, false);
	struct ap_run_held *saved;
	double *now = AP_NEW_N(ctx->arena, double, f.samples.n + 1);
	AP_VEC(struct ap_compared_term) terms = {0};

	if (!f.samples.n)
		return AP_OK;
	AP_TRY(predict(&f, NULL, now));
	out->error = ap_fit_error(f.measured, now, NULL, f.samples.n);
	if (out->error < small)
		return AP_OK;
	saved = ap_arena_memdup(ctx->arena, run, n * sizeof *run);
	for (int of_chip = 0; of_chip < 2; of_chip++) {
		struct ap_run_held *first = &run[f.samples.v[0].run];
		struct ap_constant *list;
		size_t count = of_chip ? ap_chip_constants(ctx->arena, &first->chip, &list)
			: ap_software_constants(ctx->arena, &first->software, &list);

		for (size_t i = 0; i < count; i++) {
			struct ap_compared_term term = {.path = list[i].path, .unit = list[i].unit,
				.was = ap_constant_get(&list[i]),
				.profile = ap_arena_printf(ctx->arena, "%s %s", of_chip ? "chip" : "software",
					of_chip ? first->chip.name : first->software.name)};
			bool better;

			if (!(list[i].to > 0))
				continue;
			AP_TRY(move_alone(&f, &list[i], term.was, out->error, &term, &better));
			if (better)
				AP_PUSH(ctx->arena, terms, term);
			for (size_t r = 0; r < n; r++) {
				run[r].software = saved[r].software;
				run[r].chip = saved[r].chip;
			}
		}
	}
	if (terms.n)
		qsort(terms.v, terms.n, sizeof *terms.v, by_error);
	out->term = terms.v;
	out->nterm = terms.n;
	return AP_OK;
}

/* Numbers of a software profile that a few runs may move, and what moving one by a factor e costs, in units
 * of the error of one run: what differs from machine to machine moves first, what belongs to the software
 * last. */
static const struct { const char *path; double stay; } free_numbers[] = {
	{"kernel_slowdown", 0.05},
	{"collective_slowdown", 0.05},
	{"launch_s", 0.2},
	{"gradient_exposed", 0.2},
	{"overlap_slowdown", 0.2},
	{"context_bytes", 0.05},
};

_Static_assert(AP_COUNT(free_numbers) <= MOST_FREE, "a software profile has at most six fitted numbers");

static enum ap_status check_one_software(struct ap_ctx *ctx, size_t n, const struct ap_run_held *run)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(run[i].software.sha256, run[0].software.sha256) != 0)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"--profile: the plans are of two software profiles, %s and %s; expected one, "
				"which --software can say", run[0].software.name, run[i].software.name);
	return AP_OK;
}

static const char *logs_of(struct ap_arena *arena, size_t n, const struct ap_run_held *run)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s", i ? ", " : "", run[i].found.log);
	return s.s;
}

/* What a fit makes small: errors, and what moving numbers costs. */
static double objective(const struct fitting *f, const struct ap_fit_constant *constants,
	const double *values, double error)
{
	double sum = error * (double)f->samples.n;

	for (size_t i = 0; i < f->nfree; i++)
		sum += constants[i].stay * fabs(log(values[i] / constants[i].value));
	return sum;
}

struct choice { /* numbers that are moved, and to what */
	size_t n;
	size_t number[MOST_FREE]; /* of free_numbers */
	double value[MOST_FREE];
	double objective;
};

/* Fits the numbers of a choice, and one more where `with` is one. */
static enum ap_status fit_choice(struct fitting *f, const double *start, struct choice *c, size_t with)
{
	struct ap_fit_constant constants[AP_FIT_MOST];
	struct ap_fit problem = {.constant = constants, .measured = f->measured, .nrow = f->samples.n,
		.predict = predict, .user = f};
	struct ap_fit_result result;

	c->number[c->n++] = with;
	for (size_t i = 0; i < c->n; i++) {
		const char *path = free_numbers[c->number[i]].path;
		const struct ap_constant *number = number_of(f->ctx->arena, &f->run[0], path);

		constants[i] = (struct ap_fit_constant){.from = number->from, .to = number->to,
			.value = fmin(fmax(start[c->number[i]], number->from), number->to),
			.stay = free_numbers[c->number[i]].stay};
		f->path[i] = path;
	}
	f->nfree = problem.nconstant = c->n;
	AP_TRY(ap_fit_least(f->ctx, &problem, &result));
	memcpy(c->value, result.value, c->n * sizeof *c->value);
	c->objective = objective(f, constants, result.value, result.error);
	return AP_OK;
}

/* What strategies of one model on one machine differ by, where nothing but the strategy does: of published
 * runs, the median of predicted / measured is 3 to 4 % off that of the other runs of their cell. */
static const double spread = 0.04;

/*
 * Moves what times are fitted to from what was measured towards what is predicted now: what a run shows of
 * its strategy alone, and not of its machine, is no matter of a profile. Of errors e = ln(predicted /
 * measured) the part sum(e^2) / (sum(e^2) + spread^2) is taken for the machine's (James and Stein's
 * estimator), so that a run whose error is no more than usual moves little, and one that is far off all
 * the way but for half the spread at most.
 */
static void shrink(struct fitting *f, const double *now)
{
	double sum = 0, others;

	for (size_t i = 0; i < f->samples.n; i++)
		if (!f->samples.v[i].is_bytes)
			sum += pow(log(now[i] / f->measured[i]), 2);
	others = spread * spread / (sum + spread * spread);
	for (size_t i = 0; i < f->samples.n; i++)
		if (!f->samples.v[i].is_bytes)
			f->measured[i] *= exp(others * log(now[i] / f->measured[i]));
}

/* Chooses numbers one after the other, each the one with which the runs are explained best, while that is
 * better by more than a little: so one run moves one number, and none that it does not show. */
static enum ap_status choose(struct fitting *f, const double *start, struct choice *out)
{
	struct ap_run_held *saved = ap_arena_memdup(f->ctx->arena, f->run, f->n * sizeof *saved);
	double *now = AP_NEW_N(f->ctx->arena, double, f->samples.n);

	f->nfree = 0;
	AP_TRY(predict(f, NULL, now));
	shrink(f, now);
	*out = (struct choice){.objective = ap_fit_error(f->measured, now, NULL, f->samples.n) *
		(double)f->samples.n};
	for (;;) {
		struct choice best = *out;

		for (size_t k = 0; k < AP_COUNT(free_numbers) && out->n < f->samples.n; k++) {
			struct choice with = *out;
			bool is_in = false;

			for (size_t i = 0; i < out->n; i++)
				is_in = is_in || out->number[i] == k;
			if (is_in)
				continue;
			AP_TRY(fit_choice(f, start, &with, k));
			if (with.objective < best.objective)
				best = with;
			for (size_t r = 0; r < f->n; r++)
				f->run[r].software = saved[r].software;
		}
		if (best.n == out->n || best.objective > out->objective - tie * (double)f->samples.n)
			return AP_OK;
		*out = best;
	}
}

enum ap_status ap_refit(struct ap_ctx *ctx, size_t n, struct ap_run_held *run, const char *name,
	struct ap_compared *out, struct ap_str *text)
{
	struct fitting f = begin(ctx, n, run, true);
	struct ap_compared_term *terms = AP_NEW_N(ctx->arena, struct ap_compared_term, MOST_FREE);
	const char *source = ap_arena_printf(ctx->arena, "fitted to %zu of one's own runs: %s", n,
		logs_of(ctx->arena, n, run));
	struct ap_software profile = run[0].software;
	double start[AP_COUNT(free_numbers)], *predicted = AP_NEW_N(ctx->arena, double, f.samples.n);
	struct ap_constant *list;
	struct choice choice;
	size_t count;

	AP_TRY(check_one_software(ctx, n, run));
	for (size_t i = 0; i < AP_COUNT(free_numbers); i++)
		start[i] = ap_constant_get(number_of(ctx->arena, &run[0], free_numbers[i].path));
	AP_TRY(choose(&f, start, &choice));
	count = ap_software_constants(ctx->arena, &profile, &list);
	for (size_t i = 0; i < choice.n; i++) {
		const struct ap_constant *c = ap_constant_find(list, count,
			free_numbers[choice.number[i]].path);

		choice.value[i] = fmin(fmax(rounded(choice.value[i]), c->from), c->to);
		terms[i] = (struct ap_compared_term){.profile = name, .path = c->path, .unit = c->unit,
			.was = ap_constant_get(c), .is = choice.value[i]};
		ap_constant_set(c, choice.value[i]);
		profile.sources = ap_sources_with(ctx->arena, profile.sources, c->path, source);
		f.path[i] = c->path;
	}
	f.nfree = choice.n;
	AP_TRY(predict(&f, choice.value, predicted));
	for (size_t i = 0; i < f.samples.n; i++)
		if (!f.samples.v[i].is_bytes)
			run[f.samples.v[i].run].found.fitted_s = predicted[i];
	for (size_t i = 0; i < choice.n; i++)
		terms[i].error = ap_fit_error(f.measured, predicted, NULL, f.samples.n);
	out->fitted = terms;
	out->nfitted = choice.n;
	profile.name = name;
	profile.nalias = 0;
	ap_software_write(&profile, text);
	return AP_OK;
}
