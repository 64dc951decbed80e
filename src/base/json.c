/* SPDX-License-Identifier: Apache-2.0 */
/* A scan, stricter than cJSON's parser and exact about numbers, creates values and links them into
 * a tree through cJSON. All use of cJSON is here. */
#include "base/json.h"

#include <assert.h>
#include <cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/decimal.h"
#include "base/foreign.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

enum {
	MOST_DEPTH = 256, /* nested containers */
	MOST_VALUES = 1 << 23, /* per document; or one per eight bytes if that is more. Bounds
			the tree's memory. */
	MOST_REPORTS = 20, /* per kind of fault */
	BLOCK = 4096,
	FEW_KEYS = 8,
	TOKEN_CHARS = 40,
	MOST_DIGITS = 19, /* that fit in 64 bits */
};

struct ap_jv {
	cJSON item; /* first: cJSON links items; valueint: number of a container's items */
	struct ap_jv *up; /* container; NULL for the root */
	uint32_t offset; /* of the value in the text */
	uint32_t key_offset; /* of a member's key; in an array: index */
};

struct place {
	uint32_t line, col; /* from 1; columns are characters */
};

struct ap_json {
	const char *file;
	const char *text; /* NUL-terminated */
	size_t len;
	struct place *blocks; /* position of every BLOCK-th byte */
	const struct ap_jv *root;
};

/* Positions of values and faults. */

/* Counts characters: continuation bytes do not count. */
static uint32_t count_chars(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xC0) != 0x80;
	return n;
}

static void place_advance(struct place *place, const char *s, size_t len)
{
	const char *end = s + len, *line;

	while ((line = memchr(s, '\n', (size_t)(end - s))) != NULL) {
		*place = (struct place){.line = place->line + 1, .col = 1};
		s = line + 1;
	}
	place->col += count_chars(s, (size_t)(end - s));
}

static void index_places(struct ap_ctx *ctx, struct ap_json *doc)
{
	struct place place = {.line = 1, .col = 1};
	size_t n = doc->len / BLOCK;

	doc->blocks = AP_NEW_N(ctx->arena, struct place, n + 1);
	for (size_t i = 0; i < n; i++) {
		doc->blocks[i] = place;
		place_advance(&place, doc->text + i * BLOCK, BLOCK);
	}
	doc->blocks[n] = place;
}

static struct place place_of(const struct ap_json *doc, size_t offset)
{
	size_t start = offset - offset % BLOCK;
	struct place place = doc->blocks[start / BLOCK];

	assert(offset <= doc->len);
	place_advance(&place, doc->text + start, offset - start);
	return place;
}

const char *ap_jv_pointer(struct ap_arena *arena, const struct ap_jv *v)
{
	const struct ap_jv *chain[MOST_DEPTH];
	struct ap_str b;
	size_t n = 0;

	for (; v->up; v = v->up)
		chain[n++] = v;
	ap_str_init(&b, arena);
	while (n--) {
		ap_str_addc(&b, '/');
		for (const char *key = chain[n]->item.string; key && *key; key++)
			ap_str_addn(&b, *key == '~' ? "~0" : *key == '/' ? "~1" : key,
				*key == '~' || *key == '/' ? 2 : 1);
		if (!chain[n]->item.string)
			ap_str_addf(&b, "%" PRIu32, chain[n]->key_offset);
	}
	return b.s;
}

static enum ap_status __attribute__((format(printf, 9, 0))) report(struct ap_ctx *ctx,
	const struct ap_json *doc, size_t offset, const struct ap_jv *v, enum ap_level level,
	enum ap_status st, const char *oper, const char *check, const char *fmt, va_list ap)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_where where = {.file = doc->file, .oper = oper};

	if (offset != SIZE_MAX) {
		struct place place = place_of(doc, offset);

		where.line = place.line;
		where.col = place.col;
	}
	if (v)
		where.pointer = ap_jv_pointer(ctx->scratch, v);
	st = ap_diag_addv(ctx->diag, level, st, &where, check, fmt, ap);
	ap_arena_release(ctx->scratch, mark);
	return st;
}

/* Reports at a text offset; v gives the pointer (NULL: none). */
static enum ap_status __attribute__((format(printf, 8, 9))) report_at(struct ap_ctx *ctx,
	const struct ap_json *doc, size_t offset, const struct ap_jv *v, enum ap_level level,
	enum ap_status st, const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	st = report(ctx, doc, offset, v, level, st, NULL, check, fmt, ap);
	va_end(ap);
	return st;
}

