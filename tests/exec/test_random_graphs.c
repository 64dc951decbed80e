/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs on virtual ranks under random legal strategies: what test_graphs does with graphs that
 * somebody thought of. AP_SEED with AP_CASES=1 repeats a case.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "game.h"
#include "harness.h"
#include "random_graph.h"
#include "shard/imposed.h"

enum { OPERATORS = 10, PLANS = 6, MOST_ELEMENTS = 6000 };

/* Small enough, of kernels that are there, no operand left out before another one. */
static bool is_fit(const struct ap_graph *g, const char *text)
{
	if (ex_graph_lacks(g) || strstr(text, "null"))
		return false;
	for (ap_id t = 0; t < g->ntensor; t++)
		if (ap_tensor_bytes(&g->tensor[t]) > MOST_ELEMENTS * ap_dtype_bytes(g->tensor[t].shape.dtype))
			return false;
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].bound.flops > 40 * MOST_ELEMENTS)
			return false;
	return true;
}

/* Which of equal values a gradient goes to is not the same on one rank and on many; and equal values are
 * what repeats and joins are for. */
static bool may_tie(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (ex_kernel_find(g->node[i].type)->ordered)
			return true;
	return false;
}

struct sums {
	uint64_t played, plans, runs, collectives;
};

static bool try_case(uint64_t seed, struct sums *sums)
{
	static const int64_t devices[] = {2, 4, 6, 8, 12};
	static const int settings[] = {0, 1, 4, 5};
	struct ex_graph_sample sample = {.name = "random", .random = true};
	struct ex_game g = {.sample = &sample, .seed = seed, .repeat = "AP_CASES=1 test_random_graphs"};
	uint64_t state = 1 + ex_hash(seed, 0) / 2;
	struct random_graph text;
	bool good = true;

	g.w.rng = 1 + ex_hash(seed, 1) / 2;
	fixture_open(&g.f, devices[ex_below(&g.w.rng, 5)], 4, "ascend910b");
	g.w.ctx = &g.f.ctx;
	g.w.ndev = g.f.machine->ndev;
	random_graph(&g.f.ctx, &state, OPERATORS, &text);
	sample.text = text.text;
	fixture_graph(&g.f, text.text);
	g.f.graph = ap_graph_deal_if_asked(&g.f.ctx, g.f.graph);
	if (is_fit(g.f.graph, text.text)) {
		good = ex_game_play(&g, may_tie(g.f.graph) ? 8 : settings[ex_below(&g.w.rng, 4)], PLANS,
			false);
		sums->played++;
	}
	if (!good)
		printf("%s\n", text.text);
	fflush(stdout);
	sums->plans += g.plans;
	sums->runs += g.runs;
	sums->collectives += g.w.ncollective;
	fixture_close(&g.f);
	return good;
}

START_TEST(random_graphs_are_those_of_one_rank)
{
	uint64_t seed = ex_seed("random_graphs"), n = ex_cases(300);
	struct sums sums = {0};

	for (uint64_t i = 0; i < n; i++)
		ck_assert(try_case(seed + i, &sums));
	printf("%" PRIu64 " of %" PRIu64 " graphs, %" PRIu64 " plans, %" PRIu64 " runs, %" PRIu64
		" collectives\n", sums.played, n, sums.plans, sums.runs, sums.collectives);
	ck_assert(n < 100 || sums.played > n / 8);
}
END_TEST
