/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: checked arithmetic, parsing, factors, and the quantum of cost. */
#ifndef AP_BASE_NUM_H
#define AP_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Products and sums of int64; false (and *r untouched) on overflow. */
bool ap_mul(int64_t a, int64_t b, int64_t *r);
bool ap_add(int64_t a, int64_t b, int64_t *r);

/* Product of n extents (>= 0); false on overflow. */
bool ap_product(const int64_t *v, size_t n, int64_t *r);

int64_t ap_gcd(int64_t a, int64_t b);

/* Number of the lowest bit that is set; v > 0. */
static inline int ap_lowest_bit(uint64_t v)
{
	return __builtin_ctzll(v);
}

/* The whole text is a decimal integer in [lo, hi] (no sign unless lo < 0, no blanks). */
bool ap_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *r);

/* The whole text is a finite decimal number. Independent of the locale. */
bool ap_parse_double(const char *s, double *r);

/* strtod() independent of the locale. */
double ap_strtod(const char *s, char **end);

/* Power of two of a unit of bytes, as in 10 of "KB", "KiB", "Ki", "K" or "kb"; K, M, G, T are powers of
 * 1024. 0 of "B" and "", -1 of what is none. */
int ap_unit_shift(const char *unit);

/* "25GB", "25GiB", "25G", "64kb", "1000B", "1000": bytes, with a unit as above; a decimal fraction is
 * allowed before a unit ("1.5GB"). false on anything else, negative or > 2^62. */
bool ap_parse_bytes(const char *s, int64_t *r);

/* Ascending prime factors with multiplicity, at most 63; returns how many. n >= 1. O(sqrt n). */
size_t ap_primes(int64_t n, int64_t primes[63]);

/* Ascending divisors of n into out (capacity cap); returns their number. n >= 1. O(sqrt n). */
size_t ap_divisors(int64_t n, int64_t *out, size_t cap);

/* Shortest text that reads back as v ("0.1", "1e-07", "3"); v finite; buf of 32. Locale-free. */
const char *ap_format_double(double v, char buf[32]);

/* "1.50 GiB", "12.0 MiB", "0 B" for people. */
const char *ap_format_bytes(int64_t bytes, char buf[32]);

/* "12.3 ms", "45.0 us", "1.20 s" for people. */
const char *ap_format_seconds(double s, char buf[32]);

/*
 * Costs inside are multiples of 2^-40 s, or of a larger power of two where a step may take hours: sums
 * of doubles below 2^53 of them are then exact, so totals do not depend on the order of summation, the
 * compiler or the machine. Rounds to nearest, ties to even; infinity stays. Negative input is a bug.
 */
#define AP_QUANTUM_S 0x1p-40
double ap_quantise_s(double seconds, double quantum_s);

#endif
