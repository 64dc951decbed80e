/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include "model/block.h"

#define TOP "Default/network-GPTWithLoss/"
#define NET TOP "network-GPT/"
#define BACKBONE NET "backbone-GPTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

/* *table: word embedding, shared with the head. */
static ap_id embed(const struct ap_model_encoder *e, int64_t vocabulary, ap_id *table)
{
	struct ap_model *m = e->m;
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, e->batch, e->sequence);
	ap_id words = ap_model_input(m, "input_ids", ids);
	ap_id places = ap_model_input(m, "input_position", ids);
	const char *scope = BACKBONE "/embedding-EmbeddingLayer";
	ap_id positions, word, place, sum;

	*table = ap_model_param(m, "backbone.embedding.word_embedding.embedding_table",
		AP_MODEL_SHAPE(e->dtype, vocabulary, e->hidden));
	positions = ap_model_param(m, "backbone.embedding.position_embedding.embedding_table",
		AP_MODEL_SHAPE(e->dtype, e->sequence, e->hidden));
	word = ap_model_gather(m, ap_model_scope(m, scope, "word_embedding-VocabEmbedding"), *table,
		words, "embedding.word");
	place = ap_model_gather(m, ap_model_scope(m, scope, "position_embedding-VocabEmbedding"),
		positions, places, "embedding.position");
	sum = ap_model_binary(m, scope, "Add", word, place, "embedding");
	return ap_model_encoder_dropout(e, scope, sum, "embedding.dropped");
}

static void loss(const struct ap_model_encoder *e, enum ap_model_loss how, ap_id logits)
{
	struct ap_model *m = e->m;
	ap_id labels = ap_model_input(m, "labels", AP_MODEL_SHAPE(AP_INT32, e->batch, e->sequence));

	labels = ap_model_reshape(m, LOSS, labels, AP_MODEL_SHAPE(AP_INT32, e->batch * e->sequence),
		"labels.rows");
	(void)ap_model_mean_loss(m, LOSS, how, logits, labels);
}

struct ap_model *ap_model_gpt(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "adam_weight_decay");
	struct ap_model_encoder e = ap_model_encoder_of(m, p, p->sequence);
	ap_id table, x;

	e.attention.causal = true;
	ap_model_attention_constants(m, &e.attention, e.fused, e.sequence, e.dtype);
	x = embed(&e, p->vocabulary, &table);
	for (int64_t i = 0; i < p->layers; i++)
		x = ap_model_encoder_block(&e, BACKBONE "/blocks-CellList", "backbone.blocks", i, x);
	x = ap_model_layer_norm(m, BACKBONE "/layernorm-LayerNorm", "backbone.layernorm", x, "norm");
	x = ap_model_reshape(m, BACKBONE, x, ap_model_encoder_rows(&e), "norm.rows");
	x = ap_model_matmul(m, NET "head-GPTHead", x, table, true, "logits");
	loss(&e, p->loss, x);
	return m;
}
