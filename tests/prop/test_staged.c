/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of pipelines: the memory limit holds for every stage. */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "cost/conflict.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "trial.h"
#include "unit.h"

#define MOST_COMBINATIONS 20000

/* The best plan of all within a capacity, by trying each. */
struct oracle {
	double best_s; /* INFINITY: none fits */
	double unlimited_s;
};

static uint64_t combinations(const struct trial *t)
{
	uint64_t n = 1;

	for (ap_id i = 0; i < t->f.graph->nnode && n <= MOST_COMBINATIONS; i++)
		n *= t->space[i].n;
	return n;
}

static void weigh(struct trial *t, const int32_t *const *counts, struct ap_plan_maker *maker,
	int64_t capacity, struct oracle *o)
{
	struct ap_plan p;
	ap_id node;

	if (ap_plan_conflict(&t->f.ctx, t->f.graph, t->f.machine->ndev, counts, &node))
		return;
	ap_plan_price(maker, counts, &p);
	o->unlimited_s = fmin(o->unlimited_s, p.search.objective_s);
	if (p.prediction.memory.total <= capacity)
		o->best_s = fmin(o->best_s, p.search.objective_s);
}

static struct oracle ask(struct trial *t, int64_t capacity)
{
	struct ap_plan_maker *maker = ap_plan_maker_create(&t->f.ctx, t->f.graph, t->f.machine,
		&t->f.step, capacity);
	uint32_t n = t->f.graph->nnode, *at = AP_NEW_N(t->f.ctx.arena, uint32_t, n), i;
	const int32_t **counts = AP_NEW_N(t->f.ctx.arena, const int32_t *, n);
	struct oracle o = {INFINITY, INFINITY};

	do {
		for (i = 0; i < n; i++)
			counts[i] = t->space[i].count + (size_t)at[i] * t->space[i].nfactor;
		weigh(t, counts, maker, capacity, &o);
		for (i = 0; i < n && ++at[i] == t->space[i].n; i++)
			at[i] = 0;
	} while (i < n);
	return o;
}

static void search_agrees(struct trial *t, int64_t capacity)
{
	struct oracle o = ask(t, capacity);
	struct ap_plan p;
	enum ap_status st = trial_search(t, capacity, "dynamic_programming", PRUNED | FOLDED, &p);

	REQUIRE(t, (st == AP_INFEASIBLE) == isinf(o.best_s), "%s with a best of %.17g",
		ap_status_text(st), o.best_s);
	if (st != AP_OK)
		return;
	REQUIRE(t, p.search.lower_bound_s <= o.best_s, "bound %.17g, best %.17g",
		p.search.lower_bound_s, o.best_s);
	REQUIRE(t, p.search.objective_s >= o.best_s, "%.17g, best %.17g", p.search.objective_s,
		o.best_s);
	REQUIRE(t, p.search.status != AP_PLAN_OPTIMAL || p.search.objective_s == o.best_s,
		"%.17g is not the optimum %.17g", p.search.objective_s, o.best_s);
	for (uint32_t s = 0; s < p.nstage; s++)
		REQUIRE(t, p.stage[s].memory.total <= capacity, "stage %" PRIu32, s);
}

static void every_stage_fits(struct trial *t)
{
	const int32_t *const *counts;
	struct ap_plan p;

	if (!trial_staged(t, 2 + (uint32_t)(t->seed % 2), 1) || combinations(t) > MOST_COMBINATIONS)
		return;
	counts = trial_counts(t);
	if (!counts)
		return;
	t->telling = true;
	search_agrees(t, NO_MEMORY_LIMIT);
	trial_plan(t, counts, &p);
	search_agrees(t, trial_capacity(t, &p));
}

/* Without a table what operators need at least is all that can prove that nothing fits: it never says so
 * where something does, and says so where the operator that needs most does not fit alone. */
static void needs_no_table(struct trial *t)
{
	const int32_t *const *counts;
	struct ap_plan p;
	struct ap_request rq = {.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
		.search_mode = "dynamic_programming", .prune = true, .budget.table_bytes = 1};
	enum ap_status st;

	if ((t->seed % 3 && !trial_staged(t, 2, 1)) || combinations(t) > MOST_COMBINATIONS)
		return;
	rq.graph = t->f.graph;
	rq.machine = t->f.machine;
	counts = trial_counts(t);
	if (!counts)
		return;
	trial_plan(t, counts, &p);
	rq.capacity_bytes = trial_capacity(t, &p);
	st = ap_drive_search(&t->f.ctx, &rq, &p, NULL);
	REQUIRE(t, st != AP_INFEASIBLE || isinf(ask(t, rq.capacity_bytes).best_s), "%" PRId64 " bytes",
		rq.capacity_bytes);
	t->telling = st == AP_INFEASIBLE;
	rq.capacity_bytes = t->taken_bytes;
	REQUIRE(t, ap_drive_search(&t->f.ctx, &rq, &p, NULL) == AP_INFEASIBLE, "nothing is left");
	t->f.ctx.diag = ap_diag_create(t->f.ctx.arena, false);
}

START_TEST(what_does_not_fit_needs_no_table)
{
	trial_each(100, 4, 4, needs_no_table);
}
END_TEST

START_TEST(every_stage_fits_its_memory)
{
	trial_each(60, 4, 4, every_stage_fits);
}
END_TEST

/* One weight for products of two stages, which have to agree on a strategy; of one it is the second
 * operand, of the other the first. */
#define TIED \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'x','shape':[12,80],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[192,80],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'one','type':'MatMul','inputs':['x','w'],'attrs':{'transpose_b':true}," \
	"'outputs':[{'name':'y'}]}," \
	"{'name':'two','type':'MatMul','inputs':['w','y']," \
	"'attrs':{'transpose_a':true,'transpose_b':true},'outputs':[{'name':'z'}]}]," \
	"'outputs':['z']}"

static void stages_agree(struct trial *t)
{
	int64_t most = INT64_C(1) << 20;

	t->f.step.micro_batches = 1;
	fixture_graph(&t->f, TIED);
	if (!trial_staged(t, 2, 1) || combinations(t) > MOST_COMBINATIONS)
		return;
	t->telling = t->f.graph->node[0].stage != t->f.graph->node[t->f.graph->nnode - 2].stage;
	for (int64_t bytes = most / 64; t->telling && bytes < most; bytes += most / 64)
		search_agrees(t, t->taken_bytes + bytes);
}

START_TEST(stages_that_share_a_weight_agree)
{
	trial_each(6, 4, 2, stages_agree);
}
END_TEST

/* Larger ones, with segments: what is found is verified, and fits. */
static void segments_fit(struct trial *t)
{
	const int32_t *const *counts;
	struct ap_plan p, found;
	int64_t capacity;

	if (!trial_staged(t, 2, 1 + (uint32_t)(t->seed % 2)))
		return;
	counts = trial_counts(t);
	if (!counts)
		return;
	t->telling = true;
	trial_plan(t, counts, &p);
	capacity = trial_capacity(t, &p);
	if (trial_search(t, capacity, "auto", PRUNED | FOLDED, &found) != AP_OK)
		REQUIRE(t, p.prediction.memory.total > capacity, "a random plan fits");
	else
		REQUIRE(t, found.prediction.memory.total <= capacity, "%" PRId64,
			found.prediction.memory.total);
}

START_TEST(pipelines_with_segments_fit)
{
	trial_each(100, 12, 8, segments_fit);
}
END_TEST
