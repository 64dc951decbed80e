/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decide.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <stdio.h>

#include "api/layer_problem.h"
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
#include "partition/even.h"
#include "partition/partition.h"
#include "plan/blocks.h"
#include "plan/make.h"
#include "plan/memory.h"
#include "plan/terms.h"
#include "pipeline/schedule.h"
#include "route/route.h"

enum { USUAL_HEADROOM = 5 }; /* per cent, where nobody says */
enum { ROUND = 16 }; /* trials of a round, whatever the jobs */
enum { MISFITS = 4 }; /* plans that turn out not to fit, before a point is left */
enum { WHOLE_SUMS = 4 }; /* beside levels: weights are gathered in passes, gradients are whole */
enum { KEPT_LAYERS = 2 }; /* of equal ones, which are priced for all of them */
#define NEAR 1.05 /* plans that take so many times the best are priced, to be told as others */
#define DEAL_WORK (UINT64_C(1) << 22) /* to deal layers to parts and kinds: some ten milliseconds */
#define DEAL_ALL (UINT64_C(1) << 27) /* of all points: about a second */
#define DEAL_GAP 1e-3

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
	double layer_s; /* pass of the quickest layer */
	int64_t context_bytes;
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
	const struct ap_layer_table *rows;
	const struct ap_decision *joint;
	struct ap_decision_trial *trial;
	struct kin *tells; /* by >= 0: it told something */
	struct pass *pass;
	double below_s; /* only plans that take less are of interest */
	uint32_t priced; /* plans */
	uint64_t work; /* to deal layers */
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
	k->dealt = ap_decision_dealt(at);
	pass->dealt = at->level > 1 ? at->dp * at->cp : 1;
	k->level = at->level;
	k->by = 0;
}

/* The same of a point whose layers are not dealt yet. */
static void tell_layers(const struct ap_layer_problem *q, const struct ap_decision_point *at, struct kin *k,
	struct pass *pass)
{
	k->static_bytes = q->static_bytes;
	k->kept_bytes = q->kept_bytes;
	k->layer_s = q->least_s;
	k->context_bytes = q->context_bytes;
	k->dealt = ap_decision_dealt(at);
	k->level = at->level;
	k->by = 0;
	*pass = (struct pass){q->pass_s, at->level > 1 ? at->dp * at->cp : 1};
}

