/* SPDX-License-Identifier: Apache-2.0 */
#include "report/sheet.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

struct value {
	const char *text; /* of TEXT and NAME; NULL: none */
	double v;
};

struct fact {
	const char *key, *label;
	enum ap_cell_type type;
	struct value value;
};

struct block {
	const char *key, *title;
	AP_VEC(struct fact) fact;
	const struct ap_column *column;
	size_t ncolumn;
	AP_VEC(struct value) cell; /* row by row */
	AP_VEC(const char *) remark;
};

struct thing {
	const char *kind, *name, *words;
	AP_VEC(struct block) block;
};

struct ap_sheet {
	struct ap_ctx *ctx;
	const char *schema;
	AP_VEC(struct thing) thing;
};

struct ap_sheet *ap_sheet_create(struct ap_ctx *ctx, const char *schema)
{
	struct ap_sheet *s = AP_NEW(ctx->arena, struct ap_sheet);

	s->ctx = ctx;
	s->schema = schema;
	return s;
}

static const char *words(struct ap_sheet *s, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static const char *words(struct ap_sheet *s, const char *fmt, va_list ap)
{
	struct ap_str text;

	ap_str_init(&text, s->ctx->arena);
	ap_str_vaddf(&text, fmt, ap);
	return text.s;
}

void ap_sheet_thing(struct ap_sheet *s, const char *kind, const char *name, const char *fmt, ...)
{
	struct thing t = {.kind = kind, .name = name};
	va_list ap;

	va_start(ap, fmt);
	t.words = words(s, fmt, ap);
	va_end(ap);
	AP_PUSH(s->ctx->arena, s->thing, t);
}

static struct thing *last_thing(struct ap_sheet *s)
{
	assert(s->thing.n > 0);
	return &s->thing.v[s->thing.n - 1];
}

void ap_sheet_block(struct ap_sheet *s, const char *key, const char *title)
{
	struct block b = {.key = key, .title = title};

	AP_PUSH(s->ctx->arena, last_thing(s)->block, b);
}

static struct block *last_block(struct ap_sheet *s)
{
	struct thing *t = last_thing(s);

	assert(t->block.n > 0);
	return &t->block.v[t->block.n - 1];
}

void ap_sheet_remark(struct ap_sheet *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	AP_PUSH(s->ctx->arena, last_block(s)->remark, words(s, fmt, ap));
	va_end(ap);
}

void ap_sheet_number(struct ap_sheet *s, const char *key, const char *label, enum ap_cell_type type, double v)
{
	struct fact f = {key, label, type, {.v = v}};

	AP_PUSH(s->ctx->arena, last_block(s)->fact, f);
}

void ap_sheet_words(struct ap_sheet *s, const char *key, const char *label, const char *text)
{
	struct fact f = {key, label, AP_CELL_TEXT, {.text = text}};

	AP_PUSH(s->ctx->arena, last_block(s)->fact, f);
}

void ap_sheet_columns(struct ap_sheet *s, const struct ap_column *column, size_t n)
{
	struct block *b = last_block(s);

	b->column = column;
	b->ncolumn = n;
}

static enum ap_cell_type next_type(const struct block *b)
{
	return b->column[b->cell.n % b->ncolumn].type;
}

static bool holds_text(enum ap_cell_type type)
{
	return type == AP_CELL_TEXT || type == AP_CELL_NAME;
}

void ap_sheet_cell(struct ap_sheet *s, double v)
{
	struct block *b = last_block(s);
	struct value x = {.v = v};

	assert(!holds_text(next_type(b)));
	AP_PUSH(s->ctx->arena, b->cell, x);
}

void ap_sheet_cell_text(struct ap_sheet *s, const char *text)
{
	struct block *b = last_block(s);
	struct value x = {.text = text};

	assert(holds_text(next_type(b)));
	AP_PUSH(s->ctx->arena, b->cell, x);
}

/* ---- for people ---- */

/* A share with three digits, or as many as show that it is none. */
static const char *percent(const struct ap_sheet *s, double v, bool sign)
{
	double p = 100 * v, size = fabs(p);
	int digits = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;

	if (size > 0 && size < 0.0005)
		return ap_arena_printf(s->ctx->arena, "%s< 0.001 %%", p < 0 ? "- " : sign ? "+ " : "");
	return ap_arena_printf(s->ctx->arena, sign ? "%+.*f %%" : "%.*f %%", digits, p);
}

/* A name, of which the end says more than the beginning: where both are too long, a pattern that it
 * matches, "*" and a path. */
static const char *name_shown(const struct ap_sheet *s, const char *name)
{
	enum { ROOM = 64 };
	size_t len = strlen(name);
	const char *rest;

	if (len <= ROOM)
		return ap_diag_name(s->ctx->diag, name);
	rest = strchr(name + len - ROOM, '/');
	return rest ? ap_arena_printf(s->ctx->arena, "*%s", ap_diag_name(s->ctx->diag, rest))
		: ap_diag_name(s->ctx->diag, name);
}

static const char *shown(const struct ap_sheet *s, enum ap_cell_type type, const struct value *x)
{
	char buf[32];

	if (holds_text(type))
		return !x->text ? "" : type == AP_CELL_TEXT ? x->text : name_shown(s, x->text);
	if (!isfinite(x->v))
		return "";
	switch (type) {
	case AP_CELL_INT:
		return ap_arena_printf(s->ctx->arena, "%.0f", x->v);
	case AP_CELL_SECONDS:
		return ap_arena_strdup(s->ctx->arena, ap_format_seconds(x->v, buf));
	case AP_CELL_BYTES:
		return ap_arena_strdup(s->ctx->arena, ap_format_bytes((int64_t)x->v, buf));
	case AP_CELL_SHARE:
		return percent(s, x->v, false);
	case AP_CELL_CHANGE:
		return percent(s, x->v, true);
	case AP_CELL_BOOL:
		return x->v > 0 ? "yes" : "";
	default:
		return ap_arena_strdup(s->ctx->arena, ap_format_double(x->v, buf));
	}
}

/* Is there anything that people would read? */
static bool is_bare(const struct block *b)
{
	return !b->fact.n && !b->cell.n && !b->remark.n;
}

/* Columns of a terminal: characters of UTF-8. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xC0) != 0x80;
	return n;
}

static void pad(struct ap_str *out, size_t n)
{
	while (n-- > 0)
		ap_str_addc(out, ' ');
}

static void write_text_table(const struct ap_sheet *s, const struct block *b, struct ap_str *out)
{
	size_t rows = b->cell.n / b->ncolumn, *width = AP_NEW_N(s->ctx->scratch, size_t, b->ncolumn);
	const char **text = AP_NEW_N(s->ctx->scratch, const char *, b->cell.n);

	for (size_t c = 0; c < b->ncolumn; c++)
		width[c] = width_of(b->column[c].title);
	for (size_t i = 0; i < rows * b->ncolumn; i++) {
		size_t c = i % b->ncolumn, w;

		text[i] = shown(s, b->column[c].type, &b->cell.v[i]);
		w = width_of(text[i]);
		width[c] = w > width[c] ? w : width[c];
	}
	for (size_t r = 0; r <= rows; r++) {
		ap_str_addc(out, ' ');
		for (size_t c = 0, blank = 0; c < b->ncolumn; c++) {
			const char *cell = r == 0 ? b->column[c].title : text[(r - 1) * b->ncolumn + c];
			size_t more = width[c] - width_of(cell);
			bool left = holds_text(b->column[c].type);

			blank += 1 + (left ? 0 : more);
			if (*cell) {
				pad(out, blank);
				ap_str_add(out, cell);
				blank = 0;
			}
			blank += left ? more : 0;
			blank++;
		}
		ap_str_addc(out, '\n');
	}
}

static void write_text(const struct ap_sheet *s, struct ap_str *out)
{
	for (size_t i = 0; i < s->thing.n; i++) {
		const struct thing *t = &s->thing.v[i];

		ap_str_addf(out, "%s%s %s%s%s\n", i ? "\n" : "", t->kind, ap_diag_name(s->ctx->diag, t->name),
			*t->words ? ", " : "", t->words);
		for (size_t k = 0; k < t->block.n; k++) {
			const struct block *b = &t->block.v[k];

			if (is_bare(b))
				continue;
			ap_str_addf(out, "\n%s\n", b->title);
			for (size_t f = 0; f < b->fact.n; f++)
				ap_str_addf(out, "  %-22s  %s\n", b->fact.v[f].label,
					shown(s, b->fact.v[f].type, &b->fact.v[f].value));
			if (b->cell.n)
				write_text_table(s, b, out);
			for (size_t r = 0; r < b->remark.n; r++)
				ap_str_addf(out, "  %s\n", b->remark.v[r]);
		}
	}
}

/* Text in which nothing means anything to Markdown. */
static void add_plain(struct ap_str *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>#|~&", *text))
			ap_str_addc(out, '\\');
		ap_str_addc(out, *text);
	}
}

