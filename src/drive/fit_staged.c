/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "drive/fit.h"
#include "table/table.h"
#include "table/table_part.h"

#define MOST_TRIES 64 /* strategies that stages have to agree on */

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

static uint32_t stages(const struct staging *x)
{
	return x->t->machine->nstage;
}

static bool is_spent(const struct staging *x)
{
	return ap_ctx_stopped(x->ctx) || ap_budget_left(x->budget, x->work) == 0;
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

/* One stage within a limit, its neighbours as joined has them. start: a pick of the whole, may be NULL.
 * Where there is a choice, it is the pick's. */
static void solve_stage(struct staging *x, uint32_t s, const uint32_t *joined, const uint32_t *start,
	int64_t limit, struct ap_choice *c)
{
	struct ap_budget budget = share(x, stages(x) - s);
	struct ap_table_part part;

	ap_table_part_make(x->ctx, x->t, (int32_t)s, joined, &part);
	if (start)
		budget.start[0] = part_pick(x, &part, start);
	ap_fit(x->ctx, &part.table, x->engine, &budget, limit, c);
	x->work += c->work;
	for (uint32_t i = 0; found(c) && i < part.ninside; i++)
		x->pick[part.node[i]] = c->pick[i];
}

/*
 * Every stage for itself: a bound of the whole. False: one has no choice that fits, or none was found;
 * out says so. Where one has none, of those that follow only the need is asked for: the largest counts.
 */
static bool solve_alone(struct staging *x, struct ap_choice *out)
{
	double bound = 0;
	bool all = true;

	*out = (struct ap_choice){.outcome = AP_OUT_LIMIT, .engine = x->engine->name};
	for (uint32_t s = 0; s < stages(x); s++) {
		bool hopeless = out->outcome == AP_OUT_INFEASIBLE;
		struct ap_choice c;

		solve_stage(x, s, NULL, x->budget->start[0], hopeless ? 0 : x->limit, &c);
		bound += c.lower_bound;
		all = all && found(&c);
		if (c.outcome != AP_OUT_INFEASIBLE)
			continue;
		if (!hopeless || c.least_memory < 0 ||
			(out->least_memory >= 0 && c.least_memory > out->least_memory))
			out->least_memory = c.least_memory;
		out->outcome = AP_OUT_INFEASIBLE;
	}
	if (out->outcome != AP_OUT_INFEASIBLE)
		x->bound = fmax(x->bound, bound);
	out->lower_bound = x->bound;
	return all;
}

/* An edge between stages that forbids: operators of one checkpoint key. */
struct tie {
	ap_id hub, other;
	const struct ap_pmatrix *matrix;
	bool of_u; /* the hub is the edge's u */
};

struct ties {
	struct tie *v; /* hubs in order of their first ties */
	size_t n, cap;
};

static bool forbids(const struct ap_pmatrix *m)
{
	for (size_t i = 0; i < (size_t)m->rows * m->cols; i++)
		if (isinf(m->cost[i]))
			return true;
	return false;
}

static void find_ties(const struct staging *x, struct ties *out)
{
	const struct ap_problem *p = x->t->problem;
	const struct ap_node *node = x->t->graph->node;

	*out = (struct ties){0};
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pedge *k = &p->edge[e];
		struct tie t = {k->u, k->v, &p->matrix[k->matrix], true};

		if (node[k->u].stage != node[k->v].stage && forbids(t.matrix))
			AP_PUSH(x->ctx->arena, *out, t);
	}
}

/* The first candidate of the tie's other end that goes with the hub's; AP_NONE: there is none. */
static uint32_t match(const struct tie *t, uint32_t hub)
{
	uint32_t n = t->of_u ? t->matrix->cols : t->matrix->rows;

	for (uint32_t i = 0; i < n; i++)
		if (isfinite(t->matrix->cost[t->of_u ? (size_t)hub * t->matrix->cols + i
				: (size_t)i * t->matrix->cols + hub]))
			return i;
	return AP_NONE;
}

/* Everything open but the first hub's ties, which agree with its candidate c. False: they cannot. */
static bool agree_on(const struct staging *x, const struct ties *ties, uint32_t c, uint32_t *joined)
{
	for (ap_id i = 0; i < x->t->problem->n; i++)
		joined[i] = AP_NONE;
	joined[ties->v[0].hub] = c;
	for (size_t i = 0; i < ties->n; i++) {
		if (ties->v[i].hub != ties->v[0].hub)
			continue;
		joined[ties->v[i].other] = match(&ties->v[i], c);
		if (joined[ties->v[i].other] == AP_NONE)
			return false;
	}
	return true;
}

