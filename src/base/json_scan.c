/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/decimal.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_DIGITS = 19 }; /* of a number, that 64 bits can hold */

struct level {
	bool object;
	uint32_t start; /* offset of the bracket */
	uint32_t count; /* items so far */
};

struct scanner {
	struct ap_jscan *out;
	struct ap_arena *arena;
	const char *s;
	size_t len, at;
	size_t copied; /* of s; the rest goes to `bare` as it is until something is replaced */
	size_t most; /* values */
	bool trailing_commas;
	enum ap_status status;
	int depth;
	struct level levels[AP_JSCAN_DEPTH];
};

/* Records the fault; false, so that callers can return it. */
static bool __attribute__((format(printf, 4, 5))) fault(struct scanner *sc, enum ap_status st,
	size_t offset, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sc->out->fault, sizeof sc->out->fault, fmt, ap);
	va_end(ap);
	sc->out->fault_offset = offset;
	sc->status = st;
	return false;
}

/* The character at the cursor; NUL at the end. */
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

/* Puts text, which must not be longer, into `bare` for what stands from start to end. */
static void replace(struct scanner *sc, size_t start, size_t end, const char *text, size_t len)
{
	char *to = sc->out->bare + sc->out->bare_len;
	size_t before = start - sc->copied;

	assert(len <= end - start);
	memcpy(to, sc->s + sc->copied, before);
	memcpy(to + before, text, len);
	sc->out->bare_len += before + len;
	sc->copied = end;
}

/* What people write who think of another notation. */
static const char *hint(int c)
{
	switch (c) {
	case '/':
	case '#':
		return "; comments are not allowed";
	case '\'':
		return "; strings need double quotes";
	case '+':
		return "; a number must not begin with +";
	case '.':
		return "; a number needs digits on both sides of the point";
	case 'N':
	case 'I':
		return "; NaN and Infinity are not allowed";
	default:
		return "";
	}
}

