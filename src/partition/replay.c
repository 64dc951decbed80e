/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/replay.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "pipeline/schedule.h"

#define NOWHERE (-1)

enum { LAST = AP_PASS_WEIGHT + 1, LENGTHS }; /* the last of a part's passes that make gradients of weights */

struct step { /* a pass, and the delivery of what it gives */
	int32_t part, pass, stage;
	int32_t length; /* of the part's: by pass, or LAST */
	int32_t need, give; /* arrivals; NOWHERE */
	int32_t link; /* that the delivery takes; NOWHERE: at once */
	bool back; /* it is a gradient's */
};

struct ap_replay {
	struct ap_ctx *ctx;
	const struct ap_scheduler *scheduler;
	int32_t nstage, nsegment, npart, nmicro, nlink;
	int finishing; /* the pass that makes gradients of weights */
	uint32_t nstep;
	struct step *step;
	const int32_t *stage_of; /* [part] */
	const int32_t *last; /* [stage] its last step */
	const int32_t *final; /* [part] its last step that makes gradients of weights */
	const int32_t *turn; /* [stage * nsegment + i] parts of the stage by these steps */
	int32_t opening; /* the first pass of the last part */
	int32_t link_there, link_home; /* between the stages of the first and the last part; NOWHERE */
	int32_t last_home; /* the last step with a delivery on that link */
	int64_t there, home; /* what they share; 0: nothing */
	int64_t returned; /* when that has come back */
	int64_t (*length)[LENGTHS]; /* [part] of the last run; and of: */
	int64_t *plain, *beside; /* [part] the pass that makes gradients of weights; what runs beside it */
	int64_t *start, *exchanged; /* [part] of this step; end of the exchange */
	int64_t *begun; /* [part] paths of a bundle that come to the start of this step */
	int64_t *free, *link, *arrived, *end; /* [stage] [link] [arrival] [step] */
	int32_t *before, *sent; /* [step] the step before on its stage; the one before on its link */
	int32_t *maker; /* [arrival] step */
	int64_t *through, *sends; /* [step] paths of a bundle that come to its end, to that of its delivery */
};

struct ordering {
	struct ap_replay *r;
	const struct ap_scheduler *s;
	const struct ap_schedule_slot **order; /* [stage] */
	size_t *next; /* [stage] */
	bool *there; /* [arrival] */
	int32_t *linked; /* [nstage * nstage] link; NOWHERE: not yet used */
};

static int32_t arrival(const struct ap_replay *r, int pass, int32_t part, int32_t micro)
{
	return (pass * r->npart + part) * r->nmicro + micro;
}

static int32_t link_of(struct ordering *o, int32_t from, int32_t to)
{
	int32_t *link = &o->linked[from * o->r->nstage + to];

	if (from == to)
		return NOWHERE;
	if (*link == NOWHERE)
		*link = o->r->nlink++;
	return *link;
}

static struct step step_of(struct ordering *o, int32_t stage, const struct ap_schedule_slot *slot)
{
	struct ap_replay *r = o->r;
	int32_t part = ap_schedule_part(o->s, r->nstage, stage, slot->segment), to;
	struct step x = {.part = part, .pass = slot->pass, .length = slot->pass, .stage = stage,
		.need = NOWHERE, .give = NOWHERE,
		.link = NOWHERE, .back = slot->pass != AP_PASS_FORWARD};

	if (slot->pass == AP_PASS_WEIGHT)
		return x;
	to = x.back ? part - 1 : part + 1;
	if (x.back || part > 0)
		x.need = arrival(r, x.back, part, slot->micro);
	if (to == r->npart) {
		x.give = arrival(r, 1, part, slot->micro);
	} else if (to >= 0) {
		x.give = arrival(r, x.back, to, slot->micro);
		x.link = link_of(o, stage, r->stage_of[to]);
	}
	return x;
}

/* Lays down the steps of a stage until one lacks its input. Returns whether there was any. */
static bool advance(struct ordering *o, int32_t stage, size_t nslot)
{
	struct ap_replay *r = o->r;
	size_t from = o->next[stage];

	for (; o->next[stage] < nslot; o->next[stage]++) {
		struct step x = step_of(o, stage, &o->order[stage][o->next[stage]]);

		if (x.need != NOWHERE && !o->there[x.need])
			break;
		if (x.give != NOWHERE)
			o->there[x.give] = true;
		r->step[r->nstep++] = x;
	}
	return o->next[stage] > from;
}

