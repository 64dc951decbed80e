/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as JSON, the summary in both forms, and the picture of a plan file. */
#include <locale.h>
#include <setjmp.h>

#include "draw/dot.h"
#include "emit_test.h"
#include "fixture.h"
#include "json_at.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "report/summary.h"

/* Two products, the first cut by columns and the second by rows, then a loss cut by the batch. */
#define PAIR \
	"{'schema':'autopar-graph/1','name':'pair'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[8],'dtype':'float32'}," \
	"{'name':'w1','shape':[8,32],'dtype':'float32'}," \
	"{'name':'w2','shape':[32,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]," \
	"'cell':'a \\\"b'}," \
	"{'name':'up','type':'MatMul','inputs':['x0','w1'],'outputs':[{'name':'h'}]," \
	"'cell':'mlp'}," \
	"{'name':'down','type':'MatMul','inputs':['h','w2'],'outputs':[{'name':'y'}]," \
	"'cell':'mlp'}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static const struct ap_setting settings[] = {
	{"parallel-mode", "\"auto_parallel\""}, {"device-num", "8"}, {"full-batch", "false"}};
static const struct ap_baseline baselines[] = {
	{.name = "data parallel", .applicable = true, .step_time_s = 0.003,
		.objective_s = 0.0018, .memory_bytes = 1 << 20, .fits = true},
	{.name = "other", .why_not = "no batch"},
};

struct made {
	struct fixture f;
	struct ap_plan plan;
	struct ap_json *doc;
	const struct ap_jv *root;
	const char *text;
};

static void make(struct made *m, int64_t micro_batches)
{
	static const char *const cuts[][2] = {
		{"add", "A=2"}, {"up", "m=2 n=4"}, {"down", "m=2 k=4"}, {"loss", "A=8"}};
	const int32_t **counts;
	struct ap_str s;

	fixture_open(&m->f, 8, 4, "ascend910a");
	m->f.step.micro_batches = micro_batches;
	fixture_graph(&m->f, PAIR);
	counts = AP_NEW_N(m->f.ctx.arena, const int32_t *, 4);
	for (int i = 0; i < 4; i++) {
		int32_t *count = AP_NEW_N(m->f.ctx.arena, int32_t, AP_MAX_FACTOR);
		ap_id node = fixture_node(&m->f, cuts[i][0]);

		fixture_counts(&m->f, node, cuts[i][1], count);
		counts[node] = count;
	}
	ap_plan_make(&m->f.ctx, m->f.graph, m->f.machine, &m->f.step, counts, INT64_C(1) << 34,
		&m->plan);
	m->plan.search.mode = "dynamic_programming";
	m->plan.nsetting = 3;
	m->plan.setting = settings;
	m->plan.nbaseline = 2;
	m->plan.baseline = baselines;
	s = new_str(&m->f.ctx);
	ap_emit_plan_json(&m->f.ctx, &m->plan, to_str, &s);
	m->text = s.s;
	ck_assert_int_eq(ap_json_parse(&m->f.ctx, "p", s.s, s.len, 0, &m->doc), AP_OK);
	m->root = ap_json_root(m->doc);
}

static const struct ap_jv *at(const struct made *m, const char *path)
{
	struct ap_ctx ctx = m->f.ctx;

	return json_at(&ctx, m->doc, path);
}

static const char *text_at(struct made *m, const char *path)
{
	return json_text_at(&m->f.ctx, m->doc, path);
}

static void check_keys(struct made *m, const char *path, const char *const *keys)
{
	for (const struct ap_jv *v = ap_jv_first(at(m, path)); v; v = ap_jv_next(v)) {
		ck_assert_msg(*keys != NULL, "%s: \"%s\" too much", path, ap_jv_key(v));
		ck_assert_str_eq(ap_jv_key(v), *keys++);
	}
	ck_assert_ptr_null(*keys);
}

