/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"

static const char *const column_names[] = {
#define COLUMN(name) #name,
	COLUMNS(COLUMN)
#undef COLUMN
};

_Noreturn void die(int status, const char *file, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", bench_program, file, what);
	exit(status);
}

/* The next record of a table; n 0: there is none. Ends the program where it is none. */
static struct ap_csv_record next_record(struct ap_ctx *ctx, struct ap_csv *csv)
{
	struct ap_csv_record r;
	bool any;

	if (ap_csv_next(ctx, csv, &r, &any) != AP_OK)
		die(EXIT_CSV, csv->file, ap_arena_printf(ctx->arena, "line %" PRId64 ": %s", csv->line,
			ap_diag_first_error(ctx->diag)));
	if (!any)
		r.n = 0;
	return r;
}

static int find_column(const char *name)
{
	for (int c = 0; c < NCOLUMN; c++)
		if (!strcmp(column_names[c], name))
			return c;
	return -1;
}

double number(const char *text)
{
	double v;

	return ap_parse_double(text, &v) && v > 0 ? v : 0;
}

/* Seconds of a step: as they are stated, or as a rate says. */
static double measured_s(const struct row *r)
{
	double gbs = number(r->field[COL_gbs]), samples = number(r->field[COL_samples_per_s]);
	double tokens = number(r->field[COL_tokens_per_s_per_dev]) * number(r->field[COL_devices]);

	if (number(r->field[COL_iter_time_s]) > 0)
		return number(r->field[COL_iter_time_s]);
	if (samples > 0)
		return gbs / samples;
	return tokens > 0 ? gbs * number(r->field[COL_seq_len]) / tokens : 0;
}

struct table read_table(struct ap_ctx *ctx, const char *file)
{
	struct ap_arena *arena = ctx->arena;
	struct table t = {0};
	struct ap_csv_record names, fields;
	struct ap_csv csv;
	size_t len;
	char *text;

	if (ap_file_read(ctx, file, (size_t)1 << 28, &text, &len) != AP_OK)
		die(EXIT_IO, file, "it cannot be read");
	if (strlen(text) != len)
		die(EXIT_CSV, file, "it holds a zero byte");
	csv = ap_csv_begin(file, text, len);
	names = next_record(ctx, &csv);
	for (int c = 0; c < COL_notes; c++) {
		size_t i = 0;

		while (i < names.n && strcmp(names.field[i], column_names[c]) != 0)
			i++;
		if (i == names.n)
			die(EXIT_CSV, file, ap_arena_printf(arena, "there is no column %s", column_names[c]));
	}
	while ((fields = next_record(ctx, &csv)).n) {
		struct row row = {0};

		if (fields.n != names.n)
			die(EXIT_CSV, file, ap_arena_printf(arena,
				"line %" PRId64 " has %zu fields, the first line %zu", fields.line, fields.n,
				names.n));
		for (int c = 0; c < NCOLUMN; c++)
			row.field[c] = "";
		for (size_t i = 0; i < fields.n; i++)
			if (find_column(names.field[i]) >= 0)
				row.field[find_column(names.field[i])] = fields.field[i];
		row.measured_s = measured_s(&row);
		row.measured_bytes = (int64_t)number(row.field[COL_mem_bytes]);
		AP_PUSH(arena, t, row);
	}
	return t;
}

enum outcome outcome_of(const struct row *r)
{
	const char *said = r->field[COL_outcome], *grade = r->field[COL_grade];

	if (!r->needed_bytes || *grade == 'D' || *grade == 'M' || number(r->field[COL_hw_mem_gib]) <= 0 ||
		strstr(r->field[COL_recompute], "recipe"))
		return UNTOLD;
	if (*said)
		return !strcmp(said, "ok") ? RAN : !strcmp(said, "oom") ? DIED : UNTOLD;
	return r->measured_s > 0 || r->measured_bytes ? RAN : UNTOLD;
}

bool fits(const struct row *r)
{
	return (double)r->needed_bytes <= number(r->field[COL_hw_mem_gib]) * (1 << 30);
}

bool is_judged(const struct row *r)
{
	const char *grade = r->field[COL_grade];

	return !*grade || *grade == 'A' || *grade == 'B';
}

bool has_time(const struct row *r)
{
	return is_judged(r) && r->measured_s > 0 && r->predicted_s > 0;
}

bool has_memory(const struct row *r)
{
	return is_judged(r) && r->measured_bytes && r->predicted_bytes;
}
