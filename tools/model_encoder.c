/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model_block.h"

#include <assert.h>

#include "base/arena.h"

struct model_encoder model_encoder_of(struct model *m, const struct model_params *p, int64_t sequence)
{
	assert(!model_activation_gated(p->activation) && p->activation != MODEL_SQUARED_RELU);
	if (p->fused)
		model_fuse(m);
	return (struct model_encoder){.m = m, .batch = p->batch, .sequence = sequence, .hidden = p->hidden,
		.inner = p->inner ? p->inner : 4 * p->hidden, .dtype = p->dtype, .fused = p->flash,
		.relu = p->activation == MODEL_RELU, .dropout = p->dropout,
		.attention = {.heads = p->heads, .size = p->head_size ? p->head_size : p->hidden / p->heads,
			.dropout = p->dropout}};
}

struct ap_shape model_encoder_rows(const struct model_encoder *e)
{
	return MODEL_SHAPE(e->dtype, e->batch * e->sequence, e->hidden);
}

struct ap_shape model_encoder_tokens(const struct model_encoder *e)
{
	return MODEL_SHAPE(e->dtype, e->batch, e->sequence, e->hidden);
}

ap_id model_encoder_dropout(const struct model_encoder *e, const char *scope, ap_id x,
	const char *name)
{
	if (e->dropout == 0 || model_is_fused(e->m))
		return x;
	return model_dropout(e->m, model_scope(e->m, scope, "dropout-Dropout"), x, 1 - e->dropout,
		name);
}

/* Query, key or value: [B,N,S,D] or, for the fused kernel, [B,S,H]. */
static ap_id project(const struct model_encoder *e, const char *scope, const char *param,
	const char *cell, ap_id x, const char *name)
{
	struct model *m = e->m;
	const char *dense = ap_arena_printf(model_arena(m), "%s/%s-Dense", scope, cell);
	int64_t width = e->attention.heads * e->attention.size;
	ap_id y = model_dense(m, dense, model_name(m, param, cell), x, width, name);

	if (e->fused)
		return model_reshape(m, scope, y, MODEL_SHAPE(e->dtype, e->batch, e->sequence, width),
			model_name(m, name, "tokens"));
	y = model_reshape(m, scope, y, MODEL_SHAPE(e->dtype, e->batch, e->sequence,
		e->attention.heads, e->attention.size), model_name(m, name, "split"));
	return model_swap_heads(m, scope, y, model_name(m, name, "heads"));
}

static ap_id attention(const struct model_encoder *e, const char *block, const char *param,
	ap_id x)
{
	struct model *m = e->m;
	const char *scope = model_scope(m, block, "attention-MultiHeadAttention");
	const char *name = model_name(m, param, "attention");
	ap_id q = project(e, scope, name, "dense1", x, "query");
	ap_id k = project(e, scope, name, "dense2", x, "key");
	ap_id v = project(e, scope, name, "dense3", x, "value");
	ap_id y;

	if (e->fused)
		y = model_attend_fused(m, scope, &e->attention, q, k, v);
	else
		y = model_swap_heads(m, scope, model_attend(m, scope, &e->attention, q, k, v),
			"context.split");
	y = model_reshape(m, scope, y, MODEL_SHAPE(e->dtype, e->batch * e->sequence,
		e->attention.heads * e->attention.size), "context.rows");
	y = model_dense(m, model_scope(m, scope, "projection-Dense"),
		model_name(m, name, "projection"), y, e->hidden, "attention");
	y = model_reshape(m, scope, y, model_encoder_tokens(e), "attention.tokens");
	return model_encoder_dropout(e, scope, y, "attention.dropped");
}

static ap_id feed_forward(const struct model_encoder *e, const char *block, const char *param,
	ap_id x)
{
	struct model *m = e->m;
	const char *scope = model_scope(m, block, "output-FeedForward");
	const char *name = model_name(m, param, "output");
	ap_id y = model_dense(m, model_scope(m, scope, "mapping-Dense"),
		model_name(m, name, "mapping"), x, e->inner, "wide");

	y = e->relu ? model_unary(m, model_scope(m, scope, "activation-ReLU"), "ReLU", y, "wide.relu") :
		model_unary(m, model_scope(m, scope, "activation-GELU"), "GeLU", y, "wide.gelu");
	y = model_dense(m, model_scope(m, scope, "projection-Dense"),
		model_name(m, name, "projection"), y, e->hidden, "narrow");
	y = model_reshape(m, scope, y, model_encoder_tokens(e), "narrow.tokens");
	return model_encoder_dropout(e, scope, y, "narrow.dropped");
}

typedef ap_id part_fn(const struct model_encoder *e, const char *block, const char *param, ap_id x);

/* A part with its residual connection and layer norm, `number` in the block. */
static ap_id residual(const struct model_encoder *e, const char *scope, const char *param,
	int number, part_fn *part, ap_id x, const char *name)
{
	struct model *m = e->m;
	struct ap_arena *arena = model_arena(m);
	const char *cell = ap_arena_printf(arena, "%s/layernorm%d-LayerNorm", scope, number);
	const char *learned = ap_arena_printf(arena, "%s.layernorm%d", param, number);
	const char *norm = ap_arena_printf(arena, "norm%d", number);
	ap_id y = e->post_norm ? x : model_layer_norm(m, cell, learned, x, norm);

	y = model_reshape(m, scope, y, model_encoder_rows(e), model_name(m, norm, "rows"));
	y = part(e, scope, param, y);
	y = model_binary(m, scope, "Add", x, y, name);
	return e->post_norm ? model_layer_norm(m, cell, learned, y, norm) : y;
}

ap_id model_encoder_block(const struct model_encoder *e, const char *scope, const char *param,
	int64_t number, ap_id x)
{
	struct ap_arena *arena = model_arena(e->m);

	scope = ap_arena_printf(arena, "%s/%d-TransformerEncoderLayer", scope, (int)number);
	param = ap_arena_printf(arena, "%s.%d", param, (int)number);
	model_prefix(e->m, ap_arena_printf(arena, "blocks.%d.", (int)number));
	x = residual(e, scope, param, 1, attention, x, "middle");
	x = residual(e, scope, param, 2, feed_forward, x, "out");
	model_prefix(e->m, "");
	return x;
}
