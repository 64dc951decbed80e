/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises the bound by sweeps over the nodes, forth and back: each takes what its edges from behind can
 * spare and hands what it then has, in equal shares, to those ahead, for the next nodes to take. After
 * each step nothing is negative, and every pick still costs the same; so the constant is a bound, and
 * a candidate that lifts it to the cost of the best pick is out. (The sequential message passing of
 * Kolmogorov's TRW-S, in whole grains.) On a tree that finds the optimum, elsewhere nearly what the
 * linear relaxation would, in a thousandth of the time.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/ilp_parts.h"
#include "search/incident.h"
#include "search/polish.h"

enum { MOST_SWEEPS = 2000, PATIENCE = 8, LITTLE_PART = 512, LEFT_PART = 4, LANES = 8 };
enum { HASTY_PATIENCE = 2, HASTY_PART = 64, POLISH_PASSES = 8 }; /* while looking for the price */

struct ascent {
	struct ap_ilp *s;
	const struct ap_problem *p;
	struct ap_incident at;
	double **cost; /* [n] of nodes */
	bool **out; /* [n] candidates that were left out */
	double **taken[2]; /* [nedge] from rows and columns; -INFINITY: out */
	uint32_t *shares; /* [n] */
	double *least; /* of some candidates */
	double *moved; /* [n] from the node to the constant */
	double constant;
	uint64_t left; /* candidates */
	bool alive; /* a pick may be left, and numbers are exact */
};

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

static bool is_negative(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] < 0)
			return true;
	return false;
}

