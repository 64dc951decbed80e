/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder.h"

#include <assert.h>

#include "base/arena.h"
#include "model/block.h"
#include "model/cells.h"

struct decoder {
	struct ap_model *m;
	const struct ap_decoder *p;
	const struct ap_decoder_names *names;
	struct ap_model_attention attention;
	const char *body; /* scope */
	const char *top; /* scope */
	ap_id table, head, head_bias; /* of words; of what predicts them, once they are made */
	ap_id cos, sin; /* [1,1,S,turned] */
	int64_t turned; /* units of a head that positions turn */
	int64_t layer; /* in work */
};

/* The feed-forward part of a block; scope and param are prefixes. x and the result: rows. */
typedef ap_id part_fn(const struct decoder *l, const char *scope, const char *param, ap_id x);

static struct ap_shape rows_of(const struct decoder *l)
{
	return AP_MODEL_SHAPE(l->p->dtype, l->p->batch * l->p->sequence, l->p->hidden);
}

static struct ap_shape tokens_of(const struct decoder *l)
{
	return AP_MODEL_SHAPE(l->p->dtype, l->p->batch, l->p->sequence, l->p->hidden);
}

/* x W^T + b of cell "CELL-Linear"; input_major: W is [in,out]. */
static ap_id product(const struct decoder *l, const char *scope, const char *param, const char *cell, ap_id x,
	int64_t out, bool bias, bool input_major, const char *name)
{
	struct ap_model *m = l->m;
	struct ap_shape s = ap_model_shape(m, x);
	int64_t in = s.dim[s.rank - 1];
	const char *place = ap_arena_printf(ap_model_arena(m), "%s/%s-Linear", scope, cell);
	const char *prefix = ap_model_name(m, param, cell);
	ap_id w = ap_model_param(m, ap_model_name(m, prefix, "weight"), input_major
		? AP_MODEL_SHAPE(s.dtype, in, out) : AP_MODEL_SHAPE(s.dtype, out, in));
	ap_id y = ap_model_matmul(m, place, x, w, !input_major, bias ? ap_model_name(m, name, "product")
		: name);

	if (!bias)
		return y;
	w = ap_model_param(m, ap_model_name(m, prefix, "bias"), AP_MODEL_SHAPE(s.dtype, out));
	return ap_model_binary(m, place, "BiasAdd", y, w, name);
}

static ap_id linear(const struct decoder *l, const char *scope, const char *param, const char *cell, ap_id x,
	int64_t out, bool bias, const char *name)
{
	return product(l, scope, param, cell, x, out, bias, l->p->input_major, name);
}

/* The norm of cell "CELL-CLASS" over the last dimension. */
static ap_id norm(const struct decoder *l, const char *scope, const char *param, ap_id x, const char *name)
{
	struct ap_model *m = l->m;
	struct ap_shape s = ap_model_shape(m, x), one = AP_MODEL_SHAPE(s.dtype, s.dim[s.rank - 1]), rest = s;
	bool plain = l->p->norm == AP_NORM_LAYER_PLAIN;
	ap_id gamma, beta;

	if (l->p->norm == AP_NORM_RMS_WIDE)
		return ap_model_rms_norm(m, scope, param, x, name);
	gamma = ap_model_param(m, ap_model_name(m, param, l->names->norm_weight ? l->names->norm_weight
		: "weight"), one);
	if (l->p->norm == AP_NORM_RMS) {
		struct ap_model_op op = {.scope = scope, .type = "RmsNorm", .nin = 2, .in = {x, gamma},
			.nout = 2, .out = {{.name = name, .shape = s},
			{.name = ap_model_name(m, name, "rstd")}},
			.nattr = 1, .attr = {AP_MODEL_REAL("epsilon", 1e-5)}};

		rest.dim[rest.rank - 1] = 1;
		rest.dtype = AP_FLOAT32;
		op.out[1].shape = rest;
		return ap_model_op(m, &op);
	}
	beta = plain ? ap_model_const(m, ap_model_name(m, param, "zero"), one)
		: ap_model_param(m, ap_model_name(m, param, l->names->norm_bias ? l->names->norm_bias
			: "bias"), one);
	return ap_model_op_one(m, (struct ap_model_op){.scope = scope, .type = "LayerNorm", .nin = 3,
		.in = {x, gamma, beta}, .nattr = 3, .attr = {AP_MODEL_INT("begin_norm_axis", -1),
			AP_MODEL_INT("begin_params_axis", -1), AP_MODEL_REAL("epsilon", 1e-5)}}, name, s);
}

