/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits the constants of one profile to published measurements, rows as `fidelity` reads them:
 *
 *   calibrate ROWS.csv [--chip NAME] [--software NAME] [--free PATH,...] [--output FILE.json]
 * [--leave-one-out] [--link-curve FILE]
 * Fitted is the software profile, on rows of its frameworks (on this chip, if one is named), or, without
 * --software, the chip, on its rows; NAME.json reads a profile that replaces the built-in one of its name.
 * Free are the numbers of which the profile says "fitted to ..."; --free names others. It prints the
 * constants, the errors by source as they were, as they are and cross-validated in five parts, and with
 * --leave-one-out what constants that are fitted without a source predict of it. The same input gives the
 * same bytes. --link-curve gives a chip measured collectives first, as it does for the program. Exit
 * status as that of fidelity; 2 also where more is free than a profile may have fitted.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/fit.h"
#include "base/num.h"
#include "base/vec.h"
#include "errors.h"
#include "hw/constant.h"
#include "hw/link_curve.h"
#include "hw/profile_write.h"
#include "priced.h"
#include "report.h"
#include "rows.h"

const char *const bench_program = "calibrate";

enum { FOLDS = 5, MOST_SOFTWARE = 6, MOST_CHIP = 3, DIGITS = 3 };

struct sample { /* a measurement: the time of a row, or its memory */
	struct row *row;
	bool is_bytes;
	unsigned fold;
};

struct calibration {
	struct ap_ctx *ctx;
	struct ap_chip chip;
	struct ap_software software;
	bool is_software; /* that is fitted, else the chip */
	struct ap_constant *constants; /* of the one that is fitted: fields of it */
	size_t nconstant;
	const struct ap_constant *free[AP_FIT_MOST];
	double start[AP_FIT_MOST];
	size_t nfree;
	struct table rows; /* of the profile, judged */
	struct priced **priced;
	struct { struct sample *v; size_t n, cap; } samples;
	double *measured;
	const double *weight; /* of samples in the fit at hand; 0: it is not predicted; NULL: all are */
	struct profiles profiles; /* a folder that holds the profile with the values that are tried */
};

/* The text of the profile as it is. */
static const char *profile_text(struct calibration *c)
{
	struct ap_str text;

	ap_str_init(&text, c->ctx->arena);
	if (c->is_software)
		ap_software_write(&c->software, &text);
	else
		ap_chip_write(&c->chip, &text);
	return text.s;
}

static const char *profile_name(const struct calibration *c)
{
	return c->is_software ? c->software.name : c->chip.name;
}

static struct ap_profile_sources *sources(struct calibration *c)
{
	return c->is_software ? &c->software.sources : &c->chip.sources;
}

static void write_text(const char *path, const char *text)
{
	FILE *out = open_out(path);

	fputs(text, out);
	close_out(out, path);
}

static const char *tried_path(const struct calibration *c)
{
	return ap_arena_printf(c->ctx->arena, "%s/%s.json", c->profiles.given, profile_name(c));
}

/* Predicts the samples that count with these values of what is free; others are as they were. */
static enum ap_status predict(void *user, const double *values, double *predicted)
{
	struct calibration *c = user;
	struct ap_ctx own = *c->ctx; /* of this call: there are hundreds */
	struct profiles profiles = {.ctx = &own, .given = c->profiles.given};
	bool *counts = AP_NEW_N(c->ctx->scratch, bool, c->rows.n);

	own.arena = ap_arena_create_like(c->ctx->arena);
	for (size_t i = 0; i < c->nfree; i++)
		ap_constant_set(c->free[i], values[i]);
	write_text(tried_path(c), profile_text(c));
	for (size_t i = 0; i < c->samples.n; i++)
		if (!c->weight || c->weight[i] > 0)
			counts[c->samples.v[i].row - c->rows.v] = true;
	for (size_t i = 0; i < c->rows.n; i++)
		if (counts[i]) {
			priced_predict(c->priced[i], &profiles, false, &c->rows.v[i]);
			c->rows.v[i].reason = NULL; /* it goes with the call */
		}
	remove_profiles(&profiles);
	ap_arena_destroy(own.arena);
	for (size_t i = 0; i < c->samples.n; i++) {
		const struct sample *s = &c->samples.v[i];

		predicted[i] = s->is_bytes ? (double)s->row->predicted_bytes : s->row->predicted_s;
	}
	return AP_OK;
}

/* A value as a profile states it, in a few digits. */
static double rounded(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.*e", DIGITS - 1, value);
	return ap_strtod(text, NULL);
}

