/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order to eliminate. Nodes with equal signatures form a class: eliminating one of them
 * gives the result for all. The class of least price goes next, as a whole: taking a node changes
 * the signatures of its neighbours, so an independent set of the class is eliminated in one round.
 *
 * The price of a class is its work, or its work divided by the number of nodes that share it. By
 * the former, a chain is eaten from its ends, cheap steps that are all different. By the latter,
 * in equal layers every second node goes at once, all the same step, and ends and other unique
 * nodes go last. Neither is best always; a plan costs little, so both are made.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elim/elim_graph.h"

struct class { /* of nodes with one signature */
	double work;
	uint32_t count; /* nodes that have it now */
	AP_VEC(ap_id) member; /* those that got it since its last round */
};

struct entry { /* of the heap; a class is entered anew whenever its price falls */
	double price;
	ap_id class;
};

struct order {
	struct ap_egraph *g;
	bool amortise;
	AP_VEC(struct class) class;
	AP_VEC(struct entry) heap; /* least first */
	ap_id *class_of; /* by node; AP_NONE: too wide, or eliminated */
	bool *gone;
	uint32_t left;
};

static double price(const struct order *o, ap_id c)
{
	if (o->g->done.v[c] != AP_NONE)
		return 0;
	return o->class.v[c].work / (o->amortise ? o->class.v[c].count : 1);
}

static bool before(struct entry a, struct entry b)
{
	return a.price != b.price ? a.price < b.price : a.class < b.class;
}

static void heap_push(struct order *o, struct entry e)
{
	AP_PUSH(o->g->ctx->scratch, o->heap, e);
	struct entry *h = o->heap.v;
	size_t i = o->heap.n - 1;
	for (; i > 0 && before(e, h[(i - 1) / 2]); i = (i - 1) / 2)
		h[i] = h[(i - 1) / 2];
	h[i] = e;
}

static struct entry heap_pop(struct order *o)
{
	struct entry *h = o->heap.v, top = h[0], e = h[--o->heap.n];
	size_t n = o->heap.n, i = 0;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		child += child + 1 < n && before(h[child + 1], h[child]);
		if (!before(h[child], e))
			break;
		h[i] = h[child];
	}
	h[i] = e;
	return top;
}

static void leave_class(struct order *o, ap_id v)
{
	if (o->class_of[v] != AP_NONE)
		o->class.v[o->class_of[v]].count--;
	o->class_of[v] = AP_NONE;
}

/* Puts v into the class of its present signature. */
static void classify(struct order *o, ap_id v)
{
	double work;
	ap_id c = ap_egraph_signature(o->g, v, &work);
	if (c == o->class_of[v])
		return;
	leave_class(o, v);
	if (c == AP_NONE)
		return;
	while (o->class.n <= c) {
		struct class none = {0};
		AP_PUSH(o->g->ctx->scratch, o->class, none);
	}
	o->class_of[v] = c;
	o->class.v[c].work = work;
	o->class.v[c].count++;
	AP_PUSH(o->g->ctx->scratch, o->class.v[c].member, v);
	heap_push(o, (struct entry){price(o, c), c});
}

/* The class whose turn it is; false when only nodes that are too wide are left. */
static bool next_class(struct order *o, ap_id *c)
{
	while (o->heap.n) {
		struct entry e = heap_pop(o);
		if (o->class.v[e.class].count == 0)
			continue;
		double now = price(o, e.class);
		if (now > e.price) {
			heap_push(o, (struct entry){now, e.class});
			continue;
		}
		*c = e.class;
		return true;
	}
	return false;
}

/* v has been eliminated: what was joined to it looks different now. */
static void update(struct order *o, ap_id v)
{
	struct ap_egraph *g = o->g;
	size_t n = g->clique.n;
	ap_id *touched = ap_arena_memdup(g->ctx->scratch, g->clique.v, n * sizeof *touched);
	leave_class(o, v);
	o->gone[v] = true;
	o->left--;
	for (size_t i = 0; i < n; i++) {
		if (touched[i] != v)
			classify(o, touched[i]);
	}
}

static int by_id(const void *a, const void *b)
{
	ap_id x = *(const ap_id *)a, y = *(const ap_id *)b;
	return (x > y) - (x < y);
}

static void eliminate_class(struct order *o, ap_id c)
{
	size_t n = o->class.v[c].member.n;
	ap_id *member = o->class.v[c].member.v;
	qsort(member, n, sizeof *member, by_id);
	o->class.v[c].member.v = NULL; /* new ones wait for the next round */
	o->class.v[c].member.n = o->class.v[c].member.cap = 0;
	for (size_t i = 0; i < n; i++) {
		if (o->gone[member[i]] || o->class_of[member[i]] != c)
			continue;
		ap_egraph_eliminate(o->g, member[i], c);
		update(o, member[i]);
	}
	if (o->class.v[c].count)
		heap_push(o, (struct entry){price(o, c), c});
}

