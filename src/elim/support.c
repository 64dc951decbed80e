/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/support.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "elim/elim_eval.h"

struct maker {
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const double *const *value;
	double least, threshold;
	struct ap_support *s;
	uint32_t *pick;
	double *cost; /* by candidate; zero between uses */
	uint32_t *slot; /* by cell: 1 + group; zero between uses */
};

/* Sets step_of and the forest. A parent has a higher number than its children. */
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

/* Makes the groups of step i: the choices for its scope in the parent's tuples. */
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

/* A group costs as much as its best tuple; another tuple costs more by their difference. */
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

struct state { /* of one step */
	bool *dead; /* by tuple */
	uint32_t *inside; /* by group: number of its live tuples */
	uint32_t *outside; /* by group: number of live tuples of the parent that imply it */
	uint32_t *first, *implied; /* by group: start in implied[] of the parent's tuples */
};

struct item {
	uint32_t step, tuple;
};

struct first {
	struct ap_ctx *ctx;
	const struct ap_support *s;
	struct state *state;
	AP_VEC(struct item) dying;
};

static void make_state(struct first *f, uint32_t i)
{
	struct ap_arena *arena = f->ctx->scratch;
	const struct ap_sstep *here = &f->s->step[i];
	struct state *st = &f->state[i];
	size_t n = here->group.n;
	st->dead = AP_NEW_N(arena, bool, here->tuple.n);
	st->inside = AP_NEW_N(arena, uint32_t, n);
	st->outside = AP_NEW_N(arena, uint32_t, n);
	st->first = AP_NEW_N(arena, uint32_t, n + 1);
	for (size_t g = 0; g < n; g++)
		st->inside[g] = here->group.v[g].count;
	if (here->parent == AP_NONE)
		return;
	uint32_t up = (uint32_t)f->s->step[here->parent].tuple.n;
	st->implied = AP_NEW_N(arena, uint32_t, up);
	for (uint32_t t = 0; t < up; t++)
		st->outside[here->link[t]]++;
	for (size_t g = 0; g < n; g++)
		st->first[g + 1] = st->first[g] + st->outside[g];
	for (uint32_t t = up; t-- > 0;)
		st->implied[--st->first[here->link[t] + 1]] = t;
	for (size_t g = 0; g < n; g++) /* filling moved each end down to its start */
		st->first[g] = st->first[g + 1];
	st->first[n] = up;
}

static void drop(struct first *f, uint32_t step, uint32_t tuple)
{
	if (f->state[step].dead[tuple])
		return;
	f->state[step].dead[tuple] = true;
	struct item item = {step, tuple};
	AP_PUSH(f->ctx->scratch, f->dying, item);
}

/* A group without live tuples: drops the parent's tuples that imply it. */
static void drop_above(struct first *f, uint32_t step, uint32_t group)
{
	const struct state *st = &f->state[step];
	if (f->s->step[step].parent == AP_NONE)
		return;
	for (uint32_t j = st->first[group]; j < st->first[group + 1]; j++)
		drop(f, f->s->step[step].parent, st->implied[j]);
}

static void spread(struct first *f)
{
	while (f->dying.n) {
		struct item dead = f->dying.v[--f->dying.n];
		const struct ap_sstep *here = &f->s->step[dead.step];
		uint32_t group = here->tuple.v[dead.tuple].group;
		if (--f->state[dead.step].inside[group] == 0)
			drop_above(f, dead.step, group);
		for (uint32_t c = here->child; c != AP_NONE; c = f->s->step[c].sibling) {
			uint32_t implied = f->s->step[c].link[dead.tuple];
			if (--f->state[c].outside[implied] == 0) {
				const struct ap_sgroup *g = &f->s->step[c].group.v[implied];

				for (uint32_t t = g->first; t < g->first + g->count; t++)
					drop(f, c, t);
			}
		}
	}
}

static uint32_t smallest(const struct first *f, uint32_t step)
{
	const struct ap_sstep *here = &f->s->step[step];
	uint32_t best = UINT32_MAX;
	for (size_t t = 0; t < here->tuple.n; t++) {
		if (!f->state[step].dead[t] && here->tuple.v[t].x < best)
			best = here->tuple.v[t].x;
	}
	return best;
}

void ap_support_first(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_support *s,
	uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct first f = {.ctx = ctx, .s = s};
	f.state = AP_NEW_N(ctx->scratch, struct state, e->nstep);
	for (uint32_t i = 0; i < e->nstep; i++)
		make_state(&f, i);
	for (uint32_t v = 0; v < e->n; v++) {
		uint32_t step = s->step_of[v];
		const struct ap_sstep *here = &s->step[step];
		pick[v] = smallest(&f, step);
		for (uint32_t t = 0; t < here->tuple.n; t++) {
			if (here->tuple.v[t].x != pick[v])
				drop(&f, step, t);
		}
		spread(&f);
	}
	ap_arena_release(ctx->scratch, mark);
}
