/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/drive.h"

#include <string.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "cost/pins.h"
#include "drive/certify.h"
#include "drive/driving.h"
#include "drive/route_cost.h"
#include "drive/route_improve.h"
#include "drive/route_rivals.h"
#include "drive/verify.h"
#include "table/table.h"

enum ap_status ap_drive_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_problem **out)
{
	const int32_t *const *fixed;
	const struct ap_table *t;
	enum ap_status st;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &fixed));
	st = ap_choose_table(ctx, rq, fixed, false, &t);
	if (st == AP_LIMIT)
		ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"no table can be made within the limits");
	if (st == AP_OK)
		*out = t->problem;
	return st;
}

struct trying {
	struct driving *d;
	enum ap_status (*part)(struct driving *);
	enum ap_status st;
};

static void try_part(void *user)
{
	struct trying *t = user;
	struct ap_rivals *r = &t->d->rivals;

	if (!r->maker)
		ap_rivals_maker(r, t->d->rq);
	if (r->route && !r->completer)
		ap_rivals_route(r, t->d->rq);
	t->st = t->part(t->d);
}

/* What makes and completes plans may have been at work when memory ran out: it is made anew. */
enum ap_status ap_driving_part(struct driving *d, enum ap_status (*part)(struct driving *))
{
	struct driving before = *d;
	struct trying t = {d, part, AP_OK};

	if (ap_attempt(d->ctx, try_part, &t))
		return t.st;
	*d = before;
	if (!d->refused)
		ap_diag_add(d->ctx->diag, AP_WARNING, AP_LIMIT, NULL, "planner-memory",
			"memory ran out in a part of the search, which ended there; see --planner-memory");
	d->refused = true;
	d->rivals.maker = NULL;
	ap_rivals_end(&d->rivals);
	return AP_OK;
}

/* What engine and recursion find of the problem with d->fixed. */
static enum ap_status search(struct driving *d, bool with_baselines)
{
	bool exact = !d->recursion_only && ap_choose_engine(d->rq)->flags & AP_ENGINE_EXACT;

	if (exact || d->recursion_only)
		AP_TRY(ap_driving_part(d, ap_find_by_recursion));
	if (!d->recursion_only)
		AP_TRY(ap_driving_part(d, ap_find_by_engine));
	if (d->recursion_only || (!d->chosen.table && !(d->lower_bound_s > 0)))
		AP_TRY(ap_driving_part(d, ap_find_bound));
	if (with_baselines) {
		AP_TRY(ap_driving_part(d, ap_find_data_parallel));
		AP_TRY(ap_driving_part(d, ap_find_grids));
	}
	AP_TRY(ap_driving_part(d, ap_find_recursion));
	if (!exact)
		AP_TRY(ap_driving_part(d, ap_find_proof));
	return ap_driving_part(d, ap_find_lean);
}
static void state(const struct driving *d, bool stopped, struct ap_search_info *s)
{
	s->mode = ap_driving_mode(d);
	s->lower_bound_s = d->lower_bound_s;
	s->gap = s->lower_bound_s > 0 ? s->objective_s / s->lower_bound_s - 1 : 0;
	s->work = d->work;
	s->complete = !stopped;
	s->status = stopped                            ? AP_PLAN_STOPPED
		: s->objective_s <= s->lower_bound_s ? AP_PLAN_OPTIMAL
						       : AP_PLAN_FEASIBLE;
}

static void mark_fixed(struct ap_ctx *ctx, const int32_t *const *fixed, struct ap_plan *p)
{
	struct ap_plan_op *op;

	if (!fixed)
		return;
	op = ap_arena_memdup(ctx->arena, p->op, p->graph->nnode * sizeof *op);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		op[i].fixed = fixed[i] != NULL;
	p->op = op;
}

