/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of Megatron's arguments and of MindFormers' YAML: parameters by formula, and what is no network. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "model/decoder.h"
#include "model/launched.h"

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

static const char *messages(void)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, &s);
	return s.s;
}

typedef enum ap_status read_fn(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_launched_options *options, struct ap_hf_net *out);

static enum ap_status read_text(read_fn *read, const char *text, const struct ap_launched_options *o,
	struct ap_hf_net *net)
{
	struct ap_json *doc;
	char *copy = ap_arena_strdup(arena, text);

	ck_assert_int_eq(ap_json_parse(&ctx, "run", copy, strlen(copy), 0, &doc), AP_OK);
	return read(&ctx, doc, o, net);
}

static const struct ap_launched_options plain = {.batch = 4, .dtype = AP_DTYPE_COUNT, .name = "net"};

/* Graph of the text, checked by its loader; *d: what was read. */
static const struct ap_graph *load(read_fn *read, const char *text, struct ap_decoder *d)
{
	const struct ap_graph_params params = {.micro_batches = 2};
	const struct ap_graph *g;
	struct ap_hf_net net;
	struct ap_json *doc;
	struct ap_str s;

	if (read_text(read, text, &plain, &net) != AP_OK)
		ck_abort_msg("%s", messages());
	*d = *(const struct ap_decoder *)net.dimensions;
	ap_str_init(&s, arena);
	ap_model_write(net.make(arena, net.dimensions), ap_str_take, &s);
	ck_assert_int_eq(ap_json_parse(&ctx, "graph.json", s.s, s.len, 0, &doc), AP_OK);
	if (ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK)
		ck_abort_msg("%s", messages());
	return g;
}

#define SIZES "\"num_layers\": 3, \"hidden_size\": 96, \"num_attention_heads\": 6, \"seq_length\": 32"

enum { H = 96, L = 3, A = 6, D = 16, S = 32, F = 200, E = 4, FE = 56, FS = 40 };

/* GPT: its words are padded to a multiple of 128 x tensor parallelism, its feed-forward part is 4 h wide. */
START_TEST(megatron_defaults)
{
	const int64_t v = 1024, inner = 4 * H; /* 1000 words */
	const int64_t layer = 4 * H * H + 4 * H + 2 * H * inner + inner + H + 4 * H;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_megatron, "{" SIZES ", \"vocab_size\": 1000, "
		"\"tensor_model_parallel_size\": 2, \"max_position_embeddings\": 64}", &d);

	ck_assert_int_eq(g->parameters, v * H + 64 * H + L * layer + 2 * H);
	ck_assert_int_eq(d.dtype, AP_FLOAT32);
	ck_assert_int_eq(d.kv_heads, A); /* groups are not asked for */
	ck_assert(d.flash && d.tied && !d.rotary);
}
END_TEST

START_TEST(megatron_llama)
{
	const int64_t v = 500, k = 2;
	const int64_t layer = 2 * H * H + 2 * k * D * H + 3 * H * F + 2 * H;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_megatron, "{" SIZES ", \"padded_vocab_size\": 500, "
		"\"vocab_size\": 490, \"group_query_attention\": true, \"num_query_groups\": 2, "
		"\"ffn_hidden_size\": 200, \"swiglu\": true, \"normalization\": \"RMSNorm\", "
		"\"add_bias_linear\": false, \"untie_embeddings_and_output_weights\": true, "
		"\"position_embedding_type\": \"rope\", \"bf16\": [true, \"train.py\"], "
		"\"attention_backend\": \"unfused\"}", &d);

	ck_assert_int_eq(g->parameters, 2 * v * H + L * layer + H);
	ck_assert_int_eq(d.dtype, AP_BFLOAT16);
	ck_assert(!d.flash && d.rotary);
}
END_TEST

/* Without its width a gated part has two thirds of 4 h, in whole 64s; one layer of three is dense. */
START_TEST(megatron_experts)
{
	const int64_t v = 512, inner = 256, d_head = 24; /* 8/3 x 96 = 256 */
	const int64_t attention = 4 * A * d_head * H + 2 * d_head + 3 * A * d_head;
	const int64_t sparse = E * H + 3 * E * H * FE + 3 * H * FS, dense = 3 * H * inner;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_megatron, "{" SIZES ", \"vocab_size\": 400, "
		"\"swiglu\": true, \"disable_bias_linear\": true, \"add_qkv_bias\": true, "
		"\"qk_layernorm\": true, \"kv_channels\": 24, \"normalization\": \"RMSNorm\", "
		"\"use_rotary_position_embeddings\": true, \"num_experts\": 4, \"moe_ffn_hidden_size\": 56, "
		"\"moe_router_topk\": 2, \"moe_layer_freq\": [0, 1, 1], "
		"\"moe_shared_expert_intermediate_size\": 40, \"fp16\": true}", &d);

	ck_assert_int_eq(g->parameters, v * H + L * (attention + 2 * H) + 2 * sparse + dense + H);
	ck_assert_int_eq(d.experts.active, 2);
	ck_assert_int_eq(d.dtype, AP_FLOAT16);
}
END_TEST

