/* SPDX-License-Identifier: Apache-2.0 */
#include "game.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_pb.h"
#include "cost/optimizer.h"
#include "drive/baseline.h"
#include "drive/drive.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "route/semi_auto.h"
#include "search/engine.h"

static void describe_step(const struct ex_game *g, struct ap_str *s)
{
	const struct ap_step *step = &g->f.step;

	ap_str_addf(s, "%" PRIu32 " devices, %s%s, %" PRId64 " micro-batches, %s batch, shards %s of %" PRId64
		", gradients %s, %s", g->f.machine->ndev,
		step->executor == AP_EXECUTOR_GENERIC ? "generic" : "mindspore",
		step->training ? "" : " inference", step->micro_batches,
		step->arrival ? "given" : step->full_batch ? "full" : "cut", step->optimizer_sharding ? "on" : "off",
		step->shard_size, step->gradient_fp32_sync ? "in float32" : "as they are", g->how);
}

void ex_game_complain(struct ex_game *g, const struct ap_plan *p, const char *why)
{
	struct ap_str s;

	ap_str_init(&s, g->f.ctx.arena);
	ap_str_addf(&s, "%s: %s\n  ", g->sample->name, why);
	describe_step(g, &s);
	for (ap_id i = 0; p && i < p->graph->nnode; i++) {
		const struct ap_placement *place = &p->op[i].place;

		ap_str_addf(&s, "\n  %s", p->graph->node[i].name);
		for (int f = 0; f < place->bound->nfactor; f++)
			ap_str_addf(&s, " %c=%" PRId32, place->bound->factor[f].letter, place->count[f]);
	}
	ap_str_addc(&s, '\n');
	ap_diag_render(g->f.ctx.diag, AP_ERROR, 5, &s);
	printf("%s  repeat: AP_SEED=%" PRIu64 " %s\n", s.s, g->seed, g->repeat);
	fflush(stdout); /* a failed test's process leaves it behind */
	g->failed = true;
}

static const char *run(struct ex_game *g, const struct ex_program *p)
{
	struct ap_mark mark = ap_arena_mark(g->f.ctx.scratch);
	const char *why;

	g->runs++;
	g->w.trouble = NULL;
	why = ex_program_run(&g->w, p, &g->truth);
	ap_arena_release(g->f.ctx.scratch, mark);
	return why;
}

/* In memory, and as the plan file says it. */
static const char *through_file(struct ex_game *g, const struct ap_plan *p)
{
	struct ap_ctx *ctx = &g->f.ctx;
	struct ex_program direct, read;
	struct ap_str text;
	const char *why;

	ap_str_init(&text, ctx->arena);
	ap_emit_plan_json(ctx, p, ap_str_take, &text);
	ex_program_of_plan(ctx, p, &direct);
	why = ex_program_of_file(ctx, text.s, text.len, p->graph, p->step, &read);
	if (why)
		return ap_arena_printf(ctx->arena, "the plan file: %s", why);
	why = ex_program_differs(ctx, &direct, &read);
	if (why)
		return ap_arena_printf(ctx->arena, "the plan file has another %s", why);
	why = ex_schedule_wrong(ctx, text.s, text.len, &read);
	if (why)
		return ap_arena_printf(ctx->arena, "the schedule: %s", why);
	return run(g, &read);
}

/* Operators that the checkpoint pins must be cut as they were. */
static const char *pinned_differs(const struct ap_plan *p, const struct ex_program *read)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ex_oper *o = &read->oper[i];

		if (p->op[i].in_checkpoint &&
			(memcmp(o->in, p->op[i].in, o->nin * sizeof *o->in) != 0 ||
				memcmp(o->out, p->op[i].out, o->nout * sizeof *o->out) != 0))
			return p->graph->node[i].name;
	}
	return NULL;
}

/* A route makes of a checkpoint the plan that it was written for. */
static const char *told_differs(struct ex_game *g, const struct ap_plan *p, const struct ex_program *read)
{
	struct ap_ctx *ctx = &g->f.ctx;
	struct ex_program direct;
	const char *what;

	ex_program_of_plan(ctx, p, &direct);
	what = ex_program_differs(ctx, &direct, read);
	return what ? ap_arena_printf(ctx->arena, "it tells another %s", what) : NULL;
}

/* Does it ask for a dealt sum, which no checkpoint says? */
static bool asks(struct ap_ctx *ctx, const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (ap_placement_counts(ctx->arena, &p->op[i].place) != p->op[i].place.count)
			return true;
	return false;
}

