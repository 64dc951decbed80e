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

/* Number of places of an expert per sample; capacity 0 supposes that experts get equal numbers of tokens. */
static int64_t room(const struct experts *l)
{
	double fair = (double)(l->p->active * l->sequence) / (double)l->p->count;

	return (int64_t)ceil((l->p->capacity > 0 ? l->p->capacity : 1) * fair);
}

/* Groups that the tokens of a sample are dealt to, a divisor of S: as many as there may be if each has equal
 * places at an expert, and all groups together at most a hundredth more places than one group would. Ranks
 * that cut the sequence each have some of them. */
static int64_t groups_of(const struct experts *l)
{
	int64_t groups = 1, places = room(l);

	for (int64_t g = 2; g <= places && g <= l->sequence; g++)
		if (l->sequence % g == 0 && (places + g - 1) / g * g * 100 <= places * 101)
			groups = g;
	return groups;
}

struct routing {
	ap_id mask; /* [B,S,E] one if the token goes to the expert, else zero */
	ap_id gates; /* [B,S,E] weight of the expert's result */
};

/* The k largest of the last dimension; their places follow. */
static ap_id largest(const struct experts *l, const char *scope, ap_id x, int64_t k, const char *name,
	const char *places)
{
	struct ap_shape s = ap_model_shape(l->m, x);
	struct ap_model_op op = {.scope = scope, .type = "TopK", .nin = 1, .in = {x}, .nout = 2,
		.nattr = 2, .attr = {AP_MODEL_INT("k", k), AP_MODEL_FLAG("sorted", true)}};

	s.dim[s.rank - 1] = k;
	op.out[0].name = name;
	op.out[0].shape = s;
	op.out[1].name = places;
	op.out[1].shape = s;
	op.out[1].shape.dtype = AP_INT32;
	return ap_model_op(l->m, &op);
}

/* Scores [B,S,E], those outside a token's best groups zero. A group is as good as its two best experts. */
static ap_id within_groups(const struct experts *l, const char *scope, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	struct ap_shape all = ap_model_shape(m, x);
	int64_t each = p->count / p->groups;
	ap_id best, kept;

	assert(p->count % p->groups == 0 && p->groups_active <= p->groups);
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(all.dtype, l->batch, l->sequence, p->groups, each),
		"groups");
	best = largest(l, scope, x, each > 1 ? 2 : 1, "groups.best", "groups.best.experts");
	best = ap_model_reduce(m, scope, "ReduceSum", best, 1, false, "groups.score");
	best = largest(l, scope, best, p->groups_active, "groups.scores", "groups.chosen") + 1;
	kept = ap_model_one_hot(m, scope, best, p->groups, all.dtype, "groups.hot");
	kept = ap_model_reduce_axis(m, scope, "ReduceSum", kept, 2, false, "groups.mask");
	kept = ap_model_reshape(m, scope, kept, AP_MODEL_SHAPE(all.dtype, l->batch, l->sequence,
		p->groups, 1), "groups.mask.column");
	x = ap_model_binary(m, scope, "Mul", x, kept, "groups.kept");
	return ap_model_reshape(m, scope, x, all, "groups.scores.kept");
}

/* Each token's best experts by scores [B,S,E], and their weights. */
static ap_id choose(const struct experts *l, const char *scope, const char *param, ap_id scores,
	ap_id *weights)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	struct ap_model_op pick = {.scope = scope, .type = "GatherD", .nin = 2, .nattr = 1,
		.attr = {AP_MODEL_INT("dim", -1)}};
	ap_id by = scores, id, sum;

	if (p->selection_bias) {
		ap_id bias = ap_model_state(m, ap_model_name(m, param, p->names->selection_bias),
			AP_MODEL_SHAPE(AP_FLOAT32, p->count));

		by = ap_model_binary(m, scope, "Add", by, bias, "router.biased");
	}
	if (p->groups > p->groups_active)
		by = within_groups(l, scope, by);
	id = largest(l, scope, by, p->active, "best", "experts");
	*weights = id;
	pick.in[0] = scores;
	pick.in[1] = id + 1;
	if (by != scores)
		*weights = ap_model_op_one(m, pick, "best.scores", ap_model_shape(m, id));
	if (!p->rescale)
		return id + 1;
	sum = ap_model_reduce(m, scope, "ReduceSum", *weights, 1, true, "best.sum");
	*weights = ap_model_binary(m, scope, "Div", *weights, sum, "weights");
	return id + 1;
}

/* What choose() returns of rows; param is the part's. The scores are float32, and for MindSpore's operators
 * the product before them is, too. */
