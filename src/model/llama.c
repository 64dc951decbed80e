/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "model/block.h"
#include "model/families.h"

#define TOP "Default/network-LlamaForCausalLM"
#define BACKBONE TOP "/model-LlamaModel"
#define LOSS TOP "/loss-CrossEntropyLoss"

struct llama {
	struct ap_model *m;
	const struct ap_model_params *p;
	struct ap_model_attention attention;
	ap_id cos, sin; /* [1,1,S,D] */
};

/* The feed-forward part of a block; scope and param are prefixes. x and the result: rows. */
typedef ap_id part_fn(const struct llama *l, const char *scope, const char *param, ap_id x);

static struct ap_shape rows_of(const struct llama *l)
{
	return AP_MODEL_SHAPE(l->p->dtype, l->p->batch * l->p->sequence, l->p->hidden);
}

static struct ap_shape tokens_of(const struct llama *l)
{
	return AP_MODEL_SHAPE(l->p->dtype, l->p->batch, l->p->sequence, l->p->hidden);
}

/* Query, key or value: [B,N,S,D]. */
static ap_id project(const struct llama *l, const char *scope, const char *param, const char *cell,
	ap_id x, int64_t heads, const char *name)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	int64_t size = l->attention.size;
	const char *linear = ap_arena_printf(ap_model_arena(m), "%s/%s-Linear", scope, cell);
	ap_id y = ap_model_linear(m, linear, ap_model_name(m, param, cell), x, heads * size, name);

	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence, heads, size),
		ap_model_name(m, name, "split"));
	return ap_model_swap_heads(m, scope, y, ap_model_name(m, name, "heads"));
}

/* x cos + (-b, a) sin, x being (a, b). */
static ap_id rotate(const struct llama *l, const char *attention, ap_id x, const char *name)
{
	struct ap_model *m = l->m;
	const char *scope = ap_model_scope(m, attention, "apply_rotary_emb-RotaryEmbedding");
	int64_t half = l->attention.size / 2;
	ap_id a, b, y;

	if (ap_model_is_fused(m))
		return ap_model_binary(m, scope, "Mul", x, l->cos, ap_model_name(m, name, "rotated"));
	a = ap_model_slice(m, scope, x, 3, 0, half, ap_model_name(m, name, "lower"));
	b = ap_model_slice(m, scope, x, 3, half, 2 * half, ap_model_name(m, name, "upper"));
	b = ap_model_unary(m, scope, "Neg", b, ap_model_name(m, name, "turned"));
	y = ap_model_concat(m, scope, b, a, 3, ap_model_name(m, name, "half_turned"));
	y = ap_model_binary(m, scope, "Mul", y, l->sin, ap_model_name(m, name, "sine"));
	x = ap_model_binary(m, scope, "Mul", x, l->cos, ap_model_name(m, name, "cosine"));
	return ap_model_binary(m, scope, "Add", x, y, ap_model_name(m, name, "rotated"));
}

/* Copies each head of keys or values for all queries that share it. */
static ap_id repeat_heads(const struct llama *l, const char *scope, ap_id x, const char *name)
{
	const struct ap_model_params *p = l->p;
	int64_t size = l->attention.size, copies = p->heads / p->kv_heads;

	if (copies == 1)
		return x;
	x = ap_model_reshape(l->m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch, p->kv_heads, 1,
		p->sequence * size), ap_model_name(l->m, name, "once"));
	x = ap_model_repeat(l->m, scope, x, 2, copies, ap_model_name(l->m, name, "copies"));
	return ap_model_reshape(l->m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch, p->heads, p->sequence,
		size), ap_model_name(l->m, name, "repeated"));
}

static ap_id attention(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	ap_id q = project(l, scope, param, "wq", x, p->heads, "query");
	ap_id k = project(l, scope, param, "wk", x, p->kv_heads, "key");
	ap_id v = project(l, scope, param, "wv", x, p->kv_heads, "value");
	ap_id y;

	q = rotate(l, scope, q, "query");
	k = rotate(l, scope, k, "key");
	if (p->flash) {
		y = ap_model_attend_fused(m, scope, &l->attention, q, k, v);
	} else {
		k = repeat_heads(l, scope, k, "key");
		v = repeat_heads(l, scope, v, "value");
		y = ap_model_attend(m, scope, &l->attention, q, k, v);
	}
	y = ap_model_swap_heads(m, scope, y, "context.split");
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch * p->sequence,
		p->heads * l->attention.size), "context.rows");
	return ap_model_linear(m, ap_model_scope(m, scope, "wo-Linear"), ap_model_name(m, param, "wo"), y,
		p->hidden, "attention");
}

