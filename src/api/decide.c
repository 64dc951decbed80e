/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decide.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/cut_bound.h"
#include "api/points.h"
#include "api/rounds.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "graph/family.h"
#include "plan/blocks.h"

enum { USUAL_HEADROOM = 5 }; /* per cent, where nobody says and no memory of the software was measured */
#define NEAR 1.05 /* plans that take so many times the best are priced, to be told as others */
enum { KEPT_LAYERS = 2 }; /* of equal ones, which are priced for all of them */
enum { BEYOND_NEAR = 4, BEYOND_TRIALS = 96 }; /* degrees that were told, and what is tried of them */
#define PLENTY 0.05 /* by which a bound is more than the best, or by the error of predictions: then it is not
                       made better before somebody asks */
#define DEAL_BEYOND (UINT64_C(1) << 24) /* work, likewise, of what the executor cannot be told */
#define PRESS_ALL (UINT64_C(1) << 28) /* work to bound those again that the bound of all comes from */
#define FAR 0.02 /* of the best: a bound that is more below it is worth PRESS_FAR times the work */
enum { PRESS_FAR = 4 };
#define DEAL_ALL (UINT64_C(1) << 27) /* work to deal the layers of all points: about a second */

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

struct listing {
	struct ap_ctx *ctx;
	AP_VEC(struct ap_decision_trial) trials;
	const struct ap_decision *told;
	const struct ap_recompute_mix *mix; /* of the space */
	uint32_t near[BEYOND_NEAR]; /* trials of told that differ in degrees, the fastest first */
	uint32_t nnear;
	AP_VEC(const struct ap_decision_trial *) like; /* trials of told with the degrees of one of these */
	uint32_t nall; /* points beside what was told, of which these are one of each shape */
	struct ap_map *seen;
	AP_VEC(struct ap_decision_point) shapes;
};

/* Do points differ in nothing but in how stages are run, dealt and recomputed? */
static bool has_same_degrees(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	return a->pp == b->pp && a->micro_batches == b->micro_batches && a->dp == b->dp && a->tp == b->tp &&
		a->cp == b->cp && a->ep == b->ep && a->etp == b->etp;
}

static bool is_near(const struct listing *l, const struct ap_decision_point *p)
{
	for (uint32_t k = 0; k < l->nnear; k++)
		if (has_same_degrees(p, &l->told->trial[l->near[k]].point))
			return true;
	return false;
}

/* The fastest of what was told, of each degrees one. */
static void find_near(struct listing *l)
{
	while (l->nnear < BEYOND_NEAR) {
		uint32_t next = AP_NONE;

		for (uint32_t i = 0; i < l->told->n; i++) {
			const struct ap_decision_trial *t = &l->told->trial[i];
			bool met = t->verdict != AP_DECISION_FITS;

			for (uint32_t k = 0; k < l->nnear && !met; k++)
				met = has_same_degrees(&t->point, &l->told->trial[l->near[k]].point);
			if (!met && (next == AP_NONE || t->step_s < l->told->trial[next].step_s))
				next = i;
		}
		if (next == AP_NONE)
			break;
		l->near[l->nnear++] = next;
	}
	for (uint32_t i = 0; i < l->told->n; i++)
		if (is_near(l, &l->told->trial[i].point))
			AP_PUSH(l->ctx->arena, l->like, &l->told->trial[i]);
}

static bool is_same_mix(const struct ap_recompute_mix *a, const struct ap_recompute_mix *b)
{
	bool same = a->rule == b->rule;

	for (int k = 0; k < 2 * AP_MIX_KINDS && same; k++) {
		const char *x = a->kind[k / AP_MIX_KINDS][k % AP_MIX_KINDS];
		const char *y = b->kind[k / AP_MIX_KINDS][k % AP_MIX_KINDS];

		same = x && y ? strcmp(x, y) == 0 : x == y;
	}
	return same;
}