START_TEST(keys_in_their_order)
{
	static const char *const root[] = {"schema", "tool", "inputs", "settings", "graph",
		"machine", "search", "prediction", "baselines", "route", "pipeline", "stages",
		"operators", "redistributions", "parameters", "fusion", "schedule", NULL};
	static const char *const search[] = {"mode", "status", "complete", "objective_s",
		"lower_bound_s", "gap", "work", NULL};
	static const char *const prediction[] = {"step_time_s", "step_bound_s", "step_gap",
		"step_status", "compute_s", "communication_s",
		"exposed_communication_s", "bubble_s", "optimizer_s", "tokens_or_samples_per_s",
		"memory", NULL};
	static const char *const oper[] = {"name", "type", "cell", "stage", "segment", "inputs", "outputs",
		"out_shape", "out_dtype", "in_checkpoint", "given", "in_strategy", "out_strategy", "dev_matrix",
		"in_tensor_map", "out_tensor_map", "repeated", "factors", "recompute", "in_slice",
		"out_slice", "cost", "memory", "communications", NULL};
	static const char *const param[] = {"name", "stage", "dtype", "trainable", "dev_matrix",
		"tensor_map", "tensor_shape", "slice_shape", "opt_weight_shard_step",
		"opt_weight_shard_size", "optimizer_shards", "optimizer_group", "gradient_group",
		"gradient_groups", NULL};
	struct made m;

	make(&m, 1);
	check_keys(&m, "", root);
	check_keys(&m, "search", search);
	check_keys(&m, "prediction", prediction);
	check_keys(&m, "operators/0", oper);
	check_keys(&m, "parameters/0", param);
	fixture_close(&m.f);
}
END_TEST

