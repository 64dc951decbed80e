/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that rules, collectives, groups, layouts and plans can have, put in on purpose: the
 * executor must notice each of them on each operator or graph that it is tried on.
 *
 * A piece of work is a fault: test_faults=NAME.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "fault.h"
#include "harness.h"

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

START_TEST(each_fault_is_noticed)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	uint64_t seed = ex_seed("test_faults");
	uint32_t injected = 0, caught = 0;
	const struct ex_fault *f;

	for (size_t i = 0; (f = ex_fault_at(i)); i++) {
		if (!test_asked(i, f->name))
			continue;
		injected++;
		caught += try_fault(&ctx, f, seed);
	}
	printf("%" PRIu32 " faults injected, %" PRIu32 " caught\n", injected, caught);
	ap_arena_destroy(ctx.arena);
	ck_assert_uint_gt(injected, 0);
	ck_assert_uint_eq(caught, injected);
}
END_TEST
