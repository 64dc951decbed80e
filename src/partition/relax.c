/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/relax.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "base/wide.h"
#include "partition/borders.h"
#include "partition/simplex.h"
#include "pipeline/schedule.h"

#define MOST_ROUNDS 400
#define FAST_ROUNDS 3
#define STALL 5 /* rounds */
#define PATIENCE 12 /* that part of the work may stall */
#define MOST_BUNDLES 600
#define MOST_ROWS 300 /* of the program at a time */
#define MOST_KEPT 2000 /* with those that wait */
#define FEW_RUNS 4 /* that are told apart; of more, classes are */
#define MOST_COLUMNS 4096
#define STEP 0.12 /* of the way to what the program says */
#define NEAR 0.15 /* of a pass: what ends so near to what is last is on some paths, at first */
#define TOO_FAR 0.15 /* of the gap, by which these paths are shorter than the longest */
#define STALLED 1e-3 /* the bound has to grow so much in */
#define STRETCH 1.5
#define WHOLE 1e-3 /* so little more than a whole layer is none more */
#define NEARLY_WHOLE 0.25 /* so little less may be */
#define WHOLE_ROUNDS 3 /* for a stage at a time */
#define WHOLE_TRIES 3
#define NEAR_ENOUGH 2e-4 /* of the step, between the bound and what fractions take */
#define ROUNDING 1e-12 /* of the sum of all terms' magnitudes: more than doubles lose */
#define VIOLATED 1e-7 /* a row that is less so is kept */
#define NEARLY_FULL 0.9 /* of a stage's room, from which on whole layers are looked at */
#define TOLERATED 1e-9 /* of a stage's room: what doubles may lose */
#define NODE_ROUNDS 2
#define NODE_SPREAD 0.06 /* of bundles, in that of others */
#define NODE_TRIES 12 /* where it has a single plan, as far as is known */
#define NODE_BUNDLES 3000 /* while plans are told apart by whole layers */
#define NODE_KEPT 4000
#define NODE_BYTES (INT64_C(1) << 27) /* of programs that are kept */
#define NODE_ROOM 64 /* for rows that a node finds */
#define FRACTION 1e-3 /* of a layer: what is no more is none */
#define ANY (-1) /* number of layers */
#define WAITING (-1)
#define AT_ONCE 8 /* rows that are added of those that wait */
#define MOST_PIVOTS 1000
#define MOST_SOLVES 60
#define DRIFTED 1e-5 /* of a bound, by which a program with more rows says less: pivots have lost digits */

struct bucket { /* layers that are alike, and the parts that they can be in */
	uint32_t cls;
	int64_t count;
	int32_t from, to; /* parts from .. to - 1 */
	bool is_end; /* in the first or the last part, and no layer by the rules of counts */
};

struct group { /* columns that share out a number of layers: all of them, or some if it is a switch */
	int64_t count;
	int32_t nplace; /* parts */
	bool is_switch, is_body;
};

struct way { /* of running a layer */
	struct ap_part_choice one;
	double on_devices; /* passes of a micro-batch, for each device of the stage, if these are shared */
	bool is_worse; /* than another one */
};

struct column { /* layers in a part and a kind */
	int32_t part;
	uint32_t group;
	bool is_lean; /* of a uniform plan: of the kind that is counted */
	struct way way; /* of a switch: what it is more than in the part's base */
};

struct base { /* what a part has whatever the columns are */
	int64_t layers;
	int64_t lean; /* of these, of uniform plans: of the kind that is counted */
	struct ap_part_choice sum; /* times, and bytes but temporary ones */
	double on_devices;
};

struct bundle { /* of paths: a cost of parts' times */
	int64_t (*pass)[AP_TIMES]; /* [npart] */
	double sends; /* ticks */
};

struct row { /* a x + az z >= b */
	const double *a;
	double az, b;
	int32_t id; /* in the program; WAITING: not yet, as no solution broke it */
};

struct ap_relax {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	struct ap_options *c;
	struct ap_replay *replay;
	uint32_t from, to; /* degrees */
	int32_t npart;
	int64_t nbody;
	int64_t number; /* of uniform plans: layers of each part that take the last kind, or more; else ANY */
	bool queues;
	const int32_t *stage_of, *segment_of; /* [npart] */
	int64_t *send, *back; /* [npart] */
	struct ap_borders *borders; /* NULL: each takes what send and back say */
	struct ap_ticks *time; /* [npart] of the plan that is tried */
	struct ap_replay_flow flow;
	AP_VEC(struct bucket) bucket;
	AP_VEC(struct bundle) bundle;
	bool looked; /* at bundles around a plan */
	double unit; /* ticks of 1 in the program */
	double *layers; /* [npart] of the body */
	uint64_t work, patience; /* work that may bring next to nothing */
	uint64_t whole; /* for how many layers parts have */
	size_t most_bundles, most_rows; /* to keep */
	int64_t plenty; /* ticks: a bound above it may be any; AP_RELAX_NONE: none may */
	bool hurried; /* one is */
};

struct program { /* the columns of one way to look at it, and its rows */
	struct ap_relax *r;
	bool fast; /* only kinds that are quickest; memory is no matter */
	struct base *base; /* [npart] */
	AP_VEC(struct column) col;
	AP_VEC(struct group) group;
	AP_VEC(struct row) row; /* all but the groups' */
	struct ap_simplex *lp;
	int32_t nid;
	uint32_t *of_stage; /* [col] columns by stages, in their order */
	uint32_t *stage_from; /* [nstage + 1] where those of a stage begin in it */
	double *x, *center, *query, *y, *cost, *size; /* [col], y: [nid] */
	double bound, upper; /* what every plan takes; what the center does */
	bool hurries; /* it may end above r->plenty */
	double spread; /* of bundles, in the usual one */
	double *most; /* [npart] layers of the body, of uniform plans that are of interest; NULL: no matter */
	int32_t watched; /* a row; and what the bound grows by where it asks for one more */
	double slope;
};

static int64_t passes(const struct ap_ticks *t)
{
	return t->t[AP_TIME_FORWARD] + t->t[AP_TIME_BACKWARD] + t->t[AP_TIME_WEIGHT];
}

static void add_bucket(struct ap_relax *r, uint32_t cls, int64_t count, int64_t a, int64_t b)
{
	const struct ap_partition *p = r->p;
	struct bucket x = {.cls = cls, .count = count, .to = r->npart};
	int64_t least = ap_partition_least_before(p, r->npart);

	/* a part begins where those before it have enough, and ends where those behind it do */
	while (x.to > 1 && ap_partition_least_before(p, x.to - 1) >= b)
		x.to--;
	while (x.from + 1 < r->npart && r->nbody - least + ap_partition_least_before(p, x.from + 1) <= a)
		x.from++;
	AP_PUSH(r->ctx->arena, r->bucket, x);
}

static void make_buckets(struct ap_relax *r)
{
	const struct ap_partition *p = r->p;
	uint32_t runs = 0;
	int64_t at = 0;

	for (uint32_t i = 0; i < p->nrun; i++)
		runs += p->run[i].at == AP_AT_BODY;
	for (uint32_t i = 0; i < p->nrun; i++) {
		const struct ap_partition_run *run = &p->run[i];
		size_t k = 0;

		if (run->at != AP_AT_BODY) {
			int32_t q = run->at == AP_AT_FIRST ? 0 : r->npart - 1;
			struct bucket x = {run->cls, run->count, q, q + 1, true};

			AP_PUSH(r->ctx->arena, r->bucket, x);
			continue;
		}
		while (runs > FEW_RUNS && k < r->bucket.n && (r->bucket.v[k].is_end ||
			r->bucket.v[k].cls != run->cls))
			k++;
		if (runs <= FEW_RUNS)
			add_bucket(r, run->cls, run->count, at, at + run->count);
		else if (k < r->bucket.n)
			r->bucket.v[k].count += run->count;
		else
			add_bucket(r, run->cls, run->count, 0, r->nbody);
		at += run->count;
	}
}

/* Where borders may be told apart: all sends together take what the best places for them come to. Paths are
 * looked for in plans with borders at those that are best for one micro-batch. */
static void place_borders(struct ap_relax *r)
{
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	int64_t *once = AP_NEW_N(r->ctx->scratch, int64_t, r->npart);
	int64_t *at = AP_NEW_N(r->ctx->scratch, int64_t, r->npart);

	r->borders = ap_borders_make(r->ctx, r->p, r->c, r->from, r->to);
	for (int32_t q = 0; q < r->npart; q++)
		once[q] = 1;
	ap_borders_least(r->borders, once, once, at);
	for (int32_t q = 0; q + 1 < r->npart; q++) {
		r->send[q] = ap_borders_send(r->borders, at[q]);
		r->back[q] = ap_borders_send_back(r->borders, at[q]);
	}
	ap_arena_release(r->ctx->scratch, mark);
}

struct ap_relax *ap_relax_create(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_options *c,
	struct ap_replay *replay, uint32_t from, uint32_t to)
{
	struct ap_relax *r = AP_NEW(ctx->arena, struct ap_relax);
	struct ap_arena *arena = ctx->arena;
	size_t n = (size_t)p->nstage * (size_t)p->nsegment;
	int32_t *stage_of = AP_NEW_N(arena, int32_t, n), *segment_of = AP_NEW_N(arena, int32_t, n);
	int64_t send, back;

	*r = (struct ap_relax){.ctx = ctx, .p = p, .c = c, .replay = replay, .from = from, .to = to,
		.number = ANY, .plenty = AP_RELAX_NONE,
		.npart = (int32_t)n, .nbody = ap_partition_body(p), .stage_of = stage_of,
		.segment_of = segment_of,
		.send = AP_NEW_N(arena, int64_t, n), .back = AP_NEW_N(arena, int64_t, n),
		.time = AP_NEW_N(arena, struct ap_ticks, n), .layers = AP_NEW_N(arena, double, n),
		.flow = {ap_arena_alloc(arena, n, sizeof(int64_t[AP_TIMES])), AP_NEW_N(arena, int64_t, n),
			AP_NEW_N(arena, int64_t, n)}};
	r->queues = ap_options_sends(c, from, to, &send, &back);
	for (int32_t q = 0; q < r->npart; q++) {
		ap_schedule_spot(p->scheduler, p->nstage, q, &stage_of[q], &segment_of[q]);
		r->send[q] = q + 1 < r->npart ? send : 0;
		r->back[q] = q + 1 < r->npart ? back : 0;
	}
	if (p->border && r->npart > 1)
		place_borders(r);
	make_buckets(r);
	return r;
}

uint64_t ap_relax_work(const struct ap_relax *r)
{
	return r->work;
}

static bool is_quicker(const struct ap_part_choice *a, const struct ap_part_choice *b)
{
	for (int k = 0; k < AP_TIMES; k++)
		if (a->time.t[k] > b->time.t[k])
			return false;
	return true;
}

static bool is_leaner(const struct ap_part_choice *a, const struct ap_part_choice *b)
{
	for (int k = 0; k < AP_HELDS; k++)
		if (a->bytes[k] > b->bytes[k])
			return false;
	return true;
}

