/* SPDX-License-Identifier: Apache-2.0 */
/* Rows sent to experts and back. */
#include "base/arena.h"
#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static int64_t number(const struct ex_job *j, ex_id id)
{
	return (int64_t)ex_value_of(j->tape, id);
}

/* Rows by expert, those of one expert as they stand; where the row of source i went. */
static bool init_routing(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *rows = &j->in[1], *experts = &j->in[2];
	int64_t n = ex_count(&experts->box), width = x->box.size[1], k = experts->box.size[1];

	for (int64_t i = 0; i < n; i++) {
		int64_t place = 0, source = number(j, rows->id[i]);

		for (int64_t other = 0; other < n; other++) {
			int64_t a = number(j, experts->id[other]), b = number(j, experts->id[i]);

			place += a < b || (a == b && number(j, rows->id[other]) < source);
		}
		if (source >= n)
			return false;
		j->out[1].id[source] = ex_leaf(j->tape, (uint64_t)place);
		j->out[2].id[place] = experts->id[i];
		for (int64_t c = 0; c < width && place < j->out[0].box.size[0]; c++)
			j->out[0].id[place * width + c] = x->id[i / k * width + c];
	}
	return true;
}

/* Shares of the largest scores; a row that is finished has none of the experts. */
static bool gating(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *finished = ex_in(j, 1);
	int64_t n = x->box.size[0], experts = x->box.size[1], k = j->out[0].box.size[1];

	for (int64_t i = 0; i < n; i++) {
		const ex_id *row = x->id + i * experts;
		bool done = finished && ex_value_of(j->tape, finished->id[i]);
		ex_id sum = 0;

		for (int64_t e = 0; e < experts; e++)
			sum = ex_plus(j->tape, sum, ex_fn1(j->tape, "exp", row[e]));
		for (int64_t e = 0; e < experts; e++) {
			int64_t place = 0;

			for (int64_t o = 0; o < experts; o++)
				place += ex_less(j->tape, row[e], row[o]) ||
					(o < e && !ex_less(j->tape, row[o], row[e]));
			if (place >= k)
				continue;
			j->out[0].id[i * k + place] = ex_over(j->tape,
				ex_fn1(j->tape, "exp", row[e]), sum);
			j->out[1].id[i * k + place] = ex_leaf(j->tape, (uint64_t)(done ? experts : e));
			j->out[2].id[i * k + place] = ex_leaf(j->tape, (uint64_t)(place * n + i));
		}
	}
	return true;
}

static bool expert_tokens(const struct ex_job *j)
{
	for (int64_t e = 0; e < j->out[0].box.size[0]; e++) {
		uint64_t rows = 0;

		for (int64_t i = 0; i < ex_count(&j->in[0].box); i++)
			rows += number(j, j->in[0].id[i]) <= e;
		j->out[0].id[e] = ex_leaf(j->tape, rows);
	}
	return true;
}

struct finalize {
	const struct ex_value *x, *skip, *more, *bias, *scales, *to, *experts;
	int64_t rows, k, width;
};

/* What expert k made of row i, column c. */
static bool expert_part(const struct ex_job *j, const struct finalize *f, int64_t i, int64_t k,
	int64_t c, ex_id *sum)
{
	int64_t row = number(j, f->to->id[i + k * f->rows]);
	int64_t expert = number(j, f->experts->id[i * f->k + k]);

	if (row >= f->x->box.size[0] || expert >= f->bias->box.size[0])
		return false;
	*sum = ex_mad(j->tape, *sum, f->scales->id[i * f->k + k], ex_plus(j->tape,
		f->x->id[row * f->width + c], f->bias->id[expert * f->width + c]));
	return true;
}

static bool finalize(const struct ex_job *j)
{
	struct finalize f = {ex_in(j, 0), ex_in(j, 1), ex_in(j, 2), ex_in(j, 3), ex_in(j, 4), ex_in(j, 5),
		ex_in(j, 6), 0, 0, 0};

	f.rows = f.skip->box.size[0];
	f.k = f.scales->box.size[1];
	f.width = f.x->box.size[1];
	if (ex_count(&j->out[0].box) != f.rows * f.width || f.bias->box.size[1] != f.width ||
		f.skip->box.size[1] != f.width || f.to->box.size[0] != f.rows * f.k)
		return false;
	for (int64_t at = 0; at < f.rows * f.width; at++) {
		ex_id sum = f.skip->id[at];

		if (f.more)
			sum = ex_plus(j->tape, sum, f.more->id[at]);
		for (int64_t k = 0; k < f.k; k++)
			if (!expert_part(j, &f, at / f.width, k, at % f.width, &sum))
				return false;
		j->out[0].id[at] = sum;
	}
	return true;
}

