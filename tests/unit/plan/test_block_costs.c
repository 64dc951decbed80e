/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks of one plan take, they take in a plan of other stages: passes and memory follow from them. */
#include <math.h>

#include "expert_test.h"
#include "plan/block_costs.h"
#include "plan/blocks.h"
#include "plan/whole_step.h"
#include "unit.h"

enum { MOST_PARTS = 8 };

struct moved {
	struct expert_case of;
	int64_t one[MOST_PARTS], other[MOST_PARTS]; /* layers of the parts, by segment, then stage */
	unsigned recompute;
	int64_t unit;
	int level; /* of the optimizer; 0: whole */
	int64_t bucket_bytes; /* 0: the usual ones */
};

static void open_cut(const struct moved *m, const int64_t *layers, struct fixture *f, struct ap_plan *p)
{
	struct expert_case c = m->of;
	struct ap_hybrid h;
	const int32_t *const *counts;
	const char *why = "";

	c.hybrid.layers = (struct ap_layer_cut){AP_LAYERS_COUNTED,
		(uint32_t)(c.hybrid.pp * (c.hybrid.vpp ? c.hybrid.vpp : 1)), layers};
	expert_open(f, &c, &h);
	f->step.executor = AP_EXECUTOR_GENERIC;
	f->step.recompute = m->recompute;
	f->step.recompute_unit = m->unit;
	f->step.recompute_whole = m->unit > 0;
	f->step.optimizer_sharding = m->level > 0;
	f->step.optimizer_level = m->level > 0 ? m->level : 1;
	if (m->bucket_bytes > 0)
		f->step.allreduce.bytes = f->step.reducescatter.bytes = m->bucket_bytes;
	fixture_impose(f);
	f->graph = ap_hybrid_deal(&f->ctx, f->graph, f->machine->ndev, &f->step, &h, &why);
	ck_assert_msg(f->graph != NULL, "%s", why);
	counts = ap_hybrid_counts(&f->ctx, f->graph, f->machine->ndev, &f->step, &h, &why);
	ck_assert_msg(counts != NULL, "%s", why);
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 50, p);
}

/* Where a layer's result goes. */
enum to { TO_LAYER, TO_PART, TO_HEAD, TOS };

static enum to to(const struct ap_blocks *x, uint32_t b)
{
	int32_t part = x->part[b];

	while (++b < x->n)
		if (x->layer[b] >= 0)
			return x->part[b] != part ? TO_PART : TO_LAYER;
	return TO_HEAD;
}

/* The block of a plan that has what block b of another one has: a layer whose result goes to the like, or the same
 * place around the layers. */
static const struct ap_block_cost *like(const struct ap_plan *p, const struct ap_block_cost *cost,
	const struct ap_plan *of, uint32_t b)
{
	const struct ap_blocks *x = of->blocks;
	uint32_t nth = 0, from = b;

	while (from > 0 && x->part[from - 1] == x->part[b])
		nth += x->layer[--from] < 0;
	for (uint32_t k = 0; k < p->blocks->n; k++)
		if (x->layer[b] >= 0 ? cost[k].layer >= 0 && to(p->blocks, k) == to(x, b)
				     : cost[k].layer < 0 && cost[k].part == x->part[b] && nth-- == 0)
			return &cost[k];
	ck_abort_msg("no block is like block %u", b);
	return NULL;
}

struct sums {
	double forward_s, backward_s, collectives_s;
	int64_t fixed, shared, kept, again, temporary;
};

