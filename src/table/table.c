/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the table:
 *   kind   distinct operator: candidates, layouts of its tensors, costs
 *   bond   distinct edge between two kinds: cost of each pair of layouts
 *   class  distinct (kind, bonds around it): candidates left after pruning
 *   then nodes, edges and matrices of the problem
 *
 * Bonds along which equal tensors flow are priced together, row by row: from one layout of a
 * producer to all that consumers want, each once, however many bonds need it.
 */
#include "table/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "base/wide.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/reshard.h"
#include "shard/strategy.h"
#include "table/joint.h"

struct ap_map;

struct ap_slot { /* an operand or result of a kind */
	uint32_t nlayout;
	const struct ap_layout *layout; /* [nlayout] distinct, with what is partial */
	const struct ap_axes *partial; /* [nlayout] of an operand: over which its gradient is; or NULL */
	const uint32_t *of; /* [k] layout index of each candidate */
};

struct ap_kind {
	const struct ap_task *task;
	uint32_t k;
	struct ap_space space;
	struct ap_slot *in, *out; /* [nin], [nout] */
	struct ap_slot strategy; /* .of holds ids of strategy vectors; .layout is NULL */
	struct ap_slot own; /* .of holds the candidates themselves; .layout is NULL */
	double *cost; /* [k] INFINITY: a parameter read twice would have two layouts */
	double *hidden, *bucketed; /* [k] see struct ap_table_class */
	int64_t *memory, *temporary; /* [k] */
};

struct ap_bond { /* between two kinds; row: layout of u's slot, column: layout of v's */
	enum ap_bond_type type;
	uint32_t kind_u, kind_v;
	struct ap_flow flow;
	struct ap_slot u, v;
	double *cost; /* [u.nlayout * v.nlayout], quantised */
	uint16_t *there; /* same shape, of a FLOW: the way there in PARTS of that, rounded down */
	int64_t *kept; /* same shape, bytes of kept copies; NULL: all 0 */
};

struct ap_tie { /* an edge of the problem, without its matrix yet */
	ap_id u, v; /* nodes */
	ap_id bond;
	uint32_t operand; /* of v, for a FLOW */
};

struct ap_making {
	struct ap_ctx *ctx;
	const struct ap_table_params *params;
	const struct ap_graph *g;
	const struct ap_machine *m;
	const struct ap_step *step;
	const struct ap_task *task;
	struct ap_worker {
		struct ap_arena *arena; /* scratch */
		struct ap_pricer *pricer;
	} *worker; /* [jobs] */
	uint32_t *kind_of; /* [nnode] */
	AP_VEC(struct ap_kind) kinds;
	AP_VEC(struct ap_bond) bonds;
	AP_VEC(struct ap_tie) links;
	const bool *const *left; /* [nnode] the candidates to choose from; NULL: all; NULL: of all nodes */
	const uint32_t *only; /* [nnode] the kind's only candidate left to a node; AP_NONE: all are;
	                         NULL: no node is restricted */
	const bool *whole; /* [nnode] all candidates of the node stay; NULL: of none */
	uint64_t work; /* spent on pricing */
	const struct weighing *weighing; /* NULL: costs are those of the objective */
	const struct ap_table_pool *pool; /* the candidates to choose from; NULL: all */
	bool lacks_memory; /* the pairs of layouts are too many bytes */
	uint32_t *class_of; /* [nnode] */
	struct class_list {
		struct class {
			uint32_t kind;
			const double *cost; /* of the kind's candidates */
			uint32_t k;
			const uint32_t *candidate; /* [k] index into the kind's candidates, ascending */
			bool whole; /* none of them is dropped */
		} *v;
		size_t n, cap;
	} classes;
};

/* Costs of a path instead of the objective's. Weights are numbered. */
struct weighing {
	const struct ap_table *of;
	const uint32_t *of_node; /* [nnode] weights of its legs */
	const double *const *cost; /* [weights * kinds] of the kind's candidates; NULL: none has both */
	const uint32_t *of_link; /* [links] weight of its redistribution */
	const struct scale {
		double there, back;
	} *scale; /* [weights of links] */
	const bool *finite; /* [bonds] a redistribution that no pair of layouts forbids */
};

#define AP_PRICE_WORK 512 /* inner steps of a search per pair priced, in time */
#define AP_CANDIDATE_WORK 8192 /* the same per candidate, with its layouts */

#define PARTS 65520 /* of a price: halves, thirds and so on are exact */

#define AP_MAX_STRATEGY 32 /* limit of the vectors in a strategy */

#define SHARE 20000 /* prices per task of a thread: a millisecond or two */

struct row { /* a row of a bond */
	struct ap_bond *bond;
	const uint32_t *column; /* layouts of the columns */
	uint32_t at;
	uint32_t next; /* next row of the same layout, or AP_NONE */
};

struct layout {
	struct ap_reshard_end end;
	uint32_t first; /* first row, or AP_NONE if no producer has it */
	size_t asked; /* number of prices in its rows */
};

struct tensor {
	struct ap_flow flow; /* as if all bonds kept it, if that costs no time (others ignore it);
	                        of one copy in flight */
	struct ap_map *ids; /* by layout */
	AP_VEC(struct layout) layouts;
};

/* Layouts [first, end) of a tensor, a task. */
struct share {
	uint32_t tensor, first, end;
	uint32_t base; /* number of layouts in earlier shares, to number them over all tensors */
};

struct price {
	uint32_t number; /* of the source layout; 0 if none */
	uint16_t there;
	double cost;
	int64_t kept;
};

struct flows {
	const struct ap_making *mk;
	AP_VEC(struct tensor) tensors;
	AP_VEC(struct row) rows;
	AP_VEC(struct share) shares;
	size_t most; /* largest number of layouts of a tensor */
	struct price *price; /* [worker][most] the last price of each target layout */
};

/* The end of number `at` in a slot. */
static uint32_t end_id(const struct flows *f, struct tensor *t, const struct ap_slot *slot, bool reader,
	uint32_t at)
{
	struct ap_arena *scratch = f->mk->ctx->scratch;
	const struct ap_layout *l = &slot->layout[at];
	const struct ap_axes *partial = slot->partial ? &slot->partial[at] : NULL;
	size_t len = (size_t)l->rank * sizeof *l->dim;
	char key[sizeof l->dim + sizeof partial->axis];
	bool fresh;
	uint32_t id;

	memcpy(key, l->dim, len);
	if (partial && partial->n > 0) {
		memcpy(key + len, partial->axis, (size_t)partial->n * sizeof *partial->axis);
		len += (size_t)partial->n * sizeof *partial->axis;
	}
	id = ap_map_put(t->ids, key, len, &fresh);
	if (fresh) {
		AP_PUSH(scratch, t->layouts, ((struct layout){.first = AP_NONE}));
		ap_reshard_end_make(l, t->flow.size, ap_flow_devices(f->mk->m, &t->flow, reader),
			&t->layouts.v[id].end);
		if (partial)
			t->layouts.v[id].end.partial = *partial;
	}
	return id;
}

static struct tensor *tensor_of(struct flows *f, struct ap_map *seen, const struct ap_flow *flow)
{
	struct ap_arena *scratch = f->mk->ctx->scratch;
	struct ap_flow key = *flow;
	bool fresh;
	ap_id id;

	key.kept |= f->mk->step->executor == AP_EXECUTOR_MINDSPORE; /* else time depends on it */
	key.in_flight = 1;
	id = ap_map_put(seen, &key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(scratch, f->tensors, ((struct tensor){key, ap_map_create(scratch), {0}}));
	return &f->tensors.v[id];
}

/* Divides tensors into shares of about SHARE prices. */
static void share_out(struct flows *f)
{
	uint32_t base = 0;

	for (uint32_t i = 0; i < f->tensors.n; i++) {
		const struct tensor *t = &f->tensors.v[i];
		struct share s = {.tensor = i};
		size_t prices = 0;

		for (uint32_t l = 0; l < t->layouts.n; l++) {
			prices += t->layouts.v[l].asked;
			if (prices < SHARE && l + 1 < t->layouts.n)
				continue;
			s.end = l + 1;
			s.base = base;
			AP_PUSH(f->mk->ctx->scratch, f->shares, s);
			base += s.end - s.first;
			s.first = s.end;
			prices = 0;
		}
		f->most = t->layouts.n > f->most ? t->layouts.n : f->most;
	}
}

/* The pricer of a worker, made on first use. */
static struct ap_pricer *worker_pricer(const struct ap_making *mk, int worker)
{
	struct ap_worker *w = &mk->worker[worker];

