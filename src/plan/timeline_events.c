/* SPDX-License-Identifier: Apache-2.0 */
/* All events of a step in order of start: those of each stream are in order, and are merged. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "plan/whole_step.h"

enum source { OF_COMPUTE, OF_COMMUNICATION, OF_GRADIENT, OF_MEMORY, OF_LINKS, OF_PARAMETERS };

/* The next event, or memory sample, of one stream. */
struct head {
	enum source source;
	int32_t stage;
	uint32_t slot; /* of the timeline; past the end: what comes after the passes */
	size_t i; /* within it */
	int64_t held; /* memory at the start of the slot */
	double free_s; /* the stream's last end */
	struct ap_trace_event event;
	struct ap_trace_memory memory;
	bool done;
};

struct merging {
	const struct ap_plan *p;
	const struct ap_walk *w;
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

	h->held += ap_walk_slot(m->w, h->stage, h->slot, &part)->net_bytes;
	h->slot++;
	h->i = 0;
}

static bool take_pass_event(const struct merging *m, struct head *h, enum ap_stream stream)
{
	for (; in_slots(m, h); next_slot(m, h)) {
		const struct ap_slot_time *s = &m->w->timeline->slot[h->slot];
		int32_t part;
		const struct ap_slot_run *run = ap_walk_slot(m->w, h->stage, h->slot, &part);

		while (h->i < run->events.n) {
			const struct ap_slot_event *e = &run->events.v[h->i++];

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
	const struct ap_plan_index *x = &m->w->x;

	h->free_s = fmax(h->free_s, m->w->stage[h->stage].update_s);
	while (h->i < m->p->graph->nnode) {
		ap_id node = (ap_id)h->i++;
		double work = ap_walk_update_s(m->p, node);

		if (x->stage[x->part_of[node]] != h->stage || work <= 0)
			continue;
		h->event = (struct ap_trace_event){h->stage, -1, AP_STREAM_COMPUTE, AP_EVENT_OPTIMIZER,
			node, 0, -1, -1, h->free_s, h->free_s + work};
		h->free_s += work;
		return true;
	}
	return false;
}

/* Buckets of gradients as they go out, then those of weights. */
static bool take_bucket(const struct merging *m, struct head *h)
{
	const struct ap_walk *w = m->w;

	while (h->i < w->exchange.n + m->p->nbucket) {
		bool late = h->i >= w->exchange.n;
		uint32_t b = late ? (uint32_t)(h->i - w->exchange.n) : w->exchange.v[h->i];
		const struct ap_bucket *bucket = &m->p->bucket[b];

		h->i++;
		if (bucket->stage != h->stage || late != ap_walk_gathers(m->p, bucket))
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
		const struct ap_slot_run *run = ap_walk_slot(m->w, h->stage, h->slot, &part);

		while (h->i < run->samples.n) {
			const struct ap_slot_sample *s = &run->samples.v[h->i++];

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
	const struct ap_plan_index *x = &m->w->x;

	return (struct ap_trace_event){x->stage[from], x->stage[to], AP_STREAM_LINK, AP_EVENT_SEND,
		(uint32_t)from, (uint32_t)to, micro, x->segment[from], start, end};
}

static bool take_send(const struct merging *m, struct head *h)
{
	const struct ap_send_time *s;

	if (h->i >= m->w->timeline->nsend)
		return false;
	s = &m->w->timeline->send[h->i++];
	h->event = send_event(m, s->from_part, s->to_part, s->micro, s->start_s, s->end_s);
	return true;
}

static bool take_parameter(const struct merging *m, struct head *h)
{
	const struct ap_walk_send *s;

	if (h->i >= m->w->sends.n)
		return false;
	s = &m->w->sends.v[h->i++];
	h->event = send_event(m, s->from, s->to, -1, s->start_s, s->end_s);
	return true;
}

static void next(const struct merging *m, struct head *h)
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
}

/* Times that are in order stay so when the same is added to all. */
static void advance(const struct merging *m, struct head *h)
{
	next(m, h);
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

/* The earliest; of several the one that was opened first. */
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
	const struct ap_walk_send *a = x, *b = y;

	if (a->start_s != b->start_s)
		return a->start_s < b->start_s ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

/* Parameters and their gradients in order, all from the start of the step. */
static void order_parameters(struct ap_walk *w)
{
	for (size_t i = 0; i < w->sends.n; i++) {
		struct ap_walk_send *s = &w->sends.v[i];

		s->start_s += s->to < s->from ? w->late_s : 0;
		s->end_s += s->to < s->from ? w->late_s : 0;
	}
	if (w->sends.n > 0)
		qsort(w->sends.v, w->sends.n, sizeof *w->sends.v, by_start);
}

void ap_simulate_each(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_trace_take *take,
	void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_plan again = *p;
	struct ap_walk w;
	struct merging m = {.p = &again, .w = &w};
	struct head *h;

	ap_walk_make(ctx, &again, true, &w);
	order_parameters(&w);
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
