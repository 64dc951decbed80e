/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "pipeline/schedule.h"

#define MOST_CHOICES 4000 /* of a range */
#define MANY_CHOICES (1 << 21) /* of all; after that, of a range: */
#define FEW_CHOICES 32

struct chain { /* choices of the layers from one on, by their number */
	AP_VEC(struct ap_part_choices) by_number;
};

struct beside { /* the other parts of a part's stage, each as lean as any can be */
	uint32_t n; /* instants at which the stage may be fullest; 0: not made yet */
	struct ap_instant {
		int64_t bytes; /* of the others in flight */
		int64_t held, late; /* micro-batches of the part */
	} *at;
	int64_t always_bytes, once_bytes;
};

struct ap_options {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	const int64_t *number;
	int32_t npart;
	int64_t nfirst, nbody, nlayer;
	const uint32_t *cls; /* [nlayer] */
	const int64_t *run_from, *run_to; /* [nlayer] the ends of the run of a layer */
	double tick_s, error_s;
	const struct ap_ticks *ticks; /* [(class * ndegree + degree) * nkind + kind] */
	const struct ap_ticks *floor; /* [degree * (nlayer + 1) + i] sums of the layers before i */
	const struct ap_part_choice *lean; /* [nlayer + 1] bytes of the layers before, the least of each */
	bool is_free; /* no stage has a limit */
	bool is_alike; /* all layers of the body are of one class: which of them take a kind is the same */
	size_t nmade;
	uint64_t compared, most_compared; /* choices with others */
	struct ap_pipe pipe;
	const struct ap_part_choice *least; /* [part] bytes alone: the least of each */
	struct beside *beside; /* [part] */
	struct ap_map *chain_id, *range_id;
	AP_VEC(struct chain) chains;
	AP_VEC(struct ap_part_choices) ranges;
};

static const struct ap_partition_row *row_of(const struct ap_options *c, uint32_t cls, uint32_t degree,
	uint32_t kind)
{
	return &c->p->cls[cls].row[degree * c->p->nkind + kind];
}

static double row_s(const struct ap_partition *p, const struct ap_partition_row *r, int i)
{
	switch (i) {
	case AP_TIME_FORWARD:
		return r->forward_s;
	case AP_TIME_BACKWARD:
		return r->backward_s;
	case AP_TIME_WEIGHT:
		return p->scheduler->splits ? r->weight_s : 0;
	case AP_TIME_BESIDE:
		return r->beside_s;
	case AP_TIME_EXCHANGE:
		return r->exchange_s;
	case AP_TIME_SLOWED:
		return r->slowed_s;
	default:
		return r->update_s;
	}
}

static void lay_out(struct ap_options *c)
{
	struct ap_arena *arena = c->ctx->arena;
	int64_t n = ap_partition_layers(c->p);
	uint32_t *cls = AP_NEW_N(arena, uint32_t, n);
	int64_t *from = AP_NEW_N(arena, int64_t, n), *to = AP_NEW_N(arena, int64_t, n);

	for (uint32_t r = 0; r < c->p->nrun; r++) {
		int64_t first = c->nlayer;

		for (int64_t i = 0; i < c->p->run[r].count; i++, c->nlayer++) {
			cls[c->nlayer] = c->p->run[r].cls;
			from[c->nlayer] = first;
			to[c->nlayer] = first + c->p->run[r].count;
		}
		c->nfirst += c->p->run[r].at == AP_AT_FIRST ? c->p->run[r].count : 0;
	}
	c->nbody = ap_partition_body(c->p);
	c->cls = cls;
	c->run_from = from;
	c->run_to = to;
}

/* More than a step of any plan takes. */
static double most_s(const struct ap_options *c)
{
	const struct ap_partition *p = c->p;
	double sum = 0, send = 0, back = 0, left = 0;

	for (uint32_t r = 0; r < p->nrun; r++) {
		double most = 0;

		for (uint32_t i = 0; i < p->ndegree * p->nkind; i++) {
			const struct ap_partition_row *x = &p->cls[p->run[r].cls].row[i];

			if (!x->absent)
				most = fmax(most,
					(double)p->nmicro * (x->forward_s + x->backward_s + x->weight_s +
						x->beside_s) +
					x->exchange_s + x->slowed_s + x->update_s);
		}
		sum += most * (double)p->run[r].count;
	}
	for (int64_t i = 0; p->border && i <= ap_partition_body(p); i++) {
		send = fmax(send, p->border[i].send_s);
		back = fmax(back, p->border[i].send_back_s);
	}
	for (uint32_t d = 0; d < p->ndegree; d++) {
		left = fmax(left, p->degree[d].left_s);
		send = fmax(send, fmax(p->degree[d].send_s, p->degree[d].receive_s));
		back = fmax(back, fmax(p->degree[d].send_back_s, p->degree[d].receive_back_s));
	}
	return sum + (send + back + left) * (double)p->nmicro * c->npart + p->shared.send_s +
		p->shared.send_back_s;
}

