/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a bundle: which there are, and what depends on the plan and its settings. */
#include "base/json_write.h"
#include "base/vec.h"
#include "bundle/bundle.h"
#include "json_at.h"
#include "pipe_test.h"
#include "plan/plan.h"
#include "report/summary.h"

struct world {
	struct fixture f;
	struct ap_plan plan;
	struct ap_plan_route route;
	struct ap_expert expert;
	struct ap_bundle b;
};

static void open_bundle(struct world *w, const char *net)
{
	memset(w, 0, sizeof *w);
	open_pipe_of(&w->f, net, &w->plan);
	w->expert.why_not = "no reason";
	w->b = (struct ap_bundle){.plan = &w->plan, .expert = &w->expert};
}

static const struct ap_bundle_file *file_of(const char *name)
{
	const struct ap_bundle_file *file;

	for (size_t i = 0; (file = ap_bundle_file_at(i)); i++)
		if (!strcmp(file->name, name))
			return file;
	ck_abort_msg("no file %s", name);
	return NULL;
}

static const char *text_of(struct world *w, const char *name)
{
	struct ap_str s = new_str(&w->f.ctx);

	ap_bundle_say(&w->f.ctx, &w->b);
	file_of(name)->write(&w->f.ctx, &w->b, to_str, &s);
	return s.s;
}

static const struct ap_json *json_of(struct world *w, const char *name)
{
	const char *text = text_of(w, name);
	struct ap_json *doc;

	ck_assert_int_eq(ap_json_parse(&w->f.ctx, name, text, strlen(text), 0, &doc), AP_OK);
	return doc;
}

/* The value of a row of settings.json, "" where there is none. */
static const char *setting_of(struct world *w, const char *api, const char *name)
{
	const struct ap_json *doc = json_of(w, "settings.json");
	struct ap_str s = new_str(&w->f.ctx);
	struct ap_jw out;

	for (const struct ap_jv *row = ap_jv_first(ap_json_root(doc)); row; row = ap_jv_next(row)) {
		if (strcmp(ap_jv_str(ap_jv_get(row, "api")), api) != 0 ||
			strcmp(ap_jv_str(ap_jv_get(row, "name")), name) != 0)
			continue;
		ap_jw_str_init(&out, &s, 0);
		json_compact(&out, doc, ap_jv_get(row, "value"));
	}
	return s.s;
}

#define ck_said(w, name, text) ck_assert_msg(strstr(text_of(w, name), text), "%s", text_of(w, name))
#define ck_not_said(w, name, text) ck_assert_msg(!strstr(text_of(w, name), text), "%s", text_of(w, name))

#define CLASS "AutoParallel"
#define CONTEXT "set_auto_parallel_context"

static const struct {
	const char *route, *executor; /* NULL: not there */
	enum ap_bundle_mode parallel_mode;
	const char *of_class, *mode, *search, *ckpt, *operators;
} ways[] = {
	{NULL, NULL, AP_BUNDLE_ROUTE, "\"sharding_propagation\"", "\"auto_parallel\"", "\"sharding_propagation\"", "",
		"\"operator_strategies.json\""},
	{NULL, "mindspore", AP_BUNDLE_ROUTE, "\"sharding_propagation\"", "\"auto_parallel\"", "\"sharding_propagation\"", "", "\"operator_strategies.json\""},
	{"mindspore-semi-auto", NULL, AP_BUNDLE_ROUTE, "\"semi_auto\"", "\"semi_auto_parallel\"", "",
		"\"stages/stage_{stage}.ckpt\"", ""},
	{NULL, "mindspore-semi-auto", AP_BUNDLE_ROUTE, "\"semi_auto\"", "\"semi_auto_parallel\"", "",
		"\"stages/stage_{stage}.ckpt\"", ""},
	{NULL, "mindspore", AP_BUNDLE_SEMI_AUTO, "\"semi_auto\"", "\"semi_auto_parallel\"", "",
		"\"stages/stage_{stage}.ckpt\"", ""},
	{"mindspore-sharding-propagation", NULL, AP_BUNDLE_ROUTE, "\"sharding_propagation\"", "\"auto_parallel\"",
		"\"sharding_propagation\"", "\"stages/stage_{stage}.ckpt\"", ""},
	{NULL, "mindspore", AP_BUNDLE_DATA_PARALLEL, "", "\"data_parallel\"", "", "", ""},
	{NULL, "mindspore", AP_BUNDLE_HYBRID_PARALLEL, "", "\"hybrid_parallel\"", "", "", ""},
};