/* Each batch by itself: the next free place of the expert, none where it is full or the row is
 * unlikely. */
static bool route(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *likely = ex_in(j, 1);
	struct ex_value *there = &j->out[0], *back = &j->out[1];
	int64_t experts = there->box.size[1], capacity = there->box.size[2];
	int64_t choices = x->box.size[1] * x->box.size[2], batches = x->box.size[0];
	int64_t *used = AP_NEW_N(j->arena, int64_t, batches * experts);

	if (there->box.size[0] != batches || ex_count(&back->box) != batches * choices)
		return false;
	for (int64_t i = 0; i < batches * choices; i++) {
		int64_t e = number(j, x->id[i]), *n = &used[i / choices * experts + e], to;

		if (e >= experts)
			return false;
		if (*n == capacity || (likely && ex_value_of(j->tape, likely->id[i]) % 4 == 0))
			continue;
		to = e * capacity + *n;
		there->id[i / choices * experts * capacity + to] = ex_leaf(j->tape,
			(uint64_t)(i % choices / x->box.size[2] + 1));
		back->id[i] = ex_leaf(j->tape, (uint64_t)(to + 1));
		++*n;
	}
	return true;
}

struct places { /* of experts, filled token by token */
	int64_t capacity, groups, each; /* places of an expert in a group; groups; tokens of one */
	int64_t *used; /* [experts] in the group at hand */
};

static bool places(const struct ex_job *j, const struct ex_box *at_experts, int64_t experts, int64_t tokens,
	struct places *p)
{
	p->capacity = ap_attr_int(j->attrs, "capacity", 0);
	if (p->capacity < 1 || at_experts->size[2] % p->capacity)
		return false;
	p->groups = at_experts->size[2] / p->capacity;
	p->each = p->groups ? tokens / p->groups : 0;
	p->used = AP_NEW_N(j->arena, int64_t, experts);
	return p->groups > 0 && tokens % p->groups == 0;
}

/* The place of the next token at expert e, whose group begins with token s; -1 if there is none left. */
static int64_t take_place(struct places *p, int64_t s, int64_t e)
{
	return p->used[e]++ < p->capacity ? s / p->each * p->capacity + p->used[e] - 1 : -1;
}

static void begin_group(struct places *p, int64_t s, int64_t experts)
{
	for (int64_t e = 0; s % p->each == 0 && e < experts; e++)
		p->used[e] = 0;
}

static bool dispatch(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *to = &j->in[1];
	struct ex_value *out = &j->out[0];
	int64_t experts = out->box.size[1], tokens = x->box.size[1], k = to->box.size[2], width = x->box.size[2];
	struct places p;

	if (!places(j, &out->box, experts, tokens, &p) || out->box.size[0] != x->box.size[0] ||
		out->box.size[3] != width || to->box.size[1] != tokens)
		return false;
	for (int64_t i = 0; i < x->box.size[0] * tokens; i++) {
		int64_t b = i / tokens, s = i % tokens;

		begin_group(&p, s, experts);
		for (int64_t c = 0; c < k; c++) {
			int64_t e = number(j, to->id[i * k + c]) - out->box.first[1], at;

			if (e < 0 || e >= experts || (at = take_place(&p, s, e)) < 0)
				continue;
			at += (b * experts + e) * out->box.size[2];
			for (int64_t h = 0; h < width; h++)
				out->id[at * width + h] = x->id[i * width + h];
		}
	}
	return true;
}

