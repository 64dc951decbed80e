/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

static struct ap_schedule_slot slot_of(enum ap_pass pass, int32_t segment, int32_t micro)
{
	return (struct ap_schedule_slot){.pass = (uint8_t)pass, .segment = (int16_t)segment, .micro = micro};
}

static struct ap_schedule_slot *order_gpipe(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 2 * (size_t)nmicro);

	(void)nstage;
	(void)stage;
	assert(nsegment == 1);
	for (int32_t i = 0; i < nmicro; i++) {
		slot[i] = slot_of(AP_PASS_FORWARD, 0, i);
		slot[nmicro + i] = slot_of(AP_PASS_BACKWARD, 0, i);
	}
	return slot;
}

/*
 * Micro-batches go through the segments in rounds: those of a round through the first segment, then
 * through the second, and so on. A round has nstage micro-batches, so that what leaves the last
 * stage is just in time for the next segment of the first stage; the first round also takes the
 * remainder.
 */
struct rounds {
	int32_t nsegment, first, other; /* micro-batches of a round */
};

static struct ap_schedule_slot unit(const struct rounds *r, enum ap_pass pass, int64_t k)
{
	int64_t head = (int64_t)r->first * r->nsegment, start = 0, size = r->first;
	int64_t segment;

	if (k >= head) {
		size = r->other;
		start = r->first + (k - head) / (size * r->nsegment) * size;
		k = (k - head) % (size * r->nsegment);
	}
	segment = k / size;
	if (pass == AP_PASS_BACKWARD)
		segment = r->nsegment - 1 - segment;
	return slot_of(pass, (int32_t)segment, (int32_t)(start + k % size));
}

/* warm_up forward passes, then one forward and one backward in turn, then the backward ones left. */
static struct ap_schedule_slot *by_turns(
	struct ap_arena *arena, const struct rounds *r, int64_t warm_up, int64_t nmicro)
{
	int64_t n = nmicro * r->nsegment, ahead = warm_up < n ? warm_up : n;
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 2 * n), *to = slot;

	for (int64_t k = 0; k < n + ahead; k++) {
		if (k < n)
			*to++ = unit(r, AP_PASS_FORWARD, k);
		if (k >= ahead)
			*to++ = unit(r, AP_PASS_BACKWARD, k - ahead);
	}
	return slot;
}

static struct ap_schedule_slot *order_1f1b(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct rounds one = {1, nmicro, nmicro};

	assert(nsegment == 1);
	return by_turns(arena, &one, nstage - stage - 1, nmicro);
}

static struct ap_schedule_slot *order_interleaved(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct rounds r = {nsegment, nstage + nmicro % nstage, nstage};
	int64_t warm_up = (int64_t)(nsegment - 1) * r.first + 2 * (int64_t)(nstage - stage - 1);

	assert(nmicro >= nstage);
	if (nsegment == 1) /* nothing to interleave */
		return order_1f1b(arena, nstage, nsegment, stage, nmicro);
	return by_turns(arena, &r, warm_up, nmicro);
}

/* One forward pass more goes ahead, so that no backward pass waits for the forward pass beside it. */
static struct ap_schedule_slot *order_beside(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct rounds r = {nsegment, nstage + nmicro % nstage, nstage};
	int64_t warm_up = (int64_t)(nsegment - 1) * r.first + 2 * (int64_t)(nstage - stage - 1) + 1;
	int64_t n = (int64_t)nmicro * nsegment;
	struct ap_schedule_slot *slot = by_turns(arena, &r, warm_up, nmicro);

	assert(nmicro >= nstage);
	for (int64_t i = warm_up; i < 2 * n - warm_up; i++)
		slot[i].beside = true;
	return slot;
}

