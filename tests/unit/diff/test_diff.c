/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between two plans, two checkpoints, or one of each. */
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "planfile/plan_read.h"
#include "diff_test.h"

/* Four layers of a product and a sum. */
static void add_layers(struct ap_ctx *ctx, struct op_spec *op, const char *const cut[4])
{
	for (int i = 0; i < 4; i++) {
		op[2 * i] = (struct op_spec){
			.name = ap_arena_printf(ctx->arena, "layers.%d.up", i),
			.type = "MatMul",
			.cut = cut[i],
			.in = i ? ap_arena_printf(ctx->arena, "\"s%d\",\"w%d\"", i - 1, i)
				: "\"x\",\"w0\"",
			.out = ap_arena_printf(ctx->arena, "\"p%d\"", i)};
		op[2 * i + 1] = (struct op_spec){
			.name = ap_arena_printf(ctx->arena, "layers.%d.add", i),
			.type = "Add",
			.cut = "[[8,1],[8,1]]",
			.in = ap_arena_printf(ctx->arena, "\"p%d\",\"p%d\"", i, i),
			.out = ap_arena_printf(ctx->arena, "\"s%d\"", i)};
	}
}

START_TEST(test_equal)
{
	struct ap_ctx ctx = new_ctx();
	struct op_spec op[8];
	struct plan_spec a = {.op = op, .nop = 8}, b = a;
	const struct ap_diff_figure *work;
	struct ap_diff d;

	add_layers(&ctx, op, (const char *const[]){"[[8,1]]", "[[8,1]]", "[[8,1]]", "[[8,1]]"});
	b.version = "0.2.0"; /* how a plan came about is noted, but no difference */
	b.work = "8";
	compare(&ctx, &a, &b, &d);
	ck_assert(d.equal);
	ck_assert_uint_eq(d.operators.n + d.parameters.n + d.totals.n + d.redistributions.n, 0);
	work = ap_diff_figure(&d, "search", "work");
	ck_assert(work && work->changed && work->noted);
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), "no difference"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_layers_are_joined)
{
	struct ap_ctx ctx = new_ctx();
	struct op_spec was[8], is[8];
	const struct ap_diff_line *l;
	struct ap_diff d;

	add_layers(&ctx, was, (const char *const[]){"[[8,1]]", "[[8,1]]", "[[8,1]]", "[[8,1]]"});
	add_layers(&ctx, is, (const char *const[]){"[[4,2]]", "[[4,2]]", "[[2,4]]", "[[4,2]]"});
	compare(&ctx, &(struct plan_spec){.op = was, .nop = 8},
		&(struct plan_spec){.op = is, .nop = 8}, &d);
	ck_assert(!d.equal);
	ck_assert_uint_eq(d.operators.things, 4);
	ck_assert_uint_eq(d.operators.of[1], 8);
	ck_assert_uint_eq(d.operators.n, 2);
	l = d.operators.v;
	ck_assert_str_eq(l[0].label, "layers.[0,1,3].up");
	ck_assert_str_eq(l[0].type, "MatMul");
	ck_assert_uint_eq(l[0].n, 3);
	ck_assert_str_eq(l[0].name[2], "layers.3.up");
	ck_assert_uint_eq(l[0].nfield, 1);
	ck_assert_str_eq(l[0].field[0].was, "[[8,1]]");
	ck_assert_str_eq(l[0].field[0].is, "[[4,2]]");
	ck_assert_str_eq(l[1].label, "layers.2.up");
	ck_assert_str_eq(l[1].field[0].is, "[[2,4]]");
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_new_and_gone)
{
	const struct op_spec was[] = {{"a", "MatMul", "[[1]]", "\"x\",\"w\"", "\"t\"", NULL},
		{"b", "ReLU", "[[1]]", "\"t\"", "\"u\"", NULL}};
	const struct op_spec is[] = {{"a", "MatMul", "[[1]]", "\"x\",\"w\"", "\"t\"", NULL},
		{"c", "GeLU", "[[2]]", "\"t\"", "\"u\"", NULL}};
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;

	compare(&ctx, &(struct plan_spec){.op = was, .nop = 2},
		&(struct plan_spec){.op = is, .nop = 2}, &d);
	ck_assert_uint_eq(d.operators.n, 2);
	ck_assert_int_eq(d.operators.v[0].kind, AP_DIFF_ADDED);
	ck_assert_str_eq(d.operators.v[0].label, "c");
	ck_assert_int_eq(d.operators.v[1].kind, AP_DIFF_REMOVED);
	ck_assert_str_eq(d.operators.v[1].label, "b");
	free_ctx(&ctx);
}
END_TEST

