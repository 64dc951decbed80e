/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a network that are cut otherwise, and layers. */
#include "base/vec.h"
#include "diff_test.h"
#include "planfile/dimension.h"

#define FACTOR(name, size, parts, batch) \
	"{\"factor\":\"" name "\",\"size\":" size ",\"parts\":" parts ",\"stride\":1,\"batch\":" batch "}"

enum { LAYERS = 3, OPS = 2 + 8 * LAYERS };

/* How a decoder of three layers is cut: parts of the batch, of heads, of the feed-forward part's columns. */
struct cuts {
	int batch, heads, inner;
	double product_s; /* of a product of the feed-forward part */
	int columns; /* of what makes queries, keys and values, rows of the output; 0: not cut */
};

static void add_line(struct ap_str *s, const char *name, const char *type, const char *in, const char *out,
	const char *strategy, const char *factors, double time_s)
{
	ap_str_addf(s, "%s{\"name\":\"%s\",\"type\":\"%s\",\"cell\":\"\",\"stage\":0,\"inputs\":[%s],",
		s->s[s->len - 1] == '[' ? "" : ",\n", name, type, in);
	ap_str_addf(s, "\"outputs\":[\"%s\"],\"in_checkpoint\":true,\"in_strategy\":%s,\"out_strategy\":[],", out,
		strategy);
	ap_str_addf(s, "\"factors\":[%s],\"recompute\":false,\"communications\":[],\"cost\":{\"forward_s\":%g}}",
		factors, time_s);
}

/* A row of a layer: %d stands for its number, x%d and y%d for what comes and goes. */
static const char *at(struct ap_ctx *ctx, const char *text, int layer)
{
	struct ap_str s = new_str(ctx);

	for (; *text; text++)
		if (*text == '#')
			ap_str_addf(&s, "%d", layer);
		else if (*text == '^')
			ap_str_addf(&s, "%d", layer + 1);
		else
			ap_str_addc(&s, *text);
	return s.s;
}

