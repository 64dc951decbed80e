/* SPDX-License-Identifier: Apache-2.0 */
/* The engine auto where tables are too wide for elimination: planted optima, brute force, its engines. */
#include <math.h>

#include "../../bench/hard_problem.h"
#include "drive/certify.h"
#include "elim/dp.h"
#include "random_problem.h"
#include "search/engine.h"
#include "unit.h"

enum { MAX_N = 8, STEP = 2 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 3000;
}

static struct ap_ctx helped_ctx(void)
{
	struct ap_ctx ctx = ctx_create(false);
	ctx.helpers = AP_HELPERS;
	return ctx;
}

static struct ap_choice solved(struct ap_ctx *ctx, const char *engine, const struct ap_problem *p,
	const struct ap_budget *budget)
{
	struct ap_choice c;
	ap_engine_find(engine)->solve(ctx, p, budget, &c);
	return c;
}

/* Does elimination have to split its tables? Without a limit of memory it proves an optimum where not. */
static bool is_wide(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_choice c = solved(ctx, "dynamic_programming", p, &(struct ap_budget){.whole = true});
	return c.outcome == AP_OUT_FEASIBLE && c.ended == AP_ENDED_MEMORY;
}

static void ck_sound(const struct ap_problem *p, const struct ap_choice *c)
{
	ck_assert(!c->pick == (c->outcome != AP_OUT_OPTIMAL && c->outcome != AP_OUT_FEASIBLE));
	if (!c->pick)
		return;
	ck_assert_double_eq(c->cost, ap_problem_cost(p, c->pick));
	ck_assert_int_eq(c->memory, ap_problem_memory(p, c->pick));
	ck_assert_int_le(c->memory, p->memory_limit);
	ck_assert_double_le(c->lower_bound, c->cost);
	ck_assert_int_eq(c->outcome == AP_OUT_OPTIMAL, c->ended == AP_ENDED_PROVEN);
}

static struct hard_spec small_spec(uint64_t *seed)
{
	struct hard_spec s = {.shape = (enum hard_shape)random_below(seed, HARD_SHAPES), .a = 3, .b = 2,
		.k = 2 + (uint32_t)random_below(seed, 3), .costs = (enum hard_costs)random_below(seed, HARD_COSTS),
		.planted = random_below(seed, 2), .forbidden = random_below(seed, 2) ? 0 : 30,
		.memory = random_below(seed, 2), .seed = random_below(seed, 1 << 30)};
	if (s.shape == HARD_REGULAR || s.shape == HARD_CLIQUE) {
		s.a = 6;
		s.b = 2 + (uint32_t)random_below(seed, 3);
	}
	return s;
}

/* Tables of the generator always have a pick, and what it says is planted is the optimum. */
START_TEST(planted_picks_are_optima)
{
	uint64_t seed = random_seed() + 11, n = case_count() / 10, planted = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct hard_spec spec = small_spec(&seed);
		struct hard_problem h = hard_problem_make(&ctx, &spec);
		struct ap_choice c = solved(&ctx, "brute_force", h.p, &(struct ap_budget){0});
		ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
		ck_assert_int_eq(!h.planted, !spec.planted);
		if (h.planted) {
			planted++;
			ck_assert_double_eq(ap_problem_cost(h.p, h.planted), h.optimum);
			ck_assert_int_le(ap_problem_memory(h.p, h.planted), h.p->memory_limit);
			ck_assert_double_eq(c.cost, h.optimum);
		}
		ctx_destroy(&ctx);
	}
	ck_assert_uint_gt(planted, n / 4);
}
END_TEST

/* With hardly any room for tables, small ones are wide, too: whatever elimination lacks, auto still finds and
 * proves what brute force finds. */
