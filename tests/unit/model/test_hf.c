/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of dimensions that nobody published: what is built has the parameters and the work that closed
 * formulas give, and the names of the checkpoints' tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "graph/work.h"
#include "harness.h"
#include "model/decoder.h"
#include "model/hf.h"
#include "rule/attr.h"

static struct ap_arena *arena;
static struct ap_ctx ctx;

static void setup(void)
{
	arena = ap_arena_create(0, NULL, NULL);
	ctx = (struct ap_ctx){.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, false), .jobs = 1};
}

static void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
}

TEST_FIXTURE(setup, teardown)

enum { BATCH = 4, SEQUENCE = 64 };

static enum ap_status read_net(const char *text, const struct ap_hf_options *o, struct ap_hf_net *net)
{
	struct ap_json *doc;
	char *copy = ap_arena_strdup(arena, text);
	enum ap_status st = ap_json_parse(&ctx, "config.json", copy, strlen(copy), 0, &doc);

	return st != AP_OK ? st : ap_hf_read(&ctx, doc, o, net);
}

static enum ap_status read_text(const char *text, const struct ap_hf_options *o, struct ap_decoder *d)
{
	struct ap_hf_net net;
	enum ap_status st = read_net(text, o, &net);

	if (st == AP_OK)
		*d = *(const struct ap_decoder *)net.dimensions;
	return st;
}

static const char *messages(void)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, &s);
	return s.s;
}

static struct ap_model *build(const char *text)
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true,
		.dtype = AP_DTYPE_COUNT, .name = "net"};
	struct ap_hf_net net;

	if (read_net(text, &o, &net) != AP_OK)
		ck_abort_msg("%s", messages());
	return net.make(arena, net.dimensions);
}

static const struct ap_graph *load(const struct ap_model *m)
{
	const struct ap_graph_params params = {.micro_batches = 2};
	const struct ap_graph *g;
	struct ap_json *doc;
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_model_write(m, ap_str_take, &s);
	ck_assert_int_eq(ap_json_parse(&ctx, "graph.json", s.s, s.len, 0, &doc), AP_OK);
	if (ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK)
		ck_abort_msg("%s", messages());
	return g;
}

/* Dimensions, and what the type adds. */
static const struct row {
	const char *type, *more;
	int64_t h, l, a, k, d, i, v; /* hidden, layers, heads, key heads, their size, inner, vocabulary */
	int64_t tied;
	int64_t e, active, f, dense; /* experts, of a token, their width, layers without */
	int64_t bias, norms; /* elements of biases, and of further norms, in a layer */
	int64_t shared; /* units of the shared expert */
	int64_t gates; /* units of a sparse layer beside its experts' weights: its biases, a shared expert's gate */
	bool choice_bias; /* a number for each expert, stored and not trained */
	struct {
		int64_t query, key, plain, turned, value; /* compressed units; of a head */
	} latent;
} rows[] = {
	{"llama", "", 96, 3, 6, 6, 16, 200, 500, .tied = 0},
	{"llama", "\"head_dim\": 32, \"tie_word_embeddings\": true, ", 96, 2, 6, 2, 32, 256, 500, .tied = 1},
	{"llama", "\"attention_bias\": true, \"mlp_bias\": true, ", 64, 2, 4, 2, 16, 128, 300,
		.bias = 4 * 16 + 2 * 2 * 16 + 64 + 2 * 128 + 64},
	{"mistral", "\"head_dim\": 8, \"sliding_window\": null, ", 48, 4, 8, 8, 8, 100, 320},
	{"qwen2", "\"use_sliding_window\": false, \"sliding_window\": 16, ", 64, 2, 8, 4, 8, 96, 400,
		.bias = 8 * 8 + 2 * 4 * 8},
	{"qwen3", "\"head_dim\": 24, \"attention_bias\": false, ", 64, 3, 4, 2, 24, 96, 400, .norms = 2 * 24},
	{"mixtral", "\"num_local_experts\": 4, \"num_experts_per_tok\": 2, ", 64, 2, 4, 2, 16, 96, 256, .e = 4,
		.active = 2, .f = 96},
	{"qwen3_moe", "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 24, \"head_dim\": 16, "
		"\"decoder_sparse_step\": 1, \"mlp_only_layers\": [], ", 64, 2, 2, 2, 16, 96, 256, .e = 8, .active = 2,
		.f = 24, .norms = 2 * 16},
	{"qwen3_moe", "\"num_experts\": 8, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 24, \"head_dim\": 16, "
		"\"decoder_sparse_step\": 2, \"mlp_only_layers\": [3], ", 64, 6, 2, 2, 16, 96, 256, .e = 8,
		.active = 4, .f = 24, .dense = 4, .norms = 2 * 16},
	{"phi3", "", 96, 2, 6, 3, 16, 200, 500},
	{"internlm2", "\"bias\": false, ", 96, 2, 6, 3, 16, 200, 500},
	{"internlm2", "", 96, 2, 6, 3, 16, 200, 500, .bias = 12 * 16 + 96},
	{"baichuan", "", 96, 2, 6, 6, 16, 200, 500},
	{"chatglm", "\"kv_channels\": 16, \"add_qkv_bias\": true, \"multi_query_attention\": true, \"rmsnorm\": true, "
		"\"add_bias_linear\": false, ", 96, 2, 6, 2, 16, 200, 500, .bias = 10 * 16},
	{"gemma2", "\"head_dim\": 32, \"query_pre_attn_scalar\": 224, \"sliding_window\": 4096, ", 96, 2, 6, 2, 32, 200,
		500, .tied = 1, .norms = 2 * 96},
	{"gemma3_text", "\"head_dim\": 32, \"sliding_window_pattern\": 6, ", 96, 2, 6, 2, 32, 200, 500, .tied = 1,
		.norms = 2 * 96 + 2 * 32},
	{"deepseek_v2", "\"q_lora_rank\": null, \"kv_lora_rank\": 20, \"qk_nope_head_dim\": 12, \"qk_rope_head_dim\": 8, "
		"\"v_head_dim\": 10, \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"n_shared_experts\": 2, "
		"\"moe_intermediate_size\": 24, \"first_k_dense_replace\": 1, \"moe_layer_freq\": 1, \"n_group\": 1, "
		"\"topk_group\": 1, \"topk_method\": \"greedy\", \"norm_topk_prob\": false, ", 56, 3, 6, 6, 0, 96, 256,
		.e = 8, .active = 2, .f = 24, .dense = 1, .norms = 20, .shared = 48, .latent = {0, 20, 12, 8, 10}},
	{"deepseek_v3", "\"q_lora_rank\": 28, \"kv_lora_rank\": 20, \"qk_nope_head_dim\": 12, \"qk_rope_head_dim\": 4, "
		"\"v_head_dim\": 16, \"n_routed_experts\": 16, \"num_experts_per_tok\": 4, \"n_shared_experts\": 1, "
		"\"moe_intermediate_size\": 24, \"first_k_dense_replace\": 2, \"moe_layer_freq\": 1, \"n_group\": 4, "
		"\"topk_group\": 2, \"topk_method\": \"noaux_tc\", \"scoring_func\": \"sigmoid\", \"norm_topk_prob\": true, "
		"\"head_dim\": 4, \"num_nextn_predict_layers\": 0, ", 64, 4, 4, 1, 0, 96, 256, .e = 16, .active = 4,
		.f = 24, .dense = 2, .norms = 28 + 20, .shared = 24, .choice_bias = true,
		.latent = {28, 20, 12, 4, 16}},
	{"kimi_k2", "\"q_lora_rank\": 28, \"kv_lora_rank\": 20, \"qk_nope_head_dim\": 12, \"qk_rope_head_dim\": 4, "
		"\"v_head_dim\": 8, \"n_routed_experts\": 16, \"num_experts_per_tok\": 4, \"n_shared_experts\": 1, "
		"\"moe_intermediate_size\": 24, \"first_k_dense_replace\": 0, \"moe_layer_freq\": 2, ", 64, 4, 4, 4, 0, 96,
		256, .e = 16, .active = 4, .f = 24, .dense = 2, .norms = 28 + 20, .shared = 24,
		.choice_bias = true, .latent = {28, 20, 12, 4, 8}},
	{"gpt_oss", "\"head_dim\": 8, \"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"sliding_window\": 128, "
		"\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"swiglu_limit\": 7.0, \"attention_bias\": true, ",
		72, 2, 4, 2, 8, 96, 256, .e = 4, .active = 2, .f = 96, .bias = 4 * 8 + 2 * 2 * 8 + 72, .norms = 4,
		.gates = 4 + 4 * (2 * 96 + 72)},
	{"qwen2_moe", "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 24, "
		"\"shared_expert_intermediate_size\": 40, \"decoder_sparse_step\": 1, \"norm_topk_prob\": false, ", 64, 2, 4, 2,
		16, 96, 256, .e = 8, .active = 2, .f = 24, .bias = 4 * 16 + 2 * 2 * 16, .shared = 40, .gates = 64},
	{"glm", "\"head_dim\": 24, \"attention_bias\": true, ", 64, 2, 4, 2, 24, 96, 256, .bias = 8 * 24},
	{"glm4", "\"head_dim\": 24, \"attention_bias\": false, ", 64, 2, 4, 2, 24, 96, 256, .norms = 2 * 64},
};

