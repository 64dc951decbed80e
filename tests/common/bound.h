/* SPDX-License-Identifier: Apache-2.0 */
/* Bound rules made by hand, so that the shard layer is tested without the operator table. */
#ifndef TEST_SHARD_BOUND_H
#define TEST_SHARD_BOUND_H

#include <check.h>

#include "rule/rule.h"

/* ck_assert for inner loops: Check notes every call of its own, which costs a system call. */
#define REQUIRE(x) \
	do { \
		if (!(x)) \
			ck_abort_msg("'%s' does not hold", #x); \
	} while (0)

struct made {
	struct ap_bound b;
	struct ap_op_row row;
	struct ap_operand t[8];
};

/*
 * rule: operands and results of letters, "(ab)" composed, "1": "bsh->(bs)h". lengths: every
 * letter's in dev_matrix order, "!" frozen, "*" carries the batch: "m128* k64! n32". left: letters
 * that put repeats left when cut, "*" always.
 */
void make_bound(struct made *m, const char *rule, const char *lengths, const char *left);

/* Index of a letter's factor. */
int factor_of(const struct ap_bound *b, char letter);

/* got[0..n) must read "1 -1 2". */
void check_list(const char *what, const int32_t *got, int n, const char *want);

/* Random numbers that are the same everywhere; seeded from AP_SEED or a constant, and printed. */
uint64_t random_seed(const char *test);
uint64_t random_next(uint64_t *state);

#endif