	if (!w->pricer)
		w->pricer = ap_pricer_create(w->arena, mk->m, mk->step);
	return w->pricer;
}

static void open_workers(struct ap_making *mk)
{
	mk->worker = AP_NEW_N(mk->ctx->arena, struct ap_worker, mk->ctx->jobs);
	for (int w = 0; w < mk->ctx->jobs; w++) {
		mk->worker[w].arena = ap_arena_create_like(mk->ctx->arena);
	}
}

static void close_workers(struct ap_making *mk)
{
	for (int w = 0; w < mk->ctx->jobs; w++)
		ap_arena_destroy(mk->worker[w].arena);
}

#define ROUNDS 2 /* each one works on the survivors of the last */
#define LOOK 16 /* neighbour layouts compared at a time: the first few usually decide */
#define AT_ONCE 64 /* prices weighed together, in the first-level cache */
#define TILE 16 /* columns of a bond turned into rows together: two lines of the cache each */
#define RISES 4 /* compared side by side */
#define CHAMPIONS 16 /* cheapest survivors that others are tested against: the rest beat few */

struct edge { /* a side prepared for comparing: cost by (own layout, neighbour's layout) */
	uint32_t times; /* number of equal sides merged into it */
	uint32_t nown, nother;
	const uint32_t *of; /* own layout of each candidate of the kind */
	double *cost; /* [nown][nother] */
	int64_t *kept; /* same shape, or NULL */
};

/* The largest rise from cf to ct over n numbers. If cf is infinite, the difference is -INFINITY or
 * NaN, neither of which compares as larger. */
static double most_rise(size_t n, const double *cf, const double *ct)
{
	double lane[RISES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
	size_t x = 0;

	for (; x + RISES <= n; x += RISES)
		for (size_t k = 0; k < RISES; k++) {
			double rise = ct[x + k] - cf[x + k];

			lane[k] = rise > lane[k] ? rise : lane[k];
		}
	for (; x < n; x++)
		lane[0] = ct[x] - cf[x] > lane[0] ? ct[x] - cf[x] : lane[0];
	lane[0] = lane[1] > lane[0] ? lane[1] : lane[0];
	lane[2] = lane[3] > lane[2] ? lane[3] : lane[2];
	return lane[2] > lane[0] ? lane[2] : lane[0];
}

/* The most by which layout `to` makes this edge worse than layout `from`, whatever the neighbour
 * chose. If that is above `enough`, any value above `enough` may be returned. */
static double worse(const struct edge *e, uint32_t from, uint32_t to, double enough)
{
	const double *cf = e->cost + (size_t)from * e->nother, *ct = e->cost + (size_t)to * e->nother;
	double most = -INFINITY;

	for (size_t x = 0; x < e->nother && most <= enough; x += LOOK) {
		size_t n = e->nother - x < LOOK ? e->nother - x : LOOK;
		double rise = most_rise(n, cf + x, ct + x);

		most = rise > most ? rise : most;
	}
	return most;
}

static int64_t more_memory(const struct edge *e, uint32_t from, uint32_t to)
{
	const int64_t *kf, *kt;
	int64_t most = INT64_MIN;

	if (!e->kept)
		return 0;
	kf = e->kept + (size_t)from * e->nother;
	kt = e->kept + (size_t)to * e->nother;
	for (uint32_t x = 0; x < e->nother; x++)
		most = kt[x] - kf[x] > most ? kt[x] - kf[x] : most;
	return most;
}

/*
 * Candidate s beats candidate c of a node when
 *
 *   cost(s) + sum over edges of max over the neighbour's candidates x of (E(x, s) - E(x, c)) <= cost(c)
 *
 * (and, if memory counts, the same for memory, and the temporary is no larger): whatever the
 * neighbours chose, s in c's place is no worse. All nodes may be pruned at once: an optimum that uses
 * beaten candidates is repaired node by node without its cost rising. This needs no property of the
 * redistribution costs themselves. Nodes with equal candidates and equal surroundings are pruned once.
 *
 * Sums are exact: all costs are multiples of the quantum. Giving up once the slack is used up
 * ignores what later edges might give back: fewer are pruned, never too many.
 */
static bool beats(const struct ap_making *mk, const struct ap_kind *kd, const double *cost,
	const struct edge *edges, uint32_t nedge, uint32_t s, uint32_t c, uint64_t *work)
{
	double slack = cost[c] - cost[s];
	int64_t room = kd->memory[c] - kd->memory[s];

	if (mk->params->by_memory && kd->temporary[s] > kd->temporary[c])
		return false;
	for (uint32_t i = 0; i < nedge && slack >= 0; i++) {
		uint32_t from = edges[i].of[c], to = edges[i].of[s];

		if (from == to)
			continue;
		*work += edges[i].nother;
		slack -= edges[i].times * worse(&edges[i], from, to, slack);
		if (mk->params->by_memory && slack >= 0)
			room -= edges[i].times * more_memory(&edges[i], from, to);
	}
	return slack >= 0 && (!mk->params->by_memory || room >= 0);
}

struct ranked {
	double cost;
	uint32_t candidate;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

struct side { /* an edge seen from one of its nodes */
	ap_id bond;
	uint32_t is_v; /* the node is the edge's v */
	uint32_t neighbour; /* class */
	uint32_t scale; /* weight of the link, 0 without weights */
};

static int compare_sides(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct side));
}

/* The layouts that the neighbour's remaining candidates use. */
static uint32_t layouts_in_use(struct ap_arena *a, const struct ap_slot *slot,
	const struct class *c, uint32_t **out)
{
	bool *used = AP_NEW_N(a, bool, slot->nlayout);
	uint32_t n = 0;

	*out = AP_NEW_N(a, uint32_t, slot->nlayout);
	for (uint32_t i = 0; i < c->k; i++)
		used[slot->of[c->candidate[i]]] = true;
	for (uint32_t l = 0; l < slot->nlayout; l++)
		if (used[l])
			(*out)[n++] = l;
	return n;
}

#define INTEGERS 0x1p52 /* no number from here on has a fraction */
#define FRACTIONS 0x1p60 /* times a difference of two numbers from a half to INTEGERS is 0 or at least 1 */

/*
 * Prices of a row of a bond: of the columns `column`, n of them, or (NULL) of the first n. With weights,
 * what a path is charged for each of these redistributions, rounded down: prices are rounded to the
 * nearest. Loops are plain, so that compilers vectorize them: tables of many devices spend much of their
 * time here.
 */
AP_WIDE static void weigh(const struct ap_making *mk, const struct ap_bond *b, size_t row,
	const uint32_t *column, uint32_t n, uint32_t scale, double *restrict out)
{
	const double *restrict cost = b->cost + row * b->v.nlayout;
	double per_quantum = 1 / mk->step->quantum_s, q = mk->step->quantum_s, more;
	int32_t ceiling;
	struct scale w;

	if (!column)
		memcpy(out, cost, n * sizeof *out);
	for (uint32_t i = 0; i < n && column; i++)
		out[i] = cost[column[i]];
	if (!mk->weighing)
		return;
	w = mk->weighing->scale[scale];
	if (!b->there || (w.there == 0 && w.back == 0)) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = out[i] < INFINITY ? 0 : INFINITY;
		return;
	}
	more = w.there - w.back;
	ceiling = more < 0;
	for (uint32_t from = 0; from < n; from += AT_ONCE) {
		uint32_t m = n - from < AT_ONCE ? n - from : AT_ONCE;
		const uint16_t *restrict there = b->there + row * b->v.nlayout;
		double part[AT_ONCE], x[AT_ONCE], whole[AT_ONCE], above[AT_ONCE], *to = out + from;

		for (uint32_t i = 0; i < m; i++) {
			int32_t p = there[column ? column[from + i] : from + i];

			part[i] = p + (p < PARTS ? ceiling : 0);
		}
		for (uint32_t i = 0; i < m; i++) /* exact, as the quantum is a power of two */
			x[i] = (w.back + more * part[i] / PARTS) * (to[i] * per_quantum - 0.5);
		for (uint32_t i = 0; i < m; i++) {
			whole[i] = x[i] + INTEGERS - INTEGERS;
			above[i] = (whole[i] - x[i]) * FRACTIONS;
		}
		for (uint32_t i = 0; i < m; i++)
			above[i] = above[i] > 0 ? above[i] : 0;
		for (uint32_t i = 0; i < m; i++) /* one less where the nearest whole number is above */
			whole[i] -= above[i] < 1 ? above[i] : 1;
		for (uint32_t i = 0; i < m; i++)
			whole[i] = x[i] < INTEGERS ? whole[i] : x[i];
		for (uint32_t i = 0; i < m; i++)
			whole[i] = (whole[i] > 0 ? whole[i] : 0) * q;
		for (uint32_t i = 0; i < m; i++)
			to[i] = to[i] < INFINITY ? whole[i] : to[i];
	}
}

