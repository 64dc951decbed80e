/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the search: all engines see the same candidates, those that the settings leave. */
#include <math.h>

#include "cost/least.h"
#include "drive/recursive.h"
#include "plan/plan.h"
#include "shard/layout.h"
#include "table/joint.h"
#include "table/lazy.h"
#include "table/table.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 12, DEVICES = 16, CASES = 200 };

static void random_settings(struct trial *t)
{
	static const int64_t align[] = {0, 0, 2, 4, 16};

	t->f.step.fully_use = random_below(&t->random, 2);
	t->f.step.slice_align = align[random_below(&t->random, 5)];
	t->f.step.follow = random_below(&t->random, 2);
}

/* The last two lengths of an operand's slices. */
static bool aligned(const struct ap_placement *p, const struct ap_operand *o, const struct ap_step *s)
{
	for (int d = o->rank - 2; d < o->rank; d++) {
		int64_t length = o->size[d];

		for (int i = 0; i < o->dim[d].n; i++) {
			uint8_t f = o->dim[d].factor[i];

			length /= p->count[f];
			if (p->bound->factor[f].flags & AP_FACTOR_BATCH)
				length /= s->micro_batches;
		}
		if (length % s->slice_align)
			return false;
	}
	return true;
}

static bool left_by_settings(const struct ap_placement *p, const struct ap_step *s)
{
	const struct ap_bound *b = p->bound;
	int64_t parts = 1;

	for (int f = 0; f < b->nfactor; f++)
		parts *= p->count[f];
	if (parts == 1 || b->row->unit == AP_OP_LINK || strcmp(b->row->name, "Reshape") == 0)
		return true;
	if (s->fully_use && parts < p->ndev)
		return false;
	return !s->slice_align || b->row->unit != AP_OP_CUBE || b->nin != 2 || b->nwindow > 0 ||
		b->in[0].rank < 2 || b->in[1].rank < 2 ||
		(aligned(p, &b->in[0], s) && aligned(p, &b->in[1], s));
}

/* Now and then in stages: a tensor goes from one to the other in any layout. */
static void random_stages(struct trial *t)
{
	if (random_below(&t->random, 2))
		trial_staged(t, 2, 1);
}

/* Of all that is legal, node by node, the table's candidates and the recursion's are what is left. */
static void same_candidates(struct trial *t)
{
	const struct ap_table_params params = {0};
	const struct ap_table *table;
	struct ap_lazy *lazy;

	random_stages(t);
	random_settings(t);
	REQUIRE(t, ap_table_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, &params, &table) ==
			AP_OK, "table");
	lazy = ap_lazy_create(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, NULL);
	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_space *space = &t->space[i];
		uint32_t cls = ap_lazy_classes(lazy)[i], n = 0;

		for (uint32_t c = 0; c < space->n; c++) {
			const int32_t *count = space->count + (size_t)c * space->nfactor;
			struct ap_placement p;
			bool left;

			ap_placement_make(&t->f.graph->node[i].bound, count, t->f.machine->ndev, &p);
			left = left_by_settings(&p, &t->f.step);
			t->telling |= !left;
			REQUIRE(t, (ap_lazy_find(lazy, cls, count) != AP_NONE) == left, "%s, candidate %u",
				t->f.graph->node[i].name, c);
			if (!left)
				continue;
			REQUIRE(t, n < table->problem->node[i].k && memcmp(ap_table_counts(table, i, n),
				count, space->nfactor * sizeof *count) == 0, "%s, candidate %u",
				t->f.graph->node[i].name, c);
			n++;
		}
		REQUIRE(t, n == table->problem->node[i].k, "%s", t->f.graph->node[i].name);
	}
	ap_lazy_destroy(lazy);
}

START_TEST(all_engines_see_the_same_candidates)
{
	trial_each(CASES, OPERATORS, DEVICES, same_candidates);
}
END_TEST

