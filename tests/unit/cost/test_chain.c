/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of which a software makes one kernel, against figures of the a100-80 profile: 5 us a kernel,
 * 2039 GB/s * 0.75. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cost/chain.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

#define MIB (1048576 / 1529.25e9) /* seconds for each that is read or written */
#define START 5e-6

/* x [4096,1024] in float16, 8 MiB; with a vector added, an activation of it, and a product. */
#define GRAPH(cell, more) \
	"{'schema':'autopar-graph/1','name':'chain'," \
	"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[1024],'dtype':'float16'}," \
	"{'name':'w','shape':[1024,1024],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'bias','type':'BiasAdd','cell':'net.0','inputs':['x','b'],'outputs':[{'name':'h'}]}," \
	"{'name':'act','type':'GeLU','cell':'" cell "','inputs':['h'],'outputs':[{'name':'r'}]" more "}," \
	"{'name':'down','type':'MatMul','cell':'net.0','inputs':['r','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct chained {
	struct fixture f;
	struct ap_software software;
	const struct ap_task *task;
};

static void open_chained(struct chained *c, uint32_t chains, const char *graph)
{
	fixture_open(&c->f, 4, 4, "a100-80");
	c->software = *c->f.step.software;
	c->software.chains = chains;
	c->software.launch_s = 0;
	c->f.step.software = &c->software;
	fixture_graph(&c->f, graph);
	ap_tasks_make(&c->f.ctx, c->f.graph, &c->f.step, &c->task);
}

static struct ap_op_cost price(struct chained *c, const char *name, const char *cut)
{
	struct ap_pricer *pr = ap_pricer_create(c->f.ctx.arena, c->f.machine, &c->f.step);
	ap_id node = fixture_node(&c->f, name);
	int32_t count[AP_MAX_FACTOR];
	struct ap_placement p;
	struct ap_op_cost cost;

	fixture_counts(&c->f, node, cut, count);
	ap_placement_make(&c->f.graph->node[node].bound, count, 4, &p);
	ap_op_cost_make(pr, &c->task[node], &p, &cost);
	return cost;
}

/* Of the first operand of `to`, from cuts of dimension 0 into parts of dimension `dim`; -1: into the whole.
 * partial: as of ap_move_cost_make(). */
static struct ap_move_cost move_with(struct chained *c, const char *to, int dim, const struct ap_axes *partial)
{
	struct ap_pricer *pr = ap_pricer_create(c->f.ctx.arena, c->f.machine, &c->f.step);
	struct ap_layout a = {.rank = 2, .dim = {{4, 1}, {1, 1}}}, b = {.rank = 2, .dim = {{1, 1}, {1, 1}}};
	struct ap_move_cost cost;
	struct ap_flow flow;

	if (partial)
		a.dim[0] = (struct ap_cut_dim){1, 1};
	if (dim >= 0)
		b.dim[dim] = (struct ap_cut_dim){4, 1};
	ap_flow_make(c->f.graph, c->task, fixture_node(&c->f, to), 0, &c->f.step, &flow);
	ap_move_cost_make(pr, &flow, &a, &b, partial, &cost);
	return cost;
}

static struct ap_move_cost move(struct chained *c, const char *to, int dim)
{
	return move_with(c, to, dim, NULL);
}

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-9 * fabs(want), "got %.17g, want %.17g", got, want);
}

/* Each rank has 2 MiB. What the activation reads does not leave the kernel, but is written, since the backward
 * pass reads it; there its gradient stays within. */
START_TEST(a_bias_and_its_activation)
{
	struct chained apart, one;
	struct ap_op_cost c, d;

	open_chained(&apart, 0, GRAPH("net.0", ""));
	open_chained(&one, 1u << AP_CHAIN_BIAS_ACTIVATION, GRAPH("net.0", ""));
	c = price(&apart, "act", "A=4");
	d = price(&one, "act", "A=4");
	near(c.forward_s, START + 4 * MIB);
	near(d.forward_s, 2 * MIB);
	near(c.backward_s, START + 6 * MIB);
	near(d.backward_s, 4 * MIB);
	c = price(&apart, "bias", "b=4");
	d = price(&one, "bias", "b=4");
	near(d.forward_s, c.forward_s);
	fixture_close(&apart.f);
	fixture_close(&one.f);
}
END_TEST

/* A redistribution between the two costs what they save, there and back; a chain costs nothing where layouts
 * are equal. */
