/* SPDX-License-Identifier: Apache-2.0 */
/* Marginals held against all picks of small problems, and against searching again with that cut fixed. */
#include <math.h>

#include "elim/marginal.h"
#include "random_problem.h"
#include "search/compact.h"
#include "search/engine.h"
#include "table/table.h"
#include "trial.h"
#include "unit.h"

enum { FEW = 7, MANY = 40, OPERATORS = 14, DEVICES = 16, CUTS = 5 };

static uint64_t case_count(uint64_t otherwise)
{
	const char *text = getenv("AP_CASES");

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* A random problem, of whose memory nothing is asked. */
static struct ap_problem unlimited(struct ap_ctx *ctx, uint64_t *seed, uint32_t most)
{
	struct ap_problem p = *random_problem(ctx, seed, most);

	p.memory_limit = AP_NO_LIMIT;
	return p;
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

START_TEST(marginals_are_the_least_of_all_picks)
{
	uint64_t seed = random_seed(), n = case_count(3000), forbidden = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		uint64_t before = seed;
		struct ap_problem p = unlimited(&ctx, &seed, FEW);
		struct ap_budget budget = {.no_fold = i % 3 == 0};
		uint32_t *pick = AP_NEW_N(ctx.arena, uint32_t, p.n);
		double **want = AP_NEW_N(ctx.arena, double *, p.n), least = INFINITY;
		struct ap_marginals m;

		for (uint32_t v = 0; v < p.n; v++) {
			want[v] = AP_NEW_N(ctx.arena, double, p.node[v].k);
			for (uint32_t c = 0; c < p.node[v].k; c++)
				want[v][c] = INFINITY;
		}
		do {
			double cost = ap_problem_cost(&p, pick);

			least = fmin(least, cost);
			for (uint32_t v = 0; v < p.n; v++)
				want[v][pick[v]] = fmin(want[v][pick[v]], cost);
		} while (next_pick(&p, pick));
		ck_assert(ap_marginals_make(&ctx, &p, NULL, &budget, &m));
		ck_assert_msg(m.least == least, "AP_SEED=%" PRIu64 ": %.17g, not %.17g\n%s", before, m.least,
			least, problem_text(&ctx, &p));
		for (uint32_t v = 0; v < p.n; v++)
			for (uint32_t c = 0; c < p.node[v].k; c++) {
				ck_assert_msg(m.of[v][c] == want[v][c],
					"AP_SEED=%" PRIu64 ": node %" PRIu32 ", candidate %" PRIu32
					": %.17g, not %.17g\n%s", before, v, c, m.of[v][c], want[v][c],
					problem_text(&ctx, &p));
				forbidden += want[v][c] == INFINITY;
			}
		ctx_destroy(&ctx);
	}
	ck_assert(n < 1000 || forbidden > n / 10);
}
END_TEST

/* Of large problems with equal parts some nodes are asked for. */
START_TEST(some_marginals_are_those_of_all)
{
	uint64_t seed = random_seed(), n = case_count(300);

	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p = unlimited(&ctx, &seed, MANY);
		struct ap_budget budget = {0};
		bool *wanted = AP_NEW_N(ctx.arena, bool, p.n);
		struct ap_marginals some, all;

		for (uint32_t v = 0; v < p.n; v++)
			wanted[v] = random_below(&seed, 4) == 0;
		if (!ap_marginals_make(&ctx, &p, NULL, &budget, &all)) {
			ctx_destroy(&ctx);
			continue; /* too wide */
		}
		ck_assert(ap_marginals_make(&ctx, &p, wanted, &budget, &some));
		ck_assert_double_eq(some.least, all.least);
		ck_assert(some.work <= all.work);
		for (uint32_t v = 0; v < p.n; v++) {
			double least = INFINITY;

			ck_assert(wanted[v] == (some.of[v] != NULL));
			for (uint32_t c = 0; c < p.node[v].k; c++)
				least = fmin(least, all.of[v][c]);
			ck_assert(least == all.least);
			if (wanted[v])
				ck_assert_mem_eq(some.of[v], all.of[v], p.node[v].k * sizeof **all.of);
		}
		ctx_destroy(&ctx);
	}
}
END_TEST

static const struct ap_table *make_table(struct trial *t, const int32_t *const *fixed)
{
	const struct ap_table_params params = {.prune = true, .fixed = fixed};
	const struct ap_table *table;

	REQUIRE(t, ap_table_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, &params, &table) == AP_OK,
		"a table");
	return table;
}

/* The optimum without a memory limit by another engine; INFINITY: there is none. */
static double search_again(struct trial *t, const struct ap_table *table)
{
	const struct ap_budget budget = {0};
	struct ap_choice c = {0};

	ap_engine_find("auto")->solve(&t->f.ctx, table->problem, &budget, &c);
	REQUIRE(t, c.outcome == AP_OUT_OPTIMAL || c.outcome == AP_OUT_INFEASIBLE, "solved");
	return c.outcome == AP_OUT_OPTIMAL ? c.cost : INFINITY;
}

/* Whatever pruning dropped of an operator, each of its cuts costs what a search finds that has it fixed. */
static void fixed_cuts(struct trial *t)
{
	const struct ap_graph *g = t->f.graph;
	struct ap_ctx *ctx = &t->f.ctx;
	ap_id node = (ap_id)random_below(&t->random, g->nnode);
	bool *whole = AP_NEW_N(ctx->arena, bool, g->nnode);
	const int32_t **fixed = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	const struct ap_table *plain = make_table(t, NULL), *table;
	const struct ap_budget budget = {0};
	struct ap_marginals m;
	uint32_t k;

	whole[node] = true;
	table = ap_table_whole(ctx, plain, whole);
	k = table->problem->node[node].k;
	REQUIRE(t, k == t->space[node].n, "%" PRIu32 " candidates of %" PRIu32, k, t->space[node].n);
	if (!ap_marginals_make(ctx, table->problem, whole, &budget, &m))
		return; /* too wide */
	REQUIRE(t, m.least == search_again(t, plain), "the optimum");
	for (uint32_t i = 0; i < CUTS; i++) {
		uint32_t c = (uint32_t)random_below(&t->random, k);
		double again_s;

		fixed[node] = ap_table_counts(table, node, c);
		again_s = search_again(t, make_table(t, fixed));
		REQUIRE(t, m.of[node][c] == again_s, "%s, candidate %" PRIu32 ": %.17g, not %.17g",
			g->node[node].name, c, m.of[node][c], again_s);
		t->telling |= ap_table_candidates(plain, node) > plain->problem->node[node].k &&
			again_s < INFINITY && again_s > m.least;
	}
}

START_TEST(a_marginal_is_what_a_search_with_that_cut_finds)
{
	trial_each(100, OPERATORS, DEVICES, fixed_cuts);
}
END_TEST