/* Costs of the layouts that candidates of class c use. */
static void make_edge(const struct ap_making *mk, struct ap_arena *a, const struct class *c,
	const struct side *s, struct edge *e)
{
	const struct ap_bond *b = &mk->bonds.v[s->bond];
	const struct ap_slot *own = s->is_v ? &b->v : &b->u, *other = s->is_v ? &b->u : &b->v;
	bool memory = mk->params->by_memory && b->kept;
	uint32_t *used, *rows, nrow = layouts_in_use(a, own, c, &rows);
	double *tile;

	e->times = 1;
	e->of = own->of;
	e->nown = own->nlayout;
	e->nother = layouts_in_use(a, other, &mk->classes.v[s->neighbour], &used);
	e->cost = ap_arena_alloc_raw(a, (size_t)e->nown * e->nother, sizeof *e->cost);
	e->kept = memory ? AP_NEW_N(a, int64_t, (size_t)e->nown * e->nother) : NULL;
	for (uint32_t i = 0; i < nrow && !s->is_v; i++)
		weigh(mk, b, rows[i], e->nother < other->nlayout ? used : NULL, e->nother, s->scale,
			e->cost + (size_t)rows[i] * e->nother);
	tile = s->is_v ? ap_arena_alloc_raw(a, (size_t)TILE * nrow, sizeof *tile) : NULL;
	for (uint32_t from = 0; from < e->nother && tile; from += TILE) {
		uint32_t n = e->nother - from < TILE ? e->nother - from : TILE;

		for (uint32_t x = 0; x < n; x++)
			weigh(mk, b, used[from + x], nrow < own->nlayout ? rows : NULL, nrow, s->scale,
				tile + (size_t)x * nrow);
		for (uint32_t i = 0; i < nrow; i++)
			for (uint32_t x = 0; x < n; x++)
				e->cost[(size_t)rows[i] * e->nother + from + x] = tile[(size_t)x * nrow + i];
	}
	for (uint32_t i = 0; i < nrow && memory; i++)
		for (uint32_t x = 0; x < e->nother; x++)
			e->kept[(size_t)rows[i] * e->nother + x] = s->is_v
				? b->kept[(size_t)used[x] * b->v.nlayout + rows[i]]
				: b->kept[(size_t)rows[i] * b->v.nlayout + used[x]];
}

static uint32_t merge_edges(const struct ap_making *mk, struct ap_arena *a, const struct class *c,
	const struct side *s, uint32_t n, struct edge *edges)
{
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i > 0 && compare_sides(&s[i], &s[i - 1]) == 0)
			edges[m - 1].times++;
		else
			make_edge(mk, a, c, &s[i], &edges[m++]);
	}
	return m;
}

/* Makes a class of the next round. */
struct duty {
	const struct class *old;
	const struct side *side;
	uint32_t nside;
	uint32_t *keep; /* [old->k] */
	uint32_t kept;
	uint64_t work; /* layouts compared */
};

struct round {
	struct ap_making *mk;
	AP_VEC(struct duty) duties;
};

/* Survivors of a class: each candidate, cheapest first, is tested against the first kept. */
static void prune(void *user, size_t i, int worker)
{
	struct round *r = user;
	const struct ap_making *mk = r->mk;
	struct duty *d = &r->duties.v[i];
	struct ap_arena *a = mk->worker[worker].arena;
	struct ap_mark mark = ap_arena_mark(a);
	const struct ap_kind *kd = &mk->kinds.v[d->old->kind];
	struct edge *edges = AP_NEW_N(a, struct edge, d->nside + 1);
	uint32_t nedge = merge_edges(mk, a, d->old, d->side, d->nside, edges);
	struct ranked *order = AP_NEW_N(a, struct ranked, d->old->k);
	uint32_t first[CHAMPIONS]; /* those of the first kept that beat others last come first */

	if (d->old->whole) {
		memcpy(d->keep, d->old->candidate, d->old->k * sizeof *d->keep);
		d->kept = d->old->k;
		ap_arena_release(a, mark);
		return;
	}
	for (uint32_t c = 0; c < d->old->k; c++)
		order[c] = (struct ranked){d->old->cost[d->old->candidate[c]], d->old->candidate[c]};
	qsort(order, d->old->k, sizeof *order, compare_ranked);
	for (uint32_t c = 0; c < d->old->k && !ap_ctx_stopped(mk->ctx); c++) {
		uint32_t most = d->kept < CHAMPIONS ? d->kept : CHAMPIONS, j = 0;

		while (j < most && !beats(mk, kd, d->old->cost, edges, nedge, d->keep[first[j]],
			order[c].candidate, &d->work))
			j++;
		if (j == most) {
			if (d->kept < CHAMPIONS)
				first[d->kept] = d->kept;
			d->keep[d->kept++] = order[c].candidate;
		} else {
			uint32_t last = first[j];

			memmove(first + 1, first, j * sizeof *first);
			first[0] = last;
		}
	}
	qsort(d->keep, d->kept, sizeof *d->keep, compare_ids);
	ap_arena_release(a, mark);
}

struct node_sides {
	uint32_t *start; /* [nnode + 1] */
	struct side *v;
};

/* Does a path not pass a link that is nothing but a redistribution? Then it tells no candidates apart. */
static bool is_idle(const struct ap_making *mk, size_t link)
{
	const struct weighing *w = mk->weighing;

	const struct scale *s = w ? &w->scale[w->of_link[link]] : NULL;

	return w && !mk->params->by_memory && s->there == 0 && s->back == 0 &&
		w->finite[mk->links.v[link].bond];
}

static void collect_sides(const struct ap_making *mk, struct node_sides *s)
{
	uint32_t n = mk->g->nnode;
	uint32_t *at;

	s->start = AP_NEW_N(mk->ctx->scratch, uint32_t, n + 1);
	for (size_t i = 0; i < mk->links.n; i++) {
		if (is_idle(mk, i))
			continue;
		s->start[mk->links.v[i].u + 1]++;
		s->start[mk->links.v[i].v + 1]++;
	}
	for (uint32_t i = 0; i < n; i++)
		s->start[i + 1] += s->start[i];
	s->v = AP_NEW_N(mk->ctx->scratch, struct side, s->start[n] + 1);
	at = ap_arena_memdup(mk->ctx->scratch, s->start, (n + 1) * sizeof *at);
	for (size_t i = 0; i < mk->links.n; i++) {
		const struct ap_tie *l = &mk->links.v[i];

		uint32_t scale = mk->weighing ? mk->weighing->of_link[i] : 0;

		if (is_idle(mk, i))
			continue;
		s->v[at[l->u]++] = (struct side){l->bond, 0, mk->class_of[l->v], scale};
		s->v[at[l->v]++] = (struct side){l->bond, 1, mk->class_of[l->u], scale};
	}
	for (uint32_t i = 0; i < n; i++)
		qsort(s->v + s->start[i], s->start[i + 1] - s->start[i], sizeof *s->v,
			compare_sides);
}

/* Splits the classes: nodes with equal surroundings form a class of the next round. */
static void assign(struct round *r, const struct node_sides *sides, uint32_t *class_of)
{
	struct ap_making *mk = r->mk;
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct class *old = &mk->classes.v[mk->class_of[i]];
		struct duty d = {.old = old, .side = sides->v + sides->start[i],
			.nside = sides->start[i + 1] - sides->start[i]};
		size_t bytes = d.nside * sizeof *d.side;
		uint32_t *key = ap_arena_alloc_raw(mk->ctx->scratch, 1, bytes + sizeof *key);
		bool fresh;

		key[0] = mk->class_of[i];
		if (bytes > 0)
			memcpy(key + 1, d.side, bytes);
		class_of[i] = ap_map_put(seen, key, bytes + sizeof *key, &fresh);
		if (!fresh)
			continue;
		d.keep = AP_NEW_N(mk->ctx->arena, uint32_t, old->k);
		AP_PUSH(mk->ctx->scratch, r->duties, d);
	}
}

#define WORTH_THREADS 30000 /* prices: some milliseconds; starting a thread takes a tenth of one */

/* Number of threads that pays for so many prices. */
static int making_jobs(const struct ap_making *mk, size_t work)
{
	return work < WORTH_THREADS ? 1 : mk->ctx->jobs;
}