/* The same, of cell and parameter of one name. */
static ap_id norm_of(const struct decoder *l, const char *scope, const char *param, const char *cell, ap_id x,
	const char *name)
{
	return norm(l, ap_arena_printf(ap_model_arena(l->m), "%s/%s-%s", scope, cell, l->names->norm_class),
		ap_model_name(l->m, param, cell), x, name);
}

/* ---- attention ---- */

/* Rows of heads of `size` units as [B,N,S,D]. */
static ap_id split(const struct decoder *l, const char *scope, ap_id y, int64_t heads, int64_t size,
	const char *name)
{
	const struct ap_decoder *p = l->p;

	y = ap_model_reshape(l->m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence, heads, size),
		ap_model_name(l->m, name, "split"));
	return ap_model_swap_heads(l->m, scope, y, ap_model_name(l->m, name, "heads"));
}

/* Query, key or value: [B,N,S,D]. */
static ap_id project(const struct decoder *l, const char *scope, const char *param, const char *cell,
	ap_id x, int64_t heads, const char *name)
{
	return split(l, scope, product(l, scope, param, cell, x, heads * l->attention.size, l->p->qkv_bias,
		l->p->input_major != l->p->turned_qkv, name), heads, l->attention.size, name);
}

/* All three from one product, whose rows are ordered by groups: the queries, their key, their value. */
static void project_all(const struct decoder *l, const char *scope, const char *param, ap_id x,
	ap_id *q, ap_id *k, ap_id *v)
{
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	int64_t size = l->attention.size, each = p->heads / p->kv_heads;
	ap_id y = linear(l, scope, param, l->names->qkv, x, (p->heads + 2 * p->kv_heads) * size,
		p->qkv_bias, "qkv");

	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->kv_heads,
		each + 2, size), "qkv.groups");
	*q = ap_model_slice(m, scope, y, 3, 0, each, "query");
	*k = ap_model_slice(m, scope, y, 3, each, each + 1, "key");
	*v = ap_model_slice(m, scope, y, 3, each + 1, each + 2, "value");
	*q = split(l, scope, *q, p->heads, size, "query");
	*k = split(l, scope, *k, p->kv_heads, size, "key");
	*v = split(l, scope, *v, p->kv_heads, size, "value");
}

