/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/splice.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/incident.h"

/* What a pick costs, kept up while nodes change; forbidden entries are counted, not added. */
struct total {
	double cost;
	uint32_t forbidden;
	int64_t memory;
};

struct splicing {
	const struct ap_problem *p;
	const struct ap_incident *at;
	uint32_t *pick;
	struct total now;
};

static void add(struct total *t, double cost, int64_t memory, int sign)
{
	t->memory += sign * memory;
	if (cost < INFINITY)
		t->cost += sign * cost;
	else
		t->forbidden += (uint32_t)sign;
}

static void add_edge(struct splicing *s, const struct ap_pedge *e, int sign)
{
	const struct ap_pmatrix *m = &s->p->matrix[e->matrix];
	size_t cell = (size_t)s->pick[e->u] * m->cols + s->pick[e->v];

	add(&s->now, m->cost[cell], m->memory ? m->memory[cell] : 0, sign);
}

static void add_node(struct splicing *s, uint32_t i, int sign)
{
	const struct ap_pnode *n = &s->p->node[i];

	add(&s->now, n->cost[s->pick[i]], n->memory ? n->memory[s->pick[i]] : 0, sign);
}

/* The node and its edges, taken away or put back. */
static void add_around(struct splicing *s, uint32_t i, int sign)
{
	add_node(s, i, sign);
	for (uint32_t e = s->at->first[i]; e < s->at->first[i + 1]; e++)
		add_edge(s, &s->p->edge[s->at->edge[e]], sign);
}

static void start(struct splicing *s, const uint32_t *from)
{
	memcpy(s->pick, from, s->p->n * sizeof *from);
	s->now = (struct total){0};
	for (uint32_t i = 0; i < s->p->n; i++)
		add_node(s, i, 1);
	for (uint32_t e = 0; e < s->p->nedge; e++)
		add_edge(s, &s->p->edge[e], 1);
}

/* Turns b into a node by node; *best and *seam: the first nodes of a that make the cheapest pick. */
static bool sweep(struct splicing *s, const uint32_t *a, const uint32_t *b, double *best,
	uint32_t *seam)
{
	bool found = false;

	start(s, b);
	for (uint32_t i = 0;; i++) {
		if (!s->now.forbidden && s->now.memory <= s->p->memory_limit && s->now.cost < *best) {
			*best = s->now.cost;
			*seam = i;
			found = true;
		}
		if (i == s->p->n)
			return found;
		if (a[i] == b[i])
			continue;
		add_around(s, i, -1);
		s->pick[i] = a[i];
		add_around(s, i, 1);
	}
}

static void join(const uint32_t *a, const uint32_t *b, uint32_t seam, uint32_t n, uint32_t *out)
{
	memmove(out, a, seam * sizeof *a);
	memmove(out + seam, b + seam, (n - seam) * sizeof *b);
}

bool ap_splice(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_incident at = ap_incident_make(ctx, p);
	struct splicing s = {p, &at, AP_NEW_N(ctx->scratch, uint32_t, p->n), {0}};
	double best = INFINITY;
	uint32_t seam = 0;
	bool one = sweep(&s, a, b, &best, &seam), other;

	if (one)
		join(a, b, seam, p->n, out);
	other = sweep(&s, b, a, &best, &seam);
	if (other)
		join(b, a, seam, p->n, out);
	ap_arena_release(ctx->scratch, mark);
	return one || other;
}
