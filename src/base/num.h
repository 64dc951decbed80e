/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic, parsing, formatting, factors, and the quantum of cost. */
#ifndef AP_BASE_NUM_H
#define AP_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Product and sum of int64; return false, leaving *r unchanged, on overflow. */
bool ap_mul(int64_t a, int64_t b, int64_t *r);
bool ap_add(int64_t a, int64_t b, int64_t *r);

/* Product of n extents (>= 0); false on overflow. */
bool ap_product(const int64_t *v, size_t n, int64_t *r);

int64_t ap_gcd(int64_t a, int64_t b);

/* Index of the lowest set bit; v > 0. */
static inline int ap_lowest_bit(uint64_t v)
{
	return __builtin_ctzll(v);
}

/* Parses a text that is a decimal integer in [lo, hi] (no blanks, no sign unless lo < 0). */
bool ap_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *r);

/* Parses a text that is a finite decimal number, in any locale. */
bool ap_parse_double(const char *s, double *r);

/* strtod() independent of the locale. */
double ap_strtod(const char *s, char **end);

/* Exponent of a byte unit: 10 for "KB", "KiB", "Ki", "K" or "kb" (K, M, G, T: powers of 1024), 0
 * for "B" and "", -1 if unknown. */
int ap_unit_shift(const char *unit);

/* Parses bytes: "25GB", "25GiB", "25G", "64kb", "1000B", "1000", with units as above; a fraction
 * needs a unit ("1.5GB"). Returns false for anything else, negative or above 2^62. */
bool ap_parse_bytes(const char *s, int64_t *r);

/* Parses a count: "15T", "2.5B", "800M", "1000": K, M, G or B, and T are powers of 1000, in either case.
 * Returns false for anything else: blanks, a sign, what is no integer or above 2^62. */
bool ap_parse_count(const char *s, int64_t *r);

/* Parses a time with its unit: us, ms, s, min, h or d: "20s", "1.5h". Returns false for anything else,
 * negative or not finite. */
bool ap_parse_time(const char *s, double *seconds);

/* The same in the largest unit that makes it a whole number, else in seconds; it reads back as v. */
const char *ap_format_time(double seconds, char buf[32]);

/* Ascending prime factors with multiplicity, at most 63; returns how many. n >= 1. O(sqrt n). */
size_t ap_primes(int64_t n, int64_t primes[63]);

/* Ascending divisors of n into out (capacity cap); returns their number. n >= 1. O(sqrt n). */
size_t ap_divisors(int64_t n, int64_t *out, size_t cap);

/* Shortest text that reads back as v ("0.1", "1e-07", "3"); v finite; buf of 32. Locale-free. */
const char *ap_format_double(double v, char buf[32]);

/* "1.50 GiB", "12.0 MiB", "0 B" for display. */
const char *ap_format_bytes(int64_t bytes, char buf[32]);

/* "12.3 ms", "45.0 us", "1.20 s" for display. */
const char *ap_format_seconds(double s, char buf[32]);

/* Internal costs are multiples of 2^-40 s, or of a larger power of two if a step may take hours:
 * sums of doubles below 2^53 of them are exact, so totals do not depend on summation order,
 * compiler or machine. Rounds to nearest, ties to even; infinity stays. Input must not be
 * negative. */
#define AP_QUANTUM_S 0x1p-40
double ap_quantise_s(double seconds, double quantum_s);

#endif
