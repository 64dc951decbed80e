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

/* What is wrong with the answer of an exact engine, `want` being that of brute force; NULL: nothing. */
static const char *not_exact(const struct ap_problem *p, const struct ap_choice *want,
	const struct ap_choice *got, bool smallest)
{
	if (want->outcome != got->outcome)
		return "another outcome";
	if (want->cost != got->cost)
		return "another cost";
	if (want->lower_bound != got->lower_bound)
		return "another bound";
	if (want->least_memory != got->least_memory)
		return "another least memory";
	if (!want->pick != !got->pick)
		return "a pick given or not";
	if (smallest && want->pick &&
		memcmp(want->pick, got->pick, p->n * sizeof *want->pick) != 0)
		return "not the smallest pick";
	return NULL;
}

/* The same for any engine that says what it has proven. */
static const char *not_sound(const struct ap_problem *p, const struct ap_choice *want,
	const struct ap_choice *got)
{
	double optimum = want->outcome == AP_OUT_OPTIMAL ? want->cost : INFINITY;
	if (got->lower_bound > optimum)
		return "a bound above the optimum";
	if (got->outcome == AP_OUT_INFEASIBLE && want->outcome != AP_OUT_INFEASIBLE)
		return "something fits";
	if ((got->outcome == AP_OUT_OPTIMAL || got->outcome == AP_OUT_FEASIBLE) != (got->pick != NULL))
		return "a pick given or not";
	if (!got->pick)
		return NULL;
	for (uint32_t v = 0; v < p->n; v++)
		if (got->pick[v] >= p->node[v].k)
			return "no candidate";
	if (!(got->cost < INFINITY) || got->cost != ap_problem_cost(p, got->pick) || got->cost < optimum)
		return "not the cost of the pick";
	if (got->memory != ap_problem_memory(p, got->pick) || got->memory > p->memory_limit)
		return "not the memory of the pick, or above the limit";
	return got->outcome == AP_OUT_OPTIMAL && got->cost != optimum ? "said to be optimal, and is not"
		: NULL;
}

/* The same by what the engine's row claims. */
static const char *broken_claim(const struct ap_engine *e, const struct ap_problem *p,
	const struct ap_choice *want, const struct ap_choice *got)
{
	const char *fault = not_sound(p, want, got);
	return fault || !(e->flags & AP_ENGINE_EXACT) ? fault
		: not_exact(p, want, got, e->flags & AP_ENGINE_SMALLEST);
}

static void expect_none(const char *fault, struct ap_ctx *ctx, const struct ap_problem *p, uint64_t i,
	const char *name, const struct ap_choice *want, const struct ap_choice *got)
{
	if (fault)
		ck_abort_msg("case %" PRIu64 ", %s: %s: outcome %d cost %.17g bound %.17g memory %" PRId64
			" least %" PRId64 "; brute force: %d %.17g %.17g %" PRId64 " %" PRId64 "\n%s", i, name,
			fault, got->outcome, got->cost, got->lower_bound, got->memory, got->least_memory,
			want->outcome, want->cost, want->lower_bound, want->memory, want->least_memory,
			problem_text(ctx, p));
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
			expect_none(not_exact(p, &want, &got, true), &ctx, p, i, settings[s].name, &want, &got);
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " optimal, %" PRIu64 " infeasible, %" PRIu64 " with a limit\n",
		outcomes[AP_OUT_OPTIMAL], outcomes[AP_OUT_INFEASIBLE], limited);
	ck_assert(n < 1000 || (outcomes[AP_OUT_INFEASIBLE] > n / 100 && limited > n / 3));
}
END_TEST

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
			expect_none(not_sound(p, &want, &got), &ctx, p, i, "within a budget", &want, &got);
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
		expect_none(not_sound(&p, &want, &got), &ctx, &p, i, "propagation", &want, &got);
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
		expect_none(not_sound(&p, &want, &got), &ctx, &p, i, "recursion", &want, &got);
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

/* ---- every row of engines.def ---- */

static const struct ap_budget every_budget[] = {{0}, {.work = 1}, {.work = 3000}, {.gap = 0.1},
	{.table_bytes = 1000}};

