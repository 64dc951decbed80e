/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decide.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <stdio.h>

#include "api/points.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/map.h"
#include "base/par.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/family.h"
#include "plan/make.h"
#include "plan/memory.h"
#include "plan/terms.h"
#include "pipeline/schedule.h"
#include "route/route.h"

enum { USUAL_HEADROOM = 5 }; /* per cent, where nobody says */
enum { ROUND = 16 }; /* trials of a round, whatever the jobs */

struct pass { /* of a micro-batch through all stages, forth and back */
	double s;
	int64_t dealt; /* devices that weights or gradients are gathered from in it; else 1 */
};

/* What a trial tells of points with the same work on a device in a pass of a layer. */
struct kin {
	struct passes { /* the shortest of each number of devices, as more stages may take longer */
		struct pass *v;
		size_t n, cap;
	} passes;
	double kept_bytes; /* of a micro-batch, of all layers */
	double static_bytes; /* of all layers, as dealt in the trial */
	int64_t dealt; /* devices that it is dealt to, where it is */
	int level;
	int32_t by; /* the trial; -1: none yet */
	uint32_t first; /* the trial by which it is met: one that is likely to fit */
	uint32_t smaller; /* kin of the next smaller micro-batches; AP_NONE: none */
	uint32_t more, less; /* kin that recomputes more, and less; AP_NONE: none */
};

struct trying { /* of one thread, or of a run */
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_decision *joint;
	struct ap_decision_trial *trial;
	struct kin *tells;
	struct pass *pass;
};

/* What the layers of a plan hold and take. */
static void tell(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_decision_point *at,
	struct kin *k, struct pass *pass)
{
	struct ap_family_chain chain;

	ap_family_chain(ctx, p->graph, &chain);
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_op_cost *c = &p->op[i].cost;
		const struct ap_plan_stage *s = &p->stage[ap_plan_op_stage(p, i)];
		int64_t held = s->held[ap_plan_op_segment(p, i)];

		if (chain.n && chain.layer[i] < 0)
			continue;
		k->static_bytes += (double)(c->weight_bytes + c->gradient_bytes + c->optimizer_bytes +
			c->gathered_bytes);
		if (held > 0)
			k->kept_bytes += (double)ap_plan_activation_bytes(p, i) / (double)held;
	}
	pass->s = 0;
	for (uint32_t s = 0; s < p->nstage; s++)
		pass->s += p->stage[s].forward_s + p->stage[s].backward_s;
	k->dealt = at->dp * at->cp;
	pass->dealt = at->level > 1 ? k->dealt : 1;
	k->level = at->level;
}