enum ap_status ap_json_reportv(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	enum ap_level level, enum ap_status st, const char *oper, const char *check, const char *fmt,
	va_list ap)
{
	return report(ctx, doc, v ? v->offset : SIZE_MAX, v, level, st, oper, check, fmt, ap);
}

enum ap_status ap_json_report(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	enum ap_level level, enum ap_status st, const char *oper, const char *check, const char *fmt,
	...)
{
	va_list ap;

	va_start(ap, fmt);
	st = ap_json_reportv(ctx, doc, v, level, st, oper, check, fmt, ap);
	va_end(ap);
	return st;
}

/* The scan: RFC 8259 grammar, UTF-8, nesting, without recursion. */

struct scanner {
	struct ap_arena *arena; /* of the tree */
	const char *s; /* NUL-terminated */
	size_t len, at;
	size_t count, most; /* values, and their limit */
	bool trailing_commas; /* allowed */
	struct ap_jv *root, *inside; /* inside: container being read; NULL: none */
	int depth;

	struct ap_str text; /* last string read */
	bool byte_order_mark;
	uint32_t commas[MOST_REPORTS]; /* offsets of trailing commas */
	size_t ncomma;
	struct {
		const struct ap_jv *value;
		bool in_key;
	} nuls[MOST_REPORTS]; /* each a \u0000, which C strings cannot hold */
	size_t nnul;

	enum ap_status status;
	size_t fault_offset; /* this and fault: unless status is AP_OK */
	char fault[128];
};

/* Records a fault; returns false for the caller to return. */
static bool __attribute__((format(printf, 4, 5))) fault(struct scanner *sc, enum ap_status st,
	size_t offset, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sc->fault, sizeof sc->fault, fmt, ap);
	va_end(ap);
	sc->fault_offset = offset;
	sc->status = st;
	return false;
}

/* The next character; NUL at the end. */
static int peek(const struct scanner *sc)
{
	return (unsigned char)sc->s[sc->at];
}

static bool accept(struct scanner *sc, int c)
{
	if (peek(sc) != c)
		return false;
	sc->at++;
	return true;
}

static void skip_blanks(struct scanner *sc)
{
	const char *s = sc->s + sc->at;

	while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
		s++;
	sc->at = (size_t)(s - sc->s);
}

static bool unexpected(struct scanner *sc, const char *expected)
{
	static const struct {
		const char *begin, *hint;
	} others[] = { /* hints for other notations */
		{"/#", "; comments are not allowed"},
		{"'", "; strings need double quotes"},
		{"+", "; a number must not begin with +"},
		{".", "; a number needs digits on both sides of the point"},
		{"NI", "; NaN and Infinity are not allowed"},
	};
	const char *hint = "";
	int c = peek(sc);

	if (sc->at == sc->len)
		return fault(sc, AP_SYNTAX, sc->at, "expected %s, got the end of the file", expected);
	if (c <= ' ' || c >= 0x7F)
		return fault(sc, AP_SYNTAX, sc->at, "expected %s, got the byte 0x%02x", expected,
			(unsigned)c);
	for (size_t i = 0; i < AP_COUNT(others); i++)
		hint = strchr(others[i].begin, c) ? others[i].hint : hint;
	return fault(sc, AP_SYNTAX, sc->at, "expected %s, got '%c'%s", expected, c, hint);
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* A number: digits 10^power, unless ndigit exceeds MOST_DIGITS. */
struct number {
	uint64_t digits;
	size_t ndigit; /* from the first non-zero digit */
	int64_t power;
};

static bool digits(struct scanner *sc, struct number *n, const char *expected)
{
	const char *s = sc->s + sc->at, *first;

	if (!is_digit(*s))
		return unexpected(sc, expected);
	if (!n->ndigit)
		while (*s == '0')
			s++;
	for (first = s; is_digit(*s); s++)
		n->digits = n->digits * 10 + (uint64_t)(*s - '0');
	n->ndigit += (size_t)(s - first);
	sc->at = (size_t)(s - sc->s);
	return true;
}

static bool number(struct scanner *sc, double *r)
{
	struct number n = {0}, exponent = {0};
	size_t start = sc->at;
	bool negative = accept(sc, '-');

	if (accept(sc, '0')) {
		if (is_digit(peek(sc)))
			return fault(sc, AP_SYNTAX, start, "number with a leading zero");
	} else if (!digits(sc, &n, "a digit")) {
		return false;
	}
	if (accept(sc, '.')) {
		size_t point = sc->at;

		if (!digits(sc, &n, "a digit after the point"))
			return false;
		n.power = -(int64_t)(sc->at - point);
	}
	if (accept(sc, 'e') || accept(sc, 'E')) {
		bool down = accept(sc, '-');

		if (!down)
			accept(sc, '+');
		if (!digits(sc, &exponent, "a digit of the exponent"))
			return false;
		n.power += down ? -(int64_t)exponent.digits : (int64_t)exponent.digits;
	}
	if (n.ndigit > MOST_DIGITS || exponent.ndigit >= MOST_DIGITS ||
		!ap_decimal_value(n.digits, n.power, r))
		*r = ap_strtod(sc->s + start, NULL);
	else if (negative)
		*r = -*r;
	return true;
}

/* Reads four hexadecimal digits after \u. */
static bool hex4(struct scanner *sc, unsigned *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++, sc->at++) {
		int c = peek(sc), low = c | 0x20;

		if (is_digit(c))
			*code = *code << 4 | (unsigned)(c - '0');
		else if (low >= 'a' && low <= 'f')
			*code = *code << 4 | (unsigned)(low - 'a' + 10);
		else
			return unexpected(sc, "four hexadecimal digits after \\u");
	}
	return true;
}

