/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace.h"

#include <inttypes.h>
#include <stdio.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "hw/coll.h"
#include "pipeline/schedule.h"
#include "plan/simulate.h"
#include "plan/terms.h"

enum thread { PASSES, COMPUTE, COMMUNICATION, GRADIENTS, LINKS /* + receiving stage */ };

struct tracer {
	struct ap_jw w;
	const struct ap_plan *p;
	const struct ap_pipe *pipe; /* NULL: one part */
	int32_t npart;
	bool *named;     /* [stage][LINKS + nstage] thread is named */
	double *taken_s; /* [gradient][part][micro] start of the receiving pass; NULL: nothing is sent */
	int64_t nflow;
};

static double us(double s)
{
	return s * 1e6;
}

static int32_t part_of(const struct tracer *t, int32_t stage, int32_t segment)
{
	return t->pipe ? ap_schedule_part(t->pipe->scheduler, t->pipe->nstage, stage, segment) : 0;
}

/* Writes a metadata event with one argument: text or, if NULL, number. */
static void describe(struct ap_jw *w, const char *what, int32_t stage, int thread, const char *key,
	const char *text, int64_t number)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", what);
	ap_jw_kstr(w, "ph", "M");
	ap_jw_kint(w, "pid", stage);
	ap_jw_kint(w, "tid", thread);
	ap_jw_kobj_flat(w, "args");
	if (text)
		ap_jw_kstr(w, key, text);
	else
		ap_jw_kint(w, key, number);
	ap_jw_end(w);
	ap_jw_end(w);
}

static void name_stage(struct tracer *t, int32_t stage)
{
	int64_t first = t->p->stage[stage].first_rank;
	char name[96];

	snprintf(name, sizeof name, "stage %" PRId32 ", ranks %" PRId64 " to %" PRId64, stage,
		first, first + t->p->machine->ndev - 1);
	describe(&t->w, "process_name", stage, 0, "name", name, 0);
	describe(&t->w, "process_sort_index", stage, 0, "sort_index", NULL, stage);
}

/* Names a thread at its first event, so that none is empty. */
static void name_thread(struct tracer *t, int32_t stage, int thread)
{
	static const char *const names[] = {"passes", "compute", "communication", "gradients"};
	bool *named = &t->named[(uint32_t)stage * (LINKS + t->p->nstage) + (uint32_t)thread];
	char link[32];

	if (*named)
		return;
	*named = true;
	snprintf(link, sizeof link, "to stage %d", thread - LINKS);
	describe(&t->w, "thread_name", stage, thread, "name", thread < LINKS ? names[thread] : link, 0);
	describe(&t->w, "thread_sort_index", stage, thread, "sort_index", NULL, thread);
}

static void place(struct ap_jw *w, const char *ph, int32_t stage, int thread, double at_s)
{
	ap_jw_kstr(w, "ph", ph);
	ap_jw_kint(w, "pid", stage);
	ap_jw_kint(w, "tid", thread);
	ap_jw_knum(w, "ts", us(at_s));
}

/* Begins an event, leaving "args" open. */
static void begin_event(struct tracer *t, const char *name, const char *cat, int32_t stage,
	int thread, double start_s, double end_s)
{
	struct ap_jw *w = &t->w;

	name_thread(t, stage, thread);
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", name);
	ap_jw_kstr(w, "cat", cat);
	place(w, "X", stage, thread, start_s);
	ap_jw_knum(w, "dur", us(end_s - start_s));
	ap_jw_kobj_flat(w, "args");
}

static void end_event(struct tracer *t)
{
	ap_jw_end(&t->w);
	ap_jw_end(&t->w);
}

static double *taken(struct tracer *t, bool gradient, int32_t part, int32_t micro)
{
	size_t row = (size_t)gradient * (size_t)t->npart + (size_t)part;

	return &t->taken_s[row * (size_t)t->p->step->micro_batches + (size_t)micro];
}

