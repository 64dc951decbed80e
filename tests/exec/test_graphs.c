/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole small graphs on virtual ranks, under random legal strategies and under the plans that the engines
 * find, as they are read back from the plan file and from the strategy checkpoint: every result, every
 * gradient and every updated parameter is that of one rank.
 *
 * A piece of work is a graph: test_graphs=NAME, with AP_SEED: again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "game.h"
#include "harness.h"
#include "shard/imposed.h"

static const int64_t devices[] = {2, 4, 6, 8, 12};

enum { KINDS = EX_SETTINGS * AP_COUNT(devices) };

/* Of fewer cases than kinds, every third kind, others of each graph. */
static bool try_devices(struct ex_game *g, size_t i, uint32_t cases)
{
	int64_t ndev = devices[i];
	uint64_t turn = ex_hash_text(g->sample->name) + i * EX_SETTINGS;
	bool good = true;

	fixture_open(&g->f, ndev, 4, "ascend910b");
	g->w.ctx = &g->f.ctx;
	g->w.ndev = ndev;
	g->w.rng = 1 + ex_hash(g->seed ^ ex_hash_text(g->sample->name), (uint64_t)ndev) / 2;
	fixture_graph(&g->f, g->sample->text);
	g->f.graph = ap_graph_deal_if_asked(&g->f.ctx, g->f.graph);
	for (int k = 0; k < EX_SETTINGS && good; k++)
		if (cases >= KINDS || (turn + (uint64_t)k) % 3 == 0)
			good = ex_game_play(g, k, (cases + KINDS - 1) / KINDS, k % 4 == (int)(ndev / 2 % 4));
	fixture_close(&g->f);
	return good;
}

/* False where something differs. */
static bool try_graph(const struct ex_graph_sample *sample, uint64_t seed, uint32_t cases)
{
	struct ex_game g = {.sample = sample, .seed = seed};
	char repeat[64];
	const char *lacks;

	snprintf(repeat, sizeof repeat, "test_graphs=%s", sample->name);
	g.repeat = repeat;
	fixture_open(&g.f, 2, 4, "ascend910b");
	fixture_graph(&g.f, sample->text);
	lacks = ex_graph_lacks(g.f.graph);
	if (lacks)
		printf("%s waits for the kernel of %s\n", sample->name, lacks);
	fixture_close(&g.f);
	for (size_t i = 0; i < AP_COUNT(devices) && !lacks && !g.failed; i++)
		try_devices(&g, i, cases);
	if (!lacks)
		printf("%s: %" PRIu32 " plans, %" PRIu32 " runs, %" PRIu64 " collectives\n", sample->name,
			g.plans, g.runs, g.w.ncollective);
	return !g.failed;
}

START_LOOP_TEST(graphs_are_those_of_one_rank, ex_graph_count())
{
	const struct ex_graph_sample *s = ex_graph_at((size_t)_i);
	uint32_t cases = (uint32_t)ex_cases(300) / 8;

	if (test_asked((size_t)_i, s->name))
		ck_assert(try_graph(s, ex_seed(s->name), cases));
}
END_TEST
