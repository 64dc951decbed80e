/* SPDX-License-Identifier: Apache-2.0 */
/* The engines against brute force, on random tables of every shape. */
#include <math.h>

#include "base/vec.h"
#include "elim/dp.h"
#include "random_problem.h"
#include "unit.h"

enum { MAX_N = 7 };

struct setting {
	const char *name;
	struct ap_dp_options options;
};

static const struct setting settings[] = {
	{"as it comes", {AP_DP_PRUNE_AUTO, false}},
	{"no pruning, no sharing", {AP_DP_PRUNE_NEVER, true}},
	{"no pruning", {AP_DP_PRUNE_NEVER, false}},
	{"pruning", {AP_DP_PRUNE_ALWAYS, false}},
};

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 10000;
}

#define CASE_FAILS(ctx, p, i, what, ...) \
	ck_abort_msg("case %" PRIu64 ", " what "\n%s", (i), __VA_ARGS__, problem_text((ctx), (p)))

static void compare(struct ap_ctx *ctx, const struct ap_problem *p, uint64_t i, const char *name,
	const struct ap_choice *want, const struct ap_choice *got)
{
	if (want->outcome != got->outcome || want->cost != got->cost ||
		want->lower_bound != got->lower_bound || want->least_memory != got->least_memory)
		CASE_FAILS(ctx, p, i, "%s: outcome %d cost %g bound %g least %" PRId64
			"; expected %d %g %g %" PRId64, name, got->outcome, got->cost,
			got->lower_bound, got->least_memory, want->outcome, want->cost,
			want->lower_bound, want->least_memory);
	if (!want->pick != !got->pick)
		CASE_FAILS(ctx, p, i, "%s: pick given or not", name);
	for (uint32_t v = 0; want->pick && v < p->n; v++) {
		if (want->pick[v] != got->pick[v])
			CASE_FAILS(ctx, p, i, "%s: node %u is %u, expected %u", name, v,
				got->pick[v], want->pick[v]);
	}
	ck_assert_int_eq(want->memory, got->memory);
}

START_TEST(dynamic_programming_is_brute_force)
{
	uint64_t seed = random_seed(), n = case_count();
	uint64_t outcomes[4] = {0}, limited = 0;
	struct ap_budget budget = {0};
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want, got;
		ap_engine_find("brute_force")->solve(&ctx, p, &budget, &want);
		outcomes[want.outcome]++;
		limited += p->memory_limit != AP_NO_LIMIT;
		for (size_t s = 0; s < AP_COUNT(settings); s++) {
			ap_dp_solve_with(&ctx, p, &budget, &settings[s].options, &got);
			compare(&ctx, p, i, settings[s].name, &want, &got);
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " optimal, %" PRIu64 " infeasible, %" PRIu64 " with a limit\n",
		outcomes[AP_OUT_OPTIMAL], outcomes[AP_OUT_INFEASIBLE], limited);
	ck_assert(n < 1000 || (outcomes[AP_OUT_INFEASIBLE] > n / 100 && limited > n / 3));
}
END_TEST

static void check_sound(struct ap_ctx *ctx, const struct ap_problem *p, uint64_t i,
	const struct ap_choice *want, const struct ap_choice *got)
{
	double optimum = want->outcome == AP_OUT_OPTIMAL ? want->cost : INFINITY;
	if (got->lower_bound > optimum)
		CASE_FAILS(ctx, p, i, "bound %g above the optimum %g", got->lower_bound, optimum);
	if (got->outcome == AP_OUT_INFEASIBLE)
		ck_assert_int_eq(want->outcome, AP_OUT_INFEASIBLE);
	if (!got->pick)
		return;
	ck_assert(got->outcome == AP_OUT_OPTIMAL || got->outcome == AP_OUT_FEASIBLE);
	if (got->cost != ap_problem_cost(p, got->pick) || got->cost < optimum ||
		got->memory != ap_problem_memory(p, got->pick) || got->memory > p->memory_limit)
		CASE_FAILS(ctx, p, i, "pick of cost %g, memory %" PRId64, got->cost, got->memory);
	if (got->outcome == AP_OUT_OPTIMAL && got->cost != optimum)
		CASE_FAILS(ctx, p, i, "%g said to be optimal, %g is", got->cost, optimum);
}