static void pass(struct tracer *t, int32_t stage, const struct ap_slot_time *s)
{
	static const char *const names[] = {"forward", "backward", "weight"};
	int32_t part = part_of(t, stage, s->slot.segment);
	char name[32];

	snprintf(name, sizeof name, "%s %" PRId32, names[s->slot.pass], s->slot.micro);
	begin_event(t, name, "pass", stage, PASSES, s->start_s, s->end_s);
	ap_jw_kstr(&t->w, "pass", names[s->slot.pass]);
	ap_jw_kint(&t->w, "part", part);
	ap_jw_kint(&t->w, "segment", s->slot.segment);
	ap_jw_kint(&t->w, "micro", s->slot.micro);
	end_event(t);
	if (t->taken_s && s->slot.pass != AP_PASS_WEIGHT)
		*taken(t, s->slot.pass == AP_PASS_BACKWARD, part, s->slot.micro) = s->start_s;
}

static void flow_end(struct tracer *t, const char *ph, int32_t stage, int thread, double at_s)
{
	ap_jw_obj_flat(&t->w);
	ap_jw_kstr(&t->w, "name", "send");
	ap_jw_kstr(&t->w, "cat", "send");
	place(&t->w, ph, stage, thread, at_s);
	ap_jw_kint(&t->w, "id", t->nflow);
	if (*ph == 'f')
		ap_jw_kstr(&t->w, "bp", "e"); /* binds to the enclosing event */
	ap_jw_end(&t->w);
}

static const char *const categories[] = {
	[AP_EVENT_FORWARD] = "forward",
	[AP_EVENT_BACKWARD] = "backward",
	[AP_EVENT_COMM] = "collective",
	[AP_EVENT_MOVE] = "redistribution",
	[AP_EVENT_MOVE_BACK] = "redistribution",
	[AP_EVENT_OPTIMIZER] = "optimizer",
	[AP_EVENT_AGAIN] = "recompute",
	[AP_EVENT_WEIGHT] = "weight",
	[AP_EVENT_BUCKET] = "bucket",
	[AP_EVENT_SEND] = "send",
};

static const char *title(const struct ap_plan *p, const struct ap_trace_event *e)
{
	switch (e->kind) {
	case AP_EVENT_COMM:
		return ap_coll_name(p->op[e->index].comm[e->sub].comm.kind);
	case AP_EVENT_BUCKET:
		return ap_coll_name(p->bucket[e->index].kind);
	case AP_EVENT_MOVE:
	case AP_EVENT_MOVE_BACK:
	case AP_EVENT_SEND:
		return categories[e->kind];
	default:
		return ap_short_name(p->graph->node[e->index].name);
	}
}

/* Writes the arguments of an event. */
static void about(struct ap_jw *w, const struct ap_plan *p, const struct ap_trace_event *e)
{
	const struct ap_bucket *b = e->kind == AP_EVENT_BUCKET ? &p->bucket[e->index] : NULL;
	const struct ap_comm *c = b ? &p->op[b->part->node].comm[b->part->comm].comm
		: e->kind == AP_EVENT_COMM ? &p->op[e->index].comm[e->sub].comm : NULL;

	switch (e->kind) {
	case AP_EVENT_COMM:
		ap_jw_kstr(w, "operator", p->graph->node[e->index].name);
		ap_jw_kstr(w, "tensor",
			p->graph->tensor[ap_plan_comm_tensor(p->graph, e->index, c)].name);
		ap_jw_kstr(w, "phase", ap_phase_name(c->phase));
		ap_jw_kint(w, "bytes", c->bytes);
		break;
	case AP_EVENT_BUCKET:
		ap_jw_kint(w, "tensors", b->n);
		ap_jw_kstr(w, "phase", ap_phase_name(c->phase));
		ap_jw_kint(w, "bytes", b->bytes);
		break;
	case AP_EVENT_MOVE:
	case AP_EVENT_MOVE_BACK:
		ap_jw_kstr(w, "tensor", p->graph->tensor[p->move[e->index].tensor].name);
		ap_jw_kstr(w, "operator", p->graph->node[p->move[e->index].to].name);
		ap_jw_kstr(w, "phase", ap_phase_name(e->kind == AP_EVENT_MOVE_BACK ? AP_PHASE_BACKWARD
										    : AP_PHASE_FORWARD));
		break;
	case AP_EVENT_SEND:
		ap_jw_kint(w, "from", e->index);
		ap_jw_kint(w, "to", e->sub);
		break;
	default:
		ap_jw_kstr(w, "operator", p->graph->node[e->index].name);
		ap_jw_kstr(w, "type", p->graph->node[e->index].type);
	}
}