static const char *config(const struct row *r)
{
	char heads[64] = "";

	if (strcmp(r->type, "baichuan") != 0)
		snprintf(heads, sizeof heads, "\"num_key_value_heads\": %" PRId64 ", ", r->latent.key ? r->a : r->k);
	return ap_arena_printf(arena, "{\"model_type\": \"%s\", %s%s\"hidden_size\": %" PRId64
		", \"num_hidden_layers\": %" PRId64 ", \"num_attention_heads\": %" PRId64 ", \"intermediate_size\": %"
		PRId64 ", \"vocab_size\": %" PRId64 ", \"max_position_embeddings\": 4096, \"hidden_act\": \"silu\", "
		"\"rms_norm_eps\": 1e-5, \"torch_dtype\": \"bfloat16\"}", r->type, r->more, heads, r->h, r->l, r->a,
		r->i, r->v);
}

/* Weights of the products of attention. */
static int64_t attention_of(const struct row *r)
{
	int64_t head = r->latent.plain + r->latent.turned, low = r->latent.query;

	if (!r->latent.key)
		return 2 * r->a * r->d * r->h + 2 * r->k * r->d * r->h;
	return (low ? low * r->h + r->a * head * low : r->a * head * r->h) +
		(r->latent.key + r->latent.turned) * r->h +
		r->a * (r->latent.plain + r->latent.value) * r->latent.key + r->h * r->a * r->latent.value;
}

static int64_t parameters(const struct row *r)
{
	int64_t attention = attention_of(r);
	int64_t sparse = r->e ? r->e * r->h + 3 * r->e * r->h * r->f + 3 * r->h * r->shared + r->gates : 0;
	int64_t dense = 3 * r->h * r->i;

	return r->v * r->h * (2 - r->tied) + r->h + r->l * (attention + 2 * r->h + r->bias + r->norms) +
		(r->e ? (r->l - r->dense) * sparse + r->dense * dense : r->l * dense);
}

/* Of a token's forward pass: products with weights, and attention to half of the tokens. */
static double flops(const struct row *r)
{
	int64_t attention = attention_of(r), dense = 3 * r->h * r->i;
	int64_t sparse = r->e * r->h + 3 * r->active * r->h * r->f + (3 * r->shared + (r->shared && r->gates)) * r->h;
	int64_t sizes = r->latent.key ? r->latent.plain + r->latent.turned + r->latent.value : 2 * r->d;
	int64_t products = r->l * attention + r->v * r->h +
		(r->e ? (r->l - r->dense) * sparse + r->dense * dense : r->l * dense);

	return 2. * (double)products + 2. * (double)(r->l * r->a * sizes) * (SEQUENCE + 1) / 2;
}

static int64_t elements(const struct ap_tensor *t)
{
	int64_t n = 1;

	for (int i = 0; i < t->shape.rank; i++)
		n *= t->shape.dim[i];
	return n;
}

/* Of the products in a graph, and of causal attention. */
static double work(const struct ap_graph *g)
{
	double sum = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		const struct ap_tensor *x = &g->tensor[n->in[0]], *y = &g->tensor[n->out[0]];

		if (!strcmp(n->type, "MatMul") || !strcmp(n->type, "BatchMatMul"))
			sum += 2. * (double)elements(y) * (double)x->shape.dim[x->shape.rank - 1];
		if (!strcmp(n->type, "FlashAttentionScore"))
			sum += 2. * (double)(elements(x) + elements(&g->tensor[n->out[3]])) * (SEQUENCE + 1) / 2;
	}
	return sum;
}

START_LOOP_TEST(built_as_computed, AP_COUNT(rows))
{
	const struct row *r = &rows[_i];
	const struct ap_model *m = build(config(r));
	const struct ap_graph *g = load(m);
	const struct ap_graph_work told = ap_graph_work(g);
	double want = flops(r), got = work(g) / (BATCH * SEQUENCE);
	double half_a_key = (double)(r->l * r->a) * (double)(r->latent.key
		? r->latent.plain + r->latent.turned + r->latent.value : 2 * r->d); /* the mask halves all pairs */

	ck_assert_int_eq(ap_model_parameters(m), parameters(r));
	ck_assert_int_eq(g->parameters, parameters(r) + (r->choice_bias ? (r->l - r->dense) * r->e : 0));
	ck_assert_msg(fabs(got / want - 1) < 0.0001, "%s: %g FLOP per token, %g by the formula", r->type, got, want);
	got = told.products_flop / (BATCH * SEQUENCE);
	ck_assert_msg(fabs(got / (want - half_a_key) - 1) < 1e-9, "%s: %g FLOP per token are told, %g are by the formula",
		r->type, got, want - half_a_key);
	ck_assert_int_eq(told.tokens, SEQUENCE);
	ck_assert_int_eq(told.trained, parameters(r));
	ck_assert_str_eq(messages(), "");
	ck_assert_int_eq(g->batch, BATCH);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
}
END_TEST

/* Each layer behind the main model has one more block with experts, a product of twice as many columns, three norms,
 * and the words' head once more, of which table and head are the main model's. */
START_LOOP_TEST(further_tokens_are_predicted, 4)
{
	static const char *const names[2][2][5] = {
		{{"model.layers.4.enorm.weight", "model.layers.4.hnorm.weight", "model.layers.4.eh_proj.weight",
			"model.layers.4.shared_head.norm.weight", "model.layers.4.self_attn.q_a_proj.weight"},
		{"model.layers.5.enorm.weight", "model.layers.5.mlp.experts.up_proj.weight",
			"model.layers.5.input_layernorm.weight", "model.layers.5.shared_head.norm.weight",
			"model.layers.5.mlp.gate.e_score_correction_bias"}},
		{{"model.mtp_hidden_fusers.0.norm_emb.weight", "model.mtp_hidden_fusers.0.norm.weight",
			"model.mtp_hidden_fusers.0.dense.weight", "model.mtp_norms.0.weight",
			"model.layers.4.attention.q2l_proj.weight"},
		{"model.mtp_hidden_fusers.1.dense.weight", "model.mtp_norms.1.weight",
			"model.layers.5.feed_forward.routed_experts.ffn.w2.weight",
			"model.layers.5.attention_norm.weight", "model.mtp_hidden_fusers.1.norm_emb.weight"}}};
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .further = 1 + _i % 2,
		.names = _i / 2 ? AP_NAMES_MINDFORMERS : AP_NAMES_HF, .dtype = AP_DTYPE_COUNT, .name = "net"};
	const struct row *r = rows;
	struct row deep;
	const struct ap_graph *g;
	struct ap_hf_net net;
	struct ap_model *m;
	char *text;
	int64_t n = o.further;
	double want;

	while (strcmp(r->type, "deepseek_v3") != 0)
		r++;
	text = ap_arena_strdup(arena, config(r));
	*(strstr(text, "num_nextn_predict_layers\": 0") + strlen("num_nextn_predict_layers\": ")) = '2';
	ck_assert_int_eq(read_net(text, &o, &net), AP_OK);
	ck_assert_str_eq(messages(), "");
	m = net.make(arena, net.dimensions);
	deep = *r;
	deep.l += n;
	ck_assert_int_eq(ap_model_parameters(m), parameters(&deep) + n * (3 * r->h + 2 * r->h * r->h));
	g = load(m);
	want = flops(&deep) + 2. * (double)(n * (2 * r->h * r->h + r->v * r->h));
	ck_assert(fabs(work(g) / (BATCH * SEQUENCE) / want - 1) < 0.0001);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	for (int64_t j = 0; j < n; j++)
		for (int i = 0; i < 5; i++)
			(void)ap_model_find(m, names[_i / 2][j][i]);
}
END_TEST

START_TEST(further_tokens_there_are)
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .further = 1,
		.dtype = AP_FLOAT16, .name = "net"};
	struct ap_hf_net net;

	ck_assert_int_eq(read_net(config(&rows[0]), &o, &net), AP_USAGE);
	ck_assert_msg(strstr(messages(), "--mtp 1: of layers that predict tokens behind the next there are 0"), "%s",
		messages());
}
END_TEST

/* The head that predicts words works on those that are masked alone: a product of hidden by hidden units, one of
 * hidden units by all words. */