/* Every name of operators, tensors and parameters is another; the graph's input stays. */
START_TEST(test_renamed)
{
	const struct op_spec was[] = {
		{"net.1.mm", "MatMul", "[[8,1]]", "\"x\",\"w1\"", "\"t1\"", NULL},
		{"net.2.mm", "MatMul", "[[8,1]]", "\"t1\",\"w2\"", "\"t2\"", NULL},
		{"net.2.relu", "ReLU", "[[8,1]]", "\"t2\"", "\"t3\"", NULL}};
	const struct op_spec is[] = {
		{"block.1.mm", "MatMul", "[[8,1]]", "\"x\",\"wa1\"", "\"u1\"", NULL},
		{"block.2.mm", "MatMul", "[[8,1]]", "\"u1\",\"wa2\"", "\"u2\"", NULL},
		{"block.2.relu", "ReLU", "[[4,2]]", "\"u2\"", "\"u3\"", NULL}};
	struct plan_spec a = {.op = was, .nop = 3}, b = {.op = is, .nop = 3};
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;

	a.params = PARAM("w1", "[8,32]", "1") "," PARAM("w2", "[8,32]", "1");
	b.params = PARAM("wa1", "[8,32]", "1") "," PARAM("wa2", "[8,32]", "1");
	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.operators.n, 2);
	ck_assert_int_eq(d.operators.v[0].kind, AP_DIFF_RENAMED);
	ck_assert_str_eq(d.operators.v[0].label, "block.[1,2].mm");
	ck_assert_str_eq(d.operators.v[0].old_label, "net.[1,2].mm");
	ck_assert_str_eq(d.operators.v[0].old_name[1], "net.2.mm");
	ck_assert_uint_eq(d.operators.v[0].nfield, 0);
	ck_assert_int_eq(d.operators.v[1].kind, AP_DIFF_RENAMED);
	ck_assert_uint_eq(d.operators.v[1].nfield, 1);
	ck_assert_uint_eq(d.parameters.n, 1);
	ck_assert_str_eq(d.parameters.v[0].label, "wa[1,2]");
	ck_assert_str_eq(d.parameters.v[0].old_label, "w[1,2]");
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false),
		"=  2  MatMul  block.[1,2].mm, was net.[1,2].mm"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_collectives)
{
	const struct op_spec was[] = {
		{"l0", "MatMul", "[]", NULL, NULL,
			COMM("AllReduce", "forward", "100", "8") "," COMM("AllReduce", "gradient",
				"50", "4")},
		{"l1", "MatMul", "[]", NULL, NULL,
			COMM("AllReduce", "forward", "100", "8") "," COMM("AllReduce", "gradient",
				"50", "4")}};
	const struct op_spec is[] = {
		{"l0", "MatMul", "[]", NULL, NULL, COMM("AllReduce", "gradient", "50", "4")},
		{"l1", "MatMul", "[]", NULL, NULL,
			COMM("AllGather", "forward", "30", "2") "," COMM("AllReduce", "gradient",
				"50", "4")}};
	struct plan_spec a = {.op = was, .nop = 2, .micro_batches = 3}, b = a;
	struct ap_ctx ctx = new_ctx();
	const struct ap_diff_flow *f;
	struct ap_diff d;

	b.op = is;
	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.totals.n, 2);
	f = d.totals.v;
	ck_assert_str_eq(f[0].kind, "AllReduce");
	ck_assert_str_eq(f[0].phase, "forward");
	ck_assert_int_eq(f[0].ranks, 8);
	ck_assert_int_eq(f[0].was.count, 6); /* two, in each of three micro-batches */
	ck_assert_int_eq(f[0].was.bytes, 600);
	ck_assert_int_eq(f[0].is.count, 0);
	ck_assert_str_eq(f[1].kind, "AllGather");
	ck_assert_int_eq(f[1].is.bytes, 90);
	ck_assert_uint_eq(d.collectives.n, 2);
	ck_assert_str_eq(d.collectives.v[0].label, "l[0,1]");
	ck_assert_int_eq(d.collectives.v[0].was.bytes, 600);
	ck_assert_str_eq(d.collectives.v[1].label, "l1");
	/* gradients are exchanged once in a step */
	b = a;
	b.micro_batches = 6;
	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.totals.n, 1);
	ck_assert_int_eq(d.totals.v[0].is.bytes, 1200);
	free_ctx(&ctx);
}
END_TEST