static void add_char(struct ap_str *b, unsigned code)
{
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes after the first */

	ap_str_addc(b, (char)(more ? 0xFF80 >> more | code >> 6 * more : code));
	while (more--)
		ap_str_addc(b, (char)(0x80 | (code >> 6 * more & 0x3F)));
}

/* Reads an escape, after the backslash. */
static bool escape(struct scanner *sc, bool *nul)
{
	static const char stands_for[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	size_t start = sc->at - 1;
	unsigned high, low = 0;
	int c = peek(sc);

	if (!c || !strchr("\"\\/bfnrtu", c))
		return unexpected(sc, "one of \" \\ / b f n r t u after a backslash");
	sc->at++;
	if (c != 'u') {
		ap_str_addc(&sc->text, strchr(stands_for, c)[1]);
		return true;
	}
	if (!hex4(sc, &high))
		return false;
	*nul |= high == 0;
	if (high < 0xD800 || high > 0xDFFF) {
		add_char(&sc->text, high);
		return true;
	}
	if (high < 0xDC00 && accept(sc, '\\') && accept(sc, 'u') && !hex4(sc, &low))
		return false;
	if (low < 0xDC00 || low > 0xDFFF)
		return fault(sc, AP_SYNTAX, start, "\\u%04x is half of a surrogate pair", high);
	add_char(&sc->text, 0x10000 + ((high & 0x3FF) << 10 | (low & 0x3FF)));
	return true;
}

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define TOP_BITS (EACH_BYTE << 7)

/* Does the word contain a byte below n <= 128? */
static uint64_t has_below(uint64_t word, unsigned n)
{
	return (word - EACH_BYTE * n) & ~word & TOP_BITS;
}

/* Finds the next quote, backslash or control character, such as the final NUL. */
static const char *skip_plain(const char *s, const char *end)
{
	for (uint64_t word; (size_t)(end - s) >= sizeof word; s += sizeof word) {
		memcpy(&word, s, sizeof word);
		if (has_below(word, ' ') | has_below(word ^ EACH_BYTE * '"', 1) |
			has_below(word ^ EACH_BYTE * '\\', 1))
			break;
	}
	while ((unsigned char)*s >= ' ' && *s != '"' && *s != '\\')
		s++;
	return s;
}

/* Reads a string from its opening quote; *nul: it has a \u0000. */
static bool string(struct scanner *sc, char **r, bool *nul)
{
	size_t start = sc->at++;

	sc->text.len = 0;
	for (;;) {
		size_t part = sc->at;

		sc->at = (size_t)(skip_plain(sc->s + part, sc->s + sc->len) - sc->s);
		ap_str_addn(&sc->text, sc->s + part, sc->at - part);
		if (accept(sc, '"'))
			break;
		if (sc->at == sc->len)
			return fault(sc, AP_SYNTAX, start, "string without an end");
		if (!accept(sc, '\\'))
			return fault(sc, AP_SYNTAX, sc->at,
				"control character 0x%02x in a string; it must be escaped",
				(unsigned)peek(sc));
		if (!escape(sc, nul))
			return false;
	}
	*r = ap_arena_strndup(sc->arena, sc->text.s, sc->text.len);
	return true;
}

static bool literal(struct scanner *sc, int *type)
{
	static const struct {
		const char *word;
		int type;
	} rows[] = {{"true", cJSON_True}, {"false", cJSON_False}, {"null", cJSON_NULL}};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		size_t n = strlen(rows[i].word);

		if (sc->len - sc->at >= n && !memcmp(sc->s + sc->at, rows[i].word, n)) {
			*type = rows[i].type;
			sc->at += n;
			return true;
		}
	}
	return unexpected(sc, "a value");
}

