/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model_llama.h"

#include <assert.h>

#include "base/arena.h"

#define TOP "Default/network-LlamaForCausalLM"
#define BACKBONE TOP "/model-LlamaModel"
#define LOSS TOP "/loss-CrossEntropyLoss"

struct ap_shape llama_rows(const struct llama *l)
{
	return MODEL_SHAPE(l->p->dtype, l->p->batch * l->p->sequence, l->p->hidden);
}

struct ap_shape llama_tokens(const struct llama *l)
{
	return MODEL_SHAPE(l->p->dtype, l->p->batch, l->p->sequence, l->p->hidden);
}

/* Query, key or value: [B,N,S,D]. */
static ap_id project(const struct llama *l, const char *scope, const char *param, const char *cell,
	ap_id x, int64_t heads, const char *name)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	int64_t size = l->attention.size;
	const char *linear = ap_arena_printf(model_arena(m), "%s/%s-Linear", scope, cell);
	ap_id y = model_linear(m, linear, model_name(m, param, cell), x, heads * size, name);

	y = model_reshape(m, scope, y, MODEL_SHAPE(p->dtype, p->batch, p->sequence, heads, size),
		model_name(m, name, "split"));
	return model_swap_heads(m, scope, y, model_name(m, name, "heads"));
}

/* x cos + (-b, a) sin, x being (a, b). */
static ap_id rotate(const struct llama *l, const char *attention, ap_id x, const char *name)
{
	struct model *m = l->m;
	const char *scope = model_scope(m, attention, "apply_rotary_emb-RotaryEmbedding");
	int64_t half = l->attention.size / 2;
	ap_id a, b, y;

	if (model_is_fused(m))
		return model_binary(m, scope, "Mul", x, l->cos, model_name(m, name, "rotated"));
	a = model_slice(m, scope, x, 3, 0, half, model_name(m, name, "lower"));
	b = model_slice(m, scope, x, 3, half, 2 * half, model_name(m, name, "upper"));
	b = model_unary(m, scope, "Neg", b, model_name(m, name, "turned"));
	y = model_concat(m, scope, b, a, 3, model_name(m, name, "half_turned"));
	y = model_binary(m, scope, "Mul", y, l->sin, model_name(m, name, "sine"));
	x = model_binary(m, scope, "Mul", x, l->cos, model_name(m, name, "cosine"));
	return model_binary(m, scope, "Add", x, y, model_name(m, name, "rotated"));
}

/* Copies each head of keys or values for all queries that share it. */
static ap_id repeat_heads(const struct llama *l, const char *scope, ap_id x, const char *name)
{
	const struct model_params *p = l->p;
	int64_t size = l->attention.size, copies = p->heads / p->kv_heads;

	if (copies == 1)
		return x;
	x = model_reshape(l->m, scope, x, MODEL_SHAPE(p->dtype, p->batch, p->kv_heads, 1,
		p->sequence * size), model_name(l->m, name, "once"));
	x = model_repeat(l->m, scope, x, 2, copies, model_name(l->m, name, "copies"));
	return model_reshape(l->m, scope, x, MODEL_SHAPE(p->dtype, p->batch, p->heads, p->sequence,
		size), model_name(l->m, name, "repeated"));
}

static ap_id attention(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	ap_id q = project(l, scope, param, "wq", x, p->heads, "query");
	ap_id k = project(l, scope, param, "wk", x, p->kv_heads, "key");
	ap_id v = project(l, scope, param, "wv", x, p->kv_heads, "value");
	ap_id y;

	q = rotate(l, scope, q, "query");
	k = rotate(l, scope, k, "key");
	if (p->flash) {
		y = model_attend_fused(m, scope, &l->attention, q, k, v);
	} else {
		k = repeat_heads(l, scope, k, "key");
		v = repeat_heads(l, scope, v, "value");
		y = model_attend(m, scope, &l->attention, q, k, v);
	}
	y = model_swap_heads(m, scope, y, "context.split");
	y = model_reshape(m, scope, y, MODEL_SHAPE(p->dtype, p->batch * p->sequence,
		p->heads * l->attention.size), "context.rows");
	return model_linear(m, model_scope(m, scope, "wo-Linear"), model_name(m, param, "wo"), y,
		p->hidden, "attention");
}