static bool unexpected(struct scanner *sc, const char *expected)
{
	int c = peek(sc);

	if (sc->at == sc->len)
		return fault(sc, AP_SYNTAX, sc->at, "expected %s, got the end of the file", expected);
	if (c <= ' ' || c >= 0x7F)
		return fault(sc, AP_SYNTAX, sc->at, "expected %s, got the byte 0x%02x", expected,
			(unsigned)c);
	return fault(sc, AP_SYNTAX, sc->at, "expected %s, got '%c'%s", expected, c, hint(c));
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* A number as far as it was read: digits 10^power, if they are at most MOST_DIGITS. */
struct number {
	uint64_t digits;
	int ndigit; /* from the first that is not 0 */
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
	n->ndigit += s - first > MOST_DIGITS ? MOST_DIGITS + 1 : (int)(s - first);
	sc->at = (size_t)(s - sc->s);
	return true;
}

static bool fraction(struct scanner *sc, struct number *n)
{
	size_t start = sc->at;

	if (!digits(sc, n, "a digit after the point"))
		return false;
	n->power = -(int64_t)(sc->at - start);
	return true;
}

static bool exponent(struct scanner *sc, struct number *n)
{
	struct number e = {0};
	bool negative = accept(sc, '-');

	if (!negative)
		accept(sc, '+');
	if (!digits(sc, &e, "a digit of the exponent"))
		return false;
	if (e.ndigit > 10)
		e.digits = UINT64_C(1) << 40; /* beyond any length of a text */
	n->power += negative ? -(int64_t)e.digits : (int64_t)e.digits;
	return true;
}

/* *value is that of the number where it was replaced, else NaN. */
static bool number(struct scanner *sc, double *value)
{
	static const char known[] = "null";
	size_t start = sc->at;
	bool negative = accept(sc, '-');
	struct number n = {0};

	if (accept(sc, '0')) {
		if (is_digit(peek(sc)))
			return fault(sc, AP_SYNTAX, start, "number with a leading zero");
	} else if (!digits(sc, &n, "a digit")) {
		return false;
	}
	if (accept(sc, '.') && !fraction(sc, &n))
		return false;
	if ((accept(sc, 'e') || accept(sc, 'E')) && !exponent(sc, &n))
		return false;
	if (sc->at - start < strlen(known) || n.ndigit > MOST_DIGITS ||
		!ap_decimal_value(n.digits, n.power, value))
		return true;
	if (negative)
		*value = -*value;
	replace(sc, start, sc->at, known, strlen(known));
	return true;
}

/* The four hexadecimal digits of a \u escape. */
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

/* What follows "\u"; start is the offset of the backslash. */
static bool unicode_escape(struct scanner *sc, size_t start, bool *nul)
{
	unsigned high, low = 0;

	if (!hex4(sc, &high))
		return false;
	if (high == 0)
		*nul = true;
	if (high < 0xD800 || high > 0xDFFF)
		return true;
	if (high < 0xDC00 && accept(sc, '\\') && accept(sc, 'u') && !hex4(sc, &low))
		return false;
	if (low < 0xDC00 || low > 0xDFFF)
		return fault(sc, AP_SYNTAX, start, "\\u%04x is half of a surrogate pair", high);
	return true;
}

static bool escape(struct scanner *sc, bool *nul)
{
	size_t start = sc->at - 1;
	int c = peek(sc);

	if (!c || !strchr("\"\\/bfnrtu", c))
		return unexpected(sc, "one of \" \\ / b f n r t u after a backslash");
	sc->at++;
	return c != 'u' || unicode_escape(sc, start, nul);
}

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define TOP_BITS (EACH_BYTE << 7)

/* Has the word a byte below n <= 128? */
static uint64_t has_below(uint64_t word, unsigned n)
{
	return (word - EACH_BYTE * n) & ~word & TOP_BITS;
}

/* The next quote, backslash or control character; the NUL at end is one. */
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

/* A string, its quote at the cursor; it belongs to the value with index `value`. */
static bool string(struct scanner *sc, size_t value, bool in_key)
{
	struct ap_jscan *out = sc->out;
	size_t start = sc->at++;
	bool nul = false;

	for (;;) {
		sc->at = (size_t)(skip_plain(sc->s + sc->at, sc->s + sc->len) - sc->s);
		if (accept(sc, '"'))
			break;
		if (sc->at == sc->len)
			return fault(sc, AP_SYNTAX, start, "string without an end");
		if (!accept(sc, '\\'))
			return fault(sc, AP_SYNTAX, sc->at,
				"control character 0x%02x in a string; it must be escaped",
				(unsigned)peek(sc));
		if (!escape(sc, &nul))
			return false;
	}
	out->string_bytes += sc->at - start - 1;
	if (nul && out->nnul < AP_JSCAN_FINDINGS)
		out->nuls[out->nnul++] =
			(struct ap_jscan_nul){.value = (uint32_t)value, .in_key = in_key};
	return true;
}

static bool literal(struct scanner *sc)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < AP_COUNT(words); i++) {
		size_t n = strlen(words[i]);

		if (sc->len - sc->at >= n && !memcmp(sc->s + sc->at, words[i], n)) {
			sc->at += n;
			return true;
		}
	}
	return unexpected(sc, "a value");
}

/* A key and its colon; *offset is that of the key. */
static bool member_key(struct scanner *sc, uint32_t *offset)
{
	*offset = (uint32_t)sc->at;
	if (peek(sc) != '"')
		return unexpected(sc, "a key in double quotes");
	if (!string(sc, sc->out->values.n, true))
		return false;
	skip_blanks(sc);
	if (!accept(sc, ':'))
		return unexpected(sc, "':' after the key");
	skip_blanks(sc);
	return true;
}

static bool open_container(struct scanner *sc)
{
	if (sc->depth == AP_JSCAN_DEPTH)
		return fault(sc, AP_LIMIT, sc->at, "nesting deeper than %d", AP_JSCAN_DEPTH);
	sc->levels[sc->depth++] =
		(struct level){.object = peek(sc) == '{', .start = (uint32_t)sc->at};
	sc->at++;
	return true;
}