START_TEST(masked_words)
{
	static const char head[] = "{\"model_type\": \"bert\", \"hidden_size\": 48, \"num_hidden_layers\": 2, "
		"\"num_attention_heads\": 4, \"intermediate_size\": 96, \"vocab_size\": 700, \"hidden_act\": \"gelu\", "
		"\"max_position_embeddings\": 64, \"architectures\": [\"";
	enum { MASKED = 10, HIDDEN = 48, WORDS = 700 };
	static const struct {
		const char *class;
		int64_t masked;
		const char *fault;
	} cases[] = {{"BertForMaskedLM", MASKED, NULL}, {"BertForPreTraining", MASKED, NULL},
		{"BertModel", MASKED, "--masked-positions: the model predicts no masked words"},
		{"BertForMaskedLM", SEQUENCE + 1, "--masked-positions 65: a sample has 64 tokens"}};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .dtype = AP_FLOAT16,
			.name = "net"};
		const char *text = ap_arena_printf(arena, "%s%s\"]}", head, cases[i].class);
		struct ap_hf_net net;
		struct ap_model *all, *some;

		ck_assert_int_eq(read_net(text, &o, &net), AP_OK);
		all = net.make(arena, net.dimensions);
		o.masked = cases[i].masked;
		if (cases[i].fault) {
			ck_assert_int_eq(read_net(text, &o, &net), AP_USAGE);
			ck_assert_msg(strstr(messages(), cases[i].fault), "%s", messages());
			ctx.diag = ap_diag_create(arena, false);
			continue;
		}
		ck_assert_int_eq(read_net(text, &o, &net), AP_OK);
		some = net.make(arena, net.dimensions);
		ck_assert_int_eq(ap_model_parameters(some), ap_model_parameters(all));
		ck_assert_double_eq_tol(work(load(all)) - work(load(some)),
			2. * BATCH * (SEQUENCE - MASKED) * (HIDDEN * HIDDEN + WORDS * HIDDEN), 0.5);
		ck_assert_int_eq(ap_model_shape(some, ap_model_find(some, "masked_lm_positions")).dim[1], MASKED);
	}
}
END_TEST

/* What is kept of all classes of each token for the backward pass, in tensors of float32: the logits alone, or
 * each operator's own. Only the operators that are cut by classes have parts of them. */
START_LOOP_TEST(losses_keep_what_they_say, AP_LOSSES)
{
	static const struct {
		const char *last; /* operator that sees all classes */
		int kept, float32; /* tensors kept; operators that make one of all classes in float32 */
	} want[AP_LOSSES] = {
		[AP_LOSS_EXPANDED] = {"ReduceSum", 5, 7},
		[AP_LOSS_FUSED] = {"SparseSoftmaxCrossEntropyWithLogits", 1, 1},
		[AP_LOSS_KERNEL] = {NULL, 0, 0},
		[AP_LOSS_VOCABULARY_PARALLEL] = {"CrossEntropySums", 1, 1}};
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .loss = (enum ap_model_loss)_i,
		.dtype = AP_DTYPE_COUNT, .name = "net"};
	const char *last = NULL;
	const struct ap_graph *g;
	struct ap_hf_net net;
	int kept = 0, made = 0;

	ck_assert_int_eq(read_net(config(&rows[0]), &o, &net), AP_OK);
	g = load(net.make(arena, net.dimensions));
	ck_assert_int_eq(g->parameters, parameters(&rows[0]));
	for (ap_id t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *x = &g->tensor[t];
		bool saved = false;

		if (x->kind != AP_TENSOR_ACT || x->shape.dtype != AP_FLOAT32 || elements(x) != BATCH * SEQUENCE * rows[0].v)
			continue;
		made++;
		saved = g->node[x->producer].backward && g->node[x->producer].bound.out[x->result].saved;
		for (uint32_t u = 0; u < x->nuse; u++) {
			const struct ap_node *n = &g->node[x->use[u].node];

			saved |= n->backward && n->bound.in[x->use[u].operand].saved;
			last = n->type;
		}
		kept += saved;
	}
	ck_assert_int_eq(made, want[_i].float32);
	ck_assert_int_eq(kept, want[_i].kept);
	ck_assert_pstr_eq(last, want[_i].last);
}
END_TEST

/* Models with layer norms and without a gate: hidden 64, 3 layers, 4 heads, 500 words, 128 positions. */
#define H INT64_C(64)
#define L 3
#define V INT64_C(500)
#define POSITIONS INT64_C(128)
static const struct other {
	const char *text;
	int64_t parameters, products; /* weights of all products */
	const char *names[4];
} others[] = {
	{"\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 3, \"n_head\": 4, \"n_positions\": 128, "
		"\"n_ctx\": 128, \"n_inner\": null, \"activation_function\": \"gelu_new\"",
		V * H + POSITIONS * H + L * (12 * H * H + 13 * H) + 2 * H, L * 12 * H * H + V * H,
		{"wpe.weight", "h.0.attn.c_attn.weight", "h.2.mlp.c_proj.bias", "ln_f.bias"}},
	{"\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"intermediate_size\": 256, \"max_position_embeddings\": 128, \"hidden_act\": \"gelu\"",
		2 * V * H + L * (12 * H * H + 13 * H) + 2 * H, L * 12 * H * H + V * H,
		{"gpt_neox.embed_in.weight", "gpt_neox.layers.1.attention.query_key_value.bias",
			"gpt_neox.layers.0.mlp.dense_4h_to_h.weight", "embed_out.weight"}},
	{"\"model_type\": \"opt\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"ffn_dim\": 256, \"max_position_embeddings\": 128, \"activation_function\": \"relu\", "
		"\"word_embed_proj_dim\": 64, \"do_layer_norm_before\": true",
		V * H + (POSITIONS + 2) * H + L * (12 * H * H + 13 * H) + 2 * H, L * 12 * H * H + V * H,
		{"model.decoder.embed_positions.weight", "model.decoder.layers.0.fc1.bias",
			"model.decoder.layers.2.self_attn.out_proj.weight",
			"model.decoder.layers.2.final_layer_norm.weight"}},
	{"\"model_type\": \"bloom\", \"n_embed\": 64, \"n_layer\": 3, \"n_head\": 4, \"n_inner\": null, "
		"\"seq_length\": 128",
		V * H + 2 * H + L * (12 * H * H + 13 * H) + 2 * H, L * 12 * H * H + V * H,
		{"word_embeddings_layernorm.bias", "h.1.self_attention.query_key_value.weight",
			"h.0.post_attention_layernorm.bias", "ln_f.weight"}},
	{"\"model_type\": \"RefinedWebModel\", \"hidden_size\": 64, \"n_layer\": 3, \"n_head\": 4, "
		"\"multi_query\": true, \"parallel_attn\": true, \"alibi\": false, \"bias\": false",
		V * H + L * (H * (4 + 2) * 16 + 9 * H * H + 2 * H) + 2 * H,
		L * (H * (4 + 2) * 16 + 9 * H * H) + V * H,
		{"transformer.h.0.self_attention.query_key_value.weight", "transformer.h.0.input_layernorm.bias",
			"transformer.h.2.mlp.dense_h_to_4h.weight", "transformer.ln_f.bias"}},
	{"\"model_type\": \"falcon\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"num_kv_heads\": 2, \"new_decoder_architecture\": true, \"bias\": false",
		V * H + L * (H * (4 + 2 * 2) * 16 + 9 * H * H + 4 * H) + 2 * H,
		L * (H * (4 + 2 * 2) * 16 + 9 * H * H) + V * H,
		{"transformer.h.0.ln_attn.weight", "transformer.h.0.ln_mlp.bias"}},
	{"\"model_type\": \"mpt\", \"d_model\": 64, \"n_layers\": 3, \"n_heads\": 4, \"max_seq_len\": 128, "
		"\"expansion_ratio\": 4, \"no_bias\": true, \"learned_pos_emb\": true, "
		"\"attn_config\": {\"alibi\": true, \"attn_type\": \"multihead_attention\"}",
		V * H + L * (12 * H * H + 2 * H) + H, L * 12 * H * H + V * H,
		{"transformer.blocks.0.attn.Wqkv.weight", "transformer.blocks.0.norm_1.weight",
			"transformer.blocks.2.ffn.down_proj.weight", "transformer.norm_f.weight"}},
	{"\"model_type\": \"phi\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"intermediate_size\": 256, \"max_position_embeddings\": 128, \"hidden_act\": \"gelu_new\", "
		"\"partial_rotary_factor\": 0.5, \"qk_layernorm\": false",
		2 * V * H + V + L * (12 * H * H + 11 * H) + 2 * H, L * 12 * H * H + V * H,
		{"model.layers.0.self_attn.dense.bias", "model.layers.0.mlp.fc1.weight", "model.final_layernorm.bias",
			"lm_head.bias"}},
	{"\"model_type\": \"phi\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"intermediate_size\": 256, \"max_position_embeddings\": 128, \"hidden_act\": \"gelu_new\", "
		"\"tie_word_embeddings\": true",
		V * H + V + L * (12 * H * H + 11 * H) + 2 * H, L * 12 * H * H + V * H, {"lm_head.bias"}},
	{"\"model_type\": \"mpt\", \"d_model\": 64, \"n_layers\": 3, \"n_heads\": 4, \"max_seq_len\": 128, "
		"\"no_bias\": true, \"attn_config\": {\"alibi\": true, \"attn_type\": \"multiquery_attention\"}",
		V * H + L * (10 * H * H + 2 * H * 16 + 2 * H) + H, L * (10 * H * H + 2 * H * 16) + V * H,
		{"transformer.blocks.0.attn.Wqkv.weight"}},
};