/* Whatever the budget: bounds hold, picks are allowed, and what is said to be proven is. */
START_TEST(any_budget_is_sound)
{
	uint64_t seed = random_seed() + 1, n = case_count() / 4, exact = 0;
	static const struct ap_budget budgets[] = {
		{.table_bytes = 64}, {.table_bytes = 600}, {.work = 1}, {.work = 500},
		{.work = 3000}, {.gap = 0.1},
	};
	struct ap_dp_options options = {AP_DP_PRUNE_NEVER, false};
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want, got;
		ap_engine_find("brute_force")->solve(&ctx, p, &(struct ap_budget){0}, &want);
		for (size_t b = 0; b < AP_COUNT(budgets); b++) {
			ap_dp_solve_with(&ctx, p, &budgets[b], &options, &got);
			check_sound(&ctx, p, i, &want, &got);
			exact += got.outcome == AP_OUT_OPTIMAL;
		}
		ctx_destroy(&ctx);
	}
	ck_assert_uint_gt(exact, 0);
}
END_TEST

/* Propagation from a random node or from none: what it finds is allowed, and without a memory limit
 * it nearly always finds something. */
START_TEST(propagation_is_sound)
{
	uint64_t seed = random_seed() + 2, n = case_count(), possible = 0, found = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p = *random_problem(&ctx, &seed, MAX_N);
		struct ap_pnode *node = ap_arena_memdup(ctx.arena, p.node, p.n * sizeof *node);
		struct ap_choice want, got;
		if (p.n > 0 && i % 2)
			node[random_below(&seed, p.n)].fixed = true;
		p.node = node;
		ap_engine_find("brute_force")->solve(&ctx, &p, &(struct ap_budget){0}, &want);
		ap_engine_find("sharding_propagation")
			->solve(&ctx, &p, &(struct ap_budget){0}, &got);
		check_sound(&ctx, &p, i, &want, &got);
		if (p.memory_limit == AP_NO_LIMIT && want.pick) {
			possible++;
			found += got.pick != NULL;
		}
		ctx_destroy(&ctx);
	}
	printf("propagation: %" PRIu64 " of %" PRIu64 " found\n", found, possible);
	ck_assert_uint_ge(found, possible - possible / 20);
}
END_TEST

/* Each candidate leads to some later ones, or to any at all. */
static struct ap_problem with_next(struct ap_ctx *ctx, uint64_t *seed, const struct ap_problem *p)
{
	struct ap_problem made = *p;
	struct ap_pnode *node = ap_arena_memdup(ctx->arena, p->node, p->n * sizeof *node);
	bool ordered = random_below(seed, 4) > 0;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = node[i].k, ways = (uint32_t)random_below(seed, 3);
		int32_t *next = AP_NEW_N(ctx->arena, int32_t, k * ways + 1);
		for (uint32_t j = 0; j < k * ways; j++) {
			int32_t c = (int32_t)random_below(seed, k + 1) - 1;
			next[j] = ordered && c <= (int32_t)(j / ways) ? -1 : c;
		}
		node[i].nway = ways;
		node[i].next = next;
	}
	made.node = node;
	return made;
}

/* What the recursion finds is allowed; on most tables that have a pick it finds one, and mostly the
 * best. */
START_TEST(recursion_is_sound)
{
	uint64_t seed = random_seed() + 3, n = case_count(), possible = 0, found = 0, best = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p =
			with_next(&ctx, &seed, random_problem(&ctx, &seed, MAX_N));
		struct ap_choice want, got;
		ap_engine_find("brute_force")->solve(&ctx, &p, &(struct ap_budget){0}, &want);
		ap_engine_find("recursive_programming")
			->solve(&ctx, &p, &(struct ap_budget){0}, &got);
		check_sound(&ctx, &p, i, &want, &got);
		possible += want.pick != NULL;
		found += got.pick != NULL;
		best += got.pick && got.cost == want.cost;
		ctx_destroy(&ctx);
	}
	printf("of %" PRIu64 " tables with a pick, %" PRIu64 " found, %" PRIu64 " the best\n",
		possible, found, best);
	ck_assert(found * 10 >= possible * 9 && best * 10 >= possible * 7);
}
END_TEST
