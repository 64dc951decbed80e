/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate s beats candidate c of a node when
 *
 *   cost(s) + sum over edges of max over the neighbour's candidates x of (E(x, s) - E(x, c)) <= cost(c)
 *
 * (and, where memory counts, the same for memory, and the temporary is no larger): whatever the
 * neighbours chose, s in c's place is no worse. All nodes may be pruned at once: an optimum that uses
 * beaten candidates is repaired node by node without its cost rising. This needs no property of the
 * redistribution costs themselves. Nodes with equal candidates and equal surroundings are pruned once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/par.h"
#include "base/vec.h"
#include "table/table_parts.h"

#define ROUNDS 2 /* each sees the survivors of the one before */
#define LOOK 16 /* layouts of a neighbour that are compared at a time: most times the first few decide */
#define CHAMPIONS 16 /* cheapest survivors, that others are tested against: the rest beat few */

struct side { /* one edge seen from a node */
	ap_id bond;
	uint32_t is_v; /* the node is the edge's v */
	uint32_t neighbour; /* class */
};

struct edge { /* a side, ready for comparing: cost by (own layout, neighbour's layout) */
	uint32_t times; /* equal sides merged */
	uint32_t nown, nother;
	const uint32_t *of; /* own layout by candidate of the kind */
	double *cost; /* [nown][nother] */
	int64_t *kept; /* the same or NULL */
};

struct node_sides {
	uint32_t *start; /* [nnode + 1] */
	struct side *v;
};

static int compare_sides(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct side));
}

static void collect_sides(const struct ap_making *mk, struct node_sides *s)
{
	uint32_t n = mk->g->nnode;
	uint32_t *at;

	s->start = AP_NEW_N(mk->ctx->scratch, uint32_t, n + 1);
	for (size_t i = 0; i < mk->links.n; i++) {
		s->start[mk->links.v[i].u + 1]++;
		s->start[mk->links.v[i].v + 1]++;
	}
	for (uint32_t i = 0; i < n; i++)
		s->start[i + 1] += s->start[i];
	s->v = AP_NEW_N(mk->ctx->scratch, struct side, s->start[n] + 1);
	at = ap_arena_memdup(mk->ctx->scratch, s->start, (n + 1) * sizeof *at);
	for (size_t i = 0; i < mk->links.n; i++) {
		const struct ap_tie *l = &mk->links.v[i];

		s->v[at[l->u]++] = (struct side){l->bond, 0, mk->class_of[l->v]};
		s->v[at[l->v]++] = (struct side){l->bond, 1, mk->class_of[l->u]};
	}
	for (uint32_t i = 0; i < n; i++)
		qsort(s->v + s->start[i], s->start[i + 1] - s->start[i], sizeof *s->v,
			compare_sides);
}

/* Layouts that the neighbour's remaining candidates use. */
static uint32_t layouts_in_use(struct ap_arena *a, const struct ap_slot *slot,
	const struct ap_class *c, uint32_t **out)
{
	bool *used = AP_NEW_N(a, bool, slot->nlayout);
	uint32_t n = 0;

	*out = AP_NEW_N(a, uint32_t, slot->nlayout);
	for (uint32_t i = 0; i < c->k; i++)
		used[slot->of[c->candidate[i]]] = true;
	for (uint32_t l = 0; l < slot->nlayout; l++)
		if (used[l])
			(*out)[n++] = l;
	return n;
}

static void make_edge(const struct ap_making *mk, struct ap_arena *a, const struct side *s,
	struct edge *e)
{
	const struct ap_bond *b = &mk->bonds.v[s->bond];
	const struct ap_slot *own = s->is_v ? &b->v : &b->u, *other = s->is_v ? &b->u : &b->v;
	bool memory = mk->params->by_memory && b->kept;
	uint32_t *used;

	e->times = 1;
	e->of = own->of;
	e->nown = own->nlayout;
	e->nother = layouts_in_use(a, other, &mk->classes.v[s->neighbour], &used);
	e->cost = ap_arena_alloc_raw(a, (size_t)e->nown * e->nother, sizeof *e->cost);
	e->kept = memory ? AP_NEW_N(a, int64_t, (size_t)e->nown * e->nother) : NULL;
	for (uint32_t l = 0; l < e->nown; l++) {
		for (uint32_t x = 0; x < e->nother; x++) {
			size_t to = (size_t)l * e->nother + x;
			size_t from = s->is_v ? (size_t)used[x] * b->v.nlayout + l
					      : (size_t)l * b->v.nlayout + used[x];

			e->cost[to] = b->cost[from];
			if (memory)
				e->kept[to] = b->kept[from];
		}
	}
}

