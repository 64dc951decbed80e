/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hf.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/decoder.h"
#include "model/hf_encoder.h"
#include "model/hf_keys.h"
#include "model/mindformers.h"

/* ---- architectures ---- */

#define CLASSES(name) .top = name "ForCausalLM", .body = "model-" name "Model", \
	.block_class = name "DecoderLayer", .attention_class = name "Attention", \
	.feed_forward_class = name "MLP", .norm_class = name "Norm"
#define LLAMA_NAMES(name) CLASSES(name), .embedding_cell = "embed_tokens-Embedding", \
	.embedding = "model.embed_tokens.weight", .blocks_cell = "layers", .blocks = "model.layers", \
	.attention = "self_attn", .query = "q_proj", .key = "k_proj", .value = "v_proj", .output = "o_proj", \
	.norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .feed_forward = "mlp", \
	.gate = "gate_proj", .up = "up_proj", .down = "down_proj", .final_cell = "norm", \
	.final_norm = "model.norm", .head = "lm_head"

static const struct ap_decoder_names llama_names = {LLAMA_NAMES("Llama")},
	qwen3_names = {LLAMA_NAMES("Qwen3"), .query_norm = "q_norm", .key_norm = "k_norm"},
	mixtral_names = {LLAMA_NAMES("Mixtral"), .experts_part = "block_sparse_moe"},
	qwen3_moe_names = {LLAMA_NAMES("Qwen3Moe"), .query_norm = "q_norm", .key_norm = "k_norm",
		.experts_part = "mlp"},
	gpt_oss_names = {LLAMA_NAMES("GptOss"), .sinks = "sinks", .experts_part = "mlp"},
	qwen2_moe_names = {LLAMA_NAMES("Qwen2Moe"), .experts_part = "mlp"},
#define GLM_NAMES CLASSES("Glm"), .embedding_cell = "embed_tokens-Embedding", \
	.embedding = "model.embed_tokens.weight", .blocks_cell = "layers", .blocks = "model.layers", \
	.attention = "self_attn", .query = "q_proj", .key = "k_proj", .value = "v_proj", .output = "o_proj", \
	.norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .feed_forward = "mlp", \
	.gate = "gate_up_proj", .down = "down_proj", .final_cell = "norm", .final_norm = "model.norm", \
	.head = "lm_head"
	glm_names = {GLM_NAMES},
	glm4_names = {GLM_NAMES, .post1 = "post_self_attn_layernorm", .post2 = "post_mlp_layernorm"},
#undef GLM_NAMES
	deepseek_names = {LLAMA_NAMES("Deepseek"), .experts_part = "mlp", .query_down = "q_a_proj",
		.query_low_norm = "q_a_layernorm", .query_up = "q_b_proj", .key_down = "kv_a_proj_with_mqa",
		.key_low_norm = "kv_a_layernorm", .key_up = "kv_b_proj", .further = {.layers = "model.layers",
			.counted_on = true, .words = "enorm", .state = "hnorm", .join = "eh_proj",
			.norm = "shared_head.norm", .block = ""}},
	phi3_names = {CLASSES("Phi3"), .embedding_cell = "embed_tokens-Embedding",
		.embedding = "model.embed_tokens.weight", .blocks_cell = "layers", .blocks = "model.layers",
		.attention = "self_attn", .qkv = "qkv_proj", .output = "o_proj", .norm1 = "input_layernorm",
		.norm2 = "post_attention_layernorm", .feed_forward = "mlp", .gate = "gate_up_proj",
		.down = "down_proj", .final_cell = "norm", .final_norm = "model.norm", .head = "lm_head"},
	internlm2_names = {CLASSES("InternLM2"), .embedding_cell = "tok_embeddings-Embedding",
		.embedding = "model.tok_embeddings.weight", .blocks_cell = "layers", .blocks = "model.layers",
		.attention = "attention", .qkv = "wqkv", .output = "wo", .norm1 = "attention_norm",
		.norm2 = "ffn_norm", .feed_forward = "feed_forward", .gate = "w1", .up = "w3", .down = "w2",
		.final_cell = "norm", .final_norm = "model.norm", .head = "output"},
	baichuan_names = {CLASSES("Baichuan"), .embedding_cell = "embed_tokens-Embedding",
		.embedding = "model.embed_tokens.weight", .blocks_cell = "layers", .blocks = "model.layers",
		.attention = "self_attn", .qkv = "W_pack", .output = "o_proj", .norm1 = "input_layernorm",
		.norm2 = "post_attention_layernorm", .feed_forward = "mlp", .gate = "gate_proj",
		.up = "up_proj", .down = "down_proj", .final_cell = "norm", .final_norm = "model.norm",
		.head = "lm_head"},
	chatglm_names = {CLASSES("ChatGLM"), .embedding_cell = "word_embeddings-Embedding",
		.embedding = "transformer.embedding.word_embeddings.weight", .blocks_cell = "layers",
		.blocks = "transformer.encoder.layers", .attention = "self_attention",
		.qkv = "query_key_value",
		.output = "dense", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm",
		.feed_forward = "mlp", .gate = "dense_h_to_4h", .down = "dense_4h_to_h",
		.final_cell = "final_layernorm", .final_norm = "transformer.encoder.final_layernorm",
		.head = "transformer.output_layer"},
#define GEMMA_NAMES(prefix) CLASSES("Gemma"), .embedding_cell = "embed_tokens-Embedding", \
	.embedding = prefix "model.embed_tokens.weight", .blocks_cell = "layers", \
	.blocks = prefix "model.layers", \
	.attention = "self_attn", .query = "q_proj", .key = "k_proj", .value = "v_proj", .output = "o_proj", \
	.norm1 = "input_layernorm", .post1 = "post_attention_layernorm", \
	.norm2 = "pre_feedforward_layernorm", \
	.post2 = "post_feedforward_layernorm", .feed_forward = "mlp", .gate = "gate_proj", .up = "up_proj", \
	.down = "down_proj", .final_cell = "norm", .final_norm = prefix "model.norm", \
	.head = prefix "lm_head"
	gemma2_names = {GEMMA_NAMES("")},
	gemma3_names = {GEMMA_NAMES(""), .query_norm = "q_norm", .key_norm = "k_norm"},
	gemma3_part_names = {GEMMA_NAMES("language_model."), .query_norm = "q_norm", .key_norm = "k_norm"},
