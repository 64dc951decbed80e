/* SPDX-License-Identifier: Apache-2.0 */
#include "api/old_decision.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/config.h"
#include "api/keep.h"
#include "api/operator_cuts.h"
#include "api/points.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "diff/plan_match.h"
#include "hybrid/hybrid_parse.h"
#include "pipeline/schedule.h"
#include "plan/make.h"

struct ap_old_decision {
	const char *file;
	struct ap_saved plan;
	int64_t devices;
	bool hybrid; /* else operators are cut one by one */
	bool deals_micro; /* the hybrid says samples of a micro-batch */
	struct ap_decision_point point; /* of cuts one by one without degrees; with devices it is none of a
	                                   decision, whose stages have equal numbers of them */
};

/* ---- what the file says ---- */

/* The point that the settings of a plan are. */
static void read_point(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_old_decision *old)
{
	struct ap_decision_point *p = &old->point;
	const char *hybrid = set->hybrid;
	struct ap_hybrid h = {0};

	*p = (struct ap_decision_point){.pp = set->pipeline_stages, .vpp = set->pipeline_segments,
		.micro_batches = set->micro_batches, .scheduler = set->pipeline_scheduler,
		.level = set->enable_parallel_optimizer ? ap_setting_level(set->optimizer_level) : 0,
		.recompute = set->recompute ? set->recompute : "none"};
	p->regathers = set->parallel_optimizer_comm_recompute && p->level && p->level < 3 &&
		strcmp(p->recompute, "none") != 0;
	if (!ap_ints_equal(&set->stage_devices))
		p->devices = ap_setting_text(ctx->arena, ap_setting_at(AP_SET_stage_devices), set);
	if (p->vpp == 1 && p->scheduler == AP_SCHEDULER_INTERLEAVED)
		p->scheduler = AP_SCHEDULER_1F1B;
	if (!old->hybrid || ap_hybrid_parse(ctx, hybrid, &h) != AP_OK)
		return;
	h.pp = p->pp;
	h.vpp = p->vpp;
	old->deals_micro = h.mbs > 0;
	if (ap_hybrid_fill(ctx, old->devices, &h) != AP_OK)
		return;
	p->dp = h.dp;
	p->tp = h.tp;
	p->cp = h.cp;
	p->ep = h.ep;
	p->etp = h.etp ? h.etp : h.tp;
	p->sp = h.sp;
	p->mbs = h.mbs;
	if (h.layers.kind != AP_LAYERS_EVEN)
		p->layers = ap_points_layers(ctx, hybrid);
	p->shard = p->level && set->optimizer_weight_shard_size > 0 &&
		set->optimizer_weight_shard_size < p->dp * p->cp ? set->optimizer_weight_shard_size : 0;
}

enum ap_status ap_old_decision_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_old_decision **out)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_old_decision *old;
	const struct ap_jv *root, *hybrid;
	struct ap_settings said;
	struct ap_known file;

	*out = NULL;
	if (!set->keep)
		return AP_OK;
	old = AP_NEW(ctx->arena, struct ap_old_decision);
	AP_TRY(ap_keep_read(ctx, set, set->keep, &file, &old->plan));
	root = ap_json_root(file.doc);
	old->file = ap_file_base(set->keep);
	ap_settings_init(&said);
	AP_TRY(ap_config_echo(&quiet, file.doc, ap_jv_get(root, "settings"), AP_FOR_PLANNERS, &said));
	if (!ap_jv_int(file.doc, ap_jv_get(ap_jv_get(root, "machine"), "devices"), &old->devices))
		old->devices = 0;
	/* A search may end with a hybrid that has its own order of ranks, and says which. */
	hybrid = ap_jv_get(ap_jv_get(root, "search"), "hybrid");
	if (!said.hybrid && hybrid && ap_jv_type(hybrid) == AP_JSTRING)
		said.hybrid = ap_jv_str(hybrid);
	old->hybrid = said.hybrid != NULL;
	read_point(&quiet, &said, old);
	*out = old;
	return AP_OK;
}

/* ---- its point among those of a decision ---- */

