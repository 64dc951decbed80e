/* SPDX-License-Identifier: Apache-2.0 */
#include "search/polish.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

struct value { /* of all terms that a node's candidate takes part in */
	uint32_t forbidden;
	double cost; /* sum of the terms that are not forbidden */
	int64_t memory;
};

struct polish {
	const struct ap_problem *p;
	uint32_t *pick;
	struct ap_incident at;
	struct value *value; /* scratch, by candidate */
	int64_t memory; /* memory of the pick */
};

static void add_term(struct value *v, double cost, int64_t memory)
{
	if (cost < INFINITY)
		v->cost += cost;
	else
		v->forbidden++;
	v->memory += memory;
}

static void add_edge(struct polish *s, ap_id v, const struct ap_pedge *e)
{
	const struct ap_pmatrix *m = &s->p->matrix[e->matrix];
	size_t own = e->u == v ? m->cols : 1;
	size_t at = e->u == v ? s->pick[e->v] : (size_t)s->pick[e->u] * m->cols;
	for (uint32_t c = 0; c < s->p->node[v].k; c++, at += own)
		add_term(&s->value[c], m->cost[at], m->memory ? m->memory[at] : 0);
}

static void weigh(struct polish *s, ap_id v)
{
	const struct ap_pnode *node = &s->p->node[v];
	memset(s->value, 0, node->k * sizeof *s->value);
	for (uint32_t c = 0; c < node->k; c++)
		add_term(&s->value[c], node->cost[c], node->memory ? node->memory[c] : 0);
	for (ap_id i = s->at.first[v]; i < s->at.first[v + 1]; i++)
		add_edge(s, v, &s->p->edge[s->at.edge[i]]);
}

static bool better(const struct value *a, const struct value *b, int64_t room)
{
	int64_t over_a = a->memory > room ? a->memory - room : 0;
	int64_t over_b = b->memory > room ? b->memory - room : 0;
	if (a->forbidden != b->forbidden)
		return a->forbidden < b->forbidden;
	if (over_a != over_b)
		return over_a < over_b;
	return a->cost < b->cost;
}

static bool improve(struct polish *s, ap_id v)
{
	uint32_t now = s->pick[v], best = now;
	weigh(s, v);
	int64_t others = s->memory - s->value[now].memory;
	int64_t limit = s->p->memory_limit, room = limit == AP_NO_LIMIT ? limit : limit - others;
	for (uint32_t c = 0; c < s->p->node[v].k; c++) {
		if (better(&s->value[c], &s->value[best], room))
			best = c;
	}
	s->pick[v] = best;
	s->memory = others + s->value[best].memory;
	return best != now;
}

static uint32_t widest(const struct ap_problem *p)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < p->n; i++)
		k = p->node[i].k > k ? p->node[i].k : k;
	return k;
}

void ap_polish(struct ap_ctx *ctx, const struct ap_problem *p, uint32_t max_passes, uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct polish s = {.p = p, .pick = pick, .memory = ap_problem_memory(p, pick)};
	s.at = ap_incident_make(ctx, p);
	s.value = AP_NEW_N(ctx->scratch, struct value, widest(p));
	bool any = true;
	for (uint32_t i = 0; i < max_passes && any && !ap_ctx_stopped(ctx); i++) {
		any = false;
		for (ap_id v = 0; v < p->n; v++)
			any |= improve(&s, v);
	}
	ap_arena_release(ctx->scratch, mark);
}