START_TEST(a_redistribution_parts_a_chain)
{
	struct chained apart, one;
	struct ap_move_cost a, b;

	open_chained(&apart, 0, GRAPH("net.0", ""));
	open_chained(&one, 1u << AP_CHAIN_COMPILER, GRAPH("net.0", ""));
	a = move(&apart, "act", 1);
	b = move(&one, "act", 1);
	ck_assert_double_gt(a.forward_s, 0);
	near(b.forward_s - a.forward_s, price(&apart, "act", "A=4").forward_s -
		price(&one, "act", "A=4").forward_s);
	near(b.backward_s - a.backward_s, price(&apart, "act", "A=4").backward_s -
		price(&one, "act", "A=4").backward_s);
	ck_assert_double_eq(move(&one, "act", 0).objective_s, 0);
	/* nor is there a chain to the product */
	near(move(&one, "down", 1).forward_s, move(&apart, "down", 1).forward_s);
	fixture_close(&apart.f);
	fixture_close(&one.f);
}
END_TEST

/* Where only gradients are redistributed, what flows there stays within the kernel. */
START_TEST(a_way_back_alone_parts_a_chain_there_only)
{
	struct ap_axes all = {.n = 1, .axis = {{.size = 4, .stride = 1}}};
	struct ap_move_cost a, b;
	struct chained apart, one;

	open_chained(&apart, 0, GRAPH("net.0", ""));
	open_chained(&one, 1u << AP_CHAIN_COMPILER, GRAPH("net.0", ""));
	apart.f.step.executor = one.f.step.executor = AP_EXECUTOR_GENERIC;
	a = move_with(&apart, "act", -1, &all);
	b = move_with(&one, "act", -1, &all);
	ck_assert_double_eq(b.forward_s, 0);
	ck_assert_double_gt(a.backward_s, 0);
	ck_assert_double_gt(b.backward_s, a.backward_s);
	fixture_close(&apart.f);
	fixture_close(&one.f);
}
END_TEST

/* None across layers, nor of an operator that was measured, nor where the software has another chain, nor
 * where two read what flows. */
START_TEST(what_is_no_chain)
{
	static const struct {
		const char *graph;
		enum ap_chain chain;
		bool is;
	} rows[] = {
		{GRAPH("net.0", ""), AP_CHAIN_BIAS_ACTIVATION, true},
		{GRAPH("net.0.inner", ""), AP_CHAIN_BIAS_ACTIVATION, true},
		{GRAPH("net.1", ""), AP_CHAIN_BIAS_ACTIVATION, false},
		{GRAPH("net", ""), AP_CHAIN_BIAS_ACTIVATION, false},
		{GRAPH("net.0", ",'time_s':{'forward':1e-3,'backward':1e-3}"), AP_CHAIN_BIAS_ACTIVATION, false},
		{GRAPH("net.0", ""), AP_CHAIN_BIAS_DROPOUT_ADD, false},
		{GRAPH("net.0", ""), AP_CHAIN_COMPILER, true},
		{GRAPH("net.0", "},{'name':'other','type':'ReLU','cell':'net.0','inputs':['h'],"
			"'outputs':[{'name':'o'}]"), AP_CHAIN_BIAS_ACTIVATION, false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chained c;
		ap_id node, from;

		open_chained(&c, 1u << rows[i].chain, rows[i].graph);
		node = fixture_node(&c.f, "act");
		ck_assert_msg((ap_chain_between(c.f.graph, ap_chain_nodes(&c.f.ctx, c.f.graph),
			1u << rows[i].chain, node, 0, &from) == AP_CHAIN_JOINED) == rows[i].is, "row %zu", i);
		ck_assert(c.task[node].joins == rows[i].is);
		fixture_close(&c.f);
	}
}
END_TEST

/* Scores are scaled, masked and normalised in one kernel, which reads them and writes what it makes: what lies
 * between is not kept, so neither written nor read. Attention reads keys in any order. */
START_TEST(attention_of_small_operators)
{
	static const char graph[] = "{'schema':'autopar-graph/1','name':'scores',"
		"'inputs':[{'name':'q','shape':[4,8,256,64],'dtype':'float16','batch_dim':0},"
		"{'name':'k','shape':[4,256,8,64],'dtype':'float16','batch_dim':0},"
		"{'name':'mask','shape':[4,1,256,256],'dtype':'float16','batch_dim':0}],"
		"'parameters':[{'name':'s','shape':[1],'dtype':'float16','trainable':false}],"
		"'operators':["
		"{'name':'turn','type':'Transpose','inputs':['k'],'outputs':[{'name':'t'}],"
		"'attrs':{'perm':[0,2,1,3]}},"
		"{'name':'qk','type':'BatchMatMul','inputs':['q','t'],'outputs':[{'name':'a'}],"
		"'attrs':{'transpose_b':true}},"
		"{'name':'scale','type':'Mul','inputs':['a','s'],'outputs':[{'name':'b'}]},"
		"{'name':'hide','type':'Add','inputs':['b','mask'],'outputs':[{'name':'c'}]},"
		"{'name':'soft','type':'Softmax','inputs':['c'],'outputs':[{'name':'d'}],'attrs':{'axis':[-1]}},"
		"{'name':'loss','type':'ReduceMean','inputs':['d'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}";
	struct chained c;
	/* a rank's scores: [1,8,256,256], 1 MiB; its mask an eighth */
	struct { const char *name; double mib, starts; } rows[] = {{"scale", 1, 1}, {"hide", 0.125, 0},
		{"soft", 1, 0}};

	open_chained(&c, 1u << AP_CHAIN_SOFTMAX | 1u << AP_CHAIN_STRIDES, graph);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double s = price(&c, rows[i].name, "A=4").forward_s;

		ck_assert_msg(fabs(s - rows[i].starts * START - rows[i].mib * MIB) < 1e-9, "%s: %g us",
			rows[i].name, 1e6 * s);
	}
	ck_assert_double_eq(price(&c, "turn", "A=4").forward_s, 0);
	fixture_close(&c.f);
	open_chained(&c, 0, graph);
	ck_assert_double_gt(price(&c, "turn", "A=4").forward_s, START);
	fixture_close(&c.f);
}
END_TEST

