/* SPDX-License-Identifier: Apache-2.0 */
#include "model/t5.h"

#include "base/arena.h"
#include "model/block.h"
#include "model/cells.h"

#define TOP "Default/network-T5ForConditionalGeneration"

#define ATTENTION(cell, layer, part) {cell, layer "." part ".q", layer "." part ".k", layer "." part ".v", \
	layer "." part ".o", layer ".layer_norm"}
#define FEED_FORWARD(layer, up) .feed_forward = "DenseReluDense-T5Dense", \
	.gate = layer ".DenseReluDense.wi_0", .mapping = layer ".DenseReluDense." up, \
	.projection = layer ".DenseReluDense.wo", .norm = layer ".layer_norm"

/* [is a decoder][has a gate] */
static const struct ap_model_encoder_names names[2][2] = {
	{{"T5Block", .attention = ATTENTION("SelfAttention-T5Attention", "layer.0", "SelfAttention"),
		FEED_FORWARD("layer.1", "wi")},
		{"T5Block", .attention = ATTENTION("SelfAttention-T5Attention", "layer.0", "SelfAttention"),
		FEED_FORWARD("layer.1", "wi_1")}},
	{{"T5Block", .attention = ATTENTION("SelfAttention-T5Attention", "layer.0", "SelfAttention"),
		.cross = ATTENTION("EncDecAttention-T5Attention", "layer.1", "EncDecAttention"),
		FEED_FORWARD("layer.2", "wi")},
		{"T5Block", .attention = ATTENTION("SelfAttention-T5Attention", "layer.0", "SelfAttention"),
		.cross = ATTENTION("EncDecAttention-T5Attention", "layer.1", "EncDecAttention"),
		FEED_FORWARD("layer.2", "wi_1")}},
};

/* The bias of the scores: [1,A,S,S]. */
static ap_id distances(struct ap_model *m, const struct ap_t5 *p, const char *scope, const char *stack,
	bool causal)
{
	static const int64_t heads_first[] = {0, 3, 1, 2};
	ap_id table = ap_model_param(m, ap_arena_printf(ap_model_arena(m),
		"%s.block.0.layer.0.SelfAttention.relative_attention_bias.weight", stack),
		AP_MODEL_SHAPE(p->dtype, p->buckets, p->heads));
	ap_id x = ap_model_const(m, ap_model_name(m, stack, "distances"),
		AP_MODEL_SHAPE(AP_INT32, 1, p->sequence, p->sequence));

	scope = ap_model_scope(m, scope, "relative_attention_bias-Embedding");
	x = ap_model_gather(m, scope, table, x, "bias.rows");
	x = ap_model_transpose(m, scope, x, heads_first, "bias");
	if (!causal || p->flash)
		return x;
	return ap_model_binary(m, scope, "Add", x, ap_model_const(m, "attention_mask",
		AP_MODEL_SHAPE(p->dtype, 1, 1, p->sequence, p->sequence)), "bias.masked");
}

/* A stack of blocks over x, tokens; memory: what a decoder's blocks also read. The result, normalised. */
static ap_id stack(struct ap_model *m, const struct ap_t5 *p, const char *stack, bool decodes, ap_id x,
	ap_id memory)
{
	const char *scope = ap_arena_printf(ap_model_arena(m), TOP "/%s-T5Stack", stack);
	const char *prefix = ap_arena_printf(ap_model_arena(m), "%s.", stack);
	struct ap_model_attention plain = {.heads = p->heads, .size = p->head_size};
	struct ap_model_encoder e = {.m = m,
		.names = &names[decodes][ap_model_activation_gated(p->activation)],
		.stack = prefix, .batch = p->batch, .sequence = p->sequence, .hidden = p->hidden,
		.inner = p->inner, .dtype = p->dtype, .fused = p->flash, .activation = p->activation,
		.plain = true, .torch = true, .memory = memory, .attention = plain, .cross = plain};
	int64_t layers = decodes ? p->decoder_layers : p->layers;
	ap_id bias;

	ap_model_prefix(m, prefix);
	bias = distances(m, p, scope, stack, decodes);
	e.attention.causal = decodes && p->flash;
	ap_model_attention_constants(m, &e.attention, p->flash, p->sequence, p->dtype);
	e.attention.scale = e.cross.scale = e.cross.mask = e.cross.shift = AP_NONE;
	if (p->flash)
		e.attention.shift = bias;
	else
		e.attention.mask = bias;
	for (int64_t i = 0; i < layers; i++)
		x = ap_model_encoder_block(&e, ap_model_scope(m, scope, "block-CellList"),
			ap_model_name(m, stack, "block"), i, x);
	ap_model_prefix(m, prefix);
	x = ap_model_encoder_norm(&e, scope, ap_model_name(m, stack, "final_layer_norm"), x, "norm");
	x = ap_model_reshape(m, scope, x, ap_model_encoder_rows(&e), "norm.rows");
	ap_model_prefix(m, "");
	return x;
}

struct ap_model *ap_model_t5(struct ap_arena *arena, const struct ap_t5 *p)
{
	static const char loss[] = TOP "/loss-CrossEntropyLoss";
	struct ap_model *m = ap_model_create(arena, p->name, "adam_weight_decay");
	struct ap_shape ids = AP_MODEL_SHAPE(AP_INT32, p->batch, p->sequence);
	ap_id table = ap_model_param(m, "shared.weight", AP_MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));
	ap_id x = ap_model_input(m, "input_ids", ids), y = ap_model_input(m, "decoder_input_ids", ids),
		labels;

	x = ap_model_gather(m, TOP "/shared-Embedding", table, x, "encoder.embedding");
	x = stack(m, p, "encoder", false, x, AP_NONE);
	y = ap_model_gather(m, TOP "/shared-Embedding", table, y, "decoder.embedding");
	y = stack(m, p, "decoder", true, y, x);
	if (!p->tied)
		table = ap_model_param(m, "lm_head.weight", AP_MODEL_SHAPE(p->dtype, p->vocabulary,
			p->hidden));
	y = ap_model_matmul(m, TOP "/lm_head-Linear", y, table, true, "logits");
	labels = ap_model_input(m, "labels", ids);
	labels = ap_model_reshape(m, loss, labels, AP_MODEL_SHAPE(AP_INT32, p->batch * p->sequence),
		"labels.rows");
	(void)ap_model_mean_loss(m, loss, p->loss, y, labels);
	return m;
}
