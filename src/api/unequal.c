/* SPDX-License-Identifier: Apache-2.0 */
#include "api/unequal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/layer_problem.h"
#include "api/points.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/workers.h"
#include "pipeline/schedule.h"

#define STAGES_WORK (UINT64_C(1) << 24) /* to find a plan of so many stages: some 50 ms */
#define ALL_WORK (UINT64_C(1) << 29) /* of all numbers of stages; after that, only floors */
#define GAP 1e-4

struct blocks { /* the degrees of a stage, whatever else is decided */
	struct ap_ctx *ctx;
	const struct ap_decision_point *best;
	AP_VEC(struct ap_decision_point) point;
};

static void add(void *user, const struct ap_decision_point *p)
{
	struct blocks *b = user;

	if (p->pp == 1 || p->mix != b->best->mix || p->sums_whole != b->best->sums_whole)
		return;
	AP_PUSH(b->ctx->arena, b->point, *p);
	b->point.v[b->point.n - 1].scheduler = b->best->scheduler;
}

static struct ap_choices only(struct ap_ctx *ctx, int64_t value)
{
	return (struct ap_choices){.n = 1, .v = ap_arena_memdup(ctx->arena, &value, sizeof value)};
}

/* All degrees of blocks that are a quotient of the devices. */
static void list_degrees(struct ap_ctx *ctx, const struct ap_decision *d, struct blocks *out)
{
	const struct ap_decision_point *best = &d->trial[d->best].point;
	struct ap_decision_space s = d->space;
	int64_t usual = 0;

	while (ap_scheduler_at((size_t)usual) != ap_scheduler_find("1f1b"))
		usual++;
	s.pp = (struct ap_choices){.n = 0};
	s.layers = s.devices; /* blocks may be so small that as many stages would be too many */
	s.vpp = only(ctx, 1);
	s.scheduler = only(ctx, usual); /* which runs any number of stages */
	s.micro_batches = only(ctx, best->micro_batches);
	s.level = only(ctx, best->level);
	*out = (struct blocks){.ctx = ctx, .best = best};
	ap_decision_each(ctx, &s, add, out);
}

static void add_numbers(struct ap_str *s, const char *key, const int64_t *n, int32_t count)
{
	struct ap_str list;

	ap_str_init(&list, s->arena);
	for (int32_t i = 0; i < count; i++)
		ap_str_addf(&list, "%s%" PRId64, i ? "," : "", n[i]);
	ap_str_addf(s, "%s%s=", s->len ? " " : "", key);
	ap_str_add_folded(s, list.s);
}

/* "devices=8,4 dp=4,2 tp=2,2 layers=5,3": in the order of the stages; layers by segment, then stage. */
static const char *say(struct ap_ctx *ctx, const struct blocks *b, const uint32_t *of,
	const struct ap_partition *p, const struct ap_partition_plan *plan)
{
	static const char *const keys[] = {"devices", "dp", "tp", "cp", "ep", "sp"};
	int64_t *n = AP_NEW_N(ctx->scratch, int64_t, (size_t)p->nstage * (size_t)p->nsegment);
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t k = 0; k < AP_COUNT(keys); k++) {
		bool some = k < 3;

		for (int32_t i = 0; i < p->nstage; i++) {
			const struct ap_decision_point *x = &b->point.v[of[plan->degree[i]]];
			const int64_t value[] = {p->degree[plan->degree[i]].devices, x->dp, x->tp, x->cp,
				x->ep, x->sp};

			n[i] = value[k];
			some = some || n[i] > (strcmp(keys[k], "sp") != 0);
		}
		if (some)
			add_numbers(&s, keys[k], n, p->nstage);
	}
	for (int32_t i = 0; i < p->nstage * p->nsegment; i++) {
		int32_t q = ap_schedule_part(p->scheduler, p->nstage, i % p->nstage, i / p->nstage);

		n[i] = plan->first[q + 1] - plan->first[q];
	}
	add_numbers(&s, "layers", n, p->nstage * p->nsegment);
	return s.s;
}

