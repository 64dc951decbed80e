/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file of a pipeline, and what is read back from it. */
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_make.h"
#include "diff/diff.h"
#include "draw/dot.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "planfile/plan_read.h"
#include "report/summary.h"
#include "json_at.h"
#include "pipe_test.h"

struct made {
	struct fixture f;
	struct ap_plan plan;
	struct ap_json *doc;
};

/* Beside what the simulation found, a bucket and slots whose numbers are known. */
static void add_known(struct made *m)
{
	static const ap_id tensors[] = {0};
	static struct ap_bucket bucket = {.kind = AP_COLL_ALLREDUCE, .stage = 1,
		.axes = {1, {{1, 4}}}, .bytes = 512, .time_s = 0.5, .n = 1, .tensor = tensors};
	static const uint32_t first[] = {0, 1, 3};
	static const struct ap_slot_time slots[] = {{{AP_PASS_FORWARD, 0, 0}, 0, 1},
		{{AP_PASS_FORWARD, 0, 0}, 1, 2}, {{AP_PASS_BACKWARD, 0, 0}, 2, 4.5}};
	static const struct ap_timeline timeline = {.nstage = 2, .first = first, .slot = slots,
		.end_s = 4.5};

	m->plan.nbucket = 1;
	m->plan.bucket = &bucket;
	m->plan.timeline = &timeline;
}

static void write_file(struct made *m)
{
	struct ap_str s = new_str(&m->f.ctx);

	ap_emit_plan_json(&m->f.ctx, &m->plan, to_str, &s);
	ck_assert_int_eq(ap_json_parse(&m->f.ctx, "p.json", s.s, s.len, 0, &m->doc), AP_OK);
}

static void make(struct made *m)
{
	open_pipe(&m->f, &m->plan);
	add_known(m);
	m->plan.search.mode = "given";
	write_file(m);
}

/* "operators/3" of the operator of this name. */
static const char *path_of(struct made *m, const char *list, const char *name, const char *rest)
{
	const struct ap_jv *v = ap_jv_first(json_at(&m->f.ctx, m->doc, list));

	for (int i = 0; v; v = ap_jv_next(v), i++)
		if (!strcmp(ap_jv_str(ap_jv_get(v, "name")), name))
			return ap_arena_printf(m->f.ctx.arena, "%s/%d/%s", list, i, rest);
	ck_abort_msg("no %s", name);
	return NULL;
}

static const struct {
	const char *list, *name, *path, *text;
} values[] = {
	{NULL, NULL, "machine/devices", "8"},
	{NULL, NULL, "pipeline", "{\"stages\":2,\"segments\":1,\"devices_per_stage\":4,"
		"\"micro_batches\":4,\"scheduler\":\"1f1b\"}"},
	{NULL, NULL, "stages/0/first_rank", "0"},
	{NULL, NULL, "stages/1/first_rank", "4"},
	{NULL, NULL, "stages/1/ranks", "[4,5,6,7]"},
	{NULL, NULL, "stages/0/operators", "3"},
	{NULL, NULL, "stages/1/operators", "3"},
	{NULL, NULL, "stages/0/in_flight", "2"},
	{NULL, NULL, "stages/1/in_flight", "1"},
	{NULL, NULL, "stages/1/slots/1", "{\"pass\":\"backward\",\"segment\":0,\"micro_batch\":0,"
		"\"start_s\":2,\"end_s\":4.5}"},
	{NULL, NULL, "prediction/memory/1/stage", "1"},
	{NULL, NULL, "fusion/0/ranks", "[4,5,6,7]"},
	{NULL, NULL, "fusion/0/bytes", "512"},
	{"operators", "up", "stage", "0"},
	{"operators", "down", "stage", "1"},
	{"operators", "down", "segment", "0"},
	{"operators", "Send/i/0.0->1.0", "communications/0/kind", "\"Send\""},
	{"operators", "Send/i/0.0->1.0", "communications/0/from_stage", "0"},
	{"operators", "Send/i/0.0->1.0", "communications/0/to_stage", "1"},
	{"operators", "Send/i/0.0->1.0", "communications/0/ranks", "[0,4]"},
	{"operators", "Send/i/0.0->1.0", "communications/0/axes", "[[4,2]]"},
	/* 16 of 64 rows of 16 columns in float32, whole on every rank */
	{"operators", "Send/i/0.0->1.0", "communications/0/bytes", "1024"},
	{"operators", "Send/i/0.0->1.0", "in_checkpoint", "false"},
	{"parameters", "fc1.weight", "stage", "0"},
	{"parameters", "fc2.weight", "stage", "1"},
	{"parameters", "fc1.weight", "gradient_group/ranks", "[0,2]"},
	{"parameters", "fc2.weight", "gradient_group/ranks", "[4,5,6,7]"},
};