#undef GEMMA_NAMES
	gpt2_names = {CLASSES("GPT2"), .embedding_cell = "wte-Embedding", .embedding = "wte.weight",
		.positions = "wpe.weight", .blocks_cell = "h", .blocks = "h", .attention = "attn",
		.qkv = "c_attn",
		.output = "c_proj", .norm1 = "ln_1", .norm2 = "ln_2", .feed_forward = "mlp", .up = "c_fc",
		.down = "c_proj", .final_cell = "ln_f", .final_norm = "ln_f", .head = "lm_head"},
	gpt_neox_names = {CLASSES("GPTNeoX"), .embedding_cell = "embed_in-Embedding",
		.embedding = "gpt_neox.embed_in.weight", .blocks_cell = "layers", .blocks = "gpt_neox.layers",
		.attention = "attention", .qkv = "query_key_value", .output = "dense",
		.norm1 = "input_layernorm",
		.norm2 = "post_attention_layernorm", .feed_forward = "mlp", .up = "dense_h_to_4h",
		.down = "dense_4h_to_h", .final_cell = "final_layer_norm",
		.final_norm = "gpt_neox.final_layer_norm", .head = "embed_out"},
	opt_names = {CLASSES("OPT"), .embedding_cell = "embed_tokens-Embedding",
		.embedding = "model.decoder.embed_tokens.weight",
		.positions = "model.decoder.embed_positions.weight", .blocks_cell = "layers",
		.blocks = "model.decoder.layers", .attention = "self_attn", .query = "q_proj",
		.key = "k_proj",
		.value = "v_proj", .output = "out_proj", .norm1 = "self_attn_layer_norm",
		.norm2 = "final_layer_norm", .feed_forward = "", .up = "fc1", .down = "fc2",
		.final_cell = "final_layer_norm", .final_norm = "model.decoder.final_layer_norm",
		.head = "lm_head"},
	bloom_names = {CLASSES("Bloom"), .embedding_cell = "word_embeddings-Embedding",
		.embedding = "word_embeddings.weight", .embedding_norm = "word_embeddings_layernorm",
		.blocks_cell = "h", .blocks = "h", .attention = "self_attention", .qkv = "query_key_value",
		.output = "dense", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm",
		.feed_forward = "mlp", .up = "dense_h_to_4h", .down = "dense_4h_to_h", .final_cell = "ln_f",
		.final_norm = "ln_f", .head = "lm_head"},
#define FALCON CLASSES("Falcon"), .embedding_cell = "word_embeddings-Embedding", \
	.embedding = "transformer.word_embeddings.weight", .blocks_cell = "h", .blocks = "transformer.h", \
	.attention = "self_attention", .qkv = "query_key_value", .output = "dense", .feed_forward = "mlp", \
	.up = "dense_h_to_4h", .down = "dense_4h_to_h", .final_cell = "ln_f", \
	.final_norm = "transformer.ln_f", \
	.head = "lm_head"
	falcon_names = {FALCON, .norm1 = "input_layernorm"},
	falcon_new_names = {FALCON, .norm1 = "ln_attn", .norm2 = "ln_mlp"},
	falcon_serial_names = {FALCON, .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm"},
#undef FALCON
	mpt_names = {CLASSES("MPT"), .embedding_cell = "wte-Embedding", .embedding = "transformer.wte.weight",
		.blocks_cell = "blocks", .blocks = "transformer.blocks", .attention = "attn", .qkv = "Wqkv",
		.output = "out_proj", .norm1 = "norm_1", .norm2 = "norm_2", .feed_forward = "ffn",
		.up = "up_proj", .down = "down_proj", .final_cell = "norm_f",
		.final_norm = "transformer.norm_f",
		.head = "lm_head"},
	phi_names = {CLASSES("Phi"), .embedding_cell = "embed_tokens-Embedding",
		.embedding = "model.embed_tokens.weight", .blocks_cell = "layers", .blocks = "model.layers",
		.attention = "self_attn", .query = "q_proj", .key = "k_proj", .value = "v_proj",
		.output = "dense", .norm1 = "input_layernorm", .feed_forward = "mlp", .up = "fc1",
		.down = "fc2",
		.final_cell = "final_layernorm", .final_norm = "model.final_layernorm", .head = "lm_head"};

static void chatglm(struct ap_hf_keys *r, struct ap_decoder *d)
{
	bool shared = ap_hf_flag(r, "multi_query_attention", true);

	d->fused_qkv = d->fused_gate = true;
	d->qkv_bias = ap_hf_flag(r, "add_qkv_bias", false);
	d->kv_heads = shared ? d->kv_heads : d->heads;
	ap_hf_want(r, "add_bias_linear", false, "a block with biases");
	ap_hf_want(r, "rmsnorm", true, "a block with layer norms");
	ap_hf_want(r, "post_layer_norm", true, "an end without a norm");
	ap_hf_want(r, "apply_residual_connection_post_layernorm", false, "a sum of what norms give");
}

/* What GPT and most of its kind have: layer norms, biases everywhere, GeLU. */
static void all_biases(struct ap_decoder *d)
{
	d->norm = AP_NORM_LAYER;
	d->qkv_bias = d->output_bias = d->inner_bias = true;
}

static void gpt2(struct ap_hf_keys *r, struct ap_decoder *d)
{
	all_biases(d);
	d->rotary = false;
	d->fused_qkv = d->input_major = true;
	d->positions = ap_hf_count(r, ap_hf_position_keys, AP_HF_MOST, 1024);
}

static void gpt_neox(struct ap_hf_keys *r, struct ap_decoder *d)
{
	all_biases(d);
	d->fused_qkv = true;
	d->qkv_bias = d->output_bias = ap_hf_flag(r, "attention_bias", true);
	d->parallel = ap_hf_flag(r, "use_parallel_residual", true);
}

/* Its table of positions has two more rows. */
static void opt(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static ap_hf_keys_of width = {"word_embed_proj_dim"};

	all_biases(d);
	d->rotary = false;
	d->positions = ap_hf_count(r, ap_hf_position_keys, AP_HF_MOST, 2048) + 2;
	ap_hf_want(r, "do_layer_norm_before", true, "a norm behind each part");
	ap_hf_want(r, "_remove_final_layer_norm", false, "an end without a norm");
	ap_hf_want(r, "enable_bias", true, "a block without biases");
	if (ap_hf_count(r, width, AP_HF_MOST, d->hidden) != d->hidden)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, width), "model-known",
			"words of other than %" PRId64 " units, as hidden_size has it, are not built",
			d->hidden);
}