static bool is_better(const struct program *x, const struct way *a, const struct way *b)
{
	return is_quicker(&a->one, &b->one) && a->on_devices <= b->on_devices &&
	       (x->fast || is_leaner(&a->one, &b->one));
}

/* The ways in which a layer of the bucket can run that no other is better than. Returns how many. */
static size_t ways(const struct program *x, const struct bucket *b, struct way *out)
{
	const struct ap_relax *r = x->r;
	size_t n = 0, kept = 0;

	for (uint32_t d = r->from; d < r->to; d++)
		for (uint32_t k = 0; k < r->p->nkind; k++) {
			struct way w = {.on_devices = 0};

			if (!ap_options_layer(r->c, b->cls, d, k, &w.one))
				continue;
			if (r->p->devices > 0)
				w.on_devices = (double)r->p->degree[d].devices *
					(double)passes(&w.one.time);
			out[n++] = w;
			if (r->number == 0 || (b->is_end && r->p->kinds != AP_KINDS_FREE))
				break; /* its first kind */
		}
	if (r->number > 0 && !b->is_end)
		return n; /* both kinds, as they are counted */
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		for (; k < n; k++)
			if (k != i && is_better(x, &out[k], &out[i]) &&
				(k < i || !is_better(x, &out[i], &out[k])))
				break;
		out[i].is_worse = k < n;
	}
	for (size_t i = 0; i < n; i++)
		if (!out[i].is_worse)
			out[kept++] = out[i];
	return kept;
}

static void hold(struct base *b, const struct way *w, int64_t times)
{
	for (int k = 0; k < AP_TIMES; k++)
		b->sum.time.t[k] += times * w->one.time.t[k];
	for (int k = 0; k < AP_HELD_ONCE; k++)
		b->sum.bytes[k] += times * w->one.bytes[k];
	b->on_devices += (double)times * w->on_devices;
}

/* The layers of the body that a part has: exactly, if *exact. */
static int64_t part_count(const struct ap_relax *r, int32_t q, bool *exact)
{
	const struct ap_partition *p = r->p;

	*exact = p->counts != AP_COUNTS_FREE || r->npart == 1;
	if (p->counts == AP_COUNTS_GIVEN)
		return p->count[q];
	return *exact ? r->nbody / r->npart : ap_partition_least(p, q);
}

static void add_group(struct program *x, int64_t count, int32_t from, int32_t to,
	const struct way *way, size_t nway, struct group like)
{
	struct ap_arena *arena = x->r->ctx->arena;
	uint32_t id = (uint32_t)x->group.n;

	if (count == 0 || nway == 0)
		return;
	like.count = count;
	like.nplace = to - from;
	AP_PUSH(arena, x->group, like);
	for (int32_t q = from; q < to; q++) {
		/* More layers of the kind that is counted are for memory alone. */
		bool enough = x->fast && x->base[q].lean && is_quicker(&way[0].one, &way[1].one) &&
			way[0].on_devices <= way[1].on_devices;

		for (size_t k = 0; k < (enough ? 1 : nway); k++)
			AP_PUSH(arena, x->col, ((struct column){q, id, like.is_body && k > 0, way[k]}));
	}
}

/* Moves the way that is as quick as all others to the front. Returns false if there is none. */
static bool first_quickest(struct way *way, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct way swap = way[i];
		size_t k = 0;

		while (k < n && is_quicker(&way[i].one, &way[k].one))
			k++;
		if (k < n)
			continue;
		way[i] = way[0];
		way[0] = swap;
		return true;
	}
	return false;
}

/* Layers whose part is known: in the quickest way, from which some switch to others. */
static void add_known(struct program *x, int32_t q, int64_t count, const struct way *way, size_t n,
	bool is_body)
{
	struct ap_mark mark = ap_arena_mark(x->r->ctx->scratch);
	struct way *more = AP_NEW_N(x->r->ctx->scratch, struct way, n);

	for (size_t k = 1; k < n; k++) {
		for (int i = 0; i < AP_TIMES; i++)
			more[k - 1].one.time.t[i] = way[k].one.time.t[i] - way[0].one.time.t[i];
		for (int i = 0; i < AP_HELDS; i++)
			more[k - 1].one.bytes[i] = way[k].one.bytes[i] - way[0].one.bytes[i];
		more[k - 1].on_devices = way[k].on_devices - way[0].on_devices;
	}
	hold(&x->base[q], way, count);
	x->base[q].layers += is_body ? count : 0;
	add_group(x, count, q, q + 1, more, n - 1, (struct group){.is_switch = true});
	ap_arena_release(x->r->ctx->scratch, mark);
}

/* Parts with no fewer layers than are to be of the last kind have these; returns how many layers that are. */
static int64_t add_lean(struct program *x, const struct bucket *b, const struct way *way)
{
	struct ap_relax *r = x->r;
	int64_t all = 0;

	for (int32_t q = b->from; q < b->to; q++) {
		if (ap_partition_least(r->p, q) < r->number)
			continue;
		hold(&x->base[q], &way[1], r->number);
		x->base[q].layers += r->number;
		x->base[q].lean = r->number;
		all += r->number;
	}
	return all;
}

static void lay_bucket(struct program *x, const struct bucket *b, bool alone, struct way *way)
{
	struct ap_relax *r = x->r;
	bool tight = alone && ap_partition_least_before(r->p, r->npart) == r->nbody, exact = b->is_end;
	bool quickest;
	int64_t left = b->count;
	size_t n = ways(x, b, way);

	/* Ways that are counted stay in the order of kinds. */
	quickest = n > 0 && (b->is_end || r->number <= 0) && first_quickest(way, n);
	for (int32_t q = b->from; q < b->to && quickest && (b->is_end || alone); q++) {
		int64_t own = b->is_end ? b->count : part_count(r, q, &exact);

		if (n > 1 && !exact && !b->is_end && !tight)
			continue;
		own = own < left ? own : left;
		add_known(x, q, own, way, n, !b->is_end);
		left -= own;
	}
	if (r->number > 0 && alone && !b->is_end)
		left -= add_lean(x, b, way);
	add_group(x, left, b->from, b->to, way, n, (struct group){.is_body = !b->is_end});
}

static void list_by_stages(struct program *x)
{
	const struct ap_relax *r = x->r;

	x->of_stage = AP_NEW_N(r->ctx->arena, uint32_t, x->col.n + 1);
	x->stage_from = AP_NEW_N(r->ctx->arena, uint32_t, r->p->nstage + 1);
	for (size_t j = 0; j < x->col.n; j++)
		x->stage_from[r->stage_of[x->col.v[j].part] + 1]++;
	for (int32_t s = 0; s < r->p->nstage; s++)
		x->stage_from[s + 1] += x->stage_from[s];
	for (uint32_t j = 0; j < x->col.n; j++) {
		uint32_t *at = &x->stage_from[r->stage_of[x->col.v[j].part]];

		x->of_stage[(*at)++] = j;
	}
	/* Each has moved to where the next one begins. */
	memmove(&x->stage_from[1], x->stage_from, (size_t)r->p->nstage * sizeof *x->stage_from);
	x->stage_from[0] = 0;
}

/* Ticks that are left behind part q beside its layers, which it may have none of. */
static int64_t least_left(const struct ap_relax *r, int32_t q)
{
	int64_t least = INT64_MAX;
	bool exact;

	for (uint32_t d = r->from; d < r->to; d++) {
		int64_t own = ap_options_left(r->c, q, d);

		least = own < least ? own : least;
	}
	return part_count(r, q, &exact) > 0 && least < INT64_MAX ? least : 0;
}

/* Columns, and what needs none: layers whose part is known. Returns false if there are too many. */
static bool lay_out(struct program *x)
{
	struct ap_relax *r = x->r;
	struct ap_arena *arena = r->ctx->arena;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct way *way = AP_NEW_N(r->ctx->scratch, struct way, (r->to - r->from) * r->p->nkind + 1);
	size_t body = 0;

	for (size_t i = 0; i < r->bucket.n; i++)
		body += !r->bucket.v[i].is_end;
	x->base = AP_NEW_N(arena, struct base, r->npart);
	for (int32_t q = 0; q < r->npart; q++)
		x->base[q].sum.time.t[AP_TIME_BESIDE] = least_left(r, q);
	for (uint32_t i = 0; i < r->bucket.n && x->col.n <= MOST_COLUMNS; i++)
		lay_bucket(x, &r->bucket.v[i], body == 1, way);
	ap_arena_release(r->ctx->scratch, mark);
	if (x->col.n > MOST_COLUMNS)
		return false;
	list_by_stages(x);
	x->x = AP_NEW_N(arena, double, x->col.n + 1);
	x->center = AP_NEW_N(arena, double, x->col.n + 1);
	x->query = AP_NEW_N(arena, double, x->col.n + 1);
	x->cost = AP_NEW_N(arena, double, x->col.n + 1);
	x->size = AP_NEW_N(arena, double, x->col.n + 1);
	return true;
}

/* Keeps a row for bounds, and gives it to the program. */
static void add_row(struct program *x, const double *a, double az, double b)
{
	struct row row = {a, az, b, ap_simplex_add(x->lp, a, az, b)};

	if (row.id >= 0) {
		AP_PUSH(x->r->ctx->arena, x->row, row);
		x->nid = row.id + 1;
	}
}

static void add_bundle(struct program *x, const struct bundle *b, bool at_once)
{
	struct ap_relax *r = x->r;
	double *a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1),
		by = 1 / ((double)AP_REPLAY_FLOW * r->unit);
	double sum = b->sends;

	for (size_t j = 0; j < x->col.n; j++) {
		const struct column *c = &x->col.v[j];

		for (int k = 0; k < AP_TIMES; k++)
			a[j] -= (double)b->pass[c->part][k] * (double)c->way.one.time.t[k];
		a[j] *= by;
	}
	for (int32_t q = 0; q < r->npart; q++)
		for (int k = 0; k < AP_TIMES; k++)
			sum += (double)b->pass[q][k] * (double)x->base[q].sum.time.t[k];
	if (at_once)
		add_row(x, a, 1, sum * by);
	else
		AP_PUSH(r->ctx->arena, x->row, ((struct row){a, 1, sum * by, WAITING}));
	r->work += x->col.n;
}

/* Micro-batches that the objective counts. */
static double rounds_of(const struct ap_relax *r)
{
	return r->p->objective == AP_OBJECTIVE_STEP ? (double)r->p->nmicro : 1;
}

/* What the stages are busy on their devices is no more than all devices have in a step, however they are
 * shared: a row of z, and what the plan in fractions has of it, in ticks. */
static void add_shared(struct program *x)
{
	struct ap_relax *r = x->r;
	double *a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1), base = 0;
	double by = rounds_of(r) / ((double)r->p->devices * r->unit);

	for (size_t j = 0; j < x->col.n; j++)
		a[j] = -by * x->col.v[j].way.on_devices;
	for (int32_t q = 0; q < r->npart; q++)
		base += x->base[q].on_devices;
	add_row(x, a, 1, base * by);
}

