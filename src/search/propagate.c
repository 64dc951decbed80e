/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Propagates outward from fixed nodes like MindSpore's sharding_propagation, but on a plain table
 * with its costs (with MindSpore's own figures, on the graph: route/propagation.h): breadth first,
 * each node takes the candidate with the least edge cost to its decided neighbours; ties by own
 * cost, then by order. A node with several incoming edges waits until the other starts are decided
 * or nothing else is left, so both branches of a sum count. If nothing is fixed, the first node
 * starts with its cheapest candidate.
 *
 * Edges that forbid pairs (equal cuts of a shared parameter) are kept consistent on the way: each
 * decision strikes out candidates without a partner at the other end, and is taken back if that
 * leaves a node without any. O(edges * candidates), and candidates squared for edges that forbid.
 */

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/vec.h"
#include "problem/problem.h"
#include "search/engines.h"

/* Waiting nodes, a binary heap, smallest first. Adding a node again has no effect. */
struct waiting {
	uint32_t n;
	ap_id *heap; /* [capacity] */
	bool *in; /* [capacity] was added before */
};

/* Holds nodes 0..capacity-1. In scratch. */
static void waiting_init(struct waiting *w, struct ap_ctx *ctx, uint32_t capacity)
{
	w->n = 0;
	w->heap = AP_NEW_N(ctx->scratch, ap_id, capacity);
	w->in = AP_NEW_N(ctx->scratch, bool, capacity);
}

/* O(log n). */
static void waiting_add(struct waiting *w, ap_id v)
{
	uint32_t i = w->n;

	if (w->in[v])
		return;
	w->in[v] = true;
	w->n++;
	for (; i > 0 && w->heap[(i - 1) / 2] > v; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = v;
}

struct strike { /* a candidate struck out */
	ap_id node;
	uint32_t c;
};

struct spread {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	struct ap_incident at;
	bool *forbids; /* [nmatrix] forbids some pair */
	bool **open; /* [n][k] not struck out */
	uint32_t *nopen; /* [n] number of open candidates */
	double *toll; /* [widest k] scratch: edge costs by candidate */
	uint32_t *pick;
	bool *decided;
	uint32_t *missing; /* [n] incoming edges whose starts are undecided */
	ap_id *queue; /* [n] decided nodes in order; those before head are done */
	uint32_t head, tail;
	struct waiting waiting;
	AP_VEC(struct strike) strikes; /* in order; a decision is taken back from the end */
	uint64_t work;
};

static ap_id other_end(const struct ap_pedge *e, ap_id v)
{
	return e->u == v ? e->v : e->u;
}

static double edge_cost(const struct spread *s, const struct ap_pedge *e, ap_id v, uint32_t own,
	uint32_t other)
{
	const struct ap_pmatrix *m = &s->p->matrix[e->matrix];

	return e->u == v ? m->cost[(size_t)own * m->cols + other]
			 : m->cost[(size_t)other * m->cols + own];
}

static void strike(struct spread *s, ap_id v, uint32_t c)
{
	struct strike x = {v, c};

	s->open[v][c] = false;
	s->nopen[v]--;
	AP_PUSH(s->ctx->scratch, s->strikes, x);
}

/* May v take c while w takes d? Searches the edges of the end that has fewer. */
static bool together(struct spread *s, ap_id v, uint32_t c, ap_id w, uint32_t d)
{
	const ap_id *first = s->at.first;
	bool from_v = first[v + 1] - first[v] <= first[w + 1] - first[w];
	ap_id via = from_v ? v : w, far = from_v ? w : v;
	uint32_t own = from_v ? c : d, other = from_v ? d : c;

	for (ap_id i = first[via]; i < first[via + 1]; i++) {
		const struct ap_pedge *e = &s->p->edge[s->at.edge[i]];

		s->work++;
		if (other_end(e, via) == far && isinf(edge_cost(s, e, via, own, other)))
			return false;
	}
	return true;
}

static bool has_partner(struct spread *s, ap_id v, uint32_t c, ap_id w)
{
	for (uint32_t d = 0; d < s->p->node[w].k; d++)
		if (s->open[w][d] && together(s, v, c, w, d))
			return true;
	return false;
}

/* Strikes out candidates of v without a partner at w; true if there were any. */
static bool revise(struct spread *s, ap_id v, ap_id w)
{
	uint32_t before = s->nopen[v];

	for (uint32_t c = 0; c < s->p->node[v].k; c++)
		if (s->open[v][c] && !has_partner(s, v, c, w))
			strike(s, v, c);
	return s->nopen[v] < before;
}

/* Propagates strikes from number `from` on; false if a node has nothing left. */
static bool settle(struct spread *s, size_t from)
{
	for (; from < s->strikes.n; from++) {
		ap_id w = s->strikes.v[from].node;

		while (from + 1 < s->strikes.n && s->strikes.v[from + 1].node == w)
			from++;
		for (ap_id i = s->at.first[w]; i < s->at.first[w + 1]; i++) {
			const struct ap_pedge *e = &s->p->edge[s->at.edge[i]];
			ap_id v = other_end(e, w);

			if (s->forbids[e->matrix] && revise(s, v, w) && !s->nopen[v])
				return false;
		}
	}
	return true;
}

/* Strikes out all candidates that pairwise consistency excludes. */
static bool settle_all(struct spread *s)
{
	for (ap_id v = 0; v < s->p->n; v++) {
		for (uint32_t c = 0; c < s->p->node[v].k; c++)
			if (isinf(s->p->node[v].cost[c]))
				strike(s, v, c);
		if (!s->nopen[v])
			return false;
	}
	for (uint32_t i = 0; i < s->p->nedge; i++) {
		const struct ap_pedge *e = &s->p->edge[i];

		if (!s->forbids[e->matrix])
			continue;
		revise(s, e->u, e->v);
		revise(s, e->v, e->u);
		if (!s->nopen[e->u] || !s->nopen[e->v])
			return false;
	}
	return settle(s, 0);
}

/* The open candidate of v with the least edge cost to decided neighbours. */
static uint32_t nearest(struct spread *s, ap_id v)
{
	const struct ap_pnode *node = &s->p->node[v];
	uint32_t best = UINT32_MAX;

	memset(s->toll, 0, node->k * sizeof *s->toll);
	for (ap_id i = s->at.first[v]; i < s->at.first[v + 1]; i++) {
		const struct ap_pedge *e = &s->p->edge[s->at.edge[i]];
		ap_id w = other_end(e, v);

		s->work += node->k;
		for (uint32_t c = 0; s->decided[w] && c < node->k; c++)
			if (s->open[v][c])
				s->toll[c] += edge_cost(s, e, v, c, s->pick[w]);
	}
	for (uint32_t c = 0; c < node->k; c++)
		if (s->open[v][c] && (best == UINT32_MAX || s->toll[c] < s->toll[best] ||
			(s->toll[c] == s->toll[best] && node->cost[c] < node->cost[best])))
			best = c;
	return best;
}

static bool narrow(struct spread *s, ap_id v, uint32_t pick)
{
	size_t from = s->strikes.n;

	for (uint32_t c = 0; c < s->p->node[v].k; c++)
		if (s->open[v][c] && c != pick)
			strike(s, v, c);
	if (settle(s, from))
		return true;
	while (s->strikes.n > from) {
		struct strike x = s->strikes.v[--s->strikes.n];

		s->open[x.node][x.c] = true;
		s->nopen[x.node]++;
	}
	return false;
}

/* Returns false if no candidate of v agrees with earlier decisions. */
static bool decide(struct spread *s, ap_id v)
{
	while (s->nopen[v]) {
		uint32_t c = nearest(s, v);
		size_t from = s->strikes.n;

		if (narrow(s, v, c)) {
			s->pick[v] = c;
			s->decided[v] = true;
			s->queue[s->tail++] = v;
			return true;
		}
		strike(s, v, c);
		if (!settle(s, from))
			return false;
	}
	return false;
}

/* Follows an edge to its end. */
static bool reach_forward(struct spread *s, ap_id v)
{
	s->missing[v]--;
	if (s->decided[v])
		return true;
	if (s->missing[v] == 0)
		return decide(s, v);
	waiting_add(&s->waiting, v);
	return true;
}

static bool reach_backward(struct spread *s, ap_id v)
{
	return s->decided[v] || decide(s, v);
}

static bool leave(struct spread *s, ap_id v)
{
	const ap_id *first = &s->at.first[v];

	for (ap_id i = first[0]; i < first[1]; i++) {
		const struct ap_pedge *e = &s->p->edge[s->at.edge[i]];

		if (e->u == v && !reach_forward(s, e->v))
			return false;
	}
	for (ap_id i = first[0]; i < first[1]; i++) {
		const struct ap_pedge *e = &s->p->edge[s->at.edge[i]];

		if (e->v == v && !reach_backward(s, e->u))
			return false;
	}
	return true;
}

/* Where to go on when the queue is empty: the first waiting node, else the first undecided one;
 * AP_NONE at the end. *next: all nodes before it are decided. */
static ap_id next_start(struct spread *s, ap_id *next)
{
	while (s->waiting.n > 0) {
		ap_id v;
		struct waiting *w = &s->waiting;
		ap_id least = w->heap[0], last = w->heap[--w->n];
		uint32_t i = 0, child;

		/* removes the smallest: O(log n) */
		assert(w->in[least]);
		while ((child = 2 * i + 1) < w->n) {
			child += child + 1 < w->n && w->heap[child + 1] < w->heap[child];
			if (w->heap[child] >= last)
				break;
			w->heap[i] = w->heap[child];
			i = child;
		}
		w->heap[i] = last;
		v = least;
		if (!s->decided[v])
			return v;
	}
	while (*next < s->p->n && s->decided[*next])
		++*next;
	return *next < s->p->n ? *next : AP_NONE;
}

static bool spread_out(struct spread *s, uint64_t most)
{
	ap_id next = 0;

	for (ap_id v = 0; v < s->p->n; v++)
		if (s->p->node[v].fixed && !decide(s, v))
			return false;
	for (;;) {
		ap_id v;

		if (ap_ctx_stopped(s->ctx) || (most && s->work > most))
			return false;
		if (s->head < s->tail) {
			if (!leave(s, s->queue[s->head++]))
				return false;
			continue;
		}
		v = next_start(s, &next);
		if (v == AP_NONE)
			return true;
		if (!decide(s, v))
			return false;
	}
}

static void begin(struct ap_ctx *ctx, const struct ap_problem *p, struct spread *s)
{
	uint32_t widest = 0;

	*s = (struct spread){.ctx = ctx, .p = p, .at = ap_incident_make(ctx, p)};
	s->forbids = AP_NEW_N(ctx->scratch, bool, p->nmatrix);
	s->open = AP_NEW_N(ctx->scratch, bool *, p->n);
	s->nopen = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	s->decided = AP_NEW_N(ctx->scratch, bool, p->n);
	s->missing = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	s->queue = AP_NEW_N(ctx->scratch, ap_id, p->n);
	waiting_init(&s->waiting, ctx, p->n);
	for (uint32_t i = 0; i < s->p->nmatrix; i++) {
		const struct ap_pmatrix *m = &s->p->matrix[i];
		size_t cells = (size_t)m->rows * m->cols;

		for (size_t c = 0; c < cells && !s->forbids[i]; c++)
			s->forbids[i] = isinf(m->cost[c]);
	}
	for (uint32_t v = 0; v < s->p->n; v++) {
		uint32_t k = s->p->node[v].k;

		s->open[v] = AP_NEW_N(s->ctx->scratch, bool, k);
		memset(s->open[v], true, k * sizeof *s->open[v]);
		s->nopen[v] = k;
		widest = k > widest ? k : widest;
	}
	for (uint32_t i = 0; i < s->p->nedge; i++)
		s->missing[s->p->edge[i].v]++;
	s->toll = AP_NEW_N(s->ctx->scratch, double, widest);
}

void ap_propagate_solve(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *out)
{
	uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, p->n);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct spread s;

	ap_choice_none(ctx, p, "sharding_propagation", out);
	begin(ctx, p, &s);
	s.pick = pick;
	if (!settle_all(&s)) {
		out->outcome = AP_OUT_INFEASIBLE;
		out->lower_bound = INFINITY;
	} else if (spread_out(&s, budget->work) && ap_problem_memory(p, pick) <= p->memory_limit) {
		ap_choice_found(p, pick, out->lower_bound, out);
	}
	out->work = s.work;
	ap_engine_end(ctx, budget, budget->work && s.work > budget->work ? AP_ENDED_WORK
		: AP_ENDED_ENGINE, out);
	ap_arena_release(ctx->scratch, mark);
}
