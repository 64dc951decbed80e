/* SPDX-License-Identifier: Apache-2.0 */
/* Operator-strategy files, with and without one that MindSpore saved. */
#include "base/json_write.h"
#include "base/vec.h"
#include "ckpt/op_strategy.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "json_at.h"
#include "pipe_test.h"

#define NET \
	"{'schema':'autopar-graph/1','name':'net'," \
	"'inputs':[{'name':'x','shape':[16,4,8],'dtype':'float32','batch_dim':0}," \
	"{'name':'label','shape':[16],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'w1','shape':[32,16],'dtype':'float32'}," \
	"{'name':'b1','shape':[16],'dtype':'float32'}," \
	"{'name':'w2','shape':[16,8],'dtype':'float32'}]," \
	"'constants':[{'name':'one','shape':[],'dtype':'float32'}," \
	"{'name':'zero','shape':[],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'D/net-Net/Reshape-op0','type':'Reshape','inputs':['x']," \
	"'outputs':[{'name':'flat','shape':[16,32]}]}," \
	"{'name':'D/net-Net/fc-Dense/MatMul-op0','type':'MatMul','inputs':['flat','w1']," \
	"'outputs':[{'name':'h'}]%s}," \
	"{'name':'D/net-Net/fc-Dense/BiasAdd-op0','type':'BiasAdd','inputs':['h','b1']," \
	"'outputs':[{'name':'i'}],'cell':'net.fc'}," \
	"{'name':'D/net-Net/fc-Dense/MatMul-op1','type':'MatMul','inputs':['i','w2']," \
	"'outputs':[{'name':'logits'}]}," \
	"{'name':'D/net-Net/OneHot-op0','type':'OneHot','inputs':['label','one','zero']," \
	"'attrs':{'depth':8},'outputs':[{'name':'hot','shape':[16,8]}]}," \
	"{'name':'D/net-Net/Cast-op0','type':'Cast','inputs':['logits']," \
	"'attrs':{'dst_type':'float32'},'outputs':[{'name':'wide'}]}," \
	"{'name':'D/net-Net/Mul-op0','type':'Mul','inputs':['wide','hot'],'outputs':[{'name':'m'}]}," \
	"{'name':'D/net-Net/ReduceMean-op0','type':'ReduceMean','inputs':['m']," \
	"'outputs':[{'name':'l'}]}],%s" \
	"'outputs':['l']}"

#define DEALT ",'in_strategy':[[2,4],[4,1]],'out_strategy':[[8,1]]"

/* MatMul-op0 sums over four devices, MatMul-op1 has its columns on two of eight. */
static void open_net(struct fixture *f, const char *matmul, const char *cells)
{
	char text[4096];

	fixture_open(f, 8, 8, "ascend910a");
	snprintf(text, sizeof text, NET, matmul, cells);
	fixture_graph(f, text);
}

static void make_net(struct fixture *f, struct ap_plan *out)
{
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (ap_id i = 0; i < f->graph->nnode; i++)
		counts[i] = pipe_counts(f, i, "");
	counts[1] = pipe_counts(f, 1, "m=2 k=4");
	counts[fixture_node(f, "D/net-Net/fc-Dense/MatMul-op1")] =
		pipe_counts(f, fixture_node(f, "D/net-Net/fc-Dense/MatMul-op1"), "n=2");
	counts[fixture_node(f, "D/net-Net/OneHot-op0")] =
		pipe_counts(f, fixture_node(f, "D/net-Net/OneHot-op0"), "A=8");
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 34, out);
}

static void plan_of(struct fixture *f, const char *matmul, const char *cells, struct ap_plan *out)
{
	open_net(f, matmul, cells);
	make_net(f, out);
}

static const char *file_of(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t)
{
	struct ap_str s = new_str(ctx);

	ap_op_strategy_write(ctx, p, t, to_str, &s);
	return s.s;
}

/* A document from text in which ' stands for ". */
static const struct ap_json *doc_of(struct ap_ctx *ctx, const char *text)
{
	char *copy = ap_arena_strdup(ctx->arena, text);
	struct ap_json *doc;

	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	ck_assert_int_eq(ap_json_parse(ctx, "saved.json", copy, strlen(copy), 0, &doc), AP_OK);
	return doc;
}

