/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about cuts: what a search finds keeps to them, and no plan that does is better. */
#include <math.h>

#include "search/compact.h"
#include "search/engine.h"
#include "shard/constraint.h"
#include "shard/strategy.h"
#include "table/table.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 8, DEVICES = 8, MOST_RULES = 4, MOST_PICKS = 200000 };

/* The table of the graph as it is now, with all candidates. */
static const struct ap_table *whole_table(struct trial *t, const struct ap_graph *g)
{
	const struct ap_table_params params = {.prune = false};
	const struct ap_table *table;

	REQUIRE(t, ap_table_make(&t->f.ctx, g, t->f.machine, &t->f.step, &params, &table) == AP_OK, "a table");
	return table;
}

/* The optimum of the table's candidates of which left says so; INFINITY: there is none. */
static double best_within(struct trial *t, const struct ap_table *table, bool *const *left)
{
	struct ap_domain *d = AP_NEW_N(t->f.ctx.arena, struct ap_domain, table->problem->n);
	const struct ap_budget budget = {0};
	struct ap_choice c = {0};

	for (ap_id i = 0; i < table->problem->n; i++) {
		uint32_t k = table->problem->node[i].k;

		d[i].c = AP_NEW_N(t->f.ctx.arena, uint32_t, k);
		for (uint32_t x = 0; x < k; x++)
			if (left[i][x] && table->problem->node[i].cost[x] < INFINITY)
				d[i].c[d[i].n++] = x;
		if (d[i].n == 0)
			return INFINITY;
	}
	ap_engine_solve_within(&t->f.ctx, ap_engine_find("auto"), table->problem, d, &budget, &c);
	return c.outcome == AP_OUT_OPTIMAL ? c.cost : INFINITY;
}

static bool is_barred(const struct ap_bound *b, const int32_t *count)
{
	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_BARRED && count[f] != 1)
			return true;
	return false;
}

/* A rule about a random operator, as a user writes it; with what it leaves. */
static const char *random_rule(struct trial *t, const struct ap_table *table, enum ap_demand d, bool *const *left)
{
	const struct ap_graph *g = t->f.graph;
	ap_id i = (ap_id)random_below(&t->random, g->nnode);
	const struct ap_bound *b = &g->node[i].bound;
	struct ap_str s;

	ap_str_init(&s, t->f.ctx.arena);
	if (d == AP_DEMAND_FORBID) {
		uint16_t in = b->nin ? (uint16_t)random_below(&t->random, b->nin) : 0;
		int dim;

		if (!b->nin || !b->in[in].rank)
			return NULL;
		dim = (int)random_below(&t->random, b->in[in].rank);
		ap_str_addf(&s, "%s:%d.%d", g->node[i].name, in, dim);
		for (uint32_t c = 0; c < table->problem->node[i].k; c++)
			for (int k = 0; k < b->in[in].dim[dim].n; k++)
				left[i][c] &= ap_rule_parts(ap_table_counts(table, i, c)
					[b->in[in].dim[dim].factor[k]]) == 1;
		return s.s;
	}
	for (uint32_t c = (uint32_t)random_below(&t->random, table->problem->node[i].k), other = 0;;) {
		const int32_t *count = ap_table_counts(table, i, c);
		struct ap_placement p;
		struct ap_strategy v;

		ap_placement_make(b, count, t->f.machine->ndev, &p);
		v = ap_strategy_of(t->f.ctx.arena, &p);
		if (v.n == 0 || p.dealt)
			return NULL;
		ap_str_addf(&s, "%s=", g->node[i].name);
		for (uint32_t k = 0; k < v.n; k++) {
			ap_str_add(&s, k ? ",[" : "[");
			for (uint8_t x = 0; x < v.rank[k]; x++)
				ap_str_addf(&s, x ? ",%d" : "%d", v.cut[k][x]);
			ap_str_addc(&s, ']');
		}
		for (other = 0; other < table->problem->node[i].k; other++)
			left[i][other] &= other == c;
		return s.s;
	}
}

