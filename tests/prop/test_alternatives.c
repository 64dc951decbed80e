/* SPDX-License-Identifier: Apache-2.0 */
/* Other cuts of a plan's operators: within a memory limit, too, what is said to be exact is what a search with that
 * cut finds, and the rest are bounds of it. */
#include <math.h>

#include "drive/alternatives.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 8, DEVICES = 8, SIMULATED = 4 };

static struct ap_request request_of(struct trial *t, int64_t capacity)
{
	return (struct ap_request){.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
		.capacity_bytes = capacity, .search_mode = "auto", .prune = true};
}

/* The least objective of plans with this cut that fit; INFINITY: there is none. */
static double search_with(struct trial *t, int64_t capacity, ap_id node, const int32_t *count)
{
	struct ap_request rq = request_of(t, capacity);
	const int32_t **given = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	struct ap_plan plan;
	enum ap_status st;

	given[node] = count;
	rq.given = given;
	st = ap_drive_search(&t->f.ctx, &rq, &plan, NULL);
	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE, "%s", ap_status_text(st));
	t->f.ctx.diag = ap_diag_create(t->f.ctx.arena, false);
	return st == AP_OK ? plan.search.lower_bound_s : INFINITY;
}

static void told(struct trial *t)
{
	struct ap_plan free, plan;
	int64_t capacity;
	ap_id node = (ap_id)random_below(&t->random, t->f.graph->nnode);
	bool *wanted = AP_NEW_N(t->f.ctx.arena, bool, t->f.graph->nnode);
	struct ap_request rq;
	struct ap_alternatives_job job;
	struct ap_alternatives_report r;
	uint32_t simulated = 0;

	if (trial_search(t, NO_MEMORY_LIMIT, "auto", PRUNED | FOLDED, &free) != AP_OK)
		return;
	capacity = random_below(&t->random, 3) ? trial_capacity(t, &free) : NO_MEMORY_LIMIT;
	if (trial_search(t, capacity, "auto", PRUNED | FOLDED, &plan) != AP_OK)
		return;
	wanted[node] = true;
	rq = request_of(t, capacity);
	job = (struct ap_alternatives_job){.rq = &rq, .plan = &plan, .wanted = wanted, .nsimulated = SIMULATED,
		.prove = true};
	REQUIRE(t, ap_alternatives_make(&t->f.ctx, &job, &r) == AP_OK, "told");
	if (r.unknown)
		return;
	REQUIRE(t, r.n == 1 && r.of[0].node == node && r.of[0].n == t->space[node].n, "all cuts");
	REQUIRE(t, r.of[0].taken < r.of[0].n, "the plan's cut");
	REQUIRE(t, r.of[0].v[r.of[0].taken].sum_s <= r.plan_s, "a sum of %.17g above that of the plan, %.17g",
		r.of[0].v[r.of[0].taken].sum_s, r.plan_s);
	REQUIRE(t, r.least_s <= r.plan_s, "the optimum");
	for (uint32_t i = 0; i < r.of[0].n; i++) {
		const struct ap_alternative *a = &r.of[0].v[i];
		double again_s;

		REQUIRE(t, a->taken || a->step_s == 0 || a->nchange > 0, "nothing changed");
		REQUIRE(t, i == 0 || a->sum_s >= r.of[0].v[i - 1].sum_s, "order");
		if (a->taken || !(a->step_s > 0) || r.charge != AP_CHARGE_USUAL || simulated++ == SIMULATED)
			continue;
		again_s = search_with(t, capacity, node, a->count);
		REQUIRE(t, a->exact ? a->sum_s == again_s : a->sum_s <= again_s, "%s: %.17g, not %.17g",
			t->f.graph->node[node].name, a->sum_s, again_s);
		t->telling |= r.binds && a->exact && again_s > r.least_s;
	}
}

START_TEST(alternatives_are_what_searches_find)
{
	trial_each(60, OPERATORS, DEVICES, told);
}
END_TEST
