/* SPDX-License-Identifier: Apache-2.0 */
#include "hard_problem.h"

#include <math.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "draw.h"

enum { SMALL_US = 300, LARGE_US = 1000, TENSORS = 4, SWAPS = 10 };

struct maker {
	struct ap_ctx *ctx;
	struct hard_spec spec;
	uint64_t state;
	uint32_t n;
	AP_VEC(struct ap_pedge) edge;
	double **cost; /* [nedge][k * k], row: the smaller node's candidate */
	struct ap_pnode *node;
	uint32_t *planted; /* [n] a pick that is allowed */
	uint32_t *layout; /* [n][k] permutations: which layout a candidate is */
	double *distance; /* [k][k] of two layouts, in parts of a tensor's time */
	double optimum;
};

/* ---- shapes ---- */

static bool joined(const struct maker *m, uint32_t u, uint32_t v)
{
	for (size_t i = 0; i < m->edge.n; i++)
		if (m->edge.v[i].u == (u < v ? u : v) && m->edge.v[i].v == (u < v ? v : u))
			return true;
	return false;
}

static void join(struct maker *m, uint32_t u, uint32_t v)
{
	struct ap_pedge e = {u < v ? u : v, u < v ? v : u, (ap_id)m->edge.n};

	AP_PUSH(m->ctx->arena, m->edge, e);
}

static void make_grid(struct maker *m, bool around)
{
	uint32_t w = m->spec.a, h = m->spec.b;

	m->n = w * h;
	for (uint32_t y = 0; y < h; y++) {
		for (uint32_t x = 0; x < w; x++) {
			if (x + 1 < w || (around && w > 2))
				join(m, y * w + x, y * w + (x + 1) % w);
			if (y + 1 < h || (around && h > 2))
				join(m, y * w + x, (y + 1) % h * w + x);
		}
	}
}

/* A ring of neighbours, in which pairs of edges then change partners. */
static void make_regular(struct maker *m)
{
	uint32_t n = m->n = m->spec.a, degree = m->spec.b;

	for (uint32_t d = 1; d <= degree / 2; d++)
		for (uint32_t i = 0; i < n; i++)
			join(m, i, (i + d) % n);
	for (uint32_t i = 0; degree % 2 && i < n / 2; i++)
		join(m, i, i + n / 2);
	for (size_t t = 0; t < SWAPS * m->edge.n; t++) {
		struct ap_pedge *e = &m->edge.v[draw_below(&m->state, m->edge.n)];
		struct ap_pedge *f = &m->edge.v[draw_below(&m->state, m->edge.n)];
		uint32_t a = e->u, b = e->v, c = f->u, d = f->v;

		if (draw_below(&m->state, 2)) {
			c = f->v;
			d = f->u;
		}
		if (a == c || a == d || b == c || b == d || joined(m, a, d) || joined(m, b, c))
			continue;
		*e = (struct ap_pedge){a < d ? a : d, a < d ? d : a, e->matrix};
		*f = (struct ap_pedge){b < c ? b : c, b < c ? c : b, f->matrix};
	}
}

static void make_clique(struct maker *m)
{
	m->n = m->spec.a;
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t j = i + 1; j < m->n; j++)
			join(m, i, j);
}

static void make_dag(struct maker *m)
{
	uint32_t width = m->spec.b;

	m->n = m->spec.a * width;
	for (uint32_t layer = 1; layer < m->spec.a; layer++) {
		for (uint32_t i = 0; i < width; i++) {
			uint32_t to = layer * width + i, first = (uint32_t)draw_below(&m->state, width);

			join(m, (layer - 1) * width + first, to);
			if (width > 1)
				join(m, (layer - 1) * width + (first + 1 +
					(uint32_t)draw_below(&m->state, width - 1)) % width, to);
			if (layer > 1 && draw_below(&m->state, 4) == 0)
				join(m, (layer - 2) * width + (uint32_t)draw_below(&m->state, width), to);
		}
	}
}

static void make_edges(struct maker *m)
{
	switch (m->spec.shape) {
	case HARD_GRID:
	case HARD_TORUS:
		make_grid(m, m->spec.shape == HARD_TORUS);
		break;
	case HARD_REGULAR:
		make_regular(m);
		break;
	case HARD_CLIQUE:
		make_clique(m);
		break;
	default:
		make_dag(m);
	}
}

