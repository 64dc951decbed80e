/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators are computed again: by flags, cells, cores of attention and layers. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/recompute.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

/* Two layers of x -> x + W2 relu(W1 x), the second with its relu in a cell of its own. */
#define LAYERS(relu, cells) \
	"{'schema':'autopar-graph/1','name':'layers'," cells \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[8],'dtype':'float32'}," \
	"{'name':'u0','shape':[8,32],'dtype':'float32'},{'name':'d0','shape':[32,8],'dtype':'float32'}," \
	"{'name':'u1','shape':[8,32],'dtype':'float32'},{'name':'d1','shape':[32,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'in','type':'BiasAdd','inputs':['x','b'],'outputs':[{'name':'x0'}],'cell':'in'}," \
	"{'name':'up0','type':'MatMul','inputs':['x0','u0'],'outputs':[{'name':'h0'}]," \
	"'cell':'net.blocks.0.mlp'}," \
	"{'name':'act0','type':'ReLU','inputs':['h0'],'outputs':[{'name':'r0'}]," \
	"'cell':'net.blocks.0.mlp'" relu "}," \
	"{'name':'down0','type':'MatMul','inputs':['r0','d0'],'outputs':[{'name':'y0'}]," \
	"'cell':'net.blocks.0.mlp'}," \
	"{'name':'add0','type':'Add','inputs':['x0','y0'],'outputs':[{'name':'x1'}]," \
	"'cell':'net.blocks.0'}," \
	"{'name':'up1','type':'MatMul','inputs':['x1','u1'],'outputs':[{'name':'h1'}]," \
	"'cell':'net.blocks.1.mlp'}," \
	"{'name':'act1','type':'ReLU','inputs':['h1'],'outputs':[{'name':'r1'}]," \
	"'cell':'net.blocks.1.mlp.relu'}," \
	"{'name':'down1','type':'MatMul','inputs':['r1','d1'],'outputs':[{'name':'y1'}]," \
	"'cell':'net.blocks.1.mlp'}," \
	"{'name':'add1','type':'Add','inputs':['x1','y1'],'outputs':[{'name':'x2'}]," \
	"'cell':'net.blocks.1'}," \
	"{'name':'loss','type':'ReduceMean','inputs':['x2'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* Names of the marked, and the notes. */
static const char *marked(struct fixture *f, const char *graph, enum ap_recompute setting)
{
	struct ap_again *mark;
	struct ap_str s;

	f->step.recompute = setting;
	fixture_graph(f, graph);
	mark = AP_NEW_N(f->ctx.arena, struct ap_again, f->graph->nnode);
	ap_recompute_mark(&f->ctx, f->graph, &f->step, mark);
	ck_assert(ap_recompute_notes(&f->ctx, f->graph, &f->step) == AP_OK);
	ck_assert(ap_recompute_check(&f->ctx, f->graph, &f->step, "") == AP_OK);
	ap_str_init(&s, f->ctx.arena);
	for (ap_id i = 0; i < f->graph->nnode; i++)
		if (mark[i].group != AP_NONE)
			ap_str_addf(&s, "%s%s", s.len ? " " : "", f->graph->node[i].name);
	for (size_t i = 0; ap_diag_text(f->ctx.diag, i, NULL, NULL); i++) {
		const char *check;
		const char *text = ap_diag_text(f->ctx.diag, i, NULL, &check);

		if (strcmp(check, "recompute-nothing") == 0)
			ap_str_addf(&s, "; %.*s", (int)strcspn(text, ":"), text);
	}
	return s.s;
}

static void expect(const char *graph, enum ap_recompute setting, const char *want)
{
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	ck_assert_str_eq(marked(&f, graph, setting), want);
	fixture_close(&f);
}

START_TEST(primitives)
{
	expect(LAYERS("", ""), AP_RECOMPUTE_NONE, "");
	expect(LAYERS(",'recompute':true", ""), AP_RECOMPUTE_NONE, "act0");
	expect(LAYERS(",'recompute':false", ""), AP_RECOMPUTE_FULL, "up0 down0 up1 act1 down1");
}
END_TEST

START_TEST(layers)
{
	expect(LAYERS("", ""), AP_RECOMPUTE_FULL, "up0 act0 down0 up1 act1 down1");
	expect(FIXTURE_PAIR, AP_RECOMPUTE_FULL, "; full recompute adds nothing");
}
END_TEST

/* All of a cell but its outputs; a cell of one operator, its output, has nothing else. */
START_TEST(cells)
{
	expect(LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':true}],"), AP_RECOMPUTE_NONE,
		"up0 act0 down0");
	expect(LAYERS("", "'cells':[{'name':'net.blocks.0.mlp','recompute':true}],"), AP_RECOMPUTE_NONE,
		"up0 act0");
	expect(LAYERS("", "'cells':[{'name':'net.blocks.1.mlp.relu','recompute':true}],"),
		AP_RECOMPUTE_NONE, "; nothing of cell \"net.blocks.1.mlp.relu\" is recomputed");
	/* the primitive wins, and so does the inner cell */
	expect(LAYERS(",'recompute':false", "'cells':[{'name':'net.blocks.0','recompute':true}],"),
		AP_RECOMPUTE_NONE, "up0 down0");
	expect(LAYERS("", "'cells':[{'name':'net.blocks','recompute':true},"
		"{'name':'net.blocks.1','recompute':false}],"), AP_RECOMPUTE_NONE,
		"up0 act0 down0 add0");
	expect(LAYERS("", "'cells':[{'name':'net.blocks.1','recompute':false}],"), AP_RECOMPUTE_FULL,
		"up0 act0 down0");
	/* What goes to a cell inside does not leave. */
	expect(LAYERS("", "'cells':[{'name':'net.blocks.1','recompute':true},"
		"{'name':'net.blocks.1.mlp.relu','recompute':true}],"), AP_RECOMPUTE_NONE,
		"up1 down1; nothing of cell \"net.blocks.1.mlp.relu\" is recomputed");
}
END_TEST

/* softmax(q k') v with a scale and a mask, then a weight. */
#define ATTENTION \
	"{'schema':'autopar-graph/1','name':'attention'," \
	"'inputs':[{'name':'x','shape':[2,16,8],'dtype':'float32','batch_dim':0}," \
	"{'name':'m','shape':[16,16],'dtype':'float32'}]," \
	"'parameters':[{'name':'b','shape':[8],'dtype':'float32'}," \
	"{'name':'w','shape':[2,8,8],'dtype':'float32'},{'name':'o','shape':[2,8,8],'dtype':'float32'}]," \
	"'constants':[{'name':'c','shape':[1],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'in','type':'Add','inputs':['x','b'],'outputs':[{'name':'x0'}]}," \
	"{'name':'q','type':'BatchMatMul','inputs':['x0','w'],'outputs':[{'name':'q0'}]}," \
	"{'name':'scores','type':'BatchMatMul','inputs':['q0','x0'],'attrs':{'transpose_b':true}," \
	"'outputs':[{'name':'s0'}]}," \
	"{'name':'scale','type':'Mul','inputs':['s0','c'],'outputs':[{'name':'s1'}]}," \
	"{'name':'mask','type':'Add','inputs':['s1','m'],'outputs':[{'name':'s2'}]}," \
	"{'name':'softmax','type':'Softmax','inputs':['s2'],'outputs':[{'name':'p'}]}," \
	"{'name':'values','type':'BatchMatMul','inputs':['p','x0'],'outputs':[{'name':'y'}]}," \
	"{'name':'out','type':'BatchMatMul','inputs':['y','o'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(cores)
{
	expect(ATTENTION, AP_RECOMPUTE_SELECTIVE, "scores scale mask softmax");
	expect(FIXTURE_PAIR, AP_RECOMPUTE_SELECTIVE, "; selective recompute adds nothing");
}
END_TEST

/* Of all marks the operators that a group takes along when it runs again whole. */
static void expect_whole(const char *graph, enum ap_recompute setting, const char *want)
{
	struct ap_again *mark;
	struct fixture f;
	struct ap_str s;

	fixture_open(&f, 1, 1, "a100-80");
	f.step.recompute = setting;
	f.step.recompute_whole = true;
	fixture_graph(&f, graph);
	mark = AP_NEW_N(f.ctx.arena, struct ap_again, f.graph->nnode);
	ap_recompute_mark(&f.ctx, f.graph, &f.step, mark);
	ap_str_init(&s, f.ctx.arena);
	for (ap_id i = 0; i < f.graph->nnode; i++)
		if (mark[i].repeats != AP_NONE)
			ap_str_addf(&s, "%s%s%s", s.len ? " " : "", f.graph->node[i].name,
				mark[i].group == AP_NONE ? "!" : "");
	ck_assert_str_eq(s.s, want);
	fixture_close(&f);
}

START_TEST(whole_groups)
{
	expect_whole(LAYERS("", ""), AP_RECOMPUTE_NONE, "");
	expect_whole(LAYERS(",'recompute':true", ""), AP_RECOMPUTE_NONE, "");
	expect_whole(LAYERS("", ""), AP_RECOMPUTE_FULL, "up0 act0 down0 add0! up1 act1 down1 add1!");
	/* what says no, itself or by its cell, is left out */
	expect_whole(LAYERS(",'recompute':false", "'cells':[{'name':'net.blocks.1','recompute':false}],"),
		AP_RECOMPUTE_FULL, "up0 down0 add0!");
	expect_whole(LAYERS("", "'cells':[{'name':'net.blocks.0.mlp','recompute':true}],"),
		AP_RECOMPUTE_NONE, "up0 act0 down0!");
	expect_whole(ATTENTION, AP_RECOMPUTE_SELECTIVE, "scores scale mask softmax values!");
}
END_TEST

/* The last product with its AllReduce, and the addition: again where the layer is called once more. */
START_TEST(layers_again_to_their_end)
{
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	f.step.executor = AP_EXECUTOR_GENERIC;
	f.step.recompute = AP_RECOMPUTE_FULL;
	for (int whole = 0; whole < 2; whole++) {
		struct ap_op_cost down, add;
		const struct ap_task *tasks;
		int32_t count[AP_MAX_FACTOR];
		struct ap_placement p;
		struct ap_pricer *pr;

		f.step.recompute_whole = whole;
		fixture_graph(&f, LAYERS("", ""));
		pr = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
		ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
		fixture_counts(&f, fixture_node(&f, "down0"), "k=4", count);
		ap_placement_make(tasks[fixture_node(&f, "down0")].bound, count, 4, &p);
		ap_op_cost_make(pr, &tasks[fixture_node(&f, "down0")], &p, &down);
		fixture_counts(&f, fixture_node(&f, "add0"), "", count);
		ap_placement_make(tasks[fixture_node(&f, "add0")].bound, count, 4, &p);
		ap_op_cost_make(pr, &tasks[fixture_node(&f, "add0")], &p, &add);
		ck_assert_double_gt(down.forward_comm_s, 0);
		ck_assert_double_eq(down.backward_comm_s, whole ? down.forward_comm_s : 0);
		ck_assert_double_eq(down.recompute_s, whole ? down.forward_s : 0);
		ck_assert_double_eq(add.recompute_s, whole ? add.forward_s : 0);
		/* 16 x 8 float32: held for the next layer, and there once more */
		ck_assert_int_eq(add.activation_bytes, 16 * 8 * 4);
		ck_assert_int_eq(add.recompute_bytes, whole ? 16 * 8 * 4 : 0);
		ck_assert_int_eq(down.activation_bytes + down.recompute_bytes, 0);
		/* layers run again one by one, although one reads the other's result */
		ck_assert_uint_eq(tasks[fixture_node(&f, "up0")].recompute_sets, 2);
		ck_assert_uint_ne(tasks[fixture_node(&f, "up1")].recompute_set,
			tasks[fixture_node(&f, "up0")].recompute_set);
	}
	fixture_close(&f);
}
END_TEST

/* A recomputed operator: its forward kernel again, its result brought back, its operand kept. */
START_TEST(costs_again)
{
	const char *const graphs[] = {LAYERS("", ""), LAYERS(",'recompute':true", "")};
	struct ap_op_cost act[2], up[2];
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_in_flight(&f, 3);
	f.step.micro_batches = 2;
	for (int i = 0; i < 2; i++) {
		const struct ap_task *tasks;
		struct ap_pricer *pr;
		int32_t ones[AP_MAX_FACTOR];
		struct ap_placement p;

		fixture_graph(&f, graphs[i]);
		pr = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
		ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
		fixture_counts(&f, fixture_node(&f, "act0"), "", ones);
		ap_placement_make(tasks[fixture_node(&f, "act0")].bound, ones, 1, &p);
		ap_op_cost_make(pr, &tasks[fixture_node(&f, "act0")], &p, &act[i]);
		ap_placement_make(tasks[fixture_node(&f, "up0")].bound, ones, 1, &p);
		ap_op_cost_make(pr, &tasks[fixture_node(&f, "up0")], &p, &up[i]);
		ck_assert_uint_eq(tasks[fixture_node(&f, "act0")].recompute_sets, (uint32_t)i);
	}
	/* 16 x 32 float32, in two micro-batches, three of which are in flight: of one it is */
	ck_assert_int_eq(act[0].activation_bytes, 1024);
	ck_assert_int_eq(act[0].recompute_bytes, 0);
	ck_assert_int_eq(act[1].activation_bytes, 0);
	ck_assert_int_eq(act[1].recompute_bytes, 1024);
	ck_assert_int_eq(up[0].activation_bytes, 0);
	ck_assert_int_eq(up[1].activation_bytes, 1024);
	ck_assert_double_eq(act[1].forward_s, act[0].forward_s);
	ck_assert_double_eq(act[1].recompute_s, act[0].forward_s);
	ck_assert_double_eq(act[1].backward_s, act[0].backward_s + act[0].forward_s);
	ck_assert_double_eq(up[1].backward_s, up[0].backward_s);
	fixture_close(&f);
}
END_TEST

/* A product with partial sums: its AllReduce runs again, or its result is kept. */
START_TEST(communication_again)
{
	static const char *const graphs[] = {
		LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':true}],"),
		LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':{'mp_comm_recompute':false}}],"),
	};
	struct ap_op_cost c[2];
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	for (int i = 0; i < 2; i++) {
		const struct ap_task *tasks;
		int32_t count[AP_MAX_FACTOR];
		struct ap_placement p;
		ap_id up;

		fixture_graph(&f, graphs[i]);
		up = fixture_node(&f, "up0");
		ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
		fixture_counts(&f, up, "k=4", count);
		ap_placement_make(tasks[up].bound, count, 4, &p);
		ap_op_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), &tasks[up], &p, &c[i]);
		ck_assert(tasks[up].recomputed);
	}
	ck_assert_double_gt(c[0].forward_comm_s, 0);
	ck_assert_double_eq(c[0].backward_comm_s, c[1].backward_comm_s + c[0].forward_comm_s);
	ck_assert_double_eq(c[0].recompute_s, c[0].forward_s);
	ck_assert_double_eq(c[1].recompute_s, 0);
	/* only relu reads it, which is computed again */
	ck_assert_int_eq(c[0].activation_bytes, 0);
	ck_assert_int_eq(c[1].activation_bytes, 16 * 32 * 4);
	fixture_close(&f);
}
END_TEST

/* The step's own word holds for all that is recomputed, and for nothing else. */
START_TEST(words_for_all)
{
	struct ap_again *mark;
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	f.step.recompute_keeps_comm = f.step.recompute_regathers = f.step.recompute_slices = true;
	fixture_graph(&f, LAYERS(",'recompute':true", ""));
	mark = AP_NEW_N(f.ctx.arena, struct ap_again, f.graph->nnode);
	ap_recompute_mark(&f.ctx, f.graph, &f.step, mark);
	for (ap_id i = 0; i < f.graph->nnode; i++) {
		bool is = i == fixture_node(&f, "act0");

		ck_assert(mark[i].keep_comm == is && mark[i].regather == is && mark[i].slice == is);
	}
	fixture_close(&f);
}
END_TEST

/* x0, which only the layer's first product and its Add read again, is held by four devices in parts. */
START_TEST(inputs_in_parts)
{
	static const char *const graphs[] = {
		LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':true}],"),
		LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':"
			"{'recompute_slice_activation':true}}],"),
	};
	struct ap_op_cost in[2], up[2];
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	for (int i = 0; i < 2; i++) {
		const struct ap_task *tasks;
		int32_t count[AP_MAX_FACTOR];
		struct ap_pricer *pr;
		struct ap_placement p;
		ap_id node;

		fixture_graph(&f, graphs[i]);
		pr = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
		ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
		node = fixture_node(&f, "in");
		fixture_counts(&f, node, "", count);
		ap_placement_make(tasks[node].bound, count, 4, &p);
		ap_op_cost_make(pr, &tasks[node], &p, &in[i]);
		node = fixture_node(&f, "up0");
		fixture_counts(&f, node, "n=4", count);
		ap_placement_make(tasks[node].bound, count, 4, &p);
		ap_op_cost_make(pr, &tasks[node], &p, &up[i]);
	}
	ck_assert_int_eq(in[0].activation_bytes, 16 * 8 * 4);
	ck_assert_int_eq(in[1].activation_bytes, 16 * 8 * 4 / 4);
	ck_assert_double_eq(up[0].backward_s, up[1].backward_s);
	ck_assert_double_gt(up[1].backward_comm_s, up[0].backward_comm_s);
	/* and the whole of it is there again beside them */
	ck_assert_int_eq(up[1].recompute_bytes - up[0].recompute_bytes, 16 * 8 * 4);
	fixture_close(&f);
}
END_TEST