/* Is text of --recompute made of these kinds? Its numbers stand behind colons, and between commas. */
static bool is_of_kinds(const char *text, const char *const *kind)
{
	while (*text) {
		size_t len = strcspn(text, ","), word = strcspn(text, ":,");
		bool known = *text >= '0' && *text <= '9'; /* of the kind before */

		for (int k = 0; k < AP_MIX_KINDS && kind[k] && !known; k++)
			known = strlen(kind[k]) == word && strncmp(kind[k], text, word) == 0;
		if (!known)
			return false;
		text += len + (text[len] == ',');
	}
	return true;
}

/* Does a point run its stages as the old plan does, whatever it recomputes? */
static bool has_stages(const struct ap_old_decision *old, const struct ap_decision_point *p)
{
	const struct ap_decision_point *o = &old->point;

	return !o->devices && p->pp == o->pp && p->vpp == o->vpp && p->micro_batches == o->micro_batches &&
		(p->pp == 1 || p->scheduler == o->scheduler) && p->level == o->level &&
		p->regathers == o->regathers;
}

static bool has_degrees(const struct ap_old_decision *old, const struct ap_decision_point *p)
{
	const struct ap_decision_point *o = &old->point;

	return !old->hybrid || (p->dp == o->dp && p->tp == o->tp && p->cp == o->cp && p->ep == o->ep &&
		p->etp == o->etp && p->sp == o->sp && p->shard == o->shard &&
		(!old->deals_micro || p->mbs == o->mbs));
}

static bool has_kinds(const struct ap_old_decision *old, const struct ap_decision_space *s,
	const struct ap_decision_point *p)
{
	return is_of_kinds(old->point.recompute, ap_decision_kinds(s, p));
}

static bool is_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Is a trial's plan the old one, to the last layer? */
static bool is_same(const struct ap_old_decision *old, const struct ap_decision_space *s,
	const struct ap_decision_trial *t)
{
	return (t->point.kind >= 0 || t->verdict == AP_DECISION_FITS) &&
		is_text(ap_points_recompute(s, &t->point), old->point.recompute) &&
		is_text(t->point.layers ? t->point.layers : s->parts, old->point.layers);
}

/* The trial of which the old plan is: the fastest that fits, before others. AP_NONE: it is of none. */
static uint32_t find_trial(const struct ap_old_decision *old, const struct ap_decision *d)
{
	uint32_t found = AP_NONE;
	bool met = false;

	for (uint32_t i = 0; i < d->n && !met; i++) {
		const struct ap_decision_trial *t = &d->trial[i], *best = found == AP_NONE ? NULL
			: &d->trial[found];
		bool fits = t->verdict == AP_DECISION_FITS;

		if (!has_stages(old, &t->point) || !has_degrees(old, &t->point) ||
			!has_kinds(old, &d->space, &t->point))
			continue;
		met = old->hybrid && is_same(old, &d->space, t);
		if (met || !best || (fits && (best->verdict != AP_DECISION_FITS || t->step_s < best->step_s)))
			found = i;
	}
	return found;
}

struct looking {
	const struct ap_old_decision *old;
	bool found;
};

static void look(void *user, const struct ap_decision_point *p)
{
	struct looking *l = user;

	l->found |= has_stages(l->old, p) && has_degrees(l->old, p);
}

/* Is there such a point but for what is recomputed, in the executor's language or, free, in one without
 * limits? */
static bool is_point(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_decision_space *s, bool free)
{
	struct looking l = {.old = old};
	struct ap_decision_space space = *s;

	if (free)
		space.language = ap_executor_language_free(ctx, s->language);
	ap_decision_each(ctx, &space, look, &l);
	return l.found;
}