/* The stages one after the other, each with the ties of those before it; *c: the last one's. */
static bool solve_in_turn(struct staging *x, const struct ties *ties, uint32_t *joined,
	struct ap_choice *c)
{
	const struct ap_node *node = x->t->graph->node;

	for (uint32_t s = 0; s < stages(x); s++) {
		solve_stage(x, s, joined, x->budget->start[0], x->limit, c);
		if (!found(c))
			return false;
		for (size_t i = 0; i < ties->n; i++) {
			const struct tie *t = &ties->v[i];

			if (node[t->hub].stage == (int32_t)s)
				joined[t->hub] = x->pick[t->hub];
			if (node[t->other].stage == (int32_t)s)
				joined[t->other] = x->pick[t->other];
		}
	}
	return true;
}

static uint32_t *copy_of(const struct staging *x, const uint32_t *pick)
{
	return ap_arena_memdup(x->ctx->arena, pick, x->t->problem->n * sizeof *pick);
}

static bool one_hub(const struct ties *ties)
{
	for (size_t i = 1; i < ties->n; i++)
		if (ties->v[i].hub != ties->v[0].hub)
			return false;
	return true;
}

/* What is known of picks that agree. */
struct agreed {
	uint32_t *best; /* NULL: none found */
	double cost;
	bool proven; /* there is none but those found */
	int64_t least_memory;
};

static void try_strategy(struct staging *x, const struct ties *ties, uint32_t *joined, struct agreed *a)
{
	struct ap_choice c;
	double cost;

	if (!solve_in_turn(x, ties, joined, &c)) {
		a->proven = a->proven && c.outcome == AP_OUT_INFEASIBLE;
		if (c.least_memory >= 0 &&
			(a->least_memory < 0 || c.least_memory < a->least_memory))
			a->least_memory = c.least_memory;
		return;
	}
	cost = ap_problem_cost(x->t->problem, x->pick);
	if (cost < a->cost) {
		a->best = copy_of(x, x->pick);
		a->cost = cost;
	}
}

/*
 * Stages that have to agree: with each strategy of the first operator that others are tied to. Those of
 * further ones are as the first stage that has them wants them, so that only one proves that there is no
 * choice. False: none was found; out says so.
 */
static bool solve_tied(struct staging *x, struct ap_choice *out)
{
	struct agreed a = {.cost = INFINITY, .least_memory = -1};
	uint32_t *joined = AP_NEW_N(x->ctx->arena, uint32_t, x->t->problem->n);
	uint32_t before = AP_NONE, tries = 0;
	struct ties ties;
	const struct tie *first;

	find_ties(x, &ties);
	assert(ties.n > 0);
	first = &ties.v[0];
	a.proven = one_hub(&ties);
	for (uint32_t c = 0; c < x->t->problem->node[first->hub].k; c++) {
		if (!agree_on(x, &ties, c, joined) || joined[first->other] == before)
			continue;
		before = joined[first->other];
		if (tries++ < MOST_TRIES && !is_spent(x))
			try_strategy(x, &ties, joined, &a);
		else
			a.proven = false;
	}
	out->outcome = a.proven ? AP_OUT_INFEASIBLE : AP_OUT_LIMIT;
	out->least_memory = a.least_memory;
	x->pick = a.best;
	return a.best;
}

/* Every stage once more, its neighbours as they are. */
static void solve_joined(struct staging *x)
{
	double cost = ap_problem_cost(x->t->problem, x->pick);

	for (uint32_t s = 0; s < stages(x); s++) {
		uint32_t *before = copy_of(x, x->pick);
		struct ap_choice c;
		double now;

		if (cost <= x->bound * (1 + x->budget->gap) || is_spent(x))
			return;
		solve_stage(x, s, before, before, x->limit, &c);
		now = ap_problem_cost(x->t->problem, x->pick);
		if (now > cost)
			x->pick = before;
		else
			cost = now;
	}
}

static void conclude(const struct staging *x, struct ap_choice *out)
{
	double cost = ap_problem_cost(x->t->problem, x->pick);
	int64_t need = ap_fit_need_bytes(x->ctx, x->t, x->pick);

	*out = (struct ap_choice){.outcome = AP_OUT_LIMIT, .engine = x->engine->name,
		.lower_bound = x->bound, .least_memory = -1, .work = x->work};
	if (isinf(cost) || need > x->limit)
		return;
	out->outcome = x->bound < cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
	out->lower_bound = fmin(x->bound, cost);
	out->cost = cost;
	out->pick = x->pick;
	out->memory = need;
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
	if (solve_alone(&x, out) &&
		(isfinite(ap_problem_cost(t->problem, x.pick)) || solve_tied(&x, out))) {
		solve_joined(&x);
		conclude(&x, out);
	}
	out->work = x.work;
}
