/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { FIRST_CAP = 32, DISTANCE_MAX = 255 };

void ap_str_init(struct ap_str *b, struct ap_arena *arena)
{
	*b = (struct ap_str){.arena = arena, .cap = FIRST_CAP};
	b->s = ap_arena_alloc(arena, FIRST_CAP, 1);
}

/* Makes room for extra bytes and NUL. */
static void reserve(struct ap_str *b, size_t extra)
{
	size_t cap = b->cap;
	char *s;

	assert(extra < SIZE_MAX / 4 && b->len < SIZE_MAX / 4);
	if (b->len + extra < cap)
		return;
	while (cap <= b->len + extra)
		cap *= 2;
	s = ap_arena_alloc_raw(b->arena, cap, 1);
	memcpy(s, b->s, b->len + 1);
	b->s = s;
	b->cap = cap;
}

void ap_str_addn(struct ap_str *b, const char *s, size_t len)
{
	if (!len)
		return;
	reserve(b, len);
	memcpy(b->s + b->len, s, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void ap_str_take(void *str, const char *bytes, size_t len)
{
	ap_str_addn(str, bytes, len);
}

void ap_str_add(struct ap_str *b, const char *s)
{
	ap_str_addn(b, s, strlen(s));
}

void ap_str_addc(struct ap_str *b, char c)
{
	ap_str_addn(b, &c, 1);
}

void ap_str_vaddf(struct ap_str *b, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	assert(fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	assert(len >= 0);
	reserve(b, (size_t)len);
	vsnprintf(b->s + b->len, (size_t)len + 1, fmt, ap);
	b->len += (size_t)len;
}

void ap_str_addf(struct ap_str *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ap_str_vaddf(b, fmt, ap);
	va_end(ap);
}

void ap_str_add_folded(struct ap_str *b, const char *items)
{
	enum { MOST_APART = 7 };
	bool first = true;

	while (*items) {
		size_t len = strcspn(items, ","), n = 1;
		const char *next = items + len;

		while (*next == ',' && strcspn(next + 1, ",") == len && memcmp(next + 1, items, len) == 0) {
			next += len + 1;
			n++;
		}
		for (size_t i = 0; i < (n > MOST_APART ? 1 : n); i++, first = false) {
			ap_str_add(b, first ? "" : ",");
			ap_str_addn(b, items, len);
		}
		if (n > MOST_APART)
			ap_str_addf(b, "*%zu", n);
		items = next + (*next == ',');
	}
}

int ap_str_distance(const char *a, const char *b, int most)
{
	int rows[3][DISTANCE_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	int before = 0; /* least entry of the previous row: a swap skips a row */

	if (la > DISTANCE_MAX || lb > DISTANCE_MAX)
		return strcmp(a, b) ? most + 1 : 0;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= la; i++) {
		const int *up2 = rows[(i + 1) % 3], *up1 = rows[(i + 2) % 3];
		int *row = rows[i % 3], least = row[0] = (int)i;

		for (size_t j = 1; j <= lb; j++) {
			row[j] = up1[j - 1] + (a[i - 1] != b[j - 1]);
			if (up1[j] + 1 < row[j])
				row[j] = up1[j] + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				up2[j - 2] + 1 < row[j])
				row[j] = up2[j - 2] + 1;
			if (row[j] < least)
				least = row[j];
		}
		if (least > most && before > most)
			return most + 1;
		before = least;
	}
	return rows[la % 3][lb] > most ? most + 1 : rows[la % 3][lb];
}

/* Length of the UTF-8 sequence at s[0..left); 0 if invalid. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	unsigned c = s[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
	size_t len;

	if (c < 0x80)
		return 1;
	if (c < 0xC2 || c > 0xF4)
		return 0;
	len = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
	if (c == 0xE0)
		low = 0xA0;
	if (c == 0xED)
		high = 0x9F;
	if (c == 0xF0)
		low = 0x90;
	if (c == 0xF4)
		high = 0x8F;
	if (left < len || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	return len;
}

bool ap_str_utf8(const char *s, size_t len, size_t *bad)
{
	const unsigned char *u = (const unsigned char *)s;

	for (size_t i = 0; i < len;) {
		uint64_t word = UINT64_MAX;
		size_t n;

		if (i + sizeof word <= len)
			memcpy(&word, u + i, sizeof word);
		n = word & UINT64_C(0x8080808080808080) ? utf8_len(u + i, len - i) : sizeof word;
		if (!n) {
			*bad = i;
			return false;
		}
		i += n;
	}
	return true;
}