/* What an engine's answers, with no budget and with small ones, break of its claims; NULL: nothing. */
static const char *fault_of(struct ap_ctx *ctx, const struct ap_engine *e, const struct ap_problem *p,
	const struct ap_choice *want, struct ap_choice *got)
{
	for (size_t b = 0; b < AP_COUNT(every_budget); b++) {
		const char *fault;
		e->solve(ctx, p, &every_budget[b], got);
		fault = b == 0 ? broken_claim(e, p, want, got) : not_sound(p, want, got);
		if (fault)
			return fault;
		if (strcmp(got->engine, e->name) != 0 && strcmp(e->name, "auto") != 0)
			return "another name"; /* auto names the engine that answered */
	}
	return NULL;
}

START_TEST(every_engine_keeps_what_its_row_claims)
{
	uint64_t seed = random_seed() + 7, n = case_count() / 10, tried = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p = with_next(&ctx, &seed, random_problem(&ctx, &seed, MAX_N));
		struct ap_choice want, got;
		const struct ap_engine *e;
		ctx.helpers = AP_HELPERS;
		ap_engine_find("brute_force")->solve(&ctx, &p, &(struct ap_budget){0}, &want);
		for (size_t r = 0; (e = ap_engine_at(r)); r++, tried++)
			expect_none(fault_of(&ctx, e, &p, &want, &got), &ctx, &p, i, e->name, &want, &got);
		ctx_destroy(&ctx);
	}
	ck_assert_uint_ge(tried, 5 * n);
}
END_TEST

/* Engines that lie, each in one way. */
static void liar_picks(struct ap_ctx *ctx, const struct ap_problem *p, struct ap_choice *out)
{
	*out = (struct ap_choice){.engine = "liar", .outcome = AP_OUT_OPTIMAL, .least_memory = -1,
		.pick = AP_NEW_N(ctx->arena, uint32_t, p->n)};
	out->cost = out->lower_bound = ap_problem_cost(p, out->pick);
	out->memory = ap_problem_memory(p, out->pick);
}

static void always_optimal(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	(void)budget;
	liar_picks(ctx, p, out);
}

/* Right, but for what it says of the cost. */
static void flatterer(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	ap_engine_find("brute_force")->solve(ctx, p, budget, out);
	out->engine = "liar";
	if (out->pick)
		out->cost = out->lower_bound -= p->quantum;
}

static void boaster(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	ap_engine_find("brute_force")->solve(ctx, p, budget, out);
	out->engine = "liar";
	if (out->outcome == AP_OUT_OPTIMAL)
		out->outcome = AP_OUT_FEASIBLE;
	out->lower_bound += p->quantum;
}

static void defeatist(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	(void)ctx, (void)p, (void)budget;
	*out = (struct ap_choice){.engine = "liar", .outcome = AP_OUT_INFEASIBLE, .cost = INFINITY,
		.lower_bound = INFINITY, .least_memory = -1};
}

/* The optimum as if there were no limit. */
static void glutton(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_problem free = *p;
	free.memory_limit = AP_NO_LIMIT;
	ap_engine_find("brute_force")->solve(ctx, &free, budget, out);
	out->engine = "liar";
}

START_TEST(liars_are_found_out)
{
	enum { EXACT = AP_ENGINE_EXACT | AP_ENGINE_MEMORY };
	static const struct ap_engine liars[] = {{"liar", "", EXACT, always_optimal}, {"liar", "", EXACT, flatterer},
		{"liar", "", EXACT, boaster}, {"liar", "", EXACT, defeatist}, {"liar", "", EXACT, glutton},
		{"liar", "", 0, always_optimal}, {"liar", "", 0, flatterer}, {"liar", "", 0, boaster},
		{"liar", "", 0, defeatist}, {"liar", "", 0, glutton}};
	uint64_t caught[AP_COUNT(liars)] = {0}, seed = random_seed() + 7;
	for (int i = 0; i < 100; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p = with_next(&ctx, &seed, random_problem(&ctx, &seed, MAX_N));
		struct ap_choice want, got;
		ap_engine_find("brute_force")->solve(&ctx, &p, &(struct ap_budget){0}, &want);
		for (size_t l = 0; l < AP_COUNT(liars); l++)
			caught[l] += fault_of(&ctx, &liars[l], &p, &want, &got) != NULL;
		ctx_destroy(&ctx);
	}
	for (size_t l = 0; l < AP_COUNT(liars); l++)
		ck_assert_msg(caught[l] > 5, "liar %zu: %" PRIu64 " times", l, caught[l]);
}
END_TEST