static const struct ap_op_template *template_of(struct ap_ctx *ctx, const char *text)
{
	const struct ap_op_template *t;

	ck_assert_int_eq(ap_op_template_read(ctx, doc_of(ctx, text), &t), AP_OK);
	return t;
}

/* All messages, a line each. */
static const char *said(struct ap_ctx *ctx)
{
	struct ap_str s = new_str(ctx);

	ap_diag_render(ctx->diag, AP_NOTE, 20, &s);
	return s.s;
}

/* All stages are in one file, what sends between them is not; names are in order. */
START_TEST(all_operators)
{
	struct ap_plan plan;
	struct fixture f;

	open_pipe(&f, &plan);
	ck_assert_str_eq(file_of(&f.ctx, &plan, NULL),
		"{\n"
		" \"current_stage\": 0,\n"
		" \"parallel_out_strategy_item\": {},\n"
		" \"parallel_strategy_item\": {\n"
		"  \"Default/_VirtualDataset-op0\": {\"parallel_strategy\": [[4, 1]], \"stage\": 0},\n"
		"  \"bias\": {\"parallel_strategy\": [[1, 1], [1]], \"stage\": 0},\n"
		"  \"down\": {\"parallel_strategy\": [[4, 1], [1, 1]], \"stage\": 0},\n"
		"  \"loss\": {\"parallel_strategy\": [[1, 1]], \"stage\": 0},\n"
		"  \"up\": {\"parallel_strategy\": [[2, 1], [1, 2]], \"stage\": 0}\n"
		" }\n"
		"}\n");
	fixture_close(&f);
}
END_TEST

static const char *at(struct fixture *f, const char *file, const char *map, const char *name)
{
	struct ap_json *doc;
	const struct ap_jv *v;
	struct ap_str s = new_str(&f->ctx);
	struct ap_jw w;

	ck_assert_int_eq(ap_json_parse(&f->ctx, "out.json", file, strlen(file), 0, &doc), AP_OK);
	v = ap_jv_get(ap_json_root(doc), map);
	v = v && name ? ap_jv_get(v, name) : v;
	if (!v)
		return "";
	ap_jw_str_init(&w, &s, 0);
	json_compact(&w, doc, v);
	return s.s;
}

#define STRATEGY "parallel_strategy_item"
#define LAYOUT "parallel_layout_value_item"
#define OUT_STRATEGY "parallel_out_strategy_item"
#define OUT_LAYOUT "parallel_out_layout_value_item"

/* Reshape has its input's cut, scalars have empty vectors, Cast is left out. */
START_TEST(operators_of_all_kinds)
{
	struct ap_plan plan;
	struct fixture f;
	const char *file;

	plan_of(&f, "", "", &plan);
	file = file_of(&f.ctx, &plan, NULL);
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/Reshape-op0"),
		"{\"parallel_strategy\":[[1,1,1]],\"stage\":0}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/OneHot-op0"),
		"{\"parallel_strategy\":[[8,1],[],[]],\"stage\":0}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/Cast-op0"), "");
	ck_assert_str_eq(at(&f, file, STRATEGY, "Default/_VirtualDataset-op0"),
		"{\"parallel_strategy\":[[8,1,1],[8]],\"stage\":0}");
	ck_assert_str_eq(at(&f, file, OUT_STRATEGY, NULL), "{}");
	ck_assert_str_eq(at(&f, file, LAYOUT, NULL), "");
	f.step.full_batch = true;
	ck_assert_str_eq(at(&f, file_of(&f.ctx, &plan, NULL), STRATEGY, "Default/_VirtualDataset-op0"),
		"{\"parallel_strategy\":[[1,1,1],[1]],\"stage\":0}");
	fixture_close(&f);
}
END_TEST

/* What is dealt is said of the result. */
START_TEST(results)
{
	struct ap_plan plan;
	struct fixture f;

	plan_of(&f, DEALT, "", &plan);
	ck_assert_str_eq(at(&f, file_of(&f.ctx, &plan, NULL), OUT_STRATEGY, NULL),
		"{\"D/net-Net/fc-Dense/MatMul-op0\":{\"parallel_strategy\":[[8,1]],\"stage\":0}}");
	fixture_close(&f);
}
END_TEST