/* Runs one round over all nodes; true if anything was dropped. */
static bool prune_round(struct ap_making *mk)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct round r = {.mk = mk};
	struct class_list next = {0};
	struct node_sides sides;
	size_t tests = 0;
	uint32_t *class_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	bool dropped = false;

	collect_sides(mk, &sides);
	assign(&r, &sides, class_of);
	for (size_t i = 0; i < r.duties.n; i++)
		tests += (size_t)r.duties.v[i].old->k * CHAMPIONS;
	ap_par_for(mk->ctx->arena, making_jobs(mk, tests), r.duties.n, prune, &r);
	for (size_t i = 0; i < r.duties.n; i++) {
		const struct duty *d = &r.duties.v[i];
		struct class c = {d->old->kind, d->old->cost, d->kept, d->keep, d->old->whole};

		dropped |= d->kept < d->old->k;
		mk->work += mk->weighing ? d->work : 0; /* that of prices covers it elsewhere */
		AP_PUSH(mk->ctx->arena, next, c);
	}
	ap_arena_release(mk->ctx->scratch, mark);
	mk->class_of = class_of;
	mk->classes = next;
	return dropped;
}

/* The number of devices that operators of a kind run on. */
static int64_t kind_devices(const struct ap_making *mk, const struct ap_kind *kd)
{
	return ap_machine_at(mk->m, kd->task->block)->ndev;
}

/* Sets nway and next. */
static void table_next(const struct ap_making *mk, int64_t ndev, struct ap_table_class *c)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	int64_t primes[63];
	size_t n = ap_primes(ndev, primes), different = 0;
	int32_t *row;

	for (size_t i = 0; i < n; i++)
		if (i == 0 || primes[i] != primes[i - 1])
			primes[different++] = primes[i];
	for (uint32_t i = 0; i < c->k; i++)
		ap_map_put(seen, c->count + (size_t)i * c->nfactor, c->nfactor * sizeof *c->count,
			NULL);
	c->nway = (uint32_t)different * c->nfactor;
	c->next = row = AP_NEW_N(mk->ctx->arena, int32_t, (size_t)c->k * c->nway + 1);
	for (uint32_t i = 0; i < c->k; i++)
		for (size_t p = 0; p < different; p++, row += c->nfactor) {
			const int32_t *count = c->count + (size_t)i * c->nfactor;
			int64_t prime = primes[p];
			int32_t to[AP_MAX_FACTOR];

			memcpy(to, count, c->nfactor * sizeof *to);
			for (uint8_t f = 0; f < c->nfactor; f++) {
				ap_id id;

				to[f] = count[f] * (int32_t)prime;
				/* the candidate with these counts, or -1 */
				id = ap_map_get(seen, to, c->nfactor * sizeof *to);
				row[f] = id == AP_NONE ? -1 : (int32_t)id;
				to[f] = count[f];
			}
		}
	ap_arena_release(mk->ctx->scratch, mark);
}

static void fill_class(const struct ap_making *mk, const struct class *c,
	struct ap_table_class *out)
{
	const struct ap_kind *kd = &mk->kinds.v[c->kind];
	uint8_t nf = kd->space.nfactor;
	int32_t *count = AP_NEW_N(mk->ctx->arena, int32_t, (size_t)c->k * nf);
	double *cost = AP_NEW_N(mk->ctx->arena, double, c->k);
	int64_t *memory = AP_NEW_N(mk->ctx->arena, int64_t, c->k);
	int64_t *temporary = AP_NEW_N(mk->ctx->arena, int64_t, c->k);
	double *hidden = AP_NEW_N(mk->ctx->arena, double, c->k);
	double *bucketed = AP_NEW_N(mk->ctx->arena, double, c->k);

	for (uint32_t i = 0; i < c->k; i++) {
		uint32_t j = c->candidate[i];

		memcpy(count + (size_t)i * nf, kd->space.count + (size_t)j * nf, nf * sizeof *count);
		cost[i] = c->cost[j];
		memory[i] = kd->memory[j];
		temporary[i] = kd->temporary[j];
		hidden[i] = kd->hidden[j];
		bucketed[i] = kd->bucketed[j];
	}
	*out = (struct ap_table_class){.k = c->k, .before = kd->k, .nfactor = nf, .count = count,
		.cost = cost, .hidden = hidden, .bucketed = bucketed, .memory = memory,
		.temporary = temporary};
}

static void fill_matrix(const struct ap_making *mk, const struct ap_tie *l, uint32_t scale,
	struct ap_pmatrix *out)
{
	const struct ap_bond *b = &mk->bonds.v[l->bond];
	const struct class *cu = &mk->classes.v[mk->class_of[l->u]];
	const struct class *cv = &mk->classes.v[mk->class_of[l->v]];
	size_t cells = (size_t)cu->k * cv->k;
	uint32_t *column = ap_arena_alloc_raw(mk->ctx->scratch, cv->k, sizeof *column);
	double *cost = ap_arena_alloc_raw(mk->ctx->arena, cells, sizeof *cost);
	int64_t *memory = b->kept ? ap_arena_alloc_raw(mk->ctx->arena, cells, sizeof *memory) : NULL;

	for (uint32_t c = 0; c < cv->k; c++)
		column[c] = b->v.of[cv->candidate[c]];
	for (uint32_t r = 0; r < cu->k; r++) {
		size_t row = b->u.of[cu->candidate[r]], at = (size_t)r * cv->k;

		weigh(mk, b, row, column, cv->k, scale, cost + at);
		for (uint32_t c = 0; c < cv->k && memory; c++)
			memory[at + c] = b->kept[row * b->v.nlayout + column[c]];
	}
	*out = (struct ap_pmatrix){.rows = cu->k, .cols = cv->k, .cost = cost, .memory = memory};
}

/* Numbers that are equal for classes with equal candidates left. [classes], in scratch. */
static const uint32_t *number_lists(const struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	uint32_t *list = AP_NEW_N(mk->ctx->scratch, uint32_t, mk->classes.n);

	for (size_t i = 0; i < mk->classes.n; i++) {
		const struct class *c = &mk->classes.v[i];
		uint32_t *key = ap_arena_alloc_raw(mk->ctx->scratch, (size_t)c->k + 1, sizeof *key);
		bool fresh;

		key[0] = c->kind;
		if (c->k > 0)
			memcpy(key + 1, c->candidate, c->k * sizeof *key);
		list[i] = ap_map_put(seen, key, ((size_t)c->k + 1) * sizeof *key, &fresh);
	}
	return list;
}

/* Returns early if told to stop. */
static void fill_edges(const struct ap_making *mk, struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	const uint32_t *list = number_lists(mk);
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	struct ap_pedge *edge = AP_NEW_N(mk->ctx->arena, struct ap_pedge, mk->links.n);
	AP_VEC(struct ap_pmatrix) matrices = {0};

	for (size_t i = 0; i < mk->links.n && !ap_ctx_stopped(mk->ctx); i++) {
		const struct ap_tie *l = &mk->links.v[i];
		uint32_t scale = mk->weighing ? mk->weighing->of_link[i] : 0;
		uint32_t key[] = {l->bond, list[mk->class_of[l->u]], list[mk->class_of[l->v]], scale};
		bool fresh;

		edge[i] = (struct ap_pedge){l->u, l->v, ap_map_put(seen, key, sizeof key, &fresh)};
		if (fresh) {
			struct ap_pmatrix m;

			fill_matrix(mk, l, scale, &m);
			AP_PUSH(mk->ctx->arena, matrices, m);
		}
	}
	p->nedge = (uint32_t)mk->links.n;
	p->edge = edge;
	p->nmatrix = (uint32_t)matrices.n;
	p->matrix = matrices.v;
	ap_arena_release(mk->ctx->scratch, mark);
}

static const struct ap_problem *make_problem(const struct ap_making *mk,
	const struct ap_table_class *cls)
{
	struct ap_problem *p = AP_NEW(mk->ctx->arena, struct ap_problem);
	struct ap_pnode *node = AP_NEW_N(mk->ctx->arena, struct ap_pnode, mk->g->nnode);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct ap_table_class *c = &cls[mk->class_of[i]];

		node[i] = (struct ap_pnode){.name = mk->g->node[i].name, .k = c->k, .cost = c->cost,
			.memory = c->memory, .nway = c->nway, .next = c->next,
			.fixed = mk->params->fixed && mk->params->fixed[i]};
	}
	p->n = mk->g->nnode;
	p->node = node;
	p->memory_limit = AP_NO_LIMIT;
	p->quantum = mk->step->quantum_s;
	fill_edges(mk, p);
	return p;
}

/* Lower bounds of time and memory: the candidates alone, without redistribution. */
static double least_s(const struct ap_making *mk)
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

/* A candidate that keeps less memory than all with smaller temporaries. */
struct step {
	uint32_t kind;
	int64_t temporary, memory;
};

