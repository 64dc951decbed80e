/* SPDX-License-Identifier: Apache-2.0 */
#include "api/combine.h"

#include <string.h>

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

enum { STEP, STAGES, SEGMENTS, MICRO_BATCHES, LEVEL, RECOMPUTE, RANKS };

struct several {
	const struct ap_settings *set;
	struct ap_hybrid_space hybrids; /* of set->hybrid, if it is several */
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

/* The values of a setting; NULL: it has one, or follows from --hybrid. */
static const struct ap_choices *values_of(const struct ap_settings *set, int id)
{
	return set->among[id] && !strchr(set->name[id], ' ') ? set->among[id] : NULL;
}

/* The number of combinations; 0: more than MOST. */
static size_t count(const struct ap_settings *set)
{
	size_t n = 1;

	for (int i = 0; i < AP_SET_COUNT && n; i++) {
		const struct ap_choices *c = values_of(set, i);

		if (c)
			n = c->n <= MOST / n ? n * c->n : 0;
	}
	return n;
}

/* Picks combination `number`: the values of the last setting change first. */
static void pick(struct ap_arena *arena, struct ap_settings *set, const struct several *several,
	size_t number)
{
	*set = *several->set;
	for (int i = AP_SET_COUNT - 1; i >= 0; i--) {
		const struct ap_choices *c = values_of(several->set, i);

		if (!c && set->among[i])
			ap_setting_unset(set, (enum ap_setting_id)i); /* the hybrid gives it */
		if (!c)
			continue;
		if (i == AP_SET_hybrid) {
			set->hybrid = ap_hybrid_space_at(arena, &several->hybrids, number % c->n);
			set->among[i] = NULL;
		} else {
			ap_setting_pick(set, (enum ap_setting_id)i, number % c->n);
		}
		number /= c->n;
	}
}

/* The place of what is recomputed among its values. */
static size_t recompute_rank(const struct ap_settings *from, const struct ap_settings *set)
{
	const struct ap_choices *c = from->among[AP_SET_recompute];
	size_t i = 0;

	while (c && i < c->n && c->word[i] != set->recompute)
		i++;
	return i;
}

static void try_plan(void *user)
{
	struct trial *t = user;
	struct ap_settings *set = AP_NEW(t->ctx.arena, struct ap_settings);
	struct ap_planning *p = AP_NEW(t->ctx.arena, struct ap_planning);

	t->ctx.diag = ap_diag_create(t->ctx.arena, t->several->set->strict);
	pick(t->ctx.arena, set, t->several, t->number);
	t->st = ap_settings_settle(&t->ctx, set);
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
	t->rank[RECOMPUTE] = (double)recompute_rank(t->several->set, set);
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
	struct ap_settings set;
	struct ap_setting *list = AP_NEW_N(ctx->arena, struct ap_setting, AP_SET_COUNT);
	const char *why = t->arena ? ap_diag_first_error(t->ctx.diag) : "memory of the planner ran out";
	struct ap_str label;

	pick(ctx->arena, &set, t->several, t->number);
	ap_str_init(&label, ctx->arena);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);

		if (!values_of(t->several->set, i))
			continue;
		ap_str_addf(&label, "%s%s %s", label.len ? ", " : "", row->key,
			ap_setting_text(ctx->arena, row, &set));
		list[out->nsetting++] = (struct ap_setting){row->key, ap_setting_json(ctx->arena, row, &set)};
	}
	out->label = label.s;
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
	size_t n = count(to->set);
	struct ap_tries *tries = AP_NEW(ctx->arena, struct ap_tries);
	struct ap_tried *tried = AP_NEW_N(ctx->arena, struct ap_tried, MOST);
	bool stopped = false, hold = !to->set->planner_memory; /* else the best is planned again */
	enum ap_status st[MOST];
	struct trial best = {.any = false};
	struct several several = {.set = to->set};

	if (!n)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"these settings have more than %d combinations, the most that a search tries", MOST);
	if (to->set->among[AP_SET_hybrid])
		AP_TRY(ap_hybrid_space_parse(ctx, to->set->hybrid, &several.hybrids));
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
	} while (tries->n < n && !ap_ctx_stopped(ctx) && st[tries->n - 1] != AP_INTERNAL);
	if (best.any && !best.arena)
		best = run(ctx, &several, src, best.number);
	if (!best.any || st[tries->n - 1] == AP_INTERNAL) {
		drop(&best);
		return explain(ctx, tries, st);
	}
	tried[best.number].taken = true;
	return take(to, &best, checked, tries, stopped || tries->n < n, out);
}
