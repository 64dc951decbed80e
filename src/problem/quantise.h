/* SPDX-License-Identifier: Apache-2.0 */
/* Makes sums of foreign costs exact by rounding to multiples of a power of two. */
#ifndef AP_PROBLEM_QUANTISE_H
#define AP_PROBLEM_QUANTISE_H

#include <stdbool.h>

#include "problem/problem.h"

/*
 * Sets p->quantum to the largest power of two that divides every finite cost. If totals would then
 * exceed 2^53 quanta, takes the smallest power for which they do not, rounds the costs to it
 * (nearest, ties to even) and keeps the given numbers in p->given. Returns false, with p unchanged,
 * if a total could overflow a double. O(size of the table).
 */
bool ap_problem_quantise(struct ap_ctx *ctx, struct ap_problem *p);

#endif