/* Tokens are 4 samples of 16; 8 heads of 4, columns of the feed-forward part 128, vocabulary 512. */
static void decoder(struct ap_ctx *ctx, const struct cuts *c, int layers, struct ap_saved *out)
{
	struct ap_str s = new_str(ctx);
	const char *rows, *product, *sum, *up, *core, *strategy, *of_up, *qkv, *back, *of_qkv, *of_back;
	int columns = c->columns ? c->columns : 1;

	ap_str_add(&s, "{\"schema\":\"autopar-plan/1\",\"tool\":{\"version\":\"0.1.0\"},"
		"\"inputs\":{\"graph\":{\"name\":\"g\",\"sha256\":\"00\"}},\"settings\":{},"
		"\"graph\":{\"name\":\"g\",\"batch\":4,\"inputs\":[\"ids\"],\"outputs\":[]},"
		"\"machine\":{\"devices\":8,\"chip\":\"c\",\"capacity_bytes\":1024,\"levels\":[]},"
		"\"search\":{\"mode\":\"m\",\"status\":\"optimal\",\"complete\":true,\"objective_s\":1,"
		"\"lower_bound_s\":1,\"gap\":0},\"prediction\":{\"step_time_s\":2,\"compute_s\":1,"
		"\"communication_s\":1,\"exposed_communication_s\":1,"
		"\"memory\":[{\"stage\":0,\"total_bytes\":1}]},\"baselines\":[],"
		"\"stages\":[{\"micro_batches\":1}],\"redistributions\":[],\"operators\":[");
	rows = ap_arena_printf(ctx->arena, "{\"factor\":\"a\",\"size\":64,\"parts\":%d,\"stride\":1,"
		"\"batch\":true}", c->batch);
	product = ap_arena_printf(ctx->arena, "%s," FACTOR("k", "32", "1", "false") ","
		FACTOR("n", "32", "1", "false"), rows);
	qkv = ap_arena_printf(ctx->arena, "%s," FACTOR("k", "32", "1", "false") ",{\"factor\":\"n\",\"size\":32,"
		"\"parts\":%d,\"stride\":1,\"batch\":false}", rows, columns);
	back = ap_arena_printf(ctx->arena, "%s,{\"factor\":\"k\",\"size\":32,\"parts\":%d,\"stride\":1,"
		"\"batch\":false}," FACTOR("n", "32", "1", "false"), rows, columns);
	of_qkv = ap_arena_printf(ctx->arena, "[[%d,1],[1,%d]]", c->batch, columns);
	of_back = ap_arena_printf(ctx->arena, "[[%d,%d],[%d,1]]", c->batch, columns, columns);
	up = ap_arena_printf(ctx->arena, "%s," FACTOR("k", "32", "1", "false") ",{\"factor\":\"n\",\"size\":128,"
		"\"parts\":%d,\"stride\":1,\"batch\":false}", rows, c->inner);
	core = ap_arena_printf(ctx->arena, "{\"factor\":\"b\",\"size\":4,\"parts\":%d,\"stride\":1,\"batch\":true},"
		"{\"factor\":\"n\",\"size\":8,\"parts\":%d,\"stride\":1,\"batch\":false},"
		FACTOR("s", "16", "1", "false") "," FACTOR("d", "4", "1", "false"), c->batch, c->heads);
	sum = ap_arena_printf(ctx->arena, "%s," FACTOR("B", "32", "1", "false"), rows);
	strategy = ap_arena_printf(ctx->arena, "[[%d,1]]", c->batch);
	of_up = ap_arena_printf(ctx->arena, "[[%d,1],[1,%d]]", c->batch, c->inner);
	add_line(&s, "table", "Gather", "\"wt\",\"ids\"", "x0", strategy, "", 1e-4);
	for (int i = 0; i < layers; i++) {
		const char *heads = ap_arena_printf(ctx->arena, "[[%d,%d,1,1]]", c->batch, c->heads);

		add_line(&s, at(ctx, "layers.#.norm", i), "LayerNorm", at(ctx, "\"x#\",\"wg#\"", i),
			at(ctx, "n#", i), strategy, sum, 1e-5);
		add_line(&s, at(ctx, "layers.#.qkv", i), "MatMul", at(ctx, "\"n#\",\"wq#\"", i),
			at(ctx, "q#", i), of_qkv, qkv, 1e-3);
		add_line(&s, at(ctx, "layers.#.core", i), "FlashAttentionScore", at(ctx, "\"q#\",\"mask\"", i),
			at(ctx, "c#", i), heads, core, 1e-4);
		add_line(&s, at(ctx, "layers.#.out", i), "MatMul", at(ctx, "\"c#\",\"wo#\"", i),
			at(ctx, "o#", i), of_back, back, 1e-3);
		add_line(&s, at(ctx, "layers.#.add", i), "Add", at(ctx, "\"x#\",\"o#\"", i), at(ctx, "y#", i),
			strategy, sum, 1e-5);
		add_line(&s, at(ctx, "layers.#.up", i), "MatMul", at(ctx, "\"y#\",\"wu#\"", i), at(ctx, "u#", i),
			of_up, up, c->product_s);
		add_line(&s, at(ctx, "layers.#.down", i), "MatMul", at(ctx, "\"u#\",\"wd#\"", i),
			at(ctx, "d#", i), of_up, up, c->product_s);
		add_line(&s, at(ctx, "layers.#.add2", i), "Add", at(ctx, "\"y#\",\"d#\"", i), at(ctx, "x^", i),
			strategy, sum, 1e-5);
	}
	add_line(&s, "head", "MatMul", at(ctx, "\"x#\",\"wh\"", layers), "z", strategy, product, 1e-3);
	ap_str_add(&s, "],\n\"parameters\":[" PARAM("wt", "[8,32]", "1") "," PARAM("wh", "[8,32]", "1"));
	for (int i = 0; i < layers; i++)
		for (const char *w = "gqoud"; *w; w++)
			ap_str_addf(&s, ",{\"name\":\"w%c%d\",\"dtype\":\"float32\",\"trainable\":true,"
				"\"dev_matrix\":[8],\"tensor_map\":[0,-1],\"tensor_shape\":[64,32],"
				"\"slice_shape\":[8,32],\"optimizer_shards\":1,\"opt_weight_shard_step\":0,"
				"\"opt_weight_shard_size\":0}", *w, i);
	ap_str_add(&s, "]}");
	ck_assert_int_eq(read_text(ctx, s.s, out), AP_OK);
}

