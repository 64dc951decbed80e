/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "plan/buckets.h"
#include "plan/whole_step.h"

static double optimizer_s(const struct ap_whole_step_stage *s)
{
	return s->end_s - s->update_s;
}

static void predict(const struct ap_whole_step *w, struct ap_prediction *out)
{
	double n = w->x.nstage;

	out->step_time_s = w->late_s + w->end_s;
	out->compute_s = out->communication_s = out->bubble_s = out->optimizer_s = 0;
	for (int32_t s = 0; s < w->x.nstage; s++) {
		out->compute_s += w->stage[s].compute_s / n;
		out->communication_s += w->stage[s].communication_s / n;
		out->bubble_s += w->stage[s].idle_s / n;
		out->optimizer_s += optimizer_s(&w->stage[s]) / n;
	}
	out->exposed_communication_s = out->communication_s > 0
		? fmax(0, out->step_time_s - out->compute_s - out->bubble_s - out->optimizer_s) : 0;
	out->samples_per_s = (double)w->x.p->graph->batch / out->step_time_s;
}

static void put_off(struct ap_ctx *ctx, struct ap_timeline *t, double by)
{
	uint32_t n = t->first[t->nstage];
	struct ap_slot_time *slot = ap_arena_memdup(ctx->arena, t->slot, n * sizeof *slot);
	struct ap_send_time *send = ap_arena_memdup(ctx->arena, t->send, t->nsend * sizeof *send);

	for (uint32_t i = 0; i < n; i++) {
		slot[i].start_s += by;
		slot[i].end_s += by;
	}
	for (uint32_t i = 0; i < t->nsend; i++) {
		send[i].start_s += by;
		send[i].end_s += by;
	}
	t->slot = slot;
	t->send = send;
	t->end_s += by;
}

void ap_simulate(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_simulation *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_plan_stage *stage = ap_arena_memdup(ctx->arena, p->stage, p->nstage * sizeof *stage);
	struct ap_whole_step w;

	ap_whole_step_make(ctx, p, false, &w);
	for (int32_t s = 0; s < w.x.nstage; s++) {
		stage[s].forward_s = w.stage[s].forward_s;
		stage[s].backward_s = w.stage[s].backward_s;
		stage[s].idle_s = w.stage[s].idle_s;
		stage[s].peak_bytes = w.stage[s].peak_bytes;
	}
	if (w.late_s > 0)
		put_off(ctx, w.timeline, w.late_s);
	*out = (struct ap_simulation){.prediction = p->prediction, .stage = stage, .nbucket = w.buckets.n,
		.bucket = w.buckets.v, .timeline = w.timeline};
	predict(&w, &out->prediction);
	ap_arena_release(ctx->scratch, mark);
}

struct listing {
	struct ap_ctx *ctx;
	const struct ap_whole_step *w;
	const struct ap_plan *p;
	AP_VEC(struct ap_event) events;
	int32_t stage;
	double origin_s; /* start of the stage's first pass over the last micro-batch */
	double end_s; /* of the last pass, from origin_s; later of the exchange */
	double *last_start_s; /* [npart] start of a part's last slot, from origin_s */
};

static void list(struct listing *l, enum ap_event_kind kind, uint32_t index, uint32_t sub, double start,
	double end)
{
	struct ap_event e = {kind, index, sub, start, end};

	AP_PUSH(l->ctx->arena, l->events, e);
}

/* Recomputed kernels and moves are not listed; collectives of recomputation are. */
static void list_slot(struct listing *l, const struct ap_pass_run *run, enum ap_pass pass, double at)
{
	for (size_t i = 0; i < run->events.n; i++) {
		const struct ap_pass_event *e = &run->events.v[i];
		bool again = e->kind == AP_EVENT_MOVE && pass != AP_PASS_FORWARD;

		if (e->kind <= AP_EVENT_OPTIMIZER && !again)
			list(l, e->kind, e->index, e->sub, at + e->start_s, at + e->end_s);
	}
}

