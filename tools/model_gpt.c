/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/models.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

#define TOP "Default/network-GPTWithLoss/"
#define NET TOP "network-GPT/"
#define BACKBONE NET "backbone-GPTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

struct gpt {
	const struct model_gpt_params *p;
	struct model *m;
	struct ap_arena *arena;
	ap_id table; /* of the word embedding, and of the head */
	ap_id mask, scale; /* constants of the attention */
};

static const int64_t to_heads[] = {0, 2, 1, 3}; /* [B,S,N,D] <-> [B,N,S,D] */

static struct ap_shape rows(const struct gpt *g) /* a matrix with a row per token */
{
	const struct model_gpt_params *p = g->p;

	return MODEL_SHAPE(p->dtype, p->batch * p->sequence, p->hidden);
}

static struct ap_shape tokens(const struct gpt *g)
{
	const struct model_gpt_params *p = g->p;

	return MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->hidden);
}

static ap_id dropout(struct gpt *g, const char *scope, ap_id x, const char *name)
{
	if (g->p->dropout == 0)
		return x;
	return model_dropout(g->m, model_scope(g->m, scope, "dropout-Dropout"), x,
		1 - g->p->dropout, name);
}

static ap_id embed(struct gpt *g)
{
	const struct model_gpt_params *p = g->p;
	struct model *m = g->m;
	ap_id ids = model_input(m, "input_ids", MODEL_SHAPE(AP_INT32, p->batch, p->sequence));
	ap_id places = model_input(m, "input_position",
		MODEL_SHAPE(AP_INT32, p->batch, p->sequence));
	const char *scope = BACKBONE "/embedding-EmbeddingLayer";
	ap_id positions, word, place, sum;

	g->table = model_param(m, "backbone.embedding.word_embedding.embedding_table",
		MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));
	positions = model_param(m, "backbone.embedding.position_embedding.embedding_table",
		MODEL_SHAPE(p->dtype, p->sequence, p->hidden));
	word = model_gather(m, model_scope(m, scope, "word_embedding-VocabEmbedding"), g->table,
		ids, "embedding.word");
	place = model_gather(m, model_scope(m, scope, "position_embedding-VocabEmbedding"),
		positions, places, "embedding.position");
	sum = model_binary(m, scope, "Add", word, place, "embedding");
	return dropout(g, scope, sum, "embedding.dropped");
}

/* One of query, key and value, as [B,N,S,D] or, for the fused kernel, [B,S,H]. */
static ap_id project(struct gpt *g, const char *scope, const char *param, const char *cell, ap_id x,
	const char *name)
{
	const struct model_gpt_params *p = g->p;
	struct model *m = g->m;
	const char *dense = ap_arena_printf(g->arena, "%s/%s-Dense", scope, cell);
	ap_id y = model_dense(m, dense, model_name(m, param, cell), x, p->hidden, name);

	if (p->flash)
		return model_reshape(m, scope, y, tokens(g), model_name(m, name, "tokens"));
	y = model_reshape(m, scope, y, MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->heads,
		p->hidden / p->heads), model_name(m, name, "split"));
	return model_transpose(m, scope, y, to_heads, model_name(m, name, "heads"));
}

static ap_id small_attention(struct gpt *g, const char *scope, ap_id q, ap_id k, ap_id v)
{
	struct model *m = g->m;
	const char *drop = model_scope(m, scope, "prob_dropout-Dropout");
	ap_id y = model_matmul(m, scope, q, k, true, "scores");

	y = model_binary(m, scope, "Mul", y, g->scale, "scores.scaled");
	y = model_binary(m, scope, "Add", y, g->mask, "scores.masked");
	y = model_softmax(m, model_scope(m, scope, "softmax-Softmax"), y, "probs");
	if (g->p->dropout != 0)
		y = model_dropout(m, drop, y, 1 - g->p->dropout, "probs.dropped");
	y = model_matmul(m, scope, y, v, false, "context.heads");
	return model_transpose(m, scope, y, to_heads, "context.split");
}