/* Is nothing redistributed after an operator by element? */
static void follows(struct trial *t, const struct ap_plan *p)
{
	for (uint32_t i = 0; p->step->follow && i < p->nmove; i++)
		REQUIRE(t, p->move[i].from == AP_NONE ||
			!ap_joint_leads(&p->graph->node[p->move[i].from].bound), "%s does not follow",
			p->graph->node[p->move[i].from].name);
}

static void keeps_to_settings(struct trial *t, const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		REQUIRE(t, left_by_settings(&p->op[i].place, p->step), "%s", p->graph->node[i].name);
	follows(t, p);
}

static struct { /* of the recursion to the optimum, over all cases */
	uint32_t n, far;
} gaps;

static void both_keep_to_them(struct trial *t)
{
	struct ap_recursive r;
	struct ap_plan exact, found;
	double bound;

	random_settings(t);
	REQUIRE(t, trial_search(t, NO_MEMORY_LIMIT, "dynamic_programming", PRUNED | FOLDED, &exact) ==
			AP_OK, "what cuts nothing is left");
	keeps_to_settings(t, &exact);
	ap_recursive_plan(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, NULL,
		&(struct ap_rec_limits){.bytes = AP_NO_LIMIT}, &r);
	REQUIRE(t, r.allowed, "the recursion");
	trial_plan(t, r.counts, &found);
	keeps_to_settings(t, &found);
	bound = ap_plan_lower_bound_s(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, NULL);
	REQUIRE(t, bound <= exact.search.lower_bound_s && r.objective_s >= exact.search.lower_bound_s,
		"bound %.17g, optimum %.17g, recursion %.17g", bound, exact.search.lower_bound_s,
		r.objective_s);
	t->telling = t->f.machine->ndev > 1 &&
		(t->f.step.fully_use || t->f.step.slice_align > 0 || t->f.step.follow);
	if (!t->telling)
		return;
	gaps.n++;
	gaps.far += r.objective_s > 1.02 * exact.search.lower_bound_s;
}

/* What is given for an operator is neither cut otherwise nor made to follow. */
static void given_is_left(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	const int32_t **fixed = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	const struct ap_table_params params = {.prune = true, .fixed = fixed};
	const struct ap_table *table;
	struct ap_choice c = {0};
	struct ap_recursive r;

	t->f.step.follow = true;
	for (ap_id i = 0; counts && i < t->f.graph->nnode; i++)
		if (ap_joint_leads(&t->f.graph->node[i].bound))
			fixed[i] = counts[i];
	REQUIRE(t, ap_table_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, &params, &table) ==
			AP_OK, "table");
	ap_engine_find("dynamic_programming")
		->solve(&t->f.ctx, table->problem, &(struct ap_budget){0}, &c);
	REQUIRE(t, !counts || c.outcome == AP_OUT_OPTIMAL, "nothing follows");
	ap_recursive_plan(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, fixed,
		&(struct ap_rec_limits){.bytes = AP_NO_LIMIT}, &r);
	REQUIRE(t, !counts || (r.allowed && r.objective_s >= c.cost), "the recursion");
	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		if (!fixed[i])
			continue;
		for (int f = 0; f < t->f.graph->node[i].bound.nfactor; f++) {
			REQUIRE(t, r.counts[i][f] == fixed[i][f], "%s", t->f.graph->node[i].name);
			t->telling |= fixed[i][f] > 1;
		}
	}
}

START_TEST(what_is_given_follows_nobody)
{
	trial_each(CASES, OPERATORS, DEVICES, given_is_left);
}
END_TEST

START_TEST(plans_keep_to_the_settings)
{
	gaps.n = gaps.far = 0;
	trial_each(CASES, OPERATORS, DEVICES, both_keep_to_them);
	printf("settings: the recursion is more than 2 %% above the optimum in %u of %u cases\n", gaps.far,
		gaps.n);
	ck_assert_uint_le(10 * gaps.far, 2 * gaps.n);
}
END_TEST
