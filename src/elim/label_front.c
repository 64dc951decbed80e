/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/label_front.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

enum { RUN = 8 };

uint32_t ap_lfront_child(const struct ap_lfront *f, uint32_t step)
{
	return step == f->e->nstep ? f->support->root : f->support->step[step].child;
}

/* ---- the lexicographic order ---- */

struct chains { /* of two labels of a step; walked to their ends */
	const struct ap_label *a, *b;
};

/* Walks down from `child` and queues the children whose labels differ. */
static struct chains walk(struct ap_lfront *f, uint32_t child, struct chains at)
{
	for (; child != AP_NONE; child = f->support->step[child].sibling) {
		struct ap_lpair below = {child, at.a->right, at.b->right};
		if (below.a != below.b)
			AP_PUSH(f->arena, f->pending, below);
		at.a = &f->pool.v[at.a->left];
		at.b = &f->pool.v[at.b->left];
	}
	return at;
}

/* Decided by the first node at which they differ, wherever below it is. */
static bool lex_less(struct ap_lfront *f, const struct ap_label *a, const struct ap_label *b)
{
	ap_id first = AP_NONE;
	bool less = false;
	uint32_t step = f->step;
	struct chains end = walk(f, f->child, (struct chains){a, b});
	for (;;) {
		f->work++;
		if (step != f->e->nstep && end.a->right != end.b->right &&
			f->e->step[step].node < first) {
			first = f->e->step[step].node;
			less = end.a->right < end.b->right;
		}
		if (!f->pending.n)
			return less;
		struct ap_lpair next = f->pending.v[--f->pending.n];
		step = next.step;
		end = walk(f, f->support->step[step].child,
			(struct chains){&f->pool.v[next.a], &f->pool.v[next.b]});
	}
}

/* ---- the front ---- */

void ap_lfront_start(struct ap_lfront *f, uint32_t step, uint32_t child)
{
	f->front.n = f->fresh.n = 0;
	f->step = step;
	f->child = child;
}

