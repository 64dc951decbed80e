/* SPDX-License-Identifier: Apache-2.0 */
#include "model/block.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"

/* ---- attention ---- */

static const int64_t swapped[] = {0, 2, 1, 3};

ap_id ap_model_swap_heads(struct ap_model *m, const char *scope, ap_id x, const char *name)
{
	return ap_model_transpose(m, scope, x, swapped, name);
}

void ap_model_attention_constants(struct ap_model *m, struct ap_model_attention *a, bool fused,
	int64_t sequence, enum ap_dtype dtype)
{
	struct ap_shape compressed = AP_MODEL_SHAPE(AP_UINT8, 2048, 2048);
	struct ap_shape full = AP_MODEL_SHAPE(dtype, 1, 1, sequence, sequence);

	if (ap_model_is_fused(m) && !fused) {
		a->mask = a->scale = AP_NONE;
		return;
	}
	a->mask = a->causal ? ap_model_const(m, "attention_mask", fused ? compressed : full) : AP_NONE;
	a->scale = fused ? AP_NONE : ap_model_number(m, "attention_scale", dtype);
}

ap_id ap_model_attend(struct ap_model *m, const char *scope, const struct ap_model_attention *a, ap_id q,
	ap_id k, ap_id v)
{
	ap_id y = ap_model_matmul(m, scope, q, k, true, "scores");

	if (a->scale != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", y, a->scale, "scores.scaled");
	if (a->mask != AP_NONE)
		y = ap_model_binary(m, scope, "Add", y, a->mask, "scores.masked");
	y = ap_model_softmax(m, ap_model_scope(m, scope, "softmax-Softmax"), y, "probs");
	if (a->dropout != 0)
		y = ap_model_dropout(m, ap_model_scope(m, scope, "prob_dropout-Dropout"), y,
			1 - a->dropout, "probs.dropped");
	return ap_model_matmul(m, scope, y, v, false, "context.heads");
}

/* Results: maxima and sums of the softmax, its unused matrix, the attention. */
ap_id ap_model_attend_fused(struct ap_model *m, const char *scope, const struct ap_model_attention *a,
	ap_id q, ap_id k, ap_id v)
{
	struct ap_shape s = ap_model_shape(m, q);
	bool split = s.rank == 4;
	struct ap_shape sums = AP_MODEL_SHAPE(AP_FLOAT32, s.dim[0], a->heads, s.dim[split ? 2 : 1], 8);
	struct ap_model_op op = {
		.scope = ap_model_scope(m, scope, "flash_attention-FlashAttention"),
		.type = "FlashAttentionScore",
		.nin = 7,
		.in = {q, k, v, AP_NONE, AP_NONE, AP_NONE, a->mask},
		.nout = 4,
		.out = {{"softmax.max", sums}, {"softmax.sum", sums},
			{"softmax.unused", AP_MODEL_SHAPE(s.dtype, 1)}, {"context", s}},
		.nattr = 4,
		.attr = {
			AP_MODEL_INT("head_num", a->heads),
			AP_MODEL_REAL("scale_value", 1 / sqrt((double)a->size)),
			AP_MODEL_TEXT("input_layout", split ? "BNSD" : "BSH"),
			AP_MODEL_INT("sparse_mode", a->causal ? 2 : 0),
		},
	};

	return ap_model_op(m, &op) + 3;
}

/* ---- blocks of encoders ---- */

struct ap_model_encoder ap_model_encoder_of(struct ap_model *m, const struct ap_model_params *p,
	int64_t sequence)
{
	assert(!ap_model_activation_gated(p->activation) && p->activation != AP_MODEL_SQUARED_RELU);
	if (p->fused)
		ap_model_fuse(m);
	return (struct ap_model_encoder){.m = m, .batch = p->batch, .sequence = sequence, .hidden = p->hidden,
		.inner = p->inner ? p->inner : 4 * p->hidden, .dtype = p->dtype, .fused = p->flash,
		.relu = p->activation == AP_MODEL_RELU, .dropout = p->dropout,
		.attention = {.heads = p->heads, .size = p->head_size ? p->head_size : p->hidden / p->heads,
			.dropout = p->dropout}};
}

struct ap_shape ap_model_encoder_rows(const struct ap_model_encoder *e)
{
	return AP_MODEL_SHAPE(e->dtype, e->batch * e->sequence, e->hidden);
}

struct ap_shape ap_model_encoder_tokens(const struct ap_model_encoder *e)
{
	return AP_MODEL_SHAPE(e->dtype, e->batch, e->sequence, e->hidden);
}

ap_id ap_model_encoder_dropout(const struct ap_model_encoder *e, const char *scope, ap_id x,
	const char *name)
{
	if (e->dropout == 0 || ap_model_is_fused(e->m))
		return x;
	return ap_model_dropout(e->m, ap_model_scope(e->m, scope, "dropout-Dropout"), x, 1 - e->dropout,
		name);
}

/* Query, key or value: [B,N,S,D] or, for the fused kernel, [B,S,H]. */
static ap_id project(const struct ap_model_encoder *e, const char *scope, const char *param,
	const char *cell, ap_id x, const char *name)
{
	struct ap_model *m = e->m;
	const char *dense = ap_arena_printf(ap_model_arena(m), "%s/%s-Dense", scope, cell);
	int64_t width = e->attention.heads * e->attention.size;
	ap_id y = ap_model_dense(m, dense, ap_model_name(m, param, cell), x, width, name);

	if (e->fused)
		return ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch, e->sequence, width),
			ap_model_name(m, name, "tokens"));
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch, e->sequence,
		e->attention.heads, e->attention.size), ap_model_name(m, name, "split"));
	return ap_model_swap_heads(m, scope, y, ap_model_name(m, name, "heads"));
}