#define MODEL(more) "{\"use_legacy\": true, \"model\": {\"arch\": {\"type\": \"LlamaForCausalLM\"}, " \
	"\"model_config\": {\"num_layers\": 3, \"hidden_size\": 96, \"num_heads\": 6, " \
	"\"vocab_size\": 500, \"seq_length\": 32" more

/* Two thirds of 4 h in whole 256s is 256; with a factor, 1.31 x 384 = 503, of it 335, in whole 64s 384. */
START_TEST(mindformers_llama)
{
	const int64_t v = 500, attention = 2 * H * H + 2 * 2 * D * H, bias = A * D + 2 * 2 * D;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_mindformers, MODEL("}}}"), &d);

	ck_assert_int_eq(g->parameters, 2 * v * H + L * (4 * H * H + 3 * H * 256 + 2 * H) + H);
	ck_assert_int_eq(d.dtype, AP_FLOAT16);
	ck_assert(!d.flash);
	g = load(ap_launched_mindformers, MODEL(", \"n_kv_heads\": 2, \"multiple_of\": 64, "
		"\"ffn_dim_multiplier\": 1.3, \"qkv_has_bias\": true, \"use_flash_attention\": true, "
		"\"compute_dtype\": \"bfloat16\", \"tie_word_embeddings\": true}}}"), &d);
	ck_assert_int_eq(g->parameters, v * H + L * (attention + bias + 3 * H * 384 + 2 * H) + H);
	ck_assert_int_eq(d.dtype, AP_BFLOAT16);
	ck_assert(d.flash);
}
END_TEST

/* The other route: names of Hugging Face, flash and bfloat16 where no key says otherwise. */
START_TEST(mindformers_qwen3)
{
	const int64_t v = 500, head = 24;
	const int64_t attention = 2 * A * head * H + 2 * 2 * head * H + 2 * head;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_mindformers, "{\"use_legacy\": false, \"model\": "
		"{\"model_config\": {\"model_type\": \"qwen3\", \"num_hidden_layers\": 3, \"hidden_size\": 96, "
		"\"num_attention_heads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 24, "
		"\"intermediate_size\": 200, \"vocab_size\": 500, \"seq_length\": 32}}}", &d);

	ck_assert_int_eq(g->parameters, 2 * v * H + L * (attention + 3 * H * F + 2 * H) + H);
	ck_assert_int_eq(d.dtype, AP_BFLOAT16);
	ck_assert(d.flash && d.fused_qkv);
}
END_TEST

START_TEST(mindformers_experts)
{
	const int64_t v = 500, attention = 4 * H * H, sparse = E * H + 3 * E * H * F;
	const int64_t fine = E * H + 3 * E * H * FE + 3 * H * 2 * FE;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_mindformers, MODEL(", \"intermediate_size\": 200}}, "
		"\"moe_config\": {\"expert_num\": 4, \"num_experts_chosen\": 2, "
		"\"capacity_factor\": 1.5}}"), &d);

	ck_assert_int_eq(g->parameters, 2 * v * H + L * (attention + sparse + 2 * H) + H);
	ck_assert(d.experts.active == 2 && d.experts.capacity == 1.5);
	g = load(ap_launched_mindformers, MODEL(", \"intermediate_size\": 200, \"n_routed_experts\": 4, "
		"\"num_experts_per_tok\": 3, \"moe_intermediate_size\": 56, \"n_shared_experts\": 2, "
		"\"first_k_dense_replace\": 1}}}"), &d);
	ck_assert_int_eq(g->parameters, 2 * v * H + L * (attention + 2 * H) + 2 * fine + 3 * H * F + H);
	g = load(ap_launched_mindformers, MODEL(", \"intermediate_size\": 200}}, "
		"\"moe_config\": {\"expert_num\": 1}}"), &d);
	ck_assert_int_eq(g->parameters, 2 * v * H + L * (attention + 3 * H * F + 2 * H) + H);
}
END_TEST

START_TEST(mindformers_gpt2)
{
	const int64_t v = 500, layer = 12 * H * H + 13 * H;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_mindformers, "{\"model\": {\"model_config\": "
		"{\"type\": \"GPT2Config\", \"num_layers\": 3, \"hidden_size\": 96, \"num_heads\": 6, "
		"\"vocab_size\": 500, \"seq_length\": 32}}}", &d);

	ck_assert_int_eq(g->parameters, v * H + S * H + L * layer + 2 * H);
}
END_TEST

enum { QR = 24, R = 16, NOPE = 12, ROPE = 4, VALUE = 10 };