/* What operators with parameters do, as the checkpoint says it; the rest is completed. */
static const char *through_ckpt(struct ex_game *g, const struct ap_plan *p, bool json)
{
	struct ap_ctx *ctx = &g->f.ctx;
	struct ex_program read;
	struct ap_ckpt ckpt;
	struct ap_str bytes;
	const char *why;

	if (asks(ctx, p))
		return NULL;
	if (ap_ckpt_check_names(ctx, p->graph, false) != AP_OK)
		return g->sample->random ? NULL : "its names fit in no checkpoint";
	ap_ckpt_of_plan(ctx, p, false, &ckpt);
	ap_str_init(&bytes, ctx->arena);
	if (json)
		ap_ckpt_write_json(&ckpt, ap_str_take, &bytes);
	else
		ap_ckpt_write_pb(ctx, &ckpt, ap_str_take, &bytes);
	why = ex_program_of_ckpt(ctx, bytes.s, bytes.len, json, p->graph, p->machine, p->step, g->route,
		&read);
	if (!why && g->route)
		why = told_differs(g, p, &read);
	else if (!why)
		why = pinned_differs(p, &read);
	if (!why && !g->route)
		why = run(g, &read);
	return why ? ap_arena_printf(ctx->arena, "%s checkpoint: %s", json ? "JSON" : "binary", why) : NULL;
}

/* A plan as its file says it, now and then as its checkpoint does. */
static bool try_plan(struct ex_game *g, const struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);
	const char *why = through_file(g, p);

	if (!why && g->route)
		why = through_ckpt(g, p, g->plans % 2);
	else if (!why && g->plans % 4 == 0)
		why = through_ckpt(g, p, g->plans % 8 == 0);
	g->plans++;
	if (why)
		ex_game_complain(g, p, why);
	else
		ap_arena_release(g->f.ctx.arena, mark);
	return !why;
}

static bool try_random(struct ex_game *g, uint32_t n)
{
	g->how = "at random";
	for (uint32_t i = 0; i < n; i++) {
		struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);
		const int32_t *const *counts = ex_choice_draw(&g->f.ctx, g->choice, &g->w.rng);
		struct ap_plan p;

		if (counts) {
			ap_plan_make(&g->f.ctx, g->f.graph, g->f.machine, &g->f.step, counts,
				INT64_C(1) << 60, &p);
			p.search.mode = "given";
			p.search.status = AP_PLAN_GIVEN;
			if (!try_plan(g, &p))
				return false;
		}
		ap_arena_release(g->f.ctx.arena, mark);
	}
	return true;
}

bool ex_game_plan(struct ex_game *g, const char *how, const struct ap_plan *p)
{
	g->how = how;
	return try_plan(g, p);
}

struct ap_request ex_game_request(const struct ex_game *g, const char *mode)
{
	return (struct ap_request){.graph = g->f.graph, .machine = g->f.machine, .step = &g->f.step,
		.capacity_bytes = INT64_C(1) << 60, .search_mode = mode, .route = g->route, .prune = true};
}

/* Is there a step of the kind that the graph is about? */
static bool has_step(const struct ap_plan *p, const char *name)
{
	bool wanted = strcmp(name, "AlltoAll") == 0;

	for (uint32_t m = 0; m < p->nmove; m++)
		for (int i = 0; i < p->move[m].nstep; i++)
			if (wanted && p->move[m].step[i].move == AP_MOVE_ALLTOALL)
				return true;
	return false;
}

static bool try_engine(struct ex_game *g, const char *name)
{
	struct ap_request rq = ex_game_request(g, name);
	struct ap_plan p;

	g->how = name;
	if (ap_drive_search(&g->f.ctx, &rq, &p, NULL) != AP_OK) {
		ex_game_complain(g, NULL, "no plan is found");
		return false;
	}
	if (g->sample->must && !has_step(&p, g->sample->must)) {
		ex_game_complain(g, &p, "lacks what its pins must lead to");
		return false;
	}
	return try_plan(g, &p);
}

static bool try_engines(struct ex_game *g)
{
	const struct ap_engine *e;

	for (size_t i = 0; (e = ap_engine_at(i)); i++)
		if ((strcmp(e->name, "brute_force") != 0 || ex_choice_picks(g->choice) < 20000) &&
			!try_engine(g, e->name))
			return false;
	return true;
}

bool ex_game_given(struct ex_game *g, const char *how, const int32_t *const *counts)
{
	struct ap_request rq = ex_game_request(g, "auto");
	struct ap_plan p;

	g->how = how;
	if (ap_drive_evaluate(&g->f.ctx, &rq, counts, &p) == AP_OK)
		return try_plan(g, &p);
	ex_game_complain(g, NULL, "cannot be evaluated");
	return false;
}

