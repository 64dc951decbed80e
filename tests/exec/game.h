/* SPDX-License-Identifier: Apache-2.0 */
/* A graph on virtual ranks, under many plans. Shared by the tests of graphs. */
#ifndef AP_TEST_EXEC_GAME_H
#define AP_TEST_EXEC_GAME_H

#include "fixture.h"
#include "program.h"
#include "plan/plan.h"

struct ex_game { /* a graph on so many devices, in steps of one kind */
	struct fixture f;
	struct ex_world w;
	const struct ex_graph_sample *sample;
	uint64_t seed;
	const char *repeat; /* command that does */
	const struct ap_route *route; /* that completes what a checkpoint holds; NULL: by cost */
	struct ex_choice *choice;
	struct ex_graph_truth truth;
	const char *how; /* where the plan comes from */
	uint32_t plans, runs;
	bool failed;
};

enum { EX_SETTINGS = 9 };

/*
 * Setting k of the step: each kind of gradients with all else; the last one without training. So many
 * random plans of the graph, and, where asked, those of the engines, MindSpore's rule and data parallel;
 * each as its plan file says it, now and then as its checkpoint does. What differs is printed with
 * all that repeats it.
 */
bool ex_game_play(struct ex_game *g, int k, uint32_t plans, bool engines);

/* Sets up setting k; false where nothing can be played. */
bool ex_game_begin(struct ex_game *g, int k);

/* A plan of the game that has begun: rows that are given, the rest by cost. */
bool ex_game_given(struct ex_game *g, const char *how, const int32_t *const *counts);

/* A plan that is made. Of a route its checkpoint must tell the same plan, in either form. */
bool ex_game_plan(struct ex_game *g, const char *how, const struct ap_plan *p);

/* Prints what is wrong, with all that repeats it; the game has failed. p may be NULL. */
void ex_game_complain(struct ex_game *g, const struct ap_plan *p, const char *why);

/* What is asked of a search or of an evaluation, in this game. */
struct ap_request ex_game_request(const struct ex_game *g, const char *mode);

#endif
