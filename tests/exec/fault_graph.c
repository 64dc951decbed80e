/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of whole graphs with a fault in them, in memory or in the files that are written. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "cost/optimizer.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "faults.h"
#include "fixture.h"

enum { SETTINGS = 8, PLANS = 8 };

struct graph_trial {
	struct fixture f;
	struct ex_world w;
	const struct ex_fault *fault;
	struct ex_graph_truth truth;
	struct ex_fault_tally *t;
};

static const char *in_memory(struct graph_trial *g, const struct ap_plan *p)
{
	struct ex_program program;

	ex_program_of_plan(&g->f.ctx, p, &program);
	if (g->w.fault && g->w.fault->program)
		g->w.faulted |= g->w.fault->program(&g->w, &program);
	return ex_program_run(&g->w, &program, &g->truth);
}

static const char *in_file(struct graph_trial *g, const struct ap_plan *p)
{
	struct ap_ctx *ctx = &g->f.ctx;
	struct ex_program program;
	struct ap_str text;
	const char *why;

	ap_str_init(&text, ctx->arena);
	ap_emit_plan_json(ctx, p, ap_str_take, &text);
	if (g->w.fault)
		g->w.faulted |= g->w.fault->text(&g->w, &text);
	why = ex_program_of_file(ctx, text.s, text.len, p->graph, p->step, &program);
	if (!why)
		why = ex_schedule_wrong(ctx, text.s, text.len, &program);
	return why ? why : ex_program_run(&g->w, &program, &g->truth);
}

/* Operators that the checkpoint pins must be cut as they were. */
static const char *pinned_differs(const struct ap_plan *p, const struct ex_program *read)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->op[i].in_checkpoint && memcmp(read->oper[i].in, p->op[i].in,
				read->oper[i].nin * sizeof *p->op[i].in) != 0)
			return "an operator is cut in another way";
	return NULL;
}

static const char *in_checkpoint(struct graph_trial *g, const struct ap_plan *p)
{
	struct ap_ctx *ctx = &g->f.ctx;
	struct ex_program program;
	struct ap_ckpt ckpt;
	struct ap_str text;
	const char *why;

	ap_ckpt_of_plan(ctx, p, false, &ckpt);
	ap_str_init(&text, ctx->arena);
	ap_ckpt_write_json(&ckpt, ap_str_take, &text);
	if (g->w.fault)
		g->w.faulted |= g->w.fault->ckpt(&g->w, &text);
	why = ex_program_of_ckpt(ctx, text.s, text.len, true, p->graph, p->machine, p->step, NULL,
		&program);
	if (!why)
		why = pinned_differs(p, &program);
	return why ? why : ex_program_run(&g->w, &program, &g->truth);
}

static const char *run(struct graph_trial *g, const struct ap_plan *p, uint64_t rng)
{
	g->w.trouble = NULL;
	g->w.faulted = false;
	g->w.rng = rng;
	return g->fault->text ? in_file(g, p) : g->fault->ckpt ? in_checkpoint(g, p) : in_memory(g, p);
}

static void try_plan(struct graph_trial *g, const struct ap_plan *p, uint64_t rng)
{
	const char *why;

	g->w.fault = NULL;
	ex_fault_note(g->t, run(g, p, rng), false, false);
	g->w.fault = g->fault;
	why = run(g, p, rng);
	ex_fault_note(g->t, why, true, g->w.faulted);
	g->w.fault = NULL;
}

static void set_step(struct ap_step *s, int k)
{
	s->executor = k % 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	s->micro_batches = 1 + k / 2 % 2;
	s->optimizer_sharding = k / 4 % 2;
	s->dealing = k % 2 == 0 ? AP_DEALING_ROWS : k / 2 % 2 ? AP_DEALING_FLAT : AP_DEALING_PADDED_ROWS;
	s->shard_threshold_bytes = 0;
	s->full_batch = k % 3 == 0;
	s->optimizer = ap_optimizer_find("adam");
}

static void try_setting(struct graph_trial *g, int k, uint64_t seed)
{
	struct ex_choice *choice;
	bool made;

	set_step(&g->f.step, k);
	g->w.trouble = NULL;
	g->w.rng = 1 + ex_hash(seed, (uint64_t)k) / 2;
	choice = ex_choice_make(&g->f.ctx, g->f.graph, g->w.ndev, &g->f.step);
	made = ex_graph_truth_make(&g->w, g->f.graph, &g->f.step, seed, &g->truth);
	assert(choice && made);
	(void)made;
	for (uint64_t i = 0; i < PLANS && (!g->t->caught || g->t->applied < g->t->enough); i++) {
		const int32_t *const *counts = ex_choice_draw(&g->f.ctx, choice, &g->w.rng);
		uint64_t rng = g->w.rng;
		struct ap_plan p;

		if (!counts)
			continue;
		ap_plan_make(&g->f.ctx, g->f.graph, g->f.machine, &g->f.step, counts,
			INT64_C(1) << 60, &p);
		p.search.mode = "given";
		p.search.status = AP_PLAN_GIVEN;
		try_plan(g, &p, rng);
		g->w.rng = rng;
	}
}

const struct ex_graph_sample *ex_graph_find(const char *name)
{
	const struct ex_graph_sample *s;

	for (size_t i = 0; (s = ex_graph_at(i)); i++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

void ex_fault_graph(struct ap_ctx *ctx, const struct ex_fault *f,
	const struct ex_graph_sample *sample, uint64_t seed, struct ex_fault_tally *t)
{
	for (int k = 0; k < SETTINGS && (!t->caught || t->applied < t->enough) && !t->unsound; k++) {
		struct graph_trial g = {.fault = f, .t = t};

		g.w.ndev = k % 3 == 2 ? 4 : 8;
		fixture_open(&g.f, g.w.ndev, 4, "ascend910b");
		g.w.ctx = &g.f.ctx;
		fixture_graph(&g.f, sample->text);
		try_setting(&g, k, seed);
		t->first = t->first ? ap_arena_strdup(ctx->arena, t->first) : NULL;
		t->unsound = t->unsound ? ap_arena_strdup(ctx->arena, t->unsound) : NULL;
		fixture_close(&g.f);
	}
}
