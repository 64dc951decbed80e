/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of operators that move, join and choose. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/cost.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

struct told {
	struct ap_str s;
	int n;
};

static void tell(void *user, const struct ap_comm *c)
{
	static const char *const phases[] = {"forward", "backward", "gradient", "optimizer", "recompute"};
	static const char *const reduced[] = {"", " mean", " max", " min", " prod"};
	int64_t ranks[64], size = ap_axes_size(&c->axes);
	struct told *t = user;

	ap_axes_group(&c->axes, 0, ranks);
	ap_str_addf(&t->s, "%s%s %s%s %lld {", t->n++ ? "; " : "", phases[c->phase],
		ap_coll_name(c->kind), reduced[c->reduce], (long long)c->bytes);
	for (int64_t r = 0; r < size; r++)
		ap_str_addf(&t->s, "%s%lld", r ? "," : "", (long long)ranks[r]);
	ap_str_addc(&t->s, '}');
}

static struct told derived(struct fixture *f, const char *name, const char *cut)
{
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;
	struct told t = {.n = 0};

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_str_init(&t.s, f->ctx.arena);
	ap_comms_derive(&tasks[node], &p, &f->step, tell, &t);
	return t;
}

/* A class token before patches, rows of a table, a choice between the two and what is made of it. */
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'moves'," \
	"'inputs':[{'name':'x','shape':[8,3,16],'dtype':'float32','batch_dim':0}," \
	"{'name':'ids','shape':[8,4],'dtype':'int32','batch_dim':0}," \
	"{'name':'mask','shape':[8,4,1],'dtype':'bool','batch_dim':0}]," \
	"'parameters':[{'name':'cls','shape':[1,1,16],'dtype':'float32'}," \
	"{'name':'sep','shape':[1,1,16],'dtype':'float32'}," \
	"{'name':'scale','shape':[1,3,16],'dtype':'float32'}," \
	"{'name':'table','shape':[64,16],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'broadcast','type':'BroadcastTo','inputs':['cls'],'outputs':[{'name':'c'}]," \
	"'attrs':{'shape':[8,1,16]}}," \
	"{'name':'tile','type':'Tile','inputs':['sep'],'outputs':[{'name':'s'}]," \
	"'attrs':{'multiples':[8,4,1]}}," \
	"{'name':'mul','type':'Mul','inputs':['x','scale'],'outputs':[{'name':'xs'}]}," \
	"{'name':'concat','type':'Concat','inputs':['c','xs'],'outputs':[{'name':'t'}]," \
	"'attrs':{'axis':1}}," \
	"{'name':'embedding','type':'Embedding','inputs':['ids','table']," \
	"'outputs':[{'name':'e'}]}," \
	"{'name':'select','type':'Select','inputs':['mask','t','e'],'outputs':[{'name':'m'}]}," \
	"{'name':'addn','type':'AddN','inputs':['m','s','t'],'outputs':[{'name':'a'}]}," \
	"{'name':'split','type':'Split','inputs':['a'],'outputs':[{'name':'l'},{'name':'r'}]," \
	"'attrs':{'axis':1,'output_num':2}}," \
	"{'name':'first','type':'StridedSlice','inputs':['l'],'outputs':[{'name':'f'}]," \
	"'attrs':{'begin':[0,0],'end':[8,1],'shrink_axis_mask':2}}," \
	"{'name':'segments','type':'UnsortedSegmentSum','inputs':['a','ids']," \
	"'outputs':[{'name':'g'}],'attrs':{'num_segments':5}}," \
	"{'name':'best','type':'TopK','inputs':['r'],'outputs':[{'name':'v'},{'name':'i'}]," \
	"'attrs':{'k':2}}," \
	"{'name':'finite','type':'IsFinite','inputs':['f'],'outputs':[{'name':'n'}]}," \
	"{'name':'any','type':'ReduceAny','inputs':['n'],'outputs':[{'name':'o'}]}," \
	"{'name':'norm','type':'L2Loss','inputs':['f'],'outputs':[{'name':'q'}]}," \
	"{'name':'sum1','type':'ReduceSum','inputs':['g'],'outputs':[{'name':'g1'}]}," \
	"{'name':'sum2','type':'ReduceSum','inputs':['v'],'outputs':[{'name':'v1'}]}," \
	"{'name':'loss','type':'AddN','inputs':['q','g1','v1'],'outputs':[{'name':'l1'}]}]," \
	"'outputs':['l1','o']}"

