/* SPDX-License-Identifier: Apache-2.0 */
#include "model/block.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

	a->shift = AP_NONE;
	if (ap_model_is_fused(m) && !fused) {
		a->mask = a->scale = AP_NONE;
		return;
	}
	a->mask = a->causal ? ap_model_const(m, "attention_mask", fused ? compressed : full) : AP_NONE;
	a->scale = fused ? AP_NONE : ap_model_number(m, "attention_scale", dtype);
}

/* A column to the scores. */
static ap_id with_sinks(struct ap_model *m, const char *scope, const struct ap_model_attention *a, ap_id y)
{
	enum ap_dtype dtype = ap_model_shape(m, y).dtype;
	ap_id sinks = ap_model_reshape(m, scope, a->sinks, AP_MODEL_SHAPE(dtype, a->heads, 1, 1),
		"sinks.column");
	ap_id column = ap_model_slice(m, scope, y, 3, 0, 1, "scores.first");

	column = ap_model_binary(m, scope, "Mul", column, ap_model_number(m, "zero", dtype), "scores.none");
	column = ap_model_binary(m, scope, "Add", column, sinks, "scores.sinks");
	return ap_model_concat(m, scope, y, column, 3, "scores.sunk");
}

/* What flash attention returns, whose softmax knows no sinks: by its maxima and sums, the part of the
 * weights that sinks leave is sigmoid(max + log(sum) - sinks). */
static ap_id less_sinks(struct ap_model *m, const char *scope, const struct ap_model_attention *a,
	ap_id most, ap_id sum, ap_id y)
{
	enum ap_dtype dtype = ap_model_shape(m, y).dtype;
	ap_id sinks = ap_model_reshape(m, scope, a->sinks, AP_MODEL_SHAPE(dtype, a->heads, 1, 1),
		"sinks.column");

	if (dtype != AP_FLOAT32)
		sinks = ap_model_cast(m, scope, sinks, AP_FLOAT32, "sinks.float32");
	sum = ap_model_slice(m, scope, sum, 3, 0, 1, "softmax.sum.one");
	sum = ap_model_unary(m, scope, "Log", sum, "softmax.log");
	most = ap_model_slice(m, scope, most, 3, 0, 1, "softmax.max.one");
	sum = ap_model_binary(m, scope, "Add", most, sum, "softmax.total");
	sum = ap_model_binary(m, scope, "Sub", sum, sinks, "sinks.distance");
	sum = ap_model_unary(m, scope, "Sigmoid", sum, "sinks.rest");
	if (dtype != AP_FLOAT32)
		sum = ap_model_cast(m, scope, sum, dtype, "sinks.rest.cast");
	return ap_model_binary(m, scope, "Mul", y, sum, "context.sunk");
}