static bool is_unequal(const struct ap_partition *p, const struct ap_partition_plan *plan)
{
	for (int32_t i = 1; i < p->nstage; i++)
		if (p->degree[plan->degree[i]].devices != p->degree[plan->degree[0]].devices)
			return true;
	return false;
}

enum { MOST_PRICED = 8 };

struct candidate { /* to be priced whole */
	double by_layers_s;
	struct ap_decision_point point;
};

struct looking {
	const struct ap_decision *d;
	const struct blocks *blocks;
	struct ap_arena *to; /* of texts */
	double best_s; /* of stages of any numbers, equal ones as well */
	uint64_t work;
	uint32_t ncandidate;
	struct candidate candidate[MOST_PRICED]; /* the fastest by their layers */
	struct ap_plan_unequal *out;
};

/* The pipeline of so many stages, in the degrees point[..n - 1]. Returns false if there is none. */
static bool make_problem(const struct looking *x, struct ap_ctx *ctx, int32_t nstage,
	const struct ap_decision_point *point, size_t n, uint32_t *of, struct ap_partition *p)
{
	struct ap_decision_point shape = *x->blocks->best;

	shape.pp = nstage;
	return n > 0 && !ap_scheduler_at((size_t)shape.scheduler)->refuses(nstage, (int32_t)shape.vpp,
		shape.micro_batches) && ap_layer_problem_share(ctx, x->d->rows, &x->d->space, &shape, point,
		(uint32_t)n, x->d->usable_bytes, of, p);
}

/* What equal stages take by their layers, so that others can be held against them. */
static void look_at_equal(struct looking *x, struct ap_ctx *ctx, int32_t nstage)
{
	const struct ap_partition_budget budget = {.work = STAGES_WORK, .gap = GAP};
	const struct blocks *b = x->blocks;
	struct ap_decision_point *point = AP_NEW_N(ctx->arena, struct ap_decision_point, b->point.n);
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, b->point.n);
	struct ap_partition_choice choice;
	struct ap_partition p;
	size_t n = 0;

	for (size_t i = 0; i < b->point.n; i++)
		if (b->point.v[i].pp == nstage)
			point[n++] = b->point.v[i];
	if (x->work >= ALL_WORK || !make_problem(x, ctx, nstage, point, n, of, &p) || ap_partition_fault(&p))
		return;
	ap_partition_solve(ctx, &p, &budget, &choice);
	x->work += choice.work;
	if (choice.plan && (x->out->equal_s == 0 || choice.cost < x->out->equal_s))
		x->out->equal_s = choice.cost;
}

/* Can one plan have stages of both: do they differ in dp alone? */
static bool is_beside(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	return a->tp == b->tp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp && a->sp == b->sp &&
		a->shard == b->shard && a->regathers == b->regathers;
}

static const char *list_text(struct ap_arena *arena, const char *key, const int64_t *n, int32_t count)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_add(&s, key);
	for (int32_t i = 0; i < count; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", n[i]);
	return s.s;
}

/* The point of a plan by layers whose stages have all devices; false if they leave some. */
static bool make_point(const struct looking *x, struct ap_ctx *ctx, const struct ap_decision_point *degrees,
	const struct ap_partition *p, const struct ap_partition_plan *plan, struct ap_decision_point *out)
{
	int32_t parts = p->nstage * p->nsegment;
	int64_t *n = AP_NEW_N(ctx->arena, int64_t, parts), sum = 0;
	struct ap_decision_point point = *degrees;

	for (int32_t s = 0; s < p->nstage; s++)
		sum += n[s] = p->degree[plan->degree[s]].devices;
	if (sum != x->d->space.devices)
		return false;
	point.pp = p->nstage;
	point.vpp = p->nsegment;
	point.scheduler = x->blocks->best->scheduler;
	point.kind = 0; /* layers and kinds are as is said */
	point.devices = list_text(x->to, "", n, p->nstage);
	ap_layer_problem_say(ctx, &(struct ap_layer_problem){.p = *p}, plan, &point);
	for (int32_t i = 0; i < parts; i++) {
		int32_t q = ap_schedule_part(p->scheduler, p->nstage, i % p->nstage, i / p->nstage);

		n[i] = plan->first[q + 1] - plan->first[q];
	}
	point.layers = list_text(x->to, "layers=", n, parts);
	point.recompute = ap_arena_strdup(x->to, point.recompute);
	*out = point;
	return true;
}