/*
 * Zero bubble in a V. With passes of equal length and at least 2 S micro-batches, no stage s of S
 * waits from its first slot to its last, and none holds the activations of more than 2 S segments,
 * as many as 1f1b's first stage. With F, B, W of segments 0 and 1, a stage runs:
 *
 *   2 (S - s) - 1 times   F0                     until the first micro-batch is back in segment 1
 *   s times               F1 F0, then once F1    2 S are held; the first B1 can run
 *   S - 1 - s times       B1 W1 F1               until the first B0 can run
 *   m - 2 S + s + 1 times B1 W1 B0 W0 F0 F1      steady, six slots per micro-batch
 *   S - 1 - s times       B1 W1 B0 W0 F1         no F0 is left
 *   s times               B1 B0, then once B1
 *   S - s times           B0 W, then the other W the last B0 go back through all stages
 *
 * Let stage s begin at slot s. Steady block j then begins at 5 S - 3 - 2 s + 6 j, and counting
 * gives every other slot; what a slot needs has always ended: in steady blocks F0 and B1, which go
 * up the stages, have 4 slots for a hop, F1 and B0, which go down, 2; elsewhere there is 1 or more.
 * If m < 2 S - 1, the order for 2 S - 1 micro-batches is used without those that do not exist: a
 * micro-batch depends on itself only.
 */
struct writing {
	struct ap_schedule_slot *to;
	int32_t nmicro;                      /* put() skips those beyond */
	int32_t next[AP_PASS_WEIGHT + 1][2]; /* micro-batch, by pass and segment */
};

static void put(struct writing *w, enum ap_pass pass, int segment)
{
	int32_t micro = w->next[pass][segment]++;

	if (micro < w->nmicro)
		*w->to++ = slot_of(pass, segment, micro);
}

/* The next weight pass that is due, the second segment's first. */
static void put_weight(struct writing *w)
{
	put(w, AP_PASS_WEIGHT, w->next[AP_PASS_WEIGHT][1] < w->next[AP_PASS_BACKWARD][1]);
}

static void both(struct writing *w, int segment)
{
	put(w, AP_PASS_BACKWARD, segment);
	put(w, AP_PASS_WEIGHT, segment);
}

static void fill(struct writing *w, int32_t nstage, int32_t stage)
{
	for (int32_t i = 0; i < 2 * (nstage - stage) - 1; i++)
		put(w, AP_PASS_FORWARD, 0);
	for (int32_t i = 0; i < stage; i++) {
		put(w, AP_PASS_FORWARD, 1);
		put(w, AP_PASS_FORWARD, 0);
	}
	put(w, AP_PASS_FORWARD, 1);
	for (int32_t i = 0; i < nstage - 1 - stage; i++) {
		both(w, 1);
		put(w, AP_PASS_FORWARD, 1);
	}
}

static void steady(struct writing *w, int32_t blocks, bool more)
{
	for (int32_t i = 0; i < blocks; i++) {
		both(w, 1);
		both(w, 0);
		if (more)
			put(w, AP_PASS_FORWARD, 0);
		put(w, AP_PASS_FORWARD, 1);
	}
}

static void drain(struct writing *w, int32_t nstage, int32_t stage)
{
	for (int32_t i = 0; i < stage; i++) {
		put(w, AP_PASS_BACKWARD, 1);
		put(w, AP_PASS_BACKWARD, 0);
	}
	put(w, AP_PASS_BACKWARD, 1);
	for (int32_t i = 0; i < nstage - stage; i++) {
		put(w, AP_PASS_BACKWARD, 0);
		put_weight(w);
	}
	for (int32_t i = 0; i < 2 * stage + 1; i++)
		put_weight(w);
}

static struct ap_schedule_slot *order_zero_bubble_v(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 6 * (size_t)nmicro);
	struct writing w = {.to = slot, .nmicro = nmicro};
	int32_t run = nmicro < 2 * nstage - 1 ? 2 * nstage - 1 : nmicro;

	assert(nsegment == 2);
	fill(&w, nstage, stage);
	steady(&w, run - 2 * nstage + stage + 1, true);
	steady(&w, nstage - 1 - stage, false);
	drain(&w, nstage, stage);
	assert(w.to == slot + 6 * (size_t)nmicro);
	return slot;
}

