/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise_op_strategy_follow: an operator by element lies as those that read its result. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "fixture.h"
#include "harness.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "table/joint.h"
#include "table/table.h"

#define CHAIN \
	"{'schema':'autopar-graph/1','name':'chain'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[8,32],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'relu','type':'ReLU','inputs':['x'],'outputs':[{'name':'r'}]}," \
	"{'name':'product','type':'MatMul','inputs':['r','w'],'outputs':[{'name':'p'}]}," \
	"{'name':'softmax','type':'Softmax','inputs':['p'],'outputs':[{'name':'s'}]}," \
	"{'name':'square','type':'Square','inputs':['s'],'outputs':[{'name':'q'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['q'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct listing {
	const struct ap_graph *g;
	struct ap_str s;
};

static void list_joint(void *user, const struct ap_joint *j)
{
	struct listing *k = user;

	if (j->type == AP_BOND_FOLLOW)
		ap_str_addf(&k->s, "%s > %s; ", k->g->node[j->u].name, k->g->node[j->v].name);
}

START_TEST(operators_by_element_lead)
{
	for (int on = 0; on < 2; on++) {
		const struct ap_task *task;
		struct listing k;
		struct fixture f;

		fixture_open(&f, 8, 8, "a100-80");
		f.step.follow = on > 0;
		fixture_graph(&f, CHAIN);
		ap_tasks_make(&f.ctx, f.graph, &f.step, &task);
		k.g = f.graph;
		ap_str_init(&k.s, f.ctx.arena);
		ap_joints_each(&f.ctx, f.graph, task, &f.step, list_joint, &k);
		ck_assert_str_eq(k.s.s, on ? "relu > product; square > loss; " : "");
		fixture_close(&f);
	}
}
END_TEST

/* In the table, the pairs of cuts that stay are those whose layouts are equal, at no cost. */
START_TEST(only_equal_layouts_go_together)
{
	const struct ap_table_params params = {0};
	const struct ap_table *t;
	const struct ap_problem *p;
	uint32_t finite = 0, equal = 0;
	struct fixture f;
	ap_id u, v;

	fixture_open(&f, 8, 8, "a100-80");
	f.step.follow = true;
	fixture_graph(&f, CHAIN);
	ck_assert_int_eq(ap_table_make(&f.ctx, f.graph, f.machine, &f.step, &params, &t), AP_OK);
	u = fixture_node(&f, "relu");
	v = fixture_node(&f, "product");
	p = t->problem;
	for (uint32_t a = 0; a < p->node[u].k; a++)
		for (uint32_t b = 0; b < p->node[v].k; b++) {
			struct ap_placement pu, pv;
			struct ap_layout lu, lv;
			double cost = 0;

			ap_placement_make(&f.graph->node[u].bound, ap_table_counts(t, u, a), 8, &pu);
			ap_placement_make(&f.graph->node[v].bound, ap_table_counts(t, v, b), 8, &pv);
			ck_assert(ap_layout_make(&pu, &pu.bound->out[0], &lu));
			ck_assert(ap_layout_make(&pv, &pv.bound->in[0], &lv));
			for (uint32_t e = 0; e < p->nedge; e++)
				if (p->edge[e].u == u && p->edge[e].v == v)
					cost += p->matrix[p->edge[e].matrix].cost[a * p->node[v].k + b];
			finite += cost < 1e9;
			equal += ap_layout_equal(&lu, &lv);
			ck_assert(ap_layout_equal(&lu, &lv) == (cost < 1e9));
		}
	ck_assert_uint_eq(finite, equal);
	ck_assert_uint_gt(finite, 0);
	ck_assert_uint_lt(finite, p->node[u].k * p->node[v].k);
	fixture_close(&f);
}
END_TEST