/* Latent attention with a compressed query, or without, whatever hidden / heads is; the first layer is dense. */
START_TEST(latent_attention)
{
	const int64_t v = 500, key = (R + ROPE) * H + R + A * (NOPE + VALUE) * R + H * A * VALUE;
	const int64_t query = QR * H + QR + A * (NOPE + ROPE) * QR, whole = A * (NOPE + ROPE) * H;
	const int64_t sparse = E * H + E + 3 * E * H * FE + 3 * H * 2 * FE, dense = 3 * H * F;
	const int64_t fuser = 3 * H + 2 * H * H, behind = query + key + 2 * H;
	struct ap_decoder d;
	const struct ap_graph *g = load(ap_launched_mindformers, MODEL(", \"type\": \"DeepseekV3Config\", "
		"\"intermediate_size\": 200, \"q_lora_rank\": 24, \"kv_lora_rank\": 16, \"qk_nope_head_dim\": 12, "
		"\"qk_rope_head_dim\": 4, \"v_head_dim\": 10, \"n_kv_heads\": 6, \"mtp_depth\": 1}}, "
		"\"moe_config\": {\"expert_num\": 4, \"num_experts_chosen\": 2, \"moe_intermediate_size\": 56, "
		"\"shared_expert_num\": 2, \"first_k_dense_replace\": 1, \"use_gating_sigmoid\": true, "
		"\"balance_via_topk_bias\": true, \"n_group\": 2, \"topk_group\": 1}}"), &d);

	ck_assert_int_eq(g->parameters, 2 * v * H + L * (query + key + 2 * H) + 3 * sparse + dense + H + behind + fuser);
	ck_assert(d.experts.score == AP_EXPERTS_SIGMOID && d.experts.selection_bias);
	ck_assert(d.experts.groups == 2 && d.experts.groups_active == 1);
	ck_assert_int_eq(d.further, 1);
	g = load(ap_launched_mindformers, "{\"use_legacy\": false, \"model\": {\"model_config\": {\"model_type\": "
		"\"deepseek_v3\", \"num_hidden_layers\": 3, \"hidden_size\": 96, \"num_attention_heads\": 6, "
		"\"intermediate_size\": 200, \"vocab_size\": 500, \"seq_length\": 32, \"kv_lora_rank\": 16, "
		"\"qk_nope_head_dim\": 12, \"qk_rope_head_dim\": 4, \"v_head_dim\": 10}}}", &d);
	ck_assert_int_eq(g->parameters, 2 * v * H + L * (whole + key + 2 * H + dense) + H);
	g = load(ap_launched_megatron, "{" SIZES ", \"padded_vocab_size\": 500, \"ffn_hidden_size\": 200, \"swiglu\": true, "
		"\"normalization\": \"RMSNorm\", \"add_bias_linear\": false, \"position_embedding_type\": \"rope\", "
		"\"untie_embeddings_and_output_weights\": true, \"multi_latent_attention\": true, \"q_lora_rank\": 24, "
		"\"kv_lora_rank\": 16, \"qk_head_dim\": 12, \"qk_pos_emb_head_dim\": 4, \"v_head_dim\": 10, "
		"\"num_experts\": 4, \"moe_router_topk\": 2, \"moe_ffn_hidden_size\": 56, \"moe_layer_freq\": "
		"\"([0]*1+[1]*2)\", \"moe_shared_expert_intermediate_size\": 112, \"moe_router_score_function\": "
		"\"sigmoid\", \"moe_router_enable_expert_bias\": true, \"mtp_num_layers\": 1}", &d);
	ck_assert_int_eq(g->parameters, 2 * v * H + L * (query + key + 2 * H) + 3 * sparse + dense + H + behind + fuser);
	ck_assert(!d.sparse[0] && d.sparse[1] && d.sparse[2]);
}
END_TEST

/* Options of ours win over the file's words. */
START_TEST(options_win)
{
	struct ap_launched_options o = plain;
	const struct ap_decoder *d;
	struct ap_hf_net net;

	o.sequence = 48;
	o.dtype = AP_BFLOAT16;
	o.small = true;
	ck_assert_int_eq(read_text(ap_launched_megatron, "{" SIZES ", \"vocab_size\": 500, \"fp16\": true, "
		"\"position_embedding_type\": \"rope\", \"use_flash_attn\": true}", &o, &net), AP_OK);
	d = net.dimensions;
	ck_assert_int_eq(d->sequence, 48);
	ck_assert_int_eq(d->dtype, AP_BFLOAT16);
	ck_assert(!d->flash);
}
END_TEST