/* Remembers what each step follows, for paths. */
static void connect(struct ap_replay *r, struct ap_ctx *ctx)
{
	int32_t *last = AP_NEW_N(ctx->arena, int32_t, r->nstage);
	int32_t *final = AP_NEW_N(ctx->arena, int32_t, r->npart);
	int32_t *turn = AP_NEW_N(ctx->arena, int32_t, r->npart);
	int32_t *nturn = AP_NEW_N(ctx->scratch, int32_t, r->nstage);
	int32_t *on_link = AP_NEW_N(ctx->scratch, int32_t, r->nlink + 1);

	for (int32_t s = 0; s < r->nstage; s++)
		last[s] = NOWHERE;
	for (int32_t l = 0; l < r->nlink; l++)
		on_link[l] = NOWHERE;
	for (uint32_t i = 0; i < r->nstep; i++) {
		const struct step *x = &r->step[i];

		r->before[i] = last[x->stage];
		last[x->stage] = (int32_t)i;
		r->sent[i] = NOWHERE;
		if (x->give != NOWHERE)
			r->maker[x->give] = (int32_t)i;
		if (x->link != NOWHERE) {
			r->sent[i] = on_link[x->link];
			on_link[x->link] = (int32_t)i;
		}
		if (r->opening == NOWHERE && x->part + 1 == r->npart && x->pass == AP_PASS_FORWARD)
			r->opening = (int32_t)i;
		if (x->link != NOWHERE && x->link == r->link_home)
			r->last_home = (int32_t)i;
		if (x->pass == r->finishing)
			final[x->part] = (int32_t)i;
	}
	for (uint32_t i = 0; i < r->nstep; i++) {
		const struct step *x = &r->step[i];

		if (final[x->part] == (int32_t)i)
			turn[x->stage * r->nsegment + nturn[x->stage]++] = x->part;
	}
	for (int32_t q = 0; q < r->npart; q++)
		r->step[final[q]].length = LAST;
	r->last = last;
	r->final = final;
	r->turn = turn;
}

/* Makes the list of steps. */
static void lay_out(struct ap_replay *r)
{
	struct ap_arena *arena = r->ctx->arena, *scratch = r->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	const struct ap_scheduler *s = r->scheduler;
	int32_t nstage = r->nstage;
	size_t nslot = ap_schedule_slots(s, r->nsegment, r->nmicro), nstep = nslot * (size_t)nstage;
	struct ordering o = {.r = r, .s = s, .order = AP_NEW_N(scratch, const struct ap_schedule_slot *,
		nstage),
		.next = AP_NEW_N(scratch, size_t, nstage),
		.linked = AP_NEW_N(scratch, int32_t, (size_t)nstage * (size_t)nstage)};
	size_t narrival = 2 * (size_t)r->npart * (size_t)r->nmicro;
	bool moved = true;

	r->step = ap_arena_alloc_raw(arena, nstep, sizeof(struct step));
	o.there = AP_NEW_N(scratch, bool, narrival);
	for (int32_t i = 0; i < nstage * nstage; i++)
		o.linked[i] = NOWHERE;
	for (int32_t stage = 0; stage < nstage; stage++)
		o.order[stage] = s->order(scratch, nstage, r->nsegment, stage, r->nmicro);
	while (moved) {
		moved = false;
		for (int32_t stage = 0; stage < nstage; stage++)
			moved = advance(&o, stage, nslot) || moved;
	}
	assert(r->nstep == nstep); /* else the orders deadlock */
	r->opening = r->last_home = NOWHERE;
	r->link_there = o.linked[r->stage_of[0] * nstage + r->stage_of[r->npart - 1]];
	r->link_home = o.linked[r->stage_of[r->npart - 1] * nstage + r->stage_of[0]];
	r->free = AP_NEW_N(arena, int64_t, nstage);
	r->link = AP_NEW_N(arena, int64_t, r->nlink + 1);
	r->arrived = AP_NEW_N(arena, int64_t, narrival);
	r->maker = AP_NEW_N(arena, int32_t, narrival);
	r->end = AP_NEW_N(arena, int64_t, nstep);
	r->length = ap_arena_alloc(arena, (size_t)r->npart, sizeof *r->length);
	r->plain = AP_NEW_N(arena, int64_t, r->npart);
	r->beside = AP_NEW_N(arena, int64_t, r->npart);
	r->start = AP_NEW_N(arena, int64_t, r->npart);
	r->exchanged = AP_NEW_N(arena, int64_t, r->npart);
	r->begun = AP_NEW_N(arena, int64_t, r->npart);
	r->before = AP_NEW_N(arena, int32_t, nstep);
	r->sent = AP_NEW_N(arena, int32_t, nstep);
	r->through = ap_arena_alloc_raw(arena, nstep, sizeof *r->through);
	r->sends = ap_arena_alloc_raw(arena, nstep, sizeof *r->sends);
	connect(r, r->ctx);
	ap_arena_release(scratch, mark);
}

