/* SPDX-License-Identifier: Apache-2.0 */
#include "search/drop_dominated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "problem/problem.h"

enum { MAX_ROUNDS = 4 };

struct side { /* an edge seen from the node being judged */
	uint32_t cols; /* number of the neighbour's remaining candidates */
	double *cost; /* [own left][cols] */
	int64_t *memory; /* NULL if all 0 */
	uint32_t *best; /* [own left] column of the least cost */
};

struct pruner {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	struct ap_domain *d;
	bool by_memory;
	struct ap_incident at;
	AP_VEC(uint64_t) key;
	struct side *side; /* of the current node */
	uint32_t nside;
	uint64_t work;
};

/* ---- which nodes look alike ---- */

static void add_words(struct pruner *r, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t word;
		memcpy(&word, (const char *)p + i * sizeof word, sizeof word);
		AP_PUSH(r->ctx->scratch, r->key, word);
	}
}

static void add_domain(struct pruner *r, const struct ap_domain *d)
{
	AP_PUSH(r->ctx->scratch, r->key, d->n);
	for (uint32_t i = 0; i < d->n; i++)
		AP_PUSH(r->ctx->scratch, r->key, d->c[i]);
}

static int by_words(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	if (x[0] != y[0])
		return x[0] < y[0] ? -1 : 1;
	return (x[1] > y[1]) - (x[1] < y[1]);
}

/* The key of v: costs, domain, and for each edge the matrix, its side and the far domain. */
static void make_key(struct pruner *r, ap_id v, const ap_id *set)
{
	const struct ap_pnode *node = &r->p->node[v];
	bool with_memory = r->by_memory && node->memory;
	r->key.n = 0;
	AP_PUSH(r->ctx->scratch, r->key, (uint64_t)node->k << 1 | with_memory);
	add_words(r, node->cost, node->k);
	if (with_memory)
		add_words(r, node->memory, node->k);
	AP_PUSH(r->ctx->scratch, r->key, set[v]);
	size_t start = r->key.n;
	for (ap_id i = r->at.first[v]; i < r->at.first[v + 1]; i++) {
		const struct ap_pedge *e = &r->p->edge[r->at.edge[i]];
		AP_PUSH(r->ctx->scratch, r->key, (uint64_t)e->matrix << 1 | (e->v == v));
		AP_PUSH(r->ctx->scratch, r->key, set[e->u == v ? e->v : e->u]);
	}
	qsort(r->key.v + start, (r->key.n - start) / 2, 2 * sizeof(uint64_t), by_words);
}

static ap_id *number_domains(struct pruner *r)
{
	ap_id *set = AP_NEW_N(r->ctx->scratch, ap_id, r->p->n);
	struct ap_map *sets = ap_map_create(r->ctx->scratch);
	for (uint32_t v = 0; v < r->p->n; v++) {
		r->key.n = 0;
		add_domain(r, &r->d[v]);
		set[v] = ap_map_put(sets, r->key.v, r->key.n * sizeof *r->key.v, NULL);
	}
	return set;
}

/* ---- one node ---- */

static void fill_side(struct pruner *r, struct side *s, ap_id v, const struct ap_pedge *e)
{
	const struct ap_pmatrix *m = &r->p->matrix[e->matrix];
	const struct ap_domain *own = &r->d[v], *beyond = &r->d[e->u == v ? e->v : e->u];
	size_t row = e->u == v ? m->cols : 1, col = e->u == v ? 1 : m->cols;
	s->cols = beyond->n;
	s->cost = ap_arena_alloc_raw(r->ctx->scratch, (size_t)own->n * s->cols, sizeof *s->cost);
	s->best = AP_NEW_N(r->ctx->scratch, uint32_t, own->n);
	s->memory = NULL;
	if (r->by_memory && m->memory)
		s->memory = AP_NEW_N(r->ctx->scratch, int64_t, (size_t)own->n * s->cols);
	for (uint32_t i = 0; i < own->n; i++) {
		double *to = s->cost + (size_t)i * s->cols;
		for (uint32_t j = 0; j < s->cols; j++) {
			size_t at = own->c[i] * row + beyond->c[j] * col;
			to[j] = m->cost[at];
			if (s->memory)
				s->memory[(size_t)i * s->cols + j] = m->memory[at];
			if (to[j] < to[s->best[i]])
				s->best[i] = j;
		}
	}
	r->work += (uint64_t)own->n * s->cols;
}

