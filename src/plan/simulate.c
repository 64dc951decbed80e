/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/simulate.h"

#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "plan/buckets.h"
#include "plan/whole_step.h"

static double optimizer_s(const struct ap_walk_stage *s)
{
	return s->end_s - s->update_s;
}

/* Means over the stages. */
static void predict(const struct ap_walk *w, struct ap_prediction *out)
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

static void fill_stages(struct ap_ctx *ctx, const struct ap_walk *w, struct ap_plan *p)
{
	struct ap_plan_stage *stage = ap_arena_memdup(ctx->arena, p->stage, p->nstage * sizeof *stage);

	for (int32_t s = 0; s < w->x.nstage; s++) {
		stage[s].forward_s = w->stage[s].forward_s;
		stage[s].backward_s = w->stage[s].backward_s;
		stage[s].idle_s = w->stage[s].idle_s;
		stage[s].peak_bytes = w->stage[s].peak_bytes;
	}
	p->stage = stage;
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

void ap_simulate(struct ap_ctx *ctx, struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_walk w;

	ap_walk_make(ctx, p, false, &w);
	predict(&w, &p->prediction);
	fill_stages(ctx, &w, p);
	if (w.late_s > 0)
		put_off(ctx, w.timeline, w.late_s);
	p->timeline = w.timeline;
	ap_arena_release(ctx->scratch, mark);
}

/* The events of the last micro-batch and of the optimizer, stage by stage. */
struct listing {
	struct ap_ctx *ctx;
	const struct ap_walk *w;
	const struct ap_plan *p;
	AP_VEC(struct ap_event) events;
	int32_t stage;
	double origin_s; /* start of the first pass over that micro-batch */
	double end_s; /* of the last one, from there; later of the exchange */
	double *last_start_s; /* [npart] of the last slot of a part, from there */
};

static void list(struct listing *l, enum ap_event_kind kind, uint32_t index, uint32_t sub, double start,
	double end)
{
	struct ap_event e = {kind, index, sub, start, end};

	AP_PUSH(l->ctx->arena, l->events, e);
}

/* What is recomputed is said of the operator, and not listed again; its collectives are its own. */
static void list_slot(struct listing *l, const struct ap_slot_run *run, enum ap_pass pass, double at)
{
	for (size_t i = 0; i < run->events.n; i++) {
		const struct ap_slot_event *e = &run->events.v[i];
		bool again = e->kind == AP_EVENT_MOVE && pass != AP_PASS_FORWARD;

		if (e->kind <= AP_EVENT_OPTIMIZER && !again)
			list(l, e->kind, e->index, e->sub, at + e->start_s, at + e->end_s);
	}
}

/* Sums along the slots, so that one that follows another at once does so to the last bit. */
static void list_passes(struct listing *l)
{
	const struct ap_timeline *t = l->w->timeline;
	int32_t micro = (int32_t)l->p->step->micro_batches - 1, part;
	bool any = false;

	l->end_s = 0;
	for (uint32_t i = t->first[l->stage]; i < t->first[l->stage + 1]; i++) {
		const struct ap_slot_time *s = &t->slot[i];
		const struct ap_slot_run *run;
		double at;

		if (s->slot.micro != micro)
			continue;
		if (!any)
			l->origin_s = s->start_s;
		any = true;
		run = ap_walk_slot(l->w, l->stage, i, &part);
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
	const struct ap_walk *w = l->w;
	double free_s = 0;

	for (size_t i = 0; i < w->exchange.n; i++) {
		const struct ap_bucket *b = &l->p->bucket[w->exchange.v[i]];

		if (b->stage != l->stage)
			continue;
		free_s = fmax(free_s, ap_walk_ready_s(w, w->exchange.v[i], l->last_start_s, l->end_s,
			l->origin_s));
		list_bucket(l, b, free_s);
		free_s += b->time_s;
	}
	l->end_s = fmax(l->end_s, free_s);
	l->end_s = fmax(l->end_s, w->stage[l->stage].update_s - l->origin_s);
}

static void list_updates(struct listing *l)
{
	const struct ap_plan_index *x = &l->w->x;

	for (ap_id i = 0; i < l->p->graph->nnode; i++) {
		double work = ap_walk_update_s(l->p, i);

		if (x->stage[x->part_of[i]] != l->stage || work <= 0)
			continue;
		list(l, AP_EVENT_OPTIMIZER, i, 0, l->end_s, l->end_s + work);
		l->end_s += work;
	}
}

void ap_plan_add_schedule(struct ap_ctx *ctx, struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_plan again = *p;
	struct ap_walk w;
	struct listing l = {.ctx = ctx, .w = &w, .p = p};

	ap_buckets_explain(ctx, p);
	AP_RESERVE(ctx->arena, l.events, 3 * (size_t)p->graph->nnode + 2 * (size_t)p->nmove);
	ap_walk_make(ctx, &again, true, &w);
	l.p = &again;
	l.last_start_s = AP_NEW_N(ctx->scratch, double, w.x.npart);
	for (l.stage = 0; l.stage < w.x.nstage; l.stage++) {
		list_passes(&l);
		list_exchange(&l);
		list_updates(&l);
	}
	p->nevent = (uint32_t)l.events.n;
	p->event = l.events.v;
	ap_arena_release(ctx->scratch, mark);
}
