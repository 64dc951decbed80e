/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"

enum { NAME_CHARS = 80, POINTER_CHARS = 400, TEXT_CHARS = 4000 };
enum { MOST_KEPT = 1 << 16 }; /* messages per level; the rest are only counted */

enum { MOST_FIGURES = 4 };

struct message {
	enum ap_level level;
	const char *file, *pointer, *oper; /* NULL: unknown */
	int64_t line, col;
	const char *check;
	const char *text;
	int nfigure;
	struct {
		const char *name;
		int64_t value;
	} figure[MOST_FIGURES];
};

static const char *const words[] = {"note", "warning", "error"}; /* by level */

struct ap_diag {
	struct ap_arena *arena;
	bool strict;
	enum ap_status first; /* of the first error */
	size_t count[AP_ERROR + 1];
	AP_VEC(struct message) messages;
};

struct ap_diag *ap_diag_create(struct ap_arena *arena, bool strict)
{
	struct ap_diag *d = AP_NEW(arena, struct ap_diag);

	d->arena = arena;
	d->strict = strict;
	return d;
}

struct ap_ctx ap_diag_apart(const struct ap_ctx *ctx)
{
	struct ap_ctx own = *ctx;

	own.diag = ap_diag_create(ctx->arena, false);
	return own;
}

/* The code point at s and its length; length 0 if invalid. */
static uint32_t decode(const char *s, size_t left, size_t *len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t bad, n = u[0] < 0x80 ? 1 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : 4;
	uint32_t c = n == 1 ? u[0] : u[0] & 0x7Fu >> n;

	*len = n <= left && ap_str_utf8(s, n, &bad) ? n : 0;
	for (size_t i = 1; i < *len; i++)
		c = c << 6 | (u[i] & 0x3Fu);
	return c;
}

/* Would a terminal interpret c instead of showing it? Controls, line separators, bidi controls. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
		(c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/* Appends raw escaped and cut to most characters. */
static void add_safe(struct ap_str *b, const char *raw, size_t most)
{
	size_t left = strlen(raw), len;

	for (size_t chars = 0; left; chars++, raw += len, left -= len) {
		uint32_t c = decode(raw, left, &len);

		if (chars == most) {
			ap_str_add(b, "...");
			return;
		}
		if (!len) {
			ap_str_addf(b, "\\x%02x", (unsigned)(unsigned char)*raw);
			len = 1;
		} else if (is_control(c)) {
			static const char from[] = "\n\t\r", to[] = "ntr";
			const char *at = c < 0x20 && c ? strchr(from, (int)c) : NULL;

			if (at)
				ap_str_addf(b, "\\%c", to[at - from]);
			else
				ap_str_addf(b, c < 0x100 ? "\\x%02" PRIx32 : "\\u%04" PRIx32, c);
		} else {
			ap_str_addn(b, raw, len);
		}
	}
}

static const char *safe(struct ap_diag *d, const char *raw, size_t most)
{
	struct ap_str b;

	ap_str_init(&b, d->arena);
	add_safe(&b, raw, most);
	return b.s;
}

const char *ap_diag_name(struct ap_diag *d, const char *raw)
{
	return safe(d, raw, NAME_CHARS);
}

const char *ap_diag_path(struct ap_diag *d, const char *raw)
{
	return safe(d, raw, POINTER_CHARS);
}

/* A copy of a name if it is UTF-8 of usual length, else escaped; NULL for "" and NULL. */
static const char *keep(struct ap_diag *d, const char *raw)
{
	size_t bad, len = raw ? strlen(raw) : 0;

	if (!len)
		return NULL;
	return len <= TEXT_CHARS && ap_str_utf8(raw, len, &bad) ? ap_arena_strndup(d->arena, raw, len)
		: safe(d, raw, TEXT_CHARS);
}

