/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trial.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "api/points.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "partition/even.h"
#include "plan/make.h"

enum { MISFITS = 4 }; /* plans that turn out not to fit, before a point is left */
#define DEAL_WORK (UINT64_C(1) << 22) /* to deal layers to parts and kinds: some ten milliseconds */
#define MOST_DEAL_WORK (6 * DEAL_WORK) /* of a point: after that it is not dealt again */
#define DEAL_GAP 1e-3
#define AGAIN_GAP 5e-3 /* where what was dealt did not fit: for a plan, not for a proof */
#define LOOKED_AT (UINT64_C(1) << 13) /* plans by layers' figures, of points that have no more */
enum { PRICED = 4 }; /* of these, for each time of the usual work */
#define PRICE_WORK (UINT64_C(1) << 20) /* as much as pricing one, about */

struct trying {
	struct ap_ctx *ctx;
	const struct ap_trial_case *c;
	struct ap_decision_trial *trial;
	struct ap_trial_yield *yield;
};

/* Prices the plan of a point; excess: [stages] by what each stage is too large, where the plan is. */
static void price(struct trying *t, const struct ap_decision_point *point, int64_t *excess)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_inputs in;
	struct ap_settings o;
	struct ap_plan plan; /* points into in */
	struct ap_plan_maker *maker;
	bool fits;

	ap_points_settings(ctx, t->c->set, t->c->space, point, &o);
	ap_settings_check(ctx, &o, AP_FOR_evaluate);
	t->trial->verdict = AP_DECISION_REFUSED;
	if (ap_diag_status(ctx->diag) != AP_OK ||
		ap_inputs_make(ctx, &o, t->c->src, AP_FOR_evaluate, &in) != AP_OK ||
		ap_inputs_give(ctx, &o, t->c->src, AP_FOR_evaluate, &in) != AP_OK)
		return;
	t->yield->priced++;
	maker = ap_plan_maker_create(ctx, in.request.graph, in.machine, &in.step, t->c->usable_bytes);
	ap_plan_sketch_in(maker, ctx->arena, in.counts, &plan);
	t->trial->memory_bytes = plan.prediction.memory.total;
	fits = t->trial->memory_bytes <= t->c->usable_bytes;
	t->trial->verdict = fits ? AP_DECISION_FITS : AP_DECISION_TOO_LARGE;
	if (fits)
		t->trial->step_s = plan.prediction.step_time_s;
	for (uint32_t s = 0; excess && s < plan.nstage; s++)
		excess[s] = plan.stage[s].memory.total - t->c->usable_bytes;
	if (point->kind >= 0)
		ap_kin_tell_plan(ctx, &plan, point, &t->yield->told);
}

/* Would weights be gathered again, but for a plan in which no layer is of the last kind, which has them?
 * The point that gathers them once has it, too. */
static bool is_of_another(const struct trying *t, const struct ap_decision_point *p)
{
	const char *const *kind = ap_decision_kinds(t->c->space, p);
	size_t n = 0;

	while (n < AP_MIX_KINDS && kind[n])
		n++;
	return p->regathers && n > 1 && !strstr(p->recompute, kind[n - 1]);
}

/* Prices what a plan of the layers comes to. False: it does not fit. */
static bool price_dealt(struct trying *t, const struct ap_layer_problem *q,
	const struct ap_partition_plan *plan, int64_t *excess)
{
	struct ap_decision_point point = t->trial->point;

	ap_layer_problem_say(t->ctx, q, plan, &point);
	t->trial->twin = is_of_another(t, &point);
	price(t, &point, excess);
	if (t->trial->verdict == AP_DECISION_TOO_LARGE) {
		t->trial->verdict = AP_DECISION_OPEN;
		return false;
	}
	t->trial->point = point;
	return true;
}

struct rooms { /* [stages] bytes */
	int64_t *fixed; /* the problem's, with what was given */
	int64_t *given; /* last */
	int64_t *excess; /* of the plan that was priced last */
};

