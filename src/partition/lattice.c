/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/lattice.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "pipeline/schedule.h"

#define FAR (INT64_MAX / 4) /* no walk */
#define MOST_EDGES ((size_t)1 << 23)
#define MOST_TABLE ((size_t)1 << 25) /* numbers of a table */
#define ROUNDS 100 /* in which a bound is looked for; where memory has a price */
#define PRICED_ROUNDS 600
#define STRETCH 6 /* quarters of a stage's times, to find the paths that stay on it */
#define MOST_PRICED (INT64_C(1) << 50)

struct list { /* options of a part and a range */
	uint32_t first, n;
};

struct edges {
	size_t n;
	struct ap_lattice_edge *v; /* by part, then a, then b */
	size_t *of; /* [npart * (nbody +
		1) + 1] those of part q from layer a begin at of[q * (nbody + 1) + a] */
};

struct ap_lattice {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	struct ap_options *c;
	struct ap_replay *replay;
	uint32_t from, to; /* degrees */
	int32_t npart;
	int64_t nbody;
	bool is_plain; /* the body is one run, counts are free, borders send the same everywhere */
	bool queues; /* paths go through queues of sends */
	bool is_cut, is_large; /* options, edges are missing */
	struct ap_map *id;
	AP_VEC(struct list) lists;
	AP_VEC(struct ap_lattice_option) options;
	struct ap_ticks *time; /* [npart] of the plan that is tried */
	int64_t *send, *back;
	bool *far, *far_back; /* [npart] what is sent takes as long as it does to the end that receives it */
	struct ap_replay_path path;
	struct edges all, live;
	size_t width, npath; /* room for paths, and how many are kept */
	size_t nshare; /* the first ones, which are of shared devices */
	int64_t *times, *room; /* [width] a path's cost is at most this often a plan's objective, and room:
	                          what bytes may cost, less what is sent once */
	int64_t (*price)[AP_HELD_LATE + 1]; /* [width * npart] ticks per byte, as part of a path's cost */
	int32_t (*weight)[AP_COSTS]; /* [width * npart] */
	int64_t *cost; /* [option * width + path] */
	size_t ncost; /* options that may have costs */
	size_t nused; /* of them, those that have: on edges */
	uint32_t *used;
	int64_t *ahead, *behind; /* [(q * (nbody + 1) + a) * width + path] least cost up to a, from a on */
	uint64_t work;
};

static int64_t dot(const int32_t *weight, const int64_t *cost)
{
	int64_t sum = 0;

	for (int k = 0; k < AP_COSTS; k++)
		sum += weight[k] * cost[k];
	return sum;
}

static int64_t bytes_dot(const int64_t *price, const struct ap_part_choice *c)
{
	int64_t sum = 0;

	for (int k = 0; k <= AP_HELD_LATE; k++)
		sum += price[k] * c->bytes[k];
	return sum;
}

static int64_t cost_of(const int32_t *weight, const int64_t *price, const struct ap_lattice_option *o)
{
	return dot(weight, o->cost) + bytes_dot(price, o->choice);
}

static size_t cell(const struct ap_lattice *l, int32_t q, int64_t a)
{
	return (size_t)q * (size_t)(l->nbody + 1) + (size_t)a;
}

struct ap_lattice *ap_lattice_create(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_options *c,
	struct ap_replay *replay, uint32_t from, uint32_t to)
{
	struct ap_lattice *l = AP_NEW(ctx->arena, struct ap_lattice);
	struct ap_arena *arena = ctx->arena;
	size_t n = (size_t)p->nstage * (size_t)p->nsegment;
	int64_t there, home;
	uint32_t runs = 0;

	*l = (struct ap_lattice){.ctx = ctx, .p = p, .c = c, .replay = replay, .from = from, .to = to,
		.npart = (int32_t)n, .nbody = ap_partition_body(p), .id = ap_map_create(arena),
		.time = AP_NEW_N(arena, struct ap_ticks, n), .send = AP_NEW_N(arena, int64_t, n),
		.back = AP_NEW_N(arena, int64_t, n), .far = AP_NEW_N(arena, bool, n),
		.far_back = AP_NEW_N(arena, bool, n),
		.path = {ap_arena_alloc(arena, n, sizeof(int32_t[AP_TIMES])), AP_NEW_N(arena, int32_t, n),
			AP_NEW_N(arena, int32_t, n)}};
	for (uint32_t r = 0; r < p->nrun; r++)
		runs += p->run[r].at == AP_AT_BODY;
	l->is_plain = runs < 2 && p->counts == AP_COUNTS_FREE && !p->border;
	l->queues = ap_options_sends(c, from, to, &there, &home);
	return l;
}

uint64_t ap_lattice_work(const struct ap_lattice *l)
{
	return l->work;
}

bool ap_lattice_is_cut(const struct ap_lattice *l)
{
	return l->is_cut || l->is_large;
}

static int32_t stage_of(const struct ap_lattice *l, int32_t q)
{
	int32_t stage, segment;

	ap_schedule_spot(l->p->scheduler, l->p->nstage, q, &stage, &segment);
	return stage;
}

static int32_t segment_of(const struct ap_lattice *l, int32_t q)
{
	int32_t stage, segment;

	ap_schedule_spot(l->p->scheduler, l->p->nstage, q, &stage, &segment);
	return segment;
}

/* Of the passes over one micro-batch. */
static int64_t passes(const struct ap_lattice_option *o)
{
	return o->cost[AP_TIME_FORWARD] + o->cost[AP_TIME_BACKWARD] + o->cost[AP_TIME_WEIGHT];
}

/* What a plan takes at least because of one part. */
static int64_t alone(const struct ap_lattice *l, int64_t one)
{
	return l->p->objective == AP_OBJECTIVE_STAGE ? one : one * l->p->nmicro;
}

/* Of so many ticks on the devices of a degree, the share of all devices. */
static int64_t share(const struct ap_lattice *l, uint32_t degree, int64_t ticks)
{
	int64_t own = l->p->degree[degree].devices, all = l->p->devices;

	return ticks / all * own + ticks % all * own / all;
}