START_TEST(test_parts)
{
	static const enum ap_saved_part layer[] = {AP_SAVED_PART_REST, AP_SAVED_PART_ATTENTION,
		AP_SAVED_PART_ATTENTION, AP_SAVED_PART_ATTENTION, AP_SAVED_PART_REST, AP_SAVED_PART_FEED_FORWARD,
		AP_SAVED_PART_FEED_FORWARD, AP_SAVED_PART_REST};
	struct ap_ctx ctx = new_ctx();
	const enum ap_saved_part *part;
	struct ap_saved s;

	decoder(&ctx, &(struct cuts){4, 1, 2, 1e-3}, LAYERS, &s);
	part = ap_saved_parts(&ctx, &s);
	ck_assert_uint_eq(s.nop, OPS);
	ck_assert_int_eq(part[0], AP_SAVED_PART_EMBEDDING);
	for (int i = 0; i < LAYERS; i++)
		for (int j = 0; j < 8; j++)
			if (layer[j] != AP_SAVED_PART_REST) /* residual sums belong to either side */
				ck_assert_int_eq(part[1 + 8 * i + j], layer[j]);
	ck_assert_int_eq(part[OPS - 1], AP_SAVED_PART_FEED_FORWARD); /* no size tells the vocabulary */
	free_ctx(&ctx);
}
END_TEST

/* Columns of queries and rows of the output are heads; what goes into another product, too, is not, nor what
 * a sum with a residual or a norm comes between. */
START_TEST(test_heads)
{
	static const char layer[] = {'\0', 'n', '\0', 'k', '\0', '\0', '\0', '\0'};
	static const struct {
		const char *name, *type, *in, *out;
		char heads;
	} latent[] = {
		{"norm", "LayerNorm", "\"x\",\"g\"", "n", '\0'},
		{"query", "MatMul", "\"n\",\"w0\"", "q", 'n'},
		{"turn", "Reshape", "\"q\"", "qh", '\0'},
		{"down", "MatMul", "\"n\",\"w1\"", "c", '\0'}, /* keys' positions, and what `up` reads */
		{"shared", "Reshape", "\"c\"", "kr", '\0'},
		{"up", "MatMul", "\"c\",\"w2\"", "kv", 'n'},
		{"join", "Add", "\"kr\",\"kv\"", "k", '\0'},
		{"core", "BatchMatMul", "\"qh\",\"k\"", "s", '\0'},
		{"gate", "MatMul", "\"n\",\"w3\"", "gt", '\0'},
		{"gated", "Mul", "\"s\",\"gt\"", "sg", '\0'},
		{"out", "MatMul", "\"sg\",\"w4\"", "o", 'k'},
		{"after", "LayerNorm", "\"sg\",\"g\"", "a", '\0'},
		{"other", "MatMul", "\"a\",\"w5\"", "y", '\0'},
	};
	struct ap_ctx ctx = new_ctx();
	struct ap_saved_op op[AP_COUNT(latent)] = {0};
	struct ap_saved_param param[6] = {{0}};
	struct ap_saved s;
	const char *heads;

	decoder(&ctx, &(struct cuts){4, 1, 2, 1e-3}, LAYERS, &s);
	heads = ap_saved_heads(&ctx, &s);
	for (int i = 0; i < OPS; i++)
		ck_assert_int_eq(heads[i], i > 0 && i + 1 < OPS ? layer[(i - 1) % 8] : '\0');
	s.nop = AP_COUNT(latent);
	s.op = op;
	s.nparam = AP_COUNT(param);
	s.param = param;
	for (size_t i = 0; i < AP_COUNT(param); i++)
		param[i].name = ap_arena_printf(ctx.arena, "w%zu", i);
	for (size_t i = 0; i < AP_COUNT(latent); i++) {
		const char **in = AP_NEW_N(ctx.arena, const char *, 2), **out = AP_NEW_N(ctx.arena, const char *, 1);
		char *text = ap_arena_strdup(ctx.arena, latent[i].in);

		op[i].name = op[i].label = latent[i].name;
		op[i].type = latent[i].type;
		for (char *c = strtok(text, "\","); c; c = strtok(NULL, "\","))
			in[op[i].nin++] = c;
		op[i].in = in;
		out[0] = latent[i].out;
		op[i].out = out;
		op[i].nout = 1;
	}
	heads = ap_saved_heads(&ctx, &s);
	for (size_t i = 0; i < AP_COUNT(latent); i++)
		ck_assert_msg(heads[i] == latent[i].heads, "%s: %d", latent[i].name, heads[i]);
	free_ctx(&ctx);
}
END_TEST

