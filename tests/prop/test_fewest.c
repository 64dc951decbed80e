/* SPDX-License-Identifier: Apache-2.0 */
/* The fewest changes within a cost, held against all picks. */
#include <math.h>

#include "random_problem.h"
#include "search/fewest.h"
#include "unit.h"

enum { FEW = 7 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");

	return text ? strtoull(text, NULL, 0) : 1000;
}

static bool next_pick(const struct ap_problem *p, uint32_t *pick)
{
	for (uint32_t v = p->n; v-- > 0;) {
		if (++pick[v] < p->node[v].k)
			return true;
		pick[v] = 0;
	}
	return false;
}

static double changes_of(const struct ap_problem *p, const uint32_t *old, const uint32_t *pick)
{
	double n = 0;

	for (uint32_t v = 0; v < p->n; v++)
		n += old[v] != AP_NONE && old[v] != pick[v];
	return n;
}

START_TEST(no_pick_within_the_cost_changes_less)
{
	static const char *const engines[] = {"auto", "dynamic_programming"};
	uint64_t seed = random_seed(), cases = case_count(), found = 0, changed = 0;

	for (uint64_t i = 0; i < cases; i++) {
		struct ap_ctx ctx = ctx_create(false);
		uint64_t before = seed;
		struct ap_problem p = *random_problem(&ctx, &seed, FEW);
		uint32_t *pick = AP_NEW_N(ctx.arena, uint32_t, p.n), *old = AP_NEW_N(ctx.arena, uint32_t, p.n);
		double least = INFINITY, most = 0, fewest = INFINITY, cheapest = INFINITY;
		const struct ap_budget budget = {0};
		struct ap_fewest f;

		p.memory_limit = AP_NO_LIMIT;
		for (uint32_t v = 0; v < p.n; v++)
			old[v] = random_below(&seed, 5) ? (uint32_t)random_below(&seed, p.node[v].k) : AP_NONE;
		do {
			least = fmin(least, ap_problem_cost(&p, pick));
		} while (next_pick(&p, pick));
		most = least < INFINITY ? least + p.quantum * (double)random_below(&seed, 100) : 0;
		do {
			double n = changes_of(&p, old, pick), cost = ap_problem_cost(&p, pick);

			if (cost > most || n > fewest)
				continue;
			cheapest = n < fewest ? cost : fmin(cheapest, cost);
			fewest = n;
		} while (next_pick(&p, pick));
		ap_fewest_changes(&ctx, ap_engine_find(engines[i % 2]), &p, old, most, &budget, &f);
		ck_assert_msg((f.pick != NULL) == (fewest < INFINITY) && f.changes == fewest && f.bound == fewest,
			"AP_SEED=%" PRIu64 ": %g changes, no fewer than %g, not %g\n%s", before, f.changes,
			f.bound, fewest, problem_text(&ctx, &p));
		if (f.pick) {
			ck_assert_double_eq(changes_of(&p, old, f.pick), fewest);
			ck_assert_msg(ap_problem_cost(&p, f.pick) == cheapest, "AP_SEED=%" PRIu64 ": %g, not %g\n%s",
				before, ap_problem_cost(&p, f.pick), cheapest, problem_text(&ctx, &p));
		}
		found += f.pick != NULL;
		changed += f.pick && fewest > 0;
		ctx_destroy(&ctx);
	}
	ck_assert(cases < 100 || (found > cases / 2 && changed > cases / 10));
}
END_TEST
