/* SPDX-License-Identifier: Apache-2.0 */
#include "model/experts.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "model/cells.h"

struct experts {
	struct ap_model *m;
	const struct ap_experts *p;
	struct ap_shape tokens; /* [B,S,H] */
	int64_t batch, sequence, hidden;
	enum ap_dtype dtype;
};

/* Mixture of experts at network level: a mask assigns tokens to places of experts, one product distributes
 * tokens by it, another one collects the results. */

/* Number of places of an expert per sample. */
static int64_t room(const struct experts *l)
{
	double fair = (double)(l->p->active * l->sequence) / (double)l->p->count;

	return (int64_t)ceil((l->p->capacity > 0 ? l->p->capacity : 1) * fair);
}

struct routing {
	ap_id mask; /* [B,S,E] one if the token goes to the expert, else zero */
	ap_id gates; /* [B,S,E] weight of the expert's result */
};

/* Each token's best experts and their probabilities, rescaled to sum to one. */
static ap_id choose(const struct experts *l, const char *scope, ap_id probs, ap_id *weights)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	struct ap_shape best = AP_MODEL_SHAPE(AP_FLOAT32, l->batch, l->sequence, p->active);
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
static ap_id rate(const struct experts *l, const char *scope, const char *param, ap_id x, ap_id *weights)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;

	x = ap_model_cast(m, scope, x, AP_FLOAT32, "router.in");
	x = ap_model_linear(m, ap_model_scope(m, scope, "dense-Dense"), param, x, p->count, "router.rows");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(AP_FLOAT32, l->batch, l->sequence, p->count),
		"router");
	x = ap_model_softmax(m, scope, x, "router.probs");
	return choose(l, scope, x, weights);
}

static struct routing route(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	struct routing r;
	ap_id weights, hot;

	x = rate(l, scope, param, x, &weights);
	hot = ap_model_one_hot(m, scope, x, p->count, AP_FLOAT32, "chosen");
	r.mask = ap_model_reduce_axis(m, scope, "ReduceSum", hot, 2, false, "mask");
	weights = ap_model_reshape(m, scope, weights, AP_MODEL_SHAPE(AP_FLOAT32, l->batch, l->sequence,
		p->active, 1), "weights.column");
	x = ap_model_binary(m, scope, "Mul", hot, weights, "weights.chosen");
	r.gates = ap_model_reduce_axis(m, scope, "ReduceSum", x, 2, false, "gates");
	return r;
}

/* The place a token takes at its experts: [B,S,E,C]. A token without a place goes to no expert. */
static ap_id seat(const struct experts *l, const char *scope, ap_id mask)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	struct ap_model_op before = {.scope = scope, .type = "CumSum", .nin = 1, .in = {mask},
		.nattr = 2, .attr = {AP_MODEL_INT("axis", 1), AP_MODEL_FLAG("exclusive", true)}};
	ap_id place = ap_model_op_one(m, before, "before", ap_model_shape(m, mask));
	ap_id fits = ap_model_less(m, scope, place, ap_model_number(m, "expert_room", AP_FLOAT32), "fits");
	ap_id kept = ap_model_cast(m, scope, fits, AP_FLOAT32, "fits.float32");

	kept = ap_model_binary(m, scope, "Mul", mask, kept, "kept");
	place = ap_model_binary(m, scope, "Mul", place, kept, "place");
	place = ap_model_cast(m, scope, place, AP_INT32, "place.int32");
	place = ap_model_one_hot(m, scope, place, room(l), l->dtype, "places");
	kept = ap_model_cast(m, scope, kept, l->dtype, "kept.cast");
	kept = ap_model_reshape(m, scope, kept, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence,
		p->count, 1), "kept.column");
	return ap_model_binary(m, scope, "Mul", place, kept, "dispatch");
}

/* A product per expert, whose weight all samples share: [B,E,C,K] by [E,K,N]. */
static ap_id expert_product(const struct experts *l, const char *scope, const char *param,
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
static ap_id experts(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	int64_t b = l->batch, e = p->count, c = room(l), h = l->hidden;
	ap_id y, z;

	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(l->dtype, b, e, c, h), "places.tokens");
	y = expert_product(l, scope, param, p->names->gate, x, p->inner, "gate");
	z = expert_product(l, scope, param, p->names->up, x, p->inner, "wide");
	if (!ap_model_is_fused(m))
		y = ap_model_unary(m, ap_model_scope(m, scope, ap_arena_printf(ap_model_arena(m), "%s-Linear",
			p->names->gate)), "SiLU", y, "gate.silu");
	y = ap_model_binary(m, scope, "Mul", z, y, "gated");
	y = expert_product(l, scope, param, p->names->down, y, h, "narrow");
	return ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(l->dtype, b, e * c, h), "answers");
}

/* Tokens are moved to their experts and back, without products: as many copies as a token has experts. */
static ap_id moved(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	ap_id weights, y;

	rate(l, router, ap_model_name(m, param, p->names->router), x, &weights);
	weights = ap_model_cast(m, router, weights, l->dtype, "weights.cast");
	weights = ap_model_reshape(m, router, weights, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence,
		p->active, 1), "weights.column");
	y = ap_model_reshape(m, scope, x, l->tokens, "tokens");
	y = ap_model_repeat(m, scope, y, 1, p->active, "dealt");
	y = experts(l, ap_model_scope(m, scope, "ffn-MoEFeedForward"),
		ap_model_name(m, param, p->names->experts), y);
	y = ap_model_reshape(m, scope, y, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence, p->active,
		l->hidden), "collected.answers");
	y = ap_model_binary(m, scope, "Mul", y, weights, "collected.weighted");
	y = ap_model_reduce_axis(m, scope, "ReduceSum", y, 2, false, "collected");
	return ap_model_reshape(m, scope, y, ap_model_shape(m, x), "collected.rows");
}

static ap_id masked(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	struct ap_shape flat = AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence, p->count * room(l));
	struct routing r = route(l, router, ap_model_name(m, param, p->names->router), x);
	ap_id dispatch = seat(l, router, r.mask), combine, y;

	r.gates = ap_model_cast(m, scope, r.gates, l->dtype, "gates.cast");
	r.gates = ap_model_reshape(m, scope, r.gates, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence,
		p->count, 1), "gates.column");
	combine = ap_model_binary(m, scope, "Mul", dispatch, r.gates, "combine");
	dispatch = ap_model_reshape(m, scope, dispatch, flat, "dispatch.flat");
	combine = ap_model_reshape(m, scope, combine, flat, "combine.flat");
	y = ap_model_reshape(m, scope, x, l->tokens, "tokens");
	y = ap_model_matmul_tn(m, scope, dispatch, y, "dealt");
	y = experts(l, ap_model_scope(m, scope, "ffn-MoEFeedForward"),
		ap_model_name(m, param, p->names->experts), y);
	y = ap_model_matmul(m, scope, combine, y, false, "collected");
	return ap_model_reshape(m, scope, y, ap_model_shape(m, x), "collected.rows");
}

ap_id ap_model_experts(struct ap_model *m, const struct ap_experts *e, const char *scope, const char *param,
	ap_id rows, struct ap_shape tokens)
{
	struct experts l = {.m = m, .p = e, .tokens = tokens, .batch = tokens.dim[0],
		.sequence = tokens.dim[1], .hidden = tokens.dim[2], .dtype = tokens.dtype};

	assert(!e->shared_inner && e->score == AP_EXPERTS_SOFTMAX && !e->selection_bias && !e->bias);
	return e->way == AP_EXPERTS_MOVED ? moved(&l, scope, param, rows) : masked(&l, scope, param, rows);
}
