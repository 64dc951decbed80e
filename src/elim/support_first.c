/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elim/support.h"

struct state { /* of one step */
	bool *dead; /* by tuple */
	uint32_t *inside; /* by group: tuples of it that are alive */
	uint32_t *outside; /* by group: tuples of the parent that are alive and imply it */
	uint32_t *first, *implied; /* by group: where in implied[] its tuples of the parent start */
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
	for (size_t g = 0; g < n; g++) /* the fill moved each end down to its start */
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

/* Nothing extends the group downwards any more: the parent's tuples that imply it die. */
static void drop_above(struct first *f, uint32_t step, uint32_t group)
{
	const struct state *st = &f->state[step];
	if (f->s->step[step].parent == AP_NONE)
		return;
	for (uint32_t j = st->first[group]; j < st->first[group + 1]; j++)
		drop(f, f->s->step[step].parent, st->implied[j]);
}

static void drop_group(struct first *f, uint32_t step, uint32_t group)
{
	const struct ap_sgroup *g = &f->s->step[step].group.v[group];
	for (uint32_t t = g->first; t < g->first + g->count; t++)
		drop(f, step, t);
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
			if (--f->state[c].outside[implied] == 0)
				drop_group(f, c, implied);
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