static void kept_and_best(struct trial *t)
{
	const struct ap_graph *g = t->f.graph;
	const struct ap_table *table = whole_table(t, g);
	bool **left = AP_NEW_N(t->f.ctx.arena, bool *, g->nnode);
	struct ap_constraints rules = {0};
	uint64_t n = 1 + random_below(&t->random, MOST_RULES);
	enum ap_status st;
	struct ap_plan plan;
	double best_s;

	for (ap_id i = 0; i < g->nnode; i++) {
		left[i] = AP_NEW_N(t->f.ctx.arena, bool, table->problem->node[i].k);
		memset(left[i], true, table->problem->node[i].k);
	}
	for (uint64_t k = 0; k < n; k++) {
		enum ap_demand d = random_below(&t->random, 3) ? AP_DEMAND_FORBID : AP_DEMAND_PIN;
		const char *text = random_rule(t, table, d, left);

		if (text)
			REQUIRE(t, ap_constraints_parse(&t->f.ctx, d, text, NULL, &rules) == AP_OK, "%s", text);
	}
	best_s = best_within(t, table, left);
	st = ap_constraints_apply(&t->f.ctx, &rules, g, t->f.machine->ndev, &t->f.step, &t->f.graph);
	REQUIRE(t, st == AP_OK || (st == AP_INFEASIBLE && best_s == INFINITY), "%s", ap_status_text(st));
	if (st == AP_INFEASIBLE)
		return;
	st = trial_search(t, NO_MEMORY_LIMIT, "auto", PRUNED | FOLDED, &plan);
	REQUIRE(t, (st == AP_OK) == (best_s < INFINITY), "%s", ap_status_text(st));
	if (st != AP_OK)
		return;
	REQUIRE(t, plan.search.lower_bound_s == best_s, "%.17g, not %.17g", plan.search.lower_bound_s, best_s);
	for (ap_id i = 0; i < g->nnode; i++) {
		const int32_t *count = ap_placement_counts(t->f.ctx.arena, &plan.op[i].place);
		uint32_t c = ap_table_candidate(table, i, count);

		REQUIRE(t, !is_barred(&plan.graph->node[i].bound, count), "%s", g->node[i].name);
		REQUIRE(t, c == AP_NONE || left[i][c], "%s breaks a rule", g->node[i].name);
		for (uint32_t x = 0; x < table->problem->node[i].k; x++)
			t->telling |= !left[i][x];
	}
}

START_TEST(plans_keep_to_rules_and_are_the_best_that_do)
{
	trial_each(100, OPERATORS, DEVICES, kept_and_best);
}
END_TEST

static bool next_pick(const struct ap_problem *p, uint32_t *pick)
{
	for (uint32_t v = p->n; v-- > 0;) {
		if (++pick[v] < p->node[v].k)
			return true;
		pick[v] = 0;
	}
	return false;
}

/* Two random operators cut alike: the least of all picks that cut them so is found. */
static void alike(struct trial *t)
{
	const struct ap_graph *g = t->f.graph;
	const struct ap_table *table = whole_table(t, g);
	uint32_t *pick = AP_NEW_N(t->f.ctx.arena, uint32_t, g->nnode);
	ap_id a = (ap_id)random_below(&t->random, g->nnode), b = (ap_id)random_below(&t->random, g->nnode);
	size_t bytes = g->node[a].bound.nfactor * sizeof(int32_t);
	double picks = 1, best_s = INFINITY;
	struct ap_node *node;
	struct ap_plan plan;
	enum ap_status st;

	for (ap_id i = 0; i < g->nnode; i++)
		picks *= table->problem->node[i].k;
	if (picks > MOST_PICKS || a == b || g->node[a].bound.nfactor != g->node[b].bound.nfactor)
		return;
	do {
		if (memcmp(ap_table_counts(table, a, pick[a]), ap_table_counts(table, b, pick[b]), bytes) == 0)
			best_s = fmin(best_s, ap_problem_cost(table->problem, pick));
	} while (next_pick(table->problem, pick));
	t->f.graph = ap_graph_with_nodes(&t->f.ctx, g, &node);
	node[a].same = node[b].same = 1;
	st = trial_search(t, NO_MEMORY_LIMIT, "auto", PRUNED | FOLDED, &plan);
	REQUIRE(t, (st == AP_OK) == (best_s < INFINITY), "%s", ap_status_text(st));
	if (st != AP_OK)
		return;
	REQUIRE(t, plan.search.lower_bound_s == best_s, "%.17g, not %.17g", plan.search.lower_bound_s, best_s);
	REQUIRE(t, memcmp(ap_placement_counts(t->f.ctx.arena, &plan.op[a].place),
		ap_placement_counts(t->f.ctx.arena, &plan.op[b].place), bytes) == 0, "%s and %s differ",
		g->node[a].name, g->node[b].name);
	t->telling = true;
}

START_TEST(operators_that_are_the_same_are_cut_alike)
{
	trial_each(60, 6, 6, alike);
}
END_TEST