static void add_options(struct ap_lattice *l, int32_t q, uint32_t degree, int64_t a, int64_t b)
{
	const struct ap_part_choices *x = ap_options_of(l->c, q, degree, a, b);

	l->is_cut = l->is_cut || x->cut;
	for (uint32_t i = 0; i < x->n; i++) {
		struct ap_lattice_option o = {.degree = degree, .part = q, .choice = &x->v[i]};

		memcpy(o.cost, x->v[i].time.t, sizeof x->v[i].time.t);
		if (q + 1 < l->npart) {
			o.cost[AP_COST_SEND] = ap_options_send(l->c, degree, AP_NONE, b);
			o.cost[AP_COST_RECEIVE_BACK] = ap_options_send_back(l->c, AP_NONE, degree, b);
		}
		if (q > 0) {
			o.cost[AP_COST_SEND_BACK] = ap_options_send_back(l->c, degree, AP_NONE, a);
			o.cost[AP_COST_RECEIVE] = ap_options_send(l->c, AP_NONE, degree, a);
		}
		if (l->p->devices > 0) {
			o.cost[AP_COST_DEVICES] = segment_of(l, q) == 0 ? l->p->degree[degree].devices : 0;
			o.cost[AP_COST_SHARE] = share(l, degree, alone(l, passes(&o)));
		}
		AP_PUSH(l->ctx->arena, l->options, o);
	}
}

uint32_t ap_lattice_options(struct ap_lattice *l, int32_t q, int64_t a, int64_t b, uint32_t *first)
{
	int64_t key[5] = {0, 0, q, l->p->border ? a : 0, l->p->border ? b : 0};
	bool fresh;
	ap_id id;

	l->work++;
	ap_options_range(l->c, q, a, b, &key[0], &key[1]);
	id = ap_map_put(l->id, key, sizeof key, &fresh);
	if (fresh) {
		struct list x = {(uint32_t)l->options.n, 0};

		for (uint32_t d = l->from; d < l->to; d++)
			add_options(l, q, d, a, b);
		x.n = (uint32_t)l->options.n - x.first;
		AP_PUSH(l->ctx->arena, l->lists, x);
	}
	*first = l->lists.v[id].first;
	return l->lists.v[id].n;
}

const struct ap_lattice_option *ap_lattice_option(const struct ap_lattice *l, uint32_t id)
{
	return &l->options.v[id];
}

static int64_t largest_stage(const struct ap_lattice *l, const uint32_t *option, int32_t *stage)
{
	int64_t most = -1;

	*stage = 0;
	for (int32_t s = 0; s < l->p->nstage; s++) {
		int64_t sum = 0;

		for (int32_t c = 0; c < l->p->nsegment; c++)
			sum += passes(&l->options.v[option[ap_schedule_part(l->p->scheduler, l->p->nstage, s,
				c)]]);
		if (sum > most) {
			most = sum;
			*stage = s;
		}
	}
	return most;
}

static void take_times(struct ap_lattice *l, const uint32_t *option)
{
	for (int32_t q = 0; q < l->npart; q++)
		memcpy(l->time[q].t, l->options.v[option[q]].cost, sizeof l->time[q].t);
	for (int32_t q = 0; q + 1 < l->npart; q++) {
		const int64_t *own = l->options.v[option[q]].cost, *next = l->options.v[option[q + 1]].cost;

		l->far[q] = next[AP_COST_RECEIVE] > own[AP_COST_SEND];
		l->send[q] = l->far[q] ? next[AP_COST_RECEIVE] : own[AP_COST_SEND];
		l->far_back[q] = own[AP_COST_RECEIVE_BACK] > next[AP_COST_SEND_BACK];
		l->back[q] = l->far_back[q] ? own[AP_COST_RECEIVE_BACK] : next[AP_COST_SEND_BACK];
	}
}

int64_t ap_lattice_value(struct ap_lattice *l, const uint32_t *option)
{
	int32_t stage;

	l->work += (uint64_t)l->npart;
	if (l->p->objective == AP_OBJECTIVE_STAGE)
		return largest_stage(l, option, &stage);
	take_times(l, option);
	l->work += ap_replay_steps(l->replay);
	return ap_replay_end(l->replay, l->time, l->send, l->back);
}

int64_t ap_lattice_excess(struct ap_lattice *l, const uint32_t *option, int32_t stage)
{
	const struct ap_part_choice *part[AP_PARTITION_PARTS];
	uint32_t degree = 0;

	l->work += (uint64_t)ap_options_pipe(l->c)->instants[stage].n * (uint64_t)l->p->nsegment / 2;
	for (int32_t c = 0; c < l->p->nsegment; c++) {
		uint32_t id = option[ap_schedule_part(l->p->scheduler, l->p->nstage, stage, c)];

		part[c] = id == AP_NONE ? NULL : l->options.v[id].choice;
		if (id == AP_NONE)
			continue;
		if (degree && degree != l->options.v[id].degree + 1)
			return INT64_MAX / 2; /* its segments would differ in degree */
		degree = l->options.v[id].degree + 1;
	}
	return ap_options_bytes(l->c, stage, part) - l->p->capacity_bytes[stage];
}

/* The layers that a part may have. */
static void counts_of(const struct ap_lattice *l, int32_t q, int64_t *least, int64_t *most)
{
	const struct ap_partition *p = l->p;

	*least = ap_partition_least(p, q);
	*most = l->nbody;
	if (p->counts == AP_COUNTS_GIVEN)
		*least = *most = p->count[q];
	if (p->counts == AP_COUNTS_EQUAL)
		*least = *most = l->nbody % l->npart ? -1 : l->nbody / l->npart;
	if (*most < ap_partition_least(p, q))
		*least = *most = -1;
}

/* The last layer that part q can end before so that those behind it have as many as they need. */
static int64_t last_end(const struct ap_lattice *l, int32_t q)
{
	return l->nbody - ap_partition_least_before(l->p, l->npart) + ap_partition_least_before(l->p, q + 1);
}

static int64_t least_passes(const struct ap_lattice *l, const struct ap_ticks *t, uint32_t degree,
	bool shared)
{
	int64_t sum = t->t[AP_TIME_FORWARD] + t->t[AP_TIME_BACKWARD] + t->t[AP_TIME_WEIGHT];

	return shared ? share(l, degree, alone(l, sum)) : sum;
}