START_LOOP_TEST(others_are_built, AP_COUNT(others))
{
	const struct other *o = &others[_i];
	const struct ap_model *m = build(ap_arena_printf(arena,
		"{%s, \"vocab_size\": 500, \"torch_dtype\": \"float16\"}", o->text));
	const struct ap_graph *g = load(m);
	double want = 2. * (double)o->products + 2. * (double)(L * H * 2) * (SEQUENCE + 1) / 2;
	double got = work(g) / (BATCH * SEQUENCE);

	ck_assert_int_eq(ap_model_parameters(m), o->parameters);
	ck_assert_int_eq(g->parameters, o->parameters);
	ck_assert_msg(fabs(got / want - 1) < 0.0001, "%g FLOP per token, %g by the formula", got, want);
	ck_assert_str_eq(messages(), "");
	for (size_t k = 0; k < 4 && o->names[k]; k++)
		(void)ap_model_find(m, o->names[k]);
}
END_TEST
#undef H
#undef L
#undef V
#undef POSITIONS

/* Encoders: hidden 64, 3 layers, 4 heads, inner 256; words 500, positions 128, 2 types; images of 32 x 32 in
 * patches of 8. Forward products of a sample, attention to all tokens; convolutions apart. */
enum { BLOCK = 12 * 64 * 64 + 13 * 64, BLOCK_PRODUCTS = 12 * 64 * 64, WORDS = 500 * 64, PATCH_TOKENS = 17 };
#define SCORES(layers, tokens) (2. * (layers) * 4 * 2 * 16 * (tokens) * (tokens))
#define BERT "\"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"intermediate_size\": 256, " \
	"\"type_vocab_size\": 2, \"vocab_size\": 500, \"max_position_embeddings\": 128, \"hidden_act\": \"gelu\", "
#define VIT "\"model_type\": \"vit\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, " \
	"\"intermediate_size\": 256, \"image_size\": 32, \"patch_size\": 8, "
#define T5 "\"model_type\": \"t5\", \"d_model\": 64, \"num_layers\": 3, \"num_heads\": 4, \"d_kv\": 24, " \
	"\"d_ff\": 160, \"vocab_size\": 500, \"relative_attention_num_buckets\": 32, "
enum { T5_ATTENTION = 4 * 4 * 24 * 64 };
static const struct encoder {
	const char *text;
	int64_t parameters;
	double flops; /* of a sample */
	const char *names[4];
	bool mean; /* there is no head, and a note of it */
} encoders[] = {
	{BERT "\"pooler_fc_size\": 16, ", WORDS + 128 * 64 + 2 * 64 + 2 * 64 + 3 * BLOCK + 64 * 64 + 64,
		2. * SEQUENCE * 3 * BLOCK_PRODUCTS + SCORES(3, SEQUENCE) + 2. * 64 * 64,
		{"bert.embeddings.LayerNorm.weight", "bert.encoder.layer.2.attention.self.query.bias",
			"bert.encoder.layer.0.intermediate.dense.weight", "bert.pooler.dense.weight"}, true},
	{BERT "\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"], ",
		WORDS + 128 * 64 + 2 * 64 + 2 * 64 + 3 * BLOCK + 64 * 64 + 64 + 2 * 64 + 500,
		2. * SEQUENCE * (3 * BLOCK_PRODUCTS + 64 * 64 + WORDS) + SCORES(3, SEQUENCE),
		{"bert.encoder.layer.1.output.LayerNorm.bias", "cls.predictions.transform.dense.weight",
			"cls.predictions.bias"}, false},
	{BERT "\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"], ",
		WORDS + 128 * 64 + 2 * 64 + 2 * 64 + 3 * BLOCK + 2 * (64 * 64 + 64) + 2 * 64 + 500 + 2 * 64 + 2,
		2. * SEQUENCE * (3 * BLOCK_PRODUCTS + 64 * 64 + WORDS) + SCORES(3, SEQUENCE) +
			2. * (64 * 64 + 2 * 64),
		{"cls.seq_relationship.weight", "cls.seq_relationship.bias"}, false},
	{VIT "\"architectures\": [\"ViTForImageClassification\"], \"id2label\": {\"0\": \"a\", \"1\": \"b\", "
		"\"2\": \"c\"}, ",
		3 * 64 * 64 + 64 + 64 + PATCH_TOKENS * 64 + 3 * BLOCK + 2 * 64 + 3 * 65,
		2. * PATCH_TOKENS * 3 * BLOCK_PRODUCTS + SCORES(3, PATCH_TOKENS) + 2. * 3 * 64,
		{"vit.embeddings.cls_token", "vit.encoder.layer.0.attention.attention.value.bias",
			"vit.encoder.layer.2.layernorm_after.weight", "classifier.weight"}, false},
	{VIT "\"architectures\": [\"ViTModel\"], \"qkv_bias\": false, ",
		3 * 64 * 64 + 64 + 64 + PATCH_TOKENS * 64 + 3 * (BLOCK - 3 * 64) + 2 * 64 + 64 * 65,
		2. * PATCH_TOKENS * 3 * BLOCK_PRODUCTS + SCORES(3, PATCH_TOKENS) + 2. * 64 * 64,
		{"vit.pooler.dense.weight"}, true},
	{T5 "\"is_encoder_decoder\": true, ",
		WORDS + 3 * (3 * (T5_ATTENTION + 64) + 2 * (2 * 64 * 160 + 64)) + 2 * (64 + 32 * 4),
		2. * SEQUENCE * (3 * (3 * T5_ATTENTION + 2 * 2 * 64 * 160) + WORDS) +
			3 * SCORES(3, SEQUENCE) * 24 / 16,
		{"shared.weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
			"decoder.block.2.layer.1.EncDecAttention.o.weight", "decoder.block.0.layer.2.DenseReluDense.wi.weight"},
		false},
	{T5 "\"num_decoder_layers\": 2, \"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false, ",
		2 * WORDS + 3 * (T5_ATTENTION + 64 + 3 * 64 * 160 + 64) + 2 * (2 * (T5_ATTENTION + 64) + 3 * 64 * 160 + 64) +
			2 * (64 + 32 * 4),
		2. * SEQUENCE * (7 * T5_ATTENTION + 5 * 3 * 64 * 160 + WORDS) + 7 * SCORES(1, SEQUENCE) * 24 / 16,
		{"encoder.block.2.layer.1.DenseReluDense.wi_0.weight", "decoder.block.1.layer.2.DenseReluDense.wi_1.weight",
			"decoder.final_layer_norm.weight", "lm_head.weight"}, false},
};

START_LOOP_TEST(encoders_are_built, 2 * AP_COUNT(encoders))
{
	const struct encoder *e = &encoders[_i / 2];
	bool flash = _i % 2, images = strstr(e->text, "vit");
	const struct ap_hf_options o = {.batch = BATCH, .sequence = images ? 0 : SEQUENCE, .flash = flash,
		.dtype = AP_DTYPE_COUNT, .name = "net"};
	const struct ap_model *m;
	const struct ap_graph *g;
	struct ap_hf_net net;
	double got;

	if (read_net(ap_arena_printf(arena, "{%s\"torch_dtype\": \"float16\"}", e->text), &o, &net) != AP_OK)
		ck_abort_msg("%s", messages());
	m = net.make(arena, net.dimensions);
	ck_assert_str_eq(messages(), e->mean ? "autopar-plan: note: config.json:1:1: the model has no head: its loss is "
		"the mean of what the pooler gives\n" : "");
	g = load(m);
	got = work(g) / BATCH;
	ck_assert_int_eq(ap_model_parameters(m), e->parameters);
	ck_assert_int_eq(g->parameters, e->parameters);
	ck_assert_msg(flash || fabs(got / e->flops - 1) < 1e-9, "%.0f FLOP of a sample, %.0f by the formula", got,
		e->flops);
	ck_assert_int_eq(g->batch, BATCH);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	for (size_t k = 0; k < 4 && e->names[k]; k++)
		(void)ap_model_find(m, e->names[k]);
}
END_TEST

static const struct ap_tensor *find_tensor(const struct ap_graph *g, const char *name)
{
	for (uint32_t t = 0; t < g->ntensor; t++)
		if (!strcmp(g->tensor[t].name, name))
			return &g->tensor[t];
	ck_abort_msg("no tensor %s", name);
	return NULL;
}