/* Results: maxima and sums of the softmax, its unused matrix, the attention. */
static ap_id flash_attention(struct gpt *g, const char *scope, ap_id q, ap_id k, ap_id v)
{
	const struct model_gpt_params *p = g->p;
	struct ap_shape sums = MODEL_SHAPE(AP_FLOAT32, p->batch, p->heads, p->sequence, 8);
	struct model_op op = {
		.scope = model_scope(g->m, scope, "flash_attention-FlashAttention"),
		.type = "FlashAttentionScore",
		.nin = 7,
		.in = {q, k, v, AP_NONE, AP_NONE, AP_NONE, g->mask},
		.nout = 4,
		.out = {{"softmax.max", sums}, {"softmax.sum", sums},
			{"softmax.unused", MODEL_SHAPE(p->dtype, 1)}, {"context", tokens(g)}},
		.nattr = 4,
		.attr = {
			{.name = "head_num", .type = AP_ATTR_INT, .i = p->heads},
			{.name = "scale_value", .type = AP_ATTR_FLOAT,
				.f = 1 / sqrt((double)(p->hidden / p->heads))},
			{.name = "input_layout", .type = AP_ATTR_STRING, .s = "BSH"},
			{.name = "sparse_mode", .type = AP_ATTR_INT, .i = 2},
		},
	};

	return model_op(g->m, &op) + 3;
}

static ap_id attention(struct gpt *g, const char *block, const char *param, ap_id x)
{
	struct model *m = g->m;
	const char *scope = model_scope(m, block, "attention-MultiHeadAttention");
	const char *name = model_name(m, param, "attention");
	ap_id q = project(g, scope, name, "dense1", x, "query");
	ap_id k = project(g, scope, name, "dense2", x, "key");
	ap_id v = project(g, scope, name, "dense3", x, "value");
	ap_id y = g->p->flash ? flash_attention(g, scope, q, k, v) :
		small_attention(g, scope, q, k, v);

	y = model_reshape(m, scope, y, rows(g), "context.rows");
	y = model_dense(m, model_scope(m, scope, "projection-Dense"),
		model_name(m, name, "projection"), y, g->p->hidden, "attention");
	y = model_reshape(m, scope, y, tokens(g), "attention.tokens");
	return dropout(g, scope, y, "attention.dropped");
}

static ap_id feed_forward(struct gpt *g, const char *block, const char *param, ap_id x)
{
	struct model *m = g->m;
	const char *scope = model_scope(m, block, "output-FeedForward");
	const char *name = model_name(m, param, "output");
	ap_id y = model_dense(m, model_scope(m, scope, "mapping-Dense"),
		model_name(m, name, "mapping"), x, 4 * g->p->hidden, "wide");

	y = model_unary(m, model_scope(m, scope, "activation-GELU"), "GeLU", y, "wide.gelu");
	y = model_dense(m, model_scope(m, scope, "projection-Dense"),
		model_name(m, name, "projection"), y, g->p->hidden, "narrow");
	y = model_reshape(m, scope, y, tokens(g), "narrow.tokens");
	return dropout(g, scope, y, "narrow.dropped");
}

static ap_id block(struct gpt *g, int64_t number, ap_id x)
{
	struct model *m = g->m;
	const char *scope = ap_arena_printf(g->arena,
		BACKBONE "/blocks-CellList/%d-TransformerEncoderLayer", (int)number);
	const char *param = ap_arena_printf(g->arena, "backbone.blocks.%d", (int)number);
	ap_id y;

	model_prefix(m, ap_arena_printf(g->arena, "blocks.%d.", (int)number));
	y = model_layer_norm(m, model_scope(m, scope, "layernorm1-LayerNorm"),
		model_name(m, param, "layernorm1"), x, "norm1");
	y = model_reshape(m, scope, y, rows(g), "norm1.rows");
	y = attention(g, scope, param, y);
	x = model_binary(m, scope, "Add", x, y, "middle");
	y = model_layer_norm(m, model_scope(m, scope, "layernorm2-LayerNorm"),
		model_name(m, param, "layernorm2"), x, "norm2");
	y = model_reshape(m, scope, y, rows(g), "norm2.rows");
	y = feed_forward(g, scope, param, y);
	return model_binary(m, scope, "Add", x, y, "out");
}

