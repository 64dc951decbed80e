/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kin.h"

#include <math.h>

#include "api/trial.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/family.h"
#include "pipeline/schedule.h"
#include "plan/memory.h"
#include "plan/terms.h"

/* ---- what a trial tells ---- */

static void begin(const struct ap_decision_point *at, struct ap_kin_told *out)
{
	*out = (struct ap_kin_told){.any = true, .level = at->level, .dealt = ap_decision_dealt(at),
		.gathers = at->level > 1 || at->regathers ? at->dp * at->cp : 1};
}

void ap_kin_tell_plan(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_decision_point *at,
	struct ap_kin_told *out)
{
	struct ap_family_chain chain;

	begin(at, out);
	ap_family_chain(ctx, p->graph, &chain);
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_op_cost *c = &p->op[i].cost;
		const struct ap_plan_stage *s = &p->stage[ap_plan_op_stage(p, i)];
		int64_t held = s->held[ap_plan_op_segment(p, i)];

		if (chain.n && chain.layer[i] < 0)
			continue;
		out->static_bytes += (double)(c->weight_bytes + c->gradient_bytes + c->optimizer_bytes +
			c->gathered_bytes);
		if (held > 0)
			out->kept_bytes += (double)ap_plan_activation_bytes(p, i) / (double)held;
	}
	for (uint32_t s = 0; s < p->nstage; s++)
		out->pass_s += p->stage[s].forward_s + p->stage[s].backward_s;
	for (ap_id i = 0; i < p->graph->ntensor; i++) {
		const struct ap_tensor *t = &p->graph->tensor[i];

		for (uint32_t u = 1; t->kind == AP_TENSOR_PARAM && u < t->nuse; u++)
			out->pass_s -= ap_plan_sum_s(p, &t->use[u]); /* in other stages it is received */
	}
}

void ap_kin_tell_layers(const struct ap_layer_problem *q, const struct ap_decision_point *at,
	struct ap_kin_told *out)
{
	begin(at, out);
	out->static_bytes = q->static_bytes;
	out->kept_bytes = q->kept_bytes;
	out->layer_s = q->least_s;
	out->context_bytes = q->context_bytes;
	out->pass_s = q->pass_s;
}

/* ---- which are kin ---- */

struct pass { /* of a micro-batch through all stages, forth and back */
	double s;
	int64_t gathers; /* as in struct ap_kin_told */
};

enum { TELLERS = 3 }; /* smaller, more, less */

struct kin {
	struct passes { /* the shortest of each number of devices, as more stages may take longer */
		struct pass *v;
		size_t n, cap;
	} passes;
	struct ap_kin_told what; /* was told by the first trial that told something */
	int32_t by; /* that trial; -1: none yet */
	uint32_t more, less; /* kin that recomputes more, and less; AP_NONE: none */
	uint32_t listener, next[TELLERS]; /* a list of links: kin of which this one tells something */
};

struct turn { /* of a kin: what is looked up for each trial, so it lies closely together */
	uint32_t first; /* the trial by which it is met: one that is likely to fit */
	uint32_t smaller; /* kin of the next smaller micro-batches; AP_NONE: none */
	bool known; /* something is told of it */
	bool waits; /* for its first trial, which is open */
	bool told; /* something that tells of it was learnt */
};

struct ap_kins {
	struct ap_ctx *ctx;
	int64_t layers;
	AP_VEC(struct kin) kins;
	AP_VEC(struct turn) turns; /* [kins] */
	uint32_t *of; /* [trials] */
	AP_VEC(uint32_t) told; /* kin that is */
};

/* Is a better to begin with than b: does it need less memory, and is it as quickly simulated? */
static bool is_leaner(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	if (a->vpp != b->vpp)
		return a->vpp < b->vpp;
	return a->pp != b->pp ? a->pp > b->pp : (a->level == 1) > (b->level == 1);
}

enum { WHOLE_SUMS = 4 }; /* beside levels: weights are gathered in passes, gradients are whole */

