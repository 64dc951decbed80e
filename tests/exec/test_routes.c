/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of every route that decides for itself what a checkpoint does not hold, on virtual ranks: random
 * strategies of operators with a parameter, completed by the route, and what a search for the route finds; each
 * as its plan file says it, and as the route makes it of its checkpoint. Every result, every gradient and every
 * updated parameter is that of one rank. Then the same with random pipelines of two stages.
 *
 * A piece of work is a graph: test_routes=NAME, with AP_SEED: again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "pipe_game.h"
#include "routes.h"

static const int64_t devices[] = {2, 3, 4, 6, 8, 12};

enum { NDEVICES = AP_COUNT(devices), ROUNDS = 3 };

/* Route i of those that complete; NULL past the end. */
static const struct ap_route *route_at(size_t i)
{
	const struct ap_route *r;

	for (size_t row = 0; (r = ap_route_at(row)); row++)
		if (r->complete && i-- == 0)
			return r;
	return NULL;
}

static const char *mode_of(int k, size_t device)
{
	switch ((k + device) % 4) {
	case 0:
		return "auto";
	case 2:
		return "recursive_programming";
	default:
		return NULL;
	}
}

/* False where something differs. */
static bool try_devices(struct ex_game *g, size_t device, uint32_t picks, struct ex_routed *out)
{
	int64_t ndev = devices[device];
	bool good = true;

	fixture_open(&g->f, ndev, 4, "ascend910b");
	g->w.ctx = &g->f.ctx;
	g->w.ndev = ndev;
	g->w.rng = 1 + ex_hash(g->seed ^ ex_hash_text(g->sample->name), (uint64_t)ndev) / 2;
	fixture_graph(&g->f, g->sample->text);
	for (int k = 0; k < EX_SETTINGS && good; k++) {
		struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);

		good = !ex_game_begin(g, k) || ex_route_play(g, picks, mode_of(k, device), out);
		good &= !g->failed;
		if (good)
			ap_arena_release(g->f.ctx.arena, mark);
	}
	fixture_close(&g->f);
	return good;
}

/* Does every operator have a kernel, and MindSpore an operator for it? It has none of Megatron's dispatchers. */
static bool can_run(const struct ex_graph_sample *sample)
{
	struct fixture f;
	bool can;

	if (strstr(sample->text, "MoeDispatch"))
		return false;
	fixture_open(&f, 2, 4, "ascend910b");
	fixture_graph(&f, sample->text);
	can = !ex_graph_lacks(f.graph);
	fixture_close(&f);
	return can;
}

/* A run of few cases takes some of the numbers of devices that a graph may have, others of another graph. */
static bool is_taken(size_t place, const char *graph)
{
	uint64_t cases = ex_cases(200), stride = cases <= 200 ? 3 : 1;

	return (place + ex_hash_text(graph)) % stride == 0;
}

static void try_route(const struct ex_graph_sample *sample, const struct ap_route *route, uint64_t seed,
	uint32_t picks)
{
	struct ex_game g = {.sample = sample, .seed = seed, .route = route};
	struct ex_routed sum = {0};
	char repeat[64];

	snprintf(repeat, sizeof repeat, "test_routes=%s", sample->name);
	g.repeat = repeat;
	for (size_t i = 0, place = 0; i < NDEVICES; i++)
		if ((!sample->pinned || devices[i] % 2 == 0) && is_taken(place++, sample->name))
			ck_assert_msg(try_devices(&g, i, picks, &sum), "%s of %s", sample->name, route->name);
	printf("%s, %s: %" PRIu32 " completed, %" PRIu32 " refused; searches: %" PRIu32 " found, %" PRIu32
		" none; %" PRIu32 " operators differ, %" PRIu32 " runs\n", sample->name, route->name,
		sum.completed, sum.refused, sum.found, sum.none, sum.differ, g.runs);
	ck_assert_uint_gt(sum.completed, 0);
	ck_assert_uint_le(10 * sum.refused, sum.completed);
	ck_assert_uint_gt(sum.found, 0);
}

