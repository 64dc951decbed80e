/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/rival.h"

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "drive/choose.h"
#include "drive/recursive.h"
#include "hybrid/hybrid.h"
#include "rule/deal.h"
#include "shard/space.h"
#include "table/joint.h"

#define LARGE 4096 /* operators: grids of larger networks take too long */

void ap_rivals_init(struct ap_rivals *r, struct ap_ctx *ctx, const struct ap_request *rq)
{
	*r = (struct ap_rivals){.ctx = ctx, .any = true};
	r->sketches = ap_arena_create_like(ctx->arena);
	ap_arena_own(ctx->arena, r->sketches);
	ap_rivals_maker(r, rq);
}

void ap_rivals_maker(struct ap_rivals *r, const struct ap_request *rq)
{
	r->maker = ap_plan_maker_create(r->ctx, rq->graph, rq->machine, rq->step, rq->capacity_bytes);
}

void ap_rivals_routed(struct ap_rivals *r, const struct ap_rivals *free, const struct ap_request *rq)
{
	*r = (struct ap_rivals){.ctx = free->ctx, .maker = free->maker, .sketches = free->sketches,
		.route = rq->route};
	ap_rivals_completer(r, rq);
}

void ap_rivals_completer(struct ap_rivals *r, const struct ap_request *rq)
{
	r->completer = ap_route_completer(r->ctx, rq->route, rq->graph, rq->machine, rq->step);
}

void ap_rivals_feed(struct ap_rivals *r, const struct ap_rivals *from)
{
	for (; r->fed < from->all.n; r->fed++) {
		struct ap_rival v = from->all.v[r->fed];

		if (v.hybrid)
			continue; /* what it says besides counts no checkpoint holds */
		v.optimal = v.told = false;
		v.wanted = true; /* what the route decides is not asked */
		AP_PUSH(r->ctx->arena, r->all, v);
	}
}

void ap_rivals_end(struct ap_rivals *r)
{
	if (r->completer)
		r->completer->destroy(r->completer);
	r->completer = NULL;
}

static bool fits(const struct ap_plan *p)
{
	return p->prediction.memory.total <= p->capacity_bytes;
}

/* Does the search choose this operator's cut? */
static bool is_asked(const struct ap_rivals *r, const struct ap_plan *p, ap_id node)
{
	if (r->fixed && r->fixed[node])
		return false;
	return !r->route || p->op[node].in_checkpoint;
}

/* Do the settings of the search allow the plan? */
static bool is_wanted(const struct ap_rivals *r, const struct ap_plan *p)
{
	if (r->any)
		return true;
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (is_asked(r, p, i) && !ap_space_wanted(p->op[i].place.bound,
			p->op[i].place.count, p->op[i].place.ndev, p->step))
			return false;
	for (uint32_t i = 0; p->step->follow && i < p->nmove; i++) {
		ap_id from = p->move[i].from;

		if (from != AP_NONE && p->move[i].nstep > 0 && is_asked(r, p, from) &&
			ap_joint_leads(&p->graph->node[from].bound))
			return false;
	}
	return true;
}

static bool may_be_taken(const struct ap_rivals *r, const struct ap_plan *p)
{
	return fits(p) && is_wanted(r, p);
}

static bool is_faster(const struct ap_plan *a, const struct ap_plan *b)
{
	return a->prediction.step_time_s < b->prediction.step_time_s;
}

void ap_rival_absent(struct ap_rivals *r, const char *name, const char *why)
{
	AP_PUSH(r->ctx->arena, r->baseline, ((struct ap_baseline){.name = name, .why_not = why}));
}

static struct ap_rival figures_of(const struct ap_rivals *r, const struct ap_plan *p)
{
	return (struct ap_rival){.step_time_s = p->prediction.step_time_s, .bubble_s = p->prediction.bubble_s,
		.objective_s = p->search.objective_s, .memory_bytes = p->prediction.memory.total,
		.fits = fits(p), .wanted = is_wanted(r, p)};
}

static struct ap_rival *add(struct ap_rivals *r, struct ap_rival v)
{
	AP_PUSH(r->ctx->arena, r->all, v);
	return &r->all.v[r->all.n - 1];
}

struct ap_rival *ap_rival_add(struct ap_rivals *r, const char *name, const int32_t *const *counts)
{
	struct ap_mark mark = ap_arena_mark(r->sketches);
	struct ap_rival v;
	struct ap_plan p;

	ap_ctx_phase(r->ctx, "simulation");
	ap_plan_sketch_in(r->maker, r->sketches, counts, &p);
	v = figures_of(r, &p);
	v.counts = counts;
	ap_arena_release(r->sketches, mark);
	if (name)
		AP_PUSH(r->ctx->arena, r->baseline, ((struct ap_baseline){.name = name, .applicable = true,
			.step_time_s = v.step_time_s, .objective_s = v.objective_s,
			.memory_bytes = v.memory_bytes, .fits = v.fits}));
	return add(r, v);
}