static int64_t floor_of(const struct ap_lattice *l, int32_t q, int64_t a, int64_t b, bool shared)
{
	int64_t least = INT64_MAX;

	for (uint32_t d = l->from; d < l->to; d++) {
		struct ap_ticks t = ap_options_floor(l->c, q, d, a, b);
		int64_t sum = least_passes(l, &t, d, shared);

		least = sum < least ? sum : least;
	}
	return least;
}

/* Passes of layer i of the body in its quickest degree; there are several parts. */
static int64_t layer_floor(const struct ap_lattice *l, int64_t i, bool shared)
{
	int64_t least = INT64_MAX;

	for (uint32_t d = l->from; d < l->to; d++) {
		struct ap_ticks a = ap_options_floor(l->c, 0, d, 0, i), b = ap_options_floor(l->c, 0, d, 0,
			i + 1);
		int64_t sum;

		for (int k = AP_TIME_FORWARD; k <= AP_TIME_WEIGHT; k++)
			b.t[k] -= a.t[k];
		sum = least_passes(l, &b, d, shared);
		least = sum < least ? sum : least;
	}
	return least;
}

/* Of several parts: all layers, in what is least for each. */
static int64_t layers_floor(const struct ap_lattice *l, bool shared)
{
	int64_t sum = floor_of(l, 0, 0, 0, shared) + floor_of(l, l->npart - 1, l->nbody, l->nbody, shared);

	for (int64_t i = 0; i < l->nbody; i++)
		sum += layer_floor(l, i, shared);
	return sum;
}

/* The quickest option of a part within the limit; AP_NONE. Options of more layers than that are not made. */
static uint32_t quickest(struct ap_lattice *l, int32_t q, int64_t a, int64_t b, int64_t limit)
{
	uint32_t first, n, best = AP_NONE;

	if (floor_of(l, q, a, b, false) > limit)
		return AP_NONE;
	n = ap_lattice_options(l, q, a, b, &first);
	for (uint32_t i = first; i < first + n; i++) {
		int64_t t = passes(&l->options.v[i]);

		if (t <= limit && (best == AP_NONE || t < passes(&l->options.v[best])))
			best = i;
	}
	return best;
}

/* The furthest end of part q from layer a within the limit, at most `end`; known: an end that is possible,
	or less
 * than `least`; -1: there is none. More layers behind are never easier. */
static int64_t furthest(struct ap_lattice *l, int32_t q, int64_t a, int64_t least, int64_t known, int64_t end,
	int64_t limit)
{
	int64_t b = known > least ? known : least;

	if (least > end || (b > known && quickest(l, q, a, b, limit) == AP_NONE))
		return -1;
	while (b < end && quickest(l, q, a, b + 1, limit) != AP_NONE)
		b++;
	return b;
}

/*
 * Where part q can end, from where it can begin: into[b] = a. Where layers are equal, only the furthest end
 * counts: from there the rest is easiest.
 */
static bool reach(struct ap_lattice *l, int32_t q, int64_t limit, const int32_t *from, int32_t *into)
{
	int64_t least, most, known = -1, last = -1;

	counts_of(l, q, &least, &most);
	for (int64_t b = 0; b <= l->nbody; b++)
		into[b] = -1;
	for (int64_t a = l->is_plain ? l->nbody : 0; least >= 0 && a >= 0 &&
		a <= l->nbody; a += l->is_plain ? -1 : 1) {
		int64_t end = a + most < last_end(l, q) ? a + most : last_end(l, q);

		if (from[a] < 0)
			continue;
		end = furthest(l, q, a, a + least, known < a ? -1 : known, end, limit);
		for (int64_t b = l->is_plain ? end : a + least; b >= 0 && b <= end; b++)
			into[b] = (int32_t)a;
		last = end > last ? end : last;
		known = l->p->kinds == AP_KINDS_UNIFORM ? -1 : end; /* there, fewer in front may be harder */
		if (l->is_plain)
			break;
	}
	return last >= 0;
}

/* The quickest option within the limit of those on the fewest devices; AP_NONE. */
static uint32_t smallest(struct ap_lattice *l, int32_t q, int64_t a, int64_t b, int64_t limit)
{
	uint32_t first, n, best = AP_NONE;

	if (floor_of(l, q, a, b, false) > limit)
		return AP_NONE;
	n = ap_lattice_options(l, q, a, b, &first);
	for (uint32_t i = first; i < first + n; i++) {
		const struct ap_lattice_option *o = &l->options.v[i], *old;
		int64_t more;

		if (passes(o) > limit)
			continue;
		old = best == AP_NONE ? o : &l->options.v[best];
		more = o->cost[AP_COST_DEVICES] - old->cost[AP_COST_DEVICES];
		if (old == o || more < 0 || (more == 0 && passes(o) < passes(old)))
			best = i;
	}
	return best;
}

/* A walk whose parts all are within the limit, on the devices that there are: one on the fewest. */
static bool fill_sharing(struct ap_lattice *l, int64_t limit, struct ap_lattice_walk *out)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	size_t cells = cell(l, l->npart + 1, 0);
	int32_t *from = ap_arena_alloc_raw(l->ctx->scratch, cells, sizeof *from);
	int64_t *used = ap_arena_alloc_raw(l->ctx->scratch, cells, sizeof *used), a = l->nbody;
	bool is_there;

	for (size_t i = 0; i < cells; i++)
		used[i] = i == 0 ? 0 : FAR;
	for (int32_t q = 0; q < l->npart; q++) {
		int64_t least, most;

		counts_of(l, q, &least, &most);
		for (int64_t i = 0; least >= 0 && i <= l->nbody; i++) {
			int64_t end = i + most < last_end(l, q) ? i + most : last_end(l, q);

			for (int64_t b = i + least; used[cell(l, q, i)] <= l->p->devices && b <= end; b++) {
				uint32_t id = smallest(l, q, i, b, limit);
				int64_t sum;

				if (id == AP_NONE && b > i)
					break; /* more layers need no less */
				if (id == AP_NONE)
					continue;
				sum = used[cell(l, q, i)] + l->options.v[id].cost[AP_COST_DEVICES];
				if (sum < used[cell(l, q + 1, b)]) {
					used[cell(l, q + 1, b)] = sum;
					from[cell(l, q + 1, b)] = (int32_t)i;
				}
			}
		}
	}
	is_there = used[cell(l, l->npart, a)] <= l->p->devices;
	for (int32_t q = l->npart; is_there && q > 0; q--) {
		out->first[q] = (int32_t)a;
		a = from[cell(l, q, a)];
		out->option[q - 1] = smallest(l, q - 1, a, out->first[q], limit);
	}
	out->first[0] = 0;
	ap_arena_release(l->ctx->scratch, mark);
	return is_there;
}

