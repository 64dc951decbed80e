/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that change little of an old one: within the tolerance, and how few must change by enumeration. */
#include <math.h>

#include "plan/make.h"
#include "table/table.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 6, DEVICES = 6, MOST_PICKS = 100000, TOLERANCES = 3 };

static bool next_pick(const struct ap_problem *p, uint32_t *pick)
{
	for (uint32_t v = p->n; v-- > 0;) {
		if (++pick[v] < p->node[v].k)
			return true;
		pick[v] = 0;
	}
	return false;
}

static bool same(const struct trial *t, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, t->f.graph->node[i].bound.nfactor * sizeof *a) == 0;
}

static uint32_t changes_of(const struct trial *t, const int32_t *const *old, const int32_t *const *now)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		n += old[i] && !same(t, i, old[i], now[i]);
	return n;
}

/* The fewest changes of all picks whose sum is at most `more` times above the least one. */
static uint32_t enumerate(struct trial *t, const struct ap_table *table, const int32_t *const *old, double more)
{
	const struct ap_problem *p = table->problem;
	uint32_t *pick = AP_NEW_N(t->f.ctx.arena, uint32_t, p->n), fewest = UINT32_MAX;
	const int32_t **row = AP_NEW_N(t->f.ctx.arena, const int32_t *, p->n);
	double least = INFINITY;

	do {
		least = fmin(least, ap_problem_cost(p, pick));
	} while (next_pick(p, pick));
	do {
		uint32_t n;

		if (!(ap_problem_cost(p, pick) <= least * (1 + more)))
			continue;
		for (ap_id i = 0; i < p->n; i++)
			row[i] = ap_table_counts(table, i, pick[i]);
		n = changes_of(t, old, row);
		fewest = n < fewest ? n : fewest;
	} while (next_pick(p, pick));
	return fewest;
}

/* An old plan, of which some operators are gone. */
static const int32_t *const *old_rows(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	const int32_t **old;

	if (!counts)
		return NULL;
	old = ap_arena_memdup(t->f.ctx.arena, counts, t->f.graph->nnode * sizeof *old);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		if (random_below(&t->random, 8) == 0)
			old[i] = NULL;
	return old;
}

static void kept(struct trial *t)
{
	static const double within[TOLERANCES] = {0, 0.05, 0.5};
	const struct ap_table_params params = {.prune = false};
	const int32_t *const *old = old_rows(t);
	struct ap_request rq = {.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step, .prune = true,
		.capacity_bytes = NO_MEMORY_LIMIT, .search_mode = "auto", .keep = old, .keep_file = "old"};
	const struct ap_table *table;
	struct ap_plan best;
	double picks = 1;

	if (!old || ap_table_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, &params, &table) != AP_OK)
		return;
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		picks *= table->problem->node[i].k;
	if (picks > MOST_PICKS || trial_search(t, NO_MEMORY_LIMIT, "auto", PRUNED | FOLDED, &best) != AP_OK)
		return;
	for (int k = 0; k < TOLERANCES; k++) {
		struct ap_plan plan;
		uint32_t n;

		rq.keep_within = within[k];
		REQUIRE(t, ap_drive_search(&t->f.ctx, &rq, &plan, NULL) == AP_OK && plan.kept, "a plan");
		n = changes_of(t, old, ap_plan_counts(&t->f.ctx, &plan));
		REQUIRE(t, plan.kept->best_step_s == best.prediction.step_time_s, "the best step");
		REQUIRE(t, plan.prediction.step_time_s <= best.prediction.step_time_s * (1 + within[k]),
			"%g is too slow, within %g of %g", plan.prediction.step_time_s, within[k],
			best.prediction.step_time_s);
		REQUIRE(t, n == plan.kept->changes && n <= plan.kept->best_changes, "%u changes, not %u", n,
			plan.kept->changes);
		REQUIRE(t, !(plan.kept->old_step_s <= best.prediction.step_time_s * (1 + within[k])) || n == 0,
			"the old plan is within the tolerance");
		REQUIRE(t, n == 0 || plan.kept->least == enumerate(t, table, old, within[k]),
			"no fewer than %u of %u", plan.kept->least, enumerate(t, table, old, within[k]));
		t->telling |= n > 0 && n < plan.kept->best_changes;
	}
}

START_TEST(a_kept_plan_is_near_and_changes_little)
{
	trial_each(60, OPERATORS, DEVICES, kept);
}
END_TEST