static const struct ap_task *task_of(struct fixture *f, const char *name)
{
	const struct ap_task *tasks;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	return &tasks[fixture_node(f, name)];
}

/* A loss needs its scores for their own gradient; a product an operand only for the other's. */
START_TEST(factors_and_others)
{
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'loss',"
		"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0},"
		"{'name':'label','shape':[16],'dtype':'int32','batch_dim':0}],"
		"'parameters':[{'name':'w','shape':[8,4],'dtype':'float32'}],'operators':["
		"{'name':'head','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'scores'}]},"
		"{'name':'loss','type':'SparseSoftmaxCrossEntropyWithLogits','inputs':['scores','label'],"
		"'outputs':[{'name':'l'}]}],'outputs':['l']}");
	ck_assert(task_of(&f, "loss")->in[0].kept);
	ck_assert(task_of(&f, "head")->out[0].kept);
	ck_assert(task_of(&f, "head")->in[0].kept);
	ck_assert(!task_of(&f, "head")->in[1].kept);
	fixture_close(&f);
}
END_TEST

/* What is recomputed behind a view is recomputed with what the view shows. */
START_TEST(sets_go_through_views)
{
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'views',"
		"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}],"
		"'parameters':[{'name':'w','shape':[8,8],'dtype':'float32'}],'operators':["
		"{'name':'up','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}],'recompute':true},"
		"{'name':'view','type':'Reshape','inputs':['h'],'outputs':[{'name':'v'}],"
		"'attrs':{'shape':[128]}},"
		"{'name':'act','type':'GeLU','inputs':['v'],'outputs':[{'name':'a'}],'recompute':true},"
		"{'name':'again','type':'GeLU','inputs':['a'],'outputs':[{'name':'b'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['b'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}");
	ck_assert(task_of(&f, "up")->recomputed && task_of(&f, "act")->recomputed);
	ck_assert_uint_eq(task_of(&f, "up")->recompute_set, task_of(&f, "act")->recompute_set);
	ck_assert_uint_eq(task_of(&f, "up")->recompute_sets, 1);
	fixture_close(&f);
}
END_TEST