/* MindSpore's semi-automatic mode, and data parallel. */
static bool try_fixed(struct ex_game *g)
{
	const int32_t *const *counts;
	const char *why;

	if (ap_semi_auto_complete(&g->f.ctx, g->f.graph, g->f.machine, &g->f.step, NULL, &counts) == AP_OK &&
		!g->sample->pinned && !ex_game_given(g, "completed by rule", counts))
		return false;
	counts = ap_baseline_data_parallel(&g->f.ctx, g->f.graph, g->f.machine->ndev, &g->f.step, &why);
	return !counts || g->sample->pinned || ex_game_given(g, "data parallel", counts);
}

/* Now and then inputs in parts that are given: one dimension each, all in as many. */
static void set_arrival(struct ex_game *g)
{
	const struct ap_graph *graph = g->f.graph;
	struct ap_arrival *list = AP_NEW_N(g->f.ctx.arena, struct ap_arrival, graph->ninput);
	int32_t parts = 2 + (int32_t)ex_below(&g->w.rng, 3);

	g->f.step.arrival = NULL;
	g->f.step.narrival = 0;
	if (ex_below(&g->w.rng, 2) || g->f.machine->ndev % parts)
		return;
	for (uint32_t i = 0; i < graph->ninput; i++) {
		const struct ap_tensor *t = &graph->tensor[graph->input[i]];
		int32_t d = (int32_t)ex_below(&g->w.rng, t->shape.rank + 1u);
		int64_t left = g->f.machine->ndev / parts;

		list[i] = (struct ap_arrival){0, 1, 0};
		if (d < t->shape.rank && t->shape.dim[d] /
			(t->batch >> d & 1 ? g->f.step.micro_batches : 1) % parts == 0)
			list[i] = (struct ap_arrival){d, parts,
				(int32_t)ap_gcd(left, 1 + ex_below(&g->w.rng, 4))};
	}
	g->f.step.arrival = list;
	g->f.step.narrival = graph->ninput;
}

/* Can all that carries the batch be taken in so many parts? */
static bool divides(const struct ap_graph *g, int64_t parts)
{
	for (ap_id i = 0; i < g->ntensor; i++)
		for (int d = 0; d < g->tensor[i].shape.rank; d++)
			if (g->tensor[i].batch >> d & 1 &&
				g->tensor[i].shape.dim[d] / g->tensor[i].batch_outer[d] % parts)
				return false;
	return g->batch % parts == 0;
}

static int64_t draw_parts(struct ex_game *g)
{
	int64_t parts = 2 + ex_below(&g->w.rng, 3);

	return !g->sample->pinned && divides(g->f.graph, parts) ? parts : 2;
}

static void set_step(struct ex_game *g, int k)
{
	static const int64_t sizes[] = {-1, 2, 4};
	struct ap_step *s = &g->f.step;

	s->executor = g->route ? g->route->executor
		: k % 2        ? AP_EXECUTOR_GENERIC
			       : AP_EXECUTOR_MINDSPORE;
	s->dealing = g->route ? g->route->dealing
		: s->executor == AP_EXECUTOR_GENERIC ? (enum ap_dealing)ex_below(&g->w.rng, AP_DEALING_FLAT + 1)
						     : AP_DEALING_ROWS;
	s->micro_batches = k / 2 % 2 ? draw_parts(g) : 1;
	s->optimizer_sharding = k / 4 % 2;
	s->shard_threshold_bytes = 0;
	s->shard_size = sizes[ex_below(&g->w.rng, 3)];
	s->full_batch = ex_below(&g->w.rng, 3) == 0;
	s->gradient_fp32_sync = ex_below(&g->w.rng, 2);
	s->training = k < 8;
	s->optimizer = s->training ? ap_optimizer_find(ex_below(&g->w.rng, 2) ? "adam" : "sgd") : NULL;
	s->alltoall = g->sample->must || ex_below(&g->w.rng, 3);
	set_arrival(g);
}

bool ex_game_begin(struct ex_game *g, int k)
{
	set_step(g, k);
	g->how = "at all";
	g->w.trouble = NULL;
	g->choice = ex_choice_make(&g->f.ctx, g->f.graph, g->f.machine->ndev, &g->f.step);
	if (!ex_graph_truth_make(&g->w, g->f.graph, &g->f.step, g->seed, &g->truth)) {
		if (!g->sample->random)
			ex_game_complain(g, NULL, g->w.trouble);
		return false;
	}
	if (!g->choice)
		ex_game_complain(g, NULL, "its pins cannot be kept");
	return g->choice != NULL;
}

bool ex_game_play(struct ex_game *g, int k, uint32_t plans, bool engines)
{
	struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);
	bool good = !ex_game_begin(g, k) ||
		(try_random(g, plans) && (!engines || (try_engines(g) && try_fixed(g))));

	if (!g->failed)
		ap_arena_release(g->f.ctx.arena, mark);
	return good && !g->failed;
}