/* Prices a point, in an arena of its own. */
static void try(struct trying *t)
{
	struct ap_ctx *ctx = &t->ctx;
	struct ap_inputs in;
	struct ap_settings o;
	struct ap_plan plan;
	struct ap_plan_maker *maker;
	bool fits;

	ap_points_settings(ctx, t->set, &t->joint->space, &t->trial->point, &o);
	ap_settings_check(ctx, &o);
	t->trial->verdict = AP_DECISION_REFUSED;
	if (ap_diag_status(ctx->diag) != AP_OK ||
		ap_inputs_make(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK ||
		ap_inputs_give(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK)
		return;
	maker = ap_plan_maker_create(ctx, in.request.graph, in.machine, &in.step, t->joint->usable_bytes);
	ap_plan_sketch_in(maker, ctx->arena, in.counts, &plan);
	t->trial->memory_bytes = plan.prediction.memory.total;
	fits = t->trial->memory_bytes <= t->joint->usable_bytes;
	t->trial->verdict = fits ? AP_DECISION_FITS : AP_DECISION_TOO_LARGE;
	if (fits)
		t->trial->step_s = plan.prediction.step_time_s;
	tell(ctx, &plan, &t->trial->point, t->tells, t->pass);
}

/* ---- all of them ---- */

struct deciding {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	struct ap_sources src;
	struct ap_decision *out;
	AP_VEC(struct ap_decision_trial) trials;
	AP_VEC(struct kin) kins;
	bool timed; /* passes add up to a bound: two may not run as one */
	const uint32_t *kin_of; /* [trials.n] */
	struct ap_ctx *own; /* [ctx->jobs] of a thread, released after each trial */
};

static void add(void *user, const struct ap_decision_point *p)
{
	struct deciding *d = user;
	struct ap_decision_trial t = {.point = *p, .by = -1};

	AP_PUSH(d->ctx->arena, d->trials, t);
}

/* Is a better to begin with than b: does it need less memory, and is it as quickly simulated? */
static bool is_leaner(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	if (a->vpp != b->vpp)
		return a->vpp < b->vpp;
	return a->pp != b->pp ? a->pp > b->pp : (a->level == 1) > (b->level == 1);
}

/* Dealt gradients and weights are exchanged in the passes; those of a single micro-batch behind them. */
static int in_passes(const struct ap_decision_point *p)
{
	return p->level <= 1 ? 0 : p->micro_batches == 1 ? -p->level : p->level;
}

static uint32_t kin_at(struct ap_map *seen, const struct ap_decision_point *p, int64_t mbs, int recompute,
	int level, bool *fresh)
{
	const int64_t key[] = {p->tp, p->cp, p->ep, p->etp, mbs, recompute, p->sp, level};

	return fresh ? ap_map_put(seen, key, sizeof key, fresh) : ap_map_get(seen, key, sizeof key);
}

/* Deals the trials to kins. */
static void find_kins(struct deciding *d)
{
	struct ap_map *seen = ap_map_create(d->ctx->arena);
	uint32_t *of = AP_NEW_N(d->ctx->arena, uint32_t, d->trials.n);

	for (size_t i = 0; i < d->trials.n; i++) {
		const struct ap_decision_point *p = &d->trials.v[i].point;
		bool fresh;

		of[i] = kin_at(seen, p, p->mbs, p->recompute, in_passes(p), &fresh);
		if (fresh)
			AP_PUSH(d->ctx->arena, d->kins, ((struct kin){.by = -1, .first = (uint32_t)i}));
		else if (is_leaner(p, &d->trials.v[d->kins.v[of[i]].first].point))
			d->kins.v[of[i]].first = (uint32_t)i;
	}
	for (size_t i = 0; i < d->kins.n; i++) {
		struct kin *k = &d->kins.v[i];
		const struct ap_decision_point *p = &d->trials.v[k->first].point;

		k->smaller = AP_NONE;
		for (int64_t mbs = p->mbs - 1; mbs > 0 && k->smaller == AP_NONE; mbs--)
			if (d->out->space.batch % mbs == 0)
				k->smaller = kin_at(seen, p, mbs, p->recompute, in_passes(p), NULL);
		k->more = kin_at(seen, p, p->mbs, p->recompute + 1, in_passes(p), NULL);
		k->less = kin_at(seen, p, p->mbs, p->recompute - 1, in_passes(p), NULL);
		if (k->less == AP_NONE && p->level > 1)
			k->less = kin_at(seen, p, p->mbs, p->recompute, 0, NULL);
	}
	d->kin_of = of;
}

/* Micro-batches whose activations the first stage holds. */
static double first_holds(const struct ap_decision_point *p)
{
	double m = (double)p->micro_batches, pp = (double)p->pp, v = (double)p->vpp;
	double held = v > 1 && !ap_scheduler_at((size_t)p->scheduler)->splits
		? (2 * (pp - 1) + (v - 1) * pp + 1) / v : pp;

	return fmin(m, held);
}

/* No plan of the point needs fewer bytes on the first stage's devices. */
static double least_bytes(const struct kin *k, const struct ap_decision_point *p)
{
	double dealt = (double)(p->dp * p->cp), share = 1;

	if (p->level > k->level)
		share = 1 / dealt;
	else if (p->level && dealt > (double)k->dealt)
		share = (double)k->dealt / dealt;
	return (k->static_bytes * share + k->kept_bytes * first_holds(p)) / (double)p->pp;
}

/* Seconds that a step takes at least, but for the exchange of gradients and the update: the mean stage works
 * on all micro-batches, and one of them goes through all stages and back. Where layers are dealt evenly, and
 * the last stage, which has the head, is none of the shorter ones, it also waits while the pipeline fills and
 * drains by parts. Gradients of weights that have a pass of their own fill that. */
static double least_s(double pass_s, const struct ap_decision_point *p, int64_t layers)
{
	double mean = pass_s / (double)p->pp, m = (double)p->micro_batches;

	if (ap_scheduler_at((size_t)p->scheduler)->splits)
		return mean * m;
	return layers && layers % p->pp == 0 ? mean * (m + (double)(p->pp - 1) / (double)p->vpp)
		: fmax(mean * m, p->vpp > 1 ? 0 : pass_s);
}

enum { WHY_BYTES = 200 };

/* The first error of a sink, or what comes nearest to it. */
static void first_error(const struct ap_diag *diag, char out[WHY_BYTES])
{
	struct ap_message m;

	snprintf(out, WHY_BYTES, "no such plan");
	for (size_t i = 0; ap_diag_at(diag, i, &m); i++)
		if (m.level == AP_ERROR) {
			snprintf(out, WHY_BYTES, "%s", m.text);
			break;
		}
}

struct round {
	struct deciding *d;
	uint32_t n, at[ROUND];
	struct kin tells[ROUND];
	struct pass pass[ROUND];
	char why[ROUND][WHY_BYTES];
};

static void try_one(void *user, size_t i, int worker)
{
	struct round *r = user;
	struct ap_ctx *own = &r->d->own[worker];
	struct ap_mark mark = ap_arena_mark(own->arena), scratch = ap_arena_mark(own->scratch);
	struct trying t = {.ctx = *own, .set = r->d->set, .src = &r->d->src, .joint = r->d->out,
		.trial = &r->d->trials.v[r->at[i]], .tells = &r->tells[i],
		.pass = &r->pass[i]};

	t.ctx.diag = ap_diag_create(own->arena, false);
	try(&t);
	if (t.trial->verdict == AP_DECISION_REFUSED)
		first_error(t.ctx.diag, r->why[i]);
	ap_arena_release(own->scratch, scratch);
	ap_arena_release(own->arena, mark);
}

static void learn(struct ap_ctx *ctx, struct passes *known, const struct pass *p)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->v[i].dealt == p->dealt) {
			known->v[i].s = fmin(known->v[i].s, p->s);
			return;
		}
	AP_PUSH(ctx->arena, *known, *p);
}