/* One segment of a stage. */
static void add_part(const struct ap_plan *p, const struct ap_block_cost *const *block, int32_t part, int64_t held,
	int64_t late, struct sums *s)
{
	double forward_s = 0, backward_s = 0, weight_s = 0, left_s = 0;

	for (uint32_t b = 0; b < p->blocks->n; b++) {
		const struct ap_block_cost *c = block[b];

		if (p->blocks->part[b] != part)
			continue;
		forward_s += c->forward_s;
		left_s = left_s > 0 ? left_s : c->left_s;
		s->fixed += c->static_bytes;
		s->shared = c->shared_bytes > s->shared ? c->shared_bytes : s->shared;
		s->kept += c->once_bytes + held * c->kept_bytes + late * c->late_bytes;
		s->again = c->again_bytes > s->again ? c->again_bytes : s->again;
		s->temporary = c->temporary_bytes > s->temporary ? c->temporary_bytes : s->temporary;
	}
	for (uint32_t b = p->blocks->n; b-- > 0;)
		if (p->blocks->part[b] == part) {
			backward_s += block[b]->backward_s;
			weight_s += block[b]->weight_s;
			s->collectives_s += block[b]->collectives_s;
		}
	s->forward_s += forward_s;
	s->backward_s += backward_s + weight_s + left_s;
}

static void holds(const struct ap_plan *p, const struct ap_block_cost *const *block, bool exact)
{
	const struct ap_pipe *pipe = p->step->pipe;

	for (int32_t stage = 0; stage < (int32_t)p->nstage; stage++) {
		const struct ap_plan_stage *s = &p->stage[stage];
		struct sums sums = {0};

		for (int32_t part = 0; part < pipe->nstage * pipe->nsegment; part++) {
			int32_t at, v;

			ap_schedule_spot(pipe->scheduler, pipe->nstage, part, &at, &v);
			if (at == stage)
				add_part(p, block, part, s->held[v], s->late ? s->late[v] : 0, &sums);
		}
		ck_assert_msg(fabs(sums.forward_s - s->forward_s) <= (exact ? 0 : 1e-12) * s->forward_s,
			"stage %d: forward %.17g, expected %.17g", (int)stage, sums.forward_s, s->forward_s);
		ck_assert_msg(fabs(sums.backward_s - s->backward_s) <= (exact ? 0 : 1e-12) * s->backward_s,
			"stage %d: backward %.17g, expected %.17g", (int)stage, sums.backward_s, s->backward_s);
		ck_assert(sums.collectives_s <= s->backward_s * (1 + 1e-12));
		ck_assert_int_eq(sums.fixed + sums.shared, s->memory.weights + s->memory.gathered + s->memory.gradients +
			s->memory.optimizer);
		ck_assert_int_eq(sums.kept, s->memory.activations);
		ck_assert_int_eq(sums.again, s->memory.recompute);
		ck_assert_int_eq(sums.temporary, s->memory.temporary);
	}
}

/* No pass in which gradients are reduced takes less than what its blocks say of it: the last one of a part, and one
 * before. */
static void bounds(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_block_cost *const *block)
{
	struct ap_whole_step w;

	ap_whole_step_make(ctx, p, false, &w);
	for (int32_t part = 0; part < w.x.npart; part++) {
		const struct ap_whole_step_part *x = &w.part[part];
		enum ap_pass pass = w.maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
		double usual_s = 0, last_s = 0;

		for (uint32_t b = p->blocks->n; b-- > 0;) {
			const struct ap_block_cost *c = block[b];

			if (p->blocks->part[b] != part)
				continue;
			usual_s += w.maker.splits ? c->weight_s : c->backward_s;
			last_s += c->last_s - (w.maker.splits ? c->backward_s : 0);
			if (b == 0 || p->blocks->part[b - 1] != part)
				usual_s += c->least_left_s;
		}
		ck_assert_msg(last_s <= x->run[AP_RUN_LAST].span_s * (1 + 1e-12), "part %d: last %.17g, at least %.17g",
			(int)part, x->run[AP_RUN_LAST].span_s, last_s);
		ck_assert_msg(usual_s <= x->run[pass].span_s * (1 + 1e-12), "part %d: %.17g, at least %.17g", (int)part,
			x->run[pass].span_s, usual_s);
	}
}