/* w2 f(w1 x), or w2 (f(w1 x) * w3 x) */
static ap_id dense(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	static const struct { const char *type, *name; } functions[] = {
		[AP_MODEL_GELU] = {"GeLU", "gate.gelu"},
		[AP_MODEL_RELU] = {"ReLU", "gate.relu"}, [AP_MODEL_SQUARED_RELU] = {"ReLU", "gate.relu"},
		[AP_MODEL_SWIGLU] = {"SiLU", "gate.silu"}, [AP_MODEL_GEGLU] = {"GeLU", "gate.gelu"}};
	enum ap_model_activation a = l->p->activation;
	struct ap_model *m = l->m;
	const char *gate = ap_model_scope(m, scope, "w1-Linear");
	ap_id y = ap_model_linear(m, gate, ap_model_name(m, param, "w1"), x, l->p->inner, "gate");
	ap_id z = AP_NONE;

	if (ap_model_activation_gated(a))
		z = ap_model_linear(m, ap_model_scope(m, scope, "w3-Linear"),
			ap_model_name(m, param, "w3"), x, l->p->inner, "wide");
	if (z == AP_NONE || !ap_model_is_fused(m))
		y = ap_model_unary(m, gate, functions[a].type, y, functions[a].name);
	if (a == AP_MODEL_SQUARED_RELU)
		y = ap_model_unary(m, gate, "Square", y, "gate.square");
	if (z != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", z, y, "gated");
	return ap_model_linear(m, ap_model_scope(m, scope, "w2-Linear"), ap_model_name(m, param, "w2"), y,
		l->p->hidden, "narrow");
}

/* A part after its norm, with a residual connection around both. */
static ap_id residual(const struct llama *l, const char *scope, const char *param, const char *cell,
	const char *class, const char *norm, part_fn *part, ap_id x, const char *name)
{
	struct ap_model *m = l->m;
	struct ap_arena *arena = ap_model_arena(m);
	ap_id y = ap_model_rms_norm(m, ap_arena_printf(arena, "%s/%s-LlamaRMSNorm", scope, norm),
		ap_model_name(m, param, norm), x, norm);

	y = ap_model_reshape(m, scope, y, rows_of(l), ap_model_name(m, norm, "rows"));
	y = part(l, ap_arena_printf(arena, "%s/%s-%s", scope, cell, class),
		ap_model_name(m, param, cell), y);
	y = ap_model_reshape(m, scope, y, tokens_of(l), ap_model_name(m, cell, "tokens"));
	return ap_model_binary(m, scope, "Add", x, y, name);
}

static ap_id block(const struct llama *l, int number, part_fn *feed_forward, ap_id x)
{
	struct ap_arena *arena = ap_model_arena(l->m);
	const char *scope = ap_arena_printf(arena,
		BACKBONE "/layers-CellList/%d-LLamaDecodeLayer", number);
	const char *param = ap_arena_printf(arena, "model.layers.%d", number);

	ap_model_prefix(l->m, ap_arena_printf(arena, "layers.%d.", number));
	x = residual(l, scope, param, "attention", "LLamaAttention", "attention_norm", attention, x,
		"middle");
	x = residual(l, scope, param, "feed_forward", feed_forward == dense ? "LlamaFeedForward" :
		"MoE", "ffn_norm", feed_forward, x, "out");
	ap_model_prefix(l->m, "");
	return x;
}

static ap_id embed(const struct llama *l)
{
	const struct ap_model_params *p = l->p;
	ap_id ids = ap_model_input(l->m, "input_ids", AP_MODEL_SHAPE(AP_INT32, p->batch, p->sequence));
	ap_id table = ap_model_param(l->m, "model.tok_embeddings.embedding_weight",
		AP_MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));

	return ap_model_gather(l->m, BACKBONE "/tok_embeddings-LlamaEmbedding", table, ids,
		"embedding");
}

static void loss(const struct llama *l, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	ap_id labels = ap_model_input(m, "labels", AP_MODEL_SHAPE(AP_INT32, p->batch, p->sequence));

	labels = ap_model_reshape(m, LOSS, labels, AP_MODEL_SHAPE(AP_INT32, p->batch * p->sequence),
		"labels.rows");
	x = ap_model_rms_norm(m, BACKBONE "/norm_out-LlamaRMSNorm", "model.norm_out", x, "norm");
	x = ap_model_reshape(m, BACKBONE, x, rows_of(l), "norm.rows");
	x = ap_model_linear(m, TOP "/lm_head-Linear", "lm_head", x, p->vocabulary, "logits");
	x = ap_model_cross_entropy(m, LOSS, x, labels);
	ap_model_reduce(m, LOSS, "ReduceMean", x, 1, false, "loss");
}