static const struct fault {
	read_fn *read;
	const char *text, *message;
} wrong[] = {
	{ap_launched_megatron, "{\"hidden_size\": 96}", "num_layers is not said"},
	{ap_launched_megatron, "{" SIZES "}", "neither padded_vocab_size nor vocab_size"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9}", "max_position_embeddings is not said"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 16}",
		"/seq_length: samples of 32 tokens are longer than the 16 positions"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": \"$V\", \"max_position_embeddings\": 64}",
		"/vocab_size: expected a number from 1 to 134217728; this variable is not assigned"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 64, "
		"\"group_query_attention\": true, \"num_query_groups\": 4}", "6 heads in 4 groups"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 64, "
		"\"mtp_num_layers\": -1}", "/mtp_num_layers: expected a number from 0"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 64, "
		"\"multi_latent_attention\": true}", "/multi_latent_attention: latent attention has rotary positions"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"multi_latent_attention\": true, \"qk_pos_emb_head_dim\": 3}", "/qk_pos_emb_head_dim: rotary positions"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 64, "
		"\"num_experts\": 4}", "experts with biases are not built"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"disable_bias_linear\": true, \"num_experts\": 4, \"moe_layer_freq\": \"([0]*1+[1]*3)\"}",
		"/moe_layer_freq: expected a number, or 0 or 1 for each of 3 layers"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"disable_bias_linear\": true, \"num_experts\": 4, \"moe_layer_freq\": \"[0]*+[1]*3\"}",
		"/moe_layer_freq: expected a number, or 0 or 1 for each of 3 layers"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"disable_bias_linear\": true, \"num_experts\": 4, \"moe_router_topk\": 5}",
		"5 experts of a token, of 4"},
	{ap_launched_megatron, "{\"num_layers\": 2, \"hidden_size\": 97, \"num_attention_heads\": 6, "
		"\"seq_length\": 32, \"vocab_size\": 9}", "6 heads do not divide hidden_size 97"},
	{ap_launched_megatron, "{\"num_layers\": 2, \"hidden_size\": 200000000, \"num_attention_heads\": 2, "
		"\"seq_length\": 32, \"vocab_size\": 9, \"max_position_embeddings\": 64}",
		"more than 10^17 elements"},
	{ap_launched_mindformers, MODEL("}}, \"moe_config\": {\"expert_num\": 268435456, "
		"\"moe_intermediate_size\": 268435456}}"), "more than 10^17 elements"},
	{ap_launched_mindformers, MODEL(", \"q_lora_rank\": 32}}}"), "no key \"kv_lora_rank\""},
	{ap_launched_mindformers, MODEL(", \"pet_config\": {\"pet_type\": \"lora\"}}}}"),
		"/pet_config: changes the network"},
	{ap_launched_mindformers, MODEL(", \"kv_lora_rank\": 8, \"qk_rope_head_dim\": 5}}}"),
		"/qk_rope_head_dim: rotary positions"},
	{ap_launched_mindformers, MODEL(", \"kv_lora_rank\": 8, \"n_group\": 3}}, \"moe_config\": {\"expert_num\": 4, "
		"\"n_group\": 3}}"), "/moe_config/n_group: 3 groups do not divide 4 experts"},
	{ap_launched_mindformers, MODEL("}}, \"moe_config\": {\"expert_num\": 4, \"num_experts_chosen\": 3, "
		"\"n_group\": 2, \"topk_group\": 1}}"), "/moe_config/topk_group: 3 experts of a token do not fit into 1 of 2"},
	{ap_launched_mindformers, MODEL(", \"num_hidden_layers\": 4}}}"),
		"/num_hidden_layers: contradicts \"num_layers\", which is 3"},
	{ap_launched_mindformers, MODEL(", \"type\": \"DeepseekV3Config\"}}}"),
		"no key \"kv_lora_rank\""},
	{ap_launched_mindformers, MODEL(", \"type\": \"ChatGLM2Config\"}}}"), "/type: no network of this type"},
	{ap_launched_mindformers, MODEL(", \"compute_dtype\": \"int8\"}}}"), "/compute_dtype: expected float16"},
	{ap_launched_mindformers, MODEL(", \"ffn_dim_multiplier\": -1}}}"), "expected a number above 0"},
	{ap_launched_mindformers, MODEL(", \"n_kv_heads\": 4}}}"), "6 heads in 4 groups"},
	{ap_launched_mindformers, "{\"model\": {\"model_config\": {\"hidden_size\": 96}}}",
		"/model/model_config: no key \"num_layers\" (or \"num_hidden_layers\"), or null"},
};

START_TEST(faults)
{
	for (size_t i = 0; i < AP_COUNT(wrong); i++) {
		struct ap_hf_net net;

		ctx.diag = ap_diag_create(arena, false);
		ck_assert_int_eq(read_text(wrong[i].read, wrong[i].text, &plain, &net), AP_MEANING);
		if (!strstr(messages(), wrong[i].message))
			ck_abort_msg("%zu: %s", i, messages());
	}
}
END_TEST