static void bloom(struct ap_hf_keys *r, struct ap_decoder *d)
{
	(void)r;
	all_biases(d);
	d->rotary = false;
	d->fused_qkv = true;
}

static void falcon(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static ap_hf_keys_of norms = {"num_ln_in_parallel_attn"};
	bool new = ap_hf_flag(r, "new_decoder_architecture", false);
	bool parallel = ap_hf_flag(r, "parallel_attn", true) || new;
	bool shared = ap_hf_flag(r, "multi_query", true);

	all_biases(d);
	d->qkv_bias = d->output_bias = d->inner_bias = ap_hf_flag(r, "bias", false);
	d->fused_qkv = true;
	d->parallel = parallel;
	d->rotary = !ap_hf_flag(r, "alibi", false);
	d->kv_heads = new ? d->kv_heads : shared ? 1 : d->heads;
	d->names = !parallel ? &falcon_serial_names
		: new && ap_hf_count(r, norms, 2, 2) == 2 ? &falcon_new_names : &falcon_names;
}

static void mpt(struct ap_hf_keys *r, struct ap_decoder *d)
{
	const struct ap_jv *attention = ap_hf_member(r, "attn_config");
	struct ap_hf_keys inner = {.ctx = r->ctx, .doc = r->doc, .root = attention, .type = r->type};
	const char *sharing;

	all_biases(d);
	d->norm = AP_NORM_LAYER_PLAIN;
	d->qkv_bias = d->output_bias = d->inner_bias = false;
	d->fused_qkv = true;
	d->rotary = false;
	ap_hf_want(r, "no_bias", true, "a network with biases");
	(void)ap_hf_flag(r, "learned_pos_emb", true); /* the distance's bias replaces them */
	if (!attention || ap_jv_type(attention) != AP_JOBJECT) {
		(void)AP_HF_FAULT(r, attention ? attention : r->root, "key-type",
			"expected an object \"attn_config\"");
		return;
	}
	if (!ap_hf_flag(&inner, "alibi", false))
		(void)AP_HF_FAULT(r, attention, "model-known", "positions other than alibi are not built");
	ap_hf_want(&inner, "qk_ln", false, "a norm of queries and keys");
	(void)ap_hf_word(r, "norm_type", (const char *const[]){"low_precision_layernorm", "layernorm",
		NULL}, 0);
	sharing = ap_hf_word(&inner, "attn_type", (const char *const[]){"multihead_attention",
		"multiquery_attention", "grouped_query_attention", NULL}, 0);
	d->kv_heads = ap_hf_count(&inner, (ap_hf_keys_of){"kv_n_heads"}, AP_HF_MOST,
		!strcmp(sharing, "multiquery_attention") ? 1 : d->heads);
	if (d->heads % d->kv_heads)
		(void)AP_HF_FAULT(r, attention, "key-range", "kv_n_heads must divide n_heads");
}

static void phi(struct ap_hf_keys *r, struct ap_decoder *d)
{
	all_biases(d);
	d->parallel = true;
	d->head_bias = true;
	ap_hf_want(r, "qk_layernorm", false, "a norm of queries and keys");
}

static void llama(struct ap_hf_keys *r, struct ap_decoder *d)
{
	d->qkv_bias = d->output_bias = ap_hf_flag(r, "attention_bias", false);
	d->inner_bias = ap_hf_flag(r, "mlp_bias", false);
}

static void qwen2(struct ap_hf_keys *r, struct ap_decoder *d)
{
	(void)r;
	d->qkv_bias = true;
}

static void qwen3(struct ap_hf_keys *r, struct ap_decoder *d)
{
	d->qkv_bias = d->output_bias = ap_hf_flag(r, "attention_bias", false);
}

static void phi3(struct ap_hf_keys *r, struct ap_decoder *d)
{
	(void)r;
	d->fused_qkv = d->fused_gate = true;
}

static void internlm2(struct ap_hf_keys *r, struct ap_decoder *d)
{
	d->fused_qkv = true;
	d->qkv_bias = d->output_bias = ap_hf_flag(r, "bias", true);
}

/* The larger one has a bias by distance in place of rotary positions, which only its size tells. */
static void baichuan(struct ap_hf_keys *r, struct ap_decoder *d)
{
	enum { OF_13B = 5120 };

	(void)r;
	d->fused_qkv = true;
	d->rotary = d->hidden != OF_13B;
}