/* MindSpore puts "recompute_" before the scopes of cells that are recomputed. */
START_TEST(recomputed_cells)
{
	struct ap_plan plan;
	struct fixture f;
	const char *file;

	plan_of(&f, "", "'cells':[{'name':'net.fc','recompute':true}],", &plan);
	file = file_of(&f.ctx, &plan, NULL);
	ck_assert_str_eq(at(&f, file, STRATEGY, "recompute_D/net-Net/fc-Dense/BiasAdd-op0"),
		"{\"parallel_strategy\":[[1,1],[1]],\"stage\":0}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/fc-Dense/BiasAdd-op0"), "");
	ck_assert_str_ne(at(&f, file, STRATEGY, "D/net-Net/Mul-op0"), "");
	fixture_close(&f);
}
END_TEST

/* No strategy has parts that differ between every second device. */
START_TEST(inputs_in_layouts)
{
	const struct ap_arrival arrival[] = {{0, 4, 2}, {0, 1, 0}};
	struct ap_plan plan;
	struct fixture f;
	const char *file;

	open_net(&f, "", "");
	f.step.arrival = arrival;
	f.step.narrival = 2;
	make_net(&f, &plan);
	file = file_of(&f.ctx, &plan, NULL);
	ck_assert_str_eq(at(&f, file, LAYOUT, NULL),
		"{\"Default/_VirtualDataset-op0\":{"
		"\"0\":{\"alias_name\":[\"axis1\",\"axis0\"],\"dev_matrix\":[4,2],"
		"\"interleaved_parallel\":false,\"tensor_map\":[[1],[-1],[-1]]},"
		"\"1\":{\"alias_name\":[\"axis1\",\"axis0\"],\"dev_matrix\":[4,2],"
		"\"interleaved_parallel\":false,\"tensor_map\":[[-1]]}}}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "Default/_VirtualDataset-op0"), "");
	ck_assert_str_ne(at(&f, file, STRATEGY, "D/net-Net/Mul-op0"), "");
	fixture_close(&f);
}
END_TEST

/* MindSpore takes them in the order of their keys as texts: of 101 the third is "10", the last "99". */
START_TEST(many_inputs_in_layouts)
{
	enum { MANY = 101 };
	struct ap_arrival arrival[MANY];
	struct ap_plan plan;
	struct fixture f;
	struct ap_str text;
	const int32_t *counts[1];
	const char *file;

	fixture_open(&f, 8, 8, "ascend910a");
	text = new_str(&f.ctx);
	ap_str_add(&text, "{'schema':'autopar-graph/1','name':'many','inputs':[");
	for (int i = 0; i < MANY; i++)
		ap_str_addf(&text, "%s{'name':'x%d','shape':[16],'dtype':'float32','batch_dim':0}",
			i ? "," : "", i);
	ap_str_add(&text, "],'operators':[{'name':'D/AddN-op0','type':'AddN','inputs':[");
	for (int i = 0; i < MANY; i++)
		ap_str_addf(&text, "%s'x%d'", i ? "," : "", i);
	ap_str_add(&text, "],'outputs':[{'name':'y'}]}],'outputs':['y']}");
	fixture_graph(&f, text.s);
	for (int i = 0; i < MANY; i++)
		arrival[i] = (struct ap_arrival){0, i == 2 || i == MANY - 1 ? 4 : 1, 2};
	f.step.arrival = arrival;
	f.step.narrival = MANY;
	counts[0] = pipe_counts(&f, 0, "");
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 34, &plan);
	file = at(&f, file_of(&f.ctx, &plan, NULL), LAYOUT, "Default/_VirtualDataset-op0");
#define IS(key, map) ck_assert(strstr(file, "\"" key "\":{\"alias_name\":[\"axis1\",\"axis0\"]," \
	"\"dev_matrix\":[4,2],\"interleaved_parallel\":false,\"tensor_map\":[[" map "]]}"))
	IS("0", "-1");
	IS("1", "-1");
	IS("10", "1");
	IS("100", "-1");
	IS("2", "-1");
	IS("98", "-1");
	IS("99", "1");
	fixture_close(&f);
}
END_TEST

#define V(name, vectors) "'" name "':{'parallel_strategy':" vectors ",'stage':0}"

