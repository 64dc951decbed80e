/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of Megatron's arguments: parameters by formula, and what is no network. */
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
		"\"mtp_num_layers\": 1}", "/mtp_num_layers: changes the network"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"max_position_embeddings\": 64, "
		"\"num_experts\": 4}", "experts with biases are not built"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"disable_bias_linear\": true, \"num_experts\": 4, \"moe_layer_freq\": \"([0]*1+[1]*2)\"}",
		"/moe_layer_freq: expected a number, or 0 or 1 for each of 3 layers"},
	{ap_launched_megatron, "{" SIZES ", \"vocab_size\": 9, \"position_embedding_type\": \"rope\", "
		"\"disable_bias_linear\": true, \"num_experts\": 4, \"moe_router_topk\": 5}",
		"5 experts of a token, of 4"},
	{ap_launched_megatron, "{\"num_layers\": 2, \"hidden_size\": 97, \"num_attention_heads\": 6, "
		"\"seq_length\": 32, \"vocab_size\": 9}", "6 heads do not divide hidden_size 97"},
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