/* x cos + (-b, a) sin, x being (a, b). */
static ap_id rotate(const struct decoder *l, const char *attention, ap_id x, const char *name)
{
	struct ap_model *m = l->m;
	const char *scope = ap_model_scope(m, attention, "apply_rotary_emb-RotaryEmbedding");
	int64_t half = l->turned / 2;
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

/* The last units of a head turned, those before them as they are. */
static ap_id rotate_end(const struct decoder *l, const char *scope, ap_id x, const char *name)
{
	int64_t plain = l->attention.size - l->turned;
	ap_id end = ap_model_slice(l->m, scope, x, 3, plain, l->attention.size,
		ap_model_name(l->m, name, "end"));

	end = rotate(l, scope, end, ap_model_name(l->m, name, "end"));
	x = ap_model_slice(l->m, scope, x, 3, 0, plain, ap_model_name(l->m, name, "begin"));
	return ap_model_concat(l->m, scope, x, end, 3, ap_model_name(l->m, name, "joined"));
}

/* Keys and values come from one compressed row per token, but for the units of keys that are turned, which
 * all heads share; queries may come from a compressed row, too. */
static void project_latent(const struct decoder *l, const char *scope, const char *param, ap_id x, ap_id *q,
	ap_id *k, ap_id *v)
{
	const struct ap_decoder_names *n = l->names;
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	int64_t rank = p->latent.key, size = p->head_size, plain = size - l->turned;
	ap_id y = x, end;

	if (p->latent.query) {
		y = linear(l, scope, param, n->query_down, x, p->latent.query, false, "query.low");
		y = norm_of(l, scope, param, n->query_low_norm, y, "query.low.norm");
	}
	y = linear(l, scope, param, p->latent.query ? n->query_up : n->query, y, p->heads * size, false,
		"query");
	y = split(l, scope, y, p->heads, size, "query");
	*q = rotate_end(l, scope, y, "query");

	x = linear(l, scope, param, n->key_down, x, rank + l->turned, false, "key.low");
	y = ap_model_slice(m, scope, x, 1, 0, rank, "key.low.begin");
	y = norm_of(l, scope, param, n->key_low_norm, y, "key.low.norm");
	y = linear(l, scope, param, n->key_up, y, p->heads * (plain + p->value_size), false, "key.value");
	y = split(l, scope, y, p->heads, plain + p->value_size, "key.value");
	*v = ap_model_slice(m, scope, y, 3, plain, plain + p->value_size, "value");
	y = ap_model_slice(m, scope, y, 3, 0, plain, "key.begin");
	end = ap_model_slice(m, scope, x, 1, rank, rank + l->turned, "key.low.end");
	end = rotate(l, scope, split(l, scope, end, 1, l->turned, "key.end"), "key.end");
	end = ap_model_repeat(m, scope, end, 1, p->heads, "key.end.copies");
	*k = ap_model_concat(m, scope, y, end, 3, "key.joined");
}

/* Copies each head of keys or values for all queries that share it. */
static ap_id repeat_heads(const struct decoder *l, const char *scope, ap_id x, const char *name)
{
	const struct ap_decoder *p = l->p;
	int64_t size = l->attention.size, copies = p->heads / p->kv_heads;

	if (copies == 1)
		return x;
	x = ap_model_reshape(l->m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch, p->kv_heads, 1,
		p->sequence * size), ap_model_name(l->m, name, "once"));
	x = ap_model_repeat(l->m, scope, x, 2, copies, ap_model_name(l->m, name, "copies"));
	return ap_model_reshape(l->m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch, p->heads, p->sequence,
		size), ap_model_name(l->m, name, "repeated"));
}

static int64_t value_size(const struct ap_decoder *p)
{
	return p->value_size ? p->value_size : p->head_size;
}

static ap_id attend(const struct decoder *l, const char *scope, const char *param, ap_id q, ap_id k, ap_id v)
{
	struct ap_model_attention a = l->attention;

	if (l->names->sinks) {
		a.sunk = true;
		a.sinks = ap_model_param(l->m, ap_model_name(l->m, param, l->names->sinks),
			AP_MODEL_SHAPE(l->p->dtype, l->p->heads));
	}
	a.window = l->p->window && l->layer < l->p->layers ? l->p->window[l->layer] : 0;
	if (l->p->flash)
		return ap_model_attend_fused(l->m, scope, &a, q, k, v);
	k = repeat_heads(l, scope, k, "key");
	v = repeat_heads(l, scope, v, "value");
	return ap_model_attend(l->m, scope, &a, q, k, v);
}

static ap_id attention(const struct decoder *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_decoder_names *n = l->names;
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	ap_id q, k, v, y;

	if (p->latent.key) {
		project_latent(l, scope, param, x, &q, &k, &v);
	} else if (p->fused_qkv) {
		project_all(l, scope, param, x, &q, &k, &v);
	} else {
		q = project(l, scope, param, n->query, x, p->heads, "query");
		k = project(l, scope, param, n->key, x, p->kv_heads, "key");
		v = project(l, scope, param, n->value, x, p->kv_heads, "value");
	}
	if (n->query_norm) {
		q = norm_of(l, scope, param, n->query_norm, q, "query.norm");
		k = norm_of(l, scope, param, n->key_norm, k, "key.norm");
	}
	if (p->rotary && !p->latent.key) {
		q = rotate(l, scope, q, "query");
		k = rotate(l, scope, k, "key");
	}
	y = attend(l, scope, param, q, k, v);
	y = ap_model_swap_heads(m, scope, y, "context.split");
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(p->dtype, p->batch * p->sequence,
		p->heads * value_size(p)), "context.rows");
	return linear(l, scope, param, n->output, y, p->hidden, p->output_bias, "attention");
}

/* ---- feed-forward ---- */