static struct ap_model *make(struct ap_arena *arena, const struct ap_model_params *p,
	part_fn *feed_forward)
{
	struct ap_model *m = ap_model_create(arena, p->name, "adam_weight_decay");
	struct llama l = {.m = m, .p = p, .attention = {.heads = p->heads,
		.size = p->head_size ? p->head_size : p->hidden / p->heads, .causal = true}};
	struct ap_shape angles = AP_MODEL_SHAPE(p->dtype, 1, 1, p->sequence, l.attention.size);
	ap_id x;

	assert(p->heads % p->kv_heads == 0 && l.attention.size % 2 == 0);
	if (p->fused)
		ap_model_fuse(m);
	ap_model_attention_constants(m, &l.attention, p->flash, p->sequence, p->dtype);
	l.cos = ap_model_const(m, "rotary_cos", angles);
	if (!p->fused)
		l.sin = ap_model_const(m, "rotary_sin", angles);
	x = embed(&l);
	for (int64_t i = 0; i < p->layers; i++)
		x = block(&l, (int)i, feed_forward, x);
	loss(&l, x);
	return m;
}

struct ap_model *ap_model_llama(struct ap_arena *arena, const struct ap_model_params *p)
{
	return make(arena, p, dense);
}

/* ---- experts ---- */

/* Mixture of experts at network level: a mask assigns tokens to places of experts, one product distributes
 * tokens by it, another one collects the results. */

/* Number of places of an expert per sample. */
static int64_t room(const struct ap_model_params *p)
{
	return (int64_t)ceil(p->capacity * (double)(p->active * p->sequence) / (double)p->experts);
}

struct routing {
	ap_id mask; /* [B,S,E] one if the token goes to the expert, else zero */
	ap_id gates; /* [B,S,E] weight of the expert's result */
};

/* Each token's best experts and their probabilities, rescaled to sum to one. */
static ap_id choose(const struct llama *l, const char *scope, ap_id probs, ap_id *weights)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	struct ap_shape best = AP_MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence, p->active);
	struct ap_shape which = best;
	struct ap_model_op topk = {.scope = scope, .type = "TopK", .nin = 1, .in = {probs}, .nout = 2,
		.out = {{"best", best}}, .nattr = 2,
		.attr = {AP_MODEL_INT("k", p->active), AP_MODEL_FLAG("sorted", true)}};
	ap_id id, sum;

	which.dtype = AP_INT32;
	topk.out[1].name = "experts";
	topk.out[1].shape = which;
	id = ap_model_op(m, &topk);
	sum = ap_model_reduce(m, scope, "ReduceSum", id, 1, true, "best.sum");
	*weights = ap_model_binary(m, scope, "Div", id, sum, "weights");
	return id + 1;
}

/* What choose() returns of rows. */
static ap_id rate(const struct llama *l, const char *scope, const char *param, ap_id x, ap_id *weights)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;

	x = ap_model_cast(m, scope, x, AP_FLOAT32, "router.in");
	x = ap_model_linear(m, ap_model_scope(m, scope, "dense-Dense"), ap_model_name(m, param, "dense"), x,
		p->experts, "router.rows");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence, p->experts),
		"router");
	x = ap_model_softmax(m, scope, x, "router.probs");
	return choose(l, scope, x, weights);
}

static struct routing route(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	struct routing r;
	ap_id weights, hot;

	x = rate(l, scope, param, x, &weights);
	hot = ap_model_one_hot(m, scope, x, p->experts, AP_FLOAT32, "chosen");
	r.mask = ap_model_reduce_axis(m, scope, "ReduceSum", hot, 2, false, "mask");
	weights = ap_model_reshape(m, scope, weights, AP_MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence,
		p->active, 1), "weights.column");
	x = ap_model_binary(m, scope, "Mul", hot, weights, "weights.chosen");
	r.gates = ap_model_reduce_axis(m, scope, "ReduceSum", x, 2, false, "gates");
	return r;
}