enum ap_status ap_diag_addv(struct ap_diag *d, enum ap_level level, enum ap_status st,
	const struct ap_where *where, const char *check, const char *fmt, va_list ap)
{
	struct ap_str raw, text;

	assert(level != AP_ERROR || st != AP_OK);
	if (level != AP_ERROR)
		st = AP_OK;
	if (level == AP_WARNING && d->strict) {
		level = AP_ERROR;
		st = AP_MEANING;
	}
	if (level == AP_ERROR && d->first == AP_OK)
		d->first = st;
	if (d->count[level]++ >= MOST_KEPT)
		return st;
	ap_str_init(&raw, d->arena);
	ap_str_vaddf(&raw, fmt, ap);
	ap_str_init(&text, d->arena);
	add_safe(&text, raw.s, TEXT_CHARS);
	AP_PUSH(d->arena, d->messages, ((struct message){
		.level = level,
		.file = where && where->file ? *where->file ? keep(d, where->file) : "" : NULL,
		.line = where ? where->line : 0,
		.col = where ? where->col : 0,
		.pointer = where ? keep(d, where->pointer) : NULL,
		.oper = where ? keep(d, where->oper) : NULL,
		.check = check ? ap_arena_strdup(d->arena, check) : NULL,
		.text = text.s,
	}));
	return st;
}

enum ap_status ap_diag_add(struct ap_diag *d, enum ap_level level, enum ap_status st,
	const struct ap_where *where, const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(d, level, st, where, check, fmt, ap);
	va_end(ap);
	return st;
}

struct ap_diag_mark ap_diag_mark(const struct ap_diag *d)
{
	struct ap_diag_mark m = {.n = d->messages.n, .first = d->first};

	memcpy(m.count, d->count, sizeof m.count);
	return m;
}

