/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/price.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "elim/elim_eval.h"
#include "elim/support.h"
#include "problem/problem.h"
#include "search/polish.h"

#define ROUND 0x1.8p52 /* adding and subtracting it rounds a number below 2^51 */

enum { LEAST_EXPONENT = -900 }; /* of a quantum whose inverse is finite, too */

struct ap_most {
	double cost, memory; /* largest finite magnitudes */
};

static struct ap_most most_of(const double *cost, const int64_t *memory, size_t n)
{
	struct ap_most most = {0, 0};
	for (size_t i = 0; i < n; i++) {
		double v = fabs(cost[i]);
		if (v < INFINITY && v > most.cost)
			most.cost = v;
	}
	for (size_t i = 0; memory && i < n; i++) {
		double v = fabs((double)memory[i]);
		most.memory = v > most.memory ? v : most.memory;
	}
	return most;
}

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

/* Allocates the priced numbers that the plan reads. */
static void open_room(struct ap_ctx *ctx, struct ap_pricing *g)
{
	const struct ap_problem *p = g->p;
	struct ap_pnode *node = ap_arena_memdup(ctx->scratch, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix =
		ap_arena_memdup(ctx->scratch, p->matrix, p->nmatrix * sizeof *matrix);
	for (uint32_t i = 0; i < g->e->ntable; i++) {
		enum ap_etable_kind kind = g->e->table[i].kind;
		ap_id a = g->e->table[i].a;
		if (kind == AP_ET_NODE)
			node[a].cost = ap_arena_alloc_raw(ctx->scratch, node[a].k, sizeof(double));
		else if ((kind == AP_ET_MATRIX || kind == AP_ET_FLIPPED) &&
			matrix[a].cost == p->matrix[a].cost)
			matrix[a].cost = ap_arena_alloc_raw(ctx->scratch, cells(&matrix[a]),
				sizeof(double));
	}
	g->at.p = *p;
	g->at.p.node = node;
	g->at.p.matrix = matrix;
}

void ap_pricing_open(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_problem *p,
	const double **room, struct ap_pricing *out)
{
	struct ap_most *node = AP_NEW_N(ctx->scratch, struct ap_most, p->n);
	struct ap_most *matrix = AP_NEW_N(ctx->scratch, struct ap_most, p->nmatrix);
	*out = (struct ap_pricing){.e = e, .p = p, .value = room, .at.price = -1, .node = node,
		.matrix = matrix};
	for (uint32_t i = 0; i < p->n; i++)
		node[i] = most_of(p->node[i].cost, p->node[i].memory, p->node[i].k);
	for (uint32_t i = 0; i < p->nmatrix; i++)
		matrix[i] = most_of(p->matrix[i].cost, p->matrix[i].memory, cells(&p->matrix[i]));
	open_room(ctx, out);
}

/* An upper bound of all totals at this price, up to rounding of this sum. */
static double total_at(const struct ap_pricing *g, double price)
{
	double sum = 0;
	for (uint32_t i = 0; i < g->p->n; i++)
		sum += g->node[i].cost + price * g->node[i].memory;
	for (uint32_t i = 0; i < g->p->nedge; i++) {
		const struct ap_most *most = &g->matrix[g->p->edge[i].matrix];
		sum += most->cost + price * most->memory;
	}
	return sum;
}

static double down(double v)
{
	double near = v + ROUND - ROUND;
	return near > v ? near - 1 : near;
}

/* Rounds down although the sum itself is rounded: totals are below 2^51 quanta, so each of the two
 * operations is off by at most half a quantum; subtracting one quantum covers both. */
static void price_list(const struct ap_priced *at, const double *cost, const int64_t *memory, size_t n,
	double *out)
{
	double quantum = at->quantum, per_quantum = 1 / quantum, price = at->price;
	if (!memory || price == 0) {
		for (size_t i = 0; i < n; i++)
			out[i] = down(cost[i] * per_quantum) * quantum;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		double extra = price * (double)memory[i];
		double v = down((cost[i] + extra) * per_quantum);
		out[i] = (extra == 0 ? v : v - 1) * quantum;
	}
}

static void fill(const struct ap_pricing *g, const double *cost, const int64_t *memory, size_t n,
	const double *room)
{
	double *out = (double *)room;
	if (g->at.price < 0) {
		for (size_t i = 0; i < n; i++)
			out[i] = cost[i] < INFINITY ? (memory ? (double)memory[i] : 0) : INFINITY;
	} else {
		price_list(&g->at, cost, memory, n, out);
	}
}

static bool evaluate(struct ap_ctx *ctx, struct ap_pricing *g)
{
	const struct ap_problem *from = g->p, *to = &g->at.p;
	for (uint32_t i = 0; i < g->e->ntable; i++) {
		const struct ap_etable *t = &g->e->table[i];
		if (t->kind == AP_ET_NODE)
			fill(g, from->node[t->a].cost, from->node[t->a].memory, t->cells,
				to->node[t->a].cost);
		else if (t->kind == AP_ET_MATRIX || t->kind == AP_ET_FLIPPED)
			fill(g, from->matrix[t->a].cost, from->matrix[t->a].memory, t->cells,
				to->matrix[t->a].cost);
	}
	return ap_elim_eval(ctx, g->e, to, g->value, &g->least);
}

bool ap_pricing_at(struct ap_ctx *ctx, struct ap_pricing *g, double price)
{
	int exponent;
	if (g->at.price == price)
		return true;
	frexp(total_at(g, price), &exponent);
	g->at.price = price;
	g->at.quantum = ldexp(1, exponent > LEAST_EXPONENT ? exponent - 51 : LEAST_EXPONENT - 51);
	if (evaluate(ctx, g))
		return true;
	g->at.price = -1;
	return false;
}

/* Evaluates with memory in place of cost; forbidden entries stay forbidden. */
static bool ap_pricing_memory(struct ap_ctx *ctx, struct ap_pricing *g)
{
	g->at.price = -1;
	return evaluate(ctx, g);
}

/* The least, minus the price of the limit, minus the error of three roundings, rounded up to the
 * next possible cost. */
static double ap_pricing_bound(const struct ap_pricing *g)
{
	double rent = g->at.price * (double)g->p->memory_limit;
	double bound = g->least - rent;
	bound -= g->at.quantum + 0x1p-51 * (fabs(rent) + fabs(bound));
	return ceil(bound / g->p->quantum) * g->p->quantum;
}

double ap_pricing_threshold(const struct ap_pricing *g, double target)
{
	double rent = g->at.price * (double)g->p->memory_limit;
	double sum = target + rent;
	return sum + g->at.quantum + 0x1p-51 * (fabs(rent) + fabs(sum));
}

/* The cost of a pick, updated as nodes change; forbidden entries are counted, not added. */
struct total {
	double cost;
	uint32_t forbidden;
	int64_t memory;
};

struct splicing {
	const struct ap_problem *p;
	const struct ap_incident *at;
	uint32_t *pick;
	struct total now;
};

static void add(struct total *t, double cost, int64_t memory, int sign)
{
	t->memory += sign * memory;
	if (cost < INFINITY)
		t->cost += sign * cost;
	else
		t->forbidden += (uint32_t)sign;
}

static void add_edge(struct splicing *s, const struct ap_pedge *e, int sign)
{
	const struct ap_pmatrix *m = &s->p->matrix[e->matrix];
	size_t cell = (size_t)s->pick[e->u] * m->cols + s->pick[e->v];

	add(&s->now, m->cost[cell], m->memory ? m->memory[cell] : 0, sign);
}

static void add_node(struct splicing *s, uint32_t i, int sign)
{
	const struct ap_pnode *n = &s->p->node[i];

	add(&s->now, n->cost[s->pick[i]], n->memory ? n->memory[s->pick[i]] : 0, sign);
}

/* Adds or subtracts (sign) the node and its edges. */
static void add_around(struct splicing *s, uint32_t i, int sign)
{
	add_node(s, i, sign);
	for (uint32_t e = s->at->first[i]; e < s->at->first[i + 1]; e++)
		add_edge(s, &s->p->edge[s->at->edge[e]], sign);
}

static void start(struct splicing *s, const uint32_t *from)
{
	memcpy(s->pick, from, s->p->n * sizeof *from);
	s->now = (struct total){0};
	for (uint32_t i = 0; i < s->p->n; i++)
		add_node(s, i, 1);
	for (uint32_t e = 0; e < s->p->nedge; e++)
		add_edge(s, &s->p->edge[e], 1);
}

/* Turns b into a node by node; *best, *seam: number of nodes from a in the cheapest pick. */
static bool sweep(struct splicing *s, const uint32_t *a, const uint32_t *b, double *best,
	uint32_t *seam)
{
	bool found = false;

	start(s, b);
	for (uint32_t i = 0;; i++) {
		if (!s->now.forbidden && s->now.memory <= s->p->memory_limit && s->now.cost < *best) {
			*best = s->now.cost;
			*seam = i;
			found = true;
		}
		if (i == s->p->n)
			return found;
		if (a[i] == b[i])
			continue;
		add_around(s, i, -1);
		s->pick[i] = a[i];
		add_around(s, i, 1);
	}
}

static void join(const uint32_t *a, const uint32_t *b, uint32_t seam, uint32_t n, uint32_t *out)
{
	memmove(out, a, seam * sizeof *a);
	memmove(out + seam, b + seam, (n - seam) * sizeof *b);
}

bool ap_splice(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_incident at = ap_incident_make(ctx, p);
	struct splicing s = {p, &at, AP_NEW_N(ctx->scratch, uint32_t, p->n), {0}};
	double best = INFINITY;
	uint32_t seam = 0;
	bool one = sweep(&s, a, b, &best, &seam), other;

	if (one)
		join(a, b, seam, p->n, out);
	other = sweep(&s, b, a, &best, &seam);
	if (other)
		join(b, a, seam, p->n, out);
	ap_arena_release(ctx->scratch, mark);
	return one || other;
}

enum { MAX_PRICES = 64, POLISH_PASSES = 8 };

struct line { /* a pick's cost as a function of the price */
	double cost;
	int64_t memory;
	uint32_t *pick; /* in scratch */
};

struct dual_search {
	struct ap_ctx *ctx;
	struct ap_pricing *g;
	const struct ap_problem *p;
	uint64_t max_work;
	uint32_t *pick, *polished;
	struct ap_dual *out;
};

/* Polishes a pick and keeps it if it fits and is the cheapest so far. */
static void offer(struct dual_search *s, const uint32_t *pick)
{
	memcpy(s->polished, pick, s->p->n * sizeof *pick);
	ap_polish(s->ctx, s->p, POLISH_PASSES, s->polished);
	if (ap_problem_memory(s->p, s->polished) > s->p->memory_limit)
		return;
	double cost = ap_problem_cost(s->p, s->polished);
	if (!(cost < s->out->cost))
		return;
	uint32_t *old = s->out->pick;
	s->out->pick = s->polished;
	s->out->cost = cost;
	s->polished = old ? old : AP_NEW_N(s->ctx->scratch, uint32_t, s->p->n);
}

/* Counts an evaluation; false if no work is left for it. */
static bool spend(struct dual_search *s)
{
	if (s->out->work + s->g->e->work > s->max_work)
		return false;
	s->out->work += s->g->e->work;
	return true;
}

static struct line line_of(struct dual_search *s, const uint32_t *pick)
{
	return (struct line){ap_problem_cost(s->p, pick), ap_problem_memory(s->p, pick),
		ap_arena_memdup(s->ctx->scratch, pick, s->p->n * sizeof *pick)};
}

static bool try_price(struct dual_search *s, double price, struct line *line)
{
	if (!spend(s) || !ap_pricing_at(s->ctx, s->g, price))
		return false;
	double bound = ap_pricing_bound(s->g);
	if (bound > s->out->bound) {
		s->out->bound = bound;
		s->out->price = price;
	}
	ap_elim_pick(s->ctx, s->g->e, s->g->value, s->pick);
	*line = line_of(s, s->pick);
	return true;
}

static bool least_memory(struct dual_search *s, struct line *line)
{
	if (!spend(s) || !ap_pricing_memory(s->ctx, s->g))
		return false;
	s->out->least_memory = (int64_t)s->g->least;
	s->out->infeasible = s->out->least_memory > s->p->memory_limit;
	ap_elim_pick(s->ctx, s->g->e, s->g->value, s->pick);
	*line = line_of(s, s->pick);
	return true;
}

/* over: above the limit; fit: within it. Each new line replaces one of them. */
static bool close_in(struct dual_search *s, struct line over, struct line fit)
{
	for (int i = 0; i < MAX_PRICES && s->out->bound < s->out->cost; i++) {
		double price = (fit.cost - over.cost) / (double)(over.memory - fit.memory);
		if (!(price > 0 && price < INFINITY))
			return true;
		struct line line;
		if (!try_price(s, price, &line))
			return false;
		offer(s, s->pick);
		double here = line.cost + price * (double)line.memory;
		double there = over.cost + price * (double)over.memory;
		if (!(here < there - 0x1p-40 * fabs(there))) {
			if (ap_splice(s->ctx, s->p, over.pick, fit.pick, s->pick))
				offer(s, s->pick);
			return true;
		}
		if (line.memory > s->p->memory_limit)
			over = line;
		else
			fit = line;
	}
	return true;
}

void ap_dual_solve(struct ap_ctx *ctx, struct ap_pricing *g, double least, const uint32_t *pick,
	uint64_t max_work, struct ap_dual *out)
{
	const struct ap_problem *p = g->p;
	struct dual_search s = {ctx, g, p, max_work, .out = out};
	*out = (struct ap_dual){.bound = least, .cost = INFINITY};
	s.pick = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	s.polished = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	out->pick = NULL;
	struct line fit, over = line_of(&s, pick);
	if (!least_memory(&s, &fit)) {
		out->stopped = true;
		return;
	}
	if (out->infeasible)
		return;
	offer(&s, s.pick);
	offer(&s, pick);
	if (fit.memory <= p->memory_limit && over.memory > p->memory_limit)
		out->stopped = !close_in(&s, over, fit);
}

#define ROUNDS 8
#define NEAR 1e-4 /* as a part of the least: how far above it picks contribute candidates */
#define CLOSE 1e-6 /* as a part of the bound: a smaller gain ends the rounds */
#define MAX_TUPLES (UINT64_C(1) << 22)
#define NEAR_BOUND 0x1p-8

struct focus {
	struct ap_ctx *ctx;
	const struct ap_focus_job *job;
	const struct ap_problem *p;
	const struct ap_elim *e;
	bool **used; /* [n][k] candidates in the focus */
	uint32_t *pick;
	struct ap_dual *out;
};

bool ap_focus_near(const struct ap_dual *dual)
{
	return dual->cost - dual->bound <= NEAR_BOUND * fabs(dual->bound);
}

static void use_pick(struct focus *f, const uint32_t *pick)
{
	for (uint32_t i = 0; i < f->p->n; i++)
		f->used[i][pick[i]] = true;
}

static struct ap_domain *domain(struct focus *f)
{
	struct ap_domain *d = AP_NEW_N(f->ctx->scratch, struct ap_domain, f->p->n);

	for (uint32_t i = 0; i < f->p->n; i++) {
		d[i].c = AP_NEW_N(f->ctx->scratch, uint32_t, f->p->node[i].k);
		for (uint32_t c = 0; c < f->p->node[i].k; c++)
			if (f->used[i][c])
				d[i].c[d[i].n++] = c;
	}
	return d;
}

static bool affordable(const struct focus *f, uint64_t work)
{
	return work <= ap_budget_left(f->job->left, f->out->work);
}

static void take(struct focus *f, const uint32_t *pick)
{
	double cost = ap_problem_cost(f->p, pick);

	if (!(cost < f->out->cost))
		return;
	memcpy(f->out->pick, pick, f->p->n * sizeof *pick);
	f->out->cost = cost;
}

/* Finds the least memory of all picks. */
static bool least_of_all(struct focus *f)
{
	if (!affordable(f, f->e->work) || !ap_pricing_memory(f->ctx, f->job->g))
		return false;
	f->out->work += f->e->work;
	ap_elim_pick(f->ctx, f->e, f->job->g->value, f->pick);
	use_pick(f, f->pick);
	f->out->least_memory = (int64_t)f->job->g->least;
	f->out->infeasible = f->out->least_memory > f->p->memory_limit;
	return true;
}

/* Evaluates the whole at a price: gives a bound and more candidates. */
static bool widen(struct focus *f, double price)
{
	struct ap_pricing *g = f->job->g;
	double bound;
	struct ap_mark mark;
	double least;
	const struct ap_support *s;

	if (!affordable(f, f->e->work) || !ap_pricing_at(f->ctx, g, price))
		return false;
	f->out->work += f->e->work;
	ap_elim_pick(f->ctx, f->e, g->value, f->pick);
	use_pick(f, f->pick);
	/* adds the candidates of all picks within the threshold, unless there are too many */
	mark = ap_arena_mark(f->ctx->scratch);
	least = f->job->g->least;
	s = ap_support_make(f->ctx, f->e, f->job->g->value, least, least + NEAR * fabs(least), MAX_TUPLES);
	for (uint32_t i = 0; s && i < f->e->nstep; i++)
		for (size_t t = 0; t < s->step[i].tuple.n; t++)
			f->used[f->e->step[i].node][s->step[i].tuple.v[t].x] = true;
	ap_arena_release(f->ctx->scratch, mark);
	bound = ap_pricing_bound(g);
	if (bound > f->out->bound) {
		f->out->bound = bound;
		f->out->price = price;
	}
	return true;
}

/* Plans the problem of the few candidates; NULL if it leaves no choice. */
static const struct ap_elim *plan_few(struct focus *f, const struct ap_compact *few)
{
	struct ap_elim_options options = {.by_memory = true, .no_share = f->job->left->no_fold,
		.table_bytes = ap_budget_bytes(f->job->left)};
	const struct ap_elim *e = few->p.n ? ap_elim_plan(f->ctx, &few->p, &options) : NULL;

	return e && !e->split && affordable(f, e->work) ? e : NULL;
}

/* Finds the best price among the few, and its bound there. */
static bool price_few(struct focus *f, double *price, double *bound)
{
	const struct ap_compact *few = ap_compact_make(f->ctx, f->p, domain(f));
	const struct ap_elim *e = plan_few(f, few);
	struct ap_pricing g;
	struct ap_dual dual;
	uint32_t *pick;
	double least;

	if (!e)
		return false;
	ap_pricing_open(f->ctx, e, &few->p, ap_elim_room(f->ctx, e), &g);
	pick = AP_NEW_N(f->ctx->scratch, uint32_t, few->p.n);
	f->out->work += e->work;
	if (!ap_elim_eval(f->ctx, e, &few->p, g.value, &least))
		return false;
	ap_elim_pick(f->ctx, e, g.value, pick);
	ap_dual_solve(f->ctx, &g, least, pick, ap_budget_left(f->job->left, f->out->work), &dual);
	f->out->work += dual.work;
	*price = dual.price;
	*bound = dual.bound + few->cost;
	return !dual.stopped && !dual.infeasible;
}

/* Finds the best pick among the few: no proof, but usually the optimum or close to it. */
static void search_few(struct focus *f)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	uint64_t left = ap_budget_left(f->job->left, f->out->work), most = f->e->work;

	if (left < most)
		most = left > 0 ? left : 1;
	if (f->job->best_of(f->ctx, f->job->user, domain(f), most, f->pick, &f->out->work))
		take(f, f->pick);
	ap_arena_release(f->ctx->scratch, mark);
}

