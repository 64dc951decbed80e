/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "cost/table_part.h"
#include "plan/fit.h"

struct staging {
	struct ap_ctx *ctx;
	const struct ap_table *t;
	const struct ap_engine *engine;
	const struct ap_budget *budget;
	int64_t limit;
	uint32_t *pick; /* [nodes] */
	double bound;
	uint64_t work;
};

static bool found(const struct ap_choice *c)
{
	return c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_FEASIBLE;
}

int64_t ap_fit_need_bytes(struct ap_ctx *ctx, const struct ap_table *t, const uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t nstage = t->machine->nstage;
	int64_t *kept = AP_NEW_N(ctx->scratch, int64_t, nstage), most = 0;
	int64_t *temporary = AP_NEW_N(ctx->scratch, int64_t, nstage);
	const struct ap_problem *p = t->problem;

	for (ap_id i = 0; i < p->n; i++) {
		const struct ap_table_class *cls = &t->cls[t->class_of[i]];
		int32_t s = nstage > 1 ? t->graph->node[i].stage : 0;

		kept[s] += cls->memory[pick[i]];
		if (cls->temporary[pick[i]] > temporary[s])
			temporary[s] = cls->temporary[pick[i]];
	}
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pedge *x = &p->edge[e];
		const struct ap_pmatrix *m = &p->matrix[x->matrix];

		if (m->memory)
			kept[nstage > 1 ? t->graph->node[x->v].stage : 0] +=
				m->memory[(size_t)pick[x->u] * m->cols + pick[x->v]];
	}
	for (uint32_t s = 0; s < nstage; s++)
		most = kept[s] + temporary[s] > most ? kept[s] + temporary[s] : most;
	ap_arena_release(ctx->scratch, mark);
	return most;
}

/* What is left of the budget for each of n solves. */
static struct ap_budget share(const struct staging *x, uint32_t n)
{
	struct ap_budget b = *x->budget;

	b.start[0] = b.start[1] = NULL;
	if (b.work > 0)
		b.work = b.work > x->work + n ? (b.work - x->work) / n : 1;
	return b;
}

static const uint32_t *part_pick(struct staging *x, const struct ap_table_part *part,
	const uint32_t *whole)
{
	uint32_t *pick = AP_NEW_N(x->ctx->arena, uint32_t, part->table.problem->n);

	for (uint32_t i = 0; i < part->ninside; i++)
		pick[i] = whole[part->node[i]];
	return pick;
}

/* One stage within the limit; start: a pick of the whole, may be NULL. */
static void solve_stage(struct staging *x, uint32_t s, const uint32_t *joined, const uint32_t *start,
	struct ap_choice *c, struct ap_table_part *part)
{
	struct ap_budget budget = share(x, x->t->machine->nstage - s);

	ap_table_part_make(x->ctx, x->t, (int32_t)s, joined, part);
	if (start)
		budget.start[0] = part_pick(x, part, start);
	ap_fit(x->ctx, &part->table, x->engine, &budget, x->limit, c);
	x->work += c->work;
}

static void take(struct staging *x, const struct ap_table_part *part, const uint32_t *pick)
{
	for (uint32_t i = 0; i < part->ninside; i++)
		x->pick[part->node[i]] = pick[i];
}

/* Every stage for itself. False: one has no choice that fits, or none was found; out says so. */
static bool solve_alone(struct staging *x, struct ap_choice *out)
{
	double bound = 0;

	for (uint32_t s = 0; s < x->t->machine->nstage; s++) {
		struct ap_table_part part;
		struct ap_choice c;

		solve_stage(x, s, NULL, x->budget->start[0], &c, &part);
		bound += c.lower_bound;
		if (!found(&c)) {
			*out = c;
			out->pick = NULL;
			out->lower_bound = x->bound;
			return false;
		}
		take(x, &part, c.pick);
	}
	x->bound = fmax(x->bound, bound);
	return true;
}

/* Every stage once more, its neighbours as they are. */
static void solve_joined(struct staging *x)
{
	double cost = ap_problem_cost(x->t->problem, x->pick);
	uint32_t *before = AP_NEW_N(x->ctx->arena, uint32_t, x->t->problem->n);

	for (uint32_t s = 0; s < x->t->machine->nstage; s++) {
		struct ap_table_part part;
		struct ap_choice c;
		double now;

		if (cost <= x->bound * (1 + x->budget->gap) || ap_ctx_stopped(x->ctx))
			return;
		solve_stage(x, s, x->pick, isfinite(cost) ? x->pick : NULL, &c, &part);
		if (!found(&c))
			continue;
		memcpy(before, x->pick, x->t->problem->n * sizeof *before);
		take(x, &part, c.pick);
		now = ap_problem_cost(x->t->problem, x->pick);
		if (now > cost)
			memcpy(x->pick, before, x->t->problem->n * sizeof *before);
		else
			cost = now;
	}
}

static void conclude(const struct staging *x, struct ap_choice *out)
{
	double cost = ap_problem_cost(x->t->problem, x->pick);

	*out = (struct ap_choice){.outcome = AP_OUT_LIMIT, .engine = x->engine->name,
		.lower_bound = x->bound, .least_memory = -1, .work = x->work};
	if (isinf(cost))
		return;
	out->outcome = x->bound < cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
	out->lower_bound = fmin(x->bound, cost);
	out->cost = cost;
	out->pick = x->pick;
	out->memory = ap_fit_need_bytes(x->ctx, x->t, x->pick);
}

/* The optimum without the limit. True: it is the answer, or there is none at all. */
static bool solve_unlimited(struct staging *x, struct ap_choice *out)
{
	x->engine->solve(x->ctx, x->t->problem, x->budget, out);
	x->work += out->work;
	if (out->outcome == AP_OUT_INFEASIBLE)
		return true;
	x->bound = fmax(x->bound, out->lower_bound);
	if (!found(out))
		return false;
	out->memory = ap_fit_need_bytes(x->ctx, x->t, out->pick);
	return out->memory <= x->limit;
}

void ap_fit_staged(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, int64_t limit_bytes, bool binds, struct ap_choice *out)
{
	struct staging x = {.ctx = ctx, .t = t, .engine = engine, .budget = budget,
		.limit = limit_bytes};

	if (t->machine->nstage == 1) {
		ap_fit(ctx, t, engine, budget, limit_bytes, out);
		return;
	}
	*out = (struct ap_choice){0};
	if (!binds && solve_unlimited(&x, out))
		return;
	x.pick = AP_NEW_N(ctx->arena, uint32_t, t->problem->n);
	if (!solve_alone(&x, out)) {
		out->work = x.work;
		return;
	}
	solve_joined(&x);
	conclude(&x, out);
}