/* down f(up x), or down (f(gate x) * up x) */
static ap_id dense(const struct decoder *l, const char *scope, const char *param, ap_id x)
{
	static const struct { const char *type, *name; } functions[] = {
		[AP_MODEL_GELU] = {"GeLU", "gate.gelu"},
		[AP_MODEL_RELU] = {"ReLU", "gate.relu"}, [AP_MODEL_SQUARED_RELU] = {"ReLU", "gate.relu"},
		[AP_MODEL_SWIGLU] = {"SiLU", "gate.silu"}, [AP_MODEL_GEGLU] = {"GeLU", "gate.gelu"}};
	const struct ap_decoder_names *n = l->names;
	const struct ap_decoder *p = l->p;
	enum ap_model_activation a = p->activation;
	struct ap_model *m = l->m;
	bool gated = ap_model_activation_gated(a);
	const char *cell = gated || !n->up ? n->gate : n->up;
	const char *gate = ap_arena_printf(ap_model_arena(m), "%s/%s-Linear", scope, cell);
	ap_id z = AP_NONE, y;

	if (gated && p->fused_gate) {
		struct ap_shape pair = AP_MODEL_SHAPE(p->dtype, p->batch * p->sequence, p->inner, 2);
		struct ap_shape one = AP_MODEL_SHAPE(p->dtype, p->batch * p->sequence, p->inner);

		y = linear(l, scope, param, n->gate, x, 2 * p->inner, p->inner_bias, "pair");
		y = ap_model_reshape(m, scope, y, pair, "pair.split");
		z = ap_model_slice(m, scope, y, 2, 1, 2, "wide.part");
		z = ap_model_reshape(m, scope, z, one, "wide");
		y = ap_model_slice(m, scope, y, 2, 0, 1, "gate.part");
		y = ap_model_reshape(m, scope, y, one, "gate");
	} else {
		y = linear(l, scope, param, cell, x, p->inner, p->inner_bias, "gate");
		if (gated)
			z = linear(l, scope, param, n->up, x, p->inner, p->inner_bias, "wide");
	}
	if (z == AP_NONE || !ap_model_is_fused(m))
		y = ap_model_unary(m, gate, functions[a].type, y, functions[a].name);
	if (a == AP_MODEL_SQUARED_RELU)
		y = ap_model_unary(m, gate, "Square", y, "gate.square");
	if (z != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", z, y, "gated");
	return linear(l, scope, param, n->down, y, p->hidden, p->inner_bias, "narrow");
}

/* ---- blocks ---- */

static bool has_experts(const struct decoder *l)
{
	return l->p->experts.count && (!l->p->sparse || l->layer >= l->p->layers || l->p->sparse[l->layer]);
}

static ap_id experts(const struct decoder *l, const char *scope, const char *param, ap_id x)
{
	return ap_model_experts(l->m, &l->p->experts, scope, param, x, tokens_of(l));
}

/* The norm before a part, as rows. */
static ap_id normed(const struct decoder *l, const char *scope, const char *param, const char *cell, ap_id x)
{
	struct ap_model *m = l->m;
	ap_id y = norm_of(l, scope, param, cell, x, cell);

	return ap_model_reshape(m, scope, y, rows_of(l), ap_model_name(m, cell, "rows"));
}

/* A part of a block on rows, as tokens. */
static ap_id apply(const struct decoder *l, const char *scope, const char *param, const char *cell,
	const char *class, part_fn *part, ap_id y)
{
	struct ap_model *m = l->m;

	if (*cell)
		param = ap_model_name(m, param, cell);
	else
		cell = "mlp";
	y = part(l, ap_arena_printf(ap_model_arena(m), "%s/%s-%s", scope, cell, class), param, y);
	return ap_model_reshape(m, scope, y, tokens_of(l), ap_model_name(m, cell, "tokens"));
}

/* The norm behind a part, if there is one. */
static ap_id post_normed(const struct decoder *l, const char *scope, const char *param, const char *cell,
	ap_id y)
{
	return cell ? norm_of(l, scope, param, cell, y, cell) : y;
}

/* Block l->layer; scope and param are prefixes. */
static ap_id block(const struct decoder *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_decoder_names *n = l->names;
	struct ap_model *m = l->m;
	struct ap_arena *arena = ap_model_arena(m);
	int number = (int)l->layer;
	const char *part = has_experts(l) ? n->experts_part : n->feed_forward;
	const char *class = has_experts(l) ? "MoE" : n->feed_forward_class;
	part_fn *feed_forward = has_experts(l) ? experts : dense;
	ap_id rows, y;

	ap_model_prefix(m, ap_arena_printf(arena, "layers.%d.", number));
	rows = normed(l, scope, param, n->norm1, x);
	y = apply(l, scope, param, n->attention, n->attention_class, attention, rows);
	y = post_normed(l, scope, param, n->post1, y);
	y = ap_model_binary(m, scope, "Add", x, y, "middle");
	if (n->norm2)
		rows = normed(l, scope, param, n->norm2, l->p->parallel ? x : y);
	x = apply(l, scope, param, part, class, feed_forward, rows);
	x = post_normed(l, scope, param, n->post2, x);
	x = ap_model_binary(m, scope, "Add", y, x, "out");
	ap_model_prefix(m, "");
	return x;
}

/* ---- the whole ---- */

static ap_id embed(struct decoder *l)
{
	const struct ap_decoder_names *n = l->names;
	const struct ap_decoder *p = l->p;
	struct ap_shape tokens = AP_MODEL_SHAPE(AP_INT32, p->batch, p->sequence);
	struct ap_model *m = l->m;
	ap_id ids = ap_model_input(m, "input_ids", tokens), x, y;

	l->table = ap_model_param(m, n->embedding, AP_MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));
	x = ap_model_gather(m, ap_model_scope(m, l->body, n->embedding_cell), l->table, ids, "embedding");
	if (p->positions) {
		ids = ap_model_input(m, "position_ids", tokens);
		y = ap_model_param(m, n->positions, AP_MODEL_SHAPE(p->dtype, p->positions, p->hidden));
		y = ap_model_gather(m, ap_model_scope(m, l->body, "positions-Embedding"), y, ids,
			"embedding.positions");
		x = ap_model_binary(m, l->body, "Add", x, y, "embedding.sum");
	}
	if (n->embedding_norm)
		x = norm(l, ap_model_scope(m, l->body, "embedding_norm-Norm"), n->embedding_norm, x,
			"embedding.norm");
	return x;
}

