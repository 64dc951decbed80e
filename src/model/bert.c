/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include "model/block.h"

#define TOP "Default/network-BertPretrainingLoss/"
#define NET TOP "bert-BertForPreTraining"
#define BACKBONE NET "/bert-BertModel"
#define MLM NET "/mlmloss-GetMaskedLMOutput"
#define NSP NET "/cls-GetNextSentenceOutput"

static ap_id look_up(const struct ap_model_encoder *e, const char *cell, const char *param,
	int64_t entries, ap_id indices, const char *name)
{
	ap_id table = ap_model_param(e->m, ap_model_name(e->m, "bert.embeddings", param),
		AP_MODEL_SHAPE(e->dtype, entries, e->hidden));

	return ap_model_gather(e->m, ap_model_scope(e->m, BACKBONE, cell), table, indices, name);
}

/* Sum of word, position and segment embeddings, normalised. */
static ap_id embed(const struct ap_model_encoder *e, int64_t vocabulary)
{
	struct ap_model *m = e->m;
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, e->batch, e->sequence);
	ap_id words = ap_model_input(m, "input_ids", ids), types = ap_model_input(m, "token_type_id", ids);
	ap_id places = ap_model_const(m, "position_ids", AP_MODEL_SHAPE(AP_INT32, 1, e->sequence));
	const char *scope = BACKBONE "/bert_embedding_postprocessor-EmbeddingPostprocessor";
	ap_id x = look_up(e, "bert_embedding_lookup-Embedding", "word_embeddings.weight",
		vocabulary, words, "embedding.word");
	ap_id y = look_up(e, "token_type_embedding-Embedding", "token_type_embeddings.weight", 2,
		types, "embedding.type");

	x = ap_model_binary(m, scope, "Add", x, y, "embedding.typed");
	y = look_up(e, "position_embedding-Embedding", "position_embeddings.weight",
		e->sequence, places, "embedding.position");
	x = ap_model_binary(m, scope, "Add", x, y, "embedding.sum");
	x = ap_model_layer_norm(m, ap_model_scope(m, scope, "layernorm-LayerNorm"),
		"bert.embeddings.layernorm", x, "embedding");
	return ap_model_encoder_dropout(e, scope, x, "embedding.dropped");
}

/* Turns 1 and 0 (word and padding) into what is added to the scores. */
static ap_id attention_mask(const struct ap_model_encoder *e)
{
	struct ap_model *m = e->m;
	const char *scope = BACKBONE "/_create_attention_mask_from_input_mask-"
		"CreateAttentionMaskFromInputMask";
	ap_id x = ap_model_input(m, "input_mask", AP_MODEL_SHAPE(AP_INT32, e->batch, e->sequence));

	x = ap_model_cast(m, scope, x, e->dtype, "mask.real");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(e->dtype, e->batch, 1, 1, e->sequence),
		"mask.keys");
	x = ap_model_binary(m, scope, "Sub", ap_model_number(m, "mask_one", e->dtype), x, "mask.padding");
	return ap_model_binary(m, scope, "Mul", x, ap_model_number(m, "mask_weight", e->dtype), "mask");
}

/* Predicts every word; the weights of words that were not masked are 0. */
static ap_id word_loss(const struct ap_model_encoder *e, ap_id x, int64_t vocabulary)
{
	struct ap_model *m = e->m;
	struct ap_shape rows = AP_MODEL_SHAPE(AP_INT32, e->batch * e->sequence);
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, e->batch, e->sequence), real = ids;
	ap_id labels = ap_model_input(m, "masked_lm_ids", ids), weights, bias, y;

	real.dtype = AP_FLOAT32;
	weights = ap_model_input(m, "masked_lm_weights", real);
	y = ap_model_reshape(m, MLM, x, ap_model_encoder_rows(e), "rows");
	y = ap_model_dense(m, MLM "/dense-Dense", "cls.predictions.dense", y, e->hidden, "dense");
	y = ap_model_unary(m, MLM "/dense-Dense/activation-GELU", "GeLU", y, "dense.gelu");
	y = ap_model_layer_norm(m, MLM "/layernorm-LayerNorm", "cls.predictions.layernorm", y, "norm");
	bias = ap_model_param(m, "cls.predictions.bias", AP_MODEL_SHAPE(e->dtype, vocabulary));
	y = ap_model_matmul(m, MLM, y, ap_model_find(m, "bert.embeddings.word_embeddings.weight"), true,
		"logits.product");
	y = ap_model_binary(m, MLM, "BiasAdd", y, bias, "logits");
	labels = ap_model_reshape(m, MLM, labels, rows, "labels");
	y = ap_model_cross_entropy(m, MLM, y, labels);
	rows.dtype = AP_FLOAT32;
	weights = ap_model_reshape(m, MLM, weights, rows, "weights");
	y = ap_model_binary(m, MLM, "Mul", y, weights, "losses.weighted");
	return ap_model_reduce(m, MLM, "ReduceMean", y, 1, false, "loss");
}

/* Predicts from the first word whether the second sentence follows the first. */
static ap_id sentence_loss(const struct ap_model_encoder *e, ap_id x)
{
	struct ap_model *m = e->m;
	ap_id labels = ap_model_input(m, "next_sentence_labels", AP_MODEL_SHAPE(AP_INT32, e->batch));
	ap_id y = ap_model_first(m, BACKBONE, x, "first");

	y = ap_model_dense(m, BACKBONE "/dense-Dense", "bert.pooler.dense", y, e->hidden, "pooled");
	y = ap_model_unary(m, BACKBONE "/dense-Dense/activation-Tanh", "Tanh", y, "pooled.tanh");
	y = ap_model_dense(m, NSP "/dense-Dense", "cls.seq_relationship.dense", y, 2, "logits");
	y = ap_model_cross_entropy(m, NSP, y, labels);
	return ap_model_reduce(m, NSP, "ReduceMean", y, 1, false, "loss");
}

struct ap_model *ap_model_bert(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "lamb");
	struct ap_model_encoder e = ap_model_encoder_of(m, p, p->sequence);
	ap_id x, words, sentences;

	e.fused = false;
	e.post_norm = true;
	x = embed(&e, p->vocabulary);
	ap_model_attention_constants(m, &e.attention, false, e.sequence, e.dtype);
	if (!p->fused)
		e.attention.mask = attention_mask(&e);
	for (int64_t i = 0; i < p->layers; i++)
		x = ap_model_encoder_block(&e, BACKBONE "/bert_encoder-BertTransformer/layers-CellList",
			"bert.encoder.layers", i, x);
	ap_model_prefix(m, "words.");
	words = word_loss(&e, x, p->vocabulary);
	ap_model_prefix(m, "sentences.");
	sentences = sentence_loss(&e, x);
	ap_model_prefix(m, "");
	ap_model_binary(m, NET, "Add", words, sentences, "loss");
	return m;
}