static int64_t shared_of(const struct program *x, const double *layers)
{
	const struct ap_relax *r = x->r;
	double sum = 0;

	if (r->p->devices == 0)
		return 0;
	for (size_t j = 0; j < x->col.n; j++)
		sum += layers[j] * x->col.v[j].way.on_devices;
	for (int32_t q = 0; q < r->npart; q++)
		sum += x->base[q].on_devices;
	return (int64_t)(sum * rounds_of(r) / (double)r->p->devices);
}

/* The times of a plan in fractions. */
static void take_times(const struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	double *sum = AP_NEW_N(r->ctx->scratch, double, r->npart * AP_TIMES);

	for (size_t j = 0; j < x->col.n; j++) {
		const struct column *c = &x->col.v[j];

		for (int k = 0; layers[j] > 0 && k < AP_TIMES; k++)
			sum[c->part * AP_TIMES + k] += layers[j] * (double)c->way.one.time.t[k];
	}
	for (int32_t q = 0; q < r->npart; q++)
		for (int k = 0; k < AP_TIMES; k++)
			r->time[q].t[k] = x->base[q].sum.time.t[k] + (int64_t)sum[q * AP_TIMES + k];
}

static void keep_bundle(struct ap_relax *r)
{
	size_t bytes = (size_t)r->npart * sizeof(int64_t[AP_TIMES]);
	struct bundle b = {.pass = ap_arena_memdup(r->ctx->arena, r->flow.pass, bytes)};

	if (r->borders) {
		b.sends = ap_borders_least(r->borders, r->flow.send, r->flow.send_back, NULL);
		r->work += (uint64_t)r->npart;
	}
	for (int32_t q = 0; q < r->npart && !r->borders; q++)
		b.sends += (double)r->flow.send[q] * (double)r->send[q] +
			   (double)r->flow.send_back[q] * (double)r->back[q];
	b.sends += ap_replay_once(r->replay, &r->flow);
	AP_PUSH(r->ctx->arena, r->bundle, b);
}

/* What the plan in fractions takes, in ticks. */
static int64_t value_of(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	int64_t value = shared_of(x, layers), end;

	take_times(x, layers);
	ap_arena_release(r->ctx->scratch, mark);
	if (r->p->objective == AP_OBJECTIVE_STEP) {
		r->work += ap_replay_steps(r->replay);
		end = ap_replay_end(r->replay, r->time, r->send, r->back);
		return end > value ? end : value;
	}
	for (int32_t s = 0; s < r->p->nstage; s++) {
		int64_t sum = 0;

		for (int32_t q = 0; q < r->npart; q++)
			sum += r->stage_of[q] == s ? passes(&r->time[q]) : 0;
		value = sum > value ? sum : value;
	}
	return value;
}

/*
 * Paths that are known beforehand, one for each stage: a micro-batch goes to it through the parts before its
 * first one, it makes all its passes, and the last of them goes back through these parts, unless that may be
 * a pass for weights.
 */
static void straight_bundles(struct ap_relax *r)
{
	const struct ap_partition *p = r->p;

	for (int32_t s = 0; s < p->nstage; s++) {
		int32_t ends = p->scheduler->splits ? s : 0;

		memset(r->flow.pass, 0, (size_t)r->npart * sizeof *r->flow.pass);
		memset(r->flow.send, 0, (size_t)r->npart * sizeof *r->flow.send);
		memset(r->flow.send_back, 0, (size_t)r->npart * sizeof *r->flow.send_back);
		r->flow.there = r->flow.home = 0;
		for (int32_t q = 0; q < r->npart && r->stage_of[q] != s; q++) {
			r->flow.pass[q][AP_TIME_FORWARD] = AP_REPLAY_FLOW;
			r->flow.send[q] = AP_REPLAY_FLOW;
			if (!p->scheduler->splits)
				r->flow.pass[q][AP_TIME_BACKWARD] = r->flow.send_back[q] = AP_REPLAY_FLOW;
		}
		for (int32_t q = 0; q < r->npart; q++) {
			for (int k = AP_TIME_FORWARD; k <= AP_TIME_WEIGHT && r->stage_of[q] == s; k++)
				r->flow.pass[q][k] = p->nmicro * AP_REPLAY_FLOW;
			if (r->stage_of[q] == s)
				r->flow.pass[q][AP_TIME_SLOWED] = AP_REPLAY_FLOW;
			if (r->stage_of[q] == ends)
				r->flow.pass[q][AP_TIME_UPDATE] = AP_REPLAY_FLOW;
		}
		keep_bundle(r);
	}
}

/* The longest of the bundles in a plan in fractions, in ticks. */
static int64_t longest_bundle(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	double most = 0;

	take_times(x, layers);
	for (size_t i = 0; i < r->bundle.n; i++) {
		double sum = r->bundle.v[i].sends;

		for (int32_t q = 0; q < r->npart; q++)
			for (int k = 0; k < AP_TIMES; k++)
				sum += (double)r->bundle.v[i].pass[q][k] * (double)r->time[q].t[k];
		most = fmax(most, sum);
	}
	ap_arena_release(r->ctx->scratch, mark);
	return (int64_t)(most / (double)AP_REPLAY_FLOW);
}

/* Bundles of the largest stage: all that there are. */
static void stage_bundles(struct ap_relax *r)
{
	for (int32_t s = 0; s < r->p->nstage; s++) {
		memset(r->flow.pass, 0, (size_t)r->npart * sizeof *r->flow.pass);
		r->flow.there = r->flow.home = 0;
		for (int32_t q = 0; q < r->npart; q++)
			for (int k = AP_TIME_FORWARD; k <= AP_TIME_WEIGHT; k++)
				r->flow.pass[q][k] = r->stage_of[q] == s ? AP_REPLAY_FLOW : 0;
		keep_bundle(r);
	}
}

/* Each group's layers, shared out evenly, in the first way of each part, but those that are counted. */
static void spread_evenly(struct program *x, double *layers)
{
	double number = (double)x->r->number, mean = (double)x->r->nbody / x->r->npart;
	double lean = number > 0 ? fmin(1, number / mean) : 0;

	for (size_t j = 0; j < x->col.n; j++) {
		const struct column *c = &x->col.v[j];
		const struct group *g = &x->group.v[c->group];
		double each = (double)g->count / g->nplace;

		if (lean > 0 && g->is_body)
			layers[j] = each * (x->base[c->part].lean ? !c->is_lean : c->is_lean ? lean
				: 1 - lean);
		else if (!g->is_switch && (j == 0 || c[-1].part != c->part || c[-1].group != c->group))
			layers[j] = each;
	}
}

struct mixture { /* of rows: what they add up to, less what the columns have in it at most */
	double sum, size; /* and of all its terms' magnitudes */
	double weight; /* of z */
};

AP_WIDE static void weigh_row(const double *restrict a, double times, size_t n, double *restrict cost,
	double *restrict size)
{
	for (size_t j = 0; j < n; j++) {
		cost[j] -= times * a[j];
		size[j] += fabs(times * a[j]);
	}
}

/* Rows times y; without those that bound z, unless with_z. */
static struct mixture mix(struct program *x, const double *y, bool with_z)
{
	struct ap_relax *r = x->r;
	struct mixture m = {0, 0, 0};

	memset(x->cost, 0, x->col.n * sizeof *x->cost);
	memset(x->size, 0, x->col.n * sizeof *x->size);
	for (size_t i = 0; i < x->row.n; i++) {
		const struct row *row = &x->row.v[i];
		double times = row->id == WAITING ? 0 : y[row->id];

		if (times == 0 || (row->az != 0 && !with_z))
			continue;
		m.weight += times * row->az;
		m.sum += times * row->b;
		m.size += fabs(times * row->b);
		weigh_row(row->a, times, x->col.n, x->cost, x->size);
		r->work += x->col.n / 8;
	}
	for (size_t j = 0; j < x->col.n;) {
		uint32_t own = x->col.v[j].group;
		const struct group *g = &x->group.v[own];
		double least = g->is_switch ? 0 : INFINITY, most = 0;

		for (; j < x->col.n && x->col.v[j].group == own; j++) {
			least = fmin(least, x->cost[j]);
			most = fmax(most, x->size[j]);
		}
		m.sum += least * (double)g->count;
		m.size += most * (double)g->count;
	}
	return m;
}

/* What every plan takes by the multipliers of the program as it is, in its unit. */
static double bound_of(struct program *x)
{
	struct mixture m;

	x->y = AP_NEW_N(x->r->ctx->scratch, double, x->nid + 1);
	ap_simplex_duals(x->lp, x->y, (size_t)x->nid);
	m = mix(x, x->y, true);
	if (m.weight < 0.5)
		return 0;
	for (int32_t i = 0; i < x->nid; i++)
		x->y[i] /= m.weight;
	return (m.sum - ROUNDING * m.size) / m.weight;
}

/* Do the rows that the program cannot keep together rule out all plans? */
static bool rules_out(struct program *x)
{
	double *y = AP_NEW_N(x->r->ctx->scratch, double, x->nid + 1);
	struct mixture m;

	ap_simplex_refusal(x->lp, y, (size_t)x->nid);
	m = mix(x, y, false);
	return m.sum - ROUNDING * m.size > 0;
}

struct held { /* bytes, by enum AP_HELD_*, of layers or parts of them */
	double bytes[AP_HELD_ONCE];
};

static void add_held(struct held *h, double times, const int64_t *bytes)
{
	for (int k = 0; k < AP_HELD_ONCE; k++)
		h->bytes[k] += times * (double)bytes[k];
}

/* Of what a segment has, bytes that its stage holds at an instant. */
static double bytes_at(const struct ap_instants *at, uint32_t i, int32_t nsegment, int32_t segment,
	const struct held *h)
{
	size_t k = (size_t)i * (size_t)nsegment + (size_t)segment;

	return h->bytes[AP_HELD_ALWAYS] + (double)at->held[k] * h->bytes[AP_HELD_EACH] +
	       (at->late ? (double)at->late[k] * h->bytes[AP_HELD_LATE] : 0);
}

/* Temporary bytes that a stage has whatever its layers are. */
static int64_t least_once(const struct ap_relax *r, int32_t stage)
{
	int64_t most = 0, leanest = INT64_MAX;

	for (size_t i = 0; i < r->bucket.n; i++) {
		const struct bucket *b = &r->bucket.v[i];
		int64_t least = INT64_MAX;
		struct ap_part_choice one;

		for (uint32_t d = r->from; d < r->to; d++)
			/* Of uniform plans, each part has a layer of the kind that is counted. */
			for (uint32_t k = r->number > 0 && !b->is_end; k < r->p->nkind; k++)
				if (ap_options_layer(r->c, b->cls, d, k, &one) &&
					one.bytes[AP_HELD_ONCE] < least)
					least = one.bytes[AP_HELD_ONCE];
		if (b->is_end && r->stage_of[b->from] == stage && least < INT64_MAX)
			most = least > most ? least : most;
		else if (!b->is_end)
			leanest = least < leanest ? least : leanest;
	}
	for (int32_t q = 0; q < r->npart && leanest < INT64_MAX; q++) {
		bool exact;

		if (r->stage_of[q] == stage && part_count(r, q, &exact) > 0)
			most = leanest > most ? leanest : most;
	}
	return most;
}