/* Fits what is free to samples of these weights, from given values on, which become the fitted ones,
 * rounded. */
static void fit(struct calibration *c, const double *weight, double *values)
{
	struct ap_fit_constant constants[AP_FIT_MOST];
	struct ap_fit_result result;
	const struct ap_fit problem = {.constant = constants, .nconstant = c->nfree, .measured = c->measured,
		.weight = weight, .nrow = c->samples.n, .predict = predict, .user = c};

	for (size_t i = 0; i < c->nfree; i++)
		constants[i] = (struct ap_fit_constant){c->free[i]->from, c->free[i]->to, values[i], 0};
	c->weight = weight;
	if (ap_fit_least(c->ctx, &problem, &result) != AP_OK)
		die(EXIT_IO, profile_name(c), "it cannot be fitted");
	c->weight = NULL;
	for (size_t i = 0; i < c->nfree; i++)
		values[i] = fmin(fmax(rounded(result.value[i]), c->free[i]->from), c->free[i]->to);
}

/* ---- what is fitted, and to what ---- */

static unsigned fold_of(const char *id)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * UINT64_C(1099511628211);
	return (unsigned)((hash >> 32) % FOLDS);
}

static void free_constant(struct calibration *c, const char *path)
{
	const struct ap_constant *constant = ap_constant_find(c->constants, c->nconstant, path);

	if (!constant)
		die(EXIT_USAGE, profile_name(c), ap_arena_printf(c->ctx->arena, "there is no number %s",
			path));
	if (!(constant->to > 0))
		die(EXIT_USAGE, profile_name(c), ap_arena_printf(c->ctx->arena,
			"%s is not a number to fit: it is stated", path));
	if (c->nfree == (c->is_software ? MOST_SOFTWARE : MOST_CHIP))
		die(EXIT_USAGE, profile_name(c), ap_arena_printf(c->ctx->arena,
			"more numbers are free than the %d that may be fitted", (int)c->nfree));
	c->free[c->nfree++] = constant;
}

/* Frees the numbers that a list names, or without one those that were fitted before. */
static void choose_free(struct calibration *c, const char *list)
{
	const char *const named = list;

	for (size_t len; list && *list; list += len + (list[len] != '\0')) {
		len = strcspn(list, ",");
		free_constant(c, ap_arena_strndup(c->ctx->arena, list, len));
	}
	for (size_t k = 0; !named && k < c->nconstant; k++)
		if (ap_basis_of(ap_source_of(*sources(c), c->constants[k].path)) == AP_BASIS_FITTED &&
			c->constants[k].to > 0)
			free_constant(c, c->constants[k].path);
	for (size_t i = 0; i < c->nfree; i++)
		c->start[i] = ap_constant_get(c->free[i]);
}

static void choose_rows(struct calibration *c, struct table *all, const char *chip, const char *software)
{
	struct ap_arena *arena = c->ctx->arena;
	bool fits_bytes = false;

	for (size_t i = 0; i < c->nfree; i++)
		fits_bytes = fits_bytes || !strcmp(c->free[i]->unit, "B");
	for (size_t i = 0; i < all->n; i++) {
		struct priced *p = priced_open(arena, &all->v[i]);
		const struct run *run = priced_run(p);

		if (!run || !is_judged(&all->v[i]) || (chip && strcmp(run->device->chip, chip) != 0) ||
			(software && strcmp(run->framework->software, software) != 0)) {
			priced_close(p);
			continue;
		}
		AP_PUSH(arena, c->rows, all->v[i]);
		priced_close(p);
	}
	c->priced = AP_NEW_N(arena, struct priced *, c->rows.n + 1);
	for (size_t i = 0; i < c->rows.n; i++) {
		struct row *r = &c->rows.v[i];

		c->priced[i] = priced_open(arena, r);
		priced_only(c->priced[i], fits_bytes ? PRICED_MEASURED : PRICED_SECONDS);
		priced_predict(c->priced[i], &c->profiles, false, r);
		if (r->predicted_s > 0 && r->measured_s > 0)
			AP_PUSH(arena, c->samples, ((struct sample){r, false, fold_of(r->field[COL_id])}));
		if (fits_bytes && r->predicted_bytes && r->measured_bytes)
			AP_PUSH(arena, c->samples, ((struct sample){r, true, fold_of(r->field[COL_id])}));
	}
	if (!c->samples.n)
		die(EXIT_CSV, profile_name(c), "no row is of this profile, judged and expressed");
	c->measured = AP_NEW_N(arena, double, c->samples.n);
	for (size_t i = 0; i < c->samples.n; i++)
		c->measured[i] = c->samples.v[i].is_bytes ? (double)c->samples.v[i].row->measured_bytes
			: c->samples.v[i].row->measured_s;
}