struct ap_replay *ap_replay_create(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int64_t nmicro)
{
	struct ap_replay *r = AP_NEW(ctx->arena, struct ap_replay);
	int32_t *stage_of = AP_NEW_N(ctx->arena, int32_t, nstage * nsegment);

	*r = (struct ap_replay){.ctx = ctx, .scheduler = s, .nstage = nstage, .nsegment = nsegment,
		.npart = nstage * nsegment, .nmicro = (int32_t)nmicro,
		.finishing = s->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD, .stage_of = stage_of};
	for (int32_t q = 0; q < r->npart; q++) {
		int32_t segment;

		ap_schedule_spot(s, nstage, q, &stage_of[q], &segment);
	}
	return r;
}

void ap_replay_share(struct ap_replay *r, int64_t there, int64_t home)
{
	bool apart = r->stage_of[0] != r->stage_of[r->npart - 1];

	r->there = apart ? there : 0;
	r->home = apart ? home : 0;
}

uint64_t ap_replay_steps(const struct ap_replay *r)
{
	return (uint64_t)ap_schedule_slots(r->scheduler, r->nsegment, r->nmicro) * (uint64_t)r->nstage;
}

static int64_t send_ticks(const struct step *x, const int64_t *send, const int64_t *send_back)
{
	return x->back ? send_back[x->part - 1] : send[x->part];
}

/* The parts of a stage that exchange gradients do so one after the other. Returns the end of the last. */
static int64_t exchange(struct ap_replay *r, int32_t stage, const struct ap_ticks *time)
{
	int64_t now = 0;

	for (int32_t i = 0; i < r->nsegment; i++) {
		int32_t q = r->turn[stage * r->nsegment + i];
		int64_t ticks = time[q].t[AP_TIME_EXCHANGE];

		r->start[q] = r->end[r->final[q]] - r->length[q][LAST];
		if (ticks > 0)
			now = (r->start[q] > now ? r->start[q] : now) + ticks;
		r->exchanged[q] = now;
	}
	return now;
}

/* The last step whose delivery takes time on the way from the last part's stage to the first one's. */
static int32_t last_sent(const struct ap_replay *r, const int64_t *send, const int64_t *send_back)
{
	int32_t i = r->last_home;

	while (i != NOWHERE && send_ticks(&r->step[i], send, send_back) == 0)
		i = r->sent[i];
	return i;
}

/* When what the parts share has come back; 0: nothing does. */
static int64_t come_back(const struct ap_replay *r, const int64_t *send, const int64_t *send_back)
{
	int64_t now = r->end[r->final[r->npart - 1]];
	int32_t sent;

	if (r->home == 0)
		return 0;
	sent = last_sent(r, send, send_back);
	if (sent != NOWHERE && r->arrived[r->step[sent].give] > now)
		now = r->arrived[r->step[sent].give];
	return now + r->home;
}

/* Lengths of passes. */
static void measure(struct ap_replay *r, const struct ap_ticks *time)
{
	for (int32_t q = 0; q < r->npart; q++) {
		int64_t *usual = &r->length[q][r->finishing];

		for (int k = 0; k < LAST; k++)
			r->length[q][k] = time[q].t[k];
		r->plain[q] = *usual;
		r->length[q][LAST] = *usual + time[q].t[AP_TIME_SLOWED];
		r->beside[q] = time[q].t[AP_TIME_BESIDE];
		*usual = r->beside[q] > *usual ? r->beside[q] : *usual;
	}
}