static const struct expected {
	const char *path, *text;
} expected[] = {
	{"schema", "\"autopar-plan/1\""},
	{"inputs/rank_table", "null"},
	{"inputs/settings/sha256",
		"\"a5b31baeca2b51b5f93de69d354329e1e36392dec89dbe7d950522a6506a8ddf\""},
	{"settings", "{\"parallel-mode\":\"auto_parallel\",\"device-num\":8,\"full-batch\":false}"},
	{"graph", "{\"name\":\"pair\",\"batch\":16,\"parameters\":520,\"inputs\":[\"x\"],"
		"\"input_shapes\":[[16,8]],\"input_dtypes\":[\"float32\"],\"constants\":[],"
		  "\"outputs\":[\"l\"]}"},
	{"machine/devices", "8"},
	{"machine/servers", "2"},
	{"baselines/0", "{\"name\":\"data parallel\",\"step_time_s\":0.003,"
			"\"objective_s\":0.0018,\"memory_bytes\":1048576,\"fits\":true}"},
	{"baselines/1", "{\"name\":\"other\",\"not_applicable\":\"no batch\"}"},
	{"pipeline", "null"},
	{"stages/0/ranks", "[0,1,2,3,4,5,6,7]"},
	{"stages/0/operators", "4"},
	{"stages/0/in_flight", "1"},
	{"operators/0/cell", "\"a \\\"b\""},
	{"operators/1/inputs", "[\"x0\",\"w1\"]"},
	{"operators/1/outputs", "[\"h\"]"},
	{"operators/1/out_shape", "[[16,32]]"},
	{"operators/1/out_dtype", "[\"float32\"]"},
	{"operators/1/in_checkpoint", "true"},
	{"operators/1/in_strategy", "[[2,1],[1,4]]"},
	{"operators/1/out_strategy", "[[2,4]]"},
	{"operators/1/dev_matrix", "[2,1,4]"},
	{"operators/1/in_tensor_map", "[[2,1],[1,0]]"},
	{"operators/1/out_tensor_map", "[[2,0]]"},
	{"operators/1/repeated", "1"},
	{"operators/1/factors/2", "{\"factor\":\"n\",\"size\":32,\"parts\":4,\"stride\":1,"
				  "\"batch\":false}"},
	{"operators/1/in_slice", "[[8,8],[8,8]]"},
	{"operators/1/out_slice", "[[8,8]]"},
	{"operators/2/in_strategy", "[[2,4],[4,1]]"},
	{"operators/2/communications/0/phase", "\"forward\""},
	{"operators/2/communications/0/kind", "\"AllReduce\""},
	{"operators/2/communications/0/result", "0"},
	{"operators/2/communications/0/tensor", "\"y\""},
	{"operators/2/communications/0/bytes", "256"},
	{"operators/2/communications/0/axes", "[[1,4]]"},
	{"operators/2/communications/0/ranks", "[0,1,2,3]"},
	{"operators/3/in_checkpoint", "false"},
	{"redistributions/0/from", "null"},
	{"redistributions/0/to", "\"add\""},
	{"redistributions/0/tensor", "\"x\""},
	{"redistributions/0/steps", "[{\"kind\":\"AllGather\",\"dim\":0,\"outer\":1,\"axis\":[1,4],"
				    "\"bytes_before\":64,\"bytes_after\":256}]"},
	{"redistributions/1/from", "\"down\""},
	{"redistributions/1/to", "\"loss\""},
	{"redistributions/1/operand", "0"},
	{"redistributions/1/tensor", "\"y\""},
	{"redistributions/1/from_layout", "[[2,4],[1,0]]"},
	{"redistributions/1/to_layout", "[[8,1],[1,0]]"},
	{"redistributions/1/steps/0/kind", "\"Slice\""},
	{"redistributions/1/steps/0/axis", "[1,4]"},
	{"redistributions/1/steps/0/bytes_before", "256"},
	{"redistributions/1/steps/0/bytes_after", "64"},
	{"parameters/1/name", "\"w1\""},
	{"parameters/1/dev_matrix", "[2,4]"},
	{"parameters/1/tensor_map", "[-1,0]"},
	{"parameters/1/tensor_shape", "[8,32]"},
	{"parameters/1/slice_shape", "[8,8]"},
	{"parameters/1/gradient_group", "{\"axes\":[[4,2]],\"ranks\":[0,4]}"},
	{"parameters/1/optimizer_group", "null"},
	{"parameters/1/gradient_groups", "[{\"operator\":\"up\",\"operand\":1,\"kind\":"
		"\"AllReduce\",\"axes\":[[4,2]],\"ranks\":[0,4]}]"},
	{"fusion/0/kind", "\"AllReduce\""},
	{"fusion/0/bytes", "512"},
	{"fusion/0/parameters", "[\"w2\",\"w1\"]"},
	{"schedule/0/event", "\"redistribution\""},
	{"schedule/0/redistribution", "0"},
	{"schedule/1/event", "\"forward\""},
	{"schedule/1/operator", "0"},
	{"schedule/4/event", "\"communication\""},
	{"schedule/4/operator", "2"},
	{"schedule/4/communication", "0"},
};

START_LOOP_TEST(values, AP_COUNT(expected))
{
	struct made m;

	make(&m, 1);
	ck_assert_str_eq(text_at(&m, expected[_i].path), expected[_i].text);
	fixture_close(&m.f);
}
END_TEST

/* Numbers come back as they were. */
START_TEST(numbers_are_exact)
{
	struct made m;

	make(&m, 1);
	ck_assert(ap_jv_double(at(&m, "search/objective_s")) == m.plan.search.objective_s);
	ck_assert(ap_jv_double(at(&m, "prediction/step_time_s")) == m.plan.prediction.step_time_s);
	ck_assert(
		ap_jv_double(at(&m, "operators/1/cost/forward_s")) == m.plan.op[1].cost.forward_s);
	ck_assert_uint_eq(ap_jv_count(at(&m, "schedule")), m.plan.nevent);
	ck_assert_uint_eq(ap_jv_count(at(&m, "redistributions")), m.plan.nmove);
	ck_assert_uint_eq(ap_jv_count(at(&m, "parameters")), 3);
	fixture_close(&m.f);
}
END_TEST