/* Adds times slot by slot, so that adjacent slots meet to the last bit. */
static void list_passes(struct listing *l)
{
	const struct ap_timeline *t = l->w->timeline;
	int32_t micro = (int32_t)l->p->step->micro_batches - 1, part;
	bool any = false;

	l->end_s = 0;
	for (uint32_t i = t->first[l->stage]; i < t->first[l->stage + 1]; i++) {
		const struct ap_slot_time *s = &t->slot[i];
		const struct ap_pass_run *run;
		double at;

		if (s->slot.micro != micro)
			continue;
		if (!any)
			l->origin_s = s->start_s;
		any = true;
		run = ap_whole_step_slot(l->w, l->stage, i, &part);
		at = fmax(l->end_s, s->start_s - l->origin_s);
		if (l->w->part[part].last_slot == i)
			l->last_start_s[part] = at;
		list_slot(l, run, (enum ap_pass)s->slot.pass, at);
		l->end_s = at + run->span_s;
	}
}

static void list_bucket(struct listing *l, const struct ap_bucket *b, double start)
{
	int64_t done = 0;
	double from = start;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct ap_bucket_part *part = &b->part[i];
		double end;

		done += l->p->op[part->node].comm[part->comm].comm.bytes;
		end = start + b->time_s * ((double)done / (double)b->bytes);
		list(l, AP_EVENT_COMM, part->node, part->comm, from, end);
		from = end;
	}
}

static void list_exchange(struct listing *l)
{
	const struct ap_whole_step *w = l->w;
	double free_s = 0;

	for (size_t i = 0; i < w->exchange.n; i++) {
		const struct ap_bucket *b = &w->buckets.v[w->exchange.v[i]];

		if (b->stage != l->stage)
			continue;
		free_s = fmax(free_s, ap_whole_step_ready_s(w, w->exchange.v[i], l->last_start_s, l->end_s,
			l->origin_s));
		list_bucket(l, b, free_s);
		free_s += b->time_s;
	}
	l->end_s = fmax(l->end_s, free_s);
	l->end_s = fmax(l->end_s, w->stage[l->stage].update_s - l->origin_s);
}

const struct ap_event *ap_simulate_schedule(struct ap_ctx *ctx, const struct ap_plan *p, uint32_t *n)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_whole_step w;
	struct listing l = {.ctx = ctx, .w = &w, .p = p};

	AP_RESERVE(ctx->arena, l.events, 3 * (size_t)p->graph->nnode + 2 * (size_t)p->nmove);
	ap_whole_step_make(ctx, p, true, &w);
	l.last_start_s = AP_NEW_N(ctx->scratch, double, w.x.npart);
	for (l.stage = 0; l.stage < w.x.nstage; l.stage++) {
		list_passes(&l);
		list_exchange(&l);
		for (ap_id i = 0; i < p->graph->nnode; i++) {
			double work = ap_whole_step_update_s(p, i);

			if (w.x.stage[w.x.part_of[i]] != l.stage || work <= 0)
				continue;
			list(&l, AP_EVENT_OPTIMIZER, i, 0, l.end_s, l.end_s + work);
			l.end_s += work;
		}
	}
	ap_arena_release(ctx->scratch, mark);
	*n = (uint32_t)l.events.n;
	return l.events.v;
}

/* The sorted streams whose events are merged. */
enum source { OF_COMPUTE, OF_COMMUNICATION, OF_GRADIENT, OF_MEMORY, OF_LINKS, OF_PARAMETERS };

/* The next event, or memory sample, of one stream. */
struct head {
	enum source source;
	int32_t stage;
	uint32_t slot; /* of the timeline; past the end: after the passes */
	size_t i; /* in the slot */
	int64_t held; /* memory at the start of the slot */
	double free_s; /* the stream's last end */
	struct ap_trace_event event;
	struct ap_trace_memory memory;
	bool done;
};

struct merging {
	const struct ap_plan *p;
	const struct ap_whole_step *w;
	const struct ap_send_time *send; /* of the timeline, by start */
	struct head *head;
	size_t n;
};

