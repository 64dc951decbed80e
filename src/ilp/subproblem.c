/* SPDX-License-Identifier: Apache-2.0 */
#include "ilp/subproblem.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "search/polish.h"
#include "search/sweep.h"

enum { MOST_PRICES = 24, FIRST_PART = 64, STEP = 8 };

#define NEAR 1.001 /* prices within this ratio count as equal */

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

double ap_ilp_rented(const struct ap_ilp *s, double price, double cost, int64_t memory)
{
	double rent = price * (double)memory / s->grain;

	return cost + floor(rent - fabs(rent) * 0x1p-50) * s->grain;
}

/* Returns NULL if numbers get too large. */
static const double *charge(const struct ap_ilp *s, double price, const double *cost,
	const int64_t *memory, size_t n)
{
	double *out;

	if (!memory || price == 0)
		return cost;
	out = ap_arena_alloc_raw(s->ctx->scratch, n, sizeof *out);
	for (size_t i = 0; i < n; i++) {
		out[i] = ap_ilp_rented(s, price, cost[i], memory[i]);
		if (out[i] < INFINITY && !ap_ilp_exact(s, 8 * out[i]))
			return NULL;
	}
	return out;
}

/* Copies the sub-problem without its limit: memory is charged at a price, and the limit refunded.
 * Returns false if numbers get too large. */
static bool charge_memory(const struct ap_ilp *s, const struct ap_ilp_sub *sub, double price,
	struct ap_ilp_sub *out)
{
	struct ap_arena *arena = s->ctx->scratch;
	const struct ap_problem *p = &sub->p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix = ap_arena_memdup(arena, p->matrix, p->nmatrix * sizeof *matrix);

	*out = *sub;
	out->own = false;
	out->constant = ap_ilp_rented(s, price, sub->constant, -p->memory_limit);
	out->p.node = node;
	out->p.matrix = matrix;
	out->p.memory_limit = AP_NO_LIMIT;
	for (uint32_t i = 0; i < p->n; i++)
		if (!(node[i].cost = charge(s, price, node[i].cost, node[i].memory, node[i].k)))
			return false;
	for (uint32_t m = 0; m < p->nmatrix; m++)
		if (!(matrix[m].cost = charge(s, price, matrix[m].cost, matrix[m].memory,
			      cells(&matrix[m]))))
			return false;
	return ap_ilp_exact(s, 8 * out->constant);
}

static const double *memory_as_cost(struct ap_arena *arena, const double *cost,
	const int64_t *memory, size_t n)
{
	double *out = ap_arena_alloc_raw(arena, n, sizeof *out);

	for (size_t i = 0; i < n; i++)
		out[i] = cost[i] < INFINITY ? memory ? (double)memory[i] : 0 : INFINITY;
	return out;
}

struct ap_problem ap_ilp_memory(struct ap_arena *arena, const struct ap_problem *p)
{
	struct ap_problem out = *p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	struct ap_pmatrix *matrix = ap_arena_memdup(arena, p->matrix, p->nmatrix * sizeof *matrix);

	for (uint32_t i = 0; i < p->n; i++)
		node[i].cost = memory_as_cost(arena, node[i].cost, node[i].memory, node[i].k);
	for (uint32_t m = 0; m < p->nmatrix; m++)
		matrix[m].cost = memory_as_cost(arena, matrix[m].cost, matrix[m].memory,
			cells(&matrix[m]));
	out.node = node;
	out.matrix = matrix;
	out.memory_limit = AP_NO_LIMIT;
	out.quantum = 1;
	return out;
}

bool ap_ilp_price_found(const struct ap_ilp *s)
{
	const struct ap_ilp_price *x = &s->price;

	return x->tries == MOST_PRICES || (x->tries > 0 && x->high <= x->low * NEAR);
}

/* The price to try next; the best one once it is found. */
static double price_to_try(const struct ap_ilp *s, const struct ap_ilp_sub *sub)
{
	const struct ap_ilp_price *x = &s->price;

	if (x->tries == 0 || ap_ilp_price_found(s))
		return x->best;
	if (x->high == INFINITY && x->low == 0)
		return fmax(fabs(sub->bound), s->whole->quantum) /
			(FIRST_PART * fmax(fabs((double)sub->p.memory_limit), 1));
	if (x->high == INFINITY)
		return x->low * STEP;
	return x->low == 0 ? x->high / STEP : sqrt(x->low) * sqrt(x->high);
}

