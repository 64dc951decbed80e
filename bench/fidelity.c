/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds predictions against published measurements: of each row of a CSV file graph, machine and strategy are
 * made and evaluated. docs/fidelity.md is made by it.
 *
 *   fidelity FILE.csv [--only SOURCE] [--neutral] [--profiles FOLDER] [--plans FOLDER]
 *     [--csv OUT] [--markdown OUT] [--svg OUT] [--errors OUT]
 *
 * Profiles of the folder, NAME.json, replace built-in ones. Into the folder of plans goes what each row is:
 * its graph, its plan, and the chip where that is no built-in one. The first line names the columns (COLUMNS
 * below); others are left alone. A row is predicted from FACTS alone.
 * What cannot be expressed is counted and named with its reason. Exit status: 0; 2 for a wrong call, 3 for a
 * file that is no such CSV, 6 for one that cannot be read or written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "plot.h"
#include "priced.h"
#include "profiles.h"
#include "report.h"
#include "rows.h"

const char *const bench_program = "fidelity";

static _Noreturn void usage(void)
{
	fputs("usage: fidelity FILE.csv [--only SOURCE] [--neutral] [--profiles FOLDER] [--plans FOLDER] "
		"[--csv OUT] [--markdown OUT] [--svg OUT] [--errors OUT]\n", stderr);
	exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, false), .jobs = 1};
	const char *file = NULL, *only = NULL, *csv = NULL, *markdown = NULL, *svg = NULL, *errors = NULL,
		*plans = NULL;
	struct profiles profiles = {.ctx = &ctx};
	bool is_neutral = false;
	struct table t;
	size_t n = 0;

	for (int i = 1; i < argc; i++) {
		const struct { const char *name; const char **value; } options[] = {{"--only", &only},
			{"--csv", &csv}, {"--profiles", &profiles.given}, {"--markdown", &markdown},
			{"--svg", &svg}, {"--errors", &errors}, {"--plans", &plans}};
		size_t k = 0;

		while (k < AP_COUNT(options) && strcmp(options[k].name, argv[i]) != 0)
			k++;
		if (k < AP_COUNT(options) && i + 1 < argc)
			*options[k].value = argv[++i];
		else if (!strcmp(argv[i], "--neutral"))
			is_neutral = true;
		else if (!file && *argv[i] != '-')
			file = argv[i];
		else
			usage();
	}
	if (!file)
		usage();
	t = read_table(&ctx, file);
	for (size_t i = 0; i < t.n; i++)
		if (!only || !strcmp(t.v[i].field[COL_source_id], only))
			t.v[n++] = t.v[i];
	t.n = n;
	for (size_t i = 0; i < t.n; i++) {
		struct priced *p = priced_open(arena, &t.v[i]);

		if (plans)
			priced_keep(p, plans, t.v[i].field[COL_id]);
		priced_predict(p, &profiles, is_neutral, &t.v[i]);
		priced_close(p);
	}
	remove_profiles(&profiles);
	print_rows(&t);
	putchar('\n');
	write_errors(stdout, arena, &t);
	write_reasons(stdout, arena, &t);
	if (csv)
		write_csv(csv, &t);
	if (errors)
		write_measured(errors, arena, &t);
	if (svg)
		write_svg(svg, arena, &t);
	if (markdown)
		write_markdown(markdown, arena, file, svg, &t, is_neutral);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
	return ferror(stdout) | fflush(stdout) ? EXIT_IO : EXIT_SUCCESS;
}