ap_id ap_model_attend(struct ap_model *m, const char *scope, const struct ap_model_attention *a, ap_id q,
	ap_id k, ap_id v)
{
	ap_id y = ap_model_matmul(m, scope, q, k, true, "scores");

	if (a->scale != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", y, a->scale, "scores.scaled");
	if (a->mask != AP_NONE)
		y = ap_model_binary(m, scope, "Add", y, a->mask, "scores.masked");
	if (a->sunk)
		y = with_sinks(m, scope, a, y);
	y = ap_model_softmax(m, ap_model_scope(m, scope, "softmax-Softmax"), y, a->sunk ? "probs.all"
		: "probs");
	if (a->sunk)
		y = ap_model_slice(m, scope, y, 3, 0, ap_model_shape(m, y).dim[3] - 1, "probs");
	if (a->dropout != 0)
		y = ap_model_dropout(m, ap_model_scope(m, scope, "prob_dropout-Dropout"), y,
			1 - a->dropout, "probs.dropped");
	return ap_model_matmul(m, scope, y, v, false, "context.heads");
}

/* Results: maxima and sums of the softmax, its unused matrix, the attention. */
ap_id ap_model_attend_fused(struct ap_model *m, const char *scope, const struct ap_model_attention *a,
	ap_id q, ap_id k, ap_id v)
{
	struct ap_shape s = ap_model_shape(m, q), y = s;
	bool split = s.rank == 4;
	struct ap_shape sums = AP_MODEL_SHAPE(AP_FLOAT32, s.dim[0], a->heads, s.dim[split ? 2 : 1], 8);
	ap_id first;
	struct ap_model_op op = {
		.scope = ap_model_scope(m, scope, "flash_attention-FlashAttention"),
		.type = "FlashAttentionScore",
		.nin = 7,
		.in = {q, k, v, a->shift, AP_NONE, AP_NONE, a->mask},
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

	y.dim[y.rank - 1] = split ? ap_model_shape(m, v).dim[3] : y.dim[2];
	op.out[3].shape = y;
	if (a->window) {
		op.attr[3] = (struct ap_attr)AP_MODEL_INT("sparse_mode", 4);
		op.attr[4] = (struct ap_attr)AP_MODEL_INT("pre_tokens", a->window - 1);
		op.attr[5] = (struct ap_attr)AP_MODEL_INT("next_tokens", 0);
		op.nattr = 6;
	}
	first = ap_model_op(m, &op);
	return a->sunk ? less_sinks(m, scope, a, first, first + 1, first + 3) : first + 3;
}

/* ---- blocks of encoders ---- */

struct ap_model_encoder ap_model_encoder_of(struct ap_model *m, const struct ap_model_params *p,
	int64_t sequence)
{
	static const struct ap_model_encoder_names names = {"TransformerEncoderLayer",
		.attention = {"attention-MultiHeadAttention", "attention.dense1", "attention.dense2",
			"attention.dense3", "attention.projection", "layernorm1"},
		.feed_forward = "output-FeedForward", .mapping = "output.mapping",
		.projection = "output.projection", .norm = "layernorm2"};

	assert(!ap_model_activation_gated(p->activation) && p->activation != AP_MODEL_SQUARED_RELU);
	if (p->fused && m)
		ap_model_fuse(m);
	return (struct ap_model_encoder){.m = m, .names = &names, .batch = p->batch, .sequence = sequence,
		.hidden = p->hidden,
		.inner = p->inner ? p->inner : 4 * p->hidden, .dtype = p->dtype, .fused = p->flash,
		.activation = p->activation, .memory = AP_NONE, .dropout = p->dropout,
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

/* The last part of a parameter's prefix, which its cell is called. */
static const char *last_part(const char *param)
{
	const char *dot = strrchr(param, '.');

	return dot ? dot + 1 : param;
}

ap_id ap_model_encoder_norm(const struct ap_model_encoder *e, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct ap_model *m = e->m;
	struct ap_shape s = ap_model_shape(m, x), one = AP_MODEL_SHAPE(s.dtype, s.dim[s.rank - 1]), rest = s;
	const char *cell = ap_arena_printf(ap_model_arena(m), "%s/%s-LayerNorm", scope, last_part(param));
	ap_id gamma, beta;

	if (!e->torch)
		return ap_model_layer_norm(m, cell, param, x, name);
	gamma = ap_model_param(m, ap_model_name(m, param, "weight"), one);
	if (e->plain) {
		struct ap_model_op op = {.scope = cell, .type = "RmsNorm", .nin = 2, .in = {x, gamma},
			.nout = 2,
			.out = {{name, s}, {.name = ap_model_name(m, name, "rstd")}}, .nattr = 1,
			.attr = {AP_MODEL_REAL("epsilon", 1e-6)}};

		rest.dim[rest.rank - 1] = 1;
		rest.dtype = AP_FLOAT32;
		op.out[1].shape = rest;
		return ap_model_op(m, &op);
	}
	beta = ap_model_param(m, ap_model_name(m, param, "bias"), one);
	return ap_model_op_one(m, (struct ap_model_op){.scope = cell, .type = "LayerNorm", .nin = 3,
		.in = {x, gamma, beta}, .nattr = 3, .attr = {AP_MODEL_INT("begin_norm_axis", -1),
			AP_MODEL_INT("begin_params_axis", -1), AP_MODEL_REAL("epsilon", 1e-12)}}, name, s);
}

/* A product with parameters "BLOCK.PARAM.", in a cell of its own. */
static ap_id product(const struct ap_model_encoder *e, const char *scope, const char *block,
	const char *param,
	bool bias, ap_id x, int64_t width, const char *name)
{
	struct ap_model *m = e->m;
	const char *cell = ap_arena_printf(ap_model_arena(m), "%s/%s-Dense", scope, last_part(param));

	param = ap_model_name(m, block, param);
	return bias ? ap_model_dense(m, cell, param, x, width, name) : ap_model_linear(m, cell, param, x,
		width, name);
}

/* Query, key or value: [B,N,S,D] or, for the fused kernel, [B,S,H]. */
static ap_id project(const struct ap_model_encoder *e, const char *scope, const char *block,
	const char *param,
	ap_id x, const char *name)
{
	struct ap_model *m = e->m;
	int64_t width = e->attention.heads * e->attention.size;
	ap_id y = product(e, scope, block, param, !e->plain && !e->no_qkv_bias, x, width, name);

	if (e->fused && e->attention.shift == AP_NONE)
		return ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch, e->sequence, width),
			ap_model_name(m, name, "tokens"));
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch, e->sequence,
		e->attention.heads, e->attention.size), ap_model_name(m, name, "split"));
	return ap_model_swap_heads(m, scope, y, ap_model_name(m, name, "heads"));
}