/* Records the bound at a price, and whether the pick found with it fits. */
static void price_tried(struct ap_ilp *s, double price, double bound, bool fits)
{
	struct ap_ilp_price *x = &s->price;

	if (ap_ilp_price_found(s))
		return;
	if (x->tries++ == 0) {
		x->bound = -INFINITY;
		x->high = INFINITY;
	}
	if (bound > x->bound) {
		x->bound = bound;
		x->best = price;
	}
	if (fits)
		x->high = price;
	else
		x->low = price;
}

struct reduction {
	struct ap_ilp *s;
	struct ap_ilp_sub *sub;
	double **cost; /* [n] costs of nodes */
	double **pair; /* [nedge] costs of edges */
	uint32_t *degree; /* [n] number of edges that matter */
	double *least; /* scratch, by column */
	bool changed; /* a candidate was dropped */
};

bool ap_ilp_beaten(const struct ap_ilp *s, double cost)
{
	return cost > s->cost - s->whole->quantum;
}

bool ap_ilp_exact(const struct ap_ilp *s, double v)
{
	return fabs(v) < s->grain * 0x1p53;
}

struct merging { /* merges parallel edges, each directed from the smaller node to the larger */
	const struct ap_problem *p;
	struct ap_pedge *edge;
	struct ap_pmatrix *matrix;
	double **cost;
	int64_t **memory; /* NULL if there is no limit */
};

static void new_edge(struct ap_arena *arena, struct merging *w, ap_id u, ap_id v, ap_id i)
{
	uint32_t rows = w->p->node[u].k, cols = w->p->node[v].k;

	w->cost[i] = AP_NEW_N(arena, double, (size_t)rows * cols);
	if (w->memory)
		w->memory[i] = AP_NEW_N(arena, int64_t, (size_t)rows * cols);
	w->edge[i] = (struct ap_pedge){u, v, i};
	w->matrix[i] = (struct ap_pmatrix){rows, cols, w->cost[i], w->memory ? w->memory[i] : NULL};
}

void ap_ilp_open(struct ap_ilp *s)
{
	s->grain = ap_sweep_grain(s->ctx, s->whole);
}

void ap_ilp_unfold(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	const struct ap_problem *p = &sub->p;
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_map *ends = ap_map_create(arena);
	struct merging w = {.p = p,
		.edge = AP_NEW_N(arena, struct ap_pedge, p->nedge),
		.matrix = AP_NEW_N(arena, struct ap_pmatrix, p->nedge),
		.cost = AP_NEW_N(arena, double *, p->nedge),
		.memory = p->memory_limit == AP_NO_LIMIT ? NULL
			: AP_NEW_N(arena, int64_t *, p->nedge)};

	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pedge *x = &p->edge[e];
		ap_id key[2] = {x->u < x->v ? x->u : x->v, x->u < x->v ? x->v : x->u};
		bool fresh;
		ap_id i = ap_map_put(ends, key, sizeof key, &fresh);
		const struct ap_pmatrix *m;

		if (fresh)
			new_edge(arena, &w, key[0], key[1], i);
		m = &w.p->matrix[x->matrix];
		for (uint32_t r = 0; r < m->rows; r++) {
			for (uint32_t c = 0; c < m->cols; c++) {
				size_t from = (size_t)r * m->cols + c;
				size_t at = x->u < x->v ? from : (size_t)c * m->rows + r;

				w.cost[i][at] += m->cost[from];
				if (w.memory && m->memory)
					w.memory[i][at] += m->memory[from];
			}
		}
	}
	sub->p.nedge = sub->p.nmatrix = (uint32_t)ap_map_size(ends);
	sub->p.edge = w.edge;
	sub->p.matrix = w.matrix;
}

static double *own_costs(const struct reduction *r, const double *cost, size_t n)
{
	return r->sub->own ? (double *)cost
		: ap_arena_memdup(r->s->ctx->scratch, cost, n * sizeof *cost);
}

