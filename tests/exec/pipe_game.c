/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe_game.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "cost/optimizer.h"
#include "drive/drive.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "shard/imposed.h"
#include "stages.h"

/* ---- the step ---- */

/* Can all that carries the batch be taken in so many parts? */
static bool divides(const struct ap_graph *g, int64_t parts)
{
	for (ap_id i = 0; i < g->ntensor; i++)
		for (int d = 0; d < g->tensor[i].shape.rank; d++)
			if (g->tensor[i].batch >> d & 1 &&
				g->tensor[i].shape.dim[d] / g->tensor[i].batch_outer[d] % parts)
				return false;
	return parts == 1 || (g->batch > 0 && g->batch % parts == 0);
}

/* Up to 6 that the scheduler takes; 0: there are none. */
static int64_t draw_micro(struct ex_pipe_game *p, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment)
{
	int64_t found = 0;
	uint32_t n = 0;

	for (int64_t m = 1; m <= 6; m++)
		if (divides(p->f.graph, m) && !s->refuses(nstage, nsegment, m) && ex_below(&p->w.rng, ++n) == 0)
			found = m;
	return found;
}

static void draw_step(struct ex_pipe_game *p, int64_t micro)
{
	struct ap_step *s = &p->f.step;
	unsigned kinds;

	s->executor = ex_below(&p->w.rng, 2) ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	s->micro_batches = micro;
	s->optimizer_sharding = ex_below(&p->w.rng, 2);
	s->optimizer_level = 1 + (int)ex_below(&p->w.rng, 3);
	s->shard_threshold_bytes = 0;
	s->shard_size = ex_below(&p->w.rng, 2) ? 2 : -1;
	s->full_batch = ex_below(&p->w.rng, 3) == 0;
	s->gradient_fp32_sync = ex_below(&p->w.rng, 2);
	kinds = (unsigned)ex_below(&p->w.rng, 4 * AP_RECOMPUTE_FULL);
	s->recompute = kinds / AP_RECOMPUTE_FULL == 0 ? AP_RECOMPUTE_NONE
		: kinds / AP_RECOMPUTE_FULL == 1 ? AP_RECOMPUTE_FULL
		: kinds / AP_RECOMPUTE_FULL == 2 ? AP_RECOMPUTE_SELECTIVE : kinds % AP_RECOMPUTE_FULL;
	s->recompute_whole = s->executor == AP_EXECUTOR_GENERIC;
	s->recompute_keeps_comm = ex_below(&p->w.rng, 3) == 0;
	s->recompute_regathers = ex_below(&p->w.rng, 3) == 0;
	s->optimizer = ap_optimizer_find("adam");
	if (s->executor == AP_EXECUTOR_GENERIC)
		s->dealing = (enum ap_dealing)(p->w.rng / 8 % 3); /* no draw: cases stay */
}

/* Some operators are recomputed by their own flag. */
static void draw_flags(struct ex_pipe_game *p)
{
	struct ap_graph *g = ap_arena_memdup(p->f.ctx.arena, p->f.graph, sizeof *g);
	struct ap_node *node = ap_arena_memdup(p->f.ctx.arena, g->node, g->nnode * sizeof *node);

	for (ap_id i = 0; i < g->nnode && ex_below(&p->w.rng, 2); i++)
		node[i].recompute = (int8_t)(ex_below(&p->w.rng, 3) == 0);
	g->node = node;
	p->f.graph = g;
}