/* What is gathered for products that run beside it: all but one of the parts are hidden, there and back. */
START_TEST(gathered_beside_products)
{
	struct ap_layout a = {.rank = 2, .dim = {{4, 1}, {1, 1}}}, b = {.rank = 2, .dim = {{1, 1}, {1, 1}}};
	const char *reader[] = {"down", "act"};

	for (int i = 0; i < 2; i++) {
		struct ap_move_cost cost[2];

		for (int beside = 0; beside < 2; beside++) {
			struct chained c;
			struct ap_pricer *pr;
			struct ap_flow flow;

			open_chained(&c, 0, GRAPH("net.0", ""));
			c.f.step.executor = AP_EXECUTOR_GENERIC;
			c.f.step.product_overlap = beside;
			c.software.gather_overlap = 1;
			pr = ap_pricer_create(c.f.ctx.arena, c.f.machine, &c.f.step);
			ap_tasks_make(&c.f.ctx, c.f.graph, &c.f.step, &c.task);
			ap_flow_make(c.f.graph, c.task, fixture_node(&c.f, reader[i]), 0, &c.f.step, &flow);
			ap_move_cost_make(pr, &flow, &a, &b, NULL, &cost[beside]);
			fixture_close(&c.f);
		}
		ck_assert_double_gt(cost[0].forward_s, 0);
		near(cost[1].forward_s, cost[0].forward_s / (i == 0 ? 4 : 1));
		near(cost[1].backward_s, cost[0].backward_s / (i == 0 ? 4 : 1));
	}
}
END_TEST

/* An input of the network arrives before anything runs: no product is there to run beside its gathering. */
START_TEST(inputs_are_gathered_beside_nothing)
{
	struct chained c;

	open_chained(&c, 0, "{'schema':'autopar-graph/1','name':'first',"
		"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}],"
		"'parameters':[{'name':'w','shape':[1024,1024],'dtype':'float16'}],"
		"'operators':[{'name':'view','type':'Reshape','inputs':['x'],'outputs':[{'name':'v'}],"
		"'attrs':{'shape':[4096,1024]}},"
		"{'name':'up','type':'MatMul','inputs':['v','w'],'outputs':[{'name':'h'}]},"
		"{'name':'down','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]},"
		"{'name':'sum','type':'Add','inputs':['h','y'],'outputs':[{'name':'z'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}");
	c.f.step.product_overlap = true;
	ap_tasks_make(&c.f.ctx, c.f.graph, &c.f.step, &c.task);
	ck_assert(!c.task[fixture_node(&c.f, "view")].in[0].beside);
	ck_assert(!c.task[fixture_node(&c.f, "down")].in[0].beside);
	ck_assert(c.task[fixture_node(&c.f, "up")].in[0].beside);
	fixture_close(&c.f);
}
END_TEST

/* Products of x [4096,1024] with weights of 1024, 512 and 512 rows, and with one of 2048; words of cells and
 * operators are put in. */
#define OPERATOR(name, cell, x, w, more) \
	"{'name':'" name "','type':'MatMul','cell':'" cell "','inputs':['" x "','" w "']," \
	"'outputs':[{'name':'" name ".y'}],'attrs':{'transpose_b':true}" more "},"
