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
#include "partition/even.h"
#include "partition/lattice.h"
#include "partition/partition.h"
#include "partition/relax.h"
#include "partition/replay.h"
#include "partition/uniform.h"
#include "pipeline/schedule.h"

#define ANNEAL_WORK 100000 /* at first, beside that of some hundred plans */
#define ANNEAL_PLANS 300
#define ANNEAL_MORE 1000 /* for each part, where segments share memory and little else finds plans */
#define BRIEF 32 /* a share of these, for each of many lattices */
#define SEEK_SHARE 64 /* of the work, at first, to decide about one objective */
#define BOUND_WORK 300000 /* of ap_partition_bound(): a millisecond */
#define FEW_CELLS 1000 /* parts times layers, where segments' lattices are quick */
#define RELAX_WORK 12000000 /* of the same, where layers are shared out in fractions */
#define WHOLE_WORK 500000 /* and where these are told apart by whole ones; */
#define WHOLE_MORE 2 /* times that, where more than the usual work is spent */
#define COMPARISONS (UINT64_C(1) << 21) /* of choices, likewise: some ten milliseconds */
#define FAR (INT64_MAX / 4) /* no plan */
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
	bool is_brief; /* there are many lattices, and a good plan */
	struct relaxed { /* plans in fractions, of whatever kinds */
		bool known;
		int64_t bound; /* ticks */
		double *layers; /* [npart] of the body, in a good one */
	} *relaxed; /* [ndegree] of those that begin with a degree */
};

struct one { /* a lattice */
	struct solving *s;
	const int64_t *number;
	struct ap_options *c;
	struct ap_replay *replay;
	struct ap_lattice *l; /* NULL: not yet */
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
	uint64_t done = x->s->out->work + (x->l ? ap_lattice_work(x->l) : 0);

	return done < x->s->limit ? x->s->limit - done : 0;
}

/* Makes x->walk better, with so much work. */
static void improve(struct one *x, int64_t bound, uint64_t work)
{
	int64_t value = ap_anneal(x->s->ctx, x->s->p, x->l, &x->walk, bound, work < left(x) ? work : left(x));

	if (value >= 0 && value < x->s->best)
		take(x, value);
}

/* Gives each part of the walk its first option of those on the fewest devices. Returns false if one has
 * none. */
static bool take_options(struct one *x)
{
	const struct ap_partition_degree *degree = x->s->p->degree;

	for (int32_t q = 0; q < x->s->npart; q++) {
		uint32_t first, n = ap_lattice_options(x->l, q, x->walk.first[q], x->walk.first[q + 1],
			&first);

		if (n == 0)
			return false;
		x->walk.option[q] = first;
		for (uint32_t i = first + 1; i < first + n && x->s->p->devices > 0; i++)
			if (degree[ap_lattice_option(x->l, i)->degree].devices <
				degree[ap_lattice_option(x->l, x->walk.option[q])->degree].devices)
				x->walk.option[q] = i;
	}
	return true;
}

/* Whole numbers of layers near these: each stage has what is nearest to its own, as far as that goes. */
static void round_off(const struct solving *s, const double *layers, int64_t *n)
{
	const struct ap_partition *p = s->p;
	struct ap_arena *scratch = s->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	double *part = AP_NEW_N(scratch, double, s->npart), *stage = AP_NEW_N(scratch, double, p->nstage);
	int32_t *stage_of = AP_NEW_N(scratch, int32_t, s->npart), segment;
	int64_t left = ap_partition_body(p);

	for (int32_t q = 0; q < s->npart; q++) {
		ap_schedule_spot(p->scheduler, p->nstage, q, &stage_of[q], &segment);
		n[q] = (int64_t)fmax(floor(layers[q]), (double)ap_partition_least(p, q));
		part[q] = layers[q] - (double)n[q];
		stage[stage_of[q]] += part[q];
		left -= n[q];
	}
	while (left != 0) {
		int32_t best = -1, by = left > 0 ? 1 : -1;

		for (int32_t q = 0; q < s->npart; q++) {
			double own = by * (stage[stage_of[q]] + part[q] / s->npart);

			if ((by > 0 || n[q] > ap_partition_least(p, q)) && (best < 0 ||
				own > by * (stage[stage_of[best]] + part[best] / s->npart)))
				best = q;
		}
		n[best] += by;
		part[best] -= by;
		stage[stage_of[best]] -= by;
		left -= by;
	}
	ap_arena_release(scratch, mark);
}

