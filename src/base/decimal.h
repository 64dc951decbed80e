/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to decimal text by integer arithmetic, for what plans and tables are full of. */
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

#endif
