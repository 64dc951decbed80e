/* SPDX-License-Identifier: Apache-2.0 */
/* Llama and Mixtral as MindFormers builds and names them. */
#include "model/decoder.h"
#include "model/families.h"

static const struct ap_decoder_names names = {
	.top = "LlamaForCausalLM",
	.body = "model-LlamaModel",
	.embedding_cell = "tok_embeddings-LlamaEmbedding",
	.embedding = "model.tok_embeddings.embedding_weight",
	.block_class = "LLamaDecodeLayer",
	.blocks_cell = "layers",
	.blocks = "model.layers",
	.attention = "attention",
	.attention_class = "LLamaAttention",
	.query = "wq",
	.key = "wk",
	.value = "wv",
	.output = "wo",
	.norm_class = "LlamaRMSNorm",
	.norm1 = "attention_norm",
	.norm2 = "ffn_norm",
	.feed_forward = "feed_forward",
	.feed_forward_class = "LlamaFeedForward",
	.gate = "w1",
	.up = "w3",
	.down = "w2",
	.experts_part = "feed_forward",
	.final_cell = "norm_out",
	.final_norm = "model.norm_out",
	.head = "lm_head",
};

static const struct ap_experts_names expert_names = {.router = "router.dense", .experts = "ffn", .gate = "w1",
	.up = "w3", .down = "w2"};

/* A decoder of these dimensions, without experts. */
static struct ap_decoder llama(const struct ap_model_params *p)
{
	return (struct ap_decoder){
		.name = p->name,
		.names = &names,
		.batch = p->batch,
		.sequence = p->sequence,
		.layers = p->layers,
		.hidden = p->hidden,
		.heads = p->heads,
		.kv_heads = p->kv_heads,
		.head_size = p->head_size ? p->head_size : p->hidden / p->heads,
		.inner = p->inner,
		.vocabulary = p->vocabulary,
		.rotary = true,
		.norm = AP_NORM_RMS_WIDE,
		.activation = p->activation,
		.loss = p->loss,
		.flash = p->flash,
		.fused = p->fused,
		.dtype = p->dtype,
	};
}

struct ap_model *ap_model_llama(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_decoder d = llama(p);

	return ap_model_decoder(arena, &d);
}

struct ap_model *ap_model_mixtral(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_decoder d = llama(p);

	d.experts = (struct ap_experts){
		.names = &expert_names,
		.way = p->fused ? AP_EXPERTS_MOVED : AP_EXPERTS_MASKED,
		.count = p->experts,
		.active = p->active,
		.inner = p->inner,
		.rescale = true,
		.capacity = p->capacity,
		.activation = AP_MODEL_SWIGLU,
	};
	return ap_model_decoder(arena, &d);
}
