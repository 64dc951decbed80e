/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch in m micro-batches is a graph of an m-th of the batch: the same candidates, m times its seconds,
 * its bytes once, what it keeps as many times as micro-batches are in flight. Also where the batch is inside
 * a dimension.
 */
#include <string.h>

#include "base/arena.h"
#include "cost/cost.h"
#include "fixture.h"
#include "cost/opcost.h"
#include "harness.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/task.h"
#include "graph/graph.h"
#include "shard/layout.h"
#include "shard/space.h"

/* Tokens before samples: [3 * 24] rows, [24 * 2] heads, and both taken apart again. */
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'turned'," \
	"'inputs':[{'name':'x','shape':[4,24,8],'dtype':'float16','batch_dim':1}]," \
	"'parameters':[{'name':'g','shape':[8],'dtype':'float16'}," \
	"{'name':'w','shape':[8,8],'dtype':'float16'},{'name':'mask','shape':[1,4,4],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'in','type':'Mul','inputs':['x','g'],'outputs':[{'name':'e'}]}," \
	"{'name':'rows','type':'Reshape','inputs':['e'],'outputs':[{'name':'r'}]," \
	"'attrs':{'shape':[-1,8]}}," \
	"{'name':'mm','type':'MatMul','inputs':['r','w'],'outputs':[{'name':'h'}]}," \
	"{'name':'heads','type':'Reshape','inputs':['h'],'outputs':[{'name':'q'}]," \
	"'attrs':{'shape':[4,-1,4]}}," \
	"{'name':'turn','type':'Transpose','inputs':['q'],'outputs':[{'name':'t'}]," \
	"'attrs':{'perm':[1,0,2]}}," \
	"{'name':'core','type':'BatchMatMul','inputs':['t','t'],'outputs':[{'name':'s'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'add','type':'Add','inputs':['s','mask'],'outputs':[{'name':'sm'}]}," \
	"{'name':'soft','type':'Softmax','inputs':['sm'],'outputs':[{'name':'p'}]}," \
	"{'name':'mix','type':'BatchMatMul','inputs':['p','t'],'outputs':[{'name':'c'}]}," \
	"{'name':'back','type':'Transpose','inputs':['c'],'outputs':[{'name':'u'}]," \
	"'attrs':{'perm':[1,0,2]}}," \
	"{'name':'tokens','type':'Reshape','inputs':['u'],'outputs':[{'name':'v'}]," \
	"'attrs':{'shape':[4,-1,8]}}," \
	"{'name':'res','type':'Add','inputs':['v','e'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct side { /* of the comparison */
	struct fixture f;
	const struct ap_task *task;
	struct ap_pricer *pricer;
};

static void open_side(struct side *s, int64_t batch, int64_t micro_batches, int64_t in_flight)
{
	struct ap_graph_params params = {.batch = batch, .micro_batches = micro_batches};
	struct ap_json *doc;
	char *json;

	fixture_open(&s->f, 8, 4, "ascend910a");
	json = ap_arena_strdup(s->f.ctx.arena, GRAPH);
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	ck_assert_int_eq(ap_json_parse(&s->f.ctx, "g.json", json, strlen(json), 0, &doc), AP_OK);
	ck_assert_int_eq(ap_graph_load(&s->f.ctx, doc, "", &params, &s->f.graph), AP_OK);
	s->f.step.micro_batches = micro_batches;
	fixture_in_flight(&s->f, in_flight);
	ap_tasks_make(&s->f.ctx, s->f.graph, &s->f.step, &s->task);
	s->pricer = ap_pricer_create(s->f.ctx.arena, s->f.machine, &s->f.step);
}

struct comms {
	int n;
	struct ap_comm v[64];
};

static void take(void *user, const struct ap_comm *c)
{
	struct comms *list = user;

	ck_assert_int_lt(list->n, 64);
	list->v[list->n++] = *c;
}

static void compare_comms(const struct side *a, const struct side *b, ap_id node,
	const struct ap_placement *p, const struct ap_placement *q)
{
	struct comms x = {0}, y = {0};

	ap_comms_derive(&a->task[node], p, &a->f.step, take, &x);
	ap_comms_derive(&b->task[node], q, &b->f.step, take, &y);
	ck_assert_int_eq(x.n, y.n);
	for (int i = 0; i < x.n; i++) {
		ck_assert_int_eq(x.v[i].kind, y.v[i].kind);
		ck_assert_int_eq(x.v[i].bytes, y.v[i].bytes);
	}
}

#define ASSERT_TIMES(x, n, y) ck_assert_double_eq_tol(x, (double)(n) * (y), 1e-12 * (x) + 1e-30)

static void compare_costs(const struct side *a, const struct side *b, ap_id node, const int32_t *count)
{
	int64_t m = a->f.step.micro_batches, k = a->f.in_flight;
	struct ap_placement p, q;
	struct ap_op_cost x, y;

	ap_placement_make(&a->f.graph->node[node].bound, count, 8, &p);
	ap_placement_make(&b->f.graph->node[node].bound, count, 8, &q);
	ap_op_cost_make(a->pricer, &a->task[node], &p, &x);
	ap_op_cost_make(b->pricer, &b->task[node], &q, &y);
	ASSERT_TIMES(x.forward_s, m, y.forward_s);
	ASSERT_TIMES(x.backward_s, m, y.backward_s);
	ASSERT_TIMES(x.forward_comm_s, m, y.forward_comm_s);
	ASSERT_TIMES(x.backward_comm_s, m, y.backward_comm_s);
	ASSERT_TIMES(x.gradient_s, 1, y.gradient_s);
	ck_assert_int_eq(x.weight_bytes, y.weight_bytes);
	ck_assert_int_eq(x.gradient_bytes, y.gradient_bytes);
	ck_assert_int_eq(x.optimizer_bytes, y.optimizer_bytes);
	ck_assert_int_eq(x.activation_bytes, y.activation_bytes);
	ck_assert_int_eq(a->task[node].in_flight, k);
	ck_assert_int_eq(b->task[node].in_flight, 1);
	ck_assert_int_eq(ap_op_cost_memory_bytes(&x, &a->task[node]) -
		ap_op_cost_memory_bytes(&y, &b->task[node]),
		(k - 1) * (y.activation_bytes - y.lent_bytes + y.read_bytes));
	ck_assert_int_eq(x.temporary_bytes, y.temporary_bytes);
	compare_comms(a, b, node, &p, &q);
}

static void compare_flows(const struct side *a, const struct side *b, ap_id node)
{
	for (uint16_t i = 0; i < a->f.graph->node[node].bound.nin; i++) {
		struct ap_flow x, y;

		ap_flow_make(a->f.graph, a->task, node, i, &a->f.step, &x);
		ap_flow_make(b->f.graph, b->task, node, i, &b->f.step, &y);
		ck_assert_int_eq(memcmp(x.size, y.size, sizeof x.size), 0);
		ck_assert_int_eq(x.kept, y.kept);
	}
}

START_LOOP_TEST(micro_batches_are_small_batches, 5)
{
	static const struct {
		int64_t micro_batches, in_flight;
	} rows[] = {{2, 1}, {3, 2}, {4, 4}, {6, 5}, {12, 3}};
	struct side a, b;
	uint32_t candidates = 0;

	open_side(&a, 24, rows[_i].micro_batches, rows[_i].in_flight);
	open_side(&b, 24 / rows[_i].micro_batches, 1, 1);
	ck_assert_uint_eq(a.f.graph->nnode, b.f.graph->nnode);
	for (ap_id n = 0; n < a.f.graph->nnode; n++) {
		const struct ap_bound *bound = &a.f.graph->node[n].bound;
		struct ap_space x, y;

		ap_space_make(&a.f.ctx, bound, 8, &a.f.step, &x);
		ap_space_make(&b.f.ctx, &b.f.graph->node[n].bound, 8, &b.f.step, &y);
		ck_assert_uint_eq(x.n, y.n);
		ck_assert_int_eq(memcmp(x.count, y.count, x.n * bound->nfactor * sizeof *x.count), 0);
		for (uint32_t c = 0; c < x.n; c++)
			compare_costs(&a, &b, n, x.count + c * bound->nfactor);
		compare_flows(&a, &b, n);
		candidates += x.n;
	}
	ck_assert_uint_gt(candidates, 60);
	fixture_close(&a.f);
	fixture_close(&b.f);
}
END_TEST
