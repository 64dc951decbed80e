/* SPDX-License-Identifier: Apache-2.0 */
#include "search/tied.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct tying {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	const uint32_t **row, **col; /* [nmatrix] of a tie: the partner of each row and column, or AP_NONE */
	ap_id *head; /* [n] the first node that ties join with it */
	struct ap_tied *out;
	struct ap_pnode *node;
	double **cost; /* [out->p.n] sums; NULL: as the node has them */
	int64_t **memory;
	AP_VEC(struct ap_pedge) edge;
	AP_VEC(struct ap_pmatrix) matrix;
};

/* The partner of each row and of each column; false: the matrix is no tie. */
static bool find_partners(const struct tying *t, ap_id matrix)
{
	const struct ap_pmatrix *x = &t->p->matrix[matrix];
	uint32_t *row, *col;

	if (x->rows < 2 || x->cols < 2) /* a node without a choice decides nothing */
		return false;
	row = AP_NEW_N(t->ctx->scratch, uint32_t, x->rows);
	col = AP_NEW_N(t->ctx->scratch, uint32_t, x->cols);
	for (uint32_t j = 0; j < x->cols; j++)
		col[j] = AP_NONE;
	for (uint32_t i = 0; i < x->rows; i++) {
		row[i] = AP_NONE;
		for (uint32_t j = 0; j < x->cols; j++) {
			if (!(x->cost[(size_t)i * x->cols + j] < INFINITY))
				continue;
			if (row[i] != AP_NONE || col[j] != AP_NONE)
				return false;
			row[i] = j;
			col[j] = i;
		}
	}
	t->row[matrix] = row;
	t->col[matrix] = col;
	return true;
}

/* The candidates of node b, tied to a, that go with those of a's head. */
static const uint32_t *partners(const struct tying *t, ap_id a, const uint32_t *partner, uint32_t k)
{
	const uint32_t *before = t->out->goes_with[a];
	uint32_t *goes_with = AP_NEW_N(t->ctx->scratch, uint32_t, k);

	for (uint32_t c = 0; c < k; c++) {
		uint32_t own = before ? before[c] : c;

		goes_with[c] = own == AP_NONE ? AP_NONE : partner[own];
	}
	return goes_with;
}

/* Gives every node its head, and what goes with the head's candidates. Returns the number of heads. */
static uint32_t find_heads(struct tying *t)
{
	const struct ap_problem *p = t->p;
	struct ap_incident in = ap_incident_make(t->ctx, p);
	ap_id *queue = AP_NEW_N(t->ctx->scratch, ap_id, p->n);
	uint32_t heads = 0;

	for (ap_id i = 0; i < p->n; i++)
		t->head[i] = AP_NONE;
	for (ap_id i = 0; i < p->n; i++) {
		uint32_t n = 0;

		if (t->head[i] != AP_NONE)
			continue;
		heads++;
		t->head[i] = i;
		queue[n++] = i;
		for (uint32_t q = 0; q < n; q++)
			for (ap_id k = in.first[queue[q]]; k < in.first[queue[q] + 1]; k++) {
				const struct ap_pedge *e = &p->edge[in.edge[k]];
				ap_id other = e->u == queue[q] ? e->v : e->u;

				if (!t->row[e->matrix] || t->head[other] != AP_NONE)
					continue;
				t->head[other] = i;
				t->out->goes_with[other] = partners(t, queue[q], e->u == queue[q]
					? t->row[e->matrix] : t->col[e->matrix], p->node[i].k);
				queue[n++] = other;
			}
	}
	return heads;
}

static void own_lists(struct tying *t, ap_id at)
{
	struct ap_pnode *node = &t->node[at];

	if (t->cost[at])
		return;
	t->cost[at] = ap_arena_memdup(t->ctx->scratch, node->cost, node->k * sizeof *node->cost);
	t->memory[at] = AP_NEW_N(t->ctx->scratch, int64_t, node->k);
	if (node->memory)
		memcpy(t->memory[at], node->memory, node->k * sizeof *node->memory);
	node->cost = t->cost[at];
	node->memory = t->memory[at];
}

