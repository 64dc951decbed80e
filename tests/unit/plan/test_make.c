/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made from counts. */
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "rule/deal.h"
#include "shard/layout.h"
#include "fixture.h"

/* Two lookups in one table, whose partial sums are dealt among the ranks that hold its rows: the second one
 * leaves its gradient to the first, and its result lies as before. */
START_TEST(shared_table_is_dealt)
{
	static const char text[] = "{'schema':'autopar-graph/1','name':'net','inputs':["
		"{'name':'a','shape':[16],'dtype':'int32','batch_dim':0},"
		"{'name':'b','shape':[16],'dtype':'int32','batch_dim':0}],"
		"'parameters':[{'name':'table','shape':[64,8],'dtype':'float32'}],'operators':["
		"{'name':'one','type':'Gather','inputs':['table','a'],'outputs':[{'name':'x'}],'attrs':{'axis':0}},"
		"{'name':'two','type':'Gather','inputs':['table','b'],'outputs':[{'name':'y'}],'attrs':{'axis':0}},"
		"{'name':'add','type':'Add','inputs':['x','y'],'outputs':[{'name':'z'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}],'outputs':['l']}";
	struct fixture f;
	struct ap_plan p, again;
	int32_t count[4][AP_MAX_FACTOR];
	const int32_t *counts[4];
	struct ap_plan_maker *maker;
	struct ap_graph *g;
	struct ap_node *node;

	fixture_open(&f, 4, 4, "h100-80");
	f.step.optimizer = ap_optimizer_find("adam");
	f.step.executor = AP_EXECUTOR_GENERIC;
	fixture_graph(&f, text);
	ck_assert_uint_eq(f.graph->nnode, 4);
	g = ap_graph_with_nodes(&f.ctx, f.graph, &node);
	ck_assert(ap_rule_deal_if_asked(&f.ctx, &node[0].bound) &&
		ap_rule_deal_if_asked(&f.ctx, &node[1].bound));
	for (ap_id i = 0; i < 4; i++) {
		fixture_counts(&f, i, i < 2 ? "v=2 A=2" : "A=4", count[i]);
		counts[i] = count[i];
		for (int k = 0; i < 2 && k < f.graph->node[i].bound.nfactor; k++)
			if (f.graph->node[i].bound.factor[k].letter == 'v')
				count[i][k] = -2;
	}
	maker = ap_plan_maker_create(&f.ctx, g, f.machine, &f.step, INT64_C(1) << 40);
	ap_plan_price(maker, counts, &p);
	ck_assert(p.op[1].joined != 0);
	ck_assert(ap_layout_equal(&p.op[0].out[0], &p.op[1].out[0]));
	ap_plan_price(maker, ap_plan_counts(&f.ctx, &p), &again);
	ck_assert(ap_plan_objective_s(&again) == ap_plan_objective_s(&p));
	fixture_close(&f);
}
END_TEST
