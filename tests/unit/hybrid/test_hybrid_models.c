/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrids of the bundled models: which grids they take, and what goes between the ranks. */
#include <string.h>

#include "base/file.h"
#include "cost/conflict.h"
#include "drive/baseline.h"
#include "fixture.h"
#include "hybrid/hybrid.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/legal.h"
#include "unit.h"

static const struct {
	const char *name;
	int64_t most; /* of tp on 64 devices: heads, or heads of keys for one kernel */
	int sums; /* over 8 tp ranks, forward: two a layer, words, three of the loss; -1: not looked at */
} models[] = {
	{"gpt3_1.3b", 16, 24 * 2 + 1 + 3},
	{"gpt3_13b_flash", 8, 40 * 2 + 1 + 3},
	{"gpt3_175b", 32, 96 * 2 + 1 + 3},
	{"llama2_7b", 32, 32 * 2 + 1 + 3},
	{"llama2_70b", 8, 80 * 2 + 1 + 3},
	{"mixtral_8x7b", 8, 32 * 2 + 1 + 3},
	{"vit_l", 16, 24 * 2 + 3},
	{"bert_large", 16, 24 * 2 + 1}, /* its words do not divide; the pooler begins one more pair */
	{"resnet50", 64, -1},
	{"wide_deep", 64, -1},
	{"multiple_mix", 64, -1},
};

enum { MODELS = AP_COUNT(models) };