/* Dealt gradients and weights are exchanged in the passes; those of a single micro-batch behind them, as are
 * gradients that stay whole. */
static int in_passes(const struct ap_decision_point *p)
{
	if (p->sums_whole)
		return p->level <= 2 ? 0 : WHOLE_SUMS;
	return p->level <= 1 ? 0 : p->micro_batches == 1 ? -p->level : p->level;
}

/* What runs beside a whole backward pass may take longer beside a part of it. */
static bool splits(const struct ap_decision_point *p)
{
	return ap_scheduler_at((size_t)p->scheduler)->splits;
}

static uint32_t kin_at(struct ap_map *seen, const struct ap_decision_point *p, int64_t mbs, int kind,
	int level, bool *fresh)
{
	const int64_t key[] = {p->tp, p->cp, p->ep, p->etp, mbs, p->mix, kind, p->sp, level,
		level || p->regathers ? p->shard : 0, splits(p), p->regathers};

	return fresh ? ap_map_put(seen, key, sizeof key, fresh) : ap_map_get(seen, key, sizeof key);
}

/* Lists by each kin those that look at it. A link is a kin's number times TELLERS, and which one it is. */
static void list_listeners(struct ap_kins *all)
{
	for (size_t i = 0; i < all->kins.n; i++)
		all->kins.v[i].listener = AP_NONE;
	for (uint32_t i = 0; i < all->kins.n; i++) {
		struct kin *k = &all->kins.v[i];
		const uint32_t teller[TELLERS] = {all->turns.v[i].smaller, k->more, k->less};

		for (uint32_t t = 0; t < TELLERS; t++) {
			if (teller[t] == AP_NONE)
				continue;
			k->next[t] = all->kins.v[teller[t]].listener;
			all->kins.v[teller[t]].listener = i * TELLERS + t;
		}
	}
}

struct ap_kins *ap_kins_make(struct ap_ctx *ctx, const struct ap_decision_space *space, uint32_t n,
	const struct ap_decision_trial *trial)
{
	struct ap_kins *all = AP_NEW(ctx->arena, struct ap_kins);
	struct ap_map *seen = ap_map_create(ctx->arena);

	all->ctx = ctx;
	all->layers = space->layers;
	all->of = AP_NEW_N(ctx->arena, uint32_t, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_decision_point *p = &trial[i].point;
		bool fresh;

		all->of[i] = kin_at(seen, p, p->mbs, p->kind, in_passes(p), &fresh);
		if (fresh) {
			AP_PUSH(ctx->arena, all->kins, ((struct kin){.by = -1}));
			AP_PUSH(ctx->arena, all->turns, ((struct turn){.first = i, .waits = true}));
		} else if (is_leaner(p, &trial[all->turns.v[all->of[i]].first].point)) {
			all->turns.v[all->of[i]].first = i;
		}
	}
	for (size_t i = 0; i < all->kins.n; i++) {
		struct kin *k = &all->kins.v[i];
		struct turn *turn = &all->turns.v[i];
		const struct ap_decision_point *p = &trial[turn->first].point;

		turn->smaller = AP_NONE;
		for (int64_t mbs = p->mbs - 1; mbs > 0 && turn->smaller == AP_NONE; mbs--)
			if (space->batch % mbs == 0)
				turn->smaller = kin_at(seen, p, mbs, p->kind, in_passes(p), NULL);
		k->more = k->less = AP_NONE;
		if (p->kind >= 0) {
			k->more = kin_at(seen, p, p->mbs, p->kind + 1, in_passes(p), NULL);
			k->less = p->kind ? kin_at(seen, p, p->mbs, p->kind - 1, in_passes(p), NULL)
				: AP_NONE;
		}
		if (p->kind < 0 && p->regathers) {
			struct ap_decision_point once = *p;

			once.regathers = false;
			k->less = kin_at(seen, &once, p->mbs, p->kind, in_passes(p), NULL);
		}
		if (k->less == AP_NONE && in_passes(p) && !p->regathers)
			k->less = kin_at(seen, p, p->mbs, p->kind, 0, NULL);
	}
	list_listeners(all);
	return all;
}