/* In MindSpore's order and numbers, another cell around all, with what only MindSpore has. */
#define SAVED \
	"{'current_stage':0,'parallel_out_strategy_item':{},'parallel_strategy_item':{" \
	V("D/_VirtualDataset-op4", "[[1,1,1],[1]]") "," \
	V("D/VirtualOutput-op0", "[[4]]") "," \
	V("D/net-Net/fc-Dense/MatMul-op7", "[[1,1],[1,1]]") "," \
	V("D/net-Net/fc-Dense/MatMul-op12", "[[1,1],[1,1]]") "," \
	V("recompute_D/net-Net/fc-Dense/BiasAdd-op0", "[[1,1],[1]]") "," \
	V("D/net-Net/Mul-op2", "[[1,1],[1,1]]") "," \
	V("D/net-Net/OneHot-op0", "[[1,1],[],[]]") "," \
	V("D/net-Net/ReduceMean-op1", "[[1,1]]") "," \
	V("D/net-Net/Reshape-op0", "[[2,1,1]]") "," \
	V("D/net-Net/Reshape-op1", "[[4,1]]") "}}"

START_TEST(in_the_names_of_a_template)
{
	const struct ap_op_template *t;
	struct ap_plan plan;
	struct fixture f;

	plan_of(&f, "", "", &plan);
	t = template_of(&f.ctx, SAVED);
	ck_assert_uint_eq(t->n, 10);
	ck_assert_int_eq(ap_op_template_check(&f.ctx, t, &plan), AP_OK);
	ck_assert_str_eq(said(&f.ctx), "autopar-plan: warning: saved.json: 1 names begin with "
		"\"recompute_\" where the plan does not recompute their cell, or do not where it does; "
		"MindSpore will ask for others, unless the file was saved with the calls of recompute() that "
		"the training makes [op-strategy-recompute]\n"
		"autopar-plan: note: saved.json: 4 of 10 names have other numbers than "
		"the plan's; they were matched by scope and type, in the order of their numbers "
		"[op-strategy-numbers]\n");
	ck_assert_str_eq(file_of(&f.ctx, &plan, t),
		"{\n"
		" \"current_stage\": 0,\n"
		" \"parallel_out_strategy_item\": {},\n"
		" \"parallel_strategy_item\": {\n"
		"  \"D/_VirtualDataset-op4\": {\"parallel_strategy\": [[8, 1, 1], [8]], \"stage\": 0},\n"
		"  \"D/VirtualOutput-op0\": {\"parallel_strategy\": [[4]], \"stage\": 0},\n"
		"  \"D/net-Net/fc-Dense/MatMul-op7\": "
		"{\"parallel_strategy\": [[2, 4], [4, 1]], \"stage\": 0},\n"
		"  \"D/net-Net/fc-Dense/MatMul-op12\": "
		"{\"parallel_strategy\": [[1, 1], [1, 2]], \"stage\": 0},\n"
		"  \"recompute_D/net-Net/fc-Dense/BiasAdd-op0\": "
		"{\"parallel_strategy\": [[1, 1], [1]], \"stage\": 0},\n"
		"  \"D/net-Net/Mul-op2\": {\"parallel_strategy\": [[1, 1], [1, 1]], \"stage\": 0},\n"
		"  \"D/net-Net/OneHot-op0\": {\"parallel_strategy\": [[8, 1], [], []], \"stage\": 0},\n"
		"  \"D/net-Net/ReduceMean-op1\": {\"parallel_strategy\": [[1, 1]], \"stage\": 0},\n"
		"  \"D/net-Net/Reshape-op0\": {\"parallel_strategy\": [[2, 1, 1]], \"stage\": 0},\n"
		"  \"D/net-Net/Reshape-op1\": {\"parallel_strategy\": [[4, 1]], \"stage\": 0}\n"
		" }\n"
		"}\n");
	fixture_close(&f);
}
END_TEST

