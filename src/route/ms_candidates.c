/* SPDX-License-Identifier: Apache-2.0 */
#include "route/ms_candidates.h"

#include <string.h>

#include "base/arena.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"

#define MOST_VECTORS 32 /* compared of a strategy; further ones are ignored */

ap_id ap_ms_end_id(struct ap_ms_candidates *s, const struct ap_ms_end *e)
{
	return ap_map_put(s->end_ids, e, sizeof *e, NULL);
}

const struct ap_ms_end *ap_ms_end_at(const struct ap_ms_candidates *s, ap_id id)
{
	return (const struct ap_ms_end *)(const void *)ap_map_key(s->end_ids, id, NULL);
}

static ap_id end_of(struct ap_ms_candidates *s, const struct ap_ms_class *c, const struct ap_placement *p,
	uint32_t slot)
{
	const struct ap_bound *b = c->bound;
	const struct ap_operand *t = slot < b->nin ? &b->in[slot] : &b->out[slot - b->nin];
	struct ap_ms_end e;

	return ap_ms_end_make(p, t, c->batch[slot], s->step, &e) ? ap_ms_end_id(s, &e) : AP_NONE;
}

static const ap_id *make_ends(struct ap_ms_candidates *s, uint32_t class, const int32_t *count)
{
	const struct ap_ms_class *c = &s->classes.v[class];
	ap_id *out = AP_NEW_N(s->arena, ap_id, c->nend);
	struct ap_placement p;

	ap_placement_make(c->bound, count, s->ndev, &p);
	for (uint32_t i = 0; i < c->nend; i++)
		out[i] = end_of(s, c, &p, i);
	return out;
}

const ap_id *ap_ms_ends(struct ap_ms_candidates *s, uint32_t class, const int32_t *count)
{
	uint8_t nfactor = s->classes.v[class].bound->nfactor;
	uint32_t key[1 + AP_MAX_FACTOR] = {class};
	bool fresh;
	ap_id id;

	memcpy(key + 1, count, nfactor * sizeof *count);
	id = ap_map_put(s->row_ids, key, (1 + (size_t)nfactor) * sizeof *key, &fresh);
	if (fresh)
		AP_PUSH(s->arena, s->rows, make_ends(s, class, count));
	return s->rows.v[id];
}

const ap_id *ap_ms_cand_ends(struct ap_ms_candidates *s, uint32_t class, uint32_t slot)
{
	const struct ap_ms_class *c = ap_ms_class(s, class);
	ap_id *out;

	if (c->end[slot])
		return c->end[slot];
	out = AP_NEW_N(s->arena, ap_id, c->n);
	for (uint32_t i = 0; i < c->n; i++) {
		struct ap_placement p;

		ap_placement_make(c->bound, ap_ms_count(c, i), s->ndev, &p);
		out[i] = end_of(s, c, &p, slot);
	}
	return c->end[slot] = out;
}

static const struct ap_ms_cost *own_cost(struct ap_ms_candidates *s, const struct ap_ms_class *c, uint32_t i)
{
	struct ap_placement p;

	if (!c->priced[i]) {
		ap_placement_make(c->bound, ap_ms_count(c, i), s->ndev, &p);
		ap_ms_operator_cost(&p, s->step, c->cross_batch, &c->cost[i]);
		c->priced[i] = true;
	}
	return &c->cost[i];
}

const struct ap_ms_cost *ap_ms_cost_between(struct ap_ms_candidates *s, ap_id from, ap_id to,
	enum ap_dtype dtype)
{
	const uint32_t key[] = {from, to, (uint32_t)dtype};
	struct ap_ms_cost cost;
	bool fresh;
	ap_id id = ap_map_put(s->cost_ids, key, sizeof key, &fresh);

	if (fresh) {
		ap_ms_edge_cost(ap_ms_end_at(s, from), ap_ms_end_at(s, to), dtype, s->step->alltoall, &cost);
		AP_PUSH(s->arena, s->costs, cost);
	}
	return &s->costs.v[id];
}

/* The odd part of the devices' number: MindSpore cuts one dimension by all of it, or none. */
static int32_t odd_part(int64_t ndev)
{
	while (ndev % 2 == 0)
		ndev /= 2;
	return (int32_t)ndev;
}

struct order {
	const struct ap_space *space;
	int32_t odd;
	uint32_t n;
	uint32_t *pick; /* [n] indices of those that MindSpore enumerates */
};

static const int32_t *counts_at(const struct order *o, uint32_t i)
{
	return o->space->count + (size_t)i * o->space->nfactor;
}

static bool is_whole(const struct order *o, uint32_t i)
{
	for (int f = 0; f < o->space->nfactor; f++)
		if (counts_at(o, i)[f] > 1)
			return false;
	return true;
}