static int64_t in_ticks(double s, double tick_s, bool *exact)
{
	double ticks = rint(s / tick_s);

	*exact = *exact && ticks * tick_s == s;
	return (int64_t)ticks;
}

static void make_ticks(struct ap_options *c)
{
	const struct ap_partition *p = c->p;
	struct ap_ticks *ticks = AP_NEW_N(c->ctx->arena, struct ap_ticks, p->nclass * p->ndegree * p->nkind);
	double most = most_s(c);
	int bits = p->nsegment > 1 ? 48 : 52; /* room for sums with the price of memory */
	bool exact = true, is_left = false;
	int exponent;

	frexp(most, &exponent); /* a step is below 2^bits ticks */
	c->tick_s = most > 0 ? ldexp(1, exponent > -1000 ? exponent - bits : -1000 - bits) : 1;
	for (uint32_t i = 0; i < p->nclass * p->ndegree * p->nkind; i++)
		for (int k = 0; k < AP_TIMES; k++) {
			const struct ap_partition_row *r = &p->cls[i / (p->ndegree * p->nkind)]
				.row[i % (p->ndegree * p->nkind)];

			if (!r->absent)
				ticks[i].t[k] = in_ticks(row_s(p, r, k), c->tick_s, &exact);
		}
	for (uint32_t d = 0; d < p->ndegree; d++) {
		in_ticks(p->degree[d].left_s, c->tick_s, &exact);
		is_left = is_left || p->degree[d].left_s > 0;
		in_ticks(p->degree[d].send_s, c->tick_s, &exact);
		in_ticks(p->degree[d].send_back_s, c->tick_s, &exact);
		in_ticks(p->degree[d].receive_s, c->tick_s, &exact);
		in_ticks(p->degree[d].receive_back_s, c->tick_s, &exact);
	}
	for (int64_t i = 0; p->border && i <= ap_partition_body(p); i++) {
		in_ticks(p->border[i].send_s, c->tick_s, &exact);
		in_ticks(p->border[i].send_back_s, c->tick_s, &exact);
	}
	in_ticks(p->shared.send_s, c->tick_s, &exact);
	in_ticks(p->shared.send_back_s, c->tick_s, &exact);
	c->ticks = ticks;
	c->error_s = exact ? 0 : ((double)c->nlayer * (3 * (double)p->nmicro + 2) +
		(is_left ? 5 : 4) * (double)c->npart * (double)p->nmicro + 2) * c->tick_s / 2;
}

static const struct ap_ticks *ticks_of(const struct ap_options *c, uint32_t cls, uint32_t degree,
	uint32_t kind)
{
	return &c->ticks[(cls * c->p->ndegree + degree) * c->p->nkind + kind];
}

static void make_floors(struct ap_options *c)
{
	struct ap_ticks *floor = AP_NEW_N(c->ctx->arena, struct ap_ticks,
		c->p->ndegree * (size_t)(c->nlayer + 1));

	for (uint32_t d = 0; d < c->p->ndegree; d++) {
		struct ap_ticks *sum = &floor[d * (size_t)(c->nlayer + 1)];

		for (int64_t i = 0; i < c->nlayer; i++)
			for (int k = 0; k < AP_TIMES; k++) {
				int64_t least = INT64_MAX;

				for (uint32_t kind = 0; kind < c->p->nkind; kind++)
					if (!row_of(c, c->cls[i], d, kind)->absent &&
						ticks_of(c, c->cls[i], d, kind)->t[k] < least)
						least = ticks_of(c, c->cls[i], d, kind)->t[k];
				sum[i + 1].t[k] = sum[i].t[k] + (least < INT64_MAX ? least : 0);
			}
	}
	c->floor = floor;
}

static void row_bytes(const struct ap_partition_row *r, int64_t bytes[AP_HELDS])
{
	bytes[AP_HELD_ALWAYS] = r->weights_bytes;
	bytes[AP_HELD_EACH] = r->kept_bytes;
	bytes[AP_HELD_LATE] = r->late_bytes;
	bytes[AP_HELD_ONCE] = r->temporary_bytes;
}

static void hold_more(int64_t sum[AP_HELDS], const int64_t more[AP_HELDS], int64_t times)
{
	for (int i = 0; i < AP_HELDS; i++)
		if (i != AP_HELD_ONCE)
			sum[i] += times * more[i];
		else if (times && more[i] > sum[i])
			sum[i] = more[i];
}

