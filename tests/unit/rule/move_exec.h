/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that move, join and choose, carried out on small tensors of integers, element by
 * element as their definitions say. Run on slices, with the attributes of the whole, they are what
 * a device would do.
 */
#ifndef AP_TEST_MOVE_EXEC_H
#define AP_TEST_MOVE_EXEC_H

#include "rule/rule.h"

struct tensor {
	uint8_t rank;
	int64_t size[AP_MAX_RANK];
	int64_t first[AP_MAX_RANK]; /* where the slice begins in the whole */
	int64_t *v; /* row-major */
};

struct job {
	const char *type;
	const struct ap_attrs *attrs;
	uint16_t nin, nout;
	const struct tensor *in;
	struct tensor *out; /* extents given, values computed */
};

int64_t tensor_count(const struct tensor *t);
int64_t tensor_get(const struct tensor *t, const int64_t *at);

/* The next index in row-major order; false, and all zeroes, after the last. */
bool tensor_next(const struct tensor *t, int64_t *at);

/* Fills the results; false when the type is unknown here. */
bool job_run(const struct job *j);

#endif
