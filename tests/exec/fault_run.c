/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with a fault in them, beside the same ones without. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "shard/legal.h"
#include "shard/space.h"
#include "faults.h"

enum {
	SAMPLES = 300, /* of a type, at most */
	AT_MOST = 200, /* runs of a type with the fault at work */
	STRATEGIES = 12 /* of a sample on so many devices */
};

const struct ex_fault *ex_fault_at(size_t i)
{
	static const struct ex_fault *const files[] = {ex_faults_comm, ex_faults_gradient,
		ex_faults_rule, ex_faults_place, ex_faults_move, ex_faults_program};

	for (size_t k = 0; k < AP_COUNT(files); k++)
		for (const struct ex_fault *f = files[k]; f->name; f++)
			if (i-- == 0)
				return f;
	return NULL;
}

void ex_fault_note(struct ex_fault_tally *t, const char *why, bool with, bool faulted)
{
	if (!with) {
		t->unsound = t->unsound ? t->unsound : why;
		return;
	}
	t->runs++;
	t->applied += faulted;
	if (!faulted)
		t->unsound = t->unsound ? t->unsound : why;
	if (!faulted || !why)
		return;
	t->caught++;
	t->first = t->first ? t->first : why;
}

struct trial { /* of a fault on a sample */
	struct ex_world w;
	const struct ex_fault *f;
	struct ex_sample sample;
	struct ex_case sound, broken;
	bool in_rule; /* the fault is at work from the binding on */
	struct ex_fault_tally *t;
};

/* Do tensors have slices of equal extents? */
static bool divides(const struct ap_operand *o, int n, const int32_t *count)
{
	for (int i = 0; i < n; i++)
		for (int d = 0; d < o[i].rank; d++) {
			int64_t parts = 1;

			for (int k = 0; k < o[i].dim[d].n; k++)
				parts *= count[o[i].dim[d].factor[k]];
			if (o[i].size[d] % parts != 0)
				return false;
		}
	return true;
}

static const char *run(struct trial *t, struct ex_case *c, const int32_t *count,
	enum ex_tasks tasks, uint64_t rng)
{
	t->w.trouble = NULL;
	t->w.rng = rng;
	ex_case_draw(&t->w, tasks, c);
	return ex_case_run(&t->w, c, count);
}

/* One strategy: without the fault where it is legal then, and with it. */
static void run_both(struct trial *t, const int32_t *count, bool legal, uint64_t number)
{
	struct ap_mark mark = ap_arena_mark(t->w.ctx->scratch);
	enum ex_tasks tasks = (enum ex_tasks)(number / 2 % EX_NTASKS);
	uint64_t rng = 1 + ex_hash(t->sample.rng, number) / 2;
	const char *why;

	t->w.executor = number % 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	t->w.fault = NULL;
	if (legal)
		ex_fault_note(t->t, run(t, &t->sound, count, tasks, rng), false, false);
	t->w.fault = t->f;
	t->w.faulted = t->in_rule;
	why = run(t, &t->broken, count, tasks, rng);
	ex_fault_note(t->t, why, true, t->w.faulted);
	t->w.fault = NULL;
	ap_arena_release(t->w.ctx->scratch, mark);
}

static bool enough(const struct ex_fault_tally *t)
{
	return (t->caught && t->applied >= t->enough) || t->applied >= AT_MOST || t->unsound;
}

/* Strategies out of all; of a fault that allows more, those that it allows. */
static void run_space(struct trial *t, int64_t ndev, uint64_t seed)
{
	struct ap_step step = AP_STEP_DEFAULT;
	struct ap_space space;
	uint32_t tried = 0;
	bool *legal;

	t->w.ndev = ndev;
	ap_space_make(t->w.ctx, &t->broken.bound, ndev, &step, &space);
	legal = AP_NEW_N(t->w.ctx->arena, bool, space.n);
	for (uint32_t i = 0; i < space.n; i++)
		legal[i] = ap_space_legal(t->w.ctx, &t->sound.bound,
			space.count + (size_t)i * space.nfactor, ndev, &step, NULL);
	for (uint32_t i = 0; i < space.n && tried < STRATEGIES && !enough(t->t); i++) {
		uint32_t at = (uint32_t)((i * UINT64_C(7919) + seed) % space.n);
		const int32_t *count = space.count + (size_t)at * space.nfactor;
		const struct ap_bound *b = &t->broken.bound;

		if ((t->f->relaxes && legal[at]) || !divides(b->in, b->nin, count) ||
			!divides(b->out, b->nout, count))
			continue;
		run_both(t, count, legal[at], seed + i);
		tried++;
	}
}