START_TEST(auto_is_brute_force_without_room_for_tables)
{
	uint64_t seed = random_seed() + 12, n = case_count() / 3, wide = 0, proven = 0;
	struct ap_budget budget = {.table_bytes = 400};
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = helped_ctx();
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want = solved(&ctx, "brute_force", p, &(struct ap_budget){0});
		struct ap_choice got = solved(&ctx, "auto", p, &budget);
		ck_sound(p, &got);
		ck_assert_double_le(got.lower_bound, want.cost);
		ck_assert(got.outcome != AP_OUT_INFEASIBLE || want.outcome == AP_OUT_INFEASIBLE);
		ck_assert(got.outcome != AP_OUT_OPTIMAL || got.cost == want.cost);
		wide += strcmp(got.engine, "dynamic_programming") != 0;
		proven += got.ended == AP_ENDED_PROVEN;
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " of %" PRIu64 " too wide, %" PRIu64 " proven\n", wide, n, proven);
	ck_assert(n < 100 || (wide > n / 20 && proven > n - n / 5));
}
END_TEST

static const struct hard_spec wide_planted[] = {
	{HARD_GRID, 12, 12, 10, HARD_EDGES, .planted = true, .seed = 1},
	{HARD_GRID, 20, 10, 10, HARD_NODES, .planted = true, .seed = 2},
	{HARD_TORUS, 10, 10, 8, HARD_LAYOUT, .planted = true, .seed = 3},
	{HARD_REGULAR, 60, 4, 10, HARD_EDGES, .planted = true, .seed = 4},
	{HARD_CLIQUE, 20, 1, 6, HARD_EDGES, .planted = true, .seed = 5},
	{HARD_DAG, 20, 8, 10, HARD_NODES, .planted = true, .seed = 6},
	{HARD_DAG, 20, 8, 10, HARD_EDGES, .planted = true, .forbidden = 40, .seed = 7},
	{HARD_GRID, 10, 10, 10, HARD_NODES, .planted = true, .memory = true, .seed = 8},
	{HARD_REGULAR, 40, 4, 10, HARD_NODES, .planted = true, .forbidden = 20, .memory = true, .seed = 9},
};

START_LOOP_TEST(planted_optima_are_proven, AP_COUNT(wide_planted))
{
	struct ap_ctx ctx = helped_ctx();
	struct hard_problem h = hard_problem_make(&ctx, &wide_planted[_i]);
	struct ap_choice c = solved(&ctx, "auto", h.p, &(struct ap_budget){0});
	ck_sound(h.p, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, h.optimum);
	ctx_destroy(&ctx);
}
END_TEST

/* What elimination alone leaves open, with a gap and most of a gigabyte. */
static const struct hard_spec left_open[] = {
	{HARD_GRID, 20, 10, 10, HARD_NODES, .seed = 1},
	{HARD_GRID, 10, 10, 10, HARD_NODES, .seed = 1},
	{HARD_REGULAR, 40, 4, 12, HARD_NODES, .seed = 3},
	{HARD_REGULAR, 100, 4, 20, HARD_NODES, .seed = 1},
	{HARD_DAG, 12, 6, 12, HARD_NODES, .seed = 1},
	{HARD_DAG, 12, 6, 12, HARD_LAYOUT, .seed = 1},
	{HARD_GRID, 10, 10, 10, HARD_NODES, .memory = true, .seed = 1},
};

/* Proven, with work and memory like those of integer_programming alone (which branches otherwise from another
 * start), and without GLPK, too. */