/* The most by which n numbers rise from cf to ct. Where cf is infinite the difference is -INFINITY or no
 * number, which is not larger than anything. */
static double most_rise(size_t n, const double *cf, const double *ct)
{
	double s = -INFINITY, t = -INFINITY;
	size_t x = 0;

	for (; x + 2 <= n; x += 2) {
		double p = ct[x] - cf[x], q = ct[x + 1] - cf[x + 1];

		s = p > s ? p : s;
		t = q > t ? q : t;
	}
	if (x < n)
		s = ct[x] - cf[x] > s ? ct[x] - cf[x] : s;
	return t > s ? t : s;
}

/* The most by which layout `to` makes this edge worse than layout `from`, whatever the neighbour
 * chose; anything above `enough` may be returned instead of a larger value. */
static double worse(const struct edge *e, uint32_t from, uint32_t to, double enough)
{
	const double *cf = e->cost + (size_t)from * e->nother, *ct = e->cost + (size_t)to * e->nother;
	double most = -INFINITY;

	for (size_t x = 0; x < e->nother && most <= enough; x += LOOK) {
		size_t n = e->nother - x < LOOK ? e->nother - x : LOOK;
		double rise = most_rise(n, cf + x, ct + x);

		most = rise > most ? rise : most;
	}
	return most;
}

static int64_t more_memory(const struct edge *e, uint32_t from, uint32_t to)
{
	const int64_t *kf, *kt;
	int64_t most = INT64_MIN;

	if (!e->kept)
		return 0;
	kf = e->kept + (size_t)from * e->nother;
	kt = e->kept + (size_t)to * e->nother;
	for (uint32_t x = 0; x < e->nother; x++)
		most = kt[x] - kf[x] > most ? kt[x] - kf[x] : most;
	return most;
}

/* Does s beat c? Sums are exact: all costs are multiples of the quantum. Giving up as soon as the
 * slack is used up forgoes what later edges might give back: fewer are pruned, never too many. */
static bool beats(const struct ap_making *mk, const struct ap_kind *kd, const struct edge *edges,
	uint32_t nedge, uint32_t s, uint32_t c)
{
	double slack = kd->cost[c] - kd->cost[s];
	int64_t room = kd->memory[c] - kd->memory[s];

	if (mk->params->by_memory && kd->temporary[s] > kd->temporary[c])
		return false;
	for (uint32_t i = 0; i < nedge && slack >= 0; i++) {
		uint32_t from = edges[i].of[c], to = edges[i].of[s];

		if (from == to)
			continue;
		slack -= edges[i].times * worse(&edges[i], from, to, slack);
		if (mk->params->by_memory && slack >= 0)
			room -= edges[i].times * more_memory(&edges[i], from, to);
	}
	return slack >= 0 && (!mk->params->by_memory || room >= 0);
}

struct ranked {
	double cost;
	uint32_t candidate;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t merge_edges(const struct ap_making *mk, struct ap_arena *a, const struct side *s,
	uint32_t n, struct edge *edges)
{
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i > 0 && compare_sides(&s[i], &s[i - 1]) == 0)
			edges[m - 1].times++;
		else
			make_edge(mk, a, &s[i], &edges[m++]);
	}
	return m;
}

/* A class of the next round. */
struct duty {
	const struct ap_class *old;
	const struct side *side;
	uint32_t nside;
	uint32_t *keep; /* [old->k] */
	uint32_t kept;
};

struct round {
	struct ap_making *mk;
	AP_VEC(struct duty) duties;
};