START_TEST(slices_are_those_of_a_micro_batch)
{
	struct made m;

	make(&m, 2);
	ck_assert_str_eq(text_at(&m, "operators/1/in_slice"), "[[4,8],[8,8]]");
	ck_assert_str_eq(text_at(&m, "operators/1/out_slice"), "[[4,8]]");
	ck_assert_str_eq(text_at(&m, "stages/0/micro_batches"), "2");
	fixture_close(&m.f);
}
END_TEST

START_TEST(picture_of_the_file_is_that_of_the_plan)
{
	struct ap_picture of_plan, of_file;
	struct ap_saved saved;
	uint32_t boxes, same;
	const char *a, *b;
	struct made m;
	size_t na, nb;

	make(&m, 1);
	ap_picture_of_plan(&m.f.ctx, &m.plan, &of_plan);
	ck_assert_int_eq(ap_saved_of_plan(&m.f.ctx, m.doc, &saved), AP_OK);
	ap_picture_of_saved(&m.f.ctx, &saved, NULL, &of_file);
	ck_assert_uint_eq(of_plan.nnode, 5);
	ck_assert_uint_eq(of_plan.nedge, 4);
	ck_assert_str_eq(of_plan.node[1].cut, "2x1, 1x4 to 2x4");
	ck_assert_int_eq(of_plan.node[1].cls, AP_PIC_BOTH);
	ck_assert_str_eq(of_plan.node[2].cut, "2x4, 4x1 to 2x1, partial over 4");
	ck_assert_str_eq(of_plan.node[4].name, "x");
	ck_assert_str_eq(of_plan.node[4].type, "Input");
	ck_assert_ptr_nonnull(strstr(of_plan.edge[3].moves, "Slice"));
	ck_assert_str_eq(of_plan.node[0].key, of_file.node[0].key);
	for (int detail = AP_PIC_FOLD; detail <= AP_PIC_FULL; detail++) {
		ck_assert_int_eq(ap_emit_dot(&m.f.ctx, &of_plan, detail, &a, &na, &boxes), AP_OK);
		ck_assert_int_eq(ap_emit_dot(&m.f.ctx, &of_file, detail, &b, &nb, &same), AP_OK);
		ck_assert_str_eq(a, b);
		ck_assert_uint_eq(boxes, 5);
		ck_assert_uint_eq(same, 5);
	}
	fixture_close(&m.f);
}
END_TEST

START_TEST(picture_of_a_graph)
{
	struct ap_picture pic;
	struct made m;

	make(&m, 1);
	ap_picture_of_graph(&m.f.ctx, m.f.graph, &pic);
	ck_assert_str_eq(pic.title, "pair");
	ck_assert_uint_eq(pic.nnode, 5);
	ck_assert_uint_eq(pic.nedge, 4);
	for (uint32_t i = 0; i < pic.nnode; i++) {
		ck_assert_int_eq(pic.node[i].cls, AP_PIC_NONE);
		ck_assert_str_eq(pic.node[i].cut, "");
	}
	ck_assert_uint_eq(pic.edge[0].from, 4);
	ck_assert_uint_eq(pic.edge[0].to, 0);
	fixture_close(&m.f);
}
END_TEST

/* Plan files that are no plan files: any one member spoilt. */
static const struct spoilt {
	const char *from, *to, *says;
} spoilt[] = {
	{"autopar-plan/1", "autopar-plan/9", "expected \"autopar-plan/1\""},
	{"\n \"graph\": {", "\n \"Graph\": {", "graph"},
	{"\"to\": \"loss\"", "\"to\": \"lost\"", "no operator of this plan"},
	{"\"operand\": 0,\n   \"tensor\": \"y\"", "\"operand\": 7,\n   \"tensor\": \"y\"",
		"operand"},
	{"\"name\": \"up\"", "\"name\": \"down\"", "there already"},
	{"\"outputs\": [\"h\"]", "\"outputs\": [\"x0\"]", "two operators make"},
	{"\"parts\": 2", "\"parts\": 0", ""},
	{"\"cell\": \"mlp\"", "\"cell\": 5", ""},
	{"\"kind\": \"Slice\"", "\"kind\": {}", ""},
};

