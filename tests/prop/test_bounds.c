/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on the simulated step: no plan is faster. Searches find the fastest. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "cost/least.h"
#include "drive/rival.h"
#include "plan/make.h"
#include "plan/path.h"
#include "random_pipe.h"
#include "trial.h"
#include "unit.h"

#define ROUNDING 1e-9 /* of sums in another order */

static const int32_t *const *some_plan(struct trial *t, struct ap_plan_maker *maker, struct ap_plan *out)
{
	const int32_t *const *counts = trial_counts(t);

	if (counts)
		ap_plan_sketch(maker, counts, out);
	return counts;
}

/* How much slower kernels run beside an exchange of gradients, and how long the host takes to start one:
 * trials' kernels take 5 us and more, and the hosts of built-in software longer. */
static void random_slowdown(struct trial *t)
{
	static const double launch_s[] = {0, 3e-6, 6e-6, 12e-6};
	struct ap_software *s = ap_arena_memdup(t->f.ctx.arena, t->f.step.software, sizeof *s);

	s->overlap_slowdown *= (double)(1 + random_below(&t->random, 4));
	if (t->seed % 3 > 0)
		s->launch_s = launch_s[t->seed / 3 % AP_COUNT(launch_s)];
	t->f.step.software = s;
}

/* A path of plans that have the strategies of some operators in common, those of a plan and another. */
static void common_path(struct trial *t, const struct ap_plan *p, const struct ap_path_terms *terms,
	const struct ap_plan *other, struct ap_path *out)
{
	const int32_t *const *a = ap_plan_counts(&t->f.ctx, p), *const *b = ap_plan_counts(&t->f.ctx, other);
	bool *fixed = AP_NEW_N(t->f.ctx.arena, bool, t->f.graph->nnode);

	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		fixed[i] = memcmp(a[i], b[i], t->f.graph->node[i].bound.nfactor * sizeof **a) == 0;
	ap_path_longest(&t->f.ctx, p, terms, fixed, out);
}

static struct {
	uint64_t plans, whole; /* those whose own path is as long as their step */
	uint64_t near; /* those of which kernels or their starts alone take half the step, in the mean stage */
} own;

/* Kernels of all passes, or the host that starts them, take no longer in the mean stage than any plan's step. */
static void hold_passes(struct trial *t, const struct ap_plan *p)
{
	uint32_t nstage = t->f.machine->nstage > 1 ? t->f.machine->nstage : 1;
	uint32_t *once = AP_NEW_N(t->f.ctx.arena, uint32_t, t->f.graph->nnode);
	double least_s;

	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		once[i] = 1;
	least_s = ap_plan_least_passes_s(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, once) / nstage;
	REQUIRE(t, least_s <= p->prediction.step_time_s * (1 + ROUNDING), "passes: %.17g, step %.17g", least_s,
		p->prediction.step_time_s);
	own.near += least_s >= 0.5 * p->prediction.step_time_s;
}