/* The instant at which a stage holds the most; by how many bytes that is more than its room, if it is. */
static double fullest(const struct ap_relax *r, int32_t stage, const struct held *held, double room,
	uint32_t *instant)
{
	const struct ap_instants *at = &ap_options_pipe(r->c)->instants[stage];
	double worst = 0;

	for (uint32_t i = 0; i < at->n; i++) {
		double sum = 0;

		for (int32_t c = 0; c < r->p->nsegment; c++)
			sum += bytes_at(at, i, r->p->nsegment, c,
				&held[ap_schedule_part(r->p->scheduler, r->p->nstage, stage, c)]);
		if (sum - room > worst) {
			worst = sum - room;
			*instant = i;
		}
	}
	return worst;
}

/* The row of a stage's memory at an instant, into a, which is 0: a x >= what is returned. */
static double limit_of(const struct program *x, int32_t stage, uint32_t instant, double room, double *a)
{
	const struct ap_relax *r = x->r;
	const struct ap_instants *at = &ap_options_pipe(r->c)->instants[stage];
	double base = 0;

	for (int32_t q = 0; q < r->npart; q++) {
		struct held h = {{0}};

		if (r->stage_of[q] != stage)
			continue;
		add_held(&h, 1, x->base[q].sum.bytes);
		base += bytes_at(at, instant, r->p->nsegment, r->segment_of[q], &h);
	}
	for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1]; k++) {
		const struct column *c = &x->col.v[x->of_stage[k]];
		struct held h = {{0}};

		add_held(&h, 1, c->way.one.bytes);
		a[x->of_stage[k]] = -bytes_at(at, instant, r->p->nsegment, r->segment_of[c->part], &h) /
			fmax(room, 1);
	}
	return (base - room) / fmax(room, 1);
}

/* What a stage has for layers' bytes. */
static double room_of(const struct ap_relax *r, int32_t stage)
{
	return (double)(r->p->capacity_bytes[stage] - r->p->fixed_bytes[stage] - least_once(r, stage));
}

/* Adds the limits of memory that the plan breaks, one for a stage. Returns how many. */
static int add_memory(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct held *held = AP_NEW_N(r->ctx->scratch, struct held, r->npart); /* by parts */
	int n = 0;

	for (int32_t q = 0; q < r->npart; q++)
		add_held(&held[q], 1, x->base[q].sum.bytes);
	for (size_t j = 0; j < x->col.n; j++)
		if (layers[j] > 0)
			add_held(&held[x->col.v[j].part], layers[j],
				x->col.v[j].way.one.bytes);
	for (int32_t s = 0; s < r->p->nstage && (n == 0 || !x->fast); s++) {
		uint32_t instant = 0;
		double room;

		if (r->p->capacity_bytes[s] == AP_NO_LIMIT)
			continue;
		room = room_of(r, s);
		if (fullest(r, s, held, room, &instant) <= VIOLATED * fabs(room))
			continue;
		n++;
		if (!x->fast) {
			double *a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1);

			add_row(x, a, 0, limit_of(x, s, instant, room, a));
		}
	}
	ap_arena_release(r->ctx->scratch, mark);
	return n;
}

/* Layers that a stage has at least, each lean or not. */
struct slot {
	double count, saved; /* bytes of one, by which it is less if it is lean */
};

/* A stage's memory at an instant, in the unit of its row: what is lean holds less than what is not. */
struct leaning {
	struct slot *slot; /* by what is saved, the most first */
	size_t n;
	double all; /* bytes of these, if none is lean */
	bool takes_more; /* layers: */
	double more, more_lean; /* bytes of another one */
	double room;
};

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* The fewest lean layers of a stage with so many more layers than it has to have; INFINITY: they do not
 * fit. */
static inline double fewest_lean(const struct leaning *l, int64_t more)
{
	double lack = l->all + (double)more * l->more - l->room, n = 0, left = (double)more;
	double saved = l->more - l->more_lean;

	for (size_t i = 0; i <= l->n && lack > TOLERATED; i++) {
		if (left > 0 && saved > 0 && (i == l->n || saved >= l->slot[i].saved)) {
			double k = smaller(left, ceil((lack - TOLERATED) / saved));

			n += k;
			lack -= k * saved;
			left = 0;
		}
		if (i < l->n && lack > TOLERATED) {
			double k = smaller(l->slot[i].count, ceil((lack - TOLERATED) / l->slot[i].saved));

			n += k;
			lack -= k * l->slot[i].saved;
		}
	}
	return lack > TOLERATED ? INFINITY : n;
}

/* These of 0, 1, .. `most` layers more, as far as they fit, into out. Returns how many. */
AP_WIDE static int64_t count_lean(const struct leaning *l, int64_t most, double *out)
{
	int64_t n = 0;

	while (n <= most && (out[n] = fewest_lean(l, n)) < INFINITY)
		n++;
	return n;
}

/* Sorts what is saved into the slots. */
static void put_slot(struct leaning *l, double count, double bytes, double lean)
{
	size_t i = l->n;

	l->all += count * bytes;
	if (count <= 0 || lean >= bytes)
		return;
	for (; i > 0 && l->slot[i - 1].saved < bytes - lean; i--)
		l->slot[i] = l->slot[i - 1];
	l->slot[i] = (struct slot){count, bytes - lean};
	l->n++;
}

static bool has_place_of(const struct column *a, const struct column *b)
{
	return a->group == b->group && a->part == b->part;
}

/* Which columns of a stage are lean: of each group and part, all but the `rank` ways of the most bytes; those
 * that others switch from have 0. Returns false if none is. */
static bool find_lean(const struct program *x, int32_t stage, const double *limit, int rank, bool *lean)
{
	bool any = false;

	for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1]; k++) {
		size_t j = x->of_stage[k];
		const struct column *c = &x->col.v[j];
		int heavier = x->group.v[c->group].is_switch && limit[j] > 0;

		for (size_t i = j; i > 0 && has_place_of(&x->col.v[i - 1], c); i--)
			heavier += limit[i - 1] < limit[j];
		for (size_t i = j + 1; i < x->col.n && has_place_of(&x->col.v[i], c); i++)
			heavier += limit[i] < limit[j];
		lean[j] = heavier >= rank;
		any = any || lean[j];
	}
	return any;
}

/* What a stage has at least, lean or not, into slots, and what layers beside these hold. Returns how many
 * of the slots are layers that do not merely switch. */
static double lay_slots(const struct program *x, int32_t stage, const double *limit, const bool *lean,
	struct leaning *l)
{
	const struct ap_relax *r = x->r;
	double least = 0;

	l->more = l->more_lean = INFINITY;
	/* Known layers, which may switch. */
	for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1];) {
		uint32_t own = x->col.v[x->of_stage[k]].group;
		const struct group *g = &x->group.v[own];
		double bytes = 0, leanest = INFINITY;

		if (!g->is_switch) {
			k++;
			continue;
		}
		for (; k < x->stage_from[stage + 1] && x->col.v[x->of_stage[k]].group == own; k++) {
			size_t j = x->of_stage[k];

			if (lean[j])
				leanest = fmin(leanest, -limit[j]);
			else
				bytes = fmin(bytes, -limit[j]);
		}
		put_slot(l, (double)g->count, bytes, leanest);
	}
	for (int32_t q = 0; q < r->npart; q++) {
		double bytes = INFINITY, leanest = INFINITY, own;
		bool exact;

		if (r->stage_of[q] != stage)
			continue;
		for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1]; k++) {
			size_t j = x->of_stage[k];

			if (x->col.v[j].part != q || x->group.v[x->col.v[j].group].is_switch)
				continue;
			if (lean[j])
				leanest = fmin(leanest, -limit[j]);
			else
				bytes = fmin(bytes, -limit[j]);
		}
		if (bytes == INFINITY)
			continue;
		own = (double)(part_count(r, q, &exact) - x->base[q].layers);
		own = fmax(own, 0);
		put_slot(l, own, bytes, leanest);
		least += own;
		l->more = fmin(l->more, bytes);
		l->more_lean = fmin(l->more_lean, leanest);
	}
	l->takes_more = l->more < INFINITY;
	l->more = l->takes_more ? l->more : 0;
	return least;
}

/*
 * A stage has whole layers in each way: of n layers as many have to be lean as memory asks for, rounded up.
 * A line below these numbers, of all n, is a row: of the lower hull the one at the n of the plan in
 * fractions. Returns whether the plan broke it.
 */
static bool add_lean_row(struct program *x, int32_t stage, const struct leaning *l, double least,
	const bool *lean, const double *layers)
{
	struct ap_relax *r = x->r;
	int64_t most = -(int64_t)least, from = 0, fit = 0;
	double *fewest, n = -least, m = 0, slope = 0, at, *a;

	for (size_t g = 0; g < x->group.n; g++)
		most += x->group.v[g].is_switch ? 0 : x->group.v[g].count;
	most = l->takes_more && most > 0 ? most : 0;
	fewest = AP_NEW_N(r->ctx->scratch, double, most + 1);
	for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1]; k++) {
		size_t j = x->of_stage[k];

		m += lean[j] ? layers[j] : 0;
		n += x->group.v[x->col.v[j].group].is_switch ? 0 : layers[j];
	}
	fit = count_lean(l, most, fewest);
	r->work += (uint64_t)fit * (l->n + 1);
	if (fit == 0) /* which the limit says */
		return false;
	for (int64_t to = 0; (double)to < n && from + 1 < fit;) {
		from = to;
		for (int64_t k = from + 1; k < fit; k++)
			if (to == from || (fewest[k] - fewest[from]) * (double)(to - from) <=
				(fewest[to] - fewest[from]) * (double)(k - from))
				to = k;
		if (to > from)
			slope = (fewest[to] - fewest[from]) / (double)(to - from);
	}
	at = fewest[from] - slope * (double)from;
	if (m >= at + slope * n - WHOLE)
		return false;
	a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1);
	for (uint32_t k = x->stage_from[stage]; k < x->stage_from[stage + 1]; k++) {
		size_t j = x->of_stage[k];

		a[j] = lean[j];
		a[j] -= x->group.v[x->col.v[j].group].is_switch ? 0 : slope;
	}
	add_row(x, a, 0, at - slope * least - ROUNDING);
	return true;
}