/* Names and arguments of the cells that are marked as a whole. */
static const char *told(struct fixture *f, const char *graph, enum ap_recompute setting)
{
	const struct ap_again_cell *cell;
	struct ap_str s;
	uint32_t n;

	f->step.recompute = setting;
	fixture_graph(f, graph);
	ap_recompute_cells(&f->ctx, f->graph, &f->step, &n, &cell);
	ap_str_init(&s, f->ctx.arena);
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s%s%s%s", i ? " " : "", cell[i].name, cell[i].keep_comm ? "+kept" : "",
			cell[i].regather ? "+again" : "", cell[i].slice ? "+parts" : "");
	return s.s;
}

/* Layers; the inner cell before the one around it; no layer in a cell that is told already. */
START_TEST(cells_that_are_told)
{
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910a");
	ck_assert_str_eq(told(&f, LAYERS("", ""), AP_RECOMPUTE_NONE), "");
	ck_assert_str_eq(told(&f, LAYERS("", ""), AP_RECOMPUTE_SELECTIVE), "");
	ck_assert_str_eq(told(&f, LAYERS("", ""), AP_RECOMPUTE_FULL), "net.blocks.0 net.blocks.1");
	ck_assert_str_eq(told(&f, LAYERS("", "'cells':[{'name':'net.blocks.0','recompute':true},"
		"{'name':'net.blocks.0.mlp','recompute':{'mp_comm_recompute':false}}],"),
		AP_RECOMPUTE_FULL), "net.blocks.0.mlp+kept net.blocks.0 net.blocks.1");
	f.step.recompute_regathers = f.step.recompute_slices = true;
	ck_assert_str_eq(told(&f, LAYERS("", "'cells':[{'name':'net','recompute':true}],"),
		AP_RECOMPUTE_FULL), "net+again+parts");
	f.step.training = false;
	ck_assert_str_eq(told(&f, LAYERS("", ""), AP_RECOMPUTE_FULL), "");
	fixture_close(&f);
}
END_TEST

/* An operator's own word goes before its cells', an inner cell's before an outer one's. */
START_TEST(operators_that_are_kept)
{
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910a");
	fixture_graph(&f, LAYERS(",'recompute':true", "'cells':[{'name':'net','recompute':true},"
		"{'name':'net.blocks.0.mlp','recompute':false}],"));
	ck_assert(ap_recompute_refused(f.graph, &f.graph->node[fixture_node(&f, "up0")]));
	ck_assert(!ap_recompute_refused(f.graph, &f.graph->node[fixture_node(&f, "act0")]));
	ck_assert(!ap_recompute_refused(f.graph, &f.graph->node[fixture_node(&f, "add0")]));
	ck_assert(!ap_recompute_refused(f.graph, &f.graph->node[fixture_node(&f, "in")]));
	fixture_close(&f);
}
END_TEST