/* Where the template has layouts the plan is said in layouts, for they go before strategies. */
START_TEST(in_the_forms_of_a_template)
{
#define L(dev, map) "{'alias_name':['a','b'],'dev_matrix':" dev ",'interleaved_parallel':false," \
	"'tensor_map':" map "}"
	static const char text[] = "{'parallel_layout_value_item':{"
		"'D/net-Net/fc-Dense/MatMul-op0':{'0':" L("[8,1]", "[[1],[0]]") ",'1':"
		L("[8,1]", "[[0],[-1]]") "}},"
		"'parallel_strategy_item':{" V("D/net-Net/fc-Dense/MatMul-op0", "[]") ","
		V("D/net-Net/fc-Dense/MatMul-op1", "[[1,1],[1,1]]") ","
		V("D/net-Net/fc-Dense/BiasAdd-op0", "[[1,1],[1]]") ","
		V("D/net-Net/Mul-op0", "[[1,1],[1,1]]") "," V("D/net-Net/OneHot-op0", "[[1,1],[],[]]") ","
		V("D/net-Net/ReduceMean-op0", "[[1,1]]") "," V("D/net-Net/Reshape-op0", "[[2,1,1]]") "}}";
	const struct ap_op_template *t;
	struct ap_plan plan;
	struct fixture f;
	const char *file;

	plan_of(&f, DEALT, "", &plan);
	t = template_of(&f.ctx, text);
	ck_assert_int_eq(ap_op_template_check(&f.ctx, t, &plan), AP_OK);
	file = file_of(&f.ctx, &plan, t);
	ck_assert_str_eq(at(&f, file, LAYOUT, "D/net-Net/fc-Dense/MatMul-op0"),
		"{\"0\":{\"alias_name\":[\"axis1\",\"axis0\"],\"dev_matrix\":[2,4],"
		"\"interleaved_parallel\":false,\"tensor_map\":[[1],[0]]},"
		"\"1\":{\"alias_name\":[\"axis1\",\"axis0\"],\"dev_matrix\":[2,4],"
		"\"interleaved_parallel\":false,\"tensor_map\":[[0],[-1]]}}");
	ck_assert_str_eq(at(&f, file, OUT_LAYOUT, "D/net-Net/fc-Dense/MatMul-op0"),
		"{\"0\":{\"alias_name\":[\"axis1\",\"axis0\"],\"dev_matrix\":[2,4],"
		"\"interleaved_parallel\":false,\"tensor_map\":[[1,0],[-1]]}}");
	ck_assert_str_eq(at(&f, file, OUT_STRATEGY, NULL), "{}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/fc-Dense/MatMul-op0"),
		"{\"parallel_strategy\":[],\"stage\":0}");
	ck_assert_str_eq(at(&f, file, STRATEGY, "D/net-Net/fc-Dense/MatMul-op1"),
		"{\"parallel_strategy\":[[1,1],[1,2]],\"stage\":0}");
	fixture_close(&f);
}
END_TEST

static const char *const unmatched[] = {
	"autopar-plan: error: saved.json:1:60: /parallel_strategy_item/D~1net-Net~1fc-Dense~1MatMul-op1 "
	"(operator \"D/net-Net/fc-Dense/MatMul-op1\"): has vectors of these lengths: 2, 2, 1; operator "
	"\"D/net-Net/fc-Dense/MatMul-op1\" of the plan takes: 2, 2 [op-strategy-form]",
	"autopar-plan: error: saved.json:1:220: /parallel_strategy_item/D~1net-Net~1fc-Dense~1BiasAdd-op1 "
	"(operator \"D/net-Net/fc-Dense/BiasAdd-op1\"): no operator of the plan has this name; the graph has "
	"to be of the network that the file was saved of [op-strategy-operators]",
	"autopar-plan: warning: saved.json:1:288: /parallel_strategy_item/D~1_VirtualDataset-op0 "
	"(operator \"D/_VirtualDataset-op0\"): does not take what the graph's inputs are; what is said of it "
	"stays as it was saved [op-strategy-inputs]",
	"autopar-plan: error: saved.json:1:1: no name for operator \"D/net-Net/Reshape-op0\" of the plan "
	"[op-strategy-operators]",
	"autopar-plan: error: saved.json:1:1: no name for operator \"D/net-Net/fc-Dense/MatMul-op0\" of the "
	"plan [op-strategy-operators]",
};