static ap_id rate(const struct experts *l, const char *scope, const char *param, ap_id x, ap_id *weights)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_name(m, param, p->names->router);

	if (p->way != AP_EXPERTS_MOVED)
		x = ap_model_cast(m, scope, x, AP_FLOAT32, "router.in");
	x = ap_model_linear(m, ap_model_scope(m, scope, "dense-Dense"), router, x, p->count, "router.rows");
	if (p->bias) {
		ap_id bias = ap_model_param(m, ap_model_name(m, router, "bias"),
			AP_MODEL_SHAPE(ap_model_shape(m, x).dtype, p->count));

		x = ap_model_binary(m, scope, "BiasAdd", x, bias, "router.sum");
	}
	if (p->way == AP_EXPERTS_MOVED && l->dtype != AP_FLOAT32)
		x = ap_model_cast(m, scope, x, AP_FLOAT32, "router.float32");
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(AP_FLOAT32, l->batch, l->sequence, p->count),
		"router");
	x = p->score == AP_EXPERTS_SIGMOID ? ap_model_unary(m, scope, "Sigmoid", x, "router.probs")
		: ap_model_softmax(m, scope, x, "router.probs");
	return choose(l, scope, param, x, weights);
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

/* A product per expert, whose weight all samples share: [B,E,C,K] by [E,K,N]. weights: AP_NONE, or those
 * with which x was weighted, and so its bias is. */
static ap_id expert_product(const struct experts *l, const char *scope, const char *param,
	const char *cell, ap_id x, int64_t out, ap_id weights, const char *name)
{
	struct ap_model *m = l->m;
	struct ap_shape s = ap_model_shape(m, x);
	const char *prefix = ap_model_name(m, param, cell), *product = name;
	bool bare = l->p->names->bare;
	ap_id w = ap_model_param(m, bare ? prefix : ap_model_name(m, prefix, "weight"),
		AP_MODEL_SHAPE(s.dtype, s.dim[1], s.dim[3], out));

	if (l->p->bias)
		product = ap_model_name(m, name, "product");
	x = ap_model_matmul(m, ap_arena_printf(ap_model_arena(m), "%s/%s-Linear", scope, cell), x, w, false,
		product);
	if (!l->p->bias)
		return x;
	prefix = bare ? ap_arena_printf(ap_model_arena(m), "%s_bias", prefix)
		: ap_model_name(m, prefix, "bias");
	w = ap_model_param(m, prefix, AP_MODEL_SHAPE(s.dtype, s.dim[1], 1, out));
	if (weights != AP_NONE) {
		struct ap_model_op add = {.scope = scope, .type = "AddcmulExt", .nin = 3,
			.in = {x, weights, w}};

		return ap_model_op_one(m, add, name, ap_model_shape(m, x));
	}
	return ap_model_binary(m, scope, "Add", x, w, name);
}

/* f(gate) * wide, or f(gate) where there is no gate (wide AP_NONE). One kernel of other software does it. */
static ap_id activate(const struct experts *l, const char *scope, ap_id gate, ap_id wide, const char *name)
{
	static const struct { const char *type, *name; } functions[] = {
		[AP_MODEL_GELU] = {"GeLU", "gelu"},
		[AP_MODEL_RELU] = {"ReLU", "relu"}, [AP_MODEL_SQUARED_RELU] = {"ReLU", "relu"},
		[AP_MODEL_SWIGLU] = {"SiLU", "silu"}, [AP_MODEL_GEGLU] = {"GeLU", "gelu"}};
	enum ap_model_activation a = l->p->activation;
	struct ap_model *m = l->m;

	if (wide == AP_NONE || !ap_model_is_fused(m))
		gate = ap_model_unary(m, scope, functions[a].type, gate, ap_model_name(m, name,
			functions[a].name));
	if (a == AP_MODEL_SQUARED_RELU)
		gate = ap_model_unary(m, scope, "Square", gate, ap_model_name(m, name, "square"));
	return gate;
}