static void experts(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static const struct ap_experts_names names = {.router = "gate", .experts = "experts", .gate = "w1",
		.up = "w3", .down = "w2"};

	d->experts = (struct ap_experts){.names = &names, .count = ap_hf_count(r, ap_hf_expert_keys,
		AP_HF_MOST, 0),
		.active = ap_hf_count(r, ap_hf_active_keys, AP_HF_MOST, 0), .inner = d->inner,
			.rescale = true,
		.activation = d->activation};
	if (d->experts.active > d->experts.count)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, ap_hf_active_keys), "key-range",
			"%" PRId64 " experts of a token, of %" PRId64 " that there are", d->experts.active,
			d->experts.count);
}

/* The router and each product have biases; gate and up are one tensor of all experts. */
static void gpt_oss(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static const struct ap_experts_names names = {.router = "router", .experts = "experts",
		.gate = "gate_up_proj", .down = "down_proj", .bare = true};

	d->qkv_bias = d->output_bias = ap_hf_flag(r, "attention_bias", true);
	experts(r, d);
	d->experts.names = &names;
	d->experts.rescale = true;
	d->experts.bias = true;
}

static void glm(struct ap_hf_keys *r, struct ap_decoder *d)
{
	d->fused_gate = true;
	d->qkv_bias = ap_hf_flag(r, "attention_bias", !strcmp(r->type, "glm"));
}

/* Block i has experts unless it is listed or no multiple of a step. */
static void qwen3_moe(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static const struct ap_experts_names names = {.router = "gate", .experts = "experts",
		.gate = "gate_proj", .up = "up_proj", .down = "down_proj"};
	const struct ap_jv *listed = ap_hf_member(r, "mlp_only_layers");
	int64_t step = ap_hf_count(r, (ap_hf_keys_of){"decoder_sparse_step"}, AP_HF_LAYERS_MOST, 1), layer;
	bool *sparse = AP_NEW_N(r->ctx->arena, bool, (size_t)d->layers);

	qwen3(r, d);
	experts(r, d);
	d->experts.names = &names;
	d->experts.rescale = ap_hf_flag(r, "norm_topk_prob", false);
	d->experts.inner = ap_hf_count(r, (ap_hf_keys_of){"moe_intermediate_size"}, AP_HF_MOST, 0);
	for (int64_t i = 0; i < d->layers; i++)
		sparse[i] = (i + 1) % step == 0;
	if (listed && ap_jv_type(listed) != AP_JARRAY) {
		(void)AP_HF_FAULT(r, listed, "key-type", "expected a list of layers");
		listed = NULL;
	}
	for (const struct ap_jv *v = listed ? ap_jv_first(listed) : NULL; v; v = ap_jv_next(v))
		if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &layer) || layer < 0 ||
			layer >= d->layers)
			(void)AP_HF_FAULT(r, v, "key-range", "expected a layer from 0 to %" PRId64,
				d->layers - 1);
		else
			sparse[layer] = false;
	d->sparse = sparse;
}

static void qwen2_moe(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static const struct ap_experts_names names = {.router = "gate", .experts = "experts",
		.gate = "gate_proj", .up = "up_proj", .down = "down_proj", .shared = "shared_expert",
		.shared_gate = "shared_expert_gate"};

	qwen3_moe(r, d);
	d->qkv_bias = ap_hf_flag(r, "qkv_bias", true);
	d->output_bias = false;
	d->experts.names = &names;
	d->experts.shared_inner = ap_hf_count(r, (ap_hf_keys_of){"shared_expert_intermediate_size"},
		AP_HF_MOST, 0);
	d->experts.shared_gate = true;
}

/* Layers behind the network that predict tokens behind the next, of which transformers builds none. */
static void further_tokens(struct ap_hf_keys *r, int64_t wanted)
{
	const struct ap_jv *v = ap_hf_member(r, "num_nextn_predict_layers");
	int64_t n = 0;

	if (v && (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &n) || n < 0))
		(void)AP_HF_FAULT(r, v, "key-type", "expected an integer from 0");
	else if (wanted > n)
		(void)ap_json_report(r->ctx, r->doc, v ? v : r->root, AP_ERROR, AP_USAGE, NULL, NULL,
			"--mtp %" PRId64 ": of layers that predict tokens behind the next there are %" PRId64
			" (num_nextn_predict_layers)", wanted, n);
	else if (n && !wanted)
		(void)ap_json_report(r->ctx, r->doc, v, AP_NOTE, AP_OK, NULL, NULL,
			"the main model is built: layers that predict tokens behind the next are left out, "
			"which --mtp adds");
}

/* The first blocks have no experts, and of the others each n-th has. */
static const bool *sparse_behind(struct ap_hf_keys *r, const struct ap_decoder *d)
{
	const struct ap_jv *first = ap_hf_member(r, "first_k_dense_replace");
	int64_t step = ap_hf_count(r, (ap_hf_keys_of){"moe_layer_freq"}, AP_HF_LAYERS_MOST, 1), dense = 0;
	bool *sparse = AP_NEW_N(r->ctx->arena, bool, (size_t)d->layers);

	if (first && (ap_jv_type(first) != AP_JNUMBER || !ap_jv_int(r->doc, first, &dense) || dense < 0 ||
		dense > d->layers))
		(void)AP_HF_FAULT(r, first, "key-range", "expected an integer from 0 to %" PRId64, d->layers);
	for (int64_t i = 0; i < d->layers; i++)
		sparse[i] = i >= dense && i % step == 0;
	return sparse;
}

/* Where a token may find its experts, and what is added to the scores. */
static void read_choice(struct ap_hf_keys *r, struct ap_experts *e)
{
	const char *method = ap_hf_word(r, "topk_method", (const char *const[]){"greedy",
		"group_limited_greedy", "noaux_tc", NULL}, e->score == AP_EXPERTS_SIGMOID ? 2 : 0);
	int64_t groups = ap_hf_count(r, (ap_hf_keys_of){"n_group"}, AP_HF_MOST, 1);
	int64_t active = ap_hf_count(r, (ap_hf_keys_of){"topk_group"}, AP_HF_MOST, groups);

	e->selection_bias = !strcmp(method, "noaux_tc");
	if (active > groups)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "topk_group"), "key-range", "%" PRId64
			" groups of a token, of %" PRId64 " that there are", active, groups);
	else if (e->count % groups)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "n_group"), "key-range", "%" PRId64
			" groups do not divide the %" PRId64 " experts", groups, e->count);
	else if (e->active > e->count / groups * active)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "topk_group"), "key-range", "%" PRId64
			" experts of a token do not fit into its groups, which have %" PRId64, e->active,
			e->count / groups * active);
	else if (strcmp(method, "greedy") != 0)
		e->groups = groups, e->groups_active = active;
}

