/* SPDX-License-Identifier: Apache-2.0 */
#include "api/combine.h"

#include <string.h>

#include "api/decide.h"
#include "api/points.h"
#include "api/settle.h"
#include "autopar/status.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/choices.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "hybrid/hybrid_parse.h"

enum { MOST = 64 }; /* combinations */
enum { DECIDED = 3 }; /* of those that are decided: the fastest hybrids */
#define NEAR 1.1 /* which take so many times the best at most */

enum { STEP, STAGES, SEGMENTS, MICRO_BATCHES, LEVEL, RECOMPUTE, RANKS };

struct several {
	const struct ap_settings *asked;
	const struct ap_settings *one[MOST]; /* the combinations */
	size_t n;
	uint32_t among; /* of so many they were decided; 0: they are all that are listed */
	bool stopped; /* while they were decided */
};

struct trial {
	struct ap_ctx ctx; /* with messages of its own */
	const struct several *several;
	const struct ap_sources *src;
	size_t number; /* of the combination */
	enum ap_status st;
	bool any; /* there is a plan */
	double rank[RANKS]; /* of the plan: the least is the best */
	struct ap_arena *arena; /* of messages, set and plan; NULL: they are gone */
	struct ap_settings *set;
	struct ap_planning *plan;
};

bool ap_combine_asked(const struct ap_settings *set)
{
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (set->among[i])
			return true;
	return false;
}

/* Is a setting open, or given several values, other than by a key of --hybrid? */
static bool is_several(const struct ap_settings *set, int id)
{
	return set->among[id] && !strchr(set->name[id], ' ');
}

/* Is something open that points decide? */
static bool is_open(const struct ap_settings *set)
{
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (is_several(set, i) && set->among[i]->any)
			return true;
	return false;
}

/* The number of combinations of listed values; 0: more than MOST. decided: but for what points decide. */
static size_t count(const struct ap_settings *set, bool decided)
{
	size_t n = 1;

	for (int i = 0; i < AP_SET_COUNT && n; i++) {
		const struct ap_choices *c = set->among[i];

		if (is_several(set, i) && !(decided && ap_points_decide((enum ap_setting_id)i)))
			n = c->n <= MOST / n ? n * c->n : 0;
	}
	return n;
}

/* Picks combination `number`: the values of the last setting change first. */
static void pick(struct ap_arena *arena, const struct ap_settings *from,
	const struct ap_hybrid_space *hybrids, bool decided, size_t number, struct ap_settings *set)
{
	*set = *from;
	for (int i = AP_SET_COUNT - 1; i >= 0; i--) {
		const struct ap_choices *c = from->among[i];

		if (!c || (decided && ap_points_decide((enum ap_setting_id)i)))
			continue;
		if (!is_several(from, i)) {
			ap_setting_unset(set, (enum ap_setting_id)i); /* the hybrid gives it */
		} else if (i == AP_SET_hybrid) {
			set->hybrid = ap_hybrid_space_at(arena, hybrids, number % c->n);
			set->among[i] = NULL;
			number /= c->n;
		} else {
			ap_setting_pick(set, (enum ap_setting_id)i, number % c->n);
			number /= c->n;
		}
	}
}

/* The values of what is asked for with several, "pipeline_stages 4, micro_batches 8". */
static const char *label(struct ap_ctx *ctx, const struct ap_settings *asked, const struct ap_settings *set,
	struct ap_setting *list, uint32_t *n)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);

		if (!is_several(asked, i) &&
			!(i == AP_SET_pipeline_segments && ap_points_turn(asked)))
			continue;
		ap_str_addf(&s, "%s%s %s", s.len ? ", " : "", row->key,
			ap_setting_text(ctx->arena, row, set));
		if (list)
			list[(*n)++] = (struct ap_setting){row->key, ap_setting_json(ctx->arena, row, set)};
	}
	return s.s;
}

/* Adds the settings of the fastest hybrids that differ in what was asked for; those of one are the same but
 * for that. */
static void add_nearest(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *d,
	struct several *out)
{
	double most_s = d->trial[d->best].step_s * NEAR;
	bool *met = AP_NEW_N(ctx->scratch, bool, d->n);
	size_t first = out->n;