/* As a link is used in the order of its stage's passes, what is sent in no time neither waits nor delays. */
int64_t ap_replay_end(struct ap_replay *r, const struct ap_ticks *time, const int64_t *send,
	const int64_t *send_back)
{
	int64_t most = 0;

	if (!r->step)
		lay_out(r);
	memset(r->free, 0, (size_t)r->nstage * sizeof *r->free);
	memset(r->link, 0, (size_t)r->nlink * sizeof *r->link);
	if (r->link_there != NOWHERE)
		r->link[r->link_there] = r->there;
	measure(r, time);
	for (uint32_t i = 0; i < r->nstep; i++) {
		const struct step *x = &r->step[i];
		int64_t now = r->free[x->stage], ticks;

		if (x->need != NOWHERE && r->arrived[x->need] > now)
			now = r->arrived[x->need];
		if ((int32_t)i == r->opening && r->there > now)
			now = r->there;
		now += r->length[x->part][x->length];
		r->free[x->stage] = r->end[i] = now;
		if (x->give == NOWHERE)
			continue;
		if (x->link != NOWHERE && (ticks = send_ticks(x, send, send_back)) > 0) {
			int64_t *link = &r->link[x->link];

			now = (*link > now ? *link : now) + ticks;
			*link = now;
		}
		r->arrived[x->give] = now;
	}
	for (int32_t s = 0; s < r->nstage; s++) {
		int64_t now = exchange(r, s, time);

		r->free[s] = now > r->free[s] ? now : r->free[s];
	}
	r->returned = come_back(r, send, send_back);
	if (r->returned > r->free[r->stage_of[0]])
		r->free[r->stage_of[0]] = r->returned;
	for (int32_t q = 0; q < r->npart; q++)
		r->free[r->stage_of[q]] += time[q].t[AP_TIME_UPDATE];
	for (int32_t s = 0; s < r->nstage; s++)
		most = r->free[s] > most ? r->free[s] : most;
	return most;
}

/* The step whose end the delivery by `maker` goes back to; its sends are counted, those before it that held
 * it up on its link too if they may be. NOWHERE: the path ends with a send. */
static int32_t sender(struct ap_replay *r, int32_t maker, const int64_t *send, const int64_t *send_back,
	bool queues, struct ap_replay_path *out)
{
	for (;;) {
		const struct step *x = &r->step[maker];
		int64_t ticks = x->link == NOWHERE ? 0 : send_ticks(x, send, send_back);

		if (ticks == 0)
			return maker;
		(x->back ? &out->send_back[x->part - 1] : &out->send[x->part])[0]++;
		if (r->arrived[x->give] - ticks == r->end[maker])
			return maker;
		if (!queues)
			return NOWHERE;
		do /* the last one before that took time */
			maker = r->sent[maker];
		while (maker != NOWHERE && send_ticks(&r->step[maker], send, send_back) == 0);
		if (maker == NOWHERE) { /* what is sent once came first */
			out->once += r->there;
			return maker;
		}
	}
}

/* When the passes of a stage, and its exchanges, are done. */
static int64_t finished(const struct ap_replay *r, int32_t stage)
{
	int64_t passes = r->end[r->last[stage]];
	int64_t exchanges = r->exchanged[r->turn[(stage + 1) * r->nsegment - 1]];

	return passes > exchanges ? passes : exchanges;
}

/* Counts what came back last. Returns the step that it followed; NOWHERE: the path ends with a send. */
static int32_t following_home(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	struct ap_replay_path *out)
{
	int32_t final = r->final[r->npart - 1];

	out->once += r->home;
	if (r->returned - r->home == r->end[final] || !queues) /* without sends it waits for nothing else */
		return final;
	return sender(r, last_sent(r, send, send_back), send, send_back, queues, out);
}

/* Does something take longer beside the step's pass? */
static bool is_beside(const struct ap_replay *r, const struct step *x)
{
	return x->length == r->finishing && r->beside[x->part] > 0;
}

/* What the step takes, as one of its part's times. */
static int counted(const struct ap_replay *r, const struct step *x)
{
	return is_beside(r, x) && r->beside[x->part] > r->plain[x->part] ? AP_TIME_BESIDE : x->pass;
}

/* Counts the exchanges that a stage's update waits for. Returns the step at whose start the first of them
 * begins; NOWHERE: it waits for passes alone. */
