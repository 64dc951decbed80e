/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in inputs: values of JSON changed, moved, doubled, nested; of other texts words and bytes. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

#include "fuzz.h"

enum { MOST_SPANS = 2048, MOST_FAULTS = 4, MOST_DEPTH = 64 };

struct span { /* of a value, of a member with its key, or of a word */
	size_t from, to;
};

struct text {
	uint8_t *s;
	size_t len, most;
	uint64_t state; /* xorshift64*, never 0 */
	struct span span[MOST_SPANS];
	size_t n;
};

static const char *const numbers[] = {"0", "-1", "1", "2", "3", "4", "7", "8", "16", "255", "256", "4096",
	"65536", "1048576", "2147483647", "2147483648", "4294967295", "9007199254740992",
	"9007199254740993", "1152921504606846976", "9223372036854775807", "9223372036854775808", "0.5", "1e-6",
	"1e-12", "1e-300", "1e6", "1e12", "1e18", "1e24", "1e300", "-0.0", "2.0", "-1e9"};
static const char *const values[] = {"null", "true", "false", "[]", "{}", "\"\"", "[[]]", "[1]", "[0]",
	"[1, 1]", "\"\\u0001\"", "\"\\ud83d\\ude00\"", "-1", "\"a/b\""};

static size_t draw(struct text *t, size_t below)
{
	t->state ^= t->state >> 12;
	t->state ^= t->state << 25;
	t->state ^= t->state >> 27;
	return below ? (size_t)((t->state * UINT64_C(0x2545F4914F6CDD1D) >> 11) % below) : 0;
}

/* Puts other bytes into the place of a span. */
static void replace(struct text *t, struct span at, const void *bytes, size_t len)
{
	size_t left = t->len - (at.to - at.from);

	if (left + len > t->most)
		return;
	memmove(t->s + at.from + len, t->s + at.to, t->len - at.to);
	if (len)
		memcpy(t->s + at.from, bytes, len);
	t->len = left + len;
}

static void replace_text(struct text *t, struct span at, const char *s)
{
	replace(t, at, s, strlen(s));
}

static void add(struct text *t, size_t from, size_t to)
{
	if (t->n < MOST_SPANS)
		t->span[t->n++] = (struct span){from, to};
}

static bool is_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		c == '-' || c == '+' || c == '.';
}

static size_t end_of_string(const struct text *t, size_t i)
{
	for (i++; i < t->len && t->s[i] != '"'; i++)
		i += t->s[i] == '\\';
	return i < t->len ? i + 1 : t->len;
}

/* The values of a JSON text, whatever its faults; keys count as values. */
static void find_values(struct text *t)
{
	size_t open[MOST_DEPTH], depth = 0;

	t->n = 0;
	for (size_t i = 0; i < t->len;) {
		size_t from = i;
		uint8_t c = t->s[i];

		if (c == '"') {
			add(t, from, i = end_of_string(t, i));
		} else if (is_word(c)) {
			while (i < t->len && is_word(t->s[i]))
				i++;
			add(t, from, i);
		} else {
			i++;
			if ((c == '{' || c == '[') && depth < MOST_DEPTH)
				open[depth++] = from;
			else if ((c == '}' || c == ']') && depth)
				add(t, open[--depth], i);
		}
	}
}

static void find_words(struct text *t)
{
	t->n = 0;
	for (size_t i = 0; i < t->len; i++) {
		size_t from = i;

		while (i < t->len && is_word(t->s[i]))
			i++;
		if (i > from)
			add(t, from, i);
	}
}

static struct span any(struct text *t)
{
	return t->span[draw(t, t->n)];
}

/* With the key before it and the comma before that, or behind it. */
static struct span as_member(const struct text *t, struct span v)
{
	size_t i = v.from;

	while (i && strchr(" \t\n:", t->s[i - 1]))
		i--;
	if (i && i < v.from && t->s[i - 1] == '"' && memchr(t->s + i, ':', v.from - i)) {
		for (i--; i && t->s[i - 1] != '"'; i--)
			;
		v.from = i ? i - 1 : 0;
	}
	for (i = v.from; i && strchr(" \t\n", t->s[i - 1]); i--)
		;
	if (i && t->s[i - 1] == ',')
		v.from = i - 1;
	else
		for (i = v.to; i < t->len && strchr(" \t\n,", t->s[i]); i++)
			if (t->s[i] == ',') {
				v.to = i + 1;
				break;
			}
	return v;
}

static const char *word(struct text *t)
{
	static size_t n;

	while (fuzz_targets->word(n))
		n++;
	return n ? fuzz_targets->word(draw(t, n)) : "x";
}

static void put_word(struct text *t, struct span at, bool json)
{
	char s[256];

	snprintf(s, sizeof s, json ? "\"%s\"" : "%s", word(t));
	replace_text(t, at, s);
}

/* A number a little or much off. */
static void change_number(struct text *t, struct span at)
{
	static const double times[] = {2, 0.5, 3, -1, 1000, 1e6, 1e-6, 1, 1, 1}, plus[] = {0, 0, 0, 0, 1, -1, 7};
	char s[64];
	double d;

	snprintf(s, sizeof s, "%.*s", (int)(at.to - at.from < 40 ? at.to - at.from : 40),
		(const char *)t->s + at.from);
	if (draw(t, 2) || sscanf(s, "%lf", &d) != 1) {
		replace_text(t, at, numbers[draw(t, AP_COUNT(numbers))]);
		return;
	}
	d = d * times[draw(t, AP_COUNT(times))] + plus[draw(t, AP_COUNT(plus))];
	snprintf(s, sizeof s, "%.17g", draw(t, 2) ? d : floor(d));
	replace_text(t, at, s);
}

