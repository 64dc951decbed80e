/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mindformers.h"

#include <string.h>

#include "base/vec.h"

/* ---- its own layers ---- */

#define LLAMA .top = "LlamaForCausalLM", .body = "model-LlamaModel", \
	.embedding_cell = "tok_embeddings-LlamaEmbedding", \
	.embedding = "model.tok_embeddings.embedding_weight", .block_class = "LLamaDecodeLayer", \
	.blocks_cell = "layers", .blocks = "model.layers", .attention = "attention", \
	.attention_class = "LLamaAttention", .key = "wk", .value = "wv", .qkv = "w_qkv", \
	.output = "wo", .norm_class = "LlamaRMSNorm", .norm1 = "attention_norm", .norm2 = "ffn_norm", \
	.feed_forward = "feed_forward", .feed_forward_class = "LLamaFeedForward", .gate = "w1", .up = "w3", \
	.down = "w2", .experts_part = "feed_forward", .final_cell = "norm_out", \
	.final_norm = "model.norm_out", .head = "lm_head"

const struct ap_decoder_names ap_mindformers_llama = {LLAMA, .query = "wq"};
const struct ap_decoder_names ap_mindformers_deepseek = {LLAMA, .query = "q_proj",
	.query_down = "q2l_proj", .query_low_norm = "lq_norm", .query_up = "l2q_proj",
	.key_down = "kv2l", .key_low_norm = "lkv_norm", .key_up = "lkv2kv",
	.further = {.layers = "model.mtp_hidden_fusers", .words = "norm_emb", .state = "norm",
		.join = "dense", .norms = "model.mtp_norms"}};

#undef LLAMA

const struct ap_experts_names ap_mindformers_llama_experts = {.router = "router.dense",
	.selection_bias = "topk_bias", .experts = "ffn", .gate = "w1", .up = "w3", .down = "w2",
	.shared = "shared_experts", .shared_gate = "shared_experts_gate"};

const struct ap_experts_names ap_mindformers_deepseek_experts = {.router = "routed_experts.router.dense",
	.selection_bias = "routed_experts.topk_bias", .experts = "routed_experts.ffn", .gate = "w1",
	.up = "w3", .down = "w2", .shared = "shared_experts"};

#define GPT .block_class = "GPTTransformerDecoderLayer", .blocks_cell = "blocks", .attention = "attention", \
	.attention_class = "MultiHeadAttention", .query = "dense1", .key = "dense2", .value = "dense3", \
	.output = "projection", .norm_class = "LayerNorm", .norm1 = "layernorm1", .norm2 = "layernorm2", \
	.norm_weight = "gamma", .norm_bias = "beta", .feed_forward = "output", \
	.feed_forward_class = "FeedForward", .up = "mapping", .down = "projection", .head = "head"

const struct ap_decoder_names ap_mindformers_gpt2 = {GPT, .top = "GPT2LMHeadModel",
	.body = "backbone-GPT2Model", .embedding_cell = "embedding-GPTEmbeddingLayer",
	.embedding = "backbone.embedding.word_embedding.embedding_table",
	.positions = "backbone.embedding.position_embedding.embedding_table", .blocks = "backbone.blocks",
	.final_cell = "layernorm", .final_norm = "backbone.layernorm"};
static const struct ap_decoder_names bloom = {GPT, .top = "BloomLMHeadModel",
	.body = "transformer-BloomModel", .embedding_cell = "embedding-BloomEmbeddingLayer",
	.embedding = "transformer.embedding.word_embedding.embedding_table",
	.embedding_norm = "transformer.embedding.norm", .blocks = "transformer.blocks", .final_cell = "ln_f",
	.final_norm = "transformer.ln_f"};

#undef GPT

