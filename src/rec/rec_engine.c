/* SPDX-License-Identifier: Apache-2.0 */
/* recursive_programming on a plain table whose nodes know the results of further cuts. */
#include <math.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "problem/problem.h"
#include "rec/rec.h"
#include "search/engines.h"
#include "search/polish.h"

enum { LEVELS = 64, PASSES = 16, FEW = 64 };

struct list {
	uint32_t *v;
	size_t n, cap;
};

struct class { /* nodes that share their arrays */
	const struct ap_pnode *node;
	uint32_t *prev_first; /* [k + 1] into prev: candidates that are cut further to this one */
	uint32_t *prev;
	uint32_t start;
	struct list *further, *beside; /* [k] .v NULL: not yet made */
};

struct table {
	struct ap_arena *arena;
	const struct ap_problem *p;
	uint32_t *cls; /* [n] */
	AP_VEC(struct class) classes;
	struct ap_rec_edge *edge;
};

static const int32_t *ways(const struct class *c, uint32_t state)
{
	return c->node->next + (size_t)state * c->node->nway;
}

static uint32_t nways(const struct class *c)
{
	return c->node->next ? c->node->nway : 0;
}

static void list_previous(struct table *t, struct class *c)
{
	uint32_t k = c->node->k, *at;

	c->prev_first = AP_NEW_N(t->arena, uint32_t, k + 2);
	at = c->prev_first + 1;
	for (uint32_t s = 0; s < k; s++)
		for (uint32_t w = 0; w < nways(c); w++)
			if (ways(c, s)[w] >= 0)
				at[ways(c, s)[w] + 1]++;
	for (uint32_t s = 0; s < k; s++)
		at[s + 1] += at[s];
	c->prev = AP_NEW_N(t->arena, uint32_t, at[k]);
	for (uint32_t s = 0; s < k; s++) /* moves each start to its end */
		for (uint32_t w = 0; w < nways(c); w++)
			if (ways(c, s)[w] >= 0)
				c->prev[at[ways(c, s)[w]]++] = s;
}

/* The cheapest candidate that no cut leads to: uncut, as far as the table knows. */
static uint32_t find_start(const struct class *c)
{
	uint32_t best = 0;
	bool found = false;

	for (uint32_t s = 0; s < c->node->k; s++) {
		bool is_root = c->prev_first[s] == c->prev_first[s + 1];

		if (is_root && (!found || c->node->cost[s] < c->node->cost[best])) {
			best = s;
			found = true;
		}
	}
	return best;
}

static void make_classes(struct table *t)
{
	struct ap_map *seen = ap_map_create(t->arena);

	t->cls = AP_NEW_N(t->arena, uint32_t, t->p->n);
	for (uint32_t i = 0; i < t->p->n; i++) {
		const struct ap_pnode *node = &t->p->node[i];
		const void *key[] = {node->cost, node->memory, node->next};
		struct class c = {.node = node};
		bool fresh;

		t->cls[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (!fresh)
			continue;
		list_previous(t, &c);
		c.start = find_start(&c);
		c.further = AP_NEW_N(t->arena, struct list, node->k);
		c.beside = AP_NEW_N(t->arena, struct list, node->k);
		AP_PUSH(t->arena, t->classes, c);
	}
}

static bool forbids(const struct ap_pmatrix *m)
{
	for (size_t i = 0; i < (size_t)m->rows * m->cols; i++)
		if (isinf(m->cost[i]))
			return true;
	return false;
}

static bool has_negative(const struct ap_problem *p)
{
	for (uint32_t i = 0; i < p->nmatrix; i++) {
		const struct ap_pmatrix *m = &p->matrix[i];

		for (size_t j = 0; j < (size_t)m->rows * m->cols; j++)
			if (m->cost[j] < 0 || (m->memory && m->memory[j] < 0))
				return true;
	}
	return false;
}

static uint32_t start(void *self, uint32_t cls)
{
	const struct table *t = self;

	return t->classes.v[cls].start;
}

static void add(struct table *t, struct list *l, uint32_t self, uint32_t state)
{
	if (state == self)
		return;
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == state)
			return;
	AP_PUSH(t->arena, *l, state);
}

/* Adds candidates one cut further, or one less. */
static void add_around(struct table *t, const struct class *c, struct list *l, uint32_t self,
	uint32_t state, bool less)
{
	for (uint32_t w = 0; w < nways(c); w++)
		if (ways(c, state)[w] >= 0)
			add(t, l, self, (uint32_t)ways(c, state)[w]);
	for (uint32_t i = c->prev_first[state]; less && i < c->prev_first[state + 1]; i++)
		add(t, l, self, c->prev[i]);
}