/* The route, or else the mode that the settings say, decides which file is loaded by whom. */
START_LOOP_TEST(ways_into_mindspore, AP_COUNT(ways))
{
	struct ap_route route = {.name = ways[_i].route}, executor = {.name = ways[_i].executor};
	struct world w;

	open_bundle(&w, PIPE_NET);
	w.route.route = &route;
	w.plan.route = ways[_i].route ? &w.route : NULL;
	w.b.asked.route = ways[_i].executor ? &executor : NULL;
	w.b.asked.mode = ways[_i].parallel_mode;
	ck_assert_str_eq(setting_of(&w, CLASS, "parallel_mode"), ways[_i].of_class);
	ck_assert_str_eq(setting_of(&w, CONTEXT, "parallel_mode"), ways[_i].mode);
	ck_assert_str_eq(setting_of(&w, CONTEXT, "search_mode"), ways[_i].search);
	ck_assert_str_eq(setting_of(&w, CLASS, "load_param_strategy_file"), ways[_i].ckpt);
	ck_assert_str_eq(setting_of(&w, CONTEXT, "strategy_ckpt_load_file"), ways[_i].ckpt);
	ck_assert_str_eq(setting_of(&w, CLASS, "load_operator_strategy_file"), ways[_i].operators);
	ck_assert_str_eq(setting_of(&w, CONTEXT, "device_num"), "8");
	ck_assert_str_eq(setting_of(&w, CONTEXT, "pipeline_stages"), "2");
	ck_assert_str_eq(setting_of(&w, "mindspore.parallel.nn", "Pipeline"), "{\"micro_size\":4}");
	fixture_close(&w.f);
}
END_TEST

/* Schedulers by the names that MindSpore has for them. */
START_TEST(schedulers)
{
	static const struct {
		const char *name, *config;
	} rows[] = {
		{"1f1b", "{\"pipeline_interleave\":false,\"pipeline_scheduler\":\"1f1b\"}"},
		{"gpipe", "{\"pipeline_interleave\":true,\"pipeline_scheduler\":\"gpipe\"}"},
		{"interleaved", "{\"pipeline_interleave\":true,\"pipeline_scheduler\":\"1f1b\"}"},
		{"zero_bubble_v", "{\"pipeline_interleave\":true,\"pipeline_scheduler\":\"zero_bubble_v\"}"},
	};
	struct world w;

	open_bundle(&w, PIPE_NET);
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		w.f.pipe.scheduler = ap_scheduler_find(rows[i].name);
		ck_assert_str_eq(setting_of(&w, CONTEXT, "pipeline_config"), rows[i].config);
	}
	ck_said(&w, "README.txt", "2.7 refuses the scheduler zero_bubble_v");
	fixture_close(&w.f);
}
END_TEST

/* MindSpore takes no -1 for the size, and the older name of level2 beside no other level. */
START_TEST(optimizer_sharding)
{
	struct world w;

	open_bundle(&w, PIPE_NET);
	ck_assert_str_eq(setting_of(&w, CLASS, "hsdp"), "");
	w.f.step.optimizer_sharding = true;
	ck_assert_str_eq(setting_of(&w, CLASS, "hsdp"),
		"{\"shard_size\":-1,\"threshold\":64,\"optimizer_level\":\"level1\"}");
	ck_assert_str_eq(setting_of(&w, CONTEXT, "parallel_optimizer_config"),
		"{\"parallel_optimizer_threshold\":64,\"optimizer_level\":\"level1\"}");
	w.f.step.optimizer_level = 2;
	w.f.step.shard_size = 4;
	ck_assert_str_eq(setting_of(&w, CONTEXT, "parallel_optimizer_config"),
		"{\"gradient_accumulation_shard\":true,\"parallel_optimizer_threshold\":64,"
		"\"optimizer_weight_shard_size\":4,\"optimizer_level\":\"level2\"}");
	fixture_close(&w.f);
}
END_TEST