/* Reads a value; of a container, the opening bracket. */
static bool value(struct scanner *sc, cJSON *r, bool *nul)
{
	int c = peek(sc);

	if (c == '"') {
		r->type = cJSON_String;
		return string(sc, &r->valuestring, nul);
	}
	if (c == '-' || is_digit(c)) {
		r->type = cJSON_Number;
		return number(sc, &r->valuedouble);
	}
	if (c != '{' && c != '[')
		return literal(sc, &r->type);
	if (sc->depth == MOST_DEPTH)
		return fault(sc, AP_LIMIT, sc->at, "nesting deeper than %d", MOST_DEPTH);
	r->type = c == '{' ? cJSON_Object : cJSON_Array;
	sc->at++;
	return true;
}

static void note_nul(struct scanner *sc, const struct ap_jv *v, bool in_key)
{
	if (sc->nnul == MOST_REPORTS)
		return;
	sc->nuls[sc->nnul].value = v;
	sc->nuls[sc->nnul++].in_key = in_key;
}

/* Reads the next value, with any key, into the tree. */
static bool item(struct scanner *sc)
{
	struct ap_jv *up = sc->inside, read = {.up = up}, *v;
	bool key_nul = false, nul = false;
	char *key = NULL;

	skip_blanks(sc);
	if (up && up->item.type == cJSON_Object) {
		read.key_offset = (uint32_t)sc->at;
		if (peek(sc) != '"')
			return unexpected(sc, "a key in double quotes");
		if (!string(sc, &key, &key_nul))
			return false;
		skip_blanks(sc);
		if (!accept(sc, ':'))
			return unexpected(sc, "':' after the key");
		skip_blanks(sc);
	} else if (up) {
		read.key_offset = (uint32_t)up->item.valueint;
	}
	if (sc->count++ == sc->most)
		return fault(sc, AP_LIMIT, sc->at, "more than %zu values in a file of %zu bytes",
			sc->most, sc->len);
	read.offset = (uint32_t)sc->at;
	if (!value(sc, &read.item, &nul))
		return false;
	v = ap_arena_memdup(sc->arena, &read, sizeof read);
	if (key)
		cJSON_AddItemToObjectCS(&up->item, key, &v->item);
	else if (up)
		cJSON_AddItemToArray(&up->item, &v->item);
	v->item.type = read.item.type; /* drops cJSON's flag that the key is constant */
	if (up)
		up->item.valueint++;
	else
		sc->root = v;
	if (key_nul)
		note_nul(sc, v, true);
	if (nul)
		note_nul(sc, v, false);
	if (v->item.type == cJSON_Array || v->item.type == cJSON_Object) {
		sc->inside = v;
		sc->depth++;
	}
	return true;
}

/* Does the innermost container end here? */
static bool at_end_of_container(struct scanner *sc)
{
	skip_blanks(sc);
	return peek(sc) == (sc->inside->item.type == cJSON_Object ? '}' : ']');
}

/* Closes containers that end here, then skips the comma before the next item; *done: no more
 * items. */
static bool next_item(struct scanner *sc, bool *done)
{
	for (;;) {
		size_t comma;

		while (sc->inside && at_end_of_container(sc)) {
			sc->at++;
			sc->depth--;
			sc->inside = sc->inside->up;
		}
		*done = !sc->inside;
		if (*done)
			return true;
		comma = sc->at;
		if (!accept(sc, ','))
			return unexpected(sc,
				sc->inside->item.type == cJSON_Object ? "',' or '}'" : "',' or ']'");
		if (!at_end_of_container(sc))
			return true;
		if (!sc->trailing_commas)
			return fault(sc, AP_SYNTAX, comma, "trailing comma");
		if (sc->ncomma < MOST_REPORTS)
			sc->commas[sc->ncomma++] = (uint32_t)comma;
	}
}