static void deepseek(struct ap_hf_keys *r, struct ap_decoder *d)
{
	static const struct ap_experts_names names = {.router = "gate",
		.selection_bias = "gate.e_score_correction_bias", .experts = "experts", .gate = "gate_proj",
		.up = "up_proj", .down = "down_proj", .shared = "shared_experts"};
	static const char *const idle[] = {"head_dim", "qk_head_dim", "ep_size"};
	int64_t plain = ap_hf_count(r, (ap_hf_keys_of){"qk_nope_head_dim"}, AP_HF_MOST, 0);

	d->latent = (struct ap_decoder_latent){
		.query = ap_hf_member(r, "q_lora_rank") ? ap_hf_count(r, (ap_hf_keys_of){"q_lora_rank"},
			AP_HF_MOST, 0) : 0,
		.key = ap_hf_count(r, (ap_hf_keys_of){"kv_lora_rank"}, AP_HF_MOST, 0),
		.turned = ap_hf_count(r, (ap_hf_keys_of){"qk_rope_head_dim"}, AP_HF_MOST, 0)};
	d->value_size = ap_hf_count(r, (ap_hf_keys_of){"v_head_dim"}, AP_HF_MOST, 0);
	d->head_size = plain + d->latent.turned;
	if (d->latent.turned % 2)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "qk_rope_head_dim"), "key-range",
			"rotary positions turn pairs of units, of which there are %" PRId64,
			d->latent.turned);
	ap_hf_want(r, "attention_bias", false, "latent attention with biases");
	for (size_t i = 0; i < AP_COUNT(idle); i++)
		(void)ap_hf_count(r, (ap_hf_keys_of){idle[i]}, AP_HF_MOST, 1);
	if (ap_hf_count(r, ap_hf_kv_head_keys, AP_HF_MOST, d->heads) != d->heads)
		(void)ap_json_report(r->ctx, r->doc, ap_hf_one_of(r, ap_hf_kv_head_keys), AP_WARNING,
			AP_OK, NULL, "key-conflict", "is not read: each of the %" PRId64 " heads of queries "
			"has keys of its own, made of what is kept for all", d->heads);
	experts(r, d);
	d->experts.names = &names;
	d->experts.inner = ap_hf_count(r, (ap_hf_keys_of){"moe_intermediate_size"}, AP_HF_MOST, 0);
	d->experts.shared_inner = !ap_hf_member(r, "n_shared_experts") ? 0 : d->experts.inner *
		ap_hf_count(r, (ap_hf_keys_of){"n_shared_experts"}, 1 << 16, 0);
	d->experts.score = !strcmp(ap_hf_word(r, "scoring_func", (const char *const[]){"softmax", "sigmoid",
		NULL}, !strcmp(r->type, "deepseek_v2") ? 0 : 1), "sigmoid") ? AP_EXPERTS_SIGMOID
		: AP_EXPERTS_SOFTMAX;
	d->experts.rescale = ap_hf_flag(r, "norm_topk_prob", d->experts.score == AP_EXPERTS_SIGMOID);
	read_choice(r, &d->experts);
	d->sparse = sparse_behind(r, d);
}

static const struct architecture {
	const char *type; /* model_type */
	const char *class; /* as architectures[] begins where model_type is absent */
	const struct ap_decoder_names *names;
	int64_t kv_heads; /* where the key is absent; 0: as many as heads */
	int64_t head_size; /* where the key is absent; 0: hidden / heads */
	int64_t positions; /* where the key is absent */
	bool tied; /* where the key is absent */
	bool has_kv_heads, has_head_size; /* is the key read at all? */
	bool plain; /* no gate: GeLU or ReLU; as wide as four times hidden where no key says it */
	void (*read)(struct ap_hf_keys *r, struct ap_decoder *d); /* what it has of its own; may be NULL */
} architectures[] = {
	{"llama", "Llama", &llama_names, 0, 0, 2048, false, true, true, false, llama},
	{"mistral", "Mistral", &llama_names, 8, 0, 131072, false, true, true, false, NULL},
	{"mixtral", "Mixtral", &mixtral_names, 8, 0, 131072, false, true, true, false, experts},
	{"qwen2", "Qwen2For", &llama_names, 32, 0, 32768, false, true, true, false, qwen2},
	{"qwen3", "Qwen3For", &qwen3_names, 32, 128, 32768, false, true, true, false, qwen3},
	{"qwen3_moe", "Qwen3Moe", &qwen3_moe_names, 4, 0, 32768, false, true, true, false, qwen3_moe},
	{"phi3", "Phi3", &phi3_names, 0, 0, 4096, false, true, false, false, phi3},
	{"internlm2", "InternLM2", &internlm2_names, 0, 0, 2048, false, true, false, false, internlm2},
	{"baichuan", "Baichuan", &baichuan_names, 0, 0, 4096, false, false, false, false, baichuan},
	{"chatglm", "ChatGLM", &chatglm_names, 0, 0, 2048, false, true, true, false, chatglm},
	{"gemma2", "Gemma2", &gemma2_names, 4, 256, 8192, true, true, true, false, llama},
	{"gemma3_text", "Gemma3ForCausal", &gemma3_names, 4, 256, 131072, true, true, true, false, llama},
	{"gemma3", "Gemma3ForCond", &gemma3_part_names, 4, 256, 131072, true, true, true, false, llama},
	{"gpt_oss", "GptOss", &gpt_oss_names, 8, 64, 131072, false, true, true, false, gpt_oss},
	{"qwen2_moe", "Qwen2Moe", &qwen2_moe_names, 16, 0, 32768, false, true, true, false, qwen2_moe},
	{"glm", "GlmFor", &glm_names, 2, 128, 131072, false, true, true, false, glm},
	{"glm4", "Glm4For", &glm4_names, 2, 128, 131072, false, true, true, false, glm},
	{"deepseek_v2", "DeepseekV2", &deepseek_names, 0, 192, 2048, false, false, false, false, deepseek},
	{"deepseek_v3", "DeepseekV3", &deepseek_names, 0, 192, 4096, false, false, false, false, deepseek},
	{"kimi_k2", "KimiK2", &deepseek_names, 0, 192, 4096, false, false, false, false, deepseek},
	{"gpt2", "GPT2", &gpt2_names, 0, 0, 1024, true, false, false, true, gpt2},
	{"gpt_neox", "GPTNeoX", &gpt_neox_names, 0, 0, 2048, false, false, false, true, gpt_neox},
	{"opt", "OPT", &opt_names, 0, 0, 2048, true, false, false, true, opt},
	{"bloom", "Bloom", &bloom_names, 0, 0, 2048, true, false, false, true, bloom},
	{"falcon", "Falcon", &falcon_names, 0, 0, 2048, true, true, false, true, falcon},
	{"RefinedWeb", "RW", &falcon_names, 0, 0, 2048, true, true, false, true, falcon},
	{"RefinedWebModel", "RW", &falcon_names, 0, 0, 2048, true, true, false, true, falcon},
	{"mpt", "MPT", &mpt_names, 0, 0, 2048, true, false, false, true, mpt},
	{"phi", "PhiFor", &phi_names, 0, 0, 2048, false, true, false, true, phi},
};

