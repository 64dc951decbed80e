/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/even.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "partition/replay.h"
#include "pipeline/schedule.h"

#define TICK_S 0x1p-30 /* of the replay, unless a step takes more than 2^60 of these */

struct sums { /* of layers */
	double time_s; /* of all passes */
	int64_t kept, late, weights, temporary;
};

struct evening {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	struct ap_pipe pipe;
	int32_t npart;
	int64_t nfirst, nbody, nlayer;
	double tick_s;
	double below_s; /* only plans that take less are laid out */
	const struct ap_partition_row **row; /* [nlayer] by kind */
	const int64_t *alike; /* [nlayer] layers from one on that have its row */
	const int32_t *part; /* [nstage][nsegment] */
	int64_t *count; /* [npart] of the body */
	int64_t *first; /* [npart + 1] */
	int64_t *number; /* [nstage][nkind] layers of a stage in each kind; of kind 0: the rest */
	bool one_row; /* all layers of the body have the same */
	int64_t *chosen; /* [npart] layers for which the number was chosen last; -1: for none */
};

static uint32_t kind_of(const struct evening *e, int64_t layer, uint32_t kind)
{
	const struct ap_partition_row *row = e->row[layer];

	if (!row[kind].absent)
		return kind;
	for (kind = 0; kind + 1 < e->p->nkind && row[kind].absent; kind++)
		;
	return kind;
}

/* Layers of a segment in each kind, [nkind], of those of its stage: each has its share, earlier ones what is
 * left. Of kind 0: the rest. share: 0 before. */
static void deal(const struct evening *e, int32_t stage, int32_t segment, const int64_t *number,
	int64_t *share)
{
	const int32_t *part = &e->part[(size_t)stage * (size_t)e->p->nsegment];
	int64_t all = 0, before = 0, n = e->count[part[segment]], left = n;

	for (int32_t c = 0; c < e->p->nsegment; c++) {
		all += e->count[part[c]];
		before += c < segment ? e->count[part[c]] : 0;
	}
	for (uint32_t k = e->p->nkind; k-- > 1;) {
		if (number[k] == 0) /* as of most */
			continue;
		share[k] = e->p->kinds == AP_KINDS_UNIFORM ? number[k] : !all ? 0
			: (number[k] * (before + n) + all - 1) / all - (number[k] * before + all - 1) / all;
		share[k] = share[k] < left ? share[k] : left;
		left -= share[k];
	}
	share[0] = left;
}

/* Adds up layers from..to - 1, in a kind as far as they have it. */
static void add_layers(const struct evening *e, int64_t from, int64_t to, uint32_t kind, struct sums *s,
	double t[AP_TIMES])
{
	for (int64_t i = from, n; i < to; i += n) {
		const struct ap_partition_row *r = &e->row[i][kind_of(e, i, kind)];
		double times;

		n = e->alike[i] < to - i ? e->alike[i] : to - i;
		times = (double)n;
		t[AP_TIME_FORWARD] += times * r->forward_s;
		t[AP_TIME_BACKWARD] += times * r->backward_s;
		t[AP_TIME_WEIGHT] += e->p->scheduler->splits ? times * r->weight_s : 0;
		t[AP_TIME_BESIDE] += times * r->beside_s;
		t[AP_TIME_EXCHANGE] += times * r->exchange_s;
		t[AP_TIME_SLOWED] += times * r->slowed_s;
		t[AP_TIME_UPDATE] += times * r->update_s;
		s->kept += n * r->kept_bytes;
		s->late += n * r->late_bytes;
		s->weights += n * r->weights_bytes;
		s->temporary = r->temporary_bytes > s->temporary ? r->temporary_bytes : s->temporary;
	}
}

/* Adds up a part's layers; kind: [nlayer] is filled for them unless it is NULL. */
static void add_part(const struct evening *e, int32_t stage, int32_t segment, const int64_t *number,
	struct sums *s, struct ap_ticks *ticks, uint32_t *kind)
{
	int32_t q = e->part[stage * e->p->nsegment + segment];
	int64_t at = e->nfirst + e->first[q], *share = AP_NEW_N(e->ctx->scratch, int64_t, e->p->nkind);
	double t[AP_TIMES] = {0};

