/* SPDX-License-Identifier: Apache-2.0 */
/* Plan JSON: the pipeline, its stages and what each runs when, and collectives that run as one. */
#include "base/json_write.h"
#include "pipeline/schedule.h"
#include "plan/terms.h"
#include "planfile/plan_json.h"

void ap_plan_write_pipeline(struct ap_plan_writer *pw)
{
	const struct ap_plan *p = pw->p;
	const struct ap_pipe *pipe = p->step->pipe;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "pipeline");
	if (p->nstage == 1) {
		ap_jw_null(w);
		return;
	}
	ap_jw_obj_flat(w);
	ap_jw_kint(w, "stages", p->nstage);
	ap_jw_kint(w, "segments", pipe->nsegment);
	ap_jw_kint(w, "devices_per_stage", p->machine->ndev);
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	ap_jw_kstr(w, "scheduler", ap_plan_scheduler(p));
	ap_jw_end(w);
}

static void write_kinds(struct ap_jw *w, const struct ap_memory *m)
{
	for (int i = 0; i < AP_MEMORY_KINDS; i++)
		ap_jw_kint(w, ap_memory_kind(m, i).key, ap_memory_kind(m, i).bytes);
	ap_jw_kint(w, "total_bytes", m->total);
}

void ap_plan_write_memory(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "memory");
	ap_jw_arr(w);
	for (uint32_t s = 0; s < pw->p->nstage; s++) {
		ap_jw_obj_flat(w);
		ap_jw_kint(w, "stage", s);
		write_kinds(w, &pw->p->stage[s].memory);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_slot(struct ap_jw *w, const struct ap_slot_time *t)
{
	static const char *const names[] = {
		[AP_PASS_FORWARD] = "forward",
		[AP_PASS_BACKWARD] = "backward",
		[AP_PASS_WEIGHT] = "weight",
	};

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "pass", names[t->slot.pass]);
	ap_jw_kint(w, "segment", t->slot.segment);
	ap_jw_kint(w, "micro_batch", t->slot.micro);
	ap_jw_knum(w, "start_s", t->start_s);
	ap_jw_knum(w, "end_s", t->end_s);
	ap_jw_end(w);
}

/* In the order of running. */
static void write_slots(struct ap_jw *w, const struct ap_timeline *t, uint32_t stage)
{
	ap_jw_key(w, "slots");
	ap_jw_arr(w);
	for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++)
		write_slot(w, &t->slot[i]);
	ap_jw_end(w);
}

/* By segment. */
static void write_counts(struct ap_jw *w, const char *key, const int64_t *count, const struct ap_pipe *pipe)
{
	if (!count)
		return;
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int32_t v = 0; v < (pipe ? pipe->nsegment : 1); v++)
		ap_jw_int(w, count[v]);
	ap_jw_end(w);
}

void ap_plan_write_stage_figures(struct ap_plan_writer *pw, uint32_t s)
{
	const struct ap_plan *p = pw->p;
	const struct ap_plan_stage *stage = &p->stage[s];
	struct ap_jw *w = &pw->w;

	ap_jw_kint(w, "id", s);
	ap_jw_kint(w, "first_rank", stage->first_rank);
	ap_jw_kint(w, "operators", stage->noperator);
	ap_jw_kint(w, "segments", p->step->pipe ? p->step->pipe->nsegment : 1);
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	ap_jw_kint(w, "in_flight", stage->in_flight);
	write_counts(w, "held", stage->held, p->step->pipe);
	write_counts(w, "late", stage->late, p->step->pipe);
	ap_jw_kint(w, "memory_bytes", stage->memory.total);
	ap_jw_kint(w, "peak_bytes", stage->peak_bytes);
	ap_jw_knum(w, "forward_s", stage->forward_s);
	ap_jw_knum(w, "backward_s", stage->backward_s);
	ap_jw_knum(w, "idle_s", stage->idle_s);
}

static void write_stage(struct ap_plan_writer *pw, uint32_t s)
{
	const struct ap_plan *p = pw->p;
	struct ap_axes all = {0};

	if (p->machine->ndev > 1)
		ap_axes_add(&all, (struct ap_axis){1, (int32_t)p->machine->ndev});
	ap_jw_obj(&pw->w);
	ap_plan_write_stage_figures(pw, s);
	ap_plan_write_group(pw, (int32_t)s, &all);
	if (p->nstage > 1 && p->timeline)
		write_slots(&pw->w, p->timeline, s);
	ap_jw_end(&pw->w);
}

void ap_plan_write_stages(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "stages");
	ap_jw_arr(&pw->w);
	for (uint32_t s = 0; s < pw->p->nstage; s++)
		write_stage(pw, s);
	ap_jw_end(&pw->w);
}

static void write_bucket(struct ap_plan_writer *pw, const struct ap_bucket *b)
{
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "kind", ap_coll_name(b->kind));
	ap_jw_kint(w, "stage", b->stage);
	ap_plan_write_group(pw, b->stage, &b->axes);
	ap_jw_kint(w, "bytes", b->bytes);
	ap_jw_knum(w, "time_s", b->time_s);
	ap_jw_key(w, "parameters");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < b->n; i++)
		ap_jw_str(w, pw->p->graph->tensor[b->tensor[i]].name);
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_plan_write_fusion(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "fusion");
	ap_jw_arr(&pw->w);
	for (uint32_t i = 0; i < pw->p->nbucket; i++)
		write_bucket(pw, &pw->p->bucket[i]);
	ap_jw_end(&pw->w);
}
