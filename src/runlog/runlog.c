/* SPDX-License-Identifier: Apache-2.0 */
#include "runlog/runlog.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "runlog/format.h"

enum { FORMATS = 16, LONGEST = 1 << 14 }; /* bytes of a line that are looked at */

const char *ap_runlog_format_at(size_t i, const char **what)
{
	const struct ap_run_format *f = ap_run_format_at(i);

	*what = f ? f->what : NULL;
	return f ? f->name : NULL;
}

const char *ap_run_bytes_name(enum ap_run_bytes kind)
{
	static const char *const names[] = {"allocated", "reserved", "used"};

	return names[kind];
}

/* ---- lines as they were meant ---- */

/* Copies a line without what colours it and other control characters; a line that is printed over (a carriage
 * return, as of a bar of progress) counts as it last was. */
static void clean(const char *line, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < LONGEST; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c == '\x1b' && i + 1 < len && line[i + 1] == '[') {
			for (i += 2; i < len && !isalpha((unsigned char)line[i]); i++)
				;
		} else if (c == '\r' && i + 1 < len && line[i + 1] != '\r') {
			n = 0;
		} else if (c >= ' ' || c == '\t') {
			out[n++] = (char)c;
		}
	}
	out[n] = '\0';
}

/* What stands behind the prefixes of launchers, "[rank3]:", "[default3]:", "3: "; *rank: of these. */
static const char *skip_prefix(const char *s, int64_t *rank)
{
	static const char *const words[] = {"[rank", "[default", ""};

	*rank = -1;
	for (size_t i = 0; i < AP_COUNT(words); i++) {
		size_t n = strlen(words[i]);
		size_t digits = !strncmp(s, words[i], n) ? strspn(s + n, "0123456789") : 0;
		const char *close = n ? "]:" : ": ", *end = s + n + digits;

		if (!digits || digits > 7 || strncmp(end, close, 2) != 0)
			continue;
		*rank = strtol(s + n, NULL, 10);
		return end + 2;
	}
	return s;
}

/* Text in UTF-16, as a Windows shell writes it, as bytes; else as it is. */
static void narrow(struct ap_ctx *ctx, const char **text, size_t *len)
{
	bool little = *len >= 2 && !memcmp(*text, "\xff\xfe", 2);
	bool big = *len >= 2 && !memcmp(*text, "\xfe\xff", 2);
	char *out;
	size_t n = 0;

	if (!little && !big)
		return;
	out = ap_arena_alloc_raw(ctx->arena, *len / 2 + 1, 1);
	for (size_t i = 2; i + 1 < *len; i += 2) {
		unsigned char high = (unsigned char)(*text)[i + little];
		unsigned char low = (unsigned char)(*text)[i + big];

		out[n++] = high || !low ? '?' : (char)low; /* no word that is looked for has others */
	}
	out[n] = '\0';
	*text = out;
	*len = n;
}

/* ---- recognised ---- */

static bool has_column(const struct ap_csv_record *header, const char *const *columns)
{
	for (; *columns; columns++)
		for (size_t i = 0; i < header->n; i++)
			if (!strcasecmp(header->field[i], *columns))
				return true;
	return false;
}

/* Reads a table, if the text is one of a known form. *is: it is. */
static enum ap_status try_table(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_runlog *out, bool *is)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_csv csv = ap_csv_begin(file, text, len);
	const struct ap_run_format *f;
	struct ap_csv_record header;
	bool any;

	*is = false;
	if (ap_csv_next(&quiet, &csv, &header, &any) != AP_OK || !any)
		return AP_OK;
	for (size_t i = 0; (f = ap_run_format_at(i)); i++)
		if (f->columns && has_column(&header, f->columns)) {
			*is = true;
			*out = (struct ap_runlog){.file = file, .format = f->name};
			return ap_run_table_read(ctx, &csv, &header, out);
		}
	return AP_OK;
}

static enum ap_status unknown(struct ap_ctx *ctx, const char *file)
{
	const struct ap_run_format *f;
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; (f = ap_run_format_at(i)); i++)
		ap_str_addf(&s, "%s%s: %s", i ? "; " : "", f->name, f->what);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file}, "log-known",
		"has no line about an iteration in a form that is known; expected a log of %s", s.s);
}