/* False: the fault found nothing in its rule. */
static bool make_cases(struct trial *t)
{
	uint64_t rng = t->sample.rng;

	t->w.rng = rng;
	t->w.fault = NULL;
	t->w.trouble = NULL;
	if (!ex_case_make(&t->w, &t->sample, &t->sound)) {
		ex_fault_note(t->t, t->w.trouble, false, false);
		return false;
	}
	t->w.rng = rng;
	t->w.fault = t->f;
	t->w.faulted = false;
	if (!ex_case_make(&t->w, &t->sample, &t->broken)) {
		ex_fault_note(t->t, t->w.trouble, true, true);
		return false;
	}
	t->in_rule = t->w.faulted;
	return t->in_rule || !t->f->bound;
}

static void run_sample(struct trial *t, uint64_t number)
{
	static const int64_t devices[] = {8, 4, 12};

	if (!make_cases(t))
		return;
	do {
		for (size_t i = 0; i < AP_COUNT(devices); i++)
			run_space(t, devices[i], number * 131 + (uint64_t)devices[i]);
	} while (!t->sound.bound.dealt && ex_case_deal(&t->w, &t->sound) &&
		ex_case_deal(&t->w, &t->broken));
}

static void run_type(struct ap_ctx *ctx, const struct ex_fault *f, const char *type, uint64_t seed,
	struct ex_fault_tally *t)
{
	const struct ex_kernel *k = ex_kernel_find(type);
	struct trial *trial = AP_NEW(ctx->arena, struct trial);

	assert(k);
	for (uint64_t i = 0; i < SAMPLES && !enough(t); i++) {
		struct ap_mark mark = ap_arena_mark(ctx->arena);
		uint32_t caught = t->caught;

		*trial = (struct trial){.w = {.ctx = ctx}, .f = f, .t = t};
		ex_sample_begin(&trial->sample, type, 1 + ex_hash(seed ^ ex_hash_text(type), i) / 2);
		k->make(&trial->sample);
		run_sample(trial, i);
		if (caught == t->caught && !t->unsound)
			ap_arena_release(ctx->arena, mark);
	}
}

static void add(struct ap_ctx *ctx, const char *type, const struct ex_fault_tally *of_type,
	struct ex_fault_tally *t)
{
	t->runs += of_type->runs;
	t->applied += of_type->applied;
	t->caught += of_type->caught;
	if (!t->first && of_type->first)
		t->first = ap_arena_printf(ctx->arena, "%s: %s", type, of_type->first);
	if (!t->missed && !of_type->caught)
		t->missed = ap_arena_strdup(ctx->arena, type);
	if (!t->unsound && of_type->unsound)
		t->unsound = ap_arena_printf(ctx->arena, "%s: %s", type, of_type->unsound);
}

struct ex_fault_tally ex_fault_try(struct ap_ctx *ctx, const struct ex_fault *f, uint64_t seed)
{
	struct ex_fault_tally t = {0};
	uint32_t enough = (uint32_t)ex_cases(1000) / 80;

	for (const char *p = f->types; *p; p += strcspn(p, " "), p += *p == ' ') {
		const char *type = ap_arena_strndup(ctx->arena, p, strcspn(p, " "));
		struct ap_ctx own = {.arena = ap_arena_create_like(ctx->arena),
			.scratch = ap_arena_create_like(ctx->arena), .jobs = 1};
		struct ex_fault_tally of_type = {.enough = enough};

		own.diag = ap_diag_create(own.arena, false);
		if (strcmp(type, "redistribution") == 0)
			ex_fault_move(&own, f, seed, &of_type);
		else if (ex_graph_find(type))
			ex_fault_graph(&own, f, ex_graph_find(type), seed, &of_type);
		else
			run_type(&own, f, type, seed, &of_type);
		add(ctx, type, &of_type, &t);
		ap_arena_destroy(own.scratch);
		ap_arena_destroy(own.arena);
	}
	return t;
}
