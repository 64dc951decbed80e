/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elim/memory_limit.h"
#include "problem/problem.h"
#include "search/compact.h"
#include "table/table_part.h"

#define MOST_SOLVES 48
#define LEAST_PART 32 /* of the budget: less is not enough for another solve */
#define LEAN_WORK (UINT64_C(1) << 27) /* some tenths of a second */

/*
 * An interval of sizes [size[lo], size[hi]] that the largest temporary may have. Its relaxation
 * forbids candidates above size[hi] but charges only size[lo]; a choice of the relaxation that
 * really fits is the interval's optimum, else the interval is cut below the choice's own temporary.
 * With lo == hi it always fits.
 */
struct interval {
	size_t lo, hi;
	double bound;
};

struct fitting {
	struct ap_ctx *ctx;
	const struct ap_table *t;
	const struct ap_engine *engine;
	const struct ap_budget *budget;
	int64_t limit;
	int64_t *size; /* distinct temporaries, ascending */
	size_t nsize;
	const struct ap_domain *domain; /* candidates that an acceptable pick may choose; NULL: all */
	AP_VEC(struct interval) open;
	struct ap_choice best; /* OPTIMAL or FEASIBLE once found */
	enum ap_ended lack; /* of the latest solve that proved nothing */
	const char *by; /* the engine that answered; NULL: none yet */
	const uint32_t *last; /* pick found, whether it fits or not */
	double closed_bound; /* least bound of intervals given up undecided */
	int64_t least_memory;
	uint64_t work;
};

