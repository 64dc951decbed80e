/* SPDX-License-Identifier: Apache-2.0 */
/* Brute force, elimination and integer programming against each other, on random tables of every shape. */
#include <math.h>

#include "exact_cost.h"
#include "random_problem.h"
#include "base/vec.h"
#include "search/engine.h"
#include "unit.h"

enum { MAX_N = 8, LARGER_N = 14 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 3000;
}

static struct ap_choice solved(struct ap_ctx *ctx, const char *engine, const struct ap_problem *p,
	const struct ap_budget *budget)
{
	struct ap_choice c;
	ap_engine_find(engine)->solve(ctx, p, budget, &c);
	return c;
}

#define CASE_FAILS(ctx, p, i, what, ...) \
	ck_abort_msg("case %" PRIu64 ", " what "\n%s", (i), __VA_ARGS__, problem_text((ctx), (p)))

/* The same outcome, cost and bound; of equal picks any will do. */
static void compare(struct ap_ctx *ctx, const struct ap_problem *p, uint64_t i,
	const struct ap_choice *want, const struct ap_choice *got)
{
	if (want->outcome != got->outcome || want->cost != got->cost ||
		want->lower_bound != got->lower_bound || want->least_memory != got->least_memory)
		CASE_FAILS(ctx, p, i, "outcome %d cost %.17g bound %.17g least %" PRId64
			"; %s: %d %.17g %.17g %" PRId64, got->outcome, got->cost, got->lower_bound,
			got->least_memory, want->engine, want->outcome, want->cost,
			want->lower_bound, want->least_memory);
	ck_assert_int_eq(!want->pick, !got->pick);
	if (got->pick && (ap_problem_cost(p, got->pick) != got->cost ||
		ap_problem_memory(p, got->pick) != got->memory || got->memory > p->memory_limit))
		CASE_FAILS(ctx, p, i, "pick of cost %.17g, memory %" PRId64,
			ap_problem_cost(p, got->pick), ap_problem_memory(p, got->pick));
}

/* What the choice says of itself is what its pick really costs, in whole numbers. */
static void recompute(struct ap_ctx *ctx, const struct ap_problem *p, uint64_t i,
	const struct ap_choice *c)
{
	struct exact_cost real;
	if (!c->pick)
		return;
	if (!exact_cost_of(p, c->pick, &real) || real.quanta != exact_quanta(p, c->cost) ||
		real.quanta != exact_quanta(p, c->lower_bound) || real.bytes != c->memory ||
		real.bytes > p->memory_limit)
		CASE_FAILS(ctx, p, i, "%s: cost %.17g, memory %" PRId64 "; really %" PRId64
			" quanta and %" PRId64, c->engine, c->cost, c->memory, real.quanta,
			real.bytes);
}

START_TEST(brute_force_dynamic_and_integer_programming_agree)
{
	uint64_t seed = random_seed() + 4, n = case_count(), infeasible = 0, limited = 0;
	struct ap_budget budget = {0};
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		ctx.helpers = AP_HELPERS;
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want = solved(&ctx, "brute_force", p, &budget);
		struct ap_choice dynamic = solved(&ctx, "dynamic_programming", p, &budget);
		struct ap_choice integer = solved(&ctx, "integer_programming", p, &budget);
		compare(&ctx, p, i, &want, &dynamic);
		compare(&ctx, p, i, &want, &integer);
		recompute(&ctx, p, i, &want);
		recompute(&ctx, p, i, &dynamic);
		recompute(&ctx, p, i, &integer);
		infeasible += want.outcome == AP_OUT_INFEASIBLE;
		limited += p->memory_limit != AP_NO_LIMIT;
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " infeasible, %" PRIu64 " with a limit\n", infeasible, limited);
	ck_assert(n < 1000 || (infeasible > n / 100 && limited > n / 3));
}
END_TEST

START_TEST(integer_programming_is_dynamic_programming)
{
	uint64_t seed = random_seed() + 5, n = case_count() / 3;
	struct ap_budget budget = {0};
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		ctx.helpers = AP_HELPERS;
		const struct ap_problem *p = random_problem(&ctx, &seed, LARGER_N);
		struct ap_choice want = solved(&ctx, "dynamic_programming", p, &budget);
		struct ap_choice got = solved(&ctx, "integer_programming", p, &budget);
		compare(&ctx, p, i, &want, &got);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* Whatever the budget, and whatever pick it starts from: bounds hold, picks are allowed, what is said
 * to be proven is. */
START_TEST(any_budget_is_sound)
{
	static const struct ap_budget budgets[] = {{.work = 1}, {.work = 300}, {.gap = 0.1},
		{.table_bytes = 1000}};
	uint64_t seed = random_seed() + 6, n = case_count() / 3, exact = 0, open = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		ctx.helpers = AP_HELPERS;
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want = solved(&ctx, "brute_force", p, &(struct ap_budget){0});
		for (size_t b = 0; b < AP_COUNT(budgets); b++) {
			struct ap_budget budget = budgets[b];
			budget.start[0] = i % 2 ? want.pick : NULL;
			struct ap_choice got = solved(&ctx, "integer_programming", p, &budget);
			if (got.outcome == AP_OUT_OPTIMAL || got.outcome == AP_OUT_INFEASIBLE) {
				ck_assert(want.least_memory < 0 ||
					got.least_memory <= want.least_memory);
				got.least_memory = want.least_memory;
				compare(&ctx, p, i, &want, &got);
				exact++;
				continue;
			}
			open++;
			if (got.lower_bound > want.cost || (got.pick && got.cost < want.cost))
				CASE_FAILS(&ctx, p, i, "bound %.17g, pick %.17g; the optimum is %.17g",
					got.lower_bound, got.cost, want.cost);
			ck_assert(!budget.start[0] || got.cost == want.cost || budget.table_bytes);
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " exact, %" PRIu64 " open\n", exact, open);
	ck_assert(n < 100 || (exact > 0 && open > 0));
}
END_TEST
