/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "hw/coll.h"
#include "pipeline/schedule.h"
#include "plan/simulate.h"
#include "plan/terms.h"

enum thread { PASSES, COMPUTE, COMMUNICATION, GRADIENTS, LINKS /* + receiving stage */ };

struct held { /* memory of a stage that is not written yet */
	struct ap_trace_memory most, last;
	uint32_t slot; /* of the timeline, that it is in */
	bool any;
};

struct tracer {
	struct ap_jw w;
	struct ap_arena *arena, *scratch;
	int32_t micro; /* the micro-batch that is told in operators; -1: all are */
	struct held *held; /* [nstage] */
	const char **name; /* [nnode] of slices; NULL: not made yet */
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
		first, first + t->p->stage[stage].devices - 1);
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

enum { NAME_BYTES = 100 }; /* of a cell, and of a name */

/* At most NAME_BYTES of a text, whole characters. */
static const char *cut(struct ap_arena *arena, const char *text)
{
	size_t len = strlen(text);

	if (len <= NAME_BYTES)
		return text;
	for (len = NAME_BYTES; len && ((unsigned char)text[len] & 0xC0) == 0x80; len--)
		;
	return ap_arena_printf(arena, "%.*s...", (int)len, text);
}

/* The layer of a cell and what is in it: "layers.3/attention.wq" of "model.layers.3.attention.wq". A cell
 * without a number is as it is. */
static const char *place_of(struct ap_arena *arena, const char *cell)
{
	const char *start = cell;

	for (const char *part = cell; *part;
		part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
		size_t len = strcspn(part, ".");

		if (!len || strspn(part, "0123456789") < len || part == cell) {
			start = part;
			continue;
		}
		return cut(arena,
			ap_arena_printf(arena, "%.*s%s%s", (int)(part + len - start), start,
				part[len] ? "/" : "", part[len] ? part + len + 1 : ""));
	}
	return cut(arena, cell);
}

/* "layers.3/attention.wq/MatMul-op0", made once for each operator. */
static const char *name_of(struct tracer *t, ap_id node)
{
	const struct ap_node *n = &t->p->graph->node[node];
	const char *own = t->name[node] ? NULL : cut(t->arena, ap_short_name(n->name));

	if (!t->name[node])
		t->name[node] = *n->cell && ap_short_name(n->name) != n->name
			? ap_arena_printf(t->arena, "%s/%s", place_of(t->arena, n->cell), own)
			: own;
	return t->name[node];
}

/* The layer of an operator, and what it does there. */
static const char *in_layer(struct tracer *t, ap_id node, const char *what)
{
	const char *cell = t->p->graph->node[node].cell;

	return *cell ? ap_arena_printf(t->scratch, "%s/%s", place_of(t->scratch, cell), what) : what;
}

