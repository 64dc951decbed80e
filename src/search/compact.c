/* SPDX-License-Identifier: Apache-2.0 */
#include "search/compact.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct ap_domain *ap_domain_all(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_domain *d = AP_NEW_N(ctx->scratch, struct ap_domain, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		d[i].c = AP_NEW_N(ctx->scratch, uint32_t, p->node[i].k);
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			if (p->node[i].cost[c] < INFINITY)
				d[i].c[d[i].n++] = c;
		}
	}
	return d;
}

bool ap_domain_empty(const struct ap_problem *p, const struct ap_domain *d)
{
	for (uint32_t i = 0; i < p->n; i++) {
		if (d[i].n == 0)
			return true;
	}
	return false;
}

struct list { /* costs of a node's remaining candidates */
	const double *cost;
	const int64_t *memory;
};

struct list_key { /* has no padding: compared by bytes */
	struct list of;
	uint32_t k;
	ap_id set;
};

struct maker {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	const struct ap_domain *d;
	struct ap_compact *out;
	bool by_memory;
	ap_id *place; /* [n] of the whole: index in the rest; AP_NONE if settled */
	ap_id *set; /* [n] of the whole: domain number, equal for equal domains */
	struct ap_map *cuts; /* matrix and two domains -> matrix of the rest */
	struct ap_map *list_ids; /* nodes with shared lists share the cut ones, too */
	AP_VEC(struct list) list;
	struct ap_pnode *rest;
	double **cost; /* [n] of the rest: own costs with edges folded in; NULL: shared */
	int64_t **memory;
	AP_VEC(struct ap_pedge) edge;
	AP_VEC(struct ap_pmatrix) matrix;
};

static bool whole(const struct maker *m, ap_id v)
{
	return m->d[v].n == m->p->node[v].k;
}

static void number_domains(struct maker *m)
{
	struct ap_map *sets = ap_map_create(m->ctx->scratch);
	m->set = AP_NEW_N(m->ctx->scratch, ap_id, m->p->n);
	for (uint32_t i = 0; i < m->p->n; i++)
		m->set[i] = whole(m, i) ? AP_NONE :
			ap_map_put(sets, m->d[i].c, m->d[i].n * sizeof *m->d[i].c, NULL);
}

static struct list cut_list(struct maker *m, ap_id v)
{
	const struct ap_pnode *node = &m->p->node[v];
	const struct ap_domain *d = &m->d[v];
	struct list l = {node->cost, m->by_memory ? node->memory : NULL};
	double *cost;
	int64_t *memory;
	if (whole(m, v) && (l.memory || !m->by_memory))
		return l;
	cost = ap_arena_alloc_raw(m->ctx->scratch, d->n, sizeof *cost);
	memory = m->by_memory ? AP_NEW_N(m->ctx->scratch, int64_t, d->n) : NULL;
	for (uint32_t i = 0; i < d->n; i++)
		cost[i] = l.cost[d->c[i]];
	for (uint32_t i = 0; l.memory && i < d->n; i++)
		memory[i] = l.memory[d->c[i]];
	return (struct list){cost, memory};
}

/* Gives this node of the rest lists of its own. */
static void own_lists(struct maker *m, ap_id place)
{
	struct ap_pnode *node = &m->rest[place];
	if (m->cost[place])
		return;
	node->cost = m->cost[place] =
		ap_arena_memdup(m->ctx->scratch, node->cost, node->k * sizeof *node->cost);
	if (m->by_memory)
		node->memory = m->memory[place] = ap_arena_memdup(m->ctx->scratch, node->memory,
			node->k * sizeof *node->memory);
}

/* Folds in an edge with at least one settled end. */
static void fold_edge(struct maker *m, const struct ap_pedge *e)
{
	const struct ap_pmatrix *x = &m->p->matrix[e->matrix];
	ap_id u = m->place[e->u], v = m->place[e->v], open = u != AP_NONE ? u : v;
	if (open != AP_NONE)
		own_lists(m, open);
	for (uint32_t i = 0; i < m->d[e->u].n; i++) {
		for (uint32_t j = 0; j < m->d[e->v].n; j++) {
			size_t at = (size_t)m->d[e->u].c[i] * x->cols + m->d[e->v].c[j];
			int64_t memory = m->by_memory && x->memory ? x->memory[at] : 0;
			if (open == AP_NONE) {
				m->out->cost += x->cost[at];
				m->out->memory += memory;
				continue;
			}
			m->cost[open][i + j] += x->cost[at]; /* the settled end's index is 0 */
			if (m->by_memory)
				m->memory[open][i + j] += memory;
		}
	}
}

