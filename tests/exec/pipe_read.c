/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline from a plan, and from the plan file. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hw/group.h"
#include "plan/plan.h"
#include "pipe.h"
#include "program_read.h"

static void take_bounds(struct ap_ctx *ctx, const struct ap_step *step, struct ex_pipeline *out)
{
	const struct ap_pipe *pipe = step->pipe;

	out->nstage = pipe->nstage;
	out->nsegment = pipe->nsegment;
	out->first = AP_NEW_N(ctx->arena, uint32_t, pipe->nstage + 1);
	out->most = AP_NEW_N(ctx->arena, int64_t, pipe->nstage);
	out->memory = AP_NEW_N(ctx->arena, struct ap_memory, pipe->nstage);
}

void ex_pipeline_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ex_pipeline *out)
{
	const struct ap_timeline *t = p->timeline;

	*out = (struct ex_pipeline){0};
	ex_program_of_plan(ctx, p, &out->program);
	take_bounds(ctx, p->step, out);
	memcpy(out->first, t->first, ((size_t)out->nstage + 1) * sizeof *t->first);
	out->slot = AP_NEW_N(ctx->arena, struct ex_slot, t->first[out->nstage]);
	for (int32_t s = 0; s < out->nstage; s++) {
		out->most[s] = p->stage[s].in_flight;
		out->memory[s] = p->stage[s].memory;
		for (uint32_t i = t->first[s]; i < t->first[s + 1]; i++) {
			const struct ap_slot_time *x = &t->slot[i];

			out->slot[i] = (struct ex_slot){(enum ap_pass)x->slot.pass, s, x->slot.segment,
				x->slot.micro, x->start_s, x->end_s};
		}
	}
	out->nbucket = p->nbucket;
	out->bucket = AP_NEW_N(ctx->arena, struct ex_bucket, p->nbucket);
	for (uint32_t i = 0; i < p->nbucket; i++) {
		const struct ap_bucket *b = &p->bucket[i];

		out->bucket[i] = (struct ex_bucket){b->kind, b->stage, b->axes, b->bytes, b->n, b->tensor};
	}
}

/* ---- the file ---- */

static struct ex_slot read_slot(struct ex_reader *r, const struct ap_jv *v, int32_t stage,
	const struct ex_pipeline *l)
{
	static const char *const names[] = {"forward", "backward", "weight", NULL};
	struct ex_slot s = {(enum ap_pass)ex_read_word(r, v, "pass", names), stage,
		(int32_t)ex_read_int(r, v, "segment"), (int32_t)ex_read_int(r, v, "micro_batch"),
		ex_read_number(r, v, "start_s"), ex_read_number(r, v, "end_s")};

	if (s.segment < 0 || s.segment >= l->nsegment || s.micro < 0 ||
		s.micro >= l->program.step.micro_batches)
		ex_read_fault(r, "a pass of segment %d over micro-batch %d", s.segment, s.micro);
	return s;
}

static uint32_t read_slots(struct ex_reader *r, const struct ap_jv *list, int32_t stage,
	struct ex_pipeline *l, uint32_t n)
{
	double busy_s = 0;

	for (const struct ap_jv *v = ex_first(list); v && !r->why; v = ap_jv_next(v)) {
		l->slot[n] = read_slot(r, v, stage, l);
		if (l->slot[n].start_s < busy_s || l->slot[n].end_s < l->slot[n].start_s)
			ex_read_fault(r, "two passes at once");
		busy_s = l->slot[n++].end_s;
	}
	return n;
}

static void read_stages(struct ex_reader *r, const struct ap_jv *root, struct ex_pipeline *l)
{
	const struct ap_jv *stages = ex_read(r, root, "stages", AP_JARRAY), *v = ex_first(stages);
	uint32_t n = 0;

	r->about = "stages";
	ex_read_count(r, stages, (size_t)l->nstage);
	for (const struct ap_jv *s = v; s && !r->why; s = ap_jv_next(s))
		n += (uint32_t)ap_jv_count(ex_read(r, s, "slots", AP_JARRAY));
	l->slot = AP_NEW_N(r->ctx->arena, struct ex_slot, n);
	n = 0;
	for (int32_t s = 0; v && !r->why; v = ap_jv_next(v), s++) {
		struct ap_axes all;

		int64_t first = ex_first_rank(&l->program, s), ndev = ex_devices(&l->program, s);

		if (ex_read_int(r, v, "id") != s || ex_read_int(r, v, "first_rank") != first)
			ex_read_fault(r, "stage %d is another one", s);
		ex_read_group(r, v, first, ndev, &all);
		if (ap_axes_size(&all) != ndev)
			ex_read_fault(r, "stage %d has other ranks", s);
		l->most[s] = ex_read_int(r, v, "in_flight");
		n = read_slots(r, ex_read(r, v, "slots", AP_JARRAY), s, l, n);
		l->first[s + 1] = n;
	}
}

static void read_memory(struct ex_reader *r, const struct ap_jv *root, struct ex_pipeline *l)
{
	const struct ap_jv *list = ex_read(r, ex_read(r, root, "prediction", AP_JOBJECT), "memory",
		AP_JARRAY);
	const struct ap_jv *v = ex_first(list);

	r->about = "memory";
	ex_read_count(r, list, (size_t)l->nstage);
	for (int32_t s = 0; v && !r->why; v = ap_jv_next(v), s++)
		l->memory[s] = (struct ap_memory){.weights = ex_read_int(r, v, "weights_bytes"),
			.gathered = ex_read_int(r, v, "gathered_bytes"),
			.gradients = ex_read_int(r, v, "gradients_bytes"),
			.optimizer = ex_read_int(r, v, "optimizer_bytes"),
			.activations = ex_read_int(r, v, "activations_bytes"),
			.recompute = ex_read_int(r, v, "recompute_bytes"),
			.temporary = ex_read_int(r, v, "temporary_bytes"),
			.context = ex_read_int(r, v, "context_bytes"),
			.buffers = ex_read_int(r, v, "buffers_bytes"),
			.total = ex_read_int(r, v, "total_bytes")};
}

