/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte string, always NUL-terminated, on an arena. */
#ifndef AP_BASE_STR_H
#define AP_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ap_arena;

struct ap_str {
	struct ap_arena *arena;
	char *s; /* never NULL after init */
	size_t len, cap;
};

void ap_str_init(struct ap_str *b, struct ap_arena *arena);
void ap_str_add(struct ap_str *b, const char *s);
void ap_str_addn(struct ap_str *b, const char *s, size_t len);
void ap_str_take(void *str, const char *bytes, size_t len); /* ap_str_addn as an ap_write_fn */
void ap_str_addc(struct ap_str *b, char c);
void ap_str_addf(struct ap_str *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ap_str_vaddf(struct ap_str *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Adds items between commas; more than seven equal ones in a row as one, "1*126". */
void ap_str_add_folded(struct ap_str *b, const char *items);

/* Damerau-Levenshtein distance, capped at `most` + 1 (early stop). O(|a| |b|). Strings of more than
 * 255 bytes match only themselves. */
int ap_str_distance(const char *a, const char *b, int most);

/* Is s[0..len) valid UTF-8 (RFC 3629: no surrogates or overlong forms)? If not, *bad: offset of the
 * first bad byte. */
bool ap_str_utf8(const char *s, size_t len, size_t *bad);

#endif
