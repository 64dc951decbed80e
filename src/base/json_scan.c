/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

struct level {
	bool object;
	uint32_t start; /* offset of the bracket */
	uint32_t count; /* items so far */
};

struct scanner {
	struct ap_jscan *out;
	struct ap_arena *arena;
	char *s;
	size_t len, at;
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

/* The character at the cursor; -1 at the end. */
static int peek(const struct scanner *sc)
{
	return sc->at < sc->len ? (unsigned char)sc->s[sc->at] : -1;
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
	int c;

	while ((c = peek(sc)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		sc->at++;
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

	if (c < 0)
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

static bool digits(struct scanner *sc, const char *expected)
{
	if (!is_digit(peek(sc)))
		return unexpected(sc, expected);
	while (is_digit(peek(sc)))
		sc->at++;
	return true;
}

static bool number(struct scanner *sc)
{
	size_t start = sc->at;

	accept(sc, '-');
	if (accept(sc, '0')) {
		if (is_digit(peek(sc)))
			return fault(sc, AP_SYNTAX, start, "number with a leading zero");
	} else if (!digits(sc, "a digit")) {
		return false;
	}
	if (accept(sc, '.') && !digits(sc, "a digit after the point"))
		return false;
	if (accept(sc, 'e') || accept(sc, 'E')) {
		if (!accept(sc, '-'))
			accept(sc, '+');
		if (!digits(sc, "a digit of the exponent"))
			return false;
	}
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
		else if (low >= 'a' && low <= 'f' && c > 0)
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

	if (c <= 0 || !strchr("\"\\/bfnrtu", c))
		return unexpected(sc, "one of \" \\ / b f n r t u after a backslash");
	sc->at++;
	return c != 'u' || unicode_escape(sc, start, nul);
}

/* A string, its quote at the cursor; it belongs to the value with index `value`. */
static bool string(struct scanner *sc, size_t value, bool in_key)
{
	struct ap_jscan *out = sc->out;
	size_t start = sc->at++;
	bool nul = false;
	int c;

	while (!accept(sc, '"')) {
		c = peek(sc);
		if (c < 0)
			return fault(sc, AP_SYNTAX, start, "string without an end");
		if (c < ' ')
			return fault(sc, AP_SYNTAX, sc->at,
				"control character 0x%02x in a string; it must be escaped", (unsigned)c);
		sc->at++;
		if (c == '\\' && !escape(sc, &nul))
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

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
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
	struct ap_jscan_value value = {.key = level ? level->count++ : 0};
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
	return c == '-' || is_digit(c) ? number(sc) : literal(sc);
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
	sc->s[offset] = ' ';
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
	return sc->at == sc->len || unexpected(sc, "the end of the file");
}

/* Text of two-byte units: every other byte of its beginning is zero, or it says so itself. */
static bool looks_like_utf16(const char *text, size_t len)
{
	const unsigned char *u = (const unsigned char *)text;

	if (len < 2)
		return false;
	return (u[0] == 0xFF && u[1] == 0xFE) || (u[0] == 0xFE && u[1] == 0xFF) || !u[0] != !u[1];
}

enum ap_status ap_jscan_run(struct ap_jscan *scan, struct ap_arena *arena, char *text, size_t len,
	bool trailing_commas)
{
	struct scanner sc = {.out = scan, .arena = arena, .s = text, .len = len,
		.most = len / 8 > AP_JSCAN_VALUES ? len / 8 : AP_JSCAN_VALUES,
		.trailing_commas = trailing_commas};
	size_t bad;

	assert(len < UINT32_MAX);
	*scan = (struct ap_jscan){0};
	if (looks_like_utf16(text, len))
		fault(&sc, AP_SYNTAX, 0, "looks like UTF-16; expected UTF-8");
	else if (!ap_str_utf8(text, len, &bad))
		fault(&sc, AP_SYNTAX, bad, "byte 0x%02x at offset %zu is not UTF-8",
			(unsigned)(unsigned char)text[bad], bad);
	else
		document(&sc);
	return sc.status;
}