struct steps {
	struct step *v; /* ascending by temporary */
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

/* Drops steps from v[from..] that keep no less than an earlier one. */
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

/* The least, over all limits on the temporary, of that limit plus what operators keep at least with
 * candidates within it. nodes: number on the stage, by kind. */
static int64_t least_of_stage(const struct ap_making *mk, const struct steps *s, const uint32_t *nodes)
{
	int64_t *kept = ap_arena_alloc_raw(mk->ctx->scratch, mk->kinds.n, sizeof *kept);
	int64_t sum = 0, least = -1;
	uint32_t missing = 0; /* kinds without a candidate so far */

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

static int64_t least_bytes(const struct ap_making *mk, int32_t *stage)
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

static void make_table(struct ap_making *mk, struct ap_table *t)
{
	struct ap_table_class *cls = AP_NEW_N(mk->ctx->arena, struct ap_table_class, mk->classes.n);

	for (size_t i = 0; i < mk->classes.n; i++) {
		fill_class(mk, &mk->classes.v[i], &cls[i]);
		table_next(mk, kind_devices(mk, &mk->kinds.v[mk->classes.v[i].kind]), &cls[i]);
	}
	*t = (struct ap_table){.graph = mk->g, .machine = mk->m, .step = mk->step,
		.task = mk->task, .class_of = mk->class_of, .nclass = (uint32_t)mk->classes.n,
		.cls = cls, .problem = make_problem(mk, cls), .work = mk->work, .making = mk};
	if (mk->weighing) { /* these look at all candidates */
		t->least_s = mk->weighing->of->least_s;
		t->least_bytes = mk->weighing->of->least_bytes;
		t->least_stage = mk->weighing->of->least_stage;
		return;
	}
	t->least_s = least_s(mk);
	t->least_bytes = least_bytes(mk, &t->least_stage);
}

/* Returns NULL if told to stop. */
static const struct ap_table *finish(struct ap_making *mk)
{
	struct ap_table *t = AP_NEW(mk->ctx->arena, struct ap_table);
	struct ap_map *seen;

	ap_ctx_phase(mk->ctx, "pruning candidates");
	/* incomplete if told to stop */
	seen = ap_map_create(mk->ctx->arena);
	/* Classes: nodes of one kind, and of one candidate if that was fixed later. */
	mk->class_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	for (ap_id i = 0; i < mk->g->nnode; i++) {
		uint32_t weight = mk->weighing ? mk->weighing->of_node[i] : 0;
		const bool *left = mk->left ? mk->left[i] : NULL;
		bool whole = mk->whole && mk->whole[i];
		uint32_t key[] = {mk->kind_of[i], mk->only ? mk->only[i] : AP_NONE, weight,
			left ? i : AP_NONE, whole};
		bool fresh;

		mk->class_of[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh) {
			uint32_t kind = mk->kind_of[i];
			uint32_t only = mk->only ? mk->only[i] : AP_NONE;
			struct class c = {.kind = kind, .whole = whole,
				.k = only == AP_NONE ? mk->kinds.v[kind].k : 1,
				.cost = mk->weighing ? mk->weighing->cost[weight * mk->kinds.n + kind]
					: mk->kinds.v[kind].cost};
			uint32_t *candidate = AP_NEW_N(mk->ctx->arena, uint32_t, c.k), n = 0;

			for (uint32_t j = 0; j < c.k; j++)
				if (only != AP_NONE ||
					((!mk->pool || mk->pool->of_kind[kind][j]) && (!left || left[j])))
					candidate[n++] = only == AP_NONE ? j : only;
			c.k = n;
			c.candidate = candidate;
			AP_PUSH(mk->ctx->arena, mk->classes, c);
		}
	}
	for (int r = 0; mk->params->prune && r < ROUNDS && !ap_ctx_stopped(mk->ctx); r++)
		if (!prune_round(mk))
			break;
	if (ap_ctx_stopped(mk->ctx))
		return NULL;
	make_table(mk, t);
	return ap_ctx_stopped(mk->ctx) ? NULL : t;
}

/* Makes a table from the same prices with other candidates left. */
static const struct ap_table *again(struct ap_ctx *ctx, const struct ap_table *t, bool by_memory,
	const uint32_t *only, const bool *whole)
{
	struct ap_making *mk = ap_arena_memdup(ctx->arena, t->making, sizeof *mk);
	struct ap_table_params *params = ap_arena_memdup(ctx->arena, mk->params, sizeof *params);
	const struct ap_table *made;

	params->by_memory = by_memory;
	mk->ctx = ctx;
	mk->params = params;
	mk->only = only;
	mk->whole = whole;
	mk->classes = (struct class_list){0};
	open_workers(mk);
	made = finish(mk);
	close_workers(mk);
	return made;
}

static uint16_t part_there(const struct ap_move_cost *c)
{
	double all = c->forward_s + c->backward_s;

	return all > 0 ? (uint16_t)(PARTS * (c->forward_s / all)) : 0;
}

static void price_layout(const struct flows *f, const struct share *s, uint32_t from, int worker)
{
	const struct tensor *t = &f->tensors.v[s->tensor];
	struct ap_pricer *pricer = worker_pricer(f->mk, worker);
	struct price *prices = f->price + (size_t)worker * f->most;
	uint32_t number = s->base + (from - s->first) + 1;

	for (uint32_t i = t->layouts.v[from].first; i != AP_NONE; i = f->rows.v[i].next) {
		const struct row *r = &f->rows.v[i];
		size_t at = (size_t)r->at * r->bond->v.nlayout;
		int64_t copies = t->flow.again ? 1 : r->bond->flow.in_flight;

		for (uint32_t c = 0; c < r->bond->v.nlayout; c++, at++) {
			struct price *p = &prices[r->column[c]];

			if (p->number != number) {
				uint32_t to = r->column[c];
				struct ap_move_cost mc;

				ap_move_cost_between(pricer, &t->flow, &t->layouts.v[from].end,
					&t->layouts.v[to].end, &mc);
				*p = (struct price){0, part_there(&mc), mc.objective_s, mc.charged_bytes};
				p->number = number;
			}
			r->bond->cost[at] = p->cost;
			r->bond->there[at] = p->there;
			if (r->bond->kept)
				r->bond->kept[at] = p->kept * copies;
		}
	}
}

static void price_share(void *user, size_t i, int worker)
{
	const struct flows *f = user;
	const struct share *s = &f->shares.v[i];

	for (uint32_t l = s->first; l < s->end && !ap_ctx_stopped(f->mk->ctx); l++)
		price_layout(f, s, l, worker);
}

/* The placement of candidate c of a kind. */
static void kind_placement(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	struct ap_placement *out)
{
	ap_placement_make(kd->task->bound, &kd->space.count[(size_t)c * kd->space.nfactor],
		kind_devices(mk, kd), out);
}

/* The strategy vectors of candidate c of a kind; unused entries are 0. Returns their number. */
static uint32_t kind_strategy(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	int32_t cut[AP_MAX_STRATEGY][AP_MAX_RANK])
{
	uint8_t rank[AP_MAX_STRATEGY];
	struct ap_placement p;
	uint32_t n;

	memset(cut, 0, AP_MAX_STRATEGY * sizeof *cut);
	kind_placement(mk, kd, c, &p);
	n = ap_space_to_strategy(&p, rank, cut, AP_MAX_STRATEGY);
	/* an operator with more operands cuts all alike, so the first ones suffice */
	return n < AP_MAX_STRATEGY ? n : AP_MAX_STRATEGY;
}

/* Interns the layouts of a result, or of an operand with what its gradient is partial over (operand < 0:
 * a result), over all candidates. */
static void fill_slot(const struct ap_making *mk, const struct ap_kind *kd,
	const struct ap_operand *t, int operand, struct ap_slot *s)
{
	struct ap_arena *scratch = mk->ctx->scratch;
	struct ap_map *seen = ap_map_create(scratch);
	uint32_t *of = AP_NEW_N(mk->ctx->arena, uint32_t, kd->k);
	struct ap_layout *layouts = AP_NEW_N(scratch, struct ap_layout, kd->k);
	struct ap_axes *partial = NULL;
	bool any = false;

	if (operand >= 0 && kd->task->in[operand].grad && mk->step->executor == AP_EXECUTOR_GENERIC)
		partial = AP_NEW_N(scratch, struct ap_axes, kd->k);
	for (uint32_t c = 0; c < kd->k; c++) {
		struct {
			struct ap_layout l;
			struct ap_axes partial;
		} key = {0};
		struct ap_placement p;

		kind_placement(mk, kd, c, &p);
		ap_layout_make(&p, t, &key.l);
		if (partial)
			ap_gradient_partial(kd->task, operand, &p, mk->step, &key.partial);
		of[c] = ap_map_put(seen, &key, partial ? sizeof key : sizeof key.l, NULL);
		layouts[of[c]] = key.l;
		if (partial)
			partial[of[c]] = key.partial;
		any |= key.partial.n > 0;
	}
	s->nlayout = (uint32_t)ap_map_size(seen);
	s->layout = ap_arena_memdup(mk->ctx->arena, layouts, s->nlayout * sizeof *layouts);
	s->partial = any ? ap_arena_memdup(mk->ctx->arena, partial, s->nlayout * sizeof *partial) : NULL;
	s->of = of;
}

static void fill_strategy(const struct ap_making *mk, const struct ap_kind *kd, struct ap_slot *s)
{
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	uint32_t *of = AP_NEW_N(mk->ctx->arena, uint32_t, kd->k);

	for (uint32_t c = 0; c < kd->k; c++) {
		int32_t cut[AP_MAX_STRATEGY][AP_MAX_RANK];
		uint32_t n = kind_strategy(mk, kd, c, cut);

		of[c] = ap_map_put(seen, cut, n * sizeof *cut, NULL);
	}
	s->nlayout = (uint32_t)ap_map_size(seen);
	s->of = of;
}

static void fill_slots(struct ap_making *mk, struct ap_kind *kd)
{
	const struct ap_bound *b = kd->task->bound;
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	uint32_t *of;

	kd->in = AP_NEW_N(mk->ctx->arena, struct ap_slot, b->nin);
	kd->out = AP_NEW_N(mk->ctx->arena, struct ap_slot, b->nout);
	for (uint16_t i = 0; i < b->nin; i++)
		fill_slot(mk, kd, &b->in[i], i, &kd->in[i]);
	for (uint16_t o = 0; o < b->nout; o++)
		fill_slot(mk, kd, &b->out[o], -1, &kd->out[o]);
	fill_strategy(mk, kd, &kd->strategy);
	of = AP_NEW_N(mk->ctx->arena, uint32_t, kd->k);
	for (uint32_t c = 0; c < kd->k; c++)
		of[c] = c;
	kd->own = (struct ap_slot){.nlayout = kd->k, .of = of};
	ap_arena_release(mk->ctx->scratch, mark);
}

/* Does candidate c hold a parameter that the operator reads twice in a single layout? */
static bool holds_alike(const struct ap_kind *kd, uint32_t c)
{
	for (uint16_t i = 0; i < kd->task->bound->nin; i++) {
		const struct ap_task_operand *o = &kd->task->in[i];
		const struct ap_slot *own = &kd->in[i], *twin = &kd->in[o->twin];

		if (o->kind == AP_TENSOR_PARAM &&
			!ap_layout_equal(&own->layout[own->of[c]], &twin->layout[twin->of[c]]))
			return false;
	}
	return true;
}

static void price_kind(void *user, size_t i, int worker)
{
	struct ap_making *mk = user;
	struct ap_kind *kd = &mk->kinds.v[i];

	for (uint32_t c = 0; c < kd->k && !ap_ctx_stopped(mk->ctx); c++) {
		struct ap_placement p;
		struct ap_op_cost oc;

		kind_placement(mk, kd, c, &p);
		ap_op_cost_make(worker_pricer(mk, worker), kd->task, &p, &oc);
		kd->cost[c] = holds_alike(kd, c) ? ap_op_cost_total_s(&oc, mk->step) : INFINITY;
		kd->memory[c] = ap_op_cost_memory_bytes(&oc, kd->task);
		kd->temporary[c] = oc.temporary_bytes;
		kd->hidden[c] = ap_op_cost_hidden_s(&oc, mk->step);
		kd->bucketed[c] = ap_op_cost_bucketed_s(&oc, mk->step);
	}
}

static void add_kind(struct ap_making *mk, ap_id node)
{
	const int32_t *fixed = mk->params->fixed ? mk->params->fixed[node] : NULL;
	struct ap_kind kd = {.task = &mk->task[node]};
	const struct ap_bound *b = kd.task->bound;

	if (fixed) {
		kd.space = (struct ap_space){.n = 1, .nfactor = b->nfactor,
			.count = ap_arena_memdup(mk->ctx->arena, fixed, b->nfactor * sizeof *fixed)};
	} else {
		ap_space_make(mk->ctx, b, kind_devices(mk, &kd), mk->step, &kd.space);
	}
	kd.k = kd.space.n;
	kd.cost = AP_NEW_N(mk->ctx->arena, double, kd.k);
	kd.memory = AP_NEW_N(mk->ctx->arena, int64_t, kd.k);
	kd.temporary = AP_NEW_N(mk->ctx->arena, int64_t, kd.k);
	kd.hidden = AP_NEW_N(mk->ctx->arena, double, kd.k);
	kd.bucketed = AP_NEW_N(mk->ctx->arena, double, kd.k);
	fill_slots(mk, &kd);
	AP_PUSH(mk->ctx->arena, mk->kinds, kd);
}

/* Incomplete if told to stop. */
static void table_kinds(struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->arena);
	size_t candidates = 0;

	mk->kind_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	for (ap_id i = 0; i < mk->g->nnode && !ap_ctx_stopped(mk->ctx); i++) {
		struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
		bool fresh;
		const int32_t *fixed = mk->params->fixed ? mk->params->fixed[i] : NULL;
		size_t len, more = fixed ? mk->task[i].bound->nfactor * sizeof *fixed : 0;
		const void *sig = ap_task_signature(mk->ctx, &mk->task[i], &len);
		char *key = ap_arena_alloc_raw(mk->ctx->scratch, 1, len + more + 1);

		/* The task's signature and, for a fixed node, its counts. */
		memcpy(key, sig, len);
		if (fixed)
			memcpy(key + len, fixed, more);
		mk->kind_of[i] = ap_map_put(seen, key, len + more, &fresh);
		ap_arena_release(mk->ctx->scratch, mark);
		if (fresh)
			add_kind(mk, i);
	}
	for (size_t i = 0; i < mk->kinds.n; i++)
		candidates += mk->kinds.v[i].k;
	mk->work += AP_CANDIDATE_WORK * (uint64_t)candidates;
	ap_par_for(mk->ctx->arena, making_jobs(mk, candidates), mk->kinds.n, price_kind, mk);
}

struct bond_key { /* compared by its bytes */
	uint32_t type, kind_u, slot_u, kind_v, slot_v;
	uint32_t pad;
	struct ap_flow flow;
};

static ap_id intern_bond(struct ap_making *mk, struct ap_map *seen, const struct bond_key *key)
{
	const struct ap_kind *ku = &mk->kinds.v[key->kind_u], *kv = &mk->kinds.v[key->kind_v];
	struct ap_bond b = {.type = (enum ap_bond_type)key->type, .flow = key->flow,
		.kind_u = key->kind_u, .kind_v = key->kind_v};
	bool fresh;
	ap_id id = ap_map_put(seen, key, sizeof *key, &fresh);

	if (!fresh)
		return id;
	switch (b.type) {
	case AP_BOND_FLOW:
	case AP_BOND_FOLLOW:
		b.u = ku->out[key->slot_u];
		b.v = kv->in[key->slot_v];
		break;
	case AP_BOND_LAYOUT:
		b.u = ku->in[key->slot_u];
		b.v = kv->in[key->slot_v];
		break;
	case AP_BOND_STRATEGY:
		b.u = ku->strategy;
		b.v = kv->strategy;
		break;
	case AP_BOND_SAME:
		b.u = ku->own;
		b.v = kv->own;
		break;
	}
	AP_PUSH(mk->ctx->arena, mk->bonds, b);
	return id;
}

struct linking {
	struct ap_making *mk;
	struct ap_map *seen; /* bonds by key */
};

static void add_link(void *user, const struct ap_joint *link)
{
	struct linking *k = user;
	struct ap_making *mk = k->mk;
	struct ap_tie tie = {.u = link->u, .v = link->v, .operand = link->slot_v};
	struct bond_key key;

	if (link->type == AP_BOND_FOLLOW && mk->params->fixed && mk->params->fixed[link->u])
		return; /* a given cut follows no other */
	memset(&key, 0, sizeof key);
	key.type = (uint32_t)link->type;
	key.kind_u = mk->kind_of[link->u];
	key.slot_u = link->slot_u;
	key.kind_v = mk->kind_of[link->v];
	key.slot_v = link->slot_v;
	key.flow = link->flow;
	tie.bond = intern_bond(mk, k->seen, &key);
	AP_PUSH(mk->ctx->arena, mk->links, tie);
}

static void price_rule(void *user, size_t i, int worker)
{
	const struct ap_making *mk = user;
	struct ap_bond *b = &mk->bonds.v[i];

	(void)worker;
	if (b->type == AP_BOND_LAYOUT || b->type == AP_BOND_FOLLOW) {
		for (uint32_t r = 0; r < b->u.nlayout; r++)
			for (uint32_t c = 0; c < b->v.nlayout; c++)
				b->cost[(size_t)r * b->v.nlayout + c] =
					ap_layout_equal(&b->u.layout[r], &b->v.layout[c]) ? 0 : INFINITY;
	} else if (b->type == AP_BOND_SAME) {
		const struct ap_space *su = &mk->kinds.v[b->kind_u].space;
		const struct ap_space *sv = &mk->kinds.v[b->kind_v].space;

		for (uint32_t r = 0; r < su->n; r++)
			for (uint32_t c = 0; c < sv->n; c++)
				b->cost[(size_t)r * sv->n + c] = su->nfactor == sv->nfactor &&
					memcmp(su->count + (size_t)r * su->nfactor, sv->count +
						(size_t)c * sv->nfactor, su->nfactor * sizeof *su->count) == 0
					? 0 : INFINITY;
	} else if (b->type == AP_BOND_STRATEGY && !ap_ctx_stopped(mk->ctx)) {
		const struct ap_kind *ku = &mk->kinds.v[b->kind_u], *kv = &mk->kinds.v[b->kind_v];
		int32_t cu[AP_MAX_STRATEGY][AP_MAX_RANK], cv[AP_MAX_STRATEGY][AP_MAX_RANK];

		/* Each kind numbers its strategies on its own, so compare the vectors. */
		for (uint32_t r = 0; r < ku->k; r++) {
			uint32_t n = kind_strategy(mk, ku, r, cu);

			for (uint32_t c = 0; c < kv->k; c++) {
				bool equal = kind_strategy(mk, kv, c, cv) == n &&
					memcmp(cu, cv, n * sizeof *cu) == 0;

				b->cost[(size_t)b->u.of[r] * b->v.nlayout + b->v.of[c]] =
					equal ? 0 : INFINITY;
			}
		}
	}
}

static size_t pairs_of(const struct ap_bond *b)
{
	return (size_t)b->u.nlayout * b->v.nlayout;
}

/* Does the bond hold memory at all? */
static bool holds_any(const struct ap_flow *f)
{
	return f->kept && (f->again || !f->shown);
}

/* Are the pairs of layouts within the limits on work and memory? */
static enum ap_status check_size(struct ap_making *mk)
{
	const struct ap_table_params *params = mk->params;
	size_t budget = params->budget_bytes ? params->budget_bytes : (size_t)2 << 30;
	size_t pairs = 0, bytes = 0;

