/* SPDX-License-Identifier: Apache-2.0 */
/* What the candidates of operators cost and need at least, whatever is redistributed between them. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "cost/table_parts.h"

double ap_table_least_s(const struct ap_making *mk)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	double *least = AP_NEW_N(mk->ctx->scratch, double, mk->kinds.n), sum = 0;

	for (size_t i = 0; i < mk->kinds.n; i++) {
		const struct ap_kind *kd = &mk->kinds.v[i];

		least[i] = INFINITY;
		for (uint32_t c = 0; c < kd->k; c++)
			least[i] = kd->cost[c] < least[i] ? kd->cost[c] : least[i];
	}
	for (ap_id i = 0; i < mk->g->nnode; i++)
		sum += least[mk->kind_of[i]];
	ap_arena_release(mk->ctx->scratch, mark);
	return sum;
}

/* A candidate that keeps less than those of smaller temporaries. */
struct step {
	uint32_t kind;
	int64_t temporary, memory;
};

struct steps {
	struct step *v; /* by temporary */
	size_t n;
};

static int by_temporary(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->temporary != y->temporary)
		return x->temporary < y->temporary ? -1 : 1;
	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Drops from v[from..] what keeps no less than one before it. */
static void keep_falling(struct steps *s, size_t from)
{
	size_t n = from;

	qsort(s->v + from, s->n - from, sizeof *s->v, by_temporary);
	for (size_t i = from; i < s->n; i++)
		if (n == from || s->v[i].memory < s->v[n - 1].memory)
			s->v[n++] = s->v[i];
	s->n = n;
}

static struct steps steps_of(const struct ap_making *mk)
{
	struct steps s = {0};
	size_t candidates = 0;

	for (size_t i = 0; i < mk->kinds.n; i++)
		candidates += mk->kinds.v[i].k;
	s.v = ap_arena_alloc_raw(mk->ctx->scratch, candidates, sizeof *s.v);
	for (uint32_t i = 0; i < mk->kinds.n; i++) {
		const struct ap_kind *kd = &mk->kinds.v[i];
		size_t from = s.n;

		for (uint32_t c = 0; c < kd->k; c++)
			if (isfinite(kd->cost[c]))
				s.v[s.n++] = (struct step){i, kd->temporary[c], kd->memory[c]};
		keep_falling(&s, from);
	}
	qsort(s.v, s.n, sizeof *s.v, by_temporary);
	return s;
}

/* The least over all sizes of the largest temporary: what operators keep at least with candidates of
 * temporaries up to that size, and the size. nodes: of each kind on the stage. */
static int64_t least_of_stage(const struct ap_making *mk, const struct steps *s, const uint32_t *nodes)
{
	int64_t *kept = ap_arena_alloc_raw(mk->ctx->scratch, mk->kinds.n, sizeof *kept);
	int64_t sum = 0, least = -1;
	uint32_t missing = 0; /* kinds without a candidate yet */

	for (size_t i = 0; i < mk->kinds.n; i++) {
		kept[i] = -1;
		missing += nodes[i] > 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct step *x = &s->v[i];
		int64_t before = kept[x->kind];

		if (nodes[x->kind] == 0)
			continue;
		missing -= before < 0;
		sum += (x->memory - (before < 0 ? 0 : before)) * nodes[x->kind];
		kept[x->kind] = x->memory;
		if (missing == 0 && (least < 0 || sum + x->temporary < least))
			least = sum + x->temporary;
	}
	return least;
}

int64_t ap_table_least_bytes(const struct ap_making *mk, int32_t *stage)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	uint32_t nstage = mk->m->nstage;
	uint32_t *nodes = AP_NEW_N(mk->ctx->scratch, uint32_t, nstage * mk->kinds.n);
	struct steps s = steps_of(mk);
	int64_t most = -1;

	for (ap_id i = 0; i < mk->g->nnode; i++)
		nodes[(nstage > 1 ? (size_t)mk->g->node[i].stage : 0) * mk->kinds.n + mk->kind_of[i]]++;
	for (uint32_t i = 0; i < nstage; i++) {
		int64_t least = least_of_stage(mk, &s, nodes + i * mk->kinds.n);

		if (i > 0 && least <= most)
			continue;
		most = least;
		*stage = (int32_t)i;
	}
	ap_arena_release(mk->ctx->scratch, mark);
	return most;
}