/* Makes the walk one near these numbers of layers. Returns false if some part cannot run so many. */
static bool go_near(struct one *x, const double *layers)
{
	struct ap_mark mark = ap_arena_mark(x->s->ctx->scratch);
	int64_t *n = AP_NEW_N(x->s->ctx->scratch, int64_t, x->s->npart);

	round_off(x->s, layers, n);
	for (int32_t q = 0; q < x->s->npart; q++)
		x->walk.first[q + 1] = x->walk.first[q] + (int32_t)n[q];
	ap_arena_release(x->s->ctx->scratch, mark);
	return take_options(x);
}

/* What every plan of these degrees takes at least, and where to look for a good one. */
static const struct relaxed *relax(struct one *x, uint32_t from, uint32_t to)
{
	struct solving *s = x->s;
	struct relaxed *r = &s->relaxed[from];
	size_t bytes = (size_t)s->npart * sizeof *r->layers;
	struct ap_relax *relax;

	if (r->known)
		return r;
	relax = ap_relax_create(s->ctx, s->p, x->c, x->replay, from, to);
	r->known = true;
	r->bound = ap_relax_bound(relax, goal(s), left(x) < RELAX_WORK ? left(x) : RELAX_WORK, 0);
	r->layers = ap_arena_memdup(s->ctx->arena, ap_relax_layers(relax), bytes);
	s->out->work += ap_relax_work(relax);
	return r;
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
			improve(x, bound, share);
			hard = INT64_MAX;
		}
	}
	return bound;
}

/* Plans near the even one and near the best in fractions. */
static void begin(struct one *x, int64_t bound, const double *layers)
{
	struct solving *s = x->s;
	size_t parts = (size_t)s->npart;
	uint64_t plans = s->p->nsegment > 1 ? ANNEAL_MORE * (uint64_t)s->npart : ANNEAL_PLANS;
	uint64_t work = (ANNEAL_WORK + plans * ap_replay_steps(x->replay)) / (s->is_brief ? BRIEF : 1);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	uint32_t *even = ap_arena_memdup(s->ctx->scratch, x->walk.option, parts * sizeof *even);
	int32_t *first = ap_arena_memdup(s->ctx->scratch, x->walk.first, (parts + 1) * sizeof *first);
	int64_t enough = s->budget->gap > 0 ? (int64_t)((double)bound * (1 + s->budget->gap)) : bound;

	if (s->p->counts == AP_COUNTS_FREE && s->p->nsegment > 1 && go_near(x, layers)) {
		improve(x, enough, work / 2);
		work -= work / 2;
	}
	if (bound <= goal(s) && !near_enough(s, bound)) {
		memcpy(x->walk.first, first, (parts + 1) * sizeof *first);
		memcpy(x->walk.option, even, parts * sizeof *even);
		improve(x, enough, work);
	}
	ap_arena_release(s->ctx->scratch, mark);
}

/* A bound of one lattice; plans that it has on the way. */
static int64_t search(struct one *x, uint32_t from, uint32_t to)
{
	struct solving *s = x->s;
	const struct relaxed *r = relax(x, from, to);
	int64_t even, bound = r->bound, value;

	if (bound > goal(s))
		return bound;
	even = ap_lattice_even(x->l, &x->walk);
	if (even < 0)
		return NONE_YET;
	value = s->p->objective == AP_OBJECTIVE_STEP ? even * s->p->nmicro : even;
	bound = value > bound ? value : bound;
	if (bound > goal(s))
		return bound;
	if (s->p->nsegment == 1 && s->p->objective == AP_OBJECTIVE_STAGE) {
		take(x, even);
		return bound;
	}
	begin(x, bound, r->layers);
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
	x.replay = ap_options_replay(&own, x.c);
	x.l = ap_lattice_create(&own, s->p, x.c, x.replay, from, to);
	x.walk = (struct ap_lattice_walk){AP_NEW_N(own.arena, int32_t, s->npart + 1),
		AP_NEW_N(own.arena, uint32_t, s->npart)};
	bound = search(&x, from, to);
	if (ap_lattice_is_cut(x.l)) {
		bound = ap_lattice_floor(x.l);
		bound = s->relaxed[from].bound > bound ? s->relaxed[from].bound : bound;
	}
	s->bound = bound < s->bound ? bound : s->bound;
	s->out->work += ap_lattice_work(x.l);
	ap_arena_destroy(own.arena);
}