static int32_t first_exchanging(const struct ap_replay *r, int32_t stage, struct ap_replay_path *out)
{
	const int32_t *turn = &r->turn[stage * r->nsegment];
	int32_t i = r->nsegment - 1;

	if (r->exchanged[turn[i]] <= r->end[r->last[stage]])
		return NOWHERE;
	for (;; i--) {
		out->pass[turn[i]][AP_TIME_EXCHANGE]++;
		if (i == 0 || r->exchanged[turn[i - 1]] <= r->start[turn[i]])
			return r->final[turn[i]];
	}
}

void ap_replay_path(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	struct ap_replay_path *out)
{
	int32_t stage = 0, at, beside = NOWHERE;

	memset(out->pass, 0, (size_t)r->npart * sizeof *out->pass);
	memset(out->send, 0, (size_t)r->npart * sizeof *out->send);
	memset(out->send_back, 0, (size_t)r->npart * sizeof *out->send_back);
	for (int32_t s = 1; s < r->nstage; s++)
		stage = r->free[s] > r->free[stage] ? s : stage;
	for (int32_t q = 0; q < r->npart; q++)
		out->pass[q][AP_TIME_UPDATE] = r->stage_of[q] == stage;
	out->once = 0;
	if (stage == r->stage_of[0] && r->returned > finished(r, stage)) {
		at = following_home(r, send, send_back, queues, out);
	} else {
		beside = first_exchanging(r, stage, out);
		at = beside == NOWHERE ? r->last[stage] : beside;
	}
	while (at != NOWHERE) {
		const struct step *x = &r->step[at];
		int64_t start = r->end[at] - r->length[x->part][x->length];
		int32_t before = r->before[at];

		out->pass[x->part][counted(r, x)] += at != beside;
		out->pass[x->part][AP_TIME_SLOWED] += at != beside && x->length == LAST;
		if (before != NOWHERE && r->end[before] == start)
			at = before;
		else if (x->need != NOWHERE && r->arrived[x->need] == start)
			at = sender(r, r->maker[x->need], send, send_back, queues, out);
		else
			break; /* the first pass of all */
	}
	if (at == r->opening) /* or the last part's, which waits for what is sent once */
		out->once += r->there;
}

/* How many of n paths take the one of two ends that is `later` ticks after the other. */
static int64_t share(int64_t n, int64_t later, int64_t near)
{
	double part;

	if (later >= near)
		return later > 0 ? n : n - n / 2;
	part = 0.5 + 0.5 * (double)later / (double)near;
	return (int64_t)((double)n * part);
}

/* Parts n paths between two ends. Returns how many take the first. */
static int64_t divide(int64_t n, int64_t a, int64_t b, int64_t near)
{
	return a >= b ? share(n, a - b, near) : n - share(n, b - a, near);
}

/* The paths that come with the delivery of step i go back to its end, or to the send before it. */
static void part_sends(struct ap_replay *r, int32_t i, const int64_t *send, const int64_t *send_back,
	bool queues, int64_t near, struct ap_replay_flow *out)
{
	const struct step *x = &r->step[i];
	int64_t n = r->sends[i], own = n, ticks = x->link == NOWHERE ? 0 : send_ticks(x, send, send_back);
	int32_t before = r->sent[i];

	if (ticks > 0) {
		(x->back ? &out->send_back[x->part - 1] : &out->send[x->part])[0] += n;
		while (queues && before != NOWHERE && send_ticks(&r->step[before], send, send_back) == 0)
			before = r->sent[before];
		if (queues && before != NOWHERE) {
			own = divide(n, r->end[i], r->arrived[r->step[before].give], near);
			r->sends[before] += n - own;
		} else if (queues && x->link == r->link_there && r->there > 0) {
			own = divide(n, r->end[i], r->there, near);
			out->there += n - own;
		}
	}
	r->through[i] += own;
}

/* The paths that come to a stage's update go back to its last pass, or to its exchanges, one by one, and the
 * start of the pass that one begins with, or to what the parts share, and what that follows. */