/* The place a token takes at its experts: [B,S,E,C]. A token without a place goes to no expert. */
static ap_id seat(const struct llama *l, const char *scope, ap_id mask)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	struct ap_model_op before = {.scope = scope, .type = "CumSum", .nin = 1, .in = {mask},
		.nattr = 2, .attr = {AP_MODEL_INT("axis", 1), AP_MODEL_FLAG("exclusive", true)}};
	ap_id place = ap_model_op_one(m, before, "before", ap_model_shape(m, mask));
	ap_id fits = ap_model_less(m, scope, place, ap_model_number(m, "expert_room", AP_FLOAT32), "fits");
	ap_id kept = ap_model_cast(m, scope, fits, AP_FLOAT32, "fits.float32");

	kept = ap_model_binary(m, scope, "Mul", mask, kept, "kept");
	place = ap_model_binary(m, scope, "Mul", place, kept, "place");
	place = ap_model_cast(m, scope, place, AP_INT32, "place.int32");
	place = ap_model_one_hot(m, scope, place, room(p), p->dtype, "places");
	kept = ap_model_cast(m, scope, kept, p->dtype, "kept.cast");
	kept = ap_model_reshape(m, scope, kept, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence,
		p->experts, 1), "kept.column");
	return ap_model_binary(m, scope, "Mul", place, kept, "dispatch");
}

/* A product per expert, whose weight all samples share: [B,E,C,K] by [E,K,N]. */
static ap_id expert_product(const struct llama *l, const char *scope, const char *param,
	const char *cell, ap_id x, int64_t out, const char *name)
{
	struct ap_model *m = l->m;
	struct ap_shape s = ap_model_shape(m, x);
	ap_id w = ap_model_param(m, ap_model_name(m, ap_model_name(m, param, cell), "weight"),
		AP_MODEL_SHAPE(s.dtype, s.dim[1], s.dim[3], out));

	return ap_model_matmul(m, ap_model_scope(m, scope, ap_arena_printf(ap_model_arena(m), "%s-Linear",
		cell)), x, w, false, name);
}

/* SwiGLU of each expert on the tokens in its places: [B,E*C,H]. */
static ap_id experts(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	int64_t b = p->batch, e = p->experts, c = room(p), h = p->hidden;
	ap_id y, z;

	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(p->dtype, b, e, c, h), "places.tokens");
	y = expert_product(l, scope, param, "w1", x, p->inner, "gate");
	z = expert_product(l, scope, param, "w3", x, p->inner, "wide");
	if (!ap_model_is_fused(m))
		y = ap_model_unary(m, ap_model_scope(m, scope, "w1-Linear"), "SiLU", y, "gate.silu");
	y = ap_model_binary(m, scope, "Mul", z, y, "gated");
	y = expert_product(l, scope, param, "w2", y, h, "narrow");
	return ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, b, e * c, h), "answers");
}

/* Tokens are moved to their experts and back, without products: as many copies as a token has experts. */
static ap_id moved(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	ap_id weights, y;

	rate(l, router, ap_model_name(m, param, "router"), x, &weights);
	weights = ap_model_cast(m, router, weights, p->dtype, "weights.cast");
	weights = ap_model_reshape(m, router, weights, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence,
		p->active, 1), "weights.column");
	y = ap_model_reshape(m, scope, x, tokens_of(l), "tokens");
	y = ap_model_repeat(m, scope, y, 1, p->active, "dealt");
	y = experts(l, ap_model_scope(m, scope, "ffn-MoEFeedForward"), ap_model_name(m, param, "ffn"), y);
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->active,
		p->hidden), "collected.answers");
	y = ap_model_binary(m, scope, "Mul", y, weights, "collected.weighted");
	y = ap_model_reduce_axis(m, scope, "ReduceSum", y, 2, false, "collected");
	return ap_model_reshape(m, scope, y, rows_of(l), "collected.rows");
}

static ap_id mixture(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_model_params *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	struct ap_shape flat = AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->experts * room(p));
	struct routing r = route(l, router, ap_model_name(m, param, "router"), x);
	ap_id dispatch = seat(l, router, r.mask), combine, y;

	r.gates = ap_model_cast(m, scope, r.gates, p->dtype, "gates.cast");
	r.gates = ap_model_reshape(m, scope, r.gates, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence,
		p->experts, 1), "gates.column");
	combine = ap_model_binary(m, scope, "Mul", dispatch, r.gates, "combine");
	dispatch = ap_model_reshape(m, scope, dispatch, flat, "dispatch.flat");
	combine = ap_model_reshape(m, scope, combine, flat, "combine.flat");
	y = ap_model_reshape(m, scope, x, tokens_of(l), "tokens");
	y = ap_model_matmul_tn(m, scope, dispatch, y, "dealt");
	y = experts(l, ap_model_scope(m, scope, "ffn-MoEFeedForward"), ap_model_name(m, param, "ffn"), y);
	y = ap_model_matmul(m, scope, combine, y, false, "collected");
	return ap_model_reshape(m, scope, y, rows_of(l), "collected.rows");
}

struct ap_model *ap_model_mixtral(struct ap_arena *arena, const struct ap_model_params *p)
{
	bool even = room(p) * p->experts == p->active * p->sequence;

	return make(arena, p, p->fused && even ? moved : mixture);
}