/* A path of one plan takes no longer than the step of any other. */
static void hold_paths(struct trial *t)
{
	struct ap_plan_maker *maker;
	struct ap_path_terms terms;
	struct ap_plan one;
	struct ap_path path;

	maker = ap_plan_maker_create(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, NO_MEMORY_LIMIT);
	if (!some_plan(t, maker, &one))
		return;
	ap_path_terms_make(&t->f.ctx, &one, &terms);
	ap_path_longest(&t->f.ctx, &one, &terms, NULL, &path);
	REQUIRE(t, path.length_s <= one.prediction.step_time_s * (1 + ROUNDING), "its own: %.17g, step %.17g",
		path.length_s, one.prediction.step_time_s);
	hold_passes(t, &one);
	own.plans++;
	own.whole += path.length_s >= one.prediction.step_time_s * (1 - ROUNDING);
	for (int i = 0; i < 8; i++) {
		struct ap_path_terms its;
		struct ap_path other, mixed;
		struct ap_plan p;
		double length_s;

		if (!some_plan(t, maker, &p))
			continue;
		ap_path_terms_make(&t->f.ctx, &p, &its);
		length_s = ap_path_length_s(&path, t->f.graph, &its);
		REQUIRE(t, length_s <= p.prediction.step_time_s * (1 + ROUNDING), "plan %d: %.17g, step %.17g",
			i, length_s, p.prediction.step_time_s);
		t->telling |= length_s > 0.5 * p.prediction.step_time_s && length_s < path.length_s;
		common_path(t, &p, &its, &one, &other);
		length_s = ap_path_length_s(&other, t->f.graph, &terms);
		REQUIRE(t, length_s <= one.prediction.step_time_s * (1 + ROUNDING), "in common: %.17g, step %.17g",
			length_s, one.prediction.step_time_s);
		ap_path_longest(&t->f.ctx, &p, &its, NULL, &other);
		ap_path_mix(&t->f.ctx, (const struct ap_path *[]){&path, &other}, (double[]){0.75, 0.25}, 2,
			t->f.graph, &mixed);
		length_s = ap_path_length_s(&mixed, t->f.graph, &terms);
		REQUIRE(t, length_s <= one.prediction.step_time_s * (1 + ROUNDING), "mixed: %.17g, step %.17g",
			length_s, one.prediction.step_time_s);
		path = mixed;
	}
}

static void paths_are_bounds(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	random_fusion(t);
	random_slowdown(t);
	(void)random_pipe(t);
	hold_paths(t);
}

/* Where what a stage sends is put together of pieces for another number of devices. */
static void paths_of_unequal_stages(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	random_fusion(t);
	random_slowdown(t);
	if (random_pipe_unequal(t))
		hold_paths(t);
}

/* Where a forward and a backward pass run as one, and tokens on their way to experts beside the other. */
static void paths_of_passes_beside(struct trial *t)
{
	trial_experts(t);
	random_recompute(t);
	random_fusion(t);
	random_slowdown(t);
	if (random_pipe_beside(t))
		hold_paths(t);
}

/* A curve that does not fall, of any form: plains, steps, and slopes that grow with the size. */
static struct ap_curve random_curve(struct trial *t, int coll, int64_t ranks, int64_t servers)
{
	struct ap_curve c = {.coll = coll, .ranks = ranks, .servers = servers, .source = ""};
	size_t n = 2 + random_below(&t->random, 6);
	struct ap_curve_point *v = AP_NEW_N(t->f.ctx.arena, struct ap_curve_point, n);
	double bytes = (double)(1 + random_below(&t->random, 4096)), s = 1e-6;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct ap_curve_point){bytes, s};
		bytes *= (double)(2 + random_below(&t->random, 30));
		s *= 1 + (double)random_below(&t->random, 100) / 25;
	}
	ap_curve_set(t->f.ctx.arena, v, n, &c);
	return c;
}

/* Half of the collectives on groups of two to sixteen ranks were measured. */
static void random_curves(struct trial *t)
{
	struct ap_machine *m = ap_arena_memdup(t->f.ctx.arena, t->f.machine, sizeof *m);
	struct ap_chip *chip = ap_arena_memdup(t->f.ctx.arena, m->chip, sizeof *chip);
	struct ap_curve *v = AP_NEW_N(t->f.ctx.arena, struct ap_curve, AP_COLL_SEND * 16);

	for (int coll = 0; coll < AP_COLL_SEND; coll++)
		for (int64_t ranks = 2; ranks <= 16; ranks *= 2)
			for (int64_t servers = 1; servers <= ranks && servers <= 4; servers *= 2)
				if (random_below(&t->random, 2))
					v[chip->ncurve++] = random_curve(t, coll, ranks, servers);
	chip->curve = v;
	m->chip = chip;
	t->f.machine = m;
}