static bool document(struct scanner *sc)
{
	const unsigned char *u = (const unsigned char *)sc->s;
	bool done = false;
	size_t bad;

	/* a BOM, or every other byte is zero */
	if (sc->len >= 2 && (!memcmp(u, "\xFF\xFE", 2) || !memcmp(u, "\xFE\xFF", 2) || !u[0] != !u[1]))
		return fault(sc, AP_SYNTAX, 0, "looks like UTF-16; expected UTF-8");
	if (!ap_str_utf8(sc->s, sc->len, &bad))
		return fault(sc, AP_SYNTAX, bad, "byte 0x%02x at offset %zu is not UTF-8", (unsigned)u[bad],
			bad);
	if (sc->len >= 3 && !memcmp(sc->s, "\xEF\xBB\xBF", 3)) {
		sc->byte_order_mark = true;
		sc->at = 3;
	}
	skip_blanks(sc);
	if (sc->at == sc->len)
		return fault(sc, AP_SYNTAX, sc->at, sc->len ? "nothing but blanks" : "empty");
	while (!done) {
		const struct ap_jv *inside = sc->inside;

		if (!item(sc))
			return false;
		if (sc->inside != inside && !at_end_of_container(sc))
			continue;
		if (!next_item(sc, &done))
			return false;
	}
	skip_blanks(sc);
	return sc->at == sc->len || unexpected(sc, "the end of the file");
}

/* Faults that the grammar allows. */

static const struct ap_jv *node(const cJSON *item)
{
	return (const struct ap_jv *)(const void *)item;
}

/* The next value in document order. */
static const struct ap_jv *next_node(const struct ap_jv *v)
{
	if (v->item.child)
		return node(v->item.child);
	while (v && !v->item.next)
		v = v->up;
	return v ? node(v->item.next) : NULL;
}

/* Reports up to `most` repeated keys of obj; returns their number. */
static size_t find_duplicates(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, size_t most)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	const struct ap_jv **first = ap_arena_alloc_raw(ctx->scratch, ap_jv_count(obj), sizeof *first);
	size_t found = 0;

	for (const struct ap_jv *v = ap_jv_first(obj); v && found < most; v = ap_jv_next(v)) {
		bool fresh;
		ap_id id = ap_map_put_str(keys, v->item.string, &fresh);

		if (fresh) {
			first[id] = v;
		} else {
			report_at(ctx, doc, v->key_offset, v, AP_ERROR, AP_MEANING, "key-duplicate",
				"duplicate key \"%s\"; it is already on line %u",
				ap_diag_name(ctx->diag, v->item.string),
				(unsigned)place_of(doc, first[id]->key_offset).line);
			found++;
		}
	}
	ap_arena_release(ctx->scratch, mark);
	return found;
}

/* Avoids a map for small objects, which are most. */
static bool all_differ(const struct ap_jv *obj)
{
	for (const cJSON *v = obj->item.child; v; v = v->next)
		for (const cJSON *w = v->next; w; w = w->next)
			if (*v->string == *w->string && !strcmp(v->string, w->string))
				return false;
	return true;
}

/* Reports non-finite numbers and duplicate keys. */
static enum ap_status check_values(struct ap_ctx *ctx, const struct ap_json *doc)
{
	size_t found = 0;

	for (const struct ap_jv *v = doc->root; v && found < MOST_REPORTS; v = next_node(v)) {
		if (v->item.type == cJSON_Number && !isfinite(v->item.valuedouble)) {
			ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "number-finite",
				"number is not finite");
			found++;
		}
		if (v->item.type == cJSON_Object && (v->item.valueint > FEW_KEYS || !all_differ(v)))
			found += find_duplicates(ctx, doc, v, MOST_REPORTS - found);
	}
	return found ? AP_MEANING : AP_OK;
}

/* Warns of accepted deviations from JSON. */
static enum ap_status report_lapses(struct ap_ctx *ctx, const struct ap_json *doc, const struct scanner *sc)
{
	enum ap_status st = AP_OK;

	if (sc->byte_order_mark)
		st = ap_json_report(ctx, doc, NULL, AP_WARNING, AP_OK, NULL, "byte-order-mark",
			"begins with a byte order mark, which JSON does not allow");
	for (size_t i = 0; i < sc->ncomma; i++) {
		enum ap_status one = report_at(ctx, doc, sc->commas[i], NULL, AP_WARNING, AP_OK,
			"trailing-comma", "trailing comma");

		st = st != AP_OK ? st : one;
	}
	return st;
}

static enum ap_status parse_text(struct ap_ctx *ctx, struct ap_json *doc, unsigned flags)
{
	struct scanner sc = {.arena = ctx->arena, .s = doc->text, .len = doc->len,
		.most = doc->len / 8 > MOST_VALUES ? doc->len / 8 : MOST_VALUES,
		.trailing_commas = flags & AP_JSON_TRAILING_COMMA};
	enum ap_status st, lapses;
	const char *other;