/* OneHot(labels, on, off) of depth V. */
static ap_id one_hot(struct gpt *g, ap_id labels, ap_id on, ap_id off)
{
	const struct model_gpt_params *p = g->p;
	struct model_op op = {.scope = LOSS, .type = "OneHot", .nin = 3, .in = {labels, on, off},
		.nout = 1, .nattr = 2, .attr = {
			{.name = "depth", .type = AP_ATTR_INT, .i = p->vocabulary},
			{.name = "axis", .type = AP_ATTR_INT, .i = -1},
		}};

	op.out[0].name = "one_hot";
	op.out[0].shape = MODEL_SHAPE(AP_FLOAT32, p->batch * p->sequence, p->vocabulary);
	return model_op(g->m, &op);
}

/* Cross entropy by its formula, operator by operator, as MindSpore's tutorial of distributed
 * training writes it for automatic parallelism. */
static void cross_entropy(struct gpt *g, ap_id logits)
{
	const struct model_gpt_params *p = g->p;
	struct model *m = g->m;
	ap_id labels = model_input(m, "labels", MODEL_SHAPE(AP_INT32, p->batch, p->sequence));
	ap_id on = model_const(m, "on_value", model_scalar(AP_FLOAT32));
	ap_id off = model_const(m, "off_value", model_scalar(AP_FLOAT32));
	ap_id minus = model_const(m, "minus_one", model_scalar(AP_FLOAT32));
	ap_id max, exp, sum, y;

	logits = model_cast(m, LOSS, logits, AP_FLOAT32, "logits.float32");
	max = model_reduce(m, LOSS, "ReduceMax", logits, 1, true, "logits.max");
	y = model_binary(m, LOSS, "Sub", logits, max, "logits.shifted");
	exp = model_unary(m, LOSS, "Exp", y, "exp");
	sum = model_reduce(m, LOSS, "ReduceSum", exp, 1, true, "exp.sum");
	y = model_binary(m, LOSS, "Div", exp, sum, "softmax");
	y = model_unary(m, LOSS, "Log", y, "softmax.log");
	labels = model_reshape(m, LOSS, labels, MODEL_SHAPE(AP_INT32, p->batch * p->sequence),
		"labels.rows");
	y = model_binary(m, LOSS, "Mul", y, one_hot(g, labels, on, off), "chosen");
	y = model_reduce(m, LOSS, "ReduceSum", y, 1, false, "likelihood");
	y = model_binary(m, LOSS, "Mul", minus, y, "losses");
	model_reduce(m, LOSS, "ReduceMean", y, 1, false, "loss");
}

/* Constants of the attention. The fused kernel scales by itself and, being told that the mask is
 * causal, takes a compressed one of fixed size. */
static void attention_constants(struct gpt *g)
{
	const struct model_gpt_params *p = g->p;

	if (p->flash) {
		g->mask = model_const(g->m, "attention_mask", MODEL_SHAPE(AP_UINT8, 2048, 2048));
		return;
	}
	g->mask = model_const(g->m, "attention_mask",
		MODEL_SHAPE(p->dtype, 1, 1, p->sequence, p->sequence));
	g->scale = model_const(g->m, "attention_scale", model_scalar(p->dtype));
}

struct model *model_gpt(struct ap_arena *arena, const struct model_gpt_params *params)
{
	struct model *m = model_create(arena, params->name, "adam_weight_decay");
	struct gpt g = {.p = params, .m = m, .arena = arena};
	ap_id x;

	assert(params->hidden % params->heads == 0);
	attention_constants(&g);
	x = embed(&g);
	for (int64_t i = 0; i < params->layers; i++)
		x = block(&g, i, x);
	model_prefix(m, "");
	x = model_layer_norm(m, BACKBONE "/layernorm-LayerNorm", "backbone.layernorm", x, "norm");
	x = model_reshape(m, BACKBONE, x, rows(&g), "norm.rows");
	x = model_matmul(m, NET "head-GPTHead", x, g.table, true, "logits");
	cross_entropy(&g, x);
	return m;
}