/* A walk whose parts all are within the limit. */
static bool fill(struct ap_lattice *l, int64_t limit, struct ap_lattice_walk *out)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	int32_t *from = ap_arena_alloc_raw(l->ctx->scratch, cell(l, l->npart + 1, 0), sizeof *from);
	int64_t b = l->nbody;
	bool is_there = true;

	if (l->p->devices > 0)
		return fill_sharing(l, limit, out);
	for (int64_t a = 0; a <= l->nbody; a++)
		from[a] = a == 0 ? 0 : -1;
	for (int32_t q = 0; q < l->npart && is_there; q++)
		is_there = reach(l, q, limit, &from[cell(l, q, 0)], &from[cell(l, q + 1, 0)]);
	is_there = is_there && from[cell(l, l->npart, b)] >= 0;
	for (int32_t q = l->npart; is_there && q > 0; q--) {
		out->first[q] = (int32_t)b;
		b = from[cell(l, q, b)];
		out->option[q - 1] = quickest(l, q - 1, b, out->first[q], limit);
	}
	out->first[0] = 0;
	ap_arena_release(l->ctx->scratch, mark);
	return is_there;
}

int64_t ap_lattice_even(struct ap_lattice *l, struct ap_lattice_walk *out)
{
	const int64_t top = INT64_C(1) << 52;
	int64_t low = 0, high = l->npart > 1 ? layers_floor(l, false) / l->npart : top;

	/* With a limit little above the least, few options have to be made. */
	while (!fill(l, high, out)) {
		if (high >= top)
			return -1;
		low = high + 1;
		high = high < top / 2 ? high + high / 2 + 1 : top;
	}
	while (low < high) {
		int64_t mid = low + (high - low) / 2;

		if (fill(l, mid, out))
			high = mid;
		else
			low = mid + 1;
	}
	fill(l, low, out);
	return low;
}

int64_t ap_lattice_floor(const struct ap_lattice *l)
{
	int64_t evenly, shared;

	if (l->npart == 1)
		return alone(l, floor_of(l, 0, 0, l->nbody, false));
	evenly = alone(l, (layers_floor(l, false) + l->p->nstage - 1) / l->p->nstage);
	shared = l->p->devices > 0 ? layers_floor(l, true) : 0;
	return shared > evenly ? shared : evenly;
}

struct laying {
	struct ap_lattice *l;
	AP_VEC(struct ap_lattice_edge) v;
	bool *there; /* [npart + 1][nbody + 1] some walk comes so far */
};

static void lay_from(struct laying *x, int32_t q, int64_t a, int64_t most)
{
	struct ap_lattice *l = x->l;
	int64_t least, n, end = last_end(l, q);

	counts_of(l, q, &least, &n);
	for (int64_t b = a + least; least >= 0 && b <= a + n && b <= end; b++) {
		uint32_t first, count;

		l->work++;
		if (alone(l, floor_of(l, q, a, b, false)) > most)
			break;
		count = ap_lattice_options(l, q, a, b, &first);
		if (count == 0 && b > a)
			break; /* more layers need no less */
		for (uint32_t i = first; i < first + count; i++) {
			struct ap_lattice_edge e = {(int32_t)a, (int32_t)b, i};

			if (alone(l, passes(&l->options.v[i])) > most)
				continue;
			AP_PUSH(l->ctx->arena, x->v, e);
			x->there[cell(l, q + 1, b)] = true;
		}
	}
}

bool ap_lattice_open(struct ap_lattice *l, int64_t most)
{
	struct laying x = {.l = l};
	size_t cells = cell(l, l->npart, l->nbody) + 1, n = 0;
	size_t *of = AP_NEW_N(l->ctx->arena, size_t, cells + 1);

	x.there = AP_NEW_N(l->ctx->arena, bool, cells);
	x.there[0] = true;
	for (int32_t q = 0; q < l->npart; q++)
		for (int64_t a = 0; a <= l->nbody; a++) {
			of[cell(l, q, a)] = x.v.n;
			if (x.there[cell(l, q, a)] && x.v.n < MOST_EDGES)
				lay_from(&x, q, a, most);
		}
	l->is_large = x.v.n >= MOST_EDGES;
	for (n = cell(l, l->npart, 0); n <= cells; n++)
		of[n] = x.v.n;
	l->all = (struct edges){x.v.n, x.v.v, of};
	return x.there[cell(l, l->npart, l->nbody)];
}

static void copy_edges(struct ap_lattice *l, const struct edges *from, struct edges *to)
{
	size_t cells = cell(l, l->npart, l->nbody) + 2;

	to->n = from->n;
	memcpy(to->v, from->v, from->n * sizeof *from->v);
	memcpy(to->of, from->of, cells * sizeof *from->of);
}