static void run_round(struct round *r)
{
	struct deciding *d = r->d;
	struct ap_decision *out = d->out;

	ap_par_for(d->ctx->arena, d->ctx->jobs, r->n, try_one, r);
	for (uint32_t i = 0; i < r->n; i++) {
		struct ap_decision_trial *t = &d->trials.v[r->at[i]];
		struct kin *k = &d->kins.v[d->kin_of[r->at[i]]];

		t->by = (int32_t)r->at[i];
		if (t->verdict == AP_DECISION_REFUSED) {
			t->why = ap_arena_strdup(d->ctx->arena, r->why[i]);
		} else {
			const struct kin *n = &r->tells[i];

			if (k->by < 0) {
				k->kept_bytes = n->kept_bytes;
				k->static_bytes = n->static_bytes;
				k->dealt = n->dealt;
				k->level = n->level;
				k->by = t->by;
			}
			learn(d->ctx, &k->passes, &r->pass[i]);
		}
		if (t->verdict == AP_DECISION_FITS && (out->best == AP_NONE ||
			t->step_s < d->trials.v[out->best].step_s ||
			(t->step_s <= d->trials.v[out->best].step_s && r->at[i] < out->best)))
			out->best = r->at[i];
	}
	out->evaluated += r->n;
}

/* The kin that tells what this one holds at least: itself, else one of smaller micro-batches, or one that
 * recomputes more; NULL: nothing is known. */
