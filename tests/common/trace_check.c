/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "trace.h"

enum { FORWARD, BACKWARD, WEIGHT, PASSES };

struct span {
	double start_us, end_us; /* NAN: there is none */
};

struct checking {
	struct ap_ctx *ctx;
	struct trace *t;
	double slack_us; /* times are rounded when they are written */
	int64_t nsegment;
	int64_t *part_of;  /* [stage][segment] */
	int64_t *stage_of; /* [part] */
	struct span *pass; /* [pass][part][micro] */
	struct span *sent; /* [gradient][part that it comes from][micro] */
};

#define FAULT(c, ...) ap_arena_printf((c)->ctx->arena, __VA_ARGS__)

static int by_place(const void *x, const void *y)
{
	const struct trace_event *a = x, *b = y;

	if (a->stage != b->stage)
		return a->stage < b->stage ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start_us != b->start_us)
		return a->start_us < b->start_us ? -1 : 1;
	return (a->end_us > b->end_us) - (a->end_us < b->end_us);
}

static const char *one_at_a_time(const struct checking *c)
{
	const struct trace *t = c->t;

	for (size_t i = 1; i < t->events.n; i++) {
		const struct trace_event *a = &t->events.v[i - 1], *b = &t->events.v[i];

		if (a->stage == b->stage && a->tid == b->tid &&
			b->start_us < a->end_us - c->slack_us)
			return FAULT(c,
				"stage %d, thread %d: %s starts at %.17g us, %s ends at %.17g",
				(int)a->stage, (int)a->tid, b->name, b->start_us, a->name,
				a->end_us);
	}
	return NULL;
}

static struct span *pass_at(const struct checking *c, int pass, int64_t part, int64_t micro)
{
	return &c->pass[(pass * c->t->npart + part) * c->t->nmicro + micro];
}

static struct span *sent_at(const struct checking *c, bool gradient, int64_t from, int64_t micro)
{
	return &c->sent[(gradient * c->t->npart + from) * c->t->nmicro + micro];
}

static int pass_of(const char *name)
{
	static const char *const names[PASSES] = {"forward", "backward", "weight"};

	for (int i = 0; i < PASSES; i++)
		if (!strcmp(name, names[i]))
			return i;
	return PASSES;
}

static const char *note_pass(struct checking *c, const struct trace_event *e)
{
	int pass = pass_of(e->pass);
	struct span *s;

	if (pass == PASSES || e->part < 0 || e->segment < 0 || e->segment >= c->nsegment ||
		e->micro < 0 || e->micro >= c->t->nmicro)
		return FAULT(c, "%s: a pass of nothing", e->name);
	s = pass_at(c, pass, e->part, e->micro);
	if (!isnan(s->start_us))
		return FAULT(c, "%s of part %d is there twice", e->name, (int)e->part);
	*s = (struct span){e->start_us, e->end_us};
	c->part_of[e->stage * c->nsegment + e->segment] = e->part;
	c->stage_of[e->part] = e->stage;
	return NULL;
}

static const char *note_send(struct checking *c, const struct trace_event *e)
{
	struct span *s;

	if (e->micro < 0) /* once a step */
		return NULL;
	if (e->micro >= c->t->nmicro || labs((long)(e->from - e->to)) != 1 ||
		e->from >= c->t->npart)
		return FAULT(c, "%s from part %d to %d", e->name, (int)e->from, (int)e->to);
	s = sent_at(c, e->to < e->from, e->from, e->micro);
	if (!isnan(s->start_us))
		return FAULT(c, "part %d sends micro-batch %d twice", (int)e->from, (int)e->micro);
	*s = (struct span){e->start_us, e->end_us};
	return NULL;
}

static struct span *no_spans(const struct checking *c, int64_t n)
{
	struct span *s = AP_NEW_N(c->ctx->arena, struct span, n);

	for (int64_t i = 0; i < n; i++)
		s[i] = (struct span){NAN, NAN};
	return s;
}

static const char *note_all(struct checking *c)
{
	const struct trace *t = c->t;
	const char *fault = NULL;

	if (!t->npart || t->npart % t->nstage)
		return FAULT(c, "%d parts on %d stages", (int)t->npart, (int)t->nstage);
	c->nsegment = t->npart / t->nstage;
	c->part_of = AP_NEW_N(c->ctx->arena, int64_t, t->npart);
	c->stage_of = AP_NEW_N(c->ctx->arena, int64_t, t->npart);
	c->pass = no_spans(c, PASSES * t->npart * t->nmicro);
	c->sent = no_spans(c, 2 * t->npart * t->nmicro);
	for (size_t i = 0; i < t->events.n && !fault; i++) {
		const struct trace_event *e = &t->events.v[i];

		if (e->thread == TRACE_PASSES)
			fault = note_pass(c, e);
		else if (e->thread >= TRACE_LINK)
			fault = note_send(c, e);
	}
	return fault;
}

