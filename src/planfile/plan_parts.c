/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/plan_parts.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "planfile/dimension.h"
#include "rule/op.h"

const char *const ap_saved_part_name[AP_SAVED_PART_COUNT] = {
	[AP_SAVED_PART_EMBEDDING] = "embedding",
	[AP_SAVED_PART_ATTENTION] = "attention",
	[AP_SAVED_PART_EXPERTS] = "experts",
	[AP_SAVED_PART_FEED_FORWARD] = "FFN",
	[AP_SAVED_PART_LOGITS] = "logits",
	[AP_SAVED_PART_CONVOLUTIONS] = "convolutions",
	[AP_SAVED_PART_PRODUCTS] = "products",
	[AP_SAVED_PART_REST] = "other operators",
};

struct finding {
	const struct ap_saved *s;
	const ap_id *maker; /* of each operand, operand j of operator i at first[i] + j; AP_NONE: given */
	uint32_t *first; /* [nop + 1] */
	bool *reads_input, *reads_weight; /* [nop] what a result depends on */
	bool *apart; /* [nop] the result does not join those that read it */
	uint32_t *root; /* [nop] union of operators */
};

static bool is_convolution(const char *type)
{
	return !strncmp(type, "Conv", 4) || !strncmp(type, "DepthwiseConv", 13);
}

static bool is_fused_attention(const char *type)
{
	return strstr(type, "FlashAttention") != NULL;
}

static const struct ap_op_row *row_of(const struct ap_saved_op *op)
{
	return ap_op_next(NULL, op->type);
}

bool ap_saved_is_product(const struct ap_saved_op *op)
{
	const struct ap_op_row *row = row_of(op);

	return row && row->unit == AP_OP_CUBE;
}

static bool is_norm(const struct ap_saved_op *op)
{
	const struct ap_op_row *row = row_of(op);

	return row && !strcmp(ap_op_family(row), "norms");
}

bool ap_saved_attends(const struct ap_saved_op *op)
{
	return is_fused_attention(op->type) || !strcmp(op->type, "BatchMatMul");
}

static void find_makers(struct ap_ctx *ctx, struct finding *f)
{
	const struct ap_saved *s = f->s;
	struct ap_map *results = ap_map_create(ctx->scratch), *params = ap_map_create(ctx->scratch);
	uint32_t nresult = 0, n = 0;
	ap_id *by, *maker;

	f->first = AP_NEW_N(ctx->scratch, uint32_t, s->nop + 1);
	for (uint32_t i = 0; i < s->nop; i++) {
		nresult += s->op[i].nout;
		f->first[i + 1] = f->first[i] + s->op[i].nin;
	}
	by = AP_NEW_N(ctx->scratch, ap_id, nresult);
	f->maker = maker = AP_NEW_N(ctx->scratch, ap_id, f->first[s->nop]);
	for (uint32_t i = 0; i < s->nparam; i++)
		ap_map_put_str(params, s->param[i].name, NULL);
	for (uint32_t i = 0; i < s->nop; i++) {
		const struct ap_saved_op *op = &s->op[i];

		for (uint32_t j = 0; j < op->nin; j++) {
			ap_id made = ap_map_get_str(results, op->in[j]);
			bool weight = made == AP_NONE && ap_map_get_str(params, op->in[j]) != AP_NONE;

			maker[n] = made == AP_NONE ? AP_NONE : by[made];
			f->reads_weight[i] |= maker[n] == AP_NONE ? weight : f->reads_weight[maker[n]];
			f->reads_input[i] |= maker[n] == AP_NONE ? !weight : f->reads_input[maker[n]];
			n++;
		}
		for (uint32_t j = 0; j < op->nout; j++) {
			bool fresh;
			ap_id id = ap_map_put_str(results, op->out[j], &fresh);

			if (fresh)
				by[id] = i;
		}
	}
}

/* An activation: the result depends on the input and on a weight. */
static bool is_live(const struct finding *f, ap_id op)
{
	return op != AP_NONE && f->reads_input[op] && f->reads_weight[op];
}

/* Is the result of `to` made from that of `from`, an operator before it? */
static bool is_made_from(struct ap_ctx *ctx, const struct finding *f, uint32_t to, uint32_t from)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool *reached = AP_NEW_N(ctx->scratch, bool, to - from + 1), found;

	reached[to - from] = true;
	for (uint32_t i = to; i > from; i--)
		for (uint32_t k = f->first[i]; reached[i - from] && k < f->first[i + 1]; k++)
			if (f->maker[k] != AP_NONE && f->maker[k] >= from)
				reached[f->maker[k] - from] = true;
	found = reached[0];
	ap_arena_release(ctx->scratch, mark);
	return found;
}

static void part_layers(struct ap_ctx *ctx, struct finding *f)
{
	const struct ap_saved *s = f->s;

	for (uint32_t i = 0; i < s->nop; i++) {
		const ap_id *maker = f->maker + f->first[i];
		ap_id a, b;

		f->apart[i] |= is_norm(&s->op[i]);
		if (strcmp(s->op[i].type, "Add") != 0 || s->op[i].nin != 2 || !is_live(f, maker[0]) ||
			!is_live(f, maker[1]) || maker[0] == maker[1])
			continue;
		a = maker[0] < maker[1] ? maker[0] : maker[1];
		b = maker[0] < maker[1] ? maker[1] : maker[0];
		if (is_made_from(ctx, f, b, a))
			f->apart[i] = f->apart[a] = true;
	}
}

static uint32_t root_of(struct finding *f, uint32_t i)
{
	while (f->root[i] != i)
		i = f->root[i] = f->root[f->root[i]];
	return i;
}

