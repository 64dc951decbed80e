/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture of experts at network level: a mask assigns tokens to places of experts, one product
 * distributes tokens by it, another one collects the results. */
#include <math.h>

#include "base/arena.h"
#include "tools/model_llama.h"

/* Number of places of an expert per sample. */
static int64_t room(const struct model_params *p)
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
	const struct model_params *p = l->p;
	struct model *m = l->m;
	struct ap_shape best = MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence, p->active);
	struct ap_shape which = best;
	struct model_op topk = {.scope = scope, .type = "TopK", .nin = 1, .in = {probs}, .nout = 2,
		.out = {{"best", best}}, .nattr = 2,
		.attr = {MODEL_INT("k", p->active), MODEL_FLAG("sorted", true)}};
	ap_id id, sum;

	which.dtype = AP_INT32;
	topk.out[1].name = "experts";
	topk.out[1].shape = which;
	id = model_op(m, &topk);
	sum = model_reduce(m, scope, "ReduceSum", id, 1, true, "best.sum");
	*weights = model_binary(m, scope, "Div", id, sum, "weights");
	return id + 1;
}

/* What choose() returns of rows. */
static ap_id rate(const struct llama *l, const char *scope, const char *param, ap_id x, ap_id *weights)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;

	x = model_cast(m, scope, x, AP_FLOAT32, "router.in");
	x = model_linear(m, model_scope(m, scope, "dense-Dense"), model_name(m, param, "dense"), x,
		p->experts, "router.rows");
	x = model_reshape(m, scope, x, MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence, p->experts),
		"router");
	x = model_softmax(m, scope, x, "router.probs");
	return choose(l, scope, x, weights);
}

static struct routing route(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	struct routing r;
	ap_id weights, hot;

	x = rate(l, scope, param, x, &weights);
	hot = model_one_hot(m, scope, x, p->experts, AP_FLOAT32, "chosen");
	r.mask = model_reduce_axis(m, scope, "ReduceSum", hot, 2, false, "mask");
	weights = model_reshape(m, scope, weights, MODEL_SHAPE(AP_FLOAT32, p->batch, p->sequence,
		p->active, 1), "weights.column");
	x = model_binary(m, scope, "Mul", hot, weights, "weights.chosen");
	r.gates = model_reduce_axis(m, scope, "ReduceSum", x, 2, false, "gates");
	return r;
}

/* The place a token takes at its experts: [B,S,E,C]. A token without a place goes to no expert. */
static ap_id seat(const struct llama *l, const char *scope, ap_id mask)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	struct model_op before = {.scope = scope, .type = "CumSum", .nin = 1, .in = {mask},
		.nattr = 2, .attr = {MODEL_INT("axis", 1), MODEL_FLAG("exclusive", true)}};
	ap_id place = model_op_one(m, before, "before", model_shape(m, mask));
	ap_id fits = model_less(m, scope, place, model_number(m, "expert_room", AP_FLOAT32), "fits");
	ap_id kept = model_cast(m, scope, fits, AP_FLOAT32, "fits.float32");

	kept = model_binary(m, scope, "Mul", mask, kept, "kept");
	place = model_binary(m, scope, "Mul", place, kept, "place");
	place = model_cast(m, scope, place, AP_INT32, "place.int32");
	place = model_one_hot(m, scope, place, room(p), p->dtype, "places");
	kept = model_cast(m, scope, kept, p->dtype, "kept.cast");
	kept = model_reshape(m, scope, kept, MODEL_SHAPE(p->dtype, p->batch, p->sequence,
		p->experts, 1), "kept.column");
	return model_binary(m, scope, "Mul", place, kept, "dispatch");
}