static enum ap_status finish(struct driving *d, const struct ap_plan *best, struct ap_plan *out)
{
	ap_ctx_phase(d->ctx, "scheduling");
	*out = *best;
	mark_fixed(d->ctx, d->pinned, out);
	if (d->rq->route)
		out->route = ap_route_compare(d->ctx, d->rq->route, best, d->free ? d->free : best);
	ap_plan_add_params(d->ctx, out);
	out->nbaseline = d->rivals.nbaseline;
	out->baseline = ap_arena_memdup(d->ctx->arena, d->rivals.baseline,
		d->rivals.nbaseline * sizeof *out->baseline);
	out->nsetting = d->rq->nsetting;
	out->setting = d->rq->setting;
	return AP_OK;
}

static bool is_proven(const struct driving *d)
{
	return !d->recursion_only && d->chosen.choice.outcome == AP_OUT_OPTIMAL;
}

/* Of those that were found. */
static enum ap_status take_completed(struct driving *d)
{
	d->rivals.fixed = d->fixed;
	d->rivals.table = d->chosen.table;
	d->rivals.any = false;
	d->best = ap_rival_best(&d->rivals, d->rq, d->fixed, true);
	return AP_OK;
}

static enum ap_status take_at_once(struct driving *d)
{
	d->rivals.fixed = d->fixed;
	d->rivals.any = false;
	d->best = ap_rival_best(&d->rivals, d->rq, d->fixed, false);
	return AP_OK;
}

/* Is it too late for more? What is proven is worth its completion. */
static bool is_stopped(const struct driving *d)
{
	return (ap_ctx_stopped(d->ctx) || d->refused) && (d->rivals.route || !is_proven(d));
}

/* The best plan, in d->best; NULL: none fits. */
static enum ap_status best_of(struct driving *d)
{
	d->best = NULL;
	if (!is_stopped(d) || !ap_ctx_stopped(d->ctx))
		AP_TRY(ap_driving_part(d, take_completed));
	if (d->best)
		return AP_OK;
	return d->rivals.route ? ap_driving_part(d, take_at_once) : take_at_once(d); /* needs no memory */
}

static enum ap_status no_plan(const struct driving *d)
{
	if (d->refused)
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"memory ran out before any plan was found; raise --planner-memory");
	if (d->rivals.route && !is_stopped(d))
		return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "route",
			"no plan that was found fits the memory, or can be run, once %s has completed it",
			d->rq->route->name);
	return ap_diag_add(d->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		is_stopped(d) ? "stopped before any plan was found"
			: "the work limit was hit before any plan was found; raise "
			  "--work-limit or --planner-memory");
}

static enum ap_status fix_route(struct driving *d)
{
	const struct ap_request *rq = d->rq;

	return rq->route->fix(d->ctx, rq->graph, rq->machine, rq->step, d->pinned, &d->fixed);
}

/* What the route fixes is searched no more: what is best with that is found anew, and its bound. */
static enum ap_status search_fixed(struct driving *d)
{
	AP_TRY(ap_driving_part(d, fix_route));
	d->hints = (struct ap_hints){0};
	d->recursion = (struct ap_recursive){0};
	return search(d, false);
}

static enum ap_status find_routed(struct driving *d)
{
	d->work += ap_route_rivals(&d->rivals, d->rq, d->fixed, d->free);
	return AP_OK;
}

/*
 * A route decides some operators by itself: the best plan of all is only what it is compared with. Each
 * plan that was found is taken as the route completes what its checkpoint holds.
 */
static enum ap_status search_route(struct driving *d)
{
	AP_TRY(best_of(d));
	d->free = d->best;
	if (!d->free)
		return no_plan(d);
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	if (d->rq->route->fix)
		AP_TRY(search_fixed(d));
	for (int i = 0; i < d->rivals.n; i++)
		d->rivals.v[i].optimal = false;
	d->rivals.route = d->rq->route;
	d->rivals.fixed = d->fixed;
	return ap_driving_part(d, find_routed);
}

static enum ap_status improve(struct driving *d)
{
	d->best = ap_route_improve(&d->rivals, d->rq, d->fixed, d->best);
	return AP_OK;
}

