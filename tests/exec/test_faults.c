/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that rules, collectives, groups, layouts and plans can have, put in on purpose: the
 * executor must notice each of them on each operator or graph that it is tried on.
 *
 * Usage: test_faults PART PARTS   every PARTS-th fault
 *        test_faults NAME         one fault
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "fault.h"

static bool try_fault(struct ap_ctx *ctx, const struct ex_fault *f, uint64_t seed)
{
	struct ex_fault_tally t = ex_fault_try(ctx, f, seed);
	bool good = t.caught && !t.missed && !t.unsound;

	printf("%s %s (%s): %" PRIu32 " of %" PRIu32 " runs, e.g. %s\n", good ? "caught" : "MISSED",
		f->name, f->what, t.caught, t.applied, t.first ? t.first : "none");
	if (t.missed)
		printf("  %s on %s, %s\n", t.applied ? "passes" : "finds nothing to break", t.missed,
			f->types);
	if (t.unsound)
		printf("  differs without it: %s\n", t.unsound);
	return good;
}

static struct { /* what main() was asked for */
	unsigned long part, parts;
	const char *only;
	uint32_t injected, caught;
} work;

START_TEST(each_fault_is_noticed)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	uint64_t seed = ex_seed("test_faults");
	const struct ex_fault *f;

	for (size_t i = 0; (f = ex_fault_at(i)); i++) {
		if (work.only ? strcmp(f->name, work.only) != 0 : i % work.parts != work.part)
			continue;
		work.injected++;
		work.caught += try_fault(&ctx, f, seed);
	}
	printf("%" PRIu32 " faults injected, %" PRIu32 " caught\n", work.injected, work.caught);
	ap_arena_destroy(ctx.arena);
	ck_assert_uint_gt(work.injected, 0);
	ck_assert_uint_eq(work.caught, work.injected);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("faults");
	TCase *t = tcase_create("faults");
	SRunner *runner;
	int failed;

	work.part = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	work.parts = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
	work.only = argc == 2 ? argv[1] : NULL;
	tcase_add_test(t, each_fault_is_noticed);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