static void begin_paths(struct ap_lattice *l)
{
	struct ap_arena *arena = l->ctx->arena;
	size_t cells = cell(l, l->npart, l->nbody) + 1, rows = cells > l->options.n ? cells : l->options.n;
	bool *met;

	l->width = 64 + 3 * (size_t)l->npart;
	if (l->width > MOST_TABLE / rows)
		l->width = MOST_TABLE / rows > 8 ? MOST_TABLE / rows : 8;
	l->npath = l->nshare = 0;
	l->ncost = l->options.n;
	l->times = AP_NEW_N(arena, int64_t, l->width);
	l->room = AP_NEW_N(arena, int64_t, l->width);
	l->weight = ap_arena_alloc(arena, l->width * (size_t)l->npart, sizeof *l->weight);
	l->price = ap_arena_alloc(arena, l->width * (size_t)l->npart, sizeof *l->price);
	l->cost = ap_arena_alloc_raw(arena, l->ncost * l->width, sizeof *l->cost);
	l->ahead = ap_arena_alloc_raw(arena, cells * l->width, sizeof *l->ahead);
	l->behind = ap_arena_alloc_raw(arena, cells * l->width, sizeof *l->behind);
	l->live.v = ap_arena_alloc_raw(arena, l->all.n + 1, sizeof *l->live.v);
	l->live.of = AP_NEW_N(arena, size_t, cells + 1);
	copy_edges(l, &l->all, &l->live);
	met = AP_NEW_N(arena, bool, l->ncost);
	l->used = ap_arena_alloc_raw(arena, l->ncost + 1, sizeof *l->used);
	l->nused = 0;
	for (size_t e = 0; e < l->all.n; e++)
		met[l->all.v[e].option] = true;
	for (size_t i = 0; i < l->ncost; i++)
		if (met[i])
			l->used[l->nused++] = (uint32_t)i;
}

/* Keeps a path with what stands at weight[npath * npart] and price. Returns false if it is there already. */
static bool keep_path(struct ap_lattice *l, int64_t times, int64_t room)
{
	size_t np = (size_t)l->npart, at = l->npath * np;
	int32_t(*w)[AP_COSTS] = &l->weight[at];

	for (size_t i = 0; i < l->npath; i++)
		if (l->times[i] == times && l->room[i] == room &&
			memcmp(&l->weight[i * np], w, np * sizeof *w) == 0 &&
			memcmp(&l->price[i * np], &l->price[at], np * sizeof *l->price) == 0)
			return false;
	l->times[l->npath] = times;
	l->room[l->npath] = room;
	for (size_t i = 0; i < l->nused; i++) {
		const struct ap_lattice_option *o = &l->options.v[l->used[i]];

		l->cost[l->used[i] * l->width + l->npath] = cost_of(w[o->part],
			l->price[at + (size_t)o->part], o);
	}
	l->work += l->all.n;
	l->npath++;
	return true;
}

/* The weights of the path of the plan that was tried last. */
static void path_weights(struct ap_lattice *l, int32_t (*w)[AP_COSTS])
{
	memset(w, 0, (size_t)l->npart * sizeof *w);
	ap_replay_path(l->replay, l->send, l->back, l->queues, &l->path);
	l->work += ap_replay_steps(l->replay);
	for (int32_t q = 0; q < l->npart; q++) {
		for (int k = 0; k < AP_TIMES; k++)
			w[q][k] = l->path.pass[q][k];
	}
	for (int32_t q = 0; q + 1 < l->npart; q++) {
		if (l->far[q])
			w[q + 1][AP_COST_RECEIVE] = l->path.send[q];
		else
			w[q][AP_COST_SEND] = l->path.send[q];
		if (l->far_back[q])
			w[q][AP_COST_RECEIVE_BACK] = l->path.send_back[q];
		else
			w[q + 1][AP_COST_SEND_BACK] = l->path.send_back[q];
	}
}

static void stage_weights(const struct ap_lattice *l, int32_t stage, int32_t (*w)[AP_COSTS])
{
	memset(w, 0, (size_t)l->npart * sizeof *w);
	for (int32_t q = 0; q < l->npart; q++)
		for (int k = AP_TIME_FORWARD; k <= AP_TIME_WEIGHT; k++)
			w[q][k] = stage_of(l, q) == stage;
}

/* The value of a walk, and the weights of what it comes from. */
static int64_t value_and_path(struct ap_lattice *l, const uint32_t *option, int32_t (*w)[AP_COSTS])
{
	int32_t stage;
	int64_t value;

	if (l->p->objective == AP_OBJECTIVE_STAGE) {
		value = largest_stage(l, option, &stage);
		stage_weights(l, stage, w);
	} else {
		value = ap_lattice_value(l, option);
		path_weights(l, w);
	}
	return value;
}

/*
 * Where segments share the memory of a stage, the last path that was kept also counts its bytes at the
 * schedule's fullest instant, at prices that make two kinds of the largest class equal: what these bytes cost
 * together is room that the path has more.
 */
static void price_path(struct ap_lattice *l, int32_t stage)
{
	const struct ap_pipe *pipe = ap_options_pipe(l->c);
	const struct ap_partition *p = l->p;
	const int64_t *held = &pipe->in_flight[stage * p->nsegment];
	size_t np = (size_t)l->npart, from = (l->npath - 1) * np;
	int64_t bytes = p->capacity_bytes[stage] - p->fixed_bytes[stage];
	int64_t plain = l->room[l->npath - 1], in_flight = 0;

	for (int32_t c = 0; c < p->nsegment; c++)
		in_flight += held[c];
	for (uint32_t k = 1; p->nsegment > 1 && p->capacity_bytes[stage] != AP_NO_LIMIT &&
		k < p->nkind; k++) {
		size_t at = l->npath * np;
		double price = ap_options_price(l->c, l->from, k) * (double)alone(l, 1) * p->nsegment /
			       (double)in_flight;

		if (l->npath == l->width || bytes <= 0 || !(price >= 1) ||
			price * (double)bytes > (double)MOST_PRICED)
			continue;
		memcpy(&l->weight[at], &l->weight[from], np * sizeof *l->weight);
		memset(&l->price[at], 0, np * sizeof *l->price);
		for (int32_t c = 0; c < p->nsegment; c++) {
			int64_t *own = l->price[at + (size_t)ap_schedule_part(p->scheduler, p->nstage, stage,
				c)];

			own[AP_HELD_ALWAYS] = (int64_t)price;
			own[AP_HELD_EACH] = (int64_t)price * held[c];
			own[AP_HELD_LATE] =
				pipe->late ? (int64_t)price * pipe->late[stage * p->nsegment + c] : 0;
		}
		keep_path(l, 1, (int64_t)price * bytes + plain);
	}
}