/* What of a plan is enough to make it again, in the arena that is not the search's. */
static void save(struct driving *d, struct ap_found *f)
{
	const struct ap_graph *g = d->rq->graph;

	for (ap_id i = 0; i < g->nnode; i++)
		memcpy(f->count[i], d->best->op[i].place.count, g->node[i].bound.nfactor * sizeof **f->count);
	f->any = true;
	f->search = d->best->search;
	state(d, is_stopped(d), &f->search);
}

static enum ap_status finish_best(struct driving *d)
{
	AP_TRY(finish(d, d->best, d->out));
	state(d, is_stopped(d), &d->out->search);
	AP_TRY(ap_verify(d->ctx, d->out));
	d->finished = true;
	return AP_OK;
}

static enum ap_status certify(struct driving *d)
{
	return ap_certify(d->ctx, d->rq, &d->chosen);
}

static bool decides(const struct ap_route *route)
{
	return route && route->complete;
}

/* Every plan that was found and data parallel are compared by simulation, the authority on time. */
static enum ap_status take_best(struct driving *d, struct ap_found *found)
{
	AP_TRY(best_of(d));
	if (!d->best && d->refused && d->rivals.route) { /* the caller has room to complete it */
		d->rivals.route = NULL;
		AP_TRY(take_at_once(d));
		if (d->best)
			save(d, found);
		return d->best ? AP_LIMIT : no_plan(d);
	}
	if (!d->best)
		return no_plan(d);
	if (d->rivals.route && d->best->search.objective_s > d->lower_bound_s)
		AP_TRY(ap_driving_part(d, improve));
	save(d, found);
	AP_TRY(ap_driving_part(d, finish_best));
	if (!d->finished)
		return AP_LIMIT; /* the caller has what was found */
	if (!is_stopped(d)) /* last: it may take what is left of the time */
		AP_TRY(ap_driving_part(d, certify));
	d->out->search.certificate = d->chosen.choice.certificate;
	return is_stopped(d) ? AP_STOPPED : AP_OK;
}

static enum ap_status drive(struct driving *d, struct ap_found *found, const struct ap_problem **problem)
{
	AP_TRY(search(d, true));
	if (decides(d->rq->route))
		AP_TRY(search_route(d));
	if (problem && d->chosen.table)
		*problem = d->chosen.table->problem;
	return take_best(d, found);
}

struct drive_job {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	struct ap_found *found;
	struct ap_plan *out;
	const struct ap_problem **problem;
	enum ap_status st;
};

static enum ap_status run_job(struct drive_job *j)
{
	const struct ap_request *rq = j->rq;
	struct driving d = {.ctx = j->ctx, .rq = rq, .out = j->out,
		.recursion_only = strcmp(rq->search_mode, AP_RECURSION) == 0};
	enum ap_status st;

	AP_TRY(ap_pins_make(j->ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, j->ctx, rq);
	st = drive(&d, j->found, j->problem);
	j->found->steps = d.steps;
	ap_rivals_end(&d.rivals);
	return st;
}

static void try_job(void *user)
{
	struct drive_job *j = user;

	j->st = run_job(j);
}

/* With room for the counts of one plan. */
static void found_init(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_found *f)
{
	*f = (struct ap_found){.count = AP_NEW_N(ctx->arena, int32_t *, g->nnode)};
	for (ap_id i = 0; i < g->nnode; i++)
		f->count[i] = AP_NEW_N(ctx->arena, int32_t, g->node[i].bound.nfactor);
}

enum ap_status ap_drive_find(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem)
{
	struct drive_job j = {ctx, rq, found, out, problem, AP_LIMIT};
	bool done;

	found_init(ctx, rq->graph, found);
	done = ap_attempt_apart(ctx, try_job, NULL, &j, &found->arena);
	if (j.st == AP_OK || j.st == AP_STOPPED)
		return j.st;
	if (problem)
		*problem = NULL;
	if (j.st == AP_LIMIT && found->any) {
		found->search.complete = false;
		found->search.status = AP_PLAN_STOPPED;
		AP_TRY(ap_drive_again(ctx, rq, found, out));
		return AP_STOPPED;
	}
	ap_arena_destroy(found->arena);
	found->arena = NULL;
	return done ? j.st : ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
		"memory ran out before any plan was found; raise --planner-memory");
}