enum ap_status ap_runlog_read(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_runlog *out)
{
	struct ap_run_reading reading[FORMATS];
	const struct ap_run_format *f;
	size_t n = 0, best = FORMATS;
	int64_t number = 0;
	char line[LONGEST];
	bool is_table;

	narrow(ctx, &text, &len);
	AP_TRY(try_table(ctx, file, text, len, out, &is_table));
	if (is_table)
		return out->steps.n ? AP_OK : unknown(ctx, file);
	for (; (f = ap_run_format_at(n)); n++)
		reading[n] = (struct ap_run_reading){.arena = ctx->arena,
			.log = {.file = file, .format = f->name}};
	for (const char *at = text, *end = text + len; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *body;
		int64_t rank;

		number++;
		clean(at, (size_t)((nl ? nl : end) - at), line);
		body = skip_prefix(line, &rank);
		/* What ends without an end of line may be cut within a number. */
		for (size_t i = 0; nl && i < n; i++) {
			reading[i].line = number;
			reading[i].rank = rank;
			if (ap_run_format_at(i)->line)
				ap_run_format_at(i)->line(&reading[i], body);
		}
		at = nl ? nl + 1 : end;
	}
	for (size_t i = 0; i < n; i++)
		if ((!ap_run_format_at(i)->wants_mark || reading[i].marked) &&
			(best == FORMATS ? reading[i].log.steps.n > 0
				: reading[i].log.steps.n > reading[best].log.steps.n))
			best = i;
	if (best == FORMATS)
		return unknown(ctx, file);
	*out = reading[best].log;
	out->lines = number;
	return AP_OK;
}

/* ---- times ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Quantile q of n sorted values, between two of them in proportion. */
static double quantile(const double *v, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

static double median_of(struct ap_arena *arena, const double *v, size_t n)
{
	double *sorted = ap_arena_memdup(arena, v, n * sizeof *v);

	qsort(sorted, n, sizeof *sorted, by_value);
	return quantile(sorted, n, 0.5);
}

enum { MIXED = 64 }; /* lines within which those of one iteration stand, of ranks whose lines are mixed */

/* The line before `at` that another rank prints of the same iteration; n: there is none. */
static size_t same_iteration(const struct ap_run_step *steps, size_t at, size_t n)
{
	size_t from = at > MIXED ? at - MIXED : 0;

	for (size_t i = at; i > from && steps[at].number >= 0; i--)
		if (steps[i - 1].number == steps[at].number &&
			(i == at || steps[i - 1].rank != steps[at].rank))
			return i - 1;
	return n;
}

bool ap_runlog_settle(struct ap_ctx *ctx, const struct ap_runlog *log, double samples,
	double tokens_of_device, struct ap_settled *out)
{
	static const double above = 1.1;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	size_t total = log->steps.n, n = 0, skip;
	double *time_s = AP_NEW_N(ctx->scratch, double, total + 1), settled;
	size_t *place = AP_NEW_N(ctx->scratch, size_t, total + 1); /* of a line's time; total: it has none */

	*out = (struct ap_settled){0};
	for (size_t i = 0; i < total; i++) {
		const struct ap_run_step *s = &log->steps.v[i];
		double t = s->time_s > 0 ? s->time_s : s->samples_per_s > 0 ? samples / s->samples_per_s
			: tokens_of_device / s->tokens_per_s;
		size_t same = same_iteration(log->steps.v, i, total);

		place[i] = total;
		if (!(t > 0) || !isfinite(t))
			continue;
		place[i] = same < total && place[same] < total ? place[same] : n++;
		time_s[place[i]] = fmax(time_s[place[i]], t);
	}
	if (!n)
		return false;
	skip = n > 1;
	settled = median_of(ctx->scratch, time_s + n / 2, n - n / 2);
	while (skip < n / 2 && time_s[skip] > above * settled)
		skip++;
	out->read = n;
	out->left_out = skip;
	out->n = n - skip;
	qsort(time_s + skip, out->n, sizeof *time_s, by_value);
	out->least_s = time_s[skip];
	out->quarter_s = quantile(time_s + skip, out->n, 0.25);
	out->median_s = quantile(time_s + skip, out->n, 0.5);
	out->three_quarters_s = quantile(time_s + skip, out->n, 0.75);
	out->most_s = time_s[n - 1];
	ap_arena_release(ctx->scratch, mark);
	return true;
}
