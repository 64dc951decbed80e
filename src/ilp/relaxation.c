/* SPDX-License-Identifier: Apache-2.0 */
#include "ilp/relaxation.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "ilp/lp.h"
#include "search/polish.h"

#define PRECISE 0x1p-6 /* costs this much smaller than before deserve a closer look */

enum { POLISH_PASSES = 8, BYTES_PER_CELL = 512, DROPPED_PART = 8 };
enum { STEPS_PER_ROW = 128 }; /* of an iteration, to compare work with other engines */

struct relaxation {
	struct ap_ilp *s;
	struct ap_ilp_sub *sub;
	double most; /* largest cost */
	double unit; /* scale of costs */
	double heft; /* scale of memory, in bytes */
	AP_VEC(double) cost, right, value;
	AP_VEC(bool) loose;
	AP_VEC(int32_t) row, col;
	size_t *first; /* [n] column of each node's first candidate */
	size_t *from; /* [nedge] first row of each edge: rows of u's candidates, then of v's */
	size_t limit; /* row of the memory limit, or SIZE_MAX */
	double *x, *dual;
	double price; /* multiplier of the memory limit, per byte */
};

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

static double largest_cost(const struct ap_problem *p)
{
	double most = 0;

	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t c = 0; c < p->node[i].k; c++)
			if (p->node[i].cost[c] < INFINITY)
				most = fmax(most, fabs(p->node[i].cost[c]));
	for (uint32_t e = 0; e < p->nedge; e++)
		for (size_t i = 0; i < cells(&p->matrix[e]); i++)
			if (p->matrix[e].cost[i] < INFINITY)
				most = fmax(most, fabs(p->matrix[e].cost[i]));
	return most;
}

static double largest_memory(const struct ap_problem *p)
{
	double most = 1;

	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t c = 0; p->node[i].memory && c < p->node[i].k; c++)
			most = fmax(most, fabs((double)p->node[i].memory[c]));
	for (uint32_t e = 0; e < p->nedge; e++)
		for (size_t i = 0; p->matrix[e].memory && i < cells(&p->matrix[e]); i++)
			most = fmax(most, fabs((double)p->matrix[e].memory[i]));
	return most;
}

static double cells_left(const struct ap_problem *p)
{
	double left = 0;

	for (uint32_t i = 0; i < p->n; i++)
		left += p->node[i].k;
	for (uint32_t e = 0; e < p->nedge; e++)
		for (size_t i = 0; i < cells(&p->matrix[e]); i++)
			left += p->matrix[e].cost[i] < INFINITY;
	return left;
}

static void add_cell(struct relaxation *r, size_t row, size_t col, double value)
{
	struct ap_arena *arena = r->s->ctx->scratch;

	if (value == 0)
		return;
	AP_PUSH(arena, r->row, (int)row + 1);
	AP_PUSH(arena, r->col, (int)col + 1);
	AP_PUSH(arena, r->value, value);
}

static size_t add_row(struct relaxation *r, double right, bool loose)
{
	AP_PUSH(r->s->ctx->scratch, r->right, right);
	AP_PUSH(r->s->ctx->scratch, r->loose, loose);
	return r->right.n - 1;
}

static size_t add_col(struct relaxation *r, double cost, const int64_t *memory, size_t at)
{
	AP_PUSH(r->s->ctx->scratch, r->cost, cost / r->unit);
	if (r->limit != SIZE_MAX && memory)
		add_cell(r, r->limit, r->cost.n - 1, (double)memory[at] / r->heft);
	return r->cost.n - 1;
}

static void build(struct relaxation *r, struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	const struct ap_problem *p = &sub->p;
	struct ap_arena *arena = s->ctx->scratch;

	*r = (struct relaxation){.s = s, .sub = sub, .most = largest_cost(p),
		.heft = largest_memory(p), .limit = SIZE_MAX,
		.first = AP_NEW_N(arena, size_t, p->n), .from = AP_NEW_N(arena, size_t, p->nedge)};
	r->unit = r->most > 0 ? r->most : 1;
	AP_PUSH(arena, r->row, 0);
	AP_PUSH(arena, r->col, 0);
	AP_PUSH(arena, r->value, 0);
	if (p->memory_limit != AP_NO_LIMIT)
		r->limit = add_row(r, (double)p->memory_limit / r->heft, true);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct ap_pnode *node = &r->sub->p.node[i];
		size_t row = add_row(r, 1, false);

		r->first[i] = r->cost.n;
		for (uint32_t c = 0; c < node->k; c++)
			add_cell(r, row, add_col(r, node->cost[c], node->memory, c), 1);
	}
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pedge *x = &r->sub->p.edge[e];
		const struct ap_pmatrix *m = &r->sub->p.matrix[x->matrix];

		r->from[e] = r->right.n;
		for (uint32_t a = 0; a < m->rows; a++)
			add_cell(r, add_row(r, 0, false), r->first[x->u] + a, -1);
		for (uint32_t b = 0; b < m->cols; b++)
			add_cell(r, add_row(r, 0, false), r->first[x->v] + b, -1);
		for (size_t i = 0; i < cells(m); i++) {
			if (m->cost[i] < INFINITY) {
				size_t col = add_col(r, m->cost[i], m->memory, i);

				add_cell(r, r->from[e] + i / m->cols, col, 1);
				add_cell(r, r->from[e] + m->rows + i % m->cols, col, 1);
			}
		}
	}
}

