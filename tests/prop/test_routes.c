/* SPDX-License-Identifier: Apache-2.0 */
/* Every route that completes what a checkpoint holds, on random graphs: its rows, its search, its bound. */
#include <math.h>

#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "ckpt/ckpt_pb.h"
#include "cost/conflict.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "rule/op.h"
#include "shard/legal.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 12, DEVICES = 12, TINY = 7, MOST_HELD = 4, MOST_PICKS = 2000 };

/* The property of one case and one route. */
typedef void route_property(struct trial *t, const struct ap_route *r);

static struct { /* of all cases */
	uint32_t completed, refused; /* what checkpoints hold */
	uint32_t none, tried; /* cases: of which no plan can be run, and others */
	uint32_t fastest, least; /* found: as fast as any, as cheap as any */
	double slower; /* the worst of the others, over the fastest */
} tally;

static void each_route(struct trial *t, route_property *property)
{
	const struct ap_route *r;

	for (size_t i = 0; (r = ap_route_at(i)); i++)
		if (r->complete) {
			trial_executor(t, r->executor);
			property(t, r);
		}
}

static bool is_held(const struct ap_node *n)
{
	return n->param != AP_NONE && ap_op_has_strategy(n->bound.row);
}

/* What a checkpoint holds of counts; of these one in so many is left out. NULL: nothing. */
static const int32_t *const *held_of(struct trial *t, const int32_t *const *counts, uint64_t leave_out)
{
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	bool any = false;

	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		if (is_held(&t->f.graph->node[i]) && !(leave_out && random_below(&t->random, leave_out) == 0)) {
			held[i] = counts[i];
			any = true;
		}
	return any ? held : NULL;
}

static struct ap_ctx quiet(struct trial *t)
{
	struct ap_ctx ctx = t->f.ctx;

	ctx.diag = ap_diag_create(ctx.arena, false);
	return ctx;
}

/* NULL where the route stops at what is held; it must say at which operator. */
static const int32_t *const *complete(struct trial *t, const struct ap_route *r,
	const int32_t *const *held)
{
	struct ap_ctx ctx = quiet(t);
	const int32_t *const *counts;
	enum ap_status st = r->complete(&ctx, t->f.graph, t->f.machine, &t->f.step, held, &counts);

	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE, "%s: %s", r->name, ap_status_text(st));
	if (st == AP_OK)
		return counts;
	REQUIRE(t, ap_diag_count(ctx.diag, AP_ERROR) > 0, "%s: nothing is said", r->name);
	REQUIRE(t, !held || strstr(messages(&ctx), "(operator \""), "%s: %s", r->name, messages(&ctx));
	return NULL;
}

static bool same_row(const struct ap_graph *g, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, g->node[i].bound.nfactor * sizeof *a) == 0;
}

/* Rows of b, where there are any, are those of a. */
static void must_hold(struct trial *t, const struct ap_route *r, const char *what, const int32_t *const *a,
	const int32_t *const *b)
{
	for (ap_id i = 0; b && i < t->f.graph->nnode; i++)
		REQUIRE(t, !b[i] || same_row(t->f.graph, i, a[i], b[i]), "%s, %s: %s", r->name, what,
			t->f.graph->node[i].name);
}

static void must_be_plan(struct trial *t, const struct ap_route *r, const int32_t *const *counts)
{
	const char *why;
	ap_id node = 0;

	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_node *n = &t->f.graph->node[i];

		REQUIRE(t, counts[i], "%s: %s is open", r->name, n->name);
		REQUIRE(t, ap_space_legal(&t->f.ctx, &n->bound, counts[i], t->f.machine->ndev, &t->f.step, &why),
			"%s: %s: %s", r->name, n->name, why);
	}
	why = ap_plan_conflict(&t->f.ctx, t->f.graph, t->f.machine->ndev, counts, &node);
	REQUIRE(t, !why, "%s: %s: %s", r->name, t->f.graph->node[node].name, why);
}

/* ---- what is completed ---- */