/* Attention of x to other, which may be x. */
static ap_id attend(const struct ap_model_encoder *e, const struct ap_model_attention_names *n,
	const struct ap_model_attention *a, const char *block, const char *param, ap_id x, ap_id other)
{
	struct ap_model *m = e->m;
	const char *scope = ap_model_scope(m, block, n->cell);
	ap_id q = project(e, scope, param, n->query, x, "query");
	ap_id k = project(e, scope, param, n->key, other, "key");
	ap_id v = project(e, scope, param, n->value, other, "value");
	ap_id y = e->fused ? ap_model_attend_fused(m, scope, a, q, k, v) : ap_model_attend(m, scope, a, q, k,
		v);

	if (ap_model_shape(m, y).rank == 4)
		y = ap_model_swap_heads(m, scope, y, "context.split");
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(e->dtype, e->batch * e->sequence,
		a->heads * a->size),
		"context.rows");
	y = product(e, scope, param, n->projection, !e->plain, y, e->hidden, "attention");
	y = ap_model_reshape(m, scope, y, ap_model_encoder_tokens(e), "attention.tokens");
	return ap_model_encoder_dropout(e, scope, y, "attention.dropped");
}

static ap_id attention(const struct ap_model_encoder *e, const char *block, const char *param, ap_id x)
{
	return attend(e, &e->names->attention, &e->attention, block, param, x, x);
}

static ap_id cross_attention(const struct ap_model_encoder *e, const char *block, const char *param, ap_id x)
{
	return attend(e, &e->names->cross, &e->cross, block, param, x, e->memory);
}

static ap_id feed_forward(const struct ap_model_encoder *e, const char *block, const char *param, ap_id x)
{
	static const struct { const char *cell, *type, *name; } functions[] = {
		[AP_MODEL_GELU] = {"activation-GELU", "GeLU", "wide.gelu"},
		[AP_MODEL_RELU] = {"activation-ReLU", "ReLU", "wide.relu"},
		[AP_MODEL_GEGLU] = {"activation-GELU", "GeLU", "gate.gelu"},
		[AP_MODEL_SWIGLU] = {"activation-SiLU", "SiLU", "gate.silu"}};
	const struct ap_model_encoder_names *n = e->names;
	struct ap_model *m = e->m;
	const char *scope = ap_model_scope(m, block, n->feed_forward);
	const char *cell = ap_model_scope(m, scope, functions[e->activation].cell);
	ap_id y, gate;

	if (ap_model_activation_gated(e->activation)) {
		gate = product(e, scope, param, n->gate, !e->plain, x, e->inner, "gate");
		gate = ap_model_unary(m, cell, functions[e->activation].type, gate,
			functions[e->activation].name);
		y = product(e, scope, param, n->mapping, !e->plain, x, e->inner, "wide");
		y = ap_model_binary(m, scope, "Mul", gate, y, "gated");
	} else {
		y = product(e, scope, param, n->mapping, !e->plain, x, e->inner, "wide");
		y = ap_model_unary(m, cell, functions[e->activation].type, y, functions[e->activation].name);
	}
	y = product(e, scope, param, n->projection, !e->plain, y, e->hidden, "narrow");
	y = ap_model_reshape(m, scope, y, ap_model_encoder_tokens(e), "narrow.tokens");
	return ap_model_encoder_dropout(e, scope, y, "narrow.dropped");
}

typedef ap_id part_fn(const struct ap_model_encoder *e, const char *block, const char *param, ap_id x);

/* A part with its residual connection and norm. */
static ap_id residual(const struct ap_model_encoder *e, const char *scope, const char *param,
	const char *norm,
	part_fn *part, ap_id x, const char *norm_name, const char *name)
{
	struct ap_model *m = e->m;
	const char *learned = ap_model_name(m, param, norm);
	ap_id y = e->post_norm ? x : ap_model_encoder_norm(e, scope, learned, x, norm_name);

	y = ap_model_reshape(m, scope, y, ap_model_encoder_rows(e), ap_model_name(m, norm_name, "rows"));
	y = part(e, scope, param, y);
	y = ap_model_binary(m, scope, "Add", x, y, name);
	return e->post_norm ? ap_model_encoder_norm(e, scope, learned, y, norm_name) : y;
}

ap_id ap_model_encoder_block(const struct ap_model_encoder *e, const char *scope, const char *param,
	int64_t number, ap_id x)
{
	struct ap_arena *arena = ap_model_arena(e->m);
	const struct ap_model_encoder_names *n = e->names;
	const char *prefix = ap_arena_printf(arena, "%sblocks.%d.", e->stack ? e->stack : "", (int)number);

	scope = ap_arena_printf(arena, "%s/%d-%s", scope, (int)number, n->block);
	param = ap_arena_printf(arena, "%s.%d", param, (int)number);
	ap_model_prefix(e->m, prefix);
	x = residual(e, scope, param, n->attention.norm, attention, x, "norm1", "middle");
	if (e->memory != AP_NONE) {
		ap_model_prefix(e->m, ap_arena_printf(arena, "%scross.", prefix));
		x = residual(e, scope, param, n->cross.norm, cross_attention, x, "norm", "out");
		ap_model_prefix(e->m, prefix);
	}
	x = residual(e, scope, param, n->norm, feed_forward, x, "norm2", "out");
	ap_model_prefix(e->m, "");
	return x;
}