static int64_t trained(const struct ap_graph *g)
{
	int64_t sum = 0;

	for (uint32_t t = 0; t < g->ntensor; t++)
		sum += g->tensor[t].trainable ? elements(&g->tensor[t]) : 0;
	return sum;
}

/* Of hidden 96, 3 layers, 6 heads of 16: adapters of query and value alone are trained. */
START_TEST(adapters_alone_are_trained)
{
	const char *const targets[] = {"q", "v_proj"};
	struct ap_model *m = build(config(&rows[0]));
	uint32_t operators = ap_model_operators(m);
	const struct ap_graph *g;

	ck_assert_str_eq(ap_model_targets(m), "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, lm_head");
	ck_assert(ap_model_has_target(m, "down") && !ap_model_has_target(m, "dow"));
	ck_assert_uint_eq(ap_model_adapt(m, 8, targets, 2), 6);
	ck_assert_int_eq(ap_model_parameters(m), 3 * 2 * 8 * (96 + 96));
	ck_assert_uint_eq(ap_model_operators(m), operators + 6 * 4);
	g = load(m);
	ck_assert_int_eq(trained(g), 3 * 2 * 8 * (96 + 96));
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	ck_assert(!find_tensor(g, "model.layers.2.self_attn.q_proj.weight")->trainable);
	ck_assert(find_tensor(g, "model.layers.2.self_attn.q_proj.lora_B.weight")->trainable);
	ck_assert(find_tensor(g, "model.layers.0.self_attn.v_proj.lora_A.weight")->needs_grad);
}
END_TEST

START_TEST(frozen_parameters_have_no_gradient)
{
	struct ap_model *m = build(config(&rows[0]));
	int64_t all = ap_model_parameters(m);
	const struct ap_graph *g;

	ck_assert_uint_eq(ap_model_freeze(m, "model.layers.?.mlp.*"), 9);
	ck_assert_uint_eq(ap_model_freeze(m, "model.layers.?.mlp.*"), 0);
	ck_assert_int_eq(ap_model_parameters(m), all - 3 * 3 * 96 * 200);
	g = load(m);
	ck_assert_int_eq(trained(g), all - 3 * 3 * 96 * 200);
	ck_assert(!find_tensor(g, "model.layers.1.mlp.up_proj.weight")->needs_grad);
	ck_assert(find_tensor(g, "model.embed_tokens.weight")->needs_grad);
}
END_TEST

/* What is wrong in configurations of encoders. */
static const struct {
	const char *text, *message;
	int64_t sequence;
} wrong[] = {
	{BERT "\"architectures\": [\"BertForQuestionAnswering\"]", "/architectures/0: no graph is built of the class "
		"\"BertForQuestionAnswering\"; expected BertModel, BertForMaskedLM or BertForPreTraining", SEQUENCE},
	{BERT "\"position_embedding_type\": \"relative_key\"", "/position_embedding_type: no graph is built of these "
		"positions", SEQUENCE},
	{BERT "\"torch_dtype\": \"float16\"", "--sequence 256 is more than the 128 positions", 256},
	{BERT "\"num_attention_heads \": 4, \"expert_dim\": 5", "may change shapes", SEQUENCE},
	{BERT "\"pooler_type\": 1, \"is_decoder\": true", "/is_decoder: BERT as a decoder is not built", SEQUENCE},
	{VIT "\"torch_dtype\": \"float16\"", "--sequence is not for images: a sample has 17 tokens", SEQUENCE},
	{"\"model_type\": \"vit\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 5, "
		"\"intermediate_size\": 256", "/num_attention_heads: 5 heads do not divide hidden_size of 64", 0},
	{VIT "\"id2label\": []", "/id2label: expected an object with the name of each label", 0},
	{"\"model_type\": \"vit\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
		"\"intermediate_size\": 256, \"image_size\": 8", "/image_size: patches of 16 pixels are larger than an "
		"image of 8", 0},
	{T5 "\"feed_forward_proj\": \"gated-tanh\"", "/feed_forward_proj: expected \"relu\"", SEQUENCE},
	{T5 "\"num_decoder_layers\": -2", "/num_decoder_layers: expected an integer from 1 to 1000, got -2", SEQUENCE},
	{"\"model_type\": \"t5\", \"num_layers\": 3", "no key \"hidden_size\"", SEQUENCE},
	{T5 "\"is_encoder_decoder\": false", "/is_encoder_decoder: a part of the model alone is not built", SEQUENCE},
};

START_LOOP_TEST(wrong_encoders, AP_COUNT(wrong))
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = wrong[_i].sequence, .flash = true,
		.dtype = AP_FLOAT16, .name = "net"};
	struct ap_hf_net net;

	ck_assert_int_ne(read_net(ap_arena_printf(arena, "{%s}", wrong[_i].text), &o, &net), AP_OK);
	ck_assert_msg(strstr(messages(), wrong[_i].message), "%s", messages());
}
END_TEST

/* Small operators attend to all tokens. */
START_TEST(small_operators)
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .dtype = AP_FLOAT16, .name = "net"};
	const struct row *r = &rows[0];
	struct ap_decoder d;
	const struct ap_graph *g;

	ck_assert_int_eq(read_text(config(r), &o, &d), AP_OK);
	g = load(ap_model_decoder(arena, &d));
	ck_assert_int_eq(g->parameters, parameters(r));
	ck_assert(work(g) / (BATCH * SEQUENCE) > flops(r));
	for (uint32_t t = 0; t < g->ntensor; t++)
		if (!strcmp(g->tensor[t].name, "lm_head.weight"))
			ck_assert_int_eq(g->tensor[t].shape.dtype, AP_FLOAT16);
}
END_TEST

/* Order of keys, alias and null say nothing. */
START_TEST(other_words)
{
	const struct ap_hf_options o = {.batch = 1, .sequence = 8, .dtype = AP_DTYPE_COUNT, .name = "net"};
	const char *text = "{\"vocab_size\": 90, \"n_layer\": 2, \"n_head\": 4, \"n_embd\": 32, \"ffn_dim\": 48, "
		"\"num_key_value_heads\": null, \"head_dim\": null, \"architectures\": [\"LlamaForCausalLM\"], "
		"\"rope_scaling\": {\"type\": \"linear\"}, \"bos_token_id\": 1, \"torch_dtype\": \"float32\"}";
	struct ap_decoder d;

	ck_assert_int_eq(read_text(text, &o, &d), AP_OK);
	ck_assert_int_eq(d.kv_heads, 4);
	ck_assert_int_eq(d.head_size, 8);
	ck_assert_int_eq(d.inner, 48);
	ck_assert_int_eq(d.dtype, AP_FLOAT32);
	ck_assert(!d.tied);
}
END_TEST

/* Names as in the index of a checkpoint's files; experts are one tensor. */
START_TEST(names_of_checkpoints)
{
	static const struct {
		size_t row;
		const char *name[12];
	} want[] = {
		{0, {"model.embed_tokens.weight", "model.layers.2.self_attn.q_proj.weight",
			"model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
			"model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
			"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
			"model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight",
			"model.norm.weight", "lm_head.weight"}},
		{4, {"model.layers.1.self_attn.q_proj.bias", "model.layers.1.self_attn.v_proj.bias"}},
		{5, {"model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.k_norm.weight"}},
		{6, {"model.layers.0.block_sparse_moe.gate.weight", "model.layers.1.block_sparse_moe.experts.w1.weight",
			"model.layers.1.block_sparse_moe.experts.w2.weight",
			"model.layers.1.block_sparse_moe.experts.w3.weight"}},
		{8, {"model.layers.0.mlp.gate_proj.weight", "model.layers.1.mlp.gate.weight",
			"model.layers.1.mlp.experts.gate_proj.weight", "model.layers.3.mlp.up_proj.weight",
			"model.layers.5.mlp.experts.down_proj.weight"}},
		{9, {"model.layers.0.self_attn.qkv_proj.weight", "model.layers.0.mlp.gate_up_proj.weight"}},
		{11, {"model.tok_embeddings.weight", "model.layers.0.attention.wqkv.bias",
			"model.layers.0.attention.wo.bias", "model.layers.0.feed_forward.w1.weight",
			"model.layers.0.attention_norm.weight", "model.layers.0.ffn_norm.weight", "output.weight"}},
		{12, {"model.layers.0.self_attn.W_pack.weight"}},
		{13, {"transformer.embedding.word_embeddings.weight",
			"transformer.encoder.layers.0.self_attention.query_key_value.bias",
			"transformer.encoder.layers.1.mlp.dense_h_to_4h.weight",
			"transformer.encoder.final_layernorm.weight", "transformer.output_layer.weight"}},
		{14, {"model.layers.0.post_feedforward_layernorm.weight",
			"model.layers.1.pre_feedforward_layernorm.weight"}},
		{15, {"model.layers.0.self_attn.k_norm.weight"}},
		{16, {"model.layers.0.mlp.gate_proj.weight", "model.layers.1.self_attn.q_proj.weight",
			"model.layers.1.mlp.shared_experts.down_proj.weight"}},
		{19, {"model.layers.0.self_attn.sinks", "model.layers.0.mlp.router.weight", "model.layers.0.mlp.router.bias",
			"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.gate_up_proj_bias",
			"model.layers.1.mlp.experts.down_proj", "model.layers.1.mlp.experts.down_proj_bias",
			"model.layers.1.self_attn.o_proj.bias"}},
		{20, {"model.layers.0.mlp.shared_expert_gate.weight", "model.layers.0.mlp.shared_expert.up_proj.weight",
			"model.layers.0.mlp.experts.up_proj.weight", "model.layers.1.self_attn.k_proj.bias"}},
		{22, {"model.layers.0.post_self_attn_layernorm.weight", "model.layers.0.post_mlp_layernorm.weight",
			"model.layers.0.mlp.gate_up_proj.weight"}},
		{17, {"model.layers.0.self_attn.q_a_proj.weight", "model.layers.0.self_attn.q_a_layernorm.weight",
			"model.layers.0.self_attn.q_b_proj.weight", "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
			"model.layers.0.self_attn.kv_a_layernorm.weight", "model.layers.0.self_attn.kv_b_proj.weight",
			"model.layers.0.self_attn.o_proj.weight", "model.layers.3.mlp.gate.weight",
			"model.layers.3.mlp.gate.e_score_correction_bias", "model.layers.3.mlp.experts.up_proj.weight",
			"model.layers.3.mlp.shared_experts.gate_proj.weight"}},
	};

	for (size_t i = 0; i < AP_COUNT(want); i++) {
		const struct ap_model *m = build(config(&rows[want[i].row]));

		for (size_t k = 0; k < 12 && want[i].name[k]; k++)
			(void)ap_model_find(m, want[i].name[k]); /* asserts that there is one */
	}
}
END_TEST

