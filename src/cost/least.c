/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/least.h"

#include <math.h>

#include "base/arena.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/space.h"

#define MOST_PRICED 1000000 /* number of candidates: about a second */

struct least {
	double s; /* of what is priced; -1 if unknown */
	double launch_s; /* in which the host starts its kernels */
};

struct lower {
	struct ap_ctx *ctx;
	struct ap_pricer *pricer;
	const struct ap_machine *m;
	const struct ap_step *step;
	bool kernels; /* prices are of kernels, without second runs, not of all that a search charges */
	uint64_t priced;
	const struct ap_task *task;
	const uint32_t *class_of;
	struct least *least; /* by class */
};

static struct least price(struct lower *l, const struct ap_task *t, const int32_t *count)
{
	struct ap_placement p;
	struct ap_op_cost cost;

	l->priced++;
	ap_placement_make(t->bound, count, ap_machine_at(l->m, t->block)->ndev, &p);
	ap_op_cost_make(l->pricer, t, &p, &cost);
	return (struct least){l->kernels ? cost.forward_s + cost.backward_s - cost.recompute_s
		: ap_op_cost_total_s(&cost, l->step),
		cost.forward_launch_s + cost.backward_launch_s - cost.recompute_launch_s};
}

static struct least least_of(struct lower *l, const struct ap_task *t)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_ctx local = *l->ctx;
	struct least least = {INFINITY, INFINITY};
	struct ap_space space;

	local.arena = l->ctx->scratch;
	ap_space_make(&local, t->bound, ap_machine_at(l->m, t->block)->ndev, l->step, &space);
	for (uint32_t c = 0; c < space.n; c++) {
		struct least one = price(l, t, &space.count[(size_t)c * space.nfactor]);

		least.s = fmin(least.s, one.s);
		least.launch_s = fmin(least.launch_s, one.launch_s);
	}
	ap_arena_release(l->ctx->scratch, mark);
	return least;
}

/* The least of the task, as of all of its class; 0 after MOST_PRICED. */
static struct least find_least(struct lower *l, ap_id node, const struct ap_task *t)
{
	struct least *of_class = &l->least[l->class_of[node]];

	if (of_class->s < 0)
		*of_class = l->priced < MOST_PRICED ? least_of(l, t) : (struct least){0, 0};
	return *of_class;
}

static struct lower start(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct lower l = {.ctx = ctx, .m = m, .step = step};

	l.pricer = ap_pricer_create(ctx->arena, m, step);
	ap_tasks_make(ctx, g, step, &l.task);
	l.class_of = ap_task_classes(ctx, l.task, g->nnode);
	l.least = AP_NEW_N(ctx->arena, struct least, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		l.least[i].s = -1;
	return l;
}

double ap_plan_lower_bound_s(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed)
{
	struct lower l;
	double sum = 0;

	ap_ctx_phase(ctx, "bounding");
	l = start(ctx, g, m, step);
	for (ap_id i = 0; i < g->nnode && !ap_ctx_stopped(ctx); i++) {
		if (fixed && fixed[i])
			sum += price(&l, &l.task[i], fixed[i]).s;
		else
			sum += find_least(&l, i, &l.task[i]).s;
	}
	return sum;
}

double ap_plan_least_kernels_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct lower l = start(ctx, g, m, step);
	uint32_t nstage = m->nstage > 1 ? m->nstage : 1;
	double *busy = AP_NEW_N(ctx->arena, double, nstage), most = 0;

	l.kernels = true;
	for (ap_id i = 0; i < g->nnode; i++) {
		uint32_t stage = g->node[i].stage > 0 ? (uint32_t)g->node[i].stage : 0;
		double s = find_least(&l, i, &l.task[i]).s;

		if (stage < nstage)
			busy[stage] += s;
	}
	for (uint32_t s = 0; s < nstage; s++)
		most = fmax(most, busy[s]);
	return most;
}

double ap_plan_least_passes_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const uint32_t *times)
{
	struct lower l = start(ctx, g, m, step);
	double kernels_s = 0, launches_s = 0;

	l.kernels = true;
	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_bound even = *l.task[i].bound;
		struct ap_task t = l.task[i];
		struct least least;

		even.even = true;
		t.bound = &even;
		if (t.once)
			continue;
		least = find_least(&l, i, &t);
		kernels_s += times[i] * least.s;
		launches_s += times[i] * least.launch_s;
	}
	return fmax(kernels_s, launches_s);
}

/* Cost when repeated on all devices, divided by their number. */
static double uncut_part_s(struct lower *l, const struct ap_task *t)
{
	int32_t ones[AP_MAX_FACTOR];

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	return price(l, t, ones).s / (double)ap_machine_at(l->m, t->block)->ndev;
}

const double *ap_plan_least_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step)
{
	double *least = AP_NEW_N(ctx->arena, double, g->nnode);
	struct ap_step alone = *step; /* what shares a bucket depends on the cut that these serve to make */
	struct lower l;

	alone.exchange_alone = true;
	l = start(ctx, g, m, &alone);
	for (ap_id i = 0; i < g->nnode; i++) {
		struct least *of_class = &l.least[l.class_of[i]];

		if (of_class->s < 0 && l.priced >= MOST_PRICED)
			of_class->s = uncut_part_s(&l, &l.task[i]);
		least[i] = find_least(&l, i, &l.task[i]).s;
	}
	return least;
}