START_LOOP_TEST(spoilt_files, AP_COUNT(spoilt))
{
	const struct spoilt *sp = &spoilt[_i];
	struct ap_saved saved;
	struct ap_json *doc;
	struct made m;
	struct ap_str s;
	const char *found;

	make(&m, 1);
	found = strstr(m.text, sp->from);
	ck_assert_msg(found != NULL, "no %s in %s", sp->from, m.text);
	s = new_str(&m.f.ctx);
	ap_str_addn(&s, m.text, (size_t)(found - m.text));
	ap_str_add(&s, sp->to);
	ap_str_add(&s, found + strlen(sp->from));
	ck_assert_int_eq(ap_json_parse(&m.f.ctx, "p", s.s, s.len, 0, &doc), AP_OK);
	ck_assert_int_eq(ap_saved_of_plan(&m.f.ctx, doc, &saved), AP_MEANING);
	ck_assert_msg(strstr(last_message(&m.f.ctx, NULL), sp->says), "%s",
		last_message(&m.f.ctx, NULL));
	fixture_close(&m.f);
}
END_TEST

/* ---- the summary ---- */

static void set_figures(struct made *m)
{
	struct ap_plan_op *op = ap_arena_memdup(m->f.ctx.arena, m->plan.op, 4 * sizeof *op);
	struct ap_plan_move *move = ap_arena_memdup(m->f.ctx.arena, m->plan.move, 2 * sizeof *move);

	ck_assert_uint_eq(m->plan.nmove, 2);
	for (int i = 0; i < 4; i++)
		op[i].cost = (struct ap_op_cost){.forward_s = 1e-3 * i};
	op[1].cost.gradient_s = 3e-3;
	move[0].cost = (struct ap_move_cost){0};
	move[1].cost =
		(struct ap_move_cost){.forward_s = 2e-6, .backward_s = 1e-6, .bytes = 3 << 20};
	m->plan.op = op;
	m->plan.move = move;
	m->plan.capacity_bytes = INT64_C(4) << 30;
	m->plan.search = (struct ap_search_info){.mode = "dynamic_programming",
		.status = AP_PLAN_FEASIBLE, .complete = true, .objective_s = 1.5e-3,
		.lower_bound_s = 1.2e-3, .gap = 0.25, .step_bound_s = 1.6e-3,
		.step_gap = 0.25, .step_status = AP_STEP_BOUNDED, .work = 77};
	m->plan.prediction = (struct ap_prediction){.step_time_s = 2e-3, .compute_s = 1e-3,
		.communication_s = 7e-4, .exposed_communication_s = 5e-4, .optimizer_s = 5e-4,
		.samples_per_s = 8000,
		.memory = {.weights = 1 << 30, .activations = 512 << 20, .total = 1536 << 20}};
}

