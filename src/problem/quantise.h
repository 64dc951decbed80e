/* SPDX-License-Identifier: Apache-2.0 */
/* Makes sums of foreign costs exact: rounds them to multiples of a power of two. */
#ifndef AP_PROBLEM_QUANTISE_H
#define AP_PROBLEM_QUANTISE_H

#include <stdbool.h>

#include "problem/problem.h"

/*
 * Sets p->quantum to the largest power of two that divides every finite cost, or, where totals
 * would then not stay below 2^53 quanta, to the smallest one for which they do; in that case the
 * costs are rounded to it (nearest, ties to even) and p->given keeps the numbers as they were.
 * False, and p untouched, when a total could overflow a double. O(size of the table).
 */
bool ap_problem_quantise(struct ap_ctx *ctx, struct ap_problem *p);

#endif