/* Fewer operators of a scope and type than names: by their numbers; who is alone is named. */
START_TEST(names_that_do_not_match)
{
	static const char text[] = "{'parallel_strategy_item':{"
		V("D/net-Net/fc-Dense/MatMul-op1", "[[1,1],[1,1],[1]]") ","
		V("D/net-Net/fc-Dense/BiasAdd-op0", "[[1,1],[1]]") ","
		V("D/net-Net/fc-Dense/BiasAdd-op1", "[[1,1],[1]]") ","
		V("D/_VirtualDataset-op0", "[[1,1,1]]") ","
		V("D/net-Net/Mul-op0", "[[1,1],[1,1]]") "," V("D/net-Net/OneHot-op0", "[[1,1],[],[]]") ","
		V("D/net-Net/ReduceMean-op0", "[[1,1]]") "}}";
	const struct ap_op_template *t;
	struct ap_plan plan;
	struct fixture f;
	char *line;

	plan_of(&f, "", "", &plan);
	t = template_of(&f.ctx, text);
	ck_assert_int_eq(ap_op_template_check(&f.ctx, t, &plan), AP_MEANING);
	line = ap_arena_strdup(f.ctx.arena, said(&f.ctx));
	for (size_t i = 0; i < AP_COUNT(unmatched); i++) {
		char *end = strchr(line, '\n');

		ck_assert_ptr_nonnull(end);
		*end = '\0';
		ck_assert_str_eq(line, unmatched[i]);
		line = end + 1;
	}
	ck_assert_str_eq(line, "");
	fixture_close(&f);
}
END_TEST

static const struct {
	const char *text, *check, *says;
} bad[] = {
	{"[]", "key-type", "should be an object"},
	{"{}", "op-strategy-empty", "names no operator"},
	{"{'parallel_strategy_item':{}}", "op-strategy-empty", "names no operator"},
	{"{'parallel_layout_item':{},'parallel_strategy_item':{}}", "op-strategy-kind",
		"this is a strategy checkpoint; operator strategies are what save_operator_strategy_file() "
		"writes"},
	{"{'parallel_strategy_item':[]}", "key-type", "expected an object, got an array"},
	{"{'parallel_strategy_item':{'a':[[1]]}}", "key-type", "should be an object"},
	{"{'parallel_strategy_item':{'a':{'parallel_strategy':[[1]]}}}", "key-missing", "no key \"stage\""},
	{"{'parallel_strategy_item':{'a':{'stage':0}}}", "key-missing", "no key \"parallel_strategy\""},
	{"{'parallel_strategy_item':{'a':{'stage':0,'parallel_strategy':[1]}}}", "key-type",
		"should be an array"},
	{"{'parallel_strategy_item':{'a':{'stage':0,'parallel_strategy':[[0]]}}}", "key-range", "0"},
	{"{'parallel_layout_value_item':{'a':{'1':{}}}}", "key-missing", "no key \"0\""},
	{"{'parallel_layout_value_item':{'a':{'0':{'alias_name':[],'dev_matrix':[],'tensor_map':[]}}}}",
		"key-missing", "\"interleaved_parallel\" should be true or false"},
	{"{'parallel_layout_value_item':{'a':{'0':{'alias_name':['a'],'dev_matrix':[2,4],'tensor_map':[],"
		"'interleaved_parallel':false}}}}", "op-strategy-axis", "1 names; dev_matrix has 2 axes"},
	{"{'parallel_layout_value_item':{'a':{'0':{'alias_name':['a'],'dev_matrix':[2],'tensor_map':[[1]],"
		"'interleaved_parallel':false}}}}", "key-range", "1"},
	{"{'parallel_layout_value_item':{'a':{'0':{'alias_name':['a'],'dev_matrix':[2],"
		"'tensor_map':[[0],[0]],'interleaved_parallel':false}}}}", "op-strategy-axis",
		"axis 0 is there twice; an axis cuts one dimension"},
};

START_LOOP_TEST(faults_of_a_template, AP_COUNT(bad))
{
	struct ap_ctx ctx = new_ctx();
	const struct ap_op_template *t;
	const char *check = NULL, *text;

	ck_assert_int_eq(ap_op_template_read(&ctx, doc_of(&ctx, bad[_i].text), &t), AP_MEANING);
	text = last_message(&ctx, &check);
	check = NULL;
	ap_diag_text(ctx.diag, 0, NULL, &check);
	ck_assert_str_eq(check, bad[_i].check);
	ck_assert_msg(strstr(text, bad[_i].says) != NULL, "%s", text);
	free_ctx(&ctx);
}
END_TEST