/* The attention itself says how its part is cut, though products around it take longer. */
START_TEST(test_message)
{
	static const struct {
		struct cuts was, is;
		const char *text;
	} cases[] = {
		{{4, 1, 2, 1e-3}, {4, 1, 8, 1e-3}, "FFN: hidden over 8 instead of 2 in 6 of 7; "
			"embedding and attention unchanged; step as before"},
		{{1, 8, 8, 1e-3}, {1, 2, 8, 1e-3}, "attention: heads over 2 instead of 8 in 3 of 9; "
			"embedding and FFN unchanged; step as before"},
		{{4, 2, 2, 1e-3}, {1, 8, 8, 1e-3}, "embedding: cut along other dimensions; attention: heads over 8 "
			"instead of batch over 4 and heads over 2; FFN: hidden over 8 instead of batch over 4 and "
			"hidden over 2; step as before"},
		{{2, 2, 2, 1e-3, 4}, {2, 2, 2, 1e-3, 2}, "attention: heads over 2 instead of 4 in 6 of 9; "
			"embedding and FFN unchanged; step as before"},
		{{8, 1, 1, 1e-3}, {8, 1, 1, 2e-3}, NULL},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct ap_ctx ctx = new_ctx();
		struct ap_saved was, is;
		struct ap_diff d;
		const char *text;

		decoder(&ctx, &cases[i].was, LAYERS, &was);
		decoder(&ctx, &cases[i].is, LAYERS, &is);
		ap_diff_make(&ctx, &was, &is, &d);
		text = ap_diff_message(&ctx, &d);
		if (!cases[i].text) {
			ck_assert_ptr_null(text);
			ck_assert(d.equal);
		} else {
			ck_assert_ptr_nonnull(text);
			ck_assert_str_eq(text, cases[i].text);
			ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), text));
			ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "markdown", false), text));
			ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "json", false), text));
		}
		free_ctx(&ctx);
	}
}
END_TEST

/* What took longer before or now by most comes first; equal changes stay in the order of the plan. */
START_TEST(test_order)
{
	struct cuts a = {4, 2, 2, 1e-3}, b = {1, 8, 8, 5e-3};
	struct ap_ctx ctx = new_ctx();
	struct ap_saved was, is;
	struct ap_diff d;

	decoder(&ctx, &a, LAYERS, &was);
	decoder(&ctx, &b, LAYERS, &is);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert_str_eq(d.operators.v[0].label, "layers.[0-2].up");
	ck_assert_str_eq(d.operators.v[1].label, "layers.[0-2].down");
	ck_assert(d.operators.v[0].was_s > 0.00299 && d.operators.v[0].was_s < 0.00301);
	ck_assert(d.operators.v[0].is_s > 0.01499 && d.operators.v[0].is_s < 0.01501);
	ck_assert_str_eq(d.operators.v[2].label, "table");
	for (uint32_t i = 3; i < d.operators.n; i++)
		ck_assert(d.operators.v[i].was_s == d.operators.v[i].is_s);
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), "3.00 ms -> 15.0 ms\n"));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_layers)
{
	struct cuts a = {4, 2, 2, 1e-3}, b = {4, 2, 8, 1e-3};
	struct ap_ctx ctx = new_ctx();
	struct ap_saved was, is;
	struct ap_diff d;

	decoder(&ctx, &a, 3, &was);
	decoder(&ctx, &b, 5, &is);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert_uint_eq(d.layers.nlayer, 5);
	ck_assert_uint_eq(d.layers.changed, 3);
	ck_assert_uint_eq(d.layers.added, 2);
	ck_assert_uint_eq(d.layers.removed, 0);
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false),
		"\nPlan: 3 of 5 layers to change, 2 added, 0 removed\n"));
	ap_diff_make(&ctx, &is, &was, &d);
	ck_assert_uint_eq(d.layers.nlayer, 3);
	ck_assert_uint_eq(d.layers.changed, 3);
	ck_assert_uint_eq(d.layers.added, 0);
	ck_assert_uint_eq(d.layers.removed, 2);
	decoder(&ctx, &(struct cuts){2, 2, 2, 1e-3}, 3, &is);
	ap_diff_make(&ctx, &was, &is, &d);
	ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), "\nPlan: 3 of 3 layers to change, 0 added, "
		"0 removed; 2 other operators to change, 0 added, 0 removed\n"));
	free_ctx(&ctx);
}
END_TEST