/* All parts over all micro-batches, or none. */
static const char *complete(const struct checking *c)
{
	int64_t most = c->t->npart * c->t->nmicro;

	for (int pass = 0; pass < PASSES; pass++) {
		int64_t n = 0;

		for (int64_t i = 0; i < most; i++)
			n += !isnan(c->pass[pass * most + i].start_us);
		if (n != most && (pass == FORWARD || n > 0))
			return FAULT(
				c, "%d passes of kind %d, expected %d", (int)n, pass, (int)most);
	}
	return NULL;
}

static const char *comes_after(const struct checking *c, const char *what, const struct span *later,
	const struct span *sooner, int64_t part, int64_t micro)
{
	if (isnan(later->start_us) || later->start_us >= sooner->end_us - c->slack_us)
		return NULL;
	return FAULT(c,
		"part %d, micro-batch %d: %s starts at %.17g us, what it needs ends at %.17g",
		(int)part, (int)micro, what, later->start_us, sooner->end_us);
}

/* From one part's pass to the next part's, through the send where there is one. */
static const char *handed_on(
	const struct checking *c, int pass, int64_t from, int64_t to, int64_t micro)
{
	const struct span *made = pass_at(c, pass, from, micro),
			  *used = pass_at(c, pass, to, micro);
	const struct span *sent = sent_at(c, to < from, from, micro);
	const char *fault;

	if (isnan(sent->start_us))
		return comes_after(c, "a pass", used, made, to, micro);
	fault = comes_after(c, "a send", sent, made, from, micro);
	return fault ? fault : comes_after(c, "a pass", used, sent, to, micro);
}

static const char *needs_have_come(const struct checking *c)
{
	const char *fault = NULL;

	for (int64_t part = 0; part < c->t->npart && !fault; part++)
		for (int64_t i = 0; i < c->t->nmicro && !fault; i++) {
			fault = comes_after(c, "the backward pass", pass_at(c, BACKWARD, part, i),
				pass_at(c, FORWARD, part, i), part, i);
			if (!fault)
				fault = comes_after(c, "the pass for weights",
					pass_at(c, WEIGHT, part, i), pass_at(c, BACKWARD, part, i),
					part, i);
			if (!fault && part > 0)
				fault = handed_on(c, FORWARD, part - 1, part, i);
			if (!fault && part > 0)
				fault = handed_on(c, BACKWARD, part, part - 1, i);
		}
	return fault;
}

static bool within(const struct checking *c, const struct trace_event *e, const struct span *s)
{
	return e->start_us >= s->start_us - c->slack_us && e->end_us <= s->end_us + c->slack_us;
}

/* What runs for a micro-batch runs in a pass over it; kernels in theirs. */
static const char *in_its_pass(const struct checking *c, const struct trace_event *e)
{
	int own = strcmp(e->cat, "recompute") ? pass_of(e->cat) : BACKWARD;
	int64_t part;

	if (e->micro >= c->t->nmicro || e->segment < 0 || e->segment >= c->nsegment)
		return FAULT(c, "%s: for no micro-batch", e->name);
	part = c->part_of[e->stage * c->nsegment + e->segment];
	for (int pass = 0; pass < PASSES; pass++)
		if ((own == PASSES || own == pass) &&
			within(c, e, pass_at(c, pass, part, e->micro)))
			return NULL;
	return FAULT(c, "stage %d: %s of micro-batch %d at %.17g us is outside of its pass",
		(int)e->stage, e->name, (int)e->micro, e->start_us);
}

static const char *all_in_their_passes(const struct checking *c)
{
	const char *fault = NULL;

	for (size_t i = 0; i < c->t->events.n && !fault; i++) {
		const struct trace_event *e = &c->t->events.v[i];

		if ((e->thread == TRACE_COMPUTE || e->thread == TRACE_COMMUNICATION) &&
			e->micro >= 0)
			fault = in_its_pass(c, e);
	}
	return fault;
}