const char *ap_hf_names_at(size_t i)
{
	static const char *const names[] = {"hf", "mindformers"};

	return i < AP_NAMES ? names[i] : NULL;
}

const char *ap_hf_type_at(size_t i)
{
	return i < AP_COUNT(architectures) ? architectures[i].type
		: ap_hf_encoder_type_at(i - AP_COUNT(architectures));
}

bool ap_hf_is_one(const struct ap_jv *root)
{
	static const char *const marks[] = {"model_type", "architectures", "hidden_size",
		"num_hidden_layers", "type_vocab_size", "transformers_version"};

	for (size_t i = 0; ap_jv_type(root) == AP_JOBJECT && i < AP_COUNT(marks); i++)
		if (ap_jv_get(root, marks[i]))
			return true;
	return false;
}

static const char *all_types(struct ap_arena *arena)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; ap_hf_type_at(i); i++)
		ap_str_addf(&s, "%s%s", i ? ", " : "", ap_hf_type_at(i));
	return s.s;
}

/* Other model types that are published: their blocks are not built. */
static bool is_other(const char *type)
{
	static const char *const others[] = {"gemma", "llama4", "qwen2_vl", "qwen3_vl", "roberta"};

	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (!strcmp(others[i], type))
			return true;
	return false;
}

/* The first text of a list. */
static const char *first_text(const struct ap_jv *v)
{
	v = v && ap_jv_type(v) == AP_JARRAY ? ap_jv_first(v) : NULL;
	return v && ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";
}

static bool has_keys_of_llama(struct ap_hf_keys *r)
{
	return ap_hf_member(r, "hidden_size") && ap_hf_member(r, "num_hidden_layers") &&
		ap_hf_member(r, "num_attention_heads") && ap_hf_member(r, "intermediate_size") &&
		ap_hf_member(r, "vocab_size") && (ap_hf_member(r, "rms_norm_eps") || ap_hf_member(r,
			"rope_theta"));
}

static enum ap_status find_architecture(struct ap_hf_keys *r, const struct architecture **out)
{
	const struct ap_jv *type = ap_hf_member(r, "model_type"), *classes = ap_hf_member(r, "architectures");
	const char *class = first_text(classes);

	*out = NULL;
	if (type && ap_jv_type(type) != AP_JSTRING)
		return AP_HF_FAULT(r, type, "key-type", "expected the name of an architecture");
	r->type = r->part ? r->part : type ? ap_jv_str(type) : class;
	for (size_t i = 0; i < AP_COUNT(architectures) && !*out; i++)
		if (type || r->part ? !strcmp(architectures[i].type, r->type)
			: *class && !strncmp(class, architectures[i].class, strlen(architectures[i].class)))
			*out = &architectures[i];
	if (*out)
		return AP_OK;
	if (!is_other(r->type) && has_keys_of_llama(r)) {
		*out = architectures;
		return ap_json_report(r->ctx, r->doc, type ? type : r->root, AP_WARNING, AP_OK, NULL,
			"model-known", "unknown model type \"%s\", built as llama, whose keys it has",
			ap_diag_name(r->ctx->diag, r->type));
	}
	return AP_HF_FAULT(r, type ? type : classes ? classes : r->root, "model-known",
		"%s \"%s\"; expected one of %s, or the keys of llama",
		is_other(r->type) ? "no graph is built of model type" : "unknown model type",
		ap_diag_name(r->ctx->diag, r->type), all_types(r->ctx->arena));
}

/* ---- the whole ---- */

/* Four times hidden, or as many times as a key says. */
static int64_t inner_of(struct ap_hf_keys *r, int64_t hidden)
{
	return hidden * ap_hf_count(r, (ap_hf_keys_of){"expansion_ratio"}, 64, 4);
}