static const struct kin *holds_like(const struct deciding *d, const struct kin *k)
{
	for (const struct kin *more = k;; more = &d->kins.v[more->more]) {
		for (const struct kin *small = more;; small = &d->kins.v[small->smaller]) {
			if (small->by >= 0)
				return small;
			if (small->smaller == AP_NONE)
				break;
		}
		if (more->more == AP_NONE)
			return NULL;
	}
}

/* Seconds of a micro-batch's pass at least, by trials of the kin, else of one that recomputes or deals
 * less; 0: not known. What is gathered from more devices takes as long at least. */
static double pass_s(const struct deciding *d, const struct kin *k, int64_t dealt)
{
	double most = 0;

	for (;; k = &d->kins.v[k->less]) {
		for (size_t i = 0; i < k->passes.n; i++)
			if (k->passes.v[i].dealt <= dealt)
				most = fmax(most, k->passes.v[i].s);
		if (most > 0 || k->less == AP_NONE)
			return most;
	}
}

/* Does a kin of smaller micro-batches, which would tell something of this one, still come? */
static bool is_awaited(const struct deciding *d, const struct kin *k)
{
	return k->smaller != AP_NONE && d->kins.v[k->smaller].by < 0 &&
		d->trials.v[d->kins.v[k->smaller].first].verdict == AP_DECISION_OPEN;
}

/* Judges the points that are open by what is known, and picks the next: those that may be fastest; of kins of
 * which nothing is known one each. */
static void pick(struct deciding *d, struct round *r)
{
	double best_s = d->out->best == AP_NONE ? INFINITY : d->trials.v[d->out->best].step_s;
	bool *met = AP_NEW_N(d->ctx->scratch, bool, d->kins.n);
	double at_s[ROUND];

	for (uint32_t i = 0; i < d->trials.n; i++) {
		struct ap_decision_trial *t = &d->trials.v[i];
		struct kin *k = &d->kins.v[d->kin_of[i]];
		const struct kin *like;
		uint32_t place;
		double takes_s;

		if (t->verdict != AP_DECISION_OPEN)
			continue;
		like = holds_like(d, k);
		if (d->set->prune && like && least_bytes(like, &t->point) > (double)d->out->usable_bytes) {
			t->verdict = AP_DECISION_TOO_LARGE;
			t->by = like->by;
			continue;
		}
		takes_s = pass_s(d, k, t->point.dp * t->point.cp);
		t->bound_s = d->timed && takes_s > 0 ? least_s(takes_s, &t->point, d->out->space.layers)
			: 0;
		if (t->bound_s >= best_s) {
			t->verdict = AP_DECISION_BOUNDED;
			continue;
		}
		if (k->by < 0 && (met[d->kin_of[i]] || is_awaited(d, k) ||
			(k->first != i && d->trials.v[k->first].verdict == AP_DECISION_OPEN)))
			continue;
		for (place = r->n; place > 0 && t->bound_s < at_s[place - 1]; place--)
			;
		if (place == ROUND)
			continue;
		met[d->kin_of[i]] = true;
		r->n += r->n < ROUND;
		for (uint32_t m = r->n - 1; m > place; m--) {
			r->at[m] = r->at[m - 1];
			at_s[m] = at_s[m - 1];
		}
		r->at[place] = i;
		at_s[place] = t->bound_s;
	}
}

/* Says why no point is a plan that fits. */
static enum ap_status none_fits(struct ap_ctx *ctx, const struct ap_decision *j)
{
	const struct ap_decision_trial *least = NULL, *refused = NULL;
	char need[32], have[32], lack[32];