static void nest(struct text *t, struct span at)
{
	size_t times = draw(t, 8) ? 1 + draw(t, 3) : 1 + draw(t, 300);

	for (; times && t->len + 2 <= t->most; times--, at.to += 2) {
		memmove(t->s + at.to + 2, t->s + at.to, t->len - at.to);
		memmove(t->s + at.from + 1, t->s + at.from, at.to - at.from);
		t->s[at.from] = '[';
		t->s[at.to + 1] = ']';
		t->len += 2;
	}
}

/* A part of another input, whole values where it is JSON. */
static void take_part(struct text *t, struct span at, const uint8_t *other, size_t nother, bool json)
{
	static struct text o;

	o = (struct text){.s = (uint8_t *)(uintptr_t)other, .len = nother};
	if (json)
		find_values(&o);
	if (json && o.n) {
		struct span v = o.span[draw(t, o.n)];

		replace(t, at, other + v.from, v.to - v.from);
	} else if (nother) {
		size_t from = draw(t, nother), len = 1 + draw(t, 64);

		replace(t, at, other + from, len < nother - from ? len : nother - from);
	}
}

static void change_bytes(struct text *t)
{
	size_t at = draw(t, t->len), len = 1 + draw(t, draw(t, 4) ? 8 : 200);
	struct span span = {at, at + len < t->len ? at + len : t->len};
	static const char marks[] = "\0\xff\x7f\x80\x01{}[]\",:-.e0919\\ntf";
	uint8_t copy[256];

	switch (draw(t, 6)) {
	case 0:
		t->s[at] = (uint8_t)(t->s[at] ^ 1u << draw(t, 8));
		return;
	case 1:
		t->s[at] = (uint8_t)draw(t, 256);
		return;
	case 2:
		replace(t, span, NULL, 0);
		return;
	case 3:
		memcpy(copy, t->s + at, span.to - span.from);
		replace(t, (struct span){at, at}, copy, span.to - span.from);
		return;
	case 4:
		replace(t, (struct span){at, at + 1}, &marks[draw(t, sizeof marks - 1)], 1);
		return;
	default:
		if (!draw(t, 4))
			t->len = at;
	}
}

static void change_words(struct text *t, const uint8_t *other, size_t nother)
{
	struct span at;

	find_words(t);
	if (!t->n || !draw(t, 3)) {
		change_bytes(t);
		return;
	}
	at = any(t);
	switch (draw(t, 5)) {
	case 0:
		put_word(t, at, false);
		return;
	case 1:
		take_part(t, at, other, nother, false);
		return;
	case 2: {
		struct span v = any(t);
		uint8_t copy[256];
		size_t len = v.to - v.from < sizeof copy ? v.to - v.from : sizeof copy;

		memcpy(copy, t->s + v.from, len);
		replace(t, at, copy, len);
		return;
	}
	default:
		for (size_t i = 0; i < 16 && (t->s[at.from] < '0' || t->s[at.from] > '9'); i++)
			at = any(t);
		change_number(t, at);
	}
}

/* Puts a copy of one value into the place of another, or beside one. */
static void copy_value(struct text *t, struct span at)
{
	static uint8_t copy[1 << 16];
	struct span v = any(t);
	size_t len = v.to - v.from;

	if (len + 2 > sizeof copy)
		return;
	memcpy(copy, t->s + v.from, len);
	if (draw(t, 2)) {
		replace(t, at, copy, len);
		return;
	}
	memmove(copy + 2, copy, len);
	memcpy(copy, ", ", 2);
	replace(t, (struct span){v.to, v.to}, copy, len + 2);
}

static void change_values(struct text *t, const uint8_t *other, size_t nother)
{
	struct span at;
	uint8_t c;

	find_values(t);
	if (!t->n || !draw(t, 16)) {
		change_bytes(t);
		return;
	}
	at = any(t);
	c = t->s[at.from];
	switch (draw(t, 12)) {
	case 0:
		replace(t, as_member(t, at), NULL, 0);
		return;
	case 1:
		copy_value(t, at);
		return;
	case 2:
		nest(t, at);
		return;
	case 3:
		replace_text(t, at, values[draw(t, AP_COUNT(values))]);
		return;
	case 4:
		take_part(t, at, other, nother, true);
		return;
	case 5:
	case 6:
		put_word(t, at, true);
		return;
	default:
		for (size_t i = 0; i < 16 && !((c >= '0' && c <= '9') || c == '-'); i++) {
			at = any(t);
			c = t->s[at.from];
		}
		change_number(t, at);
	}
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed, const uint8_t *other,
	size_t nother)
{
	static struct text t;
	bool json = size && (data[0] == '{' || data[0] == '[');

	t = (struct text){.s = data, .len = size, .most = most};
	t.state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	t.state ^= t.state >> 31;
	t.state += !t.state;
	for (size_t n = 1 + draw(&t, MOST_FAULTS); n && t.len; n--)
		if (json)
			change_values(&t, other, nother);
		else
			change_words(&t, other, nother);
	return t.len;
}