	for (size_t i = 0; i < mk->bonds.n; i++) {
		const struct ap_bond *b = &mk->bonds.v[i];

		pairs += pairs_of(b);
		bytes += pairs_of(b) * (sizeof(double) + (holds_any(&b->flow) ? sizeof(int64_t) : 0) +
			(b->type == AP_BOND_FLOW ? sizeof(uint16_t) : 0));
	}
	if (bytes <= budget && (params->work == 0 || pairs <= params->work / AP_PRICE_WORK)) {
		mk->work += pairs * AP_PRICE_WORK;
		return AP_OK;
	}
	mk->lacks_memory = bytes > budget;
	ap_diag_add(mk->ctx->diag, AP_WARNING, AP_LIMIT, NULL, "table-size",
		"a search of the whole table would have to price %zu pairs of layouts, %zu MiB: more "
		"than %s allows",
		pairs, bytes >> 20, bytes > budget ? "--planner-memory" : "--work-limit");
	return AP_LIMIT;
}

static void price_rules(struct ap_making *mk)
{
	size_t pairs = 0;

	for (size_t i = 0; i < mk->bonds.n; i++)
		if (mk->bonds.v[i].type != AP_BOND_FLOW)
			pairs += pairs_of(&mk->bonds.v[i]);
	ap_par_for(mk->ctx->arena, making_jobs(mk, pairs), mk->bonds.n, price_rule, mk);
}

/* Incomplete if told to stop. */
static enum ap_status table_bonds(struct ap_making *mk)
{
	struct linking k = {mk, ap_map_create(mk->ctx->arena)};
	struct ap_mark mark;
	struct ap_map *seen;
	struct flows f;
	size_t prices = 0;
	int jobs;