/* Gives the sub-problem costs of its own, to be changed. */
static void begin(struct reduction *r, struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_problem *p = &sub->p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	struct ap_pedge *edge = ap_arena_memdup(arena, p->edge, p->nedge * sizeof *edge);
	struct ap_pmatrix *matrix = AP_NEW_N(arena, struct ap_pmatrix, p->nedge);
	uint32_t widest = 0;

	for (uint32_t i = 0; i < p->n; i++)
		widest = node[i].k > widest ? node[i].k : widest;
	*r = (struct reduction){.s = s, .sub = sub, .least = AP_NEW_N(arena, double, widest),
		.cost = AP_NEW_N(arena, double *, p->n),
		.pair = AP_NEW_N(arena, double *, p->nedge), .degree = AP_NEW_N(arena, uint32_t, p->n)};
	for (uint32_t i = 0; i < p->n; i++)
		node[i].cost = r->cost[i] = own_costs(r, node[i].cost, node[i].k);
	for (uint32_t e = 0; e < p->nedge; e++) {
		matrix[e] = p->matrix[edge[e].matrix];
		matrix[e].cost = r->pair[e] = own_costs(r, matrix[e].cost, cells(&matrix[e]));
		edge[e].matrix = e;
	}
	sub->own = true;
	p->node = node;
	p->edge = edge;
	p->matrix = matrix;
	p->nmatrix = p->nedge;
}

/* Moves the least of n numbers to *to. */
static void move_least(const struct ap_ilp *s, double *from, uint32_t n, double *to)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = from[i] < least ? from[i] : least;
	if (least == 0 || (least < INFINITY && !(ap_ilp_exact(s, *to + least))))
		return;
	*to += least;
	for (uint32_t i = 0; i < n && least < INFINITY; i++)
		from[i] -= least;
}

/* Moves the least of each column to to[]. */
static void move_columns(struct reduction *r, double *from, uint32_t rows, uint32_t cols, double *to)
{
	double *least = r->least;
	bool any = false;

	for (uint32_t b = 0; b < cols; b++)
		least[b] = INFINITY;
	for (uint32_t a = 0; a < rows; a++)
		for (uint32_t b = 0; b < cols; b++) {
			double v = from[(size_t)a * cols + b];

			least[b] = v < least[b] ? v : least[b];
		}
	for (uint32_t b = 0; b < cols; b++) {
		if (least[b] < INFINITY && !ap_ilp_exact(r->s, to[b] + least[b]))
			least[b] = 0;
		to[b] += least[b];
		least[b] = least[b] < INFINITY ? least[b] : 0;
		any |= least[b] != 0;
	}
	for (uint32_t a = 0; a < rows && any; a++)
		for (uint32_t b = 0; b < cols; b++)
			from[(size_t)a * cols + b] -= least[b];
}

static void move_minima(struct reduction *r)
{
	const struct ap_problem *p = &r->sub->p;

	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pedge *x = &p->edge[e];
		uint32_t rows = p->node[x->u].k, cols = p->node[x->v].k;

		for (uint32_t a = 0; a < rows; a++)
			move_least(r->s, r->pair[e] + (size_t)a * cols, cols, &r->cost[x->u][a]);
		move_columns(r, r->pair[e], rows, cols, r->cost[x->v]);
	}
	for (uint32_t i = 0; i < p->n; i++)
		move_least(r->s, r->cost[i], p->node[i].k, &r->sub->constant);
}

static void drop_beaten(struct reduction *r, double *v, size_t n)
{
	double most = r->s->cost - r->s->whole->quantum - r->sub->constant; /* exact */
	int any = 0;

	for (size_t i = 0; i < n; i++)
		any |= (v[i] > most) & (v[i] < INFINITY); /* without a branch */
	for (size_t i = 0; i < n && any; i++)
		v[i] = v[i] > most ? INFINITY : v[i];
	r->changed |= any;
}

/* The least of entries that are not forbidden. */
static int64_t least_memory(const double *cost, const int64_t *memory, size_t n)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; memory && i < n; i++)
		if (cost[i] < INFINITY && memory[i] < least)
			least = memory[i];
	return least < INT64_MAX ? least : 0;
}