static const char *takes_any(int32_t nstage, int32_t nsegment, int64_t nmicro)
{
	(void)nstage;
	(void)nsegment;
	(void)nmicro;
	return NULL;
}

static const char *needs_a_round(int32_t nstage, int32_t nsegment, int64_t nmicro)
{
	(void)nsegment;
	return nmicro < nstage ? "needs at least as many micro-batches as stages" : NULL;
}

static const struct ap_scheduler schedulers[] = {
#define SCHEDULER(name, order, refuses, splits, vee, least, most, help)                            \
	{name, help, splits, vee, false, least, most, order, refuses},
#include "pipeline/schedulers.def"
#undef SCHEDULER
};

const struct ap_scheduler *ap_scheduler_at(size_t i)
{
	return i < AP_COUNT(schedulers) ? &schedulers[i] : NULL;
}

const struct ap_scheduler *ap_scheduler_find(const char *name)
{
	for (size_t i = 0; ap_scheduler_at(i); i++) {
		if (strcmp(schedulers[i].name, name) == 0)
			return &schedulers[i];
	}
	return NULL;
}

const struct ap_scheduler *ap_scheduler_beside(const struct ap_scheduler *s)
{
	static const struct ap_scheduler rows[] = {
		{"1f1b", "as one", false, false, true, 1, 1, order_beside, needs_a_round},
		{"interleaved", "as one", false, false, true, 1, 0, order_beside, needs_a_round},
	};

	for (size_t i = 0; i < AP_COUNT(rows) && !s->beside; i++)
		if (!strcmp(rows[i].name, s->name))
			return &rows[i];
	return NULL;
}

size_t ap_schedule_slots(const struct ap_scheduler *s, int32_t nsegment, int64_t nmicro)
{
	return (size_t)(s->splits ? 3 : 2) * (size_t)nsegment * (size_t)nmicro;
}

void ap_schedule_spot(const struct ap_scheduler *s, int32_t nstage, int32_t part, int32_t *stage,
	int32_t *segment)
{
	int32_t at = part % nstage;

	*segment = part / nstage;
	*stage = s->vee && *segment % 2 ? nstage - 1 - at : at;
}

int32_t ap_schedule_part(
	const struct ap_scheduler *s, int32_t nstage, int32_t stage, int32_t segment)
{
	return segment * nstage + (s->vee && segment % 2 ? nstage - 1 - stage : stage);
}

struct counting {
	struct ap_ctx *ctx;
	const struct ap_scheduler *s;
	size_t n; /* counts of an instant: held per segment, then late per segment */
	int32_t nsegment;
	struct ap_map *seen;
	AP_VEC(const int64_t *) tops; /* [n] each: distinct instants, by time */
};

/* Notes the states just before a stage frees something: no state in between holds more. */
static void note_tops(struct counting *c, const struct ap_schedule_slot *slot, int64_t nmicro)
{
	struct ap_arena *scratch = c->ctx->scratch;
	size_t nslot = ap_schedule_slots(c->s, c->nsegment, nmicro);
	enum ap_pass last = c->s->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	int64_t *now = AP_NEW_N(scratch, int64_t, 2 * c->nsegment);
	const int64_t *top;

	for (size_t i = 0; i < nslot; i++) {
		int64_t *held = &now[slot[i].segment], *late = held + c->nsegment;
		bool gives = slot[i].pass == last, fresh;

		*held += (slot[i].pass == AP_PASS_FORWARD) - gives;
		if (c->s->splits)
			*late += (slot[i].pass == AP_PASS_BACKWARD) - gives;
		if (gives || (i + 1 < nslot && slot[i + 1].pass != last))
			continue;
		ap_map_put(c->seen, now, c->n * sizeof *now, &fresh);
		if (!fresh)
			continue;
		top = ap_arena_memdup(scratch, now, c->n * sizeof *now);
		AP_PUSH(scratch, c->tops, top);
	}
}

