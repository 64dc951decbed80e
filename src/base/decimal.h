/* SPDX-License-Identifier: Apache-2.0 */
/* Fast conversion of common numbers to and from decimal text by integer arithmetic. */
#ifndef AP_BASE_DECIMAL_H
#define AP_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes v; returns the length. */
size_t ap_decimal_int(int64_t v, char buf[24]);

/* Writes v as the first of printf's %.15g, %.16g and %.17g that reads back as v. Returns false,
 * writing nothing, if not supported: sizes below 1e-10, integers of 1e15 and more, powers of two
 * below 1, negative zero, infinity, NaN. */
bool ap_decimal_double(double v, char buf[32]);

/* Sets *r to the double nearest to digits 10^power, ties to even, as strtod does. Returns false,
 * leaving it, if not supported: power below -27, and digits that reach 2^63 with the zeros of a
 * positive power. */
bool ap_decimal_value(uint64_t digits, int64_t power, double *r);

#endif