	ap_str_init(&sc.text, ctx->scratch);
	st = document(&sc) ? AP_OK : sc.status;
	lapses = report_lapses(ctx, doc, &sc);
	if (st == AP_SYNTAX && (other = ap_foreign(ctx, doc->text, doc->len)))
		return ap_diag_add(ctx->diag, AP_ERROR, st, &(struct ap_where){.file = doc->file}, NULL, "%s",
			other);
	if (st != AP_OK)
		return report_at(ctx, doc, sc.fault_offset, NULL, AP_ERROR, st, NULL, "%s", sc.fault);
	doc->root = sc.root;
	for (size_t i = 0; i < sc.nnul; i++) {
		const struct ap_jv *v = sc.nuls[i].value;
		bool in_key = sc.nuls[i].in_key;

		report_at(ctx, doc, in_key ? v->key_offset : v->offset, v, AP_ERROR, AP_MEANING, "string-nul",
			"\\u0000 in a %s", in_key ? "key" : "string");
	}
	if (sc.nnul)
		return AP_MEANING; /* truncated strings would look like duplicates */
	AP_TRY(check_values(ctx, doc));
	return lapses;
}

enum ap_status ap_json_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	unsigned flags, struct ap_json **out)
{
	struct ap_json *doc = AP_NEW(ctx->arena, struct ap_json);
	struct ap_mark mark;
	enum ap_status st;

	assert(ctx->arena != ctx->scratch && !text[len]);
	*doc = (struct ap_json){.file = ap_arena_strdup(ctx->arena, file), .text = text, .len = len};
	if (len >= UINT32_MAX)
		return ap_json_report(ctx, doc, NULL, AP_ERROR, AP_LIMIT, NULL, NULL,
			"%zu bytes; at most %u can be read", len, (unsigned)UINT32_MAX - 1);
	index_places(ctx, doc);
	mark = ap_arena_mark(ctx->scratch);
	st = parse_text(ctx, doc, flags);
	ap_arena_release(ctx->scratch, mark);
	if (st == AP_OK)
		*out = doc;
	return st;
}

/* Values. */

const struct ap_jv *ap_json_root(const struct ap_json *doc)
{
	return doc->root;
}

const char *ap_json_file(const struct ap_json *doc)
{
	return doc->file;
}

enum ap_jtype ap_jv_type(const struct ap_jv *v)
{
	switch (v->item.type) {
	case cJSON_NULL:
		return AP_JNULL;
	case cJSON_Number:
		return AP_JNUMBER;
	case cJSON_String:
		return AP_JSTRING;
	case cJSON_Array:
		return AP_JARRAY;
	case cJSON_Object:
		return AP_JOBJECT;
	default:
		return AP_JBOOL;
	}
}

size_t ap_jv_count(const struct ap_jv *v)
{
	return v->item.child ? (size_t)v->item.valueint : 0;
}

bool ap_jv_is_shallow(const struct ap_jv *v, int depth)
{
	if (v->item.type != cJSON_Array && v->item.type != cJSON_Object)
		return true;
	for (const struct ap_jv *m = ap_jv_first(v); m && depth; m = ap_jv_next(m))
		if (!ap_jv_is_shallow(m, depth - 1))
			return false;
	return depth > 0;
}

const struct ap_jv *ap_jv_first(const struct ap_jv *v)
{
	return node(v->item.child);
}

const struct ap_jv *ap_jv_next(const struct ap_jv *v)
{
	return node(v->item.next);
}

const char *ap_jv_key(const struct ap_jv *v)
{
	return v->item.string;
}

const struct ap_jv *ap_jv_get(const struct ap_jv *obj, const char *key)
{
	const cJSON *v = obj->item.type == cJSON_Object ? obj->item.child : NULL;

	while (v && (*v->string != *key || strcmp(v->string, key) != 0))
		v = v->next;
	return node(v);
}

const char *ap_jv_str(const struct ap_jv *v)
{
	assert(v->item.type == cJSON_String);
	return v->item.valuestring;
}

bool ap_jv_bool(const struct ap_jv *v)
{
	assert(v->item.type == cJSON_True || v->item.type == cJSON_False);
	return v->item.type == cJSON_True;
}

double ap_jv_double(const struct ap_jv *v)
{
	assert(v->item.type == cJSON_Number);
	return v->item.valuedouble;
}