START_LOOP_TEST(routes_are_those_of_one_rank, ex_graph_count())
{
	const struct ex_graph_sample *s = ex_graph_at((size_t)_i);
	uint32_t picks = (uint32_t)(ex_cases(200) + 99) / 100;
	const struct ap_route *r;

	if (!test_asked((size_t)_i, s->name) || !can_run(s))
		return;
	for (size_t i = 0; (r = route_at(i)); i++)
		try_route(s, r, ex_seed(s->name), picks);
}
END_TEST

/* A random pick of what a checkpoint of all stages holds, completed; false where the route stops at it. */
static bool draw_staged(struct ex_pipe_game *p, struct ap_plan *out)
{
	const int32_t *const *counts = ex_choice_draw(&p->f.ctx, p->choice, &p->w.rng);
	const char *why;
	enum ap_status st;

	if (!counts)
		return false;
	counts = ex_route_held(&p->f.ctx, p->g, p->w.ndev, &p->f.step, counts);
	st = ex_route_complete(&p->f.ctx, p->route, p->g, p->f.machine, &p->f.step, counts, &counts, &why);
	ck_assert_msg(!why, "%s: %s", p->route->name, why);
	if (st != AP_OK)
		return false;
	ap_plan_make(&p->f.ctx, p->g, p->f.machine, &p->f.step, counts, INT64_C(1) << 60, out);
	out->search.mode = "given";
	out->search.status = AP_PLAN_GIVEN;
	return true;
}

/* The plan of a search for the route, and what its merged file says. */
static void search_staged(struct ex_pipe_game *p, struct ex_routed *out)
{
	struct ap_plan plan, again;

	if (!ex_pipe_game_search(p, &plan)) {
		out->none++;
		return;
	}
	out->found++;
	ck_assert_msg(ex_pipe_game_play(p, &plan), "%s: %s", p->route->name, p->why);
	if (!ex_pipe_game_reread(p, &plan, &again))
		return;
	for (ap_id i = 0; i < p->g->nnode; i++)
		ck_assert_mem_eq(plan.op[i].place.count, again.op[i].place.count,
			p->g->node[i].bound.nfactor * sizeof(int32_t));
	ck_assert(plan.prediction.step_time_s == again.prediction.step_time_s);
	out->reread++;
}

/* One pipeline of two stages. */
static void try_staged(const struct ex_graph_sample *sample, const struct ap_route *route,
	const struct ap_scheduler *s, uint64_t seed, struct ex_routed *out)
{
	struct ex_pipe_game p;
	struct ap_plan plan;

	if (!ex_pipe_game_open(&p, sample, s, 2, seed % 2 ? 4 : 2, seed))
		return;
	p.route = route;
	p.f.step.executor = route->executor;
	p.f.step.dealing = route->dealing;
	if (draw_staged(&p, &plan)) {
		out->completed++;
		ck_assert_msg(ex_pipe_game_play(&p, &plan), "%s of %s: %s", sample->name, route->name, p.why);
	} else {
		out->refused++;
	}
	if (seed % 3 == 0)
		search_staged(&p, out);
	ex_pipe_game_close(&p);
}

START_LOOP_TEST(stages_of_routes_are_one_rank, ex_graph_count())
{
	const struct ex_graph_sample *s = ex_graph_at((size_t)_i);
	const struct ap_scheduler *scheduler;
	uint64_t seed = ex_seed(s->name);
	struct ex_routed sum = {0};
	const struct ap_route *r;

	if (!test_asked((size_t)_i, s->name))
		return;
	for (size_t i = 0; (r = route_at(i)); i++)
		for (size_t k = 0; (scheduler = ap_scheduler_at(k)); k++)
			for (uint64_t n = 0; n < ROUNDS; n++)
				try_staged(s, r, scheduler, seed + (i * 100 + k) * ROUNDS + n, &sum);
	printf("%s in stages: %" PRIu32 " completed, %" PRIu32 " refused; searches: %" PRIu32 " found, %"
		PRIu32 " none, %" PRIu32 " read back\n", s->name, sum.completed, sum.refused, sum.found,
		sum.none, sum.reread);
}
END_TEST