	deal(e, stage, segment, number, share);
	if (q == 0)
		add_layers(e, 0, at, 0, s, t);
	for (uint32_t k = e->p->nkind; k-- > 0; at += share[k])
		add_layers(e, at, at + share[k], k, s, t);
	if (q + 1 == e->npart)
		add_layers(e, at, e->nlayer, 0, s, t);
	if (q > 0 && e->first[q + 1] > e->first[q])
		t[AP_TIME_BESIDE] += e->p->degree[0].left_s;
	s->time_s += t[AP_TIME_FORWARD] + t[AP_TIME_BACKWARD] + t[AP_TIME_WEIGHT];
	if (e->p->objective == AP_OBJECTIVE_STEP)
		s->time_s += fmax(0, t[AP_TIME_BESIDE] - t[e->p->scheduler->splits ? AP_TIME_WEIGHT
			: AP_TIME_BACKWARD]);
	for (int i = 0; ticks && i < AP_TIMES; i++)
		ticks[q].t[i] = (int64_t)(t[i] / e->tick_s);
	if (!kind)
		return;
	for (int64_t i = 0; q == 0 && i < e->nfirst; i++)
		kind[i] = kind_of(e, i, 0);
	at = e->nfirst + e->first[q];
	for (uint32_t k = e->p->nkind; k-- > 0;)
		for (int64_t i = 0; i < share[k]; i++, at++)
			kind[at] = kind_of(e, at, k);
	for (int64_t i = at; q + 1 == e->npart && i < e->nlayer; i++)
		kind[i] = kind_of(e, i, 0);
}

/* Time and bytes of a stage with so many layers in each kind. O(parts of the stage * (kinds + runs)). */
static double weigh(const struct evening *e, int32_t stage, const int64_t *number, int64_t *bytes)
{
	const struct ap_instants *x = &e->pipe.instants[stage];
	struct ap_mark mark = ap_arena_mark(e->ctx->scratch);
	struct sums *s = AP_NEW_N(e->ctx->scratch, struct sums, e->p->nsegment);
	int64_t most = 0, temporary = 0;
	double time_s = 0;

	*bytes = e->p->fixed_bytes[stage];
	for (int32_t c = 0; c < e->p->nsegment; c++) {
		add_part(e, stage, c, number, &s[c], NULL, NULL);
		*bytes += s[c].weights;
		temporary = s[c].temporary > temporary ? s[c].temporary : temporary;
		time_s += s[c].time_s;
	}
	for (uint32_t i = 0; i < x->n; i++) {
		size_t at = (size_t)i * (size_t)e->p->nsegment;
		int64_t now = 0;

		for (int32_t c = 0; c < e->p->nsegment; c++, at++)
			now += x->held[at] * s[c].kept + (x->late ? x->late[at] * s[c].late : 0);
		most = now > most ? now : most;
	}
	*bytes += most + temporary;
	ap_arena_release(e->ctx->scratch, mark);
	return time_s;
}

static int64_t stage_layers(const struct evening *e, int32_t stage)
{
	int64_t n = 0;

	for (int32_t c = 0; c < e->p->nsegment; c++)
		n += e->count[e->part[stage * e->p->nsegment + c]];
	return n;
}

struct choosing { /* kinds of one stage, or of all */
	const struct evening *e;
	int32_t stage; /* -1: of all, alike */
	int64_t *number, *best; /* [nkind] tried, and the quickest so far */
	double best_s;
	enum alone { NOT_TRIED, FITS, DOES_NOT } *alone; /* [nkind] all layers in this one */
};

/* Does what is tried fit? Keeps it if it is quicker than all before. */
static bool try_numbers(struct choosing *x)
{
	const struct evening *e = x->e;
	double time_s = 0;

	for (int32_t s = x->stage < 0 ? 0 : x->stage; s < (x->stage < 0 ? e->p->nstage : x->stage + 1); s++) {
		int64_t bytes;

		time_s = fmax(time_s, weigh(e, s, x->number, &bytes));
		if (bytes > e->p->capacity_bytes[s])
			return false;
	}
	if (time_s < x->best_s) {
		x->best_s = time_s;
		memcpy(x->best, x->number, e->p->nkind * sizeof *x->best);
	}
	return true;
}

/* Do all n layers fit in one kind? */
static bool try_alone(struct choosing *x, uint32_t kind, int64_t n)
{
	if (x->alone[kind] == NOT_TRIED) {
		memset(x->number, 0, x->e->p->nkind * sizeof *x->number);
		x->number[kind] = kind ? n : 0;
		x->alone[kind] = try_numbers(x) ? FITS : DOES_NOT;
	}
	return x->alone[kind] == FITS;
}