/* A number of the old plan that is not among what is given, "pp=8"; NULL: none is. */
static const char *contradicted(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_decision_space *s)
{
	const struct ap_decision_point *o = &old->point;
	const struct {
		const char *name;
		const struct ap_choices *among;
		int64_t is;
		bool degree;
	} number[] = {{"pp", &s->pp, o->pp, false}, {"v", &s->vpp, o->vpp, false},
		{"micro-batches", &s->micro_batches, o->micro_batches, false},
		{"dp", &s->dp, o->dp, true}, {"tp", &s->tp, o->tp, true}, {"cp", &s->cp, o->cp, true},
		{"ep", &s->ep, o->ep, true}, {"etp", &s->etp, o->etp, true}, {"sp", &s->sp, o->sp, true},
		{"mbs", &s->mbs, o->mbs, old->deals_micro},
		{"level", &s->level, o->level, false}};

	for (size_t i = 0; i < AP_COUNT(number); i++)
		if (number[i].among->n && (old->hybrid || !number[i].degree) &&
			(number[i].among != &s->mbs || old->deals_micro) &&
			!ap_choices_has(number[i].among, number[i].is))
			return ap_arena_printf(ctx->arena, "%s=%" PRId64, number[i].name, number[i].is);
	if (o->pp > 1 && s->scheduler.n && !ap_choices_has(&s->scheduler, o->scheduler))
		return ap_scheduler_at((size_t)o->scheduler)->name;
	if (o->level && s->shard.n && old->hybrid && !ap_choices_has(&s->shard, o->shard ? o->shard : -1) &&
		!(!o->shard && ap_choices_has(&s->shard, o->dp * o->cp)))
		return o->shard ? ap_arena_printf(ctx->arena, "shard=%" PRId64, o->shard) : "shard=all";
	if (s->parts && !is_text(s->parts, o->layers))
		return o->layers ? o->layers : "even layers";
	return NULL;
}

/* Why the old plan is no point of the decision. */
static const char *why_none(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_settings *set, const struct ap_decision_space *s)
{
	const struct ap_decision_point *o = &old->point;
	const char *other = contradicted(ctx, old, s);
	int64_t samples = o->dp * o->mbs * o->micro_batches;

	if (old->devices != s->devices)
		return ap_arena_printf(ctx->arena, "it is of %" PRId64 " devices, and there are %" PRId64,
			old->devices, s->devices);
	if (o->devices)
		return "its stages have unequal numbers of devices, which are not kept";
	if (other && s->micro_batches.n && !ap_choices_has(&s->micro_batches, o->micro_batches) &&
		!ap_setting_given(set, AP_SET_micro_batches))
		return ap_arena_printf(ctx->arena, "%s has to be given: the network mixes the samples of a "
			"micro-batch", other);
	if (other)
		return ap_arena_printf(ctx->arena, "%s is not what is given now", other);
	if (old->hybrid && s->batch && (old->deals_micro ? samples != s->batch
			: s->batch % (o->dp * o->micro_batches) != 0))
		return old->deals_micro ? ap_arena_printf(ctx->arena, "dp x mbs x micro-batches are %"
			PRId64 ", and the batch is %" PRId64, samples, s->batch)
			: ap_arena_printf(ctx->arena, "dp x micro-batches do not divide the batch of %"
			PRId64, s->batch);
	if (is_point(ctx, old, s, false) && ap_setting_given(set, AP_SET_recompute))
		return ap_arena_printf(ctx->arena, "recompute=%s is not what is given now", o->recompute);
	if (is_point(ctx, old, s, false))
		return ap_arena_printf(ctx->arena, "recompute=%s is not among what %s is told of this "
			"network", o->recompute, s->language->route);
	if (is_point(ctx, old, s, true))
		return ap_arena_printf(ctx->arena, "%s cannot be told that", s->language->route);
	return "it does not divide the layers, the sequence or the experts of this network";
}

/* ---- pricing ---- */

/* The stage in which a plan needs the most, and how much is short there. */
static const char *short_by(struct ap_ctx *ctx, const struct ap_decision_trial *t, const int64_t *excess)
{
	int64_t most = 0;
	char bytes[32];

	for (int64_t s = 1; s < t->point.pp; s++)
		most = excess[s] > excess[most] ? s : most;
	return t->point.pp == 1 ? ap_arena_printf(ctx->arena, "it no longer fits: %s are short",
		ap_format_bytes(excess[0], bytes))
		: ap_arena_printf(ctx->arena, "it no longer fits: %s are short in stage %" PRId64,
		ap_format_bytes(excess[most], bytes), most);
}

static const char *too_slow(struct ap_ctx *ctx, double step_s, double best_s, double within)
{
	return ap_arena_printf(ctx->arena, "%.3g %% behind the best, more than --within %g %%",
		100 * (step_s / best_s - 1), 100 * within);
}

struct pricing {
	struct ap_ctx ctx;
	const struct ap_old_decision_rivals *r;
	struct ap_decision_trial *trial; /* in the run's arena, as its texts are then */
	int64_t *excess; /* [stages] */
	struct ap_arena *to; /* of texts */
};

