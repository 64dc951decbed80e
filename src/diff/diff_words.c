/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a comparison as people write them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "diff/diff_parts.h"

static const char *without_quotes(struct ap_ctx *ctx, const char *s, size_t len)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < len; i++)
		if (s[i] != '"')
			ap_str_addc(&text, s[i]);
	return text.s;
}

const char *ap_diff_plain(struct ap_ctx *ctx, const char *json)
{
	size_t len;

	if (!json)
		return "";
	if (!strcmp(json, "null"))
		return "none";
	len = strlen(json);
	if (*json == '"' && !strchr(json, '\\'))
		return ap_arena_strndup(ctx->arena, json + 1, len - 2);
	if (!strncmp(json, "[\"", 2) && !strchr(json, '\\'))
		return without_quotes(ctx, json + 1, len - 2);
	if (!strncmp(json, "[[", 2))
		return ap_arena_strndup(ctx->arena, json + 1, len - 2);
	return json;
}

const char *ap_diff_bytes(struct ap_ctx *ctx, int64_t bytes)
{
	char buf[32];

	return ap_arena_strdup(ctx->arena, ap_format_bytes(bytes, buf));
}

const char *ap_diff_change(struct ap_ctx *ctx, double was, double is)
{
	double percent = 100 * (is / was - 1);
	int64_t tenths;

	if (!(was > 0) || !isfinite(percent))
		return "";
	tenths = llrint(fmax(-1e15, fmin(1e15, percent)) * 10);
	return ap_arena_printf(ctx->arena, "%c%" PRId64 ".%" PRId64 " %%",
		percent < 0 ? '-' : '+', (tenths < 0 ? -tenths : tenths) / 10,
		(tenths < 0 ? -tenths : tenths) % 10);
}

static bool ends_in(const char *s, const char *end)
{
	return ap_file_suffix(s, end);
}

/* A number with the unit that its key says. */
static const char *number_text(struct ap_ctx *ctx, const char *key, double v)
{
	char buf[32];

	if (ends_in(key, "_bytes") && fabs(v) < 0x1p62)
		return ap_diff_bytes(ctx, (int64_t)v);
	if (ends_in(key, "_Bps"))
		return ap_arena_printf(ctx->arena, "%s GB/s", ap_format_double(v / 1e9, buf));
	if (ends_in(key, "_s") && !ends_in(key, "_per_s"))
		return ap_arena_strdup(ctx->arena, ap_format_seconds(v, buf));
	if (!strcmp(key, "gap") && fabs(v) < 1e12)
		return ap_arena_printf(ctx->arena, "%s %%",
			ap_format_double(rint(1e4 * v) / 100, buf));
	if (ends_in(key, "_per_s") && fabs(v) < 1e12)
		v = rint(10 * v) / 10;
	return ap_arena_strdup(ctx->arena, ap_format_double(v, buf));
}

const char *ap_diff_label(struct ap_ctx *ctx, const char *key)
{
	static const char *const units[] = {"_bytes", "_Bps", "_s"};
	char *label = ap_arena_strdup(ctx->arena, key);

	for (size_t i = 0; i < AP_COUNT(units); i++)
		if (ends_in(label, units[i]) && !ends_in(label, "_per_s"))
			label[strlen(label) - strlen(units[i])] = '\0';
	for (char *c = label; *c; c++)
		if (*c == '_' || *c == '.')
			*c = ' ';
	return label;
}

static const char *value_text(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char *json,
	double number)
{
	const char *text = ap_diff_plain(ctx, json);

	if (!json || isnan(number))
		return !strcmp(f->section, "inputs") && strlen(text) == 64
			? ap_arena_strndup(ctx->arena, text, 12)
			: text;
	return strcmp(f->section, "settings") ? number_text(ctx, f->key, number) : json;
}

/* In full, with its unit, where it would look like another. */
static const char *exact_text(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char *json)
{
	const char *unit = ends_in(f->key, "_bytes") ? " B"
		: ends_in(f->key, "_s") && !ends_in(f->key, "_per_s") ? " s"
									 : "";

	return ap_arena_printf(ctx->arena, "%s%s", ap_diff_plain(ctx, json), unit);
}

void ap_diff_texts(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char **was,
	const char **is)
{
	*was = value_text(ctx, f, f->was, f->was_number);
	*is = value_text(ctx, f, f->is, f->is_number);
	if (f->changed && f->was && f->is && !strcmp(*was, *is)) {
		*was = exact_text(ctx, f, f->was);
		*is = exact_text(ctx, f, f->is);
	}
}