/* If no price is known, widens at the one at which the limit's memory costs as much as the time. */
static bool widen_blindly(struct focus *f)
{
	double limit = (double)f->p->memory_limit;

	return limit > 0 && widen(f, fabs(f->out->cost) / limit);
}

/* Ends early if work or time runs out: the best price so far still gives a bound. */
static void focus(struct focus *f)
{
	for (int i = 0; i < ROUNDS && !ap_focus_near(f->out); i++) {
		struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
		double price, bound;
		bool done = price_few(f, &price, &bound);

		ap_arena_release(f->ctx->scratch, mark);
		if (!done || !widen(f, price))
			break;
		search_few(f);
		if (bound - f->out->bound <= CLOSE * fabs(bound))
			break;
	}
}

void ap_focus_solve(struct ap_ctx *ctx, const struct ap_focus_job *job, struct ap_dual *out)
{
	struct focus f = {.ctx = ctx, .job = job, .p = job->g->p, .e = job->g->e, .out = out};

	*out = (struct ap_dual){.bound = job->least, .cost = INFINITY, .least_memory = AP_NO_LIMIT};
	out->pick = AP_NEW_N(ctx->scratch, uint32_t, f.p->n);
	f.used = AP_NEW_N(ctx->scratch, bool *, f.p->n);
	for (uint32_t i = 0; i < f.p->n; i++)
		f.used[i] = AP_NEW_N(ctx->scratch, bool, f.p->node[i].k);
	f.pick = AP_NEW_N(ctx->scratch, uint32_t, f.p->n);
	/* picks known from the start */
	if (f.job->pick)
		use_pick(&f, f.job->pick);
	for (int i = 0; i < 2 && f.job->left->start[i]; i++) {
		use_pick(&f, f.job->left->start[i]);
		if (ap_problem_memory(f.p, f.job->left->start[i]) <= f.p->memory_limit)
			take(&f, f.job->left->start[i]);
	}
	if (!(out->cost < INFINITY) && !least_of_all(&f))
		out->stopped = true;
	else if (!out->infeasible && (job->pick || widen_blindly(&f)))
		focus(&f);
	if (!(out->cost < INFINITY))
		out->pick = NULL;
}