static bool weigh(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *to = &j->in[1];
	struct ex_value *out = &j->out[0];
	int64_t experts = out->box.size[1], tokens = x->box.size[1], k = to->box.size[2];
	struct places p;

	if (!places(j, &out->box, experts, tokens, &p) || out->box.size[0] != x->box.size[0] ||
		out->box.size[3] != 1 || to->box.size[1] != tokens || x->box.size[2] != k)
		return false;
	for (int64_t i = 0; i < x->box.size[0] * tokens; i++) {
		int64_t b = i / tokens, s = i % tokens;

		begin_group(&p, s, experts);
		for (int64_t c = 0; c < k; c++) {
			int64_t e = number(j, to->id[i * k + c]) - out->box.first[1], at;

			if (e >= 0 && e < experts && (at = take_place(&p, s, e)) >= 0)
				out->id[(b * experts + e) * out->box.size[2] + at] = x->id[i * k + c];
		}
	}
	return true;
}

/* Without weights each answer counts once. */
static bool combine(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *to = &j->in[1], *weights = j->nin > 2 ? &j->in[2] : NULL;
	struct ex_value *out = &j->out[0];
	int64_t experts = x->box.size[1], tokens = to->box.size[1], k = to->box.size[2], width = x->box.size[3];
	struct places p;

	if (!places(j, &x->box, experts, tokens, &p) || out->box.size[0] != x->box.size[0] ||
		out->box.size[1] != tokens || out->box.size[2] != width)
		return false;
	for (int64_t i = 0; i < x->box.size[0] * tokens; i++) {
		int64_t b = i / tokens, s = i % tokens;

		begin_group(&p, s, experts);
		for (int64_t c = 0; c < k; c++) {
			int64_t e = number(j, to->id[i * k + c]), at;

			if (e >= experts)
				return false;
			if ((at = take_place(&p, s, e)) < 0)
				continue;
			at += (b * experts + e) * x->box.size[2];
			for (int64_t h = 0; h < width; h++)
				out->id[i * width + h] = weights
					? ex_mad(j->tape, out->id[i * width + h], weights->id[i * k + c],
						x->id[at * width + h])
					: ex_plus(j->tape, out->id[i * width + h], x->id[at * width + h]);
		}
	}
	return true;
}

static int64_t limit_dispatch(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? n->bound.out[0].size[1] : 0;
}

static int64_t limit_combine(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? n->bound.in[0].size[1] : 0;
}

static int64_t limit_init(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *experts = &n->bound.in[2];

	return slot == 1 ? experts->size[0] * experts->size[1] : slot == 2 ? 4 : 0;
}

static int64_t limit_experts(const struct ap_node *n, unsigned slot)
{
	return slot == 0 ? n->bound.out[0].size[0] : 0;
}

static int64_t limit_finalize(const struct ap_node *n, unsigned slot)
{
	return slot == 5 ? n->bound.in[0].size[0] : slot == 6;
}

static int64_t limit_route(const struct ap_node *n, unsigned slot)
{
	return slot == 0 ? n->bound.out[0].size[1] : 0;
}

const struct ex_kernel ex_kernels_moe[] = {
	{.type = "MoeInitRouting", .forward = init_routing, .make = ex_make_moe_init,
		.limit = limit_init, .no_grad = UINT32_MAX},
	{.type = "MoeGatingTopKSoftmax", .forward = gating, .make = ex_make_moe_gating,
		.no_grad = UINT32_MAX},
	{.type = "MoeComputeExpertTokens", .forward = expert_tokens, .make = ex_make_expert_tokens,
		.limit = limit_experts, .no_grad = UINT32_MAX},
	{.type = "MoeFinalizeRouting", .forward = finalize, .make = ex_make_moe_finalize,
		.limit = limit_finalize, .no_grad = UINT32_MAX},
	{.type = "TopKRouter", .forward = route, .make = ex_make_route, .limit = limit_route,
		.no_grad = UINT32_MAX},
	{.type = "TopPRouter", .forward = route, .make = ex_make_route, .limit = limit_route,
		.no_grad = UINT32_MAX},
	{.type = "MoeDispatch", .forward = dispatch, .make = ex_make_dispatch, .limit = limit_dispatch,
		.no_grad = 2},
	{.type = "MoeWeights", .forward = weigh, .make = ex_make_weights, .limit = limit_dispatch,
		.no_grad = 2},
	{.type = "MoeCombine", .forward = combine, .make = ex_make_combine, .limit = limit_combine,
		.no_grad = 2},
	{0}
};