static int64_t sum_of(const int64_t *count, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += count[i];
	return sum;
}

static bool holds_as_much(const int64_t *a, const int64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i])
			return false;
	return true;
}

/* Instants are distinct, so only one with a larger sum can hold as much of every segment. */
static bool is_dominated(const struct counting *c, const int64_t *sum, size_t i)
{
	for (size_t k = 0; k < c->tops.n; k++)
		if (sum[k] > sum[i] && holds_as_much(c->tops.v[k], c->tops.v[i], c->n))
			return true;
	return false;
}

/* Takes instants that none dominates; *best is the one with the largest sum. */
static void take_instants(const struct counting *c, struct ap_instants *out, uint32_t *best)
{
	struct ap_arena *arena = c->ctx->arena;
	size_t n = c->tops.n, m = (size_t)c->nsegment;
	int64_t *sum = AP_NEW_N(c->ctx->scratch, int64_t, n), most = 0;
	int64_t *held = AP_NEW_N(arena, int64_t, n * m);
	int64_t *late = c->s->splits ? AP_NEW_N(arena, int64_t, n * m) : NULL;

	*out = (struct ap_instants){.held = held, .late = late};
	for (size_t i = 0; i < n; i++)
		sum[i] = sum_of(c->tops.v[i], c->n);
	for (size_t i = 0; i < n; i++) {
		const int64_t *count = c->tops.v[i];

		if (is_dominated(c, sum, i))
			continue;
		memcpy(held + out->n * m, count, m * sizeof *held);
		if (late)
			memcpy(late + out->n * m, count + m, m * sizeof *late);
		if (sum[i] > most) {
			most = sum[i];
			*best = out->n;
		}
		out->n++;
	}
}

static void count_stage(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int32_t stage, int64_t nmicro, struct ap_instants *out, uint32_t *best)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct counting c = {.ctx = ctx, .s = s, .nsegment = nsegment,
		.n = (s->splits ? 2 : 1) * (size_t)nsegment, .seen = ap_map_create(ctx->scratch)};

	note_tops(&c, s->order(ctx->scratch, nstage, nsegment, stage, (int32_t)nmicro), nmicro);
	take_instants(&c, out, best);
	ap_arena_release(ctx->scratch, mark);
}

const struct ap_pipe *ap_schedule_at(struct ap_arena *arena, const struct ap_pipe *pipe,
	const uint32_t *at)
{
	struct ap_pipe *out = ap_arena_memdup(arena, pipe, sizeof *pipe);
	size_t m = (size_t)pipe->nsegment, n = (size_t)pipe->nstage * m;
	int64_t *in_flight = AP_NEW_N(arena, int64_t, n);
	int64_t *late = pipe->scheduler->splits ? AP_NEW_N(arena, int64_t, n) : NULL;

	for (size_t s = 0; s < (size_t)pipe->nstage; s++) {
		const struct ap_instants *x = &pipe->instants[s];

		memcpy(in_flight + s * m, x->held + at[s] * m, m * sizeof *in_flight);
		if (late)
			memcpy(late + s * m, x->late + at[s] * m, m * sizeof *late);
	}
	out->in_flight = in_flight;
	out->late = late;
	return out;
}

void ap_schedule_pipe(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int64_t nmicro, struct ap_pipe *out)
{
	struct ap_instants *instants = AP_NEW_N(ctx->arena, struct ap_instants, nstage);
	uint32_t *best = AP_NEW_N(ctx->arena, uint32_t, nstage);

	assert(!s->refuses(nstage, nsegment, nmicro) && nmicro <= INT32_MAX);
	*out = (struct ap_pipe){.nstage = nstage, .nsegment = nsegment, .scheduler = s,
		.instants = instants};
	for (int32_t stage = 0; stage < nstage; stage++)
		count_stage(ctx, s, nstage, nsegment, stage, nmicro, &instants[stage], &best[stage]);
	*out = *ap_schedule_at(ctx->arena, out, best);
}