static int64_t most_memory(const double *cost, const int64_t *memory, size_t n)
{
	int64_t most = INT64_MIN;

	for (size_t i = 0; memory && i < n; i++)
		if (cost[i] < INFINITY && memory[i] > most)
			most = memory[i];
	return most > INT64_MIN ? most : 0;
}

static void drop_heavy(struct reduction *r, double *cost, const int64_t *memory, size_t n,
	int64_t room)
{
	int64_t least = least_memory(cost, memory, n);

	for (size_t i = 0; memory && i < n; i++) {
		if (cost[i] < INFINITY && memory[i] - least > room) {
			cost[i] = INFINITY;
			r->changed = true;
		}
	}
}

/* Returns false if nothing fits; removes the limit if everything does. */
static bool weigh(struct reduction *r)
{
	struct ap_problem *p = &r->sub->p;
	int64_t least = 0, most = 0, room;

	if (p->memory_limit == AP_NO_LIMIT)
		return true;
	for (uint32_t i = 0; i < p->n; i++) {
		least += least_memory(r->cost[i], p->node[i].memory, p->node[i].k);
		most += most_memory(r->cost[i], p->node[i].memory, p->node[i].k);
	}
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pmatrix *m = &p->matrix[e];

		least += least_memory(r->pair[e], m->memory, cells(m));
		most += most_memory(r->pair[e], m->memory, cells(m));
	}
	if (least > p->memory_limit)
		return false;
	room = p->memory_limit - least;
	if (most <= p->memory_limit) {
		p->memory_limit = AP_NO_LIMIT;
		r->changed = true;
	}
	for (uint32_t i = 0; i < p->n; i++)
		drop_heavy(r, r->cost[i], p->node[i].memory, p->node[i].k, room);
	for (uint32_t e = 0; e < p->nedge; e++)
		drop_heavy(r, r->pair[e], p->matrix[e].memory, cells(&p->matrix[e]), room);
	return true;
}

static bool is_dull(const struct reduction *r, uint32_t e)
{
	const struct ap_pmatrix *m = &r->sub->p.matrix[e];
	bool by_memory = r->sub->p.memory_limit != AP_NO_LIMIT && m->memory;

	for (size_t i = 0; i < cells(m); i++)
		if (r->pair[e][i] != 0 || (by_memory && m->memory[i] != 0))
			return false;
	return true;
}

/* Removes edges that make no difference. */
static void drop_dull(struct reduction *r)
{
	struct ap_problem *p = &r->sub->p;
	struct ap_pedge *edge = (struct ap_pedge *)p->edge;
	uint32_t n = 0;

	for (uint32_t e = 0; e < p->nedge; e++) {
		if (is_dull(r, e))
			continue;
		r->degree[edge[e].u]++;
		r->degree[edge[e].v]++;
		edge[n++] = edge[e];
	}
	p->nedge = n;
}

/* The remaining domains; a node without edges keeps only its best candidate. */
static struct ap_domain *domains(const struct reduction *r)
{
	const struct ap_problem *p = &r->sub->p;
	struct ap_domain *d = ap_domain_all(r->s->ctx, p);

	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t best = 0;

		if (r->degree[i] || p->memory_limit != AP_NO_LIMIT || !d[i].n)
			continue;
		for (uint32_t c = 1; c < d[i].n; c++)
			if (r->cost[i][d[i].c[c]] < r->cost[i][d[i].c[best]])
				best = c;
		d[i].c[0] = d[i].c[best];
		d[i].n = 1;
	}
	return d;
}

static bool is_smaller(const struct ap_problem *p, const struct ap_domain *d)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (d[i].n < p->node[i].k || d[i].n == 1)
			return true;
	return false;
}

static void compact(struct ap_ilp *s, struct ap_ilp_sub *sub, const struct ap_domain *d)
{
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_ilp_level *level = AP_NEW(arena, struct ap_ilp_level);
	struct ap_problem *of = ap_arena_memdup(arena, &sub->p, sizeof sub->p);

	*level = (struct ap_ilp_level){sub->level, ap_compact_make(s->ctx, of, d), of};
	sub->level = level;
	sub->constant += level->compact->cost;
	sub->p = level->compact->p;
}