	for (uint32_t i = 0; i < j->n; i++) {
		const struct ap_decision_trial *t = &j->trial[i];

		if (t->verdict == AP_DECISION_REFUSED && !refused)
			refused = t;
		if (t->memory_bytes > 0 && (!least || t->memory_bytes < least->memory_bytes))
			least = t;
	}
	if (!least)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "plan",
			"no combination of the settings is a plan%s%s%s%s", refused ? "; with " : "",
			refused ? ap_points_words(ctx, &j->space, &refused->point) : "",
			refused ? ": " : "", refused ? refused->why : "");
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"none of %" PRIu32 " combinations of settings fits the memory: %s needs %s on a device, "
		"%s are usable less headroom, %s are short", j->n,
		ap_points_words(ctx, &j->space, &least->point), ap_format_bytes(least->memory_bytes, need),
		ap_format_bytes(j->usable_bytes, have),
		ap_format_bytes(least->memory_bytes - j->usable_bytes, lack));
	ap_diag_figure(ctx->diag, "needed_bytes", least->memory_bytes);
	ap_diag_figure(ctx->diag, "usable_bytes", j->usable_bytes);
	ap_diag_figure(ctx->diag, "short_bytes", least->memory_bytes - j->usable_bytes);
	return AP_INFEASIBLE;
}

enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, uint32_t most, struct ap_decision *out)
{
	struct deciding d = {.ctx = ctx, .set = set, .src = *src, .out = out};
	struct ap_settings base = ap_points_undecided(ctx, set);
	struct ap_inputs in;

	*out = (struct ap_decision){.best = AP_NONE};
	ap_ctx_phase(ctx, "reading the graph");
	AP_TRY(ap_inputs_make(ctx, &base, src, AP_FOR_search, &in));
	ap_ctx_phase(ctx, "deciding");
	d.src.ready = in.loaded;
	d.src.chip = in.chip;
	d.src.sketches = true;
	d.timed = set->prune && !set->overlap_moe_expert_parallel_comm;
	out->headroom = set->headroom < 0 ? USUAL_HEADROOM : set->headroom;
	out->usable_bytes = (int64_t)((double)in.request.capacity_bytes * (1 - out->headroom / 100));
	AP_TRY(ap_points_space(ctx, set, src, &in, &out->space));
	ap_decision_each(ctx, &out->space, add, &d);
	find_kins(&d);
	d.own = AP_NEW_N(ctx->arena, struct ap_ctx, ctx->jobs);
	for (int w = 0; w < ctx->jobs; w++) {
		d.own[w] = *ctx;
		d.own[w].arena = ap_arena_create_like(ctx->arena);
		d.own[w].scratch = ap_arena_create_like(ctx->arena);
		ap_arena_own(ctx->arena, d.own[w].arena);
		ap_arena_own(ctx->arena, d.own[w].scratch);
		d.own[w].jobs = 1;
		d.own[w].phase = NULL;
	}
	for (bool more = true; more && !ap_ctx_stopped(ctx) && out->evaluated < most;) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		struct round r = {.d = &d};

		pick(&d, &r);
		more = r.n > 0;
		run_round(&r);
		ap_arena_release(ctx->scratch, mark);
	}
	out->sequence = ap_points_sequence(in.loaded);
	out->software = in.step.software;
	out->chip = in.chip;
	out->n = (uint32_t)d.trials.n;
	out->trial = d.trials.v;
	out->bound_s = INFINITY;
	for (uint32_t i = 0; i < out->n; i++) {
		const struct ap_decision_trial *t = &out->trial[i];

		out->count[t->verdict]++;
		if (t->verdict == AP_DECISION_OPEN)
			out->bound_s = fmin(out->bound_s, t->bound_s);
	}
	out->complete = out->count[AP_DECISION_OPEN] == 0;
	if (out->best == AP_NONE)
		return out->complete ? none_fits(ctx, out) : ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL,
			"limit", "stopped before any plan was found");
	out->bound_s = fmin(out->bound_s, out->trial[out->best].step_s);
	return out->complete ? AP_OK : AP_STOPPED;
}