START_LOOP_TEST(value, AP_COUNT(values))
{
	struct made m;
	const char *path;

	make(&m);
	path = values[_i].list ? path_of(&m, values[_i].list, values[_i].name, values[_i].path)
		: values[_i].path;
	ck_assert_str_eq(json_text_at(&m.f.ctx, m.doc, path), values[_i].text);
	fixture_close(&m.f);
}
END_TEST

/* Memory of a stage is told by kind, and adds up. */
START_TEST(memory_of_each_stage_adds_up)
{
	struct made m;

	make(&m);
	for (int s = 0; s < 2; s++) {
		const struct ap_jv *stage = json_at(&m.f.ctx, m.doc,
			ap_arena_printf(m.f.ctx.arena, "prediction/memory/%d", s));
		double sum = 0, total = 0;

		for (const struct ap_jv *v = ap_jv_first(stage); v; v = ap_jv_next(v))
			if (!strcmp(ap_jv_key(v), "total_bytes"))
				total = ap_jv_double(v);
			else if (strcmp(ap_jv_key(v), "stage") != 0)
				sum += ap_jv_double(v);
		ck_assert_double_eq(sum, total);
		ck_assert_double_eq(total, (double)m.plan.stage[s].memory.total);
	}
	fixture_close(&m.f);
}
END_TEST

START_TEST(events_name_their_stage)
{
	const struct ap_jv *list;
	struct made m;
	int events[2] = {0};

	make(&m);
	list = json_at(&m.f.ctx, m.doc, "schedule");
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const struct ap_jv *node = ap_jv_get(v, "operator");
		int64_t stage, index;

		ck_assert(ap_jv_int(m.doc, ap_jv_get(v, "stage"), &stage));
		if (!node)
			continue;
		ck_assert(ap_jv_int(m.doc, node, &index));
		ck_assert_int_eq(stage, m.plan.graph->node[index].stage);
		events[stage]++;
	}
	ck_assert_int_gt(events[0], 0);
	ck_assert_int_gt(events[1], 0);
	fixture_close(&m.f);
}
END_TEST

static struct ap_saved read_plan(struct made *m)
{
	struct ap_saved saved;

	ck_assert_int_eq(ap_saved_of_plan(&m->f.ctx, m->doc, &saved), AP_OK);
	return saved;
}

static const struct ap_diff_figure *figure(const struct ap_diff *d, const char *section,
	const char *key)
{
	const struct ap_diff_figure *f = ap_diff_figure(d, section, key);

	ck_assert_msg(f != NULL, "no %s %s", section, key);
	return f;
}

START_TEST(plans_of_pipelines_are_compared)
{
	static const int64_t held[] = {1, 1, 1};
	struct ap_plan_stage stage[2];
	struct ap_saved was, is;
	struct made a, b;
	struct ap_diff d;

	make(&a);
	make(&b);
	was = read_plan(&a);
	ap_diff_make(&a.f.ctx, &was, &was, &d);
	ck_assert(d.equal);
	memcpy(stage, b.plan.stage, sizeof stage);
	stage[1].in_flight = 2;
	stage[0].held = stage[1].held = held;
	b.plan.stage = stage;
	b.f.pipe.nsegment = 3;
	write_file(&b);
	is = read_plan(&b);
	ap_diff_make(&a.f.ctx, &was, &is, &d);
	ck_assert(!d.equal);
	ck_assert(figure(&d, "stages", "stage 1.in_flight")->changed);
	ck_assert_double_eq(figure(&d, "stages", "stage 1.in_flight")->is_number, 2);
	ck_assert(!figure(&d, "stages", "stage 0.in_flight")->changed);
	ck_assert(figure(&d, "pipeline", "segments")->changed);
	ck_assert_uint_eq(d.operators.n, 0);
	fixture_close(&a.f);
	fixture_close(&b.f);
}
END_TEST

START_TEST(a_plan_and_its_merged_checkpoint_are_equal)
{
	struct ap_saved plan, ckpt;
	struct ap_ckpt c;
	struct ap_diff d;
	struct made m;

	make(&m);
	plan = read_plan(&m);
	ap_ckpt_of_plan(&m.f.ctx, &m.plan, false, &c);
	ap_saved_of_ckpt(&m.f.ctx, &c, &ckpt);
	ap_diff_make(&m.f.ctx, &plan, &ckpt, &d);
	ck_assert_uint_eq(d.operators.of[0], 3);
	ck_assert_uint_eq(d.operators.of[1], 3);
	ck_assert(d.equal);
	fixture_close(&m.f);
}
END_TEST