/* What the narrow product reads: y z, weighted if there are weights. One kernel of other software does it. */
static ap_id gated(const struct experts *l, const char *scope, ap_id y, ap_id z, ap_id weights)
{
	struct ap_model *m = l->m;
	struct ap_model_op op = {.scope = scope, .type = "MoeGate", .nin = 3, .in = {z, y, weights}};

	if (z != AP_NONE && weights != AP_NONE && ap_model_is_fused(m))
		return ap_model_op_one(m, op, "gated", ap_model_shape(m, z));
	if (z != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", z, y, "gated");
	return weights == AP_NONE ? y : ap_model_binary(m, scope, "Mul", y, weights, "weighted");
}

/* Each expert on the tokens in its places: [B,E,C,H]. weights: AP_NONE, or of places, [B,E,C,1]. */
static ap_id experts(const struct experts *l, const char *scope, const char *param, ap_id x, ap_id weights)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	bool wide = ap_model_activation_gated(p->activation), pair = wide && !p->names->up;
	const char *cell = wide || !p->names->up ? p->names->gate : p->names->up;
	const char *gate = ap_arena_printf(ap_model_arena(m), "%s/%s-Linear", scope, cell);
	ap_id y, z = AP_NONE;

	y = expert_product(l, scope, param, cell, x, p->inner * (pair ? 2 : 1), AP_NONE,
		pair ? "pair" : "gate");
	if (pair) {
		struct ap_shape s = ap_model_shape(m, x);
		struct ap_shape both = AP_MODEL_SHAPE(s.dtype, s.dim[0], s.dim[1], s.dim[2], p->inner, 2);
		struct ap_shape one = AP_MODEL_SHAPE(s.dtype, s.dim[0], s.dim[1], s.dim[2], p->inner);

		y = ap_model_reshape(m, scope, y, both, "pair.split");
		z = ap_model_slice(m, scope, y, 4, 1, 2, "wide.part");
		z = ap_model_reshape(m, scope, z, one, "wide");
		y = ap_model_slice(m, scope, y, 4, 0, 1, "gate.part");
		y = ap_model_reshape(m, scope, y, one, "gate");
	} else if (wide) {
		z = expert_product(l, scope, param, p->names->up, x, p->inner, AP_NONE, "wide");
	}
	y = gated(l, scope, activate(l, gate, y, z, "gate"), z, weights);
	return expert_product(l, scope, param, p->names->down, y, l->hidden, weights, "narrow");
}

/* Of the part that sees every token, the wide products: rows. */
static ap_id shared_wide(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	const struct ap_experts_names *n = p->names;
	struct ap_model *m = l->m;
	const char *part = ap_model_name(m, param, n->shared), *gate = n->gate ? n->gate : n->up;
	bool gated = ap_model_activation_gated(p->activation);
	ap_id y = ap_model_linear(m, ap_model_scope(m, scope, "gate-Linear"), ap_model_name(m, part, gate), x,
		p->shared_inner, "shared.gate"), z = AP_NONE;

	if (gated)
		z = ap_model_linear(m, ap_model_scope(m, scope, "up-Linear"), ap_model_name(m, part, n->up),
			x, p->shared_inner, "shared.wide");
	y = activate(l, scope, y, z, "shared.gate");
	if (z != AP_NONE)
		y = ap_model_binary(m, scope, "Mul", z, y, "shared.gated");
	return y;
}

/* And what follows, of rows x: rows. */
static ap_id shared_narrow(const struct experts *l, const char *scope, const char *param, ap_id x, ap_id y)
{
	const struct ap_experts *p = l->p;
	const struct ap_experts_names *n = p->names;
	struct ap_model *m = l->m;
	ap_id z;

	y = ap_model_linear(m, ap_model_scope(m, scope, "down-Linear"), ap_model_name(m,
		ap_model_name(m, param, n->shared), n->down), y, l->hidden, "shared.narrow");
	if (!p->shared_gate)
		return y;
	z = ap_model_linear(m, ap_model_scope(m, scope, "weight-Linear"), ap_model_name(m, param,
		n->shared_gate), x, 1, "shared.weight.row");
	z = ap_model_unary(m, scope, "Sigmoid", z, "shared.weight");
	return ap_model_binary(m, scope, "Mul", y, z, "shared");
}

/* Tokens of the expert with most of them / the mean, over a validation set, as Wang et al. measured them
 * (Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts, arXiv 2408.15664, table 2: MaxVio of
 * the larger model, of 3 B parameters): where an auxiliary loss balances experts, and where a bias does that
 * is added to the scores they are chosen by. */
static const double TRAINED_BY_LOSS = 1.52, BIASED = 1.04;

/* States that a token's experts are in some of their groups. */
static void limit(const struct ap_experts *p, struct ap_model_op *op)
{
	op->attr[op->nattr++] = (struct ap_attr)AP_MODEL_INT("expert_groups", p->groups);
	op->attr[op->nattr++] = (struct ap_attr)AP_MODEL_INT("expert_groups_active", p->groups_active);
}