static void least_of_class(const struct ap_options *c, uint32_t cls, int64_t bytes[AP_HELDS])
{
	for (uint32_t i = 0; i < c->p->ndegree * c->p->nkind; i++) {
		int64_t own[AP_HELDS];

		if (c->p->cls[cls].row[i].absent)
			continue;
		row_bytes(&c->p->cls[cls].row[i], own);
		for (int k = 0; k < AP_HELDS; k++)
			bytes[k] = own[k] < bytes[k] ? own[k] : bytes[k];
	}
}

/* As many layers of the body as a part has at least, each as lean as any; and all at its end. */
static void make_least(struct ap_options *c)
{
	struct ap_part_choice *least = AP_NEW_N(c->ctx->arena, struct ap_part_choice, c->npart);
	int64_t leanest[AP_HELDS];

	for (int k = 0; k < AP_HELDS; k++)
		leanest[k] = INT64_MAX;
	for (uint32_t r = 0; r < c->p->nrun; r++)
		if (c->p->run[r].at == AP_AT_BODY)
			least_of_class(c, c->p->run[r].cls, leanest);
	for (int32_t q = 0; q < c->npart; q++) {
		if (c->nbody > 0)
			hold_more(least[q].bytes, leanest, ap_partition_least(c->p, q));
		for (uint32_t r = 0; r < c->p->nrun; r++) {
			int64_t own[AP_HELDS] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

			if ((c->p->run[r].at != AP_AT_FIRST || q > 0) &&
				(c->p->run[r].at != AP_AT_LAST || q + 1 < c->npart))
				continue;
			least_of_class(c, c->p->run[r].cls, own);
			hold_more(least[q].bytes, own, c->p->run[r].count);
		}
	}
	c->least = least;
}

static void make_lean(struct ap_options *c)
{
	struct ap_part_choice *lean = AP_NEW_N(c->ctx->arena, struct ap_part_choice, c->nlayer + 1);

	for (int64_t i = 0; i < c->nlayer; i++) {
		int64_t own[AP_HELDS] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

		least_of_class(c, c->cls[i], own);
		memcpy(lean[i + 1].bytes, lean[i].bytes, sizeof lean[i].bytes);
		hold_more(lean[i + 1].bytes, own, 1);
	}
	c->lean = lean;
	c->is_free = c->is_alike = true;
	for (int64_t i = 1; i < c->nbody; i++)
		c->is_alike = c->is_alike && c->cls[c->nfirst + i] == c->cls[c->nfirst];
	for (int32_t s = 0; s < c->p->nstage; s++)
		c->is_free = c->is_free && c->p->capacity_bytes[s] == AP_NO_LIMIT;
}

struct ap_options *ap_options_create(struct ap_ctx *ctx, const struct ap_partition *p, const int64_t *number)
{
	struct ap_options *c = AP_NEW(ctx->arena, struct ap_options);

	*c = (struct ap_options){.ctx = ctx, .p = p, .number = number, .npart = p->nstage * p->nsegment,
		.most_compared = UINT64_MAX,
		.chain_id = ap_map_create(ctx->arena), .range_id = ap_map_create(ctx->arena)};
	lay_out(c);
	make_ticks(c);
	make_floors(c);
	if (p->pipe)
		c->pipe = *p->pipe;
	else
		ap_schedule_pipe(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro, &c->pipe);
	make_least(c);
	make_lean(c);
	c->beside = AP_NEW_N(ctx->arena, struct beside, c->npart);
	return c;
}

void ap_options_limit(struct ap_options *c, uint64_t comparisons)
{
	c->most_compared = comparisons;
}

double ap_options_tick_s(const struct ap_options *c)
{
	return c->tick_s;
}

double ap_options_error_s(const struct ap_options *c)
{
	return c->error_s;
}

static int64_t slowest(const struct ap_options *c, double send_s, double receive_s, double border_s)
{
	bool exact = true;

	return in_ticks(fmax(fmax(send_s, receive_s), border_s), c->tick_s, &exact);
}

int64_t ap_options_send(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers)
{
	const struct ap_partition_degree *d = c->p->degree;

	return slowest(c, from == AP_NONE ? 0 : d[from].send_s, to == AP_NONE ? 0 : d[to].receive_s,
		c->p->border ? c->p->border[layers].send_s : 0);
}

int64_t ap_options_send_back(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers)
{
	const struct ap_partition_degree *d = c->p->degree;

	return slowest(c, from == AP_NONE ? 0 : d[from].send_back_s, to == AP_NONE ? 0 : d[to].receive_back_s,
		c->p->border ? c->p->border[layers].send_back_s : 0);
}