/* Logits of rows; the head's parameters are made once. */
static ap_id predict(struct decoder *l, ap_id x)
{
	const struct ap_decoder_names *n = l->names;
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	const char *scope = ap_model_scope(m, l->top, "lm_head-Linear");

	if (l->head == AP_NONE)
		l->head = p->tied ? l->table : ap_model_param(m, ap_model_name(m, n->head, "weight"),
			AP_MODEL_SHAPE(p->dtype, p->vocabulary, p->hidden));
	x = ap_model_matmul(m, scope, x, l->head, true, p->head_bias ? "logits.product" : "logits");
	if (!p->head_bias)
		return x;
	if (l->head_bias == AP_NONE)
		l->head_bias = ap_model_param(m, ap_model_name(m, n->head, "bias"),
			AP_MODEL_SHAPE(p->dtype, p->vocabulary));
	return ap_model_binary(m, scope, "BiasAdd", x, l->head_bias, "logits");
}

/* Of the state x of all tokens, normalised by cell and param; the labels are an input of this name. */
static ap_id loss(struct decoder *l, const char *cell, const char *param, ap_id x, const char *labels_are)
{
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	const char *scope = ap_model_scope(m, l->top, "loss-CrossEntropyLoss");
	ap_id labels = ap_model_input(m, labels_are, AP_MODEL_SHAPE(AP_INT32, p->batch, p->sequence));

	labels = ap_model_reshape(m, scope, labels, AP_MODEL_SHAPE(AP_INT32, p->batch * p->sequence),
		"labels.rows");
	x = norm(l, ap_arena_printf(ap_model_arena(m), "%s/%s-%s", l->body, cell, l->names->norm_class),
		param, x, "norm");
	x = ap_model_reshape(m, l->body, x, rows_of(l), "norm.rows");
	return ap_model_mean_loss(m, scope, p->loss, predict(l, x), labels);
}

/* Layer j behind the blocks: from the state x of the layer before it and the words behind those that it read.
 * Adds its loss to *sum; returns its state. */
