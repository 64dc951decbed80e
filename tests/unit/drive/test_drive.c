/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way from graph to plan against an oracle that knows no table, no pruning and no engine:
 * every combination of legal cuts is made into a plan, and its objective and memory are compared. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "drive/drive.h"
#include "fixture.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/layout.h"
#include "shard/space.h"

/* One table for look-up and product: equal layouts are forced. */
#define TIED \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'ids','shape':[8],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'table','shape':[64,16],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]}," \
	"{'name':'act','type':'ReLU','inputs':['e'],'outputs':[{'name':'r'}]}," \
	"{'name':'head','type':'MatMul','inputs':['r','table'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct oracle {
	struct fixture *f;
	struct ap_space space[8];
	uint32_t at[8];
	const int32_t *counts[8];
	double best; /* objective of the best combination that fits */
	double step_s; /* the longest simulated step of the best combinations */
	int64_t least; /* memory of the smallest one */
	int64_t most; /* memory of the best one without a limit */
};

static bool ties_hold(const struct ap_plan *p)
{
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_tensor *t = &p->graph->tensor[p->param[i].tensor];

		for (uint32_t u = 0; u < t->nuse; u++)
			if (!ap_layout_equal(&p->param[i].layout,
				    &p->op[t->use[u].node].in[t->use[u].operand]))
				return false;
	}
	return true;
}

static void weigh(struct oracle *o, int64_t capacity)
{
	struct ap_mark mark = ap_arena_mark(o->f->ctx.arena);
	struct ap_memory m;
	struct ap_plan p;

	ap_plan_make(&o->f->ctx, o->f->graph, o->f->machine, &o->f->step, o->counts, capacity, &p);
	m = p.prediction.memory;
	if (ties_hold(&p)) {
		double objective = ap_plan_objective_s(&p);

		if (m.total < o->least)
			o->least = m.total;
		if (m.total <= capacity && objective == o->best)
			o->step_s = fmax(o->step_s, p.prediction.step_time_s);
		if (m.total <= capacity && objective < o->best) {
			o->best = objective;
			o->most = m.total;
			o->step_s = p.prediction.step_time_s;
		}
	}
	ap_arena_release(o->f->ctx.arena, mark);
}

static void enumerate(struct oracle *o, int64_t capacity)
{
	uint32_t n = o->f->graph->nnode, i;

	o->best = INFINITY;
	o->least = INT64_MAX;
	for (i = 0; i < n; i++) {
		ap_space_make(&o->f->ctx, &o->f->graph->node[i].bound, o->f->machine->ndev,
			&o->f->step, &o->space[i]);
		o->at[i] = 0;
	}
	for (i = 0; i < n;) {
		for (i = 0; i < n; i++) {
			/* Placements read AP_MAX_FACTOR counts at most nfactor deep. */
			o->counts[i] = o->space[i].count + (size_t)o->at[i] * o->space[i].nfactor;
		}
		weigh(o, capacity);
		for (i = 0; i < n && ++o->at[i] == o->space[i].n; i++)
			o->at[i] = 0;
		if (i == n)
			break;
		i = 0;
	}
}

static struct ap_request request(struct fixture *f, int64_t capacity, bool prune)
{
	return (struct ap_request){.graph = f->graph, .machine = f->machine, .step = &f->step,
		.capacity_bytes = capacity, .search_mode = "auto", .prune = prune};
}

static void compare(struct fixture *f, int64_t capacity, const struct oracle *o)
{
	double best = o->best;

	for (int prune = 0; prune < 2; prune++) {
		struct ap_request rq = request(f, capacity, prune);
		struct ap_plan plan;
		enum ap_status st = ap_drive_search(&f->ctx, &rq, &plan, NULL);

		if (isinf(best)) {
			ck_assert_int_eq(st, AP_INFEASIBLE);
			continue;
		}
		ck_assert_int_eq(st, AP_OK);
		ck_assert_double_eq(plan.search.lower_bound_s, best);
		ck_assert_double_ge(plan.search.objective_s, best);
		ck_assert_double_le(plan.prediction.step_time_s, o->step_s);
		ck_assert_int_le(plan.prediction.memory.total, capacity);
		if (plan.search.status == AP_PLAN_OPTIMAL)
			ck_assert_double_eq(plan.search.objective_s, best);
	}
}

static void against_oracle(const char *graph, int64_t ndev, int64_t per_server,
	enum ap_executor executor, bool shard, int64_t micro)
{
	struct fixture f;
	struct oracle o = {.f = &f};
	int64_t unlimited = INT64_C(1) << 40, top;

	fixture_open(&f, ndev, per_server, "a100-80");
	f.step.executor = executor;
	f.step.optimizer_sharding = shard;
	f.step.shard_threshold_bytes = 512;
	f.step.micro_batches = micro;
	fixture_graph(&f, graph);
	enumerate(&o, unlimited);
	compare(&f, unlimited, &o);
	top = o.most;
	for (int i = 0; i <= 4; i++) {
		int64_t capacity = o.least + (top - o.least) * i / 5 - (i == 0);

		enumerate(&o, capacity);
		compare(&f, capacity, &o);
	}
	fixture_close(&f);
}

START_TEST(mlp)
{
	against_oracle(FIXTURE_PAIR, 2, 2, AP_EXECUTOR_MINDSPORE, false, 1);
	against_oracle(FIXTURE_PAIR, 4, 2, AP_EXECUTOR_MINDSPORE, true, 1);
	against_oracle(FIXTURE_PAIR, 4, 4, AP_EXECUTOR_GENERIC, false, 2);
}
END_TEST

START_TEST(tied)
{
	against_oracle(TIED, 4, 2, AP_EXECUTOR_MINDSPORE, false, 1);
	against_oracle(TIED, 4, 4, AP_EXECUTOR_GENERIC, true, 2);
}
END_TEST

#define PINNED(pin) \
	"{'schema':'autopar-graph/1','name':'pinned'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[8,32],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}]," \
	"'in_strategy':" pin "}," \
	"{'name':'loss','type':'ReduceMean','inputs':['h'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(pins)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan plan;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, PINNED("[[2,1],[1,2]]"));
	rq = request(&f, INT64_C(1) << 40, true);
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &plan, NULL), AP_OK);
	ck_assert_int_eq(plan.op[0].place.count[0], 2);
	ck_assert_int_eq(plan.op[0].place.count[1], 1);
	ck_assert_int_eq(plan.op[0].place.count[2], 2);
	ck_assert(plan.op[0].fixed && !plan.op[1].fixed);
	ck_assert(!plan.baseline[0].applicable);
	fixture_close(&f);
	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, PINNED("[[2,2],[1,2]]")); /* k is cut differently in the two operands */
	rq = request(&f, INT64_C(1) << 40, true);
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &plan, NULL), AP_MEANING);
	fixture_close(&f);
	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, PINNED("[[8,1],[1,1]]")); /* more parts than devices */
	rq = request(&f, INT64_C(1) << 40, true);
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &plan, NULL), AP_MEANING);
	fixture_close(&f);
}
END_TEST