static int compare_sizes(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Largest temporary of a pick. */
static int64_t temporary_bytes(const struct ap_table *t, const uint32_t *pick)
{
	int64_t most = 0;

	for (ap_id i = 0; i < t->problem->n; i++) {
		int64_t bytes = t->cls[t->class_of[i]].temporary[pick[i]];

		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Index of a size, which must occur. */
static size_t index_of(const struct fitting *f, int64_t size)
{
	size_t lo = 0, hi = f->nsize - 1;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->size[mid] < size)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Every choice needs at least the largest of the operators' least temporaries. */
static int64_t least_temporary(const struct ap_table *t)
{
	int64_t most = 0;

	for (uint32_t c = 0; c < t->nclass; c++) {
		int64_t least = t->cls[c].temporary[0];

		for (uint32_t i = 1; i < t->cls[c].k; i++)
			if (t->cls[c].temporary[i] < least)
				least = t->cls[c].temporary[i];
		most = least > most ? least : most;
	}
	return most;
}

/* The candidates with temporaries up to most. */
static struct ap_domain *domain_below(const struct fitting *f, int64_t most)
{
	const struct ap_table *t = f->t;
	struct ap_domain *d = AP_NEW_N(f->ctx->scratch, struct ap_domain, t->problem->n);

	for (uint32_t i = 0; i < t->problem->n; i++) {
		const struct ap_domain *all = &f->domain[i];

		d[i].c = AP_NEW_N(f->ctx->scratch, uint32_t, all->n);
		for (uint32_t c = 0; c < all->n; c++)
			if (t->cls[t->class_of[i]].temporary[all->c[c]] <= most)
				d[i].c[d[i].n++] = all->c[c];
	}
	return d;
}

/* The table's problem without candidates with temporaries above most, under a limit. */
static struct ap_problem restricted(const struct fitting *f, int64_t most, int64_t limit)
{
	const struct ap_table *t = f->t;
	struct ap_problem p;
	double **cost = AP_NEW_N(f->ctx->scratch, double *, t->nclass);

	for (uint32_t c = 0; c < t->nclass; c++) {
		const struct ap_table_class *cls = &t->cls[c];

		cost[c] = AP_NEW_N(f->ctx->scratch, double, cls->k);
		for (uint32_t i = 0; i < cls->k; i++)
			cost[c][i] = cls->temporary[i] <= most ? cls->cost[i] : INFINITY;
	}
	p = ap_table_repriced(f->ctx->scratch, t, cost);
	p.memory_limit = limit;
	return p;
}

static void push(struct fitting *f, struct interval v)
{
	AP_PUSH(f->ctx->arena, f->open, v);
}

/* The open interval with the least bound; of equals the one with larger temporaries, which usually
 * holds a choice that fits. */
static struct interval pop(struct fitting *f)
{
	size_t best = 0;
	struct interval v;

	for (size_t i = 1; i < f->open.n; i++)
		if (f->open.v[i].bound < f->open.v[best].bound ||
			(f->open.v[i].bound == f->open.v[best].bound &&
				f->open.v[i].lo > f->open.v[best].lo))
			best = i;
	v = f->open.v[best];
	f->open.v[best] = f->open.v[--f->open.n];
	return v;
}

static void note_infeasible(struct fitting *f, const struct ap_choice *c, int64_t temporary)
{
	int64_t need;

	if (c->least_memory < 0)
		return;
	need = c->least_memory + temporary;
	if (f->least_memory < 0 || need < f->least_memory)
		f->least_memory = need;
}

/* Is enough of the budget left for a solve? *left: what it may take. */
static bool work_left(const struct fitting *f, struct ap_budget *left)
{
	*left = *f->budget;
	left->work = ap_budget_left(f->budget, f->work);
	if (left->work == 0)
		left->work = 1; /* 0 would be no limit */
	return left->work > f->budget->work / LEAST_PART;
}

/* The relaxation of sizes up to most. */
static void solve(struct fitting *f, int64_t most, int64_t limit, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_problem p;
	struct ap_domain *d;

	if (!f->domain) {
		p = restricted(f, most, limit);
		f->engine->solve(f->ctx, &p, budget, out);
		return;
	}
	p = *f->t->problem;
	p.memory_limit = limit;
	d = domain_below(f, most);
	if (ap_domain_empty(&p, d))
		*out = (struct ap_choice){.outcome = AP_OUT_INFEASIBLE, .least_memory = -1};
	else
		ap_engine_solve_within(f->ctx, f->engine, &p, d, budget, out);
}

/* Who gave several answers: one of them all, or the engine that asked others. */
static const char *answered_by(const char *before, const char *now, const struct ap_engine *engine)
{
	return !now ? before : !before || !strcmp(before, now) ? now : engine->name;
}

static bool fits(const struct fitting *f, const uint32_t *pick)
{
	return ap_problem_memory(f->t->problem, pick) + temporary_bytes(f->t, pick) <= f->limit;
}

static void solve_interval(struct fitting *f, struct interval v)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	int64_t limit = f->limit - f->size[v.lo];
	bool hopeless = limit < 0; /* the temporary alone is too large: finds only the need */
	struct ap_choice c = {0};
	struct ap_budget budget;
	size_t own;
	bool fits;

	work_left(f, &budget);
	budget.start[budget.start[0] ? 1 : 0] = f->last;
	solve(f, f->size[v.hi], hopeless ? 0 : limit, &budget, &c);
	ap_arena_release(f->ctx->scratch, mark);
	f->by = answered_by(f->by, c.engine, f->engine);
	f->work += c.work;
	if (c.ended != AP_ENDED_PROVEN)
		f->lack = c.ended;
	if (hopeless && c.outcome != AP_OUT_INFEASIBLE)
		c.least_memory = 0; /* unknown, without the temporary */
	if (c.outcome == AP_OUT_INFEASIBLE || hopeless) {
		note_infeasible(f, &c, f->size[v.lo]);
		return;
	}
	c.lower_bound = fmax(c.lower_bound, v.bound);
	if (ap_choice_any(&c))
		f->last = c.pick;
	own = ap_choice_any(&c) ? index_of(f, temporary_bytes(f->t, c.pick)) : v.lo;
	fits = ap_choice_any(&c) && c.memory + f->size[own] <= f->limit;
	if (fits && (!ap_choice_any(&f->best) || c.cost < f->best.cost))
		f->best = c;
	if (fits && c.outcome == AP_OUT_OPTIMAL)
		return;
	if (fits || own == v.lo) {
		f->closed_bound = fmin(f->closed_bound, c.lower_bound);
		return;
	}
	push(f, (struct interval){v.lo, own - 1, c.lower_bound});
	push(f, (struct interval){own, v.hi, c.lower_bound});
}

static double open_bound(const struct fitting *f)
{
	double bound = f->closed_bound;

	for (size_t i = 0; i < f->open.n; i++)
		bound = fmin(bound, f->open.v[i].bound);
	return bound;
}

static void conclude(const struct fitting *f, struct ap_choice *out)
{
	double bound = open_bound(f);

	*out = f->best;
	out->engine = f->by ? f->by : f->engine->name;
	out->ended = f->lack;
	out->work = f->work;
	out->least_memory = f->least_memory;
	if (!ap_choice_any(&f->best)) {
		out->outcome = isinf(bound) ? AP_OUT_INFEASIBLE : AP_OUT_LIMIT;
		out->lower_bound = isinf(bound) ? 0 : bound;
		return;
	}
	out->outcome = bound < out->cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
	out->lower_bound = fmin(bound, out->cost);
}

/* Cuts intervals until the best pick is proven, or the budget is spent. */
static void cut_intervals(struct fitting *f)
{
	for (int i = 0; i < MOST_SOLVES && f->open.n > 0; i++) {
		struct ap_budget left;
		struct interval v;

		/* If stopped or spent, one hasty answer is enough. */
		if (i > 0 && (ap_ctx_stopped(f->ctx) || !work_left(f, &left)))
			break;
		v = pop(f);
		if (ap_choice_any(&f->best) && v.bound >= f->best.cost)
			break;
		solve_interval(f, v);
	}
}

/* The best pick of few candidates, as far as the work goes. */
static bool best_of_few(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct fitting *whole = user;
	struct ap_budget budget = *whole->budget;
	struct fitting f = *whole;

	f.ctx = ctx;
	budget.work = max_work;
	budget.gap = AP_ANY_OPTIMUM;
	budget.start[0] = budget.start[1] = NULL;
	f.budget = &budget;
	f.domain = few;
	f.work = 0;
	push(&f, (struct interval){0, f.nsize - 1, -INFINITY});
	cut_intervals(&f);
	*work += f.work;
	if (ap_choice_any(&f.best))
		memcpy(pick, f.best.pick, f.t->problem->n * sizeof *pick);
	return ap_choice_any(&f.best);
}

/*
 * For a large table, drops candidates that no pick as good as a known one can choose, whatever the
 * temporaries; the intervals are searched on the rest. f->last: the best pick known.
 */
static void narrow(struct fitting *f, struct interval *all)
{
	struct ap_problem p = *f->t->problem;
	struct ap_budget budget = *f->budget;
	struct ap_narrow_job job = {.p = &p, .budget = &budget, .least_work = AP_LARGE_WORK,
		.best_of = best_of_few, .user = f};
	struct ap_narrowed out;

	p.memory_limit = f->limit - f->size[all->lo];
	if (p.memory_limit < 0 || !(f->engine->flags & AP_ENGINE_NARROW))
		return;
	budget.start[1] = NULL;
	if (budget.start[0] && !fits(f, budget.start[0]))
		budget.start[0] = NULL;
	ap_narrow(f->ctx, &job, &out);
	f->work += out.work;
	f->domain = out.domain;
	f->last = out.pick;
	if (out.infeasible)
		f->least_memory = out.least_memory + f->size[all->lo];
	all->bound = fmax(all->bound, out.infeasible ? INFINITY : out.bound);
}

/* Takes the pick that narrowing began with if nothing better was found in time. */
static void keep_first(struct fitting *f, const uint32_t *first)
{
	double cost = first ? ap_problem_cost(f->t->problem, first) : INFINITY;

	if (!first || (ap_choice_any(&f->best) && f->best.cost <= cost))
		return;
	f->best = (struct ap_choice){.outcome = AP_OUT_FEASIBLE, .cost = cost,
		.pick = ap_arena_memdup(f->ctx->arena, first, f->t->problem->n * sizeof *first),
		.memory = ap_problem_memory(f->t->problem, first)};
}

/*
 * Best choice whose memory plus largest temporary is at most limit_bytes. Fills *out as an engine
 * would (INFEASIBLE: least_memory is a lower bound of the total, with temporary, that any choice
 * needs). Usually calls the engine O(log of the distinct sizes) times.
 */
static void fit_whole(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, int64_t limit_bytes, struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct fitting f = {.ctx = ctx, .t = t, .engine = engine, .budget = budget,
		.limit = limit_bytes, .closed_bound = INFINITY, .least_memory = -1, .lack = AP_ENDED_WORK,
		.best.outcome = AP_OUT_LIMIT};
	struct interval all = {.bound = ap_bound_plain(ctx, t->problem)};
	const uint32_t *first;
	size_t total = 0, n = 0, m = 0;

	for (uint32_t c = 0; c < f.t->nclass; c++)
		total += f.t->cls[c].k;
	f.size = AP_NEW_N(f.ctx->scratch, int64_t, total + 1);
	for (uint32_t c = 0; c < f.t->nclass; c++)
		for (uint32_t i = 0; i < f.t->cls[c].k; i++)
			f.size[n++] = f.t->cls[c].temporary[i];
	qsort(f.size, n, sizeof *f.size, compare_sizes);
	for (size_t i = 0; i < n; i++)
		if (m == 0 || f.size[i] != f.size[m - 1])
			f.size[m++] = f.size[i];
	f.nsize = m;
	all.lo = index_of(&f, least_temporary(t));
	all.hi = f.nsize - 1;
	narrow(&f, &all);
	first = f.last;
	if (all.bound < INFINITY)
		push(&f, all);
	cut_intervals(&f);
	keep_first(&f, first);
	conclude(&f, out);
	ap_arena_release(ctx->scratch, mark);
}

/* The table's problem with memory instead of cost. */
static struct ap_problem memory_as_cost(struct ap_ctx *ctx, const struct ap_table *t)
{
	struct ap_problem p = *t->problem;
	struct ap_pnode *node = AP_NEW_N(ctx->scratch, struct ap_pnode, p.n);
	struct ap_pmatrix *matrix = AP_NEW_N(ctx->scratch, struct ap_pmatrix, p.nmatrix);
	double **of_class = AP_NEW_N(ctx->scratch, double *, t->nclass);

	for (uint32_t c = 0; c < t->nclass; c++) {
		of_class[c] = AP_NEW_N(ctx->scratch, double, t->cls[c].k);
		for (uint32_t i = 0; i < t->cls[c].k; i++)
			of_class[c][i] = (double)t->cls[c].memory[i];
	}
	for (uint32_t i = 0; i < p.n; i++)
		node[i] = (struct ap_pnode){.name = p.node[i].name, .k = p.node[i].k,
			.cost = of_class[t->class_of[i]]};
	for (uint32_t m = 0; m < p.nmatrix; m++) {
		size_t cells = (size_t)p.matrix[m].rows * p.matrix[m].cols;
		double *cost = AP_NEW_N(ctx->scratch, double, cells);

		for (size_t i = 0; i < cells; i++)
			cost[i] = isinf(p.matrix[m].cost[i]) ? INFINITY
				: p.matrix[m].memory ? (double)p.matrix[m].memory[i] : 0;
		matrix[m] = (struct ap_pmatrix){.rows = p.matrix[m].rows, .cols = p.matrix[m].cols,
			.cost = cost};
	}
	p.node = node;
	p.matrix = matrix;
	p.quantum = 1;
	return p;
}

/* A lower bound of what any choice needs; -1: there is no choice. */
static int64_t least_bytes(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, uint64_t *work)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_problem p = memory_as_cost(ctx, t);
	struct ap_choice c = {0};

	engine->solve(ctx, &p, budget, &c);
	ap_arena_release(ctx->scratch, mark);
	*work += c.work;
	return c.outcome == AP_OUT_INFEASIBLE ? -1 : (int64_t)c.lower_bound + least_temporary(t);
}

int64_t ap_fit_least_bytes(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, uint64_t *work)
{
	struct ap_budget own = *budget;
	struct ap_table_part part;

	own.start[0] = own.start[1] = NULL;
	own.gap = AP_ANY_OPTIMUM;
	if (t->machine->nstage == 1)
		return least_bytes(ctx, t, engine, &own, work);
	ap_table_part_make(ctx, t, t->least_stage, NULL, &part);
	return least_bytes(ctx, &part.table, engine, &own, work);
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

bool ap_fit_lean(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	int64_t limit_bytes, struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_ctx unhurried = *ctx;
	struct ap_budget budget = {.work = LEAN_WORK};
	struct ap_problem p = memory_as_cost(ctx, t);
	struct ap_choice c = {0};
	double bound = out->lower_bound, cost;

	unhurried.stop = NULL;
	engine->solve(&unhurried, &p, &budget, &c);
	ap_arena_release(ctx->scratch, mark);
	if (!ap_choice_any(&c) || ap_fit_need_bytes(ctx, t, c.pick) > limit_bytes)
		return false;
	cost = ap_problem_cost(t->problem, c.pick);
	if (ap_choice_any(out) && out->cost <= cost)
		return true;
	c.work += out->work;
	*out = c;
	out->outcome = AP_OUT_FEASIBLE;
	out->cost = cost;
	out->memory = ap_problem_memory(t->problem, c.pick);
	out->lower_bound = bound;
	return true;
}

#define MOST_TRIES 64 /* strategies that stages have to agree on */

struct staging {
	struct ap_ctx *ctx;
	const struct ap_table *t;
	const struct ap_engine *engine;
	const struct ap_budget *budget;
	int64_t limit;
	enum ap_ended lack; /* as above */
	const char *by; /* as above */
	uint32_t *pick; /* [nodes] */
	double bound;
	uint64_t work;
};

static uint32_t stages(const struct staging *x)
{
	return x->t->machine->nstage;
}

static bool is_spent(const struct staging *x)
{
	return ap_ctx_stopped(x->ctx) || ap_budget_left(x->budget, x->work) == 0;
}

/* Solves one stage within a limit, with its neighbours as in joined. start: a pick of all stages,
 * or NULL. A choice is copied to x->pick. */
static void solve_stage(struct staging *x, uint32_t s, const uint32_t *joined, const uint32_t *start,
	int64_t limit, struct ap_choice *c)
{
	struct ap_budget budget = *x->budget;
	uint32_t n = stages(x) - s; /* solves that share what is left of the budget */
	struct ap_table_part part;

	budget.start[0] = budget.start[1] = NULL;
	if (budget.work > 0)
		budget.work = budget.work > x->work + n ? (budget.work - x->work) / n : 1;
	ap_table_part_make(x->ctx, x->t, (int32_t)s, joined, &part);
	if (start) {
		uint32_t *pick = AP_NEW_N(x->ctx->arena, uint32_t, part.table.problem->n);

		for (uint32_t i = 0; i < part.ninside; i++)
			pick[i] = start[part.node[i]];
		budget.start[0] = pick;
	}
	fit_whole(x->ctx, &part.table, x->engine, &budget, limit, c);
	x->by = answered_by(x->by, c->engine, x->engine);
	x->lack = c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_INFEASIBLE ? x->lack : c->ended;
	x->work += c->work;
	for (uint32_t i = 0; ap_choice_any(c) && i < part.ninside; i++)
		x->pick[part.node[i]] = c->pick[i];
}

/*
 * Solves every stage on its own, which gives a bound. Returns false, with the outcome in *out, if a
 * stage has no choice that fits, or none was found. After an infeasible stage only the need of the
 * others is found: the largest counts.
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
		all = all && ap_choice_any(&c);
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

/* The first candidate of the tie's other end allowed with the hub's; AP_NONE if none. */
static uint32_t match(const struct tie *t, uint32_t hub)
{
	uint32_t n = t->of_u ? t->matrix->cols : t->matrix->rows;

	for (uint32_t i = 0; i < n; i++)
		if (isfinite(t->matrix->cost[t->of_u ? (size_t)hub * t->matrix->cols + i
				: (size_t)i * t->matrix->cols + hub]))
			return i;
	return AP_NONE;
}

/* Leaves all open but the first hub, with candidate c, and its ties. False: they cannot agree. */
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

/* Solves the stages in turn, each with the ties of those before it; *c: the last choice. */
static bool solve_in_turn(struct staging *x, const struct ties *ties, uint32_t *joined,
	struct ap_choice *c)
{
	const struct ap_node *node = x->t->graph->node;

	for (uint32_t s = 0; s < stages(x); s++) {
		solve_stage(x, s, joined, x->budget->start[0], x->limit, c);
		if (!ap_choice_any(c))
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

struct agreed {
	uint32_t *best; /* NULL: none found */
	double cost;
	bool proven; /* no others exist than those found */
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
 * Solves stages that must agree, with each strategy of the first operator that others are tied to.
 * Further ties follow the first stage that has them, so that only with a single one it is proven
 * that there is no choice. Returns false, with the outcome in *out, if none was found.
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

/* Solves every stage again, with its neighbours as they are. */
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

static void conclude_stages(const struct staging *x, struct ap_choice *out)
{
	double cost = ap_problem_cost(x->t->problem, x->pick);
	int64_t need = ap_fit_need_bytes(x->ctx, x->t, x->pick);

	*out = (struct ap_choice){.outcome = AP_OUT_LIMIT, .ended = x->lack,
		.engine = x->by ? x->by : x->engine->name,
		.lower_bound = x->bound, .least_memory = -1, .work = x->work};
	if (isinf(cost) || need > x->limit)
		return;
	out->outcome = x->bound < cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
	out->lower_bound = fmin(x->bound, cost);
	out->cost = cost;
	out->pick = x->pick;
	out->memory = need;
}

/* The optimum without the limit. Returns true if it is the answer, or there is no choice at all. */
static bool solve_unlimited(struct staging *x, struct ap_choice *out)
{
	x->engine->solve(x->ctx, x->t->problem, x->budget, out);
	x->work += out->work;
	if (out->outcome == AP_OUT_INFEASIBLE)
		return true;
	x->bound = fmax(x->bound, out->lower_bound);
	if (!ap_choice_any(out))
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
		fit_whole(ctx, t, engine, budget, limit_bytes, out);
		return;
	}
	*out = (struct ap_choice){0};
	if (!binds && solve_unlimited(&x, out))
		return;
	x.pick = AP_NEW_N(ctx->arena, uint32_t, t->problem->n);
	if (solve_alone(&x, out) &&
		(isfinite(ap_problem_cost(t->problem, x.pick)) || solve_tied(&x, out))) {
		solve_joined(&x);
		conclude_stages(&x, out);
	}
	out->work = x.work;
}