/* By MindFormers' names a network has the same parameters and work; products are joined or parted as its checkpoints
 * have them. */
START_LOOP_TEST(spelled_as_mindformers_does, AP_COUNT(rows))
{
	static const struct {
		const char *type;
		const char *name[12];
	} want[] = {
		{"llama", {"model.tok_embeddings.embedding_weight", "model.layers.1.attention.wq.weight",
			"model.layers.0.attention.wk.weight", "model.layers.0.attention.wv.weight",
			"model.layers.0.attention.wo.weight", "model.layers.1.feed_forward.w1.weight",
			"model.layers.0.feed_forward.w2.weight", "model.layers.0.feed_forward.w3.weight",
			"model.layers.0.attention_norm.weight", "model.layers.0.ffn_norm.weight", "model.norm_out.weight"}},
		{"mistral", {"model.layers.3.attention.wo.weight", "lm_head.weight"}},
		{"mixtral", {"model.layers.0.feed_forward.router.dense.weight", "model.layers.1.feed_forward.ffn.w1.weight",
			"model.layers.1.feed_forward.ffn.w2.weight", "model.layers.1.feed_forward.ffn.w3.weight"}},
		{"qwen2", {"model.layers.0.attention.wq.bias", "model.layers.0.attention.wv.bias"}},
		{"qwen3", {"embedding.word_embeddings.weight", "decoder.layers.0.self_attention.linear_qkv.weight",
			"decoder.layers.0.self_attention.linear_proj.weight", "decoder.layers.1.self_attention.q_layernorm.weight",
			"decoder.layers.1.self_attention.k_layernorm.weight", "decoder.layers.1.mlp.linear_fc1.weight",
			"decoder.layers.1.mlp.linear_fc2.weight", "decoder.layers.1.input_layernorm.weight",
			"decoder.layers.1.pre_mlp_layernorm.weight", "decoder.final_layernorm.weight", "output_layer.weight"}},
		{"qwen3_moe", {"decoder.layers.1.mlp.router.weight", "decoder.layers.1.mlp.experts.weight1",
			"decoder.layers.1.mlp.experts.weight2"}},
		{"chatglm", {"transformer.embedding.embedding_weight", "transformer.encoder.layers.0.self_attention.wq.bias",
			"transformer.encoder.layers.0.self_attention.wk.weight", "transformer.encoder.layers.0.self_attention.dense.weight",
			"transformer.encoder.layers.1.mlp.dense_left.weight", "transformer.encoder.layers.1.mlp.dense_right.weight",
			"transformer.encoder.layers.1.mlp.dense_4h_to_h.weight", "transformer.output_layer.weight"}},
		{"deepseek_v3", {"model.layers.0.attention.q2l_proj.weight", "model.layers.0.attention.lq_norm.weight",
			"model.layers.0.attention.l2q_proj.weight", "model.layers.0.attention.kv2l.weight",
			"model.layers.0.attention.lkv_norm.weight", "model.layers.0.attention.lkv2kv.weight",
			"model.layers.1.feed_forward.w3.weight", "model.layers.2.feed_forward.routed_experts.router.dense.weight",
			"model.layers.3.feed_forward.routed_experts.ffn.w1.weight",
			"model.layers.3.feed_forward.shared_experts.w2.weight"}},
		{"kimi_k2", {"model.layers.0.feed_forward.routed_experts.ffn.w2.weight"}},
	};
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .names = AP_NAMES_MINDFORMERS,
		.dtype = AP_DTYPE_COUNT, .name = "net"};
	const struct row *r = &rows[_i];
	enum ap_status st;
	struct ap_hf_net net;
	struct ap_model *m;
	size_t k = 0;

	st = read_net(config(r), &o, &net);
	while (k < AP_COUNT(want) && strcmp(want[k].type, r->type) != 0)
		k++;
	if (k == AP_COUNT(want)) {
		ck_assert_int_eq(st, AP_USAGE);
		ck_assert_msg(strstr(messages(), ap_arena_printf(arena, "/model_type: --names mindformers: how MindFormers spells "
			"the parameters of \"%s\" is not known, but of llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, chatglm, "
			"deepseek_v3, kimi_k2, gpt2, bloom", r->type)), "%s", messages());
		return;
	}
	ck_assert_int_eq(st, AP_OK);
	m = net.make(arena, net.dimensions);
	ck_assert_int_eq(ap_model_parameters(m), parameters(r));
	ck_assert(fabs(work(load(m)) / (BATCH * SEQUENCE) / flops(r) - 1) < 0.0001);
	for (size_t i = 0; i < 12 && want[k].name[i]; i++)
		(void)ap_model_find(m, want[k].name[i]);
}
END_TEST

/* Of GPT-2, whose weights are [in,out], query, key and value are turned, and of Bloom all others. */
START_LOOP_TEST(spelled_as_gpt, 2)
{
	static const struct {
		const char *type, *net, *final;
	} want[] = {{"gpt2", "backbone", "backbone.layernorm.gamma"}, {"bloom", "transformer", "transformer.ln_f.beta"}};
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .flash = true, .names = AP_NAMES_MINDFORMERS,
		.dtype = AP_FLOAT16, .name = "net"};
	const struct other *r = others;
	struct ap_hf_net net;
	struct ap_model *m;
	struct ap_shape s;

	while (!strstr(r->text, want[_i].type))
		r++;
	ck_assert_int_eq(read_net(ap_arena_printf(arena, "{%s, \"vocab_size\": 500}", r->text), &o, &net), AP_OK);
	m = net.make(arena, net.dimensions);
	ck_assert_int_eq(ap_model_parameters(m), r->parameters);
	s = ap_model_shape(m, ap_model_find(m, ap_model_name(m, want[_i].net, "blocks.2.output.mapping.weight")));
	ck_assert(s.dim[0] == 64 && s.dim[1] == 256);
	s = ap_model_shape(m, ap_model_find(m, ap_model_name(m, want[_i].net, "blocks.0.output.projection.weight")));
	ck_assert(s.dim[0] == 256 && s.dim[1] == 64);
	for (int i = 1; i <= 3; i++)
		(void)ap_model_find(m, ap_arena_printf(arena, "%s.blocks.1.attention.dense%d.bias", want[_i].net, i));
	(void)ap_model_find(m, ap_model_name(m, want[_i].net, "blocks.0.layernorm2.beta"));
	(void)ap_model_find(m, ap_model_name(m, want[_i].net, "embedding.word_embedding.embedding_table"));
	(void)ap_model_find(m, want[_i].final);
}
END_TEST

#define GOOD "{\n\"model_type\": \"llama\",\n\"hidden_size\": 64,\n\"num_hidden_layers\": 2,\n\"num_attention_heads\": 4," \
	"\n\"intermediate_size\": 128,\n\"vocab_size\": 300,\n\"max_position_embeddings\": 4096,\n" \
	"\"torch_dtype\": \"bfloat16\"\n}"

#define LATENT "\"deepseek_v3\", \"kv_lora_rank\": 16, \"qk_nope_head_dim\": 8, \"v_head_dim\": 8, " \
	"\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8, "