/* Prices the plan of a point; excess: [stages] by what each stage is too large, where the plan is. */
static void price(struct trying *t, const struct ap_decision_point *point, int64_t *excess)
{
	struct ap_ctx *ctx = &t->ctx;
	struct ap_inputs in;
	struct ap_settings o;
	struct ap_plan plan;
	struct ap_plan_maker *maker;
	bool fits;

	ap_points_settings(ctx, t->set, &t->joint->space, point, &o);
	ap_settings_check(ctx, &o);
	t->trial->verdict = AP_DECISION_REFUSED;
	if (ap_diag_status(ctx->diag) != AP_OK ||
		ap_inputs_make(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK ||
		ap_inputs_give(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK)
		return;
	t->priced++;
	maker = ap_plan_maker_create(ctx, in.request.graph, in.machine, &in.step, t->joint->usable_bytes);
	ap_plan_sketch_in(maker, ctx->arena, in.counts, &plan);
	t->trial->memory_bytes = plan.prediction.memory.total;
	fits = t->trial->memory_bytes <= t->joint->usable_bytes;
	t->trial->verdict = fits ? AP_DECISION_FITS : AP_DECISION_TOO_LARGE;
	if (fits)
		t->trial->step_s = plan.prediction.step_time_s;
	for (uint32_t s = 0; excess && s < plan.nstage; s++)
		excess[s] = plan.stage[s].memory.total - t->joint->usable_bytes;
	if (point->kind >= 0)
		tell(ctx, &plan, point, t->tells, t->pass);
}

/* Prices what a plan of the layers comes to. False: it does not fit. */
static bool price_dealt(struct trying *t, const struct ap_layer_problem *q,
	const struct ap_partition_plan *plan, int64_t *excess)
{
	struct ap_decision_point point = t->trial->point;

	ap_layer_problem_say(&t->ctx, q, plan, &point);
	price(t, &point, excess);
	if (t->trial->verdict == AP_DECISION_TOO_LARGE) {
		t->trial->verdict = AP_DECISION_OPEN;
		return false;
	}
	t->trial->point = point;
	return true;
}

/* Stages that are too large are dealt less, by what the layers' figures leave out. */
static void give_room(struct ap_layer_problem *q, const int64_t *excess, int64_t *fixed)
{
	for (int32_t s = 0; s < q->p.nstage; s++)
		fixed[s] += excess[s] > 0 ? excess[s] : 0;
}

static void begin(struct trying *t, struct ap_layer_problem *q, int64_t **fixed, int64_t **excess)
{
	*fixed = ap_arena_memdup(t->ctx.arena, q->p.fixed_bytes, (size_t)q->p.nstage * sizeof **fixed);
	*excess = AP_NEW_N(t->ctx.arena, int64_t, q->p.nstage);
	q->p.fixed_bytes = *fixed;
}

/* Prices layers that are dealt evenly, all in the leanest kind. */
static void price_leanest(struct trying *t, const struct ap_layer_problem *q)
{
	struct ap_decision_point point = t->trial->point;

	point.recompute = q->p.kind[q->p.nkind - 1];
	price(t, &point, NULL);
	if (t->trial->verdict == AP_DECISION_FITS)
		t->trial->point = point;
	else
		t->trial->verdict = AP_DECISION_OPEN;
}

/* Learns what the layers of a point take, and prices a plan that comes to mind. */
static void look(struct trying *t)
{
	struct ap_layer_problem q;
	struct ap_ctx *ctx = &t->ctx;
	struct ap_partition_plan plan;
	int64_t *fixed, *excess;
	double step_s;

	if (ap_layer_problem_make(ctx, t->rows, &t->joint->space, &t->trial->point, t->joint->usable_bytes,
		&q) != AP_OK) {
		t->trial->verdict = AP_DECISION_REFUSED;
		return;
	}
	tell_layers(&q, &t->trial->point, t->tells, t->pass);
	begin(t, &q, &fixed, &excess);
	for (int i = 0; i < MISFITS; i++) {
		bool fits = ap_partition_even(ctx, &q.p, &plan, &step_s);

		/* Rooms that were given for one plan may be too much for all. */
		if (!fits && i > 0)
			price_leanest(t, &q);
		if (!fits || step_s >= t->below_s * NEAR || price_dealt(t, &q, &plan, excess))
			return;
		give_room(&q, excess, fixed);
	}
	price_leanest(t, &q);
}

/* Bounds all plans of a point by its layers. */
static void bound(struct trying *t)
{
	struct ap_layer_problem q;
	struct ap_ctx *ctx = &t->ctx;
	struct ap_decision_trial *trial = t->trial;
	enum ap_status st = ap_layer_problem_make(ctx, t->rows, &t->joint->space, &trial->point,
		t->joint->usable_bytes, &q);
	int64_t lack_bytes;

	assert(st == AP_OK);
	(void)st;
	if (trial->verdict == AP_DECISION_FITS && trial->point.pp == 1 &&
		strcmp(trial->point.recompute, q.p.kind[0]) == 0) {
		/* Without a pipeline there is no other plan but those that recompute more. */
		trial->bound_s = trial->step_s;
		return;
	}
	trial->bound_s = fmax(trial->bound_s, ap_layer_problem_bound(ctx, &q, t->below_s));
	if (trial->verdict == AP_DECISION_FITS || trial->bound_s < INFINITY)
		return;
	lack_bytes = ap_partition_lack(ctx, &q.p);
	if (lack_bytes > 0)
		trial->memory_bytes = t->joint->usable_bytes + lack_bytes;
	else
		price_leanest(t, &q);
	if (trial->verdict == AP_DECISION_OPEN)
		trial->verdict = AP_DECISION_TOO_LARGE;
}

/* Deals the layers of a point as well as they can be, and prices the plan that comes of it. */
static void deal(struct trying *t)
{
	struct ap_ctx *ctx = &t->ctx;
	struct ap_decision_trial *trial = t->trial, before = *trial;
	const struct ap_partition_budget budget = {.work = DEAL_WORK, .gap = DEAL_GAP,
		.below = t->below_s < INFINITY ? t->below_s : 0};
	struct ap_layer_problem q;
	enum ap_status st = ap_layer_problem_make(ctx, t->rows, &t->joint->space, &trial->point,
		t->joint->usable_bytes, &q);
	int64_t *fixed, *excess;

	assert(st == AP_OK);
	(void)st;
	begin(t, &q, &fixed, &excess);
	for (int i = 0; i < MISFITS; i++) {
		struct ap_partition_choice choice;

		ap_partition_solve(ctx, &q.p, &budget, &choice);
		t->work += choice.work;
		if (i == 0) {
			trial->bound_s = fmax(trial->bound_s, choice.lower_bound);
			if (!choice.plan && choice.ended == AP_ENDED_PROVEN)
				trial->bound_s = fmax(trial->bound_s, budget.below);
		}
		if (!choice.plan || price_dealt(t, &q, choice.plan, excess))
			break;
		give_room(&q, excess, fixed);
	}
	/* What was found at first may be better, as the layers' figures are not all. */
	if (before.verdict == AP_DECISION_FITS &&
		(trial->verdict != AP_DECISION_FITS || trial->step_s > before.step_s)) {
		before.bound_s = trial->bound_s;
		*trial = before;
	}
}

/* ---- all of them ---- */

struct deciding {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	struct ap_sources src;
	struct ap_layer_table *rows;
	struct ap_decision *out;
	AP_VEC(struct ap_decision_trial) trials;
	AP_VEC(struct kin) kins;
	bool timed; /* passes add up to a bound: two may not run as one */
	const uint32_t *kin_of; /* [trials.n] */
	enum step {NEW, LOOKED, BOUNDED, DEALT} *step; /* [trials.n] that was done with it last */
	uint64_t work; /* to deal layers, so far */
	struct ap_workers workers;
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

/* Dealt gradients and weights are exchanged in the passes; those of a single micro-batch behind them, as are
 * gradients that stay whole. */
static int in_passes(const struct ap_decision_point *p)
{
	if (p->sums_whole)
		return p->level <= 2 ? 0 : WHOLE_SUMS;
	return p->level <= 1 ? 0 : p->micro_batches == 1 ? -p->level : p->level;
}

static uint32_t kin_at(struct ap_map *seen, const struct ap_decision_point *p, int64_t mbs, int kind,
	int level, bool *fresh)
{
	const int64_t key[] = {p->tp, p->cp, p->ep, p->etp, mbs, p->mix, kind, p->sp, level,
		level ? p->shard : 0};

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

		of[i] = kin_at(seen, p, p->mbs, p->kind, in_passes(p), &fresh);
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
				k->smaller = kin_at(seen, p, mbs, p->kind, in_passes(p), NULL);
		k->more = k->less = AP_NONE;
		if (p->kind >= 0) {
			k->more = kin_at(seen, p, p->mbs, p->kind + 1, in_passes(p), NULL);
			k->less = p->kind ? kin_at(seen, p, p->mbs, p->kind - 1, in_passes(p), NULL)
				: AP_NONE;
		}
		if (k->less == AP_NONE && in_passes(p))
			k->less = kin_at(seen, p, p->mbs, p->kind, 0, NULL);
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

/* Of each layer of a stage whose layers are dealt to segments as is best for memory. */
static double holds(const struct ap_decision_point *p, int64_t stage)
{
	int64_t last = 2 * stage + 1 - p->pp;
	int64_t held = p->vpp > 1 ? p->pp - (last > 0 ? last : 0) : p->pp - stage;

	return fmin((double)p->micro_batches, (double)held);
}

/* No plan of the point needs fewer bytes on the devices of some stage. */
static double least_bytes(const struct kin *k, const struct ap_decision_point *p)
{
	double dealt = (double)ap_decision_dealt(p), share = 1, layers = 0;

	if (p->level > k->level)
		share = 1 / dealt;
	else if (p->level && dealt > (double)k->dealt)
		share = (double)k->dealt / dealt;
	/* A device of this size holds all layers at most: each stage as many as it can. */
	for (int64_t s = 0; p->kind < 0 && s < p->pp; s++)
		layers += 1 / (k->static_bytes * share + k->kept_bytes * holds(p, s));
	if (p->kind < 0)
		return 1 / layers + (double)k->context_bytes;
	return (k->static_bytes * share + k->kept_bytes * first_holds(p)) / (double)p->pp;
}

/* Seconds that a step takes at least, but for the exchange of gradients and the update: the mean stage works
 * on all micro-batches, and one of them goes through all stages and back. Where layers are dealt evenly, and
 * the last stage, which has the head, is none of the shorter ones, it also waits while the pipeline fills and
 * drains by parts; else each stage waits for a layer of each one before it, at least. Gradients of weights
 * that have a pass of their own fill that. */
static double least_s(const struct kin *k, double pass_s, const struct ap_decision_point *p, int64_t layers)
{
	double mean = pass_s / (double)p->pp, m = (double)p->micro_batches;

	if (p->kind < 0)
		return fmax(mean * m + (double)(p->pp - 1) / 2 * k->layer_s, p->vpp > 1 ? 0 : pass_s);
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
	uint32_t priced[ROUND];
	uint64_t work[ROUND];
	double below_s;
};

static void keep(struct ap_arena *arena, const char **text)
{
	if (*text)
		*text = ap_arena_strdup(arena, *text);
}

static void try_one(void *user, size_t i, int worker)
{
	struct round *r = user;
	struct ap_worker *w = &r->d->workers.worker[worker];
	struct trying t = {.ctx = ap_worker_begin(w), .set = r->d->set, .src = &r->d->src, .rows = r->d->rows,
		.joint = r->d->out,
		.trial = &r->d->trials.v[r->at[i]], .tells = &r->tells[i],
		.pass = &r->pass[i], .below_s = r->below_s};

	t.tells->by = -1;
	if (t.trial->point.kind >= 0)
		price(&t, &t.trial->point, NULL);
	else if (r->d->step[r->at[i]] == NEW)
		look(&t);
	else if (r->d->step[r->at[i]] == LOOKED)
		bound(&t);
	else
		deal(&t);
	r->priced[i] = t.priced;
	r->work[i] = t.work;
	if (t.trial->verdict == AP_DECISION_REFUSED)
		first_error(t.ctx.diag, r->why[i]);
	keep(w->kept, &t.trial->point.recompute);
	keep(w->kept, &t.trial->point.layers);
	ap_worker_end(w);
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

	r->below_s = d->set->prune && out->best != AP_NONE ? d->trials.v[out->best].step_s : INFINITY;
	for (uint32_t i = 0; i < r->n; i++)
		if (d->trials.v[r->at[i]].point.kind < 0)
			ap_layer_table_want(d->rows, &d->trials.v[r->at[i]].point);
	ap_layer_table_fill(d->rows, &d->workers);
	ap_par_for(d->ctx->arena, d->ctx->jobs, r->n, try_one, r);
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = r->at[i];
		struct ap_decision_trial *t = &d->trials.v[at];
		struct kin *k = &d->kins.v[d->kin_of[at]];

		keep(d->ctx->arena, &t->point.recompute);
		keep(d->ctx->arena, &t->point.layers);
		d->step[at]++;
		out->evaluated += r->priced[i];
		d->work += r->work[i];
		t->by = (int32_t)at;
		if (t->verdict == AP_DECISION_REFUSED)
			t->why = ap_arena_strdup(d->ctx->arena, r->why[i]);
		if (r->tells[i].by >= 0) {
			if (k->by < 0) {
				struct kin known = r->tells[i];

				known.passes = k->passes;
				known.first = k->first;
				known.smaller = k->smaller;
				known.more = k->more;
				known.less = k->less;
				known.by = t->by;
				*k = known;
			}
			learn(d->ctx, &k->passes, &r->pass[i]);
		}
		if (t->verdict == AP_DECISION_FITS && (out->best == AP_NONE ||
			t->step_s < d->trials.v[out->best].step_s ||
			(t->step_s <= d->trials.v[out->best].step_s && at < out->best)))
			out->best = at;
	}
	ap_workers_forget(&d->workers);
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

/* Judges a point by what is known of its kin. False: it is out. */
static bool judge(struct deciding *d, uint32_t i, double best_s)
{
	struct ap_decision_trial *t = &d->trials.v[i];
	struct kin *k = &d->kins.v[d->kin_of[i]];
	const struct kin *like = holds_like(d, k);
	double takes_s = pass_s(d, k, t->point.dp * t->point.cp);
	double needed = like ? least_bytes(like, &t->point) : 0;

	if (d->set->prune && needed > (double)d->out->usable_bytes) {
		t->verdict = AP_DECISION_TOO_LARGE;
		t->by = like->by;
		if (d->step[i] && t->memory_bytes == 0)
			t->memory_bytes = (int64_t)ceil(needed);
	} else if (d->timed && takes_s > 0) {
		t->bound_s = fmax(t->bound_s, least_s(k, takes_s, &t->point, d->out->space.layers));
	}
	if (t->verdict == AP_DECISION_OPEN && t->bound_s >= best_s && d->set->prune)
		t->verdict = AP_DECISION_BOUNDED;
	return t->verdict == AP_DECISION_OPEN;
}

struct candidates { /* the best so far, by bounds */
	uint32_t n, most, at[ROUND];
	double bound_s[ROUND];
};

static void put(struct candidates *c, uint32_t i, double bound_s)
{
	uint32_t place = c->n;

	while (place > 0 && bound_s < c->bound_s[place - 1])
		place--;
	if (place == c->most)
		return;
	c->n += c->n < c->most;
	for (uint32_t m = c->n - 1; m > place; m--) {
		c->at[m] = c->at[m - 1];
		c->bound_s[m] = c->bound_s[m - 1];
	}
	c->at[place] = i;
	c->bound_s[place] = bound_s;
}

/* Judges the points that are open, and picks the next: those that may be fastest; of kins of which nothing is
 * known one each. */
static void pick(struct deciding *d, struct round *r)
{
	double best_s = d->out->best == AP_NONE ? INFINITY : d->trials.v[d->out->best].step_s;
	bool *met = AP_NEW_N(d->ctx->scratch, bool, d->kins.n);
	struct candidates list = {.most = ROUND};

	for (uint32_t i = 0; i < d->trials.n; i++) {
		const struct kin *k = &d->kins.v[d->kin_of[i]];

		if (d->trials.v[i].verdict != AP_DECISION_OPEN || !judge(d, i, best_s) || d->step[i])
			continue;
		if (k->by < 0 && (met[d->kin_of[i]] || is_awaited(d, k) ||
			(k->first != i && d->trials.v[k->first].verdict == AP_DECISION_OPEN)))
			continue;
		met[d->kin_of[i]] = true;
		put(&list, i, d->trials.v[i].bound_s);
	}
	r->n = list.n;
	memcpy(r->at, list.at, sizeof list.at);
}

/* Those with which this step was done last, and which may have a plan that is faster than the best: the least
 * bound first. */
static void pick_open(struct deciding *d, enum step step, struct round *r)
{
	double best_s = d->out->best == AP_NONE ? INFINITY : d->trials.v[d->out->best].step_s;
	struct candidates list = {.most = ROUND};

	for (uint32_t i = 0; i < d->trials.n; i++) {
		const struct ap_decision_trial *t = &d->trials.v[i];

		if (t->point.kind < 0 && d->step[i] == step && t->bound_s < best_s &&
			(t->verdict == AP_DECISION_OPEN || t->verdict == AP_DECISION_FITS))
			put(&list, i, t->bound_s);
	}
	r->n = list.n;
	memcpy(r->at, list.at, sizeof list.at);
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
	if (j->n == 0)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "plan",
			"no combination of the settings is a plan: pp x dp x tp x cp have to be %" PRId64
			" devices, dp x mbs x micro-batches the batch of %" PRId64 "%s%s",
			j->space.devices, j->space.batch, j->space.language->fills
			? "; a pipeline has at least as many micro-batches as stages" : "",
			j->space.language->whole_rounds
			? "; stages of several segments divide the micro-batches" : "");
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

/* The network's layers are runs of operators, each by itself, one behind the other. */
static bool has_plain_layers(struct ap_ctx *ctx, const struct ap_inputs *in)
{
	const struct ap_task *task;
	struct ap_blocks blocks;
	int32_t next = 0;

	ap_tasks_make(ctx, in->graph, &in->step, &task);
	ap_blocks_make(ctx, in->graph, &in->step, task, &blocks);
	for (uint32_t b = 0; b < blocks.n; b++) {
		if (blocks.layer[b] >= 0 && blocks.layer[b] != next)
			return false;
		next += blocks.layer[b] >= 0;
	}
	return next > 0 && next == (int32_t)blocks.nlayer;
}

enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, uint32_t most, struct ap_decision *out)
{
	struct deciding d = {.ctx = ctx, .set = set, .src = *src, .out = out};
	struct ap_settings base = ap_points_undecided(ctx, set);
	struct ap_sources folded;
	struct ap_layer_fold fold;
	struct ap_inputs in;

	*out = (struct ap_decision){.best = AP_NONE};
	ap_ctx_phase(ctx, "reading the graph");
	AP_TRY(ap_inputs_make(ctx, &base, src, AP_FOR_search, &in));
	ap_ctx_phase(ctx, "deciding");
	d.src.ready = in.loaded;
	d.src.machine = in.machine;
	d.src.sketches = true;
	folded = d.src;
	folded.ready = ap_graph_fold(ctx, in.loaded, KEPT_LAYERS, &fold);
	d.timed = set->prune && !set->overlap_moe_expert_parallel_comm;
	out->headroom = set->headroom < 0 ? USUAL_HEADROOM : set->headroom;
	out->usable_bytes = (int64_t)((double)in.request.capacity_bytes * (1 - out->headroom / 100));
	AP_TRY(ap_points_space(ctx, set, src, &in, &out->space));
	out->space.by_layer = out->space.by_layer && has_plain_layers(ctx, &in);
	ap_decision_each(ctx, &out->space, add, &d);
	find_kins(&d);
	d.step = AP_NEW_N(ctx->arena, enum step, d.trials.n);
	ap_workers_make(ctx, &d.workers);
	d.rows = ap_layer_table_create(ctx, set, &folded, &fold, &out->space);
	for (uint32_t tried = 0, n = 1; n && d.work < DEAL_ALL && tried < most && !ap_ctx_stopped(ctx);
		tried += n) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		struct round r = {.d = &d};

		pick(&d, &r);
		if (r.n == 0)
			pick_open(&d, LOOKED, &r);
		if (r.n == 0)
			pick_open(&d, BOUNDED, &r);
		n = r.n;
		run_round(&r);
		ap_arena_release(ctx->scratch, mark);
	}
	out->sequence = ap_points_sequence(in.loaded);
	out->software = in.step.software;
	out->chip = in.chip;
	out->n = (uint32_t)d.trials.n;
	out->trial = d.trials.v;
	out->bound_s = INFINITY;
	out->complete = true;
	for (uint32_t i = 0; i < out->n; i++) {
		const struct ap_decision_trial *t = &out->trial[i];

		out->count[t->verdict]++;
		if (t->verdict == AP_DECISION_FITS && t->point.kind >= 0)
			out->bound_s = fmin(out->bound_s, t->step_s);
		else if (t->verdict == AP_DECISION_FITS || t->verdict == AP_DECISION_OPEN)
			out->bound_s = fmin(out->bound_s, t->bound_s);
		out->complete = out->complete && (d.step[i] || t->verdict != AP_DECISION_OPEN);
	}
	if (out->best == AP_NONE && out->count[AP_DECISION_OPEN] == 0)
		return none_fits(ctx, out);
	if (out->best == AP_NONE)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit", out->complete
			? "no plan was found that fits the memory; of %" PRIu32 " combinations it is not "
			"proven that there is none" : "stopped before any plan was found",
			out->count[AP_DECISION_OPEN]);
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
		a->micro_batches == b->micro_batches && a->mix == b->mix && a->kind == b->kind &&
		a->level == b->level && a->shard == b->shard;
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