/*
 * A stage runs its slots in order until one has to wait for another stage; an arrival wakes it. All
 * sends from a stage come from its slots, so they are made in the order in which they are ready.
 */
struct running {
	const struct ap_pipe *pipe;
	int32_t nmicro, npart;
	enum ap_pass finish; /* the last pass over a micro-batch */
	const struct ap_pass_times *time;
	struct ap_slot_time *slot;
	const uint32_t *first; /* [nstage + 1] */
	uint32_t *next;        /* [nstage] slot */
	double *free_s;        /* [nstage] */
	double *link_free_s;   /* [nstage * nstage] */
	double *once_s; /* [part] when what is sent to it once is there */
	double *arrived_s; /* [pass][part][micro] arrival of the pass's inputs; NAN: not yet */
	int32_t *left;     /* [part] micro-batches to be finished */
	int32_t *waking;   /* ring of nstage */
	bool *awake;       /* [nstage] */
	size_t nwoken, nasleep; /* entries into the ring and out of it */
	struct ap_arena *arena;
	struct sends {
		struct ap_send_time *v;
		size_t n, cap;
	} sends;
};

static void finish(const struct running *r, struct ap_timeline *out)
{
	*out = (struct ap_timeline){.nstage = r->pipe->nstage,
		.first = r->first,
		.slot = r->slot,
		.nsend = (uint32_t)r->sends.n,
		.send = r->sends.v};
	for (int32_t s = 0; s < out->nstage; s++) {
		assert(r->next[s] == r->first[s + 1]); /* else the orders deadlock */
		out->end_s = fmax(out->end_s, r->free_s[s]);
	}
}

static double *arrival(struct running *r, enum ap_pass pass, int32_t part, int32_t micro)
{
	return &r->arrived_s[((size_t)pass * (size_t)r->npart + (size_t)part) * (size_t)r->nmicro +
			     (size_t)micro];
}

static int32_t stage_of(const struct running *r, int32_t part)
{
	int32_t stage, segment;

	ap_schedule_spot(r->pipe->scheduler, r->pipe->nstage, part, &stage, &segment);
	return stage;
}

static void wake(struct running *r, int32_t stage)
{
	if (r->awake[stage])
		return;
	r->awake[stage] = true;
	r->waking[r->nwoken++ % (size_t)r->pipe->nstage] = stage;
}

/* Sends the results of a pass of part `from` to the same pass of part `to`. */
static void deliver(struct running *r, enum ap_pass pass, int32_t from, int32_t to, int32_t micro,
	double ready_s)
{
	double send_s = pass == AP_PASS_FORWARD ? r->time[from].send_s : r->time[to].send_back_s;
	int32_t a = stage_of(r, from), b = stage_of(r, to);
	double *link = &r->link_free_s[a * r->pipe->nstage + b];

	if (a != b && send_s > 0) {
		struct ap_send_time s = {from, to, micro, fmax(*link, ready_s), 0};

		s.end_s = *link = ready_s = s.start_s + send_s;
		AP_PUSH(r->arena, r->sends, s);
	}
	*arrival(r, pass, to, micro) = ready_s;
	if (a != b)
		wake(r, b);
}

static double length_of(struct running *r, enum ap_pass pass, int32_t part)
{
	const struct ap_pass_times *t = &r->time[part];

	if (pass == r->finish && pass != AP_PASS_FORWARD && --r->left[part] == 0)
		return t->last_backward_s;
	return pass == AP_PASS_FORWARD    ? t->forward_s
	       : pass == AP_PASS_BACKWARD ? t->backward_s
					  : t->weight_s;
}

static int32_t part_of(const struct running *r, int32_t stage, const struct ap_slot_time *s)
{
	return ap_schedule_part(r->pipe->scheduler, r->pipe->nstage, stage, s->slot.segment);
}

