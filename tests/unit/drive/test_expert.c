/* SPDX-License-Identifier: Apache-2.0 */
/* What experts' words say of a plan: its own hybrid, or the nearest one. */
#include "drive/drive.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "expert_test.h"
#include "unit.h"

/* Each is found again, and costs what it costs. */
static const struct expert_case hybrids[] = {
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 1}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 16}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4, .sp = true}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4, .vocab = AP_VOCAB_WHOLE}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 16, .hybrid = {.tp = 2, .cp = 2}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 32, .hybrid = {.tp = 2, .cp = 4, .sp = true}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .hybrid = {.tp = 2, .pp = 4}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
		.hybrid = {.tp = 4, .pp = 2, .vpp = 2, .sp = true}},
	{.model = "llama2_7b", .devices = 32, .hybrid = {.tp = 8}},
	{.model = "llama2_7b", .devices = 32, .hybrid = {.tp = 8, .sp = true}},
	{.model = "llama2_7b", .devices = 32, .micro_batches = 256,
		.hybrid = {.tp = 4, .cp = 2, .pp = 2, .vocab = AP_VOCAB_WHOLE}},
	{.model = "mixtral_8x7b", .devices = 32, .hybrid = {.tp = 2, .ep = 8}},
	{.model = "mixtral_8x7b", .devices = 32, .hybrid = {.tp = 4, .ep = 2, .sp = true}},
	{.model = "mixtral_8x7b", .devices = 32, .micro_batches = 4,
		.hybrid = {.tp = 4, .ep = 4, .pp = 2}},
	{.model = "resnet50", .devices = 8, .hybrid = {.tp = 1}},
	{.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 2}},
};

START_LOOP_TEST(own_hybrid_is_found, AP_COUNT(hybrids))
{
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;

	expert_plan(&f, &hybrids[_i], &h, &p);
	ap_expert_find(&f.ctx, &p, NULL, &x);
	ck_assert(x.same);
	ck_assert(x.loss == 0.0);
	ck_assert(x.step_time_s == p.prediction.step_time_s);
	ck_assert_int_eq(x.memory_bytes, p.prediction.memory.total);
	ck_assert(x.fits);
	ck_assert_int_eq(x.hybrid.dp, h.dp);
	ck_assert_int_eq(x.hybrid.tp, h.tp);
	ck_assert_int_eq(x.hybrid.cp, h.cp);
	ck_assert_int_eq(x.hybrid.ep, h.ep);
	ck_assert_int_eq(x.hybrid.pp, h.pp);
	ck_assert_int_eq(x.hybrid.vpp, h.vpp);
	ck_assert_int_eq(x.hybrid.sp, h.sp);
	ck_assert_int_eq(x.hybrid.mbs, h.mbs);
	ck_assert_int_eq(x.hybrid.micro_batches, h.micro_batches);
	fixture_close(&f);
}
END_TEST

/* The nearest: what trying all says. */
static const struct {
	struct expert_case c;
	int64_t capacity_bytes;
} others[] = {
	{{.model = "gpt3_1.3b", .devices = 8}, INT64_C(64) << 30},
	{{.model = "gpt3_1.3b", .devices = 8}, INT64_C(1) << 30}, /* nothing fits */
	{{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .hybrid = {.pp = 2}}, INT64_C(20) << 30},
	{{.model = "llama2_7b", .devices = 16, .micro_batches = 64}, INT64_C(40) << 30},
	{{.model = "mixtral_8x7b", .devices = 16, .micro_batches = 64}, INT64_C(800) << 30},
	{{.model = "multiple_mix", .devices = 16}, INT64_C(30) << 30},
	{{.model = "vit_l", .devices = 8}, INT64_C(64) << 30},
	{{.model = "resnet50", .devices = 8}, INT64_C(64) << 30},
};

struct best {
	bool any, fits;
	double step_time_s;
	int64_t memory_bytes;
};

static void try_hybrid(struct fixture *f, const struct ap_hybrid *h, int64_t capacity_bytes,
	struct best *best)
{
	const char *why;
	const struct ap_graph *g = ap_hybrid_deal(&f->ctx, f->graph, f->machine->ndev, &f->step, h, &why);
	const int32_t *const *counts = g
		? ap_hybrid_counts(&f->ctx, g, f->machine->ndev, &f->step, h, &why) : NULL;
	struct ap_plan p;
	struct best own = {.any = true};

	if (!counts)
		return;
	ap_plan_sketch(ap_plan_maker_create(&f->ctx, g, f->machine, &f->step, capacity_bytes), counts, &p);
	own.step_time_s = p.prediction.step_time_s;
	own.memory_bytes = p.prediction.memory.total;
	own.fits = own.memory_bytes <= capacity_bytes;
	if (!best->any || (own.fits != best->fits ? own.fits
			: own.fits ? own.step_time_s < best->step_time_s
				   : own.memory_bytes < best->memory_bytes))
		*best = own;
}