static void open_model(struct fixture *f, int64_t ndev, const char *name)
{
	char *text;
	size_t len;

	fixture_open(f, ndev, 8, "a100-80");
	ck_assert_int_eq(ap_file_read(&f->ctx, ap_arena_printf(f->ctx.arena, AP_SOURCE_ROOT
		"/models/%s.json", name), AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	fixture_graph(f, text);
}

static struct ap_hybrid grid(int64_t ndev, int64_t tp, bool sp)
{
	return (struct ap_hybrid){.dp = ndev / tp, .tp = tp, .pp = 1, .cp = 1, .ep = 1, .vpp = 1, .sp = sp};
}

/* Legal and without conflict, or refused with a reason. */
static bool is_taken(struct fixture *f, const struct ap_hybrid *h)
{
	int64_t ndev = f->machine->ndev;
	const char *why;
	const struct ap_graph *g = ap_hybrid_deal(&f->ctx, f->graph, ndev, &f->step, h, &why);
	const int32_t *const *counts = g ? ap_hybrid_counts(&f->ctx, g, ndev, &f->step, h, &why) : NULL;
	ap_id node;

	ck_assert(counts || strlen(why) > 0);
	for (ap_id i = 0; counts && i < g->nnode; i++)
		ck_assert_msg(ap_space_legal(&f->ctx, &g->node[i].bound, counts[i], ndev, &f->step, &why),
			"%s: %s", g->node[i].name, why);
	ck_assert(!counts || !ap_plan_conflict(&f->ctx, g, ndev, counts, &node));
	return counts != NULL;
}

START_LOOP_TEST(grids_are_taken_or_refused, MODELS)
{
	static const int64_t devices[] = {8, 16, 64};
	struct fixture f;

	for (int d = 0; d < 3; d++) {
		open_model(&f, devices[d], models[_i].name);
		for (int64_t tp = 1; tp <= devices[d]; tp *= 2) {
			struct ap_hybrid h = grid(devices[d], tp, false), sp = grid(devices[d], tp, true);
			bool fits = tp <= models[_i].most && f.graph->batch % h.dp == 0;

			ck_assert_msg(is_taken(&f, &h) == fits, "tp=%d", (int)tp);
			ck_assert_msg(is_taken(&f, &sp) == fits, "tp=%d, sp", (int)tp);
		}
		fixture_close(&f);
	}
}
END_TEST

static void plan_of(struct fixture *f, const int32_t *const *counts, struct ap_plan *out)
{
	struct ap_plan_maker *maker = ap_plan_maker_create(&f->ctx, f->graph, f->machine, &f->step,
		INT64_C(1) << 50);

	ap_plan_price(maker, counts, out);
}

START_LOOP_TEST(one_part_is_data_parallel, MODELS)
{
	struct fixture f;
	struct ap_hybrid h = grid(8, 1, false);
	const char *why;
	struct ap_plan a, b;

	open_model(&f, 8, models[_i].name);
	plan_of(&f, ap_hybrid_counts(&f.ctx, f.graph, 8, &f.step, &h, &why), &a);
	plan_of(&f, ap_baseline_data_parallel(&f.ctx, f.graph, 8, &f.step, &why), &b);
	ck_assert(ap_plan_objective_s(&a) == ap_plan_objective_s(&b));
	ck_assert_int_eq(a.prediction.memory.total, b.prediction.memory.total);
	fixture_close(&f);
}
END_TEST

/* Sums over tp ranks, or, with sp, their scatters; and redistributions but for those of graph inputs. */
static int sums_of(const struct ap_plan *p, enum ap_coll kind, int *moves)
{
	int n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		for (uint32_t k = 0; k < p->op[i].ncomm; k++) {
			const struct ap_comm *c = &p->op[i].comm[k].comm;

			n += c->phase == AP_PHASE_FORWARD && c->kind == kind && c->axes.n == 1 &&
				c->axes.axis[0].size == 8 && c->axes.axis[0].stride == 1;
		}
	*moves = 0;
	for (uint32_t m = 0; m < p->nmove; m++)
		*moves += p->move[m].from != AP_NONE &&
			p->move[m].cost.forward_s + p->move[m].cost.backward_s > 0;
	return n;
}

START_LOOP_TEST(layers_have_two_sums, MODELS)
{
	struct fixture f;
	struct ap_hybrid h = grid(16, 8, false);
	struct ap_plan p;
	const char *why;
	int moves;

	if (models[_i].sums < 0)
		return;
	open_model(&f, 16, models[_i].name);
	plan_of(&f, ap_hybrid_counts(&f.ctx, f.graph, 16, &f.step, &h, &why), &p);
	ck_assert_int_eq(sums_of(&p, AP_COLL_ALLREDUCE, &moves), models[_i].sums);
	ck_assert_int_eq(moves, 0);
	fixture_close(&f);
}
END_TEST

/* Experts change hands twice a layer, there and back. */
START_TEST(experts_are_cut_by_ep)
{
	struct fixture f;
	struct ap_hybrid h = grid(64, 4, false);
	const int32_t *const *counts;
	struct ap_plan p;
	const char *why;
	int moves, alltoall = 0;

	h.ep = 8;
	open_model(&f, 64, "mixtral_8x7b");
	counts = ap_hybrid_counts(&f.ctx, f.graph, 64, &f.step, &h, &why);
	ck_assert_msg(counts != NULL, "%s", why);
	plan_of(&f, counts, &p);
	sums_of(&p, AP_COLL_ALLREDUCE, &moves);
	for (uint32_t m = 0; m < p.nmove; m++)
		alltoall += p.move[m].nstep == 1 && p.move[m].step[0].move == AP_MOVE_ALLTOALL;
	ck_assert_int_eq(moves, 2 * 32);
	ck_assert_int_eq(alltoall, 2 * 32);
	h.ep = 16;
	ck_assert(!ap_hybrid_counts(&f.ctx, f.graph, 64, &f.step, &h, &why));
	ck_contains(why, "of length 8: ep=16 parts; 1, 2, 4, 8 are allowed");
	fixture_close(&f);
}
END_TEST

/* As Megatron deals them, pp x ep x etp x edp = pp x dp x cp x tp: gradients of an expert are exchanged among
 * the edp ranks that have it. */
START_LOOP_TEST(experts_are_dealt_over_tp, 4)
{
	static const struct {
		int64_t tp, ep, etp;
		bool sp;
		int64_t experts, columns; /* of a rank */
		int32_t edp, stride;
	} rows[] = {
		{4, 8, 0, true, 1, 3584, 2, 32}, /* over dp */
		{4, 8, 1, true, 1, 14336, 8, 8},
		{8, 8, 1, false, 1, 14336, 8, 8},
		{2, 4, 1, true, 2, 14336, 16, 4},
	};
	struct fixture f;
	struct ap_hybrid h = grid(64, rows[_i].tp, rows[_i].sp);
	const int32_t *const *counts;
	struct ap_plan p;
	const char *why;
	int found = 0;

	h.ep = rows[_i].ep;
	h.etp = rows[_i].etp;
	open_model(&f, 64, "mixtral_8x7b");
	f.graph = ap_hybrid_deal(&f.ctx, f.graph, 64, &f.step, &h, &why);
	ck_assert_msg(f.graph != NULL, "%s", why);
	counts = ap_hybrid_counts(&f.ctx, f.graph, 64, &f.step, &h, &why);
	ck_assert_msg(counts != NULL, "%s", why);
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 50, &p);
	for (uint32_t i = 0; i < p.nparam; i++) {
		const struct ap_plan_param *q = &p.param[i];

		if (!strstr(f.graph->tensor[q->tensor].name, "ffn.w1.weight"))
			continue;
		found++;
		ck_assert_int_eq(q->slice[0], rows[_i].experts);
		ck_assert_int_eq(q->slice[2], rows[_i].columns);
		ck_assert_int_eq(q->gradient.n, 1);
		ck_assert_int_eq(q->gradient.axis[0].size, rows[_i].edp);
		ck_assert_int_eq(q->gradient.axis[0].stride, rows[_i].stride);
	}
	ck_assert_int_eq(found, 32);
	fixture_close(&f);
}
END_TEST

/* What layers run again, of a plan in which all of them are recomputed. */
struct again {
	int sums; /* AllReduces over the 8 tp ranks */
	bool sizes; /* that each carry a sample's tokens x features */
	double forward_s, again_s; /* kernels of layers */
	int products; /* of layers, that do not run again */
	int64_t bytes; /* brought back at a time */
};

static struct again again_of(const char *name, int64_t sum_bytes, bool whole)
{
	struct again a = {.sizes = true};
	struct ap_hybrid h = grid(16, 8, false);
	struct fixture f;
	struct ap_plan p;
	const char *why;

	open_model(&f, 16, name);
	f.step.executor = AP_EXECUTOR_GENERIC;
	f.step.recompute = AP_RECOMPUTE_FULL;
	f.step.recompute_whole = whole;
	f.step.micro_batches = f.graph->batch / 2;
	plan_of(&f, ap_hybrid_counts(&f.ctx, f.graph, 16, &f.step, &h, &why), &p);
	for (ap_id i = 0; i < p.graph->nnode; i++) {
		bool in_layer = strpbrk(p.graph->node[i].cell, "0123456789") != NULL;

		a.forward_s += in_layer ? p.op[i].cost.forward_s : 0;
		a.again_s += p.op[i].cost.recompute_s;
		a.products += in_layer && strcmp(p.graph->node[i].type, "MatMul") == 0 &&
			p.op[i].cost.recompute_s == 0;
		for (uint32_t k = 0; k < p.op[i].ncomm; k++) {
			const struct ap_comm *c = &p.op[i].comm[k].comm;

			if (c->phase != AP_PHASE_RECOMPUTE)
				continue;
			a.sums += c->kind == AP_COLL_ALLREDUCE && c->axes.n == 1 &&
				c->axes.axis[0].size == 8;
			a.sizes &= c->bytes == sum_bytes;
		}
	}
	a.bytes = p.prediction.memory.recompute;
	fixture_close(&f);
	return a;
}

/* Bytes that layers hold of Llama2-70B, cut by 8, and seconds of their backward passes, by what is recomputed. */
static void held_of(unsigned what, double *bytes, double *backward_s)
{
	struct ap_hybrid h = grid(8, 8, true);
	const struct ap_graph *g;
	struct fixture f;
	struct ap_plan p;
	const char *why;

	open_model(&f, 8, "llama2_70b");
	f.step.micro_batches = f.graph->batch;
	f.step.recompute = what;
	g = ap_hybrid_deal(&f.ctx, f.graph, 8, &f.step, &h, &why);
	ck_assert_msg(g != NULL, "%s", why);
	f.graph = g;
	plan_of(&f, ap_hybrid_counts(&f.ctx, g, 8, &f.step, &h, &why), &p);
	*bytes = (double)p.prediction.memory.activations;
	*backward_s = 0;
	for (ap_id i = 0; i < g->nnode; i++)
		*backward_s += p.op[i].cost.backward_s + p.op[i].cost.backward_comm_s;
	for (uint32_t i = 0; i < p.nmove; i++)
		*backward_s += p.move[i].cost.backward_s;
	fixture_close(&f);
}

/* Of such a layer SAPP's tables hold 994, 739 with select_recompute, 403 with select_comm_recompute as well, and
 * 32 MB with full; the backward pass grows by 0.04, 0.165 and 0.5 of it. */
START_TEST(kinds_of_mindformers)
{
	static const struct {
		unsigned what;
		double held, more; /* shares */
	} of[] = {{AP_RECOMPUTE_ACTIVATION, 739. / 994, 0.04},
		{AP_RECOMPUTE_ACTIVATION | AP_RECOMPUTE_COMMUNICATION, 403. / 994, 0.165},
		{AP_RECOMPUTE_FULL, 32. / 994, 0.5}};
	double bytes, backward_s, last_s;

	held_of(AP_RECOMPUTE_NONE, &bytes, &backward_s);
	last_s = backward_s;
	for (size_t i = 0; i < AP_COUNT(of); i++) {
		double b, s;

		held_of(of[i].what, &b, &s);
		ck_assert_double_eq_tol(b / bytes, of[i].held, 0.1);
		ck_assert_double_eq_tol(s / backward_s - 1, of[i].more, 0.1);
		ck_assert_double_gt(s, last_s);
		last_s = s;
	}
}
END_TEST

/* Torch checkpointing calls a layer again: both its sums, and every kernel; there its result is for a
 * second time. What the backward pass needs is less by the last product, its sum and its addition. */
START_TEST(layers_run_again_to_their_end)
{
	static const struct {
		const char *name;
		int layers;
		int64_t sum_bytes; /* tokens x features x 2 */
	} of[] = {{"gpt3_1.3b", 24, INT64_C(2048) * 2048 * 2}, {"llama2_7b", 32, INT64_C(4096) * 4096 * 2}};

	for (size_t m = 0; m < AP_COUNT(of); m++) {
		struct again whole = again_of(of[m].name, of[m].sum_bytes, true),
			needed = again_of(of[m].name, of[m].sum_bytes, false);

		ck_assert_int_eq(whole.sums, 2 * of[m].layers);
		ck_assert_int_eq(needed.sums, of[m].layers);
		ck_assert(whole.sizes && needed.sizes);
		ck_assert_double_eq_tol(whole.again_s, whole.forward_s, 1e-9 * whole.forward_s);
		ck_assert_double_lt(needed.again_s, 0.9 * needed.forward_s);
		ck_assert_int_eq(whole.products, 0);
		ck_assert_int_eq(needed.products, of[m].layers);
		ck_assert_int_eq(whole.bytes - needed.bytes, of[m].sum_bytes);
	}
}
END_TEST