/* The factor cut by all of the odd part; -1 if none, or if several share it. */
static int odd_factor(const struct order *o, uint32_t i)
{
	int at = -1;

	for (int f = 0; f < o->space->nfactor; f++) {
		int32_t rest = odd_part(counts_at(o, i)[f]);

		if (rest == 1)
			continue;
		if (at >= 0 || rest != o->odd)
			return -1;
		at = f;
	}
	return at;
}

static bool is_enumerated(const struct order *o, uint32_t i)
{
	return o->odd == 1 || is_whole(o, i) || odd_factor(o, i) >= 0;
}

/* Ascending by counts without the odd part, then by its factor. If there is an odd part, the
 * candidate that cuts nothing comes last. */
static int compare(const struct order *o, uint32_t a, uint32_t b)
{
	const int32_t *x = counts_at(o, a), *y = counts_at(o, b);
	int fa = o->odd > 1 ? odd_factor(o, a) : -1, fb = o->odd > 1 ? odd_factor(o, b) : -1;

	if (o->odd > 1 && is_whole(o, a) != is_whole(o, b))
		return is_whole(o, a) ? 1 : -1;
	for (int f = 0; f < o->space->nfactor; f++) {
		int32_t left = f == fa ? x[f] / o->odd : x[f], right = f == fb ? y[f] / o->odd : y[f];

		if (left != right)
			return left < right ? -1 : 1;
	}
	return (fa > fb) - (fa < fb);
}

/* The space is in descending order, so reversing the picks mostly sorts them. */
static void sort(struct order *o)
{
	for (uint32_t i = 0; i < o->n / 2; i++) {
		uint32_t x = o->pick[i];

		o->pick[i] = o->pick[o->n - 1 - i];
		o->pick[o->n - 1 - i] = x;
	}
	for (uint32_t gap = o->n / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < o->n; i++) {
			uint32_t x = o->pick[i], j = i;

			for (; j >= gap && compare(o, x, o->pick[j - gap]) < 0; j -= gap)
				o->pick[j] = o->pick[j - gap];
			o->pick[j] = x;
		}
}

/* An operator of unknown type is cut by all devices in its first dimension, or not at all. */
static bool is_batch_parallel(const struct order *o, uint32_t i, int64_t ndev)
{
	return o->space->nfactor > 0 && counts_at(o, i)[0] == ndev;
}

static void enumerate(struct ap_ms_candidates *s, const struct ap_bound *b, struct order *o)
{
	bool unknown = strcmp(b->row->name, AP_OP_UNKNOWN) == 0;

	o->odd = odd_part(s->ndev);
	o->pick = AP_NEW_N(s->ctx->arena, uint32_t, o->space->n);
	for (uint32_t i = 0; i < o->space->n; i++)
		if (unknown ? is_batch_parallel(o, i, s->ndev) : is_enumerated(o, i))
			o->pick[o->n++] = i;
	for (uint32_t i = 0; i < o->space->n && o->n == 0; i++)
		if (is_whole(o, i))
			o->pick[o->n++] = i;
	sort(o);
}

const struct ap_ms_class *ap_ms_class(struct ap_ms_candidates *s, uint32_t class)
{
	struct ap_ms_class *c = &s->classes.v[class];
	struct ap_space space;
	struct order o = {.space = &space};

	if (c->n == 0) {
		int32_t *count;

		ap_space_make(s->ctx, c->bound, s->ndev, s->step, &space);
		enumerate(s, c->bound, &o);
		count = AP_NEW_N(s->arena, int32_t, (size_t)o.n * AP_MAX_FACTOR);
		for (uint32_t i = 0; i < o.n; i++)
			for (int f = 0; f < AP_MAX_FACTOR; f++)
				count[(size_t)i * AP_MAX_FACTOR + f] =
					f < c->bound->nfactor ? counts_at(&o, o.pick[i])[f] : 1;
		c->n = o.n;
		c->count = count;
		c->end = AP_NEW_N(s->arena, const ap_id *, c->nend);
		c->cost = AP_NEW_N(s->arena, struct ap_ms_cost, o.n);
		c->priced = AP_NEW_N(s->arena, bool, o.n);
	}
	return c;
}

/* Operators with equal keys are one class. In scratch. */
static const void *key_of(struct ap_ms_candidates *s, const struct ap_bound *b, const uint8_t *batch,
	bool cross_batch, size_t *len)
{
	size_t nend = (size_t)b->nin + b->nout;
	struct ap_bound *key;

	*len = sizeof *b + nend + 1;
	key = ap_arena_alloc(s->ctx->scratch, *len, 1);
	memcpy(key, b, sizeof *b);
	key->name = NULL; /* for messages only */
	memcpy(key + 1, batch, nend);
	((uint8_t *)(key + 1))[nend] = cross_batch;
	return key;
}

