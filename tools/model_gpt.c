/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/models.h"

#include "tools/model_block.h"

#define TOP "Default/network-GPTWithLoss/"
#define NET TOP "network-GPT/"
#define BACKBONE NET "backbone-GPTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

/* *table: word embedding, shared with the head. */
static ap_id embed(const struct model_encoder *e, int64_t vocabulary, ap_id *table)
{
	struct model *m = e->m;
	struct ap_shape ids = MODEL_SHAPE(AP_INT32, e->batch, e->sequence);
	ap_id words = model_input(m, "input_ids", ids);
	ap_id places = model_input(m, "input_position", ids);
	const char *scope = BACKBONE "/embedding-EmbeddingLayer";
	ap_id positions, word, place, sum;

	*table = model_param(m, "backbone.embedding.word_embedding.embedding_table",
		MODEL_SHAPE(e->dtype, vocabulary, e->hidden));
	positions = model_param(m, "backbone.embedding.position_embedding.embedding_table",
		MODEL_SHAPE(e->dtype, e->sequence, e->hidden));
	word = model_gather(m, model_scope(m, scope, "word_embedding-VocabEmbedding"), *table,
		words, "embedding.word");
	place = model_gather(m, model_scope(m, scope, "position_embedding-VocabEmbedding"),
		positions, places, "embedding.position");
	sum = model_binary(m, scope, "Add", word, place, "embedding");
	return model_encoder_dropout(e, scope, sum, "embedding.dropped");
}

static void loss(const struct model_encoder *e, ap_id logits)
{
	struct model *m = e->m;
	ap_id labels = model_input(m, "labels", MODEL_SHAPE(AP_INT32, e->batch, e->sequence));
	ap_id y;

	labels = model_reshape(m, LOSS, labels, MODEL_SHAPE(AP_INT32, e->batch * e->sequence),
		"labels.rows");
	y = model_cross_entropy(m, LOSS, logits, labels);
	model_reduce(m, LOSS, "ReduceMean", y, 1, false, "loss");
}

struct model *model_gpt(struct ap_arena *arena, const struct model_params *p)
{
	struct model *m = model_create(arena, p->name, "adam_weight_decay");
	struct model_encoder e = model_encoder_of(m, p, p->sequence);
	ap_id table, x;

	e.attention.causal = true;
	model_attention_constants(m, &e.attention, e.fused, e.sequence, e.dtype);
	x = embed(&e, p->vocabulary, &table);
	for (int64_t i = 0; i < p->layers; i++)
		x = model_encoder_block(&e, BACKBONE "/blocks-CellList", "backbone.blocks", i, x);
	x = model_layer_norm(m, BACKBONE "/layernorm-LayerNorm", "backbone.layernorm", x, "norm");
	x = model_reshape(m, BACKBONE, x, model_encoder_rows(&e), "norm.rows");
	x = model_matmul(m, NET "head-GPTHead", x, table, true, "logits");
	loss(&e, x);
	return m;
}