static const struct ap_plan_stage stages[] = {
	{0, 4, 3, 2, {.weights = 1 << 20, .gathered = 1 << 20, .total = 2 << 20}, 1 << 20, 0.001, 0.002,
		0.003},
	{4, 4, 3, 1, {.weights = 1 << 20, .recompute = 3 << 20, .total = 4 << 20}, 3 << 20, 0.0015, 0.0025,
		0.0005},
};

static void set_figures(struct made *m)
{
	m->plan.stage = stages;
	m->plan.prediction = (struct ap_prediction){.step_time_s = 0.02, .compute_s = 0.01,
		.communication_s = 0.004, .exposed_communication_s = 0.002, .bubble_s = 0.005,
		.optimizer_s = 0.001, .memory = stages[1].memory};
	m->plan.search = (struct ap_search_info){.mode = "given", .status = AP_PLAN_GIVEN,
		.complete = true, .objective_s = 0.03};
	m->plan.capacity_bytes = 8 << 20;
	m->plan.nmove = 0;
	m->plan.nbaseline = 0;
}

START_TEST(summary_of_a_pipeline)
{
	static const char head[] =
		"verdict           fits, with 50.0 % of the memory filled\n"
		"graph             pipe: 6 operators, 3 parameters in use\n"
		"devices           8 x ascend910a on 1 server\n"
		"pipeline          2 stages of 4 devices, 1f1b, 4 micro-batches, bubble 25.0 %\n"
		"step time            20.0 ms\n"
		"                  [#########################=====.............++     ] # compute, = exposed "
		"communication, . bubble, + optimizer\n"
		"  compute            10.0 ms   50.0 %\n"
		"    of kernels    matrix products 75.8 %, element by element 12.1 %, reductions and running "
		"results 12.1 %\n"
		"  communication      4.00 ms\n"
		"    exposed          2.00 ms   10.0 %\n"
		"  bubble             5.00 ms   25.0 %\n"
		"  optimizer          1.00 ms    5.0 %\n"
		"  error              unknown: no measured step of mindspore is known\n"
		"objective            30.0 ms (given)\n"
		"memory              4.00 MiB of 8.00 MiB usable on a device of stage 1, 50.0 %\n"
		"  weights           1.00 MiB\n"
		"  recompute         3.00 MiB\n"
		"checkpoint        pins 3 operators; 3 it cannot pin (no trainable parameter)\n"
		"\nstages, times of one micro-batch, idle time of the step:\n"
		"       ranks        operators  in flight      memory        peak    forward   backward"
		"       idle\n"
		"    0  0-3                  3          2    2.00 MiB    1.00 MiB    1.00 ms    2.00 ms"
		"    3.00 ms\n"
		"    1  4-7                  3          1    4.00 MiB    3.00 MiB    1.50 ms    2.50 ms"
		"     500 us\n\n";
	struct ap_str s;
	struct made m;

	make(&m);
	set_figures(&m);
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, true, &s);
	ck_assert_uint_gt(s.len, sizeof head);
	s.s[sizeof head - 1] = '\0';
	ck_assert_str_eq(s.s, head);
	fixture_close(&m.f);
}
END_TEST

START_TEST(summary_of_a_pipeline_for_programs)
{
	struct ap_str s;
	struct made m;

	make(&m);
	set_figures(&m);
	s = new_str(&m.f.ctx);
	ap_emit_summary_json(&m.plan, NULL, to_str, &s);
	ck_assert_int_eq(ap_json_parse(&m.f.ctx, "s", s.s, s.len, 0, &m.doc), AP_OK);
	ck_assert_str_eq(json_text_at(&m.f.ctx, m.doc, "pipeline/scheduler"), "\"1f1b\"");
	ck_assert_str_eq(json_text_at(&m.f.ctx, m.doc, "stages/1"),
		"{\"id\":1,\"first_rank\":4,\"operators\":3,\"segments\":1,\"micro_batches\":4,"
		"\"in_flight\":1,\"memory_bytes\":4194304,\"peak_bytes\":3145728,"
		"\"forward_s\":0.0015,\"backward_s\":0.0025,\"idle_s\":0.0005}");
	ck_assert_str_eq(json_text_at(&m.f.ctx, m.doc, "prediction/memory/1/recompute_bytes"),
		"3145728");
	fixture_close(&m.f);
}
END_TEST

