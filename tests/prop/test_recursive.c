/* SPDX-License-Identifier: Apache-2.0 */
/* The double recursion on random graphs, held against the rules, and against the exact engine. */
#include <math.h>

#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/least.h"
#include "drive/recursive.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/legal.h"
#include "table/table.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 14, DEVICES = 16, CASES = 150, LIMITS = 3 };

static void recursion(struct trial *t, const int32_t *const *fixed, int64_t limit,
	struct ap_recursive *out)
{
	ap_recursive_plan(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, fixed,
		&(struct ap_rec_limits){.bytes = limit}, out);
}

/* The least objective that there is. INFINITY where ties cannot hold. */
static double optimum(struct trial *t, const int32_t *const *fixed)
{
	const struct ap_table_params params = {.prune = true, .fixed = fixed};
	const struct ap_table *table;
	struct ap_choice c = {0};

	REQUIRE(t, ap_table_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, &params,
			   &table) == AP_OK, "table");
	ap_engine_find("dynamic_programming")
		->solve(&t->f.ctx, table->problem, &(struct ap_budget){0}, &c);
	REQUIRE(t, c.outcome == AP_OUT_OPTIMAL || c.outcome == AP_OUT_INFEASIBLE, "proof");
	return c.outcome == AP_OUT_OPTIMAL ? c.cost : INFINITY;
}

/* The bound of what the recursion finds, from which its gap is stated. */
static void bounded(struct trial *t, const int32_t *const *fixed, double best)
{
	double bound = ap_plan_lower_bound_s(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, fixed);

	REQUIRE(t, bound > 0 && bound <= best, "bound %.17g, the least is %.17g", bound, best);
}

/* What it says of its counts is so. */
static void sound(struct trial *t, const struct ap_recursive *r)
{
	const struct ap_graph *g = t->f.graph;
	const char *why;
	struct ap_plan p;
	ap_id node;

	for (ap_id i = 0; i < g->nnode; i++)
		REQUIRE(t, ap_space_legal(&t->f.ctx, &g->node[i].bound, r->counts[i],
				   t->f.machine->ndev, &t->f.step, &why), "%s: %s", g->node[i].name, why);
	why = ap_plan_conflict(&t->f.ctx, g, t->f.machine->ndev, r->counts, &node);
	REQUIRE(t, r->allowed == !why, "%s", why ? why : "no conflict");
	if (!r->allowed)
		return;
	trial_plan(t, r->counts, &p);
	REQUIRE(t, r->objective_s == ap_plan_objective_s(&p), "%.17g, the plan's is %.17g",
		r->objective_s, ap_plan_objective_s(&p));
	/* What may be read as it lies is charged beside the copies that are read. */
	REQUIRE(t, r->memory_bytes >= p.prediction.memory.total - t->taken_bytes,
		"%" PRId64 " bytes, the plan needs %" PRId64, r->memory_bytes,
		p.prediction.memory.total - t->taken_bytes);
}

static struct { /* gaps to the optimum, of all cases */
	double v[10000];
	size_t n;
} gaps;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void add_gap(double gap)
{
	if (gaps.n < AP_COUNT(gaps.v))
		gaps.v[gaps.n++] = gap;
}

static void report_gaps(const char *what, double median, double tenth)
{
	double m, t;

	if (gaps.n < 100)
		return;
	qsort(gaps.v, gaps.n, sizeof *gaps.v, compare);
	m = gaps.v[gaps.n / 2];
	t = gaps.v[gaps.n * 9 / 10];
	printf("%s: gap to the optimum in %zu cases: median %.2f %%, 90 %% below %.2f %%, at most "
	       "%.2f %%\n", what, gaps.n, 100 * m, 100 * t, 100 * gaps.v[gaps.n - 1]);
	ck_assert_double_le(m, median);
	ck_assert_double_le(t, tenth);
}

static void unlimited(struct trial *t)
{
	struct ap_recursive r;
	double best = optimum(t, NULL);

	recursion(t, NULL, AP_NO_LIMIT, &r);
	sound(t, &r);
	REQUIRE(t, r.allowed && r.fits, "without limits and fixed operators");
	REQUIRE(t, r.objective_s >= best, "%.17g is below %.17g", r.objective_s, best);
	bounded(t, NULL, best);
	t->telling = t->f.machine->ndev > 1;
	if (t->telling)
		add_gap(r.objective_s / best - 1);
}