static void join_parts(struct finding *f)
{
	for (uint32_t i = 0; i < f->s->nop; i++) {
		f->root[i] = i;
		for (uint32_t k = f->first[i]; k < f->first[i + 1]; k++)
			if (is_live(f, f->maker[k]) && !f->apart[f->maker[k]])
				f->root[root_of(f, i)] = root_of(f, f->maker[k]);
	}
}

/* A fused attention, or a product of two activations. */
static bool is_attention(const struct finding *f, uint32_t i)
{
	const struct ap_saved_op *op = &f->s->op[i];
	bool weight = false;

	for (uint32_t k = f->first[i]; k < f->first[i + 1]; k++)
		weight |= f->maker[k] == AP_NONE || !f->reads_input[f->maker[k]];
	return is_fused_attention(op->type) || (ap_saved_is_product(op) && !weight);
}

/* What an operator alone says of its part: the smaller kind wins. */
static enum ap_saved_part sign_of(const struct finding *f, const struct ap_dimensions *d, uint32_t i)
{
	const struct ap_saved_op *op = &f->s->op[i];

	if (!strcmp(op->type, "TopK"))
		return AP_SAVED_PART_EXPERTS;
	if (is_attention(f, i))
		return AP_SAVED_PART_ATTENTION;
	if (!ap_saved_is_product(op))
		return AP_SAVED_PART_REST;
	for (uint32_t k = 0; d->vocabulary && k < op->nfactor; k++)
		if (op->factor[k].size == d->vocabulary && op->factor[k].size != d->sequence)
			return AP_SAVED_PART_LOGITS;
	return AP_SAVED_PART_PRODUCTS;
}

static struct finding begin(struct ap_ctx *ctx, const struct ap_saved *plan)
{
	struct finding f = {.s = plan,
		.reads_input = AP_NEW_N(ctx->scratch, bool, plan->nop),
		.reads_weight = AP_NEW_N(ctx->scratch, bool, plan->nop),
		.apart = AP_NEW_N(ctx->scratch, bool, plan->nop),
		.root = AP_NEW_N(ctx->scratch, uint32_t, plan->nop)};

	find_makers(ctx, &f);
	part_layers(ctx, &f);
	return f;
}

const enum ap_saved_part *ap_saved_parts(struct ap_ctx *ctx, const struct ap_saved *plan)
{
	enum ap_saved_part *part = AP_NEW_N(ctx->arena, enum ap_saved_part, plan->nop), *of;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct finding f = begin(ctx, plan);
	struct ap_dimensions d;
	bool attends = false, *chooses;

	ap_dimensions_of_saved(plan, &d);
	join_parts(&f);
	of = AP_NEW_N(ctx->scratch, enum ap_saved_part, plan->nop);
	chooses = AP_NEW_N(ctx->scratch, bool, plan->nop);
	for (uint32_t i = 0; i < plan->nop; i++)
		of[i] = AP_SAVED_PART_REST;
	for (uint32_t i = 0; i < plan->nop; i++) {
		enum ap_saved_part sign = sign_of(&f, &d, i);
		uint32_t root = root_of(&f, i);

		chooses[root] |= sign == AP_SAVED_PART_EXPERTS;
		attends |= sign == AP_SAVED_PART_ATTENTION;
		if (sign < of[root])
			of[root] = sign;
	}
	for (uint32_t i = 0; i < plan->nop; i++) {
		const struct ap_saved_op *op = &plan->op[i];
		uint32_t root = root_of(&f, i);

		part[i] = chooses[root] ? AP_SAVED_PART_EXPERTS : of[root];
		if (attends && part[i] == AP_SAVED_PART_PRODUCTS)
			part[i] = AP_SAVED_PART_FEED_FORWARD;
		if (is_convolution(op->type))
			part[i] = AP_SAVED_PART_CONVOLUTIONS;
		else if (op->nin && !strcmp(op->type, "Gather") && f.maker[f.first[i]] == AP_NONE &&
			f.reads_weight[i])
			part[i] = AP_SAVED_PART_EMBEDDING;
	}
	ap_arena_release(ctx->scratch, mark);
	return part;
}

const char *ap_saved_heads(struct ap_ctx *ctx, const struct ap_saved *plan)
{
	char *letter = AP_NEW_N(ctx->arena, char, plan->nop);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct finding f = begin(ctx, plan);
	/* without another product between: what a result is made from, and what is made from it */
	bool *from = AP_NEW_N(ctx->scratch, bool, plan->nop), *into = AP_NEW_N(ctx->scratch, bool, plan->nop);
	bool *into_product = AP_NEW_N(ctx->scratch, bool, plan->nop);

	for (uint32_t i = 0; i < plan->nop; i++) {
		bool product = ap_saved_is_product(&plan->op[i]), attention = is_attention(&f, i);
		bool rows = false;

		for (uint32_t k = f.first[i]; k < f.first[i + 1]; k++)
			rows |= f.maker[k] != AP_NONE && from[f.maker[k]];
		from[i] = attention || (rows && !product && !f.apart[i]);
		if (rows && product && !attention)
			letter[i] = 'k';
	}
	for (uint32_t i = plan->nop; i-- > 0;) {
		bool product = ap_saved_is_product(&plan->op[i]), attention = is_attention(&f, i);

		if (product && !attention && into[i] && !into_product[i])
			letter[i] = 'n';
		for (uint32_t k = f.first[i]; k < f.first[i + 1]; k++) {
			if (f.maker[k] == AP_NONE)
				continue;
			into[f.maker[k]] |= attention || (!product && into[i]);
			into_product[f.maker[k]] |= product ? !attention : into_product[i];
		}
	}
	ap_arena_release(ctx->scratch, mark);
	return letter;
}
