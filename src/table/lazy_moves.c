/* SPDX-License-Identifier: Apache-2.0 */
/* From one candidate of a class to others. */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "shard/space.h"
#include "table/lazy_parts.h"

struct found { /* states, each once */
	struct ap_lazy *l;
	uint32_t cls, self;
	AP_VEC(uint32_t) list;
};

static void offer_as_is(struct found *f, const int32_t *count)
{
	uint32_t s = ap_lazy_find(f->l, f->cls, count);

	if (s == AP_NONE || s == f->self)
		return;
	for (size_t i = 0; i < f->list.n; i++)
		if (f->list.v[i] == s)
			return;
	AP_PUSH(f->l->arena, f->list, s);
}

/* Where all devices are to be used: the counts, and of the devices that they leave as many as they can
 * take to one factor after the other, from each of them on. */
static void offer_in_full(struct found *f, const int32_t *count)
{
	const struct ap_bound *b = f->l->classes.v[f->cls].task->bound;
	int64_t left = f->l->m->ndev;

	for (int i = 0; i < b->nfactor; i++)
		left = left % count[i] ? 1 : left / count[i];
	for (int first = 0; left > 1 && first < b->nfactor; first++) {
		int32_t full[AP_MAX_FACTOR];
		int64_t rest = left;

		memcpy(full, count, b->nfactor * sizeof *full);
		for (int i = 0; i < b->nfactor; i++) {
			int to = b->dev[(first + i) % b->nfactor];
			int32_t more = (int32_t)ap_gcd(ap_factor_extent(b, to, f->l->step) / full[to], rest);

			full[to] *= more;
			rest /= more;
		}
		offer_as_is(f, full);
	}
}

static void offer(struct found *f, const int32_t *count)
{
	offer_as_is(f, count);
	if (f->l->step->fully_use)
		offer_in_full(f, count);
}

static struct ap_lazy_list listed(const struct found *f)
{
	return (struct ap_lazy_list){(uint32_t)f->list.n, f->list.v};
}

uint32_t ap_lazy_start(struct ap_lazy *l, uint32_t cls)
{
	const int32_t *fixed = l->classes.v[cls].fixed;
	int32_t count[AP_MAX_FACTOR];

	ap_space_start(l->classes.v[cls].task->bound, l->m->ndev, count);
	return ap_lazy_find(l, cls, fixed ? fixed : count);
}

static void find_further(struct found *f, const int32_t *count, int32_t prime)
{
	const struct ap_bound *b = f->l->classes.v[f->cls].task->bound;
	int32_t to[AP_MAX_FACTOR];

	for (int i = 0; i < b->ndev; i++) {
		memcpy(to, count, sizeof to);
		to[b->dev[i]] *= prime;
		offer(f, to);
	}
}

struct ap_lazy_list ap_lazy_further(struct ap_lazy *l, uint32_t cls, uint32_t state, int32_t prime)
{
	struct ap_lazy_entry *e = l->classes.v[cls].states.v[state];
	struct found f = {.l = l, .cls = cls, .self = state};
	int i = 0;

	while (l->prime[i] != prime)
		i++;
	if (!e->further[i].known && !l->classes.v[cls].fixed)
		find_further(&f, e->pub.count, prime);
	if (!e->further[i].known)
		e->further[i] = (struct ap_lazy_known){true, listed(&f)};
	return e->further[i].list;
}

/* Parts are moved between places: the factors, and the repeat after them. */
struct places {
	int n;
	int32_t parts[AP_MAX_FACTOR + 1];
};

static void shift(struct found *f, const struct places *p, int from, int to, int32_t by)
{
	int32_t count[AP_MAX_FACTOR + 1];

	memcpy(count, p->parts, sizeof count);
	count[from] /= by;
	count[to] *= by;
	offer(f, count);
}

/* The most of `from` that `to` can take; 1 where that is nothing. */
static int32_t all_of(const struct found *f, const struct places *p, int from, int to)
{
	const struct ap_bound *b = f->l->classes.v[f->cls].task->bound;

	if (to == b->nfactor)
		return p->parts[from];
	return (int32_t)ap_gcd(ap_factor_extent(b, to, f->l->step) / p->parts[to], p->parts[from]);
}