static void paths_of_measured_links(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	random_fusion(t);
	random_slowdown(t);
	random_curves(t);
	(void)random_pipe(t);
	hold_paths(t);
}

#define MOST_COMBINATIONS 20000

static struct {
	uint64_t cases, least, near; /* where the search found the shortest step, or one within 1 % of it */
} found;

/* The shortest step of all plans within a capacity; INFINITY: none fits, or there are too many. */
static double shortest_s(struct trial *t, int64_t capacity)
{
	struct ap_plan_maker *maker = ap_plan_maker_create(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step,
		capacity);
	uint32_t n = t->f.graph->nnode, *at = AP_NEW_N(t->f.ctx.arena, uint32_t, n), i;
	const int32_t **counts = AP_NEW_N(t->f.ctx.arena, const int32_t *, n);
	double best_s = INFINITY;
	uint64_t all = 1;

	for (i = 0; i < n && all <= MOST_COMBINATIONS; i++)
		all *= t->space[i].n;
	if (all > MOST_COMBINATIONS)
		return INFINITY;
	do {
		struct ap_plan p;
		ap_id node;

		for (i = 0; i < n; i++)
			counts[i] = t->space[i].count + (size_t)at[i] * t->space[i].nfactor;
		if (!ap_plan_conflict(&t->f.ctx, t->f.graph, t->f.machine->ndev, counts, &node)) {
			ap_plan_sketch(maker, counts, &p);
			if (p.prediction.memory.total <= capacity)
				best_s = fmin(best_s, p.prediction.step_time_s);
		}
		for (i = 0; i < n && ++at[i] == t->space[i].n; i++)
			at[i] = 0;
	} while (i < n);
	return best_s;
}

static void hold_search(struct trial *t)
{
	int64_t capacity = NO_MEMORY_LIMIT;
	const int32_t *const *counts;
	struct ap_plan p;
	double best_s;

	counts = t->seed % 2 ? trial_counts(t) : NULL;
	if (counts) {
		trial_plan(t, counts, &p);
		capacity = trial_capacity(t, &p);
	}
	best_s = shortest_s(t, capacity);
	REQUIRE(t, ap_plan_least_kernels_s(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step) <= best_s * (1 + ROUNDING),
		"kernels %.17g, fastest %.17g",
		ap_plan_least_kernels_s(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step), best_s);
	if (isinf(best_s) || best_s <= 0 ||
		trial_search(t, capacity, "auto", PRUNED | FOLDED, &p) != AP_OK)
		return;
	t->telling = p.search.step_bound_s > 0.9 * best_s;
	REQUIRE(t, p.search.step_bound_s <= best_s * (1 + ROUNDING), "bound %.17g, fastest %.17g",
		p.search.step_bound_s, best_s);
	REQUIRE(t, p.prediction.step_time_s >= best_s * (1 - ROUNDING), "%.17g, fastest %.17g",
		p.prediction.step_time_s, best_s);
	found.cases++;
	found.least += p.prediction.step_time_s <= best_s * (1 + AP_RIVAL_TOLD);
	found.near += p.prediction.step_time_s <= best_s * 1.01;
}

/* No plan is faster than the bound of a search; the search finds the fastest, or what its checkpoint is
 * completed to, or nearly. */
static void searches_are_bounded(struct trial *t)
{
	random_layers(t);
	random_fusion(t);
	if (t->seed % 3 == 0)
		(void)trial_staged(t, 2, 1 + (uint32_t)(t->seed / 3 % 2));
	hold_search(t);
}

static void searches_of_unequal_stages(struct trial *t)
{
	random_layers(t);
	random_fusion(t);
	if (random_pipe_unequal(t))
		hold_search(t);
}

START_TEST(no_plan_is_faster_than_the_bound)
{
	found.cases = found.least = found.near = 0;
	trial_each(400, 5, 4, searches_are_bounded);
	printf("%" PRIu64 " searches: %" PRIu64 " found the fastest plan, %" PRIu64 " one within 1 %%\n",
		found.cases, found.least, found.near);
	ck_assert(found.cases < 100 || (found.least >= found.cases - found.cases / 100 &&
		found.near >= found.cases - found.cases / 200));
}
END_TEST

