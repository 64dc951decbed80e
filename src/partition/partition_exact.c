/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact engine. Plans of one degree (or of degrees by stage) and, where kinds are uniform, of one set of
 * numbers are a lattice; the lattices share the best plan so far. Each begins with the least largest part,
 * goes on with small changes of a plan, and ends with a bound and a search for something better, or a proof
 * that there is nothing.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "partition/anneal.h"
#include "partition/lattice.h"
#include "partition/partition.h"
#include "partition/replay.h"
#include "pipeline/schedule.h"

#define ANNEAL_WORK 100000 /* at first, beside that of some hundred plans */
#define ANNEAL_PLANS 300
#define ANNEAL_MORE 1000 /* for each part, where segments share memory and little else finds plans */
#define SEEK_SHARE 64 /* of the work, at first, to decide about one objective */
#define BOUND_WORK 300000 /* of ap_partition_bound(): a millisecond */
#define NONE_YET ((INT64_C(1) << 52) + 1) /* ticks */

struct solving {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	const struct ap_partition_budget *budget;
	struct ap_partition_choice *out;
	int32_t npart;
	uint64_t limit;
	int64_t best, bound; /* ticks of the best plan, of all lattices that are done */
	double tick_s, error_s;
};

struct one { /* a lattice */
	struct solving *s;
	const int64_t *number;
	struct ap_options *c;
	struct ap_replay *replay;
	struct ap_lattice *l;
	struct ap_lattice_walk walk;
};

static double cost_of(const struct ap_partition *p, const struct ap_partition_worth *w)
{
	return p->objective == AP_OBJECTIVE_STEP ? w->step_s : w->largest_s;
}

/* Takes the walk as the best plan. */
static void take(struct one *x, int64_t value)
{
	struct solving *s = x->s;
	const struct ap_partition *p = s->p;
	struct ap_arena *arena = s->ctx->arena;
	struct ap_partition_plan *plan = AP_NEW(arena, struct ap_partition_plan);
	int64_t *first = AP_NEW_N(arena, int64_t, s->npart + 1);
	uint32_t *degree = AP_NEW_N(arena, uint32_t, p->nstage);
	uint32_t *kind = AP_NEW_N(arena, uint32_t, ap_partition_layers(p));

	for (int32_t q = 0; q <= s->npart; q++)
		first[q] = x->walk.first[q];
	for (int32_t q = 0; q < s->npart; q++) {
		const struct ap_lattice_option *o = ap_lattice_option(x->l, x->walk.option[q]);
		int32_t stage, segment;

		ap_schedule_spot(p->scheduler, p->nstage, q, &stage, &segment);
		degree[stage] = o->degree;
		ap_options_kinds(x->c, q, o->degree, first[q], first[q + 1], o->choice, kind);
	}
	*plan = (struct ap_partition_plan){first, degree, kind,
		x->number ? ap_arena_memdup(arena, x->number, p->nkind * sizeof *x->number) : NULL};
	s->out->plan = plan;
	s->best = value;
}

/* The most ticks that a plan may take to be of interest. */
static int64_t goal(const struct solving *s)
{
	double below = s->budget->below > 0 ? ceil((s->budget->below + s->error_s) / s->tick_s) : INFINITY;

	return below < (double)s->best ? (int64_t)below - 1 : s->best - 1;
}

static bool near_enough(const struct solving *s, int64_t bound)
{
	return s->out->plan && (double)s->best <= (double)bound * (1 + s->budget->gap);
}

static uint64_t left(const struct one *x)
{
	uint64_t done = x->s->out->work + ap_lattice_work(x->l);

	return done < x->s->limit ? x->s->limit - done : 0;
}

/* Makes the best plan of the lattice better, with so much work. */
static void improve(struct one *x, uint64_t work)
{
	int64_t value = ap_anneal(x->s->ctx, x->s->p, x->l, &x->walk, work < left(x) ? work : left(x));

	if (value >= 0 && value < x->s->best)
		take(x, value);
}

/*
 * Narrows what the objective can be, from below by proofs and from above by plans: first the whole question,
 * then halves of what is open; a half that takes too much work is put off until the easier ones are done, and
 * more plans have been tried.
 */