/* A collective that merely moved to another operator changes no total, but is no equal plan. */
START_TEST(test_moved_collective)
{
	const struct op_spec was[] = {{"a", "Add", "[]", NULL, NULL, COMM("AllReduce", "forward",
						"9", "2")},
		{"b", "Add", "[]", NULL, NULL, NULL}};
	const struct op_spec is[] = {{"a", "Add", "[]", NULL, NULL, NULL},
		{"b", "Add", "[]", NULL, NULL, COMM("AllReduce", "forward", "9", "2")}};
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;

	compare(&ctx, &(struct plan_spec){.op = was, .nop = 2},
		&(struct plan_spec){.op = is, .nop = 2}, &d);
	ck_assert_uint_eq(d.totals.n, 0);
	ck_assert_uint_eq(d.collectives.n, 2);
	ck_assert(!d.equal);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_redistributions)
{
	const struct op_spec op[] = {{"l0", "Add", "[]", "\"x\",\"y\"", NULL, NULL},
		{"l1", "Add", "[]", "\"x\",\"y\"", NULL, NULL}};
	struct plan_spec a = {.op = op, .nop = 2}, b = a;
	struct ap_ctx ctx = new_ctx();
	const struct ap_diff_line *l;
	struct ap_diff d;

	a.moves = MOVE("l0", "1", "AllGather", "8", "64") "," MOVE("l1", "1", "AllGather", "8",
		"64") "," MOVE("l1", "0", "Slice", "2", "0");
	b.moves = MOVE("l0", "1", "AlltoAll", "8", "32") "," MOVE("l1", "1", "AlltoAll", "8", "32")
		"," MOVE("l0", "0", "AllGather", "4", "16");
	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.redistributions.n, 3);
	l = d.redistributions.v;
	ck_assert_str_eq(l[0].label, "l[0,1]");
	ck_assert_int_eq(l[0].operand, 1);
	ck_assert_str_eq(l[0].field[0].was, "\"AllGather over 8\"");
	ck_assert_str_eq(l[0].field[0].is, "\"AlltoAll over 8\"");
	ck_assert_int_eq(l[1].kind, AP_DIFF_ADDED);
	ck_assert_str_eq(l[1].label, "l0");
	ck_assert_int_eq(l[2].kind, AP_DIFF_REMOVED);
	ck_assert_str_eq(l[2].label, "l1");
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false),
		"2  l[0,1], input 1  AllGather over 8 -> AlltoAll over 8   128 B -> 64 B\n"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_parameters)
{
	struct plan_spec a = {.params = PARAM("p1", "[8,32]", "1") "," PARAM("p2", "[8,32]", "1")},
		b = {.params = PARAM("p1", "[64,4]", "8") "," PARAM("p2", "[64,4]", "8") "," PARAM(
			"p3", "[64,32]", "1")};
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;

	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.parameters.n, 2);
	ck_assert_str_eq(d.parameters.v[0].label, "p[1,2]");
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false),
		"p[1,2]  slice [8,32]; optimizer shards 1 -> slice [64,4]; optimizer shards 8"));
	ck_assert_str_eq(d.parameters.v[1].label, "p3");
	ck_assert_int_eq(d.parameters.v[1].kind, AP_DIFF_ADDED);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_figures)
{
	struct plan_spec a = {.step_time_s = "1.52", .total_bytes = "1073741824",
		.settings = "\"memory\":null,\"gap\":0,\"old\":1"};
	struct plan_spec b = {.step_time_s = "1.48", .total_bytes = "1073741825",
		.settings = "\"memory\":5,\"gap\":0,\"new\":[20,35]"};
	struct ap_ctx ctx = new_ctx();
	const struct ap_diff_figure *f;
	struct ap_diff d;
	const char *text;

	compare(&ctx, &a, &b, &d);
	ck_assert(!d.equal);
	f = ap_diff_figure(&d, "prediction", "step_time_s");
	ck_assert(f && f->changed && f->was_number == 1.52 && f->is_number == 1.48);
	ck_assert(!ap_diff_figure(&d, "settings", "gap")->changed);
	ck_assert_ptr_null(ap_diff_figure(&d, "settings", "old")->is);
	ck_assert_ptr_null(ap_diff_figure(&d, "settings", "new")->was);
	ck_assert_str_eq(ap_diff_figure(&d, "machine", "link.latency_s")->was, "1e-06");
	ck_assert_ptr_null(ap_diff_figure(&d, "settings", "none"));
	text = write_as(&ctx, &d, "text", false);
	/* a last digit tells nothing */
	ck_assert_ptr_nonnull(strstr(text, "p.json -> p.json\ncuts unchanged; step -2.6 %\n"
		"step time 1.52 s -> 1.48 s (-2.6 %), memory 1.00 GiB (+0.0 %), operators changed: 0 of 0\n"));
	ck_assert_ptr_nonnull(strstr(text, "\ncause: machine and settings; graph and planner are the same\n"));
	ck_assert_ptr_nonnull(strstr(text, "settings: memory  none -> 5"));
	ck_assert_ptr_nonnull(strstr(text, "settings: new             [20,35]"));
	ck_assert_ptr_nonnull(strstr(text, "\n1 figure changed by less than 0.05 %; -v shows it\n"));
	ck_assert_ptr_null(strstr(text, "memory of a device"));
	free_ctx(&ctx);
}
END_TEST

