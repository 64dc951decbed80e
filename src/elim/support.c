/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/support.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

struct maker {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const double *const *value;
	double least, threshold;
	struct ap_support *s;
	uint32_t *pick; /* scratch */
	double *cost; /* scratch, by candidate; zero between uses */
	uint32_t *slot; /* by cell: 1 + group, zero between uses */
};

/* step_of and the forest. A parent has a higher number than its children. */
static void link_steps(struct maker *m)
{
	const struct ap_elim *e = m->e;
	struct ap_sstep *step = m->s->step;
	m->s->root = AP_NONE;
	for (uint32_t i = 0; i < e->nstep; i++) {
		m->s->step_of[e->step[i].node] = i;
		step[i].parent = step[i].child = step[i].sibling = AP_NONE;
	}
	for (uint32_t i = 0; i < e->nstep; i++) {
		for (uint32_t j = 0; j < e->step[i].nscope; j++) {
			uint32_t later = m->s->step_of[e->step[i].scope[j]];
			if (later < step[i].parent)
				step[i].parent = later;
		}
		uint32_t up = step[i].parent;
		uint32_t *list = up == AP_NONE ? &m->s->root : &step[up].child;
		step[i].sibling = *list;
		*list = i;
	}
}

void ap_support_decode(const struct ap_elim *e, const struct ap_estep *s, size_t cell,
	uint32_t *pick)
{
	for (uint32_t j = s->nscope; j-- > 0;) {
		uint32_t k = e->k[s->scope[j]];
		pick[s->scope[j]] = (uint32_t)(cell % k);
		cell /= k;
	}
}

static size_t encode(const struct ap_elim *e, const struct ap_estep *s, const uint32_t *pick)
{
	size_t cell = 0;
	for (uint32_t j = 0; j < s->nscope; j++)
		cell = cell * e->k[s->scope[j]] + pick[s->scope[j]];
	return cell;
}

static uint32_t group_at(struct maker *m, struct ap_sstep *here, size_t cell, double through)
{
	if (!m->slot[cell]) {
		struct ap_sgroup g = {.cell = cell, .through = through};
		AP_PUSH(m->ctx->scratch, here->group, g);
		m->slot[cell] = (uint32_t)here->group.n;
	}
	uint32_t id = m->slot[cell] - 1;
	if (through < here->group.v[id].through)
		here->group.v[id].through = through;
	return id;
}

/* The groups of step i: what the tuples of its parent say about its scope. */
static void make_groups(struct maker *m, uint32_t i)
{
	const struct ap_estep *s = &m->e->step[i];
	struct ap_sstep *here = &m->s->step[i];
	if (here->parent == AP_NONE) {
		struct ap_sgroup g = {.through = m->least};
		AP_PUSH(m->ctx->scratch, here->group, g);
		return;
	}
	const struct ap_sstep *up = &m->s->step[here->parent];
	const struct ap_estep *ups = &m->e->step[here->parent];
	here->link = ap_arena_alloc_raw(m->ctx->scratch, up->tuple.n, sizeof *here->link);
	for (size_t g = 0; g < up->group.n; g++) {
		const struct ap_sgroup *group = &up->group.v[g];
		ap_support_decode(m->e, ups, group->cell, m->pick);
		for (size_t t = group->first; t < (size_t)group->first + group->count; t++) {
			m->pick[ups->node] = up->tuple.v[t].x;
			here->link[t] = group_at(m, here, encode(m->e, s, m->pick),
				up->tuple.v[t].through);
		}
	}
	for (size_t g = 0; g < here->group.n; g++)
		m->slot[here->group.v[g].cell] = 0;
}

static double least_of(const double *v, uint32_t n)
{
	double least = v[0];
	for (uint32_t i = 1; i < n; i++)
		least = v[i] < least ? v[i] : least;
	return least;
}

/* The group costs what its best tuple does; another tuple costs more by the difference of the two.
 * */
static void make_tuples(struct maker *m, uint32_t i)
{
	const struct ap_estep *s = &m->e->step[i];
	struct ap_sstep *here = &m->s->step[i];
	uint32_t k = m->e->k[s->node];
	for (uint32_t g = 0; g < here->group.n; g++) {
		struct ap_sgroup *group = &here->group.v[g];
		ap_support_decode(m->e, s, group->cell, m->pick);
		ap_elim_costs(m->e, m->value, s, m->pick, m->cost);
		double best = least_of(m->cost, k);
		group->first = (uint32_t)here->tuple.n;
		for (uint32_t x = 0; x < k; x++) {
			struct ap_stuple t = {group->through + (m->cost[x] - best), g, x};
			if (t.through <= m->threshold)
				AP_PUSH(m->ctx->scratch, here->tuple, t);
		}
		group->count = (uint32_t)here->tuple.n - group->first;
		memset(m->cost, 0, k * sizeof *m->cost);
	}
	m->s->ntuple += here->tuple.n;
}

struct ap_support *ap_support_make(struct ap_ctx *ctx, const struct ap_elim *e,
	const double *const *value, double least, double threshold, uint64_t max_tuples)
{
	assert(!e->split && least <= threshold);
	struct maker m = {ctx, e, value, least, threshold, AP_NEW(ctx->scratch, struct ap_support)};
	size_t cells = 1;
	uint32_t k = 1;
	for (uint32_t i = 0; i < e->nstep; i++) {
		size_t own = e->table[e->step[i].result].cells;
		cells = own > cells ? own : cells;
		k = e->k[e->step[i].node] > k ? e->k[e->step[i].node] : k;
	}
	m.s->step = AP_NEW_N(ctx->scratch, struct ap_sstep, e->nstep);
	m.s->step_of = AP_NEW_N(ctx->scratch, uint32_t, e->n);
	m.pick = AP_NEW_N(ctx->scratch, uint32_t, e->n);
	m.cost = AP_NEW_N(ctx->scratch, double, k);
	m.slot = AP_NEW_N(ctx->scratch, uint32_t, cells);
	link_steps(&m);
	for (uint32_t i = e->nstep; i-- > 0;) {
		make_groups(&m, i);
		make_tuples(&m, i);
		if (m.s->ntuple > max_tuples || ap_ctx_stopped(ctx))
			return NULL;
	}
	return m.s;
}