/* ---- cuts of single operators ---- */

enum { CUTS_TRIED = 3 }; /* settings under which cuts are searched */
#define CUTS_NEAR 1.1 /* their best hybrids take so many times the best of all at most */
#define CUTS_WORK (INT64_C(1) << 32)

struct cutting {
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	double step_s; /* 0: no plan was found */
};

static void search_cuts(void *user)
{
	struct cutting *c = user;
	struct ap_ctx quiet = ap_diag_apart(&c->ctx);
	struct ap_inputs in;
	struct ap_plan plan;
	enum ap_status st;

	if (ap_inputs_make(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK ||
		ap_inputs_give(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK)
		return;
	st = ap_inputs_plan(&quiet, &in, NULL, &plan, NULL);
	if (st == AP_OK || st == AP_STOPPED)
		c->step_s = plan.prediction.step_time_s;
}

/* Do hybrids differ in nothing but degrees inside a stage? */
static bool has_same_stages(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	return a->pp == b->pp && a->vpp == b->vpp && a->scheduler == b->scheduler &&
		a->micro_batches == b->micro_batches && a->recompute == b->recompute && a->level == b->level;
}

/* The fastest hybrids of different stages, at most CUTS_TRIED, the best first; returns how many. */
static uint32_t find_nearest(const struct ap_decision *d, uint32_t at[CUTS_TRIED])
{
	double most_s = d->trial[d->best].step_s * CUTS_NEAR;
	uint32_t n = 0;

	for (; n < CUTS_TRIED; n++) {
		uint32_t next = AP_NONE;

		for (uint32_t i = 0; i < d->n; i++) {
			const struct ap_decision_trial *t = &d->trial[i];
			bool met = t->verdict != AP_DECISION_FITS || t->step_s > most_s;

			for (uint32_t k = 0; k < n && !met; k++)
				met = has_same_stages(&t->point, &d->trial[at[k]].point);
			if (!met && (next == AP_NONE || t->step_s < d->trial[next].step_s))
				next = i;
		}
		if (next == AP_NONE)
			break;
		at[n] = next;
	}
	return n;
}

bool ap_decide_cuts(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial)
{
	const struct ap_route *route = ap_route_at((size_t)set->executor);
	double best_s = d->trial[d->best].step_s;
	uint32_t at[CUTS_TRIED], n;
	bool found = false;

	if (route->degrees || route->complete || set->hybrid || set->parallel_mode != AP_MODE_AUTO_PARALLEL)
		return false;
	ap_ctx_phase(ctx, "cutting");
	n = find_nearest(d, at);
	for (uint32_t k = 0; k < n && !ap_ctx_stopped(ctx); k++) {
		struct ap_settings *o = AP_NEW(ctx->arena, struct ap_settings);
		struct cutting c = {.ctx = *ctx, .set = o, .src = src};
		struct ap_arena *made;

		ap_points_settings(ctx, set, &d->space, &d->trial[at[k]].point, o);
		ap_setting_unset(o, AP_SET_hybrid);
		o->memory = d->usable_bytes;
		if (!ap_setting_given(set, AP_SET_work_limit))
			ap_points_give(ctx, o, AP_SET_work_limit,
				ap_arena_printf(ctx->arena, "%" PRId64, CUTS_WORK));
		c.ctx.phase = NULL;
		if (!ap_attempt_apart(&c.ctx, search_cuts, NULL, &c, &made))
			continue;
		ap_arena_destroy(made);
		if (c.step_s > 0 && c.step_s < best_s) {
			best_s = *step_s = c.step_s;
			*out = *o;
			*trial = at[k];
			found = true;
		}
	}
	return found;
}