static const struct moved cases[] = {
	{{"gpt3_1.3b", 8, 8, {.dp = 2, .pp = 4}, NULL, NULL, NULL}, {6, 6, 6, 6}, {3, 9, 7, 5}, 0, 0, 0},
	{{"gpt3_1.3b", 16, 8, {.dp = 2, .tp = 2, .pp = 4, .sp = true}, NULL, NULL, NULL}, {6, 6, 6, 6},
		{3, 9, 7, 5}, AP_RECOMPUTE_SELECTIVE, 0, 0},
	{{"gpt3_1.3b", 16, 8, {.tp = 4, .pp = 4}, NULL, NULL, NULL}, {6, 6, 6, 6}, {9, 1, 3, 11},
		AP_RECOMPUTE_FULL, 0, 0},
	{{"gpt3_1.3b", 16, 8, {.tp = 4, .pp = 4}, NULL, NULL, NULL}, {6, 6, 6, 6}, {8, 4, 10, 2},
		AP_RECOMPUTE_FULL, 2, 0},
	{{"gpt3_1.3b", 16, 8, {.dp = 2, .tp = 2, .pp = 4, .sp = true}, NULL, NULL, NULL}, {6, 6, 6, 6},
		{3, 9, 7, 5}, 0, 0, 1},
	{{"gpt3_1.3b", 16, 8, {.dp = 4, .pp = 4}, NULL, NULL, NULL}, {6, 6, 6, 6}, {3, 9, 7, 5}, 0, 0, 2},
	{{"llama2_7b", 16, 8, {.dp = 2, .tp = 2, .pp = 4, .vpp = 2, .sp = true}, NULL, NULL, NULL},
		{4, 4, 4, 4, 4, 4, 4, 4}, {2, 5, 6, 3, 4, 1, 7, 4}, AP_RECOMPUTE_SELECTIVE, 0, 0},
	{{"llama2_7b", 8, 8, {.tp = 2, .pp = 4, .vpp = 2}, "zero_bubble_v", NULL, NULL},
		{4, 4, 4, 4, 4, 4, 4, 4}, {2, 5, 6, 3, 4, 1, 7, 4}, 0, 0, 0},
	{{"llama2_7b", 16, 8, {.dp = 2, .tp = 2, .pp = 4, .vpp = 2, .sp = true}, "zero_bubble_v", NULL, NULL},
		{4, 4, 4, 4, 4, 4, 4, 4}, {2, 5, 6, 3, 4, 1, 7, 4}, AP_RECOMPUTE_FULL, 0, 1},
	{{"llama2_7b", 16, 8, {.dp = 4, .pp = 4, .vpp = 2}, "zero_bubble_v", NULL, NULL},
		{4, 4, 4, 4, 4, 4, 4, 4}, {5, 2, 3, 6, 1, 4, 7, 4}, AP_RECOMPUTE_SELECTIVE, 0, 2},
	{{"mixtral_8x7b", 16, 8, {.tp = 4, .pp = 4, .sp = true}, NULL, NULL, NULL}, {8, 8, 8, 8}, {5, 9, 11, 7},
		AP_RECOMPUTE_FULL, 0, 0},
};

START_LOOP_TEST(layers_take_the_same_in_other_stages, AP_COUNT(cases))
{
	const struct moved *m = &cases[_i];
	const struct ap_block_cost *one, *other, **found;
	struct fixture f, g;
	struct ap_plan a, b;
	const struct ap_block_cost *like_it[TOS] = {NULL}, **first;
	uint32_t nlayer = 0;
	bool left = false, some;

	open_cut(m, m->one, &f, &a);
	open_cut(m, m->other, &g, &b);
	one = ap_block_costs_make(&f.ctx, &a);
	other = ap_block_costs_make(&g.ctx, &b);
	found = AP_NEW_N(g.ctx.arena, const struct ap_block_cost *, b.blocks->n);
	for (uint32_t k = 0; k < b.blocks->n; k++)
		found[k] = &other[k];
	for (uint32_t k = 0; k < b.blocks->n; k++)
		left |= other[k].left_s > 0;
	ck_assert(left == (m->level > 1));
	/* Layers that are cut have some in their backward pass, but none in one for weights. */
	some = left || (m->of.hybrid.tp > 1 && !b.step->pipe->scheduler->splits);
	for (uint32_t k = 0; k < b.blocks->n; k++)
		ck_assert(other[k].layer < 0 || (other[k].collectives_s > 0) == some);
	holds(&b, found, !left);
	for (uint32_t k = 0; k < b.blocks->n; k++)
		found[k] = like(&a, one, &b, k);
	holds(&b, found, !left);
	for (uint32_t k = 0; k < a.blocks->n; k++) {
		if (one[k].layer < 0)
			continue;
		first = &like_it[to(a.blocks, k)];
		*first = *first ? *first : &one[k];
		nlayer += one[k].nlayer;
		ck_assert_uint_eq(one[k].class, (*first)->class);
		ck_assert(one[k].kept_bytes <= like_it[TO_LAYER]->kept_bytes);
		ck_assert_uint_eq(one[k].nlayer, m->unit > 1 ? (uint32_t)m->unit : 1);
		ck_assert(one[k].forward_s > 0 && one[k].backward_s > one[k].forward_s);
		ck_assert(one[k].update_s > 0 && one[k].static_bytes > 0);
	}
	ck_assert_uint_eq(nlayer, a.blocks->nlayer);
	fixture_close(&g);
	fixture_close(&f);
}
END_TEST