START_TEST(recursion_is_sound_and_near)
{
	gaps.n = 0;
	trial_each(CASES, OPERATORS, DEVICES, unlimited);
	report_gaps("recursion", 0.001, 0.02);
}
END_TEST

static void fix_some(struct trial *t, const int32_t *const *counts, const int32_t **fixed)
{
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		fixed[i] = random_below(&t->random, 3) == 0 ? counts[i] : NULL;
}

static void pinned(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	const int32_t **fixed = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	struct ap_recursive r;
	double best;

	if (!counts)
		return;
	fix_some(t, counts, fixed);
	recursion(t, fixed, AP_NO_LIMIT, &r);
	sound(t, &r);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		for (int f = 0; fixed[i] && f < t->f.graph->node[i].bound.nfactor; f++) {
			REQUIRE(t, r.counts[i][f] == fixed[i][f], "%s is fixed",
				t->f.graph->node[i].name);
			t->telling |= fixed[i][f] > 1;
		}
	best = optimum(t, fixed);
	bounded(t, fixed, best);
	REQUIRE(t, !r.allowed || r.objective_s >= best, "%.17g is below %.17g", r.objective_s, best);
	add_gap(r.allowed ? r.objective_s / best - 1 : INFINITY);
}

START_TEST(what_is_fixed_stays)
{
	gaps.n = 0;
	trial_each(CASES, OPERATORS, DEVICES, pinned);
	report_gaps("recursion with fixed operators", 0.001, 0.05);
}
END_TEST

static void limited(struct trial *t)
{
	struct ap_recursive free, r;
	struct ap_plan best, plan;

	recursion(t, NULL, AP_NO_LIMIT, &free);
	trial_plan(t, free.counts, &plan);
	for (int i = 0; i < LIMITS; i++) {
		int64_t capacity = trial_capacity(t, &plan), limit = capacity - t->taken_bytes;
		enum ap_status st = trial_search(t, capacity, "dynamic_programming", PRUNED | FOLDED,
			&best);

		recursion(t, NULL, limit, &r);
		sound(t, &r);
		REQUIRE(t, r.fits == (r.memory_bytes <= limit), "%" PRId64 " of %" PRId64 " bytes",
			r.memory_bytes, limit);
		REQUIRE(t, st == AP_OK || !r.fits, "proven not to fit");
		if (st != AP_OK)
			continue;
		t->telling = true;
		REQUIRE(t, !r.fits || r.objective_s >= best.search.lower_bound_s,
			"%.17g is below %.17g", r.objective_s, best.search.lower_bound_s);
		add_gap(r.fits ? r.objective_s / best.search.lower_bound_s - 1 : INFINITY);
	}
}

START_TEST(memory_limit_is_kept)
{
	gaps.n = 0;
	trial_each(CASES, OPERATORS, DEVICES, limited);
	report_gaps("recursion with a memory limit", 0.05, INFINITY);
}
END_TEST

static void same_again(struct trial *t)
{
	struct ap_recursive a, b;
	int64_t limit;

	recursion(t, NULL, AP_NO_LIMIT, &a);
	limit = (int64_t)random_below(&t->random, (uint64_t)a.memory_bytes + 1);
	recursion(t, NULL, limit, &a);
	t->f.ctx.jobs = 8;
	ap_arena_alloc(t->f.ctx.scratch, 1, 1 + random_below(&t->random, 100000));
	recursion(t, NULL, limit, &b);
	REQUIRE(t, a.objective_s == b.objective_s && a.memory_bytes == b.memory_bytes &&
			a.work == b.work && a.fits == b.fits, "figures");
	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_bound *bound = &t->f.graph->node[i].bound;

		REQUIRE(t, memcmp(a.counts[i], b.counts[i], bound->nfactor * sizeof(int32_t)) == 0,
			"%s", t->f.graph->node[i].name);
		for (int f = 0; f < bound->nfactor; f++)
			t->telling |= a.counts[i][f] > 1;
	}
}

START_TEST(result_is_the_same_again)
{
	trial_each(CASES, OPERATORS, DEVICES, same_again);
}
END_TEST
