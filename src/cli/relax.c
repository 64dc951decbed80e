/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relax.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/run.h"
#include "plan/lean.h"

#define MOST_NAMED 3 /* relaxations */
#define MOST_TRIES 40
#define TRIED_OPERATORS 20000 /* fewer tries of a large network: some seconds in all */
#define TRY_WORK (UINT64_C(1) << 28) /* of one: a table is made where that takes a moment */

/* Changes settings; false: they are so already, or that cannot be. */
typedef bool apply_fn(const struct ap_inputs *in, struct ap_options *o);

static bool shard(const struct ap_inputs *in, struct ap_options *o)
{
	if (o->enable_parallel_optimizer || !in->step.training || in->machine->ndev == 1)
		return false;
	o->enable_parallel_optimizer = true;
	return true;
}

static bool level3(const struct ap_inputs *in, struct ap_options *o)
{
	enum { LEVEL3 = 2 }; /* in the list of choices.c */

	if (!in->step.training || in->machine->ndev == 1 || o->optimizer_level == LEVEL3)
		return false;
	o->enable_parallel_optimizer = true;
	o->optimizer_level = LEVEL3;
	return true;
}

static bool selective(const struct ap_inputs *in, struct ap_options *o)
{
	if (!in->step.training || o->recompute != AP_RECOMPUTE_NONE)
		return false;
	o->recompute = AP_RECOMPUTE_SELECTIVE;
	return true;
}

static bool full(const struct ap_inputs *in, struct ap_options *o)
{
	if (!in->step.training || o->recompute == AP_RECOMPUTE_FULL)
		return false;
	o->recompute = AP_RECOMPUTE_FULL;
	return true;
}

static bool more_micro_batches(const struct ap_inputs *in, struct ap_options *o)
{
	int64_t n = o->micro_batches * 2;

	while (n < in->graph->batch && in->graph->batch % n)
		n++;
	if (in->graph->batch == 0 || n > in->graph->batch)
		return false;
	o->micro_batches = n;
	return true;
}

static bool more_stages(const struct ap_inputs *in, struct ap_options *o)
{
	int64_t n = o->pipeline_stages * 2;

	if (o->hybrid || in->machine->total % n || n > in->graph->nnode || !in->graph->batch)
		return false;
	o->pipeline_stages = n;
	if (o->micro_batches < n)
		o->micro_batches = n;
	return in->graph->batch % o->micro_batches == 0;
}

static bool less_batch(const struct ap_inputs *in, struct ap_options *o)
{
	int64_t batch = o->batch ? o->batch : in->graph->batch;

	if (batch < 2 || batch % 2)
		return false;
	o->batch = batch / 2;
	return true;
}

enum { SHARD, LEVEL3, SELECTIVE, FULL, MICRO, STAGES, BATCH };

static apply_fn *const changes[] = {
	[SHARD] = shard, [LEVEL3] = level3, [SELECTIVE] = selective, [FULL] = full,
	[MICRO] = more_micro_batches, [STAGES] = more_stages, [BATCH] = less_batch,
};

#define BIT(x) (1u << (x))

/* What is tried, in this order; what can be repeated is, until it fits. */
static const struct way {
	unsigned changes;
	int repeated; /* the last one, -1: none is */
} ways[] = {
	{BIT(SHARD), -1}, {BIT(LEVEL3), -1}, {BIT(SELECTIVE), -1}, {BIT(MICRO), MICRO}, {BIT(FULL), -1},
	{BIT(SHARD) | BIT(SELECTIVE), -1}, {BIT(SHARD) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL), -1}, {BIT(FULL) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL) | BIT(MICRO), MICRO}, {BIT(STAGES), STAGES},
	{BIT(LEVEL3) | BIT(FULL) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL) | BIT(STAGES), STAGES}, {BIT(BATCH), BATCH},
};

/* A run that says nothing, under other settings. */
static struct ap_run quiet_run(const struct ap_run *run, const struct ap_options *o)
{
	struct ap_run quiet = *run;

	quiet.opt = o;
	quiet.ctx.diag = ap_diag_create(run->ctx.arena, false);
	quiet.ctx.phase = NULL;
	return quiet;
}

/* Is there a plan that fits under these settings? */
static bool fits(const struct ap_run *run, const struct ap_sources *src, const struct ap_options *o,
	struct ap_plan *plan)
{
	struct ap_run quiet = quiet_run(run, o);
	struct ap_inputs in;

	if (ap_inputs_make(&quiet, src, &in) != AP_OK)
		return false;
	if (o->strategy_ckpt_load_file && ap_input_strategy(&quiet, &in,
			o->strategy_ckpt_load_file, false, &in.request.given) != AP_OK)
		return false;
	in.request.budget.work = TRY_WORK;
	return ap_plan_lean(&quiet.ctx, &in.request, plan);
}

/* The settings that differ, as options. */
static const char *options_text(struct ap_arena *arena, const struct ap_options *was,
	const struct ap_options *now)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);
		const char *value = ap_option_text(arena, row, now);

		const char *before = ap_option_text(arena, row, was);

		if (!value || (before && strcmp(value, before) == 0))
			continue;
		ap_str_addf(&s, "%s%s", s.len ? " " : "", ap_option_spelling(arena, "--", row));
		if (row->type != AP_OPT_FLAG)
			ap_str_addf(&s, " %s", value);
	}
	return s.s;
}

/* One way, as far as it goes; true: *plan fits under *o. */
static bool try_way(const struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in,
	const struct way *w, int *tries, struct ap_options *o, struct ap_plan *plan)
{
	*o = *run->opt;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		if (w->changes & BIT(i) && !changes[i](in, o))
			return false;
	while (*tries > 0 && !ap_ctx_stopped(&run->ctx)) {
		--*tries;
		if (fits(run, src, o, plan))
			return true;
		if (w->repeated < 0 || !changes[w->repeated](in, o))
			return false;
	}
	return false;
}

static void say_contributors(struct ap_run *run, const struct ap_inputs *in)
{
	struct ap_plan least;
	char need[32];

	ap_plan_lean(&run->ctx, &in->request, &least);
	if (least.graph)
		ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-largest",
			"the smallest plan found needs %s: %s",
			ap_format_bytes(least.prediction.memory.total, need),
			ap_plan_contributors(&run->ctx, &least));
}

/* More devices of this kind, up to so many times as many. */
static void say_devices(struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in)
{
	enum { MOST_TIMES = 32 };
	struct ap_devices found;
	char need[32];

	if (run->opt->hybrid || ap_relax_devices(run, src, MOST_TIMES * (int64_t)in->machine->total,
			false, &found) != AP_OK || !found.fits)
		return;
	ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"%" PRId64 " device%s would do: a plan of %s", found.fits, found.fits == 1 ? "" : "s",
		ap_format_bytes(found.memory_bytes, need));
}

void ap_relax_report(struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in)
{
	unsigned done = 0; /* changes that fit alone need no company */
	int named = 0, tries = TRIED_OPERATORS / (int)(in->graph->nnode + TRIED_OPERATORS / MOST_TRIES);

	say_contributors(run, in);
	for (size_t i = 0; i < sizeof ways / sizeof *ways && named < MOST_NAMED; i++) {
		struct ap_options o;
		struct ap_plan plan;
		char need[32];

		if (ways[i].changes & done || !try_way(run, src, in, &ways[i], &tries, &o, &plan))
			continue;
		done |= ways[i].changes;
		named++;
		ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
			"%s would fit: a plan of %s",
			options_text(run->ctx.arena, run->opt, &o),
			ap_format_bytes(plan.prediction.memory.total, need));
	}
	say_devices(run, src, in);
}