enum whole { WHOLE, FRACTION, TOO_LARGE };

/* Converts a number token in JSON's grammar exactly. Zeros count only if another digit follows or
 * the exponent cancels them, so 0.8e1 and 80e-1 are exact. */
static enum whole whole_number(const char *token, int64_t *r)
{
	const int64_t far = INT64_C(1) << 40; /* longer than any text */
	bool negative = *token == '-', point = false, fits = true;
	int64_t v = 0, zeros = 0, power = 0;
	const char *s = token + negative;

	for (; is_digit(*s) || *s == '.'; s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		power -= point;
		if (*s == '0') {
			zeros++;
			continue;
		}
		for (; zeros >= 0; zeros--)
			fits = fits && ap_mul(v, 10, &v);
		fits = fits && ap_add(v, negative ? '0' - *s : *s - '0', &v);
		zeros = 0;
	}
	if (*s == 'e' || *s == 'E') {
		int64_t exponent = strtoll(s + 1, NULL, 10);

		power += exponent > far ? far : exponent < -far ? -far : exponent;
	}
	power += zeros;
	if (v && power < 0)
		return FRACTION;
	for (; v && fits && power > 0; power--)
		fits = ap_mul(v, 10, &v);
	*r = v;
	return fits ? WHOLE : TOO_LARGE;
}

bool ap_jv_int(const struct ap_json *doc, const struct ap_jv *v, int64_t *r)
{
	int64_t whole;

	if (v->item.type != cJSON_Number || whole_number(doc->text + v->offset, &whole) != WHOLE)
		return false;
	*r = whole;
	return true;
}

/* Members of objects, with error messages. */

/* Reports "expected an integer, got the number 8.5". */
static enum ap_status mismatch(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	const char *check, const char *expected)
{
	static const char *const names[] = {"null", "a boolean", "the number ", "a string", "an array",
		"an object"};
	const char *token = doc->text + v->offset;
	size_t n = v->item.type == cJSON_Number ? strspn(token, "+-.0123456789eE") : 0;

	return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, check, "expected %s, got %s%.*s%s",
		expected, names[ap_jv_type(v)], n > TOKEN_CHARS ? TOKEN_CHARS : (int)n, token,
		n > TOKEN_CHARS ? "..." : "");
}

static enum ap_status wrong_type(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *v, const char *expected)
{
	return mismatch(ctx, doc, v, "key-type", expected);
}

/* The member; NULL if absent (AP_OK unless required). */
static enum ap_status find(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char *key, bool required, const struct ap_jv **v)
{
	*v = NULL;
	if (obj->item.type != cJSON_Object)
		return wrong_type(ctx, doc, obj, "an object");
	*v = ap_jv_get(obj, key);
	if (*v || !required)
		return AP_OK;
	return ap_json_report(ctx, doc, obj, AP_ERROR, AP_MEANING, NULL, "key-missing",
		"no key \"%s\"", key);
}

static enum ap_status to_int(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	int64_t lo, int64_t hi, int64_t *r)
{
	enum whole whole;
	char range[96];
	int64_t n;

	if (v->item.type != cJSON_Number)
		return wrong_type(ctx, doc, v, "an integer");
	whole = whole_number(doc->text + v->offset, &n);
	if (whole == FRACTION)
		return wrong_type(ctx, doc, v, "an integer");
	if (whole == WHOLE && n >= lo && n <= hi) {
		*r = n;
		return AP_OK;
	}
	if (hi == INT64_MAX && lo > INT64_MIN && whole == WHOLE)
		snprintf(range, sizeof range, "at least %" PRId64, lo);
	else
		snprintf(range, sizeof range, "an integer from %" PRId64 " to %" PRId64, lo, hi);
	return mismatch(ctx, doc, v, "key-range", range);
}

static enum ap_status to_num(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	double lo, double hi, double *r)
{
	char low[32], high[32], range[96];

	if (v->item.type != cJSON_Number)
		return wrong_type(ctx, doc, v, "a number");
	if (v->item.valuedouble >= lo && v->item.valuedouble <= hi) {
		*r = v->item.valuedouble;
		return AP_OK;
	}
	if (isfinite(lo))
		ap_format_double(lo, low);
	if (isfinite(hi))
		ap_format_double(hi, high);
	if (isfinite(lo) && isfinite(hi))
		snprintf(range, sizeof range, "a number from %s to %s", low, high);
	else if (isfinite(lo))
		snprintf(range, sizeof range, "at least %s", low);
	else
		snprintf(range, sizeof range, "at most %s", high);
	return mismatch(ctx, doc, v, "key-range", range);
}