/* One value with its key, if any; of a container only the opening bracket. */
static bool item(struct scanner *sc)
{
	struct level *level = sc->depth ? &sc->levels[sc->depth - 1] : NULL;
	struct ap_jscan_value value = {.key = level ? level->count++ : 0, .number = NAN};
	size_t index = sc->out->values.n;
	int c;

	skip_blanks(sc);
	if (level && level->object && !member_key(sc, &value.key))
		return false;
	if (index == sc->most)
		return fault(sc, AP_LIMIT, sc->at, "more than %zu values in a file of %zu bytes",
			sc->most, sc->len);
	value.offset = (uint32_t)sc->at;
	AP_PUSH(sc->arena, sc->out->values, value);
	c = peek(sc);
	if (c == '{' || c == '[')
		return open_container(sc);
	if (c == '"')
		return string(sc, index, false);
	return c == '-' || is_digit(c) ? number(sc, &sc->out->values.v[index].number) : literal(sc);
}

/* Does the innermost container end here? */
static bool at_end_of_container(struct scanner *sc)
{
	skip_blanks(sc);
	return peek(sc) == (sc->levels[sc->depth - 1].object ? '}' : ']');
}

/* A comma, of which it is known that no item follows. */
static bool trailing_comma(struct scanner *sc, size_t offset)
{
	struct ap_jscan *out = sc->out;

	if (!sc->trailing_commas)
		return fault(sc, AP_SYNTAX, offset, "trailing comma");
	replace(sc, offset, offset + 1, " ", 1);
	if (out->ncomma < AP_JSCAN_FINDINGS)
		out->commas[out->ncomma++] = (uint32_t)offset;
	return true;
}

/* Closes what ends here, then moves behind the comma to the next item; *done: there is none. */
static bool next_item(struct scanner *sc, bool *done)
{
	for (;;) {
		size_t comma;

		while (sc->depth && at_end_of_container(sc)) {
			sc->at++;
			sc->depth--;
		}
		*done = !sc->depth;
		if (*done)
			return true;
		comma = sc->at;
		if (!accept(sc, ','))
			return unexpected(sc,
				sc->levels[sc->depth - 1].object ? "',' or '}'" : "',' or ']'");
		if (!at_end_of_container(sc))
			return true;
		if (!trailing_comma(sc, comma))
			return false;
	}
}

static bool document(struct scanner *sc)
{
	bool done = false;

	if (sc->len >= 3 && !memcmp(sc->s, "\xEF\xBB\xBF", 3)) {
		sc->out->byte_order_mark = true;
		sc->at = 3;
	}
	skip_blanks(sc);
	if (sc->at == sc->len)
		return fault(sc, AP_SYNTAX, sc->at, sc->len ? "nothing but blanks" : "empty");
	while (!done) {
		int depth = sc->depth;

		if (!item(sc))
			return false;
		if (sc->depth > depth && !at_end_of_container(sc))
			continue;
		if (!next_item(sc, &done))
			return false;
	}
	skip_blanks(sc);
	if (sc->at != sc->len)
		return unexpected(sc, "the end of the file");
	replace(sc, sc->len, sc->len, "", 0);
	sc->out->bare[sc->out->bare_len] = '\0';
	return true;
}

/* Text of two-byte units: every other byte of its beginning is zero, or it says so itself. */
static bool looks_like_utf16(const char *text, size_t len)
{
	const unsigned char *u = (const unsigned char *)text;

	if (len < 2)
		return false;
	return (u[0] == 0xFF && u[1] == 0xFE) || (u[0] == 0xFE && u[1] == 0xFF) || !u[0] != !u[1];
}

enum ap_status ap_jscan_run(struct ap_jscan *scan, struct ap_arena *arena, const char *text,
	size_t len, bool trailing_commas)
{
	struct scanner sc = {.out = scan, .arena = arena, .s = text, .len = len,
		.most = len / 8 > AP_JSCAN_VALUES ? len / 8 : AP_JSCAN_VALUES,
		.trailing_commas = trailing_commas};
	size_t bad;

	assert(len < UINT32_MAX && !text[len]);
	*scan = (struct ap_jscan){.bare = ap_arena_alloc_raw(arena, len + 1, 1)};
	AP_RESERVE(arena, scan->values, len / 12 + 8); /* what graphs and tables have */
	if (looks_like_utf16(text, len))
		fault(&sc, AP_SYNTAX, 0, "looks like UTF-16; expected UTF-8");
	else if (!ap_str_utf8(text, len, &bad))
		fault(&sc, AP_SYNTAX, bad, "byte 0x%02x at offset %zu is not UTF-8",
			(unsigned)(unsigned char)text[bad], bad);
	else
		document(&sc);
	return sc.status;
}