	while (out->n < first + DECIDED && out->n < MOST) {
		struct ap_settings *o = AP_NEW(ctx->arena, struct ap_settings);
		uint32_t next = AP_NONE;
		bool again = false;

		for (uint32_t i = 0; i < d->n; i++)
			if (!met[i] && d->trial[i].verdict == AP_DECISION_FITS &&
				d->trial[i].step_s <= most_s &&
				(next == AP_NONE || d->trial[i].step_s < d->trial[next].step_s))
				next = i;
		if (next == AP_NONE)
			return;
		met[next] = true;
		ap_points_answer(ctx, set, &d->space, &d->trial[next].point, o);
		for (size_t k = first; k < out->n && !again; k++)
			again = strcmp(label(ctx, out->asked, o, NULL, NULL),
				label(ctx, out->asked, out->one[k], NULL, NULL)) == 0;
		if (!again)
			out->one[out->n++] = o;
	}
}

/* What is open is decided as plan does, with what is not given as search has it; listed values of what points
 * do not decide, in turns. */
static enum ap_status list_decided(struct ap_ctx *ctx, const struct ap_sources *src, size_t n,
	struct several *out)
{
	for (size_t i = 0; i < n; i++) {
		struct ap_settings *set = AP_NEW(ctx->arena, struct ap_settings), narrow;
		struct ap_decision d;
		enum ap_status st;

		pick(ctx->arena, out->asked, NULL, true, i, set);
		AP_TRY(ap_points_narrow(ctx, set, &narrow));
		st = ap_decide(ctx, &narrow, src, NULL, &d);
		out->stopped |= st == AP_STOPPED;
		if (st != AP_OK && st != AP_STOPPED)
			return st;
		out->among += d.n;
		add_nearest(ctx, set, &d, out);
	}
	return AP_OK;
}

/* The combinations to try, the most promising first. */
static enum ap_status list_combinations(struct ap_ctx *ctx, const struct ap_settings *asked,
	const struct ap_sources *src, struct several *out)
{
	bool decided = is_open(asked);
	size_t n = count(asked, decided);
	struct ap_hybrid_space hybrids;

	*out = (struct several){.asked = asked};
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (is_several(asked, i) && asked->among[i]->any && !ap_points_decide((enum ap_setting_id)i))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: expected values, "
				"such as 8,16 or 8..64", ap_setting_said(ctx, asked, (enum ap_setting_id)i));
	if (!n)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"these settings have more than %d combinations, the most that a search tries", MOST);
	if (decided)
		return list_decided(ctx, src, n, out);
	if (asked->among[AP_SET_hybrid])
		AP_TRY(ap_hybrid_space_parse(ctx, asked->hybrid, &hybrids));
	for (; out->n < n; out->n++) {
		struct ap_settings *set = AP_NEW(ctx->arena, struct ap_settings);

		pick(ctx->arena, asked, &hybrids, false, out->n, set);
		out->one[out->n] = set;
	}
	return AP_OK;
}

/* The place of what is recomputed among its values. */
static size_t recompute_rank(const struct ap_settings *from, const struct ap_settings *set)
{
	const struct ap_choices *c = from->among[AP_SET_recompute];
	size_t i = 0;

	while (c && i < c->n && strcmp(c->word[i], set->recompute) != 0)
		i++;
	return i;
}

static void try_plan(void *user)
{
	struct trial *t = user;
	struct ap_settings *set = AP_NEW(t->ctx.arena, struct ap_settings);
	struct ap_planning *p = AP_NEW(t->ctx.arena, struct ap_planning);

	t->ctx.diag = ap_diag_create(t->ctx.arena, t->several->asked->strict);
	*set = *t->several->one[t->number];
	t->st = ap_settings_settle(&t->ctx, set, AP_FOR_search);
	if (t->st == AP_OK)
		t->st = ap_settings_note(&t->ctx, set, AP_FOR_search);
	if (t->st == AP_OK)
		t->st = ap_planning_try(&t->ctx, set, t->src, p);
	t->set = set;
	t->plan = p;
	t->any = t->st == AP_OK || t->st == AP_STOPPED;
	t->rank[STEP] = p->plan.prediction.step_time_s;
	t->rank[STAGES] = (double)set->pipeline_stages;
	t->rank[SEGMENTS] = (double)set->pipeline_segments;
	t->rank[MICRO_BATCHES] = (double)set->micro_batches;
	t->rank[LEVEL] = set->enable_parallel_optimizer ? ap_setting_level(set->optimizer_level) : 0;
	t->rank[RECOMPUTE] = (double)recompute_rank(t->several->asked, set);
}

static struct trial run(struct ap_ctx *ctx, const struct several *several, const struct ap_sources *src,
	size_t number)
{
	struct trial t = {.ctx = *ctx, .several = several, .src = src, .number = number, .st = AP_LIMIT};

	if (!ap_attempt_apart(&t.ctx, try_plan, NULL, &t, &t.arena)) {
		t.any = false;
		t.st = AP_LIMIT;
	}
	return t;
}