static void write_markdown_table(const struct ap_sheet *s, const struct block *b, struct ap_str *out)
{
	ap_str_addc(out, '\n');
	for (size_t c = 0; c < b->ncolumn; c++)
		ap_str_addf(out, "| %s ", b->column[c].title);
	ap_str_add(out, "|\n");
	for (size_t c = 0; c < b->ncolumn; c++)
		ap_str_add(out, holds_text(b->column[c].type) ? "| --- " : "| ---: ");
	ap_str_add(out, "|\n");
	for (size_t i = 0; i < b->cell.n; i++) {
		ap_str_add(out, "| ");
		add_plain(out, shown(s, b->column[i % b->ncolumn].type, &b->cell.v[i]));
		ap_str_add(out, i % b->ncolumn + 1 == b->ncolumn ? " |\n" : " ");
	}
}

static void write_markdown(const struct ap_sheet *s, struct ap_str *out)
{
	for (size_t i = 0; i < s->thing.n; i++) {
		const struct thing *t = &s->thing.v[i];

		ap_str_addf(out, "%s## %s ", i ? "\n" : "", t->kind);
		add_plain(out, ap_diag_name(s->ctx->diag, t->name));
		ap_str_add(out, "\n\n");
		add_plain(out, t->words);
		ap_str_addc(out, '\n');
		for (size_t k = 0; k < t->block.n; k++) {
			const struct block *b = &t->block.v[k];

			if (is_bare(b))
				continue;
			ap_str_addf(out, "\n### %s\n", b->title);
			for (size_t f = 0; f < b->fact.n; f++) {
				ap_str_addf(out, "%s* %s: ", f ? "" : "\n", b->fact.v[f].label);
				add_plain(out, shown(s, b->fact.v[f].type, &b->fact.v[f].value));
				ap_str_addc(out, '\n');
			}
			if (b->cell.n)
				write_markdown_table(s, b, out);
			for (size_t r = 0; r < b->remark.n; r++) {
				ap_str_addc(out, '\n');
				add_plain(out, b->remark.v[r]);
				ap_str_addc(out, '\n');
			}
		}
	}
}