/* The graph that a hybrid deals, and its counts on it; NULL: there is none, or it breaks fixed rows. */
static const int32_t *const *deal(struct ap_ctx *ctx, const struct ap_rivals *r, const struct ap_request *rq,
	const struct ap_hybrid *h, const struct ap_graph **g)
{
	const char *why;
	const int32_t *const *counts = NULL;

	*g = ap_hybrid_deal(ctx, rq->graph, rq->machine->ndev, rq->step, h, &why);
	if (*g)
		counts = ap_hybrid_counts(ctx, *g, rq->machine->ndev, rq->step, h, &why);
	return counts && ap_pins_hold(rq->graph, r->fixed, counts) ? counts : NULL;
}

/* The counts of a hybrid on the request's graph, in the arena, where they ask for the sums that its own
 * deals; NULL: the two differ in more. */
static const int32_t *const *ask(struct ap_arena *arena, const struct ap_graph *g, const struct ap_graph *own,
	const int32_t *const *counts)
{
	const int32_t **asking = AP_NEW_N(arena, const int32_t *, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;
		uint32_t dealt = ap_rule_dealt(&own->node[i].bound, counts[i]) &
			~ap_rule_dealt(b, counts[i]);
		int32_t *row = ap_arena_memdup(arena, counts[i], b->nfactor * sizeof *row);

		if (!ap_rule_same_but_dealt(b, &own->node[i].bound) || (dealt && !b->deal_asked))
			return NULL;
		for (int f = 0; f < b->nfactor; f++)
			if (dealt >> f & 1 && row[f] > 1)
				row[f] = -row[f];
		asking[i] = row;
	}
	return asking;
}

struct ap_rival *ap_rival_add_hybrid(struct ap_rivals *r, const struct ap_request *rq,
	const struct ap_hybrid *h, bool same_too)
{
	struct ap_mark mark = ap_arena_mark(r->sketches);
	struct ap_ctx ctx = *r->ctx;
	struct ap_rival v = {0};
	const struct ap_graph *g;
	const int32_t *const *counts, *const *asking;

	ctx.arena = r->sketches;
	ap_ctx_phase(r->ctx, "simulation");
	counts = deal(&ctx, r, rq, h, &g);
	if (counts && g != rq->graph && (asking = ask(r->ctx->arena, rq->graph, g, counts))) {
		ap_arena_release(r->sketches, mark);
		return ap_rival_add(r, NULL, asking);
	}
	if (counts && (g != rq->graph || same_too)) {
		struct ap_plan p;

		ap_plan_sketch(ap_plan_maker_create(&ctx, g, rq->machine, rq->step, rq->capacity_bytes),
			counts, &p);
		v = figures_of(r, &p);
		v.hybrid = ap_arena_memdup(r->ctx->arena, h, sizeof *h);
	}
	ap_arena_release(r->sketches, mark);
	return v.hybrid ? add(r, v) : NULL;
}

const struct ap_plan *ap_rival_plan(struct ap_rivals *r, const struct ap_request *rq,
	const struct ap_hybrid *h, const int32_t *const *counts)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);
	struct ap_plan_maker *maker = r->maker;
	const struct ap_graph *g;

	if (h) {
		const int32_t *const *own = deal(r->ctx, r, rq, h, &g);

		counts = counts ? counts : own;
		maker = ap_plan_maker_create(r->ctx, g, rq->machine, rq->step, rq->capacity_bytes);
	}
	ap_plan_sketch(maker, counts, plan);
	return plan;
}

const int32_t *const *ap_rival_batch(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed)
{
	const char *why;
	ap_id node;
	const int32_t *const *all = ap_baseline_data_parallel(r->ctx, rq->graph, rq->machine->ndev,
		rq->step, &why);
	const int32_t **counts;

	if (!all)
		return NULL;
	counts = AP_NEW_N(r->ctx->arena, const int32_t *, rq->graph->nnode);
	for (ap_id i = 0; i < rq->graph->nnode; i++)
		counts[i] = fixed && fixed[i] ? fixed[i] : all[i];
	return ap_plan_conflict(r->ctx, rq->graph, rq->machine->ndev, counts, &node) ? NULL : counts;
}