static void price(void *user)
{
	struct pricing *p = user;
	struct ap_ctx quiet = ap_diag_apart(&p->ctx);
	struct ap_trial_case c = {p->r->set, p->r->src, &p->r->d->space, NULL, p->r->d->usable_bytes,
		INFINITY, INFINITY, INFINITY};
	struct ap_decision_trial t = *p->trial;

	ap_trial_price(&quiet, &c, &t, p->excess);
	p->trial->verdict = t.verdict;
	p->trial->step_s = t.step_s;
	p->trial->memory_bytes = t.memory_bytes;
	p->trial->why = t.why ? ap_arena_strdup(p->to, t.why) : NULL;
}

/* The old hybrid as a trial, priced. *excess: [stages]. */
static struct ap_decision_trial price_hybrid(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_old_decision_rivals *r, uint32_t at, int64_t **excess)
{
	struct ap_decision_trial t = {.point = r->d->trial[at].point, .by = -1};
	struct pricing p = {.ctx = *ctx, .r = r, .trial = &t, .to = ctx->arena};
	struct ap_arena *made;

	t.point.kind = 0;
	t.point.recompute = old->point.recompute;
	t.point.layers = old->point.layers;
	t.step = AP_TRIAL_DONE;
	p.excess = *excess = AP_NEW_N(ctx->arena, int64_t, t.point.pp);
	p.ctx.phase = NULL;
	p.ctx.progress = NULL;
	p.ctx.stop = NULL; /* it takes less than the messages that it was not */
	if (ap_attempt_apart(&p.ctx, price, NULL, &p, &made)) {
		ap_arena_destroy(made);
	} else {
		t.verdict = AP_DECISION_REFUSED;
		t.why = "memory ran out while it was priced";
	}
	return t;
}

/* Makes the old trial the best of a decision, as one of its trials or another one. */
static void take_trial(struct ap_ctx *ctx, const struct ap_old_decision *old, uint32_t at,
	const struct ap_decision_trial *t, struct ap_decision *d)
{
	struct ap_decision_trial *list = AP_NEW_N(ctx->arena, struct ap_decision_trial, d->n + 1);

	memcpy(list, d->trial, d->n * sizeof *list);
	if (is_same(old, &d->space, &d->trial[at])) {
		d->count[list[at].verdict]--;
		list[at].verdict = t->verdict;
		list[at].step_s = t->step_s;
		list[at].memory_bytes = t->memory_bytes;
	} else {
		at = d->n++;
		list[at] = *t;
	}
	d->count[AP_DECISION_FITS]++;
	d->trial = list;
	d->best = at;
	d->bound_s = fmin(d->bound_s, t->step_s);
}

/* Holds a hybrid against the best. */
static void hold_hybrid(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_old_decision_rivals *r, uint32_t at, struct ap_plan_kept *told)
{
	int64_t *excess;
	struct ap_decision_trial t = price_hybrid(ctx, old, r, at, &excess);

	told->decision = ap_points_words(ctx, &r->d->space, &t.point);
	if (t.verdict == AP_DECISION_FITS)
		told->old_step_s = t.step_s;
	told->best_step_s = fmin(told->best_step_s, told->old_step_s);
	if (t.verdict == AP_DECISION_REFUSED)
		told->left = t.why;
	else if (t.verdict == AP_DECISION_TOO_LARGE)
		told->left = short_by(ctx, &t, excess);
	else if (t.step_s > told->best_step_s * (1 + told->within))
		told->left = too_slow(ctx, t.step_s, told->best_step_s, told->within);
	if (told->left)
		return;
	take_trial(ctx, old, at, &t, r->d);
	ap_points_settings(ctx, r->set, &r->d->space, &t.point, r->out);
	*r->use = AP_FOR_evaluate;
	*r->cuts_s = 0;
}