static void add_candidate(struct tying *t, ap_id at, uint32_t c, double cost, int64_t memory)
{
	t->cost[at][c] += cost;
	t->memory[at][c] += memory;
}

static void join_nodes(struct tying *t)
{
	const struct ap_problem *p = t->p;

	for (ap_id i = 0, n = 0; i < p->n; i++) {
		const struct ap_pnode *node = &p->node[i];
		const uint32_t *goes_with = t->out->goes_with[i];
		ap_id at;

		if (t->head[i] == i) {
			t->out->place[i] = n;
			t->out->node[n] = i;
			t->node[n++] = (struct ap_pnode){.name = node->name, .k = node->k, .cost = node->cost,
				.memory = node->memory};
			continue;
		}
		at = t->out->place[i] = t->out->place[t->head[i]];
		own_lists(t, at);
		for (uint32_t c = 0; c < t->node[at].k; c++)
			if (goes_with[c] == AP_NONE)
				add_candidate(t, at, c, INFINITY, 0);
			else
				add_candidate(t, at, c, node->cost[goes_with[c]],
					node->memory ? node->memory[goes_with[c]] : 0);
	}
}

/* The cell of an edge for candidates of the heads of its ends; false: forbidden. */
static bool cell(const struct tying *t, const struct ap_pedge *e, uint32_t i, uint32_t j, size_t *at)
{
	const uint32_t *u = t->out->goes_with[e->u], *v = t->out->goes_with[e->v];
	uint32_t row = u ? u[i] : i, col = v ? v[j] : j;

	*at = (size_t)row * t->p->matrix[e->matrix].cols + col;
	return row != AP_NONE && col != AP_NONE;
}

/* Adds an edge to costs and memory of pairs of candidates of its heads; turned: in the other order. */
static void add_edge(const struct tying *t, const struct ap_pedge *e, bool turned, struct ap_pmatrix *to,
	double *cost, int64_t *memory)
{
	const struct ap_pmatrix *x = &t->p->matrix[e->matrix];

	for (uint32_t i = 0; i < to->rows; i++)
		for (uint32_t j = 0; j < to->cols; j++) {
			size_t here = (size_t)i * to->cols + j, there;
			bool may = turned ? cell(t, e, j, i, &there) : cell(t, e, i, j, &there);

			cost[here] += may ? x->cost[there] : INFINITY;
			memory[here] += may && x->memory ? x->memory[there] : 0;
		}
}

/* Inside a head an edge becomes costs of its candidates; edges between two heads become one, where an end was
 * joined. */
static void join_edges(struct tying *t)
{
	const struct ap_problem *p = t->p;
	struct ap_map *pairs = ap_map_create(t->ctx->scratch);

	for (uint32_t i = 0; i < p->nmatrix; i++)
		AP_PUSH(t->ctx->scratch, t->matrix, p->matrix[i]);
	for (uint32_t i = 0; i < p->nedge; i++) {
		const struct ap_pedge *e = &p->edge[i];
		ap_id u = t->out->place[e->u], v = t->out->place[e->v];
		ap_id pair[2] = {u < v ? u : v, u < v ? v : u};
		bool fresh;
		ap_id id;
		struct ap_pmatrix *m;

		if (u == v) {
			own_lists(t, u);
			for (uint32_t c = 0; c < t->node[u].k; c++) {
				const struct ap_pmatrix *x = &p->matrix[e->matrix];
				size_t at;

				if (cell(t, e, c, c, &at))
					add_candidate(t, u, c, x->cost[at], x->memory ? x->memory[at] : 0);
			}
			continue;
		}
		id = ap_map_put(pairs, pair, sizeof pair, &fresh);
		if (fresh) {
			const struct ap_pedge edge = {.u = pair[0], .v = pair[1], .matrix = AP_NONE};

			AP_PUSH(t->ctx->scratch, t->edge, edge);
			if (!t->out->goes_with[e->u] && !t->out->goes_with[e->v] && u < v) {
				t->edge.v[id].matrix = e->matrix;
				continue;
			}
		}
		if (t->edge.v[id].matrix < p->nmatrix || t->edge.v[id].matrix == AP_NONE) {
			ap_id first = t->edge.v[id].matrix;
			struct ap_pmatrix sum = {.rows = t->node[pair[0]].k, .cols = t->node[pair[1]].k};
			size_t cells = (size_t)sum.rows * sum.cols;
			double *cost = AP_NEW_N(t->ctx->scratch, double, cells);
			int64_t *memory = AP_NEW_N(t->ctx->scratch, int64_t, cells);

			if (first != AP_NONE)
				memcpy(cost, p->matrix[first].cost, cells * sizeof *cost);
			if (first != AP_NONE && p->matrix[first].memory)
				memcpy(memory, p->matrix[first].memory, cells * sizeof *memory);
			sum.cost = cost;
			sum.memory = memory;
			t->edge.v[id].matrix = (ap_id)t->matrix.n;
			AP_PUSH(t->ctx->scratch, t->matrix, sum);
		}
		m = &t->matrix.v[t->edge.v[id].matrix];
		add_edge(t, e, u > v, m, (double *)m->cost, (int64_t *)m->memory); /* made above */
	}
}

