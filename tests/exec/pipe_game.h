/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a pipeline, under many plans. Shared by the tests of pipelines. */
#ifndef AP_TEST_EXEC_PIPE_GAME_H
#define AP_TEST_EXEC_PIPE_GAME_H

#include "fixture.h"
#include "pipe.h"
#include "plan/plan.h"

struct ex_pipe_game {
	struct fixture f;
	struct ex_world w;
	struct ap_pipe pipe;
	const struct ap_graph *g; /* staged */
	const struct ap_route *route; /* of searches; NULL: none */
	const struct ap_stage_devices *devices; /* [nstage] where they differ; NULL: they are equal */
	struct ex_choice *choice;
	struct ex_graph_truth truth;
	uint32_t plans, runs, again; /* runs that computed something again */
	const char *why; /* the first difference, with all that it happened with */
};

enum { EX_MOST_STAGES = 4 };

/* Opens a game of a sample graph with a scheduler, on so many stages of ndev devices; the rest of the step,
 * cuts into parts and micro-batches are drawn. False where it cannot be played: closed again. */
bool ex_pipe_game_open(struct ex_pipe_game *p, const struct ex_graph_sample *sample,
	const struct ap_scheduler *scheduler, int32_t nstage, int64_t ndev, uint64_t seed);
/* The same with devices[stage] devices; what differs is generic. */
bool ex_pipe_game_open_divided(struct ex_pipe_game *p, const struct ex_graph_sample *sample,
	const struct ap_scheduler *scheduler, int32_t nstage, const uint32_t *devices, uint64_t seed);
void ex_pipe_game_close(struct ex_pipe_game *p);

/* A random plan of it; false where none is found. */
bool ex_pipe_game_draw(struct ex_pipe_game *p, struct ap_plan *out);

/* The best plan that a search finds; false where it finds none. */
bool ex_pipe_game_search(struct ex_pipe_game *p, struct ap_plan *out);
/* What the merged file of a plan's stages says of it. False where it fits in none. */
bool ex_pipe_game_reread(struct ex_pipe_game *p, const struct ap_plan *plan, struct ap_plan *out);

/* What it runs like: in memory and as its file says, by its times and as stages get ready. False, with why, where something differs. */
bool ex_pipe_game_play(struct ex_pipe_game *p, const struct ap_plan *plan);

#endif