/* [layers] Does the layer attend to a window of tokens, by a list of types? NULL: there is none. */
static const bool *listed_windows(struct ap_hf_keys *r, const struct ap_decoder *d)
{
	const struct ap_jv *types = ap_hf_member(r, "layer_types");
	bool *slides = AP_NEW_N(r->ctx->arena, bool, (size_t)d->layers);
	int64_t i = 0;

	if (!types)
		return NULL;
	if (ap_jv_type(types) != AP_JARRAY) {
		(void)AP_HF_FAULT(r, types, "key-type", "expected a list with the type of each layer");
		return NULL;
	}
	if (ap_jv_count(types) != (size_t)d->layers)
		(void)AP_HF_FAULT(r, types, "key-range", "%zu types for %" PRId64 " layers",
			ap_jv_count(types), d->layers);
	for (const struct ap_jv *v = ap_jv_first(types); v; v = ap_jv_next(v), i++) {
		const char *name = ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";

		if (strcmp(name, "full_attention") != 0 && strcmp(name, "sliding_attention") != 0) {
			(void)AP_HF_FAULT(r, v, "model-known",
				"no graph is built of layers of type \"%s\"; expected "
				"full_attention or sliding_attention", ap_diag_name(r->ctx->diag, name));
			return NULL;
		}
		if (i < d->layers)
			slides[i] = *name == 's';
	}
	return slides;
}

/* The same where no list says it: each of `step` but the last, from layer `first` on. */
static const bool *windows_by_type(struct ap_hf_keys *r, const struct ap_decoder *d)
{
	bool *slides = AP_NEW_N(r->ctx->arena, bool, (size_t)d->layers), qwen = !strncmp(r->type, "qwen", 4);
	int64_t first = qwen ? ap_hf_count(r, (ap_hf_keys_of){"max_window_layers"}, AP_HF_MOST, 28) : 0;
	int64_t step = ap_hf_count(r, (ap_hf_keys_of){"sliding_window_pattern"}, AP_HF_LAYERS_MOST,
		!strcmp(r->type, "gemma2") || !strcmp(r->type, "gpt_oss") ? 2
		: !strncmp(r->type, "gemma3", 6) ? 6 : 1);

	for (int64_t i = 0; i < d->layers; i++)
		slides[i] = i >= first && (step == 1 || (i + 1) % step != 0);
	return slides;
}

static void read_windows(struct ap_hf_keys *r, struct ap_decoder *d)
{
	const struct ap_jv *v = ap_hf_member(r, "sliding_window");
	bool used = ap_hf_flag(r, "use_sliding_window", strncmp(r->type, "qwen", 4) != 0);
	const bool *slides = listed_windows(r, d);
	int64_t window, *windows;

	if (!v)
		return;
	if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &window) || window < 1) {
		(void)AP_HF_FAULT(r, v, "key-type", "expected an integer from 1, or null");
		return;
	}
	if (!used || window >= d->sequence || ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	slides = slides ? slides : windows_by_type(r, d);
	windows = AP_NEW_N(r->ctx->arena, int64_t, (size_t)d->layers);
	for (int64_t i = 0; i < d->layers; i++)
		windows[i] = slides[i] ? window : 0;
	d->window = windows;
	if (!d->flash)
		(void)ap_json_report(r->ctx, r->doc, v, AP_NOTE, AP_OK, NULL, NULL,
			"small operators of layers that attend to %" PRId64
			" tokens work through all %" PRId64 " of a sample and mask the others", window,
			d->sequence);
}

static void read_heads(struct ap_hf_keys *r, const struct architecture *a, struct ap_decoder *d)
{
	const struct ap_jv *head_size = a->has_head_size ? ap_hf_one_of(r, ap_hf_head_size_keys) : NULL;

	d->heads = ap_hf_count(r, ap_hf_head_keys, AP_HF_MOST, r->part ? 8 : 0);
	d->kv_heads = a->has_kv_heads ? ap_hf_count(r, ap_hf_kv_head_keys, AP_HF_MOST,
		a->kv_heads && !ap_jv_get(r->root,
			ap_hf_kv_head_keys[0]) ? a->kv_heads : d->heads) : d->heads;
	if (ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	if (!head_size && !a->head_size && d->hidden % d->heads)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, ap_hf_head_keys), "key-range",
			"%" PRId64 " heads do not divide %s of %" PRId64
			"%s", d->heads, ap_jv_key(ap_hf_one_of(r, ap_hf_hidden_keys)), d->hidden,
			a->has_head_size ? ", and there is no head_dim" : "");
	d->head_size = head_size ? ap_hf_count(r, ap_hf_head_size_keys, AP_HF_MOST, 0)
		: a->head_size ? a->head_size : d->hidden / d->heads;
	if (d->heads % d->kv_heads)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, ap_hf_kv_head_keys), "key-range", "%" PRId64
			" heads of keys do not divide the %" PRId64 " heads of queries", d->kv_heads,
			d->heads);
}

static void check_rotation(struct ap_hf_keys *r, const struct architecture *a, const struct ap_decoder *d)
{
	const struct ap_jv *head_size = a->has_head_size ? ap_hf_one_of(r, ap_hf_head_size_keys) : NULL;

	if (!ap_diag_count(r->ctx->diag, AP_ERROR) && d->rotary && d->head_size % 2)
		(void)AP_HF_FAULT(r, head_size ? head_size : ap_hf_one_of(r, ap_hf_head_keys), "key-range",
			"makes heads of %" PRId64 " units; rotary positions turn pairs", d->head_size);
}

/* Elements of the largest tensor, about. */
static double largest(const struct ap_decoder *d)
{
	double copies = (double)(d->experts.active > 0 ? d->experts.active : 1);
	double rows = (double)d->batch * (double)d->sequence * copies;
	double width = (double)d->hidden + (double)d->inner + (double)d->vocabulary +
		(double)d->experts.inner +
		2 * ((double)d->heads + 2 * (double)d->kv_heads) * (double)d->head_size +
		(double)d->experts.count;

	return fmax(fmax(rows * width, rows * (double)d->heads * (double)d->sequence),
		width * width * (double)(d->experts.count + 1));
}