static int64_t narrow(struct one *x, int64_t bound)
{
	struct solving *s = x->s;
	uint64_t share = left(x) / SEEK_SHARE;
	int64_t hard = INT64_MAX, value; /* what was put off, and all above */

	while (bound <= goal(s) && !near_enough(s, bound) && left(x) > 0 && !ap_ctx_stopped(s->ctx)) {
		int64_t most = hard > goal(s) ? goal(s) : bound + (hard - bound) / 2;

		switch (ap_lattice_seek(x->l, most, share < left(x) ? share : left(x), &x->walk, &value)) {
		case AP_WALK_FOUND:
			take(x, value);
			break;
		case AP_WALK_NONE:
			bound = most + 1;
			break;
		case AP_WALK_UNKNOWN:
			hard = most;
			break;
		}
		if (hard < INT64_MAX && hard - bound <= hard >> 14) {
			share *= 2;
			improve(x, share);
			hard = INT64_MAX;
		}
	}
	return bound;
}

/* A bound of one lattice; plans that it has on the way. */
static int64_t search(struct one *x)
{
	struct solving *s = x->s;
	int64_t even = ap_lattice_even(x->l, &x->walk), bound, value;

	if (even < 0)
		return NONE_YET;
	bound = s->p->objective == AP_OBJECTIVE_STEP ? even * s->p->nmicro : even;
	if (bound > goal(s))
		return bound;
	if (s->p->nsegment == 1 && s->p->objective == AP_OBJECTIVE_STAGE) {
		take(x, even);
		return bound;
	}
	improve(x, ANNEAL_WORK +
		(s->p->nsegment > 1 ? ANNEAL_MORE * (uint64_t)s->npart : ANNEAL_PLANS) *
			ap_replay_steps(x->replay));
	if (bound > goal(s) || near_enough(s, bound))
		return bound;
	if (!ap_lattice_open(x->l, goal(s)))
		return goal(s) + 1;
	value = ap_lattice_bound(x->l, x->walk.option, goal(s), left(x));
	bound = value > bound ? value : bound;
	bound = narrow(x, bound);
	return bound;
}

static void solve_one(struct solving *s, const int64_t *number, uint32_t from, uint32_t to)
{
	struct ap_ctx own = *s->ctx;
	struct one x = {.s = s, .number = number};
	int64_t bound;

	own.arena = ap_arena_create_like(s->ctx->arena);
	x.c = ap_options_create(&own, s->p, number);
	s->tick_s = ap_options_tick_s(x.c);
	s->error_s = ap_options_error_s(x.c);
	x.replay = ap_replay_create(&own, s->p->scheduler, s->p->nstage, s->p->nsegment, s->p->nmicro);
	x.l = ap_lattice_create(&own, s->p, x.c, x.replay, from, to);
	x.walk = (struct ap_lattice_walk){AP_NEW_N(own.arena, int32_t, s->npart + 1),
		AP_NEW_N(own.arena, uint32_t, s->npart)};
	bound = search(&x);
	if (ap_lattice_is_cut(x.l))
		bound = ap_lattice_floor(x.l);
	s->bound = bound < s->bound ? bound : s->bound;
	s->out->work += ap_lattice_work(x.l);
	ap_arena_destroy(own.arena);
}

/* All lattices of some degrees. Returns false if the work ended before. */
static bool solve_degrees(struct solving *s, uint32_t from, uint32_t to)
{
	int64_t most = ap_partition_body(s->p), sum = 0, *number;
	uint32_t k = 1;

	if (s->p->kinds != AP_KINDS_UNIFORM) {
		solve_one(s, NULL, from, to);
		return true;
	}
	most -= (s->npart - 1) * s->p->least_layers;
	number = AP_NEW_N(s->ctx->arena, int64_t, s->p->nkind);
	for (; k < s->p->nkind || sum == 0; number[k]++, sum++) {
		if (s->out->work >= s->limit || ap_ctx_stopped(s->ctx))
			return false;
		solve_one(s, number, from, to);
		k = 1;
		while (sum >= most && k < s->p->nkind) {
			sum -= number[k];
			number[k++] = 0;
		}
		if (k >= s->p->nkind)
			break;
	}
	return true;
}

static bool solve_all(struct solving *s)
{
	if (s->p->degree_by_stage)
		return solve_degrees(s, 0, s->p->ndegree);
	for (uint32_t d = 0; d < s->p->ndegree; d++)
		if ((d > 0 && (s->out->work >= s->limit || ap_ctx_stopped(s->ctx))) || !solve_degrees(s, d,
			d + 1))
			return false;
	return true;
}