/* Gets a member whose type needs no conversion; *r is unchanged if it is absent. */
static enum ap_status get_typed(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, bool required, enum ap_jtype type,
	const struct ap_jv **r)
{
	static const char *const names[] = {"null", "true or false", "a number", "a string",
		"an array", "an object"};
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, required, &v));
	if (v && ap_jv_type(v) != type)
		return wrong_type(ctx, doc, v, names[type]);
	if (v)
		*r = v;
	return AP_OK;
}

enum ap_status ap_json_get_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r)
{
	const struct ap_jv *v = NULL;

	AP_TRY(get_typed(ctx, doc, obj, key, true, AP_JSTRING, &v));
	*r = v->item.valuestring;
	return AP_OK;
}

enum ap_status ap_json_opt_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r)
{
	const struct ap_jv *v = NULL;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JSTRING, &v));
	*r = v ? v->item.valuestring : *r;
	return AP_OK;
}

enum ap_status ap_json_get_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, true, &v));
	return to_int(ctx, doc, v, lo, hi, r);
}

enum ap_status ap_json_opt_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, false, &v));
	return v ? to_int(ctx, doc, v, lo, hi, r) : AP_OK;
}

enum ap_status ap_json_get_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, true, &v));
	return to_num(ctx, doc, v, lo, hi, r);
}

enum ap_status ap_json_opt_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, false, &v));
	return v ? to_num(ctx, doc, v, lo, hi, r) : AP_OK;
}

enum ap_status ap_json_opt_bool(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, bool *r)
{
	const struct ap_jv *v = NULL;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JBOOL, &v));
	if (v)
		*r = ap_jv_bool(v);
	return AP_OK;
}

enum ap_status ap_json_get_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	return get_typed(ctx, doc, obj, key, true, AP_JARRAY, r);
}

enum ap_status ap_json_opt_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	return get_typed(ctx, doc, obj, key, false, AP_JARRAY, r);
}

enum ap_status ap_json_get_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	return get_typed(ctx, doc, obj, key, true, AP_JOBJECT, r);
}

enum ap_status ap_json_opt_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	return get_typed(ctx, doc, obj, key, false, AP_JOBJECT, r);
}

enum ap_status ap_json_ints(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *arr,
	int64_t lo, int64_t hi, int64_t **r, size_t *n)
{
	int64_t *numbers;
	size_t i = 0;

	if (arr->item.type != cJSON_Array)
		return wrong_type(ctx, doc, arr, "an array of integers");
	numbers = AP_NEW_N(ctx->arena, int64_t, ap_jv_count(arr));
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		AP_TRY(to_int(ctx, doc, v, lo, hi, &numbers[i++]));
	*r = numbers;
	*n = i;
	return AP_OK;
}

/* The known key that was probably meant; NULL if none is close. */
static const char *nearest(const char *key, const char *const *known)
{
	int best = (int)(strlen(key) > 60 ? 20 : strlen(key) / 3) + 2; /* exclusive limit */
	const char *found = NULL;

	for (; *known; known++) {
		int distance = ap_str_distance(key, *known, best - 1);

		if (distance < best) {
			best = distance;
			found = *known;
		}
	}
	return found;
}

bool ap_json_is_known(const struct ap_jv *v, const char *const *known)
{
	while (*known && (**known != *v->item.string || strcmp(*known, v->item.string) != 0))
		known++;
	return *known;
}

enum ap_status ap_json_unknown(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	const char *const *known, size_t n)
{
	const char *near = nearest(v->item.string, known), *name = ap_diag_name(ctx->diag, v->item.string);
	char such[40] = "";

	if (n > 1)
		snprintf(such, sizeof such, " (%zu such)", n);
	if (near)
		return report_at(ctx, doc, v->key_offset, v, AP_WARNING, AP_OK, "key-unknown",
			"unknown key \"%s\"; is \"%s\" meant?%s", name, near, such);
	return report_at(ctx, doc, v->key_offset, v, AP_WARNING, AP_OK, "key-unknown",
		"unknown key \"%s\"%s", name, such);
}

enum ap_status ap_json_known(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char *const *known)
{
	enum ap_status st = AP_OK;

	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v)) {
		enum ap_status added;

		if (ap_json_is_known(v, known))
			continue;
		added = ap_json_unknown(ctx, doc, v, known, 1);
		if (st == AP_OK)
			st = added;
	}
	return st;
}
