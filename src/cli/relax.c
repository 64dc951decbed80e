/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relax.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/run.h"
#include "cli/trial.h"
#include "drive/lean.h"

#define MOST_NAMED 3 /* relaxations */
#define MOST_TIMES 32 /* as many devices */
#define LEAST_STEPS (UINT64_C(1) << 30) /* that may be taken whatever the search took: a third of a second */
#define LEAST_BYTES (UINT64_C(32) << 20) /* likewise of a trial */

struct relaxing {
	struct ap_run *run;
	const struct ap_sources *src;
	const struct ap_inputs *in; /* under the settings as they are */
	struct ap_options base; /* what ways change: these, or those of a larger machine */
	struct ap_allowance left;
};

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
	int64_t batch = in->graph->batch, least = o->micro_batches * 2, best = batch;

	if (least > batch)
		return false;
	for (int64_t d = 1; d <= batch / d; d++) {
		if (batch % d)
			continue;
		best = d >= least && d < best ? d : best;
		best = batch / d >= least && batch / d < best ? batch / d : best;
	}
	o->micro_batches = best;
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

/* Settings under which a plan was found, and what it needs. */
struct found {
	struct ap_options opt;
	int64_t bytes;
};

/* The settings of a way, its repeated change made so many times more than once; false: that is too often,
 * or one of them cannot be made. */
static bool apply(const struct relaxing *r, const struct way *w, int times, struct ap_options *o)
{
	*o = r->base;
	for (size_t i = 0; i < AP_COUNT(changes); i++)
		if (w->changes & BIT(i) && !changes[i](r->in, o))
			return false;
	for (int i = 0; i < times; i++)
		if (w->repeated < 0 || !changes[w->repeated](r->in, o))
			return false;
	return true;
}

static bool fits(struct relaxing *r, const struct way *w, int times, struct found *f)
{
	struct ap_options o;
	struct ap_trial t;

	if (ap_ctx_stopped(&r->run->ctx) || !apply(r, w, times, &o))
		return false;
	t = ap_trial_make(r->run, r->src, &o, false, &r->left);
	if (t.verdict == AP_VERDICT_FITS)
		*f = (struct found){o, t.bytes};
	return t.verdict == AP_VERDICT_FITS;
}

/* The most changes of a way that leave every device a sample of each micro-batch. */
static int samples_left(const struct relaxing *r, const struct way *w, int most)
{
	int log = 0;

	while (r->in->machine->ndev >> (log + 1))
		log++;
	return w->repeated == MICRO && log < most ? most - log : most;
}

/* The nearest settings of a way that fit: what is between none of the changes and as many as can be is
 * halved. */
static bool try_way(struct relaxing *r, const struct way *w, struct found *f)
{
	struct ap_options o;
	int lo = -1, hi = 0, less;

	if (r->left.steps == 0 || !apply(r, w, 0, &o))
		return false;
	while (apply(r, w, hi + 1, &o))
		hi++;
	less = samples_left(r, w, hi);
	if (!fits(r, w, hi, f) && (less == hi || !fits(r, w, hi = less, f)))
		return false;
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		if (fits(r, w, mid, f))
			hi = mid;
		else
			lo = mid;
	}
	return true;
}

/* True: other settings can help. */
static bool say_contributors(struct relaxing *r, const int32_t *const *counts)
{
	struct ap_run *run = r->run;
	struct ap_request rq = r->in->request;
	struct ap_plan least;
	const struct ap_memory *m = &least.prediction.memory;
	char need[32];

	if (counts)
		rq.given = counts;
	ap_plan_lean(&run->ctx, &rq, &r->left.steps, &least);
	if (!least.graph)
		return false;
	ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-largest", "%s needs %s: %s",
		counts ? "it" : "the smallest plan found", ap_format_bytes(m->total, need),
		ap_plan_contributors(&run->ctx, &least));
	if (m->context < rq.capacity_bytes)
		return true;
	ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"the context alone takes %s, under any settings and on any number of devices",
		ap_format_bytes(m->context, need));
	return false;
}

static void say(struct relaxing *r, const struct found *f)
{
	char need[32];

	ap_diag_add(r->run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"%s would fit: a plan of %s", options_text(r->run->ctx.arena, r->run->opt, &f->opt),
		ap_format_bytes(f->bytes, need));
}