/* What MindSpore runs has all files, anything else has those that are not MindSpore's. */
START_TEST(files_by_executor)
{
	struct world w;

	open_bundle(&w, PIPE_NET);
	ck_assert(file_of("settings.json")->wanted(&w.b));
	ck_assert(file_of("stage_config.json")->wanted(&w.b));
	ck_assert(!file_of("parallel_speed_up.json")->wanted(&w.b));
	w.b.asked.speed_up[AP_SPEED_UP_computation_communication_fusion_level] = 2;
	w.b.asked.speed_up[AP_SPEED_UP_grad_fa_allgather_overlap] = true;
	ck_assert(file_of("parallel_speed_up.json")->wanted(&w.b));
	ck_assert_str_eq(text_of(&w, "parallel_speed_up.json"), "{\n \"grad_fa_allgather_overlap\": true,\n"
		" \"computation_communication_fusion_level\": 2\n}\n");
	w.f.step.executor = AP_EXECUTOR_GENERIC;
	ck_assert(!file_of("settings.json")->wanted(&w.b));
	ck_assert(!file_of("stage_config.json")->wanted(&w.b));
	ck_said(&w, "README.txt", "runs as:   generic\n");
	ck_not_said(&w, "README.txt", "apply_plan");
	fixture_close(&w.f);
}
END_TEST

/* down is in one cell with another product, so that neither its type nor its cell tells it; neg leaves its
 * cell, so that it is kept by itself. */
#define MARKED_NET \
	"{'schema':'autopar-graph/1','name':'marked'," \
	"'cells':[{'name':'net','recompute':{'recompute_slice_activation':true}}]," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w1','shape':[32,16],'dtype':'float32'}," \
	"{'name':'w2','shape':[16,8],'dtype':'float32'},{'name':'w3','shape':[8,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','w1'],'outputs':[{'name':'h'}],'cell':'net.in'," \
	"'in_strategy':[[2,1],[1,2]]}," \
	"{'name':'act','type':'ReLU','inputs':['h'],'outputs':[{'name':'i'}],'cell':'net.in'," \
	"'recompute':false}," \
	"{'name':'neg','type':'Neg','inputs':['i'],'outputs':[{'name':'n'}],'cell':'net.in'," \
	"'recompute':false}," \
	"{'name':'first','type':'MatMul','inputs':['n','w2'],'outputs':[{'name':'y'}],'cell':'out'}," \
	"{'name':'abs','type':'Abs','inputs':['y'],'outputs':[{'name':'a'}],'cell':'out','recompute':true}," \
	"{'name':'down','type':'MatMul','inputs':['a','w3'],'outputs':[{'name':'z'}],'cell':'out'," \
	"'recompute':true}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}],'cell':'out'}]," \
	"'outputs':['l']}"

/* Cells, primitives that are told by cell and type, and what is told by neither. */
START_TEST(recompute_calls)
{
	const struct ap_json *doc;
	struct world w;

	open_bundle(&w, MARKED_NET);
	doc = json_of(&w, "recompute.json");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "cells"),
		"[{\"cell\":\"net\",\"mp_comm_recompute\":true,\"parallel_optimizer_comm_recompute\":false,"
		"\"recompute_slice_activation\":true}]");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "primitives"),
		"[{\"cell\":\"net.in\",\"type\":\"ReLU\",\"recompute\":false},"
		"{\"cell\":\"out\",\"type\":\"Abs\",\"recompute\":true}]");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "not_applicable/0/operator"), "\"down\"");
	ck_assert_uint_eq(ap_jv_count(json_at(&w.f.ctx, doc, "not_applicable")), 1);
	ck_said(&w, "README.txt", "1 operator cannot be marked by a call of one primitive");
	w.f.step.recompute_keeps_comm = true;
	ck_said(&w, "README.txt", "2 operators are recomputed by a call of the primitive");
	fixture_close(&w.f);
}
END_TEST

