/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operator type of the table, every legal strategy, both executors: results, gradients and
 * updated parameters on virtual ranks are those of one rank.
 *
 * Usage: test_rows PART PARTS   every PARTS-th type
 *        test_rows TYPE         one type; with AP_SEED: again
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "oper.h"

enum { USUAL = 6, ALL = 8 };
static const int64_t devices[ALL] = {1, 2, 4, 6, 8, 12, 9, 16}; /* the last ones in long runs */

struct part {
	const char *type; /* the only one, or NULL */
	unsigned long part, parts;
};

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
	printf("%s differs: %s\n  repeat: AP_SEED=%" PRIu64 " test_rows %s\n", type, t.difference,
		seed, type);
}

/* Types stand together in the table; is this the first row of one, and in the part? Those that no file may
 * have are run in test_staged. */
static bool is_ours(const struct part *part, const struct ap_op_row *row, unsigned long *number)
{
	if (ap_op_next(NULL, row->name) != row || ap_op_unsupported(row->name))
		return false;
	if (part->type)
		return strcmp(part->type, row->name) == 0;
	return (*number)++ % part->parts == part->part;
}

int main(int argc, char **argv)
{
	struct part part = {.type = argc == 2 ? argv[1] : NULL, .parts = 1};
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	uint64_t seed = ex_seed("test_rows");
	uint32_t usual = 1000, cases = (uint32_t)ex_cases(usual);
	struct ex_effort effort = {.samples = 1 + cases / 250, .strategies = 1 + cases / 5,
		.ndev = devices, .nndev = cases > usual ? ALL : USUAL};
	struct sum sum = {0};
	unsigned long number = 0;
	const struct ap_op_row *row;

	if (argc == 3) {
		part.part = strtoul(argv[1], NULL, 10);
		part.parts = strtoul(argv[2], NULL, 10);
	}
	for (size_t i = 0; (row = ap_op_at(i)); i++)
		if (is_ours(&part, row, &number))
			run_type(&ctx, row->name, seed, &effort, &sum);
	printf("%" PRIu32 " of %" PRIu32 " types, %" PRIu32 " of their %" PRIu32 " rows, %" PRIu32
		" legal strategies, %" PRIu32 " runs, %" PRIu64 " collectives; %" PRIu32
		" types differ\n", sum.covered, sum.types, sum.met, sum.rows, sum.strategies, sum.runs,
		sum.collectives, sum.failed);
	ap_arena_destroy(ctx.arena);
	return sum.failed || (part.type && !sum.covered) ? EXIT_FAILURE : EXIT_SUCCESS;
}