static bool choose(struct ap_ctx *ctx, const struct ap_request *rq, const int32_t *const *fixed,
	const struct ap_table *wider, struct ap_chosen *c)
{
	const struct ap_engine *exact = ap_engine_of_parts();

	if (ap_choose(ctx, rq, exact, fixed, &(struct ap_hints){.wider = wider}, c) != AP_OK)
		return false;
	if (c->choice.outcome == AP_OUT_INFEASIBLE && c->choice.least_memory >= 0 && c->table)
		exact->solve(ctx, c->table->problem, &rq->budget, &c->choice);
	return ap_choice_any(&c->choice);
}

/* The exact engine's completion, within the memory, else without that limit; the recursion's if it
 * is too much work. */
static enum ap_status complete_additive(struct ap_rivals *r, const struct ap_request *asked,
	const int32_t *const *fixed, const int32_t *const **counts)
{
	struct ap_ctx *ctx = r->ctx;
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_request rq = *asked;
	struct ap_recursive recursion;
	struct ap_chosen c = {0};

	rq.budget = (struct ap_budget){.work = AP_DEFAULT_WORK,
		.table_bytes = asked->budget.table_bytes, .no_fold = asked->budget.no_fold};
	if (choose(&quiet, &rq, fixed, r->table, &c)) {
		*counts = ap_chosen_counts(ctx, c.table, c.choice.pick);
		return AP_OK;
	}
	if (c.choice.outcome == AP_OUT_INFEASIBLE && c.choice.least_memory < 0)
		return ap_choose_infeasible(ctx, &rq, &c.choice);
	ap_recursive_plan(ctx, rq.graph, rq.machine, rq.step, fixed,
		&(struct ap_rec_limits){.bytes = ap_choose_sum_bytes(&rq), .insist = true}, &recursion);
	*counts = recursion.counts;
	return recursion.allowed ? AP_OK
		: ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"a limit was hit before the strategy was completed");
}

struct gridding {
	struct ap_rivals *r;
	const struct ap_request *rq;
};

static void add_grid(void *user, const struct ap_hybrid *h, const char *name)
{
	struct gridding *x = user;
	struct ap_rivals *r = x->r;
	struct ap_grid g = {.name = ap_arena_strdup(r->ctx->arena, name), .rare = h->cp > 1,
		.dp = h->dp, .tp = h->tp};

	if (h->tp * h->cp == 1 || r->ngrid == AP_MAX_GRIDS || ap_ctx_stopped(r->ctx))
		return; /* tp=1 is data parallel */
	g.counts = ap_hybrid_counts(r->ctx, x->rq->graph, x->rq->machine->ndev, x->rq->step, h, &g.why);
	if (g.counts || h->cp == 1) /* few networks have sequences */
		r->grid[r->ngrid++] = g;
}

const struct ap_grid *ap_rival_grids(struct ap_rivals *r, const struct ap_request *rq, uint32_t *n)
{
	struct gridding x = {r, rq};

	if (!r->grids_made && rq->graph->nnode <= LARGE)
		ap_hybrid_grids(rq->machine->ndev, add_grid, &x);
	r->grids_made = true;
	*n = r->ngrid;
	return r->grid;
}

/* The plan, or the one of other counts if that is faster. */
static const struct ap_plan *or_of(struct ap_rivals *r, const int32_t *const *counts,
	const struct ap_plan *plan)
{
	struct ap_plan *other;

	if (!counts)
		return plan;
	other = AP_NEW(r->ctx->arena, struct ap_plan);
	ap_plan_sketch(r->maker, counts, other);
	return may_be_taken(r, other) && (!may_be_taken(r, plan) || is_faster(other, plan)) ? other : plan;
}

/* The plan, or if faster, the fixed counts completed by the batch or an expert's grid. */
static const struct ap_plan *or_by_convention(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan *plan)
{
	uint32_t n;
	const struct ap_grid *grid = ap_rival_grids(r, rq, &n);

	plan = or_of(r, ap_rival_batch(r, rq, fixed), plan);
	for (uint32_t i = 0; i < n; i++)
		if (grid[i].counts && ap_pins_hold(rq->graph, fixed, grid[i].counts))
			plan = or_of(r, grid[i].counts, plan);
	return plan;
}

/* Do the fixed rows leave nothing to complete? They stand together: ap_pins_make() has seen to it. */
static bool is_whole(const struct ap_graph *g, const int32_t *const *fixed)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (!fixed || !fixed[i])
			return false;
	return true;
}

enum ap_status ap_rival_complete(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *fixed, const struct ap_plan **out)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);
	const int32_t *const *counts = fixed;
	bool whole = is_whole(rq->graph, fixed);

	if (!whole)
		AP_TRY(complete_additive(r, rq, fixed, &counts));
	ap_ctx_phase(r->ctx, "simulation");
	ap_plan_sketch(r->maker, counts, plan);
	*out = whole ? plan : or_by_convention(r, rq, fixed, plan);
	return AP_OK;
}