/* Makes all costs at least 0, so that the constant is a bound. */
static bool reduce_costs(struct reduction *r)
{
	const struct ap_problem *p = &r->sub->p;
	double q = r->s->whole->quantum;

	move_minima(r);
	if (!(r->sub->constant < INFINITY) || ap_ilp_beaten(r->s, r->sub->constant))
		return false;
	r->sub->bound = fmax(r->sub->bound, ceil(r->sub->constant / q) * q);
	for (uint32_t i = 0; i < p->n; i++)
		drop_beaten(r, r->cost[i], p->node[i].k);
	for (uint32_t e = 0; e < p->nedge; e++)
		drop_beaten(r, r->pair[e], cells(&p->matrix[e]));
	return true;
}

bool ap_ilp_reduce(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	struct reduction r;

	do {
		const struct ap_problem *p;
		const struct ap_domain *d;

		begin(&r, s, sub);
		p = &r.sub->p;
		s->work += (uint64_t)ap_sweep_whole_price(p) / 2;
		if (p->memory_limit == AP_NO_LIMIT && !reduce_costs(&r))
			return false;
		if (!weigh(&r))
			return false;
		drop_dull(&r);
		d = domains(&r);
		if (ap_domain_empty(p, d))
			return false;
		if (is_smaller(p, d)) {
			compact(r.s, r.sub, d);
			r.changed = true;
		}
	} while (r.changed && sub->p.n > 0);
	return sub->constant < INFINITY && (sub->p.n > 0 || sub->p.memory_limit >= 0);
}

bool ap_ilp_sift(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	const struct ap_domain *d;

	ap_ilp_ascend(s, sub);
	d = ap_domain_all(s->ctx, &sub->p);
	if (ap_ilp_beaten(s, sub->bound) || ap_domain_empty(&sub->p, d))
		return false;
	if (is_smaller(&sub->p, d))
		compact(s, sub, d);
	return true;
}

struct ap_problem ap_ilp_fix(struct ap_ilp *s, const struct ap_problem *p, uint32_t i, uint32_t c,
	bool in)
{
	struct ap_arena *arena = s->ctx->scratch;
	struct ap_problem fixed = *p;
	struct ap_pnode *node = ap_arena_memdup(arena, p->node, p->n * sizeof *node);
	double *cost = ap_arena_memdup(arena, node[i].cost, node[i].k * sizeof *cost);

	for (uint32_t x = 0; x < node[i].k; x++)
		if ((x == c) != in)
			cost[x] = INFINITY;
	node[i].cost = cost;
	fixed.node = node;
	return fixed;
}

void ap_ilp_try(struct ap_ilp *s, const struct ap_ilp_sub *sub, const uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	double cost;

	for (const struct ap_ilp_level *l = sub->level; l; l = l->up) {
		uint32_t *up = AP_NEW_N(s->ctx->scratch, uint32_t, l->of->n);

		ap_compact_expand(l->compact, l->of, pick, up);
		pick = up;
	}
	cost = ap_problem_cost(s->whole, pick);
	if (cost < s->cost && ap_problem_memory(s->whole, pick) <= s->whole->memory_limit) {
		memcpy(s->best, pick, s->whole->n * sizeof *pick);
		s->cost = cost;
	}
	ap_arena_release(s->ctx->scratch, mark);
}

enum { LEFT_PART = 4, POLISH_PASSES = 8 };

/* How long to sweep: patience and part of an ap_sweep_effort. */
enum haste { THOROUGH, PRICING, BRANCHING };
static const struct {
	int patience, part;
} hastes[] = {
	[THOROUGH] = {8, 512},
	[PRICING] = {2, 64}, /* while searching for the price */
	[BRANCHING] = {1, 8}, /* another branch costs little more than a sweep */
};

/* Subtracts from pairs what the sweeps took. If memory was charged, nodes get what is left, minus
 * the rent; the constant is unchanged then. */
static void keep_moves(const struct ap_sweep *a, struct ap_ilp_sub *sub)
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

/* The costs are shared: only drops candidates. */
static void keep_outs(const struct ap_sweep *a, double *const *cost)
{
	for (uint32_t i = 0; i < a->p->n; i++)
		for (uint32_t c = 0; c < a->p->node[i].k; c++)
			if (a->cost[i][c] == INFINITY)
				cost[i][c] = INFINITY;
}

