/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that rules, collectives, groups, layouts and plans can have, put in on purpose: the executor
 * must see each of them on each operator or graph that it is tried on, and nothing where it is not.
 *
 * Usage: test_faults PART PARTS   every PARTS-th fault
 *        test_faults NAME         one fault
 */
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

int main(int argc, char **argv)
{
	unsigned long part = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long parts = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
	const char *only = argc == 2 ? argv[1] : NULL;
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL), .jobs = 1};
	uint64_t seed = ex_seed("test_faults");
	uint32_t injected = 0, caught = 0;
	const struct ex_fault *f;

	for (size_t i = 0; (f = ex_fault_at(i)); i++) {
		if (only ? strcmp(f->name, only) != 0 : i % parts != part)
			continue;
		injected++;
		caught += try_fault(&ctx, f, seed);
	}
	printf("%" PRIu32 " faults injected, %" PRIu32 " caught\n", injected, caught);
	ap_arena_destroy(ctx.arena);
	return injected && caught == injected ? EXIT_SUCCESS : EXIT_FAILURE;
}