static const struct {
	const char *node, *cut, *mindspore, *generic;
} cases[] = {
	/* What was made of one token for all samples adds up to the token's gradient. */
	{"broadcast", "", "gradient AllReduce 64 {0,1,2,3}", ""},
	{"broadcast", "C=4", "", ""},
	{"broadcast", "C=2", "gradient AllReduce 32 {0,1}", ""},
	{"tile", "A=4", "gradient AllReduce 64 {0,1,2,3}", "gradient AllReduce 64 {0,1,2,3}"},
	{"tile", "A=2 C=2", "gradient AllReduce 32 {0,2}", "gradient AllReduce 32 {0,2}"},
	{"concat", "A=4", "", ""},
	{"concat", "A=2 C=2", "", ""},
	{"addn", "A=4", "", ""},
	{"split", "A=2 C=2", "", ""},
	{"first", "A=4", "", ""},
	{"best", "A=2 B=2", "", ""},
	{"select", "A=4", "", ""},
	{"embedding", "v=4",
		"forward AllReduce 2048 {0,1,2,3}; backward AllReduce 2048 {0,1,2,3}",
		"forward AllReduce 2048 {0,1,2,3}"},
	{"embedding", "A=4", "gradient AllReduce 4096 {0,1,2,3}",
		"gradient AllReduce 4096 {0,1,2,3}"},
	{"segments", "A=4", "forward AllReduce 320 {0,1,2,3}; backward AllReduce 320 {0,1,2,3}",
		"forward AllReduce 320 {0,1,2,3}"},
	{"segments", "B=2 C=2", "forward AllReduce 160 {0,2}; backward AllReduce 160 {0,2}",
		"forward AllReduce 160 {0,2}"},
	{"segments", "C=4", "", ""},
	{"any", "A=4", "forward AllReduce max 1 {0,1,2,3}", "forward AllReduce max 1 {0,1,2,3}"},
	{"norm", "A=2 B=2", "forward AllReduce 4 {0,1,2,3}; backward AllReduce 4 {0,1,2,3}",
		"forward AllReduce 4 {0,1,2,3}"},
};

START_LOOP_TEST(collectives_of_movements, AP_COUNT(cases))
{
	for (int e = 0; e < 2; e++) {
		struct fixture f;

		fixture_open(&f, 4, 4, "a100-80");
		f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		fixture_graph(&f, GRAPH);
		ck_assert_str_eq(derived(&f, cases[_i].node, cases[_i].cut).s.s,
			e ? cases[_i].generic : cases[_i].mindspore);
		fixture_close(&f);
	}
}
END_TEST

/* An operator of n parameters: a collective for each. */
static const char *many(struct fixture *f, int n)
{
	struct ap_str params, names;

	ap_str_init(&params, f->ctx.arena);
	ap_str_init(&names, f->ctx.arena);
	for (int i = 0; i < n; i++) {
		ap_str_addf(&params, "%s{'name':'p%d','shape':[4,6],'dtype':'float32'}",
			i ? "," : "", i);
		ap_str_addf(&names, "%s'p%d'", i ? "," : "", i);
	}
	return ap_arena_printf(f->ctx.arena, "{'schema':'autopar-graph/1','name':'many',"
		"'inputs':[],'parameters':[%s],'operators':[{'name':'all','type':'AddN',"
		"'inputs':[%s],'outputs':[{'name':'a'}]},{'name':'loss','type':'ReduceSum',"
		"'inputs':['a'],'outputs':[{'name':'l'}]}],'outputs':['l']}", params.s, names.s);
}

START_TEST(as_many_collectives_as_operands)
{
	struct fixture f;
	struct told t;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, many(&f, 200));
	t = derived(&f, "all", "A=4");
	ck_assert_int_eq(t.n, 200);
	ck_assert_int_eq(strncmp(t.s.s, "gradient AllReduce 24 {0,1}; gradient", 37), 0);
	ck_assert_int_eq(derived(&f, "all", "A=4 B=2").n, 0);
	fixture_close(&f);
}
END_TEST