/* Keeps a candidate that is among the fastest; of equals those of before. */
static void keep(struct looking *x, const struct candidate *c)
{
	uint32_t at = x->ncandidate;

	while (at > 0 && c->by_layers_s < x->candidate[at - 1].by_layers_s)
		at--;
	if (at == MOST_PRICED)
		return;
	x->ncandidate += x->ncandidate < MOST_PRICED;
	for (uint32_t i = x->ncandidate; i-- > at + 1;)
		x->candidate[i] = x->candidate[i - 1];
	x->candidate[at] = *c;
}

/* The fastest by layers of those whose stages have these degrees but dp. */
static void look_beside(struct looking *x, struct ap_ctx *ctx, int32_t nstage,
	const struct ap_decision_point *degrees, double below_s)
{
	const struct ap_partition_budget budget = {.work = STAGES_WORK, .gap = GAP, .below = below_s};
	const struct blocks *b = x->blocks;
	struct ap_decision_point *point = AP_NEW_N(ctx->arena, struct ap_decision_point, b->point.n);
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, b->point.n);
	struct ap_partition_choice choice;
	struct ap_partition p;
	struct candidate c;
	size_t n = 0;

	for (size_t i = 0; i < b->point.n; i++)
		if (is_beside(&b->point.v[i], degrees))
			point[n++] = b->point.v[i];
	if (x->work >= ALL_WORK || ap_ctx_stopped(ctx) || !make_problem(x, ctx, nstage, point, n, of, &p) ||
		ap_partition_fault(&p))
		return;
	ap_partition_solve(ctx, &p, &budget, &choice);
	x->work += choice.work;
	c.by_layers_s = choice.cost;
	if (choice.plan && is_unequal(&p, choice.plan) &&
		make_point(x, ctx, degrees, &p, choice.plan, &c.point))
		keep(x, &c);
}

/* Candidates of the degrees that a plan by layers has in any of its stages: its own stages in each of them,
 * if they can be, and the fastest by layers. */
static void look_beside_all(struct looking *x, struct ap_ctx *ctx, const uint32_t *of,
	const struct ap_partition *p, const struct ap_partition_choice *choice, double below_s)
{
	const struct ap_decision_point *all = x->blocks->point.v;
	const struct ap_partition_plan *plan = choice->plan;
	struct candidate c = {.by_layers_s = choice->cost};

	for (int32_t s = 0; s < p->nstage; s++) {
		const struct ap_decision_point *own = &all[of[plan->degree[s]]];
		bool seen = false;

		for (int32_t t = 0; t < s; t++)
			seen |= is_beside(own, &all[of[plan->degree[t]]]);
		if (seen)
			continue;
		if (make_point(x, ctx, own, p, plan, &c.point))
			keep(x, &c);
		look_beside(x, ctx, p->nstage, own, below_s);
	}
}

/* Bounds pipelines of so many stages, and looks for one that is faster than what is known. */
static void look_at(struct looking *x, struct ap_ctx *ctx, int32_t nstage)
{
	const struct blocks *b = x->blocks;
	struct ap_partition_budget budget = {.work = STAGES_WORK, .gap = GAP, .below = x->best_s};
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, b->point.n);
	struct ap_partition_choice choice;
	struct ap_partition p;
	double bound_s;

	if (!make_problem(x, ctx, nstage, b->point.v, b->point.n, of, &p))
		return;
	if (ap_partition_fault(&p)) {
		x->out->bound_s = 0;
		return;
	}
	bound_s = ap_partition_bound_to(ctx, &p, x->work < ALL_WORK ? budget.below : 0, 1, &x->work);
	if (bound_s < budget.below * (1 - GAP) && x->work < ALL_WORK && !ap_ctx_stopped(ctx)) {
		ap_partition_solve(ctx, &p, &budget, &choice);
		x->work += choice.work;
		bound_s = fmax(bound_s, choice.lower_bound);
		if (choice.plan) {
			x->best_s = choice.cost;
			x->out->step_s = choice.cost;
			x->out->said = NULL;
			if (is_unequal(&p, choice.plan)) {
				x->out->said = ap_arena_strdup(x->to, say(ctx, b, of, &p, choice.plan));
				look_beside_all(x, ctx, of, &p, &choice, budget.below);
			}
		}
	}
	x->out->bound_s = fmin(x->out->bound_s, bound_s);
}

