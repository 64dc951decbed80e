/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage runs its slots in their order until one has to wait for another stage; what arrives there
 * wakes it. All sends from one stage to another are of slots of the one, so they come up in the
 * order in which they are ready.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "pipeline/schedule.h"

struct running {
	const struct ap_pipe *pipe;
	int32_t nmicro, npart;
	enum ap_pass finish; /* of a micro-batch */
	const struct ap_pass_times *time;
	struct ap_slot_time *slot;
	const uint32_t *first; /* [nstage + 1] */
	uint32_t *next;        /* [nstage] slot */
	double *free_s;        /* [nstage] */
	double *link_free_s;   /* [nstage * nstage] */
	double *arrived_s; /* [pass][part][micro] what the pass needs from elsewhere; NAN: not yet
			    */
	int32_t *left;     /* [part] micro-batches to be finished */
	int32_t *waking;   /* ring of nstage */
	bool *awake;       /* [nstage] */
	size_t nwoken, nasleep; /* so many entered and left the ring */
	struct ap_arena *arena;
	struct sends {
		struct ap_send_time *v;
		size_t n, cap;
	} sends;
};

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

/* What a pass of part `from` made is sent to part `to`, for the same pass there. */
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

/* Others need what this slot made, whatever else there is to come from it. */
static void hand_on(struct running *r, const struct ap_slot_time *s, int32_t part)
{
	int32_t micro = s->slot.micro;

	if (s->slot.pass == AP_PASS_FORWARD && part + 1 < r->npart)
		deliver(r, AP_PASS_FORWARD, part, part + 1, micro, s->end_s);
	if (s->slot.pass == AP_PASS_FORWARD && part + 1 == r->npart)
		*arrival(r, AP_PASS_BACKWARD, part, micro) = s->end_s;
	if (s->slot.pass == AP_PASS_BACKWARD && part > 0)
		deliver(r, AP_PASS_BACKWARD, part, part - 1, micro, s->end_s);
}

static void run_stage(struct running *r, int32_t stage)
{
	for (; r->next[stage] < r->first[stage + 1]; r->next[stage]++) {
		struct ap_slot_time *s = &r->slot[r->next[stage]];
		int32_t part = ap_schedule_part(
			r->pipe->scheduler, r->pipe->nstage, stage, s->slot.segment);
		double needed = s->slot.pass == AP_PASS_WEIGHT
					? 0
					: *arrival(r, s->slot.pass, part, s->slot.micro);

		if (isnan(needed))
			return;
		s->start_s = fmax(r->free_s[stage], needed);
		s->end_s = s->start_s + length_of(r, s->slot.pass, part);
		r->free_s[stage] = s->end_s;
		hand_on(r, s, part);
	}
}

/* The slots of all stages; forward passes alone without training. */
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
			if (training || order[i].pass == AP_PASS_FORWARD)
				r->slot[used++].slot = order[i];
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
	r->waking = AP_NEW_N(scratch, int32_t, nstage);
	r->awake = AP_NEW_N(scratch, bool, nstage);
	r->left = AP_NEW_N(scratch, int32_t, r->npart);
	r->arrived_s = AP_NEW_N(scratch, double, n);
	for (size_t i = 0; i < n; i++)
		r->arrived_s[i] = NAN;
	for (int32_t i = 0; i < r->nmicro; i++)
		*arrival(r, AP_PASS_FORWARD, 0, i) = 0;
	for (int32_t p = 0; p < r->npart; p++)
		r->left[p] = r->nmicro;
	for (int32_t s = 0; s < r->pipe->nstage; s++)
		wake(r, s);
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

static void finish(const struct running *r, struct ap_timeline *out)
{
	*out = (struct ap_timeline){.nstage = r->pipe->nstage,
		.first = r->first,
		.slot = r->slot,
		.nsend = (uint32_t)r->sends.n,
		.send = r->sends.v};
	if (r->sends.n)
		qsort(r->sends.v, r->sends.n, sizeof *r->sends.v, by_start);
	for (int32_t s = 0; s < out->nstage; s++) {
		assert(r->next[s] == r->first[s + 1]); /* else the orders wait for each other */
		out->end_s = fmax(out->end_s, r->free_s[s]);
	}
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