/* Paths of a plan in which one stage is slower than it is: those that stay on this stage. */
static void stretch(struct ap_lattice *l, const uint32_t *option, int32_t stage, int64_t factor,
	uint64_t limit)
{
	int32_t(*w)[AP_COSTS] = &l->weight[l->npath * (size_t)l->npart];

	if (l->npath == l->width || l->work >= limit)
		return;
	memset(&l->price[l->npath * (size_t)l->npart], 0, (size_t)l->npart * sizeof *l->price);
	take_times(l, option);
	for (int32_t q = 0; q < l->npart; q++)
		for (int k = 0; k < AP_TIMES && stage_of(l, q) == stage; k++)
			l->time[q].t[k] = l->time[q].t[k] * factor / 4;
	l->work += ap_replay_steps(l->replay);
	ap_replay_end(l->replay, l->time, l->send, l->back);
	path_weights(l, w);
	if (keep_path(l, 1, -l->path.once) && factor == STRETCH)
		price_path(l, stage);
}

/* What is no path, but a limit of walks that share devices: these, and what all stages are busy on them. */
static void share_paths(struct ap_lattice *l)
{
	assert(l->width > 2 && l->npath == 0);
	for (int32_t q = 0; q < l->npart; q++)
		l->weight[q][AP_COST_DEVICES] = 1;
	keep_path(l, 0, l->p->devices);
	for (int32_t q = 0; q < l->npart; q++)
		l->weight[l->npart + q][AP_COST_SHARE] = 1;
	keep_path(l, 1, 0);
	l->nshare = l->npath;
}

static void first_paths(struct ap_lattice *l, const uint32_t *option, uint64_t limit)
{
	if (l->p->devices > 0)
		share_paths(l);
	for (int32_t s = 0; s < l->p->nstage; s++) {
		if (l->p->objective == AP_OBJECTIVE_STEP) {
			stretch(l, option, s, STRETCH, limit);
			stretch(l, option, s, 16, limit);
		} else if (l->npath < l->width) {
			stage_weights(l, s, &l->weight[l->npath * (size_t)l->npart]);
			if (keep_path(l, 1, 0))
				price_path(l, s);
		}
	}
	if (l->p->objective == AP_OBJECTIVE_STEP)
		stretch(l, option, 0, 4, limit);
}

/* Least costs from every layer to the end, over the edges that are left, of paths from..npath - 1. */
static void look_behind(struct ap_lattice *l, size_t from)
{
	size_t w = l->width;

	for (int64_t a = 0; a <= l->nbody; a++)
		for (size_t i = from; i < l->npath; i++)
			l->behind[cell(l, l->npart, a) * w + i] = a == l->nbody ? 0 : FAR;
	for (int32_t q = l->npart - 1; q >= 0; q--)
		for (int64_t a = 0; a <= l->nbody; a++) {
			int64_t *to = &l->behind[cell(l, q, a) * w];

			for (size_t i = from; i < l->npath; i++)
				to[i] = FAR;
			for (size_t e = l->live.of[cell(l, q, a)]; e < l->live.of[cell(l, q, a) + 1]; e++) {
				const int64_t *cost = &l->cost[l->live.v[e].option * w];
				const int64_t *rest = &l->behind[cell(l, q + 1, l->live.v[e].b) * w];

				for (size_t i = from; i < l->npath; i++)
					to[i] = cost[i] + rest[i] < to[i] ? cost[i] + rest[i] : to[i];
			}
		}
	l->work += l->live.n * (l->npath - from) / 2;
}

static void look_ahead(struct ap_lattice *l)
{
	size_t w = l->width, cells = cell(l, l->npart, l->nbody) + 1;

	for (size_t i = 0; i < cells * w; i++)
		l->ahead[i] = FAR;
	for (size_t i = 0; i < l->npath; i++)
		l->ahead[i] = 0;
	for (int32_t q = 0; q < l->npart; q++)
		for (int64_t a = 0; a <= l->nbody; a++) {
			const int64_t *here = &l->ahead[cell(l, q, a) * w];

			for (size_t e = l->live.of[cell(l, q, a)]; e < l->live.of[cell(l, q, a) + 1]; e++) {
				const int64_t *cost = &l->cost[l->live.v[e].option * w];
				int64_t *to = &l->ahead[cell(l, q + 1, l->live.v[e].b) * w];

				for (size_t i = 0; i < l->npath; i++)
					to[i] = here[i] + cost[i] < to[i] ? here[i] + cost[i] : to[i];
			}
		}
	l->work += l->live.n * l->npath / 2;
}

/* Is the edge on a walk for which each path alone is short enough? */
static bool is_possible(const struct ap_lattice *l, int32_t q, const struct ap_lattice_edge *e, int64_t most)
{
	size_t w = l->width;
	const int64_t *ahead = &l->ahead[cell(l, q, e->a) * w], *behind = &l->behind[cell(l, q + 1,
		e->b) * w];
	const int64_t *cost = &l->cost[e->option * w];

	for (size_t i = 0; i < l->npath; i++)
		if (ahead[i] + cost[i] + behind[i] > most * l->times[i] + l->room[i])
			return false;
	return true;
}

/* Drops edges until all that are left are possible. Returns false if no walk is left. */
static bool filter(struct ap_lattice *l, int64_t most, uint64_t limit)
{
	size_t before, cells = cell(l, l->npart, l->nbody) + 1;

	do {
		size_t n = 0, e = 0;

		before = l->live.n;
		look_behind(l, 0);
		look_ahead(l);
		for (int32_t q = 0; q < l->npart; q++)
			for (int64_t a = 0; a <= l->nbody; a++) {
				size_t end = l->live.of[cell(l, q, a) + 1];

				l->live.of[cell(l, q, a)] = n;
				for (; e < end; e++)
					if (is_possible(l, q, &l->live.v[e], most))
						l->live.v[n++] = l->live.v[e];
			}
		for (size_t i = cell(l, l->npart, 0); i <= cells; i++)
			l->live.of[i] = n;
		l->live.n = n;
	} while (l->live.n < before && l->live.n > 0 && l->work < limit && !ap_ctx_stopped(l->ctx));
	return l->live.n > 0;
}