/* Passes and the exchange of gradients end before the first update. */
static const char *updates_come_last(const struct checking *c)
{
	double *done = AP_NEW_N(c->ctx->arena, double, c->t->nstage);

	for (size_t i = 0; i < c->t->events.n; i++) {
		const struct trace_event *e = &c->t->events.v[i];

		if (e->thread == TRACE_PASSES || !strcmp(e->phase, "gradient"))
			done[e->stage] = fmax(done[e->stage], e->end_us);
	}
	for (size_t i = 0; i < c->t->events.n; i++) {
		const struct trace_event *e = &c->t->events.v[i];

		if ((!strcmp(e->cat, "optimizer") || !strcmp(e->phase, "optimizer")) &&
			e->start_us < done[e->stage] - c->slack_us)
			return FAULT(c,
				"stage %d updates %s at %.17g us, gradients come until %.17g",
				(int)e->stage, e->name, e->start_us, done[e->stage]);
	}
	return NULL;
}

static int by_id(const void *x, const void *y)
{
	const struct trace_flow *a = x, *b = y;

	return a->id != b->id ? (a->id < b->id ? -1 : 1) : a->end - b->end;
}

static bool sooner(const struct trace_event *e, const struct trace_flow *f)
{
	if (e->stage != f->stage)
		return e->stage < f->stage;
	return e->tid != f->tid ? e->tid < f->tid : e->start_us < f->at_us;
}

/* The event of the flow's thread that begins there, of that part or any (-1). */
static const struct trace_event *event_at(
	const struct trace *t, const struct trace_flow *f, int64_t part)
{
	size_t lo = 0, hi = t->events.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sooner(&t->events.v[mid], f))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < t->events.n; lo++) {
		const struct trace_event *e = &t->events.v[lo];

		if (e->stage != f->stage || e->tid != f->tid || e->start_us != f->at_us)
			break;
		if (part < 0 || e->part == part)
			return e;
	}
	return NULL;
}

static const char *flows_lead_on(const struct checking *c)
{
	struct trace *t = c->t;

	if (t->flows.n)
		qsort(t->flows.v, t->flows.n, sizeof *t->flows.v, by_id);
	for (size_t i = 0; i < t->flows.n; i += 2) {
		const struct trace_flow *s = &t->flows.v[i], *f = s + 1;
		const struct trace_event *from, *to;

		if (i + 1 == t->flows.n || s->id != f->id || s->end || !f->end)
			return FAULT(c, "flow %d has not one start and one end", (int)s->id);
		from = event_at(t, s, -1);
		to = from ? event_at(t, f, from->to) : NULL;
		if (!to || from->thread - TRACE_LINK != to->stage || to->thread != TRACE_PASSES)
			return FAULT(c, "flow %d does not lead from a send to a pass", (int)s->id);
		if (to->start_us < from->end_us - c->slack_us)
			return FAULT(c, "flow %d leads to what starts too soon", (int)s->id);
	}
	return NULL;
}

static const char *memory_is_held(const struct checking *c)
{
	const struct trace *t = c->t;
	int64_t *most = AP_NEW_N(c->ctx->arena, int64_t, t->nstage);
	double *last = AP_NEW_N(c->ctx->arena, double, t->nstage);

	for (size_t i = 0; i < t->samples.n; i++) {
		const struct trace_sample *s = &t->samples.v[i];

		if (s->bytes < 0 || s->at_us < last[s->stage])
			return FAULT(c, "stage %d: %lld bytes at %.17g us", (int)s->stage,
				(long long)s->bytes, s->at_us);
		last[s->stage] = s->at_us;
		most[s->stage] = s->bytes > most[s->stage] ? s->bytes : most[s->stage];
	}
	for (int64_t i = 0; i < t->nstage; i++)
		if (most[i] != t->peak_bytes[i])
			return FAULT(c, "stage %d holds at most %lld bytes, its peak is %lld",
				(int)i, (long long)most[i], (long long)t->peak_bytes[i]);
	return NULL;
}

static const char *ends_as_stated(const struct checking *c)
{
	double end = 0;

	for (size_t i = 0; i < c->t->events.n; i++)
		end = fmax(end, c->t->events.v[i].end_us);
	return fabs(end - c->t->step_us) <= c->slack_us
		       ? NULL
		       : FAULT(c, "ends at %.17g us, stated are %.17g", end, c->t->step_us);
}

const char *trace_check(struct ap_ctx *ctx, struct trace *t)
{
	static const char *(*const checks[])(const struct checking *) = {one_at_a_time, complete,
		needs_have_come, all_in_their_passes, updates_come_last, flows_lead_on,
		memory_is_held, ends_as_stated};
	struct checking c = {.ctx = ctx, .t = t, .slack_us = 1e-9 * t->step_us};
	const char *fault;

	if (t->events.n)
		qsort(t->events.v, t->events.n, sizeof *t->events.v, by_place);
	fault = note_all(&c);
	for (size_t i = 0; i < AP_COUNT(checks) && !fault; i++)
		fault = checks[i](&c);
	return fault;
}