/* Survivors of one class; cheapest first, each is tested against the first of those kept. */
static void prune(void *user, size_t i, int worker)
{
	struct round *r = user;
	const struct ap_making *mk = r->mk;
	struct duty *d = &r->duties.v[i];
	struct ap_arena *a = mk->worker[worker].arena;
	struct ap_mark mark = ap_arena_mark(a);
	const struct ap_kind *kd = &mk->kinds.v[d->old->kind];
	struct edge *edges = AP_NEW_N(a, struct edge, d->nside + 1);
	uint32_t nedge = merge_edges(mk, a, d->side, d->nside, edges);
	struct ranked *order = AP_NEW_N(a, struct ranked, d->old->k);

	for (uint32_t c = 0; c < d->old->k; c++)
		order[c] = (struct ranked){kd->cost[d->old->candidate[c]], d->old->candidate[c]};
	qsort(order, d->old->k, sizeof *order, compare_ranked);
	for (uint32_t c = 0; c < d->old->k && !ap_ctx_stopped(mk->ctx); c++) {
		uint32_t most = d->kept < CHAMPIONS ? d->kept : CHAMPIONS, j = 0;

		while (j < most && !beats(mk, kd, edges, nedge, d->keep[j], order[c].candidate))
			j++;
		if (j == most)
			d->keep[d->kept++] = order[c].candidate;
	}
	qsort(d->keep, d->kept, sizeof *d->keep, compare_ids);
	ap_arena_release(a, mark);
}

/* Nodes of one class with equal surroundings make one class of the next round. */
static void assign(struct round *r, const struct node_sides *sides, uint32_t *class_of)
{
	struct ap_making *mk = r->mk;
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct ap_class *old = &mk->classes.v[mk->class_of[i]];
		struct duty d = {.old = old, .side = sides->v + sides->start[i],
			.nside = sides->start[i + 1] - sides->start[i]};
		size_t bytes = d.nside * sizeof *d.side;
		uint32_t *key = ap_arena_alloc_raw(mk->ctx->scratch, 1, bytes + sizeof *key);
		bool fresh;

		key[0] = mk->class_of[i];
		if (bytes > 0)
			memcpy(key + 1, d.side, bytes);
		class_of[i] = ap_map_put(seen, key, bytes + sizeof *key, &fresh);
		if (!fresh)
			continue;
		d.keep = AP_NEW_N(mk->ctx->arena, uint32_t, old->k);
		AP_PUSH(mk->ctx->scratch, r->duties, d);
	}
}

/* One round over all nodes; true when anything was dropped. */
static bool prune_round(struct ap_making *mk)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct round r = {.mk = mk};
	struct ap_class_list next = {0};
	struct node_sides sides;
	size_t tests = 0;
	uint32_t *class_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	bool dropped = false;

	collect_sides(mk, &sides);
	assign(&r, &sides, class_of);
	for (size_t i = 0; i < r.duties.n; i++)
		tests += (size_t)r.duties.v[i].old->k * CHAMPIONS;
	ap_par_for(mk->ctx->arena, ap_making_jobs(mk, tests), r.duties.n, prune, &r);
	for (size_t i = 0; i < r.duties.n; i++) {
		const struct duty *d = &r.duties.v[i];
		struct ap_class c = {d->old->kind, d->kept, d->keep};

		dropped |= d->kept < d->old->k;
		AP_PUSH(mk->ctx->arena, next, c);
	}
	ap_arena_release(mk->ctx->scratch, mark);
	mk->class_of = class_of;
	mk->classes = next;
	return dropped;
}

static void first_class(struct ap_making *mk, ap_id node)
{
	uint32_t kind = mk->kind_of[node];
	uint32_t only = mk->only ? mk->only[node] : AP_NONE;
	struct ap_class c = {.kind = kind, .k = only == AP_NONE ? mk->kinds.v[kind].k : 1};
	uint32_t *candidate = AP_NEW_N(mk->ctx->arena, uint32_t, c.k);

	for (uint32_t j = 0; j < c.k; j++)
		candidate[j] = only == AP_NONE ? j : only;
	c.candidate = candidate;
	AP_PUSH(mk->ctx->arena, mk->classes, c);
}

/* Nodes of one kind, and of one candidate where that was fixed later on. */
static void first_classes(struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->arena);

	mk->class_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	for (ap_id i = 0; i < mk->g->nnode; i++) {
		uint32_t key[] = {mk->kind_of[i], mk->only ? mk->only[i] : AP_NONE};
		bool fresh;

		mk->class_of[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh)
			first_class(mk, i);
	}
}

void ap_table_classes(struct ap_making *mk)
{
	first_classes(mk);
	for (int r = 0; mk->params->prune && r < ROUNDS && !ap_ctx_stopped(mk->ctx); r++)
		if (!prune_round(mk))
			break;
}