/* A product per expert, whose weight all samples share: [B,E,C,K] by [E,K,N]. */
static ap_id expert_product(const struct llama *l, const char *scope, const char *param,
	const char *cell, ap_id x, int64_t out, const char *name)
{
	struct model *m = l->m;
	struct ap_shape s = model_shape(m, x);
	ap_id w = model_param(m, model_name(m, model_name(m, param, cell), "weight"),
		MODEL_SHAPE(s.dtype, s.dim[1], s.dim[3], out));

	return model_matmul(m, model_scope(m, scope, ap_arena_printf(model_arena(m), "%s-Linear",
		cell)), x, w, false, name);
}

/* SwiGLU of each expert on the tokens in its places: [B,E*C,H]. */
static ap_id experts(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	int64_t b = p->batch, e = p->experts, c = room(p), h = p->hidden;
	ap_id y, z;

	x = model_reshape(m, scope, x, MODEL_SHAPE(p->dtype, b, e, c, h), "places.tokens");
	y = expert_product(l, scope, param, "w1", x, p->inner, "gate");
	z = expert_product(l, scope, param, "w3", x, p->inner, "wide");
	if (!model_is_fused(m))
		y = model_unary(m, model_scope(m, scope, "w1-Linear"), "SiLU", y, "gate.silu");
	y = model_binary(m, scope, "Mul", z, y, "gated");
	y = expert_product(l, scope, param, "w2", y, h, "narrow");
	return model_reshape(m, scope, y, MODEL_SHAPE(p->dtype, b, e * c, h), "answers");
}

/* Tokens are moved to their experts and back, without products: as many copies as a token has experts. */
static ap_id moved(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	const char *router = model_scope(m, scope, "router-Router");
	ap_id weights, y;

	rate(l, router, model_name(m, param, "router"), x, &weights);
	weights = model_cast(m, router, weights, p->dtype, "weights.cast");
	weights = model_reshape(m, router, weights, MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->active,
		1), "weights.column");
	y = model_reshape(m, scope, x, llama_tokens(l), "tokens");
	y = model_repeat(m, scope, y, 1, p->active, "dealt");
	y = experts(l, model_scope(m, scope, "ffn-MoEFeedForward"), model_name(m, param, "ffn"), y);
	y = model_reshape(m, scope, y, MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->active, p->hidden),
		"collected.answers");
	y = model_binary(m, scope, "Mul", y, weights, "collected.weighted");
	y = model_reduce_axis(m, scope, "ReduceSum", y, 2, false, "collected");
	return model_reshape(m, scope, y, llama_rows(l), "collected.rows");
}

static ap_id mixture(const struct llama *l, const char *scope, const char *param, ap_id x)
{
	const struct model_params *p = l->p;
	struct model *m = l->m;
	const char *router = model_scope(m, scope, "router-Router");
	struct ap_shape flat = MODEL_SHAPE(p->dtype, p->batch, p->sequence, p->experts * room(p));
	struct routing r = route(l, router, model_name(m, param, "router"), x);
	ap_id dispatch = seat(l, router, r.mask), combine, y;

	r.gates = model_cast(m, scope, r.gates, p->dtype, "gates.cast");
	r.gates = model_reshape(m, scope, r.gates, MODEL_SHAPE(p->dtype, p->batch, p->sequence,
		p->experts, 1), "gates.column");
	combine = model_binary(m, scope, "Mul", dispatch, r.gates, "combine");
	dispatch = model_reshape(m, scope, dispatch, flat, "dispatch.flat");
	combine = model_reshape(m, scope, combine, flat, "combine.flat");
	y = model_reshape(m, scope, x, llama_tokens(l), "tokens");
	y = model_matmul_tn(m, scope, dispatch, y, "dealt");
	y = experts(l, model_scope(m, scope, "ffn-MoEFeedForward"), model_name(m, param, "ffn"), y);
	y = model_matmul(m, scope, combine, y, false, "collected");
	return model_reshape(m, scope, y, llama_rows(l), "collected.rows");
}

struct model *model_mixtral(struct ap_arena *arena, const struct model_params *p)
{
	bool even = room(p) * p->experts == p->active * p->sequence;

	return llama_with(arena, p, p->fused && even ? moved : mixture);
}