/* Rows that depend on nothing that is searched do not depend on it. */
static void check_fix(struct trial *t, const struct ap_route *r, const int32_t *const *counts)
{
	struct ap_ctx ctx = quiet(t);
	const int32_t *const *fixed;

	if (!r->fix)
		return;
	REQUIRE(t, r->fix(&ctx, t->f.graph, t->f.machine, &t->f.step, NULL, &fixed) == AP_OK, "%s: %s",
		r->name, messages(&ctx));
	for (ap_id i = 0; fixed && i < t->f.graph->nnode; i++)
		REQUIRE(t, !fixed[i] || !is_held(&t->f.graph->node[i]), "%s fixes %s", r->name,
			t->f.graph->node[i].name);
	must_hold(t, r, "fixed without and with what is held", counts, fixed);
}

static void completes(struct trial *t, const struct ap_route *r)
{
	const int32_t *const *picked = trial_counts(t), *const *held, *const *counts, *const *again;

	if (!picked)
		return;
	held = held_of(t, picked, 0);
	counts = complete(t, r, held);
	tally.completed += counts != NULL;
	tally.refused += !counts;
	if (!counts)
		return;
	t->telling |= t->f.machine->ndev > 1;
	must_hold(t, r, "held", counts, held);
	must_be_plan(t, r, counts);
	check_fix(t, r, counts);
	again = complete(t, r, counts);
	REQUIRE(t, again, "%s: stops at its own plan", r->name);
	must_hold(t, r, "completed again", again, counts);
}

static void completes_each(struct trial *t)
{
	each_route(t, completes);
}

START_TEST(what_is_completed_is_a_plan)
{
	trial_each(300, OPERATORS, DEVICES, completes_each);
	printf("%" PRIu32 " completed, %" PRIu32 " refused\n", tally.completed, tally.refused);
	ck_assert(tally.completed < 100 || 5 * tally.refused < tally.completed);
}
END_TEST

/* Some operators with a parameter are left out. */
static void completes_some(struct trial *t, const struct ap_route *r)
{
	const int32_t *const *picked = trial_counts(t), *const *held, *const *counts;

	held = picked ? held_of(t, picked, 2) : NULL;
	counts = held ? complete(t, r, held) : NULL;
	if (!counts)
		return;
	t->telling |= t->f.machine->ndev > 1;
	must_hold(t, r, "some are held", counts, held);
	must_be_plan(t, r, counts);
}

static void completes_some_each(struct trial *t)
{
	each_route(t, completes_some);
}

START_TEST(what_is_held_in_part_is_completed)
{
	trial_each(300, OPERATORS, DEVICES, completes_some_each);
}
END_TEST

/* ---- what is searched ---- */

static struct ap_request request(struct trial *t, const struct ap_route *r)
{
	return (struct ap_request){.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
		.capacity_bytes = NO_MEMORY_LIMIT, .search_mode = "auto", .route = r, .prune = true};
}

/* False: none is found, which is told. */
static bool search(struct trial *t, const struct ap_route *r, struct ap_plan *out)
{
	struct ap_request rq = request(t, r);
	struct ap_ctx ctx = quiet(t);
	enum ap_status st = ap_drive_search(&ctx, &rq, out, NULL);

	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE || (r && st == AP_LIMIT), "%s", messages(&ctx));
	REQUIRE(t, st == AP_OK || ap_diag_count(ctx.diag, AP_ERROR) > 0, "nothing is said");
	return st == AP_OK;
}

/* Operators that differ from the free optimum are listed, and no others, with what they had there. */
static void check_differ(struct trial *t, const struct ap_plan *p, const struct ap_plan *free)
{
	const struct ap_plan_route *r = p->route;
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const int32_t *count = free->op[i].place.count;

		if (same_row(p->graph, i, p->op[i].place.count, count))
			continue;
		REQUIRE(t, n < r->n && r->differ[n].node == i, "%s: %s is not listed", r->route->name,
			p->graph->node[i].name);
		REQUIRE(t, same_row(p->graph, i, r->differ[n].free_count, count), "%s: what %s would be",
			r->route->name, p->graph->node[i].name);
		n++;
	}
	REQUIRE(t, n == r->n, "%s: %u of %u listed differ", r->route->name, n, r->n);
}