/* ---- costs ---- */

static void make_layouts(struct maker *m)
{
	uint32_t k = m->spec.k;

	m->layout = AP_NEW_N(m->ctx->arena, uint32_t, (size_t)m->n * k);
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t *l = m->layout + (size_t)i * k;

		for (uint32_t c = 0; c < k; c++) {
			uint32_t at = (uint32_t)draw_below(&m->state, c + 1);

			l[c] = l[at];
			l[at] = c;
		}
	}
	m->distance = AP_NEW_N(m->ctx->arena, double, (size_t)k * k);
	for (uint32_t a = 0; a < k; a++)
		for (uint32_t b = 0; b < k; b++)
			m->distance[a * k + b] = a == b ? 0 : (double)(1 + draw_below(&m->state, 8)) / 8;
}

static double pair_cost(struct maker *m, const struct ap_pedge *e, double tensor_s, uint32_t row,
	uint32_t col)
{
	uint32_t k = m->spec.k;

	switch (m->spec.costs) {
	case HARD_NODES:
		return row == col ? 0 : draw_seconds(&m->state, SMALL_US);
	case HARD_LEVELS:
		return (double)draw_below(&m->state, 4) * 0x1p-12;
	case HARD_LAYOUT:
		return ap_quantise_s(tensor_s * m->distance[(size_t)m->layout[e->u * k + row] * k +
			m->layout[e->v * k + col]], AP_QUANTUM_S);
	default:
		return draw_seconds(&m->state, LARGE_US);
	}
}

static uint64_t node_us(const struct maker *m)
{
	return m->spec.costs == HARD_NODES ? LARGE_US : SMALL_US;
}

static double node_cost(struct maker *m)
{
	return m->spec.costs == HARD_LEVELS ? (double)draw_below(&m->state, 2) * 0x1p-12
		: draw_seconds(&m->state, node_us(m));
}

static void draw_costs(struct maker *m)
{
	uint32_t k = m->spec.k;

	m->cost = AP_NEW_N(m->ctx->arena, double *, m->edge.n);
	for (size_t e = 0; e < m->edge.n; e++) {
		double tensor_s = (double)(LARGE_US >> draw_below(&m->state, TENSORS)) * 1e-6;

		m->cost[e] = AP_NEW_N(m->ctx->arena, double, (size_t)k * k);
		for (uint32_t i = 0; i < k * k; i++) {
			double cost = pair_cost(m, &m->edge.v[e], tensor_s, i / k, i % k);

			m->cost[e][i] = i > 0 && draw_below(&m->state, 100) < m->spec.forbidden ? INFINITY
				: cost;
		}
	}
	m->node = AP_NEW_N(m->ctx->arena, struct ap_pnode, m->n);
	for (uint32_t i = 0; i < m->n; i++) {
		double *cost = AP_NEW_N(m->ctx->arena, double, k);

		for (uint32_t c = 0; c < k; c++)
			cost[c] = node_cost(m);
		m->node[i] = (struct ap_pnode){.name = "node", .k = k, .cost = cost};
	}
}

/* ---- planting ---- */

/* Edges from one node to the next around a cycle of 3 or 4 nodes; or one edge between 2. */
struct part {
	uint32_t n;
	uint32_t node[4];
	size_t edge[4];
};

static bool edge_between(const struct maker *m, const bool *used, const struct ap_incident *at, uint32_t u,
	uint32_t v, size_t *edge)
{
	for (ap_id i = at->first[u]; i < at->first[u + 1]; i++) {
		const struct ap_pedge *e = &m->edge.v[at->edge[i]];

		if (!used[at->edge[i]] && (e->u == v || e->v == v)) {
			*edge = at->edge[i];
			return true;
		}
	}
	return false;
}

static uint32_t far_end(const struct ap_pedge *e, uint32_t u)
{
	return e->u == u ? e->v : e->u;
}