uint32_t ap_ms_class_of(struct ap_ms_candidates *s, const struct ap_bound *b, const uint8_t *batch,
	bool cross_batch)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct ap_ms_class c = {.bound = b, .cross_batch = cross_batch,
		.nend = (uint32_t)b->nin + b->nout};
	size_t len;
	const void *key = key_of(s, b, batch, cross_batch, &len);
	bool fresh;
	ap_id id = ap_map_put(s->class_ids, key, len, &fresh);

	ap_arena_release(s->ctx->scratch, mark);
	if (!fresh)
		return id;
	c.batch = ap_arena_memdup(s->arena, batch, c.nend);
	AP_PUSH(s->arena, s->classes, c);
	return id;
}

/* A strategy's vectors, concatenated, and the product of all values. */
struct squashed {
	uint32_t n;
	double parts;
	int32_t v[MOST_VECTORS * AP_MAX_RANK];
};

static void squash(const struct ap_ms_candidates *s, const struct ap_bound *b, const int32_t *count,
	struct squashed *out)
{
	uint8_t rank[MOST_VECTORS] = {0};
	int32_t cut[MOST_VECTORS][AP_MAX_RANK] = {{0}};
	struct ap_placement p;
	uint32_t n;

	ap_placement_make(b, count, s->ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, MOST_VECTORS);
	out->n = 0;
	out->parts = 1;
	for (uint32_t v = 0; v < n && v < MOST_VECTORS; v++)
		for (int d = 0; d < rank[v]; d++) {
			out->v[out->n++] = cut[v][d];
			out->parts *= cut[v][d];
		}
}

/* More parts first, then greater values. */
static bool goes_before(const struct ap_ms_candidates *s, const struct ap_ms_class *c, uint32_t a, uint32_t b)
{
	struct squashed x, y;

	squash(s, c->bound, ap_ms_count(c, a), &x);
	squash(s, c->bound, ap_ms_count(c, b), &y);
	if (x.parts != y.parts)
		return x.parts > y.parts;
	for (uint32_t i = 0; i < x.n; i++)
		if (x.v[i] != y.v[i])
			return x.v[i] > y.v[i];
	return false;
}

bool ap_ms_same_strategy(const struct ap_ms_candidates *s, const struct ap_bound *a, const int32_t *x,
	const struct ap_bound *b, const int32_t *y)
{
	struct squashed p, q;

	squash(s, a, x, &p);
	squash(s, b, y, &q);
	return p.n == q.n && memcmp(p.v, q.v, p.n * sizeof *p.v) == 0;
}

static bool is_by_element(const struct ap_bound *b)
{
	const struct ap_operand *y = b->out;

	for (unsigned i = 0; i < b->nin; i++)
		if (b->in[i].rank != y->rank || memcmp(b->in[i].size, y->size, sizeof y->size) != 0 ||
			memcmp(b->in[i].dim, y->dim, sizeof y->dim) != 0)
			return false;
	return b->nin > 0 && b->nout > 0;
}

static bool is_cut_as(const struct ap_ms_candidates *s, ap_id a, ap_id b)
{
	const struct ap_layout *x = &ap_ms_end_at(s, a)->layout, *y = &ap_ms_end_at(s, b)->layout;

	for (int d = 0; d < x->rank; d++)
		if (x->dim[d].cut != y->dim[d].cut)
			return false;
	return x->rank == y->rank;
}

/* Are these all operands, with one layout, or the result of an operator with one operand? */
static bool has_layout(const struct ap_bound *b, uint32_t n, const struct ap_ms_known *known)
{
	if (n != b->nin || known[0].slot > b->nin || !is_by_element(b))
		return false;
	for (uint32_t k = 1; k < n; k++)
		if (known[k].end != known[0].end)
			return false;
	return true;
}

bool ap_ms_takes_layout(struct ap_ms_candidates *s, uint32_t class, uint32_t i, uint32_t n,
	const struct ap_ms_known *known)
{
	return has_layout(s->classes.v[class].bound, n, known) &&
		is_cut_as(s, ap_ms_cand_ends(s, class, known[0].slot)[i], known[0].end);
}

uint32_t ap_ms_find_cuts(struct ap_ms_candidates *s, uint32_t class, uint32_t slot, ap_id end)
{
	const ap_id *ends = ap_ms_cand_ends(s, class, slot);

	for (uint32_t i = 0; i < s->classes.v[class].n; i++)
		if (is_cut_as(s, ends[i], end))
			return i;
	return 0;
}