/* Adds rows by which whole layers are lean, where memory asks for it. Returns how many. */
static int add_lean_rows(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct held *held = AP_NEW_N(r->ctx->scratch, struct held, r->npart);
	struct leaning l = {.slot = AP_NEW_N(r->ctx->scratch, struct slot, x->col.n + (size_t)r->npart + 1)};
	bool *lean = AP_NEW_N(r->ctx->scratch, bool, x->col.n + 1);
	int n = 0;

	for (int32_t q = 0; q < r->npart; q++)
		add_held(&held[q], 1, x->base[q].sum.bytes);
	for (size_t j = 0; j < x->col.n; j++)
		if (layers[j] > 0)
			add_held(&held[x->col.v[j].part], layers[j], x->col.v[j].way.one.bytes);
	for (int32_t s = 0; s < r->p->nstage; s++) {
		double *limit = AP_NEW_N(r->ctx->scratch, double, x->col.n + 1), room, lack;
		uint32_t instant = 0;

		if (r->p->capacity_bytes[s] == AP_NO_LIMIT)
			continue;
		room = room_of(r, s);
		if (room <= 0 || fullest(r, s, held, room * NEARLY_FULL, &instant) <= 0)
			continue;
		lack = limit_of(x, s, instant, room, limit);
		for (int rank = 1; rank < (int)r->p->nkind && find_lean(x, s, limit, rank, lean); rank++) {
			double least;

			l.n = 0;
			l.all = 0;
			l.room = -lack;
			r->work += x->col.n / 4;
			least = lay_slots(x, s, limit, lean, &l);
			n += add_lean_row(x, s, &l, least, lean, layers);
		}
	}
	ap_arena_release(r->ctx->scratch, mark);
	return n;
}

/* Adds the least numbers of layers of parts that the plan breaks. Returns how many. */
static int add_least(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	double *sum = AP_NEW_N(r->ctx->scratch, double, r->npart);
	int n = 0;

	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body)
			sum[x->col.v[j].part] += layers[j];
	for (int32_t q = 0; q < r->npart; q++) {
		bool exact;
		int64_t least = part_count(r, q, &exact) - x->base[q].layers;
		double *a;

		if (sum[q] >= (double)least - VIOLATED)
			continue;
		a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1);
		for (size_t j = 0; j < x->col.n; j++)
			a[j] = x->col.v[j].part == q && x->group.v[x->col.v[j].group].is_body;
		add_row(x, a, 0, (double)least);
		n++;
	}
	return n;
}

/*
 * Adds rows for parts with fewer layers of the last kind than are asked for, or than they have: that number
 * is concave in the layers of the part, and a straight line from the fewest that it can have to the most is
 * below it. Returns how many.
 */
static int add_numbers(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	double *lean = AP_NEW_N(r->ctx->scratch, double, r->npart);
	double *sum = AP_NEW_N(r->ctx->scratch, double, r->npart);
	int n = 0;

	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body) {
			sum[x->col.v[j].part] += layers[j];
			lean[x->col.v[j].part] += x->col.v[j].is_lean ? layers[j] : 0;
		}
	for (int32_t q = 0; q < r->npart; q++) {
		double few = (double)ap_partition_least(r->p, q), many = x->most[q];
		double number = (double)r->number;
		double slope = many > few ? (fmin(number, many) - fmin(number, few)) / (many - few) : 0;
		double least = (fmin(number, few) - slope * few) * (1 - VIOLATED);
		double *a;

		if (x->base[q].lean || lean[q] - slope * sum[q] >= least - VIOLATED)
			continue;
		a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1);
		for (size_t j = 0; j < x->col.n; j++)
			if (x->col.v[j].part == q && x->group.v[x->col.v[j].group].is_body)
				a[j] = (x->col.v[j].is_lean ? 1 : 0) - slope;
		add_row(x, a, 0, least);
		n++;
	}
	return n;
}

/* Groups of which more layers switch than there are. Returns how many. */
static int add_switches(struct program *x, const double *layers)
{
	struct ap_relax *r = x->r;
	int n = 0;

	for (size_t j = 0; j < x->col.n;) {
		uint32_t own = x->col.v[j].group;
		size_t from = j;
		double sum = 0, *a;

		for (; j < x->col.n && x->col.v[j].group == own; j++)
			sum += layers[j];
		if (!x->group.v[own].is_switch || sum <= (double)x->group.v[own].count * (1 + VIOLATED))
			continue;
		a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1);
		for (size_t k = from; k < j; k++)
			a[k] = -1;
		add_row(x, a, 0, -(double)x->group.v[own].count);
		n++;
	}
	return n;
}

static void admit(struct program *x, struct row *row)
{
	row->id = ap_simplex_add(x->lp, row->a, row->az, row->b);
	if (row->id >= 0)
		x->nid = row->id + 1;
}

/* Adds rows that wait and are broken most. Returns how many. */
static int add_waiting(struct program *x, const double *layers)
{
	double z = ap_simplex_z(x->lp), worst[AT_ONCE];
	struct ap_mark mark = ap_arena_mark(x->r->ctx->scratch);
	uint32_t *some = AP_NEW_N(x->r->ctx->scratch, uint32_t, x->col.n + 1); /* columns with layers */
	struct row *first[AT_ONCE];
	int n = 0, added = 0;
	size_t nsome = 0;

	for (uint32_t j = 0; j < x->col.n; j++)
		if (layers[j] > 0)
			some[nsome++] = j;

	for (size_t i = 0; i < x->row.n; i++) {
		struct row *row = &x->row.v[i];
		double lack = row->b - row->az * z;
		int at;

		if (row->id != WAITING)
			continue;
		for (size_t k = 0; k < nsome; k++)
			lack -= row->a[some[k]] * layers[some[k]];
		if (lack <= (n == AT_ONCE ? worst[n - 1] : VIOLATED))
			continue;
		n += n < AT_ONCE;
		for (at = n - 1; at > 0 && lack > worst[at - 1]; at--) {
			worst[at] = worst[at - 1];
			first[at] = first[at - 1];
		}
		worst[at] = lack;
		first[at] = row;
	}
	ap_arena_release(x->r->ctx->scratch, mark);
	x->r->work += x->row.n * x->col.n / 8;
	for (; added < n; added++) {
		admit(x, first[added]);
		if (first[added]->id < 0)
			break;
	}
	return added;
}

static int64_t ticks_of(const struct ap_relax *r, double bound)
{
	double ticks = bound * r->unit;

	if (ticks > (double)AP_RELAX_NONE)
		return AP_RELAX_NONE;
	return ticks > 0 ? (int64_t)ceil(ticks * (1 - ROUNDING)) : 0;
}

/* Lets the simplex run; in a hurry until its multipliers prove enough: AP_SIMPLEX_ENOUGH. */
static enum ap_simplex_end run_simplex(struct program *x)
{
	struct ap_relax *r = x->r;
	size_t pivots = MOST_PIVOTS;
	uint64_t work;
	double bound;

	if (x->hurries && ap_simplex_solve_to(x->lp, &pivots, (double)r->plenty / r->unit, &r->work) ==
		AP_SIMPLEX_ENOUGH) {
		work = r->work;
		bound = bound_of(x);
		r->work = work; /* as much as if it had not been tried */
		if (ticks_of(r, bound) > r->plenty) {
			x->bound = fmax(x->bound, bound);
			r->hurried = true;
			return AP_SIMPLEX_ENOUGH;
		}
		x->hurries = false;
	}
	return ap_simplex_solve_to(x->lp, &pivots, INFINITY, &r->work);
}

static void add_groups(struct program *x)
{
	struct ap_relax *r = x->r;

	for (uint32_t g = 0; g < x->group.n; g++) {
		struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
		double *a = AP_NEW_N(r->ctx->scratch, double, x->col.n + 1);

		for (size_t j = 0; j < x->col.n; j++)
			a[j] = x->col.v[j].group == g;
		if (!x->group.v[g].is_switch)
			x->nid = ap_simplex_add(x->lp, a, 0, (double)x->group.v[g].count) + 1;
		ap_arena_release(r->ctx->scratch, mark);
	}
}

/* Begins a program anew: of its rows few matter, and pivots may have led nowhere. */
static void begin_anew(struct program *x, size_t known, size_t nfork)
{
	ap_simplex_clear(x->lp);
	x->nid = 0;
	for (size_t i = 0; i < x->row.n; i++)
		x->row.v[i].id = WAITING;
	admit(x, &x->row.v[0]); /* it bounds z */
	add_groups(x);
	for (size_t i = known; i < known + nfork; i++)
		admit(x, &x->row.v[i]);
}

/* Solves with all limits that matter. Returns false if the program failed, with a bound of INFINITY if there
 * is no plan, or if enough is proven. */
static bool solve(struct program *x)
{
	struct ap_relax *r = x->r;
	double most = 0;
	bool anew = false;

	for (int i = 0; i < MOST_SOLVES; i++) {
		struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
		enum ap_simplex_end end = run_simplex(x);
		double bound;
		int n = 0;

		if (end == AP_SIMPLEX_ENOUGH) {
			ap_arena_release(r->ctx->scratch, mark);
			return false;
		}
		if (end == AP_SIMPLEX_NONE) {
			x->bound = rules_out(x) ? INFINITY : x->bound;
			ap_arena_release(r->ctx->scratch, mark);
			return false;
		}
		ap_simplex_x(x->lp, x->x);
		bound = bound_of(x);
		if (bound > x->bound) {
			x->bound = bound;
			x->slope = x->y[x->watched] * (1 - ROUNDING);
		}
		if (end == AP_SIMPLEX_SOLVED) {
			n = add_waiting(x, x->x) + add_least(x, x->x) + add_switches(x, x->x);
			n += r->number > 0 && x->most ? add_numbers(x, x->x) : 0;
			n += x->fast ? 0 : add_memory(x, x->x);
			n += n > 0 || x->fast || r->number > 0 || r->to - r->from > 1 ? 0
				: add_lean_rows(x, x->x);
		}
		ap_arena_release(r->ctx->scratch, mark);
		most = fmax(most, bound);
		if (end == AP_SIMPLEX_SOLVED && !anew && x->watched == 0 && bound < most * (1 - DRIFTED)) {
			begin_anew(x, x->row.n, 0); /* more rows cannot come to less */
			anew = true;
		} else if (n == 0) {
			return end == AP_SIMPLEX_SOLVED;
		}
	}
	return true;
}

static void begin(struct program *x)
{
	struct ap_relax *r = x->r;

	x->lp = ap_simplex_create(r->ctx->arena, x->col.n, MOST_ROWS);
	for (size_t i = 0; i < r->bundle.n; i++)
		add_bundle(x, &r->bundle.v[i], i == 0);
	if (r->p->devices > 0)
		add_shared(x);
	add_groups(x);
}

static int64_t in_ticks(const struct program *x)
{
	return ticks_of(x->r, x->bound);
}

/* Keeps paths of the plan that was tried last. */
static void look(struct program *x, double near)
{
	struct ap_relax *r = x->r;

	r->work += 2 * ap_replay_steps(r->replay);
	ap_replay_spread(r->replay, r->send, r->back, r->queues, (int64_t)(near * r->unit), &r->flow);
	keep_bundle(r);
}