START_TEST(no_plan_of_unequal_stages_is_faster_than_the_bound)
{
	found.cases = found.least = found.near = 0;
	trial_each(400, 5, 8, searches_of_unequal_stages);
	printf("%" PRIu64 " searches: %" PRIu64 " found the fastest plan, %" PRIu64 " one within 1 %%\n",
		found.cases, found.least, found.near);
	ck_assert(found.cases < 100 || found.near >= found.cases - found.cases / 50);
}
END_TEST

enum { PINS = 3 };

static struct {
	uint64_t searches, faster; /* with a pin; those that find a faster plan than the one without */
} pinned;

/* Where the cut of one operator is given, no search finds a faster plan than where none is. */
static void pins_gain_nothing(struct trial *t)
{
	struct ap_plan without, with;

	random_fusion(t);
	if (t->seed % 3 == 0)
		(void)trial_staged(t, 2, 1 + (uint32_t)(t->seed / 3 % 2));
	if (trial_search(t, NO_MEMORY_LIMIT, "auto", PRUNED | FOLDED, &without) != AP_OK)
		return;
	for (int i = 0; i < PINS; i++) {
		const int32_t **given = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
		ap_id node = (ap_id)random_below(&t->random, t->f.graph->nnode);
		const struct ap_space *s = &t->space[node];
		struct ap_request rq = {.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
			.capacity_bytes = NO_MEMORY_LIMIT, .search_mode = "auto", .prune = true, .given = given};
		struct ap_ctx quiet = ap_diag_apart(&t->f.ctx); /* others may not agree with it */

		given[node] = s->count + random_below(&t->random, s->n) * s->nfactor;
		if (ap_drive_search(&quiet, &rq, &with, NULL) != AP_OK)
			continue;
		t->telling = true;
		pinned.searches++;
		if (with.prediction.step_time_s >= without.prediction.step_time_s * (1 - AP_RIVAL_TOLD))
			continue;
		pinned.faster++;
		printf("AP_SEED=%" PRIu64 ": %s as given makes a step of %.6g s, without %.6g\n", t->seed,
			t->f.graph->node[node].name, with.prediction.step_time_s,
			without.prediction.step_time_s);
	}
}

START_TEST(a_pin_makes_no_step_shorter)
{
	pinned.searches = pinned.faster = 0;
	trial_each(100, 8, 8, pins_gain_nothing);
	printf("%" PRIu64 " searches with a pin, %" PRIu64 " faster than without\n", pinned.searches,
		pinned.faster);
	ck_assert(pinned.faster <= pinned.searches / 200);
}
END_TEST

/* Of steps in which streams meet behind each layer, most are a path; few would be if no path passed there. */
START_TEST(paths_are_lower_bounds)
{
	own.plans = own.whole = own.near = 0;
	trial_each(2000, 12, 16, paths_are_bounds);
	printf("%" PRIu64 " plans, the steps of %" PRIu64 " are as long as a path, of %" PRIu64
		" not twice as long as kernels of passes\n", own.plans, own.whole, own.near);
	ck_assert(own.plans < 100 || (2 * own.whole > own.plans && own.near > 0));
}
END_TEST

START_TEST(paths_are_lower_bounds_of_passes_beside_each_other)
{
	trial_each(200, 4, 16, paths_of_passes_beside);
}
END_TEST

/* Collectives that take any time that does not fall with their size, in buckets and alone. */
START_TEST(paths_are_lower_bounds_by_measured_links)
{
	trial_each(500, 12, 16, paths_of_measured_links);
}
END_TEST

START_TEST(paths_of_unequal_stages_are_lower_bounds)
{
	trial_each(500, 12, 16, paths_of_unequal_stages);
}
END_TEST