static void part_update(struct ap_replay *r, int32_t stage, int64_t n, const int64_t *send,
	const int64_t *send_back, bool queues, int64_t near, struct ap_replay_flow *out)
{
	const int32_t *turn = &r->turn[stage * r->nsegment];
	int32_t i = r->nsegment - 1;
	int64_t own;

	for (int32_t k = 0; k < r->nsegment; k++)
		out->pass[turn[k]][AP_TIME_UPDATE] = n;
	if (stage == r->stage_of[0] && r->home > 0) {
		int32_t sent = queues ? last_sent(r, send, send_back) : NOWHERE;
		int32_t final = r->final[r->npart - 1];
		int64_t sends = 0;

		own = divide(n, finished(r, stage), r->returned, near);
		out->home = n - own;
		if (sent != NOWHERE)
			sends = n - own - divide(n - own, r->end[final],
				r->arrived[r->step[sent].give], near);
		if (sends > 0)
			r->sends[sent] += sends;
		r->through[final] += n - own - sends;
		n = own;
	}
	own = divide(n, r->end[r->last[stage]], r->exchanged[turn[i]], near);
	r->through[r->last[stage]] += own;
	for (n -= own; n > 0; i--) {
		int32_t q = turn[i];

		out->pass[q][AP_TIME_EXCHANGE] = n;
		own = i == 0 ? n : divide(n, r->start[q], r->exchanged[turn[i - 1]], near);
		r->begun[q] = own;
		n -= own;
	}
}

/* The stages that end last share the paths. */
static void begin_flow(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	int64_t near, struct ap_replay_flow *out)
{
	int64_t most = 0, left = AP_REPLAY_FLOW;
	double sum = 0;
	int32_t latest = 0;

	for (int32_t s = 0; s < r->nstage; s++)
		if (r->free[s] > most) {
			most = r->free[s];
			latest = s;
		}
	for (int32_t s = 0; s < r->nstage; s++)
		if (r->free[s] == most || most - r->free[s] < near)
			sum += near > 0 ? 1 - (double)(most - r->free[s]) / (double)near : 1;
	for (int32_t s = 0; s < r->nstage; s++) {
		int64_t n;

		if (s == latest || (r->free[s] < most && most - r->free[s] >= near))
			continue;
		n = (int64_t)((double)AP_REPLAY_FLOW *
			(near > 0 ? 1 - (double)(most - r->free[s]) / (double)near : 1) / sum);
		n = n < left ? n : left;
		part_update(r, s, n, send, send_back, queues, near, out);
		left -= n;
	}
	part_update(r, latest, left, send, send_back, queues, near, out);
}

void ap_replay_spread(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	int64_t near, struct ap_replay_flow *out)
{
	memset(out->pass, 0, (size_t)r->npart * sizeof *out->pass);
	memset(out->send, 0, (size_t)r->npart * sizeof *out->send);
	memset(out->send_back, 0, (size_t)r->npart * sizeof *out->send_back);
	memset(r->through, 0, r->nstep * sizeof *r->through);
	memset(r->sends, 0, r->nstep * sizeof *r->sends);
	memset(r->begun, 0, (size_t)r->npart * sizeof *r->begun);
	out->there = out->home = 0;
	begin_flow(r, send, send_back, queues, near, out);
	for (int32_t i = (int32_t)r->nstep - 1; i >= 0; i--) {
		const struct step *x = &r->step[i];
		int32_t before = r->before[i];
		int64_t n, own;

		if (r->sends[i] > 0)
			part_sends(r, i, send, send_back, queues, near, out);
		n = r->through[i];
		own = is_beside(r, x) ? divide(n, r->plain[x->part], r->beside[x->part], near) : n;
		out->pass[x->part][x->pass] += own;
		out->pass[x->part][AP_TIME_BESIDE] += n - own;
		if (r->final[x->part] == i) {
			out->pass[x->part][AP_TIME_SLOWED] += n;
			n += r->begun[x->part];
		}
		if (n == 0)
			continue;
		if (i == r->opening && r->there > 0) {
			int64_t now = before == NOWHERE ? 0 : r->end[before];

			now = r->arrived[x->need] > now ? r->arrived[x->need] : now;
			own = divide(n, now, r->there, near);
			out->there += n - own;
			n = own;
		}
		if (x->need == NOWHERE)
			own = n;
		else if (before == NOWHERE)
			own = 0;
		else
			own = divide(n, r->end[before], r->arrived[x->need], near);
		if (before != NOWHERE)
			r->through[before] += own;
		if (x->need != NOWHERE)
			r->sends[r->maker[x->need]] += n - own;
	}
}

double ap_replay_once(const struct ap_replay *r, const struct ap_replay_flow *flow)
{
	return (double)flow->there * (double)r->there + (double)flow->home * (double)r->home;
}