/* ---- what is printed ---- */

struct source { /* of rows */
	const char *name;
	size_t n;
	double before, after, crossed, without; /* mean amounts of errors, in percent; without: left out of
			the fit */
};

static double error_of(const struct calibration *c, size_t i, const double *predicted)
{
	return fabs(predicted[i] / c->measured[i] - 1) * 100;
}

static const char *counts(struct ap_arena *arena, const struct source *v, size_t n)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s (%zu)", i ? ", " : "", v[i].name, v[i].n);
	return s.s;
}

static void print_constants(struct calibration *c, const double *values)
{
	size_t number[] = {0, 0, 0, 0};
	char was[32], is[32];

	printf("| constant of %s | unit | was | fitted |\n| --- | --- | --- | --- |\n", profile_name(c));
	for (size_t i = 0; i < c->nfree; i++)
		printf("| %s | %s | %s | %s |\n", c->free[i]->path, c->free[i]->unit,
			ap_format_double(c->start[i], was), ap_format_double(values[i], is));
	for (size_t i = 0; i < c->nconstant; i++)
		number[ap_basis_of(ap_source_of(*sources(c), c->constants[i].path))]++;
	printf("\nOf %zu numbers", c->nconstant);
	for (size_t b = AP_BASIS_PUBLISHED; b <= AP_BASIS_ASSUMED; b++)
		printf("%s %zu %s", b > AP_BASIS_PUBLISHED ? "," : "", number[b],
			ap_basis_name((enum ap_basis)b));
	printf(".\n");
}

static void calibrate(struct calibration *c, bool leave_one_out, const char *output)
{
	struct ap_arena *arena = c->ctx->arena;
	size_t n = c->samples.n;
	double *before = AP_NEW_N(arena, double, n), *after = AP_NEW_N(arena, double, n);
	double *crossed = AP_NEW_N(arena, double, n), *tried = AP_NEW_N(arena, double, n);
	double *weight = AP_NEW_N(arena, double, n), values[AP_FIT_MOST] = {0};
	struct { struct source *v; size_t n, cap; } all = {0};
	struct source sum = {"all", n, 0, 0, 0, 0};

	memcpy(values, c->start, sizeof values);
	predict(c, values, before);
	fit(c, NULL, values);
	predict(c, values, after);
	for (unsigned k = 0; k < FOLDS; k++) {
		double of_fold[AP_FIT_MOST];

		memcpy(of_fold, values, sizeof of_fold);
		for (size_t i = 0; i < n; i++)
			weight[i] = c->samples.v[i].fold != k;
		fit(c, weight, of_fold);
		predict(c, of_fold, tried);
		for (size_t i = 0; i < n; i++)
			if (c->samples.v[i].fold == k)
				crossed[i] = tried[i];
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = source_of(c->samples.v[i].row);
		size_t k = 0;

		while (k < all.n && strcmp(all.v[k].name, name) != 0)
			k++;
		if (k == all.n)
			AP_PUSH(arena, all, (struct source){.name = name});
		for (struct source *s = &all.v[k]; s; s = s == &sum ? NULL : &sum) {
			s->n += s != &sum;
			s->before += error_of(c, i, before);
			s->after += error_of(c, i, after);
			s->crossed += error_of(c, i, crossed);
		}
	}
	for (size_t k = 0; leave_one_out && k < all.n; k++) {
		double rest[AP_FIT_MOST];

		memcpy(rest, values, sizeof rest);
		for (size_t i = 0; i < n; i++)
			weight[i] = strcmp(source_of(c->samples.v[i].row), all.v[k].name) != 0;
		if (all.n > 1)
			fit(c, weight, rest);
		predict(c, all.n > 1 ? rest : c->start, tried);
		for (size_t i = 0; i < n; i++)
			all.v[k].without += weight[i] > 0 ? 0 : error_of(c, i, tried);
		sum.without += all.v[k].without;
	}
	print_constants(c, values);
	printf("\n| source | measurements | was %% | fitted %% | cross-validated %% |%s\n"
		"| --- | --- | --- | --- | --- |%s\n", leave_one_out ? " fitted without it % |" : "",
		leave_one_out ? " --- |" : "");
	for (size_t k = 0; k <= all.n; k++) {
		const struct source *s = k < all.n ? &all.v[k] : &sum;
		double rows = (double)s->n;

		printf("| %s | %zu | %.1f | %.1f | %.1f |", s->name, s->n, s->before / rows, s->after / rows,
			s->crossed / rows);
		if (leave_one_out && all.n > 1)
			printf(" %.1f |", s->without / rows);
		else if (leave_one_out)
			printf(" |");
		putchar('\n');
	}
	for (size_t i = 0; i < c->nfree; i++) {
		ap_constant_set(c->free[i], values[i]);
		*sources(c) = ap_sources_with(arena, *sources(c), c->free[i]->path, ap_arena_printf(arena,
			"fitted to %zu published runs: %s", n, counts(arena, all.v, all.n)));
	}
	if (output)
		write_text(output, profile_text(c));
}

