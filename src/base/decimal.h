/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to and from decimal text by integer arithmetic, for what plans and tables are full of. */
#ifndef AP_BASE_DECIMAL_H
#define AP_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* v as text; returns its length. */
size_t ap_decimal_int(int64_t v, char buf[24]);

/*
 * What printf's %.15g, else %.16g, else %.17g makes of v, the first that reads back as v. false,
 * and nothing written, for what this does not do: sizes below 1e-10, integers of 1e15 and more,
 * powers of two below 1, negative zero, infinity and NaN.
 */
bool ap_decimal_double(double v, char buf[32]);

/*
 * digits 10^power as strtod reads it: the nearest double, of two the even one. false, and nothing
 * written, for what this does not do: numbers below 1e-27 times their digits, and digits that with
 * the zeros of a positive power are 2^63 or more.
 */
bool ap_decimal_value(uint64_t digits, int64_t power, double *r);

#endif