	ap_ctx_phase(mk->ctx, "pricing redistributions");
	ap_joints_each(mk->ctx, mk->g, mk->task, mk->step, add_link, &k);
	AP_TRY(check_size(mk));
	for (size_t i = 0; i < mk->bonds.n; i++) {
		struct ap_bond *b = &mk->bonds.v[i];

		b->cost = ap_arena_alloc_raw(mk->ctx->arena, pairs_of(b), sizeof *b->cost);
		if (b->type == AP_BOND_FLOW)
			b->there = ap_arena_alloc_raw(mk->ctx->arena, pairs_of(b), sizeof *b->there);
		if (holds_any(&b->flow))
			b->kept = AP_NEW_N(mk->ctx->arena, int64_t, pairs_of(b));
	}
	/* Cost and kept bytes of flow bonds. */
	mark = ap_arena_mark(mk->ctx->scratch);
	seen = ap_map_create(mk->ctx->scratch);
	f = (struct flows){.mk = mk};
	for (size_t i = 0; i < mk->bonds.n; i++) {
		struct ap_bond *b = &mk->bonds.v[i];
		struct ap_arena *scratch;
		struct tensor *t;
		uint32_t *column;

		if (b->type != AP_BOND_FLOW)
			continue;
		scratch = f.mk->ctx->scratch;
		t = tensor_of(&f, seen, &b->flow);
		column = AP_NEW_N(scratch, uint32_t, b->v.nlayout);
		for (uint32_t c = 0; c < b->v.nlayout; c++)
			column[c] = end_id(&f, t, &b->v, true, c);
		for (uint32_t r = 0; r < b->u.nlayout; r++) {
			uint32_t id = end_id(&f, t, &b->u, false, r);
			struct layout *l = &t->layouts.v[id];

			AP_PUSH(scratch, f.rows, ((struct row){b, column, r, l->first}));
			l->first = (uint32_t)f.rows.n - 1;
			l->asked += b->v.nlayout;
		}
		prices += (size_t)b->u.nlayout * b->v.nlayout;
	}
	share_out(&f);
	jobs = making_jobs(mk, prices);
	f.price = AP_NEW_N(mk->ctx->scratch, struct price, (size_t)jobs * f.most);
	ap_par_for(mk->ctx->arena, jobs, f.shares.n, price_share, &f);
	ap_arena_release(mk->ctx->scratch, mark);
	price_rules(mk);
	return ap_ctx_stopped(mk->ctx) ? AP_STOPPED : AP_OK;
}

enum ap_status ap_table_make(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const struct ap_table_params *params,
	const struct ap_table **out)
{
	struct ap_making *mk = AP_NEW(ctx->arena, struct ap_making);
	enum ap_status st;

	*mk = (struct ap_making){.ctx = ctx, .params = ap_arena_memdup(ctx->arena, params,
		sizeof *params), .g = g, .m = m, .step = step};
	open_workers(mk);
	ap_ctx_phase(ctx, "pricing operators");
	ap_tasks_make(ctx, g, step, &mk->task);
	table_kinds(mk);
	st = ap_ctx_stopped(ctx) ? AP_STOPPED : table_bonds(mk);
	*out = st == AP_OK ? finish(mk) : NULL;
	close_workers(mk);
	if (st == AP_LIMIT) {
		struct ap_table *t = AP_NEW(ctx->arena, struct ap_table);

		t->least_s = least_s(mk);
		t->least_bytes = least_bytes(mk, &t->least_stage);
		t->work = mk->work;
		t->lacks_memory = mk->lacks_memory;
		*out = t;
	}
	return st == AP_OK && !*out ? AP_STOPPED : st;
}

const struct ap_table *ap_table_by_memory(struct ap_ctx *ctx, const struct ap_table *t)
{
	return t->making->params->by_memory ? t : again(ctx, t, true, t->making->only, t->making->whole);
}

const struct ap_table *ap_table_whole(struct ap_ctx *ctx, const struct ap_table *t, const bool *whole)
{
	return again(ctx, t, t->making->params->by_memory, t->making->only, whole);
}

struct legs_list {
	const struct ap_making *mk;
	struct ap_legs **of_kind; /* [kinds][candidates] */
};

static void price_legs(void *user, size_t i, int worker)
{
	const struct legs_list *l = user;
	const struct ap_kind *kd = &l->mk->kinds.v[i];

	for (uint32_t c = 0; c < kd->k && !ap_ctx_stopped(l->mk->ctx); c++) {
		struct ap_placement p;
		struct ap_op_cost oc;

		kind_placement(l->mk, kd, c, &p);
		ap_op_cost_make(worker_pricer(l->mk, worker), kd->task, &p, &oc);
		ap_legs_make(worker_pricer(l->mk, worker), kd->task, &p, &oc, &l->of_kind[i][c]);
	}
}

void ap_table_legs_make(struct ap_ctx *ctx, const struct ap_table *t, struct ap_table_legs *out)
{
	struct ap_making mk = *t->making;
	struct legs_list l = {&mk, AP_NEW_N(ctx->arena, struct ap_legs *, mk.kinds.n)};
	uint64_t candidates = 0;
	bool *finite;

	for (size_t i = 0; i < mk.kinds.n; i++) {
		l.of_kind[i] = AP_NEW_N(ctx->arena, struct ap_legs, mk.kinds.v[i].k);
		candidates += mk.kinds.v[i].k;
	}
	mk.ctx = ctx;
	open_workers(&mk);
	ap_par_for(ctx->arena, making_jobs(&mk, candidates), mk.kinds.n, price_legs, &l);
	close_workers(&mk);
	finite = AP_NEW_N(ctx->arena, bool, mk.bonds.n);
	for (size_t i = 0; i < mk.bonds.n; i++) {
		const struct ap_bond *b = &mk.bonds.v[i];
		size_t n = b->type == AP_BOND_FLOW ? pairs_of(b) : 0, at = 0;

		while (at < n && b->cost[at] < INFINITY)
			at++;
		finite[i] = b->type == AP_BOND_FLOW && at == n;
	}
	*out = (struct ap_table_legs){(const struct ap_legs *const *)l.of_kind, finite,
		AP_CANDIDATE_WORK * candidates};
}

/* What a path by these weights takes of a candidate's legs. */
static double weighted_s(const struct ap_legs *weights, const struct ap_legs *legs)
{
	double sum = 0;

	for (int k = 0; k < AP_LEG_COUNT; k++)
		sum += weights->s[k] * legs->s[k];
	return sum;
}

uint32_t ap_table_candidates(const struct ap_table *t, ap_id node)
{
	const struct ap_making *mk = t->making;

	return mk->only && mk->only[node] != AP_NONE ? 1 : mk->kinds.v[mk->kind_of[node]].k;
}

double ap_table_spread_s(const struct ap_table *t, const struct ap_table_legs *legs,
	const struct ap_path_weights *weights, ap_id node, const bool *left)
{
	uint32_t kind = t->making->kind_of[node];
	double least = INFINITY, most = 0;

	for (uint32_t c = 0; c < t->making->kinds.v[kind].k; c++) {
		double s;

		if (left && !left[c])
			continue;
		s = weighted_s(&weights->node[node], &legs->of_kind[kind][c]);
		least = fmin(least, s);
		most = fmax(most, s);
	}
	return fmax(0, most - least);
}

const struct ap_table *ap_table_weighted(struct ap_ctx *ctx, const struct ap_table *t,
	const struct ap_table_legs *legs, const struct ap_path_weights *weights,
	const struct ap_table_pool *pool, const bool *const *left)
{
	struct ap_making *mk = ap_arena_memdup(ctx->arena, t->making, sizeof *mk);
	struct ap_table_params *params = ap_arena_memdup(ctx->arena, mk->params, sizeof *params);
	uint32_t *of_node = AP_NEW_N(ctx->arena, uint32_t, mk->g->nnode);
	uint32_t *of_link = AP_NEW_N(ctx->arena, uint32_t, mk->links.n);
	struct ap_map *nodes = ap_map_create(ctx->arena), *links = ap_map_create(ctx->arena);
	AP_VEC(struct scale) scale = {0};
	struct weighing *w = AP_NEW(ctx->arena, struct weighing);
	double q = mk->step->quantum_s, **cost;
	const struct ap_table *made;

	for (ap_id i = 0; i < mk->g->nnode; i++)
		of_node[i] = ap_map_put(nodes, &weights->node[i], sizeof *weights->node, NULL);
	cost = AP_NEW_N(ctx->arena, double *, ap_map_size(nodes) * mk->kinds.n);
	mk->work = 0;
	for (ap_id i = 0; i < mk->g->nnode; i++) {
		uint32_t kind = mk->kind_of[i];
		const struct ap_kind *kd = &mk->kinds.v[kind];
		double **own = &cost[of_node[i] * mk->kinds.n + kind];

		if (*own)
			continue;
		*own = AP_NEW_N(ctx->arena, double, kd->k);
		for (uint32_t c = 0; c < kd->k; c++) {
			double sum;

			if (pool && !pool->of_kind[kind][c])
				continue;
			mk->work += AP_LEG_COUNT;
			sum = weighted_s(&weights->node[i], &legs->of_kind[kind][c]);
			(*own)[c] = isinf(kd->cost[c]) ? INFINITY : fmax(0, floor(sum / q)) * q;
		}
	}
	for (size_t i = 0; i < mk->links.n; i++) {
		const struct ap_tie *l = &mk->links.v[i];
		bool flows = mk->bonds.v[l->bond].type == AP_BOND_FLOW, fresh;
		uint32_t at = weights->first[l->v] + l->operand;
		struct scale s = {flows ? weights->there[at] : 0, flows ? weights->back[at] : 0};

		of_link[i] = ap_map_put(links, &s, sizeof s, &fresh);
		if (fresh)
			AP_PUSH(ctx->arena, scale, s);
	}
	*w = (struct weighing){.of = t, .of_node = of_node, .cost = (const double *const *)cost,
		.of_link = of_link, .scale = scale.v, .finite = legs->finite};
	params->prune = true; /* costs nothing here, and a bound is all that is asked for */
	mk->ctx = ctx;
	mk->params = params;
	mk->weighing = w;
	mk->pool = pool;
	mk->left = left;
	mk->classes = (struct class_list){0};
	open_workers(mk);
	made = ap_ctx_stopped(ctx) ? NULL : finish(mk);
	close_workers(mk);
	return made;
}

/* Returns AP_NONE if the kind has no such candidate. */
static uint32_t find_candidate(const struct ap_kind *kd, const int32_t *count)
{
	size_t bytes = kd->space.nfactor * sizeof *count;

	for (uint32_t c = 0; c < kd->k; c++)
		if (memcmp(kd->space.count + (size_t)c * kd->space.nfactor, count, bytes) == 0)
			return c;
	return AP_NONE;
}

uint32_t ap_table_candidate(const struct ap_table *t, ap_id node, const int32_t *counts)
{
	return find_candidate(&t->making->kinds.v[t->making->kind_of[node]], counts);
}

void ap_table_pool_init(struct ap_ctx *ctx, const struct ap_table *t, struct ap_table_pool *out)
{
	const struct ap_making *mk = t->making;
	bool **of_kind = AP_NEW_N(ctx->arena, bool *, mk->kinds.n);

	for (size_t i = 0; i < mk->kinds.n; i++)
		of_kind[i] = AP_NEW_N(ctx->arena, bool, mk->kinds.v[i].k);
	out->of_kind = of_kind;
}

void ap_table_pool_add(const struct ap_table_pool *pool, const struct ap_table *t,
	const int32_t *const *counts)
{
	const struct ap_making *mk = t->making;

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		uint32_t kind = mk->kind_of[i], c = find_candidate(&mk->kinds.v[kind], counts[i]);

		if (c != AP_NONE)
			pool->of_kind[kind][c] = true;
	}
}

const struct ap_table *ap_table_narrow(struct ap_ctx *ctx, const struct ap_table *t,
	const int32_t *const *fixed)
{
	const struct ap_making *mk = t->making;
	uint32_t *only = AP_NEW_N(ctx->arena, uint32_t, mk->g->nnode);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct ap_kind *kd = &mk->kinds.v[mk->kind_of[i]];

		only[i] = fixed[i] ? find_candidate(kd, fixed[i]) : AP_NONE;
		if (fixed[i] && only[i] == AP_NONE)
			return NULL;
	}
	return again(ctx, t, false, only, NULL);
}

const int32_t *ap_table_counts(const struct ap_table *t, ap_id node, uint32_t c)
{
	const struct ap_table_class *cls = &t->cls[t->class_of[node]];

	return cls->count + (size_t)c * cls->nfactor;
}

struct ap_problem ap_table_repriced(struct ap_arena *arena, const struct ap_table *t, double *const *cost)
{
	struct ap_problem p = *t->problem;
	struct ap_pnode *node = ap_arena_memdup(arena, p.node, p.n * sizeof *node);

	for (uint32_t i = 0; i < p.n; i++)
		node[i].cost = cost[t->class_of[i]];
	p.node = node;
	return p;
}