/* A share of what a pass takes, in the unit. */
static double near_of(const struct ap_relax *r)
{
	return NEAR / (double)(r->p->nmicro * r->p->nsegment * 2);
}

/* Bundles of a plan in which one stage is slower than it is, which stay on this stage where they can. */
static void look_around(struct program *x)
{
	struct ap_relax *r = x->r;

	look(x, near_of(r));
	for (int32_t s = 0; s < r->p->nstage; s++) {
		take_times(x, x->center);
		for (int32_t q = 0; q < r->npart; q++)
			for (int k = 0; k < AP_TIMES && r->stage_of[q] == s; k++)
				r->time[q].t[k] = (int64_t)((double)r->time[q].t[k] * STRETCH);
		r->work += ap_replay_steps(r->replay);
		ap_replay_end(r->replay, r->time, r->send, r->back);
		look(x, near_of(r));
	}
}

/* Looks at a plan between the best in fractions so far and the program's own, which is far off. */
static void look_between(struct program *x, double *near)
{
	struct ap_relax *r = x->r;
	const struct row *row;
	double value, own;

	if (x->upper == INFINITY) {
		memcpy(x->center, x->x, x->col.n * sizeof *x->x);
		x->upper = (double)value_of(x, x->center) / r->unit;
	}
	for (size_t j = 0; j < x->col.n; j++)
		x->query[j] = x->center[j] + STEP * (x->x[j] - x->center[j]);
	value = (double)value_of(x, x->query) / r->unit;
	look(x, *near);
	add_bundle(x, &r->bundle.v[r->bundle.n - 1], true);
	row = &x->row.v[x->row.n - 1];
	own = row->b;
	for (size_t j = 0; j < x->col.n; j++)
		own -= row->a[j] * x->query[j];
	if (value - own > TOO_FAR * (value - x->bound)) /* they are too far off to tell */
		*near /= 2;
	else if (value - own < 0.2 * TOO_FAR * (value - x->bound))
		*near *= 1.5;
	if (value < x->upper) {
		x->upper = value;
		memcpy(x->center, x->query, x->col.n * sizeof *x->query);
	}
}

static bool is_done(const struct program *x, int64_t most, uint64_t limit)
{
	return in_ticks(x) > most || x->upper - x->bound < NEAR_ENOUGH * x->upper || x->r->work >= limit ||
	       x->r->bundle.n >= x->r->most_bundles || x->row.n >= x->r->most_rows ||
	       ap_ctx_stopped(x->r->ctx);
}

static void improve(struct program *x, int rounds, int64_t most, uint64_t limit)
{
	double near = near_of(x->r) * x->spread, before = 0;
	uint64_t begun = x->r->work;

	for (int n = 0; solve(x) && n < rounds && x->r->p->objective == AP_OBJECTIVE_STEP; n++) {
		if (is_done(x, most, limit))
			return;
		if (n % STALL == 0 && n > 0 && x->bound < before * (1 + STALLED) &&
			x->r->work - begun > x->r->patience)
			return;
		before = n % STALL ? before : x->bound;
		look_between(x, &near);
	}
}

/* The layers of the body that stages have, in fractions. */
static void stage_layers(const struct program *x, const double *layers, double *sum)
{
	const struct ap_relax *r = x->r;

	memset(sum, 0, (size_t)r->p->nstage * sizeof *sum);
	for (int32_t q = 0; q < r->npart; q++)
		sum[r->stage_of[q]] += (double)x->base[q].layers;
	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body)
			sum[r->stage_of[x->col.v[j].part]] += layers[j];
}

struct whole { /* plans that give a stage so many layers or more */
	double count;
	double bound, more; /* what they take, and with each one more, at least */
	double *center, upper;
	int tries;
	bool done;
};

/* As many layers of a stage as the plan in fractions has, and one more if that is a fraction. */
static void begin_whole(const struct program *all, int32_t stage, double now, double slack, struct whole *w)
{
	const struct ap_relax *r = all->r;
	double base = 0;

	*w = (struct whole){.count = floor(now + slack) + 1, .upper = INFINITY,
		.center = ap_arena_memdup(r->ctx->arena, all->center, (all->col.n + 1) * sizeof *w->center)};
	for (int32_t q = 0; q < r->npart; q++)
		base += r->stage_of[q] == stage ? (double)all->base[q].layers : 0;
	for (size_t j = 0; j < all->col.n; j++) {
		if (!all->group.v[all->col.v[j].group].is_body)
			continue;
		if (r->stage_of[all->col.v[j].part] != stage)
			w->center[j] *= ((double)r->nbody - w->count) / ((double)r->nbody - now);
		else if (now > base)
			w->center[j] *= (w->count - base) / (now - base);
	}
}

/* Goes on with the bound of such plans; bundles that it finds are for all. */
static void go_on(struct program *all, struct ap_simplex *lp, int32_t stage, struct whole *w, int rounds,
	int64_t most, uint64_t limit)
{
	struct ap_relax *r = all->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct program x = *all;
	size_t bundles = r->bundle.n;
	double base = 0, *a = AP_NEW_N(r->ctx->arena, double, x.col.n + 1);

	x.lp = lp;
	ap_simplex_copy(x.lp, all->lp);
	x.row.v = ap_arena_memdup(r->ctx->arena, x.row.v, x.row.n * sizeof *x.row.v);
	x.row.cap = x.row.n;
	x.center = w->center;
	x.upper = w->upper;
	if (all->bound > w->bound) {
		w->bound = all->bound;
		w->more = 0;
	}
	x.bound = w->bound;
	for (int32_t q = 0; q < r->npart; q++)
		base += r->stage_of[q] == stage ? (double)x.base[q].layers : 0;
	for (size_t j = 0; j < x.col.n; j++)
		a[j] = r->stage_of[x.col.v[j].part] == stage && x.group.v[x.col.v[j].group].is_body;
	x.watched = x.nid;
	add_row(&x, a, 0, w->count - base);
	if (rounds && x.fast && w->upper == INFINITY)
		x.upper = (double)value_of(&x, x.center) / r->unit;
	improve(&x, rounds, most, limit);
	w->done = rounds && (x.bound < w->bound * (1 + NEAR_ENOUGH) || ++w->tries > WHOLE_TRIES);
	if (x.bound > w->bound)
		w->more = x.slope;
	w->bound = x.bound;
	w->upper = x.upper;
	for (; bundles < r->bundle.n && x.row.n < MOST_KEPT; bundles++)
		add_bundle(all, &r->bundle.v[bundles], false);
	ap_arena_release(r->ctx->scratch, mark);
}

/* The least that lets stages have n layers more, and the last stage that takes one of them. */
static double easiest(const struct whole *w, int32_t nstage, int32_t n, int32_t *last)
{
	double bound = 0;
	int32_t taken[AP_PARTITION_PARTS] = {0};

	*last = -1;
	for (int32_t i = 0; i < n; i++) {
		double least = INFINITY;
		int32_t best = 0;

		for (int32_t s = 0; s < nstage; s++)
			if (w[s].bound + taken[s] * w[s].more < least) {
				least = w[s].bound + taken[s] * w[s].more;
				best = s;
			}
		taken[best]++;
		bound = least;
		if (!w[best].done)
			*last = best;
	}
	return bound;
}

/* Asks for one layer more of the stage that it is easiest for, if what it has now proves nothing; returns the
 * stage, or -1. */
static int32_t raise_easiest(const struct program *x, struct whole *w, const double *now)
{
	int32_t best = 0;
	double count;

	for (int32_t s = 1; s < x->r->p->nstage; s++)
		best = w[s].bound < w[best].bound ? s : best;
	if (w[best].bound > x->bound * (1 + NEAR_ENOUGH))
		return -1;
	count = w[best].count + 1;
	if (count >= (double)x->r->nbody)
		return -1;
	begin_whole(x, best, now[best], count - 1 - now[best], &w[best]);
	w[best].count = count;
	return best;
}

/*
 * Stages have whole layers: where a plan in fractions, `layers`, has so many at most, some stages have more
 * than that, as many as there are layers left over. What the easiest of them take is a bound. rounds: of a
 * stage at a time; with none, of the bundles that are there.
 */
static void round_up(struct program *x, const double *layers, int rounds, int64_t most, uint64_t limit)
{
	struct ap_relax *r = x->r;
	int32_t nstage = r->p->nstage, n = (int32_t)r->nbody, next = 0;
	double slack = NEARLY_WHOLE;
	double *now = AP_NEW_N(r->ctx->scratch, double, nstage);
	struct whole *w = AP_NEW_N(r->ctx->scratch, struct whole, nstage);
	struct ap_simplex *lp;
	uint64_t begun, left;

	stage_layers(x, layers, now);
	for (int32_t s = 0; s < nstage; s++)
		n -= (int32_t)floor(now[s] + slack);
	if (n < 1) { /* then less may be less */
		slack = WHOLE;
		n = (int32_t)r->nbody;
		for (int32_t s = 0; s < nstage; s++)
			n -= (int32_t)floor(now[s] + slack);
	}
	if (n < 1 || n > nstage || nstage == 1)
		return;
	lp = ap_simplex_create(r->ctx->arena, x->col.n, MOST_ROWS);
	begun = r->work;
	left = limit > begun ? limit - begun : 0;
	for (int32_t s = 0; s < nstage; s++) {
		begin_whole(x, s, now[s], slack, &w[s]);
		go_on(x, lp, s, &w[s], 0, most, limit);
		if (rounds == 0 && s == 0 && 4 * (uint64_t)nstage * (r->work - begun) > left)
			return; /* what it says without rounds is not worth that */
		w[s].done = rounds == 0;
	}
	for (;;) {
		double bound = easiest(w, nstage, n, &next);
		int32_t raised;

		x->bound = bound > x->bound ? bound : x->bound;
		raised = next < 0 && n > 1 ? raise_easiest(x, w, now) : -1;
		if (raised >= 0) {
			n--;
			if (rounds > 0)
				continue;
			next = raised;
		}
		if (next < 0 || in_ticks(x) > most || r->work >= limit || r->bundle.n >= MOST_BUNDLES ||
			x->row.n >= MOST_KEPT || ap_ctx_stopped(r->ctx))
			return;
		go_on(x, lp, next, &w[next], rounds, most, limit);
		w[next].done = w[next].done || rounds == 0;
	}
}

/* Puts `one` in a, which is 0, for columns of the body's layers in a stage. Returns what it has besides. */
static double stage_columns(const struct program *x, int32_t stage, double one, double *a)
{
	const struct ap_relax *r = x->r;
	double base = 0;

	for (int32_t q = 0; q < r->npart; q++)
		base += r->stage_of[q] == stage ? (double)x->base[q].layers : 0;
	for (size_t j = 0; j < x->col.n; j++)
		if (r->stage_of[x->col.v[j].part] == stage && x->group.v[x->col.v[j].group].is_body)
			a[j] = one;
	return base;
}

/* The fewest layers of the body that are in other stages, of plans in fractions that keep the limits of
 * memory. x: the program of these, z at least 0; what it learns of limits stays there. lp: room for it. */