/* Two factors cut further at once: where one alone does not pay. */
static void pairs(struct found *f, const struct places *p, int32_t by)
{
	int32_t count[AP_MAX_FACTOR + 1];

	for (int a = 0; a < p->n - 1; a++)
		for (int b = 0; b < a; b++) {
			memcpy(count, p->parts, sizeof count);
			count[a] *= by;
			count[b] *= by;
			offer(f, count);
		}
}

/* Nothing cut, or one factor as far as it goes: wherever one is, a way back. */
static void corners(struct found *f, const struct ap_bound *b)
{
	int32_t count[AP_MAX_FACTOR];

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		count[i] = 1;
	offer(f, count);
	for (int i = 0; i < b->ndev; i++) {
		int to = b->dev[i];

		count[to] = (int32_t)ap_gcd(ap_factor_extent(b, to, f->l->step), f->l->m->ndev);
		offer(f, count);
		count[to] = 1;
	}
}

static void find_beside(struct found *f, const int32_t *count)
{
	const struct ap_lazy *l = f->l;
	const struct ap_bound *b = l->classes.v[f->cls].task->bound;
	struct places p = {.n = b->nfactor + 1};
	int64_t rest = l->m->ndev;

	for (int i = 0; i < b->nfactor; i++) {
		p.parts[i] = count[i];
		rest /= count[i];
	}
	p.parts[b->nfactor] = (int32_t)rest;
	for (int from = 0; from < p.n; from++)
		for (int to = 0; to < p.n; to++) {
			int32_t all = from == to ? 1 : all_of(f, &p, from, to);

			for (int i = 0; i < l->nprime && all > 1; i++)
				if (all % l->prime[i] == 0)
					shift(f, &p, from, to, l->prime[i]);
			if (all > 1)
				shift(f, &p, from, to, all);
		}
	for (int i = 0; i < l->nprime; i++)
		if (rest % ((int64_t)l->prime[i] * l->prime[i]) == 0)
			pairs(f, &p, l->prime[i]);
	corners(f, b);
}

struct ap_lazy_list ap_lazy_beside(struct ap_lazy *l, uint32_t cls, uint32_t state)
{
	struct ap_lazy_entry *e = l->classes.v[cls].states.v[state];
	struct found f = {.l = l, .cls = cls, .self = state};

	if (!e->beside.known && !l->classes.v[cls].fixed)
		find_beside(&f, e->pub.count);
	if (!e->beside.known)
		e->beside = (struct ap_lazy_known){true, listed(&f)};
	return e->beside.list;
}

static uint32_t *all_states(struct ap_lazy *l, uint32_t cls, uint32_t *n)
{
	struct ap_mark mark = ap_arena_mark(l->ctx.scratch);
	const struct ap_lazy_class *c = &l->classes.v[cls];
	struct ap_ctx ctx = l->ctx;
	struct ap_space space;
	uint32_t *state;

	if (c->fixed) {
		state = AP_NEW(l->arena, uint32_t);
		*state = ap_lazy_start(l, cls);
		*n = 1;
		return state;
	}
	ctx.arena = l->arena;
	ap_space_make(&ctx, c->task->bound, l->m->ndev, l->step, &space);
	ap_arena_release(l->ctx.scratch, mark);
	state = AP_NEW_N(l->arena, uint32_t, space.n);
	for (uint32_t i = 0; i < space.n; i++)
		state[i] = ap_lazy_find(l, cls, space.count + (size_t)i * space.nfactor);
	*n = space.n;
	return state;
}

static struct ap_lazy_list find_matching(struct ap_lazy *l, uint32_t bond, bool of_v,
	uint32_t other)
{
	const struct ap_lazy_bond *b = &l->bonds.v[bond];
	uint32_t n, kept = 0, *state = all_states(l, of_v ? b->cls_v : b->cls_u, &n);

	for (uint32_t i = 0; i < n; i++) {
		struct ap_lazy_move m = of_v ? ap_lazy_move(l, bond, other, state[i])
					     : ap_lazy_move(l, bond, state[i], other);

		if (m.cost_s == 0)
			state[kept++] = state[i];
	}
	return (struct ap_lazy_list){kept, state};
}

struct ap_lazy_list ap_lazy_matching(struct ap_lazy *l, uint32_t bond, bool of_v, uint32_t other)
{
	const uint32_t key[] = {bond, of_v, other};
	bool fresh;
	ap_id id = ap_map_put(l->matches, key, sizeof key, &fresh);

	if (fresh)
		AP_PUSH(l->arena, l->match, find_matching(l, bond, of_v, other));
	return l->match.v[id];
}