/* One primitive run twice, alike (act) and not (square); products told apart; a list; no attribute (abs); an
 * attribute that is not told (exp); a strategy that MindSpore does not take (flat). */
#define NAMED_NET \
	"{'schema':'autopar-graph/1','name':'named'," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w1','shape':[32,16],'dtype':'float32'}," \
	"{'name':'w2','shape':[16,8],'dtype':'float32'},{'name':'w3','shape':[8,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','w1'],'outputs':[{'name':'a'}],'cell':'net'," \
	"'instance':'matmul','in_strategy':[[2,1],[1,2]],'out_strategy':[[2,2]]}," \
	"{'name':'act','type':'ReLU','inputs':['a'],'outputs':[{'name':'b'}],'cell':'net'," \
	"'instance':'act','in_strategy':[[1,1]]}," \
	"{'name':'act2','type':'ReLU','inputs':['b'],'outputs':[{'name':'c'}],'cell':'net'," \
	"'instance':'act'}," \
	"{'name':'first','type':'MatMul','inputs':['c','w2'],'outputs':[{'name':'d'}],'cell':'out'," \
	"'instance':'list.0'}," \
	"{'name':'abs','type':'Abs','inputs':['d'],'outputs':[{'name':'e'}],'cell':'out'," \
	"'instance':'','recompute':true,'in_strategy':[[1,1]]}," \
	"{'name':'square','type':'Square','inputs':['e'],'outputs':[{'name':'f'}],'cell':'out'," \
	"'instance':'square','in_strategy':[[2,1]],'recompute':true}," \
	"{'name':'square2','type':'Square','inputs':['f'],'outputs':[{'name':'g'}],'cell':'out'," \
	"'instance':'square'}," \
	"{'name':'flat','type':'Reshape','inputs':['g'],'outputs':[{'name':'h'}],'cell':'out'," \
	"'attrs':{'shape':[64,8]},'instance':'reshape','in_strategy':[[1,1]]}," \
	"{'name':'exp','type':'Exp','inputs':['h'],'outputs':[{'name':'i'}],'cell':'out'," \
	"'in_strategy':[[1,1]],'recompute':true}," \
	"{'name':'down','type':'MatMul','inputs':['i','w3'],'outputs':[{'name':'z'}],'cell':'out'," \
	"'instance':'list.1','recompute':true}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}],'cell':'out'}]," \
	"'outputs':['l']}"

/* By its attribute each primitive is marked alone. */
START_TEST(recompute_of_instances)
{
	const struct ap_json *doc;
	struct world w;

	open_bundle(&w, NAMED_NET);
	doc = json_of(&w, "recompute.json");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "primitives"),
		"[{\"cell\":\"out\",\"type\":\"Exp\",\"recompute\":true},"
		"{\"cell\":\"out\",\"instance\":\"list.1\",\"type\":\"MatMul\",\"recompute\":true}]");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "not_applicable"),
		"[{\"operator\":\"abs\",\"recompute\":true,\"why\":\"no attribute of its cell holds it\"},"
		"{\"operator\":\"square\",\"recompute\":true,\"why\":"
		"\"its primitive runs operators that are marked differently\"}]");
	ck_said(&w, "README.txt", "2 operators cannot be marked by a call of one primitive");
	fixture_close(&w.f);
}
END_TEST