/* Of buckets from a small part of a layer to several layers; those of about a layer slow the fewest kernels for
 * certain. */
START_LOOP_TEST(passes_take_no_less_in_other_stages, AP_COUNT(cases))
{
	static const int64_t sizes[] = {1, 3000000, 10000000, 26000000, 60000000, 150000000, 1000000000};
	struct moved m = cases[_i];
	double most_s = 0, least_s = INFINITY;

	for (size_t i = 0; i < AP_COUNT(sizes); i++) {
		const struct ap_block_cost *one, *other, **found;
		struct fixture f, g;
		struct ap_plan a, b;
		double slowed_s = 0;

		m.bucket_bytes = sizes[i];
		open_cut(&m, m.one, &f, &a);
		open_cut(&m, m.other, &g, &b);
		one = ap_block_costs_make(&f.ctx, &a);
		other = ap_block_costs_make(&g.ctx, &b);
		found = AP_NEW_N(g.ctx.arena, const struct ap_block_cost *, b.blocks->n);
		for (uint32_t k = 0; k < b.blocks->n; k++) {
			found[k] = &other[k];
			slowed_s += other[k].last_s - other[k].backward_s - other[k].weight_s;
		}
		bounds(&g.ctx, &b, found);
		for (uint32_t k = 0; k < b.blocks->n; k++)
			found[k] = like(&a, one, &b, k);
		bounds(&g.ctx, &b, found);
		most_s = fmax(most_s, slowed_s);
		least_s = fmin(least_s, slowed_s);
		fixture_close(&g);
		fixture_close(&f);
	}
	ck_assert(most_s > least_s || m.of.hybrid.dp <= 1 || m.of.scheduler);
}
END_TEST

/* Buckets and updates are shared out whole. */
START_TEST(exchanges_are_shared_out)
{
	struct fixture f;
	struct ap_plan p;
	const struct ap_block_cost *cost;
	double exchange_s = 0, gather_s = 0, update_s = 0, bucket_s = 0, optimizer_s = 0;

	open_cut(&cases[4], cases[4].one, &f, &p);
	cost = ap_block_costs_make(&f.ctx, &p);
	for (uint32_t b = 0; b < p.blocks->n; b++) {
		exchange_s += cost[b].exchange_s;
		gather_s += cost[b].gather_s;
		update_s += cost[b].update_s;
	}
	for (uint32_t b = 0; b < p.nbucket; b++)
		bucket_s += p.bucket[b].time_s;
	for (ap_id i = 0; i < p.graph->nnode; i++)
		optimizer_s += p.op[i].cost.optimizer_s;
	ck_assert(exchange_s > 0 && gather_s > 0 && update_s > 0);
	ck_assert(fabs(exchange_s + gather_s - bucket_s) <= 1e-9 * bucket_s);
	ck_assert(update_s < optimizer_s);
	fixture_close(&f);
}
END_TEST