/* Relaxations may take up to half of all work. */
static bool too_dear(const struct ap_ilp *s, const struct ap_problem *p)
{
	double rows = p->n;

	for (uint32_t e = 0; e < p->nedge; e++)
		rows += p->node[p->edge[e].u].k + p->node[p->edge[e].v].k;
	return (double)s->relaxing + rows * rows * STEPS_PER_ROW > (double)(s->work - s->relaxing);
}

static enum ap_lp_end solve(struct relaxation *r)
{
	struct ap_ilp *s = r->s;
	struct ap_lp lp = {r->cost.n, r->right.n, r->row.n - 1, r->cost.v, r->right.v, r->loose.v,
		r->row.v, r->col.v, r->value.v};
	struct ap_lp_limits limits = {.bytes = s->budget->table_bytes};
	uint64_t iterations = 0;
	enum ap_lp_end end;

	if (s->budget->work)
		limits.iterations = ap_budget_left(s->budget, s->work) / (lp.nrow * STEPS_PER_ROW) + 1;
	r->x = AP_NEW_N(s->ctx->scratch, double, lp.ncol);
	r->dual = AP_NEW_N(s->ctx->scratch, double, lp.nrow);
	end = ap_lp_solve(s->lp, &lp, &limits, r->x, r->dual, &iterations);
	s->work += (iterations + 1) * lp.nrow * STEPS_PER_ROW;
	s->relaxing += (iterations + 1) * lp.nrow * STEPS_PER_ROW;
	if (r->limit != SIZE_MAX && r->dual[r->limit] < 0)
		r->price = -r->dual[r->limit] * r->unit / r->heft;
	return end;
}

/* A multiplier rounded to grains. */
static double carried(const struct relaxation *r, size_t row)
{
	double v = rint(r->dual[row] * r->unit / r->s->grain) * r->s->grain;

	return isfinite(v) ? v : 0;
}

/* Do all numbers stay exact if the edge's multipliers are moved? */
static bool movable(const struct relaxation *r, uint32_t e)
{
	const struct ap_problem *p = &r->sub->p;
	const struct ap_pedge *x = &p->edge[e];
	const struct ap_pmatrix *m = &p->matrix[x->matrix];

	for (uint32_t a = 0; a < m->rows + m->cols; a++) {
		double to = a < m->rows ? p->node[x->u].cost[a] : p->node[x->v].cost[a - m->rows];

		if (!ap_ilp_exact(r->s, 4 * carried(r, r->from[e] + a)) ||
			!ap_ilp_exact(r->s, to + carried(r, r->from[e] + a)))
			return false;
	}
	for (size_t i = 0; i < cells(m); i++)
		if (m->cost[i] < INFINITY && !ap_ilp_exact(r->s, 2 * m->cost[i]))
			return false;
	return true;
}

/* Moves costs by the multipliers, in place. */
static void move_costs(const struct relaxation *r)
{
	for (uint32_t e = 0; e < r->sub->p.nedge; e++) {
		const struct ap_problem *p = &r->sub->p;
		const struct ap_pedge *x = &p->edge[e];
		const struct ap_pmatrix *m = &p->matrix[x->matrix];
		double *pair = (double *)m->cost, *to[] = {(double *)p->node[x->u].cost,
			(double *)p->node[x->v].cost};

		if (!movable(r, e))
			continue;
		for (uint32_t a = 0; a < m->rows; a++) {
			double by = carried(r, r->from[e] + a);

			to[0][a] += by;
			for (uint32_t b = 0; b < m->cols; b++)
				pair[(size_t)a * m->cols + b] -= by;
		}
		for (uint32_t b = 0; b < m->cols; b++) {
			double by = carried(r, r->from[e] + m->rows + b);

			to[1][b] += by;
			for (uint32_t a = 0; a < m->rows; a++)
				pair[(size_t)a * m->cols + b] -= by;
		}
	}
}

static double least_rented(const struct relaxation *r, const double *cost, const int64_t *memory,
	size_t n)
{
	double least = INFINITY;

	for (size_t i = 0; i < n; i++) {
		double v = ap_ilp_rented(r->s, r->price, cost[i], memory ? memory[i] : 0);

		if (cost[i] < INFINITY && !ap_ilp_exact(r->s, v))
			return -INFINITY;
		least = v < least ? v : least;
	}
	return least;
}

