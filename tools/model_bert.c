/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/models.h"

#include "tools/model_block.h"

#define TOP "Default/network-BertPretrainingLoss/"
#define NET TOP "bert-BertForPreTraining"
#define BACKBONE NET "/bert-BertModel"
#define MLM NET "/mlmloss-GetMaskedLMOutput"
#define NSP NET "/cls-GetNextSentenceOutput"

static ap_id look_up(const struct model_encoder *e, const char *cell, const char *param,
	int64_t entries, ap_id indices, const char *name)
{
	ap_id table = model_param(e->m, model_name(e->m, "bert.embeddings", param),
		MODEL_SHAPE(e->dtype, entries, e->hidden));

	return model_gather(e->m, model_scope(e->m, BACKBONE, cell), table, indices, name);
}

/* Sum of word, position and segment embeddings, normalised. */
static ap_id embed(const struct model_encoder *e, int64_t vocabulary)
{
	struct model *m = e->m;
	struct ap_shape ids = MODEL_SHAPE(AP_INT32, e->batch, e->sequence);
	ap_id words = model_input(m, "input_ids", ids), types = model_input(m, "token_type_id", ids);
	ap_id places = model_const(m, "position_ids", MODEL_SHAPE(AP_INT32, 1, e->sequence));
	const char *scope = BACKBONE "/bert_embedding_postprocessor-EmbeddingPostprocessor";
	ap_id x = look_up(e, "bert_embedding_lookup-Embedding", "word_embeddings.weight",
		vocabulary, words, "embedding.word");
	ap_id y = look_up(e, "token_type_embedding-Embedding", "token_type_embeddings.weight", 2,
		types, "embedding.type");

	x = model_binary(m, scope, "Add", x, y, "embedding.typed");
	y = look_up(e, "position_embedding-Embedding", "position_embeddings.weight",
		e->sequence, places, "embedding.position");
	x = model_binary(m, scope, "Add", x, y, "embedding.sum");
	x = model_layer_norm(m, model_scope(m, scope, "layernorm-LayerNorm"),
		"bert.embeddings.layernorm", x, "embedding");
	return model_encoder_dropout(e, scope, x, "embedding.dropped");
}

/* Turns 1 and 0 (word and padding) into what is added to the scores. */
static ap_id attention_mask(const struct model_encoder *e)
{
	struct model *m = e->m;
	const char *scope = BACKBONE "/_create_attention_mask_from_input_mask-"
		"CreateAttentionMaskFromInputMask";
	ap_id x = model_input(m, "input_mask", MODEL_SHAPE(AP_INT32, e->batch, e->sequence));

	x = model_cast(m, scope, x, e->dtype, "mask.real");
	x = model_reshape(m, scope, x, MODEL_SHAPE(e->dtype, e->batch, 1, 1, e->sequence),
		"mask.keys");
	x = model_binary(m, scope, "Sub", model_number(m, "mask_one", e->dtype), x, "mask.padding");
	return model_binary(m, scope, "Mul", x, model_number(m, "mask_weight", e->dtype), "mask");
}

/* Predicts every word; the weights of words that were not masked are 0. */
static ap_id word_loss(const struct model_encoder *e, ap_id x, int64_t vocabulary)
{
	struct model *m = e->m;
	struct ap_shape rows = MODEL_SHAPE(AP_INT32, e->batch * e->sequence);
	struct ap_shape ids = MODEL_SHAPE(AP_INT32, e->batch, e->sequence), real = ids;
	ap_id labels = model_input(m, "masked_lm_ids", ids), weights, bias, y;

	real.dtype = AP_FLOAT32;
	weights = model_input(m, "masked_lm_weights", real);
	y = model_reshape(m, MLM, x, model_encoder_rows(e), "rows");
	y = model_dense(m, MLM "/dense-Dense", "cls.predictions.dense", y, e->hidden, "dense");
	y = model_unary(m, MLM "/dense-Dense/activation-GELU", "GeLU", y, "dense.gelu");
	y = model_layer_norm(m, MLM "/layernorm-LayerNorm", "cls.predictions.layernorm", y, "norm");
	bias = model_param(m, "cls.predictions.bias", MODEL_SHAPE(e->dtype, vocabulary));
	y = model_matmul(m, MLM, y, model_find(m, "bert.embeddings.word_embeddings.weight"), true,
		"logits.product");
	y = model_binary(m, MLM, "BiasAdd", y, bias, "logits");
	labels = model_reshape(m, MLM, labels, rows, "labels");
	y = model_cross_entropy(m, MLM, y, labels);
	rows.dtype = AP_FLOAT32;
	weights = model_reshape(m, MLM, weights, rows, "weights");
	y = model_binary(m, MLM, "Mul", y, weights, "losses.weighted");
	return model_reduce(m, MLM, "ReduceMean", y, 1, false, "loss");
}

/* Predicts from the first word whether the second sentence follows the first. */
static ap_id sentence_loss(const struct model_encoder *e, ap_id x)
{
	struct model *m = e->m;
	ap_id labels = model_input(m, "next_sentence_labels", MODEL_SHAPE(AP_INT32, e->batch));
	ap_id y = model_first(m, BACKBONE, x, "first");

	y = model_dense(m, BACKBONE "/dense-Dense", "bert.pooler.dense", y, e->hidden, "pooled");
	y = model_unary(m, BACKBONE "/dense-Dense/activation-Tanh", "Tanh", y, "pooled.tanh");
	y = model_dense(m, NSP "/dense-Dense", "cls.seq_relationship.dense", y, 2, "logits");
	y = model_cross_entropy(m, NSP, y, labels);
	return model_reduce(m, NSP, "ReduceMean", y, 1, false, "loss");
}

struct model *model_bert(struct ap_arena *arena, const struct model_params *p)
{
	struct model *m = model_create(arena, p->name, "lamb");
	struct model_encoder e = model_encoder_of(m, p, p->sequence);
	ap_id x, words, sentences;

	e.fused = false;
	e.post_norm = true;
	x = embed(&e, p->vocabulary);
	model_attention_constants(m, &e.attention, false, e.sequence, e.dtype);
	if (!p->fused)
		e.attention.mask = attention_mask(&e);
	for (int64_t i = 0; i < p->layers; i++)
		x = model_encoder_block(&e, BACKBONE "/bert_encoder-BertTransformer/layers-CellList",
			"bert.encoder.layers", i, x);
	model_prefix(m, "words.");
	words = word_loss(&e, x, p->vocabulary);
	model_prefix(m, "sentences.");
	sentences = sentence_loss(&e, x);
	model_prefix(m, "");
	model_binary(m, NET, "Add", words, sentences, "loss");
	return m;
}
