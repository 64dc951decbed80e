/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/recursive.h"

#include "base/arena.h"
#include "base/map.h"
#include "table/lazy.h"

static struct ap_rec_list list_of(struct ap_lazy_list l)
{
	return (struct ap_rec_list){l.n, l.state};
}

static uint32_t start(void *self, uint32_t cls)
{
	return ap_lazy_start(self, cls);
}

static struct ap_rec_list further(void *self, uint32_t cls, uint32_t state, int32_t prime)
{
	return list_of(ap_lazy_further(self, cls, state, prime));
}

static struct ap_rec_list beside(void *self, uint32_t cls, uint32_t state)
{
	return list_of(ap_lazy_beside(self, cls, state));
}

static struct ap_rec_list matching(void *self, uint32_t edge_cls, bool of_v, uint32_t other)
{
	return list_of(ap_lazy_matching(self, edge_cls, of_v, other));
}

static struct ap_rec_price node(void *self, uint32_t cls, uint32_t state)
{
	const struct ap_lazy_state *s = ap_lazy_state(self, cls, state);

	return (struct ap_rec_price){s->cost_s, s->memory, s->temporary};
}

static struct ap_rec_price pair(void *self, uint32_t edge_cls, uint32_t u, uint32_t v)
{
	struct ap_lazy_move m = ap_lazy_move(self, edge_cls, u, v);

	return (struct ap_rec_price){m.cost_s, m.kept_bytes, 0};
}

static const int32_t *primes_of(struct ap_ctx *ctx, const struct ap_machine *m)
{
	int32_t *prime = AP_NEW_N(ctx->scratch, int32_t, m->naxis);

	for (int i = 0; i < m->naxis; i++)
		prime[i] = m->axis[i].size;
	return prime;
}

/* Nodes of one class in one state share their counts. */
static const int32_t *const *counts_of(struct ap_ctx *ctx, const struct ap_lazy *l, uint32_t n,
	const uint32_t *pick)
{
	const uint32_t *cls = ap_lazy_classes(l);
	struct ap_map *seen = ap_map_create(ctx->scratch);
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, n);
	const int32_t **shared = AP_NEW_N(ctx->scratch, const int32_t *, n);

	for (ap_id i = 0; i < n; i++) {
		const uint32_t key[] = {cls[i], pick[i]};
		bool fresh;
		ap_id id = ap_map_put(seen, key, sizeof key, &fresh);

		if (fresh)
			shared[id] = ap_arena_memdup(ctx->arena,
				ap_lazy_state(l, cls[i], pick[i])->count,
				AP_MAX_FACTOR * sizeof **shared);
		counts[i] = shared[id];
	}
	return counts;
}

void ap_recursive_plan(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *fixed, const struct ap_rec_limits *limits,
	struct ap_recursive *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_lazy *l = ap_lazy_create(ctx, g, m, step, fixed);
	struct ap_rec_view view = {.self = l, .n = g->nnode, .cls = ap_lazy_classes(l),
		.quantum = step->quantum_s,
		.nlevel = (uint32_t)m->naxis, .prime = primes_of(ctx, m), .start = start,
		.further = further, .beside = beside, .matching = matching, .node = node,
		.pair = pair};
	struct ap_rec_result found;
	const struct ap_lazy_link *link;
	struct ap_rec_edge *edge;

	ap_ctx_phase(ctx, "recursion");
	view.nedge = ap_lazy_links(l, &link);
	edge = AP_NEW_N(ctx->scratch, struct ap_rec_edge, view.nedge);
	for (uint32_t i = 0; i < view.nedge; i++)
		edge[i] = (struct ap_rec_edge){link[i].u, link[i].v, link[i].bond, link[i].strict};
	view.edge = edge;
	ap_rec_solve(ctx, &view, limits, &found);
	*out = (struct ap_recursive){.counts = counts_of(ctx, l, g->nnode, found.pick),
		.allowed = found.allowed, .fits = found.fits, .objective_s = found.s,
		.memory_bytes = found.bytes + found.temporary, .work = found.work};
	ap_lazy_destroy(l);
	ap_arena_release(ctx->scratch, mark);
}
