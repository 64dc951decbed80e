/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/recompute_parse.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/choices.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"

#define DIGITS "0123456789"

struct reading {
	struct ap_ctx *ctx;
	const char *option;
	struct ap_step *step;
	AP_VEC(struct ap_recompute_first) first;
};

#define SAY(r, ...) \
	ap_diag_add((r)->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", (r)->option, \
		ap_arena_printf((r)->ctx->arena, __VA_ARGS__))

static enum ap_status unknown(struct reading *r, const char *word, size_t len)
{
	const char *known;
	struct ap_str s;
	unsigned what;

	ap_str_init(&s, r->ctx->arena);
	for (size_t i = 0; (known = ap_again_word(i, &what)); i++)
		if (strcmp(ap_again_text(r->ctx->arena, what), known) == 0) /* the usual one of its meaning */
			ap_str_addf(&s, "%s%s", i ? ", " : "", known);
	return SAY(r, "\"%s\" is nothing that is recomputed; expected %s, or uniform:N",
		ap_diag_name(r->ctx->diag, ap_arena_strndup(r->ctx->arena, word, len)), s.s);
}

/* A number at *at, which then is behind it. */
static bool read_number(const char **at, int64_t *n)
{
	size_t digits = strspn(*at, DIGITS);

	if (digits == 0 || digits > 9)
		return false;
	*n = 0;
	for (size_t i = 0; i < digits; i++)
		*n = *n * 10 + (*at)[i] - '0';
	*at += digits;
	return true;
}

/* Does another number of the same list follow, rather than a word? */
static bool goes_on(const char *at)
{
	return *at == '/' || (*at == ',' && at[1] && strchr(DIGITS, at[1]));
}

/* "13,5" or "2,1/1,0" at *at. */
static enum ap_status read_counts(struct reading *r, const char **at, struct ap_recompute_first *out)
{
	const char *start = *at;
	AP_VEC(int64_t) all = {0};
	int32_t column = 0;
	bool even = true;

	for (out->nrow = 1;; (*at)++) {
		int64_t n;

		if (!read_number(at, &n))
			return SAY(r, "\"%s\"; numbers of layers are expected behind the colon, as 8, or "
				"13,5 for each stage, or 2,1/1,0 for each segment of the stages",
				ap_diag_name(r->ctx->diag, start));
		AP_PUSH(r->ctx->arena, all, n);
		column++;
		if (**at == '/' || !goes_on(*at)) {
			even &= out->ncol == 0 || out->ncol == column;
			out->ncol = column;
			column = 0;
		}
		if (!goes_on(*at))
			break;
		out->nrow += **at == '/';
	}
	out->count = all.v;
	return even ? AP_OK : SAY(r, "\"%.*s\" has lists of different lengths; each segment has a number for "
		"every stage", (int)(*at - start), start);
}

static enum ap_status read_item(struct reading *r, const char **at)
{
	struct ap_recompute_first first = {0};
	size_t len = strcspn(*at, ",:"), bad_len;
	const char *word = *at, *bad;
	bool uniform = len == strlen("uniform") && strncmp(word, "uniform", len) == 0;

	*at += len;
	if (!uniform && !ap_again_read(word, len, &first.what, &bad, &bad_len))
		return unknown(r, bad, bad_len);
	if (**at != ':') {
		if (uniform)
			return SAY(r, "uniform needs a number of layers, as uniform:4");
		r->step->recompute |= first.what;
		return AP_OK;
	}
	++*at;
	AP_TRY(read_counts(r, at, &first));
	if (uniform) {
		if (first.nrow * first.ncol > 1 || first.count[0] == 0)
			return SAY(r, "uniform takes one number of layers, above 0");
		r->step->recompute |= AP_RECOMPUTE_FULL;
		r->step->recompute_unit = first.count[0];
		return AP_OK;
	}
	if (first.what)
		AP_PUSH(r->ctx->arena, r->first, first);
	return AP_OK;
}

enum ap_status ap_recompute_parse(struct ap_ctx *ctx, const char *option, const char *text,
	struct ap_step *step)
{
	struct reading r = {.ctx = ctx, .option = option, .step = step};

	step->recompute = AP_RECOMPUTE_NONE;
	step->recompute_unit = 0;
	for (const char *at = text;; at++) {
		AP_TRY(read_item(&r, &at));
		if (!*at)
			break;
		if (*at != ',')
			return SAY(&r, "\"%s\"; a comma is expected", ap_diag_name(ctx->diag, at));
	}
	step->nrecompute_first = (uint32_t)r.first.n;
	step->recompute_first = r.first.v;
	return AP_OK;
}

/* The length of a word with its numbers, up to the next word. */
static size_t item_length(const char *item)
{
	size_t len = strcspn(item, ",");

	while (item[len] && memchr(item, ':', len) && goes_on(item + len))
		len += 1 + strcspn(item + len + 1, ",");
	return len;
}

static bool is_word(const char *item, size_t len, const char *word)
{
	return len == strlen(word) && !strncmp(item, word, len);
}

static bool has_whole_words(const char *text)
{
	size_t n = 0;
	bool whole = false;

	for (const char *at = text;; at++) {
		size_t len = item_length(at);

		whole |= is_word(at, len, "none") || is_word(at, len, "full");
		at += len;
		n++;
		if (!*at)
			break;
	}
	return whole && n > 1;
}

size_t ap_recompute_alternatives(struct ap_arena *arena, const char *text, const char *const **out)
{
	bool bars = strchr(text, '|');
	AP_VEC(const char *) all = {0};

	if (!bars && !has_whole_words(text)) {
		AP_PUSH(arena, all, text);
		*out = all.v;
		return all.n;
	}
	for (const char *at = text;; at++) {
		size_t len = bars ? strcspn(at, "|") : item_length(at);
		bool again = false;

		for (size_t i = 0; i < all.n; i++)
			again |= is_word(at, len, all.v[i]);
		if (!again)
			AP_PUSH(arena, all, ap_arena_strndup(arena, at, len));
		at += len;
		if (!*at || all.n > AP_CHOICES_MOST)
			break;
	}
	*out = all.v;
	return all.n;
}
