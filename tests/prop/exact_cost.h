/* SPDX-License-Identifier: Apache-2.0 */
/* Cost and memory of a pick in whole numbers, with nothing of the library's arithmetic. */
#ifndef EXACT_COST_H
#define EXACT_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "problem/problem.h"

struct exact_cost {
	int64_t quanta; /* cost, in quanta of the problem */
	int64_t bytes;
};

/* False: the pick is none, by a candidate that there is not or something that is forbidden. */
bool exact_cost_of(const struct ap_problem *p, const uint32_t *pick, struct exact_cost *out);

/* v in quanta; aborts where that is not a whole number that a double can tell from its neighbours. */
int64_t exact_quanta(const struct ap_problem *p, double v);

#endif