void ap_options_least_sends(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers,
	int64_t *there, int64_t *home, int64_t *most)
{
	int64_t least[4] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

	*most = 0;
	for (uint32_t d = from; d < to; d++) {
		int64_t end[4] = {ap_options_send(c, d, AP_NONE, layers),
			ap_options_send(c, AP_NONE, d, layers), ap_options_send_back(c, d, AP_NONE, layers),
			ap_options_send_back(c, AP_NONE, d, layers)};

		for (int i = 0; i < 4; i++) {
			least[i] = end[i] < least[i] ? end[i] : least[i];
			*most = end[i] > *most ? end[i] : *most;
		}
	}
	*there = least[0] > least[1] ? least[0] : least[1];
	*home = least[2] > least[3] ? least[2] : least[3];
}

bool ap_options_sends(const struct ap_options *c, uint32_t from, uint32_t to, int64_t *there, int64_t *home)
{
	int64_t last = c->p->border ? ap_partition_body(c->p) : 0, most = 0;

	*there = *home = INT64_MAX;
	for (int64_t n = 0; n <= last; n++) {
		int64_t own[3];

		ap_options_least_sends(c, from, to, n, &own[0], &own[1], &own[2]);
		*there = own[0] < *there ? own[0] : *there;
		*home = own[1] < *home ? own[1] : *home;
		most = own[2] > most ? own[2] : most;
	}
	return (to - from == 1 && !c->p->border) || most == 0 || (*there > 0 && *home > 0);
}

struct ap_replay *ap_options_replay(struct ap_ctx *ctx, const struct ap_options *c)
{
	const struct ap_partition *p = c->p;
	struct ap_replay *r = ap_replay_create(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro);
	bool exact = true;

	ap_replay_share(r, in_ticks(p->shared.send_s, c->tick_s, &exact),
		in_ticks(p->shared.send_back_s, c->tick_s, &exact));
	return r;
}

static int64_t body_between(const struct ap_options *c, int64_t from, int64_t to)
{
	int64_t a = from > c->nfirst ? from : c->nfirst, end = c->nfirst + c->nbody, b = to < end ? to : end;

	return b > a ? b - a : 0;
}

int64_t ap_options_left(const struct ap_options *c, int32_t q, uint32_t degree)
{
	bool exact = true;

	return q > 0 ? in_ticks(c->p->degree[degree].left_s, c->tick_s, &exact) : 0;
}

bool ap_options_layer(const struct ap_options *c, uint32_t cls, uint32_t degree, uint32_t kind,
	struct ap_part_choice *out)
{
	if (row_of(c, cls, degree, kind)->absent)
		return false;
	*out = (struct ap_part_choice){.time = *ticks_of(c, cls, degree, kind)};
	row_bytes(row_of(c, cls, degree, kind), out->bytes);
	return true;
}

/* Layers of a part among all. */
static void span(const struct ap_options *c, int32_t q, int64_t a, int64_t b, int64_t *from, int64_t *to)
{
	*from = q == 0 ? 0 : c->nfirst + a;
	*to = q + 1 == c->npart ? c->nlayer : c->nfirst + b;
}

struct ap_ticks ap_options_floor(const struct ap_options *c, int32_t q, uint32_t degree, int64_t a, int64_t b)
{
	const struct ap_ticks *sum = &c->floor[degree * (size_t)(c->nlayer + 1)];
	struct ap_ticks out;
	int64_t from, to;

	span(c, q, a, b, &from, &to);
	for (int k = 0; k < AP_TIMES; k++)
		out.t[k] = sum[to].t[k] - sum[from].t[k];
	out.t[AP_TIME_BESIDE] += body_between(c, from, to) > 0 ? ap_options_left(c, q, degree) : 0;
	return out;
}

const struct ap_pipe *ap_options_pipe(const struct ap_options *c)
{
	return &c->pipe;
}

double ap_options_price(const struct ap_options *c, uint32_t degree, uint32_t k)
{
	const struct ap_partition_run *longest = NULL;
	const struct ap_partition_row *a, *b;
	double ticks = 0;

	for (uint32_t r = 0; r < c->p->nrun; r++)
		if (c->p->run[r].at == AP_AT_BODY && (!longest || c->p->run[r].count > longest->count))
			longest = &c->p->run[r];
	if (!longest)
		return 0;
	a = row_of(c, longest->cls, degree, k - 1);
	b = row_of(c, longest->cls, degree, k);
	for (int t = AP_TIME_FORWARD; t <= AP_TIME_WEIGHT; t++)
		ticks += (double)(ticks_of(c, longest->cls, degree, k)->t[t] -
				  ticks_of(c, longest->cls, degree, k - 1)->t[t]);
	if (a->absent || b->absent || ticks <= 0 || a->kept_bytes <= b->kept_bytes)
		return 0;
	return ticks / (double)(a->kept_bytes - b->kept_bytes);
}

