/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operator type of the table, every legal strategy, both executors: results, gradients and
 * updated parameters on virtual ranks are those of one rank.
 *
 * A piece of work is a type: test_rows=TYPE, with AP_SEED: again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "rule/op.h"
#include "harness.h"
#include "oper.h"

enum { USUAL = 6, ALL = 8 };
static const int64_t devices[ALL] = {1, 2, 4, 6, 8, 12, 9, 16}; /* the last ones in long runs */

struct sum {
	uint32_t types, covered, rows, met, strategies, runs, failed;
	uint64_t collectives;
};

static void say_rows(const struct ex_tally *t, struct sum *sum)
{
	uint64_t bit = 1;

	for (const struct ap_op_row *o = ap_op_next(NULL, t->type); o; o = ap_op_next(o, t->type)) {
		sum->rows++;
		if (t->met & bit)
			sum->met++;
		else if (!t->difference)
			printf("no sample: %s, %s, when \"%s\"\n", t->type, o->rule, o->when);
		bit <<= 1;
	}
}

static void run_type(struct ap_ctx *ctx, const char *type, uint64_t seed,
	const struct ex_effort *effort, struct sum *sum)
{
	const struct ex_kernel *k = ex_kernel_find(type);
	struct ex_tally t;

	sum->types++;
	if (!k) {
		printf("no kernel: %s\n", type);
		return;
	}
	t = ex_rows_run(ctx, k, seed, effort);
	sum->covered++;
	sum->strategies += t.strategies;
	sum->runs += t.runs;
	sum->collectives += t.collectives;
	say_rows(&t, sum);
	if (!t.difference)
		return;
	sum->failed++;
	printf("%s differs: %s\n  repeat: AP_SEED=%" PRIu64 " test_rows=%s\n", type, t.difference,
		seed, type);
}

/* Types stand together in the table; is this the first row of one? Those that no file may have are run in
 * test_staged. */
static bool is_type(const struct ap_op_row *row)
{
	return ap_op_next(NULL, row->name) == row && !ap_op_unsupported(row->name);
}

START_TEST(strategies_are_those_of_one_rank)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	uint64_t seed = ex_seed("test_rows");
	uint32_t usual = 1000, cases = (uint32_t)ex_cases(usual);
	struct ex_effort effort = {.samples = 1 + cases / 250, .strategies = 1 + cases / 5,
		.ndev = devices, .nndev = cases > usual ? ALL : USUAL};
	struct sum sum = {0};
	const struct ap_op_row *row;
	size_t number = 0;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		if (is_type(row) && test_asked(number++, row->name))
			run_type(&ctx, row->name, seed, &effort, &sum);
	printf("%" PRIu32 " of %" PRIu32 " types, %" PRIu32 " of their %" PRIu32 " rows, %" PRIu32
		" legal strategies, %" PRIu32 " runs, %" PRIu64 " collectives; %" PRIu32
		" types differ\n", sum.covered, sum.types, sum.met, sum.rows, sum.strategies, sum.runs,
		sum.collectives, sum.failed);
	ap_arena_destroy(ctx.arena);
	ck_assert_uint_eq(sum.failed, 0);
	ck_assert_uint_gt(sum.covered, 0);
}
END_TEST