static struct best try_all(struct fixture *f, int64_t capacity_bytes)
{
	int64_t ndev = f->machine->ndev;
	struct best best = {0};
	struct ap_hybrid h = {.pp = f->pipe.nstage, .vpp = f->pipe.nsegment,
		.micro_batches = f->step.micro_batches};

	for (h.tp = 1; h.tp <= ndev; h.tp++)
		for (h.cp = 1; h.cp <= ndev / h.tp; h.cp++)
			for (h.ep = 1; ndev % (h.tp * h.cp) == 0 && h.ep <= ndev / h.tp / h.cp; h.ep++)
				for (int kind = 0; kind < 4; kind++) {
					h.dp = ndev / h.tp / h.cp;
					h.sp = kind & 1;
					h.vocab = kind & 2 ? AP_VOCAB_WHOLE : AP_VOCAB_AUTO;
					if (h.dp % h.ep == 0)
						try_hybrid(f, &h, capacity_bytes, &best);
				}
	return best;
}

/* A plan that is no hybrid: every operator is whole. */
static void whole_plan(struct fixture *f, int64_t capacity_bytes, struct ap_plan *p)
{
	static int32_t whole[AP_MAX_FACTOR];
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (int k = 0; k < AP_MAX_FACTOR; k++)
		whole[k] = 1;
	for (ap_id i = 0; i < f->graph->nnode; i++)
		counts[i] = whole;
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, capacity_bytes, p);
}

START_LOOP_TEST(nearest_is_the_best_of_all, AP_COUNT(others))
{
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;
	struct best best;

	expert_open(&f, &others[_i].c, &h);
	whole_plan(&f, others[_i].capacity_bytes, &p);
	ap_expert_find(&f.ctx, &p, NULL, &x);
	best = try_all(&f, others[_i].capacity_bytes);
	ck_assert(!x.same && best.any);
	ck_assert_int_gt(x.differ, 0);
	ck_assert(x.step_time_s == best.step_time_s);
	ck_assert(x.loss == best.step_time_s / p.prediction.step_time_s - 1);
	ck_assert_int_eq(x.memory_bytes, best.memory_bytes);
	ck_assert_int_eq(x.fits, best.fits);
	ck_assert_int_eq(x.hybrid.dp * x.hybrid.tp * x.hybrid.cp, f.machine->ndev);
	fixture_close(&f);
}
END_TEST

/* A stopped run looks at none; of some graphs none divides. */
START_TEST(there_may_be_none)
{
	static const struct expert_case c = {.model = "gpt3_1.3b", .devices = 8};
	static const volatile sig_atomic_t stop = 1;
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;

	expert_open(&f, &c, &h);
	whole_plan(&f, INT64_C(1) << 40, &p);
	f.ctx.stop = &stop;
	ap_expert_find(&f.ctx, &p, NULL, &x);
	ck_assert_int_eq(x.hybrid.dp, 0);
	ck_assert_str_eq(x.why_not, "the run was stopped");
	fixture_close(&f);
	expert_open(&f, &(struct expert_case){.model = "multiple_mix", .devices = 24}, &h);
	whole_plan(&f, INT64_C(1) << 40, &p);
	ap_expert_find(&f.ctx, &p, NULL, &x);
	ck_assert_int_eq(x.hybrid.dp, 0);
	ck_contains(x.why_not, "dp=24 does not divide the 32 samples of a micro-batch");
	fixture_close(&f);
}
END_TEST

/* What an expert would write for sequences is a rival of every search. */
START_TEST(searched_is_as_fast_as_any_grid)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	struct best best = {0};
	struct ap_hybrid h = {.pp = 1, .ep = 1, .vpp = 1, .micro_batches = 8};

	fixture_open(&f, 16, 8, "ascend910b3");
	expert_model(&f, "gpt3_1.3b");
	f.step.micro_batches = h.micro_batches;
	rq = (struct ap_request){.graph = f.graph, .machine = f.machine, .step = &f.step,
		.capacity_bytes = INT64_C(58) << 30, .search_mode = "auto", .prune = true};
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_OK);
	for (h.cp = 1; h.cp <= 8; h.cp *= 2)
		for (h.tp = 1; h.tp <= 16 / h.cp; h.tp *= 2) {
			h.dp = 16 / h.cp / h.tp;
			try_hybrid(&f, &h, rq.capacity_bytes, &best);
		}
	ck_assert(best.any && best.fits);
	ck_assert_double_le(p.prediction.step_time_s, 1.01 * best.step_time_s); /* what can be told apart */
	fixture_close(&f);
}
END_TEST