/* Of n layers, as few in kind b as fit, all others in kind a; then the last one of them in each kind between,
 * which may do as well. */
static void try_pair(struct choosing *x, uint32_t a, uint32_t b, int64_t n)
{
	int64_t low = 0, high = n; /* more than low are needed, high do */

	if (try_alone(x, a, n) || !try_alone(x, b, n))
		return;
	memset(x->number, 0, x->e->p->nkind * sizeof *x->number);
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		x->number[b] = middle;
		x->number[a] = a ? n - middle : 0;
		if (try_numbers(x))
			high = middle;
		else
			low = middle;
	}
	x->number[b] = high - 1;
	x->number[a] = a ? n - high : 0;
	for (uint32_t k = a + 1; k < b; k++) {
		x->number[k] = 1;
		(void)try_numbers(x);
		x->number[k] = 0;
	}
}

/* The quickest kinds of a stage that fit, of which two make up all layers but one at most; of all stages
 * alike where kinds are uniform (stage -1). False: none do. */
static bool choose_kinds(const struct evening *e, int32_t stage, int64_t n, int64_t *best)
{
	struct ap_mark mark = ap_arena_mark(e->ctx->scratch);
	struct choosing x = {e, stage, AP_NEW_N(e->ctx->scratch, int64_t, e->p->nkind), best, INFINITY,
		AP_NEW_N(e->ctx->scratch, enum alone, e->p->nkind)};

	if (!try_alone(&x, 0, n)) /* which is the quickest */
		for (uint32_t a = 0; a < e->p->nkind; a++)
			for (uint32_t b = a + 1; b < e->p->nkind; b++)
				try_pair(&x, a, b, n);
	ap_arena_release(e->ctx->scratch, mark);
	return x.best_s < INFINITY;
}

static bool choose_uniform(const struct evening *e)
{
	int64_t most = 0;

	for (int32_t q = 0; q < e->npart; q++)
		most = e->count[q] > most ? e->count[q] : most;
	if (!choose_kinds(e, -1, most, e->number))
		return false;
	for (int32_t s = 1; s < e->p->nstage; s++)
		memcpy(&e->number[(size_t)s * e->p->nkind], e->number, e->p->nkind * sizeof *e->number);
	return true;
}

/* Was the number of a stage chosen for the layers that its parts have? */
static bool is_chosen(const struct evening *e, int32_t stage)
{
	bool is = e->one_row;

	for (int32_t c = 0; c < e->p->nsegment && is; c++) {
		int32_t q = e->part[stage * e->p->nsegment + c];

		is = e->chosen[q] == e->count[q];
	}
	return is;
}

static bool choose(const struct evening *e)
{
	int64_t sum = 0;

	for (int32_t q = 0; q < e->npart; q++) {
		e->first[q] = sum;
		sum += e->count[q];
	}
	e->first[e->npart] = sum;
	if (e->p->kinds == AP_KINDS_UNIFORM)
		return choose_uniform(e);
	for (int32_t s = 0; s < e->p->nstage; s++) {
		if (is_chosen(e, s))
			continue;
		if (!choose_kinds(e, s, stage_layers(e, s), &e->number[(size_t)s * e->p->nkind]))
			return false;
		for (int32_t c = 0; c < e->p->nsegment; c++) {
			int32_t q = e->part[s * e->p->nsegment + c];

			e->chosen[q] = e->count[q];
		}
	}
	return true;
}

/* A step takes at least that: each stage waits until a micro-batch has come through the parts before it,
 * makes all passes, and the last of them goes back through these parts, unless that may be one for
 * weights. */
static double least_s(const struct evening *e, const struct ap_ticks *ticks)
{
	int64_t most = 0, before = 0;

	for (int32_t s = 0; s < e->p->nstage; s++) {
		const int32_t *part = &e->part[s * e->p->nsegment];
		int64_t passes = 0;

		for (int32_t c = 0; c < e->p->nsegment; c++)
			for (int k = AP_TIME_FORWARD; k <= AP_TIME_WEIGHT; k++)
				passes += ticks[part[c]].t[k];
		passes = before + e->p->nmicro * passes;
		most = passes > most ? passes : most;
		before += ticks[part[0]].t[AP_TIME_FORWARD] +
			(e->p->scheduler->splits ? 0 : ticks[part[0]].t[AP_TIME_BACKWARD]);
	}
	return (double)most * e->tick_s;
}

