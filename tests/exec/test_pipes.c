/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines on virtual ranks: stages with ranks of their own, slots in the plan's order, micro-batches,
 * recomputing, dealt parameters. What fails names its case, whose number is added to AP_SEED.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "harness.h"
#include "plan/plan.h"
#include "pipe_game.h"

enum { PLANS = 2 };

struct sums {
	uint32_t games, runs, again, found, reread;
};

static void play(const struct ex_graph_sample *sample, const struct ap_scheduler *s, uint64_t seed,
	bool unequal, struct sums *sums)
{
	static const uint32_t devices[] = {1, 2, 4, 6};
	uint64_t own = seed ^ ex_hash_text(sample->name) ^ ex_hash_text(s->name);
	int searched = own % 4 == 0;
	uint32_t of[EX_MOST_STAGES];
	struct ex_pipe_game p;

	for (int k = 0; k < EX_MOST_STAGES; k++)
		of[k] = devices[own >> (unequal ? 1 + 2 * k : 1) & 3];
	if (!ex_pipe_game_open_divided(&p, sample, s, own & 1 ? 2 : 4, of, own))
		return;
	if (unequal && !p.devices) {
		ex_pipe_game_close(&p);
		return;
	}
	for (int i = 0; i < PLANS + searched; i++) {
		struct ap_mark mark = ap_arena_mark(p.f.ctx.arena);
		struct ap_plan plan, again;
		bool made = i == PLANS ? ex_pipe_game_search(&p, &plan) : ex_pipe_game_draw(&p, &plan);

		sums->found += made && i == PLANS;
		if (made)
			ck_assert_msg(ex_pipe_game_play(&p, &plan), "%s: %s", sample->name, p.why);
		if (made && i == PLANS - 1 && ex_pipe_game_reread(&p, &plan, &again)) {
			ck_assert_msg(ex_pipe_game_play(&p, &again), "%s, read back: %s", sample->name, p.why);
			sums->reread++;
		}
		ap_arena_release(p.f.ctx.arena, mark);
	}
	sums->games++;
	sums->runs += p.runs;
	sums->again += p.again;
	ex_pipe_game_close(&p);
}

START_LOOP_TEST(pipelines_are_one_rank, (ex_cases(200) + 99) / 100)
{
	uint64_t seed = ex_seed("pipes") + (uint64_t)_i;
	const struct ap_scheduler *s;
	const struct ex_graph_sample *g;
	struct sums sums = {0};

	for (size_t k = 0; (s = ap_scheduler_at(k)); k++)
		for (size_t i = 0; (g = ex_graph_at(i)); i++)
			play(g, s, seed, false, &sums);
	printf("%" PRIu32 " games, %" PRIu32 " runs, %" PRIu32 " with something computed again, %" PRIu32
		" searched, %" PRIu32 " read back\n", sums.games, sums.runs, sums.again, sums.found, sums.reread);
	ck_assert_uint_gt(sums.runs, 20);
	ck_assert_uint_gt(sums.again, 5);
	ck_assert_uint_gt(sums.found, 3);
	ck_assert_uint_gt(sums.reread, 5);
}
END_TEST

/* Stages with unequal numbers of ranks, between which pieces go. */
START_LOOP_TEST(unequal_stages_are_one_rank, (ex_cases(200) + 99) / 100)
{
	uint64_t seed = ex_seed("unequal pipes") + (uint64_t)_i;
	const struct ap_scheduler *s;
	const struct ex_graph_sample *g;
	struct sums sums = {0};

	for (size_t k = 0; (s = ap_scheduler_at(k)); k++)
		for (size_t i = 0; (g = ex_graph_at(i)); i++)
			play(g, s, seed, true, &sums);
	printf("%" PRIu32 " games, %" PRIu32 " runs, %" PRIu32 " with something computed again, %" PRIu32
		" searched\n", sums.games, sums.runs, sums.again, sums.found);
	ck_assert_uint_gt(sums.runs, 20);
	ck_assert_uint_gt(sums.again, 5);
	ck_assert_uint_gt(sums.found, 1);
}
END_TEST