/* Stages in which a plan is too large are dealt less, by what the layers' figures leave out of it. */
static void give_room(const struct trying *t, const struct ap_layer_problem *q,
	const struct ap_partition_plan *plan, struct rooms *r)
{
	struct ap_partition_plan of_one = *plan;
	struct ap_partition_worth worth;

	of_one.degree = AP_NEW_N(t->ctx->arena, uint32_t, q->p.nstage);
	ap_partition_judge(t->ctx, &q->p, &of_one, &worth);
	for (int32_t s = 0; s < q->p.nstage; s++) {
		r->given[s] = r->excess[s] > 0
			? t->c->usable_bytes + r->excess[s] - worth.stage[s].memory_bytes : 0;
		r->fixed[s] += r->given[s];
	}
}

/* Rooms that were given for one plan may be too much for others, which leave out less. */
static void take_half_back(const struct ap_layer_problem *q, struct rooms *r)
{
	for (int32_t s = 0; s < q->p.nstage; s++) {
		r->given[s] /= 2;
		r->fixed[s] -= r->given[s];
	}
}

static void begin(struct trying *t, struct ap_layer_problem *q, struct rooms *r)
{
	size_t n = (size_t)q->p.nstage;

	r->fixed = ap_arena_memdup(t->ctx->arena, q->p.fixed_bytes, n * sizeof *r->fixed);
	r->given = AP_NEW_N(t->ctx->arena, int64_t, n);
	r->excess = AP_NEW_N(t->ctx->arena, int64_t, n);
	q->p.fixed_bytes = r->fixed;
}

/* Prices layers that are dealt evenly, all in the leanest kind. */
static void price_leanest(struct trying *t, const struct ap_layer_problem *q)
{
	struct ap_decision_point point = t->trial->point;
	int64_t parts = point.pp * point.vpp, layers = ap_partition_layers(&q->p);
	int64_t *count = AP_NEW_N(t->ctx->arena, int64_t, parts);
	int64_t *first = AP_NEW_N(t->ctx->arena, int64_t, parts + 1);
	uint32_t *kind = AP_NEW_N(t->ctx->arena, uint32_t, layers);
	const struct ap_partition_plan plan = {.first = first, .kind = kind};

	if (!ap_partition_even_counts(&q->p, count))
		return;
	for (int64_t i = 0; i < parts; i++)
		first[i + 1] = first[i] + count[i];
	for (int64_t i = 0; i < layers; i++)
		kind[i] = q->p.nkind - 1;
	ap_layer_problem_say(t->ctx, q, &plan, &point);
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
	struct ap_ctx *ctx = t->ctx;
	struct ap_partition_plan plan;
	struct rooms rooms;
	double step_s;

	if (ap_layer_problem_make(ctx, t->c->rows, t->c->space, &t->trial->point, t->c->usable_bytes,
		&q) != AP_OK) {
		const char *const *kind = ap_decision_kinds(t->c->space, &t->trial->point);

		t->trial->verdict = AP_DECISION_REFUSED;
		for (int k = 0; k < AP_MIX_KINDS && kind[k]; k++)
			t->yield->by_degrees |=
				ap_layer_table_find(t->c->rows, &t->trial->point, k)->by_degrees;
		return;
	}
	ap_kin_tell_layers(&q, &t->trial->point, &t->yield->told);
	begin(t, &q, &rooms);
	for (int i = 0; i < MISFITS; i++) {
		bool fits = ap_partition_even(ctx, &q.p, t->c->near_s, &plan, &step_s);

		t->trial->holds |= fits && i == 0;
		if (!fits && i > 0) {
			take_half_back(&q, &rooms);
			continue;
		}
		if (!fits || step_s >= t->c->near_s || price_dealt(t, &q, &plan, rooms.excess) ||
			step_s >= t->c->below_s)
			return;
		give_room(t, &q, &plan, &rooms);
	}
	price_leanest(t, &q);
}

double ap_trial_bound_s(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, int64_t usable_bytes, const struct ap_decision_trial *trial)
{
	struct ap_ctx own = *ctx;
	struct ap_layer_problem q;
	double bound_s = trial->bound_s;
	uint64_t work = 0;

	if (!(trial->hurried_s > 0))
		return bound_s;
	own.arena = ap_arena_create_like(ctx->arena);
	if (ap_layer_problem_make(&own, rows, space, &trial->point, usable_bytes, &q) == AP_OK)
		bound_s = fmax(bound_s, ap_layer_problem_bound(&own, &q, trial->hurried_s, 1, &work));
	ap_arena_destroy(own.arena);
	return bound_s;
}