/* Strategies of the graph, where a checkpoint cannot say them all. */
START_TEST(shard_calls)
{
	struct ap_route route = {.name = "mindspore-sharding-propagation"};
	const struct ap_json *doc;
	struct world w;

	open_bundle(&w, NAMED_NET);
	ck_assert(!file_of("shard.json")->wanted(&w.b));
	ck_not_said(&w, "README.txt", "shard.json");
	w.route.route = &route;
	w.plan.route = &w.route;
	ck_assert(file_of("shard.json")->wanted(&w.b));
	doc = json_of(&w, "shard.json");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "shards"),
		"[{\"cell\":\"net\",\"instance\":\"matmul\",\"in_strategy\":[[2,1],[1,2]],"
		"\"out_strategy\":[[2,2]]},"
		"{\"cell\":\"net\",\"instance\":\"act\",\"in_strategy\":[[1,1]]}]");
	ck_assert_str_eq(json_text_at(&w.f.ctx, doc, "not_applicable"),
		"[{\"operator\":\"abs\",\"in_strategy\":[[1,1]],"
		"\"why\":\"no attribute of its cell holds it\"},"
		"{\"operator\":\"square\",\"in_strategy\":[[2,1]],"
		"\"why\":\"its primitive runs operators that are cut otherwise\"},"
		"{\"operator\":\"exp\",\"in_strategy\":[[1,1]],"
		"\"why\":\"the graph does not tell the attribute that holds it (instance)\"}]");
	ck_said(&w, "README.txt", "2 operators are cut by shard(), which wins");
	ck_said(&w, "README.txt", "3 operators are said by the graph to be cut by shard(), which the script");
	fixture_close(&w.f);
	open_bundle(&w, PIPE_NET);
	w.route.route = &route;
	w.plan.route = &w.route;
	ck_assert(!file_of("shard.json")->wanted(&w.b));
	fixture_close(&w.f);
}
END_TEST

/* The hybrid, faster or slower than planned. */
START_TEST(words_of_experts)
{
	static const struct ap_route route = {.name = "mindspore-semi-auto"};
	static const struct ap_route_differ differ = {.node = 0};
	struct world w;

	open_bundle(&w, PIPE_NET);
	ck_said(&w, "README.txt", "No file says the plan in them: no reason.");
	w.expert.hybrid = (struct ap_hybrid){.dp = 4, .tp = 1, .cp = 1, .ep = 1, .pp = 1, .vpp = 1, .mbs = 1,
		.micro_batches = 1};
	w.expert.differ = 3;
	w.expert.step_time_s = 0.5;
	w.expert.loss = 0.25;
	w.expert.fits = true;
	ck_said(&w, "README.txt", "nearest takes 500 ms a step, 25.0 % more than planned,\n3 operators cut "
		"otherwise.");
	w.expert.loss = -0.5;
	w.expert.fits = false;
	ck_said(&w, "README.txt", "50.0 % less than planned,\n3 operators cut otherwise; it does not fit");
	ck_not_said(&w, "README.txt", "Their models");
	w.expert.differ = 1;
	w.route = (struct ap_plan_route){.route = &route, .n = 1, .differ = &differ};
	w.plan.route = &w.route;
	ck_said(&w, "README.txt", "50.0 % less than planned,\n1 operator cut otherwise; it does not fit "
		"the memory.\nTheir models bring strategies of their own");
	w.expert.same = true;
	ck_said(&w, "README.txt", "The plan is a hybrid.\nThere is no mindformers.yaml, since MindFormers "
		"would not start with it.\n"
		"- MindFormers would not start with: stages whose layers are not known: no cells of the graph are "
		"numbered");
	fixture_close(&w.f);
}
END_TEST

/* Rounded to tenths, each with one sign. */
START_TEST(percentages)
{
	static const struct {
		double part, whole;
		const char *text;
	} rows[] = {
		{1, 8, "12.5 %"},
		{-0.153, 1, "-15.3 %"},
		{-0.006, 1, "-0.6 %"},
		{-0.0004, 1, "0.0 %"},
		{0.99951, 1, "100.0 %"},
		{1, 0, "0.0 %"},
		{-1e300, 1, "-1000000000000000.0 %"},
	};
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910a");
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_str s = new_str(&f.ctx);

		ap_summary_percent(&s, rows[i].part, rows[i].whole);
		ck_assert_str_eq(s.s, rows[i].text);
	}
	fixture_close(&f);
}
END_TEST