static double fewest_elsewhere(struct program *x, struct ap_simplex *lp, int32_t stage)
{
	struct ap_relax *r = x->r;
	struct program y = *x;
	size_t known = x->row.n + 1;
	double *a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1), base = stage_columns(x, stage, 1, a);

	y.lp = lp;
	ap_simplex_copy(y.lp, x->lp);
	y.row.v = ap_arena_memdup(r->ctx->arena, y.row.v, y.row.n * sizeof *y.row.v);
	y.row.cap = y.row.n;
	add_row(&y, a, 1, (double)r->nbody - base);
	(void)solve(&y);
	for (; known < y.row.n; known++)
		if (y.row.v[known].az == 0)
			add_row(x, y.row.v[known].a, 0, y.row.v[known].b);
	return y.bound;
}

/* A program that has no rows yet but those of groups, and z at least 0. */
static void begin_limits(struct program *y)
{
	struct ap_relax *r = y->r;

	y->lp = ap_simplex_create(r->ctx->arena, y->col.n, MOST_ROWS);
	y->row.v = NULL;
	y->row.n = y->row.cap = 0;
	y->nid = y->watched = 0;
	y->bound = 0;
	add_row(y, AP_NEW_N(r->ctx->arena, double, y->col.n + 1), 1, 0);
	add_groups(y);
}

/* The row by which a stage has as many layers as the limits of y allow in fractions, rounded down, at most.
 * lp: room. Returns false if no plan keeps them. */
static bool cap_stage(struct program *y, struct ap_simplex *lp, int32_t stage, struct row *out)
{
	double elsewhere = fewest_elsewhere(y, lp, stage);
	double *a = AP_NEW_N(y->r->ctx->arena, double, y->col.n + 1);

	if (elsewhere == INFINITY)
		return false;
	*out = (struct row){.a = a, .id = WAITING};
	out->b = stage_columns(y, stage, -1, a) - floor((double)y->r->nbody - elsewhere);
	return true;
}

/* Stages have whole layers: as many as memory allows are the most. */
static void cap_stages(struct program *x)
{
	struct ap_relax *r = x->r;
	struct program y = *x;
	struct ap_simplex *lp = ap_simplex_create(r->ctx->arena, x->col.n, MOST_ROWS);
	struct row row;

	begin_limits(&y);
	for (int32_t s = 0; s < r->p->nstage; s++) {
		if (!cap_stage(&y, lp, s, &row)) {
			x->bound = INFINITY;
			return;
		}
		add_row(x, row.a, 0, row.b);
	}
}

/*
 * Plans that take no more than `most` ticks have as many layers in a stage as all rows allow with z at that:
 * rounded down, these are rows, which hold of such plans alone. Returns false if there are none.
 */
static bool cap_by_time(struct program *x, int64_t most)
{
	struct ap_relax *r = x->r;
	struct program y = *x;
	struct ap_simplex *lp = ap_simplex_create(r->ctx->arena, x->col.n, MOST_ROWS);
	double z = (double)most / r->unit * (1 + VIOLATED);
	struct row row;

	begin_limits(&y);
	for (size_t i = 0; i < x->row.n; i++) {
		const struct row *known = &x->row.v[i];

		row = (struct row){known->a, 0, known->b - known->az * z, WAITING};
		AP_PUSH(r->ctx->arena, y.row, row);
	}
	for (int32_t s = 0; s < r->p->nstage; s++) {
		if (!cap_stage(&y, lp, s, &row))
			return false;
		AP_PUSH(r->ctx->arena, x->row, row);
	}
	return true;
}

struct fork { /* a part, or a stage, has at most or at least so many layers of the body */
	int32_t at;
	bool of_stage, at_most;
	double count;
};

struct node { /* plans on one side of each of some forks */
	const struct node *of; /* NULL: all */
	struct fork fork;
	double bound;
	double *center, *least; /* a fast one of them, in fractions; what its program says */
	uint32_t tries; /* without a fork */
	struct ap_simplex *lp; /* its program, with: NULL: was not kept */
	const int32_t *id; /* [nrow] of all rows */
	size_t nrow;
	struct row *forks; /* [nfork] rows of its own */
	uint32_t nfork;
	int32_t nid;
};

struct tree {
	struct program *all; /* what holds of all plans */
	AP_VEC(struct node *) open;
	AP_VEC(struct ap_simplex *) spare;
	int64_t bytes; /* of programs */
};

static void add_fork(struct program *x, const struct fork *f)
{
	struct ap_relax *r = x->r;
	double *a = AP_NEW_N(r->ctx->arena, double, x->col.n + 1), base = 0;
	double sign = f->at_most ? -1 : 1;

	for (int32_t q = 0; q < r->npart; q++)
		if ((f->of_stage ? r->stage_of[q] : q) == f->at)
			base += (double)x->base[q].layers;
	for (size_t j = 0; j < x->col.n; j++) {
		int32_t q = x->col.v[j].part;

		if ((f->of_stage ? r->stage_of[q] : q) == f->at && x->group.v[x->col.v[j].group].is_body)
			a[j] = sign;
	}
	add_row(x, a, 0, sign * (f->count - base));
}

/* Room for a program; NULL: there are enough. */
static struct ap_simplex *take_room(struct tree *t)
{
	struct ap_arena *arena = t->all->r->ctx->arena;

	if (t->spare.n > 0)
		return t->spare.v[--t->spare.n];
	if (t->bytes > NODE_BYTES)
		return NULL;
	t->bytes += (int64_t)((t->all->col.n + 2) * MOST_ROWS * sizeof(double));
	return ap_simplex_create(arena, t->all->col.n, MOST_ROWS);
}

static void give_back(struct tree *t, struct node *node)
{
	if (node->lp)
		AP_PUSH(t->all->r->ctx->arena, t->spare, node->lp);
	node->lp = NULL;
}

/* The program of a node, without its last fork, in lp; the first rows of *out are those of all. */
static void begin_node(const struct tree *t, struct ap_simplex *lp, const struct node *node,
	struct program *out)
{
	size_t room = t->all->row.n + node->nfork + NODE_ROOM;

	*out = *t->all;
	if (lp != node->lp)
		ap_simplex_copy(lp, node->lp);
	out->lp = lp;
	out->nid = node->nid;
	out->row.v = ap_arena_alloc_raw(t->all->r->ctx->scratch, room, sizeof *out->row.v);
	out->row.cap = room;
	memcpy(out->row.v, t->all->row.v, t->all->row.n * sizeof *out->row.v);
	for (size_t i = 0; i < t->all->row.n; i++)
		out->row.v[i].id = i < node->nrow ? node->id[i] : WAITING;
	for (uint32_t i = 0; i < node->nfork; i++)
		out->row.v[out->row.n++] = node->forks[i];
}

/* Rows that a node has found are for all, and its program is kept. */
static void end_node(struct tree *t, struct program *x, size_t known, uint32_t nfork, struct node *node)
{
	struct ap_arena *arena = t->all->r->ctx->arena;
	int32_t *id = AP_NEW_N(arena, int32_t, x->row.n + 1);

	node->id = id;
	node->nrow = x->row.n - nfork;
	node->nfork = nfork;
	node->forks = AP_NEW_N(arena, struct row, nfork + 1);
	memcpy(node->forks, &x->row.v[known], nfork * sizeof *node->forks);
	for (size_t i = 0; i < x->row.n; i++) {
		if (i >= known && i < known + nfork)
			continue;
		*id++ = x->row.v[i].id;
		if (i < known)
			continue;
		AP_PUSH(arena, t->all->row, x->row.v[i]);
		t->all->row.v[t->all->row.n - 1].id = WAITING;
	}
	node->lp = x->lp;
	node->nid = x->nid;
}

/* Bounds a node that begins as another: the one that it was told apart from, or itself. */
static void settle(struct tree *t, struct node *node, const struct node *from, int64_t most,
	uint64_t limit)
{
	struct ap_relax *r = t->all->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct ap_simplex *lp = from == node ? node->lp : take_room(t);
	struct program x;
	size_t known = t->all->row.n, before;

	if (!lp)
		return;
	begin_node(t, lp, from, &x);
	r->work += x.row.n * x.col.n / 16;
	if (from != node)
		add_fork(&x, &node->fork);
	else
		begin_anew(&x, known, from->nfork);
	x.center = AP_NEW_N(r->ctx->arena, double, x.col.n + 1);
	x.upper = INFINITY;
	x.bound = node->bound;
	x.watched = 0;
	x.spread = from == node ? 0 : NODE_SPREAD; /* of a single plan its longest path tells all */
	before = x.row.n;
	improve(&x, NODE_ROUNDS, most, limit);
	if (x.upper == INFINITY && in_ticks(&x) <= most) { /* pivots have led nowhere */
		begin_anew(&x, known, before - known);
		improve(&x, NODE_ROUNDS, most, limit);
	}
	if (x.upper == INFINITY)
		memcpy(x.center, x.x, x.col.n * sizeof *x.x);
	node->bound = x.bound;
	node->center = x.center;
	node->least = ap_arena_memdup(r->ctx->arena, x.x, (x.col.n + 1) * sizeof *x.x);
	end_node(t, &x, known, (uint32_t)(before - known), node);
	if (in_ticks(&x) > most) /* it is not told apart */
		give_back(t, node);
	ap_arena_release(r->ctx->scratch, mark);
}

/* Does a node know already that a part, or a stage, has no such fraction of layers? Then its program is not
 * solved well. */
static bool is_known(const struct node *node, int32_t at, bool of_stage, double layers)
{
	for (; node->of; node = node->of)
		if (node->fork.at == at && node->fork.of_stage == of_stage && (node->fork.at_most
			? layers > node->fork.count : layers < node->fork.count))
			return true;
	return false;
}

/* The stage, else the part, of which a plan has the most of a fraction of a layer. Returns false if all are
 * whole. */
static bool find_fork(const struct program *x, const struct node *node, const double *layers,
	struct fork *out)
{
	const struct ap_relax *r = x->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	double *stage = AP_NEW_N(r->ctx->scratch, double, r->p->nstage);
	double *part = AP_NEW_N(r->ctx->scratch, double, r->npart), most = FRACTION;
	bool found = false;

	for (int32_t q = 0; q < r->npart; q++)
		part[q] = (double)x->base[q].layers;
	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body)
			part[x->col.v[j].part] += layers[j];
	for (int32_t q = 0; q < r->npart; q++)
		stage[r->stage_of[q]] += part[q];
	for (int of_stage = 1; of_stage >= 0 && !found; of_stage--) {
		for (int32_t i = 0; i < (of_stage ? r->p->nstage : r->npart); i++) {
			double n = of_stage ? stage[i] : part[i], open = fmin(n - floor(n), ceil(n) - n);

			if (open <= most || is_known(node, i, of_stage, n))
				continue;
			most = open;
			*out = (struct fork){i, of_stage, true, floor(n)};
			found = true;
		}
	}
	ap_arena_release(r->ctx->scratch, mark);
	return found;
}