/* Is a point near one that was told, and none of those itself? */
static bool is_beyond(const struct listing *l, const struct ap_decision_point *p)
{
	bool near = is_near(l, p);

	for (size_t i = 0; i < l->like.n && near; i++) {
		const struct ap_decision_point *o = &l->like.v[i]->point;

		near = !(has_same_degrees(p, o) && p->vpp == o->vpp && p->scheduler == o->scheduler &&
			p->level == o->level && p->shard == o->shard && p->regathers == o->regathers &&
			p->sp == o->sp && p->kind == o->kind &&
			is_same_mix(&l->mix[p->mix], &l->told->space.mix[o->mix]));
	}
	return near;
}

static void count(void *user, const struct ap_decision_point *p)
{
	(void)p;
	++*(size_t *)user;
}

static void add_trial(struct listing *l, const struct ap_decision_point *p)
{
	AP_PUSH(l->ctx->arena, l->trials, ((struct ap_decision_trial){.point = *p, .by = -1}));
}

static void add(void *user, const struct ap_decision_point *p)
{
	add_trial(user, p);
}

static void add_beyond(void *user, const struct ap_decision_point *p)
{
	struct listing *l = user;
	int64_t key[AP_CUT_BOUND_KEY];
	bool fresh;

	l->nall++;
	ap_cut_bound_key(p, key);
	(void)ap_map_put(l->seen, key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(l->ctx->arena, l->shapes, *p);
	if (is_beyond(l, p))
		add_trial(l, p);
}

/* Lists the points of a space, or those near what was told. */
static void list_points(struct ap_ctx *ctx, const struct ap_decision_space *s, struct listing *io)
{
	size_t n = 0;

	if (io->told) {
		io->seen = ap_map_create(ctx->arena);
		find_near(io);
		ap_decision_each(ctx, s, add_beyond, io);
		return;
	}
	ap_decision_each(ctx, s, count, &n); /* millions: a list that grows would leave as many behind */
	AP_RESERVE(ctx->arena, io->trials, n);
	ap_decision_each(ctx, s, add, io);
}

struct running { /* a round */
	const struct ap_trial_case *c;
	const struct ap_rounds *rounds;
	const struct ap_round *round;
	struct ap_workers *workers;
	struct ap_trial_yield yield[AP_ROUND];
};

static void keep(struct ap_arena *arena, const char **text)
{
	if (*text)
		*text = ap_arena_strdup(arena, *text);
}

static void keep_texts(struct ap_arena *arena, struct ap_decision_trial *t)
{
	keep(arena, &t->point.recompute);
	keep(arena, &t->point.layers);
	keep(arena, &t->why);
}

static void try_one(void *user, size_t i, int worker)
{
	struct running *x = user;
	struct ap_worker *w = &x->workers->worker[worker];
	struct ap_decision_trial *t = &x->rounds->trial[x->round->at[i]];
	struct ap_ctx ctx = ap_worker_begin(w);

	ap_trial_go_on(&ctx, x->c, t, &x->yield[i]);
	keep_texts(w->kept, t);
	ap_worker_end(w);
}

/* Work to bound those again that the bound of all comes from: of the first of the round. */
static uint64_t press_work(const struct ap_rounds *r, const struct ap_round *round)
{
	bool is_far = r->trial[round->at[0]].bound_s < ap_rounds_best_s(r) * (1 - FAR);

	return is_far ? PRESS_FAR * PRESS_ALL : PRESS_ALL;
}

struct spent {
	uint32_t priced; /* plans */
	uint64_t dealing, bounding; /* work */
};

/* Does a step of each trial of a round, and learns from them in their order. */
static void run(struct ap_ctx *ctx, const struct ap_trial_case *c, struct ap_layer_table *rows,
	const struct ap_round *round, struct ap_workers *workers, struct ap_rounds *io,
	struct spent *spent)
{
	struct running x = {c, io, round, workers, {{{0}, false, 0, 0, 0}}};

	for (uint32_t i = 0; i < round->n; i++)
		if (io->trial[round->at[i]].point.kind < 0)
			ap_layer_table_want(rows, &io->trial[round->at[i]].point);
	ap_layer_table_fill(rows, workers);
	ap_par_for(ctx->arena, workers->n, round->n, try_one, &x);
	for (uint32_t i = 0; i < round->n; i++) {
		uint32_t at = round->at[i];

		keep_texts(ctx->arena, &io->trial[at]);
		io->trial[at].by = (int32_t)at;
		ap_rounds_offer(io, at, &x.yield[i].told);
		if (x.yield[i].by_degrees)
			ap_rounds_refuse(io, at);
		spent->priced += x.yield[i].priced;
		spent->dealing += x.yield[i].work;
		spent->bounding += x.yield[i].bounding;
	}
	ap_workers_forget(workers);
}

/* Takes the least of all bounds, and counts the verdicts. Plans that an earlier trial has are not told
 * twice. */
static void sum_up(struct ap_decision *out, struct ap_decision_trial *trial)
{
	double best_s = out->best == AP_NONE ? INFINITY : trial[out->best].step_s;

	out->bound_s = INFINITY;
	out->complete = true;
	for (uint32_t i = 0; i < out->n; i++) {
		struct ap_decision_trial *t = &trial[i];

		if (t->verdict == AP_DECISION_FITS && t->point.kind >= 0)
			out->bound_s = fmin(out->bound_s, t->step_s);
		else if (t->verdict == AP_DECISION_FITS || t->verdict == AP_DECISION_OPEN)
			out->bound_s = fmin(out->bound_s, t->bound_s);
		out->complete = out->complete && (t->step != AP_TRIAL_NEW || t->verdict != AP_DECISION_OPEN);
		if (t->verdict == AP_DECISION_FITS && t->twin && i != out->best)
			t->verdict = t->bound_s < best_s ? AP_DECISION_OPEN : AP_DECISION_BOUNDED;
		out->count[t->verdict]++;
	}
	if (out->best != AP_NONE)
		out->bound_s = fmin(out->bound_s, best_s);
}

/* Tells how far a decision of all that was asked is: the best step, the least that an open trial may
 * reach, the share of trials that are closed. Of others the bound would be one of other combinations. */
static void tell(const struct ap_ctx *ctx, const struct ap_rounds *r)
{
	double best_s = r->best == AP_NONE ? 0 : r->trial[r->best].step_s, bound_s;
	uint32_t open;

	if (!ctx->progress)
		return;
	open = ap_rounds_left(r, &bound_s);
	bound_s = best_s > 0 ? fmin(bound_s, best_s) : bound_s;
	ap_ctx_progress(ctx, best_s, bound_s < INFINITY ? bound_s : 0,
		r->n ? (double)(r->n - open) / r->n : -1);
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
			" devices, dp x mbs x micro-batches the batch of %" PRId64 "%s%s%s%s%s%s",
			j->space.devices, j->space.batch, j->space.language->fills
			? "; a pipeline has at least as many micro-batches as stages" : "",
			j->space.language->whole_rounds
			? "; stages of several segments divide the micro-batches" : "",
			j->space.language->uneven ? "" : "; layers divide evenly into stages",
			j->space.language->stage_levels
			? "; beside stages parameters are dealt at no level but level1" : "",
			j->space.language->sequences_alone ? "; cp stands beside neither tp nor stages" : "",
			j->space.language->experts_whole ? "; experts are not dealt" : "");
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

/* Says why there is no plan. */
static enum ap_status no_plan(struct ap_ctx *ctx, const struct ap_decision *j)
{
	if (j->count[AP_DECISION_OPEN] == 0)
		return none_fits(ctx, j);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit", j->complete
		? "no plan was found that fits the memory; of %" PRIu32 " combinations it is not "
		"proven that there is none" : "stopped before any plan was found",
		j->count[AP_DECISION_OPEN]);
}

enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_decision_asked *asked, struct ap_decision *out)
{
	const struct ap_decision *told = asked ? asked->told : NULL;
	uint32_t most = told ? BEYOND_TRIALS : asked && asked->most ? asked->most : UINT32_MAX;
	uint64_t most_work = told ? DEAL_BEYOND : DEAL_ALL;
	double below_s = asked && asked->below_s > 0 ? asked->below_s : INFINITY;
	struct ap_settings base = ap_points_undecided(ctx, set);
	struct listing list = {.ctx = ctx, .told = told};
	struct ap_sources whole = *src, *folded = AP_NEW(ctx->arena, struct ap_sources);
	struct ap_layer_fold *fold = AP_NEW(ctx->arena, struct ap_layer_fold);
	struct ap_layer_table *rows;
	struct ap_workers workers;
	struct ap_trial_case c;
	struct ap_rounds rounds;
	struct ap_round round;
	struct ap_inputs in;
	struct spent spent = {0};

	*out = (struct ap_decision){.best = AP_NONE};
	ap_ctx_phase(ctx, "reading the graph");
	AP_TRY(ap_inputs_make(ctx, &base, src, AP_FOR_search, &in));
	ap_ctx_phase(ctx, "deciding");
	whole.ready = ap_family_note(ctx, in.loaded);
	whole.machine = in.machine;
	AP_TRY(ap_input_software(ctx, &base, &whole.software));
	whole.sketches = true;
	*folded = whole;
	folded->ready = ap_family_note(ctx, ap_graph_fold(ctx, in.loaded, KEPT_LAYERS, fold));
	out->headroom = set->headroom >= 0 ? set->headroom
		: in.step.software && in.step.software->memory_error > 0 ? in.step.software->memory_error
		: USUAL_HEADROOM;
	out->usable_bytes = (int64_t)((double)in.request.capacity_bytes * (1 - out->headroom / 100));
	out->regular = in.machine->regular;
	out->sequence = ap_points_sequence(in.loaded);
	out->software = in.step.software;
	out->chip = in.chip;
	AP_TRY(ap_points_space(ctx, set, src, &in, told != NULL, &out->space));
	out->space.by_layer = out->space.by_layer && has_plain_layers(ctx, &in);
	list.mix = out->space.mix;
	list_points(ctx, &out->space, &list);
	out->nall = list.nall;
	out->shape = list.shapes.v;
	out->nshape = (uint32_t)list.shapes.n;
	out->n = (uint32_t)list.trials.n;
	out->trial = list.trials.v;
	rows = ap_layer_table_create(ctx, set, folded, fold, &out->space);
	out->rows = out->space.by_layer ? rows : NULL;
	ap_workers_make(ctx, &workers);
	rounds = (struct ap_rounds){.n = out->n, .trial = list.trials.v, .best = AP_NONE,
		.below_s = below_s,
		.kins = ap_kins_make(ctx, &out->space, out->n, out->trial), .prune = set->prune,
		.usable_bytes = out->usable_bytes,
		.timed = set->prune && !set->overlap_moe_expert_parallel_comm};
	ap_rounds_begin(ctx, &rounds);
	c = (struct ap_trial_case){set, &whole, &out->space, rows, out->usable_bytes, INFINITY, INFINITY,
		INFINITY};
	for (uint32_t tried = 0; spent.dealing < most_work && tried < most && !ap_ctx_stopped(ctx) &&
		ap_rounds_next(ctx, &rounds, &round); tried += round.n) {
		c.below_s = set->prune ? ap_rounds_best_s(&rounds) : INFINITY;
		c.plenty_s = rounds.best == AP_NONE || !set->prune ? INFINITY : c.below_s *
			(1 + fmax(PLENTY, out->software ? out->software->step_error / 100 : 0));
		c.near_s = below_s < INFINITY ? c.below_s : c.below_s * NEAR;
		if (round.n > most - tried)
			round.n = most - tried;
		run(ctx, &c, rows, &round, &workers, &rounds, &spent);
		if (!asked)
			tell(ctx, &rounds);
	}
	spent.bounding = 0;
	while (!told && set->prune && !ap_ctx_stopped(ctx) && ap_rounds_press(&rounds, &round) &&
		spent.bounding < press_work(&rounds, &round)) {
		run(ctx, &c, rows, &round, &workers, &rounds, &spent);
		if (!asked)
			tell(ctx, &rounds);
	}
	out->best = rounds.best;
	out->evaluated = spent.priced;
	if (!asked)
		ap_ctx_progress(ctx, 0, -1, -1); /* the bound was of these combinations */
	sum_up(out, list.trials.v);
	if (out->best == AP_NONE && !told)
		return no_plan(ctx, out);
	return out->complete ? AP_OK : AP_STOPPED;
}