static bool any_negative(const struct ap_problem *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (is_negative(p->node[i].cost, p->node[i].k))
			return true;
	for (uint32_t m = 0; m < p->nmatrix; m++)
		if (is_negative(p->matrix[m].cost, cells(&p->matrix[m])))
			return true;
	return false;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* The least of v[i] - less[i]. */
static double least_difference(const double *v, const double *less, uint32_t n)
{
	double lane[LANES], least = INFINITY;
	uint32_t i = 0;

	for (uint32_t j = 0; j < LANES; j++)
		lane[j] = INFINITY;
	for (; i + LANES <= n; i += LANES)
		for (uint32_t j = 0; j < LANES; j++)
			lane[j] = smaller(v[i + j] - less[i + j], lane[j]);
	for (; i < n; i++)
		least = smaller(v[i] - less[i], least);
	for (uint32_t j = 0; j < LANES; j++)
		least = smaller(lane[j], least);
	return least;
}

/* What is least in each row (side 0) or column (side 1) of an edge, less what the others took. */
static void find_least(const struct ascent *a, uint32_t e, int side)
{
	const struct ap_pmatrix *m = &a->p->matrix[a->p->edge[e].matrix];
	const double *other = a->taken[!side][e];

	for (uint32_t r = 0; side == 0 && r < m->rows; r++)
		a->least[r] = least_difference(m->cost + (size_t)r * m->cols, other, m->cols);
	for (uint32_t c = 0; side == 1 && c < m->cols; c++)
		a->least[c] = INFINITY;
	for (uint32_t r = 0; side == 1 && r < m->rows; r++)
		for (uint32_t c = 0; c < m->cols; c++)
			a->least[c] = smaller(m->cost[(size_t)r * m->cols + c] - other[r],
				a->least[c]);
}

static int side_of(const struct ascent *a, uint32_t e, uint32_t i)
{
	return a->p->edge[e].v == i;
}

static bool is_ahead(const struct ascent *a, uint32_t e, uint32_t i, bool forth)
{
	const struct ap_pedge *x = &a->p->edge[e];

	return ((x->u == i ? x->v : x->u) > i) == forth;
}

static void take(struct ascent *a, uint32_t e, uint32_t i)
{
	int side = side_of(a, e, i);
	double *own = a->taken[side][e];

	find_least(a, e, side);
	for (uint32_t c = 0; c < a->p->node[i].k; c++) {
		if (a->cost[i][c] == INFINITY)
			continue;
		a->cost[i][c] += a->least[c] - own[c];
		own[c] = a->least[c] < INFINITY ? a->least[c] : -INFINITY;
		a->alive &= a->cost[i][c] == INFINITY ||
			(ap_ilp_exact(a->s, 4 * own[c]) && ap_ilp_exact(a->s, 4 * a->cost[i][c]));
	}
}

static void give(struct ascent *a, uint32_t e, uint32_t i)
{
	double *own = a->taken[side_of(a, e, i)][e];

	for (uint32_t c = 0; c < a->p->node[i].k; c++)
		if (a->cost[i][c] < INFINITY)
			own[c] -= a->least[c];
}

static void leave_out(struct ascent *a, uint32_t i, uint32_t c)
{
	a->cost[i][c] = INFINITY;
	a->out[i][c] = true;
	a->left--;
	for (ap_id j = a->at.first[i]; j < a->at.first[i + 1]; j++)
		a->taken[side_of(a, a->at.edge[j], i)][a->at.edge[j]][c] = -INFINITY;
}

/* Moves the least cost of a node to the constant. */
static void lower(struct ascent *a, uint32_t i)
{
	double *cost = a->cost[i], least = INFINITY;
	uint32_t k = a->p->node[i].k;

	for (uint32_t c = 0; c < k; c++)
		least = smaller(cost[c], least);
	a->alive &= least < INFINITY && ap_ilp_exact(a->s, 4 * (a->constant + least));
	if (least == INFINITY)
		a->constant = INFINITY;
	if (!a->alive)
		return;
	a->constant += least;
	a->moved[i] += least;
	for (uint32_t c = 0; c < k; c++)
		cost[c] -= least;
}

/* The same, and leaves out what is beaten. */
static void settle(struct ascent *a, uint32_t i)
{
	const double *cost = a->cost[i];

	lower(a, i);
	for (uint32_t c = 0; c < a->p->node[i].k && a->alive; c++)
		if (!a->out[i][c] && (cost[c] == INFINITY ||
			ap_ilp_beaten(a->s, a->constant + cost[c])))
			leave_out(a, i, c);
}

/* Makes all costs at least 0; until then the constant is no bound. False: numbers are too large. */
static bool lift(struct ascent *a)
{
	for (uint32_t e = 0; e < a->p->nedge && a->alive; e++) {
		take(a, e, a->p->edge[e].u);
		take(a, e, a->p->edge[e].v);
	}
	for (uint32_t i = 0; i < a->p->n && a->alive; i++)
		lower(a, i);
	return a->alive || a->constant == INFINITY;
}

/* An equal share of each cost, in whole grains: least. The rest of all shares but `ahead` stays. */
static void share_out(struct ascent *a, uint32_t i, uint32_t ahead)
{
	double g = a->s->grain, parts = a->shares[i];

	for (uint32_t c = 0; c < a->p->node[i].k; c++) {
		double share = floor(a->cost[i][c] / (parts * g)) * g;

		if (a->cost[i][c] == INFINITY)
			continue;
		if (share * parts > a->cost[i][c])
			share -= g;
		a->least[c] = share;
		a->cost[i][c] -= share * ahead;
	}
}

static void visit(struct ascent *a, uint32_t i, bool forth)
{
	uint32_t ahead = 0;

	for (ap_id j = a->at.first[i]; j < a->at.first[i + 1]; j++) {
		if (is_ahead(a, a->at.edge[j], i, forth))
			ahead++;
		else if (a->alive)
			take(a, a->at.edge[j], i);
	}
	if (a->alive)
		settle(a, i);
	if (!a->alive || !ahead)
		return;
	share_out(a, i, ahead);
	for (ap_id j = a->at.first[i]; j < a->at.first[i + 1]; j++)
		if (is_ahead(a, a->at.edge[j], i, forth))
			give(a, a->at.edge[j], i);
}

static void sweep(struct ascent *a)
{
	for (uint32_t i = 0; i < a->p->n && a->alive; i++)
		visit(a, i, true);
	for (uint32_t i = a->p->n; i-- > 0 && a->alive;)
		visit(a, i, false);
}

static void begin(struct ascent *a, struct ap_ilp *s, const struct ap_ilp_sub *sub)
{
	struct ap_arena *arena = s->ctx->scratch;
	const struct ap_problem *p = &sub->p;
	uint32_t most = 0;

	*a = (struct ascent){.s = s, .p = p, .at = ap_incident_make(s->ctx, p),
		.cost = AP_NEW_N(arena, double *, p->n), .out = AP_NEW_N(arena, bool *, p->n),
		.shares = AP_NEW_N(arena, uint32_t, p->n),
		.moved = AP_NEW_N(arena, double, p->n), .constant = sub->constant, .alive = true};
	for (int side = 0; side < 2; side++) {
		a->taken[side] = AP_NEW_N(arena, double *, p->nedge);
		for (uint32_t e = 0; e < p->nedge; e++)
			a->taken[side][e] = AP_NEW_N(arena, double,
				p->node[side ? p->edge[e].v : p->edge[e].u].k);
	}
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t degree = a->at.first[i + 1] - a->at.first[i], forth = 0;

		for (ap_id j = a->at.first[i]; j < a->at.first[i + 1]; j++)
			forth += is_ahead(a, a->at.edge[j], i, true);
		a->shares[i] = forth > degree - forth ? forth : degree - forth;
		a->cost[i] = sub->own ? (double *)p->node[i].cost
			: ap_arena_memdup(arena, p->node[i].cost, p->node[i].k * sizeof(double));
		a->out[i] = AP_NEW_N(arena, bool, p->node[i].k);
		a->left += p->node[i].k;
		most = p->node[i].k > most ? p->node[i].k : most;
	}
	a->least = AP_NEW_N(arena, double, most);
}