static ap_id look_further(struct decoder *l, int64_t j, ap_id x, ap_id *sum)
{
	const struct ap_decoder_further_names *n = &l->names->further;
	const struct ap_decoder *p = l->p;
	struct ap_model *m = l->m;
	struct ap_arena *arena = ap_model_arena(m);
	int number = (int)j, at = number + (int)p->layers;
	const char *prefix = ap_arena_printf(arena, "mtp.%d.", number), *weighted;
	const char *scope = ap_arena_printf(arena, "%s/mtp-CellList/%d-MTPLayer", l->body, number);
	const char *param = ap_arena_printf(arena, "%s.%d", n->layers, n->counted_on ? at : number);
	const char *inner = !n->block ? ap_arena_printf(arena, "%s.%d", l->names->blocks, at)
		: *n->block ? ap_model_name(m, param, n->block) : param;
	const char *last = n->norms ? ap_arena_printf(arena, "%s.%d", n->norms, number)
		: ap_model_name(m, param, n->norm);
	ap_id y = ap_model_input(m, ap_arena_printf(arena, "%sinput_ids", prefix), AP_MODEL_SHAPE(AP_INT32,
		p->batch, p->sequence));

	l->layer = at;
	ap_model_prefix(m, prefix);
	y = ap_model_gather(m, ap_model_scope(m, scope, l->names->embedding_cell), l->table, y, "embedding");
	y = norm_of(l, scope, param, n->words, y, "words");
	x = norm_of(l, scope, param, n->state, x, "state");
	x = ap_model_concat(m, scope, y, x, 2, "joined");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch * p->sequence, 2 * p->hidden),
		"joined.rows");
	x = linear(l, scope, param, n->join, x, p->hidden, false, "narrow");
	x = ap_model_reshape(m, scope, x, tokens_of(l), "tokens");
	x = block(l, ap_arena_printf(arena, "%s/layer-%s", scope, l->names->block_class), inner, x);
	ap_model_prefix(m, prefix);
	y = loss(l, ap_arena_printf(arena, "mtp-CellList/%d-MTPLayer/norm", number), last, x,
		ap_arena_printf(arena, "%slabels", prefix));
	y = ap_model_binary(m, l->top, "Mul", y, ap_model_number(m, "mtp_scale", AP_FLOAT32),
		"loss.weighted");
	ap_model_prefix(m, "");
	weighted = number + 1 == p->further ? "loss" : ap_arena_printf(arena, "loss.%d", number);
	*sum = ap_model_binary(m, l->top, "Add", *sum, y, weighted);
	return x;
}

struct ap_model *ap_model_decoder(struct ap_arena *arena, const struct ap_decoder *d)
{
	struct ap_model *m = ap_model_create(arena, d->name, "adam_weight_decay");
	struct decoder l = {.m = m, .p = d, .names = d->names,
		.attention = {.heads = d->heads, .size = d->head_size, .causal = true},
		.top = ap_arena_printf(arena, "Default/network-%s", d->names->top), .head = AP_NONE,
		.head_bias = AP_NONE};
	struct ap_shape angles;
	const struct ap_decoder_names *n = d->names;
	ap_id x, sum;

	l.turned = d->latent.key ? d->latent.turned : d->head_size;
	angles = AP_MODEL_SHAPE(d->dtype, 1, 1, d->sequence, l.turned);
	assert(d->heads % d->kv_heads == 0 && (l.turned % 2 == 0 || !d->rotary));
	l.body = ap_model_scope(m, l.top, n->body);
	if (d->fused)
		ap_model_fuse(m);
	ap_model_attention_constants(m, &l.attention, d->flash, d->sequence, d->dtype);
	if (d->rotary) {
		l.cos = ap_model_const(m, "rotary_cos", angles);
		if (!d->fused)
			l.sin = ap_model_const(m, "rotary_sin", angles);
	}
	x = embed(&l);
	for (l.layer = 0; l.layer < d->layers; l.layer++)
		x = block(&l, ap_arena_printf(arena, "%s/%s-CellList/%d-%s", l.body, n->blocks_cell,
			(int)l.layer, n->block_class),
			ap_arena_printf(arena, "%s.%d", n->blocks, (int)l.layer), x);
	ap_model_prefix(m, d->further ? "main." : "");
	sum = loss(&l, n->final_cell, n->final_norm, x, "labels");
	ap_model_prefix(m, "");
	for (int64_t j = 0; j < d->further; j++)
		x = look_further(&l, j, x, &sum);
	return m;
}
