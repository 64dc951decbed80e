/* SPDX-License-Identifier: Apache-2.0 */
#include "model/bert.h"

#include <assert.h>

#include "base/arena.h"

struct bert {
	struct ap_model_encoder e;
	const struct ap_bert *p;
	const struct ap_bert_names *names;
	const char *net, *backbone, *mlm, *nsp; /* scopes */
	ap_id table; /* of words */
};

static ap_id look_up(const struct bert *l, const char *cell, const char *param, int64_t entries,
	ap_id indices,
	const char *name, ap_id *table)
{
	struct ap_model *m = l->e.m;
	ap_id t = ap_model_param(m, ap_model_name(m, l->names->embeddings, param),
		AP_MODEL_SHAPE(l->e.dtype, entries, l->e.hidden));

	if (table)
		*table = t;
	return ap_model_gather(m, ap_model_scope(m, l->backbone, cell), t, indices, name);
}

/* Sum of word, position and segment embeddings, normalised. */
static ap_id embed(struct bert *l)
{
	struct ap_model *m = l->e.m;
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, l->e.batch, l->e.sequence);
	ap_id words = ap_model_input(m, "input_ids", ids), types = ap_model_input(m, "token_type_id", ids);
	ap_id places = ap_model_const(m, "position_ids", AP_MODEL_SHAPE(AP_INT32, 1, l->e.sequence));
	const char *scope = ap_model_scope(m, l->backbone,
		"bert_embedding_postprocessor-EmbeddingPostprocessor");
	ap_id x = look_up(l, "bert_embedding_lookup-Embedding", l->names->words, l->p->vocabulary, words,
		"embedding.word", &l->table);
	ap_id y = look_up(l, "token_type_embedding-Embedding", l->names->types, l->p->types, types,
		"embedding.type", NULL);

	x = ap_model_binary(m, scope, "Add", x, y, "embedding.typed");
	y = look_up(l, "position_embedding-Embedding", l->names->positions, l->p->positions, places,
		"embedding.position", NULL);
	x = ap_model_binary(m, scope, "Add", x, y, "embedding.sum");
	x = ap_model_encoder_norm(&l->e, scope, l->names->embedding_norm, x, "embedding");
	return ap_model_encoder_dropout(&l->e, scope, x, "embedding.dropped");
}

/* Turns 1 and 0 (word and padding) into what is added to the scores. */
static ap_id attention_mask(const struct bert *l)
{
	struct ap_model *m = l->e.m;
	const char *scope = ap_model_scope(m, l->backbone, "_create_attention_mask_from_input_mask-"
		"CreateAttentionMaskFromInputMask");
	ap_id x = ap_model_input(m, "input_mask", AP_MODEL_SHAPE(AP_INT32, l->e.batch, l->e.sequence));

	x = ap_model_cast(m, scope, x, l->e.dtype, "mask.real");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(l->e.dtype, l->e.batch, 1, 1, l->e.sequence),
		"mask.keys");
	x = ap_model_binary(m, scope, "Sub", ap_model_number(m, "mask_one", l->e.dtype), x, "mask.padding");
	return ap_model_binary(m, scope, "Mul", x, ap_model_number(m, "mask_weight", l->e.dtype), "mask");
}

/* The words at the positions that are masked: [B,N,H]. */
static ap_id masked(const struct bert *l, ap_id x)
{
	const struct ap_model_encoder *e = &l->e;
	struct ap_shape at = AP_MODEL_SHAPE(AP_INT32, e->batch, l->p->masked);
	struct ap_model_op op = {.scope = l->mlm, .type = "Gather", .nin = 2,
		.in = {x, ap_model_input(e->m, "masked_lm_positions", at)}, .nattr = 2,
		.attr = {AP_MODEL_INT("axis", 1), AP_MODEL_INT("batch_dims", 1)}};

	return ap_model_op_one(e->m, op, "masked", AP_MODEL_SHAPE(e->dtype, e->batch, l->p->masked,
		e->hidden));
}

/* Predicts words; the weights of words that were not masked are 0. */
static ap_id word_loss(const struct bert *l, ap_id x)
{
	const struct ap_model_encoder *e = &l->e;
	struct ap_model *m = e->m;
	int64_t words = l->p->masked ? l->p->masked : e->sequence;
	struct ap_shape rows = AP_MODEL_SHAPE(AP_INT32, e->batch * words);
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, e->batch, words), real = ids;
	const char *dense = ap_model_scope(m, l->mlm, "dense-Dense");
	ap_id labels = ap_model_input(m, "masked_lm_ids", ids), weights, bias, y;

	real.dtype = AP_FLOAT32;
	weights = ap_model_input(m, "masked_lm_weights", real);
	if (l->p->masked)
		x = masked(l, x);
	y = ap_model_reshape(m, l->mlm, x, AP_MODEL_SHAPE(e->dtype, e->batch * words, e->hidden), "rows");
	y = ap_model_dense(m, dense, l->names->word_dense, y, e->hidden, "dense");
	y = ap_model_unary(m, ap_model_scope(m, dense, "activation-GELU"), "GeLU", y, "dense.gelu");
	y = ap_model_encoder_norm(e, l->mlm, l->names->word_norm, y, "norm");
	bias = ap_model_param(m, l->names->word_bias, AP_MODEL_SHAPE(e->dtype, l->p->vocabulary));
	y = ap_model_matmul(m, l->mlm, y, l->table, true, "logits.product");
	y = ap_model_binary(m, l->mlm, "BiasAdd", y, bias, "logits");
	labels = ap_model_reshape(m, l->mlm, labels, rows, "labels");
	y = ap_model_row_losses(m, l->mlm, l->p->loss, y, labels);
	rows.dtype = AP_FLOAT32;
	weights = ap_model_reshape(m, l->mlm, weights, rows, "weights");
	y = ap_model_binary(m, l->mlm, "Mul", y, weights, "losses.weighted");
	return ap_model_reduce(m, l->mlm, "ReduceMean", y, 1, false, "loss");
}