static bool is_body(const struct ap_options *c, int64_t layer)
{
	return layer >= c->nfirst && layer < c->nfirst + c->nbody;
}

static uint32_t first_kind(const struct ap_options *c, uint32_t cls, uint32_t degree)
{
	uint32_t k = 0;

	while (k < c->p->nkind && row_of(c, cls, degree, k)->absent)
		k++;
	return k; /* nkind: the class does not run in this degree */
}

/* The kind by a uniform plan of the body's layer that is the i-th of its part. */
static uint32_t uniform_kind(const struct ap_options *c, int64_t i)
{
	uint32_t k = c->p->nkind - 1;

	while (k > 0 && i >= c->number[k])
		i -= c->number[k--];
	return k;
}

static int compare(const struct ap_part_choice *a, const struct ap_part_choice *b)
{
	for (int k = 0; k < AP_TIMES; k++)
		if (a->time.t[k] != b->time.t[k])
			return a->time.t[k] < b->time.t[k] ? -1 : 1;
	for (int k = 0; k < AP_HELDS; k++)
		if (a->bytes[k] != b->bytes[k])
			return a->bytes[k] < b->bytes[k] ? -1 : 1;
	return (a->said < b->said) - (a->said > b->said);
}

static int by_value(const void *x, const void *y)
{
	const struct ap_part_choice *a = x, *b = y;
	int order = compare(a, b);

	if (order)
		return order;
	if (a->before != b->before)
		return a->before < b->before ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

enum { BYTES = 1, SAID = 2 }; /* what matters beside times */

static bool as_good(const struct ap_part_choice *a, const struct ap_part_choice *b, unsigned what)
{
	for (int k = 0; k < AP_TIMES; k++)
		if (a->time.t[k] > b->time.t[k])
			return false;
	for (int k = 0; (what & BYTES) && k < AP_HELDS; k++)
		if (a->bytes[k] > b->bytes[k])
			return false;
	return !(what & SAID) || a->said >= b->said;
}

/* Is each of the sorted choices as quick as the next one, in all times? */
static bool is_by_times(const struct ap_part_choice *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (int k = 0; k < AP_TIMES; k++)
			if (v[i - 1].time.t[k] > v[i].time.t[k])
				return false;
	return true;
}

enum { MOST_ONCE = 16 }; /* temporary bytes that differ: those of kinds */

struct least { /* of what was met so far */
	size_t nonce, nsaid;
	int64_t once[MOST_ONCE]; /* ascending */
	int sum; /* the bytes that add up, and differ; -1: none do */
	int64_t *bytes; /* [nonce][nsaid] the fewest of them, with so few temporary ones and so late a kind */
};

/* Makes a table of the least bytes that count, if times order all choices, and no more than one sum of bytes
 * differs. */
static bool make_least_table(struct ap_arena *scratch, const struct ap_part_choice *v, size_t n,
	unsigned what, struct least *l)
{
	*l = (struct least){.sum = -1, .nsaid = 1};
	if (!is_by_times(v, n))
		return false;
	for (int k = 0; (what & BYTES) && k < AP_HELD_ONCE; k++) {
		size_t i = 1;

		while (i < n && v[i].bytes[k] == v[0].bytes[k])
			i++;
		if (i < n && l->sum >= 0)
			return false;
		l->sum = i < n ? k : l->sum;
	}
	for (size_t i = 0; i < n; i++) {
		int64_t once = what & BYTES ? v[i].bytes[AP_HELD_ONCE] : 0;
		size_t place = l->nonce;

		if ((what & SAID) && v[i].said >= l->nsaid)
			l->nsaid = v[i].said + (size_t)1;
		while (place > 0 && l->once[place - 1] >= once)
			place--;
		if (place < l->nonce && l->once[place] == once)
			continue;
		if (l->nonce == MOST_ONCE)
			return false;
		memmove(&l->once[place + 1], &l->once[place], (l->nonce++ - place) * sizeof *l->once);
		l->once[place] = once;
	}
	l->bytes = ap_arena_alloc_raw(scratch, l->nonce * l->nsaid + 1, sizeof *l->bytes);
	for (size_t i = 0; i < l->nonce * l->nsaid; i++)
		l->bytes[i] = INT64_MAX;
	return true;
}

/* Notes a choice. False: one that was met is as good. */
static bool is_new_least(struct least *l, const struct ap_part_choice *x, unsigned what)
{
	size_t o = 0, s = what & SAID ? x->said : 0;
	int64_t own = l->sum >= 0 ? x->bytes[l->sum] : 0;

	while ((what & BYTES) && l->once[o] < x->bytes[AP_HELD_ONCE])
		o++;
	if (l->bytes[o * l->nsaid + s] <= own)
		return false;
	for (size_t i = o; i < l->nonce; i++)
		for (size_t k = 0; k <= s; k++) {
			int64_t *least = &l->bytes[i * l->nsaid + k];

			*least = own < *least ? own : *least;
		}
	return true;
}

/* Drops what another one is as good as. Sorted, so that only earlier ones can be. Returns how many stay. Sets
 * *cut if there may be more, as the comparisons have come to their limit. */
static size_t keep_best(struct ap_options *c, struct ap_part_choice *v, size_t n, unsigned what, bool *cut)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	struct least least;
	bool flat = make_least_table(c->ctx->scratch, v, n, what, &least);
	size_t kept = 0;

	for (size_t i = 0; i < n && !*cut; i++) {
		size_t k = 0;

		while (!flat && k < kept && !as_good(&v[k], &v[i], what))
			k++;
		c->compared += k;
		*cut = c->compared > c->most_compared;
		if (flat ? is_new_least(&least, &v[i], what) : k == kept)
			v[kept++] = v[i];
	}
	ap_arena_release(c->ctx->scratch, mark);
	return kept;
}