/* The unused edge `first`, closed to a triangle or a square by other unused ones if there are any. */
static struct part part_of(const struct maker *m, bool *used, const struct ap_incident *at, size_t first)
{
	uint32_t u = m->edge.v[first].u, v = m->edge.v[first].v;
	struct part single = {2, {u, v}, {first}}, found = single;

	used[first] = true;
	for (uint32_t length = 3; length <= 4 && found.n == 2; length++) {
		for (ap_id i = at->first[v]; i < at->first[v + 1] && found.n == 2; i++) {
			uint32_t w = far_end(&m->edge.v[at->edge[i]], v);
			size_t last, third;

			if (used[at->edge[i]] || w == u)
				continue;
			if (length == 3 && edge_between(m, used, at, w, u, &last))
				found = (struct part){3, {u, v, w}, {first, at->edge[i], last}};
			for (ap_id j = at->first[w]; length == 4 && j < at->first[w + 1]; j++) {
				uint32_t x = far_end(&m->edge.v[at->edge[j]], w);

				third = at->edge[j];
				if (used[third] || x == u || x == v ||
					!edge_between(m, used, at, x, u, &last))
					continue;
				found = (struct part){4, {u, v, w, x}, {first, at->edge[i], third, last}};
				break;
			}
		}
	}
	for (uint32_t i = 0; i < (found.n == 2 ? 1 : found.n); i++)
		used[found.edge[i]] = true;
	return found;
}

/* Where the cost of `edge` for these candidates of u and its other end stands. */
static double *cell(const struct maker *m, size_t edge, uint32_t u, uint32_t of_u, uint32_t of_other)
{
	bool row = m->edge.v[edge].u == u;

	return &m->cost[edge][(size_t)(row ? of_u : of_other) * m->spec.k + (row ? of_other : of_u)];
}

/* The least cost from candidate a of one node over the next to candidate b of the one after that. */
static double through(const struct maker *m, const struct part *t, uint32_t at, uint32_t a, uint32_t b,
	uint32_t *via)
{
	uint32_t next = (at + 1) % t->n;
	double least = INFINITY;

	for (uint32_t c = 0; c < m->spec.k; c++) {
		double sum = *cell(m, t->edge[at], t->node[at], a, c) +
			*cell(m, t->edge[next], t->node[next], c, b);

		if (sum < least) {
			least = sum;
			*via = c;
		}
	}
	return least;
}

/* The best candidates of a part's nodes, and their cost. */
static double best_of(const struct maker *m, const struct part *t, uint32_t best[4])
{
	double least = INFINITY;

	for (uint32_t a = 0; a < m->spec.k; a++) {
		for (uint32_t b = 0; b < m->spec.k; b++) {
			uint32_t via[2] = {0};
			double sum = t->n == 2 ? *cell(m, t->edge[0], t->node[0], a, b)
				: through(m, t, 0, a, b, &via[0]);

			if (t->n == 3)
				sum += *cell(m, t->edge[2], t->node[2], b, a);
			if (t->n == 4)
				sum += through(m, t, 2, b, a, &via[1]);
			if (sum < least) {
				least = sum;
				best[0] = a;
				best[1] = t->n == 2 ? b : via[0];
				best[2] = b;
				best[3] = via[1];
			}
		}
	}
	return least;
}

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

/* Exchanges two candidates of u in an edge's costs. */
static void exchange(struct maker *m, size_t edge, uint32_t u, uint32_t c, uint32_t d)
{
	for (uint32_t i = 0; c != d && i < m->spec.k; i++)
		swap(cell(m, edge, u, c, i), cell(m, edge, u, d, i));
}

static void plant_parts(struct maker *m)
{
	struct ap_problem shape = {.n = m->n, .nedge = (uint32_t)m->edge.n, .edge = m->edge.v};
	struct ap_incident at = ap_incident_make(m->ctx, &shape);
	bool *used = AP_NEW_N(m->ctx->scratch, bool, m->edge.n);

	for (size_t e = 0; e < m->edge.n; e++) {
		uint32_t best[4] = {0};
		struct part t;

		if (used[e])
			continue;
		t = part_of(m, used, &at, e);
		m->optimum += best_of(m, &t, best);
		for (uint32_t i = 0; i < t.n; i++) {
			exchange(m, t.edge[i < 2 || t.n > 2 ? i % (t.n == 2 ? 1 : t.n) : 0], t.node[i],
				best[i], m->planted[t.node[i]]);
			if (t.n > 2)
				exchange(m, t.edge[(i + t.n - 1) % t.n], t.node[i], best[i],
					m->planted[t.node[i]]);
		}
	}
	for (uint32_t i = 0; i < m->n; i++) {
		double *cost = (double *)m->node[i].cost;
		uint32_t best = 0;

		for (uint32_t c = 1; c < m->spec.k; c++)
			best = cost[c] < cost[best] ? c : best;
		swap(&cost[best], &cost[m->planted[i]]);
		m->optimum += cost[m->planted[i]];
	}
}