static bool set_up(struct ex_pipe_game *p, const struct ap_scheduler *s, int32_t nstage, uint64_t seed)
{
	int32_t nsegment = s->most_segments == 0 ? 2 : s->most_segments;
	struct ex_pipe pipe = {nstage, nsegment, s->vee};
	int64_t micro = draw_micro(p, s, nstage, nsegment);
	struct ex_graph_truth whole;
	struct ap_step at_once;

	if (micro == 0 || ex_graph_lacks(p->f.graph))
		return false;
	draw_step(p, micro);
	draw_flags(p);
	if (p->devices) {
		struct ap_graph *g = ap_arena_memdup(p->f.ctx.arena, p->f.graph, sizeof *g);

		p->f.step.executor = AP_EXECUTOR_GENERIC; /* no other is told of such stages */
		p->f.step.recompute_whole = true;
		g->devices = p->devices;
		p->f.graph = g;
	}
	ap_schedule_pipe(&p->f.ctx, s, nstage, nsegment, micro, &p->pipe);
	p->f.step.pipe = &p->pipe;
	ap_graph_staged(&p->f.ctx, p->f.graph, ex_random_spots(&p->f.ctx, p->f.graph, &pipe, &p->w.rng),
		&p->g);
	p->g = ap_graph_deal_if_asked(&p->f.ctx, p->g);
	p->choice = ex_choice_make(&p->f.ctx, p->g, p->w.ndev, &p->f.step);
	at_once = p->f.step;
	at_once.micro_batches = 1;
	return p->choice && ex_graph_truth_make(&p->w, p->g, &at_once, seed, &whole) &&
		ex_graph_truth_of_parts(&p->w, p->g, &p->f.step, seed, &whole, &p->truth);
}

bool ex_pipe_game_open(struct ex_pipe_game *p, const struct ex_graph_sample *sample,
	const struct ap_scheduler *scheduler, int32_t nstage, int64_t ndev, uint64_t seed)
{
	uint32_t devices[EX_MOST_STAGES];

	for (int32_t s = 0; s < nstage; s++)
		devices[s] = (uint32_t)ndev;
	return ex_pipe_game_open_divided(p, sample, scheduler, nstage, devices, seed);
}

/* Divides the machine; what the graph says of it, if the stages differ. */
static void divide(struct ex_pipe_game *p, int32_t nstage, const uint32_t *devices)
{
	struct ap_stage_devices *of = AP_NEW_N(p->f.ctx.arena, struct ap_stage_devices, nstage);

	ap_machine_divided(&p->f.ctx, p->f.machine, (uint32_t)nstage, devices, &p->f.machine);
	for (int32_t s = 0; s < nstage && p->f.machine->part; s++)
		of[s] = (struct ap_stage_devices){devices[s], (int32_t)p->f.machine->part[s].like};
	p->devices = p->f.machine->part ? of : NULL;
}

bool ex_pipe_game_open_divided(struct ex_pipe_game *p, const struct ex_graph_sample *sample,
	const struct ap_scheduler *scheduler, int32_t nstage, const uint32_t *devices, uint64_t seed)
{
	int64_t sum = 0;

	for (int32_t s = 0; s < nstage; s++)
		sum += devices[s];
	*p = (struct ex_pipe_game){.w = {.rng = 1 + ex_hash(seed, 1) / 2}};
	fixture_open(&p->f, sum, 4, "ascend910b");
	p->w.ctx = &p->f.ctx;
	divide(p, nstage, devices);
	p->w.ndev = p->f.machine->ndev;
	fixture_graph(&p->f, sample->text);
	if (set_up(p, scheduler, nstage, seed))
		return true;
	fixture_close(&p->f);
	return false;
}

void ex_pipe_game_close(struct ex_pipe_game *p)
{
	fixture_close(&p->f);
}

bool ex_pipe_game_draw(struct ex_pipe_game *p, struct ap_plan *out)
{
	const int32_t *const *counts = ex_choice_draw(&p->f.ctx, p->choice, &p->w.rng);

	if (!counts)
		return false;
	ap_plan_make(&p->f.ctx, p->g, p->f.machine, &p->f.step, counts, INT64_C(1) << 60, out);
	out->search.mode = "given";
	out->search.status = AP_PLAN_GIVEN;
	return true;
}

static struct ap_request request(const struct ex_pipe_game *p)
{
	return (struct ap_request){.graph = p->g, .machine = p->f.machine, .step = &p->f.step,
		.capacity_bytes = INT64_C(1) << 60, .search_mode = "auto", .route = p->route, .prune = true};
}

bool ex_pipe_game_search(struct ex_pipe_game *p, struct ap_plan *out)
{
	struct ap_request rq = request(p);

	return ap_drive_search(&p->f.ctx, &rq, out, NULL) == AP_OK;
}

