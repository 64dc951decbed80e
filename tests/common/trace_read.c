/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"
#include "trace.h"

struct thread_name {
	int64_t stage, tid, thread;
};

struct reading {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct trace *t;
	AP_VEC(struct thread_name) threads;
};

#define FAULT(ctx, ...) ap_arena_printf((ctx)->arena, __VA_ARGS__)

static int64_t whole(const struct reading *r, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = obj ? ap_jv_get(obj, key) : NULL;
	int64_t n;

	return v && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(r->doc, v, &n) ? n : -1;
}

static double number(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v && ap_jv_type(v) == AP_JNUMBER ? ap_jv_double(v) : -1;
}

static const char *word(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = obj ? ap_jv_get(obj, key) : NULL;

	return v && ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";
}

static const char *read_facts(struct reading *r, const struct ap_jv *facts)
{
	const struct ap_jv *peaks = facts ? ap_jv_get(facts, "peak_bytes") : NULL;
	struct trace *t = r->t;

	if (!peaks || ap_jv_type(peaks) != AP_JARRAY || !ap_jv_count(peaks))
		return "otherData without peak_bytes";
	t->scheduler = word(facts, "scheduler");
	t->nmicro = whole(r, facts, "micro_batches");
	t->step_us = number(facts, "step_time_s") * 1e6;
	t->peak_bytes = AP_NEW_N(r->ctx->arena, int64_t, ap_jv_count(peaks));
	for (const struct ap_jv *v = ap_jv_first(peaks); v; v = ap_jv_next(v))
		if (!ap_jv_int(r->doc, v, &t->peak_bytes[t->nstage++]))
			return "peak_bytes are no integers";
	return t->nmicro >= 1 && t->step_us > 0 ? NULL : "otherData lacks the step";
}

static const char *read_meta(struct reading *r, const struct ap_jv *v)
{
	static const char *const names[] = {"passes", "compute", "communication", "gradients"};
	const char *name = word(ap_jv_get(v, "args"), "name");
	struct thread_name x = {whole(r, v, "pid"), whole(r, v, "tid"), -1};
	int to;

	if (strcmp(word(v, "name"), "thread_name") != 0)
		return NULL;
	for (int i = 0; i < TRACE_LINK; i++)
		if (!strcmp(name, names[i]))
			x.thread = i;
	if (sscanf(name, "to stage %d", &to) == 1)
		x.thread = TRACE_LINK + to;
	if (x.thread < 0)
		return FAULT(r->ctx, "a thread is called \"%s\"", name);
	AP_PUSH(r->ctx->arena, r->threads, x);
	return NULL;
}

static int64_t thread_of(const struct reading *r, int64_t stage, int64_t tid)
{
	for (size_t i = 0; i < r->threads.n; i++)
		if (r->threads.v[i].stage == stage && r->threads.v[i].tid == tid)
			return r->threads.v[i].thread;
	return -1;
}

static const char *read_span(struct reading *r, const struct ap_jv *v)
{
	const struct ap_jv *args = ap_jv_get(v, "args");
	struct trace_event e = {.name = word(v, "name"),
		.cat = word(v, "cat"),
		.pass = word(args, "pass"),
		.phase = word(args, "phase"),
		.stage = whole(r, v, "pid"),
		.tid = whole(r, v, "tid"),
		.part = whole(r, args, "part"),
		.segment = whole(r, args, "segment"),
		.micro = whole(r, args, "micro"),
		.from = whole(r, args, "from"),
		.to = whole(r, args, "to"),
		.start_us = number(v, "ts")};

	e.end_us = e.start_us + number(v, "dur");
	e.thread = thread_of(r, e.stage, e.tid);
	if (e.stage < 0 || e.stage >= r->t->nstage || e.thread < 0)
		return FAULT(r->ctx, "%s: on a thread without a name", e.name);
	if (!(e.start_us >= 0) || !(number(v, "dur") >= 0))
		return FAULT(
			r->ctx, "%s: at %g us, %g us long", e.name, e.start_us, number(v, "dur"));
	if (e.part >= r->t->npart)
		r->t->npart = e.part + 1;
	AP_PUSH(r->ctx->arena, r->t->events, e);
	return NULL;
}

static const char *read_flow(struct reading *r, const struct ap_jv *v)
{
	struct trace_flow f = {.id = whole(r, v, "id"),
		.stage = whole(r, v, "pid"),
		.tid = whole(r, v, "tid"),
		.end = *word(v, "ph") == 'f',
		.at_us = number(v, "ts")};

	if (f.id < 0 || strcmp(word(v, "cat"), "send") != 0)
		return "a flow without id, or of another kind";
	AP_PUSH(r->ctx->arena, r->t->flows, f);
	return NULL;
}

static const char *read_sample(struct reading *r, const struct ap_jv *v)
{
	const struct ap_jv *bytes = ap_jv_get(ap_jv_get(v, "args"), "bytes");
	struct trace_sample s = {.stage = whole(r, v, "pid"), .at_us = number(v, "ts")};

	if (!bytes || !ap_jv_int(r->doc, bytes, &s.bytes))
		return "a sample of memory without bytes";
	if (s.stage < 0 || s.stage >= r->t->nstage)
		return "a sample of no stage";
	AP_PUSH(r->ctx->arena, r->t->samples, s);
	return NULL;
}

static const char *read_event(struct reading *r, const struct ap_jv *v)
{
	const char *ph = word(v, "ph");

	switch (*ph) {
	case 'M':
		return read_meta(r, v);
	case 'X':
		return read_span(r, v);
	case 's':
	case 'f':
		return read_flow(r, v);
	case 'C':
		return read_sample(r, v);
	}
	return FAULT(r->ctx, "an event of kind \"%s\"", ph);
}

const char *trace_read(
	struct ap_ctx *ctx, const char *file, const char *text, size_t len, struct trace *out)
{
	struct reading r = {.ctx = ctx, .t = out};
	const struct ap_jv *root, *events;
	struct ap_json *doc;
	const char *fault;

	*out = (struct trace){.nstage = 0};
	if (ap_json_parse(ctx, file, text, len, 0, &doc) != AP_OK)
		return "no JSON";
	r.doc = doc;
	root = ap_json_root(doc);
	fault = read_facts(&r, ap_jv_get(root, "otherData"));
	events = ap_jv_get(root, "traceEvents");
	if (!fault && !events)
		fault = "no traceEvents";
	for (const struct ap_jv *v = fault ? NULL : ap_jv_first(events); v && !fault;
		v = ap_jv_next(v))
		fault = read_event(&r, v);
	return fault;
}