/* Hands on what a pass made. */
static void hand_on(struct running *r, const struct ap_schedule_slot *slot, int32_t part, double ready_s)
{
	if (slot->pass == AP_PASS_FORWARD && part + 1 < r->npart)
		deliver(r, AP_PASS_FORWARD, part, part + 1, slot->micro, ready_s);
	if (slot->pass == AP_PASS_FORWARD && part + 1 == r->npart)
		*arrival(r, AP_PASS_BACKWARD, part, slot->micro) = ready_s;
	if (slot->pass == AP_PASS_BACKWARD && part > 0)
		deliver(r, AP_PASS_BACKWARD, part, part - 1, slot->micro, ready_s);
}

/* Runs one slot; false if it has to wait for another stage. */
static bool run_slot(struct running *r, int32_t stage, struct ap_slot_time *s)
{
	int32_t part = part_of(r, stage, s);
	double needed = s->slot.pass == AP_PASS_WEIGHT
				? 0
				: *arrival(r, s->slot.pass, part, s->slot.micro);

	if (isnan(needed))
		return false;
	if (s->slot.pass == AP_PASS_FORWARD)
		needed = fmax(needed, r->once_s[part]);
	s->start_s = fmax(r->free_s[stage], needed);
	s->end_s = r->free_s[stage] = s->start_s + length_of(r, s->slot.pass, part);
	hand_on(r, &s->slot, part, s->end_s);
	r->next[stage]++;
	return true;
}

double ap_schedule_both_s(const struct ap_pass_times *forward, const struct ap_pass_times *backward)
{
	const struct ap_pass_beside *f = &forward->forward_beside, *b = &backward->backward_beside;

	return fmax(fmax(f->rest_s + b->rest_s, f->comm_s + b->comm_s),
		fmax(forward->forward_s, backward->backward_s));
}

/* Runs slots s[0] and s[1] as one. The last backward pass of a part is none of them. */
static bool run_both(struct running *r, int32_t stage, struct ap_slot_time *s)
{
	int32_t forward = part_of(r, stage, &s[0]), back = part_of(r, stage, &s[1]);
	double one = *arrival(r, AP_PASS_FORWARD, forward, s[0].slot.micro);
	double other = *arrival(r, AP_PASS_BACKWARD, back, s[1].slot.micro);

	if (isnan(one) || isnan(other))
		return false;
	r->left[back]--;
	assert(r->left[back] > 0);
	s[0].start_s = fmax(fmax(r->free_s[stage], r->once_s[forward]), fmax(one, other));
	s[0].end_s = s[1].start_s = s[0].start_s + r->time[forward].forward_beside.rest_s;
	s[1].end_s = s[0].start_s + ap_schedule_both_s(&r->time[forward], &r->time[back]);
	s[1].end_s = fmax(s[1].end_s, s[1].start_s + r->time[back].backward_beside.rest_s);
	r->free_s[stage] = s[1].end_s;
	hand_on(r, &s[0].slot, forward, s[1].end_s);
	hand_on(r, &s[1].slot, back, s[1].end_s);
	r->next[stage] += 2;
	return true;
}

static void run_stage(struct running *r, int32_t stage)
{
	bool runs = true;

	while (runs && r->next[stage] < r->first[stage + 1]) {
		struct ap_slot_time *s = &r->slot[r->next[stage]];

		runs = s->slot.beside ? run_both(r, stage, s) : run_slot(r, stage, s);
	}
}

