/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staged graphs on virtual ranks, cut at random: sample graphs with micro-batches, and random ones. The
 * ranks of all stages are the same here, so that a Send is a copy; what is sent, its bytes and its
 * gradient are not. What fails names its case, whose number is added to AP_SEED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "game.h"
#include "harness.h"
#include "graph/graph.h"
#include "pipeline/schedule.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "random_graph.h"
#include "stages.h"

enum { OPERATORS = 10, PLANS = 4, MOST_ELEMENTS = 4000 };

struct trial {
	struct fixture f;
	struct ex_world w;
	struct ap_pipe pipe;
	uint32_t runs, sends;
};

static void open_trial(struct trial *t, uint64_t seed, int64_t ndev, const struct ex_pipe *pipe)
{
	fixture_open(&t->f, ndev * pipe->nstage, 4, "ascend910b");
	t->w = (struct ex_world){.ctx = &t->f.ctx, .rng = 1 + ex_hash(seed, 1) / 2, .ndev = ndev};
	ap_machine_staged(&t->f.ctx, t->f.machine, (uint32_t)pipe->nstage, &t->f.machine);
}

/* An interleaved pipeline needs as many micro-batches as stages; a V does not. */
static void random_step(struct trial *t, struct ex_pipe *pipe, int64_t micro)
{
	const char *name;
	struct ap_step *s = &t->f.step;

	pipe->vee |= pipe->nsegment > 1 && micro < pipe->nstage;
	name = pipe->vee ? "zero_bubble_v" : pipe->nsegment > 1 ? "interleaved" : "1f1b";
	s->executor = ex_below(&t->w.rng, 2) ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	s->micro_batches = micro;
	s->optimizer_sharding = ex_below(&t->w.rng, 2);
	s->shard_threshold_bytes = 0;
	s->full_batch = ex_below(&t->w.rng, 3) == 0;
	s->gradient_fp32_sync = ex_below(&t->w.rng, 2);
	ap_schedule_pipe(&t->f.ctx, ap_scheduler_find(name), pipe->nstage, pipe->nsegment, micro, &t->pipe);
	s->pipe = &t->pipe;
}

static void run_plan(struct trial *t, const struct ap_graph *g, const int32_t *const *counts,
	const struct ex_graph_truth *truth)
{
	struct ap_mark arena = ap_arena_mark(t->f.ctx.arena), scratch = ap_arena_mark(t->f.ctx.scratch);
	struct ex_program program;
	struct ap_plan plan;
	const char *why;

	ap_plan_make(&t->f.ctx, g, t->f.machine, &t->f.step, counts, INT64_C(1) << 60, &plan);
	ex_program_of_plan(&t->f.ctx, &plan, &program);
	t->w.trouble = NULL;
	why = ex_program_run(&t->w, &program, truth);
	ck_assert_msg(!why, "%s, %s, %" PRId64 " micro-batches, %d stages of %d segments", why,
		t->f.step.executor == AP_EXECUTOR_GENERIC ? "generic" : "mindspore",
		t->f.step.micro_batches, t->pipe.nstage, t->pipe.nsegment);
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t c = 0; c < plan.op[i].ncomm; c++)
			t->sends += plan.op[i].comm[c].comm.kind == AP_COLL_SEND;
	t->runs++;
	ap_arena_release(t->f.ctx.scratch, scratch);
	ap_arena_release(t->f.ctx.arena, arena);
}

/* Of a graph whose own numbers can go through it. */
static void run_staged(struct trial *t, const struct ex_pipe *pipe, uint64_t seed)
{
	const struct ap_spot *spot = ex_random_spots(&t->f.ctx, t->f.graph, pipe, &t->w.rng);
	struct ex_graph_truth truth;
	struct ex_choice *choice;
	const struct ap_graph *g;

	ap_graph_staged(&t->f.ctx, t->f.graph, spot, &g);
	choice = ex_choice_make(&t->f.ctx, g, t->w.ndev, &t->f.step);
	t->w.trouble = NULL;
	if (!choice || !ex_graph_truth_make(&t->w, g, &t->f.step, seed, &truth))
		return;
	for (int i = 0; i < PLANS; i++) {
		const int32_t *const *counts = ex_choice_draw(&t->f.ctx, choice, &t->w.rng);

		if (counts)
			run_plan(t, g, counts, &truth);
	}
}

static const int64_t devices[] = {2, 4, 6, 8};

static void try_sample(const struct ex_graph_sample *sample, uint64_t seed, struct trial *t)
{
	uint64_t rng = 1 + ex_hash(seed ^ ex_hash_text(sample->name), 0) / 2;
	struct ex_pipe pipe = ex_random_pipe(&rng, 3);

	open_trial(t, seed, devices[ex_below(&rng, 4)], &pipe);
	fixture_graph(&t->f, sample->text);
	random_step(t, &pipe, 1 + (int64_t)ex_below(&rng, 2));
	if (!ex_graph_lacks(t->f.graph))
		run_staged(t, &pipe, seed);
	fixture_close(&t->f);
}

/* Equal values tie, and whose gradient counts then depends on the cut. */
static bool is_fit(const struct ap_graph *g, const char *text)
{
	if (ex_graph_lacks(g) || strstr(text, "null"))
		return false;
	for (ap_id x = 0; x < g->ntensor; x++)
		if (ap_tensor_bytes(&g->tensor[x]) > MOST_ELEMENTS * 8)
			return false;
	for (ap_id i = 0; i < g->nnode; i++)
		if (ex_kernel_find(g->node[i].type)->ordered || g->node[i].bound.flops > 40 * MOST_ELEMENTS)
			return false;
	return true;
}

static void try_random(uint64_t seed, struct trial *t)
{
	uint64_t state = 1 + ex_hash(seed, 2) / 2, rng = 1 + ex_hash(seed, 3) / 2;
	struct ex_pipe pipe = ex_random_pipe(&rng, 3);
	struct random_graph text;

	open_trial(t, seed, devices[ex_below(&rng, 4)], &pipe);
	random_graph(&t->f.ctx, &state, OPERATORS, &text);
	fixture_graph(&t->f, text.text);
	random_step(t, &pipe, 1);
	if (is_fit(t->f.graph, text.text))
		run_staged(t, &pipe, seed);
	fixture_close(&t->f);
}

START_LOOP_TEST(sample_graphs, ex_cases(200) / 50 + 1)
{
	const struct ex_graph_sample *s;
	struct trial t = {.runs = 0};

	for (size_t i = 0; (s = ex_graph_at(i)); i++)
		try_sample(s, ex_seed(s->name) + (uint64_t)_i, &t);
	printf("%" PRIu32 " runs, %" PRIu32 " sends\n", t.runs, t.sends);
	ck_assert_uint_gt(t.runs, 0);
	ck_assert_uint_gt(t.sends, 0);
}
END_TEST

START_LOOP_TEST(random_graphs, ex_cases(200))
{
	struct trial t = {.runs = 0};

	try_random(ex_seed("staged ranks") + (uint64_t)_i, &t);
}
END_TEST