static void drop(struct trial *t)
{
	ap_arena_destroy(t->arena);
	t->arena = NULL;
}

/* Of equal plans the earlier one is. */
static bool is_better(const struct trial *a, const struct trial *b)
{
	for (int i = 0; i < RANKS; i++)
		if (a->rank[i] < b->rank[i] || a->rank[i] > b->rank[i])
			return a->rank[i] < b->rank[i];
	return false;
}

/* What is told of a combination, in the run's arena. */
static void describe(struct ap_ctx *ctx, const struct trial *t, struct ap_tried *out)
{
	struct ap_setting *list = AP_NEW_N(ctx->arena, struct ap_setting, AP_SET_COUNT);
	const char *why = t->arena ? ap_diag_first_error(t->ctx.diag) : "memory of the planner ran out";

	out->label = label(ctx, t->several->asked, t->several->one[t->number], list, &out->nsetting);
	out->setting = list;
	if (!t->any) {
		out->why = ap_arena_strdup(ctx->arena, why ? why : ap_status_text(t->st));
		return;
	}
	out->step_time_s = t->plan->plan.prediction.step_time_s;
	out->memory_bytes = t->plan->plan.prediction.memory.total;
}

/* No combination has a plan, or the last one has shown a mistake of ours. The status of one that was searched
 * says more than that of others. */
static enum ap_status explain(struct ap_ctx *ctx, const struct ap_tries *tries, const enum ap_status *st)
{
	enum ap_status result = st[0];

	for (size_t i = 0; i < tries->n; i++) {
		if (!tries->v[i].why)
			continue;
		if (st[i] == AP_INTERNAL || (st[i] == AP_INFEASIBLE && result != AP_INTERNAL))
			result = st[i];
		(void)ap_diag_add(ctx->diag, AP_ERROR, st[i], NULL, NULL, "%s: %s", tries->v[i].label,
			tries->v[i].why);
	}
	return result;
}

/* Takes over the plan of t, and all that was said of it. */
static enum ap_status take(struct ap_writing *to, const struct trial *t, const struct ap_planning *checked,
	const struct ap_tries *tries, bool stopped, struct ap_planning **out)
{
	struct ap_planning *p = t->plan;

	ap_arena_own(to->ctx->arena, t->arena);
	ap_diag_pass_on(to->ctx->diag, t->ctx.diag);
	to->set = t->set;
	p->made.op_template = checked->made.op_template;
	p->made.tries = tries;
	if (stopped && p->plan.search.status != AP_PLAN_GIVEN) {
		p->plan.search.status = p->found.search.status = AP_PLAN_STOPPED;
		p->plan.search.complete = p->found.search.complete = false;
	}
	*out = p;
	AP_TRY(ap_planning_take(to, p));
	return stopped ? AP_STOPPED : AP_OK;
}

enum ap_status ap_combine(struct ap_writing *to, const struct ap_sources *src,
	const struct ap_planning *checked, struct ap_planning **out)
{
	struct ap_ctx *ctx = to->ctx;
	struct ap_tries *tries = AP_NEW(ctx->arena, struct ap_tries);
	struct ap_tried *tried = AP_NEW_N(ctx->arena, struct ap_tried, MOST);
	bool stopped, hold = !to->set->planner_memory; /* else the best is planned again */
	enum ap_status st[MOST];
	struct trial best = {.any = false};
	struct several several;

	AP_TRY(list_combinations(ctx, to->set, src, &several));
	stopped = several.stopped;
	tries->among = several.among;
	tries->v = tried;
	do {
		struct trial t = run(ctx, &several, src, tries->n);
		bool better = t.any && (!best.any || is_better(&t, &best));

		describe(ctx, &t, &tried[tries->n]);
		st[tries->n++] = t.st;
		stopped |= t.st == AP_STOPPED;
		if (better) {
			drop(&best);
			best = t;
		}
		if (!better || !hold)
			drop(better ? &best : &t);
	} while (tries->n < several.n && !ap_ctx_stopped(ctx) && st[tries->n - 1] != AP_INTERNAL);
	if (best.any && !best.arena)
		best = run(ctx, &several, src, best.number);
	if (!best.any || st[tries->n - 1] == AP_INTERNAL) {
		drop(&best);
		return explain(ctx, tries, st);
	}
	tried[best.number].taken = true;
	return take(to, &best, checked, tries, stopped || tries->n < several.n, out);
}