static void check_loss(struct trial *t, const struct ap_plan *p, const struct ap_plan *free)
{
	const struct ap_plan_route *r = p->route;
	double sum = 0;

	for (uint32_t i = 0; i < r->n; i++)
		sum += r->differ[i].operator_s + r->differ[i].moves_s;
	REQUIRE(t, sum == r->loss_s, "%s: %.17g or %.17g", r->route->name, sum, r->loss_s);
	REQUIRE(t, r->loss_s == p->search.objective_s - free->search.objective_s, "%s: %.17g, %.17g and %.17g",
		r->route->name, r->loss_s, p->search.objective_s, free->search.objective_s);
	REQUIRE(t, r->free_objective_s == free->search.objective_s, "%s: %.17g or %.17g", r->route->name,
		r->free_objective_s, free->search.objective_s);
	REQUIRE(t, r->free_step_time_s == free->prediction.step_time_s, "%s: %.17g or %.17g", r->route->name,
		r->free_step_time_s, free->prediction.step_time_s);
}

static void check_bound(struct trial *t, const struct ap_plan *p, const struct ap_plan *free)
{
	const struct ap_search_info *s = &p->search;

	REQUIRE(t, s->objective_s >= s->lower_bound_s, "%.17g below %.17g", s->objective_s, s->lower_bound_s);
	REQUIRE(t, s->objective_s >= free->search.lower_bound_s, "%.17g below %.17g of the free optimum",
		s->objective_s, free->search.lower_bound_s);
	REQUIRE(t, (s->status == AP_PLAN_OPTIMAL) == (s->objective_s == s->lower_bound_s), "status");
}

/* What the checkpoint holds, in one of its forms; NULL where there is none. */
static const int32_t *const *through_checkpoint(struct trial *t, const struct ap_plan *p)
{
	bool json = random_below(&t->random, 2);
	struct ap_ctx ctx = quiet(t);
	struct ap_ckpt written, read;
	const int32_t *const *counts;
	struct ap_str s;

	if (ap_ckpt_check_names(&ctx, t->f.graph, false) != AP_OK)
		return NULL;
	ap_ckpt_of_plan(&t->f.ctx, p, false, &written);
	ap_str_init(&s, t->f.ctx.arena);
	if (json)
		ap_ckpt_write_json(&written, ap_str_take, &s);
	else
		ap_ckpt_write_pb(&t->f.ctx, &written, ap_str_take, &s);
	if (written.nitem == 0)
		return NULL;
	REQUIRE(t, ap_ckpt_read(&t->f.ctx, "s.ckpt", s.s, s.len, json, &read) == AP_OK, "reading");
	REQUIRE(t, ap_ckpt_counts(&t->f.ctx, &read, t->f.graph, t->f.machine->ndev, &t->f.step,
			   &counts) == AP_OK, "matching");
	return counts;
}

/* The checkpoint tells the plan, to the last bit. */
static void check_told(struct trial *t, const struct ap_plan *p)
{
	struct ap_request rq = request(t, p->route->route);
	const int32_t *const *held = through_checkpoint(t, p);
	struct ap_plan again;

	if (!held)
		return;
	REQUIRE(t, ap_drive_evaluate(&t->f.ctx, &rq, held, &again) == AP_OK, "%s", rq.route->name);
	must_hold(t, rq.route, "evaluated again", ap_plan_counts(&t->f.ctx, &again),
		ap_plan_counts(&t->f.ctx, p));
	REQUIRE(t, again.search.objective_s == p->search.objective_s, "%.17g or %.17g",
		again.search.objective_s, p->search.objective_s);
	REQUIRE(t, again.prediction.step_time_s == p->prediction.step_time_s, "%.17g or %.17g",
		again.prediction.step_time_s, p->prediction.step_time_s);
	REQUIRE(t, memcmp(&again.prediction.memory, &p->prediction.memory, sizeof(struct ap_memory)) == 0,
		"memory");
}

static void searched(struct trial *t, const struct ap_route *r)
{
	struct ap_plan free, p;
	bool any = search(t, NULL, &free), found = search(t, r, &p);
	const int32_t *const *counts;

	REQUIRE(t, any || !found, "%s: a plan where there is none", r->name);
	if (!found)
		return;
	REQUIRE(t, p.route && p.route->route == r, "%s: of which route?", r->name);
	t->telling |= p.route->n > 0;
	counts = complete(t, r, held_of(t, ap_plan_counts(&t->f.ctx, &p), 0));
	REQUIRE(t, counts, "%s: stops at what was found for it", r->name);
	must_hold(t, r, "searched", counts, ap_plan_counts(&t->f.ctx, &p));
	check_differ(t, &p, &free);
	check_loss(t, &p, &free);
	check_bound(t, &p, &free);
	check_told(t, &p);
}

static void searched_each(struct trial *t)
{
	each_route(t, searched);
}