/* Tokens are moved to places of their experts and back, without products, and the weights of the answers
 * with them, ahead of all products: where the narrow product reads what is weighted, nobody keeps the
 * answers. *beside, unless NULL: what the shared expert makes of them meanwhile: its wide products behind
 * the dispatch and in front of the experts, its narrow one in front of the way back. */
static ap_id moved_beside(const struct experts *l, const char *scope, const char *param, ap_id x,
	ap_id *beside)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	const char *aside = ap_model_scope(m, scope, "shared-FeedForward");
	int64_t groups = groups_of(l), places = (room(l) + groups - 1) / groups;
	struct ap_shape at_experts = AP_MODEL_SHAPE(l->dtype, l->batch, p->count, groups * places, l->hidden);
	struct ap_model_op there = {.scope = scope, .type = "MoeDispatch", .nin = 2,
		.nattr = p->capacity > 0 ? 3 : 4,
		.attr = {AP_MODEL_INT("num_groups", groups), AP_MODEL_INT("capacity", places),
			AP_MODEL_INT("expert_num", p->count),
			AP_MODEL_REAL("imbalance", p->selection_bias ? BIASED : TRAINED_BY_LOSS)}};
	struct ap_model_op back = {.scope = scope, .type = "MoeCombine", .nin = 2, .nattr = 2,
		.attr = {there.attr[0], there.attr[1]}};
	struct ap_model_op weigh = there;
	struct ap_shape column = AP_MODEL_SHAPE(l->dtype, l->batch, p->count, groups * places, 1);
	bool limited = p->groups > p->groups_active;
	uint32_t early, first;
	ap_id weights, which = rate(l, router, param, x, &weights), y;

	if (l->dtype != AP_FLOAT32)
		weights = ap_model_cast(m, router, weights, l->dtype, "weights.cast");
	if (limited) {
		limit(p, &there);
		limit(p, &weigh);
		limit(p, &back);
	}
	there.in[0] = ap_model_reshape(m, scope, x, l->tokens, "tokens");
	there.in[1] = which;
	y = ap_model_op_one(m, there, "dealt", at_experts);
	weigh.type = "MoeWeights";
	weigh.in[0] = weights;
	weigh.in[1] = which;
	weights = ap_model_op_one(m, weigh, "weights.dealt", column);
	early = first = ap_model_operators(m);
	if (beside) {
		*beside = shared_wide(l, aside, param, x);
		first = ap_model_operators(m);
	}
	back.in[0] = experts(l, ap_model_scope(m, scope, "ffn-MoEFeedForward"),
		ap_model_name(m, param, p->names->experts), y, weights);
	back.in[1] = which;
	ap_model_run_behind(m, early, weights);
	if (beside) {
		ap_model_run_behind(m, first, *beside);
		*beside = shared_narrow(l, aside, param, x, *beside);
	}
	y = ap_model_op_one(m, back, "collected", l->tokens);
	if (beside)
		ap_model_run_behind(m, ap_model_operators(m) - 1, *beside);
	return ap_model_reshape(m, scope, y, ap_model_shape(m, x), "collected.rows");
}

static ap_id moved(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	return moved_beside(l, scope, param, x, NULL);
}

/* Rows [B,N,H] at indices [B,..]. */
static ap_id look_up(const struct experts *l, const char *scope, ap_id x, ap_id at, const char *name)
{
	struct ap_shape s = ap_model_shape(l->m, at);
	struct ap_model_op op = {.scope = scope, .type = "Gather", .nin = 2, .in = {x, at},
		.nattr = 2, .attr = {AP_MODEL_INT("axis", 1), AP_MODEL_INT("batch_dims", 1)}};

	s.dtype = l->dtype;
	s.dim[s.rank++] = l->hidden;
	return ap_model_op_one(l->m, op, name, s);
}