static bool dead(const struct pruner *r, uint32_t c)
{
	for (uint32_t i = 0; i < r->nside; i++) {
		const struct side *s = &r->side[i];
		if (s->cost[(size_t)c * s->cols + s->best[c]] == INFINITY)
			return true;
	}
	return false;
}

/* An upper bound of the gain of replacing c by d: neighbours are at their best choice for c. */
static double gain_bound(const struct pruner *r, const double *own, uint32_t c, uint32_t d)
{
	double gain = own[c] - own[d];
	for (uint32_t i = 0; i < r->nside; i++) {
		const struct side *s = &r->side[i];
		gain += s->cost[(size_t)c * s->cols + s->best[c]] -
			s->cost[(size_t)d * s->cols + s->best[c]];
	}
	return gain;
}

/* The least a[j] - b[j] over finite a[j]; infinity minus infinity compares false. */
static double least_gain(const double *a, const double *b, uint32_t n)
{
	double least = INFINITY;
	for (uint32_t j = 0; j < n; j++) {
		double gain = a[j] - b[j];
		least = gain < least ? gain : least;
	}
	return least;
}

static double gain_of(const struct pruner *r, const double *own, uint32_t c, uint32_t d)
{
	double gain = own[c] - own[d];
	for (uint32_t i = 0; i < r->nside; i++) {
		const struct side *s = &r->side[i];
		gain += least_gain(s->cost + (size_t)c * s->cols, s->cost + (size_t)d * s->cols,
			s->cols);
	}
	return gain;
}

static int64_t least_memory_gain(const struct side *s, uint32_t c, uint32_t d)
{
	const double *cost = s->cost + (size_t)c * s->cols;
	const int64_t *a = s->memory + (size_t)c * s->cols, *b = s->memory + (size_t)d * s->cols;
	int64_t least = INT64_MAX;
	for (uint32_t j = 0; j < s->cols; j++) {
		if (cost[j] < INFINITY && a[j] - b[j] < least)
			least = a[j] - b[j];
	}
	return least;
}

/* Does replacing c (not dead) by d never need more memory? */
static bool memory_no_worse(const struct pruner *r, const int64_t *own, uint32_t c, uint32_t d)
{
	int64_t gain = own ? own[c] - own[d] : 0;
	for (uint32_t i = 0; i < r->nside; i++) {
		if (r->side[i].memory)
			gain += least_memory_gain(&r->side[i], c, d);
	}
	return gain >= 0;
}

static bool beaten(struct pruner *r, const double *own, const int64_t *memory, uint32_t c,
	uint32_t d)
{
	r->work += r->nside;
	if (gain_bound(r, own, c, d) < 0)
		return false;
	for (uint32_t i = 0; i < r->nside; i++)
		r->work += r->side[i].cols;
	double gain = gain_of(r, own, c, d);
	return (gain > 0 || (gain == 0 && d < c)) && memory_no_worse(r, memory, c, d);
}

/* Marks candidates to drop; true if there are any. */
static bool judge(struct pruner *r, const double *own, const int64_t *memory, uint32_t n,
	bool *gone)
{
	bool any = false;
	for (uint32_t c = 0; c < n; c++)
		any |= gone[c] = dead(r, c);
	for (uint32_t c = 0; c < n; c++) {
		for (uint32_t d = 0; d < n && !gone[c]; d++) {
			if (d != c && !gone[d] && beaten(r, own, memory, c, d))
				any = gone[c] = true;
		}
	}
	return any;
}