enum ap_status ap_drive_search(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_plan *out,
	const struct ap_problem **problem)
{
	struct ap_found found;
	enum ap_status st = ap_drive_find(ctx, rq, &found, out, problem);

	if (found.arena)
		ap_arena_own(ctx->arena, found.arena);
	return st;
}

/* Can a checkpoint tell of it? It is named after a parameter, perhaps a cast one, or a frozen one. */
static bool has_param(const struct ap_graph *g, const struct ap_node *n)
{
	bool any = n->param != AP_NONE;

	for (int i = 0; i < n->bound.nin; i++)
		any |= g->tensor[n->in[i]].kind == AP_TENSOR_PARAM;
	return any && ap_op_has_strategy(n->bound.row);
}

/* Of what is given, what a checkpoint can tell and what the graph itself says. */
static const int32_t *const *told_counts(struct driving *d, const int32_t *const *pinned)
{
	const struct ap_graph *g = d->rq->graph;
	const int32_t **told = AP_NEW_N(d->ctx->arena, const int32_t *, g->nnode);

	for (ap_id i = 0; d->pinned && i < g->nnode; i++)
		if ((pinned && pinned[i]) || has_param(g, &g->node[i]))
			told[i] = d->pinned[i];
	return told;
}

/* What the route makes of the best that is given. */
static enum ap_status evaluate_route(struct driving *d, const int32_t *const *pinned,
	const struct ap_plan **best)
{
	enum ap_status st;

	d->pinned = told_counts(d, pinned);
	ap_rivals_route(&d->rivals, d->rq);
	st = ap_rival_routed(&d->rivals, d->ctx, d->pinned, best);
	ap_rivals_end(&d->rivals);
	return st;
}

enum ap_status ap_drive_evaluate(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *given, struct ap_plan *out)
{
	struct driving d = {.ctx = ctx, .rq = rq};
	const int32_t *const *pinned;
	const struct ap_plan *best;

	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, given, &d.pinned));
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, NULL, &pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	AP_TRY(ap_rival_complete(&d.rivals, rq, d.fixed, &best));
	if (decides(rq->route)) {
		d.free = best;
		AP_TRY(evaluate_route(&d, pinned, &best));
	}
	d.fixed = pinned;
	AP_TRY(ap_find_data_parallel(&d));
	AP_TRY(finish(&d, best, out));
	out->search = (struct ap_search_info){.mode = "given", .status = AP_PLAN_GIVEN,
		.complete = true, .objective_s = best->search.objective_s};
	return ap_verify(ctx, out);
}

/* The plan of counts, as the request's route makes it of what a checkpoint holds of them. */
static enum ap_status plan_again(struct driving *d, const int32_t *const *counts, struct ap_plan *out)
{
	const struct ap_plan *routed;
	struct driving told = *d;

	if (!decides(d->rq->route)) {
		ap_plan_sketch(d->rivals.maker, counts, out);
		return AP_OK;
	}
	told.pinned = counts;
	AP_TRY(evaluate_route(&told, d->pinned, &routed));
	*out = *routed;
	return AP_OK;
}

enum ap_status ap_drive_again(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_found *found,
	struct ap_plan *out)
{
	struct driving d = {.ctx = ctx, .rq = rq, .out = out};
	struct ap_plan *plan = AP_NEW(ctx->arena, struct ap_plan);
	const int32_t *const *counts = (const int32_t *const *)found->count;

	ap_arena_destroy(found->arena);
	found->arena = NULL;
	AP_TRY(ap_pins_make(ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &d.pinned));
	d.fixed = d.pinned;
	ap_rivals_init(&d.rivals, ctx, rq);
	AP_TRY(plan_again(&d, counts, plan));
	if (plan->prediction.memory.total > rq->capacity_bytes) /* once the route has completed it */
		return no_plan(&d);
	AP_TRY(finish(&d, plan, out));
	found->search.objective_s = plan->search.objective_s;
	out->search = found->search;
	out->search.certificate = NULL;
	return ap_verify(ctx, out);
}