/* Deals the layers of a point as well as they can be, and prices the plan that comes of it. */
static void deal(struct trying *t)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_decision_trial *trial = t->trial, before = *trial;
	struct ap_partition_budget budget = {.work = DEAL_WORK, .gap = DEAL_GAP,
		.below = t->c->below_s < INFINITY ? t->c->below_s : 0};
	struct ap_layer_problem q;
	enum ap_status st = ap_layer_problem_make(ctx, t->c->rows, t->c->space, &trial->point,
		t->c->usable_bytes, &q);
	struct rooms rooms;

	assert(st == AP_OK);
	(void)st;
	begin(t, &q, &rooms);
	for (int i = 0; i < MISFITS; i++) {
		struct ap_partition_choice choice;

		ap_partition_solve(ctx, &q.p, &budget, &choice);
		t->yield->work += choice.work;
		if (i == 0) {
			trial->bound_s = fmax(trial->bound_s, choice.lower_bound);
			if (!choice.plan && choice.ended == AP_ENDED_PROVEN)
				trial->bound_s = fmax(trial->bound_s, budget.below);
		}
		if ((choice.plan && price_dealt(t, &q, choice.plan, rooms.excess)) ||
			t->yield->work >= MOST_DEAL_WORK)
			break;
		if (choice.plan)
			give_room(t, &q, choice.plan, &rooms);
		else if (i > 0)
			take_half_back(&q, &rooms);
		else
			break;
		budget.gap = AGAIN_GAP;
	}
	/* What was found at first may be better, as layers' figures leave out some of what a step takes. */
	if (before.verdict == AP_DECISION_FITS &&
		(trial->verdict != AP_DECISION_FITS || trial->step_s > before.step_s)) {
		before.bound_s = trial->bound_s;
		*trial = before;
	}
}

struct listed { /* a plan, and what it takes at least */
	struct ap_partition_plan plan;
	double least_s;
};

struct listing {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	AP_VEC(struct listed) plans;
};

static void list(void *user, const struct ap_partition_plan *plan, double cost)
{
	struct listing *l = user;
	struct ap_arena *arena = l->ctx->arena;
	size_t parts = (size_t)l->p->nstage * (size_t)l->p->nsegment;
	struct listed one = {{.first = ap_arena_memdup(arena, plan->first, (parts + 1) * sizeof *plan->first),
		.kind = ap_arena_memdup(arena, plan->kind,
			(size_t)ap_partition_layers(l->p) * sizeof *plan->kind),
		.number = l->p->kinds == AP_KINDS_UNIFORM ? ap_arena_memdup(arena, plan->number,
			l->p->nkind * sizeof *plan->number) : NULL}, cost};

	AP_PUSH(arena, l->plans, one);
}

/* The listed plan that takes least of those that are left. */
static struct listed *least(const struct listing *l)
{
	struct listed *best = &l->plans.v[0];

	for (size_t i = 1; i < l->plans.n; i++)
		if (l->plans.v[i].least_s < best->least_s)
			best = &l->plans.v[i];
	return best;
}

/*
 * Prices the plans of a point that has few, those first that take least by their layers: the point takes no
 * less than the best of them, or than the first that is not priced takes by its layers. Returns false if it
 * has too many, or some that the problem leaves out.
 */