/* What some stage lacks even if it holds as little as any plan lets it. */
static int64_t lack(const struct solving *s)
{
	const struct ap_part_choice **none =
		AP_NEW_N(s->ctx->arena, const struct ap_part_choice *, s->p->nsegment);
	struct ap_options *c = ap_options_create(s->ctx, s->p, NULL);
	int64_t most = 0;

	for (int32_t i = 0; i < s->p->nstage; i++) {
		int64_t excess = ap_options_bytes(c, i, none) - s->p->capacity_bytes[i];

		most = excess > most ? excess : most;
	}
	return most;
}

static void conclude(struct solving *s, bool all)
{
	struct ap_partition_choice *out = s->out;
	bool proven = all && s->bound > goal(s);
	double bound = (double)s->bound * s->tick_s - s->error_s;
	double least = proven ? 0 : ap_partition_bound(s->ctx, s->p);

	if (!all || bound < least)
		bound = least;
	if (out->plan) {
		ap_partition_judge(s->ctx, s->p, out->plan, &out->worth);
		assert(!out->worth.fault);
		out->cost = cost_of(s->p, &out->worth);
	}
	if (out->plan && all && s->bound >= s->best) {
		out->outcome = AP_OUT_OPTIMAL;
		bound = out->cost;
	} else if (out->plan) {
		out->outcome = AP_OUT_FEASIBLE;
	} else if (all && s->bound >= NONE_YET) {
		out->outcome = AP_OUT_INFEASIBLE;
		out->short_bytes = lack(s);
		bound = INFINITY;
	}
	out->lower_bound = bound < out->cost ? bound : out->cost;
	if (out->outcome == AP_OUT_OPTIMAL || out->outcome == AP_OUT_INFEASIBLE || proven)
		out->ended = AP_ENDED_PROVEN;
	else if (out->plan && out->cost <= out->lower_bound * (1 + s->budget->gap))
		out->ended = AP_ENDED_GAP;
	else
		out->ended = ap_ctx_stopped(s->ctx) ? AP_ENDED_STOPPED : AP_ENDED_WORK;
}

void ap_partition_solve(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_budget *budget, struct ap_partition_choice *out)
{
	struct solving s = {.ctx = ctx, .p = p, .budget = budget, .out = out,
		.npart = p->nstage * p->nsegment,
		.limit = budget->work ? budget->work : AP_PARTITION_WORK, .best = NONE_YET,
			.bound = NONE_YET};

	*out = (struct ap_partition_choice){.outcome = AP_OUT_LIMIT, .engine = "dynamic_programming",
		.cost = INFINITY};
	conclude(&s, solve_all(&s));
}

/* A bound of the plans of some degrees, whatever the rule of kinds. */
static double bound_of(struct ap_ctx *ctx, const struct ap_partition *p, uint32_t from, uint32_t to)
{
	int32_t n = p->nstage * p->nsegment;
	struct ap_options *c = ap_options_create(ctx, p, NULL);
	struct ap_replay *replay = ap_replay_create(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro);
	struct ap_lattice *l = ap_lattice_create(ctx, p, c, replay, from, to);
	struct ap_lattice_walk walk = {AP_NEW_N(ctx->arena, int32_t, n + 1), AP_NEW_N(ctx->arena, uint32_t,
		n)};
	int64_t even = ap_lattice_even(l, &walk), bound = ap_lattice_floor(l), value;

	if (even < 0 && !ap_lattice_is_cut(l))
		return INFINITY;
	if (!ap_lattice_is_cut(l)) {
		even *= p->objective == AP_OBJECTIVE_STEP ? p->nmicro : 1;
		bound = even > bound ? even : bound;
		value = ap_lattice_value(l, walk.option);
		if (value > bound && ap_lattice_open(l, value))
			even = ap_lattice_bound(l, walk.option, value, BOUND_WORK);
		if (!ap_lattice_is_cut(l))
			bound = even > bound ? even : bound;
	}
	return (double)bound * ap_options_tick_s(c) - ap_options_error_s(c);
}

double ap_partition_bound(struct ap_ctx *ctx, const struct ap_partition *p)
{
	struct ap_ctx own = *ctx;
	struct ap_partition any = *p;
	uint32_t at_once = p->degree_by_stage ? p->ndegree : 1;
	double bound = INFINITY;

	own.arena = ap_arena_create_like(ctx->arena);
	any.kinds = AP_KINDS_FREE;
	for (uint32_t d = 0; d < p->ndegree; d += at_once)
		bound = fmin(bound, bound_of(&own, &any, d, d + at_once));
	ap_arena_destroy(own.arena);
	return bound > 0 ? bound : 0;
}