/* Changes that three digits do not show have more; those below 0.05 % are left out, but for style.all. */
START_TEST(test_digits)
{
	static const struct {
		const char *was, *is, *text;
	} cases[] = {
		{"1.523", "1.5247", "step time  1.523 s -> 1.525 s  +0.1 %"},
		{"0.0015231", "0.0015241", "step time  1.523 ms -> 1.524 ms  +0.1 %"},
		{"1.5", "1.4991", "step time  1.5 s -> 1.499 s  -0.1 %"},
		{"1.5", "1.50074", NULL},
		{"1.5", "1.5000000001", NULL},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct plan_spec a = {.step_time_s = cases[i].was}, b = {.step_time_s = cases[i].is};
		struct ap_ctx ctx = new_ctx();
		struct ap_str all = new_str(&ctx);
		struct ap_diff d;
		const char *text;

		compare(&ctx, &a, &b, &d);
		text = write_as(&ctx, &d, "text", false);
		if (cases[i].text)
			ck_assert_ptr_nonnull(strstr(text, cases[i].text));
		else
			ck_assert_ptr_null(strstr(text, "\nprediction\n"));
		ap_diff_writer_at(0)->write(&ctx, &d, &(struct ap_diff_style){.all = true}, &all);
		ck_assert_ptr_nonnull(strstr(all.s, "\nprediction\n  ~  step time "));
		ck_assert_ptr_null(strstr(all.s, "-v shows"));
		free_ctx(&ctx);
	}
}
END_TEST

/* Figures that no plan has are shown, too. */
START_TEST(test_odd_figures)
{
	static const char *const odd[] = {"-1", "0", "1e308", "-1e308", "1e-300", "9223372036854775807"};
	struct ap_ctx ctx = new_ctx();
	struct ap_json *doc;
	struct ap_diff d;
	const char *text;

	for (size_t i = 0; i < AP_COUNT(odd); i++) {
		struct plan_spec a = {.settings = "\"gap\":0"}, b = a;

		b.step_time_s = b.total_bytes = b.work = odd[i];
		compare(&ctx, &a, &b, &d);
		ck_assert(!d.equal);
		ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), "step time 1.50 s -> "));
		text = write_as(&ctx, &d, "json", false);
		ck_assert_int_eq(ap_json_parse(&ctx, "d", text, strlen(text), 0, &doc), AP_OK);
	}
	free_ctx(&ctx);
}
END_TEST

/* A checkpoint of two layers, and with layouts of states. */
static void make_ckpt(struct ap_ctx *ctx, int64_t rows, const char *state, struct ap_ckpt *out)
{
	struct ap_ckpt_item *item = AP_NEW_N(ctx->arena, struct ap_ckpt_item, 2);
	struct ap_ckpt_layout *layout = AP_NEW_N(ctx->arena, struct ap_ckpt_layout, 4);
	struct ap_ckpt_vec *cut = AP_NEW(ctx->arena, struct ap_ckpt_vec);
	struct ap_ckpt_vec *map = AP_NEW(ctx->arena, struct ap_ckpt_vec);
	int64_t *v = AP_NEW_N(ctx->arena, int64_t, 5);

	memcpy(v, (int64_t[]){rows, 8 / rows, 8, 0, -1}, 5 * sizeof *v);
	*cut = (struct ap_ckpt_vec){2, v};
	*map = (struct ap_ckpt_vec){2, v + 3};
	for (int i = 0; i < 2; i++) {
		item[i] = (struct ap_ckpt_item){
			.node_name = ap_arena_printf(ctx->arena, "MatMul_w%d", i), .n = 1,
			.strategy = cut};
		layout[i] = layout[2 + i] = (struct ap_ckpt_layout){
			.param_name = ap_arena_printf(ctx->arena, "w%d", i),
			.dev_matrix = {1, v + 2}, .nmap = 1, .tensor_map = map};
		layout[2 + i].param_name = ap_arena_printf(ctx->arena, "%s.w%d", state, i);
	}
	*out = (struct ap_ckpt){.file = "dir/a.ckpt", .current_stage = 1, .nitem = 2,
		.item = item, .nlayout = 4, .layout = layout};
}