/* Compares the sweeps' pick with the best, and chooses the node that had to pay most and its
 * candidate. Returns true if the pick fits. */
static bool guess(struct ap_ilp *s, const struct ap_sweep *a, const struct ap_ilp_sub *sub,
	uint32_t *node, uint32_t *candidate)
{
	uint32_t *pick = AP_NEW_N(s->ctx->scratch, uint32_t, a->p->n);
	bool fits;

	*node = ap_sweep_pick(a, pick);
	*candidate = pick[*node];
	fits = ap_problem_memory(&sub->p, pick) <= sub->p.memory_limit;
	ap_ilp_try(s, sub, pick);
	ap_polish(s->ctx, &sub->p, POLISH_PASSES, pick);
	ap_ilp_try(s, sub, pick);
	return fits;
}

/* Opens sweeps, at a price if the sub-problem has a limit. Returns false if it cannot. */
static bool begin_at(struct ap_sweep *a, struct ap_ilp *s, const struct ap_ilp_sub *sub, double price)
{
	struct ap_ilp_sub *charged = ap_arena_memdup(s->ctx->scratch, sub, sizeof *sub);

	if (sub->p.memory_limit != AP_NO_LIMIT && !charge_memory(s, sub, price, charged))
		return false;
	return ap_sweep_open(s->ctx, &(struct ap_sweep_job){.p = &charged->p,
		.constant = charged->constant, .grain = s->grain,
		.most = s->cost - s->whole->quantum, .in_place = charged->own}, a);
}

void ap_ilp_guess(struct ap_ilp *s, const struct ap_ilp_sub *sub, uint32_t *node,
	uint32_t *candidate)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_sweep a;

	if (begin_at(&a, s, sub, price_to_try(s, sub)))
		guess(s, &a, sub, node, candidate);
	ap_arena_release(s->ctx->scratch, mark);
}

static void sweep_on(struct ap_ilp *s, struct ap_sweep *a, enum haste haste)
{
	struct ap_sweep_effort effort = {.patience = hastes[haste].patience,
		.part = hastes[haste].part, .enough = a->left / LEFT_PART,
		.most_work = s->budget->work};

	ap_sweep_run(a, &effort, &s->work);
}

/* Gives the sub-problem its own copy of node costs; other costs stay shared. */
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

/* Sweeps and keeps the result. Returns the constant reached; *fits: the pick fits. */
static double ascend(struct ap_ilp *s, struct ap_sweep *a, struct ap_ilp_sub *sub,
	double *const *shared, enum haste haste, bool *fits)
{
	double q = s->whole->quantum;
	uint32_t node, candidate;

	sweep_on(s, a, haste);
	if (a->alive)
		*fits = guess(s, a, sub, &node, &candidate);
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
	double price = limited ? price_to_try(s, sub) : 0, bound = -INFINITY;
	enum haste haste = limited ? (ap_ilp_price_found(s) ? THOROUGH : PRICING)
		: s->branching ? BRANCHING : THOROUGH;
	struct ap_sweep a;

	if (begin_at(&a, s, sub, price))
		bound = ascend(s, &a, sub, shared, haste, &fits);
	if (limited)
		price_tried(s, price, bound, fits);
	ap_arena_release(s->ctx->scratch, mark);
}

bool ap_ilp_too_heavy(struct ap_ilp *s, struct ap_ilp_sub *sub)
{
	double **cost = own_nodes(s, sub);
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_problem bytes = ap_ilp_memory(s->ctx->scratch, &sub->p);
	double limit = (double)sub->p.memory_limit;
	uint32_t node, candidate;
	struct ap_sweep a;
	bool fits = true;

	if (ap_sweep_open(s->ctx, &(struct ap_sweep_job){.p = &bytes, .grain = 1, .most = limit}, &a)) {
		sweep_on(s, &a, PRICING);
		fits = a.constant <= limit;
		if (a.alive && fits)
			guess(s, &a, sub, &node, &candidate);
		keep_outs(&a, cost);
	}
	ap_arena_release(s->ctx->scratch, mark);
	return !fits;
}