START_TEST(summary_for_people)
{
	static const char text[] =
		"verdict           33.3 % less time than data parallel, the best of the plans tried first; at most "
		"25.0 % above the shortest step\n"
		"graph             pair: 4 operators, 3 parameters in use\n"
		"devices           8 x ascend910a on 2 servers\n"
		"step time            2.00 ms, 8000.0 samples/s\n"
		"  bound              1.60 ms, the step is 25.0 % above it, for 1 micro-batch and 1 stage, as given\n"
		"                  [#########################=============++++++++++++] # compute, = exposed "
		"communication, + optimizer\n"
		"  compute            1.00 ms   50.0 %\n"
		"    of kernels    matrix products 50.0 %, reductions and running results 50.0 %\n"
		"  communication       700 us\n"
		"    exposed           500 us   25.0 %\n"
		"  optimizer           500 us   25.0 %\n"
		"  error              unknown: no measured step of mindspore is known\n"
		"objective            1.50 ms, bound 1.20 ms, 25.0 % above it "
		"(dynamic_programming, feasible)\n"
		"memory              1.50 GiB of 4.00 GiB usable on a device, 37.5 %\n"
		"  weights           1.00 GiB\n"
		"  activations        512 MiB\n"
		"data parallel        3.00 ms, 1.50 times the plan's, 1.00 MiB, 50.0 % above the bound\n"
		"other                      -  no batch\n"
		"checkpoint        pins 3 operators; 1 it cannot pin (no trainable parameter)\n"
		"\nmost expensive operators, time per step and share of all:\n"
		"   4.00 ms  44.4 %          [2,4]       MatMul                mlp/up\n"
		"   3.00 ms  33.3 %          []          ReduceMean            loss\n"
		"   2.00 ms  22.2 %          [2,1]       MatMul                mlp/down\n"
		"\nmost expensive redistributions, time per step and share of all, bytes of each:\n"
		"   3.00 us   0.0 %          [2,1]       -> [8,1]         3.00 MiB  y\n";
	struct ap_str s;
	struct made m;

	make(&m, 1);
	set_figures(&m);
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, true, &s);
	ck_assert_str_eq(s.s, text);
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, false, &s);
	ck_assert_ptr_null(strstr(s.s, "objective"));
	m.plan.search.step_status = AP_STEP_PROVEN;
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, false, &s);
	ck_assert_ptr_nonnull(strstr(s.s, "tried first; nothing is faster\n"));
	m.plan.capacity_bytes = 1 << 30;
	m.plan.search.status = AP_PLAN_GIVEN;
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, true, &s);
	ck_assert_ptr_nonnull(strstr(s.s, "150.0 %: DOES NOT FIT\n"));
	ck_assert_ptr_null(strstr(s.s, "bound"));
	fixture_close(&m.f);
}
END_TEST

START_TEST(summary_for_programs)
{
	struct ap_str s;
	struct made m;

	make(&m, 1);
	set_figures(&m);
	s = new_str(&m.f.ctx);
	ap_emit_summary_json(&m.plan, NULL, to_str, &s);
	ck_assert_int_eq(ap_json_parse(&m.f.ctx, "s", s.s, s.len, 0, &m.doc), AP_OK);
	m.root = ap_json_root(m.doc);
	ck_assert_str_eq(text_at(&m, "schema"), "\"autopar-summary/1\"");
	ck_assert_str_eq(text_at(&m, "operators_not_pinned"), "1");
	ck_assert_str_eq(text_at(&m, "search/gap"), "0.25");
	ck_assert_str_eq(text_at(&m, "prediction/step_time_s"), "0.002");
	ck_assert_str_eq(text_at(&m, "expensive_operators/0"),
		"{\"name\":\"up\",\"type\":\"MatMul\",\"time_s\":0.004}");
	ck_assert_uint_eq(ap_jv_count(at(&m, "expensive_operators")), 3);
	ck_assert_str_eq(text_at(&m, "expensive_redistributions/0/bytes"), "3145728");
	fixture_close(&m.f);
}
END_TEST

/* A host program may have set a locale with a comma. */
START_TEST(no_locale_in_the_text)
{
	struct made m, again;

	make(&m, 1);
	if (setlocale(LC_ALL, "de_DE.UTF-8")) {
		make(&again, 1);
		ck_assert_str_eq(m.text, again.text);
		fixture_close(&again.f);
		setlocale(LC_ALL, "C");
	}
	fixture_close(&m.f);
}
END_TEST

static void on_oom(void *user, size_t wanted)
{
	(void)wanted;
	longjmp(*(jmp_buf *)user, 1);
}

/* The writer allocates where the run does, and so ends as the run ends when memory is short. */
START_TEST(out_of_memory_is_the_runs)
{
	static jmp_buf full;
	static struct made m;
	struct ap_ctx ctx;
	volatile bool ended = false;

	make(&m, 1);
	ctx = m.f.ctx;
	ctx.scratch = ap_arena_create(64, on_oom, &full);
	if (!setjmp(full)) {
		struct ap_str s = new_str(&ctx);

		ap_emit_plan_json(&ctx, &m.plan, to_str, &s);
		ended = true;
	}
	ck_assert(!ended);
	ap_arena_destroy(ctx.scratch);
	fixture_close(&m.f);
}
END_TEST
