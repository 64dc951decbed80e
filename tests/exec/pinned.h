/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels against numbers worked out by hand: results, and gradients for dY = 1, 2, 3, .. */
#ifndef AP_TEST_EXEC_PINNED_H
#define AP_TEST_EXEC_PINNED_H

#include "kernel.h"

/*
 * attrs: "name=number", "name=[list]" or "name=word", joined by blanks. Tensors are
 * "[2,3] 1 2 3 4 5 6", joined by "; ", "-" an operand that is left out; a number is a sum of products of integers, of sums in brackets,
 * of curves and of their slopes, without blanks: "3/2+2*rsqrt'(5)". grad: of the first operands.
 */
struct ex_pinned {
	const char *type, *attrs, *in, *out, *grad;
};

/* Fails the test where a number differs. */
void ex_pinned_check(const struct ex_pinned *c);

#endif