static const char *title(struct tracer *t, const struct ap_trace_event *e)
{
	const struct ap_plan *p = t->p;

	switch (e->kind) {
	case AP_EVENT_COMM:
		return in_layer(t, e->index, ap_coll_name(p->op[e->index].comm[e->sub].comm.kind));
	case AP_EVENT_BUCKET:
		return in_layer(t, p->bucket[e->index].part->node, ap_coll_name(p->bucket[e->index].kind));
	case AP_EVENT_MOVE:
	case AP_EVENT_MOVE_BACK:
		return in_layer(t, p->move[e->index].to, categories[e->kind]);
	case AP_EVENT_SEND:
		return categories[e->kind];
	default:
		return name_of(t, e->index);
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
	struct ap_mark mark;

	if (t->micro >= 0 && e->micro >= 0 && e->micro != t->micro && e->kind != AP_EVENT_SEND)
		return;
	mark = ap_arena_mark(t->scratch);
	begin_event(t, title(t, e), categories[e->kind], e->stage, thread, e->start_s, e->end_s);
	ap_arena_release(t->scratch, mark);
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

static void write_memory(struct tracer *t, const struct ap_trace_memory *m)
{
	ap_jw_obj_flat(&t->w);
	ap_jw_kstr(&t->w, "name", "memory");
	place(&t->w, "C", m->stage, PASSES, m->at_s);
	ap_jw_kobj_flat(&t->w, "args");
	ap_jw_kint(&t->w, "bytes", m->bytes);
	end_event(t);
}

/* Writes what a stage held at most since it was last written, and what it holds. */
static void write_held(struct tracer *t, struct held *h)
{
	if (!h->any)
		return;
	if (h->most.at_s < h->last.at_s)
		write_memory(t, &h->most);
	write_memory(t, &h->last);
	h->any = false;
}

static void take_memory(void *user, const struct ap_trace_memory *m)
{
	struct tracer *t = user;
	const struct ap_timeline *line = t->p->timeline;
	struct held *h = &t->held[m->stage];
	uint32_t end = line->first[m->stage + 1];

	while (h->slot < end && line->slot[h->slot].end_s <= m->at_s) {
		write_held(t, h);
		h->slot++;
	}
	if (t->micro < 0 || (h->slot < end && line->slot[h->slot].slot.micro == t->micro)) {
		write_held(t, h);
		write_memory(t, m);
		return;
	}
	if (!h->any || m->bytes > h->most.bytes)
		h->most = *m;
	h->last = *m;
	h->any = true;
}

static void write_facts(struct tracer *t, const struct ap_plan *p)
{
	struct ap_jw *w = &t->w;

	ap_jw_kobj(w, "otherData");
	ap_jw_kstr(w, "tool", "autopar-plan " AP_VERSION);
	ap_jw_kstr(w, "graph", p->graph->name);
	ap_jw_kstr(w, "scheduler", ap_plan_scheduler(p));
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	if (t->micro >= 0)
		ap_jw_kint(w, "in_operators", t->micro);
	ap_jw_knum(w, "step_time_s", p->prediction.step_time_s);
	ap_jw_karr_flat(w, "peak_bytes");
	for (uint32_t s = 0; s < p->nstage; s++)
		ap_jw_int(w, p->stage[s].peak_bytes);
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_emit_trace(struct ap_ctx *ctx, const struct ap_plan *p, enum ap_trace_detail detail,
	ap_write_fn *write, void *user)
{
	static const struct ap_trace_take take = {take_event, take_memory};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_pipe *pipe =
		p->step->pipe && p->step->pipe->scheduler ? p->step->pipe : NULL;
	struct tracer t = {.p = p, .pipe = pipe, .npart = pipe ? pipe->nstage * pipe->nsegment : 1};
	size_t nmicro = (size_t)p->step->micro_batches;

	/* in the middle pipelines are full */
	t.micro = detail == AP_TRACE_FULL || nmicro == 1 ? -1 : (int32_t)(nmicro / 2);
	t.arena = ctx->arena;
	t.scratch = ctx->scratch;
	t.held = AP_NEW_N(ctx->scratch, struct held, p->nstage);
	for (uint32_t s = 0; s < p->nstage; s++)
		t.held[s].slot = p->timeline->first[s];
	t.name = AP_NEW_N(ctx->scratch, const char *, p->graph->nnode);
	t.named = AP_NEW_N(ctx->scratch, bool, p->nstage *(LINKS + p->nstage));
	if (p->nstage > 1)
		t.taken_s = AP_NEW_N(ctx->scratch, double, 2 * (size_t)t.npart * nmicro);
	ap_jw_init(&t.w, write, user, 1);
	ap_jw_obj(&t.w);
	ap_jw_kstr(&t.w, "displayTimeUnit", "ms");
	write_facts(&t, p);
	ap_jw_karr(&t.w, "traceEvents");
	for (uint32_t s = 0; s < p->nstage; s++)
		name_stage(&t, (int32_t)s);
	for (int32_t s = 0; s < p->timeline->nstage; s++)
		for (uint32_t i = p->timeline->first[s]; i < p->timeline->first[s + 1]; i++)
			pass(&t, s, &p->timeline->slot[i]);
	ap_simulate_each(ctx, p, &take, &t);
	for (uint32_t s = 0; s < p->nstage; s++)
		write_held(&t, &t.held[s]);
	ap_jw_end(&t.w);
	ap_jw_end(&t.w);
	ap_jw_finish(&t.w);
	ap_arena_release(ctx->scratch, mark);
}