#define MEAN(name) "{'name':'" name ".l','type':'ReduceMean','inputs':['" name ".y'],'outputs':[{'name':'" name ".s'}]},"
#define SUM(a, b, c) "{'name':'" c "+','type':'Add','inputs':['" a "','" b "'],'outputs':[{'name':'" c "'}]}"
#define PRODUCTS(key_cell, key_of, key_more, rest) \
	"{'schema':'autopar-graph/1','name':'products'," \
	"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[1024],'dtype':'float16'}," \
	"{'name':'wq','shape':[1024,1024],'dtype':'float16'},{'name':'wk','shape':[512,1024],'dtype':'float16'}," \
	"{'name':'wv','shape':[512,1024],'dtype':'float16'},{'name':'all','shape':[2048,1024],'dtype':'float16'}," \
	"{'name':'g','shape':[512],'dtype':'float16'}]," \
	"'operators':[{'name':'bias','type':'BiasAdd','cell':'net.0','inputs':['x','b'],'outputs':[{'name':'h'}]}," \
	"{'name':'act','type':'ReLU','cell':'net.0','inputs':['x'],'outputs':[{'name':'r'}]}," \
	OPERATOR("q", "net.0.att.q", "h", "wq", "") OPERATOR("k", key_cell, key_of, "wk", key_more) \
	OPERATOR("v", "net.0.att.v", "h", "wv", "") OPERATOR("one", "net.0.other.one", "h", "all", "") \
	MEAN("q") MEAN("v") MEAN("one") rest SUM("q.s", "k.s", "a") "," SUM("a", "v.s", "b.") "," SUM("b.", "one.s", "l") \
	"],'outputs':['l']}"
#define ALONE "{'name':'k.l','type':'ReduceMean','inputs':['k.y'],'outputs':[{'name':'k.s'}]},"
#define NORMED "{'name':'k.n','type':'RmsNorm','cell':'net.0.att.n','inputs':['k.y','g']," \
	"'outputs':[{'name':'k.z'},{'name':'k.t'}]}," \
	"{'name':'k.l','type':'ReduceMean','inputs':['k.z'],'outputs':[{'name':'k.s'}]},"

/* Together they take what one product of all rows takes, there and back, whatever it is cut in. */
START_TEST(products_of_one_activation)
{
	static const char *const cuts[] = {"m=4", "n=4", "k=4", "m=2 n=2"};
	struct chained apart, one;

	open_chained(&apart, 1u << AP_CHAIN_STRIDES, PRODUCTS("net.0.att.k", "h", "", ALONE));
	open_chained(&one, 1u << AP_CHAIN_PRODUCTS, PRODUCTS("net.0.att.k", "h", "", ALONE));
	one.software.launch_s = apart.software.launch_s = 1e-4;
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		struct ap_op_cost q = price(&one, "q", cuts[i]), k = price(&one, "k", cuts[i]),
			v = price(&one, "v", cuts[i]), all = price(&one, "one", cuts[i]);

		near(q.forward_s + k.forward_s + v.forward_s, all.forward_s);
		near(q.backward_s + k.backward_s + v.backward_s, all.backward_s);
		near(q.forward_launch_s, all.forward_launch_s / 2);
		near(k.backward_launch_s, all.backward_launch_s / 4);
		near(all.forward_s, price(&apart, "one", cuts[i]).forward_s);
		ck_assert_double_gt(price(&apart, "q", cuts[i]).forward_s, q.forward_s);
		ck_assert_double_gt(price(&apart, "q", cuts[i]).backward_s, q.backward_s);
	}
	fixture_close(&apart.f);
	fixture_close(&one.f);
}
END_TEST

/* Not in another part of a layer, of another activation, with a norm behind, or measured. */
START_TEST(what_is_no_one_product)
{
	static const struct { const char *graph; double q, k; } rows[] = {
		{PRODUCTS("net.0.att.k", "h", "", ALONE), 0.5, 0.25},
		{PRODUCTS("net.0.ffn.k", "h", "", ALONE), 1024.0 / 1536, 0},
		{PRODUCTS("net.0.att.low.k", "h", "", ALONE), 1024.0 / 1536, 0},
		{PRODUCTS("net.0.att.k", "r", "", ALONE), 1024.0 / 1536, 0},
		{PRODUCTS("net.0.att.k", "h", "", NORMED), 1024.0 / 1536, 0},
		{PRODUCTS("net.0.att.k", "h", ",'time_s':{'forward':1e-3,'backward':1e-3}", ALONE), 1024.0 / 1536, 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chained c;

		open_chained(&c, 1u << AP_CHAIN_PRODUCTS, rows[i].graph);
		near(c.task[fixture_node(&c.f, "q")].part, rows[i].q);
		ck_assert_msg(c.task[fixture_node(&c.f, "k")].part == rows[i].k, "row %zu", i);
		ck_assert_double_eq(c.task[fixture_node(&c.f, "one")].part, 0);
		ck_assert_double_eq(c.task[fixture_node(&c.f, "bias")].part, 0);
		fixture_close(&c.f);
	}
}
END_TEST