static bool in_slots(const struct merging *m, const struct head *h)
{
	return h->slot < m->w->timeline->first[h->stage + 1];
}

static void next_slot(const struct merging *m, struct head *h)
{
	int32_t part;

	h->held += ap_whole_step_slot(m->w, h->stage, h->slot, &part)->net_bytes;
	h->slot++;
	h->i = 0;
}

static bool take_pass_event(const struct merging *m, struct head *h, enum ap_stream stream)
{
	for (; in_slots(m, h); next_slot(m, h)) {
		const struct ap_slot_time *s = &m->w->timeline->slot[h->slot];
		int32_t part;
		const struct ap_pass_run *run = ap_whole_step_slot(m->w, h->stage, h->slot, &part);

		while (h->i < run->events.n) {
			const struct ap_pass_event *e = &run->events.v[h->i++];

			if (e->stream != stream)
				continue;
			h->event = (struct ap_trace_event){h->stage, -1, stream, e->kind, e->index,
				e->sub, s->slot.micro, s->slot.segment, s->start_s + e->start_s,
				s->start_s + e->end_s};
			return true;
		}
	}
	return false;
}

static bool take_update(const struct merging *m, struct head *h)
{
	const struct ap_parts *x = &m->w->x;

	h->free_s = fmax(h->free_s, m->w->stage[h->stage].update_s);
	while (h->i < m->p->graph->nnode) {
		ap_id node = (ap_id)h->i++;
		double work = ap_whole_step_update_s(m->p, node);

		if (x->stage[x->part_of[node]] != h->stage || work <= 0)
			continue;
		h->event = (struct ap_trace_event){h->stage, -1, AP_STREAM_COMPUTE, AP_EVENT_OPTIMIZER,
			node, 0, -1, -1, h->free_s, h->free_s + work};
		h->free_s += work;
		return true;
	}
	return false;
}

/* Buckets of gradients in order of execution, then those of weights. */
static bool take_bucket(const struct merging *m, struct head *h)
{
	const struct ap_whole_step *w = m->w;

	while (h->i < w->exchange.n + w->buckets.n) {
		bool late = h->i >= w->exchange.n;
		uint32_t b = late ? (uint32_t)(h->i - w->exchange.n) : w->exchange.v[h->i];
		const struct ap_bucket *bucket = &w->buckets.v[b];

		h->i++;
		if (bucket->stage != h->stage || late != ap_whole_step_gathers(m->p, bucket))
			continue;
		h->event = (struct ap_trace_event){h->stage, -1, AP_STREAM_GRADIENT, AP_EVENT_BUCKET, b,
			0, -1, -1, w->bucket_start_s[b], w->bucket_start_s[b] + bucket->time_s};
		return true;
	}
	return false;
}

static bool take_sample(const struct merging *m, struct head *h)
{
	for (; in_slots(m, h); next_slot(m, h)) {
		int32_t part;
		const struct ap_pass_run *run = ap_whole_step_slot(m->w, h->stage, h->slot, &part);

		while (h->i < run->samples.n) {
			const struct ap_pass_sample *s = &run->samples.v[h->i++];

			if (h->held + s->bytes == h->memory.bytes)
				continue;
			h->memory.at_s = m->w->timeline->slot[h->slot].start_s + s->at_s;
			h->memory.bytes = h->held + s->bytes;
			return true;
		}
	}
	return false;
}

static struct ap_trace_event send_event(const struct merging *m, int32_t from, int32_t to, int32_t micro,
	double start, double end)
{
	const struct ap_parts *x = &m->w->x;

	return (struct ap_trace_event){x->stage[from], x->stage[to], AP_STREAM_LINK, AP_EVENT_SEND,
		(uint32_t)from, (uint32_t)to, micro, x->segment[from], start, end};
}

static bool take_send(const struct merging *m, struct head *h)
{
	const struct ap_send_time *s;

	if (h->i >= m->w->timeline->nsend)
		return false;
	s = &m->send[h->i++];
	h->event = send_event(m, s->from_part, s->to_part, s->micro, s->start_s, s->end_s);
	return true;
}