START_TEST(test_checkpoints)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt a, b, c;
	struct ap_saved was, is;
	struct ap_diff d;

	make_ckpt(&ctx, 8, "moments", &a);
	make_ckpt(&ctx, 4, "moments", &b);
	make_ckpt(&ctx, 8, "accu_grads", &c);
	ap_saved_of_ckpt(&ctx, &a, &was);
	ap_diff_make(&ctx, &was, &was, &d);
	ck_assert(d.equal);
	ck_assert_uint_eq(was.nparam, 2); /* states that lie as their parameter are with it */
	ap_saved_of_ckpt(&ctx, &b, &is);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert_uint_eq(d.operators.n, 1);
	ck_assert_str_eq(d.operators.v[0].label, "MatMul_w[0,1]");
	ck_assert_str_eq(d.operators.v[0].field[0].was, "[[8,1]]");
	ck_assert_str_eq(d.operators.v[0].field[0].is, "[[4,2]]");
	ck_assert_uint_eq(d.parameters.n, 0);
	ap_saved_of_ckpt(&ctx, &c, &is);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert_uint_eq(d.parameters.n, 1);
	ck_assert_str_eq(d.parameters.v[0].field[0].was, "[\"moments\"]");
	ck_assert_str_eq(d.parameters.v[0].field[0].is, "[\"accu_grads\"]");
	free_ctx(&ctx);
}
END_TEST

/* A state that lies otherwise than its parameter stands for itself. */
START_TEST(test_state_apart)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt a, b;
	struct ap_saved was, is;
	struct ap_ckpt_layout *layout;
	struct ap_diff d;

	make_ckpt(&ctx, 8, "moments", &a);
	b = a;
	layout = ap_arena_memdup(ctx.arena, a.layout, a.nlayout * sizeof *layout);
	layout[2].weight_step = 1;
	layout[2].weight_size = -1;
	b.layout = layout;
	ap_saved_of_ckpt(&ctx, &a, &was);
	ap_saved_of_ckpt(&ctx, &b, &is);
	ck_assert_uint_eq(is.nparam, 3);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert(!d.equal);
	ck_assert_uint_eq(d.parameters.n, 2);
	ck_assert_str_eq(d.parameters.v[0].label, "w0");
	ck_assert_str_eq(d.parameters.v[1].label, "moments.w0");
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_plan_and_checkpoint)
{
	const struct op_spec op[] = {{"a", "MatMul", "[[8,1]]", "\"x\",\"w0\"", "\"t\"", NULL},
		{"relu", "ReLU", "[[8,1]]", "\"t\"", "\"u\"", NULL},
		{"b", "MatMul", "[[4,2]]", "\"u\",\"w1\"", "\"v\"", NULL}};
	struct plan_spec p = {.op = op, .nop = 3};
	struct ap_ctx ctx = new_ctx();
	struct ap_saved plan, ckpt;
	struct ap_ckpt c;
	struct ap_diff d;

	p.params = PARAM("w0", "[8,32]", "1") "," PARAM("w1", "[8,32]", "1");
	make_ckpt(&ctx, 8, "moments", &c);
	read_spec(&ctx, &p, &plan);
	ap_saved_of_ckpt(&ctx, &c, &ckpt);
	ap_diff_make(&ctx, &plan, &ckpt, &d);
	ck_assert(d.reduced && !d.equal);
	ck_assert_uint_eq(d.operators.of[0], 2); /* without a parameter it is in no checkpoint */
	ck_assert_uint_eq(d.operators.n, 1);
	ck_assert_str_eq(d.operators.v[0].label, "MatMul_w1");
	ck_assert_str_eq(d.operators.v[0].field[0].was, "[[4,2]]");
	ck_assert_str_eq(d.operators.v[0].field[0].is, "[[8,1]]");
	ck_assert_uint_eq(d.parameters.n, 0);
	ck_assert_uint_eq(d.nfigure, 1); /* the number of devices */
	ap_diff_make(&ctx, &ckpt, &plan, &d);
	ck_assert_str_eq(d.operators.v[0].field[0].is, "[[4,2]]");
	free_ctx(&ctx);
}
END_TEST