static ap_id attention(const struct ap_model_encoder *e, const char *block, const char *param,
	ap_id x)
{
	struct ap_model *m = e->m;
	const char *scope = ap_model_scope(m, block, "attention-MultiHeadAttention");
	const char *name = ap_model_name(m, param, "attention");
	ap_id q = project(e, scope, name, "dense1", x, "query");
	ap_id k = project(e, scope, name, "dense2", x, "key");
	ap_id v = project(e, scope, name, "dense3", x, "value");
	ap_id y;

	if (e->fused)
		y = ap_model_attend_fused(m, scope, &e->attention, q, k, v);
	else
		y = ap_model_swap_heads(m, scope, ap_model_attend(m, scope, &e->attention, q, k, v),
			"context.split");
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch * e->sequence,
		e->attention.heads * e->attention.size), "context.rows");
	y = ap_model_dense(m, ap_model_scope(m, scope, "projection-Dense"),
		ap_model_name(m, name, "projection"), y, e->hidden, "attention");
	y = ap_model_reshape(m, scope, y, ap_model_encoder_tokens(e), "attention.tokens");
	return ap_model_encoder_dropout(e, scope, y, "attention.dropped");
}

static ap_id feed_forward(const struct ap_model_encoder *e, const char *block, const char *param,
	ap_id x)
{
	struct ap_model *m = e->m;
	const char *scope = ap_model_scope(m, block, "output-FeedForward");
	const char *name = ap_model_name(m, param, "output");
	ap_id y = ap_model_dense(m, ap_model_scope(m, scope, "mapping-Dense"),
		ap_model_name(m, name, "mapping"), x, e->inner, "wide");

	y = e->relu ? ap_model_unary(m, ap_model_scope(m, scope, "activation-ReLU"), "ReLU", y, "wide.relu") :
		ap_model_unary(m, ap_model_scope(m, scope, "activation-GELU"), "GeLU", y, "wide.gelu");
	y = ap_model_dense(m, ap_model_scope(m, scope, "projection-Dense"),
		ap_model_name(m, name, "projection"), y, e->hidden, "narrow");
	y = ap_model_reshape(m, scope, y, ap_model_encoder_tokens(e), "narrow.tokens");
	return ap_model_encoder_dropout(e, scope, y, "narrow.dropped");
}

typedef ap_id part_fn(const struct ap_model_encoder *e, const char *block, const char *param, ap_id x);

/* A part with its residual connection and layer norm, `number` in the block. */
static ap_id residual(const struct ap_model_encoder *e, const char *scope, const char *param,
	int number, part_fn *part, ap_id x, const char *name)
{
	struct ap_model *m = e->m;
	struct ap_arena *arena = ap_model_arena(m);
	const char *cell = ap_arena_printf(arena, "%s/layernorm%d-LayerNorm", scope, number);
	const char *learned = ap_arena_printf(arena, "%s.layernorm%d", param, number);
	const char *norm = ap_arena_printf(arena, "norm%d", number);
	ap_id y = e->post_norm ? x : ap_model_layer_norm(m, cell, learned, x, norm);

	y = ap_model_reshape(m, scope, y, ap_model_encoder_rows(e), ap_model_name(m, norm, "rows"));
	y = part(e, scope, param, y);
	y = ap_model_binary(m, scope, "Add", x, y, name);
	return e->post_norm ? ap_model_layer_norm(m, cell, learned, y, norm) : y;
}

ap_id ap_model_encoder_block(const struct ap_model_encoder *e, const char *scope, const char *param,
	int64_t number, ap_id x)
{
	struct ap_arena *arena = ap_model_arena(e->m);

	scope = ap_arena_printf(arena, "%s/%d-TransformerEncoderLayer", scope, (int)number);
	param = ap_arena_printf(arena, "%s.%d", param, (int)number);
	ap_model_prefix(e->m, ap_arena_printf(arena, "blocks.%d.", (int)number));
	x = residual(e, scope, param, 1, attention, x, "middle");
	x = residual(e, scope, param, 2, feed_forward, x, "out");
	ap_model_prefix(e->m, "");
	return x;
}