/* w2 f(w1 x), or w2 (f(w1 x) * w3 x) */
static ap_id dense(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	static const struct { const char *type, *name; } functions[] = {[MODEL_GELU] = {"GeLU", "gate.gelu"},
		[MODEL_RELU] = {"ReLU", "gate.relu"}, [MODEL_SQUARED_RELU] = {"ReLU", "gate.relu"},
		[MODEL_SWIGLU] = {"SiLU", "gate.silu"}, [MODEL_GEGLU] = {"GeLU", "gate.gelu"}};
	enum model_activation a = l->p->activation;
	struct model *m = l->m;
	const char *gate = model_scope(m, scope, "w1-Linear");
	ap_id y = model_linear(m, gate, model_name(m, param, "w1"), x, l->p->inner, "gate"), z = AP_NONE;

	if (model_activation_gated(a))
		z = model_linear(m, model_scope(m, scope, "w3-Linear"), model_name(m, param, "w3"), x,
			l->p->inner, "wide");
	if (z == AP_NONE || !model_is_fused(m))
		y = model_unary(m, gate, functions[a].type, y, functions[a].name);
	if (a == MODEL_SQUARED_RELU)
		y = model_unary(m, gate, "Square", y, "gate.square");
	if (z != AP_NONE)
		y = model_binary(m, scope, "Mul", z, y, "gated");
	return model_linear(m, model_scope(m, scope, "w2-Linear"), model_name(m, param, "w2"), y,
		l->p->hidden, "narrow");
}

/* A part after its norm, with a residual connection around both. */
static ap_id residual(const struct llama *l, const char *scope, const char *param, const char *cell,
	const char *class, const char *norm, llama_part_fn *part, ap_id x, const char *name)
{
	struct model *m = l->m;
	struct ap_arena *arena = model_arena(m);
	ap_id y = model_rms_norm(m, ap_arena_printf(arena, "%s/%s-LlamaRMSNorm", scope, norm),
		model_name(m, param, norm), x, norm);

	y = model_reshape(m, scope, y, llama_rows(l), model_name(m, norm, "rows"));
	y = part(l, ap_arena_printf(arena, "%s/%s-%s", scope, cell, class),
		model_name(m, param, cell), y);
	y = model_reshape(m, scope, y, llama_tokens(l), model_name(m, cell, "tokens"));
	return model_binary(m, scope, "Add", x, y, name);
}

static ap_id block(const struct llama *l, int number, llama_part_fn *feed_forward, ap_id x)
{
	struct ap_arena *arena = model_arena(l->m);
	const char *scope = ap_arena_printf(arena,
		BACKBONE "/layers-CellList/%d-LLamaDecodeLayer", number);
	const char *param = ap_arena_printf(arena, "model.layers.%d", number);

	model_prefix(l->m, ap_arena_printf(arena, "layers.%d.", number));
	x = residual(l, scope, param, "attention", "LLamaAttention", "attention_norm", attention, x,
		"middle");
	x = residual(l, scope, param, "feed_forward", feed_forward == dense ? "LlamaFeedForward" :
		"MoE", "ffn_norm", feed_forward, x, "out");
	model_prefix(l->m, "");
	return x;
}

static ap_id embed(const struct llama *l)
{
	const struct model_params *p = l->p;
	ap_id ids = model_input(l->m, "input_ids", MODEL_SHAPE(AP_INT32, p->batch, p->sequence));
	ap_id table = model_param(l->m, "model.tok_embeddings.embedding_weight",
		MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));

	return model_gather(l->m, BACKBONE "/tok_embeddings-LlamaEmbedding", table, ids,
		"embedding");
}

static void loss(const struct llama *l, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	ap_id labels = model_input(m, "labels", MODEL_SHAPE(AP_INT32, p->batch, p->sequence));

	labels = model_reshape(m, LOSS, labels, MODEL_SHAPE(AP_INT32, p->batch * p->sequence),
		"labels.rows");
	x = model_rms_norm(m, BACKBONE "/norm_out-LlamaRMSNorm", "model.norm_out", x, "norm");
	x = model_reshape(m, BACKBONE, x, llama_rows(l), "norm.rows");
	x = model_linear(m, TOP "/lm_head-Linear", "lm_head", x, p->vocabulary, "logits");
	x = model_cross_entropy(m, LOSS, x, labels);
	model_reduce(m, LOSS, "ReduceMean", x, 1, false, "loss");
}

struct model *llama_with(struct ap_arena *arena, const struct model_params *p,
	llama_part_fn *feed_forward)
{
	struct model *m = model_create(arena, p->name, "adam_weight_decay");
	struct llama l = {.m = m, .p = p, .attention = {.heads = p->heads,
		.size = p->head_size ? p->head_size : p->hidden / p->heads, .causal = true}};
	struct ap_shape angles = MODEL_SHAPE(p->dtype, 1, 1, p->sequence, l.attention.size);
	ap_id x;

	assert(p->heads % p->kv_heads == 0 && l.attention.size % 2 == 0);
	if (p->fused)
		model_fuse(m);
	model_attention_constants(m, &l.attention, p->flash, p->sequence, p->dtype);
	l.cos = model_const(m, "rotary_cos", angles);
	if (!p->fused)
		l.sin = model_const(m, "rotary_sin", angles);
	x = embed(&l);
	for (int64_t i = 0; i < p->layers; i++)
		x = block(&l, (int)i, feed_forward, x);
	loss(&l, x);
	return m;
}

struct model *model_llama(struct ap_arena *arena, const struct model_params *p)
{
	return llama_with(arena, p, dense);
}