/* Puts the pair that is never forbidden where the allowed pick is. */
static void allow_pick(struct maker *m)
{
	for (size_t e = 0; e < m->edge.n; e++)
		for (int side = 0; side < 2; side++) {
			uint32_t u = side ? m->edge.v[e].v : m->edge.v[e].u;

			exchange(m, e, u, 0, m->planted[u]);
		}
}

/* ---- memory ---- */

/* The faster a candidate, the more it needs, roughly; the limit is what the allowed pick needs, and a little
 * more, or lies between the least and what the fastest need. */
static int64_t make_memory(struct maker *m)
{
	int64_t own = 0, least = 0, fastest = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		struct ap_pnode *node = &m->node[i];
		int64_t *memory = AP_NEW_N(m->ctx->arena, int64_t, node->k), low = INT64_MAX;
		uint32_t best = 0;

		for (uint32_t c = 0; c < node->k; c++) {
			memory[c] = (int64_t)(((double)node_us(m) * 1e-6 - node->cost[c]) * 1e9) +
				(int64_t)draw_below(&m->state, node_us(m) * 1000) + 1000000;
			low = memory[c] < low ? memory[c] : low;
			best = node->cost[c] < node->cost[best] ? c : best;
		}
		node->memory = memory;
		own += memory[m->planted[i]];
		least += low;
		fastest += memory[best];
	}
	if (m->spec.planted || m->spec.forbidden)
		return own + (fastest - least) / 16;
	return (2 * fastest + 3 * least) / 5;
}

struct hard_problem hard_problem_make(struct ap_ctx *ctx, const struct hard_spec *spec)
{
	struct maker m = {.ctx = ctx, .spec = *spec, .state = spec->seed * 2 + 1};
	struct ap_problem *p = AP_NEW(ctx->arena, struct ap_problem);
	struct ap_pmatrix *matrix;

	for (int i = 0; i < 16; i++)
		(void)draw_below(&m.state, 2);
	make_edges(&m);
	make_layouts(&m);
	m.planted = AP_NEW_N(ctx->arena, uint32_t, m.n);
	for (uint32_t i = 0; i < m.n; i++)
		m.planted[i] = (uint32_t)draw_below(&m.state, spec->k);
	draw_costs(&m);
	if (spec->planted)
		plant_parts(&m);
	else
		allow_pick(&m);
	*p = (struct ap_problem){.n = m.n, .node = m.node, .nedge = (uint32_t)m.edge.n, .edge = m.edge.v,
		.nmatrix = (uint32_t)m.edge.n, .memory_limit = AP_NO_LIMIT, .quantum = AP_QUANTUM_S};
	if (spec->memory)
		p->memory_limit = make_memory(&m);
	matrix = AP_NEW_N(ctx->arena, struct ap_pmatrix, m.edge.n);
	for (size_t e = 0; e < m.edge.n; e++)
		matrix[e] = (struct ap_pmatrix){spec->k, spec->k, m.cost[e], NULL};
	p->matrix = matrix;
	return (struct hard_problem){p, spec->planted ? m.planted : NULL, spec->planted ? m.optimum : 0};
}

const char *hard_shape_name(size_t i)
{
	static const char *const name[] = {"grid", "torus", "regular", "clique", "dag"};

	return i < AP_COUNT(name) ? name[i] : NULL;
}

const char *hard_costs_name(size_t i)
{
	static const char *const name[] = {"nodes", "edges", "levels", "layout"};

	return i < AP_COUNT(name) ? name[i] : NULL;
}