static bool price_each(struct trying *t, const struct ap_layer_problem *q, uint32_t times)
{
	struct ap_decision_trial *trial = t->trial, best = *trial;
	struct listing l = {.ctx = t->ctx, .p = &q->p};
	double bound_s = t->c->below_s;

	if (!q->has_all_kinds || !ap_partition_each(t->ctx, &q->p, t->c->below_s, LOOKED_AT, list, &l))
		return false;
	for (uint32_t n = 0; l.plans.n > 0; n++) {
		struct listed *next = least(&l);

		if (next->least_s >= bound_s)
			break;
		if (n == PRICED * times) {
			bound_s = next->least_s;
			break;
		}
		trial->verdict = AP_DECISION_OPEN;
		if (price_dealt(t, q, &next->plan, NULL) && trial->verdict != AP_DECISION_FITS)
			bound_s = next->least_s; /* it is not known what it takes */
		if (trial->verdict == AP_DECISION_FITS && (best.verdict != AP_DECISION_FITS ||
			trial->step_s < best.step_s))
			best = *trial;
		if (trial->verdict == AP_DECISION_FITS)
			bound_s = fmin(bound_s, trial->step_s);
		t->yield->bounding += PRICE_WORK;
		*next = l.plans.v[--l.plans.n];
	}
	*trial = best;
	trial->bound_s = fmax(trial->bound_s, bound_s);
	return true;
}

/* Bounds all plans of a point by its layers, with so many times the usual work. */
static void bound(struct trying *t, uint32_t times)
{
	struct ap_layer_problem q;
	struct ap_ctx *ctx = t->ctx;
	struct ap_decision_trial *trial = t->trial;
	enum ap_status st = ap_layer_problem_make(ctx, t->c->rows, t->c->space, &trial->point,
		t->c->usable_bytes, &q);
	int64_t lack_bytes;
	double bound_s;
	bool hurried = false;

	assert(st == AP_OK);
	(void)st;
	if (trial->verdict == AP_DECISION_FITS && trial->point.pp == 1 &&
		strcmp(trial->point.recompute, q.p.kind[0]) == 0) {
		/* Without a pipeline there is no other plan but those that recompute more. */
		trial->bound_s = trial->step_s;
		return;
	}
	if (times > 1 && t->c->below_s < INFINITY && price_each(t, &q, times))
		return;
	bound_s = trial->holds && times == 1
		? ap_partition_bound_soon(ctx, &q.p, t->c->below_s, t->c->plenty_s, &hurried)
		: ap_layer_problem_bound(ctx, &q, t->c->below_s, times, &t->yield->bounding);
	trial->bound_s = fmax(trial->bound_s, bound_s);
	trial->hurried_s = hurried ? t->c->below_s : 0;
	if (trial->verdict == AP_DECISION_FITS || trial->bound_s < INFINITY)
		return;
	lack_bytes = ap_partition_lack(ctx, &q.p);
	if (lack_bytes > 0)
		trial->memory_bytes = t->c->usable_bytes + lack_bytes;
	else if (!(t->c->below_s < INFINITY))
		price_leanest(t, &q); /* while there is no plan, how much the leanest lacks is of interest */
	if (trial->verdict == AP_DECISION_OPEN)
		trial->verdict = AP_DECISION_TOO_LARGE;
}

/* Says why a point is no plan. */
static void explain(struct ap_ctx *ctx, struct ap_decision_trial *trial)
{
	if (trial->verdict != AP_DECISION_REFUSED)
		return;
	trial->why = ap_diag_first_error(ctx->diag);
	if (!trial->why)
		trial->why = "no such plan";
}

void ap_trial_go_on(struct ap_ctx *ctx, const struct ap_trial_case *c, struct ap_decision_trial *trial,
	struct ap_trial_yield *out)
{
	struct trying t = {ctx, c, trial, out};

	*out = (struct ap_trial_yield){0};
	if (trial->point.kind >= 0)
		price(&t, &trial->point, NULL);
	else if (trial->step == AP_TRIAL_NEW)
		look(&t);
	else if (trial->step == AP_TRIAL_LOOKED)
		bound(&t, 1);
	else if (trial->step == AP_TRIAL_BOUNDED)
		deal(&t);
	else /* all depends on its bound: sixteen times the work, then 64 times, ... */
		bound(&t, UINT32_C(16) << 2 * (trial->step - AP_TRIAL_DEALT));
	trial->step++;
	explain(ctx, trial);
}

void ap_trial_price(struct ap_ctx *ctx, const struct ap_trial_case *c, struct ap_decision_trial *trial,
	int64_t *excess)
{
	struct ap_trial_yield yield = {0};
	struct trying t = {ctx, c, trial, &yield};

	price(&t, &trial->point, excess);
	explain(ctx, trial);
}