/* Fills slot and first of all stages; forward passes only without training. */
static void lay_out(struct running *r, struct ap_ctx *ctx, bool training)
{
	const struct ap_scheduler *s = r->pipe->scheduler;
	size_t n = ap_schedule_slots(s, r->pipe->nsegment, r->nmicro), used = 0;
	size_t most = training ? n : (size_t)r->pipe->nsegment * (size_t)r->nmicro;
	uint32_t *first = AP_NEW_N(ctx->arena, uint32_t, r->pipe->nstage + 1);

	assert(most * (size_t)r->pipe->nstage < UINT32_MAX);
	r->slot = AP_NEW_N(ctx->arena, struct ap_slot_time, most * (size_t)r->pipe->nstage);
	for (int32_t stage = 0; stage < r->pipe->nstage; stage++) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		const struct ap_schedule_slot *order = s->order(
			ctx->scratch, r->pipe->nstage, r->pipe->nsegment, stage, r->nmicro);

		for (size_t i = 0; i < n; i++)
			if (training || order[i].pass == AP_PASS_FORWARD) {
				r->slot[used].slot = order[i];
				r->slot[used++].slot.beside &= training;
			}
		ap_arena_release(ctx->scratch, mark);
		first[stage + 1] = (uint32_t)used;
	}
	r->first = first;
}

static void begin(struct running *r, struct ap_arena *scratch)
{
	size_t nstage = (size_t)r->pipe->nstage, n = 2 * (size_t)r->npart * (size_t)r->nmicro;

	r->next = ap_arena_memdup(scratch, r->first, nstage * sizeof *r->first);
	r->free_s = AP_NEW_N(scratch, double, nstage);
	r->link_free_s = AP_NEW_N(scratch, double, nstage *nstage);
	r->once_s = AP_NEW_N(scratch, double, r->npart);
	r->waking = AP_NEW_N(scratch, int32_t, nstage);
	r->awake = AP_NEW_N(scratch, bool, nstage);
	r->left = AP_NEW_N(scratch, int32_t, r->npart);
	r->arrived_s = AP_NEW_N(scratch, double, n);
	for (size_t i = 0; i < n; i++)
		r->arrived_s[i] = NAN;
	for (int32_t i = 0; i < r->nmicro; i++)
		*arrival(r, AP_PASS_FORWARD, 0, i) = 0;
	for (int32_t p = 0; p < r->npart; p++) {
		int32_t from = stage_of(r, 0), to = stage_of(r, p);

		r->left[p] = r->nmicro;
		if (from != to && r->time[p].once_s > 0)
			r->once_s[p] = r->link_free_s[from * r->pipe->nstage + to] += r->time[p].once_s;
	}
	for (int32_t s = 0; s < r->pipe->nstage; s++)
		wake(r, s);
}

void ap_schedule_run(struct ap_ctx *ctx, const struct ap_pipe *pipe, int64_t nmicro, bool training,
	const struct ap_pass_times *time, struct ap_timeline *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct running r = {.pipe = pipe,
		.nmicro = (int32_t)nmicro,
		.npart = pipe->nstage * pipe->nsegment,
		.finish = pipe->scheduler->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD,
		.time = time,
		.arena = ctx->arena};

	lay_out(&r, ctx, training);
	begin(&r, ctx->scratch);
	while (r.nasleep < r.nwoken) {
		int32_t stage = r.waking[r.nasleep++ % (size_t)pipe->nstage];

		r.awake[stage] = false;
		run_stage(&r, stage);
	}
	finish(&r, out);
	ap_arena_release(ctx->scratch, mark);
}

static int by_start(const void *x, const void *y)
{
	const struct ap_send_time *a = x, *b = y;

	if (a->start_s != b->start_s)
		return a->start_s < b->start_s ? -1 : 1;
	if (a->from_part != b->from_part)
		return a->from_part < b->from_part ? -1 : 1;
	if (a->to_part != b->to_part)
		return a->to_part < b->to_part ? -1 : 1;
	return (a->micro > b->micro) - (a->micro < b->micro);
}

const struct ap_send_time *ap_schedule_sends(struct ap_arena *arena, const struct ap_timeline *t)
{
	struct ap_send_time *send = ap_arena_memdup(arena, t->send, t->nsend * sizeof *send);

	if (t->nsend)
		qsort(send, t->nsend, sizeof *send, by_start);
	return send;
}