static void take_event(void *user, const struct ap_trace_event *e)
{
	static const enum thread threads[] = {[AP_STREAM_COMPUTE] = COMPUTE,
		[AP_STREAM_COMMUNICATION] = COMMUNICATION,
		[AP_STREAM_GRADIENT] = GRADIENTS};
	struct tracer *t = user;
	bool gradient = e->sub < e->index; /* of a send: goes back through the parts */
	int thread = e->stream == AP_STREAM_LINK ? LINKS + e->peer : (int)threads[e->stream];

	begin_event(t, title(t->p, e), categories[e->kind], e->stage, thread, e->start_s, e->end_s);
	about(&t->w, t->p, e);
	if (e->segment >= 0)
		ap_jw_kint(&t->w, "segment", e->segment);
	if (e->micro >= 0)
		ap_jw_kint(&t->w, "micro", e->micro);
	end_event(t);
	/* flow to the receiving pass; if sent once per step, to the first one, or to none for a
	 * gradient */
	if (e->kind != AP_EVENT_SEND || !t->taken_s || (gradient && e->micro < 0))
		return;
	flow_end(t, "s", e->stage, thread, e->start_s);
	flow_end(t, "f", e->peer, PASSES,
		*taken(t, gradient, (int32_t)e->sub, e->micro < 0 ? 0 : e->micro));
	t->nflow++;
}

static void take_memory(void *user, const struct ap_trace_memory *m)
{
	struct tracer *t = user;

	ap_jw_obj_flat(&t->w);
	ap_jw_kstr(&t->w, "name", "memory");
	place(&t->w, "C", m->stage, PASSES, m->at_s);
	ap_jw_kobj_flat(&t->w, "args");
	ap_jw_kint(&t->w, "bytes", m->bytes);
	end_event(t);
}

static void write_facts(struct ap_jw *w, const struct ap_plan *p)
{
	ap_jw_kobj(w, "otherData");
	ap_jw_kstr(w, "tool", "autopar-plan " AP_VERSION);
	ap_jw_kstr(w, "graph", p->graph->name);
	ap_jw_kstr(w, "scheduler", ap_plan_scheduler(p));
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	ap_jw_knum(w, "step_time_s", p->prediction.step_time_s);
	ap_jw_karr_flat(w, "peak_bytes");
	for (uint32_t s = 0; s < p->nstage; s++)
		ap_jw_int(w, p->stage[s].peak_bytes);
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_emit_trace(struct ap_ctx *ctx, const struct ap_plan *p, ap_write_fn *write, void *user)
{
	static const struct ap_trace_take take = {take_event, take_memory};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_pipe *pipe =
		p->step->pipe && p->step->pipe->scheduler ? p->step->pipe : NULL;
	struct tracer t = {.p = p, .pipe = pipe, .npart = pipe ? pipe->nstage * pipe->nsegment : 1};
	size_t nmicro = (size_t)p->step->micro_batches;

	t.named = AP_NEW_N(ctx->scratch, bool, p->nstage *(LINKS + p->nstage));
	if (p->nstage > 1)
		t.taken_s = AP_NEW_N(ctx->scratch, double, 2 * (size_t)t.npart * nmicro);
	ap_jw_init(&t.w, write, user, 1);
	ap_jw_obj(&t.w);
	ap_jw_kstr(&t.w, "displayTimeUnit", "ms");
	write_facts(&t.w, p);
	ap_jw_karr(&t.w, "traceEvents");
	for (uint32_t s = 0; s < p->nstage; s++)
		name_stage(&t, (int32_t)s);
	for (int32_t s = 0; s < p->timeline->nstage; s++)
		for (uint32_t i = p->timeline->first[s]; i < p->timeline->first[s + 1]; i++)
			pass(&t, s, &p->timeline->slot[i]);
	ap_simulate_each(ctx, p, &take, &t);
	ap_jw_end(&t.w);
	ap_jw_end(&t.w);
	ap_jw_finish(&t.w);
	ap_arena_release(ctx->scratch, mark);
}