/* Writes the plan that was chosen; returns its objective. Only says that it is not below what is of interest,
 * if that can be seen. */
static double lay_out(const struct evening *e, struct ap_partition_plan *out)
{
	struct ap_arena *arena = e->ctx->arena;
	struct ap_ticks *ticks = AP_NEW_N(arena, struct ap_ticks, e->npart);
	int64_t *send = AP_NEW_N(arena, int64_t, e->npart), *back = AP_NEW_N(arena, int64_t, e->npart), end;
	uint32_t *kind = AP_NEW_N(arena, uint32_t, e->nlayer);
	struct ap_replay *replay;
	double largest_s = 0;

	for (int32_t s = 0; s < e->p->nstage; s++) {
		struct sums all = {0};

		for (int32_t c = 0; c < e->p->nsegment; c++)
			add_part(e, s, c, &e->number[(size_t)s * e->p->nkind], &all, ticks, kind);
		largest_s = fmax(largest_s, all.time_s);
	}
	if (e->p->objective == AP_OBJECTIVE_STEP && least_s(e, ticks) >= e->below_s)
		return least_s(e, ticks);
	for (int32_t q = 0; q + 1 < e->npart; q++) {
		send[q] = (int64_t)(ap_partition_send_s(e->p, 0, 0, e->first[q + 1]) / e->tick_s);
		back[q] = (int64_t)(ap_partition_send_back_s(e->p, 0, 0, e->first[q + 1]) / e->tick_s);
	}
	replay = ap_replay_create(e->ctx, e->p->scheduler, e->p->nstage, e->p->nsegment, e->p->nmicro);
	ap_replay_share(replay, (int64_t)(e->p->shared.send_s / e->tick_s),
		(int64_t)(e->p->shared.send_back_s / e->tick_s));
	end = ap_replay_end(replay, ticks, send, back);
	*out = (struct ap_partition_plan){ap_arena_memdup(arena, e->first,
		(size_t)(e->npart + 1) * sizeof *e->first), AP_NEW_N(arena, uint32_t, e->p->nstage), kind,
		e->p->kinds == AP_KINDS_UNIFORM ? ap_arena_memdup(arena, e->number,
			e->p->nkind * sizeof *e->number) : NULL};
	return e->p->objective == AP_OBJECTIVE_STAGE ? largest_s : (double)end * e->tick_s;
}

/* Passes over one micro-batch of a stage. */
static double busy(const struct evening *e, int32_t stage)
{
	int64_t bytes;

	return weigh(e, stage, &e->number[(size_t)stage * e->p->nkind], &bytes);
}

/* Moves a layer from the busiest stage's last part that has one to spare to the idlest one's smallest. */
static bool move_one(const struct evening *e)
{
	int32_t from = 0, to = 0, give = -1, take = -1;
	double most_s = -1, least_s = INFINITY;

	for (int32_t s = 0; s < e->p->nstage; s++) {
		double time_s = busy(e, s);

		if (time_s > most_s) {
			most_s = time_s;
			from = s;
		}
		if (time_s < least_s) {
			least_s = time_s;
			to = s;
		}
	}
	for (int32_t c = e->p->nsegment; c-- > 0;) {
		int32_t q = e->part[from * e->p->nsegment + c];

		if (give < 0 && e->count[q] > ap_partition_least(e->p, q))
			give = q;
	}
	for (int32_t c = 0; c < e->p->nsegment; c++) {
		int32_t q = e->part[to * e->p->nsegment + c];

		if (take < 0 || e->count[q] < e->count[take])
			take = q;
	}
	if (from == to || give < 0)
		return false;
	e->count[give]--;
	e->count[take]++;
	return true;
}

static double largest(const struct evening *e)
{
	double most_s = 0;

	for (int32_t s = 0; s < e->p->nstage; s++)
		most_s = fmax(most_s, busy(e, s));
	return most_s;
}

bool ap_partition_even_counts(const struct ap_partition *p, int64_t *count)
{
	int64_t parts = (int64_t)p->nstage * p->nsegment, body = ap_partition_body(p), spare = body % parts;

	if (p->counts == AP_COUNTS_EQUAL && spare)
		return false;
	for (int32_t q = 0; q < parts; q++) {
		count[q] = p->counts == AP_COUNTS_GIVEN ? p->count[q]
			: body / parts + (q + 1 < parts && q + 1 >= parts - spare);
		if (count[q] < ap_partition_least(p, q))
			return false;
	}
	return true;
}

