/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of transformers. */
#ifndef AP_MODEL_BLOCK_H
#define AP_MODEL_BLOCK_H

#include "model/cells.h"
#include "model/families.h"

/* Attention of query, key and value; optional operands are AP_NONE. */
struct ap_model_attention {
	int64_t heads; /* of the queries */
	int64_t size; /* of a head */
	bool causal;
	double dropout; /* of the probabilities; the fused kernel gets none */
	ap_id scale; /* a scalar for small operators */
	ap_id mask; /* for small operators: added to the scores */
	int64_t window; /* for the fused kernel: a query sees so many keys, itself the last; 0: all */
	bool sunk; /* the softmax of each head has one more score, which is learned: sinks */
	ap_id sinks; /* [N] */
	ap_id shift; /* for the fused kernel: added to the scores, [1,N,S,S]; AP_NONE */
};

/* Makes the constants of a: scale and, if causal, the mask. Small operators add a mask of
 * [1,1,s,s]; the fused kernel scales by itself and takes a compressed causal mask of fixed size. */
void ap_model_attention_constants(struct ap_model *m, struct ap_model_attention *a, bool fused,
	int64_t sequence, enum ap_dtype dtype);

/* softmax(q k^T * scale + mask) v; operands and the result are [B,N,S,D]. */
ap_id ap_model_attend(struct ap_model *m, const char *scope, const struct ap_model_attention *a, ap_id q,
	ap_id k, ap_id v);

/* ap_model_attend() by FlashAttentionScore; [B,S,H], or [B,N,S,D] with fewer heads of k and v, and v in
 * heads of another size. */
ap_id ap_model_attend_fused(struct ap_model *m, const char *scope, const struct ap_model_attention *a,
	ap_id q, ap_id k, ap_id v);

/* [B,S,N,D] <-> [B,N,S,D] */
ap_id ap_model_swap_heads(struct ap_model *m, const char *scope, ap_id x, const char *name);

/* Prefixes of parameters, behind the block's. The cell of a product or norm is named after the last part. */
struct ap_model_attention_names {
	const char *cell;
	const char *query, *key, *value, *projection, *norm;
};

struct ap_model_encoder_names {
	const char *block; /* class of a block's cell */
	struct ap_model_attention_names attention;
	struct ap_model_attention_names cross; /* to what another stack gives; of its decoder's blocks */
	const char *feed_forward; /* cell */
	const char *gate, *mapping, *projection, *norm; /* gate: of a gated part */
};

/* Blocks of GPT, BERT, ViT and T5: attention with a product for each of query, key and value, and a
 * wider feed-forward part; both have a norm, before them or after the sum. */
struct ap_model_encoder {
	struct ap_model *m;
	const struct ap_model_encoder_names *names;
	const char *stack; /* before results' names; NULL: nothing */
	int64_t batch, sequence, hidden, inner;
	enum ap_dtype dtype;
	bool fused, post_norm;
	enum ap_model_activation activation; /* gated: GeLU or SiLU */
	bool plain; /* products without biases, RmsNorm */
	bool no_qkv_bias;
	bool torch; /* norms have weight and bias, not gamma and beta */
	double dropout;
	struct ap_model_attention attention;
	struct ap_model_attention cross;
	ap_id memory; /* what cross attention reads, rows of hidden; AP_NONE: there is no such part */
};

/* Block dimensions from a model's, including name, dropout and attention. */
struct ap_model_encoder ap_model_encoder_of(struct ap_model *m, const struct ap_model_params *p,
	int64_t sequence);

/* Shapes with a row per token, and with the batch as a separate dimension. */
struct ap_shape ap_model_encoder_rows(const struct ap_model_encoder *e);
struct ap_shape ap_model_encoder_tokens(const struct ap_model_encoder *e);

/* Returns x if there is no dropout. */
/* A norm over hidden units, with parameters "PARAM." in cell "SCOPE/CELL-LayerNorm", CELL being PARAM's
 * last part. */
ap_id ap_model_encoder_norm(const struct ap_model_encoder *e, const char *scope, const char *param, ap_id x,
	const char *name);

ap_id ap_model_encoder_dropout(const struct ap_model_encoder *e, const char *scope, ap_id x,
	const char *name);

/* Adds block `number` with scope "SCOPE/NUMBER-CLASS" and parameters "PARAM.NUMBER.". x and the result:
 * ap_model_encoder_tokens(). Resets the prefix of names. */
ap_id ap_model_encoder_block(const struct ap_model_encoder *e, const char *scope, const char *param,
	int64_t number, ap_id x);

#endif
