/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy checkpoint of real plans, and checkpoints held against a graph. */
#include "base/file.h"
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "ckpt/ckpt_pb.h"
#include "emit_test.h"
#include "fixture.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/space.h"

/* The worked example of the format, with a bias and a second, frozen product behind it. */
#define NET \
	"{'schema':'autopar-graph/1','name':'net'," \
	"'inputs':[{'name':'x','shape':[128,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'net.fc1.weight','shape':[64,32],'dtype':'float32'}," \
	"{'name':'net.fc1.bias','shape':[32],'dtype':'float32'}," \
	"{'name':'frozen','shape':[32,16],'dtype':'float32','trainable':false}]," \
	"'operators':[" \
	"{'name':'mul','type':'MatMul','inputs':['x','net.fc1.weight'],'outputs':[{'name':'h'}]}," \
	"{'name':'bias','type':'BiasAdd','inputs':['h','net.fc1.bias'],'outputs':[{'name':'y'}]}," \
	"{'name':'out','type':'MatMul','inputs':['y','frozen'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static void make_plan(struct fixture *f, const char *const (*cuts)[2], size_t n,
	struct ap_plan *out)
{
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (ap_id i = 0; i < f->graph->nnode; i++) {
		int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

		fixture_counts(f, i, "", count);
		for (size_t c = 0; c < n; c++)
			if (!strcmp(f->graph->node[i].name, cuts[c][0]))
				fixture_counts(f, i, cuts[c][1], count);
		counts[i] = count;
	}
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 34, out);
}

static const char *const net_cuts[][2] = {{"mul", "m=2 k=2"}};

static void open_net(struct fixture *f, struct ap_plan *p)
{
	fixture_open(f, 8, 8, "ascend910a");
	f->step.optimizer_sharding = true;
	f->step.shard_threshold_bytes = 0;
	f->step.optimizer = ap_optimizer_find("momentum");
	fixture_graph(f, NET);
	make_plan(f, net_cuts, 1, p);
}

static const char *json_of(struct fixture *f, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(&f->ctx);

	ap_ckpt_write_json(c, to_str, &s);
	return s.s;
}

static struct ap_str pb_of(struct fixture *f, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(&f->ctx);

	ap_ckpt_write_pb(&f->ctx, c, to_str, &s);
	return s;
}