/* The first place of one text in the good configuration is another. */
static const struct damage {
	const char *from, *to, *message;
	enum ap_status status;
} damages[] = {
	{"\"hidden_size\": 64,\n", "", "config.json:1:1: no key \"hidden_size\" (or "
		"\"n_embd\", \"n_embed\", \"d_model\"), or null; expected an integer from 1",
		AP_MEANING},
	{"64", "null", ": no key \"hidden_size\" (or", AP_MEANING},
	{"64", "-64", "config.json:3:16: /hidden_size: expected an integer from 1 to 268435456, got -64", AP_MEANING},
	{"64", "0", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "\"64\"", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "64.5", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "[64]", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "1e30", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "66", ":5:24: /num_attention_heads: 4 heads do not divide hidden_size of 66", AP_MEANING},
	{"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1001", ":4:22: /num_hidden_layers: expected an integer "
		"from 1 to 1000, got 1001", AP_MEANING},
	{"\"num_attention_heads\": 4,\n", "", "no key \"num_attention_heads\"", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"num_key_value_heads\": 3",
		"/num_key_value_heads: 3 heads of keys do not divide the 4 heads of queries", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"num_key_value_heads\": true",
		"/num_key_value_heads: expected an integer from 1", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 64", "makes heads of 1 units", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"head_dim\": 15", "/head_dim: makes heads of 15 units",
		AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"n_head\": 8", "/n_head: contradicts "
		"\"num_attention_heads\", which is 4", AP_MEANING},
	{"\"intermediate_size\": 128,\n", "", "no key \"intermediate_size\"", AP_MEANING},
	{"\"vocab_size\": 300,\n", "", "no key \"vocab_size\"", AP_MEANING},
	{"\"vocab_size\": 300", "\"vocab_size\": {}", ":7:15: /vocab_size: expected an integer", AP_MEANING},
	{"\"llama\"", "7", ":2:15: /model_type: expected the name of an architecture", AP_MEANING},
	{"\"llama\"", "\"mamba\"", ":2:15: /model_type: unknown model type \"mamba\"; expected one of llama", AP_MEANING},
	{"\"llama\"", "\"roberta\"", "/model_type: no graph is built of model type \"roberta\"", AP_MEANING},
	{"\"llama\"", "\"qwen3_moe\"", "no key \"num_local_experts\"", AP_MEANING},
	{"\"vocab_size\"", "\"attention_bias\": 1, \"vocab_size\"", "/attention_bias: expected true or false", AP_MEANING},
	{"\"vocab_size\"", "\"tie_word_embeddings\": \"yes\", \"vocab_size\"", "/tie_word_embeddings: expected true",
		AP_MEANING},
	{"\"vocab_size\"", "\"hidden_act\": \"tanh\", \"vocab_size\"", "/hidden_act: expected \"silu\" or \"gelu\"",
		AP_MEANING},
	{"\"vocab_size\"", "\"hybrid_override_pattern\": \"M-M*\", \"vocab_size\"",
		"the key \"hybrid_override_pattern\" is not understood for llama, and may change shapes", AP_MEANING},
	{"\"vocab_size\"", "\"q_lora_rank\": 16, \"vocab_size\"", "the key \"q_lora_rank\" is not understood", AP_MEANING},
	{"\"vocab_size\"", "\"layer_types\": [\"linear_attention\", \"full_attention\"], \"vocab_size\"",
		"/layer_types/0: no graph is built of layers of type \"linear_attention\"", AP_MEANING},
	{"\"vocab_size\"", "\"layer_types\": [\"full_attention\"], \"vocab_size\"", "1 types for 2 layers", AP_MEANING},
	{"\"vocab_size\"", "\"quantization_config\": {\"quant_method\": \"fp8\"}, \"vocab_size\"",
		"/quantization_config: quantized weights are not trained; give --dtype for the "
		"type of weights and activations, and --fp8-format e4m3 --fp8-recipe tensorwise for products in 8", AP_MEANING},
	{"\"vocab_size\"", "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}, "
		"\"vocab_size\"", "e4m3 --fp8-recipe blockwise for products in 8 bits", AP_MEANING},
	{"\"vocab_size\"", "\"quantization_config\": {\"quant_method\": \"mxfp4\"}, \"vocab_size\"",
		"give --dtype for the type of weights and activations [", AP_MEANING},
	{"bfloat16", "int8", ":9:16: /torch_dtype: expected \"float16\", \"bfloat16\" or \"float32\"", AP_MEANING},
	{"4096", "131072", ":8:28: /max_position_embeddings: the model takes up to 131072 tokens; --sequence has to say",
		AP_USAGE},
	{"4096", "-1", ":8:28: /max_position_embeddings: expected an integer", AP_MEANING},
	{"\"vocab_size\"", "\"text_config\": {}, \"vocab_size\"", "no graph is built of models of text and images",
		AP_MEANING},
	{"\"vocab_size\"", "\"is_encoder_decoder\": true, \"vocab_size\"", "an encoder beside the decoder is not built",
		AP_MEANING},
	{"\"llama\"", "\"opt\", \"word_embed_proj_dim\": 32", "/word_embed_proj_dim: words of other than 64 units",
		AP_MEANING},
	{"64", "60", "/num_attention_heads: makes heads of 15 units; rotary", AP_MEANING},
	{"\"llama\",\n\"hidden_size\": 64", "\"gpt_neox\",\n\"hidden_size\": 60", "makes heads of 15 units; rotary",
		AP_MEANING},
	{"\"llama\"", "\"mpt\"", "expected an object \"attn_config\"", AP_MEANING},
	{"\"llama\"", "\"mpt\", \"attn_config\": {}", "/attn_config: positions other than alibi are not built",
		AP_MEANING},
	{"\"llama\"", "\"phi\", \"qk_layernorm\": true", "/qk_layernorm: a norm of queries and keys is not built",
		AP_MEANING},
	{"\"llama\"", "\"gpt2\", \"activation_function\": \"silu\"", "/activation_function: expected \"gelu\" or "
		"\"relu\"", AP_MEANING},
	{"\"llama\"", "\"gemma3\", \"text_config\": 7", "/text_config: expected an object", AP_MEANING},
	{"\"llama\"", "\"gpt_oss\"", "no key \"num_local_experts\"", AP_MEANING},
	{"\"llama\"", "\"gpt_oss\", \"num_local_experts\": 4, \"num_experts_per_tok\": 5", "/num_experts_per_tok: 5 experts of "
		"a token, of 4 that there are", AP_MEANING},
	{"\"llama\"", "\"gpt_oss\", \"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"num_key_value_heads\": 4, "
		"\"sliding_window\": -1",
		"/sliding_window: expected an integer from 1", AP_MEANING},
	{"\"llama\"", "\"qwen2_moe\", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8",
		"no key \"shared_expert_intermediate_size\"", AP_MEANING},
	{"\"llama\"", "\"glm4\", \"head_dim\": 0", "/head_dim: expected an integer from 1", AP_MEANING},
	{"\"llama\"", "\"deepseek_v3\"", "no key \"qk_nope_head_dim\"", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 5", "/qk_rope_head_dim: rotary positions turn pairs of units, of which "
		"there are 5", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"q_lora_rank\": \"full\"", "/q_lora_rank: expected an integer from 1",
		AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"n_group\": 3", "/n_group: 3 groups do not divide the 8 experts",
		AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"n_group\": 4, \"topk_group\": 5", "/topk_group: 5 groups of a "
		"token, of 4 that there are", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"n_group\": 8, \"topk_group\": 1", "/topk_group: 2 experts of a "
		"token do not fit into its groups, which have 1", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"first_k_dense_replace\": 3", "/first_k_dense_replace: expected an "
		"integer from 0 to 2", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"first_k_dense_replace\": -1", "/first_k_dense_replace: expected",
		AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"scoring_func\": \"tanh\"", "/scoring_func: expected \"softmax\" or "
		"\"sigmoid\"", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"topk_method\": 1", "/topk_method: expected \"greedy\", "
		"\"group_limited_greedy\" or \"noaux_tc\"", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"num_nextn_predict_layers\": -1", "/num_nextn_predict_layers: "
		"expected an integer from 0", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"attention_bias\": true", "/attention_bias: latent attention with "
		"biases is not built", AP_MEANING},
	{"\"vocab_size\"", "\"sliding_window\": \"4k\", \"vocab_size\"", "/sliding_window: expected an integer from 1",
		AP_MEANING},
	{"64", "NaN", "config.json:3:16: expected a value, got 'N'; NaN and Infinity are not allowed", AP_SYNTAX},
	{"64", "64, \"hidden_size\": 128", ":3:20: /hidden_size: duplicate key \"hidden_size\"; it is already on line 3",
		AP_MEANING},
	{"64", "true", ":3:16: /hidden_size: expected an integer from 1", AP_MEANING},
	{"64", "268435457", ":3:16: /hidden_size: expected an integer from 1 to 268435456, got 268435457", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"num_key_value_heads\": 8", "/num_key_value_heads: "
		"8 heads of keys do not divide the 4 heads of queries", AP_MEANING},
	{"\"num_attention_heads\": 4", "\"num_attention_heads\": 4, \"n_head\": \"4\"", "/n_head: expected an integer from 1",
		AP_MEANING},
	{"\"vocab_size\"", "\"hidden_act\": \"silu\", \"activation\": 3, \"vocab_size\"", "/activation: expected the name of "
		"an activation", AP_MEANING},
	{"\"vocab_size\"", "\"rms_norm_eps\": -1e-6, \"vocab_size\"", "/rms_norm_eps: expected a number from 0", AP_MEANING},
	{"\"vocab_size\"", "\"rope_theta\": \"1e6\", \"vocab_size\"", "/rope_theta: expected a number from 0", AP_MEANING},
	{"\"vocab_size\"", "\"rope_scaling\": 8, \"vocab_size\"", "/rope_scaling: expected an object", AP_MEANING},
	{"\"vocab_size\"", "\"use_cache\": 1, \"vocab_size\"", "/use_cache: expected true or false", AP_MEANING},
	{"\"vocab_size\"", "\"attention_dropout\": [0.1], \"vocab_size\"", "/attention_dropout: expected a number from 0",
		AP_MEANING},
	{"\"vocab_size\"", "\"transformers_version\": 4.5, \"vocab_size\"", "/transformers_version: expected a text",
		AP_MEANING},
	{"\"llama\"", "\"mpt\", \"attn_config\": {\"alibi\": true, \"attn_type\": \"shared\"}", "/attn_config/attn_type: "
		"expected \"multihead_attention\", \"multiquery_attention\" or", AP_MEANING},
	{"\"llama\"", "\"mpt\", \"norm_type\": \"rmsnorm\", \"attn_config\": {\"alibi\": true}", "/norm_type: expected "
		"\"low_precision_layernorm\" or \"layernorm\"", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"num_key_value_heads\": 0", "/num_key_value_heads: expected an "
		"integer from 1", AP_MEANING},
	{"\"llama\"", LATENT "\"qk_rope_head_dim\": 4, \"num_key_value_heads\": 2", "warning: config.json:2:213: "
		"/num_key_value_heads: is not read: each of the 4 heads of queries", AP_OK},
};