static void shrink(struct pruner *r, struct ap_domain *d, const bool *gone)
{
	struct ap_domain left = {0, AP_NEW_N(r->ctx->scratch, uint32_t, d->n)};
	for (uint32_t i = 0; i < d->n; i++) {
		if (!gone[i])
			left.c[left.n++] = d->c[i];
	}
	*d = left;
}

/* Marks candidates to drop from the domain of v; true if there are any. */
static bool judge_node(struct pruner *r, ap_id v, bool *gone)
{
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	const struct ap_domain *d = &r->d[v];
	const struct ap_pnode *node = &r->p->node[v];
	double *own = AP_NEW_N(r->ctx->scratch, double, d->n);
	int64_t *memory = r->by_memory && node->memory ? AP_NEW_N(r->ctx->scratch, int64_t, d->n)
						       : NULL;
	bool any;
	for (uint32_t i = 0; i < d->n; i++) {
		own[i] = node->cost[d->c[i]];
		if (memory)
			memory[i] = node->memory[d->c[i]];
	}
	r->nside = r->at.first[v + 1] - r->at.first[v];
	r->side = AP_NEW_N(r->ctx->scratch, struct side, r->nside);
	for (uint32_t i = 0; i < r->nside; i++)
		fill_side(r, &r->side[i], v, &r->p->edge[r->at.edge[r->at.first[v] + i]]);
	any = judge(r, own, memory, d->n, gone);
	ap_arena_release(r->ctx->scratch, mark);
	return any;
}

/* The domain of v after one judgement, unchanged if nothing is dropped. */
static struct ap_domain judged(struct pruner *r, ap_id v)
{
	struct ap_domain d = r->d[v];
	bool *gone = AP_NEW_N(r->ctx->scratch, bool, d.n);
	if (judge_node(r, v, gone))
		shrink(r, &d, gone);
	return d;
}

/* Judges every node by the current domains; nodes that look alike share a verdict. */
static bool one_round(struct pruner *r)
{
	uint32_t n = r->p->n;
	ap_id *set = number_domains(r);
	struct ap_map *classes = ap_map_create(r->ctx->scratch);
	ap_id *leader = AP_NEW_N(r->ctx->scratch, ap_id, n); /* by class */
	struct ap_domain *next = AP_NEW_N(r->ctx->scratch, struct ap_domain, n);
	bool any = false;
	for (ap_id v = 0; v < n; v++) {
		if (ap_ctx_stopped(r->ctx))
			return false;
		bool fresh;
		make_key(r, v, set);
		ap_id class = ap_map_put(classes, r->key.v, r->key.n * sizeof *r->key.v, &fresh);
		if (fresh)
			leader[class] = v;
		next[v] = fresh ? judged(r, v) : next[leader[class]];
		any |= next[v].n < r->d[v].n;
	}
	memcpy(r->d, next, n * sizeof *next);
	return any;
}

bool ap_drop_dominated(struct ap_ctx *ctx, const struct ap_problem *p, struct ap_domain *domain,
	uint64_t *work)
{
	struct pruner r = {.ctx = ctx, .p = p, .d = domain,
		.by_memory = p->memory_limit != AP_NO_LIMIT};
	r.at = ap_incident_make(ctx, p);
	for (int i = 0; i < MAX_ROUNDS && !ap_domain_empty(p, domain) && one_round(&r); i++)
		;
	*work += r.work;
	return !ap_ctx_stopped(ctx);
}

double ap_prune_price(const struct ap_problem *p)
{
	double price = 0;
	for (uint32_t i = 0; i < p->nedge; i++) {
		double u = p->node[p->edge[i].u].k, v = p->node[p->edge[i].v].k;
		price += 2 * u * v + u * u + v * v;
	}
	return price;
}