void ap_diag_forget(struct ap_diag *d, const struct ap_diag_mark *m)
{
	d->messages.n = m->n;
	d->first = m->first;
	memcpy(d->count, m->count, sizeof d->count);
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

void ap_diag_pass_on(struct ap_diag *to, const struct ap_diag *from)
{
	size_t n = to->messages.n;

	for (size_t i = 0; i < from->messages.n; i++) {
		const struct message *m = &from->messages.v[i];
		struct ap_where where = {m->file, m->line, m->col, m->pointer, m->oper};
		bool known = false;

		for (size_t k = 0; k < n && !known; k++) {
			const struct message *other = &to->messages.v[k];

			known = m->level == other->level && m->line == other->line && m->col == other->col &&
				is_same(m->file, other->file) && is_same(m->oper, other->oper) &&
				is_same(m->text, other->text);
		}
		if (known)
			continue;
		(void)ap_diag_add(to, m->level, from->first, &where, m->check, "%s", m->text);
		for (int f = 0; f < m->nfigure; f++)
			ap_diag_figure(to, m->figure[f].name, m->figure[f].value);
	}
}

size_t ap_diag_count(const struct ap_diag *d, enum ap_level level)
{
	return d->count[level];
}

enum ap_status ap_diag_status(const struct ap_diag *d)
{
	return d->first;
}

void ap_diag_render(const struct ap_diag *d, enum ap_level least, size_t max_errors,
	struct ap_str *out)
{
	size_t shown[AP_ERROR + 1] = {0};

	for (size_t i = 0; i < d->messages.n; i++) {
		const struct message *m = &d->messages.v[i];

		if (m->level < least || shown[m->level] == max_errors)
			continue;
		shown[m->level]++;
		ap_str_addf(out, "autopar-plan: %s: ", words[m->level]);
		/* location, with colon and blank */
		if (m->file) {
			if (*m->file)
				add_safe(out, m->file, POINTER_CHARS);
			else
				ap_str_add(out, "\"\"");
			if (m->line > 0)
				ap_str_addf(out, ":%" PRId64, m->line);
			if (m->line > 0 && m->col > 0)
				ap_str_addf(out, ":%" PRId64, m->col);
			ap_str_add(out, ": ");
		}
		if (m->pointer)
			add_safe(out, m->pointer, POINTER_CHARS);
		if (m->oper) {
			ap_str_add(out, m->pointer ? " (operator \"" : "(operator \"");
			add_safe(out, m->oper, NAME_CHARS);
			ap_str_add(out, "\")");
		}
		if (m->pointer || m->oper)
			ap_str_add(out, ": ");
		ap_str_add(out, m->text);
		if (m->check)
			ap_str_addf(out, " [%s]", m->check);
		ap_str_addc(out, '\n');
	}
	for (int level = AP_ERROR; level >= (int)least; level--)
		if (d->count[level] > shown[level])
			ap_str_addf(out, "autopar-plan: %s: and %zu more\n", words[level],
				d->count[level] - shown[level]);
}

void ap_diag_figure(struct ap_diag *d, const char *name, int64_t value)
{
	struct message *m = d->messages.n ? &d->messages.v[d->messages.n - 1] : NULL;

	if (!m || m->nfigure == MOST_FIGURES)
		return;
	m->figure[m->nfigure].name = name;
	m->figure[m->nfigure++].value = value;
}

static void write_figures(struct ap_jw *w, const struct message *m)
{
	for (int i = 0; i < m->nfigure; i++)
		ap_jw_kint(w, m->figure[i].name, m->figure[i].value);
}

void ap_diag_write_figures(const struct ap_diag *d, struct ap_jw *w)
{
	for (size_t i = 0; i < d->messages.n; i++)
		if (d->messages.v[i].level == AP_ERROR && d->messages.v[i].nfigure) {
			ap_jw_obj_flat(w);
			write_figures(w, &d->messages.v[i]);
			ap_jw_end(w);
			return;
		}
	ap_jw_null(w);
}

static void write_text(struct ap_jw *w, const char *key, const char *text)
{
	ap_jw_key(w, key);
	if (text)
		ap_jw_str(w, text);
	else
		ap_jw_null(w);
}

static void write_number(struct ap_jw *w, const char *key, int64_t n)
{
	ap_jw_key(w, key);
	if (n > 0)
		ap_jw_int(w, n);
	else
		ap_jw_null(w);
}

void ap_diag_write(const struct ap_diag *d, struct ap_jw *w, size_t most)
{
	static const char *const keys[] = {"notes", "warnings", "errors"};

	for (int level = AP_ERROR; level >= AP_NOTE; level--) {
		size_t n = 0;

		ap_jw_karr(w, keys[level]);
		for (size_t i = 0; i < d->messages.n && n < most; i++)
			if ((int)d->messages.v[i].level == level) {
				const struct message *m = &d->messages.v[i];

				ap_jw_obj_flat(w);
				ap_jw_kstr(w, "level", words[m->level]);
				write_text(w, "file", m->file);
				write_number(w, "line", m->line);
				write_number(w, "column", m->line > 0 ? m->col : 0);
				write_text(w, "pointer", m->pointer);
				write_text(w, "operator", m->oper);
				write_text(w, "check", m->check);
				ap_jw_kstr(w, "text", m->text);
				write_figures(w, m);
				ap_jw_end(w);
				n++;
			}
		ap_jw_end(w);
	}
	ap_jw_kobj_flat(w, "counts");
	for (int level = AP_ERROR; level >= AP_NOTE; level--)
		ap_jw_kint(w, keys[level], (int64_t)d->count[level]);
	ap_jw_end(w);
}

bool ap_diag_at(const struct ap_diag *d, size_t i, struct ap_message *out)
{
	const struct message *m;

	if (i >= d->messages.n)
		return false;
	m = &d->messages.v[i];
	*out = (struct ap_message){m->level, m->file, m->pointer, m->oper, m->check, m->text, m->line,
		m->col};
	return true;
}

const char *ap_diag_first_error(const struct ap_diag *d)
{
	struct ap_message m;

	for (size_t i = 0; ap_diag_at(d, i, &m); i++)
		if (m.level == AP_ERROR)
			return m.text;
	return NULL;
}

const char *ap_diag_text(const struct ap_diag *d, size_t i, enum ap_level *level,
	const char **check)
{
	if (i >= d->messages.n)
		return NULL;
	if (level)
		*level = d->messages.v[i].level;
	if (check)
		*check = d->messages.v[i].check;
	return d->messages.v[i].text;
}