static struct ap_model *make_decoder(struct ap_arena *arena, const void *dimensions)
{
	return ap_model_decoder(arena, dimensions);
}

/* Reports that --names cannot be heeded. */
static enum ap_status no_spelling(struct ap_hf_keys *r)
{
	const struct ap_jv *type = ap_hf_member(r, "model_type");
	struct ap_str known;

	ap_str_init(&known, r->ctx->arena);
	for (size_t i = 0; ap_mindformers_type_at(i); i++)
		ap_str_addf(&known, "%s%s", i ? ", " : "", ap_mindformers_type_at(i));
	return ap_json_report(r->ctx, r->doc, type ? type : r->root, AP_ERROR, AP_USAGE, NULL, NULL,
		"--names mindformers: how MindFormers spells the parameters of \"%s\" is not known, but of "
		"%s",
		ap_diag_name(r->ctx->diag, r->type), known.s);
}

static enum ap_status read_decoder(struct ap_hf_keys *r, const struct architecture *a,
	const struct ap_hf_options *o, struct ap_hf_net *out)
{
	struct ap_decoder *d = AP_NEW(r->ctx->arena, struct ap_decoder);

	*d = (struct ap_decoder){.name = o->name, .names = a->names, .rotary = true, .norm = AP_NORM_RMS,
		.loss = o->loss, .flash = o->flash, .batch = o->batch};
	d->hidden = ap_hf_count(r, ap_hf_hidden_keys, AP_HF_MOST, 0);
	d->layers = ap_hf_count(r, ap_hf_layer_keys, AP_HF_LAYERS_MOST, 0);
	d->inner = ap_hf_count(r, ap_hf_inner_keys, INT64_C(4) * AP_HF_MOST,
		a->plain ? inner_of(r, d->hidden) : 0);
	d->vocabulary = ap_hf_count(r, ap_hf_vocabulary_keys, AP_HF_MOST, r->part ? 262208 : 0);
	read_heads(r, a, d);
	d->activation = ap_hf_activation(r, a->plain);
	d->tied = ap_hf_flag(r, "tie_word_embeddings", a->tied);
	if (a->read)
		a->read(r, d);
	if (a->names->further.layers || o->further)
		further_tokens(r, o->further);
	d->further = o->further;
	if (o->names == AP_NAMES_MINDFORMERS && !ap_mindformers_spell(a->type, d))
		AP_TRY(no_spelling(r));
	check_rotation(r, a, d);
	ap_hf_want(r, "is_encoder_decoder", false, "an encoder beside the decoder");
	AP_TRY(ap_hf_dtype(r, o, &d->dtype));
	AP_TRY(ap_hf_sequence(r, o, a->positions, d->positions, &d->sequence));
	read_windows(r, d);
	if (d->experts.count)
		d->experts.way = o->experts;
	d->experts.shared_beside = o->shared_beside;
	*out = (struct ap_hf_net){make_decoder, d, largest(d), d};
	return AP_OK;
}

/* Of a model of text and images, the part for text, whose keys are those of a model of its own. */
static enum ap_status enter_text(struct ap_hf_keys *r, struct ap_hf_options *o)
{
	const struct ap_jv *text = ap_hf_member(r, "text_config"), *type = ap_hf_member(r, "model_type");
	const struct ap_jv *vision = ap_hf_member(r, "vision_config");

	if (!text)
		return AP_OK;
	if (!type || ap_jv_type(type) != AP_JSTRING || strcmp(ap_jv_str(type), "gemma3") != 0)
		return AP_HF_FAULT(r, text, "model-known",
			"no graph is built of models of text and images other than gemma3");
	if (ap_jv_type(text) != AP_JOBJECT)
		return AP_HF_FAULT(r, text, "key-type", "expected an object");
	if (o->dtype == AP_DTYPE_COUNT && !ap_jv_get(text, "torch_dtype") && !ap_jv_get(text, "dtype"))
		AP_TRY(ap_hf_dtype(r, o, &o->dtype));
	r->root = text;
	r->part = "gemma3";
	return ap_json_report(r->ctx, r->doc, vision ? vision : text, AP_NOTE, AP_OK, NULL, NULL,
		"the part for text is built; the part for images is left out");
}

enum ap_status ap_hf_read(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_hf_options *o,
	struct ap_hf_net *out)
{
	struct ap_hf_keys r = {.ctx = ctx, .doc = doc, .root = ap_json_root(doc)};
	struct ap_hf_options settled = *o;
	const struct architecture *a;
	bool known;

	if (ap_jv_type(r.root) != AP_JOBJECT)
		return AP_HF_FAULT(&r, r.root, "key-type", "expected a JSON object");
	AP_TRY(enter_text(&r, &settled));
	settled.batch = o->batch ? o->batch : AP_HF_BATCH;
	AP_TRY(ap_hf_encoder_read(&r, &settled, &known, out));
	if (o->masked && (!known || strcmp(r.type, "bert") != 0))
		return ap_hf_no_masks(&r);
	if (known && o->further)
		further_tokens(&r, o->further);
	if (known && o->names == AP_NAMES_MINDFORMERS)
		return no_spelling(&r);
	if (!known) {
		AP_TRY(find_architecture(&r, &a));
		AP_TRY(read_decoder(&r, a, &settled, out));
	}
	ap_hf_check_rest(&r);
	AP_TRY(ap_diag_status(ctx->diag));
	if (out->largest > 1e17)
		return AP_HF_FAULT(&r, r.root, "key-range",
			"these dimensions make a tensor of more than 10^17 elements");
	return o->batch ? AP_OK : ap_json_report(ctx, doc, NULL, AP_NOTE, AP_OK, NULL, NULL,
		"--batch is not given: a step has %d samples", AP_HF_BATCH);
}