/* The first label of the front that costs at least `cost`. */
static size_t level_of(const struct ap_lfront *f, double cost)
{
	size_t low = 0, high = f->front.n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (f->front.v[middle].cost < cost)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool beats_equal(struct ap_lfront *f, const struct ap_label *a, const struct ap_label *b)
{
	return a->memory <= b->memory && (!f->ties || lex_less(f, a, b));
}

static bool useless(struct ap_lfront *f, const struct ap_label *l)
{
	size_t level = level_of(f, l->cost);
	if (level > 0 && f->front.v[level - 1].memory <= l->memory)
		return true;
	for (size_t i = level; i < f->front.n && f->front.v[i].cost == l->cost; i++) {
		if (beats_equal(f, &f->front.v[i], l))
			return true;
	}
	return false;
}

/* ---- sorting, inlined for each order: half of the time goes here ---- */

typedef bool less_fn(const struct ap_label *x, const struct ap_label *y);

static inline bool cost_less(const struct ap_label *x, const struct ap_label *y)
{
	if (x->cost != y->cost)
		return x->cost < y->cost;
	if (x->memory != y->memory)
		return x->memory < y->memory;
	return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static inline bool excess_less(const struct ap_label *x, const struct ap_label *y)
{
	if (x->excess != y->excess)
		return x->excess < y->excess;
	return x->cost != y->cost ? x->cost < y->cost : x->memory < y->memory;
}

static inline void sort_run(struct ap_label *v, size_t n, less_fn *less)
{
	for (size_t i = 1; i < n; i++) {
		struct ap_label x = v[i];
		size_t j = i;
		for (; j > 0 && less(&x, &v[j - 1]); j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static inline void merge_runs(const struct ap_label *a, size_t na, const struct ap_label *b,
	size_t nb, struct ap_label *out, less_fn *less)
{
	while (na && nb) {
		bool second = less(b, a);
		*out++ = second ? *b++ : *a++;
		nb -= second;
		na -= !second;
	}
	memcpy(out, na ? a : b, (na ? na : nb) * sizeof *out);
}

/* Stable merge sort; room is as large as v. */
static inline void sort_labels(struct ap_label *v, size_t n, struct ap_label *room, less_fn *less)
{
	struct ap_label *from = v, *to = room, *other;
	for (size_t i = 0; i < n; i += RUN)
		sort_run(v + i, n - i < RUN ? n - i : RUN, less);
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t i = 0; i < n; i += 2 * width) {
			size_t na = n - i < width ? n - i : width;
			size_t nb = n - i - na < width ? n - i - na : width;
			merge_runs(from + i, na, from + i + na, nb, to + i, less);
		}
		other = from;
		from = to;
		to = other;
	}
	if (from != v)
		memcpy(v, from, n * sizeof *v);
}

static struct ap_label *room_for(struct ap_lfront *f, size_t n)
{
	AP_RESERVE(f->arena, f->level, n);
	return f->level.v;
}

/* Takes l into the level at hand, all of one cost, unless one there beats it. */
static void add_to_level(struct ap_lfront *f, const struct ap_label *l)
{
	size_t kept = 0, place = 0;
	for (size_t i = 0; i < f->level.n; i++) {
		if (beats_equal(f, &f->level.v[i], l))
			return;
	}
	for (size_t i = 0; i < f->level.n; i++) {
		if (beats_equal(f, l, &f->level.v[i]))
			continue;
		place += f->level.v[i].memory > l->memory;
		f->level.v[kept++] = f->level.v[i];
	}
	f->level.n = kept;
	AP_PUSH(f->arena, f->level, *l);
	memmove(&f->level.v[place + 1], &f->level.v[place], (kept - place) * sizeof *l);
	f->level.v[place] = *l;
}

/* Merges what waits with the front, cost level by cost level. */
static void merge(struct ap_lfront *f)
{
	size_t i = 0, j = 0;
	int64_t least = INT64_MAX; /* memory of all that is cheaper */
	sort_labels(f->fresh.v, f->fresh.n, room_for(f, f->fresh.n), cost_less);
	f->merged.n = 0;
	while (i < f->front.n || j < f->fresh.n) {
		bool old = j == f->fresh.n ||
			(i < f->front.n && f->front.v[i].cost <= f->fresh.v[j].cost);
		double cost = old ? f->front.v[i].cost : f->fresh.v[j].cost;
		f->level.n = 0;
		for (; i < f->front.n && f->front.v[i].cost == cost; i++) {
			if (f->front.v[i].memory < least)
				add_to_level(f, &f->front.v[i]);
		}
		for (; j < f->fresh.n && f->fresh.v[j].cost == cost; j++) {
			if (f->fresh.v[j].memory < least)
				add_to_level(f, &f->fresh.v[j]);
		}
		for (size_t k = 0; k < f->level.n; k++) {
			AP_PUSH(f->arena, f->merged, f->level.v[k]);
			least = f->level.v[k].memory;
		}
	}
	f->fresh.n = 0;
}

static void flush(struct ap_lfront *f)
{
	if (!f->fresh.n)
		return;
	merge(f);
	struct ap_labels old = f->front;
	f->front = f->merged;
	f->merged = old;
}

void ap_lfront_add(struct ap_lfront *f, struct ap_label l)
{
	if (useless(f, &l))
		return;
	AP_PUSH(f->arena, f->fresh, l);
	if (f->fresh.n >= 64 && f->fresh.n >= f->front.n / 2)
		flush(f);
}

bool ap_lfront_prefer(struct ap_lfront *f, const struct ap_label *a, const struct ap_label *b)
{
	return a->cost != b->cost ? a->cost < b->cost : f->ties && lex_less(f, a, b);
}

struct ap_lrange ap_lfront_finish(struct ap_lfront *f)
{
	flush(f);
	struct ap_lrange r = {(uint32_t)f->pool.n, (uint32_t)f->front.n};
	sort_labels(f->front.v, f->front.n, room_for(f, f->front.n), excess_less);
	for (size_t i = 0; i < f->front.n; i++)
		AP_PUSH(f->arena, f->pool, f->front.v[i]);
	return r;
}