bool ap_tied_make(struct ap_ctx *ctx, const struct ap_problem *p, struct ap_tied *out)
{
	struct tying t = {.ctx = ctx, .p = p, .out = out};
	uint32_t ties = 0, n;

	t.row = AP_NEW_N(ctx->scratch, const uint32_t *, p->nmatrix);
	t.col = AP_NEW_N(ctx->scratch, const uint32_t *, p->nmatrix);
	for (ap_id i = 0; i < p->nmatrix; i++)
		ties += find_partners(&t, i);
	if (!ties)
		return false;
	t.head = AP_NEW_N(ctx->scratch, ap_id, p->n);
	out->goes_with = AP_NEW_N(ctx->scratch, const uint32_t *, p->n);
	n = find_heads(&t);
	if (n == p->n)
		return false;
	out->node = AP_NEW_N(ctx->scratch, ap_id, n);
	out->place = AP_NEW_N(ctx->scratch, ap_id, p->n);
	t.node = AP_NEW_N(ctx->scratch, struct ap_pnode, n);
	t.cost = AP_NEW_N(ctx->scratch, double *, n);
	t.memory = AP_NEW_N(ctx->scratch, int64_t *, n);
	join_nodes(&t);
	join_edges(&t);
	out->p = (struct ap_problem){.n = n, .node = t.node, .nedge = (uint32_t)t.edge.n, .edge = t.edge.v,
		.nmatrix = (uint32_t)t.matrix.n, .matrix = t.matrix.v, .memory_limit = p->memory_limit,
		.quantum = p->quantum};
	return true;
}

void ap_tied_expand(const struct ap_tied *t, const struct ap_problem *whole, const uint32_t *rest,
	uint32_t *pick)
{
	for (ap_id i = 0; i < whole->n; i++) {
		uint32_t c = rest[t->place[i]];

		pick[i] = t->goes_with[i] ? t->goes_with[i][c] : c;
	}
}

void ap_tied_narrow(const struct ap_tied *t, const uint32_t *pick, uint32_t *rest)
{
	for (ap_id i = 0; i < t->p.n; i++)
		rest[i] = pick[t->node[i]];
}

bool ap_tied_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget,
	ap_tied_fn *solve, const void *user, struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_budget own = *budget;
	struct ap_tied rest = {0};
	bool tied = ap_tied_make(ctx, p, &rest);

	for (size_t i = 0; tied && i < AP_COUNT(own.start); i++) {
		uint32_t *start;

		if (!own.start[i])
			continue;
		start = AP_NEW_N(ctx->scratch, uint32_t, rest.p.n);
		ap_tied_narrow(&rest, own.start[i], start);
		own.start[i] = start;
	}
	if (tied)
		solve(ctx, user, &rest.p, &own, out);
	if (tied && out->pick) {
		uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, p->n);

		ap_tied_expand(&rest, p, out->pick, pick);
		out->pick = pick;
	}
	ap_arena_release(ctx->scratch, mark);
	return tied;
}