bool ex_pipe_game_reread(struct ex_pipe_game *p, const struct ap_plan *plan, struct ap_plan *out)
{
	struct ap_ctx *ctx = &p->f.ctx;
	struct ap_request rq = request(p);
	struct ap_ckpt part, merged, read;
	const int32_t *const *counts;
	struct ap_str bytes;

	if (p->devices || ap_ckpt_check_names(ctx, p->g, false) != AP_OK)
		return false;
	for (ap_id i = 0; i < p->g->nnode; i++) /* no checkpoint holds an out_strategy */
		for (int f = 0; f < p->g->node[i].bound.nfactor; f++)
			if (ap_placement_counts(ctx->arena, &plan->op[i].place)[f] < 0)
				return false;
	for (int32_t s = 0; s < p->pipe.nstage; s++) {
		ap_ckpt_of_stage(ctx, plan, s, false, &part);
		if (part.nitem == 0)
			return false;
	}
	ap_ckpt_of_plan(ctx, plan, false, &merged);
	ap_str_init(&bytes, ctx->arena);
	ap_ckpt_write_json(&merged, ap_str_take, &bytes);
	ck_assert_int_eq(ap_ckpt_read(ctx, "merged.json", bytes.s, bytes.len, true, &read), AP_OK);
	ck_assert_int_eq(ap_ckpt_counts(ctx, &read, p->g, p->w.ndev, &p->f.step, &counts), AP_OK);
	ck_assert_int_eq(ap_drive_evaluate(ctx, &rq, counts, out), AP_OK);
	return true;
}

/* ---- its runs ---- */

static void complain(struct ex_pipe_game *p, const char *what, const char *why)
{
	const struct ap_step *s = &p->f.step;

	p->why = ap_arena_printf(p->f.ctx.arena, "%s: %s\n  %s, %d stages of %d segments, %" PRId64
		" devices each, %" PRId64 " micro-batches, %s, level %d%s, recompute %d%s%s%s", what, why,
		s->pipe->scheduler->name, s->pipe->nstage, s->pipe->nsegment, p->w.ndev, s->micro_batches,
		s->executor == AP_EXECUTOR_GENERIC ? "generic" : "mindspore",
		s->optimizer_sharding ? s->optimizer_level : 0, s->full_batch ? ", full batch" : "",
		(int)s->recompute, s->recompute_whole ? " of the whole" : "", s->recompute_keeps_comm ? ", keeps communication" : "",
		s->recompute_regathers ? ", gathers again" : "");
}

static bool run(struct ex_pipe_game *p, const struct ex_pipeline *l, enum ex_pace pace, const char *what)
{
	struct ap_mark mark = ap_arena_mark(p->f.ctx.scratch);
	struct ex_peaks peak[EX_MOST_STAGES];
	const char *why;

	p->w.trouble = NULL;
	why = ex_pipeline_run(&p->w, l, &p->truth, pace, peak);
	if (why)
		complain(p, what, why);
	for (int32_t s = 0; s < l->nstage && !why; s++)
		p->again += peak[s].recompute > 0;
	p->runs++;
	ap_arena_release(p->f.ctx.scratch, mark);
	return !why;
}

static bool through_file(struct ex_pipe_game *p, const struct ap_plan *plan, const struct ex_pipeline *direct)
{
	struct ex_pipeline read;
	struct ap_str text;
	const char *why;

	ap_str_init(&text, p->f.ctx.arena);
	ap_emit_plan_json(&p->f.ctx, plan, ap_str_take, &text);
	why = ex_pipeline_of_file(&p->f.ctx, text.s, text.len, p->g, &p->f.step, &read);
	if (!why)
		why = ex_pipeline_differs(&p->f.ctx, direct, &read);
	if (why) {
		complain(p, "the plan file", why);
		return false;
	}
	return run(p, &read, EX_BY_TIME, "the plan file");
}

bool ex_pipe_game_play(struct ex_pipe_game *p, const struct ap_plan *plan)
{
	struct ex_pipeline direct;

	p->plans++;
	ex_pipeline_of_plan(&p->f.ctx, plan, &direct);
	return run(p, &direct, EX_AS_READY, "the plan") && through_file(p, plan, &direct);
}