/* What the manifest says is read as it was written; the plan's hash is that of its file. */
START_TEST(manifests)
{
	static const struct ap_bundle_part parts[] = {
		{"README.txt", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"plan.json", 9007199254740993, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"stages/stage_0.ckpt", 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
	};
	struct ap_bundle_manifest m;
	struct world w;

	open_bundle(&w, MARKED_NET);
	w.b.npart = 3;
	w.b.part = parts;
	ck_assert_int_eq(ap_bundle_manifest_read(&w.f.ctx, json_of(&w, "manifest.json"), &m), AP_OK);
	ck_assert_uint_eq(m.npart, 3);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_str_eq(m.part[i].name, parts[i].name);
		ck_assert_int_eq(m.part[i].bytes, parts[i].bytes);
		ck_assert_str_eq(m.part[i].sha256, parts[i].sha256);
	}
	ck_said(&w, "manifest.json", "\"schema\": \"autopar-bundle/1\"");
	ck_said(&w, "manifest.json",
		"\"plan_sha256\": \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
	w.b.npart = 1; /* without a plan */
	ck_assert_int_eq(ap_bundle_manifest_read(&w.f.ctx, json_of(&w, "manifest.json"), &m), AP_MEANING);
	fixture_close(&w.f);
}
END_TEST

static const struct {
	const char *name;
	bool inside;
} names[] = {{"a", true}, {"a/b", true}, {"..a", true}, {"a/..b/c", true}, {"", false}, {".", false},
	{"..", false}, {"../a", false}, {"a/..", false}, {"a/../b", false}, {"/a", false}, {"a//b", false},
	{"a/", false}, {"a/./b", false}, {"manifest.json", false}, {"b/manifest.json", true}};

/* A manifest names nothing outside its folder. */
START_LOOP_TEST(names_in_manifests, AP_COUNT(names))
{
	struct world w;
	struct ap_bundle_part parts[] = {{names[_i].name, 0, NULL}, {"plan.json", 0, NULL}};
	struct ap_bundle_manifest m;

	open_bundle(&w, MARKED_NET);
	parts[0].sha256 = parts[1].sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	w.b.npart = 2;
	w.b.part = parts;
	ck_assert_int_eq(ap_bundle_manifest_read(&w.f.ctx, json_of(&w, "manifest.json"), &m),
		names[_i].inside ? AP_OK : AP_MEANING);
	fixture_close(&w.f);
}
END_TEST

/* Each limit is said where it holds, and there only. */
START_TEST(limits)
{
	struct ap_route route = {.name = "mindspore-semi-auto"};
	struct world w;

	open_bundle(&w, MARKED_NET);
	ck_said(&w, "README.txt", "recursive_programming, MindSpore's default search_mode, reads none");
	ck_not_said(&w, "README.txt", "cut by shard()");
	ck_not_said(&w, "README.txt", "AlltoAll");
	ck_said(&w, "README.txt", "for load_operator_strategy_file()\n");
	ck_said(&w, "README.txt", "  strategy checkpoint of each stage; not loaded here\n");
	w.f.step.alltoall = false;
	ck_said(&w, "README.txt", "The plan does without AlltoAll");
	w.route.route = &route;
	w.plan.route = &w.route;
	ck_said(&w, "README.txt", "1 operator is said by the graph to be cut by shard()");
	ck_said(&w, "README.txt", "for load_operator_strategy_file(); not loaded here\n");
	ck_said(&w, "README.txt", "  strategy checkpoint of each stage\n");
	ck_said(&w, "README.txt", "ranks 4 to 7  stages/stage_1.ckpt");
	w.b.asked.mode = AP_BUNDLE_DATA_PARALLEL;
	ck_not_said(&w, "README.txt", "recursive_programming");
	fixture_close(&w.f);
}
END_TEST