uint32_t ap_ms_find(struct ap_ms_candidates *s, uint32_t class, uint32_t slot, ap_id end)
{
	const ap_id *ends = ap_ms_cand_ends(s, class, slot);
	uint32_t i = 0;

	while (i < s->classes.v[class].n && ends[i] != end)
		i++;
	return i;
}

static enum ap_dtype type_of(const struct ap_bound *b, uint32_t slot)
{
	return slot < b->nin ? b->in[slot].dtype : b->out[slot - b->nin].dtype;
}

/* A choice under way. */
struct choosing {
	struct ap_ms_candidates *s;
	const struct ap_ms_class *c;
	enum ap_ms_choice kind;
	uint32_t n;
	const struct ap_ms_known *known;
	const ap_id **own; /* [n] the candidates' ends next to known */
	bool layout; /* has_layout() */
};

static struct ap_ms_cost edges_cost(const struct choosing *h, uint32_t i)
{
	struct ap_ms_cost sum = {0};

	if (h->layout && is_cut_as(h->s, h->own[0][i], h->known[0].end))
		return sum;
	for (uint32_t k = 0; k < h->n; k++) {
		ap_id own = h->own[k][i], end = h->known[k].end;
		bool back = h->kind == AP_MS_BACKWARD;
		const struct ap_ms_cost *cost = ap_ms_cost_between(h->s, back ? own : end,
			back ? end : own, type_of(h->c->bound, h->known[k].slot));

		sum.computation += cost->computation;
		sum.communication += cost->communication;
	}
	return sum;
}

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_costs(const struct ap_ms_cost *a, const struct ap_ms_cost *b)
{
	int order = compare_numbers(a->communication, b->communication);

	return order ? order : compare_numbers(a->computation, b->computation);
}

/* Is i better than best, which has equal edge costs and comes before it? */
static bool breaks_tie(const struct choosing *h, uint32_t i, uint32_t best)
{
	const struct ap_ms_cost *a = own_cost(h->s, h->c, i), *b = own_cost(h->s, h->c, best);
	bool joint = h->kind == AP_MS_JOINT;
	int order = joint ? compare_numbers(a->computation, b->computation) : 0;

	if (order == 0)
		order = compare_numbers(a->communication, b->communication);
	return order < 0 || (order == 0 && !joint && goes_before(h->s, h->c, i, best));
}

static uint32_t choose_anew(struct ap_ms_candidates *s, uint32_t class, enum ap_ms_choice kind, uint32_t n,
	const struct ap_ms_known *known)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	struct choosing h = {s, ap_ms_class(s, class), kind, n, known};
	struct ap_ms_cost least;
	uint32_t best = 0;

	h.own = AP_NEW_N(s->ctx->scratch, const ap_id *, n);
	h.layout = has_layout(h.c->bound, n, known);
	for (uint32_t k = 0; k < n; k++)
		h.own[k] = ap_ms_cand_ends(s, class, known[k].slot);
	least = edges_cost(&h, 0);
	for (uint32_t i = 1; i < h.c->n; i++) {
		struct ap_ms_cost edges = edges_cost(&h, i);
		int order = compare_costs(&edges, &least);

		if (order < 0 || (order == 0 && breaks_tie(&h, i, best))) {
			best = i;
			least = edges;
		}
	}
	ap_arena_release(s->ctx->scratch, mark);
	return best;
}

uint32_t ap_ms_choose(struct ap_ms_candidates *s, uint32_t class, enum ap_ms_choice kind, uint32_t n,
	const struct ap_ms_known *known)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	size_t len = 2 + 2 * (size_t)n;
	uint32_t *key = AP_NEW_N(s->ctx->scratch, uint32_t, len), best;
	bool fresh;
	ap_id id;

	key[0] = class;
	key[1] = kind;
	for (uint32_t k = 0; k < n; k++) {
		key[2 + 2 * k] = known[k].slot;
		key[3 + 2 * k] = known[k].end;
	}
	id = ap_map_put(s->choice_ids, key, len * sizeof *key, &fresh);
	ap_arena_release(s->ctx->scratch, mark);
	if (fresh) {
		best = choose_anew(s, class, kind, n, known);
		AP_PUSH(s->arena, s->choices, best);
	}
	return s->choices.v[id];
}

void ap_ms_reach(struct ap_ms_candidates *s, ap_id known, bool forward, ap_id end, enum ap_dtype dtype,
	struct ap_ms_reach *best)
{
	const struct ap_ms_cost *c = ap_ms_cost_between(s, forward ? known : end, forward ? end : known,
		dtype);
	int order = compare_numbers(c->communication, best->cost.communication);

	if (order == 0 && c->communication == 0)
		order = compare_numbers(c->computation, best->cost.computation);
	if (best->end == AP_NONE || order < 0)
		*best = (struct ap_ms_reach){end, *c};
}