/* Of many baselines the best: those that fit by time, then those that do not. */
START_TEST(many_baselines)
{
	static const char lines[] =
		"d                    2.00 ms, 0.10 times the plan's, 1.00 MiB\n"
		"a_name_that_is_long    3.00 ms, 0.15 times the plan's, 1.00 MiB\n"
		"a                    5.00 ms, 0.25 times the plan's, 1.00 MiB\n"
		"g                    1.00 ms, 0.05 times the plan's, 1.00 GiB (does not fit)\n"
		"f                    4.00 ms, 0.20 times the plan's, 1.00 GiB (does not fit)\n"
		"                         and 2 more, which --plan-out lists\n";
	static const struct ap_baseline baselines[] = {
		{"a", true, NULL, 0.005, 0.005, 1 << 20, true},
		{"b", false, "no batch", 0, 0, 0, false},
		{"c", true, NULL, 0.006, 0.006, 1 << 30, false},
		{"d", true, NULL, 0.002, 0.002, 1 << 20, true},
		{"a_name_that_is_long", true, NULL, 0.003, 0.003, 1 << 20, true},
		{"f", true, NULL, 0.004, 0.004, 1 << 30, false},
		{"g", true, NULL, 0.001, 0.001, 1 << 30, false},
	};
	struct ap_str s;
	struct made m;

	make(&m);
	set_figures(&m);
	m.plan.nbaseline = AP_COUNT(baselines);
	m.plan.baseline = baselines;
	s = new_str(&m.f.ctx);
	ap_emit_summary(&m.f.ctx, &m.plan, NULL, true, &s);
	ck_assert_msg(strstr(s.s, lines) != NULL, "%s", s.s);
	fixture_close(&m.f);
}
END_TEST

static const char *dot_of(struct made *m, const struct ap_picture *pic, enum ap_pic_detail detail)
{
	const char *text = NULL;
	uint32_t nbox;
	size_t len;

	ck_assert_int_eq(ap_emit_dot(&m->f.ctx, pic, detail, &text, &len, &nbox), AP_OK);
	return ap_arena_strndup(m->f.ctx.arena, text, len);
}

/* Each stage is a cluster, with what it holds; between them a dashed edge with the bytes. */
START_LOOP_TEST(picture_of_a_pipeline, 2)
{
	struct ap_picture of_plan, of_file;
	struct ap_saved saved;
	const char *text, *stage, *send;
	struct made m;

	make(&m);
	ap_picture_of_plan(&m.f.ctx, &m.plan, &of_plan);
	ck_assert_int_eq(ap_saved_of_plan(&m.f.ctx, m.doc, &saved), AP_OK);
	ap_picture_of_saved(&m.f.ctx, &saved, NULL, &of_file);
	text = dot_of(&m, &of_plan, _i ? AP_PIC_FULL : AP_PIC_FOLD);
	ck_assert(!strcmp(dot_of(&m, &of_file, _i ? AP_PIC_FULL : AP_PIC_FOLD), text));
	stage = strstr(text, ">stage 0 (3)<");
	ck_assert_msg(stage != NULL, "%.3000s", text);
	stage = strstr(stage, ">stage 1 (3)<");
	ck_assert_msg(stage != NULL, "%.3000s", text);
	send = strstr(text, "label=\" Send 1.00 KiB\"");
	ck_assert_msg(send != NULL && strstr(send, "style=dashed") != NULL, "%.3000s", text);
	ck_assert_ptr_nonnull(strstr(text, "2 pipeline stages, 1f1b, 4 micro-batches"));
	fixture_close(&m.f);
}
END_TEST

/* A loop is one of a stage: layers of two stages are drawn twice. */
START_TEST(layers_are_folded_in_their_stage)
{
	enum { N = 24 };
	struct ap_pic_node node[N];
	struct ap_pic_edge edge[N - 1];
	struct ap_picture pic = {.title = "t", .facts = "", .nnode = N, .noperator = N,
		.node = node, .nedge = N - 1, .edge = edge};
	const char *text;
	struct made m;

	make(&m);
	for (uint32_t i = 0; i < N; i++) {
		const char *part = i < N / 2 ? "stage 0" : "stage 1";

		node[i] = (struct ap_pic_node){.name = ap_arena_printf(m.f.ctx.arena, "n%u", i),
			.type = i % 2 ? "Softmax" : "MatMul", .part = part, .cut = "", .slice = "",
			.comms = "",
			.cell = ap_arena_printf(m.f.ctx.arena, "layers.%u", i / 2)};
		node[i].key = ap_arena_printf(m.f.ctx.arena, "%s@%s", node[i].type, part);
		if (i)
			edge[i - 1] = (struct ap_pic_edge){.from = i - 1, .to = i, .tensor = "t",
				.moves = "", .sent = i == N / 2, .sent_bytes = i == N / 2 ? 64 : 0};
	}
	text = dot_of(&m, &pic, AP_PIC_FOLD);
	ck_assert_msg(strstr(text, "x 5: layers.1 to layers.5") != NULL, "%.3000s", text);
	ck_assert_msg(strstr(text, "x 6: layers.6 to layers.11") != NULL, "%.3000s", text);
	ck_assert_ptr_nonnull(strstr(text, "label=\" Send 64 B\""));
	fixture_close(&m.f);
}
END_TEST