/* Something was learnt of a kin, and so of all that look at it, at those, and so on. */
static void tell(struct ap_kins *all, uint32_t kin)
{
	size_t at = all->told.n;

	if (all->turns.v[kin].told)
		return;
	all->turns.v[kin].told = true;
	AP_PUSH(all->ctx->arena, all->told, kin);
	for (; at < all->told.n; at++) {
		uint32_t link = all->kins.v[all->told.v[at]].listener;

		while (link != AP_NONE) {
			uint32_t own = link / TELLERS;

			if (!all->turns.v[own].told) {
				all->turns.v[own].told = true;
				AP_PUSH(all->ctx->arena, all->told, own);
			}
			link = all->kins.v[own].next[link % TELLERS];
		}
	}
}

bool ap_kins_is_told(const struct ap_kins *all, uint32_t i)
{
	return all->turns.v[all->of[i]].told;
}

void ap_kins_forget(struct ap_kins *all)
{
	for (size_t i = 0; i < all->told.n; i++)
		all->turns.v[all->told.v[i]].told = false;
	all->told.n = 0;
}

uint32_t ap_kins_count(const struct ap_kins *all)
{
	return (uint32_t)all->kins.n;
}

uint32_t ap_kins_of(const struct ap_kins *all, uint32_t trial)
{
	return all->of[trial];
}

bool ap_kins_learn(struct ap_kins *all, uint32_t i, const struct ap_kin_told *told)
{
	struct kin *k = &all->kins.v[all->of[i]];

	if (k->by < 0) {
		k->what = *told;
		k->by = (int32_t)i;
		all->turns.v[all->of[i]].known = true;
		tell(all, all->of[i]);
	}
	for (size_t p = 0; p < k->passes.n; p++) {
		struct pass *known = &k->passes.v[p];

		if (known->gathers != told->gathers)
			continue;
		if (known->s <= told->pass_s)
			return false;
		known->s = told->pass_s;
		tell(all, all->of[i]);
		return true;
	}
	AP_PUSH(all->ctx->arena, k->passes, ((struct pass){told->pass_s, told->gathers}));
	tell(all, all->of[i]);
	return true;
}

enum ap_kin_turn ap_kins_turn(const struct ap_kins *all, uint32_t i)
{
	const struct turn *t = &all->turns.v[all->of[i]];
	const struct turn *smaller = t->smaller == AP_NONE ? NULL : &all->turns.v[t->smaller];

	if (t->known)
		return AP_KIN_KNOWN;
	if ((smaller && !smaller->known && smaller->waits) || (t->first != i && t->waits))
		return AP_KIN_WAITS;
	return AP_KIN_FIRST;
}

void ap_kins_note(struct ap_kins *all, uint32_t i, bool open)
{
	struct turn *t = &all->turns.v[all->of[i]];

	if (t->first == i)
		t->waits = open;
}

/* ---- bounds by kin ---- */

/* The kin that tells what this one holds at least: itself, else one of smaller micro-batches, or one that
 * recomputes more; NULL: nothing is known. */
static const struct kin *holds_like(const struct ap_kins *all, uint32_t kin)
{
	for (uint32_t more = kin; more != AP_NONE; more = all->kins.v[more].more)
		for (uint32_t small = more; small != AP_NONE; small = all->turns.v[small].smaller)
			if (all->turns.v[small].known)
				return &all->kins.v[small];
	return NULL;
}

/* Seconds of a micro-batch's pass at least, by trials of the kin, else of one that recomputes or deals
 * less; 0: not known. What is gathered from a multiple of the devices takes as long at least: padded parts
 * (shard/dealing.h) have no fewer elements in all then, which those of any larger number may. */