static const struct ap_decoder_names chatglm = {.top = "ChatGLM2ForConditionalGeneration",
	.body = "transformer-ChatGLM2Model", .embedding_cell = "embedding-EmbeddingLayer",
	.embedding = "transformer.embedding.embedding_weight", .block_class = "ChatGLM2Block",
	.blocks_cell = "layers", .blocks = "transformer.encoder.layers", .attention = "self_attention",
	.attention_class = "ChatGLM2SelfAttention", .query = "wq", .key = "wk", .value = "wv",
	.output = "dense", .norm_class = "ChatGLM2RMSNorm", .norm1 = "input_layernorm",
	.norm2 = "post_attention_layernorm",
	.feed_forward = "mlp", .feed_forward_class = "ChatGLM2MLP", .gate = "dense_left", .up = "dense_right",
	.down = "dense_4h_to_h", .final_cell = "final_layernorm",
	.final_norm = "transformer.encoder.final_layernorm", .head = "transformer.output_layer"};

/* ---- layers as Megatron's ---- */

#define MCORE .top = "GPTModel", .body = "decoder-TransformerBlock", \
	.embedding_cell = "word_embeddings-VocabParallelEmbedding", \
	.embedding = "embedding.word_embeddings.weight", .block_class = "TransformerLayer", \
	.blocks_cell = "layers", .blocks = "decoder.layers", .attention = "self_attention", \
	.attention_class = "SelfAttention", .qkv = "linear_qkv", .output = "linear_proj", \
	.query_norm = "q_layernorm", .key_norm = "k_layernorm", .norm_class = "Norm", \
	.norm1 = "input_layernorm", .norm2 = "pre_mlp_layernorm", .feed_forward = "mlp", \
	.feed_forward_class = "MLP", .gate = "linear_fc1", .down = "linear_fc2", .experts_part = "mlp", \
	.final_cell = "final_layernorm", .final_norm = "decoder.final_layernorm", .head = "output_layer"

static const struct ap_decoder_names qwen3 = {MCORE};
static const struct ap_experts_names qwen3_experts = {.router = "router", .experts = "experts",
	.gate = "weight1", .down = "weight2", .bare = true};

#undef MCORE

/* ---- models ---- */

enum form { /* what is one product */
	APART, /* none */
	JOINED, /* query, key and value; gate and up */
	TURNED /* none, and the weights of query, key and value alone are [out,in] */
};

static const struct spelling {
	const char *type;
	const struct ap_decoder_names *names;
	const struct ap_experts_names *experts;
	enum form form;
} spellings[] = {
	{"llama", &ap_mindformers_llama, NULL, APART},
	{"mistral", &ap_mindformers_llama, NULL, APART},
	{"mixtral", &ap_mindformers_llama, &ap_mindformers_llama_experts, APART},
	{"qwen2", &ap_mindformers_llama, NULL, APART},
	{"qwen3", &qwen3, NULL, JOINED},
	{"qwen3_moe", &qwen3, &qwen3_experts, JOINED},
	{"chatglm", &chatglm, NULL, APART},
	{"deepseek_v3", &ap_mindformers_deepseek, &ap_mindformers_deepseek_experts, APART},
	{"kimi_k2", &ap_mindformers_deepseek, &ap_mindformers_deepseek_experts, APART},
	{"gpt2", &ap_mindformers_gpt2, NULL, TURNED},
	{"bloom", &bloom, NULL, TURNED},
};

const char *ap_mindformers_type_at(size_t i)
{
	return i < AP_COUNT(spellings) ? spellings[i].type : NULL;
}

bool ap_mindformers_spell(const char *type, struct ap_decoder *d)
{
	for (size_t i = 0; i < AP_COUNT(spellings); i++) {
		const struct spelling *s = &spellings[i];

		if (strcmp(s->type, type) != 0)
			continue;
		d->names = s->names;
		if (d->experts.count)
			d->experts.names = s->experts;
		d->fused_qkv = d->fused_gate = s->form == JOINED;
		d->input_major = d->turned_qkv = s->form == TURNED;
		return true;
	}
	return false;
}