/* A tick in which no step overflows: each takes less than all its passes, sends and updates one by one. */
static double pick_tick_s(const struct evening *e)
{
	const struct ap_partition *p = e->p;
	double m = (double)p->nmicro, most, sent_s = 0;
	int exponent;

	for (int64_t i = 0; i <= e->nbody; i++)
		sent_s = fmax(sent_s, ap_partition_send_s(p, 0, 0, i) + ap_partition_send_back_s(p, 0, 0, i));
	most = p->shared.send_s + p->shared.send_back_s + m * e->npart * (sent_s + p->degree[0].left_s);
	for (int64_t i = 0; i < e->nlayer; i++) {
		double longest = 0;

		for (uint32_t k = 0; k < p->nkind; k++) {
			const struct ap_partition_row *r = &e->row[i][k];

			if (!r->absent)
				longest = fmax(longest, m * (r->forward_s + r->backward_s + r->weight_s +
					r->beside_s) + r->exchange_s + r->slowed_s + r->update_s);
		}
		most += longest;
	}
	frexp(most, &exponent);
	return exponent > 30 ? ldexp(1, exponent - 60) : TICK_S;
}

bool ap_partition_even(struct ap_ctx *ctx, const struct ap_partition *p, double below_s,
	struct ap_partition_plan *out, double *step_s)
{
	struct evening e = {.ctx = ctx, .p = p, .below_s = below_s, .npart = p->nstage * p->nsegment};
	int64_t *kept, *alike;
	int32_t *part;
	double largest_s, other_s;
	struct ap_partition_plan other;
	bool fits;

	assert(p->ndegree == 1);
	e.nlayer = ap_partition_layers(p);
	e.nbody = ap_partition_body(p);
	e.row = AP_NEW_N(ctx->arena, const struct ap_partition_row *, e.nlayer);
	e.count = AP_NEW_N(ctx->arena, int64_t, e.npart);
	e.first = AP_NEW_N(ctx->arena, int64_t, e.npart + 1);
	e.number = AP_NEW_N(ctx->arena, int64_t, (size_t)p->nstage * p->nkind);
	for (uint32_t r = 0, i = 0; r < p->nrun; r++)
		for (int64_t k = 0; k < p->run[r].count; k++) {
			e.row[i++] = p->cls[p->run[r].cls].row;
			e.nfirst += p->run[r].at == AP_AT_FIRST;
		}
	e.alike = alike = AP_NEW_N(ctx->arena, int64_t, e.nlayer);
	for (int64_t i = e.nlayer; i-- > 0;)
		alike[i] = i + 1 < e.nlayer && e.row[i] == e.row[i + 1] ? alike[i + 1] + 1 : 1;
	e.one_row = e.nbody > 0 && alike[e.nfirst] >= e.nbody;
	e.chosen = AP_NEW_N(ctx->arena, int64_t, e.npart);
	for (int32_t q = 0; q < e.npart; q++)
		e.chosen[q] = -1;
	e.part = part = AP_NEW_N(ctx->arena, int32_t, e.npart);
	for (int32_t q = 0; q < e.npart; q++)
		part[q] = ap_schedule_part(p->scheduler, p->nstage, q / p->nsegment, q % p->nsegment);
	e.tick_s = pick_tick_s(&e);
	if (p->pipe)
		e.pipe = *p->pipe;
	else
		ap_schedule_pipe(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro, &e.pipe);
	if (!ap_partition_even_counts(p, e.count))
		return false;
	fits = choose(&e);
	*step_s = fits ? lay_out(&e, out) : INFINITY;
	if (p->counts != AP_COUNTS_FREE)
		return fits;
	kept = AP_NEW_N(ctx->arena, int64_t, e.npart);
	for (largest_s = fits ? largest(&e) : INFINITY;;) {
		double moved_s;

		memcpy(kept, e.count, (size_t)e.npart * sizeof *kept);
		if (!move_one(&e) || !choose(&e) || (moved_s = largest(&e)) >= largest_s)
			break;
		largest_s = moved_s;
	}
	memcpy(e.count, kept, (size_t)e.npart * sizeof *kept);
	if (!choose(&e))
		return fits;
	other_s = lay_out(&e, &other);
	if (other_s < *step_s) {
		*step_s = other_s;
		*out = other;
	}
	return true;
}