static ap_id param_named(struct ex_reader *r, const struct ap_graph *g, const char *name)
{
	for (ap_id t = 0; t < g->ntensor; t++)
		if (strcmp(g->tensor[t].name, name) == 0 && (g->tensor[t].kind == AP_TENSOR_PARAM ||
			(g->tensor[t].producer != AP_NONE && g->node[g->tensor[t].producer].once)))
			return t;
	ex_read_fault(r, "no parameter \"%s\"", name);
	return 0;
}

static struct ex_bucket read_bucket(struct ex_reader *r, const struct ap_jv *v, const struct ex_pipeline *l)
{
	static const char *const kinds[] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll",
		"Ring", "NeighborExchange", "Broadcast", NULL};
	const struct ap_jv *list = ex_read(r, v, "parameters", AP_JARRAY), *name = ex_first(list);
	struct ex_bucket b = {.kind = (enum ap_coll)ex_read_word(r, v, "kind", kinds),
		.stage = (int32_t)ex_read_int(r, v, "stage"), .bytes = ex_read_int(r, v, "bytes")};
	ap_id *tensor = AP_NEW_N(r->ctx->arena, ap_id, list ? ap_jv_count(list) : 0);

	ex_read_group(r, v, ex_first_rank(&l->program, b.stage), ex_devices(&l->program, b.stage), &b.axes);
	b.tensor = tensor;
	for (; name && !r->why; name = ap_jv_next(name))
		tensor[b.n++] = param_named(r, l->program.graph, ap_jv_str(name));
	return b;
}

static void read_buckets(struct ex_reader *r, const struct ap_jv *root, struct ex_pipeline *l)
{
	const struct ap_jv *list = ex_read(r, root, "fusion", AP_JARRAY);

	r->about = "fusion";
	l->bucket = AP_NEW_N(r->ctx->arena, struct ex_bucket, list ? ap_jv_count(list) : 0);
	for (const struct ap_jv *v = ex_first(list); v && !r->why; v = ap_jv_next(v))
		l->bucket[l->nbucket++] = read_bucket(r, v, l);
}

const char *ex_pipeline_of_file(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_step *step, struct ex_pipeline *out)
{
	const struct ap_jv *root, *pipe;
	struct ex_reader r;

	*out = (struct ex_pipeline){0};
	if (!ex_read_open(&r, ctx, text, len))
		return r.why;
	r.why = ex_program_of_file(ctx, text, len, g, step, &out->program);
	if (r.why)
		return r.why;
	root = ap_json_root(r.doc);
	pipe = ex_read(&r, root, "pipeline", AP_JOBJECT);
	r.about = "pipeline";
	if (ex_read_int(&r, pipe, "stages") != step->pipe->nstage ||
		ex_read_int(&r, pipe, "segments") != step->pipe->nsegment ||
		ex_read_int(&r, pipe, "micro_batches") != step->micro_batches ||
		strcmp(ex_read_str(&r, pipe, "scheduler"), step->pipe->scheduler->name) != 0)
		ex_read_fault(&r, "is another one");
	if (r.why)
		return r.why;
	take_bounds(ctx, step, out);
	read_stages(&r, root, out);
	read_memory(&r, root, out);
	read_buckets(&r, root, out);
	return r.why;
}

/* ---- both ---- */

static bool same_slot(const struct ex_slot *a, const struct ex_slot *b)
{
	return a->pass == b->pass && a->stage == b->stage && a->segment == b->segment &&
		a->micro == b->micro && !(a->start_s < b->start_s) && !(a->start_s > b->start_s) &&
		!(a->end_s < b->end_s) && !(a->end_s > b->end_s);
}

static bool same_bucket(const struct ex_bucket *a, const struct ex_bucket *b)
{
	return a->kind == b->kind && a->stage == b->stage && ap_axes_equal(&a->axes, &b->axes) &&
		a->bytes == b->bytes && a->n == b->n &&
		memcmp(a->tensor, b->tensor, a->n * sizeof *a->tensor) == 0;
}

const char *ex_pipeline_differs(struct ap_ctx *ctx, const struct ex_pipeline *a,
	const struct ex_pipeline *b)
{
	const char *why = ex_program_differs(ctx, &a->program, &b->program);

	if (why)
		return why;
	if (memcmp(a->first, b->first, ((size_t)a->nstage + 1) * sizeof *a->first) != 0 ||
		memcmp(a->most, b->most, (size_t)a->nstage * sizeof *a->most) != 0)
		return "number of passes";
	if (memcmp(a->memory, b->memory, (size_t)a->nstage * sizeof *a->memory) != 0)
		return "memory";
	for (uint32_t i = 0; i < a->first[a->nstage]; i++)
		if (!same_slot(&a->slot[i], &b->slot[i]))
			return "pass";
	if (a->nbucket != b->nbucket)
		return "number of buckets";
	for (uint32_t i = 0; i < a->nbucket; i++)
		if (!same_bucket(&a->bucket[i], &b->bucket[i]))
			return "bucket";
	return NULL;
}