/* The first word's result, for the sentence. */
static ap_id pool(const struct bert *l, ap_id x)
{
	struct ap_model *m = l->e.m;
	const char *dense = ap_model_scope(m, l->backbone, "dense-Dense");
	ap_id y = ap_model_first(m, l->backbone, x, "first");

	y = ap_model_dense(m, dense, l->names->pooler, y, l->e.hidden, "pooled");
	return ap_model_unary(m, ap_model_scope(m, dense, "activation-Tanh"), "Tanh", y, "pooled.tanh");
}

/* Predicts whether the second sentence follows the first. */
static ap_id sentence_loss(const struct bert *l, ap_id pooled)
{
	struct ap_model *m = l->e.m;
	ap_id labels = ap_model_input(m, "next_sentence_labels", AP_MODEL_SHAPE(AP_INT32, l->e.batch));
	ap_id y = ap_model_dense(m, ap_model_scope(m, l->nsp, "dense-Dense"), l->names->sentence_dense,
		pooled, 2, "logits");

	return ap_model_mean_loss(m, l->nsp, l->p->loss, y, labels);
}

/* The mean of what the pooler gives. */
static ap_id mean(const struct bert *l, ap_id pooled)
{
	ap_id y = ap_model_cast(l->e.m, l->net, pooled, AP_FLOAT32, "pooled.float32");

	y = ap_model_reduce(l->e.m, l->net, "ReduceMean", y, 1, false, "means");
	return ap_model_reduce(l->e.m, l->net, "ReduceMean", y, 1, false, "loss");
}

struct ap_model *ap_model_bert_of(struct ap_arena *arena, const struct ap_bert *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "lamb");
	struct bert l = {.p = p, .names = p->names, .e = {.m = m, .names = &p->names->block,
		.batch = p->batch, .sequence = p->sequence, .hidden = p->hidden, .inner = p->inner,
		.dtype = p->dtype, .fused = p->flash, .post_norm = true, .activation = p->activation,
		.torch = p->torch, .dropout = p->dropout, .memory = AP_NONE,
		.attention = {.heads = p->heads, .size = p->hidden / p->heads, .dropout = p->dropout}}};
	ap_id x, words = AP_NONE, sentences = AP_NONE, pooled;

	assert(p->pooled || (p->words && !p->sentences));
	l.net = ap_model_scope(m, p->names->top, "bert-BertForPreTraining");
	l.backbone = ap_model_scope(m, l.net, "bert-BertModel");
	l.mlm = ap_model_scope(m, l.net, "mlmloss-GetMaskedLMOutput");
	l.nsp = ap_model_scope(m, l.net, "cls-GetNextSentenceOutput");
	if (p->fused)
		ap_model_fuse(m);
	x = embed(&l);
	ap_model_attention_constants(m, &l.e.attention, p->flash, p->sequence, p->dtype);
	if (!p->fused && !p->flash)
		l.e.attention.mask = attention_mask(&l);
	for (int64_t i = 0; i < p->layers; i++)
		x = ap_model_encoder_block(&l.e, ap_model_scope(m, l.backbone, p->names->blocks_cell),
			p->names->blocks, i, x);
	ap_model_prefix(m, p->sentences ? "words." : "");
	if (p->words)
		words = word_loss(&l, x);
	ap_model_prefix(m, p->sentences ? "sentences." : "");
	pooled = p->pooled ? pool(&l, x) : AP_NONE;
	if (p->sentences)
		sentences = sentence_loss(&l, pooled);
	ap_model_prefix(m, "");
	if (p->words && p->sentences)
		ap_model_binary(m, l.net, "Add", words, sentences, "loss");
	else if (!p->words && !p->sentences)
		mean(&l, pooled);
	return m;
}

struct ap_model *ap_model_bert(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model_encoder e = ap_model_encoder_of(NULL, p, p->sequence);
	struct ap_bert_names names = {.block = *e.names, .top = "Default/network-BertPretrainingLoss",
		.embeddings = "bert.embeddings", .words = "word_embeddings.weight",
		.types = "token_type_embeddings.weight", .positions = "position_embeddings.weight",
		.embedding_norm = "bert.embeddings.layernorm",
		.blocks_cell = "bert_encoder-BertTransformer/layers-CellList",
			.blocks = "bert.encoder.layers",
		.pooler = "bert.pooler.dense", .word_dense = "cls.predictions.dense",
		.word_norm = "cls.predictions.layernorm", .word_bias = "cls.predictions.bias",
		.sentence_dense = "cls.seq_relationship.dense"};
	struct ap_bert b = {.name = p->name, .names = &names, .batch = p->batch, .sequence = p->sequence,
		.layers = p->layers, .hidden = p->hidden, .heads = p->heads, .inner = e.inner,
		.vocabulary = p->vocabulary, .positions = p->sequence, .types = 2,
			.activation = p->activation, .masked = p->masked,
		.pooled = true, .words = true, .sentences = true, .fused = p->fused, .dropout = p->dropout,
		.dtype = p->dtype, .loss = p->loss};

	return ap_model_bert_of(arena, &b);
}