/* Holds a plan of single cuts against the best: settings are kept, and of cuts as many as can be. */
static void hold_cuts(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_old_decision_rivals *r, uint32_t at, struct ap_plan_kept *told)
{
	struct ap_decision_point point = r->d->trial[at].point;
	struct ap_settings o;
	double step_s;

	point.kind = 0;
	point.recompute = old->point.recompute;
	point.layers = NULL;
	if (!ap_operator_cuts_sayable(r->set)) {
		told->left = ap_setting_given(r->set, AP_SET_hybrid)
			? "it cuts operators one by one, and a hybrid is given"
			: ap_arena_printf(ctx->arena, "it cuts operators one by one, which %s is not told",
			r->d->space.language->route);
		return;
	}
	if (!r->search || ap_ctx_stopped(ctx)) {
		told->left = "the run was stopped before it was looked at";
		return;
	}
	ap_operator_cuts_settings(ctx, r->set, r->d, &point, &o);
	o.keep_best_s = told->best_step_s;
	step_s = ap_operator_cuts_step(ctx, &o, r->src);
	if (!(step_s > 0)) {
		told->left = "no plan of its settings fits any more";
		return;
	}
	told->old_step_s = step_s;
	told->best_step_s = fmin(told->best_step_s, step_s);
	if (step_s > told->best_step_s * (1 + told->within)) {
		told->left = too_slow(ctx, step_s, told->best_step_s, told->within);
		return;
	}
	*r->out = o;
	*r->use = AP_FOR_search;
	*r->cuts_s = step_s;
	*r->trial = at;
}

/* What of the old plan a message tells where it is no point: "dp=8 tp=4 pp=2 .." */
static const char *words(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_decision_space *s)
{
	const struct ap_decision_point *p = &old->point;

	if (old->hybrid && p->dp)
		return ap_points_words(ctx, s, p);
	if (old->plan.decided)
		return ap_arena_printf(ctx->arena, "%s, operators cut one by one", old->plan.decided);
	return ap_arena_printf(ctx->arena, "%spp=%" PRId64 " micro-batches=%" PRId64 " recompute=%s%s",
		p->devices ? ap_arena_printf(ctx->arena, "devices=%s ", p->devices) : "", p->pp,
		p->micro_batches, p->recompute, old->hybrid ? "" : ", operators cut one by one");
}

struct ap_plan_kept *ap_old_decision_hold(struct ap_ctx *ctx, const struct ap_old_decision *old,
	const struct ap_old_decision_rivals *r)
{
	struct ap_plan_kept *told = AP_NEW(ctx->arena, struct ap_plan_kept);
	uint32_t at = find_trial(old, r->d);
	const struct ap_decision_trial *best = &r->d->trial[*r->cuts_s > 0 ? *r->trial : r->d->best];
	bool same_devices = old->devices == r->d->space.devices;

	*told = (struct ap_plan_kept){.file = old->file, .within = r->set->within / 100,
		.best_step_s = *r->cuts_s > 0 ? *r->cuts_s : best->step_s, .best_changes = AP_NONE,
		.old_step_s = INFINITY};
	told->best_decision = ap_points_words(ctx, &r->d->space, &best->point);
	if (*r->cuts_s > 0)
		told->best_decision = ap_arena_printf(ctx->arena, "%s, operators cut one by one",
			told->best_decision);
	told->decision = words(ctx, old, &r->d->space);
	ap_ctx_phase(ctx, "keeping the old plan");
	if (at == AP_NONE || !same_devices)
		told->left = why_none(ctx, old, r->set, &r->d->space);
	else if (old->hybrid)
		hold_hybrid(ctx, old, r, at, told);
	else
		hold_cuts(ctx, old, r, at, told);
	return told;
}

/* ---- what became of its cuts ---- */

void ap_old_decision_finish(struct ap_ctx *ctx, const struct ap_old_decision *old,
	struct ap_plan_kept *told, struct ap_plan *plan)
{
	const struct ap_graph *g = plan->graph;
	const int32_t *const *now = ap_plan_counts(ctx, plan);
	struct ap_plan_match match;
	uint32_t impossible = 0;

	ap_plan_match(ctx, &old->plan, g, plan->machine->ndev, plan->step, &match);
	for (ap_id i = 0; i < g->nnode; i++) {
		impossible += match.why[i] != NULL;
		told->of += match.counts[i] || match.why[i];
		told->changes += match.why[i] || (match.counts[i] && memcmp(match.counts[i], now[i],
			g->node[i].bound.nfactor * sizeof **now) != 0);
	}
	if (plan->kept) { /* of a search, which knows nothing of cuts that cannot be here */
		told->least = plan->kept->least + impossible;
		told->best_changes = plan->kept->best_changes + impossible;
		told->best_step_s = fmin(told->best_step_s, plan->kept->best_step_s);
		if (!told->left)
			told->old_step_s = plan->kept->old_step_s;
	}
	plan->kept = told;
}