static const char *damaged(const struct damage *d)
{
	const char *at = strstr(GOOD, d->from);

	ck_assert_ptr_nonnull(at);
	return ap_arena_printf(arena, "%.*s%s%s", (int)(at - GOOD), GOOD, d->to, at + strlen(d->from));
}

START_LOOP_TEST(damaged_configurations, AP_COUNT(damages))
{
	const struct ap_hf_options o = {.batch = 1, .dtype = AP_DTYPE_COUNT, .name = "net"};
	const struct damage *d = &damages[_i];
	struct ap_decoder out;

	ck_assert_int_eq(read_text(damaged(d), &o, &out), d->status);
	ck_assert_msg(strstr(messages(), d->message) != NULL, "%s\nin\n%s", d->message, messages());
}
END_TEST

START_TEST(good_configuration)
{
	const struct ap_hf_options o = {.dtype = AP_DTYPE_COUNT, .name = "net"};
	struct ap_decoder out;

	ck_assert_int_eq(read_text(GOOD, &o, &out), AP_OK);
	ck_assert_int_eq(out.sequence, 4096);
	ck_assert_int_eq(out.batch, AP_HF_BATCH);
	ck_assert_ptr_nonnull(strstr(messages(), "note: config.json:8:28: /max_position_embeddings: --sequence is not "
		"given: a sample has the 4096 tokens"));
	ck_assert_ptr_nonnull(strstr(messages(), "--batch is not given: a step has 256 samples"));
}
END_TEST

/* What is built, but not quite as the file says. */
START_TEST(warnings)
{
	static const struct damage odd[] = {
		{"\"llama\"", "\"yi\"", "warning: config.json:2:15: /model_type: unknown model type \"yi\", built as llama", AP_OK},
		{"\"vocab_size\"", "\"sliding_window\": 64, \"vocab_size\"", "small operators of layers that attend to 64 "
			"tokens work through all 4096 of a sample and mask the others", AP_OK},
	};
	const struct ap_hf_options o = {.batch = 1, .dtype = AP_DTYPE_COUNT, .name = "net"};
	struct ap_decoder out;

	for (size_t i = 0; i < AP_COUNT(odd); i++) {
		const char *text = damaged(&odd[i]);

		if (!i)
			text = ap_arena_printf(arena, "%.*s, \"rms_norm_eps\": 1e-5}", (int)strlen(text) - 2, text);
		ck_assert_int_eq(read_text(text, &o, &out), AP_OK);
		ck_assert_msg(strstr(messages(), odd[i].message) != NULL, "%s", messages());
	}
}
END_TEST

/* Which layers see how many tokens, by type. */
static const struct {
	const char *more;
	int64_t window[6];
} windows[] = {
	{"\"model_type\": \"mistral\"", {16, 16, 16, 16, 16, 16}},
	{"\"model_type\": \"qwen2\"", {0}},
	{"\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"max_window_layers\": 4", {0, 0, 0, 0, 16, 16}},
	{"\"model_type\": \"gemma2\", \"head_dim\": 16", {16, 0, 16, 0, 16, 0}},
	{"\"model_type\": \"gemma3_text\", \"head_dim\": 16", {16, 16, 16, 16, 16, 0}},
	{"\"model_type\": \"gemma3_text\", \"head_dim\": 16, \"sliding_window_pattern\": 3", {16, 16, 0, 16, 16, 0}},
	{"\"model_type\": \"qwen3\", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
		"\"sliding_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
		"\"sliding_attention\"]", {0, 16, 0, 0, 0, 16}},
};

START_LOOP_TEST(layers_have_windows, AP_COUNT(windows))
{
	const struct ap_graph *g = load(build(ap_arena_printf(arena, "{%s, \"hidden_size\": 64, \"num_hidden_layers\": 6, "
		"\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 100, "
		"\"sliding_window\": 16, \"torch_dtype\": \"bfloat16\"}", windows[_i].more)));
	size_t layer = 0;

	ck_assert_str_eq(messages(), "");
	for (ap_id i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i].type, "FlashAttentionScore")) {
			const struct ap_attrs *a = &g->node[i].attrs;
			bool band = ap_attr_int(a, "sparse_mode", 0) == 4;

			ck_assert_int_eq(band ? ap_attr_int(a, "pre_tokens", 0) + 1 : 0, windows[_i].window[layer]);
			ck_assert_int_eq(ap_attr_int(a, "next_tokens", -1), band ? 0 : -1);
			layer++;
		}
	ck_assert_uint_eq(layer, 6);
}
END_TEST

/* The part for text of a model of text and images, whose keys have defaults. */
START_TEST(part_for_text)
{
	const struct ap_hf_options o = {.batch = 1, .sequence = 8, .dtype = AP_DTYPE_COUNT, .name = "net"};
	struct ap_decoder d;

	ck_assert_int_eq(read_text("{\"model_type\": \"gemma3\", \"torch_dtype\": \"float16\", \"text_config\": {"
		"\"model_type\": \"gemma3_text\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
		"\"intermediate_size\": 96}, \"vision_config\": {\"hidden_size\": 32}}", &o, &d), AP_OK);
	ck_assert_int_eq(d.vocabulary, 262208);
	ck_assert_int_eq(d.heads, 8);
	ck_assert_int_eq(d.kv_heads, 4);
	ck_assert_int_eq(d.head_size, 256);
	ck_assert_int_eq(d.dtype, AP_FLOAT16);
	ck_assert(d.tied);
	ck_assert_str_eq(d.names->blocks, "language_model.model.layers");
	ck_assert_ptr_nonnull(strstr(messages(), "/vision_config: the part for text is built; "
		"the part for images is left out"));
}
END_TEST

START_TEST(small_operators_have_sinks)
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .dtype = AP_FLOAT32, .name = "net"};
	const struct row *r = &rows[19];
	struct ap_decoder d;

	ck_assert_str_eq(r->type, "gpt_oss");
	ck_assert_int_eq(read_text(config(r), &o, &d), AP_OK);
	ck_assert_int_eq(load(ap_model_decoder(arena, &d))->parameters, parameters(r));
}
END_TEST

START_TEST(dtype_overrides_quantization)
{
	const struct ap_hf_options o = {.batch = 1, .sequence = 8, .dtype = AP_BFLOAT16, .name = "net"};
	const struct damage d = {"\"vocab_size\"", "\"quantization_config\": {}, \"vocab_size\"", NULL, AP_OK};
	struct ap_decoder out;

	ck_assert_int_eq(read_text(damaged(&d), &o, &out), AP_OK);
	ck_assert_int_eq(out.dtype, AP_BFLOAT16);
}
END_TEST