/* Takes the best plan of given numbers of layers. */
static void take_numbers(struct solving *s, const struct ap_uniform *best, uint32_t degree)
{
	struct ap_partition_plan *plan = AP_NEW(s->ctx->arena, struct ap_partition_plan);
	uint32_t *degrees = AP_NEW_N(s->ctx->arena, uint32_t, s->p->nstage);

	if (best->value < 0 || best->value > goal(s))
		return;
	for (int32_t i = 0; i < s->p->nstage; i++)
		degrees[i] = degree;
	*plan = (struct ap_partition_plan){best->first, degrees, best->kind, best->number};
	s->out->plan = plan;
	s->best = best->value;
}

/*
 * Uniform plans of a degree: all, where the parts' layers are known. Else those whose layers are near the
 * best in fractions, or even: *number, [nkind], is of the best of them, if one fits. Returns whether these
 * were all.
 */
static bool try_numbers(struct solving *s, uint32_t degree, int64_t *number)
{
	const struct ap_partition *p = s->p;
	struct one x = {.s = s, .c = ap_options_create(s->ctx, p, NULL)};
	bool all = ap_uniform_is(s->p);
	double *layers = AP_NEW_N(s->ctx->arena, double, s->npart);
	int64_t *n = AP_NEW_N(s->ctx->arena, int64_t, s->npart);
	struct ap_partition given = *s->p;
	struct ap_uniform best, even;

	x.replay = ap_options_replay(s->ctx, x.c);
	s->tick_s = ap_options_tick_s(x.c);
	s->error_s = ap_options_error_s(x.c);
	if (all) {
		ap_uniform_best(s->ctx, s->p, x.c, x.replay, degree, &s->out->work, &best);
		take_numbers(s, &best, degree);
		s->bound = best.value >= 0 && best.value < s->bound ? best.value : s->bound;
		return true;
	}
	if (s->p->counts != AP_COUNTS_FREE ||
		ap_partition_least_before(s->p, s->npart) > ap_partition_body(s->p))
		return false;
	given.counts = AP_COUNTS_GIVEN;
	given.count = n;
	if (!ap_uniform_is(&given))
		return false;
	for (int32_t q = 0; q < s->npart; q++)
		layers[q] = (double)ap_partition_body(s->p) / s->npart;
	round_off(s, layers, n);
	ap_uniform_best(s->ctx, &given, x.c, x.replay, degree, &s->out->work, &even);
	take_numbers(s, &even, degree);
	round_off(s, relax(&x, degree, degree + 1)->layers, n);
	ap_uniform_best(s->ctx, &given, x.c, x.replay, degree, &s->out->work, &best);
	take_numbers(s, &best, degree);
	if (best.value < 0 || (even.value >= 0 && even.value < best.value))
		best = even;
	if (best.value >= 0)
		memcpy(number, best.number, s->p->nkind * sizeof *number);
	return false;
}