/* ---- for programs ---- */

static void add_json(struct ap_jw *w, const char *key, enum ap_cell_type type, const struct value *x)
{
	ap_jw_key(w, key);
	if (holds_text(type) ? !x->text : !isfinite(x->v))
		ap_jw_null(w);
	else if (holds_text(type))
		ap_jw_str(w, x->text);
	else if (type == AP_CELL_BOOL)
		ap_jw_bool(w, x->v > 0);
	else if (type == AP_CELL_INT || type == AP_CELL_BYTES)
		ap_jw_int(w, (int64_t)x->v);
	else
		ap_jw_num(w, x->v);
}

static void write_block(struct ap_jw *w, const struct block *b)
{
	ap_jw_kobj(w, b->key);
	for (size_t f = 0; f < b->fact.n; f++)
		add_json(w, b->fact.v[f].key, b->fact.v[f].type, &b->fact.v[f].value);
	if (b->ncolumn)
		ap_jw_karr(w, "rows");
	for (size_t i = 0; i < b->cell.n; i++) {
		const struct ap_column *c = &b->column[i % b->ncolumn];

		if (c == b->column)
			ap_jw_obj_flat(w);
		add_json(w, c->key, c->type, &b->cell.v[i]);
		if (c + 1 == b->column + b->ncolumn)
			ap_jw_end(w);
	}
	if (b->ncolumn)
		ap_jw_end(w);
	if (b->remark.n)
		ap_jw_karr(w, "remarks");
	for (size_t r = 0; r < b->remark.n; r++)
		ap_jw_str(w, b->remark.v[r]);
	if (b->remark.n)
		ap_jw_end(w);
	ap_jw_end(w);
}

static void write_json(const struct ap_sheet *s, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", s->schema);
	ap_jw_karr(&w, "things");
	for (size_t i = 0; i < s->thing.n; i++) {
		const struct thing *t = &s->thing.v[i];

		ap_jw_obj(&w);
		ap_jw_kstr(&w, "kind", t->kind);
		ap_jw_kstr(&w, "name", t->name);
		ap_jw_kstr(&w, "words", t->words);
		for (size_t k = 0; k < t->block.n; k++)
			write_block(&w, &t->block.v[k]);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

void ap_sheet_write(const struct ap_sheet *s, enum ap_sheet_form form, struct ap_str *out)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);

	if (form == AP_SHEET_JSON)
		write_json(s, out);
	else if (form == AP_SHEET_MARKDOWN)
		write_markdown(s, out);
	else
		write_text(s, out);
	ap_arena_release(s->ctx->scratch, mark);
}
