/* SPDX-License-Identifier: Apache-2.0 */
#include "search/drop_dear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "problem/problem.h"
#include "search/polish.h"
#include "search/sweep.h"

enum { PATIENCE = 2, LITTLE_PART = 16, LEFT_PART = 2, FEWER_PART = 8, POLISH_PASSES = 8 };

struct sifting {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	double grain;
	ap_id *look; /* [n] equal for nodes that look alike */
	uint32_t nlook;
	uint64_t max_work, *work;
	struct ap_sifted *out;
};

static int by_id(const void *a, const void *b)
{
	ap_id x = *(const ap_id *)a, y = *(const ap_id *)b;

	return (x > y) - (x < y);
}

/* Lists the matrices at a node with the node's side in each, sorted, into at. */
static uint32_t sides_of(const struct sifting *s, const struct ap_incident *in, ap_id i, ap_id *at)
{
	uint32_t n = 0;

	for (ap_id j = in->first[i]; j < in->first[i + 1]; j++) {
		const struct ap_pedge *e = &s->p->edge[in->edge[j]];

		at[n++] = e->matrix << 1 | (e->v == i);
	}
	qsort(at, n, sizeof *at, by_id);
	return n;
}

/* For each node and candidate of p: is it left in the sweep of the rest? */
static bool **left_of(const struct sifting *s, const struct ap_compact *rest, const struct ap_sweep *w)
{
	bool **left = AP_NEW_N(s->ctx->scratch, bool *, s->nlook);

	for (uint32_t i = 0; i < s->p->n; i++)
		if (!left[s->look[i]])
			left[s->look[i]] = AP_NEW_N(s->ctx->scratch, bool, s->p->node[i].k);
	for (uint32_t i = 0; i < rest->p.n; i++) {
		const struct ap_domain *d = &rest->domain[rest->node[i]];
		bool *to = left[s->look[rest->node[i]]];

		for (uint32_t c = 0; c < d->n; c++)
			to[d->c[c]] |= !w->out[i][c];
	}
	return left;
}

static void try(struct sifting *s, const struct ap_compact *rest, const uint32_t *of_rest)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	uint32_t *pick = AP_NEW_N(s->ctx->scratch, uint32_t, s->p->n);
	double cost;

	ap_compact_expand(rest, s->p, of_rest, pick);
	cost = ap_problem_cost(s->p, pick);
	if (cost < s->out->cost) {
		s->out->cost = cost;
		memcpy(s->out->pick, pick, s->p->n * sizeof *pick);
	}
	ap_arena_release(s->ctx->scratch, mark);
}

static bool is_over(const struct sifting *s)
{
	return ap_ctx_stopped(s->ctx) || *s->work >= s->max_work;
}

/* Does one sweep and uses its results. Returns false if they were small. */
static bool advance(struct sifting *s, const struct ap_compact *rest, struct ap_sweep *w)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	double missing = w->most - w->constant;
	uint64_t left = w->left;

	ap_sweep_once(w);
	*s->work += (uint64_t)ap_sweep_price(w->p);
	if (w->alive) {
		uint32_t *pick = AP_NEW_N(s->ctx->scratch, uint32_t, rest->p.n);

		ap_sweep_pick(w, pick);
		try(s, rest, pick);
		ap_polish(s->ctx, &rest->p, POLISH_PASSES, pick);
		try(s, rest, pick);
	}
	ap_arena_release(s->ctx->scratch, mark);
	w->most = s->out->cost;
	return w->most - w->constant < missing - missing / LITTLE_PART ||
		w->left < left - left / FEWER_PART;
}

/* Returns false if the sweeps gained nothing. */
static bool sweep_rest(struct sifting *s, const struct ap_compact *rest)
{
	struct ap_sweep_job job = {.p = &rest->p, .constant = rest->cost, .grain = s->grain,
		.most = s->out->cost};
	double q = s->p->quantum;
	struct ap_sweep w;
	uint64_t enough;

	if (!ap_sweep_open(s->ctx, &job, &w))
		return false;
	enough = w.left / LEFT_PART;
	for (int idle = 0; idle < PATIENCE && w.alive && w.left >= enough && !is_over(s);)
		idle = advance(s, rest, &w) ? 0 : idle + 1;
	if (w.constant < INFINITY)
		s->out->bound = fmax(s->out->bound, ceil(w.constant / q) * q);
	if (w.alive) {
		struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
		bool **left = left_of(s, rest, &w);

		for (uint32_t i = 0; i < rest->p.n; i++) {
			struct ap_domain *d = &s->out->domain[rest->node[i]];
			const bool *keep = left[s->look[rest->node[i]]];
			uint32_t n = 0;

			for (uint32_t c = 0; c < d->n; c++)
				if (keep[d->c[c]])
					d->c[n++] = d->c[c];
			d->n = n;
		}
		ap_arena_release(s->ctx->scratch, mark);
	}
	return w.alive;
}

static uint64_t candidates_of(const struct sifting *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->p->n; i++)
		sum += s->out->domain[i].n;
	return sum;
}

/* Sweeps over the rest; true if it has become much smaller. */
static bool sift_once(struct sifting *s)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	uint64_t before = candidates_of(s);
	const struct ap_compact *rest = ap_compact_make(s->ctx, s->p, s->out->domain);
	bool more = rest->p.n > 0 && sweep_rest(s, rest);

	ap_arena_release(s->ctx->scratch, mark);
	return more && candidates_of(s) < before - before / FEWER_PART && !is_over(s);
}

void ap_drop_dear(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *pick, uint64_t max_work,
	struct ap_sifted *out, uint64_t *work)
{
	struct sifting s = {.ctx = ctx, .p = p, .max_work = max_work, .work = work, .out = out,
		.grain = ap_sweep_grain(ctx, p)};
	struct ap_incident in;
	struct ap_map *costs, *looks;
	ap_id *key;

	*out = (struct ap_sifted){.domain = ap_domain_all(ctx, p),
		.pick = ap_arena_memdup(ctx->scratch, pick, p->n * sizeof *pick),
		.cost = ap_problem_cost(p, pick), .bound = ap_bound_plain(ctx, p)};
	in = ap_incident_make(s.ctx, s.p);
	costs = ap_map_create(s.ctx->scratch);
	looks = ap_map_create(s.ctx->scratch);
	key = AP_NEW_N(s.ctx->scratch, ap_id, s.p->nedge + 1);
	s.look = AP_NEW_N(s.ctx->scratch, ap_id, s.p->n);
	for (uint32_t i = 0; i < s.p->n; i++) {
		const struct ap_pnode *node = &s.p->node[i];
		uint32_t n = sides_of(&s, &in, i, key + 1);

		key[0] = ap_map_put(costs, node->cost, node->k * sizeof *node->cost, NULL);
		s.look[i] = ap_map_put(looks, key, (n + 1) * sizeof *key, NULL);
	}
	s.nlook = (uint32_t)ap_map_size(looks);
	while (sift_once(&s))
		;
}