/* All lattices of some degrees. Returns false if the work ended before. */
static bool solve_degrees(struct solving *s, uint32_t from, uint32_t to)
{
	int64_t most, sum = 0, *number;
	uint32_t k = 1;

	if (s->p->kinds != AP_KINDS_UNIFORM) {
		solve_one(s, NULL, from, to);
		return true;
	}
	number = AP_NEW_N(s->ctx->arena, int64_t, s->p->nkind);
	if (!s->p->degree_by_stage) {
		if (try_numbers(s, from, number))
			return true;
		if (s->out->plan)
			solve_one(s, number, from, to);
		memset(number, 0, s->p->nkind * sizeof *number);
	}
	most = ap_partition_body(s->p) - ap_partition_least_before(s->p, s->npart) +
		(s->p->least_layers > s->p->least_at_ends ? s->p->least_layers : s->p->least_at_ends);
	s->is_brief = s->out->plan != NULL;
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

/* Begins with what comes to mind first, where that keeps all rules. */
static void begin_evenly(struct solving *s)
{
	const struct ap_partition *p = s->p;
	struct ap_partition_plan *plan = AP_NEW(s->ctx->arena, struct ap_partition_plan);
	struct ap_options *c = ap_options_create(s->ctx, p, NULL);
	struct ap_partition_worth worth;
	double step_s;

	s->tick_s = ap_options_tick_s(c);
	s->error_s = ap_options_error_s(c);
	if (p->objective != AP_OBJECTIVE_STEP || p->counts == AP_COUNTS_GIVEN || p->ndegree > 1 ||
		!ap_partition_even(s->ctx, p, INFINITY, plan, &step_s))
		return;
	ap_partition_judge(s->ctx, p, plan, &worth);
	if (worth.fault)
		return;
	s->best = (int64_t)ceil((worth.step_s + s->error_s) / s->tick_s);
	if (s->budget->below == 0 || worth.step_s < s->budget->below)
		s->out->plan = plan;
	else
		s->best = NONE_YET;
}

static bool solve_all(struct solving *s)
{
	begin_evenly(s);
	if (s->p->degree_by_stage)
		return solve_degrees(s, 0, s->p->ndegree);
	for (uint32_t d = 0; d < s->p->ndegree; d++) {
		if (!ap_partition_has_room(s->p, d))
			continue;
		if ((d > 0 && (s->out->work >= s->limit || ap_ctx_stopped(s->ctx))) || !solve_degrees(s, d,
			d + 1))
			return false;
	}
	return true;
}

int64_t ap_partition_lack(struct ap_ctx *ctx, const struct ap_partition *p)
{
	const struct ap_part_choice **none = AP_NEW_N(ctx->arena, const struct ap_part_choice *, p->nsegment);
	struct ap_options *c = ap_options_create(ctx, p, NULL);
	int64_t most = 0;

	for (int32_t i = 0; i < p->nstage; i++) {
		int64_t excess = ap_options_bytes(c, i, none) - p->capacity_bytes[i];

		most = excess > most ? excess : most;
	}
	return most;
}

static void conclude(struct solving *s, bool all)
{
	struct ap_partition_choice *out = s->out;
	bool proven = all && s->bound > goal(s);
	double bound = (double)s->bound * s->tick_s - s->error_s;
	double least = proven || (all && s->limit >= RELAX_WORK) ? 0 : ap_partition_bound(s->ctx, s->p);

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
		out->short_bytes = ap_partition_lack(s->ctx, s->p);
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

	s.relaxed = AP_NEW_N(ctx->arena, struct relaxed, p->ndegree);
	*out = (struct ap_partition_choice){.outcome = AP_OUT_LIMIT, .engine = "dynamic_programming",
		.cost = INFINITY};
	conclude(&s, solve_all(&s));
}

struct bounding {
	double enough; /* seconds: more need not be proven; INFINITY: all */
	double plenty; /* seconds: what is more may be less than it could be; INFINITY: nothing may */
	uint32_t times; /* the usual work */
	uint64_t *work;
	bool *hurried; /* it is less */
};

/* A bound of the plans of some degrees in ticks; FAR: there are none. One above `most` will do. any: the same
 * problem, with kinds by part, as c has it. */
static int64_t bound_of(struct ap_ctx *ctx, const struct ap_partition *p, const struct ap_partition *any,
	struct ap_options *c, struct ap_replay *replay, uint32_t from, uint32_t to, int64_t most,
	const struct bounding *how)
{
	int32_t n = p->nstage * p->nsegment;
	struct ap_lattice *l = ap_lattice_create(ctx, any, c, replay, from, to);
	struct ap_lattice_walk walk = {AP_NEW_N(ctx->arena, int32_t, n + 1), AP_NEW_N(ctx->arena, uint32_t,
		n)};
	int64_t bound = ap_lattice_floor(l), value;

	if (bound <= most) {
		struct ap_relax *relax = ap_relax_create(ctx, p, c, replay, from, to);

		if (how->plenty < INFINITY)
			ap_relax_hurry(relax, (int64_t)ceil((how->plenty + ap_options_error_s(c)) /
				ap_options_tick_s(c)));
		value = ap_relax_bound(relax, most, (uint64_t)how->times * RELAX_WORK,
			(uint64_t)how->times * WHOLE_WORK * (how->times > 1 ? WHOLE_MORE : 1));
		*how->work += ap_relax_work(relax);
		*how->hurried |= ap_relax_hurried(relax);
		bound = value > bound ? value : bound;
	}
	if (bound > most)
		return bound;
	value = ap_lattice_even(l, &walk);
	if (ap_lattice_is_cut(l))
		return bound;
	if (value < 0)
		return FAR;
	value *= p->objective == AP_OBJECTIVE_STEP ? p->nmicro : 1;
	bound = value > bound ? value : bound;
	value = ap_lattice_value(l, walk.option);
	if ((p->nsegment > 1 && n * ap_partition_body(p) > FEW_CELLS) || bound > most || value <= bound ||
		!ap_lattice_open(l, value) || ap_lattice_is_cut(l))
		return bound;
	value = ap_lattice_bound(l, walk.option, value, BOUND_WORK);
	return value > bound ? value : bound;
}

static double bound_all(struct ap_ctx *ctx, const struct ap_partition *p, const struct bounding *how)
{
	struct ap_ctx own = *ctx;
	struct ap_partition any = *p;
	uint32_t at_once = p->degree_by_stage ? p->ndegree : 1;
	int64_t bound = FAR;
	struct ap_options *c;
	struct ap_replay *replay;
	double most, s;

	own.arena = ap_arena_create_like(ctx->arena);
	any.kinds = p->kinds == AP_KINDS_UNIFORM ? AP_KINDS_LIST : p->kinds;
	c = ap_options_create(&own, &any, NULL);
	if (p->nsegment > 1)
		ap_options_limit(c, how->times * COMPARISONS); /* they seldom say more than fractions do */
	replay = ap_options_replay(&own, c);
	most = ceil((how->enough + ap_options_error_s(c)) / ap_options_tick_s(c));
	for (uint32_t d = 0; d < p->ndegree; d += at_once) {
		int64_t value = most < (double)bound ? (int64_t)most : bound;

		if (!p->degree_by_stage && !ap_partition_has_room(p, d))
			continue;
		if (ap_uniform_is(p)) {
			struct ap_uniform best;

			ap_uniform_best(&own, p, c, replay, d, how->work, &best);
			value = best.value < 0 ? FAR : best.value;
		} else {
			value = bound_of(&own, p, &any, c, replay, d, d + at_once, value - 1, how);
		}
		bound = value < bound ? value : bound;
	}
	s = bound >= FAR ? INFINITY : (double)bound * ap_options_tick_s(c) - ap_options_error_s(c);
	ap_arena_destroy(own.arena);
	return s > 0 ? s : 0;
}

double ap_partition_bound_to(struct ap_ctx *ctx, const struct ap_partition *p, double enough, uint32_t times,
	uint64_t *work)
{
	bool hurried = false;

	return bound_all(ctx, p, &(struct bounding){enough, INFINITY, times, work, &hurried});
}

double ap_partition_bound_soon(struct ap_ctx *ctx, const struct ap_partition *p, double enough, double plenty,
	bool *hurried)
{
	uint64_t work = 0;

	*hurried = false;
	return bound_all(ctx, p, &(struct bounding){enough, plenty, 1, &work, hurried});
}

double ap_partition_bound(struct ap_ctx *ctx, const struct ap_partition *p)
{
	uint64_t work = 0;

	return ap_partition_bound_to(ctx, p, INFINITY, 1, &work);
}