static double pass_s(const struct ap_kins *all, const struct kin *k, int64_t gathers)
{
	double most = 0;

	for (;; k = &all->kins.v[k->less]) {
		for (size_t i = 0; i < k->passes.n; i++)
			if (gathers % k->passes.v[i].gathers == 0)
				most = fmax(most, k->passes.v[i].s);
		if (most > 0 || k->less == AP_NONE)
			return most;
	}
}

/* Micro-batches whose activations the first stage holds. */
static double first_holds(const struct ap_decision_point *p)
{
	double m = (double)p->micro_batches, pp = (double)p->pp, v = (double)p->vpp;
	double held = v > 1 && !splits(p) ? (2 * (pp - 1) + (v - 1) * pp + 1) / v : pp;

	return fmin(m, held);
}

/* Of each layer of a stage whose layers are dealt to segments as is best for memory; where passes are split,
 * a segment may hold but one. */
static double holds(const struct ap_decision_point *p, int64_t stage)
{
	int64_t last = 2 * stage + 1 - p->pp;
	int64_t held = p->vpp > 1 ? p->pp - (last > 0 ? last : 0) : p->pp - stage;

	return splits(p) ? 1 : fmin((double)p->micro_batches, (double)held);
}

static double least_bytes(const struct ap_kin_told *k, const struct ap_decision_point *p)
{
	int64_t dealt = ap_decision_dealt(p);
	double share = 1, layers = 0;

	/* where one number of devices divides rows and another one does not, all that is known is that no
	 * part is smaller than the whole over these */
	if (p->level > k->level || (p->level && dealt > k->dealt && dealt % k->dealt))
		share = 1 / (double)dealt;
	else if (p->level && dealt > k->dealt)
		share = (double)k->dealt / (double)dealt;
	/* A device of this size holds all layers at most: each stage as many as it can. */
	for (int64_t s = 0; p->kind < 0 && s < p->pp; s++)
		layers += 1 / (k->static_bytes * share + k->kept_bytes * holds(p, s));
	if (p->kind < 0)
		return 1 / layers + (double)k->context_bytes;
	return (k->static_bytes * share + k->kept_bytes * first_holds(p)) / (double)p->pp;
}

/* Seconds that a step takes at least, but for the exchange of gradients and the update: the mean stage
 * works on all micro-batches, and one of them goes through all stages and back. Where layers are dealt
 * evenly, and the last stage, which has the head, is none of the shorter ones, it also waits while the
 * pipeline fills and drains by parts; else each stage waits for a layer of each one between the first and
 * it, at least.
 * Gradients of weights that have a pass of their own fill that. */
static double least_s(const struct ap_kin_told *k, double pass_s, const struct ap_decision_point *p,
	int64_t layers)
{
	double pp = (double)p->pp, mean = pass_s / pp, m = (double)p->micro_batches;

	if (splits(p))
		return mean * m;
	if (p->kind < 0)
		return fmax(mean * m + (pp - 1) * (pp - 2) / (2 * pp) * k->layer_s, p->vpp > 1 ? 0 : pass_s);
	return layers && layers % p->pp == 0 ? mean * (m + (double)(p->pp - 1) / (double)p->vpp)
		: fmax(mean * m, p->vpp > 1 ? 0 : pass_s);
}

double ap_kins_least_bytes(const struct ap_kins *all, uint32_t i, const struct ap_decision_trial *trial,
	int32_t *by)
{
	const struct kin *like = holds_like(all, all->of[i]);

	*by = like ? like->by : -1;
	return like ? least_bytes(&like->what, &trial[i].point) : 0;
}

double ap_kins_least_s(const struct ap_kins *all, uint32_t i, const struct ap_decision_trial *trial)
{
	const struct ap_decision_point *p = &trial[i].point;
	const struct kin *k = &all->kins.v[all->of[i]];
	double takes_s = pass_s(all, k, p->dp * p->cp);

	return takes_s > 0 ? least_s(&k->what, takes_s, p, all->layers) : 0;
}