static struct ap_pmatrix cut_matrix(struct maker *m, const struct ap_pedge *e)
{
	const struct ap_pmatrix *x = &m->p->matrix[e->matrix];
	const struct ap_domain *r = &m->d[e->u], *c = &m->d[e->v];
	bool by_memory = m->by_memory && x->memory;
	if (whole(m, e->u) && whole(m, e->v))
		return (struct ap_pmatrix){x->rows, x->cols, x->cost, by_memory ? x->memory : NULL};
	size_t cells = (size_t)r->n * c->n;
	double *cost = ap_arena_alloc_raw(m->ctx->scratch, cells, sizeof *cost);
	int64_t *memory = by_memory ? AP_NEW_N(m->ctx->scratch, int64_t, cells) : NULL;
	for (uint32_t i = 0; i < r->n; i++) {
		for (uint32_t j = 0; j < c->n; j++) {
			size_t from = (size_t)r->c[i] * x->cols + c->c[j];
			size_t to = (size_t)i * c->n + j;
			cost[to] = x->cost[from];
			if (by_memory)
				memory[to] = x->memory[from];
		}
	}
	return (struct ap_pmatrix){r->n, c->n, cost, memory};
}

static uint32_t count_open(const struct ap_problem *p, const struct ap_domain *d)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n; i++)
		n += d[i].n > 1;
	return n;
}

static void cut_nodes(struct maker *m)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->p->n; i++) {
		if (m->d[i].n > 1) {
			ap_id place = n++;
			const struct ap_pnode *node = &m->p->node[i];
			struct list_key key = {{node->cost, node->memory}, node->k, m->set[i]};
			bool fresh;
			ap_id id = ap_map_put(m->list_ids, &key, sizeof key, &fresh);

			if (fresh)
				AP_PUSH(m->ctx->scratch, m->list, cut_list(m, i));
			m->place[i] = place;
			m->out->node[place] = i;
			m->rest[place] = (struct ap_pnode){.name = node->name, .k = m->d[i].n,
				.cost = m->list.v[id].cost, .memory = m->list.v[id].memory};
		} else {
			const struct ap_pnode *node = &m->p->node[i];
			uint32_t c = m->d[i].c[0];

			m->place[i] = AP_NONE;
			m->out->cost += node->cost[c];
			m->out->memory += m->by_memory && node->memory ? node->memory[c] : 0;
		}
	}
}

static void cut_edges(struct maker *m)
{
	for (uint32_t i = 0; i < m->p->nedge; i++) {
		const struct ap_pedge *e = &m->p->edge[i];
		if (m->place[e->u] == AP_NONE || m->place[e->v] == AP_NONE) {
			fold_edge(m, e);
		} else {
			ap_id key[3] = {e->matrix, m->set[e->u], m->set[e->v]};
			bool fresh;
			ap_id matrix = ap_map_put(m->cuts, key, sizeof key, &fresh);

			if (fresh)
				AP_PUSH(m->ctx->scratch, m->matrix, cut_matrix(m, e));
			struct ap_pedge rest = {m->place[e->u], m->place[e->v], matrix};
			AP_PUSH(m->ctx->scratch, m->edge, rest);
		}
	}
}

const struct ap_compact *ap_compact_make(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_domain *domain)
{
	struct ap_arena *arena = ctx->scratch;
	struct maker m = {.ctx = ctx, .p = p, .d = domain};
	uint32_t n = count_open(p, domain);
	m.out = AP_NEW(arena, struct ap_compact);
	m.out->node = AP_NEW_N(arena, ap_id, n);
	m.out->domain = domain;
	m.by_memory = p->memory_limit != AP_NO_LIMIT;
	m.place = AP_NEW_N(arena, ap_id, p->n);
	m.rest = AP_NEW_N(arena, struct ap_pnode, n);
	m.cost = AP_NEW_N(arena, double *, n);
	m.memory = AP_NEW_N(arena, int64_t *, n);
	m.cuts = ap_map_create(arena);
	m.list_ids = ap_map_create(arena);
	number_domains(&m);
	cut_nodes(&m);
	cut_edges(&m);
	m.out->p = (struct ap_problem){
		.n = n, .node = m.rest,
		.nedge = (uint32_t)m.edge.n, .edge = m.edge.v,
		.nmatrix = (uint32_t)m.matrix.n, .matrix = m.matrix.v,
		.memory_limit = m.by_memory ? p->memory_limit - m.out->memory : AP_NO_LIMIT,
		.quantum = p->quantum,
	};
	return m.out;
}

void ap_compact_expand(const struct ap_compact *c, const struct ap_problem *whole,
	const uint32_t *rest, uint32_t *pick)
{
	for (uint32_t i = 0; i < whole->n; i++)
		pick[i] = c->domain[i].c[0];
	for (uint32_t i = 0; i < c->p.n; i++)
		pick[c->node[i]] = c->domain[c->node[i]].c[rest[i]];
}

/* Index of a candidate in the domain; 0 if it is gone. */
static uint32_t find(const struct ap_domain *d, uint32_t candidate)
{
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->c[i] == candidate)
			return i;
	}
	return 0;
}

void ap_compact_narrow(const struct ap_compact *c, const uint32_t *pick, uint32_t *rest)
{
	for (uint32_t i = 0; i < c->p.n; i++)
		rest[i] = find(&c->domain[c->node[i]], pick[c->node[i]]);
}