/* The node of all plans. */
static struct node *plant(struct tree *t, const double *center)
{
	struct program *x = t->all;
	struct ap_arena *arena = x->r->ctx->arena;
	struct node *root = AP_NEW(arena, struct node);
	int32_t *id;

	x->lp = take_room(t);
	begin_anew(x, x->row.n, 0);
	(void)solve(x);
	root->bound = x->bound;
	root->center = ap_arena_memdup(arena, center, (x->col.n + 1) * sizeof *center);
	root->least = ap_arena_memdup(arena, x->x, (x->col.n + 1) * sizeof *x->x);
	root->lp = x->lp;
	root->nid = x->nid;
	root->nrow = x->row.n;
	root->id = id = AP_NEW_N(arena, int32_t, x->row.n);
	for (size_t i = 0; i < x->row.n; i++)
		id[i] = x->row.v[i].id;
	return root;
}

/* The node with the least bound. */
static size_t least_node(const struct tree *t)
{
	size_t least = 0;

	for (size_t i = 1; i < t->open.n; i++)
		least = t->open.v[i]->bound < t->open.v[least]->bound ? i : least;
	return least;
}

/*
 * Parts have whole layers: where the least plan of a node, in fractions, has a part of one, plans have less,
 * or more. The node with the least bound is the next one that is told apart like that. The bound is one of
 * plans that take no more than `most`.
 */
static void branch(struct program *x, const double *center, int64_t most, uint64_t limit)
{
	struct ap_relax *r = x->r;
	struct ap_arena *arena = r->ctx->arena;
	struct tree t = {.all = x};
	struct fork fork;

	if (most < AP_RELAX_NONE / 2 && !cap_by_time(x, most)) {
		x->bound = INFINITY;
		return;
	}
	AP_PUSH(arena, t.open, plant(&t, center));
	r->most_bundles = NODE_BUNDLES;
	r->most_rows = NODE_KEPT;
	for (;;) {
		size_t at = least_node(&t);
		struct node *node = t.open.v[at];

		x->bound = node->bound > x->bound ? node->bound : x->bound;
		if (!node->lp || in_ticks(x) > most || r->work >= limit || r->bundle.n >= r->most_bundles ||
			x->row.n >= r->most_rows || ap_ctx_stopped(r->ctx))
			return;
		if (!find_fork(x, node, node->center, &fork) && !find_fork(x, node, node->least, &fork)) {
			if (node->tries++ == NODE_TRIES)
				return;
			settle(&t, node, node, most, limit);
			continue;
		}
		t.open.v[at] = t.open.v[--t.open.n];
		for (int side = 0; side < 2; side++) {
			struct node *part = AP_NEW(arena, struct node);

			*part = (struct node){.of = node, .fork = fork, .bound = node->bound,
				.center = node->center, .least = node->least};
			part->fork.at_most = side == 0;
			part->fork.count = fork.count + side;
			settle(&t, part, node, most, limit);
			AP_PUSH(arena, t.open, part);
		}
		give_back(&t, node);
	}
}

static void keep_layers(const struct program *x)
{
	struct ap_relax *r = x->r;

	for (int32_t q = 0; q < r->npart; q++)
		r->layers[q] = (double)x->base[q].layers;
	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body)
			r->layers[x->col.v[j].part] += x->center[j];
}

void ap_relax_hurry(struct ap_relax *r, int64_t plenty)
{
	r->plenty = plenty;
}

bool ap_relax_hurried(const struct ap_relax *r)
{
	return r->hurried;
}

const double *ap_relax_layers(const struct ap_relax *r)
{
	return r->layers;
}

/* The most layers of each part in plans that take at most so many ticks: its stage runs all micro-batches. */
static double *most_layers(const struct program *x, int64_t most)
{
	const struct ap_relax *r = x->r;
	double *n = AP_NEW_N(r->ctx->arena, double, r->npart), least;
	double spare = (double)(r->nbody - ap_partition_least_before(r->p, r->npart));
	double *room = AP_NEW_N(r->ctx->scratch, double, r->p->nstage), layer = INFINITY;
	int64_t nmicro = r->p->objective == AP_OBJECTIVE_STEP ? r->p->nmicro : 1;

	for (size_t j = 0; j < x->col.n; j++)
		if (x->group.v[x->col.v[j].group].is_body)
			layer = fmin(layer, (double)passes(&x->col.v[j].way.one.time));
	for (int32_t s = 0; s < r->p->nstage; s++)
		room[s] = (double)most / (double)nmicro;
	for (int32_t q = 0; q < r->npart; q++)
		room[r->stage_of[q]] -= (double)passes(&x->base[q].sum.time) +
			(double)(ap_partition_least(r->p, q) - x->base[q].layers) * layer;
	for (int32_t q = 0; q < r->npart; q++) {
		least = (double)ap_partition_least(r->p, q);
		n[q] = least + spare;
		if (layer > 0)
			n[q] = fmin(n[q], least + floor(room[r->stage_of[q]] / layer * (1 + VIOLATED)));
		n[q] = fmax(n[q], least);
	}
	return n;
}

/* The bound after so many rounds; with none, of the bundles that are there. */
static int64_t run(struct ap_relax *r, bool fast, int rounds, int64_t most, uint64_t limit, bool *binds)
{
	struct program x = {.r = r, .fast = fast, .upper = INFINITY, .spread = 1};
	int64_t value;
	bool branched;

	if (!lay_out(&x))
		return 0;
	if (r->number > 0)
		x.most = most_layers(&x, most);
	if (fast) {
		spread_evenly(&x, x.center);
		value = rounds > 0 || x.col.n == 0 ? value_of(&x, x.center) : longest_bundle(&x, x.center);
		r->unit = value > 0 ? (double)value : 1;
		x.upper = 1;
		/* Where parts differ fewer layers are counted than here, until memory asks for them. */
		*binds = r->number > 0 || add_memory(&x, x.center) > 0;
		keep_layers(&x);
		if (x.col.n == 0 || value == 0)
			return x.col.n == 0 ? value : 0;
		if (rounds > 0 && !r->looked && r->p->objective == AP_OBJECTIVE_STEP)
			look_around(&x);
		r->looked = r->looked || rounds > 0;
	}
	begin(&x);
	if (!fast && rounds > 0 && r->p->counts == AP_COUNTS_FREE)
		cap_stages(&x);
	if (fast && *binds && rounds > FAST_ROUNDS) /* what takes memory into account says more */
		rounds = FAST_ROUNDS;
	x.hurries = r->plenty < AP_RELAX_NONE;
	improve(&x, rounds, most, limit);
	x.hurries = false;
	if (x.upper < INFINITY)
		keep_layers(&x);
	if (r->p->counts == AP_COUNTS_FREE && (!fast || !*binds) && (rounds == 0 || x.upper < INFINITY) &&
		in_ticks(&x) <= most)
		round_up(&x, rounds ? x.center : x.x, rounds ? WHOLE_ROUNDS : 0, most, limit);
	branched = r->p->counts == AP_COUNTS_FREE && (!fast || !*binds) && rounds > 0 && x.upper < INFINITY &&
		r->whole > 0 && r->p->objective == AP_OBJECTIVE_STEP && in_ticks(&x) <= most;
	if (branched)
		branch(&x, x.center, most, r->work + r->whole);
	value = in_ticks(&x);
	return branched && value > most ? most + 1 : value;
}

/* A bound of plans with r->number. */
static int64_t bound_numbered(struct ap_relax *r, int64_t most, uint64_t limit)
{
	static const int rounds[] = {0, MOST_ROUNDS};
	int64_t bound = 0;

	if (r->bundle.n == 0 && r->p->objective == AP_OBJECTIVE_STAGE)
		stage_bundles(r);
	else if (r->bundle.n == 0)
		straight_bundles(r);
	for (size_t i = 0; i < sizeof rounds / sizeof *rounds && bound <= most; i++) {
		bool binds = false;
		int64_t value = run(r, true, rounds[i], most, limit, &binds);

		bound = value > bound ? value : bound;
		value = binds && bound <= most ? run(r, false, rounds[i], most, limit, &binds) : 0;
		bound = value > bound ? value : bound;
	}
	return bound;
}

/* Are kinds uniform, so that one number says how they are, in parts of any size? */
static bool takes_number(const struct ap_relax *r)
{
	const struct ap_partition *p = r->p;
	struct ap_part_choice one;

	for (size_t i = 0; i < r->bucket.n; i++)
		for (uint32_t k = 0; k < 2 && k < p->nkind && !r->bucket.v[i].is_end; k++)
			if (!ap_options_layer(r->c, r->bucket.v[i].cls, r->from, k, &one))
				return false;
	return p->kinds == AP_KINDS_UNIFORM && p->nkind == 2 && r->to - r->from == 1 && r->npart > 1 &&
		p->counts == AP_COUNTS_FREE && p->least_layers > 0 &&
		ap_partition_least_before(p, r->npart) < r->nbody;
}

/* The least number of layers that have to take the last kind in some part, if any do, for memory: of plans in
 * fractions that is a program by itself. INT64_MAX: none fits. */
static int64_t least_number(struct ap_relax *r)
{
	struct program x = {.r = r, .upper = INFINITY};
	double *a;

	r->number = 1;
	if (!lay_out(&x))
		return 1;
	x.lp = ap_simplex_create(r->ctx->arena, x.col.n, MOST_ROWS);
	for (int32_t q = 0; q < r->npart; q++) {
		a = AP_NEW_N(r->ctx->arena, double, x.col.n + 1);
		for (size_t j = 0; j < x.col.n; j++)
			a[j] = x.col.v[j].part == q && x.col.v[j].is_lean ? -1 : 0;
		add_row(&x, a, 1, (double)x.base[q].lean);
	}
	add_groups(&x);
	(void)solve(&x);
	return x.bound == INFINITY ? INT64_MAX : x.bound > 1 ? (int64_t)ceil(x.bound) : 1;
}

int64_t ap_relax_bound(struct ap_relax *r, int64_t most, uint64_t work, uint64_t whole)
{
	size_t bytes = (size_t)r->npart * sizeof *r->layers;
	uint64_t limit = r->work + work;
	int64_t none, some;
	double *layers;

	r->patience = work / PATIENCE;
	r->whole = whole;
	r->most_bundles = MOST_BUNDLES;
	r->most_rows = MOST_KEPT;
	if (ap_partition_least_before(r->p, r->npart) > r->nbody ||
		(r->p->counts == AP_COUNTS_EQUAL && r->nbody % r->npart))
		return 0;
	if (!takes_number(r))
		return bound_numbered(r, most, limit);
	r->number = 0;
	none = bound_numbered(r, most, limit);
	layers = ap_arena_memdup(r->ctx->arena, r->layers, bytes);
	r->number = least_number(r);
	some = r->number == INT64_MAX ? AP_RELAX_NONE
		: bound_numbered(r, none < most ? none : most, r->work + work);
	if (none < some)
		memcpy(r->layers, layers, bytes);
	return none < some ? none : some;
}