struct growing {
	struct ap_options *c;
	uint32_t degree;
	int64_t layer, nth; /* the layer that is added; the how manieth of the body in its part */
	AP_VEC(struct ap_part_choice) v;
};

static void add(struct growing *g, const struct ap_part_choice *to, uint32_t before, uint32_t kind,
	uint32_t said)
{
	uint32_t cls = g->c->cls[g->layer];
	const struct ap_ticks *t = ticks_of(g->c, cls, g->degree, kind);
	struct ap_part_choice x = *to;
	int64_t bytes[AP_HELDS];

	row_bytes(row_of(g->c, cls, g->degree, kind), bytes);
	for (int k = 0; k < AP_TIMES; k++)
		x.time.t[k] += t->t[k];
	hold_more(x.bytes, bytes, 1);
	x.before = before;
	x.kind = (uint16_t)kind;
	x.said = (uint16_t)said;
	AP_PUSH(g->c->ctx->scratch, g->v, x);
}

/* Adds the layer to one choice in all kinds that the rule allows. */
static void grow(struct growing *g, const struct ap_part_choice *to, uint32_t before)
{
	const struct ap_partition *p = g->c->p;
	uint32_t cls = g->c->cls[g->layer], standard = first_kind(g->c, cls, g->degree), k;

	if (standard == p->nkind)
		return;
	if (p->kinds != AP_KINDS_FREE && !is_body(g->c, g->layer)) {
		add(g, to, before, standard, to->said);
	} else if (p->kinds == AP_KINDS_UNIFORM) {
		k = uniform_kind(g->c, g->nth);
		add(g, to, before, row_of(g->c, cls, g->degree, k)->absent ? standard : k, to->said);
	} else if (p->kinds == AP_KINDS_LIST) {
		for (k = 0; k <= to->said; k++)
			add(g, to, before, row_of(g->c, cls, g->degree, k)->absent ? standard : k, k);
	} else {
		for (k = 0; k < p->nkind; k++)
			if (!row_of(g->c, cls, g->degree, k)->absent)
				add(g, to, before, k, to->said);
	}
}

static void extend(struct ap_options *c, uint32_t degree, int64_t layer, int64_t nth,
	const struct ap_part_choices *from,
	struct ap_part_choices *out)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	struct growing g = {.c = c, .degree = degree, .layer = layer, .nth = nth};
	bool many = c->nmade >= MANY_CHOICES || c->compared >= c->most_compared;
	size_t n, most = many ? FEW_CHOICES : MOST_CHOICES;
	struct ap_part_choice *v;

	for (uint32_t i = 0; i < from->n; i++)
		grow(&g, &from->v[i], i);
	if (g.v.n)
		qsort(g.v.v, g.v.n, sizeof *g.v.v, by_value);
	out->cut = false;
	n = keep_best(c, g.v.v, g.v.n, (c->is_free ? 0 : BYTES) |
		(c->p->kinds == AP_KINDS_LIST && !c->is_alike ? SAID : 0), &out->cut);
	out->cut = out->cut || from->cut || n > most;
	out->n = (uint32_t)(n > most ? most : n);
	c->nmade += out->n;
	v = ap_arena_alloc_raw(c->ctx->arena, out->n + 1, sizeof *v);
	for (uint32_t i = 0; i < out->n; i++) { /* evenly among more */
		v[i] = g.v.v[n > out->n ? i * (n - 1) / (out->n - 1) : i];
		v[i].self = i;
	}
	out->v = v;
	ap_arena_release(c->ctx->scratch, mark);
}