/* The walk of the least cost of options, over all edges that are left. Returns FAR if there is none. */
static int64_t cheapest(struct ap_lattice *l, const int64_t *cost, int64_t *rest, uint32_t *option)
{
	int64_t a = 0;

	for (int64_t i = 0; i <= l->nbody; i++)
		rest[cell(l, l->npart, i)] = i == l->nbody ? 0 : FAR;
	for (int32_t q = l->npart - 1; q >= 0; q--)
		for (int64_t i = 0; i <= l->nbody; i++) {
			int64_t best = FAR;

			for (size_t e = l->live.of[cell(l, q, i)]; e < l->live.of[cell(l, q, i) + 1]; e++) {
				int64_t sum = cost[l->live.v[e].option] + rest[cell(l, q + 1,
					l->live.v[e].b)];

				best = sum < best ? sum : best;
			}
			rest[cell(l, q, i)] = best;
		}
	l->work += 2 * l->live.n;
	if (rest[0] >= FAR)
		return FAR;
	for (int32_t q = 0; q < l->npart; q++) {
		size_t e = l->live.of[cell(l, q, a)];

		while (cost[l->live.v[e].option] + rest[cell(l, q + 1, l->live.v[e].b)] != rest[cell(l, q,
			a)])
			e++;
		option[q] = l->live.v[e].option;
		a = l->live.v[e].b;
	}
	return rest[0];
}

struct sum { /* of paths */
	int64_t n, room;
	int32_t (*weight)[AP_COSTS]; /* [npart] */
	int64_t (*price)[AP_HELD_LATE + 1];
};

static struct sum no_sum(struct ap_lattice *l)
{
	struct ap_arena *scratch = l->ctx->scratch;
	size_t np = (size_t)l->npart;

	return (struct sum){.weight = ap_arena_alloc(scratch, np, sizeof(int32_t[AP_COSTS])),
		.price = ap_arena_alloc(scratch, np, sizeof(int64_t[AP_HELD_LATE + 1]))};
}

static void add_path(const struct ap_lattice *l, struct sum *to, int32_t (*weight)[AP_COSTS],
	int64_t (*price)[AP_HELD_LATE + 1], int64_t room)
{
	for (int32_t q = 0; q < l->npart; q++) {
		for (int k = 0; k < AP_COSTS; k++)
			to->weight[q][k] += weight[q][k];
		for (int k = 0; price && k <= AP_HELD_LATE; k++)
			to->price[q][k] += price[q][k];
	}
	to->room += room;
	to->n++;
}

static void copy_sum(const struct ap_lattice *l, struct sum *to, const struct sum *from)
{
	to->n = from->n;
	to->room = from->room;
	memcpy(to->weight, from->weight, (size_t)l->npart * sizeof *to->weight);
	memcpy(to->price, from->price, (size_t)l->npart * sizeof *to->price);
}

/* Costs of all options that are left. */
static void sum_costs(const struct ap_lattice *l, const struct sum *all, int64_t *cost)
{
	for (int32_t q = 0; q < l->npart; q++)
		for (size_t e = l->live.of[cell(l, q, 0)]; e < l->live.of[cell(l, q + 1, 0)]; e++) {
			uint32_t o = l->live.v[e].option;

			cost[o] = cost_of(all->weight[q], all->price[q], &l->options.v[o]);
		}
}

/* The path with a price, or a share, that is longest for a walk, above `value`; width: none. */
static size_t dearest(const struct ap_lattice *l, const uint32_t *option, int64_t value)
{
	size_t best = l->width;

	for (size_t i = 0; i < l->npath; i++) {
		int64_t sum = -l->room[i];

		if ((l->room[i] == 0 && i >= l->nshare) || l->times[i] != 1)
			continue;
		for (int32_t q = 0; q < l->npart; q++)
			sum += l->cost[option[q] * l->width + i];
		if (sum > value) {
			value = sum;
			best = i;
		}
	}
	return best;
}

/*
 * The paths play against the walks: the walks answer the sum of all paths so far by the cheapest one, that is
 * answered by its own longest path, which joins the sum. A sum of n paths bounds n times the objective; the
 * best of them is kept as if it were a path.
 */
static int64_t play(struct ap_lattice *l, uint64_t limit)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_arena *scratch = l->ctx->scratch;
	size_t np = (size_t)l->npart;
	int64_t *cost = AP_NEW_N(scratch, int64_t, l->options.n), bound = 0;
	int64_t *rest = AP_NEW_N(scratch, int64_t, cell(l, l->npart, l->nbody) + 1);
	uint32_t *option = AP_NEW_N(scratch, uint32_t, np);
	int32_t(*one)[AP_COSTS] = ap_arena_alloc(scratch, np, sizeof *one);
	struct sum all = no_sum(l), best = no_sum(l);
	int64_t rounds = l->p->nsegment > 1 ? PRICED_ROUNDS : ROUNDS;

	for (int64_t n = 0; n < rounds && l->work < limit && !ap_ctx_stopped(l->ctx); n++) {
		int64_t least = cheapest(l, cost, rest, option) - all.room, value;
		size_t i;

		if (n > 0 && least > 0 && (least + n - 1) / n > bound) {
			bound = (least + n - 1) / n;
			copy_sum(l, &best, &all);
		}
		value = value_and_path(l, option, one);
		if (n % 2 && l->npath + 16 < l->width) {
			memcpy(&l->weight[l->npath * np], one, np * sizeof *one);
			memset(&l->price[l->npath * np], 0, np * sizeof *l->price);
			keep_path(l, 1, -l->path.once);
		}
		i = dearest(l, option, value);
		if (i < l->width)
			add_path(l, &all, &l->weight[i * np], &l->price[i * np], l->room[i]);
		else
			add_path(l, &all, one, NULL, -l->path.once);
		sum_costs(l, &all, cost);
		l->work += l->live.n;
	}
	if (best.n > 1 && l->npath < l->width) {
		memcpy(&l->weight[l->npath * np], best.weight, np * sizeof *best.weight);
		memcpy(&l->price[l->npath * np], best.price, np * sizeof *best.price);
		keep_path(l, best.n, best.room);
	}
	ap_arena_release(scratch, mark);
	return bound;
}