START_LOOP_TEST(what_is_too_wide_is_proven, AP_COUNT(left_open))
{
	struct ap_ctx ctx = helped_ctx(), alone = ctx_create(false);
	const struct ap_problem *p = hard_problem_make(&ctx, &left_open[_i]).p;
	size_t before = ap_arena_bytes(ctx.scratch), room;
	struct ap_choice c = solved(&ctx, "auto", p, &(struct ap_budget){0}), other;
	room = ap_arena_bytes(ctx.scratch) - before;
	ck_sound(p, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert(_i > 1 || is_wide(&ctx, p));
	other = solved(&ctx, "integer_programming", p, &(struct ap_budget){0});
	ck_assert_int_eq(other.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, other.cost);
	printf("work %" PRIu64 ", of integer_programming %" PRIu64 ", held %zu KiB\n", c.work / STEP, other.work,
		room >> 10);
	ck_assert_uint_le(c.work / STEP, other.work * 3);
	ck_assert_uint_lt(room, (size_t)64 << 20);
	alone.helpers = "/nonexistent";
	other = solved(&alone, "auto", p, &(struct ap_budget){0});
	ck_sound(p, &other);
	ck_assert_int_eq(other.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, other.cost);
	ctx_destroy(&alone);
	ctx_destroy(&ctx);
}
END_TEST

/* Never a worse pick or a lower bound than the engines that it runs, each within the whole budget that it may
 * spend on all; and the same again, also with other threads. */
START_TEST(auto_is_no_worse_than_its_engines)
{
	uint64_t seed = random_seed() + 13, n = case_count() / 100, open = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = helped_ctx();
		struct hard_spec spec = {.shape = (enum hard_shape)random_below(&seed, HARD_SHAPES),
			.a = 5 + (uint32_t)random_below(&seed, 5), .b = 4, .k = 6,
			.costs = (enum hard_costs)random_below(&seed, HARD_COSTS),
			.forbidden = random_below(&seed, 2) ? 0 : 25, .memory = random_below(&seed, 3) == 0,
			.seed = random_below(&seed, 1 << 30)};
		const struct ap_problem *p = hard_problem_make(&ctx, &spec).p;
		struct ap_budget budget = {.table_bytes = 1 << 16, .work = UINT64_C(1) << 26}, own = budget;
		struct ap_choice c = solved(&ctx, "auto", p, &budget), again;
		ck_sound(p, &c);
		open += c.outcome == AP_OUT_FEASIBLE;
		own.whole = true;
		for (int e = 0; e < 2; e++) {
			struct ap_choice other = solved(&ctx, e ? "integer_programming" : "dynamic_programming",
				p, &own);
			if (other.pick)
				ck_assert_double_ge(other.cost, c.pick ? c.cost : -INFINITY);
			ck_assert(c.pick || !other.pick);
			ck_assert_double_le(other.lower_bound, c.lower_bound);
			own.work = other.ahead ? 1 : (budget.work - other.work) / 2 / STEP; /* what integer_programming may take */
			own.start[0] = other.pick;
			if (other.outcome == AP_OUT_OPTIMAL || other.outcome == AP_OUT_INFEASIBLE)
				break;
		}
		ctx.jobs = 4;
		again = solved(&ctx, "auto", p, &budget);
		ck_assert_int_eq(again.outcome, c.outcome);
		ck_assert_double_eq(again.lower_bound, c.lower_bound);
		ck_assert_uint_eq(again.work, c.work);
		ck_assert(!c.pick || !memcmp(again.pick, c.pick, p->n * sizeof *c.pick));
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " of %" PRIu64 " left open\n", open, n);
	ck_assert(n < 20 || (open > 0 && open < n));
}
END_TEST

/* A certificate's better pick and bound are taken over, and say why it is proven. */
START_TEST(a_certificate_closes_what_is_open)
{
	struct ap_ctx ctx = helped_ctx();
	const struct ap_problem *p = hard_problem_make(&ctx, &left_open[1]).p;
	struct ap_budget budget = {.table_bytes = 1 << 20};
	struct ap_choice c = solved(&ctx, "dynamic_programming", p, &budget), before = c;
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert_int_eq(c.ended, AP_ENDED_MEMORY);
	ck_assert_int_eq(ap_certify_problem(&ctx, p, &(struct ap_budget){0}, &c), AP_OK);
	ck_sound(p, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert(c.certificate->proven);
	ck_assert_str_eq(c.certificate->engine, "integer_programming");
	ck_assert_double_gt(c.lower_bound, before.lower_bound);
	ck_assert_double_le(c.cost, before.cost);
	ctx_destroy(&ctx);
}
END_TEST