/* Layers of one run are those at its start. */
static void shift(const struct ap_options *c, int64_t *from, int64_t *to)
{
	if (*from < *to && c->run_to[*from] >= *to) {
		*to -= *from - c->run_from[*from];
		*from = c->run_from[*from];
	}
}

void ap_options_range(const struct ap_options *c, int32_t q, int64_t a, int64_t b, int64_t *from, int64_t *to)
{
	span(c, q, a, b, from, to);
	shift(c, from, to);
}

static struct chain *chain_of(struct ap_options *c, uint32_t degree, int64_t from)
{
	int64_t key[2] = {from, degree};
	bool fresh;
	ap_id id;

	id = ap_map_put(c->chain_id, key, sizeof key, &fresh);
	if (fresh) {
		struct ap_part_choice *none = AP_NEW(c->ctx->arena, struct ap_part_choice);
		struct chain x = {{0}};

		none->said = (uint16_t)(c->p->nkind - 1);
		AP_PUSH(c->ctx->arena, x.by_number, ((struct ap_part_choices){1, none, false}));
		AP_PUSH(c->ctx->arena, c->chains, x);
	}
	return &c->chains.v[id];
}

static const struct ap_part_choices *made_of(struct ap_options *c, uint32_t degree, int64_t from, int64_t to)
{
	struct chain *x;

	shift(c, &from, &to);
	x = chain_of(c, degree, from);
	while (x->by_number.n <= (size_t)(to - from)) {
		int64_t layer = from + (int64_t)x->by_number.n - 1;
		struct ap_part_choices next;

		extend(c, degree, layer, body_between(c, from, layer), &x->by_number.v[x->by_number.n - 1],
			&next);
		AP_PUSH(c->ctx->arena, x->by_number, next);
	}
	return &x->by_number.v[to - from];
}

int64_t ap_options_bytes(const struct ap_options *c, int32_t stage, const struct ap_part_choice *const *part)
{
	const struct ap_instants *x = &c->pipe.instants[stage];
	int32_t nsegment = c->pipe.nsegment;
	int64_t most = 0, held = c->p->fixed_bytes[stage], once = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		int64_t now = 0;

		for (int32_t s = 0; s < nsegment; s++) {
			const struct ap_part_choice *l = part[s] ? part[s] :
				&c->least[ap_schedule_part(c->pipe.scheduler, c->pipe.nstage, stage, s)];
			size_t at = (size_t)i * (size_t)nsegment + (size_t)s;

			now += x->held[at] * l->bytes[AP_HELD_EACH];
			now += x->late ? x->late[at] * l->bytes[AP_HELD_LATE] : 0;
			held += i == 0 ? l->bytes[AP_HELD_ALWAYS] : 0;
			once = l->bytes[AP_HELD_ONCE] > once ? l->bytes[AP_HELD_ONCE] : once;
		}
		most = now > most ? now : most;
	}
	return held + most + once;
}

/* Makes what is beside a part; leaves out instants at which another one holds as much of all. */
static const struct beside *beside_of(struct ap_options *c, int32_t q)
{
	struct beside *y = &c->beside[q];
	const struct ap_instants *x;
	int32_t stage, segment;

	if (y->n > 0)
		return y;
	ap_schedule_spot(c->pipe.scheduler, c->pipe.nstage, q, &stage, &segment);
	x = &c->pipe.instants[stage];
	y->at = AP_NEW_N(c->ctx->arena, struct ap_instant, x->n + 1);
	y->always_bytes = c->p->fixed_bytes[stage];
	for (uint32_t i = 0; i < x->n; i++) {
		const int32_t nsegment = c->pipe.nsegment;
		struct ap_instant now = {0};
		uint32_t k = 0;

		for (int32_t s = 0; s < nsegment; s++) {
			const struct ap_part_choice *l =
				&c->least[ap_schedule_part(c->pipe.scheduler, c->pipe.nstage, stage, s)];
			size_t at = (size_t)i * (size_t)nsegment + (size_t)s;
			int64_t late = x->late ? x->late[at] : 0;

			if (s == segment) {
				now.held = x->held[at];
				now.late = late;
				continue;
			}
			now.bytes += x->held[at] * l->bytes[AP_HELD_EACH] + late * l->bytes[AP_HELD_LATE];
			y->always_bytes += i == 0 ? l->bytes[AP_HELD_ALWAYS] : 0;
			if (l->bytes[AP_HELD_ONCE] > y->once_bytes)
				y->once_bytes = l->bytes[AP_HELD_ONCE];
		}
		while (k < y->n && (y->at[k].bytes < now.bytes || y->at[k].held < now.held ||
			y->at[k].late < now.late))
			k++;
		if (k < y->n)
			continue;
		for (k = 0; k < y->n;)
			if (y->at[k].bytes <= now.bytes && y->at[k].held <= now.held &&
				y->at[k].late <= now.late)
				y->at[k] = y->at[--y->n];
			else
				k++;
		y->at[y->n++] = now;
	}
	return y;
}

