/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders: networks of equal blocks of causal attention and a feed-forward part, or experts, that
 * predict the next token. What varies between Llama, GPT-2, Falcon and the like is a field here. */
#ifndef AP_MODEL_DECODER_H
#define AP_MODEL_DECODER_H

#include "model/activation.h"
#include "model/experts.h"
#include "model/loss.h"
#include "model/model.h"

enum ap_decoder_norm {
	AP_NORM_RMS,
	AP_NORM_RMS_WIDE, /* in float32 between casts, its weight in float32 */
	AP_NORM_LAYER,
	AP_NORM_LAYER_PLAIN /* without a bias to learn */
};

/* Parameters of layer j behind the blocks, which predicts a token behind the next. */
struct ap_decoder_further_names {
	const char *layers; /* "model.layers": prefix of layer j, whose number follows */
	bool counted_on; /* from the blocks' numbers; else from 0 */
	const char *words, *state; /* behind prefix and number: norms of both */
	const char *join; /* the product that makes one state of them */
	const char *norm; /* of what the layer gives: behind prefix and number */
	const char *norms; /* or a prefix of its own, with the number from 0; else NULL */
	const char *block; /* behind prefix and number; "": that itself; NULL: counted on as other blocks */
};

/* Names of cells and parameters. Classes are of cells in operators' names; parameters are as a
 * checkpoint spells them, NULL where there is none. */
struct ap_decoder_names {
	const char *top, *body; /* "LlamaForCausalLM", "model-LlamaModel" */
	const char *embedding_cell, *embedding; /* the parameter's whole name */
	const char *positions; /* of learned positions, whole */
	const char *embedding_norm; /* its prefix */
	const char *block_class, *blocks_cell, *blocks; /* "LlamaDecoderLayer", "layers", "model.layers" */
	const char *attention, *attention_class; /* "self_attn" */
	const char *query, *key, *value, *output; /* "q_proj", ... */
	const char *qkv; /* one product instead of three */
	const char *query_norm, *key_norm;
	const char *sinks; /* a number for each head in the softmax; NULL: none */
	const char *query_down, *query_low_norm, *query_up; /* of latent attention: "q_a_proj", ... */
	const char *key_down, *key_low_norm, *key_up; /* "kv_a_proj_with_mqa", ...; up: of keys and values */
	const char *norm_weight, *norm_bias; /* of norms; NULL: "weight", "bias" */
	const char *norm_class, *norm1, *norm2; /* norm2 is NULL if one norm serves both parts */
	const char *post1, *post2; /* norms of what the parts give, before it is added; NULL: none */
	const char *feed_forward, *feed_forward_class; /* "mlp"; "": its parameters are the block's */
	const char *gate, *up, *down; /* no gate: up alone; one product of both: gate alone */
	const char *experts_part; /* "block_sparse_moe" */
	const char *final_cell, *final_norm; /* prefix of the norm behind the blocks */
	const char *head; /* prefix; NULL: always tied */
	struct ap_decoder_further_names further; /* layers NULL: there are none */
};

/* Queries, keys and values from compressed rows. */
struct ap_decoder_latent {
	int64_t query; /* units of a compressed query; 0: queries come from the block's input */
	int64_t key; /* of compressed keys and values; 0: there are none */
	int64_t turned; /* the last units of a head, which alone positions turn; all keys share them */
};

struct ap_decoder {
	const char *name;
	const struct ap_decoder_names *names;
	int64_t batch, sequence; /* samples, tokens of one */
	int64_t layers, hidden, heads, kv_heads, head_size, inner, vocabulary;
	int64_t value_size; /* of a head of values; 0: head_size */
	struct ap_decoder_latent latent; /* kv_heads is heads then */
	int64_t positions; /* rows of the table of learned positions; 0: none */
	bool rotary; /* positions turn queries and keys; else none, or a bias that the mask holds (ALiBi) */
	enum ap_decoder_norm norm;
	enum ap_model_activation activation;
	bool parallel; /* both parts read the block's input */
	bool input_major; /* weights are [in,out], not [out,in] */
	bool turned_qkv; /* those of query, key and value the other way round */
	bool qkv_bias, output_bias, inner_bias, head_bias;
	bool fused_qkv, fused_gate; /* one product for query, key and value; for gate and up */
	/* Layers behind the blocks, each with one more block (with experts, if there are any), which predict
	 * the token behind that of the layer before, from its state and the next word (multi-token
	 * prediction) */
	int64_t further;
	bool tied; /* the head's weight is the embedding's */
	struct ap_experts experts; /* count 0: none */
	const bool *sparse; /* [layers] does the block have experts; NULL: all have */
	const int64_t *window; /* [layers] keys that a query sees, 0: all; NULL: all. Only flash leaves
		out others */
	enum ap_model_loss loss;
	bool flash; /* FlashAttentionScore replaces small operators */
	bool fused; /* kernels, see families.h */
	enum ap_dtype dtype;
};

/* Parameters: the sum over the tensors that names and flags say. Rows of query, key and value in one
 * product are ordered by groups of heads that share a key; of gate and up in one by units, whose two rows are
 * side by side. */
struct ap_model *ap_model_decoder(struct ap_arena *arena, const struct ap_decoder *d);

#endif