/* A layer that got an operator changed; renamed layers did not. */
START_TEST(test_layers_renamed)
{
	const struct op_spec was[] = {
		{"net.1.mm", "MatMul", "[[8,1]]", "\"x\",\"w1\"", "\"t1\"", NULL},
		{"net.2.mm", "MatMul", "[[8,1]]", "\"t1\",\"w2\"", "\"t2\"", NULL},
		{"net.2.relu", "ReLU", "[[8,1]]", "\"t2\"", "\"t3\"", NULL}};
	const struct op_spec is[] = {
		{"block.1.mm", "MatMul", "[[8,1]]", "\"x\",\"wa1\"", "\"u1\"", NULL},
		{"block.2.mm", "MatMul", "[[8,1]]", "\"u1\",\"wa2\"", "\"u2\"", NULL}};
	struct plan_spec a = {.op = was, .nop = 3}, b = {.op = is, .nop = 2};
	struct ap_ctx ctx = new_ctx();
	struct ap_diff d;

	a.params = PARAM("w1", "[8,32]", "1") "," PARAM("w2", "[8,32]", "1");
	b.params = PARAM("wa1", "[8,32]", "1") "," PARAM("wa2", "[8,32]", "1");
	compare(&ctx, &a, &b, &d);
	ck_assert_uint_eq(d.layers.nlayer, 2);
	ck_assert_uint_eq(d.layers.changed, 1); /* block.2 lacks relu */
	ck_assert_uint_eq(d.layers.added + d.layers.removed, 0);
	free_ctx(&ctx);
}
END_TEST

/* Which of the four is told to be the cause. */
START_TEST(test_cause)
{
	static const struct {
		const char *settings, *version, *text;
	} cases[] = {
		{"\"micro_batches\":2", NULL, "cause: settings; graph, machine and planner are the same\n"
			"  ~  settings: micro batches  1 -> 2\n"},
		{"\"micro_batches\":1,\"device_num\":8", NULL,
			"cause: machine; graph, settings and planner are the same\n"},
		{"\"micro_batches\":1", "0.9.0", "cause: planner; graph, machine and settings are the same\n"
			"  ~  tool: version  0.1.0 -> 0.9.0\n"},
		{"\"micro_batches\":1", NULL, "cause: not told by the files; graph, machine, settings and planner "
			"are the same\n"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct plan_spec a = {.step_time_s = "2", .settings = "\"micro_batches\":1"}, b = a;
		struct ap_ctx ctx = new_ctx();
		struct ap_diff d;

		b.step_time_s = "3";
		b.settings = cases[i].settings;
		b.version = cases[i].version;
		compare(&ctx, &a, &b, &d);
		ck_assert_ptr_nonnull(strstr(write_as(&ctx, &d, "text", false), cases[i].text));
		free_ctx(&ctx);
	}
}
END_TEST