/* All that are left are too wide: splits one with the fewest factors. */
static void split_one(struct order *o)
{
	ap_id best = AP_NONE;
	uint32_t least = UINT32_MAX;
	for (ap_id v = 0; v < o->g->p->n; v++) {
		if (!o->gone[v] && o->g->degree[v] < least) {
			least = o->g->degree[v];
			best = v;
		}
	}
	ap_egraph_split(o->g, best);
	update(o, best);
}

/* Gives up as soon as the work is that of the rival (INFINITY: never). */
static bool eliminate_all(struct ap_egraph *g, bool amortise, double rival_work)
{
	struct ap_arena *arena = g->ctx->scratch;
	uint32_t n = g->p->n;
	struct order o = {.g = g, .amortise = amortise, .left = n};
	o.class_of = AP_NEW_N(arena, ap_id, n);
	o.gone = AP_NEW_N(arena, bool, n);
	for (ap_id v = 0; v < n; v++)
		o.class_of[v] = AP_NONE;
	for (ap_id v = 0; v < n; v++)
		classify(&o, v);
	while (o.left) {
		ap_id c;
		if (g->work >= rival_work)
			return false;
		if (next_class(&o, &c))
			eliminate_class(&o, c);
		else
			split_one(&o);
	}
	return true;
}

struct attempt {
	double cap; /* cells of one table */
	bool amortise;
	double rival_work; /* at which it is not wanted any more */
};

/* NULL when it is not wanted. */
static struct ap_egraph *try_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, struct attempt a)
{
	struct ap_egraph *g = AP_NEW(ctx->scratch, struct ap_egraph);
	ap_egraph_init(g, ctx, p, options, a.cap);
	return eliminate_all(g, a.amortise, a.rival_work) ? g : NULL;
}

static bool fits(const struct ap_egraph *g, const struct ap_elim_options *options)
{
	return g->cells * sizeof(double) <= (double)options->table_bytes &&
		(options->work == 0 || g->work <= (double)options->work);
}

static bool better(const struct ap_egraph *a, const struct ap_egraph *b,
	const struct ap_elim_options *options)
{
	if (a->split != b->split)
		return b->split;
	if (fits(a, options) != fits(b, options))
		return fits(a, options);
	return a->work < b->work;
}

static const struct ap_elim *finish(struct ap_ctx *ctx, const struct ap_egraph *g)
{
	struct ap_elim *e = AP_NEW(ctx->scratch, struct ap_elim);
	*e = (struct ap_elim){
		.n = g->p->n, .k = g->k,
		.ntable = (uint32_t)g->table.n, .table = g->table.v,
		.nreduction = (uint32_t)g->reduction.n, .reduction = g->reduction.v,
		.factor = g->factor.v, .own = g->own,
		.nstep = (uint32_t)g->step.n, .step = g->step.v,
		.split = g->split,
		.work = g->work < 0x1p63 ? (uint64_t)g->work : UINT64_MAX,
		.bytes = (size_t)(g->cells * sizeof(double)),
	};
	return e;
}

/* Even messages over one node, of the largest domain, must be allowed. */
static double least_cap(const struct ap_problem *p)
{
	double k = 0;
	for (uint32_t i = 0; i < p->n; i++)
		k = p->node[i].k > k ? p->node[i].k : k;
	return k;
}

/* Both orders, the better one; where equal layers make eliminations the same one, that in rounds
 * soon shows that the other need not be followed to its end. */
static const struct ap_egraph *best_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, double cap)
{
	struct ap_egraph *rounds = NULL, *plain;
	struct attempt a = {cap, true, INFINITY};
	if (!options->no_share)
		rounds = try_plan(ctx, p, options, a);
	if (rounds && !rounds->split && fits(rounds, options))
		a.rival_work = rounds->work;
	a.amortise = false;
	plain = try_plan(ctx, p, options, a);
	return plain && (!rounds || better(plain, rounds, options)) ? plain : rounds;
}

const struct ap_elim *ap_elim_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double least = least_cap(p), cap = (double)options->table_bytes / sizeof(double);
	cap = cap > least ? cap : least;
	for (;; cap = cap / 8 > least ? cap / 8 : least) {
		const struct ap_egraph *best = best_plan(ctx, p, options, cap);
		if (fits(best, options) || cap <= least)
			return finish(ctx, best);
		ap_arena_release(ctx->scratch, mark);
	}
}
