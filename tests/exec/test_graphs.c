/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole small graphs on virtual ranks, under random legal strategies and under the plans that the engines
 * find, as they are read back from the plan file and from the strategy checkpoint: every result, every
 * gradient and every updated parameter is that of one rank.
 *
 * Usage: test_graphs PART PARTS   every PARTS-th graph
 *        test_graphs NAME         one graph; with AP_SEED: again
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "game.h"

static const int64_t devices[] = {2, 4, 6, 8, 12};

enum { KINDS = EX_SETTINGS * AP_COUNT(devices) };

static bool try_devices(struct ex_game *g, int64_t ndev, uint32_t cases)
{
	bool good = true;

	fixture_open(&g->f, ndev, 4, "ascend910b");
	g->w.ctx = &g->f.ctx;
	g->w.ndev = ndev;
	g->w.rng = 1 + ex_hash(g->seed ^ ex_hash_text(g->sample->name), (uint64_t)ndev) / 2;
	fixture_graph(&g->f, g->sample->text);
	for (int k = 0; k < EX_SETTINGS && good; k++)
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

	snprintf(repeat, sizeof repeat, "test_graphs %s", sample->name);
	g.repeat = repeat;
	fixture_open(&g.f, 2, 4, "ascend910b");
	fixture_graph(&g.f, sample->text);
	lacks = ex_graph_lacks(g.f.graph);
	if (lacks)
		printf("%s waits for the kernel of %s\n", sample->name, lacks);
	fixture_close(&g.f);
	for (size_t i = 0; i < AP_COUNT(devices) && !lacks && !g.failed; i++)
		try_devices(&g, devices[i], cases);
	if (!lacks)
		printf("%s: %" PRIu32 " plans, %" PRIu32 " runs, %" PRIu64 " collectives\n", sample->name,
			g.plans, g.runs, g.w.ncollective);
	return !g.failed;
}

static struct { /* graphs that are asked for */
	const char *name; /* NULL: all */
	unsigned long part, parts;
} asked = {NULL, 0, 1};

START_TEST(graphs_are_those_of_one_rank)
{
	const struct ex_graph_sample *s = ex_graph_at((size_t)_i);
	uint32_t cases = (uint32_t)ex_cases(675) / 5;

	if (asked.name ? strcmp(s->name, asked.name) == 0 : (unsigned long)_i % asked.parts == asked.part)
		ck_assert(try_graph(s, ex_seed(s->name), cases));
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tc = tcase_create("graphs");
	Suite *s = suite_create("exec");
	SRunner *sr;
	int n = 0, failed;

	asked.name = argc == 2 ? argv[1] : NULL;
	if (argc == 3) {
		asked.part = strtoul(argv[1], NULL, 10);
		asked.parts = strtoul(argv[2], NULL, 10);
	}
	while (ex_graph_at((size_t)n))
		n++;
	tcase_add_loop_test(tc, graphs_are_those_of_one_rank, 0, n);
	tcase_set_timeout(tc, 300);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