/* The best bound that one path alone gives. */
static int64_t longest_alone(struct ap_lattice *l)
{
	int64_t low = 0;

	look_behind(l, 0);
	for (size_t i = 0; i < l->npath; i++) {
		int64_t least = l->behind[i] - l->room[i];

		if (l->times[i] > 0 && l->behind[i] < FAR && least > low * l->times[i])
			low = (least + l->times[i] - 1) / l->times[i];
	}
	return low;
}

/* Halves what is open between a bound and something that is too much, until little is left. */
static int64_t halve(struct ap_lattice *l, int64_t low, int64_t high, uint64_t limit)
{
	while (low < high && high - low > high >> 12 && l->work < limit && !ap_ctx_stopped(l->ctx)) {
		int64_t mid = low + (high - low) / 2;

		copy_edges(l, &l->all, &l->live);
		if (filter(l, mid, limit))
			high = mid;
		else
			low = mid + 1;
	}
	if (low < high && high - low <= high >> 12 && l->work < limit) { /* the whole rest */
		copy_edges(l, &l->all, &l->live);
		low = filter(l, high - 1, limit) ? low : high;
	}
	return low;
}

int64_t ap_lattice_bound(struct ap_lattice *l, const uint32_t *option, int64_t most, uint64_t work)
{
	uint64_t limit = l->work + work;
	int64_t low, sums;

	begin_paths(l);
	first_paths(l, option, limit);
	low = longest_alone(l);
	low = halve(l, low, most + 1, l->work < limit ? l->work + (limit - l->work) / 4 : limit);
	copy_edges(l, &l->all, &l->live);
	sums = play(l, limit);
	low = sums > low ? sums : low;
	low = halve(l, low, most + 1, limit);
	return low > most ? most + 1 : low; /* longer walks were left out */
}

struct seeking {
	struct ap_lattice *l;
	int64_t most;
	int64_t *spent; /* [(npart + 1) * width] cost of each path up to part q */
	size_t *at; /* [npart] the edge that is tried */
	uint32_t *option; /* [npart] */
	int32_t *first; /* [npart + 1] */
	uint64_t limit;
};

/* Takes edge e as part q's. Returns whether the paths, and the memory of its stage, allow it. */
static bool step(struct seeking *s, int32_t q, size_t e)
{
	struct ap_lattice *l = s->l;
	const struct ap_lattice_edge *x = &l->live.v[e];
	const int64_t *spent = &s->spent[(size_t)q * l->width], *cost = &l->cost[x->option * l->width];
	const int64_t *rest = &l->behind[cell(l, q + 1, x->b) * l->width];
	int64_t *now = &s->spent[(size_t)(q + 1) * l->width];

	l->work += 1 + l->npath / 4;
	for (size_t i = 0; i < l->npath; i++) {
		now[i] = spent[i] + cost[i];
		if (now[i] + rest[i] > s->most * l->times[i] + l->room[i])
			return false;
	}
	s->option[q] = x->option;
	s->first[q + 1] = x->b;
	if (l->p->nsegment > 1 && ap_lattice_excess(l, s->option, stage_of(l, q)) > 0) {
		s->option[q] = AP_NONE;
		return false;
	}
	return true;
}

/* A whole walk is too long: its path joins the others, if there is room. */
static void learn(struct seeking *s)
{
	struct ap_lattice *l = s->l;
	size_t i = l->npath;

	if (i == l->width)
		return;
	if (l->p->objective == AP_OBJECTIVE_STAGE)
		return; /* all are there */
	path_weights(l, &l->weight[i * (size_t)l->npart]);
	memset(&l->price[i * (size_t)l->npart], 0, (size_t)l->npart * sizeof *l->price);
	if (!keep_path(l, 1, -l->path.once))
		return;
	look_behind(l, i);
	s->spent[i] = 0;
	for (int32_t q = 0; q < l->npart; q++)
		s->spent[(size_t)(q + 1) * l->width + i] = s->spent[(size_t)q * l->width + i] +
			l->cost[s->option[q] * l->width + i];
}

static enum ap_lattice_answer walk(struct seeking *s, int64_t *value)
{
	struct ap_lattice *l = s->l;
	int32_t q = 0;

	s->at[0] = l->live.of[0];
	while (q >= 0) {
		if (l->work >= s->limit || ap_ctx_stopped(l->ctx))
			return AP_WALK_UNKNOWN;
		s->option[q] = AP_NONE;
		if (s->at[q] == l->live.of[cell(l, q, s->first[q]) + 1]) {
			q--;
			continue;
		}
		if (!step(s, q, s->at[q]++))
			continue;
		if (++q < l->npart) {
			s->at[q] = l->live.of[cell(l, q, s->first[q])];
			continue;
		}
		*value = ap_lattice_value(l, s->option);
		if (*value <= s->most)
			return AP_WALK_FOUND;
		learn(s);
		q--;
	}
	return AP_WALK_NONE;
}

enum ap_lattice_answer ap_lattice_seek(struct ap_lattice *l, int64_t most, uint64_t work,
	struct ap_lattice_walk *out, int64_t *value)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_arena *scratch = l->ctx->scratch;
	struct seeking s = {.l = l, .most = most, .limit = l->work + work,
		.spent = AP_NEW_N(scratch, int64_t, (size_t)(l->npart + 1) * l->width),
		.at = AP_NEW_N(scratch, size_t, l->npart), .option = AP_NEW_N(scratch, uint32_t, l->npart),
		.first = AP_NEW_N(scratch, int32_t, l->npart + 1)};
	enum ap_lattice_answer answer = AP_WALK_NONE;

	for (int32_t q = 0; q < l->npart; q++)
		s.option[q] = AP_NONE;
	copy_edges(l, &l->all, &l->live);
	if (filter(l, most, s.limit)) {
		look_behind(l, 0);
		answer = walk(&s, value);
	}
	if (answer == AP_WALK_FOUND) {
		memcpy(out->first, s.first, (size_t)(l->npart + 1) * sizeof *s.first);
		memcpy(out->option, s.option, (size_t)l->npart * sizeof *s.option);
	}
	ap_arena_release(scratch, mark);
	return answer;
}
