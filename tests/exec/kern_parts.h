/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels go through their results: number by number, or from where each is taken. */
#ifndef AP_TEST_EXEC_KERN_PARTS_H
#define AP_TEST_EXEC_KERN_PARTS_H

#include "kernel.h"

/* Element `at` of result r. */
typedef ex_id ex_element_fn(const struct ex_job *j, unsigned r, const int64_t *at);

/* Fills all results. False where an operand does not broadcast to a result. */
bool ex_each(const struct ex_job *j, ex_element_fn *element);

/* Kernel `name` out of an element function `name_at`. */
#define EX_EACH(name) \
	static bool name(const struct ex_job *j) \
	{ \
		return ex_each(j, name##_at); \
	}

/* Operand i where result element `at` of the first result needs it. */
ex_id ex_operand(const struct ex_job *j, unsigned i, const int64_t *at);

struct ex_source { /* an element of an operand; t NULL: nothing */
	const struct ex_value *t;
	int64_t at[AP_MAX_RANK];
};

/* Where element `at` of result r is taken from; s begins as element `at` of operand 0. */
typedef void ex_source_fn(const struct ex_job *j, unsigned r, const int64_t *at,
	struct ex_source *s);

/* Takes all elements of all results from there. False where that is outside of the operand. */
bool ex_carry(const struct ex_job *j, ex_source_fn *from);

#define EX_CARRY(name) \
	static bool name(const struct ex_job *j) \
	{ \
		return ex_carry(j, name##_from); \
	}

/* Value i of a list of attributes. */
int64_t ex_listed(const struct ex_job *j, const char *name, unsigned i);

/* Does the type's name begin or end so? */
bool ex_begins(const struct ex_job *j, const char *text);
bool ex_ends(const struct ex_job *j, const char *text);

#endif