/* How many ways were named. */
static int say_settings(struct relaxing *r)
{
	unsigned done = 0; /* changes that fit alone need no company */
	int named = 0;

	for (size_t i = 0; i < AP_COUNT(ways) && named < MOST_NAMED; i++) {
		struct found f;

		if (ways[i].changes & done || !try_way(r, &ways[i], &f))
			continue;
		done |= ways[i].changes;
		done |= done & BIT(SHARD) ? BIT(LEVEL3) : 0; /* more of the same */
		done |= done & BIT(SELECTIVE) ? BIT(FULL) : 0;
		named++;
		say(r, &f);
	}
	return named;
}

/* More devices of this kind, up to MOST_TIMES as many. True: said. */
static bool say_devices(struct relaxing *r)
{
	struct ap_devices found;
	char need[32];

	if (ap_relax_devices(r->run, r->src, MOST_TIMES * (int64_t)r->in->machine->total,
			(int64_t)r->in->machine->total, &r->left, &found) != AP_OK || !found.fits)
		return false;
	ap_diag_add(r->run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"%" PRId64 " device%s would do: a plan of %s", found.fits, found.fits > 1 ? "s" : "",
		ap_format_bytes(found.memory_bytes, need));
	return true;
}

/* More devices and what saves most memory beside them. True: said. */
static bool say_both(struct relaxing *r)
{
	static const struct way most = {BIT(SHARD) | BIT(FULL) | BIT(MICRO), MICRO};
	struct ap_sources machine = *r->src;
	struct found f;

	machine.table = NULL;
	r->src = &machine;
	r->base.chip = r->in->chip->name;
	for (int times = 2; times <= MOST_TIMES; times *= 2) {
		r->base.device_num = times * (int64_t)r->in->machine->total;
		if (try_way(r, &most, &f)) {
			say(r, &f);
			return true;
		}
	}
	return false;
}

/* Was it the memory, and not a route or what is pinned? */
static bool is_short(const struct ap_diag *d)
{
	enum ap_level level;
	const char *check;

	for (size_t i = 0; ap_diag_text(d, i, &level, &check); i++)
		if (level == AP_ERROR && check && !strcmp(check, "memory"))
			return true;
	return false;
}

static void report(struct relaxing *r, const int32_t *const *counts)
{
	bool alone = r->run->opt->parallel_mode == AP_MODE_STAND_ALONE;
	uint64_t kept; /* for numbers of devices */
	int named;

	if (!say_contributors(r, counts))
		return;
	kept = alone ? 0 : r->left.steps / 2;
	r->left.steps -= kept;
	named = say_settings(r);
	r->left.steps += kept;
	if (!alone) {
		named += say_devices(r);
		named += !named && say_both(r);
	}
	if (!named && !ap_ctx_stopped(&r->run->ctx))
		ap_diag_add(r->run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-relax",
			"no other settings%s that were tried would fit",
			alone ? "" : " and no number of devices");
}

struct reporting {
	struct relaxing r;
	const int32_t *const *counts;
};

static void try_report(void *user)
{
	struct reporting *x = user;

	report(&x->r, x->counts);
}

/* As much again as the run has taken, and no more than the limits of a search. */
static struct ap_allowance allowance(const struct ap_run *run, const struct ap_sources *src,
	const struct ap_inputs *in, uint64_t steps)
{
	struct ap_allowance a = ap_trial_price(run->opt, src, in->graph->nnode);
	uint64_t limit = (uint64_t)run->opt->work_limit;

	a.steps += steps;
	a.steps = a.steps > LEAST_STEPS ? a.steps : LEAST_STEPS;
	a.steps = limit && limit < a.steps ? limit : a.steps;
	a.most_bytes = a.most_bytes > LEAST_BYTES ? a.most_bytes : LEAST_BYTES;
	return a;
}

void ap_relax_report(struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in,
	const int32_t *const *counts, uint64_t steps)
{
	struct reporting x = {{run, src, in, *run->opt, allowance(run, src, in, steps)}, counts};
	struct ap_arena *made;

	if (!is_short(run->ctx.diag))
		return;
	ap_run_phase(run, "looking for what would fit");
	if (ap_attempt_apart(&run->ctx, try_report, NULL, &x, &made))
		ap_arena_destroy(made); /* what was said is with the messages */
}