/* What was taken is taken off the pairs. Where memory was charged, nodes have what is left, without the
 * rent; nothing has gone to the constant then. */
static void keep_moves(const struct ascent *a, struct ap_ilp_sub *sub)
{
	bool charged = sub->p.memory_limit != AP_NO_LIMIT;

	if (!charged)
		sub->constant = a->constant;
	for (uint32_t i = 0; i < a->p->n && charged; i++) {
		double *cost = (double *)sub->p.node[i].cost;

		for (uint32_t c = 0; c < a->p->node[i].k; c++)
			if (cost[c] < INFINITY)
				cost[c] += a->cost[i][c] + a->moved[i] - a->p->node[i].cost[c];
	}
	for (uint32_t e = 0; e < a->p->nedge; e++) {
		const struct ap_pmatrix *m = &sub->p.matrix[sub->p.edge[e].matrix];
		double *pair = (double *)m->cost;

		for (uint32_t r = 0; r < m->rows; r++)
			for (uint32_t c = 0; c < m->cols; c++)
				pair[(size_t)r * m->cols + c] -= a->taken[0][e][r] + a->taken[1][e][c];
	}
}

/* Others see these costs: they stay as they were, but for what is out. */
static void keep_outs(const struct ascent *a, double *const *cost)
{
	for (uint32_t i = 0; i < a->p->n; i++)
		for (uint32_t c = 0; c < a->p->node[i].k; c++)
			if (a->cost[i][c] == INFINITY)
				cost[i][c] = INFINITY;
}

/* Cost of candidate c of node i and of its edges from before, given what those chose. */
static double cost_after(const struct ascent *a, uint32_t i, uint32_t c, const uint32_t *pick)
{
	double sum = a->cost[i][c];

	for (ap_id j = a->at.first[i]; j < a->at.first[i + 1]; j++) {
		uint32_t e = a->at.edge[j];
		const struct ap_pedge *x = &a->p->edge[e];
		const struct ap_pmatrix *m = &a->p->matrix[x->matrix];
		uint32_t row = x->u == i ? c : pick[x->u], col = x->v == i ? c : pick[x->v];

		if (!is_ahead(a, e, i, true))
			sum += m->cost[(size_t)row * m->cols + col] -
				(a->taken[0][e][row] + a->taken[1][e][col]);
	}
	return sum;
}

/* One node after the other takes what is cheapest: the last sweep back has told it what is ahead. The
 * one that had to pay most, and what it took. Does the pick fit? */
static bool guess(const struct ascent *a, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate)
{
	uint32_t *pick = AP_NEW_N(a->s->ctx->scratch, uint32_t, a->p->n);
	double most = -1;
	bool fits;

	for (uint32_t i = 0; i < a->p->n; i++) {
		double least = INFINITY;

		for (uint32_t c = 0; c < a->p->node[i].k; c++) {
			double cost = cost_after(a, i, c, pick);

			pick[i] = cost < least ? c : pick[i];
			least = smaller(cost, least);
		}
		if (least > most) {
			most = least;
			*node = i;
			*candidate = pick[i];
		}
	}
	fits = ap_problem_memory(&sub->p, pick) <= sub->p.memory_limit;
	ap_ilp_try(a->s, sub, pick);
	ap_polish(a->s->ctx, &sub->p, POLISH_PASSES, pick);
	ap_ilp_try(a->s, sub, pick);
	return fits;
}

/* The sub-problem at a price, if it has a limit. False: that cannot be done. */
static bool begin_at(struct ascent *a, struct ap_ilp *s, const struct ap_ilp_sub *sub, double price)
{
	struct ap_ilp_sub *charged = ap_arena_memdup(s->ctx->scratch, sub, sizeof *sub);

	if (sub->p.memory_limit != AP_NO_LIMIT && !ap_ilp_charge(s, sub, price, charged))
		return false;
	begin(a, s, charged);
	return !any_negative(&charged->p) || (!charged->own && lift(a));
}