static bool take_parameter(const struct merging *m, struct head *h)
{
	const struct ap_whole_step_send *s;

	if (h->i >= m->w->sends.n)
		return false;
	s = &m->w->sends.v[h->i++];
	h->event = send_event(m, s->from, s->to, -1, s->start_s, s->end_s);
	return true;
}

/* Adding late_s to all times keeps their order. */
static void advance(const struct merging *m, struct head *h)
{
	switch (h->source) {
	case OF_COMPUTE:
		h->done = !take_pass_event(m, h, AP_STREAM_COMPUTE) && !take_update(m, h);
		break;
	case OF_COMMUNICATION:
		h->done = !take_pass_event(m, h, AP_STREAM_COMMUNICATION);
		break;
	case OF_GRADIENT:
		h->done = !take_bucket(m, h);
		break;
	case OF_MEMORY:
		h->done = !take_sample(m, h);
		break;
	case OF_LINKS:
		h->done = !take_send(m, h);
		break;
	case OF_PARAMETERS:
		h->done = !take_parameter(m, h);
		break;
	}
	if (h->source == OF_MEMORY) {
		h->memory.at_s += m->w->late_s;
	} else if (h->source != OF_PARAMETERS) {
		h->event.start_s += m->w->late_s;
		h->event.end_s += m->w->late_s;
	}
}

static double time_of(const struct head *h)
{
	return h->source == OF_MEMORY ? h->memory.at_s : h->event.start_s;
}

/* The earliest head; of equal ones the one opened first. */
static struct head *earliest(const struct merging *m)
{
	struct head *best = NULL;

	for (size_t i = 0; i < m->n; i++)
		if (!m->head[i].done && (!best || time_of(&m->head[i]) < time_of(best)))
			best = &m->head[i];
	return best;
}

static void open_head(struct merging *m, enum source source, int32_t stage)
{
	struct head *h = &m->head[m->n++];
	int64_t fixed = m->w->stage[stage].fixed_bytes;

	*h = (struct head){.source = source, .stage = stage, .slot = m->w->timeline->first[stage],
		.held = fixed, .memory = {stage, 0, fixed}};
	if (source != OF_MEMORY)
		advance(m, h);
}

static int by_start(const void *x, const void *y)
{
	const struct ap_whole_step_send *a = x, *b = y;

	if (a->start_s != b->start_s)
		return a->start_s < b->start_s ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

void ap_simulate_each(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_trace_take *take,
	void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_whole_step w;
	struct merging m = {.p = p, .w = &w};
	struct head *h;

	ap_whole_step_make(ctx, p, true, &w);
	m.send = ap_schedule_sends(ctx->scratch, w.timeline);
	/* Sends of parameters and of gradients in order, both from the start of the step. */
	for (size_t i = 0; i < w.sends.n; i++) {
		struct ap_whole_step_send *s = &w.sends.v[i];

		s->start_s += s->to < s->from ? w.late_s : 0;
		s->end_s += s->to < s->from ? w.late_s : 0;
	}
	if (w.sends.n > 0)
		qsort(w.sends.v, w.sends.n, sizeof *w.sends.v, by_start);
	m.head = AP_NEW_N(ctx->scratch, struct head, 4 * w.x.nstage + 2);
	for (int32_t s = 0; s < w.x.nstage; s++)
		for (enum source k = OF_COMPUTE; k <= OF_MEMORY; k++)
			if (k != OF_MEMORY || take->memory)
				open_head(&m, k, s);
	open_head(&m, OF_LINKS, 0);
	open_head(&m, OF_PARAMETERS, 0);
	while ((h = earliest(&m))) {
		if (h->source == OF_MEMORY)
			take->memory(user, &h->memory);
		else
			take->event(user, &h->event);
		advance(&m, h);
	}
	ap_arena_release(ctx->scratch, mark);
}