/* A lower bound for the sub-problem; -INFINITY if numbers are too large to tell. */
static double bound_of(const struct relaxation *r)
{
	const struct ap_problem *p = &r->sub->p;
	double sum = r->sub->constant;
	bool exact;

	if (r->limit != SIZE_MAX && r->price > 0)
		sum += ap_ilp_rented(r->s, r->price, 0, -p->memory_limit);
	exact = ap_ilp_exact(r->s, sum);
	for (uint32_t i = 0; i < p->n && exact; i++) {
		sum += least_rented(r, p->node[i].cost, p->node[i].memory, p->node[i].k);
		exact = ap_ilp_exact(r->s, sum) || sum == INFINITY;
	}
	for (uint32_t e = 0; e < p->nedge && exact; e++) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[e].matrix];

		sum += least_rented(r, m->cost, m->memory, cells(m));
		exact = ap_ilp_exact(r->s, sum) || sum == INFINITY;
	}
	return exact ? sum : -INFINITY;
}

/* Forbids candidates that are beaten, given the bound of all; returns how many. */
static size_t drop(const struct relaxation *r, double bound, const double *from, const int64_t *memory,
	size_t n)
{
	double least = least_rented(r, from, memory, n), *cost = (double *)from;
	size_t dropped = 0;

	for (size_t i = 0; i < n; i++) {
		double more = ap_ilp_rented(r->s, r->price, cost[i], memory ? memory[i] : 0) - least;

		if (cost[i] < INFINITY && ap_ilp_beaten(r->s, bound + more)) {
			cost[i] = INFINITY;
			dropped++;
		}
	}
	return dropped;
}

static bool drop_beaten(const struct relaxation *r, double bound)
{
	const struct ap_problem *p = &r->sub->p;
	size_t dropped = 0, all = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		dropped += drop(r, bound, p->node[i].cost, p->node[i].memory, p->node[i].k);
		all += p->node[i].k;
	}
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[e].matrix];

		drop(r, bound, m->cost, m->memory, cells(m));
	}
	return dropped * DROPPED_PART > all;
}

/* Tries the likeliest candidate of each node, polished. */
static void try_rounded(struct relaxation *r)
{
	const struct ap_problem *p = &r->sub->p;
	uint32_t *pick = AP_NEW_N(r->s->ctx->scratch, uint32_t, p->n);

	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t c = 1; c < p->node[i].k; c++)
			if (r->x[r->first[i] + c] > r->x[r->first[i] + pick[i]])
				pick[i] = c;
	ap_ilp_try(r->s, r->sub, pick);
	ap_polish(r->s->ctx, p, POLISH_PASSES, pick);
	ap_ilp_try(r->s, r->sub, pick);
}

/* The least decided node and its likeliest candidate. */
static void choose_branch(const struct relaxation *r, uint32_t *node, uint32_t *candidate)
{
	const struct ap_problem *p = &r->sub->p;
	double least = INFINITY;

	for (uint32_t i = 0; i < p->n; i++) {
		const double *x = &r->x[r->first[i]];
		uint32_t best = 0;

		for (uint32_t c = 1; c < p->node[i].k; c++)
			if (x[c] > x[best])
				best = c;
		if (x[best] < least) {
			least = x[best];
			*node = i;
			*candidate = best;
		}
	}
}

/* Does a relaxation with memory in place of cost prove that no pick fits the limit? */
static bool too_heavy(struct ap_ilp *s, const struct ap_ilp_sub *sub)
{
	struct ap_ilp_sub heavy = {.p = ap_ilp_memory(s->ctx->scratch, &sub->p)};
	struct ap_ilp bytes = *s;
	struct relaxation r;

	bytes.grain = 1;
	build(&r, &bytes, &heavy);
	solve(&r);
	s->work = bytes.work;
	s->relaxing = bytes.relaxing;
	move_costs(&r);
	return bound_of(&r) > (double)sub->p.memory_limit;
}

enum ap_ilp_told ap_ilp_relax(struct ap_ilp *s, struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate)
{
	struct relaxation r;
	enum ap_lp_end end;
	double bound, q = s->whole->quantum;
	bool fewer;

	if (too_dear(s, &sub->p) ||
		cells_left(&sub->p) * BYTES_PER_CELL > (double)ap_budget_bytes(s->budget) ||
		!ap_lp_start(s->lp))
		return AP_ILP_TOO_LARGE;
	build(&r, s, sub);
	end = solve(&r);
	if (end == AP_LP_UNANSWERED)
		return AP_ILP_TOO_LARGE;
	if (end == AP_LP_INFEASIBLE && r.limit != SIZE_MAX && too_heavy(s, sub))
		return AP_ILP_CLOSED;
	try_rounded(&r);
	choose_branch(&r, node, candidate);
	move_costs(&r);
	bound = bound_of(&r);
	if (ceil(bound / q) * q > sub->bound)
		sub->bound = ceil(bound / q) * q;
	if (ap_ilp_beaten(s, sub->bound))
		return AP_ILP_CLOSED;
	fewer = drop_beaten(&r, bound);
	return fewer || (end == AP_LP_OPTIMAL && largest_cost(&sub->p) < PRECISE * r.most)
		? AP_ILP_SMALLER : AP_ILP_SAME;
}