START_TEST(what_is_found_is_what_runs)
{
	trial_each(200, OPERATORS, DEVICES, searched_each);
}
END_TEST

/* ---- all plans of a route ---- */

struct all { /* plans of one case */
	uint32_t n;
	double step_time_s, objective_s; /* the least of each */
};

/* The operators of which a checkpoint holds something; false where they have too many strategies. */
static bool list_held(const struct trial *t, ap_id node[MOST_HELD], uint32_t *n)
{
	double picks = 1;

	*n = 0;
	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		if (!is_held(&t->f.graph->node[i]))
			continue;
		picks *= t->space[i].n;
		if (*n == MOST_HELD || picks > MOST_PICKS)
			return false;
		node[(*n)++] = i;
	}
	return *n > 0;
}

static void weigh(struct trial *t, const struct ap_route *r, struct ap_plan_maker *maker,
	const int32_t *const *held, struct all *all)
{
	struct ap_mark mark = ap_arena_mark(t->f.ctx.scratch);
	const int32_t *const *counts;
	struct ap_plan p;
	ap_id node;

	if (!ap_plan_conflict(&t->f.ctx, t->f.graph, t->f.machine->ndev, held, &node) &&
		(counts = complete(t, r, held))) {
		ap_plan_sketch(maker, counts, &p);
		all->n++;
		all->step_time_s = fmin(all->step_time_s, p.prediction.step_time_s);
		all->objective_s = fmin(all->objective_s, p.search.objective_s);
	}
	ap_arena_release(t->f.ctx.scratch, mark);
}

static struct all weigh_all(struct trial *t, const struct ap_route *r, const ap_id *node, uint32_t n)
{
	struct ap_plan_maker *maker = ap_plan_maker_create(&t->f.ctx, t->f.graph, t->f.machine,
		&t->f.step, NO_MEMORY_LIMIT);
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	struct all all = {0, INFINITY, INFINITY};
	uint32_t at[MOST_HELD] = {0}, i;

	do {
		for (i = 0; i < n; i++) {
			const struct ap_space *s = &t->space[node[i]];

			held[node[i]] = s->count + (size_t)at[i] * s->nfactor;
		}
		weigh(t, r, maker, held, &all);
		for (i = 0; i < n && ++at[i] == t->space[node[i]].n; i++)
			at[i] = 0;
	} while (i < n);
	return all;
}

static void count(const struct all *all, const struct ap_plan *p)
{
	double slower = p->prediction.step_time_s / all->step_time_s - 1;

	tally.tried++;
	tally.fastest += slower <= 0;
	tally.least += p->search.objective_s <= all->objective_s;
	tally.slower = fmax(tally.slower, slower);
}

static void compared(struct trial *t, const struct ap_route *r)
{
	ap_id node[MOST_HELD];
	struct all all;
	struct ap_plan p;
	uint32_t n;

	if (!list_held(t, node, &n))
		return;
	all = weigh_all(t, r, node, n);
	t->telling |= all.n > 1;
	tally.none += all.n == 0;
	if (!search(t, r, &p)) {
		REQUIRE(t, all.n == 0, "%s: %u plans that are not found", r->name, all.n);
		return;
	}
	REQUIRE(t, all.objective_s >= p.search.lower_bound_s, "%s: %.17g is below %.17g", r->name,
		all.objective_s, p.search.lower_bound_s);
	REQUIRE(t, p.search.objective_s >= all.objective_s && p.prediction.step_time_s >= all.step_time_s,
		"%s: better than all", r->name);
	REQUIRE(t, p.search.objective_s <= all.objective_s * (1 + p.search.gap + 1e-12), "%s: %.17g, least %.17g",
		r->name, p.search.objective_s, all.objective_s);
	count(&all, &p);
}

static void compared_each(struct trial *t)
{
	each_route(t, compared);
}

START_TEST(bounds_hold_for_all_plans)
{
	trial_each(400, TINY, 4, compared_each);
	printf("%" PRIu32 " cases: in %" PRIu32 " the fastest plan is found, in %" PRIu32
		" the cheapest, the worst is %.3g %% slower; in %" PRIu32 " there is none\n", tally.tried,
		tally.fastest, tally.least, 100 * tally.slower, tally.none);
	ck_assert_uint_ge(10 * tally.fastest, 8 * tally.tried);
}
END_TEST
