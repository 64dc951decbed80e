/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "rec/rec_parts.h"

static void list_sides(struct ap_rec *r)
{
	const struct ap_rec_view *v = r->view;
	struct ap_arena *a = r->ctx->scratch;
	uint32_t *at;

	r->first = AP_NEW_N(a, uint32_t, v->n + 1);
	r->side = AP_NEW_N(a, struct ap_rec_side, 2 * (size_t)v->nedge);
	for (uint32_t i = 0; i < v->nedge; i++) {
		r->first[v->edge[i].u + 1]++;
		r->first[v->edge[i].v + 1]++;
	}
	for (uint32_t i = 0; i < v->n; i++)
		r->first[i + 1] += r->first[i];
	at = ap_arena_memdup(a, r->first, (v->n + 1) * sizeof *at);
	for (uint32_t i = 0; i < v->nedge; i++) {
		const struct ap_rec_edge *e = &v->edge[i];

		r->side[at[e->u]++] = (struct ap_rec_side){e->v, e->cls, false, e->strict};
		r->side[at[e->v]++] = (struct ap_rec_side){e->u, e->cls, true, e->strict};
	}
}

static ap_id root_of(ap_id *parent, ap_id i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

static void join_groups(struct ap_rec *r)
{
	const struct ap_rec_view *v = r->view;

	r->group = AP_NEW_N(r->ctx->scratch, ap_id, v->n);
	for (ap_id i = 0; i < v->n; i++)
		r->group[i] = i;
	for (uint32_t i = 0; i < v->nedge; i++) {
		ap_id a = root_of(r->group, v->edge[i].u), b = root_of(r->group, v->edge[i].v);

		if (v->edge[i].strict)
			r->group[a > b ? a : b] = a > b ? b : a;
	}
	for (ap_id i = 0; i < v->n; i++)
		r->group[i] = root_of(r->group, i);
}

void ap_rec_open(struct ap_rec *r, struct ap_ctx *ctx, const struct ap_rec_view *view)
{
	struct ap_arena *a = ctx->scratch;
	uint32_t most = 0;

	r->ctx = ctx;
	r->view = view;
	list_sides(r);
	join_groups(r);
	r->pick = AP_NEW_N(a, uint32_t, view->n);
	r->before = AP_NEW_N(a, uint32_t, view->n);
	r->set_of = AP_NEW_N(a, uint32_t, view->n);
	r->rest_of = AP_NEW_N(a, uint32_t, view->n);
	r->share = AP_NEW_N(a, uint32_t, view->n);
	r->torn = AP_NEW_N(a, bool, view->n);
	r->dirty = AP_NEW_N(a, bool, view->n);
	for (ap_id i = 0; i < view->n; i++)
		if (r->first[i + 1] - r->first[i] > most)
			most = r->first[i + 1] - r->first[i];
	r->key = AP_NEW_N(a, uint32_t, 2 + 4 * (size_t)most);
}

/* Nodes that ties lead to from those that cannot move, in the order of reaching them. */
struct settling {
	struct ap_rec *r;
	bool *settled; /* [n] */
	AP_VEC(ap_id) list;
};

static void add(struct settling *t, ap_id u)
{
	t->settled[u] = true;
	AP_PUSH(t->r->ctx->scratch, t->list, u);
}

/* The cheapest state that this edge, seen from u, allows the other end, and the edges to what was
 * settled before. */
static uint32_t follow(struct settling *t, ap_id u, const struct ap_rec_side *side)
{
	struct ap_rec *r = t->r;
	const struct ap_rec_view *v = r->view;
	struct ap_rec_list list = v->matching(v->self, side->cls, !side->is_v, r->pick[u]);
	ap_id to = side->other;
	uint32_t best = r->pick[to];
	struct ap_rec_score least = {UINT32_MAX, INFINITY, 0};

	for (uint32_t i = 0; i < list.n; i++) {
		struct ap_rec_score score = {0};

		ap_rec_add(&score, r, v->node(v->self, v->cls[to], list.state[i]));
		for (uint32_t s = r->first[to]; s < r->first[to + 1]; s++)
			if (r->side[s].strict && t->settled[r->side[s].other])
				ap_rec_add(&score, r, ap_rec_pair(r, &r->side[s], list.state[i],
							      r->pick[r->side[s].other]));
		if (ap_rec_less(&score, &least)) {
			least = score;
			best = list.state[i];
		}
	}
	return best;
}

static void settle(struct settling *t, ap_id u)
{
	struct ap_rec *r = t->r;

	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		const struct ap_rec_side *side = &r->side[s];

		if (!side->strict || t->settled[side->other])
			continue;
		if (!(ap_rec_pair(r, side, r->pick[u], r->pick[side->other]).s < INFINITY))
			r->pick[side->other] = follow(t, u, side);
		add(t, side->other);
	}
}

static bool is_tied(const struct ap_rec *r, ap_id u)
{
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		if (r->side[s].strict)
			return true;
	return false;
}

void ap_rec_reset(struct ap_rec *r)
{
	const struct ap_rec_view *v = r->view;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct settling t = {.r = r, .settled = AP_NEW_N(r->ctx->scratch, bool, v->n)};

	for (ap_id i = 0; i < v->n; i++)
		r->pick[i] = v->start(v->self, v->cls[i]);
	for (ap_id i = 0; i < v->n; i++)
		if (is_tied(r, i) && v->beside(v->self, v->cls[i], r->pick[i]).n == 0)
			add(&t, i);
	for (size_t i = 0; i < t.list.n; i++)
		settle(&t, t.list.v[i]);
	ap_arena_release(r->ctx->scratch, mark);
}