/* Counts of the operators that a checkpoint holds and of fixed ones; *open: there are others. */
static const int32_t *const *held_counts(struct ap_rivals *r, const struct ap_graph *g,
	const int32_t *const *counts, const int32_t *const *fixed, bool *open)
{
	const int32_t **held = AP_NEW_N(r->ctx->arena, const int32_t *, g->nnode);

	*open = false;
	for (ap_id i = 0; i < g->nnode; i++) {
		if (fixed && fixed[i])
			held[i] = fixed[i];
		else if (ap_plan_is_held(&g->node[i]))
			held[i] = counts[i];
		*open |= !held[i];
	}
	return held;
}

enum ap_status ap_rival_routed(struct ap_rivals *r, struct ap_ctx *ctx, const int32_t *const *held,
	const struct ap_plan **out)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);
	const int32_t *const *counts;

	AP_TRY(r->completer->complete(r->completer, ctx, held, &counts));
	ap_plan_sketch(r->maker, counts, plan);
	*out = plan;
	return AP_OK;
}

static const struct ap_plan *sketch(struct ap_rivals *r, const int32_t *const *counts)
{
	struct ap_plan *plan = AP_NEW(r->ctx->arena, struct ap_plan);

	ap_plan_sketch(r->maker, counts, plan);
	return plan;
}

const struct ap_plan *ap_rival_told(struct ap_rivals *r, const struct ap_request *rq,
	const int32_t *const *counts, bool optimal)
{
	const struct ap_plan *plan;
	bool open;
	const int32_t *const *held = held_counts(r, rq->graph, counts, r->fixed, &open);

	if (r->route) {
		struct ap_ctx quiet = ap_diag_apart(r->ctx);

		quiet.stop = NULL;
		return ap_rival_routed(r, &quiet, held, &plan) == AP_OK ? plan : NULL;
	}
	if (!open)
		return sketch(r, counts);
	if (optimal)
		return or_by_convention(r, rq, held, sketch(r, counts));
	return ap_rival_complete(r, rq, held, &plan) == AP_OK ? plan : sketch(r, counts);
}

void ap_rival_take(struct ap_rivals *r, const struct ap_plan *p)
{
	if (!may_be_taken(r, p) || (r->best && !is_faster(p, r->best)))
		return;
	r->best = p;
	r->best_told = r->best_optimal = false;
	ap_ctx_progress(r->ctx, p->prediction.step_time_s, 0, -1);
}

/* The fastest rival that was not met yet and could be the best, of equals the first; NULL: none. */
static struct ap_rival *next_best(struct ap_rivals *r)
{
	struct ap_rival *best = NULL;

	for (size_t i = r->met; i < r->all.n; i++) {
		struct ap_rival *v = &r->all.v[i];

		if (!v->told && v->fits && v->wanted && (!best || v->step_time_s < best->step_time_s))
			best = v;
	}
	return best && (!r->best || best->step_time_s < r->best->prediction.step_time_s) ? best : NULL;
}

/* Takes rivals as the route completes them, fastest first, as long as one is faster than the best. */
static void settle_routed(struct ap_rivals *r, const struct ap_request *rq)
{
	struct ap_rival *v;

	while ((!r->best || !ap_ctx_stopped(r->ctx)) && (v = next_best(r))) {
		const struct ap_plan *told = ap_rival_told(r, rq, v->counts, false);

		v->told = true;
		if (told)
			ap_rival_take(r, told);
	}
}

void ap_rivals_settle(struct ap_rivals *r, const struct ap_request *rq)
{
	const struct ap_rival *v = r->route ? NULL : next_best(r);

	if (r->route)
		settle_routed(r, rq);
	if (v) {
		r->best = ap_rival_plan(r, rq, v->hybrid, v->counts);
		r->best_hybrid = v->hybrid && r->best->graph != rq->graph ? v->hybrid : NULL;
		r->best_optimal = v->optimal;
		r->best_told = false;
		ap_ctx_progress(r->ctx, r->best->prediction.step_time_s, 0, -1);
	}
	r->met = r->all.n;
}

void ap_rivals_tell(struct ap_rivals *r, const struct ap_request *rq)
{
	const struct ap_plan *told;

	if (!r->best || r->best_told || r->best_hybrid || r->route || ap_ctx_stopped(r->ctx))
		return;
	told = ap_rival_told(r, rq, ap_plan_counts(r->ctx, r->best), r->best_optimal);
	if (ap_ctx_stopped(r->ctx))
		return;
	if (may_be_taken(r, told) &&
		told->prediction.step_time_s <= r->best->prediction.step_time_s * (1 + AP_RIVAL_TOLD))
		r->best = told;
	r->best_told = true;
}