/* Prices the candidates whole; true if one is faster than step_s. */
static bool price(struct looking *x, struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, double step_s, struct ap_decision_point *point)
{
	const struct ap_trial_case c = {.set = set, .src = src, .space = &x->d->space,
		.usable_bytes = x->d->usable_bytes};

	for (uint32_t i = 0; i < x->ncandidate && !ap_ctx_stopped(ctx); i++) {
		struct ap_decision_trial t = {.point = x->candidate[i].point};
		struct ap_ctx own = ap_diag_apart(ctx);

		own.arena = ap_arena_create_like(ctx->arena);
		own.diag = ap_diag_create(own.arena, false);
		ap_trial_price(&own, &c, &t, NULL);
		ap_arena_destroy(own.arena);
		if (t.verdict != AP_DECISION_FITS || (x->out->plan && t.step_s >= x->out->plan_s))
			continue;
		*point = x->candidate[i].point;
		x->out->plan = ap_points_words(ctx, &x->d->space, point);
		x->out->plan_s = t.step_s;
	}
	return x->out->plan && x->out->plan_s < step_s;
}

bool ap_unequal_look(struct ap_ctx *ctx, const struct ap_decision *d, const struct ap_settings *set,
	const struct ap_sources *src, double step_s, struct ap_plan_unequal *out,
	struct ap_decision_point *point)
{
	struct looking x = {.d = d, .to = ctx->arena, .best_s = step_s, .out = out};
	struct ap_workers workers;
	struct blocks blocks;
	int64_t least = INT64_MAX, most;

	*out = (struct ap_plan_unequal){.asked = true, .bound_s = step_s};
	list_degrees(ctx, d, &blocks);
	x.blocks = &blocks;
	out->why = !d->rows ? "its layers are no runs of operators, one behind the other"
		: !d->regular ? "its devices are not linked alike"
		: blocks.point.n == 0 ? "its batch or its devices divide no further" : NULL;
	if (out->why) {
		out->bound_s = 0;
		return false;
	}
	for (size_t i = 0; i < blocks.point.n; i++) {
		int64_t devices = d->space.devices / blocks.point.v[i].pp;

		ap_layer_table_want_rows(d->rows, &blocks.point.v[i]);
		least = devices < least ? devices : least;
	}
	ap_workers_make(ctx, &workers);
	ap_layer_table_fill(d->rows, &workers);
	most = d->space.devices / least;
	for (int64_t n = 2; n <= most && out->bound_s > 0; n++) {
		struct ap_ctx own = *ctx;

		if ((d->space.pp.n && !ap_choices_has(&d->space.pp, n)) ||
			n * blocks.best->vpp > d->space.layers + 2)
			continue;
		if (ap_ctx_stopped(ctx)) {
			*out = (struct ap_plan_unequal){.asked = true, .why = "the run was stopped before"};
			return false;
		}
		own.arena = ap_arena_create_like(ctx->arena);
		look_at(&x, &own, (int32_t)n);
		look_at_equal(&x, &own, (int32_t)n);
		ap_arena_destroy(own.arena);
	}
	if (out->equal_s > 0 && out->step_s >= out->equal_s)
		out->said = NULL; /* as fast as these, but for what the searches left */
	return price(&x, ctx, set, src, step_s, point);
}