START_TEST(worked_example_of_the_format)
{
	static const char weight[] =
		"{\"dev_matrix\":[2,2,2],\"field\":0,\"opt_weight_shard_size\":-1,"
		"\"opt_weight_shard_step\":1,\"tensor_map\":[1,-1],\"tensor_shape\":[64,32]}";
	static const char bias[] =
		"{\"dev_matrix\":[8],\"field\":0,\"opt_weight_shard_size\":-1,"
		"\"opt_weight_shard_step\":1,\"tensor_map\":[-1],\"tensor_shape\":[32]}";
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;

	open_net(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	ck_assert_str_eq(json_of(&f, &c),
		ap_arena_printf(f.ctx.arena,
			"{\"current_stage\":1,\"parallel_layout_item\":{"
			"\"moments.net.fc1.bias\":%s,\"moments.net.fc1.weight\":%s,"
			"\"net.fc1.bias\":%s,\"net.fc1.weight\":%s},"
			"\"parallel_strategy_item\":{"
			"\"BiasAdd_net.fc1.bias\":{\"parallel_strategy\":[[1,1],[1]],\"stage\":0},"
			"\"MatMul_net.fc1.weight\":"
			"{\"parallel_strategy\":[[2,2],[2,1]],\"stage\":0}}}\n",
			bias, weight, bias, weight));
	fixture_close(&f);
}
END_TEST

/* Strategy, optimizer shard size -> dev_matrix, map, step and size of the weight, as the format's
 * page works them out. */
static const struct worked {
	const char *cut;
	int64_t shard_size;
	const char *weight;
} worked[] = {
	{"m=4 n=2", -1,
		"{\"dev_matrix\":[4,2],\"field\":0,\"opt_weight_shard_size\":-1,"
		"\"opt_weight_shard_step\":2,\"tensor_map\":[-1,0],\"tensor_shape\":[64,32]}"},
	{"m=8", 4,
		"{\"dev_matrix\":[8],\"field\":0,\"opt_weight_shard_size\":4,"
		"\"opt_weight_shard_step\":1,\"tensor_map\":[-1,-1],\"tensor_shape\":[64,32]}"},
	{"k=8", -1,
		"{\"dev_matrix\":[8],\"field\":0,\"opt_weight_shard_size\":0,"
		"\"opt_weight_shard_step\":0,\"tensor_map\":[0,-1],\"tensor_shape\":[64,32]}"},
	{"", 16,
		"{\"dev_matrix\":[8],\"field\":0,\"opt_weight_shard_size\":8,"
		"\"opt_weight_shard_step\":1,\"tensor_map\":[-1,-1],\"tensor_shape\":[64,32]}"},
};

START_LOOP_TEST(layouts_of_the_weight, AP_COUNT(worked))
{
	const struct worked *w = &worked[_i];
	const char *const cuts[][2] = {{"mul", w->cut}};
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;
	const char *got;

	open_net(&f, &plan);
	f.step.shard_size = w->shard_size;
	make_plan(&f, cuts, 1, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	got = strstr(json_of(&f, &c), "\"net.fc1.weight\":");
	ck_assert_ptr_nonnull(got);
	ck_assert_msg(!strncmp(got + 17, w->weight, strlen(w->weight)), "%s", got);
	fixture_close(&f);
}
END_TEST

/* LayerNorm: both parameters, one item; a parameter two operators of one type share: one item. */
START_TEST(keys_and_their_order)
{
	static const char graph[] =
		"{'schema':'autopar-graph/1','name':'g',"
		"'inputs':[{'name':'x','shape':[64,16],'dtype':'float32','batch_dim':0}],"
		"'parameters':[{'name':'w','shape':[16,16],'dtype':'float32'},"
		"{'name':'ln.gamma','shape':[16],'dtype':'float32'},"
		"{'name':'ln.beta','shape':[16],'dtype':'float32'}],"
		"'operators':["
		"{'name':'a','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}]},"
		"{'name':'b','type':'MatMul','inputs':['h','w'],'outputs':[{'name':'i'}]},"
		"{'name':'n','type':'LayerNorm','inputs':['i','ln.gamma','ln.beta'],"
		"'attrs':{'begin_norm_axis':1,'begin_params_axis':1},'outputs':[{'name':'y'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}";
	static const char *const cuts[][2] = {{"a", "m=8"}, {"b", "m=8"}, {"n", "A=8"}};
	static const char *const layouts[] = {"accu_grads.ln.beta", "accu_grads.ln.gamma",
		"accu_grads.w", "ln.beta", "ln.gamma", "moment1.ln.beta", "moment1.ln.gamma",
		"moment1.w", "moment2.ln.beta", "moment2.ln.gamma", "moment2.w", "w"};
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910a");
	f.step.micro_batches = 2;
	fixture_graph(&f, graph);
	make_plan(&f, cuts, 3, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	ck_assert_uint_eq(c.current_stage, 1);
	ck_assert_uint_eq(c.nitem, 2);
	ck_assert_str_eq(c.item[0].node_name, "LayerNorm_ln.gamma");
	ck_assert_uint_eq(c.item[0].n, 3);
	ck_assert_uint_eq(c.item[0].strategy[0].n, 2);
	ck_assert_uint_eq(c.item[0].strategy[2].n, 1);
	ck_assert_int_eq(c.item[0].strategy[0].v[0], 8);
	ck_assert_str_eq(c.item[1].node_name, "MatMul_w");
	ck_assert_uint_eq(c.nlayout, AP_COUNT(layouts));
	for (uint32_t i = 0; i < c.nlayout; i++)
		ck_assert_str_eq(c.layout[i].param_name, layouts[i]);
	fixture_close(&f);
}
END_TEST

START_TEST(protobuf_to_json_and_back_is_the_same)
{
	struct ap_str pb, again;
	struct ap_plan plan;
	struct ap_ckpt c, back;
	struct fixture f;
	const char *json;

	open_net(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	pb = pb_of(&f, &c);
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a", pb.s, pb.len, false, &back), AP_OK);
	ck_assert(!back.layout[0].has_shape);
	ck_assert_int_eq(ap_ckpt_add_shapes(&f.ctx, f.graph, &back), AP_OK);
	json = json_of(&f, &back);
	ck_assert_str_eq(json, json_of(&f, &c));
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a.json", json, strlen(json), true, &back), AP_OK);
	again = pb_of(&f, &back);
	ck_assert_uint_eq(again.len, pb.len);
	ck_assert_mem_eq(again.s, pb.s, pb.len);
	fixture_close(&f);
}
END_TEST

START_TEST(counts_come_back)
{
	const int32_t *const *counts;
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;
	ap_id mul;

	open_net(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	ck_assert_int_eq(ap_ckpt_counts(&f.ctx, &c, f.graph, 8, &f.step, &counts), AP_OK);
	mul = fixture_node(&f, "mul");
	ck_assert_mem_eq(counts[mul], plan.op[mul].place.count, 3 * sizeof(int32_t));
	ck_assert_ptr_nonnull(counts[fixture_node(&f, "bias")]);
	ck_assert_ptr_null(counts[fixture_node(&f, "out")]);
	ck_assert_ptr_null(counts[fixture_node(&f, "loss")]);
	fixture_close(&f);
}
END_TEST

/* Where frozen parameters count, they have layouts but no states, and their operators items. */
START_TEST(frozen_parameters_count_when_asked)
{
	static const char *const layouts[] = {"frozen", "moments.net.fc1.bias", "moments.net.fc1.weight",
		"net.fc1.bias", "net.fc1.weight"};
	const int32_t *const *counts;
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;

	open_net(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, true, &c);
	ck_assert_uint_eq(c.nitem, 3);
	ck_assert_str_eq(c.item[1].node_name, "MatMul_frozen");
	ck_assert_uint_eq(c.nlayout, 5);
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_str_eq(c.layout[i].param_name, layouts[i]);
	ck_assert_int_eq(ap_ckpt_counts(&f.ctx, &c, f.graph, 8, &f.step, &counts), AP_OK);
	ck_assert_ptr_nonnull(counts[fixture_node(&f, "mul")]);
	ck_assert_ptr_null(counts[fixture_node(&f, "out")]); /* completed, as without */
	fixture_close(&f);
}
END_TEST

static const int64_t odd[] = {3, 1}, two[] = {1, 2}, vec4[] = {4}, one[] = {1, 1};
static const struct ap_ckpt_vec odd_cut[] = {{2, odd}, {2, two}}, short_cut[] = {{2, one}},
	good_mul[] = {{2, one}, {2, one}}, good_bias[] = {{2, one}, {1, one}};
static const struct ap_ckpt_vec map_none = {1, (const int64_t[]){-1}};

#define BIAS {"BiasAdd_net.fc1.bias", 0, 2, good_bias}

/* What does not fit the graph or the machine, each with what the message says. */
static const struct misfit {
	struct ap_ckpt_item item[3];
	uint32_t nitem;
	int64_t devices; /* of the layout; 0: no layout */
	const char *says;
} misfits[] = {
	{{BIAS}, 1, 0,
		"holds 1 of 2 operators with a parameter; missing: \"mul\""},
	{{BIAS, {"MatMul_net.fc1.weight", 0, 2, good_mul},
		 {"MatMul_other", 0, 2, good_mul}}, 3, 0,
		"no operator of the graph graph.json matches \"MatMul_other\""},
	{{BIAS, {"MatMul_net.fc1.weight", 0, 2, odd_cut}}, 2, 0,
		"strategy \"MatMul_net.fc1.weight\": "},
	{{BIAS, {"MatMul_net.fc1.weight", 0, 1, short_cut}}, 2, 0,
		"strategy \"MatMul_net.fc1.weight\": "},
	{{BIAS, {"MatMul_net.fc1.weight", 1, 2, good_mul}}, 2, 0,
		"several pipeline stages (0 and 1)"},
	{{BIAS, {"MatMul_net.fc1.weight", 0, 2, good_mul}}, 2, 4,
		"made for 4 devices (layout \"net.fc1.bias\"); the machine has 8"},
};

START_LOOP_TEST(misfit, AP_COUNT(misfits))
{
	const struct misfit *m = &misfits[_i];
	const struct ap_ckpt_layout layout = {.param_name = "net.fc1.bias", .dev_matrix = {1, vec4},
		.nmap = 1, .tensor_map = &map_none};
	const struct ap_ckpt c = {.file = "f", .current_stage = 1, .nitem = m->nitem,
		.item = m->item, .nlayout = m->devices > 0, .layout = &layout};
	const int32_t *const *counts;
	struct ap_plan plan;
	struct fixture f;

	open_net(&f, &plan);
	ck_assert_int_eq(ap_ckpt_counts(&f.ctx, &c, f.graph, 8, &f.step, &counts), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(f.ctx.diag, AP_ERROR), 1);
	ck_assert_msg(strstr(last_message(&f.ctx, NULL), m->says), "%s",
		last_message(&f.ctx, NULL));
	fixture_close(&f);
}
END_TEST

/* A file cut between two operators is a whole file to protobuf, but not to us. */
START_TEST(cut_files_are_found_out)
{
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;
	struct ap_str pb;
	int borders = 0;

	open_net(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	c.nlayout = 0;
	pb = pb_of(&f, &c);
	for (size_t len = 1; len < pb.len; len++) {
		const int32_t *const *counts;
		struct ap_ckpt back;
		struct ap_ctx ctx = new_ctx();

		if (ap_ckpt_read(&ctx, "a", pb.s, len, false, &back) == AP_OK) {
			borders++;
			ck_assert_int_eq(
				ap_ckpt_counts(&ctx, &back, f.graph, 8, &f.step, &counts),
				AP_MEANING);
		}
		free_ctx(&ctx);
	}
	ck_assert_int_eq(borders, 2);
	fixture_close(&f);
}
END_TEST

START_TEST(shapes_that_do_not_fit)
{
	static const int64_t cut[] = {0, -1};
	static const int64_t three[] = {3};
	const struct ap_ckpt_vec map2 = {2, cut};
	const struct ap_ckpt_layout layouts[] = {
		{.param_name = "net.fc1.bias", .dev_matrix = {1, vec4}, .nmap = 1,
			.tensor_map = &map2},
		{.param_name = "net.fc1.weight", .dev_matrix = {1, three}, .nmap = 1,
			.tensor_map = &map2},
		{.param_name = "moments.who", .dev_matrix = {1, vec4}, .nmap = 1,
			.tensor_map = &map2},
		{.param_name = "0-moments.net.fc1.weight", .dev_matrix = {1, vec4}, .nmap = 1,
			.tensor_map = &map2},
	};
	struct ap_ckpt c = {.file = "f", .nlayout = 4, .layout = layouts};
	struct ap_plan plan;
	struct fixture f;

	open_net(&f, &plan);
	ck_assert_int_eq(ap_ckpt_add_shapes(&f.ctx, f.graph, &c), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(f.ctx.diag, AP_ERROR), 3);
	ck_assert_ptr_nonnull(strstr(ap_diag_text(f.ctx.diag, 0, NULL, NULL),
		"tensor_map of 2 dimensions; the graph's parameter has 1"));
	ck_assert_ptr_nonnull(strstr(ap_diag_text(f.ctx.diag, 1, NULL, NULL),
		"3 parts of dimension 0, which is 64"));
	ck_assert_ptr_nonnull(strstr(last_message(&f.ctx, NULL), "\"moments.who\""));
	ck_assert(c.layout[3].has_shape);
	ck_assert_int_eq(c.layout[3].tensor_shape.v[1], 32);
	fixture_close(&f);
}
END_TEST

START_TEST(names_with_a_dash)
{
	static const char graph[] =
		"{'schema':'autopar-graph/1','name':'g',"
		"'inputs':[{'name':'x-y','shape':[64,16],'dtype':'float32','batch_dim':0}],"
		"'parameters':[{'name':'my-w','shape':[16,16],'dtype':'float32'},"
		"{'name':'my-frozen','shape':[16,16],'dtype':'float32','trainable':false}],"
		"'operators':["
		"{'name':'a','type':'MatMul','inputs':['x-y','my-w'],'outputs':[{'name':'h'}]},"
		"{'name':'b','type':'MatMul','inputs':['h','my-frozen'],'outputs':[{'name':'y'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}";
	struct ap_plan plan;
	struct fixture f;

	open_net(&f, &plan);
	ck_assert_int_eq(ap_ckpt_check_names(&f.ctx, f.graph, false), AP_OK);
	fixture_graph(&f, graph);
	ck_assert_int_eq(ap_ckpt_check_names(&f.ctx, f.graph, false), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(f.ctx.diag, AP_ERROR), 1);
	ck_assert_ptr_nonnull(strstr(last_message(&f.ctx, NULL), "\"my-w\""));
	ck_assert_int_eq(ap_ckpt_check_names(&f.ctx, f.graph, true), AP_MEANING);
	ck_assert_ptr_nonnull(strstr(last_message(&f.ctx, NULL), "\"my-frozen\""));
	fixture_close(&f);
}
END_TEST

/* Random candidates of every operator of real models, one with Casts of weights: what the checkpoint
 * pins comes back, and both forms say the same. */
static const char *const models[] = {"multiple_mix", "gpt3_1.3b", "wide_deep"};

static const int32_t *random_candidate(struct fixture *f, ap_id node, uint64_t *random)
{
	struct ap_space space;

	ap_space_make(&f->ctx, &f->graph->node[node].bound, f->machine->ndev, &f->step, &space);
	return &space.count[next_random(random) % space.n * space.nfactor];
}

static void check_counts(struct fixture *f, const struct ap_plan *p, const struct ap_ckpt *c,
	const int32_t *const *expected)
{
	const int32_t *const *counts;

	ck_assert_int_eq(ap_ckpt_counts(&f->ctx, c, f->graph, f->machine->ndev, &f->step, &counts),
		AP_OK);
	for (ap_id i = 0; i < f->graph->nnode; i++) {
		size_t bytes = f->graph->node[i].bound.nfactor * sizeof(int32_t);

		ck_assert_int_eq(counts[i] != NULL, p->op[i].in_checkpoint);
		if (counts[i])
			ck_assert_mem_eq(counts[i], expected[i], bytes);
	}
}

/* Operators that share a parameter cut it alike: not at all. */
static void agree(const struct fixture *f, const int32_t **counts)
{
	int32_t *ones = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		ones[i] = 1;
	for (ap_id i = 0; i < f->graph->ntensor; i++)
		for (uint32_t u = 0; f->graph->tensor[i].nuse > 1 && u < f->graph->tensor[i].nuse; u++)
			if (f->graph->tensor[i].kind == AP_TENSOR_PARAM)
				counts[f->graph->tensor[i].use[u].node] = ones;
}

START_LOOP_TEST(random_candidates_come_back, AP_COUNT(models))
{
	uint64_t random = seed_of_run();
	struct ap_ckpt c, from_pb, from_json;
	const int32_t **counts;
	struct ap_plan plan;
	struct fixture f;
	struct ap_str pb;
	const char *json;
	char *text;
	size_t len;

	fixture_open(&f, 16, 8, "ascend910b3");
	ck_assert_int_eq(ap_file_read(&f.ctx,
		ap_arena_printf(f.ctx.arena, AP_SOURCE_ROOT "/models/%s.json", models[_i]),
		AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	fixture_graph(&f, text);
	counts = AP_NEW_N(f.ctx.arena, const int32_t *, f.graph->nnode);
	for (ap_id i = 0; i < f.graph->nnode; i++)
		counts[i] = random_candidate(&f, i, &random);
	agree(&f, counts);
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 34, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	check_counts(&f, &plan, &c, counts);
	pb = pb_of(&f, &c);
	ck_assert_msg(ap_ckpt_read(&f.ctx, "a", pb.s, pb.len, false, &from_pb) == AP_OK, "%s",
		last_message(&f.ctx, NULL));
	check_counts(&f, &plan, &from_pb, counts);
	ck_assert_int_eq(ap_ckpt_add_shapes(&f.ctx, f.graph, &from_pb), AP_OK);
	json = json_of(&f, &from_pb);
	ck_assert_str_eq(json, json_of(&f, &c));
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a", json, strlen(json), true, &from_json), AP_OK);
	ck_assert_mem_eq(pb_of(&f, &from_json).s, pb.s, pb.len);
	fixture_close(&f);
}
END_TEST
