/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
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

/* Reads a field, which ends before a comma or the end of a line; *p then stands there. NULL: a quote is not
 * closed, or something follows one. */
static const char *read_field(struct ap_arena *arena, const char **p)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	if (**p != '"') {
		size_t n = strcspn(*p, ",\r\n");

		ap_str_addn(&s, *p, n);
		*p += n;
		return s.s;
	}
	for ((*p)++; **p != '"' || (*p)[1] == '"'; *p += **p == '"' ? 2 : 1) {
		if (!**p)
			return NULL;
		ap_str_addc(&s, **p);
	}
	(*p)++;
	return strchr(",\r\n", **p) ? s.s : NULL; /* the end of the text is found, too */
}

/* The fields of a line; *p behind it. */
static const char **read_line(struct ap_arena *arena, const char *file, int line, const char **p, size_t *n)
{
	struct { const char **v; size_t n, cap; } fields = {0};

	for (;; (*p)++) {
		const char *field = read_field(arena, p);

		if (!field)
			die(EXIT_CSV, file, ap_arena_printf(arena,
				"line %d: a quoted field does not end where its quotes do", line));
		AP_PUSH(arena, fields, field);
		if (**p != ',')
			break;
	}
	*p += **p == '\r';
	*p += **p == '\n';
	*n = fields.n;
	return fields.v;
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
	const char **names, *p;
	size_t ncolumn, len;
	char *text;
	int line = 1;

	if (ap_file_read(ctx, file, (size_t)1 << 28, &text, &len) != AP_OK)
		die(EXIT_IO, file, "it cannot be read");
	if (strlen(text) != len)
		die(EXIT_CSV, file, "it holds a zero byte");
	p = text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3);
	names = read_line(arena, file, line, &p, &ncolumn);
	for (int c = 0; c < COL_id; c++) {
		size_t i = 0;

		while (i < ncolumn && strcmp(names[i], column_names[c]) != 0)
			i++;
		if (i == ncolumn)
			die(EXIT_CSV, file, ap_arena_printf(arena, "there is no column %s", column_names[c]));
	}
	while (*p) {
		struct row row = {0};
		const char **fields;
		size_t n;

		line++;
		fields = read_line(arena, file, line, &p, &n);
		if (n == 1 && !*fields[0])
			continue;
		if (n != ncolumn)
			die(EXIT_CSV, file, ap_arena_printf(arena,
				"row %d has %zu fields, the first line %zu", line, n, ncolumn));
		for (int c = 0; c < NCOLUMN; c++)
			row.field[c] = "";
		for (size_t i = 0; i < n; i++)
			if (find_column(names[i]) >= 0)
				row.field[find_column(names[i])] = fields[i];
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