/* Bytes of part q's stage with a choice for it. */
static int64_t bytes_with(const struct beside *y, const struct ap_part_choice *own)
{
	int64_t most = 0, once = own->bytes[AP_HELD_ONCE];

	for (uint32_t i = 0; i < y->n; i++) {
		int64_t now = y->at[i].bytes + y->at[i].held * own->bytes[AP_HELD_EACH] +
			y->at[i].late * own->bytes[AP_HELD_LATE];

		most = now > most ? now : most;
	}
	return y->always_bytes + own->bytes[AP_HELD_ALWAYS] + most +
		(once > y->once_bytes ? once : y->once_bytes);
}

static int64_t capacity_of(const struct ap_options *c, int32_t q)
{
	int32_t stage, segment;

	ap_schedule_spot(c->pipe.scheduler, c->pipe.nstage, q, &stage, &segment);
	return c->p->capacity_bytes[stage];
}

/* Could layers from..to - 1 fit part q's stage if each of them were as lean as can be? */
static bool may_fit(struct ap_options *c, int32_t q, int64_t from, int64_t to)
{
	struct ap_part_choice lean = {0};

	for (int k = 0; k < AP_HELD_ONCE; k++)
		lean.bytes[k] = c->lean[to].bytes[k] - c->lean[from].bytes[k];
	return bytes_with(beside_of(c, q), &lean) <= capacity_of(c, q);
}

/* Those that fit, with what is left behind each, without what others are as good as: which kinds later layers
 * may take does not matter any more, nor do, with one segment, bytes. */
static void take_fitting(struct ap_options *c, int32_t q, const struct ap_part_choices *all, int64_t left,
	struct ap_part_choices *out)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	struct ap_part_choice *v = ap_arena_alloc_raw(c->ctx->scratch, all->n + 1, sizeof *v);
	const struct beside *beside = beside_of(c, q);
	int64_t capacity = capacity_of(c, q);
	bool cut = false;
	size_t n = 0;

	for (uint32_t i = 0; i < all->n; i++)
		if (bytes_with(beside, &all->v[i]) <= capacity)
			v[n++] = all->v[i];
	n = keep_best(c, v, n, c->pipe.nsegment == 1 ? 0 : BYTES, &cut);
	for (size_t i = 0; i < n; i++)
		v[i].time.t[AP_TIME_BESIDE] += left;
	*out = (struct ap_part_choices){(uint32_t)n, ap_arena_memdup(c->ctx->arena, v, n * sizeof *v),
		cut || all->cut};
	ap_arena_release(c->ctx->scratch, mark);
}

const struct ap_part_choices *ap_options_of(struct ap_options *c, int32_t q, uint32_t degree, int64_t a,
	int64_t b)
{
	int64_t key[4] = {0, 0, q, degree};
	bool fresh;
	ap_id id;

	ap_options_range(c, q, a, b, &key[0], &key[1]);
	id = ap_map_put(c->range_id, key, sizeof key, &fresh);
	if (fresh) {
		struct ap_part_choices x = {0};

		if (may_fit(c, q, key[0], key[1]))
			take_fitting(c, q, made_of(c, degree, key[0], key[1]),
				body_between(c, key[0], key[1]) > 0 ? ap_options_left(c, q, degree) : 0, &x);
		AP_PUSH(c->ctx->arena, c->ranges, x);
	}
	return &c->ranges.v[id];
}

void ap_options_kinds(struct ap_options *c, int32_t q, uint32_t degree, int64_t a, int64_t b,
	const struct ap_part_choice *choice, uint32_t *kind)
{
	uint32_t self = choice->self;
	int64_t from, to;

	span(c, q, a, b, &from, &to);
	for (int64_t i = to; i > from; i--) {
		const struct ap_part_choice *x = &made_of(c, degree, from, i)->v[self];

		kind[i - 1] = x->kind;
		self = x->before;
	}
}