void ap_ilp_guess(struct ap_ilp *s, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ascent a;

	if (begin_at(&a, s, sub, ap_ilp_price(s, sub)))
		guess(&a, sub, node, candidate);
	ap_arena_release(s->ctx->scratch, mark);
}

static double cells_of(const struct ap_problem *p)
{
	double sum = 0;

	for (uint32_t e = 0; e < p->nedge; e++)
		sum += (double)cells(&p->matrix[p->edge[e].matrix]);
	return sum;
}

/* Has the bound risen by less than one of so many parts of what is missing? */
static bool is_little(const struct ascent *a, double rise, int parts)
{
	double missing = a->s->cost < INFINITY ? a->s->cost - a->constant : fabs(a->constant);

	return rise * parts < missing;
}

static bool is_over(const struct ascent *a)
{
	const struct ap_ilp *s = a->s;

	return !a->alive || (s->budget->work && s->work >= s->budget->work) ||
		!ap_child_wanted(s->child);
}

static void sweep_on(struct ascent *a, bool hasty)
{
	uint64_t enough = a->left / LEFT_PART;
	double price = 2 * cells_of(a->p);
	int idle = 0;

	for (int i = 0; i < MOST_SWEEPS && idle < (hasty ? HASTY_PATIENCE : PATIENCE); i++) {
		double before = a->constant;

		if (a->left < enough || is_over(a))
			return;
		sweep(a);
		a->s->work += (uint64_t)price;
		idle = is_little(a, a->constant - before, hasty ? HASTY_PART : LITTLE_PART)
			? idle + 1 : 0;
	}
}

/* Copies of the costs of nodes, made those of the sub-problem; all other costs are still seen by
 * others. */
static double **own_nodes(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_pnode *node = ap_arena_memdup(arena, sub->p.node, sub->p.n * sizeof *node);
	double **cost = AP_NEW_N(arena, double *, sub->p.n);

	for (uint32_t i = 0; i < sub->p.n; i++)
		node[i].cost = cost[i] =
			ap_arena_memdup(arena, node[i].cost, node[i].k * sizeof **cost);
	sub->p.node = node;
	return cost;
}

/* Sweeps, and keeps what came of it. The constant that was reached; does the pick fit? */
static double ascend(struct ascent *a, struct ap_ilp_sub *sub, double *const *shared, bool hasty,
	bool *fits)
{
	double q = a->s->whole->quantum;
	uint32_t node, candidate;

	sweep_on(a, hasty);
	if (a->alive)
		*fits = guess(a, sub, &node, &candidate);
	sub->bound = fmax(sub->bound, ceil(a->constant / q) * q);
	if (sub->own)
		keep_moves(a, sub);
	else
		keep_outs(a, shared);
	return a->constant;
}

void ap_ilp_ascend(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	double **shared = sub->own ? NULL : own_nodes(s, sub);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	bool limited = sub->p.memory_limit != AP_NO_LIMIT, fits = true;
	double price = limited ? ap_ilp_price(s, sub) : 0, bound = -INFINITY;
	struct ascent a;

	if (begin_at(&a, s, sub, price))
		bound = ascend(&a, sub, shared, limited && !ap_ilp_price_found(s), &fits);
	if (limited)
		ap_ilp_price_tried(s, price, bound, fits);
	ap_arena_release(s->ctx->scratch, mark);
}

bool ap_ilp_too_heavy(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	double **cost = own_nodes(s, sub);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_ilp_sub bytes = {.p = ap_ilp_memory(s->ctx->scratch, &sub->p)};
	struct ap_problem unit = {.quantum = 1};
	struct ap_ilp heavy = *s;
	uint32_t node, candidate;
	struct ascent a;
	bool fits = true;

	heavy.whole = &unit;
	heavy.grain = 1;
	heavy.cost = (double)sub->p.memory_limit + 1;
	begin(&a, &heavy, &bytes);
	if (lift(&a)) {
		sweep_on(&a, true);
		fits = a.constant <= (double)sub->p.memory_limit;
		a.s = s;
		if (a.alive && fits)
			guess(&a, sub, &node, &candidate);
		keep_outs(&a, cost);
	}
	s->work = heavy.work;
	ap_arena_release(s->ctx->scratch, mark);
	return !fits;
}
