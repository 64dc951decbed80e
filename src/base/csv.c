/* SPDX-License-Identifier: Apache-2.0 */
#include "base/csv.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"

struct ap_csv ap_csv_begin(const char *file, const char *text, size_t len)
{
	size_t skip = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	return (struct ap_csv){file, text + skip, text + len, 1};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool ends_line(const struct ap_csv *csv, const char *p)
{
	return p == csv->end || *p == '\n' || (*p == '\r' && (p + 1 == csv->end || p[1] == '\n'));
}

static enum ap_status read_quoted(struct ap_ctx *ctx, struct ap_csv *csv, const char **out)
{
	const struct ap_where where = {.file = csv->file, .line = csv->line};
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (csv->at++; csv->at < csv->end; csv->at++) {
		bool twice = csv->at + 1 < csv->end && csv->at[1] == '"';

		if (*csv->at == '"' && !twice)
			break;
		csv->at += *csv->at == '"';
		csv->line += *csv->at == '\n';
		ap_str_addc(&s, *csv->at);
	}
	*out = s.s;
	if (csv->at == csv->end)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"a field begins with a quote, and none ends it");
	csv->at++;
	while (csv->at < csv->end && is_blank(*csv->at))
		csv->at++;
	if (!ends_line(csv, csv->at) && *csv->at != ',')
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"something stands between the quote that ends a field and the next comma");
	return AP_OK;
}

static enum ap_status read_field(struct ap_ctx *ctx, struct ap_csv *csv, const char **out)
{
	const char *from, *to;

	while (csv->at < csv->end && is_blank(*csv->at))
		csv->at++;
	if (csv->at < csv->end && *csv->at == '"')
		return read_quoted(ctx, csv, out);
	from = csv->at;
	while (!ends_line(csv, csv->at) && *csv->at != ',')
		csv->at++;
	to = csv->at;
	while (to > from && is_blank(to[-1]))
		to--;
	*out = ap_arena_strndup(ctx->arena, from, (size_t)(to - from));
	return AP_OK;
}

/* Goes over the end of a line, if it stands there. */
static bool skip_end(struct ap_csv *csv)
{
	if (csv->at == csv->end || !ends_line(csv, csv->at))
		return false;
	csv->at += *csv->at == '\r';
	if (csv->at < csv->end && *csv->at == '\n') {
		csv->at++;
		csv->line++;
	}
	return true;
}

enum ap_status ap_csv_next(struct ap_ctx *ctx, struct ap_csv *csv, struct ap_csv_record *out, bool *any)
{
	struct { const char **v; size_t n, cap; } fields = {0};

	while (skip_end(csv))
		;
	*any = csv->at < csv->end;
	out->line = csv->line;
	while (*any) {
		const char *field;

		AP_TRY(read_field(ctx, csv, &field));
		AP_PUSH(ctx->arena, fields, field);
		if (csv->at == csv->end || *csv->at != ',')
			break;
		csv->at++;
	}
	(void)skip_end(csv);
	out->field = fields.v;
	out->n = fields.n;
	return AP_OK;
}