static _Noreturn void usage(void)
{
	fputs("usage: calibrate ROWS.csv [--chip NAME] [--software NAME] [--free PATH,...] "
		"[--output FILE.json] [--leave-one-out] [--link-curve FILE]\n", stderr);
	exit(EXIT_USAGE);
}

/* The chip with links as the file says. Prints how near they are. */
static const struct ap_chip *with_curves(struct ap_ctx *ctx, const struct ap_chip *chip, const char *file)
{
	struct ap_link_curves curves;
	char *text;
	size_t len, n = 0;

	if (ap_file_read(ctx, file, AP_FILE_MAX_BYTES, &text, &len) != AP_OK)
		die(EXIT_IO, file, ap_diag_text(ctx->diag, 0, NULL, NULL));
	if (ap_link_curves_read(ctx, ap_file_base(file), text, len, &curves) != AP_OK ||
		ap_link_curves_chip(ctx, &curves, chip, &chip) != AP_OK)
		die(EXIT_CSV, file, ap_diag_text(ctx->diag, 0, NULL, NULL));
	while (ap_diag_text(ctx->diag, n + 1, NULL, NULL))
		n++;
	printf("%s\n\n", ap_diag_text(ctx->diag, n, NULL, NULL));
	return chip;
}

int main(int argc, char **argv)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, false), .jobs = 1};
	const char *file = NULL, *chip = NULL, *software = NULL, *list = NULL, *output = NULL, *tmp,
		*curves = NULL;
	struct calibration c = {.ctx = &ctx, .profiles = {.ctx = &ctx}};
	const struct ap_software *of_software = NULL;
	const struct ap_chip *of_chip = NULL;
	bool leave_one_out = false;
	struct table all;
	char *folder;

	for (int i = 1; i < argc; i++) {
		const struct { const char *name; const char **value; } options[] = {{"--chip", &chip},
			{"--software", &software}, {"--free", &list}, {"--output", &output},
			{"--link-curve", &curves}};
		size_t k = 0;

		while (k < AP_COUNT(options) && strcmp(options[k].name, argv[i]) != 0)
			k++;
		if (k < AP_COUNT(options) && i + 1 < argc)
			*options[k].value = argv[++i];
		else if (!strcmp(argv[i], "--leave-one-out"))
			leave_one_out = true;
		else if (!file && *argv[i] != '-')
			file = argv[i];
		else
			usage();
	}
	if (!file || (!chip && !software) || (curves && (!chip || software)))
		usage();
	if ((chip && ap_chip_get(&ctx, chip, &of_chip) != AP_OK) ||
		(software && ap_software_get(&ctx, software, &of_software) != AP_OK))
		die(EXIT_USAGE, software ? software : chip, ap_diag_text(ctx.diag, 0, NULL, NULL));
	if (curves)
		of_chip = with_curves(&ctx, of_chip, curves);
	all = read_table(&ctx, file);
	c.is_software = software != NULL;
	if (of_chip)
		c.chip = *of_chip;
	if (of_software)
		c.software = *of_software;
	c.nconstant = c.is_software ? ap_software_constants(arena, &c.software, &c.constants)
		: ap_chip_constants(arena, &c.chip, &c.constants);
	choose_free(&c, list);
	tmp = getenv("TMPDIR");
	folder = ap_arena_printf(arena, "%s/calibrate-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		die(EXIT_IO, folder, strerror(errno));
	c.profiles.given = folder;
	write_text(tried_path(&c), profile_text(&c));
	choose_rows(&c, &all, of_chip ? of_chip->name : NULL, of_software ? of_software->name : NULL);
	calibrate(&c, leave_one_out, output);
	for (size_t i = 0; i < c.rows.n; i++)
		priced_close(c.priced[i]);
	remove_profiles(&c.profiles);
	unlink(tried_path(&c));
	rmdir(folder);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
	return ferror(stdout) | fflush(stdout) ? EXIT_IO : EXIT_SUCCESS;
}