static struct ap_rec_list listed(const struct list *l)
{
	return (struct ap_rec_list){(uint32_t)l->n, l->v};
}

static struct ap_rec_list further(void *self, uint32_t cls, uint32_t state, int32_t prime)
{
	struct table *t = self;
	struct class *c = &t->classes.v[cls];
	struct list *l = &c->further[state];

	(void)prime;
	if (l->n == 0)
		add_around(t, c, l, state, state, false);
	return listed(l);
}

/* All candidates if they are few; else those up to two cuts away. */
static struct ap_rec_list beside(void *self, uint32_t cls, uint32_t state)
{
	struct table *t = self;
	struct class *c = &t->classes.v[cls];
	struct list *l = &c->beside[state];

	if (l->n > 0)
		return listed(l);
	if (c->node->k <= FEW) {
		for (uint32_t s = 0; s < c->node->k; s++)
			add(t, l, state, s);
		return listed(l);
	}
	add_around(t, c, l, state, state, true);
	for (size_t i = 0, near = l->n; i < near; i++)
		add_around(t, c, l, state, l->v[i], true);
	return listed(l);
}

static double cell(const struct ap_pmatrix *m, uint32_t u, uint32_t v)
{
	return m->cost[(size_t)u * m->cols + v];
}

static struct ap_rec_list matching(void *self, uint32_t edge_cls, bool of_v, uint32_t other)
{
	struct table *t = self;
	const struct ap_pmatrix *m = &t->p->matrix[edge_cls];
	struct list l = {0};

	for (uint32_t s = 0; s < (of_v ? m->cols : m->rows); s++)
		if ((of_v ? cell(m, other, s) : cell(m, s, other)) < INFINITY)
			AP_PUSH(t->arena, l, s);
	return listed(&l);
}

static struct ap_rec_price node(void *self, uint32_t cls, uint32_t state)
{
	const struct table *t = self;
	const struct ap_pnode *n = t->classes.v[cls].node;

	return (struct ap_rec_price){n->cost[state], n->memory ? n->memory[state] : 0, 0};
}

static struct ap_rec_price pair(void *self, uint32_t edge_cls, uint32_t u, uint32_t v)
{
	const struct table *t = self;
	const struct ap_pmatrix *m = &t->p->matrix[edge_cls];

	return (struct ap_rec_price){cell(m, u, v),
		m->memory ? m->memory[(size_t)u * m->cols + v] : 0, 0};
}

static void search(struct ap_ctx *ctx, struct table *t, const struct ap_budget *budget,
	struct ap_rec_result *out)
{
	const struct ap_rec_limits limits = {t->p->memory_limit, budget->work};
	int32_t prime[LEVELS];
	const struct ap_rec_view view = {.self = t, .n = t->p->n, .nedge = t->p->nedge,
		.cls = t->cls, .edge = t->edge, .quantum = t->p->quantum, .negative = has_negative(t->p),
		.nlevel = LEVELS,
		.prime = prime, .start = start, .further = further, .beside = beside,
		.matching = matching, .node = node, .pair = pair};

	for (int i = 0; i < LEVELS; i++)
		prime[i] = 1; /* unknown in a table: any cut at any level */
	ap_rec_solve(ctx, &view, &limits, out);
}

void ap_recursive_solve(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *out)
{
	struct table t = {.arena = ap_arena_create_like(ctx->arena), .p = p};
	struct ap_rec_result found;
	bool *strict;

	ap_choice_none(ctx, p, "recursive_programming", out);
	make_classes(&t);
	strict = AP_NEW_N(t.arena, bool, t.p->nmatrix);
	for (uint32_t i = 0; i < t.p->nmatrix; i++)
		strict[i] = forbids(&t.p->matrix[i]);
	t.edge = AP_NEW_N(t.arena, struct ap_rec_edge, t.p->nedge);
	for (uint32_t i = 0; i < t.p->nedge; i++) {
		const struct ap_pedge *e = &t.p->edge[i];

		t.edge[i] = (struct ap_rec_edge){e->u, e->v, e->matrix, strict[e->matrix]};
	}
	search(ctx, &t, budget, &found);
	ap_polish(ctx, p, PASSES, found.pick);
	out->work = found.work;
	if (ap_problem_cost(p, found.pick) < INFINITY &&
		ap_problem_memory(p, found.pick) <= p->memory_limit)
		ap_choice_found(p, found.pick, out->lower_bound, out);
	ap_engine_end(ctx, budget, budget->work && found.work >= budget->work ? AP_ENDED_WORK
		: AP_ENDED_ENGINE, out);
	ap_arena_destroy(t.arena);
}