/* As MindFormers does it: TopKRouter counts the tokens of each expert and says which row is where. */
static ap_id gathered(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	const char *ffn = ap_model_scope(m, scope, "ffn-MoEFeedForward");
	struct ap_model_op seat = {.scope = router, .type = "TopKRouter", .nin = 1, .nout = 2, .nattr = 2,
		.attr = {AP_MODEL_INT("capacity", room(l)), AP_MODEL_INT("expert_num", p->count)},
		.out = {{"seats", AP_MODEL_SHAPE(AP_INT32, l->batch, p->count, room(l))},
			{"seats.rows", AP_MODEL_SHAPE(AP_INT32, l->batch, l->sequence, p->active)}}};
	ap_id weights, places, zeros, y;

	seat.in[0] = rate(l, router, param, x, &weights);
	places = ap_model_op(m, &seat);
	weights = ap_model_cast(m, router, weights, l->dtype, "weights.cast");
	weights = ap_model_reshape(m, router, weights, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence,
		p->active, 1), "weights.column");
	y = ap_model_reshape(m, scope, x, l->tokens, "tokens");
	/* what a place without a token, and a token without a place, look up: a row before the others */
	zeros = ap_model_slice(m, scope, y, 1, 0, 1, "tokens.first");
	zeros = ap_model_binary(m, scope, "Mul", zeros, ap_model_number(m, "zero", l->dtype), "tokens.none");
	y = ap_model_concat(m, scope, zeros, y, 1, "tokens.padded");
	y = look_up(l, scope, y, places, "dealt");
	y = experts(l, ffn, ap_model_name(m, param, p->names->experts), y, AP_NONE);
	y = ap_model_reshape(m, ffn, y, AP_MODEL_SHAPE(l->dtype, l->batch, p->count * room(l), l->hidden),
		"answers");
	y = ap_model_concat(m, scope, zeros, y, 1, "answers.padded");
	y = look_up(l, scope, y, places + 1, "answers.tokens");
	y = ap_model_binary(m, scope, "Mul", y, weights, "answers.weighted");
	y = ap_model_reduce_axis(m, scope, "ReduceSum", y, 2, false, "collected");
	return ap_model_reshape(m, scope, y, ap_model_shape(m, x), "collected.rows");
}

static ap_id masked(const struct experts *l, const char *scope, const char *param, ap_id x)
{
	const struct ap_experts *p = l->p;
	struct ap_model *m = l->m;
	const char *router = ap_model_scope(m, scope, "router-Router");
	const char *ffn = ap_model_scope(m, scope, "ffn-MoEFeedForward");
	struct ap_shape flat = AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence, p->count * room(l));
	struct routing r = route(l, router, param, x);
	ap_id dispatch = seat(l, router, r.mask), combine, y;

	r.gates = ap_model_cast(m, scope, r.gates, l->dtype, "gates.cast");
	r.gates = ap_model_reshape(m, scope, r.gates, AP_MODEL_SHAPE(l->dtype, l->batch, l->sequence,
		p->count, 1), "gates.column");
	combine = ap_model_binary(m, scope, "Mul", dispatch, r.gates, "combine");
	dispatch = ap_model_reshape(m, scope, dispatch, flat, "dispatch.flat");
	combine = ap_model_reshape(m, scope, combine, flat, "combine.flat");
	y = ap_model_reshape(m, scope, x, l->tokens, "tokens");
	y = ap_model_matmul_tn(m, scope, dispatch, y, "dealt");
	y = ap_model_reshape(m, ffn, y, AP_MODEL_SHAPE(l->dtype, l->batch, p->count, room(l), l->hidden),
		"places.tokens");
	y = experts(l, ffn, ap_model_name(m, param, p->names->experts), y, AP_NONE);
	y = ap_model_reshape(m, ffn, y, AP_MODEL_SHAPE(l->dtype, l->batch, p->count * room(l), l->hidden),
		"answers");
	y = ap_model_matmul(m, scope, combine, y, false, "collected");
	return ap_model_reshape(m, scope, y, ap_model_shape(m, x), "collected.rows");
}

ap_id ap_model_experts(struct ap_model *m, const struct ap_experts *e, const char *scope, const char *param,
	ap_id rows, struct ap_shape tokens)
{
	struct experts l = {.m = m, .p = e, .tokens = tokens, .batch = tokens.dim[0],
		.sequence = tokens.dim[1], .hidden = tokens.dim[2], .dtype = tokens.dtype};
	static ap_id (*const ways[])(const struct experts *, const char *, const char *, ap_id) = {
		[AP_EXPERTS_MASKED] = masked, [AP_EXPERTS_GATHERED] = gathered, [AP_EXPERTS_MOVED] = moved};
	const char *aside = ap_model_scope(m, scope, "shared-FeedForward");
	ap_id y, z;

	if (!e->shared_inner)
		return ways[e->way](&l, scope, param, rows);
	if (e->shared_beside && e->way == AP_EXPERTS_MOVED) {
		y = moved_beside(&l, scope, param, rows, &z);
	} else {
		y = ways[e->way](&l, scope, param, rows);
		z = shared_wide(&l, aside, param, rows);
		z = shared_narrow(&l, aside, param, rows, z);
	}
	return ap_model_binary(m, scope, "Add", y, z, "experts.sum");
}
